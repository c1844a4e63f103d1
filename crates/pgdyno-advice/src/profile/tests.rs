use super::*;
use pgdyno_host::Fact;
use pgdyno_knobs::Risk;
use proptest::prelude::*;
use serde_json::json;

const GB: u64 = 1 << 30;

fn known() -> Known {
    Known::new(
        &[
            Fact::known("memory.total_bytes", "x", 16 * GB),
            Fact::known("cpu.online_count", "x", 8),
            Fact::known("virtualization.guest", "x", false),
            Fact::unknown("cpu.governor", "x", "no frequency scaling is offered"),
            Fact::known("server.version_num", "x", json!(140_000)),
        ],
        &[],
    )
}

/// Files that are on no disk, by full name; other names have dots in them.
#[derive(Default, Clone)]
struct InMemory(BTreeMap<PathBuf, String>);

impl Files for InMemory {
    fn full_name(&self, path: &Path) -> Option<PathBuf> {
        let full = path.components().collect();
        self.0.contains_key(&full).then_some(full)
    }

    fn bytes(&self, path: &Path, _: u64) -> Result<Vec<u8>, String> {
        let found = self.full_name(path).and_then(|full| self.0.get(&full));
        found
            .map(|text| text.clone().into_bytes())
            .ok_or_else(|| "it is not there".to_owned())
    }
}

/// A profile of these settings.
fn of(settings: &str) -> Result<Profiles, ProfileError> {
    with(&[("own", "", settings)])
}

/// (name, inherits, settings)
fn with(all: &[(&str, &str, &str)]) -> Result<Profiles, ProfileError> {
    let mut profiles = Profiles {
        profiles: BTreeMap::new(),
        opened: BTreeMap::new(),
    };
    for (name, inherits, settings) in all {
        let text =
            format!("name = \"{name}\"\ntitle = \"x\"\nsummary = \"x\"\ninherits = [{inherits}]\n{settings}");
        let profile = Profile::parse(&text, Path::new(&format!("{name}.toml")))?;
        profiles.profiles.insert((*name).to_owned(), profile);
    }
    Ok(profiles)
}

fn setting(knob: &str, rest: &str) -> String {
    format!("[[setting]]\nknob = \"{knob}\"\n{rest}\nreason = \"r\"\nsource = \"s\"\n")
}

/// What is set, as knob=value, and what is skipped, as knob: because.
fn resolved(profiles: &Profiles, now: &[(&str, &str)]) -> Result<(Vec<String>, Vec<String>), ProfileError> {
    let current = |knob: &str| {
        let found = now.iter().find(|(name, _)| *name == knob);
        match found {
            Some((_, "gone")) => Now::Nowhere("this kernel has it not".into()),
            Some((_, value)) => Now::Is((*value).to_owned()),
            None => Now::Unknown,
        }
    };
    let catalogue = Catalogue::shipped().unwrap();
    let resolved = profiles
        .clone()
        .resolve("own", &known(), &catalogue, Some(14), &current)?;
    let set = |setting: &ResolvedSetting| format!("{}={}", setting.knob, setting.value);
    let left = |left: &SkippedSetting| format!("{}: {}", left.knob, left.because);
    Ok((
        resolved.settings.iter().map(set).collect(),
        resolved.skipped.iter().map(left).collect(),
    ))
}

#[track_caller]
fn check(settings: &str, now: &[(&str, &str)], set: &[&str], left: &[&str]) {
    let (found_set, found_left) = resolved(&of(settings).unwrap(), now).unwrap();
    assert_eq!(found_set, set);
    assert_eq!(found_left.len(), left.len(), "{found_left:?}");
    for (found, part) in found_left.iter().zip(left) {
        assert!(found.contains(part), "{found}");
    }
}

#[track_caller]
fn check_error(outcome: Result<Profiles, ProfileError>, parts: &[&str]) {
    let error = match outcome.and_then(|profiles| resolved(&profiles, &[])) {
        Ok(found) => panic!("{found:?}"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn numbers_get_the_unit_that_a_knob_takes() {
    check(
        &setting(
            "shared_buffers",
            "value = \"= memory.total_bytes / 5\"\nunit = \"bytes\"",
        ),
        &[],
        &["shared_buffers=3276MB"],
        &[],
    );
    check(
        &setting("checkpoint_timeout", "value = 900\nunit = \"seconds\""),
        &[],
        &["checkpoint_timeout=15min"],
        &[],
    );
    check(
        &setting("max_parallel_workers", "value = \"= available.cpus / 2\""),
        &[],
        &["max_parallel_workers=4"],
        &[],
    );
    check(
        &setting("random_page_cost", "value = 1.1"),
        &[],
        &["random_page_cost=1.1"],
        &[],
    );
    check(&setting("jit", "value = false"), &[], &["jit=off"], &[]);
    check(
        &setting("autovacuum_work_mem", "value = -1\nunit = \"bytes\""),
        &[],
        &["autovacuum_work_mem=-1"],
        &[],
    );
    check(
        &setting(
            "vm.dirty_bytes",
            "value = \"= memory.total_bytes / 7\"\nunit = \"bytes\"",
        ),
        &[],
        &["vm.dirty_bytes=2454267026"],
        &[],
    );
    check(
        &setting("block.read_ahead_kb", "value = 4194304\nunit = \"bytes\""),
        &[],
        &["block.read_ahead_kb=4096"],
        &[],
    );
    check(
        &setting("vm.nr_hugepages", "value = 3\nunit = \"bytes\""),
        &[],
        &[],
        &["vm.nr_hugepages is counted in pages"],
    );
    check(
        &setting("vm.swappiness", "value = \"= 30 * 10\""),
        &[],
        &[],
        &["expected a whole number from 0 to 200"],
    );
}

#[test]
fn what_does_not_fit_the_target_is_skipped_with_the_reason() {
    check(
        &setting("jit", "value = false\nwhen = \"available.cpus > 8\""),
        &[],
        &[],
        &["jit: this does not hold here: available.cpus > 8 (available.cpus is 8)"],
    );
    check(
        &setting(
            "cpu.governor",
            "value = \"performance\"\nwhen = \"cpu.governor != 'performance'\"",
        ),
        &[],
        &[],
        &["fact cpu.governor is missing because no frequency scaling is offered"],
    );
    check(
        &setting(
            "work_mem",
            "value = \"= setting.max_connections * 2\"\nunit = \"bytes\"",
        ),
        &[],
        &[],
        &["fact setting.max_connections is missing because no server was asked"],
    );
    check(
        &setting("io_method", "value = \"worker\""),
        &[],
        &[],
        &["the server is 14: PostgreSQL 18 and later have it"],
    );
    check(
        &setting("vm.swappiness", "value = 1"),
        &[("vm.swappiness", "gone")],
        &[],
        &["vm.swappiness: this kernel has it not"],
    );
    check(
        &setting("boot.preempt", "value = \"none\""),
        &[],
        &[],
        &["it is not set by pgdyno; by hand:"],
    );
}

#[test]
fn condition_on_a_fact_that_could_not_be_found_out_names_how_it_is_given() {
    let facts = [
        Fact::known("storage.data.file_system", "x", "zfs"),
        Fact::known("cpu.online_count", "x", 8),
    ];
    let known = Known::new(&facts, &[]);
    let profiles = of(&(setting(
        "random_page_cost",
        "value = 1.1\nwhen = \"storage.data_medium in ['nvme', 'ssd']\"",
    ) + &setting("jit", "value = false\nwhen = \"available.cpus > 8\"")))
    .unwrap();
    let catalogue = Catalogue::shipped().unwrap();
    let resolve = |known: &Known| {
        let current = |_: &str| Now::Unknown;
        profiles
            .resolve("own", known, &catalogue, None, &current)
            .unwrap()
    };
    let resolved = resolve(&known);
    assert_eq!(
        resolved.skipped[0].given.as_deref(),
        Some("storage.data_medium=ssd")
    );
    assert!(
        resolved.skipped[0]
            .shown()
            .ends_with("; --given storage.data_medium=ssd sets it"),
        "{}",
        resolved.skipped[0].shown()
    );
    assert_eq!(resolved.skipped[1].given, None);
    let given = resolve(&known.given_text("storage.data_medium", "ssd"));
    assert_eq!(given.to_apply().len(), 1);
}

#[test]
fn nothing_is_set_on_a_host_that_is_elsewhere() {
    let facts = [Fact::unknown(
        "host.facts",
        "/proc",
        "the server is reached over a network",
    )];
    let profiles =
        of(&(setting("jit", "value = false")
            + &setting("transparent_hugepage.enabled", "value = \"never\"")));
    let catalogue = Catalogue::shipped().unwrap();
    let resolved = profiles
        .unwrap()
        .resolve("own", &Known::new(&facts, &[]), &catalogue, None, &|_| {
            Now::Unknown
        })
        .unwrap();
    assert_eq!(resolved.to_apply().len(), 1);
    assert_eq!(
        resolved.skipped[0].because,
        "fact host.facts is missing because the server is reached over a network"
    );
}

#[test]
fn what_is_enough_is_neither_raised_nor_lowered() {
    let raise = setting("max_wal_size", "value = \"4GB\"\nonly = \"raise\"");
    check(&raise, &[("max_wal_size", "1GB")], &["max_wal_size=4GB"], &[]);
    check(
        &raise,
        &[("max_wal_size", "80GB")],
        &[],
        &["it is 80GB already, and the profile would only raise it to 4GB"],
    );
    check(
        &raise,
        &[("max_wal_size", "4096MB")],
        &[],
        &["it is 4096MB already"],
    );
    check(&raise, &[], &[], &["its present value is unknown"]);
    check(
        &raise,
        &[("max_wal_size", "-1")],
        &[],
        &["it is -1: cannot decide whether 4GB would raise it"],
    );
    let lower = setting("vm.swappiness", "value = 10\nonly = \"lower\"");
    check(&lower, &[("vm.swappiness", "60")], &["vm.swappiness=10"], &[]);
    check(
        &lower,
        &[("vm.swappiness", "1")],
        &[],
        &["it is 1 already, and the profile would only lower it to 10"],
    );
    let inherited = with(&[
        ("base", "", &setting("max_wal_size", "value = \"2GB\"")),
        ("own", "\"base\"", &raise),
    ]);
    let (set, left) = resolved(&inherited.unwrap(), &[("max_wal_size", "80GB")]).unwrap();
    assert!(set.is_empty() && left.len() == 1, "{set:?} {left:?}");
}

#[test]
fn the_later_setting_wins() {
    let own = setting("jit", "value = true")
        + &setting("work_mem", "value = \"8MB\"\nwhen = \"available.cpus > 100\"");
    let base = setting("jit", "value = false")
        + &setting("work_mem", "value = \"4MB\"")
        + &setting("vm.swappiness", "value = 10")
        + &setting("block.read_ahead_kb", "value = 128")
        + &setting("vm.dirty_ratio", "value = 5");
    let more = setting("vm.swappiness", "drop = true")
        + &setting("block.read_ahead_kb@data", "value = 4096")
        + &setting("vm.dirty_bytes", "value = 536870912");
    let profiles = with(&[
        ("base", "", &base),
        ("more", "\"base\"", &more),
        ("own", "\"base\", \"more\"", &own),
    ]);
    let (set, left) = resolved(&profiles.unwrap(), &[]).unwrap();
    assert_eq!(
        set,
        [
            "work_mem=4MB",
            "block.read_ahead_kb@data=4096",
            "vm.dirty_bytes=536870912",
            "jit=on"
        ]
    );
    assert_eq!(
        left,
        [
            "vm.dirty_ratio: it makes no sense beside vm.dirty_bytes, which the profile sets later",
            "vm.swappiness: profile more drops it"
        ]
    );
}

#[test]
fn errors_name_file_line_and_what_is_expected() {
    check_error(
        of(&setting("shared_bufers", "value = 1")),
        &["own.toml, line 5", "did you mean \"shared_buffers\""],
    );
    check_error(
        of(&setting("jit", "")),
        &["own.toml, line 5", "jit: expected value = ..., or drop = true"],
    );
    check_error(
        of(&setting("jit", "value = [1]")),
        &["own.toml, line 7", "expected a number, a text"],
    );
    check_error(
        of(&setting("jit", "value = \"= 1 +\"")),
        &["own.toml, line 7", "`1 +`"],
    );
    check_error(
        of(&setting("jit", "value = 1\nwhen = \"(\"")),
        &["own.toml, line 8"],
    );
    check_error(
        of(&setting("jit", "value = 1\nwhenn = \"1\"")),
        &["own.toml, line 8", "unknown field `whenn`"],
    );
    check_error(
        of(&setting("jit", "value = 1\nonly = \"up\"")),
        &["own.toml, line 8", "expected", "raise"],
    );
    check_error(
        of(&setting("jit", "value = \"= memory.totl_bytes\"")),
        &["own.toml, line 5", "jit:", "did you mean \"memory.total_bytes\""],
    );
    check_error(
        of(&setting("jit", "value = true\nwhen = \"1 / 0\"")),
        &["line 5", "unable to calculate"],
    );
    check_error(
        of(&setting("jit", "value = true\nwhen = \"1\"")),
        &["expected true or false, found 1"],
    );
    check_error(
        Profile::parse("name = \"A b\"\ntitle = \"\"\nsummary = \"\"", Path::new("x"))
            .map(|_| of("").unwrap()),
        &["x, line 1", "small letters"],
    );
    check_error(
        with(&[("own", "\"oltpp\"", "")]),
        &["own.toml, line 1", "there is no profile \"oltpp\""],
    );
    let mut shipped = Profiles::shipped().unwrap();
    let error = shipped
        .open("oltb", &InMemory::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("did you mean \"oltp\""), "{error}");
    let error = shipped
        .open("/nowhere/x.toml", &InMemory::default())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("/nowhere/x.toml could not be read"), "{error}");
}

#[test]
fn profile_has_where_it_was_measured_and_no_figures_that_contradict_themselves() {
    let read = |measured: &str| {
        let text = format!("name = \"own\"\ntitle = \"x\"\nsummary = \"x\"\nmeasured = [{measured}]\n");
        Profile::parse(&text, Path::new("own.toml")).map_err(|error| error.to_string())
    };
    assert!(read("").unwrap().measured.is_empty());
    let entry = |low: &str| {
        format!(
            "{{ machine = \"1 CPU, 2 GB\", load = \"tpcc\", ratio = 1.1, low = {low}, high = 1.2, date = \"2026-11-27\" }}"
        )
    };
    let own = read(&entry("1.0")).unwrap().measured;
    assert_eq!(
        (own.len(), own[0].machine.as_str(), own[0].ratio),
        (1, "1 CPU, 2 GB", 1.1)
    );
    let error = read(&entry("1.15")).unwrap_err();
    assert!(
        error.contains("own.toml, line 4") && error.contains("low <= ratio <= high"),
        "{error}"
    );
    assert!(read(&entry("1.0").replace("load", "laod")).is_err());
}

#[test]
fn a_circle_is_named() {
    let circle = with(&[("own", "\"b\"", ""), ("b", "\"c\"", ""), ("c", "\"b\"", "")]);
    check_error(circle, &["c.toml: profiles inherit in a circle: b > c > b"]);
    let mut files = InMemory::default();
    let mut write = |name: &str, inherits: &str| {
        let text =
            format!("name = \"{name}\"\ntitle = \"x\"\nsummary = \"x\"\ninherits = [\"{inherits}\"]\n");
        files.0.insert(format!("/own/{name}.toml").into(), text);
        files.clone()
    };
    write("a", "./b.toml");
    let both = write("b", "./a.toml");
    let file = "/own/./a.toml";
    let mut profiles = Profiles::shipped().unwrap();
    let catalogue = Catalogue::shipped().unwrap();
    profiles.open(file, &both).unwrap();
    let error = profiles
        .resolve(file, &known(), &catalogue, None, &|_| Now::Unknown)
        .unwrap_err();
    assert!(error.to_string().contains("in a circle"), "{error}");
    // A file may inherit from a shipped one, and nobody sees it in the list.
    profiles.open(file, &write("a", "small")).unwrap();
    let resolved = profiles
        .resolve(file, &known(), &catalogue, None, &|_| Now::Unknown)
        .unwrap();
    assert!(resolved.settings.iter().any(|setting| setting.profile == "small"));
    assert!(profiles.iter().all(|profile| profile.name != "a"));
}

#[test]
fn shipped_profiles_are_whole_and_trade_no_durability() {
    let catalogue = Catalogue::shipped().unwrap();
    let profiles = Profiles::shipped().unwrap();
    assert_eq!(profiles.iter().count(), FILES.len());
    for profile in profiles.iter() {
        assert!(
            FILES
                .iter()
                .any(|(file, _)| *file == format!("profiles/{}.toml", profile.name))
        );
        assert!(!profile.title.is_empty() && !profile.summary.is_empty());
        for (of, setting) in profiles.flattened(&profile.name).unwrap() {
            let place = format!("{}, line {}: {}", of.file.display(), setting.line, setting.knob);
            let knob = catalogue
                .get(&setting.knob)
                .unwrap_or_else(|e| panic!("{place}: {e}"));
            assert!(
                !setting.reason.is_empty() && !setting.source.is_empty(),
                "{place}"
            );
            let worst = match &setting.value {
                ProfileValue::Expression(_) => knob.risk,
                value => knob.risk_of(&value.shown()),
            };
            assert!(worst < Risk::Durability, "{place}: it trades durability");
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", value in "[^']{0,30}") {
        let _ = Profile::parse(&text, Path::new("x"));
        let settings = setting("work_mem", &format!("value = '''{value}'''\nwhen = '''{value}'''"));
        if let Ok(profiles) = of(&settings) {
            let _ = resolved(&profiles, &[("work_mem", &value)]);
        }
    }
}
