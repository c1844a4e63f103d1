//! A load in which treatments take turns: which second counts for which trial, and what each trial
//! has measured.

use crate::distribution::distribution;
use crate::file::Slices;
use crate::measure::{few_transactions, heat_record};
use crate::measurement::Measurement;
use pgdyno_engine::{Books, Heat, LoadResult, Second, SecondFigures};
use pgdyno_record::{ColumnRecord, GapRecord, SecondRecord, SeriesRecord};
use pgdyno_stats::{WarmUp, coefficient_of_variation};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Seconds that are shorter than this are the rest of a load.
const WHOLE_S: f64 = 0.9;

/// What follows a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The load goes on as it is.
    GoOn,
    /// The settings of the trial of this number are to be applied; [`Turns::begin`] says when they
    /// are.
    Turn(usize),
    /// All turns are over.
    Over,
}

/// The turns of a load's trials.
pub(crate) struct Turns {
    slices: Slices,
    /// Numbers of the trials whose turns are to come, the present one first.
    coming: VecDeque<usize>,
    /// Seconds of the load so far.
    now_s: f64,
    /// From then on seconds count for the present trial.
    counts_from_s: f64,
    /// Seconds that the present turn still measures.
    left: u32,
    parts: Vec<Part>,
}

/// What one trial has of the load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    books: Option<Books>,
    heat: Heat,
    seconds: Vec<SecondFigures>,
    /// The begin of each of its seconds, from that of the load.
    begins_s: Vec<f64>,
}

impl Turns {
    /// `order` has a number of a trial, below `trials`, for each turn.
    pub(crate) fn new(slices: Slices, order: Vec<usize>, trials: usize) -> Turns {
        Turns {
            slices,
            coming: order.into(),
            now_s: 0.0,
            counts_from_s: 0.0,
            left: slices.measured_s,
            parts: vec![Part::default(); trials],
        }
    }

    /// The trial whose turn it is.
    pub(crate) fn present(&self) -> Option<usize> {
        self.coming.front().copied()
    }

    /// Whether a trial has no turn any more.
    pub(crate) fn is_over(&self, trial: usize) -> bool {
        !self.coming.contains(&trial)
    }

    /// Takes in the next second of the load: the trial that it counts for, and what follows it.
    pub(crate) fn second(&mut self, second: &Second) -> (Option<usize>, Next) {
        let begins_s = self.now_s;
        self.now_s += second.length_s;
        let Some(trial) = self.present() else {
            return (None, Next::Over);
        };
        if !second.measured || second.length_s < WHOLE_S || begins_s < self.counts_from_s {
            return (None, Next::GoOn);
        }
        self.parts[trial].add(second, begins_s);
        self.left -= 1;
        if self.left > 0 {
            return (Some(trial), Next::GoOn);
        }
        self.coming.pop_front();
        (Some(trial), self.next())
    }

    /// The present trial's settings are in force since then, in seconds from the load's begin.
    pub(crate) fn begin(&mut self, since_s: f64) {
        self.counts_from_s = since_s + self.slices.wash_out_s;
    }

    /// Takes the turns that a trial still has from it.
    pub(crate) fn end(&mut self, trial: usize) -> Next {
        self.coming.retain(|other| *other != trial);
        self.next()
    }

    /// Whether something of a trial is measured.
    pub(crate) fn has_begun(&self, trial: usize) -> bool {
        !self.parts[trial].seconds.is_empty()
    }

    /// Number of turns to come.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.coming.len()).unwrap_or(u32::MAX)
    }

    /// Seconds that all turns take, where each change takes so many.
    pub(crate) fn longest_s(&self, change_s: f64) -> f64 {
        f64::from(self.count()) * (self.slices.turn_s() + change_s)
    }

    /// What a trial has measured so far.
    pub(crate) fn part(&self, trial: usize) -> &Part {
        &self.parts[trial]
    }

    fn next(&mut self) -> Next {
        self.left = self.slices.measured_s;
        match self.present() {
            Some(next) => Next::Turn(next),
            None => Next::Over,
        }
    }
}

impl Part {
    fn add(&mut self, second: &Second, begins_s: f64) {
        match &mut self.books {
            Some(books) => books.add(&second.books),
            None => self.books = Some(second.books.clone()),
        }
        self.heat.add(second);
        self.seconds.push(second.figures());
        self.begins_s.push(begins_s);
    }

    /// As a measurement of its own, of its seconds one after the other; `whole` is that of the
    /// load, once it has ended.
    pub(crate) fn measurement(&self, whole: Option<&Measurement>) -> Measurement {
        let measured = self.books.clone().unwrap_or_else(Books::for_a_second);
        let tps: Vec<f64> = self.seconds.iter().map(SecondFigures::tps).collect();
        let beside = whole
            .map(|whole| whole.disturbances.join(", "))
            .filter(|beside| !beside.is_empty());
        Measurement {
            seconds: whole.map_or_else(Vec::new, |whole| self.seconds_of(whole)),
            series: whole.map_or_else(SeriesRecord::default, |whole| self.series_of(&whole.series)),
            cross_check: whole.and_then(|whole| whole.cross_check),
            unchecked: whole.and_then(|whole| whole.unchecked.clone()),
            warm_up: WarmUp::Unknown,
            settled: None,
            steadiness: None,
            stability_cv: coefficient_of_variation(&tps),
            server_cpu_us_per_tx: None,
            wal_bytes_per_tx: None,
            disturbances: beside
                .map(|beside| format!("in the whole load: {beside}"))
                .into_iter()
                .collect(),
            warnings: few_transactions(measured.committed).into_iter().collect(),
            is_disturbed: whole.is_some_and(|whole| whole.is_disturbed),
            load_hosts: Vec::new(),
            reported: None,
            latency_limit: whole.and_then(|whole| whole.latency_limit),
            statements: Vec::new(),
            distribution: distribution(&measured, &self.heat, 0),
            heat: heat_record(&self.heat),
            events: Vec::new(),
            figures: BTreeMap::new(),
            servers: Vec::new(),
            broken: whole.and_then(|whole| whole.broken.clone()),
            load: LoadResult {
                measured,
                measured_s: self.seconds.iter().map(|second| second.length_s).sum(),
                seconds: self.seconds.clone(),
                first_errors: whole.map_or_else(Vec::new, |whole| whole.load.first_errors.clone()),
                engine: whole.map_or_else(String::new, |whole| whole.load.engine.clone()),
                ..LoadResult::empty()
            },
        }
    }

    fn seconds_of(&self, whole: &Measurement) -> Vec<SecondRecord> {
        let mut end_s = 0.0;
        let own = self.seconds.iter().filter_map(|second| {
            end_s += second.length_s;
            let index = usize::try_from(second.number).ok()?.checked_sub(1)?;
            Some(SecondRecord {
                t_s: end_s,
                ..*whole.seconds.get(index)?
            })
        });
        own.collect()
    }

    /// The points of its seconds. A rate is of the second before it, which is its own but for the
    /// first of a turn.
    fn series_of(&self, whole: &SeriesRecord) -> SeriesRecord {
        let cut = |column: &ColumnRecord| {
            let is_rate = column.metric.ends_with("_per_s") || column.metric.ends_with("_ratio");
            let mut own = ColumnRecord {
                at_ms: Vec::new(),
                values: Vec::new(),
                ..column.clone()
            };
            for (at_ms, value) in column.at_ms.iter().zip(&column.values) {
                if let Some(own_ms) = self.own_ms(f64::from(*at_ms) / 1e3, is_rate) {
                    own.at_ms.push(own_ms);
                    own.values.push(*value);
                }
            }
            own
        };
        SeriesRecord {
            columns: whole.columns.iter().map(cut).collect(),
            gaps: whole.gaps.iter().filter_map(|gap| self.gap_of(gap)).collect(),
        }
    }

    fn gap_of(&self, gap: &GapRecord) -> Option<GapRecord> {
        let at_ms = self.own_ms(f64::from(gap.at_ms) / 1e3, false)?;
        Some(GapRecord { at_ms, ..gap.clone() })
    }

    /// An instant of the load in milliseconds of its own seconds.
    fn own_ms(&self, at_s: f64, is_rate: bool) -> Option<u32> {
        let index = self
            .begins_s
            .partition_point(|begin_s| *begin_s < at_s)
            .checked_sub(1)?;
        let begin_s = self.begins_s[index];
        let is_first = index == 0 || begin_s - self.begins_s[index - 1] > 1.5;
        if at_s > begin_s + self.seconds[index].length_s || is_rate && is_first {
            return None;
        }
        let before_s: f64 = self.seconds[..index].iter().map(|second| second.length_s).sum();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "milliseconds of a load"
        )]
        Some(((before_s + at_s - begin_s) * 1e3).round() as u32)
    }
}

/// A turn has so many transactions of a client, or more: the last one of each goes on in the turn
/// of another server.
pub const TRANSACTIONS_OF_TURN: f64 = 10.0;

/// What one of the servers that took turns of this length has measured, in the time that its
/// clients were in transactions, shared by these clients: what they would have needed for them one
/// after the other.
pub(crate) fn of_server(
    whole: &Measurement,
    server: usize,
    (slice, clients): (Duration, u32),
) -> Measurement {
    let share = whole.load.turns.get(server);
    let part = Part {
        books: share.map(|share| share.measured.clone()),
        ..Part::default()
    };
    let mut own = part.measurement(Some(whole));
    own.series = SeriesRecord::default();
    own.load.measured_s = share.map_or(0.0, |share| share.busy_s / f64::from(clients.max(1)));
    own.load.first_errors = share.map_or_else(Vec::new, |share| share.first_errors.clone());
    let lost = share.and_then(|share| share.lost.clone());
    let verdict = whole.servers.get(server);
    own.broken = match (lost, verdict) {
        (Some((reason, lost)), _) => Some(format!("{lost} of {clients} clients: {reason}")),
        (None, Some(verdict)) if verdict.has_restarted => {
            Some("the server restarted during the load".to_owned())
        }
        (None, Some(_)) => None,
        (None, None) => whole.broken.clone(),
    };
    if let Some(verdict) = verdict {
        own.unchecked.clone_from(&verdict.unchecked);
        own.cross_check = Some(verdict.cross_check).filter(|_| verdict.unchecked.is_none());
    }
    let mean_s = own.load.measured.mean_ms().unwrap_or(0.0) / 1e3;
    if mean_s * TRANSACTIONS_OF_TURN > slice.as_secs_f64() {
        own.warnings.push(format!(
            "a transaction takes {:.1} ms, and a turn {} ms: of turns of fewer than {TRANSACTIONS_OF_TURN} transactions, differences come out too \
             small; a longer slice_s has more",
            mean_s * 1e3,
            slice.as_millis()
        ));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::OfServer;
    use crate::sim::measurement;
    use pgdyno_engine::TurnShare;
    use pgdyno_record::CrossCheck;

    const SLICES: Slices = Slices {
        measured_s: 2,
        wash_out_s: 1.0,
        rounds: 2,
    };

    fn second(number: u32, committed: u64) -> Second {
        let mut books = Books::for_a_second();
        (books.all, books.committed) = (committed, committed);
        Second {
            number,
            length_s: 1.0,
            measured: number > 1,
            books,
            clients: 1,
        }
    }

    /// Two trials whose changes take half a second: what each second counts for, and what the
    /// trials have then.
    #[test]
    fn seconds_count_for_the_trial_whose_settings_are_in_force() {
        let mut turns = Turns::new(SLICES, vec![0, 1, 1, 0], 2);
        let mut changes = Vec::new();
        for number in 1..=30 {
            match turns.second(&second(number, 100 + u64::from(number))).1 {
                Next::GoOn => {}
                Next::Turn(trial) => {
                    changes.push((number, trial));
                    turns.begin(f64::from(number) + 0.5);
                }
                Next::Over => break,
            }
        }
        assert_eq!(changes, [(3, 1), (7, 1), (11, 0)]);
        assert_eq!(turns.part(0).begins_s, [1.0, 2.0, 13.0, 14.0]);
        assert_eq!(turns.part(1).begins_s, [5.0, 6.0, 9.0, 10.0]);
        let committed = |trial: usize| turns.part(trial).books.as_ref().map(|books| books.committed);
        assert_eq!(committed(0), Some(102 + 103 + 114 + 115));
        assert_eq!(committed(1), Some(106 + 107 + 110 + 111));
    }

    #[test]
    fn a_trial_that_ends_gives_its_turns_to_the_others() {
        let mut turns = Turns::new(SLICES, vec![0, 1, 2, 1, 0, 2], 3);
        assert_eq!(turns.end(0), Next::Turn(1));
        assert_eq!(turns.end(1), Next::Turn(2));
        assert!(turns.is_over(0) && !turns.is_over(2));
        assert_eq!(turns.end(2), Next::Over);
        assert_eq!(turns.second(&second(2, 1)), (None, Next::Over));
    }

    #[test]
    fn rates_are_of_the_seconds_of_their_turn_alone() {
        let part = Part {
            begins_s: vec![1.0, 2.0, 13.0, 14.0],
            seconds: (1..=4).map(|number| second(number, 1).figures()).collect(),
            ..Part::default()
        };
        let column = |metric: &str| ColumnRecord {
            metric: metric.to_owned(),
            label: String::new(),
            at_ms: vec![500, 1_900, 2_900, 8_000, 13_900, 14_900],
            values: vec![0.0, 1.0, 2.0, 8.0, 13.0, 14.0],
        };
        let cut = part.series_of(&SeriesRecord {
            columns: vec![column("sessions"), column("wal_bytes_per_s")],
            gaps: Vec::new(),
        });
        assert_eq!(cut.columns[0].values, [1.0, 2.0, 13.0, 14.0]);
        assert_eq!(cut.columns[0].at_ms, [900, 1_900, 2_900, 3_900]);
        assert_eq!(cut.columns[1].values, [2.0, 14.0]);
    }

    /// A server that has lost a client, and one whose count does not agree, are the only ones to
    /// blame for that.
    #[test]
    fn each_server_that_took_turns_has_its_own_time_and_its_own_trouble() {
        let mut whole = measurement(0.0, 1.0, 30.0);
        let share = |tps, lost: Option<&str>| TurnShare {
            measured: measurement(tps, 1.0, 10.0).load.measured,
            busy_s: 40.0,
            first_errors: Vec::new(),
            lost: lost.map(|reason| (reason.to_owned(), 1)),
        };
        whole.load.turns = vec![
            share(100.0, None),
            share(50.0, Some("it is gone")),
            share(80.0, None),
        ];
        whole.broken = Some("1 of 12 clients: it is gone".to_owned());
        let of = |agrees, has_restarted| OfServer {
            cross_check: CrossCheck {
                client: 1,
                server: 1,
                by_workers: 0,
                allowed_difference: 0,
                agrees,
            },
            unchecked: None,
            has_restarted,
        };
        whole.servers = vec![of(true, false), of(true, false), of(false, false)];
        let own = |whole: &Measurement, server| of_server(whole, server, (Duration::from_millis(50), 4));
        // A thousand transactions, for which four clients were busy for ten seconds.
        assert_eq!(own(&whole, 0).tps(), 100.0);
        let broken = [0, 1, 2].map(|server| own(&whole, server).broken);
        assert_eq!(
            broken,
            [None, Some("1 of 4 clients: it is gone".to_owned()), None]
        );
        let agrees = [0, 2].map(|server| own(&whole, server).cross_check.map(|check| check.agrees));
        assert_eq!(agrees, [Some(true), Some(false)]);
        whole.servers[0].has_restarted = true;
        assert!(own(&whole, 0).broken.is_some() && own(&whole, 2).broken.is_none());
        // Where they could not be asked after the load, nobody knows whose fault it was.
        whole.servers.clear();
        assert_eq!(own(&whole, 0).broken, whole.broken);
    }
}
