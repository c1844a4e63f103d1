//! What pgdyno itself did on a server is no reason for advice.

use super::planted::{ALSO_ABOUT_PLANTS, PLANTED};
use super::{advice, advised, client, rules_of};
use common::Home;

#[test]
fn a_sensible_server_gets_no_advice_for_what_pgdyno_did() {
    let home = Home::new();
    let settings = [
        "archive_mode=on",
        "archive_command=/bin/true",
        "random_page_cost=1.1",
        "idle_in_transaction_session_timeout=10min",
        "log_lock_waits=on",
        "log_temp_files=10MB",
        "log_min_duration_statement=1s",
        "shared_preload_libraries=pg_stat_statements",
    ];
    let mut create = vec!["sandbox", "create", "sensible"];
    create.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    home.run(&create).fine();
    home.run(&["data", "create", "sandbox:sensible", "--scale", "1"])
        .fine();
    let mut client = client(&home, "sensible");
    let keys = "CREATE EXTENSION pg_stat_statements; CREATE TABLE entries (id bigserial PRIMARY KEY, \
        aid int REFERENCES pgbench_accounts); CREATE INDEX ON entries (aid); \
        INSERT INTO entries (aid) SELECT g FROM generate_series(1, 20000) g; ANALYZE";
    for statement in keys.split(';') {
        client.batch_execute(statement).expect(statement);
    }
    for _ in 0..12 {
        client.batch_execute("CHECKPOINT").expect("a checkpoint");
    }
    let said = advised(&home, "sensible");
    let about = PLANTED.iter().map(|(rule, ..)| *rule).chain(ALSO_ABOUT_PLANTS);
    for rule in about {
        assert_eq!(advice(&said, rule), None, "{rule}");
    }
    // They were judged: silence is not ignorance.
    let not_judged = rules_of(&said, "not_judged");
    let judged = |rule: &&str| !not_judged.iter().any(|other| other == rule);
    let unknown: Vec<&str> = PLANTED
        .iter()
        .map(|(rule, ..)| *rule)
        .chain(ALSO_ABOUT_PLANTS)
        .filter(|r| !judged(r))
        .collect();
    assert_eq!(unknown, [""; 0], "{said:#}");
}
