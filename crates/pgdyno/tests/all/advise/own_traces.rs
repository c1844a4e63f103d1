//! What pgdyno itself did on a server is no reason for advice.

use super::planted::{ALSO_ABOUT_PLANTS, PLANTED};
use super::{advice, advised, client, rules_of};
use common::Home;
use serde_json::Value;
use std::fs;

#[test]
fn a_sensible_server_gets_no_advice_for_what_pgdyno_did() {
    let home = Home::on_disk();
    let settings = [
        "archive_mode=on",
        "archive_command=/bin/true",
        "random_page_cost=1.1",
        "idle_in_transaction_session_timeout=10min",
        "log_lock_waits=on",
        "log_temp_files=10MB",
        "log_line_prefix=%m [%p] %q%u@%d ",
        "lock_timeout=1min",
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

/// Rules that go by counters, sessions and tables, which a load of pgdyno's own moves.
const BY_TRACES: [&str; 12] = [
    "jit-on-short-statements",
    "work-mem-spills",
    "checkpoints-requested",
    "wal-buffers-small",
    "wal-on-disk-of-data",
    "background-writer-limited",
    "migration-cost",
    "pooler-missing",
    "fillfactor",
    "scans-many",
    "dead-rows",
    "indexes-never-used",
];

/// Debian's server can compile statements, so that the rule about it is judged.
#[test]
fn loads_and_data_of_pgdyno_are_no_reason_for_advice() {
    let home = Home::on_disk();
    let bin = common::system_program("postgres");
    let bin = bin.parent().expect("a directory").to_str().expect("a path");
    let narrow = [
        "maintenance_work_mem=1MB",
        "max_parallel_maintenance_workers=0",
        "max_wal_size=32MB",
    ];
    let mut create = vec!["sandbox", "create", "driven", "--pg-bin", bin];
    create.extend(narrow.iter().flat_map(|setting| ["--set", setting]));
    home.run(&create).fine();
    let target = "sandbox:driven";
    home.run(&["data", "create", target, "--scale", "3"]).fine();
    home.run(&["data", "check", target]).fine();
    let bench = |more: &[&str]| {
        let load = ["bench", target, "-c", "4", "--warmup", "0", "-q"];
        home.run(&[&load[..], more].concat()).fine();
    };
    bench(&["-w", "empty", "-t", "28000"]);
    bench(&["-w", "tpcb", "-t", "300"]);
    let said = advised(&home, "driven");
    // The server is young: all that it ever did would be its usual rate.
    let committed: f64 = home
        .ask("driven", "SELECT sum(xact_commit) FROM pg_stat_database")
        .parse()
        .expect("a number");
    assert!(committed > 110_000.0, "{committed}");
    let not_judged = rules_of(&said, "not_judged");
    for rule in BY_TRACES {
        assert_eq!(advice(&said, rule), None, "{rule}");
        let needs_host = ["migration-cost", "wal-on-disk-of-data"].contains(&rule);
        assert!(
            needs_host || !not_judged.iter().any(|other| other == rule),
            "{rule} is not judged"
        );
    }
    // Where nothing is known of it, the same counters speak.
    fs::remove_dir_all(home.file("state/own-load")).expect("a ledger");
    let said = advised(&home, "driven");
    assert!(advice(&said, "jit-on-short-statements").is_some(), "{said:#}");
}

/// What others do on the server after a load was killed is not the load's.
#[test]
fn killed_load_counts_until_it_is_found_dead() {
    const NAME: &str = "transactions.committed";
    let home = Home::new();
    home.sandbox("x", &[]);
    let ledger = || -> Value {
        let mut files = fs::read_dir(home.file("state/own-load"))
            .expect("ledgers")
            .flatten();
        let file = files.next().expect("a ledger").path();
        // It may just be written again.
        serde_json::from_str(&fs::read_to_string(file).expect("a ledger")).unwrap_or_default()
    };
    let own = || ledger()["own"][NAME][0].as_f64().expect("a number");
    let running = || ledger()["running"].as_object().map(serde_json::Map::len);
    let before = own();
    let mut load = home.spawn(&["bench", "sandbox:x", "-w", "select-only", "-c", "1", "-d", "600s"]);
    common::until("it drives the server", || {
        let driven = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno load'";
        let seen = (running(), home.ask("x", driven));
        if seen.0 == Some(1) && seen.1 != "0" {
            Ok(())
        } else {
            Err(seen)
        }
    });
    load.kill().expect("a kill");
    load.wait().expect("its end");
    common::until_is("its sessions are gone", "0".to_owned(), || {
        home.ask(
            "x",
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'pgdyno%'",
        )
    });
    assert_eq!(running(), Some(1), "nobody has looked yet");
    advised(&home, "x");
    assert_eq!(running(), Some(0));
    let found = own();
    assert!(found > before, "{found} > {before}");
    let others = "DO $$ BEGIN FOR i IN 1..3000 LOOP PERFORM 1; COMMIT; END LOOP; END $$";
    client(&home, "x").batch_execute(others).expect("transactions");
    advised(&home, "x");
    home.run(&["data", "check", "sandbox:x"]).fine();
    let now = own();
    assert!(
        (found..found + 3000.0).contains(&now),
        "{now}, {found} when it was found dead"
    );
}
