//! Settings of the load's own sessions.

use super::*;

#[test]
fn what_begins_with_sessions_cannot_change_while_they_last() {
    let with = |top: &str, load: &str, step: &str| {
        format!(
            "name = 'x'\nquestion = '?'\nblocks = 3\n{top}target.scope = 'session'\n[data]\nscale = 1\n[load]\nclients = 4\nmeasure_s = 30\n\
             {load}[[step]]\nname = 's'\n{step}"
        )
    };
    let (one, tpcb) = ("design = 'one-at-a-time'\n", "workload = 'tpcb'\n");
    let delay = "settings.commit_delay = 10\n";
    let file = parse(&with(one, tpcb, delay)).unwrap();
    assert_eq!(file.target.restarts(), RestartPolicy::WhenNeeded);
    let event = format!("{delay}[[event]]\nat = '10s'\nsettings.commit_delay = 0\n");
    for (top, load, step, expected) in [
        (
            "design = 'switchback'\n",
            tpcb,
            delay,
            "all treatments share the sessions of one load",
        ),
        (one, tpcb, &event, "an event changes settings"),
        (one, "program = 'pgbench'\n", delay, "another program"),
        (one, tpcb, "server.pooler = 'pgbouncer'\n", "a pooler's sessions"),
        (one, tpcb, "data.prewarm = 'cold'\n", "restarts the server"),
    ] {
        let error = parse(&with(top, load, step)).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
