//! Settings of the load's own sessions: a role without rights compares them, and nothing changes on
//! the server.

use common::foreign::Foreign;
use common::{Home, ended};

/// Four times as long without the setting.
const WAIT: &str = "SELECT pg_sleep(CASE current_setting('work_mem') WHEN '8MB' THEN 0.01 ELSE 0.04 END);";

#[test]
fn role_without_rights_compares_settings_of_its_own_sessions() {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.ask("CREATE ROLE plain LOGIN");
    let target = foreign.target("plain");
    let file = home.write(
        "sessions.toml",
        &format!(
            "name = \"sessions\"\nquestion = \"Does it work?\"\ndesign = \"one-at-a-time\"\nblocks = 2\n\
             [target]\nscope = \"session\"\n[load]\nscript = \"{WAIT}\"\nclients = 2\nmeasure_s = 1\n\
             [[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n\
             [[step]]\nname = \"buffers\"\nsettings.shared_buffers = \"64MB\"\n\
             [[step]]\nname = \"delay\"\nsettings.commit_delay = 5\n\
             [[step]]\nname = \"swap\"\nsettings.'vm.swappiness' = 1\n"
        ),
    );
    let state = || (foreign.auto_conf(), foreign.ask("SELECT pg_conf_load_time()"));
    let before = state();
    let words = ["run", &file.to_string_lossy(), "--target", &target];
    let dry = home.run(&[&words[..], &["--dry-run"]].concat()).fine();
    for expected in [
        "not tested: buffers: shared_buffers cannot be set in a session: all sessions of the server share it",
        "not tested: swap: vm.swappiness cannot be set in a session: it is not a parameter of the server",
        "not tested: delay: the role plain may not set commit_delay in its sessions",
        "GRANT SET ON PARAMETER commit_delay TO plain",
    ] {
        assert!(dry.out.contains(expected), "{expected}: {}", dry.out);
    }
    home.run(&words).fine();
    let report = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!(ended(&report, "finished"), 4, "{report:#}");
    let treatments = report["treatments"].as_array().expect("treatments");
    let sort = treatments.iter().find(|own| own["name"] == "sort").expect("sort");
    let ratio = sort["total"]["ratio"].as_f64().expect("a ratio");
    assert!(ratio > 2.0, "{ratio}");
    assert_eq!(state(), before, "nothing was written, and nothing reloaded");

    foreign.ask("GRANT SET ON PARAMETER commit_delay TO plain");
    let script = home.write("wait.sql", WAIT).to_string_lossy().into_owned();
    let words = ["tune", &target, "--script", &script, "--dry-run"];
    home.run(&words)
        .fails(2, &["there is no knob to vary", "--session-scope varies"]);
    let dry = home.run(&[&words[..], &["--session-scope"]].concat()).fine();
    assert!(dry.out.contains("scope = \"session\""), "{}", dry.out);
    for varied in ["work_mem: 4MB, ", "commit_delay: 0, "] {
        assert!(dry.err.contains(varied), "{varied}: {}", dry.err);
    }
    assert!(
        dry.err
            .contains("not varied: shared_buffers: shared_buffers cannot be set in a session"),
        "{}",
        dry.err
    );
    let of_all = foreign.target("postgres");
    let dry = home
        .run(&["tune", &of_all, "--script", &script, "--dry-run"])
        .fine();
    assert!(
        dry.err.contains("--session-scope sets it in the load's own"),
        "{}",
        dry.err
    );
}
