//! `pgdyno gate`: schema scripts, settings and builds, for real.

use common::machine::newest;
use common::{Home, Said, said, until_is};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SHORT: [&str; 11] = [
    "--scale", "1", "-c", "1", "-d", "1s", "--warmup", "0.1s", "--blocks", "3", "-V",
];

/// Where the number of blocks is in it.
const BLOCKS_AT: usize = 9;

/// A function that takes so long, as a schema script. It waits, so that other tests neither notice
/// it nor slow it down.
fn schema(home: &Home, name: &str, seconds: &str) -> String {
    let sql = format!(
        "CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep({seconds}); END $$;\n"
    );
    home.write(name, &sql).to_string_lossy().into_owned()
}

/// A gate with short trials.
fn gate(home: &Home, sides: [&str; 2], more: &[&str]) -> Said {
    gate_of(home, sides, "3", more)
}

/// The same with so many blocks at most.
fn gate_of(home: &Home, sides: [&str; 2], blocks: &str, more: &[&str]) -> Said {
    let version = newest();
    let mut short = SHORT;
    short[BLOCKS_AT] = blocks;
    home.run(&[&["gate", sides[0], sides[1]], &short[..], &[&version], more].concat())
}

fn sandboxes(home: &Home) -> usize {
    let list = home.run(&["sandbox", "list", "--json"]).fine().json();
    list.as_array().map_or(0, Vec::len)
}

#[test]
fn a_schema_that_is_slower_fails_after_a_second_experiment() {
    let home = Home::new();
    let base = schema(&home, "base.sql", "0.002");
    let head = schema(&home, "head.sql", "0.02");
    let script = home.write("load.sql", "SELECT work();\n");
    let script = script.to_string_lossy();
    // It ends as soon as it is decided. Three blocks are two degrees of freedom: beside other tests
    // a factor of thirty was not proven by them.
    let said = gate_of(&home, [&base, &head], "10", &["-f", &script, "--json"]);
    let document = said.json();
    let experiments = document["experiments"].as_array().expect("experiments");
    assert_eq!(experiments[0]["head"]["effect"]["verdict"], "worse", "{document}");
    // BASE may differ from itself, which is one experiment in twenty's affair.
    let again = experiments[0]["base_again"]["effect"]["verdict"].as_str();
    let (code, outcome, many) = match again {
        Some("better" | "worse") => (5, "undecided", 1),
        _ => (3, "FAILED", 2),
    };
    assert_eq!(said.code, code, "{document}");
    assert_eq!(document["outcome"], outcome, "{document}");
    assert_eq!(experiments.len(), many, "{document}");
    assert_eq!(sandboxes(&home), 0, "the private server is gone");
    let numbers = home.run(&["list", "--json"]).fine().json();
    assert_eq!(numbers.as_array().map(Vec::len), Some(many), "{numbers}");
}

#[test]
fn a_schema_that_does_not_work_fails_by_its_error() {
    let home = Home::new();
    let base = schema(&home, "base.sql", "0.002");
    let head = home.write(
        "head.sql",
        "CREATE TABLE t (a int);\nCREATE INDEX ON nowhere (a);\n",
    );
    let script = home.write("load.sql", "SELECT work();\n");
    let script = script.to_string_lossy();
    let said = gate(&home, [&base, &head.to_string_lossy()], &["-f", &script, "--md"]);
    assert!(said.out.starts_with("**FAILED**"), "{}", said.out);
    assert!(
        said.out
            .contains("no trial of HEAD finished: line 2 of the data's SQL"),
        "{}",
        said.out
    );
    said.fails(3, &["nowhere"]);
    assert_eq!(sandboxes(&home), 0);
}

#[test]
fn builds_run_on_servers_of_their_own_that_are_new_in_each_block() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let bin = home.record("x")["bin"].as_str().expect("a directory").to_owned();
    let more = [
        "--target",
        "sandbox:x",
        "-w",
        "tpcb",
        "--allow-undecided",
        "--json",
    ];
    let short = &SHORT[..SHORT.len() - 1];
    let said = home.run(&[&["gate", &bin, &bin], short, &more].concat());
    assert!([0, 3].contains(&said.code), "{}", said.err);
    let head = &said.json()["experiments"][0]["head"];
    // One gate in twenty finds a difference where there is none, and ends with that.
    let blocks = head["trials"]
        .as_u64()
        .and_then(|blocks| usize::try_from(blocks).ok());
    let blocks = blocks.expect("a number");
    assert!((2..=3).contains(&blocks) && head["failed"] == 0, "{head}");
    let report = home.run(&["report", "1", "--format", "json"]).fine().json();
    let treatments = report["treatments"].as_array().expect("treatments");
    let of = |key: &str| -> Vec<Value> {
        let find = |treatment: &Value| {
            let environment = treatment["environment"].as_array().expect("an environment");
            let found = environment.iter().find(|pair| pair[0] == key);
            found.map_or(Value::Null, |pair| pair[1].clone())
        };
        treatments.iter().map(find).collect()
    };
    assert_eq!(of("server.instance"), ["1", "2", "3"].map(Value::from));
    assert_eq!(of("server.instances"), ["per-block"; 3].map(Value::from));
    assert_eq!(sandboxes(&home), 1, "those of the gate are gone");
    // Each trial's server has committed what its own clients saw, in its own turns.
    let trials = report["trials"].as_array().expect("trials");
    // A treatment that is decided is not tried again with those that are not, which may be HEAD
    // alone.
    assert!((3 * 2..=3 * 3).contains(&trials.len()), "{report}");
    for trial in trials {
        assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
        let measured_s = trial["measured_s"].as_f64().expect("a time");
        assert!((0.3..3.0).contains(&measured_s), "{trial}");
    }
}

/// What a killed gate leaves is taken by none that comes after it.
#[test]
fn servers_of_a_gate_that_was_killed_are_none_of_the_next_ones() {
    let home = Home::new();
    let base = schema(&home, "base.sql", "0.002");
    let script = home.write("load.sql", "SELECT work();\n");
    let script = script.to_string_lossy();
    let version = newest();
    let more = [&version, "-f", &script, "--allow-undecided"];
    let words = [&["gate", &base, &base], &SHORT[..], &more].concat();
    let mut killed = home.spawn(&words);
    until_is("four servers", true, || sandboxes(&home) == 4);
    killed.kill().expect("a process");
    killed.wait().expect("its end");
    let said = home.run(&words);
    assert!([0, 3].contains(&said.code), "{}", said.err);
    assert_eq!(sandboxes(&home), 0);
}

/// The step of the composite action, by the exit codes of a program in pgdyno's place, and by its
/// own.
#[test]
fn the_step_in_ci_hands_the_answer_on() {
    let home = Home::new();
    let step = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ci/gate");
    let action = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/ci/action.yml"
    ));
    let action = action.expect("the action");
    let (summary, outputs) = (home.file("summary"), home.file("outputs"));
    let run = |program: &Path, options: &str, undecided: &str| {
        let mut command = Command::new(step);
        command
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_OUTPUT", &outputs)
            .env("PGDYNO_HOME", home.path.path());
        for (name, value) in [
            ("GATE_BASE", "no base.conf"),
            ("GATE_HEAD", "head.conf"),
            ("GATE_OPTIONS", options),
            ("GATE_UNDECIDED", undecided),
            ("GATE_REPORT", ""),
        ] {
            assert!(action.contains(&format!("{name}: ")), "{name}");
            command.env(name, value);
        }
        let said = said(command.env("GATE_PGDYNO", program).output().expect("a step"));
        let outcome = fs::read_to_string(&outputs).unwrap_or_default();
        let outcome = outcome.lines().last().unwrap_or_default().to_owned();
        (said.code, outcome, said.out)
    };
    let options = "--limit 3%\n--blocks 4";
    for (code, undecided, expected, outcome, line) in [
        (0, "warn", 0, "outcome=passed", ""),
        (3, "pass", 3, "outcome=failed", "::error::"),
        (5, "warn", 0, "outcome=undecided", "::warning::"),
        (5, "pass", 0, "outcome=undecided", ""),
        (5, "fail", 5, "outcome=undecided", ""),
        (4, "warn", 4, "outcome=error", ""),
    ] {
        let program = home.write("answer", &format!("#!/bin/sh\necho \"$@\"\nexit {code}\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
        let (found, said, out) = run(&program, options, undecided);
        assert_eq!((found, said.as_str()), (expected, outcome), "{out}");
        assert!(out.contains(line), "{out}");
        let words = "gate no base.conf head.conf --md --limit 3% --blocks 4";
        assert!(out.contains(words), "{out}");
    }
    // An answer that the exit code would hide.
    let answer = home.file("answer");
    let (code, outcome, out) = run(&answer, "--limit 3% --allow-undecided", "warn");
    assert_eq!((code, outcome.as_str()), (2, "outcome=error"), "{out}");
    assert!(out.contains("expected the input \"undecided: pass\""), "{out}");
    let (code, outcome, _) = run(&common::program(), options, "pass");
    assert_eq!((code, outcome.as_str()), (1, "outcome=error"));
    fs::remove_file(&outputs).expect("removed");
    let (code, outcome, _) = run(Path::new("/nowhere/pgdyno"), options, "pass");
    assert_eq!((code, outcome.as_str()), (1, "outcome=error"));
    let summary = fs::read_to_string(&summary).expect("a summary");
    assert!(summary.contains("gate no base.conf"), "{summary}");
}

/// The job's script of GitLab's template, run as its shell would; an undecided gate has the code
/// that may fail.
#[test]
fn the_template_for_gitlab_calls_the_gate() {
    let home = Home::new();
    let template = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/ci/gitlab.yml"
    ));
    let template = template.expect("the template");
    let (_, script) = template.split_once("\n  script:\n").expect("a script");
    let steps = script.lines().map_while(|line| line.strip_prefix("    - "));
    let steps: Vec<&str> = steps.collect();
    assert!(
        template.contains("allow_failure:\n    exit_codes: 5\n"),
        "{template}"
    );
    let program = home.write("pgdyno", "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 5\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", &steps.join("\n")])
        .env("PATH", format!("{}:/usr/bin:/bin", home.path.path().display()))
        .env("BASE", "no base.sql")
        .env("HEAD", "schema.sql")
        .env("OPTIONS", "--script load.sql --limit 3%");
    let said = said(shell.output().expect("a shell"));
    let words = "<gate><no base.sql><schema.sql><--md><--report><gate.html><--script><load.sql><--limit><3%>";
    assert_eq!((said.out.as_str(), said.code), (words, 5), "{}", said.err);
}

#[test]
fn what_is_no_pair_of_sides_is_refused_before_anything_is_made() {
    let home = Home::new();
    let base = schema(&home, "base.sql", "0.002");
    let conf = home.write("head.conf", "no_such_parameter = on\n");
    let conf = conf.to_string_lossy();
    gate(&home, [&base, &conf], &[]).fails(2, &["BASE is a schema script and HEAD is a file of settings"]);
    let other = home.write("other.conf", "no_such_parameter = off\n");
    gate(&home, [&conf, &other.to_string_lossy()], &[]).fails(2, &["no_such_parameter"]);
    gate(&home, [&base, &base], &["--limit", "0%"]).fails(2, &["--limit", "expected more than 0%"]);
    gate(&home, [&base, &base], &["--metric", "nonsense"]).fails(2, &["nonsense", "expected one of"]);
    assert_eq!(sandboxes(&home), 0);
}
