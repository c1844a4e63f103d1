//! Series of a server, on real servers of each version: every metric is a value or a gap with a
//! reason, whatever happens.

use common::Home;
use common::machine::newest;
use pgdyno_host::series::Reading;
use pgdyno_lab::{Recorder, RecorderEvent, RecorderOptions};
use pgdyno_server::Found;
use pgdyno_server::series::{ServerSeries, StatementsMissing, WaitKey, metrics};
use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

struct Target {
    home: Home,
}

impl Target {
    fn start(version: &str) -> Target {
        Target::with(version, "shared_preload_libraries=pg_stat_statements")
    }

    fn with(version: &str, setting: &str) -> Target {
        let home = Home::new();
        home.run(&["sandbox", "create", "t", "-V", version, "--set", setting])
            .fine();
        fs::write(home.data("t").join("pg_hba.conf"), "local all all trust\n").expect("written");
        home.ask("t", "SELECT pg_reload_conf()");
        home.ask("t", "CREATE ROLE plain LOGIN");
        home.ask("t", "CREATE TABLE t AS SELECT 1 AS a");
        Target { home }
    }

    fn address(&self, user: &str) -> String {
        let socket = self.home.file("state/sandboxes/t/socket");
        let port = self.home.record("t")["port"].as_u64().expect("a port");
        format!(
            "host={} port={port} user={user} dbname=postgres",
            socket.display()
        )
    }

    fn client(&self) -> Client {
        Client::connect(&self.address("postgres"), NoTls).expect("a connection")
    }

    fn series(&self, user: &str) -> ServerSeries {
        let conninfo = Found::find(&self.address(user), &|_| None)
            .expect("a server")
            .conninfo;
        ServerSeries::connect(&conninfo).expect("a connection")
    }
}

/// Reads until the condition holds; gives all readings.
#[track_caller]
fn until(
    mut read: impl FnMut() -> Reading,
    what: &str,
    mut holds: impl FnMut(&Reading) -> bool,
) -> Vec<Reading> {
    let mut readings = Vec::new();
    common::until(what, || {
        let reading = read();
        for (key, value) in &reading.values {
            assert!(value.is_finite() && *value >= 0.0, "{what}: {key:?} is {value}");
        }
        readings.push(reading.clone());
        if holds(&reading) { Ok(()) } else { Err(reading) }
    });
    readings
}

fn says(reading: &Reading, text: &str) -> bool {
    reading.gaps.iter().any(|gap| gap.reason.contains(text))
}

fn every_metric_is_a_value_or_a_gap(target: &Target) {
    let mut series = target.series("postgres");
    let mut client = target.client();
    let mut both = until(
        || {
            client.batch_execute("UPDATE t SET a = a + 1").expect("updated");
            series.tick()
        },
        "commits",
        |reading| reading.value("db.commits_per_s").is_some_and(|v| v > 0.0),
    );
    // The sizes come at every third.
    let has_rates = |reading: &Reading| reading.value("slru.hits_per_s").is_some();
    both.extend((0..3).map(|_| series.seldom()));
    both.extend(until(
        || series.seldom(),
        "rates of what is read seldom",
        has_rates,
    ));
    let valued: BTreeSet<&str> = both
        .iter()
        .flat_map(|reading| reading.values.iter().map(|(key, _)| key.metric.as_ref()))
        .collect();
    let gaps: BTreeSet<&str> = both
        .iter()
        .flat_map(|reading| reading.gaps.iter().map(|gap| gap.source.as_str()))
        .collect();
    let missing: Vec<_> = metrics()
        .filter(|(metric, source)| {
            let named = |gap: &&str| *gap == *source || gap.split(' ').any(|word| word == *metric);
            !valued.contains(metric) && !gaps.iter().any(named)
        })
        .collect();
    assert!(
        missing.is_empty(),
        "neither value nor gap: {missing:?}\ngaps: {gaps:?}"
    );
    let labels: Vec<&str> = both
        .iter()
        .flat_map(|reading| &reading.values)
        .filter(|(key, _)| key.metric == "db.commits_per_s")
        .map(|(key, _)| key.label.as_str())
        .collect();
    assert!(
        labels.contains(&"postgres") && labels.contains(&"all"),
        "{labels:?}"
    );
}

fn a_reset_is_a_gap(target: &Target) {
    let mut series = target.series("postgres");
    series.tick();
    target.home.ask("t", "SELECT pg_stat_reset()");
    target.home.ask("t", "SELECT pg_stat_reset_shared('bgwriter')");
    // Before 15, what was reset by two statements may be seen at two readings.
    let was_reset = |reading: &Reading| {
        let mut gaps = reading.gaps.iter();
        gaps.any(|gap| gap.source.starts_with("pg_stat_database ") && gap.reason.contains("were reset"))
    };
    let readings = until(|| series.tick(), "a reset", was_reset);
    let last = readings.last().expect("readings");
    assert_eq!(last.value("db.commits_per_s"), None, "{last:?}");
    until(
        || series.tick(),
        "values again",
        |reading| reading.value("db.commits_per_s").is_some(),
    );
}

fn a_restart_is_a_gap(target: &Target) {
    let mut series = target.series("postgres");
    // Two readings within a millisecond make no rate.
    let has_rates = |reading: &Reading| reading.value("wal.position_bytes_per_s").is_some();
    until(|| series.tick(), "rates", has_rates);
    target.home.run(&["sandbox", "restart", "t"]).fine();
    let readings = until(
        || series.tick(),
        "a restart",
        |reading| says(reading, "restarted"),
    );
    for reading in &readings {
        assert_eq!(reading.since, None, "{reading:?}");
        assert!(!reading.gaps.is_empty(), "{reading:?}");
    }
    until(
        || series.tick(),
        "values again",
        |reading| reading.value("db.commits_per_s").is_some(),
    );
}

fn a_server_that_hangs_is_given_up(target: &Target) {
    let mut series = target.series("postgres");
    series.tick();
    let pid = Pid::from_raw(series.backend_pid()).expect("a process");
    kill_process(pid, Signal::STOP).expect("stopped");
    let reading = series.tick();
    let sample = series.sample_waits();
    kill_process(pid, Signal::CONT).expect("continued");
    assert!(says(&reading, "no answer in time"), "{reading:?}");
    assert!(reading.values.is_empty(), "{reading:?}");
    assert!(sample.gap.is_none() || sample.counts.is_empty(), "{sample:?}");
    until(
        || series.tick(),
        "values again",
        |reading| reading.value("wal.position_bytes_per_s").is_some(),
    );
    assert_ne!(series.backend_pid(), pid.as_raw_nonzero().get());
}

fn a_role_without_rights_is_shown_the_grant(target: &Target) {
    let mut series = target.series("plain");
    let tick = series.tick();
    let seldom = series.seldom();
    for (reading, text) in [
        (&tick, "GRANT pg_read_all_stats TO \"plain\""),
        (&seldom, "GRANT pg_monitor TO \"plain\""),
    ] {
        assert!(says(reading, text), "\"{text}\" is not in {:?}", reading.gaps);
    }
    assert_eq!(
        tick.value("sessions.clients"),
        None,
        "a part would be taken for the whole"
    );
    assert!(tick.value("db.connections").is_some(), "{tick:?}");
    let gap = series.sample_waits().gap.expect("what is hidden");
    assert!(gap.reason.contains("GRANT pg_read_all_stats"), "{gap:?}");
    let sessions = series.sessions().expect("sessions");
    assert!(sessions.iter().all(|row| row.statement.is_none()), "{sessions:?}");
}

fn a_wait_for_a_row_is_seen(target: &Target) {
    let mut series = target.series("postgres");
    let mut holder = target.client();
    holder.batch_execute("BEGIN; UPDATE t SET a = 0").expect("locked");
    let mut waiter = target.client();
    let waiting = std::thread::spawn(move || waiter.batch_execute("UPDATE t SET a = 1"));
    let is_it =
        |key: &WaitKey| key.kind == "Lock" && key.event == "transactionid" && key.class == "client backend";
    let seen = common::until("a wait for a row", || {
        let sample = series.sample_waits();
        let found = sample.counts.iter().find(|(key, _)| is_it(key)).cloned();
        found.ok_or(sample)
    });
    assert_eq!(seen.1, 1);
    assert_eq!(
        seen.0.query_id.is_some(),
        series.version().major >= 14,
        "{seen:?}"
    );
    let sessions = series.sessions().expect("sessions");
    let row = sessions
        .iter()
        .find(|row| !row.blocked_by.is_empty())
        .expect("one is blocked");
    assert_eq!(row.wait, Some(("Lock".to_owned(), "transactionid".to_owned())));
    assert_eq!(row.statement.as_deref(), Some("UPDATE t SET a = 1"));
    let blocker = sessions
        .iter()
        .find(|other| row.blocked_by.contains(&other.pid))
        .expect("who blocks");
    assert_eq!(blocker.state.as_deref(), Some("idle in transaction"));
    assert_eq!(series.tick().value("sessions.waiting_for_lock"), Some(1.0));
    holder.batch_execute("COMMIT").expect("done");
    waiting.join().expect("a thread").expect("updated");
}

fn sessions_that_wait_alike_are_counted_together(target: &Target) {
    let mut series = target.series("postgres");
    let mut holder = target.client();
    holder
        .batch_execute("SELECT pg_advisory_lock(1)")
        .expect("locked");
    let statements = [
        "SELECT pg_advisory_xact_lock(1)",
        "SELECT pg_advisory_xact_lock_shared(1)",
    ];
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let mut waiter = target.client();
            let statement = statements[usize::from(number % 5 < 2)];
            std::thread::spawn(move || waiter.batch_execute(statement))
        })
        .collect();
    common::until_is("eight and twelve waits", vec![8, 12], || {
        let sample = series.sample_waits();
        let are_it = |(key, _): &&(WaitKey, u32)| key.event == "advisory";
        let mut counts: Vec<u32> = sample
            .counts
            .iter()
            .filter(are_it)
            .map(|(_, count)| *count)
            .collect();
        counts.sort_unstable();
        counts
    });
    holder
        .batch_execute("SELECT pg_advisory_unlock(1)")
        .expect("unlocked");
    for waiter in waiting {
        waiter.join().expect("a thread").expect("its turn");
    }
}

fn statements_grow(target: &Target) {
    let mut series = target.series("postgres");
    assert!(matches!(series.statements(), Err(StatementsMissing::NotCreated)));
    assert!(says(&series.seldom(), "CREATE EXTENSION"), "the hint");
    target.home.ask("t", "CREATE EXTENSION pg_stat_statements");
    assert_eq!(series.statements().expect("there"), []);
    let mut client = target.client();
    client
        .batch_execute("SELECT count(*) FROM t WHERE a <> 42")
        .expect("asked");
    let rows = series.statements().expect("there");
    let row = rows
        .iter()
        .find(|row| row.text.contains("FROM t WHERE a <> $1"))
        .expect("it");
    assert!(row.calls_per_s > 0.0 && row.mean_ms > 0.0, "{row:?}");
    let mut ticks = until(
        || series.seldom(),
        "totals",
        |reading| reading.value("statements.calls_per_s").is_some(),
    );
    assert!(ticks.pop().expect("readings").since.is_some());
    let mut plain = target.series("plain");
    assert_eq!(plain.statements().expect("its own"), []);
    client
        .batch_execute("SELECT count(*) FROM t WHERE a <> 42")
        .expect("asked");
    let rows = plain.statements().expect("its own, and those of others as one");
    let others = rows.iter().find(|row| row.query_id == 0).expect("others");
    assert!(
        others.text.contains("GRANT pg_read_all_stats TO \"plain\""),
        "{others:?}"
    );
    assert!(
        series
            .ages()
            .expect("ages")
            .iter()
            .any(|row| row.database == "postgres" && row.freeze_max_age > 0)
    );
    assert_eq!(series.vacuums().expect("vacuums"), []);
}

fn a_vacuum_is_seen(target: &Target) {
    let mut series = target.series("postgres");
    target.home.ask(
        "t",
        "CREATE TABLE big WITH (autovacuum_enabled = off) AS SELECT generate_series(1, 100000) AS a",
    );
    let mut client = target.client();
    // A page a tenth of a second: it lasts until it is cancelled.
    client
        .batch_execute("SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1")
        .expect("slowed down");
    let cancel = client.cancel_token();
    let vacuum = std::thread::spawn(move || client.batch_execute("VACUUM big"));
    let row = common::until("a vacuum", || {
        let rows = series.vacuums().expect("vacuums");
        // Its phase is there before its table's size.
        let found = rows.iter().find(|row| row.heap_total > Some(0)).cloned();
        found.ok_or(rows)
    });
    assert_eq!(row.table.as_deref(), Some("big"), "{row:?}");
    assert_eq!(row.database.as_deref(), Some("postgres"), "{row:?}");
    assert!(
        row.phase.is_some() && row.heap_scanned <= row.heap_total,
        "{row:?}"
    );
    assert!(!row.is_auto && row.age_s.is_some_and(|s| s >= 0.0), "{row:?}");
    let readings = until(
        || series.seldom(),
        "a vacuum",
        |reading| reading.value("vacuum.running") == Some(1.0),
    );
    let last = readings.last().expect("readings");
    assert!(
        last.value("vacuum.blocks_left").is_some_and(|v| v > 0.0),
        "{last:?}"
    );
    cancel.cancel_query(NoTls).expect("cancelled");
    vacuum.join().expect("a thread").expect_err("it was cancelled");
    until(
        || series.seldom(),
        "no vacuum",
        |reading| reading.value("vacuum.running") == Some(0.0),
    );
}

/// A group that fails takes none of the others with it, and is asked by itself.
fn a_group_that_fails_is_alone(target: &Target) {
    target.home.ask(
        "t",
        "REVOKE EXECUTE ON FUNCTION pg_stat_get_activity(int) FROM PUBLIC",
    );
    let mut series = target.series("plain");
    let first = series.tick();
    assert!(first.value("db.connections").is_some(), "{first:?}");
    let gap = first.gaps.iter().find(|gap| gap.source == "pg_stat_get_activity");
    assert!(gap.is_some_and(|gap| gap.reason.contains("42501")), "{first:?}");
    let readings = until(
        || series.tick(),
        "rates",
        |reading| reading.value("wal.position_bytes_per_s").is_some(),
    );
    let has_gap = |reading: &Reading| {
        let mut gaps = reading.gaps.iter();
        gaps.any(|gap| gap.source == "pg_stat_get_activity")
    };
    assert!(!readings.iter().any(has_gap), "reported once: {readings:?}");
    target.home.ask(
        "t",
        "GRANT EXECUTE ON FUNCTION pg_stat_get_activity(int) TO PUBLIC",
    );
}

fn a_recorder_keeps_it(target: &Target) {
    let (sender, receiver) = channel();
    let recorder = Recorder::start_with(
        RecorderOptions {
            server: Some(target.series("postgres")),
            tick: Duration::from_millis(100),
            ..RecorderOptions::default()
        },
        move |event| {
            let _ = sender.send(event);
        },
    )
    .expect("threads");
    let mut is_seen = (false, false);
    let mut answers = 0;
    for event in receiver.iter() {
        answers += 1;
        match event {
            RecorderEvent::Reading(reading) => is_seen.0 |= reading.interval().is_some(),
            RecorderEvent::Waits(sample) => is_seen.1 |= sample.gap.is_none(),
        }
        if is_seen == (true, true) {
            break;
        }
    }
    assert_eq!(is_seen, (true, true));
    // Each is a transaction at least.
    assert!(recorder.stop().own_commits.sure >= answers);
}

fn series_of(version: &str) {
    let target = Target::start(version);
    every_metric_is_a_value_or_a_gap(&target);
    statements_grow(&target);
    a_reset_is_a_gap(&target);
    a_role_without_rights_is_shown_the_grant(&target);
    a_group_that_fails_is_alone(&target);
    a_wait_for_a_row_is_seen(&target);
    sessions_that_wait_alike_are_counted_together(&target);
    a_vacuum_is_seen(&target);
    a_server_that_hangs_is_given_up(&target);
    a_recorder_keeps_it(&target);
    a_restart_is_a_gap(&target);
}

#[test]
fn series_of_14() {
    series_of("14");
}

#[test]
fn series_of_15() {
    series_of("15");
}

#[test]
fn series_of_16() {
    series_of("16");
}

#[test]
fn series_of_17() {
    series_of("17");
}

#[test]
fn series_of_the_newest_version() {
    series_of(&newest());
}

#[test]
fn statements_of_a_server_without_the_library() {
    let target = Target::with("18", "max_connections=20");
    target.home.ask("t", "CREATE EXTENSION pg_stat_statements");
    let mut series = target.series("postgres");
    let missing = series.statements();
    assert!(
        matches!(missing, Err(StatementsMissing::NotLoaded)),
        "{missing:?}"
    );
    let reading = series.seldom();
    assert!(says(&reading, "shared_preload_libraries"), "{reading:?}");
    assert!(reading.value("vacuum.running").is_some(), "{reading:?}");
}
