//! A server with planted faults: rule by rule, found with which severity, and cured by what the
//! advice says.

use super::{advice, advised, client, cure, rules_of, statements, until_advised};
use common::Home;
use serde_json::Value;
use std::fs;
use std::thread;
use std::time::{Duration, SystemTime};

/// What an administrator would see at once on the planted server: rule, severity, and what its
/// advice names.
pub(super) const PLANTED: [(&str, &str, &str); 20] = [
    (
        "prepared-transaction-forgotten",
        "severe",
        "ROLLBACK PREPARED 'forgotten''s';",
    ),
    (
        "sequence-at-end",
        "severe",
        "ALTER TABLE public.orders ALTER COLUMN id TYPE bigint",
    ),
    ("settings-file-wrong", "severe", "postgresql.conf:"),
    (
        "sequence-near-end",
        "advice",
        "ALTER TABLE public.customer ALTER COLUMN id TYPE bigint",
    ),
    ("idle-in-transaction", "advice", "SELECT pg_terminate_backend("),
    ("xid-past-freeze-age", "advice", "End what holds rows back"),
    ("random-page-cost-beyond", "advice", "4"),
    (
        "foreign-key-without-index",
        "advice",
        "CREATE INDEX CONCURRENTLY ON public.orders (customer_id)",
    ),
    (
        "index-duplicate",
        "advice",
        "DROP INDEX CONCURRENTLY public.orders_placed_again",
    ),
    (
        "index-overlapping",
        "hint",
        "DROP INDEX CONCURRENTLY public.orders_placed",
    ),
    (
        "index-invalid",
        "advice",
        "DROP INDEX CONCURRENTLY public.customer_region",
    ),
    ("scans-for-few-rows", "advice", "FROM customer WHERE region = $1"),
    ("table-unlogged", "advice", "ALTER TABLE public.basket SET LOGGED"),
    ("restart-pending", "advice", "Restart"),
    ("settings-not-read", "advice", "pg_reload_conf()"),
    ("wal-level-logical-unused", "hint", "replica"),
    ("wal-kept-for-nobody", "hint", "Archive the WAL"),
    ("idle-transactions-unlimited", "hint", "10min"),
    (
        "waits-unlimited",
        "hint",
        "ALTER SYSTEM SET lock_timeout = '1min';",
    ),
    ("logging-sparse", "hint", "ALTER SYSTEM SET log_checkpoints = on;"),
];

/// Rules that would speak here for another reason than a plant, or that a later step plants.
pub(super) const ALSO_ABOUT_PLANTS: [&str; 5] = [
    "dead-rows",
    "xid-held-back",
    "checkpoints-requested",
    "multixact-past-freeze-age",
    "scans-many",
];

/// Those of which statements are the whole cure.
const CURED_BY_STATEMENTS: [&str; 10] = [
    "dead-rows",
    // First, for to write a table again makes its broken unique index again, which fails.
    "index-invalid",
    "sequence-at-end",
    "sequence-near-end",
    "foreign-key-without-index",
    "index-duplicate",
    "index-overlapping",
    "table-unlogged",
    "logging-sparse",
    "waits-unlimited",
];

/// The inserts are counted before ANALYZE counts the rows: afterwards they would be added to them
/// once more.
const PLANTS: &str = "CREATE EXTENSION pg_stat_statements;
    CREATE TABLE customer (id serial PRIMARY KEY, region int);
    INSERT INTO customer (region) SELECT g % 50 FROM generate_series(1, 15000) g;
    SELECT setval('customer_id_seq', 1700000000);
    CREATE TABLE orders (id serial PRIMARY KEY, customer_id int REFERENCES customer, placed int) WITH (autovacuum_enabled = off);
    INSERT INTO orders (customer_id, placed) SELECT 1 + g % 15000, g FROM generate_series(1, 110000) g;
    CREATE INDEX orders_placed ON orders (placed);
    CREATE INDEX orders_placed_again ON orders (placed);
    CREATE INDEX orders_placed_customer ON orders (placed, customer_id);
    SELECT setval('orders_id_seq', 2100000000);
    CREATE UNLOGGED TABLE basket AS SELECT repeat('y', 800) AS filling FROM generate_series(1, 25000);
    SELECT pg_stat_force_next_flush();
    ANALYZE;
    ALTER SYSTEM SET max_connections = 33";

/// A transaction id each: a minute of a busy server.
const BURN: &str = "SET synchronous_commit = off;
    DO $$ BEGIN FOR i IN 1..120000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";

#[test]
fn a_planted_server_is_seen_through_rule_by_rule() {
    let home = Home::on_disk();
    let settings = [
        "shared_preload_libraries=pg_stat_statements",
        "max_prepared_transactions=5",
        "autovacuum_freeze_max_age=100000",
        "autovacuum_naptime=3600",
        "wal_level=logical",
        "random_page_cost=40",
        "log_checkpoints=off",
    ];
    let mut create = vec!["sandbox", "create", "planted"];
    create.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    home.run(&create).fine();
    let mut planter = client(&home, "planted");
    for statement in PLANTS.split(';') {
        planter.batch_execute(statement).expect(statement);
    }
    let unfinished = "CREATE UNIQUE INDEX CONCURRENTLY customer_region ON customer (region)";
    planter.batch_execute(unfinished).expect_err("rows are alike");
    for _ in 0..60 {
        let sql = "SELECT id FROM customer WHERE region = $1";
        assert!(planter.query(sql, &[&51]).expect("rows").is_empty());
    }
    // Three keep rows from being removed: one that is at work, one that is idle, one that nobody
    // has.
    let mut working = client(&home, "planted");
    let worker = thread::spawn(move || working.batch_execute("SELECT pg_sleep(600)"));
    let at_work = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND backend_xmin IS NOT NULL";
    common::until_is("it works", "1".to_owned(), || home.ask("planted", at_work));
    let mut idle = client(&home, "planted");
    idle.batch_execute("BEGIN; UPDATE customer SET region = 1 WHERE id = 1")
        .expect("a change");
    let forgotten = "BEGIN; UPDATE customer SET region = 2 WHERE id = 2; PREPARE TRANSACTION 'forgotten''s'";
    planter.batch_execute(forgotten).expect("prepared");
    planter
        .batch_execute("UPDATE orders SET placed = placed + 1")
        .expect("dead rows");
    for statement in BURN.splitn(2, ';') {
        planter.batch_execute(statement).expect("transactions");
    }
    planter
        .batch_execute("SELECT pg_reload_conf()")
        .expect("a reload");
    let waits = "SELECT bool_or(pending_restart)::text FROM pg_settings";
    common::until_is("max_connections waits", "true".to_owned(), || {
        home.ask("planted", waits)
    });
    // Files that are written and not read: one with a line that the server cannot use.
    let data = home.data("planted");
    let file = data.join("postgresql.conf");
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{text}\nwork_mem = much\n")).expect("written");
    let later = SystemTime::now() + Duration::from_secs(60);
    let auto = fs::File::options()
        .append(true)
        .open(data.join("postgresql.auto.conf"))
        .expect("a file");
    auto.set_modified(later).expect("an instant");
    drop(planter);

    // What sessions did is counted a moment later.
    let said = common::until("all is counted", || {
        let said = advised(&home, "planted");
        let why = advice(&said, "prepared-transaction-forgotten").map(|advice| advice["why"].to_string());
        let wanted = ["scans-for-few-rows", "idle-in-transaction"];
        let is_counted = wanted.iter().all(|rule| advice(&said, rule).is_some())
            && why.as_ref().is_some_and(|why| why.contains("dead rows wait"));
        match is_counted {
            true => Ok(said),
            false => Err((rules_of(&said, "advice"), why)),
        }
    });
    for (rule, severity, expected) in PLANTED {
        let found = advice(&said, rule).unwrap_or_else(|| panic!("{rule} is not found: {said:#}"));
        let text = format!("{} {:?}", found["recommended"], statements(found));
        assert_eq!(
            (&found["severity"], text.contains(expected)),
            (&severity.into(), true),
            "{found:#}"
        );
    }
    let pid = idle
        .query_one("SELECT pg_backend_pid()", &[])
        .expect("a row")
        .get::<_, i32>(0);
    let named = statements(advice(&said, "idle-in-transaction").expect("advice"));
    assert_eq!(named[0].0, format!("SELECT pg_terminate_backend({pid});"));
    // No vacuum removes the dead rows while these hold them.
    assert_eq!(advice(&said, "dead-rows"), None);

    // What the advice names ends them, one after the other.
    let mut client = client(&home, "planted");
    auto.set_modified(SystemTime::now()).expect("an instant");
    // The line in the file is corrected by hand, as the first step says.
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("work_mem = much", "")).expect("written");
    for rule in ["settings-file-wrong", "settings-not-read"] {
        for (sql, _) in statements(advice(&said, rule).expect("advice")) {
            client.batch_execute(&sql).expect(&sql);
        }
    }
    let of_files = ["settings-file-wrong", "settings-not-read"];
    common::until_is("the file is right and read", Vec::<Value>::new(), || {
        let said = advised(&home, "planted");
        let found = of_files.iter().filter_map(|rule| advice(&said, rule));
        found.map(|advice| advice["why"].clone()).collect()
    });
    cure(&home, "planted", &mut client, "prepared-transaction-forgotten");
    cure(&home, "planted", &mut client, "idle-in-transaction");
    drop(idle);
    assert_eq!(
        advice(&advised(&home, "planted"), "idle-transactions-unlimited"),
        None
    );
    let said = until_advised(
        &home,
        "planted",
        "the session at work is named",
        "xid-held-back",
        true,
    );
    let held = advice(&said, "xid-held-back").unwrap_or_else(|| panic!("{said:#}"));
    assert_eq!(held["severity"], "advice");
    assert_eq!(advice(&said, "dead-rows"), None);
    cure(&home, "planted", &mut client, "xid-held-back");
    worker.join().expect("a thread").expect_err("it was ended");
    let dead = advice(&advised(&home, "planted"), "dead-rows").map(statements);
    assert_eq!(
        dead.expect("advice"),
        [("VACUUM (ANALYZE) public.orders;".to_owned(), None)]
    );
    for rule in CURED_BY_STATEMENTS {
        cure(&home, "planted", &mut client, rule);
    }
    let inserts = [
        "INSERT INTO orders (customer_id) VALUES (1)",
        "INSERT INTO customer (region) VALUES (1)",
    ];
    for (table, insert) in ["orders", "customer"].iter().zip(inserts) {
        let sql = format!("SELECT setval('{table}_id_seq', 2147483647)");
        client.batch_execute(&sql).expect("the last number of an int4");
        client.batch_execute(insert).expect("one more row");
    }
    // Autovacuum then freezes by itself.
    client
        .batch_execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
        .and_then(|()| client.batch_execute("SELECT pg_reload_conf()"))
        .expect("a setting");
    cure(&home, "planted", &mut client, "xid-past-freeze-age");
}
