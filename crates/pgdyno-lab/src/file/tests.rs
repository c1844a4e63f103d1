use super::*;
use proptest::prelude::*;

const GOOD: &str = r#"
name = "x"
question = "?"
design = "cumulative"
blocks = 2
[data]
scale = 1
[load]
workload = "tpcb"
clients = 4
warmup_s = 1
measure_s = 5
[base]
max_connections = 50
[[step]]
name = "a"
[step.settings]
vm.swappiness = 1
jit = false
"block.read_ahead_kb" = 16
"#;

fn parse(text: &str) -> Result<ExperimentFile, FileError> {
    ExperimentFile::parse(text, Path::new("x.toml"), &Catalogue::shipped().unwrap())
}

#[test]
fn settings_are_flattened_to_knobs() {
    let file = parse(GOOD).unwrap();
    let found: Vec<String> = settings_of(&file.step[0].settings)
        .iter()
        .map(|s| format!("{}={}", s.knob, s.value))
        .collect();
    assert_eq!(found, ["block.read_ahead_kb=16", "jit=off", "vm.swappiness=1"]);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let check = |from: &str, to: &str, line: usize, expected: &str| {
        let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("x.toml, line {line}: ")),
            "{to}: {error}"
        );
        assert!(error.contains(expected), "{to}: {error}");
    };
    check("clients = 4", "clinets = 4", 10, "did you mean \"clients\"?");
    check("clients = 4", "clients = \"many\"", 10, "expected u32");
    check("workload = \"tpcb\"", "workload = \"tpcx\"", 9, "unknown variant");
    check(
        "vm.swappiness = 1",
        "vm.swappines = 1",
        18,
        "did you mean \"vm.swappiness\"?",
    );
    check("vm.swappiness = 1", "vm.swappiness = 900", 18, "0 to 200");
    check(
        "\"block.read_ahead_kb\" = 16",
        "\"block.read_ahead\" = 16",
        20,
        "block.read_ahead_kb",
    );
    check(
        "max_connections = 50",
        "max_conections = 50",
        14,
        "max_connections",
    );
    check("blocks = 2", "blocks = 0", 5, "1 to 1000");
    check("measure_s = 5", "measure_s = 0.1", 12, "1 to 86400");
    check("name = \"a\"", "name = \"reference\"", 16, "taken");
    check("question = \"?\"", "", 1, "question");
    check("[data]", "[data", 6, "");
}

#[test]
fn a_password_in_a_file_is_refused_and_not_repeated() {
    for connection in [
        "host=a password=hunter2",
        "postgresql://me:hunter2@a/b",
        "password=hunter2 =",
    ] {
        let text = GOOD.replace(
            "[data]",
            &format!("[target]\nconnection = \"{connection}\"\n[data]"),
        );
        let error = parse(&text).unwrap_err().to_string();
        assert!(
            error.contains("line 7") && error.contains("PGPASSWORD"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_step_that_sets_nothing_is_refused() {
    let text = GOOD.split("vm.swappiness").next().unwrap();
    assert!(parse(text).unwrap_err().to_string().contains("sets nothing"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", at in 0_usize..400) {
        let _ = parse(&text);
        let mut changed = GOOD.to_owned();
        let at = at.min(changed.len());
        changed.insert_str(at, &text.chars().take(5).collect::<String>());
        let _ = parse(&changed);
    }
}
