//! Physical standbys of a sandbox: made, fed, stopped and removed with it, and read by loads.

use common::{Home, until};
use serde_json::Value;

/// Name and state of all sandboxes.
fn states(home: &Home) -> Vec<(String, String)> {
    let list = home.run(&["sandbox", "list", "--json"]).fine().json();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let each = list.as_array().expect("sandboxes").iter();
    each.map(|sandbox| (text(&sandbox["name"]), text(&sandbox["state"])))
        .collect()
}

fn are(home: &Home, state: &str) {
    let expected = ["x", "x-standby-1", "x-standby-2"].map(|name| (name.to_owned(), state.to_owned()));
    assert_eq!(states(home), expected);
}

#[test]
fn standbys_have_what_is_committed_and_go_with_their_primary() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x", "--standbys", "2", "--sync"])
        .fine();
    are(&home, "running");
    let streaming = || {
        home.ask(
            "x",
            "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'",
        )
    };
    assert_eq!(streaming(), "2");
    home.ask(
        "x",
        "SET synchronous_commit = remote_apply; CREATE TABLE t AS SELECT 7 AS a",
    );
    // A commit waits for one of them; the other one has it a moment later.
    for standby in ["x-standby-1", "x-standby-2"] {
        until("the row", || {
            match home.ask(standby, "SELECT count(*) FROM pg_class WHERE relname = 't'") {
                one if one == "1" => Ok(()),
                none => Err(none),
            }
        });
    }
    assert_eq!(home.ask("x-standby-1", "SELECT pg_is_in_recovery()"), "t");
    // A slot that nobody advances would keep all WAL.
    let slots = "SELECT count(*) FROM pg_replication_slots";
    assert_eq!(
        ["x", "x-standby-1", "x-standby-2"].map(|name| home.ask(name, slots)),
        ["2", "0", "0"]
    );
    home.run(&["sandbox", "destroy", "x-standby-1"])
        .fails(1, &["is a standby of \"x\"", "pgdyno sandbox destroy x"]);
    home.run(&["sandbox", "stop", "x"]).fine();
    are(&home, "stopped");
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(streaming(), "2");
    // After a crash a start has succeeded when they receive its WAL again.
    let pid = home.postmaster("x").expect("it runs");
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(streaming(), "2");
    home.run(&["sandbox", "destroy", "x"]).fine();
    assert!(states(&home).is_empty());
}

#[test]
fn loads_read_from_standbys_and_commits_wait_for_them() {
    let home = Home::new();
    let text = "name = \"replicas\"\nquestion = \"?\"\ndesign = \"one-at-a-time\"\nblocks = 1\n[target]\nsandbox = \"x\"\n\
         create = { standbys = 2, sync = true }\n[data]\nscale = 1\nprewarm = \"pg-prewarm\"\n\
         [load]\nclients = 2\nrate = \"200\"\nwarmup_s = 0.5\nmeasure_s = 2\n\
         workload = \"tpcb\"\n[[step]]\nname = \"applied\"\nsettings.synchronous_commit = \"remote_apply\"\n\
         [[step]]\nname = \"reads\"\nload.workload = \"select-only\"\nload.on = \"standbys\"\n\
         [[step]]\nname = \"set\"\nload.on = \"standbys\"\nsettings.work_mem = \"9MB\"\n";
    let path = home.write("replicas.toml", text).to_string_lossy().into_owned();
    let run = home.run(&["run", &path]).fine();
    assert!(
        run.err.contains("its standbys, which keep their own"),
        "{}",
        run.err
    );
    let report = home.run(&["report", "1", "--format", "json"]).fine().json();
    let trials = report["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 3);
    for trial in trials {
        assert_eq!(trial["status"], "finished", "{trial}");
        assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
        let is_read = trial["treatment"].as_str().expect("a name").contains("reads");
        // Both standbys get the whole load.
        assert_eq!(trial["figures"]["server_tps_min"].is_number(), is_read, "{trial}");
    }
    are(&home, "running");
    // A file that was copied back would be behind what they have.
    let copies = text.replace("scale = 1\n", "scale = 1\nreset = \"copy\"\n");
    let path = home.write("copies.toml", &copies).to_string_lossy().into_owned();
    home.run(&["run", &path, "--dry-run"])
        .fails(1, &["without standbys"]);
    home.run(&["sandbox", "destroy", "x"]).fine();
}
