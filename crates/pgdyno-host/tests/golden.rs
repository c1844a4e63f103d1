//! Facts of the machines in fixtures/hosts, each against the file of facts beside it. Where they differ the new file
//! is left in the target folder, to be looked at and copied.

use pgdyno_fixture::Machine;
use pgdyno_host::{LocalHost, host_facts};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One fact a line, so that a difference is a line.
fn written(root: &Path) -> String {
    let facts = host_facts(&LocalHost::at(root));
    let lines: Vec<String> = facts
        .iter()
        .map(|fact| serde_json::to_string(fact).expect("JSON"))
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// Lines that only one of two texts has.
fn difference(expected: &str, found: &str) -> String {
    let mut text = String::new();
    for (sign, of, other) in [("-", expected, found), ("+", found, expected)] {
        for line in of.lines().filter(|line| !other.lines().any(|same| same == *line)) {
            let _ = writeln!(text, "{sign} {line}");
        }
    }
    text
}

#[test]
fn facts_of_every_fixture_are_as_they_were() {
    let names = Machine::names();
    assert_eq!(names.len(), 15, "{names:?}");
    let mut differences = String::new();
    for name in names {
        let golden = pgdyno_fixture::directory().join(format!("{name}.facts.json"));
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        let found = written(Machine::named(&name).root());
        if found != expected {
            let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.facts.json.new"));
            fs::write(&new, &found).expect("written");
            let _ = writeln!(
                differences,
                "{name}; if this is right: cp {} {}\n{}",
                new.display(),
                golden.display(),
                difference(&expected, &found)
            );
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
