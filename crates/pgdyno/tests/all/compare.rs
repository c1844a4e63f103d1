//! `pgdyno compare`, `capacity` and `show` on stores that are filled by hand: no server is asked,
//! no knob turned.

use common::{CORES, Home};
use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, Percentiles, SecondRecord, SeriesRecord, SettingRecord,
    TreatmentRecord, TrialRecord, TrialStatus, WorkloadRecord,
};
use pgdyno_store::Store;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn workload(clients: u32) -> WorkloadRecord {
    WorkloadRecord {
        name: "write".into(),
        scale: 1,
        clients,
        threads: 1,
        warmup_s: 2.0,
        measure_s: 12.0,
    }
}

fn treatment(name: &str) -> TreatmentRecord {
    TreatmentRecord {
        title: name.into(),
        ..TreatmentRecord::new(name)
    }
}

fn experiment(target: &str, treatments: Vec<TreatmentRecord>) -> ExperimentRecord {
    ExperimentRecord {
        question: "What is memory worth?".into(),
        blocks: 4,
        treatments,
        target: target.into(),
        ..ExperimentRecord::new("by-hand", workload(8))
    }
}

fn trial(block: u32, treatment: &str, tps: f64) -> TrialRecord {
    let second = |i: u32| SecondRecord {
        t_s: f64::from(i + 1),
        tps: tps * (1.0 + 0.001 * f64::from(i * 7 % 5)),
        ..SecondRecord::default()
    };
    TrialRecord {
        status: TrialStatus::Finished,
        tps: Some(tps),
        percentiles: Some(Percentiles {
            mean_ms: None,
            p50_ms: Some(1e3 / tps),
            p95_ms: Some(2e3 / tps),
            p99_ms: Some(3e3 / tps),
            max_ms: Some(9e3 / tps),
        }),
        warmup_s: 2.0,
        measured_s: 12.0,
        seconds: (0..14).map(second).collect(),
        ..TrialRecord::begun(block, 1, treatment)
    }
}

/// Stores an experiment with its trials: (treatment, throughput in each block).
fn store(path: &Path, record: &ExperimentRecord, trials: &[(&str, [f64; 4])]) -> i64 {
    let mut store = Store::open(path).unwrap();
    let id = store.begin(record).unwrap();
    for block in 0..4_usize {
        for (name, tps) in trials {
            let record = trial(u32::try_from(block).unwrap() + 1, name, tps[block]);
            store.add_trial(id, &record, &SeriesRecord::default()).unwrap();
        }
    }
    store.set_status(id, ExperimentStatus::Finished).unwrap();
    id
}

/// Experiment 1 is stored where commands look for it; experiment 1 of the other store is a fifth
/// slower.
fn filled(home: &Home) -> PathBuf {
    let names = ["reference", "work_mem, 16 MB"];
    let record = |target: &str| experiment(target, names.map(treatment).to_vec());
    let here = home.file("data/results.sqlite");
    let trials = [
        (names[0], [1000.0, 1102.0, 1201.0, 1298.0]),
        (names[1], [901.0, 990.0, 1080.0, 1171.0]),
    ];
    store(&here, &record("sandbox a"), &trials);
    let other = home.file("other.sqlite");
    let slower = trials.map(|(name, tps)| (name, tps.map(|tps| tps * 0.8)));
    store(&other, &record("sandbox b"), &slower);
    other
}

#[test]
fn gates_pass_fail_and_stay_undecided() {
    let home = Home::new();
    filled(&home);
    let pair = ["compare", "1:reference", "last:work_mem, 16 MB"];
    let check = |more: &[&str], code: i32, texts: &[&str]| {
        let said = home.run(&[&pair, more].concat());
        assert_eq!(said.code, code, "{more:?}\n{}\n{}", said.out, said.err);
        for text in texts {
            assert!(said.out.contains(text), "\"{text}\" is not in:\n{}", said.out);
        }
    };
    check(&[], 0, &["worse", "drift of the machine cancels", "4, 4"]);
    check(&["--fail-if", "tps worse than 2%"], 3, &["FAILED"]);
    check(&["--fail-if", "tps worse than 20%", "--strict"], 0, &["passed"]);
    let limit_within = ["--fail-if", "tps worse than 10%"];
    check(&limit_within, 5, &["undecided"]);
    check(
        &[&limit_within[..], &["--allow-undecided"]].concat(),
        0,
        &["undecided"],
    );
    check(&[&limit_within[..], &["--strict"]].concat(), 3, &["undecided"]);
    check(
        &[
            &limit_within[..],
            &["--fail-if", "tps worse than 2%", "--allow-undecided"],
        ]
        .concat(),
        3,
        &["FAILED", "undecided"],
    );
    check(
        &[
            "--metric",
            "tps",
            "--fail-if",
            "tps worse than 50%",
            "--fail-if",
            "p99_ms worse than 1%",
        ],
        3,
        &["passed", "FAILED", "p99_ms"],
    );
    check(
        &["--fail-if", "tps better than 2%", "--md"],
        0,
        &["| tps |", "**passed**"],
    );
    let said = home.run(&[&pair, &["--json", "--fail-if", "tps worse than 2%"][..]].concat());
    assert_eq!(
        (said.code, said.json()["format"].as_str()),
        (3, Some("pgdyno-compare/1"))
    );
    let value = said.json();
    assert_eq!(value["gates"][0]["outcome"], "fails");
    assert_eq!(value["comparison"]["basis"], "blocks");
    assert_eq!(
        value["comparison"]["pairs"][0]["rows"][0]["effect"]["verdict"],
        "worse"
    );
}

#[test]
fn another_store_is_held_by_its_trials() {
    let home = Home::new();
    let other = filled(&home);
    let other = other.to_str().unwrap();
    let said = home.run(&["compare", "1", "1", "--store-b", other]).fine();
    for word in [
        "is not cancelled",
        "sandbox a",
        "sandbox b",
        "other.sqlite",
        "work_mem, 16 MB",
    ] {
        assert!(said.out.contains(word), "\"{word}\" is not in:\n{}", said.out);
    }
    let said = home
        .run(&["compare", "1/1", "1/1", "--store-b", other, "--metric", "tps"])
        .fine();
    assert!(said.out.contains("These two trials only"), "{}", said.out);
    // The same file by another name is the same experiment.
    let here = home.file("data/../data/results.sqlite");
    let said = home.run(&["compare", "1", "1", "--store-b", here.to_str().unwrap()]);
    said.fails(2, &["both sides are experiment 1"]);
}

#[test]
fn wrong_references_and_gates_are_refused() {
    let home = Home::new();
    let check = |arguments: &[&str], texts: &[&str]| {
        home.run(arguments).fails(2, texts);
    };
    check(&["compare", "1", "2"], &["there is no store of results"]);
    assert!(!home.file("data/results.sqlite").exists());
    filled(&home);
    check(
        &["compare", "1:reference", "9:x"],
        &["no experiment 9", "the newest are 1"],
    );
    check(
        &["compare", "1:reference", "1:memory"],
        &["no treatment \"memory\"", "work_mem, 16 MB"],
    );
    check(&["compare", "1/1", "1/999"], &["no trial 999"]);
    check(&["compare", "first", "2"], &["names no experiment"]);
    check(&["compare", "1:reference", "1:reference"], &["both sides are"]);
    check(
        &["compare", "1/1", "1/2", "--metric", "tsp"],
        &["no trial of either side", "p99_ms"],
    );
    check(
        &["compare", "1/1", "1/2", "--fail-if", "tps slower than 2%"],
        &["worse, better or differs"],
    );
    check(
        &["compare", "1/1", "1/2", "--fail-if", "tps worse than 120%"],
        &["could never fail"],
    );
    check(&["capacity", "--tps", "60000"], &["pgdyno run edb-cores"]);
    check(&["show", "1:reference"], &["name the experiment alone"]);
}

#[test]
fn an_experiment_is_shown_with_the_numbers_of_its_trials() {
    let home = Home::new();
    filled(&home);
    let said = home.run(&["show"]).fine();
    for word in ["What is memory worth?", "trial", "finished", "work_mem, 16 MB"] {
        assert!(said.out.contains(word), "\"{word}\" is not in:\n{}", said.out);
    }
    let value = home.run(&["show", "last", "--json"]).fine().json();
    assert_eq!(value["trials"].as_array().unwrap().len(), 8);
    assert_eq!(value["trials"][0]["number"], 1);
}

#[test]
fn a_ladder_gives_cpus_connections_and_price() {
    let home = Home::new();
    let mut record = experiment("sandbox a", Vec::new());
    record.file = CORES.to_owned();
    let mut trials: Vec<(String, [f64; 4])> = Vec::new();
    for (cpus, tps) in [(1, 5_000.0), (2, 9_800.0), (4, 18_900.0), (8, 35_100.0)] {
        for clients in [4, 16] {
            let mut own = treatment(&format!("cores={cpus}, clients={clients}"));
            own.levels = vec![
                ("cores".into(), cpus.to_string()),
                ("clients".into(), clients.to_string()),
            ];
            own.workload = Some(workload(clients));
            own.settings = vec![SettingRecord {
                knob: "cgroup.cpu_quota".into(),
                value: cpus.to_string(),
                layer: "cpu".into(),
                risk: "none".into(),
                changed: true,
            }];
            let share = if (cpus > 2) == (clients > 4) { 1.0 } else { 0.8 };
            trials.push((
                own.name.clone(),
                [1.0, 1.004, 0.998, 1.002].map(|wobble| tps * share * wobble),
            ));
            record.treatments.push(own);
        }
    }
    let named: Vec<(&str, [f64; 4])> = trials.iter().map(|(name, tps)| (name.as_str(), *tps)).collect();
    store(&home.file("data/results.sqlite"), &record, &named);
    let said = home
        .run(&["capacity", "--tps", "50000", "--price-per-cpu-hour", "0.04"])
        .fine();
    for word in ["scalability law", "50000", "extrapolated"] {
        assert!(said.out.contains(word), "\"{word}\" is not in:\n{}", said.out);
    }
    let value = home
        .run(&[
            "capacity",
            "1",
            "--tps",
            "30000",
            "--json",
            "--price-per-host-hour",
            "1",
        ])
        .fine()
        .json();
    let found = &value["answer"]["rows"][0]["found"];
    assert_eq!(found["kind"], "needs");
    let cpus = found["cpus"]["value"].as_f64().unwrap();
    assert!((6.0..8.0).contains(&cpus), "{cpus}");
    assert!(found["cost_per_million"]["value"].as_f64().unwrap() > 0.0);
    let far = home.run(&["capacity", "--tps", "100000"]).fine();
    assert!(
        far.out.contains("bounds alone") || far.out.contains("never reached"),
        "{}",
        far.out
    );
    home.run(&["capacity", "--tps", "100", "--p99", "1fortnight"])
        .fails(2, &[]);
    let none = home.run(&["capacity", "--tps", "100", "--p99", "0.01ms"]).fine();
    assert!(
        none.out.contains("no number of clients kept the response time"),
        "{}",
        none.out
    );
}

/// What a terminal would obey, a spreadsheet compute, and a page of Markdown or HTML run or link.
const HOSTILE: &str =
    "=a\u{1b}]0;owned\u{7}\u{1b}[31mred\u{9b}2J\u{7f}\u{202e}txt\u{2066}|[x](http://h)</script><b>\r!";

fn is_obeyed(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t' || "\u{202a}\u{202e}\u{2066}\u{2069}\u{200f}".contains(c)
}

#[test]
fn nothing_stored_is_obeyed_by_a_terminal_or_a_page() {
    let home = Home::new();
    let path = home.file("data/results.sqlite");
    let long = format!("{HOSTILE}{}", "x".repeat(200_000));
    let mut record = experiment(HOSTILE, vec![treatment("reference"), treatment(HOSTILE)]);
    record.name = HOSTILE.into();
    record.question = long.clone();
    record.treatments[1].reason = Some(HOSTILE.into());
    record.treatments[1].settings = vec![SettingRecord {
        knob: HOSTILE.into(),
        value: HOSTILE.into(),
        layer: "postgres".into(),
        risk: "none".into(),
        changed: true,
    }];
    store(
        &path,
        &record,
        &[
            ("reference", [1000.0, 1100.0, 1200.0, 1300.0]),
            (HOSTILE, [900.0, 990.0, 1080.0, 1170.0]),
        ],
    );
    Store::open(&path).unwrap().note(1, HOSTILE).unwrap();
    let pair = format!("1:{HOSTILE}");
    let missing = home.file(HOSTILE.trim_end_matches(|c| c != 'a'));
    let check = |arguments: &[&str]| {
        let said = home.run(arguments);
        for text in [&said.out, &said.err] {
            let obeyed = text.chars().find(|c| is_obeyed(*c));
            assert_eq!(
                obeyed,
                None,
                "{arguments:?}: {}",
                text.chars().take(2000).collect::<String>()
            );
        }
        said
    };
    let shown = check(&["show", "1"]).fine();
    assert!(
        shown.out.contains("\\u001b[31mred\\u009b2J\\u007f\\u202etxt"),
        "{}",
        &shown.out[..300]
    );
    assert!(
        shown.out.contains("more characters") && shown.out.len() < 100_000,
        "{}",
        shown.out.len()
    );
    for arguments in [
        &["list"][..],
        &["note", "1"],
        &["compare", "1:reference", &pair],
        &["prune", "--keep", "0", "--dry-run"],
    ] {
        check(arguments).fine();
    }
    check(&["tag", "1", "add", HOSTILE]);
    check(&["show", "--store", &missing.to_string_lossy()]);
    check(&["compare", "1:reference", &format!("1:x{HOSTILE}")]);
    check(&[HOSTILE]);
    check(&["run", HOSTILE]);
    for arguments in [
        &["list", "--json"][..],
        &["show", "1", "--json"],
        &["report", "1", "-f", "json"],
        &["export", "1", "-f", "json"],
    ] {
        let text = check(arguments).fine().json().to_string();
        assert!(
            text.contains(&serde_json::to_string(HOSTILE).unwrap()),
            "{arguments:?} has the same value: {text}"
        );
    }
    for markdown in [
        &["report", "1", "-f", "md"][..],
        &["compare", "1:reference", &pair, "--md"],
    ] {
        let page = check(markdown).fine().out;
        assert!(
            !page.contains("[x](http") && !page.contains("<b>") && page.contains("\\[x\\]"),
            "{page}"
        );
    }
    let page = home.run(&["report", "1", "-o", "-"]).fine().out;
    assert!(page.contains(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"
    ));
    assert!(!page.contains("</script><b>"));
    let table = home.run(&["export", "1", "-f", "csv"]).fine().out;
    assert!(
        table.contains(",\"'=a\u{1b}]0;") && !table.contains(",=a") && !table.contains("\"=a"),
        "{table}"
    );
}

#[test]
fn a_store_and_what_is_written_of_it_are_their_owners_alone() {
    let home = Home::new();
    filled(&home);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = home.file("data/results.sqlite");
    assert_eq!((mode(&path), mode(&home.file("data"))), (0o600, 0o711));
    // As an earlier version left it, and as somebody chose it for a group.
    for (before, after) in [(0o644, 0o600), (0o666, 0o600), (0o640, 0o640)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
        home.run(&["list"]).fine();
        assert_eq!(mode(&path), after, "{before:o}");
    }
    let (page, table) = (home.file("r.md"), home.file("t.csv"));
    home.run(&["report", "1", "-f", "md", "-o", page.to_str().unwrap()])
        .fine();
    home.run(&["export", "1", "-f", "csv", "-o", table.to_str().unwrap()])
        .fine();
    assert_eq!((mode(&page), mode(&table)), (0o600, 0o600));
}
