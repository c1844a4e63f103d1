use super::*;
use crate::model::{About, Link, Update};
use pgdyno_host::series::{Key, Reading};
use pgdyno_server::series::{AgeRow, SessionRow, WaitKey, WaitSample};
use std::time::Instant;

const MB: f64 = 1024.0 * 1024.0;
const GB: f64 = 1024.0 * MB;

struct Case {
    model: Model,
    at: Instant,
    interval: Duration,
}

fn case() -> Case {
    let at = Instant::now();
    let mut model = Model::new(at);
    model.apply(Update::Link(Link::Up), at);
    let about = About {
        cpus: Some(4),
        shared_buffers_bytes: Some(8.0 * GB),
        max_wal_size_bytes: Some(2.0 * GB),
        ..About::default()
    };
    model.apply(Update::About(about), at);
    Case {
        model,
        at,
        interval: Duration::from_secs(10),
    }
}

impl Case {
    fn each_minute(mut self) -> Case {
        self.interval = Duration::from_secs(60);
        self.model.apply(Update::Interval(self.interval), self.at);
        self
    }

    /// A value an interval after the last one; a rate over it.
    fn value(mut self, metric: &'static str, label: &str, value: f64) -> Case {
        let before = self.at;
        self.at += self.interval;
        let mut reading = Reading::new(self.at, Some(before));
        reading.push(Key::of(metric, label), value);
        self.model.apply(Update::Reading(reading), self.at);
        self
    }

    fn one(self, metric: &'static str, value: f64) -> Case {
        self.value(metric, "", value)
    }

    fn waits(mut self, counts: &[(&str, &str, u32)]) -> Case {
        let key = |kind: &str, event: &str| WaitKey {
            class: "client backend".into(),
            kind: kind.into(),
            event: event.into(),
            query_id: None,
        };
        let counts = counts
            .iter()
            .map(|(kind, event, n)| (key(kind, event), *n))
            .collect();
        let sample = WaitSample {
            at: self.at,
            counts,
            gap: None,
        };
        self.model.apply(Update::Waits(sample), self.at);
        self
    }

    fn age(mut self, xid_age: u64) -> Case {
        let row = AgeRow {
            database: "app".into(),
            xid_age,
            multixact_age: 0,
            freeze_max_age: 200_000_000,
            multixact_freeze_max_age: 400_000_000,
        };
        self.model.apply(Update::Ages(Ok(vec![row])), self.at);
        self
    }

    fn session(mut self, state: &str, xact_age_s: f64) -> Case {
        let row = SessionRow {
            pid: 42,
            state: Some(state.into()),
            xact_age_s: Some(xact_age_s),
            user: None,
            database: None,
            application: None,
            client: None,
            wait: None,
            query_id: None,
            statement: None,
            query_age_s: None,
            state_age_s: None,
            blocked_by: Vec::new(),
            backend_type: None,
        };
        self.model.apply(Update::Sessions(Ok(vec![row])), self.at);
        self
    }

    fn cpus(mut self, cpus: Option<u32>) -> Case {
        self.model.about.cpus = cpus;
        self
    }

    #[track_caller]
    fn says(&self, expected: Option<&str>) {
        let found: Vec<String> = warnings(&self.model).into_iter().map(|w| w.text).collect();
        match expected {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(part) => {
                assert_eq!(found.len(), 1, "{found:?}");
                assert!(found[0].contains(part), "\"{part}\" is not in {found:?}");
            }
        }
    }
}

#[test]
fn nothing_known_is_nothing_to_warn_of() {
    case().says(None);
}

#[test]
fn a_condition_of_advise_has_its_advice() {
    for (condition, rule) in [
        (case().age(1_200_000_001), "xid-old"),
        (
            case().session("idle in transaction", 301.0),
            "idle-in-transaction",
        ),
    ] {
        let said = warnings(&condition.model).remove(0).advice;
        assert_eq!(Some(said), pgdyno_advice::recommended_by(rule), "{rule}");
    }
}

#[test]
fn ages() {
    case().age(1_200_000_000).says(None);
    case()
        .age(1_200_000_001)
        .says(Some("transaction ids of app are 1200 million old"));
}

#[test]
fn volume_of_the_wal() {
    let case = |free: f64| {
        case()
            .one(names::WAL_VOLUME, 100.0 * GB)
            .one(names::WAL_VOLUME_FREE, free * GB)
    };
    case(10.0).says(None);
    case(9.9).says(Some("9.9 GB of 100 GB left"));
    case(9.0)
        .one(names::WAL_BYTES, 90.0 * MB)
        .says(Some("1 min 42 s at the present rate"));
}

#[test]
fn page_tables_of_memory_and_of_buffers() {
    let case = |tables: f64, total: f64| {
        case()
            .one(names::PAGE_TABLES, tables * GB)
            .one(names::MEMORY_TOTAL, total * GB)
    };
    case(3.2, 32.0).says(None);
    case(3.3, 32.0).says(Some("page tables take 3.3 GB, 10 % of the memory"));
    case(4.0, 128.0).says(None);
    case(4.1, 128.0).says(Some("51 % of shared_buffers"));
    case(4.1, 256.0).says(None);
}

#[test]
fn swap() {
    let case = |before: f64, after: f64| {
        case()
            .one(names::SWAP_USED, before * MB)
            .one(names::SWAP_USED, after * MB)
    };
    case(900.0, 900.0).says(None);
    case(100.0, 116.0).says(None);
    case(100.0, 117.0).says(Some("grew by 17 MB"));
    case(117.0, 100.0).says(None);
    self::case()
        .each_minute()
        .one(names::SWAP_USED, 100.0 * MB)
        .one(names::SWAP_USED, 117.0 * MB)
        .says(Some("grew by 17 MB within 2 min 0 s"));
}

#[test]
fn waits_for_the_buffer_mapping() {
    let waits = |mapping: u32, others: u32| {
        case().waits(&[
            ("LWLock", "BufferMapping", mapping),
            ("CPU", "CPU", others),
            ("IO", "DataFileRead", 1),
        ])
    };
    waits(30, 10).says(Some("of 41 busy sessions wait for LWLock:BufferMapping"));
    // A quarter at most.
    waits(10, 40).says(None);
    // No more sessions than CPUs.
    waits(3, 0).says(None);
    waits(30, 10).cpus(None).says(None);
    waits(100, 40).cpus(None).says(Some("of 141 busy sessions"));
    case()
        .waits(&[("LWLock", "WALWrite", 30), ("LWLock", "BufferMapping", 20)])
        .says(None);
}

#[test]
fn sessions_idle_in_a_transaction() {
    case().session("idle in transaction", 300.0).says(None);
    case()
        .session("idle in transaction", 301.0)
        .says(Some("session 42 has been idle in a transaction of 5 min 1 s"));
    case().session("active", 3000.0).says(None);
}

#[test]
fn slots() {
    case().value(names::SLOT_RETAINED, "s", 2.0 * GB).says(None);
    case()
        .value(names::SLOT_RETAINED, "s", 2.1 * GB)
        .says(Some("the replication slot s keeps 2.1 GB"));
}

#[test]
fn checkpoints_by_request() {
    let case = |requested: f64, timed: f64, wal_gb: f64| {
        case()
            .one(names::CHECKPOINTS_REQUESTED, requested / 10.0)
            .one(names::CHECKPOINTS_TIMED, timed / 10.0)
            .one(names::WAL_BYTES, wal_gb * GB / 10.0)
    };
    case(2.0, 0.0, 9.0).says(None);
    case(3.0, 0.0, 9.0).says(Some(
        "about 3 checkpoints came because of the amount of WAL and 0 by time",
    ));
    case(4.0, 2.0, 9.0).says(None);
    case(5.0, 2.0, 9.0).says(Some("about 5 checkpoints"));
    // Somebody asked for these: the WAL would have brought one.
    case(32.0, 0.0, 0.25).says(None);
}

#[test]
fn dirty_pages_in_bursts() {
    let case = |low: f64, high: f64, total: f64| {
        case()
            .one(names::MEMORY_TOTAL, total * GB)
            .one(names::DIRTY, low * MB)
            .one(names::DIRTY, high * MB)
    };
    case(100.0, 612.0, 64.0).says(None);
    case(100.0, 613.0, 64.0).says(Some("between 100 MB and 613 MB"));
    case(800.0, 810.0, 64.0).says(None);
    case(0.0, 103.0, 1.0).says(Some("written in bursts"));
    self::case()
        .each_minute()
        .one(names::MEMORY_TOTAL, 64.0 * GB)
        .one(names::DIRTY, 0.0)
        .one(names::DIRTY, 613.0 * MB)
        .says(Some("between 0 B and 613 MB"));
}

#[test]
fn every_rule_has_a_source_that_the_book_lists() {
    let book = include_str!("../../../../docs/how-to/watch.md");
    for rule in &RULES {
        assert!(book.contains(&format!("[{}]", rule.source)), "{}", rule.source);
        assert!(!rule.advice.text().is_empty());
    }
}
