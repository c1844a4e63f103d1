//! Facts of the machines in fixtures/hosts.

use insta::{assert_snapshot, with_settings};
use pgdyno_fixture::Machine;
use pgdyno_host::{LocalHost, host_facts};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// One fact a line, so that a difference is a line.
fn written(root: &Path) -> String {
    let facts = host_facts(&LocalHost::at(root));
    let lines: Vec<String> = facts
        .iter()
        .map(|fact| serde_json::to_string(fact).expect("JSON"))
        .collect();
    format!("[\n{}\n]", lines.join(",\n"))
}

#[test]
fn facts_of_every_fixture_are_as_they_were() {
    let names = Machine::names();
    assert_eq!(names.len(), 15, "{names:?}");
    let differs = |name: &String| {
        let found = written(Machine::named(name).root());
        with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            // All that differ are shown, not only the first.
            catch_unwind(AssertUnwindSafe(|| assert_snapshot!(format!("{name}.facts"), found))).is_err()
        })
    };
    let different: Vec<String> = names.into_iter().filter(differs).collect();
    assert!(different.is_empty(), "{different:?}");
}
