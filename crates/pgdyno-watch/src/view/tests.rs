//! What the panels look like, on a small and a large terminal, compared with texts that people have
//! checked.

use super::*;
use crate::keys::Asked;
use crate::model::{About, Link, Update};
use crate::names;
use pgdyno_host::series::{Gap, Key, Reading};
use pgdyno_server::series::{AgeRow, SessionRow, StatementRow, VacuumRow, WaitKey, WaitSample};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use std::time::{Duration, Instant};

const MB: f64 = 1024.0 * 1024.0;
const GB: f64 = 1024.0 * MB;

fn state(keys: &str) -> State {
    let mut state = State::new(Duration::from_secs(1), false, true);
    for c in keys.chars() {
        let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        assert_ne!(state.press(key), Asked::Quit);
    }
    state
}

/// What a busy server reported for three minutes.
fn busy() -> Model {
    let start = Instant::now();
    let at = |s: u64| start + Duration::from_secs(s);
    let mut model = Model::new(start);
    model.apply(Update::About(about()), start);
    model.apply(Update::Link(Link::Up), start);
    for s in 1..=180 {
        model.apply(Update::Reading(server(at(s), s)), at(s));
        model.apply(Update::Reading(host(at(s), s)), at(s));
        model.apply(Update::Waits(waits(at(s), s)), at(s));
    }
    model.apply(Update::Sessions(Ok(sessions())), at(180));
    model.apply(Update::Statements(Ok(statements())), at(180));
    model.apply(Update::Vacuums(Ok(vacuums())), at(180));
    model.apply(Update::Ages(Ok(ages())), at(180));
    model
}

fn about() -> About {
    About {
        target: "sandbox:main".into(),
        version: "18.1".into(),
        cpus: Some(8),
        max_connections: Some(100.0),
        shared_buffers_bytes: Some(8.0 * GB),
        max_wal_size_bytes: Some(GB),
        io_timing: true,
        disks: vec![
            ("nvme0n1".into(), "data".into()),
            ("nvme1n1".into(), "WAL".into()),
        ],
        ..About::default()
    }
}

fn reading(at: Instant, values: &[(&'static str, &str, f64)]) -> Reading {
    let mut reading = Reading::new(at, Some(at - Duration::from_secs(1)));
    for (metric, label, value) in values {
        reading.push(Key::of(metric, *label), *value);
    }
    reading
}

#[expect(clippy::cast_precision_loss, reason = "seconds")]
fn server(at: Instant, s: u64) -> Reading {
    let wave = 8000.0 + 4000.0 * (s as f64 / 20.0).sin();
    let mut reading = reading(
        at,
        &[
            (names::COMMITS, names::ALL, wave),
            (names::ROLLBACKS, names::ALL, 0.4),
            (names::BLOCKS_HIT, names::ALL, 98_000.0),
            (names::BLOCKS_READ, names::ALL, 1_400.0),
            (names::WAL_BYTES, "", 31.4 * MB),
            (names::CHECKPOINTS_TIMED, "", if s == 60 { 1.0 } else { 0.0 }),
            (names::CHECKPOINTS_REQUESTED, "", 0.0),
            (names::ACTIVE, "", 34.0),
            (names::IDLE, "", 29.0),
            (names::IDLE_IN_TRANSACTION, "", 1.0),
            (names::XIDS, "", 10_000.0),
            (names::OLDEST_XACT, "", 431.0),
            (names::WAL_VOLUME, "", 100.0 * GB),
            (names::WAL_VOLUME_FREE, "", 61.0 * GB),
        ],
    );
    if s == 180 {
        reading.gap(
            "pg_stat_replication",
            "only for members of pg_monitor: GRANT pg_monitor TO app",
        );
    }
    reading
}

fn host(at: Instant, s: u64) -> Reading {
    let dirty = if s.is_multiple_of(30) { 400.0 } else { 180.0 };
    let mut reading = reading(
        at,
        &[
            ("cpu.user_ratio", "all", 0.52),
            ("cpu.system_ratio", "all", 0.17),
            ("cpu.iowait_ratio", "all", 0.06),
            ("cpu.steal_ratio", "all", 0.01),
            ("cpu.idle_ratio", "all", 0.24),
            ("cpu.user_ratio", "cpu0", 0.9),
            ("cpu.run_queue", "", 11.0),
            ("memory.total_bytes", "", 31.2 * GB),
            ("memory.available_bytes", "", 12.4 * GB),
            ("memory.free_bytes", "", 0.8 * GB),
            ("memory.cached_bytes", "", 18.0 * GB),
            ("memory.shmem_bytes", "", 8.2 * GB),
            ("memory.page_tables_bytes", "", 2.1 * GB),
            ("memory.dirty_bytes", "", dirty * MB),
            ("memory.writeback_bytes", "", 3.0 * MB),
            ("memory.swap_used_bytes", "", 0.0),
        ],
    );
    for (disk, load) in [("nvme0n1", 1.0), ("nvme1n1", 0.3)] {
        for (metric, value) in [
            ("disk.reads_per_s", 1400.0),
            ("disk.writes_per_s", 3200.0),
            ("disk.read_bytes_per_s", 11.0 * MB),
            ("disk.write_bytes_per_s", 55.0 * MB),
            ("disk.read_await_ms", 0.3),
            ("disk.write_await_ms", 1.9),
            ("disk.flush_await_ms", 4.2),
            ("disk.queue", 3.1),
            ("disk.util_ratio", 0.78),
        ] {
            reading.push(Key::of(metric, disk), value * load);
        }
    }
    for (class, count) in [
        ("client backend", 64.0),
        ("checkpointer", 1.0),
        ("walwriter", 1.0),
    ] {
        for (metric, value) in [
            ("process.count", count),
            ("process.cpu_ratio", count * 0.07),
            ("process.rss_bytes", count * 120.0 * MB),
            ("process.minor_faults_per_s", count * 40.0),
            ("process.major_faults_per_s", 0.0),
        ] {
            reading.push(Key::of(metric, class), value);
        }
    }
    reading
}

fn waits(at: Instant, s: u64) -> WaitSample {
    let key = |class: &str, kind: &str, event: &str| WaitKey {
        class: class.into(),
        kind: kind.into(),
        event: event.into(),
        query_id: None,
    };
    let client = "client backend";
    let u32 = |n: u64| u32::try_from(n).expect("small");
    let gap = (s == 170).then(|| Gap {
        source: "pg_stat_activity".into(),
        reason: "statement timeout".into(),
    });
    let mut sample = WaitSample {
        at,
        counts: vec![
            (key(client, "CPU", "CPU"), 6),
            (key(client, "LWLock", "BufferMapping"), u32((s / 9) % 19)),
            (key(client, "IO", "DataFileRead"), u32(s % 7)),
            (key(client, "Lock", "transactionid"), u32((s / 30) % 2)),
            (key("checkpointer", "Timeout", "CheckpointWriteDelay"), 1),
            (key("walwriter", "Activity", "WalWriterMain"), 1),
        ],
        gap,
    };
    if sample.gap.is_some() {
        sample.counts.clear();
    }
    sample
}

fn sessions() -> Vec<SessionRow> {
    let row = |pid, state: &str, query_age_s, statement: &str| SessionRow {
        pid,
        user: Some("app".into()),
        database: Some("shop".into()),
        application: Some("checkout".into()),
        client: Some("10.0.0.7".into()),
        state: Some(state.into()),
        wait: Some(("IO".into(), "DataFileRead".into())),
        statement: Some(statement.into()),
        query_age_s: Some(query_age_s),
        xact_age_s: Some(query_age_s + 0.5),
        state_age_s: Some(query_age_s),
        query_id: None,
        blocked_by: Vec::new(),
        backend_type: Some("client backend".into()),
    };
    let mut blocked = row(4712, "active", 12.5, "UPDATE stock SET n = n - 1 WHERE id = 7");
    blocked.wait = Some(("Lock".into(), "transactionid".into()));
    blocked.blocked_by = vec![4711];
    let mut idle = row(
        4711,
        "idle in transaction",
        430.5,
        "UPDATE stock SET n = n - 1 WHERE id = 7",
    );
    idle.wait = Some(("Client".into(), "ClientRead".into()));
    let own = SessionRow {
        pid: 4001,
        wait: Some(("Activity".into(), "CheckpointerMain".into())),
        backend_type: Some("checkpointer".into()),
        user: None,
        database: None,
        application: None,
        client: None,
        state: None,
        query_id: None,
        statement: None,
        query_age_s: None,
        xact_age_s: None,
        state_age_s: None,
        blocked_by: Vec::new(),
    };
    vec![
        own,
        idle,
        row(4713, "active", 0.004, "SELECT * FROM stock"),
        blocked,
    ]
}

fn statements() -> Vec<StatementRow> {
    let row = |query_id, text: &str, calls_per_s: f64, mean_ms: f64| StatementRow {
        query_id,
        text: text.into(),
        calls_per_s,
        mean_ms,
        total_ms_per_s: calls_per_s * mean_ms,
        rows_per_s: calls_per_s,
        blocks_hit_per_s: calls_per_s * 4.0,
        blocks_read_per_s: calls_per_s * 0.1,
        blocks_dirtied_per_s: calls_per_s * 1.5,
        read_ms_per_s: 12.0 * mean_ms,
        wal_records_per_s: calls_per_s * 3.0,
        wal_bytes_per_s: calls_per_s * 300.0,
        blocks_written_per_s: 0.0,
        write_ms_per_s: 0.0,
        temp_blocks_per_s: 0.0,
        plans_per_s: 0.0,
        plan_ms_per_s: 0.0,
        jit_ms_per_s: None,
        generic_plan_calls_per_s: None,
        custom_plan_calls_per_s: None,
    };
    vec![
        row(1, "SELECT price\n  FROM goods WHERE id = $1", 9000.0, 0.05),
        row(2, "UPDATE stock SET n = n - $1 WHERE id = $2", 2500.0, 1.4),
        row(3, "INSERT INTO orders VALUES ($1, $2, $3)", 2400.0, 0.3),
        row(4, "never called", 0.0, 0.0),
    ]
}

fn vacuums() -> Vec<VacuumRow> {
    vec![VacuumRow {
        pid: 5000,
        database: Some("shop".into()),
        table: Some("public.stock".into()),
        phase: Some("vacuuming indexes".into()),
        heap_total: Some(4000),
        heap_scanned: Some(4000),
        heap_vacuumed: Some(1000),
        index_passes: Some(1),
        dead: Some(71_000),
        age_s: Some(75.0),
        is_auto: true,
    }]
}

fn ages() -> Vec<AgeRow> {
    let row = |database: &str, xid_age, multixact_age| AgeRow {
        database: database.into(),
        xid_age,
        multixact_age,
        freeze_max_age: 200_000_000,
        multixact_freeze_max_age: 400_000_000,
    };
    vec![
        row("shop", 181_000_000, 1_200),
        row("archive", 1_250_000_000, 7),
        row("template1", 90, 1),
    ]
}

fn shown(model: &Model, state: &State, columns: u16, rows: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal
        .draw(|frame| {
            let _ = draw(frame, model, state);
        })
        .expect("drawn");
    terminal
}

fn text_of(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[track_caller]
fn check(name: &str, found: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, found);
    });
}

/// Where plans are counted, the share of those for any values takes the place of WAL records.
#[test]
fn generic_plans_are_shown_where_the_server_counts_them() {
    let mut model = busy();
    let mut rows = statements();
    rows[0].generic_plan_calls_per_s = Some(6750.0);
    rows[0].custom_plan_calls_per_s = Some(2250.0);
    model.apply(Update::Statements(Ok(rows)), Instant::now());
    let shown = text_of(&shown(&model, &state("3"), 160, 50));
    let row = shown
        .lines()
        .find(|line| line.contains("SELECT price"))
        .expect("a row");
    assert!(
        shown.contains("generic") && !shown.contains("WAL rec/s"),
        "{shown}"
    );
    assert!(row.contains("75 %"), "{row}");
    let other = shown
        .lines()
        .find(|line| line.contains("UPDATE stock"))
        .expect("a row");
    assert!(!other.contains(" %"), "{other}");
}

#[test]
fn panels_at_both_sizes() {
    let model = busy();
    let mut wrong = Vec::new();
    for (keys, name) in [
        ("", "overview"),
        ("2", "waits"),
        ("3", "statements"),
        ("4", "sessions"),
        ("5", "vacuum"),
        ("6", "devices"),
        ("7", "memory"),
        ("8", "notes"),
        ("?", "help"),
    ] {
        for (columns, rows) in [(80, 24), (160, 50)] {
            let found = text_of(&shown(&model, &state(keys), columns, rows));
            let name = format!("{name}-{columns}x{rows}");
            // All that differ are left to be checked, not only the first.
            if std::panic::catch_unwind(|| check(&name, &found)).is_err() {
                wrong.push(name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_target_that_went_away_keeps_its_last_values() {
    let mut model = busy();
    let now = model.now;
    let reason = "no server answers for shop: Connection refused".to_owned();
    model.apply(Update::Link(Link::Down(now, reason)), now);
    model.apply(Update::Sessions(Err("broken".into())), now);
    model.now = now + Duration::from_secs(125);
    check("away-80x24", &text_of(&shown(&model, &state(""), 80, 24)));
    assert!(model.sessions.is_ok());
}

#[test]
fn a_server_elsewhere_has_no_host_to_show() {
    let mut model = Model::new(Instant::now());
    let about = About {
        no_host: Some("the host of the server is not this one".into()),
        ..about()
    };
    model.apply(Update::About(about), model.now);
    model.apply(Update::Link(Link::Up), model.now);
    let why = "pg_stat_statements is not loaded: shared_preload_libraries = 'pg_stat_statements' and a restart load it";
    model.apply(Update::Statements(Err(why.into())), model.now);
    check("elsewhere-80x24", &text_of(&shown(&model, &state(""), 80, 24)));
    for keys in ["6", "7"] {
        let text = text_of(&shown(&model, &state(keys), 80, 24));
        assert!(text.contains("the host of the server is not this one"), "{text}");
    }
}

#[test]
fn without_colour_nothing_is_lost_and_no_colour_is_sent() {
    let model = busy();
    let mut state = state("");
    let plain = shown(&model, &state, 80, 24);
    let cells = &plain.backend().buffer().content;
    assert!(
        cells
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
    state.colour = true;
    let coloured = shown(&model, &state, 80, 24);
    assert_eq!(text_of(&plain), text_of(&coloured));
    let cells = &coloured.backend().buffer().content;
    assert!(cells.iter().any(|cell| cell.fg != Color::Reset));
}

#[test]
fn sorting_filtering_and_scrolling() {
    let model = busy();
    let first = |keys: &str, head: &str| {
        let text = text_of(&shown(&model, &state(keys), 160, 50));
        let mut lines = text.lines().skip_while(|line| !line.contains(head)).skip(1);
        lines.next().unwrap_or_default().to_owned()
    };
    for (keys, head, wanted) in [
        ("3", "calls/s", "UPDATE stock"),
        ("3s", "calls/s", "SELECT price"),
        ("3sss", "calls/s", "SELECT price"),
        ("3/insert", "calls/s", "INSERT INTO orders"),
        ("4", "in state", "4712"),
        ("4s", "in state", "4711"),
        ("4sss", "in state", "4712"),
        ("4ssss", "in state", "4001"),
        ("5", "mxid age", "archive"),
        ("5s", "mxid age", "archive"),
        ("2/lock:t", "newest at", "Lock:transactionid"),
    ] {
        let line = first(keys, head);
        assert!(line.contains(wanted), "{keys}: {line}");
    }
    let down = text_of(&shown(&model, &state("4jjj"), 80, 10));
    assert!(!down.contains("4712") && down.contains("4711"), "{down}");
    assert!(down.contains("blocked by"), "the heading stays: {down}");
}

#[test]
fn any_size_is_drawn() {
    let model = busy();
    for panel in '1'..='8' {
        for (columns, rows) in [(1, 1), (20, 5), (40, 10), (41, 11), (79, 23), (300, 100)] {
            let text = text_of(&shown(&model, &state(&panel.to_string()), columns, rows));
            assert!(!text.trim().is_empty());
        }
    }
}

#[test]
fn one_look_as_text() {
    let text = text(&busy(), &state(""), 110, 40);
    assert!(text.starts_with("pgdyno watch   sandbox:main   PostgreSQL 18.1\n"));
    assert!(text.contains("TPS"));
    assert!(text.lines().all(|line| width(line) <= 110));
}

/// An interval that was changed meanwhile is not that of the points before.
#[test]
fn the_curve_is_as_long_as_its_points_say() {
    let mut state = state("");
    state.interval = Duration::from_secs(10);
    let text = text_of(&shown(&busy(), &state, 80, 24));
    assert!(text.contains("TPS of the last 1 min 20 s"), "{text}");
}
