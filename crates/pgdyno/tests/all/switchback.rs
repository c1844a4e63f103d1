//! Settings that take turns within one load, on a real server.

use crate::experiment::until_loaded;
use common::Home;
use serde_json::Value;
use std::fs;

/// Three treatments, in two rounds of turns of a second.
fn file(home: &Home, blocks: u32) -> String {
    let text = format!(
        "name = \"turns\"\nquestion = \"What do they cost?\"\ndesign = \"switchback\"\nblocks = {blocks}\nseed = 3\n\
         [target]\nsandbox = \"x\"\nrestart = \"when-needed\"\n[data]\nscale = 1\n[switch]\nslice_s = 1\n\
         [load]\nscript = \"SELECT pg_sleep(0.002);\"\nclients = 2\nwarmup_s = 1\nmeasure_s = 2\n\
         [[step]]\nname = \"log\"\nsettings.log_statement = \"all\"\n\
         [[step]]\nname = \"timing\"\nsettings.track_io_timing = true\n"
    );
    home.write("turns.toml", &text).to_string_lossy().into_owned()
}

fn trials(home: &Home) -> Vec<Value> {
    let report = home.run(&["report", "1", "--format", "json"]).fine().json();
    report["trials"].as_array().expect("trials").clone()
}

#[test]
fn settings_take_turns_within_one_load_and_are_restored() {
    let home = Home::new();
    home.sandbox("x", &["--set", "log_statement=none"]);
    let conf = || fs::read(home.data("x").join("postgresql.auto.conf")).expect("a file");
    let before = conf();
    let run = home.run(&["run", &file(&home, 2)]).fine();
    assert!(
        run.err.contains("log_statement") && run.err.contains("restored"),
        "{}",
        run.err
    );
    assert_eq!(conf(), before, "to the byte");
    let trials = trials(&home);
    assert_eq!(trials.len(), 6);
    for trial in &trials {
        assert_eq!(trial["status"], "finished", "{trial}");
        assert_eq!(
            (&trial["measured_s"], &trial["cross_check"]),
            (&trials[0]["measured_s"], &trials[0]["cross_check"])
        );
        assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
    }
}

#[test]
fn switchback_that_is_killed_is_restored_and_resumed() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.run(&["apply", "sandbox:x", "log_duration=on"]).fine();
    let path = file(&home, 2);
    let mut child = home.spawn(&["run", &path]);
    until_loaded(&home, &mut child);
    child.kill().expect("a process");
    child.wait().expect("its end");
    home.run(&["restore", "--interrupted"]).fine();
    assert_eq!(home.ask("x", "SHOW log_statement"), "none");
    assert_eq!(home.ask("x", "SHOW log_duration"), "on");
    home.run(&["resume"]).fine();
    let trials = trials(&home);
    let mut found: Vec<(u64, &str)> = trials
        .iter()
        .map(|trial| {
            (
                trial["block"].as_u64().expect("a block"),
                trial["treatment"].as_str().expect("a name"),
            )
        })
        .collect();
    found.sort_unstable();
    let expected = [1, 2]
        .into_iter()
        .flat_map(|block| ["log", "reference", "timing"].map(|name| (block, name)));
    assert_eq!(found, expected.collect::<Vec<_>>());
}
