use super::*;
use std::path::Path;

fn plan(design: &str, consent: &Consent) -> Result<Plan, PlanError> {
    let catalogue = Catalogue::shipped().unwrap();
    let text = format!(
        "name='x'\nquestion='?'\ndesign='{design}'\nblocks=3\n[data]\nscale=1\n\
         [load]\nworkload='tpcb'\nclients=1\nwarmup_s=0\nmeasure_s=1\n[base]\njit='off'\n\
         [[step]]\nname='a'\nsettings.shared_buffers='1GB'\n\
         [[step]]\nname='b'\nsettings.vm.swappiness=1\n\
         [[step]]\nname='c'\n[step.settings]\njit='on'\nsynchronous_commit='off'\n"
    );
    let file = ExperimentFile::parse(&text, Path::new("x"), &catalogue).unwrap();
    Plan::new(file, &ProfileSettings::new(), 7, &catalogue, consent)
}

fn agreed() -> Consent {
    Consent {
        data: false,
        durability: vec!["synchronous_commit".into()],
        restart: false,
    }
}

fn knobs(plan: &Plan, i: usize) -> Vec<String> {
    plan.treatments[i]
        .settings
        .iter()
        .map(|s| format!("{}={}", s.knob, s.value))
        .collect()
}

#[test]
fn cumulative_steps_add_up_and_later_ones_win() {
    let plan = plan("cumulative", &agreed()).unwrap();
    assert_eq!(knobs(&plan, 0), ["jit=off"]);
    assert_eq!(
        knobs(&plan, 2),
        ["jit=off", "shared_buffers=1GB", "vm.swappiness=1"]
    );
    assert_eq!(
        knobs(&plan, 3),
        [
            "shared_buffers=1GB",
            "vm.swappiness=1",
            "jit=on",
            "synchronous_commit=off"
        ]
    );
}

/// Whatever is named nearer to the treatment counts alone.
#[test]
fn programs_are_named_by_version_or_by_directory() {
    let catalogue = Catalogue::shipped().unwrap();
    let parse = |server: &str, level: &str| {
        let text = format!(
            "name='x'\nquestion='?'\ndesign='one-at-a-time'\nblocks=3\n[server]\n{server}\n[data]\nscale=1\n\
             [load]\nworkload='tpcb'\nclients=1\nwarmup_s=0\nmeasure_s=1\n\
             [[factor]]\nname='f'\n[[factor.level]]\nname='a'\n[[factor.level]]\nname='b'\n{level}\n"
        );
        let file = ExperimentFile::parse(&text, Path::new("x"), &catalogue).unwrap();
        let plan = Plan::new(file, &ProfileSettings::new(), 7, &catalogue, &agreed()).unwrap();
        let programs = |i: usize| {
            let variant = plan.treatments[i].variant();
            (variant.version, variant.bin)
        };
        (programs(0), programs(1))
    };
    let bin = || Some("/opt/bin".to_owned());
    assert_eq!(
        parse("bin='/opt/bin'", "server.version=17"),
        ((None, bin()), (Some(17), None))
    );
    assert_eq!(
        parse("version=17", "server.bin='/opt/bin'"),
        ((Some(17), None), (None, bin()))
    );
}

#[test]
fn one_at_a_time_adds_each_step_to_the_base() {
    let plan = plan("one-at-a-time", &agreed()).unwrap();
    assert_eq!(knobs(&plan, 2), ["jit=off", "vm.swappiness=1"]);
}

#[test]
fn settings_of_an_excluded_step_are_not_in_later_steps() {
    let mut plan = plan("cumulative", &agreed()).unwrap();
    plan.exclude(&[(2, "not permitted".into())]);
    assert!(!knobs(&plan, 3).contains(&"vm.swappiness=1".to_owned()));
    assert!(plan.order_of_block(1).iter().all(|&i| i != 2));
    assert_eq!(plan.trials(), 9);
}

#[test]
fn durability_needs_consent_to_that_very_knob() {
    let other = Consent {
        data: false,
        durability: vec!["fsync".into()],
        restart: false,
    };
    assert!(matches!(
        plan("cumulative", &other),
        Err(PlanError::Durability { .. })
    ));
}

#[test]
fn blocks_hold_every_treatment_once_in_orders_that_repeat() {
    let (a, b) = (
        plan("cumulative", &agreed()).unwrap(),
        plan("cumulative", &agreed()).unwrap(),
    );
    let orders: Vec<Vec<usize>> = (1..=20).map(|block| a.order_of_block(block)).collect();
    for (i, order) in orders.iter().enumerate() {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
        assert_eq!(*order, b.order_of_block(u32::try_from(i).unwrap() + 1));
    }
    assert!(orders.iter().any(|order| order != &orders[0]));
}

fn factors(design: &str, rest: &str) -> Result<Plan, PlanError> {
    let catalogue = Catalogue::shipped().unwrap();
    let text = format!(
        "name='x'\nquestion='?'\ndesign='{design}'\nblocks=3\n[data]\nscale=1\n\
         [load]\nworkload='tpcb'\nclients=1\nmeasure_s=1\n{rest}"
    );
    let file = ExperimentFile::parse(&text, Path::new("x"), &catalogue).unwrap();
    Plan::new(file, &ProfileSettings::new(), 7, &catalogue, &Consent::default())
}

const TWO: &str = "[[factor]]\nname='buffers'\nof='shared_buffers'\nvalues=['1GB','2GB','3GB']\n\
    [[factor]]\nname='clients'\nalong=true\nof='load.clients'\nvalues=[1,8]\n";

fn against(plan: &Plan) -> Vec<(String, Option<String>)> {
    let name = |i: usize| plan.treatments[i].name.clone();
    (0..plan.treatments.len())
        .map(|i| (name(i), plan.treatments[i].against.map(name)))
        .collect()
}

#[test]
fn a_factorial_compares_within_its_conditions() {
    let plan = factors("full-factorial", TWO).unwrap();
    let found = against(&plan);
    assert_eq!(found.len(), 6);
    assert_eq!(found[0], ("buffers=1GB, clients=1".into(), None));
    assert_eq!(found[1], ("buffers=1GB, clients=8".into(), None));
    assert_eq!(
        found[3],
        (
            "buffers=2GB, clients=8".into(),
            Some("buffers=1GB, clients=8".into())
        )
    );
    assert_eq!(plan.treatments[3].load.clients, Some(8));
    assert_eq!(knobs(&plan, 3), ["shared_buffers=2GB"]);
}

#[test]
fn what_is_excluded_is_not_tried_and_a_ladder_compares_nothing() {
    let plan = factors(
        "full-factorial",
        &format!("{TWO}[[exclude]]\nbuffers='3GB'\nclients='1'\n"),
    )
    .unwrap();
    assert_eq!(plan.treatments.len(), 5);
    let nothing = "[[exclude]]\nclients='1'\n[[exclude]]\nclients='8'\n";
    assert!(matches!(
        factors("full-factorial", &format!("{TWO}{nothing}")),
        Err(PlanError::NothingLeft)
    ));
    let ladder = factors("ladder", TWO).unwrap();
    assert!(against(&ladder).iter().all(|(_, against)| against.is_none()));
    let single = factors("one-at-a-time", TWO).unwrap();
    let names: Vec<String> = against(&single).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "buffers=1GB, clients=1",
            "buffers=2GB, clients=1",
            "buffers=3GB, clients=1",
            "buffers=1GB, clients=8"
        ]
    );
}

#[test]
fn screening_is_balanced_and_a_fraction_is_smaller_than_all() {
    let part = |name: &str, of: &str| format!("[[factor]]\nname='{name}'\nof='{of}'\nvalues=[1,2]\n");
    let of = [
        "commit_delay",
        "commit_siblings",
        "vacuum_cost_limit",
        "bgwriter_lru_maxpages",
        "bgwriter_flush_after",
    ];
    let rest: String = of.iter().map(|knob| part(knob, knob)).collect();
    for (design, treatments) in [("screening", 16), ("fractional", 16), ("full-factorial", 32)] {
        let plan = factors(design, &rest).unwrap();
        assert_eq!(plan.treatments.len(), treatments, "{design}");
        for (knob, name) in of.iter().enumerate() {
            let high = plan.treatments.iter().filter(|t| t.levels[knob].1 == "2").count();
            assert_eq!(high * 2, treatments, "{design}: {name}");
        }
    }
}

#[test]
fn the_same_again_is_held_against_itself() {
    let plan = factors("a-a", "").unwrap();
    assert_eq!(
        against(&plan),
        [
            ("reference".into(), None),
            ("again".into(), Some("reference".into()))
        ]
    );
    assert_eq!(plan.treatments[0].settings, plan.treatments[1].settings);
}

#[test]
fn servers_are_changed_as_rarely_as_can_be() {
    let rest = "[[factor]]\nname='version'\nof='server.version'\nvalues=[14,18]\n\
        [[factor]]\nname='clients'\nof='load.clients'\nvalues=[1,2,4,8]\n";
    let plan = factors("full-factorial", rest).unwrap();
    let mut firsts = BTreeSet::new();
    for block in 1..=20 {
        let order = plan.order_of_block(block);
        assert_eq!(order.len(), 8);
        let variants: Vec<ServerVariant> = order.iter().map(|&i| plan.treatments[i].variant()).collect();
        assert_eq!(variants.windows(2).filter(|two| two[0] != two[1]).count(), 1);
        firsts.insert(order[0]);
    }
    assert!(firsts.len() > 3, "the order is still random: {firsts:?}");
    assert_eq!(plan.treatments[7].variant().label(), "v18");
}

#[test]
fn settings_of_the_file_override_its_profiles() {
    let catalogue = Catalogue::shipped().unwrap();
    let text = "name='x'\nquestion='?'\ndesign='a-b'\nblocks=3\nprofile='p'\n[data]\nscale=1\n\
        [load]\nworkload='tpcb'\nclients=1\nmeasure_s=1\n[base]\njit='off'\n[[step]]\nname='a'\nprofile='q'\nsettings.work_mem='8MB'\n";
    let file = ExperimentFile::parse(text, Path::new("x"), &catalogue).unwrap();
    assert_eq!(file.profiles().into_iter().collect::<Vec<_>>(), ["p", "q"]);
    let setting = |knob: &str, value: &str| Setting {
        knob: knob.into(),
        value: value.into(),
    };
    let profiles = ProfileSettings::from([
        (
            "p".to_owned(),
            vec![setting("jit", "on"), setting("max_wal_size", "2GB")],
        ),
        (
            "q".to_owned(),
            vec![setting("work_mem", "4MB"), setting("max_wal_size", "3GB")],
        ),
    ]);
    let plan = Plan::new(file, &profiles, 7, &catalogue, &Consent::default()).unwrap();
    assert_eq!(knobs(&plan, 0), ["max_wal_size=2GB", "jit=off"]);
    assert_eq!(knobs(&plan, 1), ["jit=off", "max_wal_size=3GB", "work_mem=8MB"]);
}

#[test]
fn what_has_begun_goes_on_with_the_settings_that_it_began_with() {
    let catalogue = Catalogue::shipped().unwrap();
    let text = "name='x'\nquestion='?'\ndesign='cumulative'\nblocks=3\nprofile='p'\n[data]\nscale=1\n\
        [load]\nworkload='tpcb'\nclients=1\nmeasure_s=1\n[[step]]\nname='a'\nprofile='q'\n\
        [[step]]\nname='b'\nsettings.jit='off'\n";
    let file = || ExperimentFile::parse(text, Path::new("x"), &catalogue).unwrap();
    let setting = |knob: &str, value: &str| Setting {
        knob: knob.into(),
        value: value.into(),
    };
    let profiles = ProfileSettings::from([
        ("p".to_owned(), vec![setting("max_wal_size", "2GB")]),
        ("q".to_owned(), vec![setting("fsync", "off")]),
    ]);
    let agreed = Consent {
        data: false,
        durability: vec!["fsync".to_owned()],
        restart: false,
    };
    let mut begun = Plan::new(file(), &profiles, 7, &catalogue, &agreed).unwrap();
    begun.exclude(&[(2, "not here".to_owned())]);
    let stored = crate::runner::treatment_records(&begun, &catalogue);
    let recalled = Plan::recalled(file(), 7, &stored, &catalogue, &agreed).unwrap();
    assert_eq!(recalled.treatments, begun.treatments);
    let refused = Plan::recalled(file(), 7, &stored, &catalogue, &Consent::default());
    assert!(
        matches!(refused, Err(PlanError::Durability { .. })),
        "consent is asked for again"
    );
}

#[test]
fn a_block_has_each_tested_treatment_once_in_an_order_of_its_own() {
    let plan = plan("one-at-a-time", &agreed()).unwrap();
    let orders: Vec<Vec<usize>> = (1..=500).map(|block| plan.order_of_block(block)).collect();
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
    }
    // Each of the 24 orders comes about as often, and each block draws again.
    for wanted in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let times = orders.iter().filter(|order| **order == wanted).count();
        assert!((5..=50).contains(&times), "{wanted:?}: {times} of 500");
    }
    let same = orders.windows(2).filter(|two| two[0] == two[1]).count();
    assert!(same < 60, "{same} blocks repeat the one before");
    assert_eq!(plan.order_of_block(3), orders[2]);
}

#[test]
fn treatments_that_share_a_server_follow_one_another() {
    let catalogue = Catalogue::shipped().unwrap();
    let text = "name='x'\nquestion='?'\ndesign='one-at-a-time'\nblocks=3\n[data]\nscale=1\n\
         [load]\nworkload='tpcb'\nclients=1\nwarmup_s=0\nmeasure_s=1\n\
         [[step]]\nname='a'\nserver.version=17\n[[step]]\nname='b'\nsettings.jit='on'\n\
         [[step]]\nname='c'\nserver.version=17\nsettings.jit='on'\n[[step]]\nname='d'\nserver.version=16\n";
    let file = ExperimentFile::parse(text, Path::new("x"), &catalogue).unwrap();
    let plan = Plan::new(file, &ProfileSettings::new(), 7, &catalogue, &agreed()).unwrap();
    for block in 1..=50 {
        let order = plan.order_of_block(block);
        let variants = order.iter().map(|i| plan.treatments[*i].variant());
        let mut moves: Vec<ServerVariant> = variants.collect();
        moves.dedup();
        assert_eq!(moves.len(), 3, "block {block}: {order:?}");
    }
}
