//! The data sets on a real server: created, checked, damaged, dropped, interrupted; and what
//! pgbench makes of them.

use common::{Home, Said, pgbench, said, signal};
use pgdyno_workload::{DataPlan, Dataset, create_data};
use postgres::{Client, NoTls};
use std::process::{Child, Command};
use std::thread;

fn empty_sandbox() -> Home {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    home
}

fn client(home: &Home) -> Client {
    let socket = home.file("state/sandboxes/x/socket");
    let port = &home.record("x")["port"];
    let config = format!("host={} port={port} user=postgres", socket.display());
    Client::connect(&config, NoTls).expect("the sandbox answers")
}

fn data(home: &Home, words: &[&str]) -> Said {
    let mut arguments = vec!["data", words[0], "sandbox:x"];
    arguments.extend(&words[1..]);
    home.run(&arguments)
}

/// All conditions hold; how many there are.
#[track_caller]
fn holds(home: &Home, dataset: &str) -> usize {
    let conditions = data(home, &["check", dataset, "--json"]).fine().json();
    conditions.as_array().expect("conditions").len()
}

/// Exactly the named conditions do not hold, and their texts say why.
#[track_caller]
fn broken(home: &Home, dataset: &str, expected: &[(&str, &str)]) {
    let output = data(home, &["check", dataset, "--json"]).fails(3, &[]);
    let conditions = output.json();
    let found: Vec<(&str, &str)> = conditions
        .as_array()
        .expect("conditions")
        .iter()
        .filter(|condition| condition["holds"] == false)
        .map(|condition| {
            let text = |key: &str| condition[key].as_str().expect("text");
            (text("name"), text("figures"))
        })
        .collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((name, text), (in_name, in_text)) in found.iter().zip(expected) {
        assert!(name.contains(in_name) && text.contains(in_text), "{name}: {text}");
    }
    let table = data(home, &["check", dataset]).fails(3, &[]).out;
    assert_eq!(table.matches("DOES NOT HOLD").count(), expected.len(), "{table}");
}

/// As `pgbench -i` makes them from scale 20,000 on.
#[test]
fn bigint_keys_are_made_and_used() {
    let home = empty_sandbox();
    let socket = home.file("state/sandboxes/x/socket");
    let mut config = postgres::Config::new();
    let port = home.record("x")["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    config
        .host_path(&socket)
        .port(port.expect("a port"))
        .user("postgres");
    let plan = DataPlan {
        bigint_keys: true,
        ..DataPlan::new(Dataset::Pgbench, 1)
    };
    create_data(&config.into(), &plan, &mut |_| true).expect("made");
    assert_eq!(holds(&home, "pgbench"), 6);
    let types = "SELECT string_agg(attrelid::regclass || ' ' || atttypid::regtype, ', ' ORDER BY attrelid::regclass::text) FROM pg_attribute
                 WHERE attname = 'aid' AND attrelid::regclass::text IN ('pgbench_accounts', 'pgbench_history')";
    assert_eq!(
        home.ask("x", types),
        "pgbench_accounts bigint, pgbench_history bigint"
    );
    for protocol in ["simple", "extended", "prepared"] {
        for workload in ["read", "write", "commit", "tpcb"] {
            let load = ["-w", workload, "-M", protocol, "-c", "2", "-t", "20", "-q"];
            home.run(&[&["bench", "sandbox:x"], &load[..]].concat()).fine();
        }
    }
    // A key is drawn from all accounts, and is found by the index.
    home.ask("x", "ALTER DATABASE postgres SET enable_seqscan = off");
    home.run(&["bench", "sandbox:x", "-w", "write", "-c", "1", "-t", "50", "-q"])
        .fine();
    let spread =
        "SELECT count(*) > 60 AND max(aid) - min(aid) > 50000 FROM pgbench_accounts WHERE abalance <> 0";
    assert_eq!(home.ask("x", spread), "t");
}

/// pg_stat_statements keeps each statement by itself, and pgdyno's own are excluded from a load's
/// shares by their mark.
#[test]
fn statements_about_data_have_pgdynos_mark() {
    let home = Home::new();
    let setting = "shared_preload_libraries=pg_stat_statements";
    home.run(&["sandbox", "create", "x", "--set", setting]).fine();
    home.ask("x", "CREATE EXTENSION pg_stat_statements");
    for dataset in ["pgbench", "oltp", "tpcc"] {
        data(&home, &["create", dataset, "--scale", "1"]).fine();
        data(&home, &["check", dataset]).fine();
        data(&home, &["drop", dataset]).fine();
    }
    let counted = "SELECT count(*) > 50 FROM pg_stat_statements WHERE query LIKE '%/* pgdyno%'";
    assert_eq!(home.ask("x", counted), "t");
    let unmarked = "SELECT coalesce(string_agg(left(query, 80), '; '), 'none') FROM pg_stat_statements
                    WHERE query NOT LIKE '%/* pgdyno%' AND query !~ 'pg_stat_statements'";
    assert_eq!(home.ask("x", unmarked), "none");
}

#[test]
fn pgbench_is_created_checked_and_dropped() {
    let home = empty_sandbox();
    data(&home, &["check"]).fails(1, &["holds no data", "data create"]);
    data(&home, &["create", "--scale", "2", "--tables", "2"]).fails(1, &["only of oltp"]);
    data(&home, &["create", "--scale", "2"]).fine();
    assert_eq!(holds(&home, "pgbench"), 6);
    let plain =
        "SELECT count(*) FROM pg_attrdef JOIN pg_class ON adrelid = pg_class.oid WHERE relname ~ '^pgbench_'";
    assert_eq!(home.ask("x", plain), "0", "no default is left");
    let frozen = "SELECT relallvisible = relpages AND relpages > 3000 FROM pg_class WHERE relname = 'pgbench_accounts'";
    assert_eq!(home.ask("x", frozen), "t");
    let row = "SELECT concat_ws(',', aid, bid, abalance, length(filler::text || '.')) FROM pgbench_accounts
               WHERE octet_length(filler) = 84 ORDER BY aid DESC LIMIT 1";
    assert_eq!(home.ask("x", row), "200000,2,0,1");

    let socket = home.file("state/sandboxes/x/socket");
    for builtin in ["tpcb-like", "simple-update"] {
        let output = Command::new(pgbench())
            .args(["-b", builtin, "-c", "2", "-t", "50", "-n", "-U", "postgres", "-h"])
            .arg(&socket)
            .args(["-p", &home.record("x")["port"].to_string(), "postgres"])
            .output()
            .expect("pgbench runs");
        let output = said(output).fine().out;
        assert!(output.contains("scaling factor: 2"), "{output}");
        assert!(output.contains("100/100"), "{output}");
    }
    for workload in ["write", "simple-update", "tpcb"] {
        home.run(&["bench", "sandbox:x", "-w", workload, "-c", "4", "-t", "50", "-q"])
            .fine();
    }
    assert_eq!(holds(&home, "pgbench"), 6);

    home.ask("x", "UPDATE pgbench_accounts SET bid = 2 WHERE aid = 7");
    broken(
        &home,
        "pgbench",
        &[("pgbench_accounts", "200000 of 200000 rows, 199999 in place")],
    );
    home.ask("x", "UPDATE pgbench_accounts SET bid = 1 WHERE aid = 7");
    home.ask(
        "x",
        "UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 7",
    );
    broken(&home, "pgbench", &[("sum(tbalance)", " and ")]);

    data(&home, &["create", "--scale", "1"]).fails(4, &["scale 2", "--replace"]);
    data(&home, &["create", "--scale", "1", "--replace"]).fine();
    assert_eq!(home.ask("x", "SELECT count(*) FROM pgbench_accounts"), "100000");
    data(&home, &["drop"]).fine();
    data(&home, &["drop"]).fine();
    assert_eq!(
        home.ask("x", "SELECT count(*) FROM pg_class WHERE relname ~ '^pgbench'"),
        "0"
    );
}

/// Data that pgbench itself has made is taken for what it is.
#[test]
fn what_pgbench_has_made_is_recognised() {
    let home = empty_sandbox();
    let output = Command::new(pgbench())
        .args(["-i", "-s", "3", "-q", "-U", "postgres", "-h"])
        .arg(home.file("state/sandboxes/x/socket"))
        .args(["-p", &home.record("x")["port"].to_string(), "postgres"])
        .output()
        .expect("pgbench runs");
    said(output).fine();
    assert_eq!(holds(&home, "pgbench"), 6);
    data(&home, &["create", "--scale", "1"]).fails(4, &["scale 3"]);
}

#[test]
fn oltp_is_created_checked_and_dropped() {
    let home = empty_sandbox();
    data(
        &home,
        &[
            "create",
            "oltp",
            "--scale",
            "1",
            "--tables",
            "2",
            "--threads",
            "2",
            "--seed",
            "2",
        ],
    )
    .fine();
    // Of the seed 1: 49910 50290 50302.
    let drawn = "SELECT string_agg(k::text, ' ' ORDER BY id) FROM sbtest1 WHERE id <= 3";
    assert_eq!(home.ask("x", drawn), "50334 46514 50202");
    let inserted = home.ask(
        "x",
        "INSERT INTO sbtest2 (k, c, pad) SELECT k, c, pad FROM sbtest1 LIMIT 1 RETURNING id",
    );
    assert_eq!(inserted, "100001", "the sequence goes on after the rows");
    let shape = "SELECT count(*) FROM sbtest2 WHERE rtrim(c) ~ '^[0-9]{11}(-[0-9]{11}){9}$' AND rtrim(pad) ~ '^[0-9]{11}(-[0-9]{11}){4}$'
                 AND k BETWEEN 1 AND 100000 AND id % 20 = 0";
    assert_eq!(home.ask("x", shape), "5000");
    let other = "SELECT count(*) FROM sbtest1 JOIN sbtest2 USING (id) WHERE sbtest1.c = sbtest2.c";
    assert_eq!(home.ask("x", other), "0", "each table has rows of its own");
    assert_eq!(holds(&home, "oltp"), 5);

    home.ask("x", "DELETE FROM sbtest2 WHERE id = 5");
    assert_eq!(holds(&home, "oltp"), 5, "its workloads delete and insert");
    home.ask("x", "UPDATE sbtest2 SET id = 0 WHERE id = 6");
    home.ask("x", "UPDATE sbtest1 SET pad = 'short' WHERE id = 5");
    home.ask("x", "DROP INDEX k_1");
    broken(
        &home,
        "oltp",
        &[
            ("texts of sbtest1", "1 rows"),
            ("rows of sbtest2", "100000 rows, ids 0 to 100001"),
            ("keys and indexes", "not there: k_1"),
        ],
    );
    data(&home, &["create", "oltp", "--scale", "1"]).fails(4, &["in 2 tables", "--replace"]);
    data(&home, &["drop", "oltp"]).fine();
    assert_eq!(
        home.ask("x", "SELECT count(*) FROM pg_class WHERE relname ~ '^sbtest'"),
        "0"
    );
}

#[test]
fn large_tables_are_partitioned_as_asked() {
    let home = empty_sandbox();
    let parts = |table: &str| {
        home.ask(
            "x",
            &format!(
                "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid \
                 WHERE inhparent = '{table}'::regclass AND pg_relation_size(c.oid) > 0"
            ),
        )
    };
    let rows = |table: &str| home.ask("x", &format!("SELECT count(*) FROM {table}"));
    for (dataset, partitions, workload, conditions) in [
        ("pgbench", "range:3", "tpcb", 6),
        ("oltp", "hash:2", "read-write", 3),
        ("tpcc", "hash:2", "tpcc", 17),
    ] {
        let words = ["create", dataset, "--scale", "1", "--partitions", partitions];
        data(&home, &words).fine();
        let bench = ["bench", "sandbox:x", "-w", workload, "-c", "2", "-t", "50"];
        home.run(&bench).fine();
        assert_eq!(holds(&home, dataset), conditions, "{dataset}, after a load");
    }
    assert_eq!(
        parts("pgbench_accounts"),
        "pgbench_accounts_1 pgbench_accounts_2 pgbench_accounts_3"
    );
    assert_eq!(rows("pgbench_accounts_1"), "33333");
    assert_eq!(parts("sbtest1"), "sbtest1_1 sbtest1_2");
    // The hash of the one warehouse is in one of the two.
    for table in [
        "customer",
        "history",
        "new_order",
        "orders",
        "order_line",
        "stock",
    ] {
        assert!(parts(table).starts_with(&format!("{table}_")), "{table}");
    }
    assert_eq!(parts("district"), "");
    // An analysed parent, for plans; and nothing left for the first VACUUM to do.
    let known = "SELECT bool_and(reltuples > 0) FROM pg_class WHERE relname ~ '^pgbench_accounts(_[123])?$'";
    assert_eq!(home.ask("x", known), "t");

    data(&home, &["create", "--scale", "1"]).fails(4, &["scale 1, 3 partitions by range", "--replace"]);
    data(
        &home,
        &[
            "create",
            "tpcc",
            "--scale",
            "1",
            "--partitions",
            "range:2",
            "--replace",
        ],
    )
    .fails(1, &["number of ranges", "1 to 1, not 2"]);
    data(&home, &["create", "--scale", "1", "--partitions", "list:2"]).fails(2, &["hash:N or range:N"]);
    for dataset in ["pgbench", "oltp", "tpcc"] {
        data(&home, &["drop", dataset]).fine();
    }
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(home.ask("x", left), "0");
}

#[test]
fn tpcc_is_created_used_checked_and_dropped() {
    let home = empty_sandbox();
    data(&home, &["create", "tpcc", "--scale", "1"]).fine();
    assert_eq!(holds(&home, "tpcc"), 17);
    let ask = |sql: &str| home.ask("x", sql);
    // Clause 4.3.3.1: what is counted exactly, and what is drawn.
    for (sql, expected) in [
        ("SELECT count(*) FROM new_order", "9000"),
        ("SELECT count(*) FROM orders WHERE o_carrier_id IS NULL", "9000"),
        ("SELECT count(DISTINCT (o_d_id, o_c_id)) FROM orders", "30000"),
        ("SELECT count(*) FROM customer WHERE c_id <= 1000 AND c_last = 'BARBARBAR'", "10"),
        ("SELECT count(DISTINCT c_last) FROM customer WHERE c_id <= 1000", "1000"),
        ("SELECT bool_and(ol_amount = 0 AND ol_delivery_d = o_entry_d) FROM order_line JOIN orders ON o_id = ol_o_id
          AND o_d_id = ol_d_id WHERE o_id < 2101", "t"),
        ("SELECT bool_and(ol_amount BETWEEN 0.01 AND 9999.99 AND ol_delivery_d IS NULL) FROM order_line
          WHERE ol_o_id >= 2101", "t"),
        ("SELECT count(*) BETWEEN 2500 AND 3500 FROM customer WHERE c_credit = 'BC'", "t"),
        ("SELECT count(*) BETWEEN 9500 AND 10500 FROM stock WHERE s_data LIKE '%ORIGINAL%'", "t"),
        ("SELECT min(length(c_data)) >= 300 AND max(length(c_data)) = 500 FROM customer", "t"),
        ("SELECT bool_and(c_balance = -10 AND c_ytd_payment = 10 AND c_middle = 'OE' AND c_discount <= 0.5
          AND c_phone ~ '^[0-9]{16}$' AND c_zip ~ '^[0-9]{4}11111$') FROM customer", "t"),
        ("SELECT min(i_price) >= 1 AND max(i_price) <= 100 AND count(DISTINCT i_price) > 9000 FROM item", "t"),
        ("SELECT count(*) FROM pg_attrdef JOIN pg_class ON adrelid = pg_class.oid WHERE relname = 'customer'", "0"),
        ("SELECT count(*) FROM pg_attribute WHERE attrelid = 'stock'::regclass AND attstattarget = 0", "0"),
    ] {
        assert_eq!(ask(sql), expected, "{sql}");
    }

    // The functions, and what they leave behind. The same item twice in an order is taken twice.
    let before = ask("SELECT s_quantity FROM stock WHERE s_i_id = 5");
    let total = ask("SELECT round(tpcc_new_order(1, 2, 3, '{5,7,5}', '{1,1,1}', '{1,2,3}'), 2)");
    let expected = "SELECT round((SELECT sum(ol_amount) FROM order_line WHERE ol_d_id = 2 AND ol_o_id = 3001)
                    * (1 - c_discount) * (1 + w_tax + d_tax), 2)
                    FROM customer, district, warehouse WHERE c_d_id = 2 AND c_id = 3 AND d_id = 2";
    assert_eq!(total, ask(expected));
    let after: i32 = ask("SELECT s_quantity FROM stock WHERE s_i_id = 5")
        .parse()
        .expect("a number");
    let taken = before.parse::<i32>().expect("a number") - after;
    assert!(taken == 4 || taken == 4 - 91, "{before} {after}");
    assert_eq!(
        ask("SELECT concat_ws(' ', s_ytd, s_order_cnt, s_remote_cnt) FROM stock WHERE s_i_id = 5"),
        "4 2 0"
    );
    assert_eq!(
        ask("SELECT concat_ws(' ', o_ol_cnt, o_all_local) FROM orders WHERE o_id = 3001"),
        "3 1"
    );
    let lines = "SELECT bool_and(ol_dist_info = s_dist_02) FROM order_line JOIN stock ON s_i_id = ol_i_id WHERE ol_o_id = 3001";
    assert_eq!(ask(lines), "t");
    let unknown = client(&home)
        .query(
            "SELECT tpcc_new_order(1, 2, 3, '{5,7,200000}', '{1,1,1}', '{1,2,3}')",
            &[],
        )
        .expect_err("an unknown item");
    let unknown = unknown.as_db_error().expect("the server's");
    assert_eq!(
        (unknown.code().code(), unknown.message()),
        ("P0002", "item number is not valid")
    );

    let named = "SELECT (array_agg(c_id ORDER BY c_first))[ceil(count(*) / 2.0)] FROM customer
                 WHERE c_d_id = 4 AND c_last = 'OUGHTBARBAR'";
    let middle = ask(named);
    assert_eq!(
        ask("SELECT tpcc_payment(1, 3, 1, 4, 0, 'OUGHTBARBAR', 12.34)"),
        middle
    );
    let bad = ask("SELECT min(c_id) FROM customer WHERE c_d_id = 5 AND c_credit = 'BC'");
    assert_eq!(
        ask(&format!("SELECT tpcc_payment(1, 3, 1, 5, {bad}, NULL, 100.5)")),
        bad
    );
    let query = format!("SELECT left(c_data, 20) FROM customer WHERE c_d_id = 5 AND c_id = {bad}");
    assert!(
        ask(&query).starts_with(&format!("{bad} 5 1 3 1 100.5 ")),
        "{}",
        ask(&query)
    );
    assert_eq!(ask("SELECT tpcc_order_status(1, 2, 3, NULL)"), "3");
    let by_name: i32 = ask("SELECT tpcc_order_status(1, 4, 0, 'OUGHTBARBAR')")
        .parse()
        .expect("a number");
    assert!((5..=15).contains(&by_name));
    assert_eq!(ask("SELECT tpcc_delivery(1, 7)"), "10");
    assert_eq!(
        ask("SELECT count(*) FROM orders WHERE o_id = 2101 AND o_carrier_id = 7"),
        "10"
    );
    let low = ask("SELECT tpcc_stock_level(1, 2, 101)");
    assert_eq!(ask("SELECT tpcc_stock_level(1, 2, 10)"), "0");
    let sold =
        "SELECT count(DISTINCT ol_i_id) FROM order_line WHERE ol_d_id = 2 AND ol_o_id BETWEEN 2982 AND 3001";
    assert_eq!(low, ask(sold));
    assert_eq!(holds(&home, "tpcc"), 17);

    // Deliveries at the same time deliver each order once.
    let delivered: i64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = client(&home);
                    let mut sum = 0;
                    for _ in 0..250 {
                        let row = client
                            .query_one("SELECT tpcc_delivery(1, 1)", &[])
                            .expect("delivered");
                        sum += i64::from(row.get::<_, i32>(0));
                    }
                    sum
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a thread"))
            .sum()
    });
    assert_eq!(delivered, 9000 + 1 - 10, "all that were open");
    assert_eq!(ask("SELECT count(*) FROM new_order"), "0");
    assert_eq!(holds(&home, "tpcc"), 17);

    ask("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3");
    broken(
        &home,
        "tpcc",
        &[(
            "2: d_next_o_id",
            "1 of 10 not, as warehouse 1 district 3: d_next_o_id - 1 3001, max(o_id) 3000",
        )],
    );
    ask("UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 3");
    ask("DELETE FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1");
    broken(
        &home,
        "tpcc",
        &[
            ("4:", "district 1"),
            ("6:", "warehouse 1 district 1 order 1: o_ol_cnt"),
        ],
    );
    data(&home, &["create", "tpcc", "--scale", "1"]).fails(4, &["scale 1 of tpcc", "--replace"]);
    data(&home, &["drop", "tpcc"]).fine();
    let left = "SELECT (SELECT count(*) FROM pg_proc WHERE proname ~ '^tpcc_')
                + (SELECT count(*) FROM pg_class WHERE relname IN ('warehouse', 'stock', 'orders'))";
    assert_eq!(ask(left), "0");
}

/// The rows depend on the seed alone, not on how the work was shared out: one connection has made
/// the same.
#[test]
fn threads_do_not_change_the_rows() {
    let home = empty_sandbox();
    data(
        &home,
        &["create", "tpcc", "--scale", "2", "--threads", "5", "--seed", "1"],
    )
    .fine();
    for (sum, of_one_thread) in [
        ("hashtext(stock::text)::numeric) FROM stock", "641639697922"),
        (
            "hashtext(concat(c_id, c_d_id, c_w_id, c_first, c_last, c_credit, c_data))::numeric) FROM customer",
            "538377512496",
        ),
        (
            "hashtext(concat(ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_amount, ol_dist_info))::numeric) FROM order_line",
            "-365568403767",
        ),
        (
            "hashtext(concat(o_id, o_d_id, o_w_id, o_c_id, o_carrier_id, o_ol_cnt))::numeric) FROM orders",
            "-175243983120",
        ),
        (
            "hashtext(concat(h_c_id, h_w_id, h_amount, h_data))::numeric) FROM history",
            "-296546916816",
        ),
    ] {
        assert_eq!(
            home.ask("x", &format!("SELECT sum({sum}")),
            of_one_thread,
            "{sum}"
        );
    }
}

/// TPC-C's names are common words: somebody else's tables are neither replaced nor dropped.
#[test]
fn tables_of_others_are_left_alone() {
    let home = empty_sandbox();
    home.ask("x", "CREATE TABLE customer (name text)");
    data(&home, &["create", "tpcc", "--scale", "1", "--replace"])
        .fails(4, &["did not make", "leaves them alone: customer", "hint:"]);
    data(&home, &["drop", "tpcc"]).fails(4, &["customer"]);
    data(&home, &["check", "tpcc"]).fails(1, &["holds no data of the set tpcc"]);
    assert_eq!(home.ask("x", "SELECT count(*) FROM customer"), "0");
}

/// Begins a creation and returns when rows are being sent.
fn begun(home: &Home, words: &[&str]) -> Child {
    let mut arguments = vec!["data", "create", "sandbox:x"];
    arguments.extend(words);
    let mut child = home.spawn(&arguments);
    let copying =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno data' AND query LIKE 'COPY%'";
    while home.ask("x", copying) == "0" {
        assert!(child.try_wait().expect("a child").is_none(), "it ended too early");
    }
    child
}

const LARGE: [&[&str]; 3] = [
    &["pgbench", "--scale", "30"],
    &["oltp", "--scale", "10", "--tables", "2"],
    &["tpcc", "--scale", "5"],
];

/// SIGKILL in the middle: what is there is known to be half made, and the next creation needs no
/// consent.
#[test]
fn a_killed_creation_is_begun_again() {
    let home = empty_sandbox();
    for words in LARGE {
        let mut child = begun(&home, words);
        child.kill().expect("killed");
        child.wait().expect("dead");
        data(&home, &["check", words[0]]).fails(1, &["its creation was not finished", "hint:"]);
        data(&home, &["create", words[0], "--scale", "1"]).fine();
        assert!(holds(&home, words[0]) > 0);
    }
}

/// Two creations at a time do not mix: the second one waits, and does not replace what it has not
/// seen.
#[test]
fn a_second_creation_waits() {
    let home = empty_sandbox();
    let first = begun(&home, &["pgbench", "--scale", "20"]);
    data(&home, &["create", "--scale", "1"]).fails(4, &["meanwhile"]);
    said(first.wait_with_output().expect("ends")).fine();
    assert_eq!(holds(&home, "pgbench"), 6);
    assert_eq!(home.ask("x", "SELECT count(*) FROM pgbench_branches"), "20");
}

/// A stop in the middle leaves nothing, and is quick; so does it when it replaces what was there.
#[test]
fn a_stopped_creation_leaves_nothing() {
    let home = empty_sandbox();
    for words in LARGE {
        for replace in [false, true] {
            let mut words = words.to_vec();
            if replace {
                data(&home, &["create", words[0], "--scale", "1"]).fine();
                words.push("--replace");
            }
            let child = begun(&home, &words);
            signal(child.id(), "-TERM");
            said(child.wait_with_output().expect("ends"))
                .fails(1, &["stopped", "nothing of the set is left"]);
            let left = "SELECT count(*) FROM pg_class WHERE relname ~ '^(pgbench|sbtest|warehouse|stock|order_line)'";
            assert_eq!(home.ask("x", left), "0");
            let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno data'";
            while home.ask("x", sessions) != "0" {}
        }
    }
}
