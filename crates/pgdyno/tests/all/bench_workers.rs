//! `pgdyno bench` holds its commits against the server's, which counts those of parallel workers
//! too.

use common::machine::{newest, versions_in_turn};
use common::{Home, Said};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// A database whose count(*) is done by two workers each time.
const WIDE: &str = "CREATE TABLE wide AS SELECT generate_series(1, 50000) AS i; ALTER TABLE wide SET (parallel_workers = 2); \
    ANALYZE wide; CREATE TABLE counted AS SELECT 0 AS n, repeat('x', 700) AS filler; ALTER DATABASE postgres SET min_parallel_table_scan_size = 0; \
    ALTER DATABASE postgres SET parallel_setup_cost = 0; ALTER DATABASE postgres SET parallel_tuple_cost = 0; \
    ALTER DATABASE postgres SET min_parallel_index_scan_size = 0; CREATE INDEX first ON wide (i); CREATE INDEX second ON wide (i)";

/// A load by a script of each client's so many transactions.
fn scripted(home: &Home, sql: &str, transactions: &str) -> Said {
    scripted_by(home, "2", sql, transactions)
}

fn scripted_by(home: &Home, clients: &str, sql: &str, transactions: &str) -> Said {
    let script = home.write("script.sql", sql);
    let script = script.to_string_lossy();
    let of = ["-c", clients, "-t", transactions, "--json", "-q"];
    home.run(&[&["bench", "sandbox:x", "--script", &*script], &of[..]].concat())
}

/// So many commits of workers were counted, but for those that the server counts after the
/// cross-check agrees and waits no longer. Looks of autovacuum's may come to them.
#[track_caller]
fn assert_workers(check: &serde_json::Value, expected: u64) {
    let number = |key: &str| {
        check[key]
            .as_u64()
            .unwrap_or_else(|| panic!("no {key} in {check}"))
    };
    assert!(
        number("by_workers") + number("allowed_difference") >= expected,
        "{check}"
    );
    assert!(number("by_workers") > 0, "{check}");
}

/// Parallel workers commit for themselves, which pg_stat_database counts. A session that commits
/// beside the load is not a worker, and is noticed all the same.
fn workers_are_distinguished_from_a_foreign_session(version: &str) -> Home {
    let home = Home::new();
    home.run(&["sandbox", "create", "x", "-V", version]).fine();
    home.ask("x", WIDE);
    let fair = scripted(&home, "SELECT count(*) FROM wide;", "20").fine().json();
    let check = &fair["cross_check"];
    assert_eq!(check["agrees"], true, "{check}");
    assert_eq!(check["client"], 40, "{check}");
    // Two workers of each count, and two commits of each worker.
    assert_workers(check, 160);

    // A trial counts as a load does, and the server's parallel plans do not disturb a check of its
    // commits.
    let file = home.write(
        "counts.toml",
        "name = \"counts\"\nquestion = \"Do trials count workers?\"\ndesign = \"a-a\"\nblocks = 1\n[target]\nsandbox = \"x\"\n\
         [data]\nscale = 1\n[load]\nscript = \"SELECT count(*) FROM wide;\"\nclients = 2\nthreads = 1\nrate = \"30\"\nwarmup_s = 0\nmeasure_s = 1\n",
    );
    let report = home
        .run(&["run", &file.to_string_lossy(), "--json"])
        .fine()
        .json();
    for trial in report["trials"].as_array().expect("trials") {
        let check = &trial["cross_check"];
        assert_eq!(check["agrees"], true, "{trial}");
        assert!(check["by_workers"].as_u64() > Some(0), "{trial}");
    }
    // A slow disk is poor, which is not a fault of the count.
    let checked = home.run(&["check", "sandbox:x", "--only", "commit", "--seconds", "0.2"]);
    assert!(checked.out.contains(", 0 unknown, "), "{}", checked.out);

    // Workers of maintenance are workers like others.
    let build = "CREATE INDEX third ON wide (i); DROP INDEX third;";
    let check = &scripted_by(&home, "1", build, "10").fine().json()["cross_check"];
    assert_eq!(
        (&check["agrees"], &check["client"]),
        (&true.into(), &20.into()),
        "{check}"
    );
    assert_workers(check, 40);
    // VACUUM itself commits more than once.
    let clean = scripted_by(&home, "1", "VACUUM (PARALLEL 2) wide;", "40")
        .fine()
        .json();
    assert_eq!(clean["cross_check"], serde_json::Value::Null, "{clean}");
    let reason = clean["unchecked"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("VACUUM in the load commits more often"),
        "{reason}"
    );

    let (stop, config) = (AtomicBool::new(false), home.config("x"));
    let said = thread::scope(|scope| {
        let (each, sessions) = channel();
        let (stop, config) = (&stop, &config);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut client =
                    postgres::Client::connect(config, postgres::NoTls).expect("the sandbox answers");
                for _ in 0..20 {
                    client.simple_query("SELECT 1").expect("an answer");
                }
                drop(client);
                let _ = each.send(());
            }
        });
        sessions.recv().expect("a first session");
        let said = scripted(&home, "SELECT count(*) FROM wide;", "100");
        stop.store(true, Ordering::Relaxed);
        said
    });
    assert_eq!(said.code, 3, "{}", said.out);
    assert_eq!(said.json()["cross_check"]["agrees"], false, "{}", said.out);
    home
}

/// The newest has a test of its own.
#[test]
fn parallel_workers_commits_are_distinguished_on_an_older_version() {
    let mut versions = versions_in_turn();
    versions.pop();
    for version in versions {
        workers_are_distinguished_from_a_foreign_session(&version);
    }
}

#[test]
fn parallel_workers_few_transactions_and_a_held_horizon_are_reported_on_the_newest_version() {
    let home = workers_are_distinguished_from_a_foreign_session(&newest());
    let warnings = |said: Said| said.fine().json()["warnings"].to_string();
    let write = "UPDATE counted SET n = n + 1;";
    let few = warnings(scripted(&home, write, "30"));
    assert!(few.contains("only 60 transactions were measured"), "{few}");
    assert_eq!(warnings(scripted(&home, write, "700")), "[]");
    let mut holder =
        postgres::Client::connect(&home.config("x"), postgres::NoTls).expect("the sandbox answers");
    holder
        .simple_query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .expect("a transaction");
    let held = warnings(scripted(&home, write, "700"));
    assert!(
        held.contains("held back by session ") && held.contains("idle in transaction"),
        "{held}"
    );
    assert!(held.contains("dead rows pile up in counted: 1"), "{held}");
}
