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

#[test]
fn one_at_a_time_stands_on_the_base() {
    let plan = plan("one-at-a-time", &agreed()).unwrap();
    assert_eq!(knobs(&plan, 2), ["jit=off", "vm.swappiness=1"]);
}

#[test]
fn what_is_left_out_is_left_out_of_later_steps_too() {
    let mut plan = plan("cumulative", &agreed()).unwrap();
    plan.leave_out(&[(2, "not permitted".into())]);
    assert!(!knobs(&plan, 3).contains(&"vm.swappiness=1".to_owned()));
    assert!(plan.order_of_block(1).iter().all(|&i| i != 2));
    assert_eq!(plan.trials(), 9);
}

#[test]
fn durability_needs_consent_to_that_very_knob() {
    let other = Consent {
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
