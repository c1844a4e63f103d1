//! The schema of experiment files, as editors use it: by a validator of its own.

use common::Home;
use std::process::Command;

/// Reads the schema and all shipped experiments, then one with mistakes.
const VALIDATE: &str = r#"
import glob, json, sys, tomllib
import jsonschema

schema = json.load(open(sys.argv[1]))
kind = jsonschema.validators.validator_for(schema)
kind.check_schema(schema)
validator = kind(schema)
files = glob.glob(sys.argv[2] + "/*.toml")
for path in files:
    with open(path, "rb") as file:
        value = tomllib.load(file)
    for error in validator.iter_errors(value):
        print(path, error.message)
print(len(files), "files")
value["laod"] = {}
value["load"]["clinets"] = 3
value["design"] = "best"
for error in validator.iter_errors(value):
    print("mistake:", error.message)
"#;

#[test]
fn every_shipped_experiment_is_valid_and_mistakes_are_not() {
    let home = Home::new();
    let schema = home.run(&["experiments", "--schema"]).fine().out;
    let path = home.write("schema.json", &schema);
    let script = home.write("validate.py", VALIDATE);
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/experiments");
    let said = Command::new("/usr/bin/python3")
        .arg(script)
        .arg(path)
        .arg(directory)
        .output()
        .expect("Debian's python3 (make test installs it, with jsonschema)");
    let out = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let (valid, mistakes): (Vec<&str>, Vec<&str>) =
        out.lines().partition(|line| !line.starts_with("mistake:"));
    assert_eq!(valid, ["58 files"], "{out}");
    for word in ["laod", "clinets", "best"] {
        assert!(mistakes.iter().any(|line| line.contains(word)), "{word}: {out}");
    }
}

#[test]
fn the_examples_are_planned_as_they_are() {
    let home = Home::new();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    // A server is asked about the statements of a script.
    home.sandbox("one-setting", &[]);
    for example in ["one-setting", "how-many-cpus", "upgrade-gate"] {
        let file = format!("{directory}/{example}/experiment.toml");
        let said = home.run(&["run", &file, "--dry-run"]).fine();
        assert!(said.out.contains("nothing was run or changed"), "{}", said.out);
    }
}
