//! The view of a target on another host: what is read there travels, and is drawn here. Instants
//! travel as ages, for the two hosts have no common clock; what arrives is checked, for a host may
//! send anything.

use super::keys::{INTERVAL_MAX, INTERVAL_MIN, Panel};
use super::model::{About, Link, Model, Rows, Update};
use super::source::{Source, SourceEnded, UPDATES_MAX};
use pgdyno_host::FunctionRow;
use pgdyno_host::series::{Gap, Key, Reading};
use pgdyno_server::series::{AgeRow, SessionRow, StatementRow, VacuumRow, WaitKey, WaitSample};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

/// Nothing that travels is older: a host may have slept for days.
const AGE_MAX_S: f64 = 1e6;
/// Values, gaps and rows that one update may have: sessions are the most.
const LISTED_MAX: usize = 10_000;
/// Length of what travels at once: all sessions with their statements.
const TEXT_MAX: usize = 32 << 20;

/// An update on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Sent {
    Reading {
        age_s: f64,
        /// Length of the time that its rates are of.
        length_s: Option<f64>,
        values: Vec<(Key, f64)>,
        gaps: Vec<Gap>,
    },
    Waits {
        age_s: f64,
        counts: Vec<(WaitKey, u32)>,
        gap: Option<Gap>,
    },
    Sessions(Rows<SessionRow>),
    Statements(Rows<StatementRow>),
    Vacuums(Rows<VacuumRow>),
    Ages(Rows<AgeRow>),
    Functions(Rows<FunctionRow>),
    About(About),
    Interval {
        s: f64,
    },
    Connecting,
    Up,
    Down {
        age_s: f64,
        why: String,
    },
}

/// What is to be read: how often, and of what most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    interval_ms: u64,
    /// Number of the panel in sight.
    panel: usize,
}

impl Order {
    fn of((interval, panel): (Duration, Panel)) -> Order {
        Order {
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            panel: panel.number(),
        }
    }

    fn checked(self) -> Result<(Duration, Panel), String> {
        let interval = Duration::from_millis(self.interval_ms);
        let panel = Panel::ALL.get(self.panel);
        match (panel, (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval)) {
            (Some(panel), true) => Ok((interval, *panel)),
            (None, _) => Err(format!("there is no panel {}", self.panel)),
            (_, false) => Err(format!("readings every {} ms", self.interval_ms)),
        }
    }
}

impl Sent {
    fn of(update: Update, now: Instant) -> Sent {
        let age_s = |at: Instant| now.saturating_duration_since(at).as_secs_f64();
        match update {
            Update::Reading(reading) => Sent::Reading {
                age_s: age_s(reading.at),
                length_s: reading.interval().map(|length| length.as_secs_f64()),
                // JSON has no other numbers.
                values: reading
                    .values
                    .into_iter()
                    .filter(|(_, value)| value.is_finite())
                    .collect(),
                gaps: reading.gaps,
            },
            Update::Waits(sample) => Sent::Waits {
                age_s: age_s(sample.at),
                counts: sample.counts,
                gap: sample.gap,
            },
            Update::Sessions(rows) => Sent::Sessions(rows),
            Update::Statements(rows) => Sent::Statements(rows.map(finite)),
            Update::Vacuums(rows) => Sent::Vacuums(rows),
            Update::Ages(rows) => Sent::Ages(rows),
            Update::Functions(rows) => Sent::Functions(rows),
            Update::About(about) => Sent::About(about),
            Update::Interval(interval) => Sent::Interval {
                s: interval.as_secs_f64(),
            },
            Update::Link(Link::Connecting) => Sent::Connecting,
            Update::Link(Link::Up) => Sent::Up,
            Update::Link(Link::Down(since, why)) => Sent::Down {
                age_s: age_s(since),
                why,
            },
        }
    }

    /// What was sent, as it is here and now.
    fn update(self, now: Instant) -> Result<Update, String> {
        let span = |s: f64| match (0.0..=AGE_MAX_S).contains(&s) {
            true => Ok(Duration::from_secs_f64(s)),
            false => Err(format!("a time of {s} s")),
        };
        let before = |at: Instant, s: f64| span(s).map(|span| at.checked_sub(span).unwrap_or(at));
        Ok(match self {
            Sent::Reading {
                age_s,
                length_s,
                values,
                gaps,
            } => {
                at_most(values.len().max(gaps.len()))?;
                let at = before(now, age_s)?;
                let since = length_s.map(|length_s| before(at, length_s)).transpose()?;
                Update::Reading(Reading {
                    at,
                    since,
                    values,
                    gaps,
                })
            }
            Sent::Waits { age_s, counts, gap } => {
                at_most(counts.len())?;
                let at = before(now, age_s)?;
                Update::Waits(WaitSample { at, counts, gap })
            }
            Sent::Sessions(rows) => Update::Sessions(few(rows)?),
            Sent::Statements(rows) => Update::Statements(few(rows)?),
            Sent::Vacuums(rows) => Update::Vacuums(few(rows)?),
            Sent::Ages(rows) => Update::Ages(few(rows)?),
            Sent::Functions(rows) => Update::Functions(few(rows)?),
            Sent::About(about) => {
                at_most(about.disks.len())?;
                Update::About(about)
            }
            Sent::Interval { s } => Update::Interval(span(s)?.min(INTERVAL_MAX)),
            Sent::Connecting => Update::Link(Link::Connecting),
            Sent::Up => Update::Link(Link::Up),
            Sent::Down { age_s, why } => Update::Link(Link::Down(before(now, age_s)?, why)),
        })
    }
}

/// Statements whose figures are numbers: JSON has no others. All rates are of one interval, so
/// where one is a number, all are.
fn finite(rows: Vec<StatementRow>) -> Vec<StatementRow> {
    let is_finite = |row: &StatementRow| row.mean_ms.is_finite() && row.calls_per_s.is_finite();
    rows.into_iter().filter(is_finite).collect()
}

fn at_most(length: usize) -> Result<(), String> {
    match length <= LISTED_MAX {
        true => Ok(()),
        false => Err("longer lists than a look has".to_owned()),
    }
}

fn few<T>(rows: Rows<T>) -> Result<Rows<T>, String> {
    at_most(rows.as_ref().map_or(0, Vec::len))?;
    Ok(rows)
}

/// The end of a [`Source`] that is read on another host.
pub struct Relay {
    updates: SyncSender<Update>,
    orders: Receiver<(Duration, Panel)>,
    order: Order,
    /// Name of the host.
    host: String,
}

impl Source {
    /// A source that is read on a host of this name, every `interval`, and what hands on here what
    /// comes from there.
    pub fn elsewhere(interval: Duration, host: String) -> (Source, Relay) {
        let (source, updates, orders) = Source::of_channels();
        let relay = Relay {
            updates,
            orders,
            order: Order::of((interval, Panel::Overview)),
            host,
        };
        (source, relay)
    }

    /// Waits so long for the first update, and takes it into the model; whether there was one.
    pub fn begin(&self, model: &mut Model, patience: Duration) -> bool {
        let first = self.wait(patience);
        first.map(|update| model.apply(update, Instant::now())).is_some()
    }

    /// What was read within `patience`, to be sent to the host that shows it.
    ///
    /// # Errors
    ///
    /// [`SourceEnded`].
    pub fn to_send(&self, patience: Duration) -> Result<String, SourceEnded> {
        let begun = Instant::now();
        let mut updates = Vec::new();
        while let Some(left) = patience.checked_sub(begun.elapsed())
            && updates.len() < UPDATES_MAX
        {
            updates.extend(self.wait_for(left)?);
        }
        let now = Instant::now();
        let sent: Vec<Sent> = updates.into_iter().map(|update| Sent::of(update, now)).collect();
        // There is nothing in it that JSON does not have.
        Ok(serde_json::to_string(&sent).unwrap_or_default())
    }

    /// Does what that host asks for.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn take_order(&self, order: &str) -> Result<(), String> {
        let order: Order = serde_json::from_str(order).map_err(|error| error.to_string())?;
        let (interval, panel) = order.checked()?;
        self.ask(interval, panel);
        Ok(())
    }
}

impl Relay {
    /// Takes what was sent, and says what is to be read from now on.
    ///
    /// # Errors
    ///
    /// What is wrong with what was sent.
    pub fn take(&mut self, sent: &str) -> Result<String, String> {
        if sent.len() > TEXT_MAX {
            return Err(format!("{} bytes at once", sent.len()));
        }
        let sent: Vec<Sent> = serde_json::from_str(sent).map_err(|error| error.to_string())?;
        let now = Instant::now();
        let updates: Result<Vec<Update>, String> = sent.into_iter().map(|sent| sent.update(now)).collect();
        for mut update in updates? {
            if let Update::About(about) = &mut update {
                about.target = format!("{} on {}", about.target, self.host);
            }
            // Nobody looks any more at the end, or while the terminal takes nothing.
            let _ = self.updates.try_send(update);
        }
        if let Some(order) = self.orders.try_iter().last() {
            self.order = Order::of(order);
        }
        serde_json::to_string(&self.order).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn updates(now: Instant) -> Vec<Update> {
        let before = |s: u64| now.checked_sub(Duration::from_secs(s)).unwrap();
        let mut reading = Reading::new(before(1), Some(before(3)));
        reading.push(Key::of("db.commits_per_s", "all"), 7.5);
        reading.push(Key::one("memory.dirty_bytes"), f64::NAN);
        reading.gap("pg_stat_wal", "refused");
        let key = WaitKey {
            class: "client backend".into(),
            kind: "IO".into(),
            event: "DataFileRead".into(),
            query_id: Some(-5),
        };
        let age = AgeRow {
            database: "app".into(),
            xid_age: 7,
            multixact_age: 0,
            freeze_max_age: 200_000_000,
            multixact_freeze_max_age: 400_000_000,
        };
        let about = About {
            target: "sandbox:main".into(),
            cpus: Some(4),
            disks: vec![("vda".into(), "data".into())],
            ..About::default()
        };
        vec![
            Update::About(about),
            Update::Interval(Duration::from_millis(100)),
            Update::Reading(reading),
            Update::Waits(WaitSample {
                at: before(2),
                counts: vec![(key, 3)],
                gap: None,
            }),
            Update::Ages(Ok(vec![age])),
            Update::Functions(Ok(vec![FunctionRow {
                function: "hash_search".into(),
                file: "postgres".into(),
                cpus: 0.25,
            }])),
            Update::Sessions(Err("refused".into())),
            Update::Link(Link::Down(before(5), "Connection refused".into())),
            Update::Link(Link::Up),
        ]
    }

    #[test]
    fn what_is_read_there_is_shown_here() {
        let (there, reader, orders) = Source::of_channels();
        let (here, mut relay) = Source::elsewhere(Duration::from_secs(1), "ssh:db1".into());
        let now = Instant::now();
        for update in updates(now) {
            reader.send(update).unwrap();
        }
        let sent = there.to_send(Duration::from_millis(20)).unwrap();
        here.ask(Duration::from_secs(5), Panel::Vacuum);
        let order = relay.take(&sent).unwrap();
        there.take_order(&order).unwrap();
        assert_eq!(orders.try_recv(), Ok((Duration::from_secs(5), Panel::Vacuum)));
        let mut arrived = Vec::new();
        while let Some(update) = here.next() {
            arrived.push(update);
        }
        assert_eq!(arrived.len(), updates(now).len());
        let (Update::About(about), Update::Reading(reading)) = (&arrived[0], &arrived[2]) else {
            panic!("{arrived:?}");
        };
        assert_eq!(about.target, "sandbox:main on ssh:db1");
        assert_eq!((about.cpus, about.disks.len()), (Some(4), 1));
        assert_eq!(reading.values, [(Key::of("db.commits_per_s", "all"), 7.5)]);
        assert_eq!(reading.interval().map(|length| length.as_secs()), Some(2));
        assert!(reading.at <= Instant::now().checked_sub(Duration::from_secs(1)).unwrap());
        assert!(matches!(&arrived[6], Update::Sessions(Err(why)) if why == "refused"));
    }

    #[test]
    fn what_no_view_sends_is_refused() {
        let (there, _reader, _orders) = Source::of_channels();
        for order in [
            json!(7),
            json!({ "interval_ms": 0, "panel": 1 }),
            json!({ "interval_ms": 1000, "panel": 99 }),
            json!({ "interval_ms": 1000, "panel": 1, "more": 1 }),
        ] {
            assert!(there.take_order(&order.to_string()).is_err(), "{order}");
        }
        let (_here, mut relay) = Source::elsewhere(Duration::from_secs(1), "ssh:db1".into());
        for sent in [
            json!("up"),
            json!(["sideways"]),
            json!([{ "interval": { "s": -1.0 } }]),
            json!([{ "down": { "age_s": 1e300, "why": "x" } }]),
            json!([{ "reading": { "age_s": 0.0, "length_s": -1.0, "values": [], "gaps": [] } }]),
            json!([{ "waits": { "age_s": 0.0, "counts": [], "gap": null, "more": 1 } }]),
        ] {
            assert!(relay.take(&sent.to_string()).is_err(), "{sent}");
        }
        let many = vec![json!([{ "metric": "a", "label": "" }, 1.0]); LISTED_MAX + 1];
        let reading = json!([{ "reading": { "age_s": 0.0, "length_s": null, "values": many, "gaps": [] } }]);
        assert!(relay.take(&reading.to_string()).is_err());
    }

    #[test]
    fn more_than_a_view_takes_in_is_dropped_and_counts_do_not_overflow() {
        let (here, mut relay) = Source::elsewhere(Duration::from_secs(1), "ssh:db1".into());
        let wait = json!([{ "class": "a", "kind": "IO", "event": "b", "query_id": null }, u32::MAX]);
        let sent = json!([{ "waits": { "age_s": 0.0, "counts": [wait, wait], "gap": null } }]).to_string();
        let mut model = Model::new(Instant::now());
        for _ in 0..2 * UPDATES_MAX {
            relay.take("[\"up\"]").unwrap();
        }
        let mut shown = 0;
        while here.begin(&mut model, Duration::ZERO) {
            shown += 1;
        }
        assert_eq!(shown, UPDATES_MAX);
        relay.take(&sent).unwrap();
        assert!(here.begin(&mut model, Duration::ZERO));
    }
}
