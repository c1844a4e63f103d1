//! Loads on a real server: books, cross-check, compatibility with pgbench, and errors that say what
//! to do.

use common::{Home, pgbench, said, signal};
use std::fs;
use std::process::Command;
use std::thread;

#[test]
fn every_workload_adds_up_and_agrees_with_the_server() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.run(&[
        "data",
        "create",
        "sandbox:x",
        "oltp",
        "--scale",
        "1",
        "--tables",
        "2",
    ])
    .fine();
    home.run(&["data", "create", "sandbox:x", "tpcc", "--scale", "1"])
        .fine();
    for workload in [
        "empty",
        "simple",
        "select-only",
        "simple-update",
        "tpcb",
        "insert",
        "delete",
        "update-non-index",
        "read-write",
        "tpcc",
        "tpcc-functions",
    ] {
        let arguments = [
            "bench",
            "sandbox:x",
            "-w",
            workload,
            "-c",
            "4",
            "-R",
            "100",
            "-d",
            "1s",
            "--warmup",
            "1s",
            "--max-failed",
            "10%",
            "--stream",
        ];
        let output = home.run(&arguments).fine();
        assert_eq!(output.err, "", "lines for people are for terminals");
        let lines: Vec<&str> = output.out.lines().collect();
        assert_eq!(
            lines.len(),
            3,
            "a line per second and the result:\n{}",
            output.out
        );
        let first: serde_json::Value = serde_json::from_str(lines[0]).expect("JSON");
        assert_eq!((&first["second"], &first["measured"]), (&1.into(), &false.into()));
        let result: serde_json::Value = serde_json::from_str(lines[2]).expect("JSON");
        let number = |key: &str| {
            result[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key} in {result}"))
        };
        assert_eq!(
            number("all"),
            number("committed") + number("failed") + number("skipped")
        );
        assert!(number("committed") > 0, "{result}");
        // Two of sysbench's transactions that take the same row one after the other insert it
        // twice.
        let failures_max = if workload == "read-write" {
            3 + number("committed") / 50
        } else {
            0
        };
        assert!(number("failed") <= failures_max, "{result}");
        assert_eq!(result["cross_check"]["agrees"], true, "{result}");
        assert!(
            result["cross_check"]["client"].as_u64() > Some(number("committed")),
            "warm-up counts there"
        );
        assert!(result["client_cpu_us_per_tx"].as_f64() > Some(0.0));
        assert!(result["server_cpu_us_per_tx"].as_f64() > Some(0.0));
        assert!(result["response_ms"]["p50"].as_f64() <= result["response_ms"]["p100"].as_f64());
    }
    // What the transactions promise: every update is booked in three places alike.
    let sums =
        "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(delta) FROM pgbench_history)";
    let accounts = home.ask("x", sums);
    let history = home.ask("x", "SELECT sum(delta) FROM pgbench_history");
    assert_eq!(accounts, history);
    for dataset in ["oltp", "tpcc"] {
        home.run(&["data", "check", "sandbox:x", dataset]).fine();
    }
}

/// However a transaction is put to the server and its bytes are moved, both sides count the same.
#[test]
fn every_protocol_control_and_engine_agrees_with_the_server() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let tcp = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        home.record("x")["port"]
    );
    let password = fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    let check = |target: &str, more: &[&str]| {
        let mut arguments = vec!["bench", target, "-q", "--json"];
        arguments.extend(more);
        let output = home
            .command(&arguments)
            .env("PGPASSWORD", password.trim())
            .output();
        let result = said(output.expect("pgdyno runs")).fine().json();
        assert_eq!(result["cross_check"]["agrees"], true, "{more:?} {result}");
        assert_eq!(result["failed"], 0, "{more:?} {result}");
        assert!(result["committed"].as_u64() > Some(0), "{more:?} {result}");
        result
    };
    for workload in ["read", "write", "commit"] {
        check("sandbox:x", &["-w", workload, "-c", "3", "-t", "100"]);
    }
    for protocol in ["simple", "extended", "prepared"] {
        for control in ["none", "explicit", "pipelined"] {
            let more = [
                "-w",
                "tpcb",
                "-c",
                "2",
                "-j",
                "1",
                "-M",
                protocol,
                "--transaction",
                control,
                "-t",
                "100",
            ];
            let result = check("sandbox:x", &more);
            // Statement by statement, the server commits five times for one of the client's.
            let per_transaction = if control == "none" { 5 } else { 1 };
            let counted = result["cross_check"]["client"].as_u64().expect("a count") / per_transaction;
            assert!(
                counted >= result["committed"].as_u64().expect("a count"),
                "{result}"
            );
        }
    }
    for target in ["sandbox:x", &tcp] {
        for engine in ["io-uring", "epoll", "blocking"] {
            let two = ["-c", "2", "-j", "2", "-t", "200"];
            let more = [&["-w", "simple-update", "--engine", engine], &two[..]].concat();
            assert_eq!(check(target, &more)["engine"], engine);
        }
    }
    let second = ["-w", "select-only", "-c", "4", "-d", "1s", "--warmup", "0s"];
    let open = check(
        "sandbox:x",
        &[&second[..], &["--rate", "500", "-L", "10s"]].concat(),
    );
    assert_eq!(
        (&open["arrivals"]["loop"], &open["late"]),
        (&"open".into(), &0.into()),
        "{open}"
    );
    let all = open["all"].as_f64().expect("a count");
    assert!((all - 500.0).abs() < 5.0 * 500_f64.sqrt(), "{open}");
    assert!(
        open["service_ms"]["p50"].as_f64() <= open["response_ms"]["p50"].as_f64(),
        "{open}"
    );
    let think = check("sandbox:x", &[&second[..], &["--think", "10ms"]].concat());
    assert!(think["committed"].as_u64() <= Some(400), "{think}");
    // A transaction that ends without waiting for a reply is followed by it, too.
    let script = home.write("slept.sql", "\\set time 1.5\nSELECT 1;\n\\sleep :time ms\n");
    let script = script.to_string_lossy();
    let slept = [
        "-f", &*script, "-c", "1", "-d", "1s", "--warmup", "0s", "--think", "100ms",
    ];
    let slept = check("sandbox:x", &slept);
    assert!(slept["committed"].as_u64() <= Some(11), "{slept}");
}

/// The server crashes under load and comes back: the load goes on with new connections, the gap is
/// in the series, the lost ones are in the books, and the result is not passed off as a whole one.
#[test]
fn a_server_that_crashes_under_load_is_come_back_to() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let arguments = [
        "bench",
        "sandbox:x",
        "-w",
        "tpcb",
        "-c",
        "4",
        "-R",
        "600",
        "-d",
        "1h",
        "--warmup",
        "0s",
        "--json",
    ];
    let child = home.spawn(&arguments);
    let postmaster = home.postmaster("x").expect("running");
    home.until_driven("x");
    signal(postmaster, "-KILL");
    home.run(&["sandbox", "start", "x"]).fine();
    home.until_driven("x");
    signal(child.id(), "-INT");
    let ended =
        said(child.wait_with_output().expect("ends")).fails(1, &["the server restarted during the load"]);
    let result = ended.json();
    let failed = result["failed"].as_u64().expect("a count");
    // One that comes back before the others are gone can be lost once more.
    assert!((1..=8).contains(&failed), "{result}");
    let seconds = result["seconds"].as_array().expect("seconds");
    // The last one is as long as it came to.
    let is_driven = |second: &serde_json::Value| second["clients"] == 4 && second["tps"].as_f64() > Some(0.0);
    assert!(seconds.iter().rev().take(2).any(is_driven), "{result}");
    assert_eq!(result["cross_check"], serde_json::Value::Null, "{result}");
}

/// A connection per transaction, CPUs for both sides, and a warm-up that ends by itself.
#[test]
fn connections_places_and_warm_ups() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let bench = |more: &[&str]| {
        let arguments = [&["bench", "sandbox:x", "-w", "simple", "-c", "3", "--json"], more].concat();
        let result = home.run(&arguments).fine().json();
        assert_eq!(result["cross_check"]["agrees"], true, "{result}");
        assert_eq!(result["failed"], 0, "{result}");
        result
    };
    let result = bench(&["--connect", "-t", "20", "--placement", "split"]);
    assert_eq!(
        (&result["committed"], &result["threads"]),
        (&60.into(), &3.into()),
        "{result}"
    );
    assert!(
        result["connection_ms"]["p50"].as_f64() < result["response_ms"]["p50"].as_f64(),
        "{result}"
    );
    assert_eq!(result["placement"]["name"], "split", "{result}");
    assert_ne!(
        result["placement"]["client_cpus"], result["placement"]["server_cpus"],
        "{result}"
    );
    let paced = bench(&["--connect", "-R", "50", "-d", "2s", "--warmup", "0s"]);
    // Those that are due in the end may be skipped.
    let of = |key: &str| paced[key].as_u64().expect("a count");
    assert!((70..130).contains(&of("all")), "{paced}");
    assert_eq!(of("committed") + of("skipped"), of("all"), "{paced}");
    assert!(of("committed") > 0, "{paced}");
    // Behind it the server may use all CPUs again.
    let postmaster = home.postmaster("x").expect("a postmaster");
    let allowed = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
        status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"))
            .map(str::to_owned)
    };
    assert_eq!(allowed(postmaster), allowed(std::process::id()));
    let result = bench(&[
        "--warmup",
        "auto",
        "-R",
        "200",
        "--spacing",
        "constant",
        "-d",
        "2s",
    ]);
    let warmup_s = result["warmup_s"].as_f64().expect("a time");
    assert!((20.0..=61.0).contains(&warmup_s), "{result}");
    let measured: Vec<_> = result["seconds"]
        .as_array()
        .expect("seconds")
        .iter()
        .map(|s| s["measured"] == true)
        .collect();
    assert_eq!(
        measured.iter().filter(|&&measured| measured).count(),
        2,
        "{result}"
    );
    assert!(measured.is_sorted(), "{result}");
    let port = &home.record("x")["port"];
    let socket = home.file("state/sandboxes/x/socket");
    let other = format!("host={} port={port} user=postgres", socket.display());
    home.run(&["bench", &other, "--placement", "split"])
        .fails(4, &["binds the processes of sandboxes only"]);
}

/// A ladder of clients, a number of transactions, and the histograms of each second for others to
/// read.
#[test]
fn ladders_limits_and_histograms() {
    use pgdyno_engine::hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    let home = Home::new();
    home.sandbox("x", &[]);
    let arguments = [
        "bench",
        "sandbox:x",
        "-w",
        "select-only",
        "-c",
        "1,4",
        "-t",
        "500",
    ];
    let table = home.run(&arguments).fine().out;
    assert_eq!(table.matches("agrees").count(), 2, "{table}");
    let mut with_json = arguments.to_vec();
    with_json.push("--json");
    let ladder = home.run(&with_json).fine().json();
    let counts: Vec<_> = ladder["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| (run["clients"].as_u64(), run["committed"].as_u64()))
        .collect();
    assert_eq!(counts, [(Some(1), Some(500)), (Some(4), Some(2000))]);

    let file = home.file("times.hlog");
    let path = file.to_string_lossy();
    let arguments = [
        "bench",
        "sandbox:x",
        "-w",
        "empty",
        "-c",
        "2",
        "-d",
        "2s",
        "--warmup",
        "0s",
        "--json",
    ];
    let result = home
        .run(&[&arguments[..], &["--histogram", &path]].concat())
        .fine()
        .json();
    let text = fs::read(&file).expect("a log");
    let intervals: Vec<f64> = IntervalLogIterator::new(&text)
        .filter_map(|entry| match entry.expect("an entry") {
            LogEntry::Interval(interval) => Some(interval.max()),
            _ => None,
        })
        .collect();
    // Responses after the end are one more.
    assert!((2..=3).contains(&intervals.len()), "{result}");
    let longest = intervals.into_iter().fold(0.0, f64::max);
    let expected = result["response_ms"]["p100"].as_f64().expect("a time");
    assert!((longest / expected - 1.0).abs() < 0.02, "{longest} {expected}");
    home.run(&["bench", "sandbox:x", "--rate", "fast"])
        .fails(2, &["arrivals per second"]);
    home.run(&["bench", "sandbox:x", "-w", "empty", "--transaction", "none"])
        .fails(2, &["nothing to do without a transaction"]);
}

/// Two sessions that take the same rows in another order: with tries enough, none of them fails.
#[test]
fn serialization_failures_are_tried_again() {
    let home = Home::new();
    home.sandbox("x", &["--set", "default_transaction_isolation=serializable"]);
    let run = |tries: &str| {
        let arguments = [
            "bench",
            "sandbox:x",
            "-w",
            "tpcb",
            "-c",
            "8",
            "-t",
            "50",
            "--max-failed",
            "100%",
            "--json",
        ];
        home.run(&[&arguments[..], &["--max-tries", tries]].concat())
            .fine()
            .json()
    };
    let once = run("1");
    assert_eq!(once["errors"][0]["sqlstate"], "40001", "{once}");
    assert_eq!(once["retries"], 0, "{once}");
    let often = run("1000");
    assert_eq!(often["failed"], 0, "{often}");
    assert!(often["retries"].as_u64() > Some(0), "{often}");
}

#[test]
fn pgbench_runs_on_the_same_data() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let socket = home.file("state/sandboxes/x/socket");
    let output = Command::new(pgbench())
        .args(["-M", "prepared", "-c", "2", "-t", "50", "-U", "postgres", "-h"])
        .arg(&socket)
        .args(["-p", &home.record("x")["port"].to_string(), "postgres"])
        .output()
        .expect("pgbench runs");
    let output = said(output).fine();
    assert!(output.out.contains("scaling factor: 1"), "{}", output.out);
    assert!(output.out.contains("100/100"), "{}", output.out);
    for (table, rows) in [
        ("accounts", "100000"),
        ("tellers", "10"),
        ("branches", "1"),
        ("history", "100"),
    ] {
        assert_eq!(
            home.ask("x", &format!("SELECT count(*) FROM pgbench_{table}")),
            rows
        );
    }
}

#[test]
fn errors_are_counted_by_sqlstate_and_the_books_still_add_up() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.ask(
        "x",
        "ALTER TABLE pgbench_accounts ADD CHECK (abalance % 2 = 0) NOT VALID",
    );
    let result = home.run(&[
        "bench",
        "sandbox:x",
        "-w",
        "tpcb",
        "-c",
        "2",
        "-t",
        "100",
        "-q",
        "--max-failed",
        "100%",
        "--json",
    ]);
    let result = result.fine().json();
    assert_eq!(result["errors"][0]["sqlstate"], "23514", "{result}");
    let message = result["errors"][0]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("violates check constraint") && message.contains("Failing row"),
        "{result}"
    );
    assert_eq!(result["errors"][0]["place"], "tpcb", "{result}");
    assert!(
        result["failed"].as_u64() > Some(0) && result["committed"].as_u64() > Some(0),
        "{result}"
    );
    assert_eq!(result["errors"][0]["count"], result["failed"]);
    assert_eq!(result["cross_check"]["agrees"], true, "{result}");
}

#[test]
fn mistakes_are_reported_with_what_to_do() {
    let home = Home::new();
    home.run(&["bench", "nonsense"])
        .fails(2, &["neither a sandbox nor a connection string", "hint:"]);
    home.run(&["bench", "sandbox:none"])
        .fails(1, &["no sandbox \"none\"", "sandbox create"]);
    home.run(&["bench", "host=127.0.0.1 port=1 user=x"])
        .fails(1, &["no server answers", "127.0.0.1:1", "hint:"]);
    home.run(&["bench", "host=127.0.0.1 port=1 colour=x"])
        .fails(2, &["connection string cannot be read"]);
    home.run(&["sandbox", "create", "x"]).fine();
    home.run(&["bench", "sandbox:x"])
        .fails(1, &["no data", "data create"]);
    home.run(&["data", "create", "sandbox:x", "--scale", "0"])
        .fails(1, &["1 to 2000000"]);
    home.run(&["data", "create", "sandbox:x", "--scale", "1"]).fine();
    home.run(&["data", "create", "sandbox:x", "--scale", "2"])
        .fails(4, &["--replace"]);
    home.run(&["bench", "sandbox:x", "-w", "tpcx"])
        .fails(2, &["tpcx", "possible values: empty, simple"]);
    home.run(&["bench", "sandbox:x", "-w", "tpcc"])
        .fails(1, &["no data of the set tpcc", "data create TARGET tpcc"]);
    home.run(&["bench", "sandbox:x", "-w", "tpcc", "--transaction", "none"])
        .fails(2, &["--transaction explicit or pipelined"]);
    home.run(&["bench", "sandbox:x", "--paced"])
        .fails(2, &["are tpcc's"]);
    home.run(&["bench", "sandbox:x", "-c", "0"])
        .fails(2, &["0 is not in 1..=10000"]);
    home.run(&["bench", "sandbox:x", "-c", "2", "-j", "3"])
        .fails(2, &["threads must be"]);
    home.run(&["bench", "sandbox:x", "-c", "500"])
        .fails(1, &["of 500", "could not connect", "too many clients"]);
    let place = format!(
        "host={} port={}",
        home.file("state/sandboxes/x/socket").display(),
        home.record("x")["port"]
    );
    home.run(&["bench", &format!("{place} user=postgres dbname=nope")])
        .fails(1, &["no such database"]);
    home.ask(
        "x",
        "CREATE ROLE narrow LOGIN; REVOKE CONNECT ON DATABASE postgres FROM PUBLIC",
    );
    home.run(&["bench", &format!("{place} user=narrow dbname=postgres")])
        .fails(1, &["permission denied for database"]);
}

/// A wrong and a right password: the right one works over TCP by SCRAM, neither is ever shown.
#[test]
fn passwords_are_used_and_never_shown() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let password = fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    let password = password.trim();
    let target = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        home.record("x")["port"]
    );
    home.run(&["bench", &target])
        .fails(1, &["refused the login", "PGPASSWORD"]);
    let wrong = home
        .run(&["bench", &format!("{target} password=hunter2")])
        .fails(1, &["refused the login"]);
    assert!(!wrong.err.contains("hunter2"));
    let url = home.run(&[
        "bench",
        &format!(
            "postgresql://postgres:hunter2@127.0.0.1:{}/x?nonsense=1",
            home.record("x")["port"]
        ),
    ]);
    assert!(url.code != 0 && !url.err.contains("hunter2"), "{}", url.err);
    let arguments = ["bench", &target, "-w", "select-only", "-t", "100", "--json"];
    let right = home
        .command(&arguments)
        .env("PGPASSWORD", password)
        .output()
        .expect("pgdyno runs");
    let right = said(right).fine();
    assert_eq!(right.json()["cross_check"]["agrees"], true);
    assert!(!right.out.contains(password) && !right.err.contains(password));
    let passfile = home.write("pgpass", &format!("127.0.0.1:*:*:postgres:{password}\n"));
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&passfile, fs::Permissions::from_mode(0o600)).expect("closed");
    let by_file = home
        .command(&arguments)
        .env("PGPASSFILE", &passfile)
        .output()
        .expect("pgdyno runs");
    said(by_file).fine();
}

/// A server that is none: whatever it sends, there is one clear line and no hang.
#[test]
fn what_is_no_postgresql_is_said_to_be_that() {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    let home = Home::new();
    let answers: [&[u8]; 4] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"R\x7f\xff\xff\xff",
        b"R\0\0\0\x08\0\0\0\x63",
        b"",
    ];
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = thread::spawn(move || {
            // The first connection asks; a second one is not made.
            if let Ok((mut stream, _)) = listener.accept() {
                let mut request = [0; 512];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer);
            }
        });
        let target = format!("host=127.0.0.1 port={port} user=x password=y connect_timeout=5");
        home.run(&["bench", &target])
            .fails(1, &["error:", &format!("127.0.0.1:{port}")]);
        server.join().expect("a thread");
    }
}
