//! From what was read twice to values: rates over the interval between, and gaps where counters do
//! not go on. Asks nobody.

use super::group::{Column, Emit, Group, IO_TIMING, Kind, WAL_TIMING};
use pgdyno_host::series::{Key, Reading};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Statistics of versions before 15 may be older than the question by this (PGSTAT_STAT_INTERVAL),
/// and a round trip's two instants are no closer than this.
const STALE_S: f64 = 0.6;
const SLACK_S: f64 = 0.002;

/// A row of a group.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    pub(super) key: String,
    pub(super) label: String,
    /// When its counters began, in the server's seconds; `None` where that is not reported.
    pub(super) reset: Option<f64>,
    pub(super) numbers: Vec<Option<f64>>,
}

/// The rows of a group at one instant.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    /// Time by the server's clock, in seconds.
    pub(super) clock_s: f64,
    /// When the question went out, and
    pub(super) sent: Instant,
    /// when the answer was there.
    pub(super) received: Instant,
    pub(super) lines: Vec<Line>,
}

/// What holds for all groups of one tick.
#[derive(Debug, Clone, Default)]
pub(super) struct Circumstances {
    /// When the server started, in its seconds.
    pub(super) started_s: f64,
    pub(super) io_timing: bool,
    pub(super) wal_timing: bool,
    pub(super) counts: bool,
    pub(super) activities: bool,
    pub(super) database: String,
    pub(super) user: String,
}

/// Reasons that hold on are reported once.
#[derive(Debug, Default)]
pub(super) struct ReportedGaps(BTreeMap<String, String>);

impl ReportedGaps {
    /// Reports it, unless it was the last reason of this source.
    pub(super) fn once(&mut self, out: &mut Reading, source: &str, reason: &str) {
        self.once_of(source, out, source, reason);
    }

    /// The same, of what has a reason of its own beside others of the source.
    fn once_of(&mut self, what: &str, out: &mut Reading, source: &str, reason: &str) {
        if self.0.get(what).map(String::as_str) != Some(reason) {
            self.0.insert(what.to_owned(), reason.to_owned());
            out.gap(source, reason);
        }
    }

    /// It holds no longer.
    pub(super) fn over(&mut self, source: &str) {
        self.0.remove(source);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The seconds between two answers. The server's own clock is best, for an answer can wait for a
/// CPU; but it can be set, and then it leaves the bounds that the instants of questions and answers
/// draw.
pub(super) fn interval_s(before: &Taken, now: &Taken) -> f64 {
    let least = now.sent.saturating_duration_since(before.received).as_secs_f64();
    let most = now.received.saturating_duration_since(before.sent).as_secs_f64();
    let elapsed_s = now.clock_s - before.clock_s;
    if elapsed_s > 0.0 && elapsed_s >= least - STALE_S - SLACK_S && elapsed_s <= most + STALE_S + SLACK_S {
        elapsed_s
    } else {
        now.received
            .saturating_duration_since(before.received)
            .as_secs_f64()
    }
}

/// The shortest interval that makes a rate.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// One group's part of a reading.
pub(super) struct Part<'a> {
    pub(super) group: &'a Group,
    pub(super) columns: &'a [Column],
    pub(super) before: Option<&'a Taken>,
    pub(super) now: &'a Taken,
    pub(super) circumstances: &'a Circumstances,
}

impl Part<'_> {
    /// Adds its values and gaps.
    pub(super) fn add_to(&self, out: &mut Reading, reported: &mut ReportedGaps) {
        if self.is_hidden(out, reported) {
            return;
        }
        self.report_absent(out, reported);
        let interval_s = self
            .before
            .map(|before| interval_s(before, self.now))
            .filter(|s| *s >= INTERVAL_MIN.as_secs_f64());
        let known: BTreeMap<&str, &Line> = self
            .before
            .iter()
            .flat_map(|before| before.lines.iter().map(|line| (line.key.as_str(), line)))
            .collect();
        match self.group.emit {
            Emit::Rows => {
                for line in &self.now.lines {
                    self.add_line(line, &line.label, interval_s, &known, out, reported);
                }
            }
            Emit::OwnAndAll => {
                let own = &self.circumstances.database;
                for line in self.now.lines.iter().filter(|line| line.label == *own) {
                    self.add_line(line, own, interval_s, &known, out, reported);
                }
                self.add_sums(interval_s, &known, out, reported);
            }
        }
    }

    /// No rows, or a number in none of them: reported once, and again when it was there meanwhile.
    fn report_absent(&self, out: &mut Reading, reported: &mut ReportedGaps) {
        let lines = &self.now.lines;
        if lines.is_empty() {
            return reported.once(out, self.group.source, self.group.empty_reason);
        }
        for (at, column) in self.columns.iter().enumerate() {
            let source = named(self.group.source, column.metric);
            let is_absent = lines
                .iter()
                .all(|line| line.numbers.get(at).copied().flatten().is_none());
            match is_absent {
                true => reported.once(out, &source, self.group.null_reason),
                // A setting may be what is missing from it.
                false if !matches!(column.kind, Kind::Rate | Kind::Timed) => reported.over(&source),
                false => {}
            }
        }
    }

    /// Rows that this role may not see make every number of the group wrong: there are none then.
    fn is_hidden(&self, out: &mut Reading, reported: &mut ReportedGaps) -> bool {
        for (at, column) in self.columns.iter().enumerate() {
            if column.kind != Kind::Hidden {
                continue;
            }
            let hidden: f64 = self
                .now
                .lines
                .iter()
                .filter_map(|line| *line.numbers.get(at)?)
                .sum();
            if hidden > 0.0 {
                let reason = hidden_reason(column.metric, self.group.grant, &self.circumstances.user);
                reported.once(out, self.group.source, &reason);
                return true;
            }
            reported.over(self.group.source);
        }
        false
    }

    fn add_line(
        &self,
        line: &Line,
        label: &str,
        interval_s: Option<f64>,
        known: &BTreeMap<&str, &Line>,
        out: &mut Reading,
        reported: &mut ReportedGaps,
    ) {
        let before = known.get(line.key.as_str()).copied();
        let was_reset = before.is_some_and(|before| before.reset != line.reset);
        if was_reset {
            out.gap(&named(self.group.source, label), self.group.reset_reason);
        }
        for (at, column) in self.columns.iter().enumerate() {
            let Some(Some(now)) = line.numbers.get(at).copied() else {
                continue;
            };
            if column.kind == Kind::Gauge {
                out.push(Key::of(column.metric, label), now);
            }
            if !matches!(column.kind, Kind::Rate | Kind::Timed) || was_reset {
                continue;
            }
            let Some(interval_s) = interval_s else { continue };
            match self.growth(before, at, now) {
                Some(growth) if growth < 0.0 => {
                    out.gap(&named(column.metric, label), "the counter went backwards");
                }
                Some(growth) if self.is_counted(column, label, growth, out, reported) => {
                    out.push(Key::of(column.metric, label), growth / interval_s);
                }
                _ => {}
            }
        }
    }

    /// The growth of a number of a row; `None` where the row is new and did not begin at zero.
    fn growth(&self, before: Option<&Line>, at: usize, now: f64) -> Option<f64> {
        match before {
            Some(before) => Some(now - before.numbers.get(at).copied().flatten()?),
            None => self.group.is_new_from_zero.then_some(now),
        }
    }

    /// All rows together, as sums of each one's own growth: a row that goes takes nothing away.
    fn add_sums(
        &self,
        interval_s: Option<f64>,
        known: &BTreeMap<&str, &Line>,
        out: &mut Reading,
        reported: &mut ReportedGaps,
    ) {
        const ALL: &str = "all";
        let reset = self.now.lines.iter().find(|line| {
            let before = known.get(line.key.as_str());
            before.is_some_and(|before| before.reset != line.reset)
        });
        if let Some(line) = reset {
            let whose = format!("{} (of {})", self.group.reset_reason, line.label);
            out.gap(&named(self.group.source, ALL), whose);
        }
        for (at, column) in self.columns.iter().enumerate() {
            let numbers = self
                .now
                .lines
                .iter()
                .filter_map(|line| Some((line, (*line.numbers.get(at)?)?)));
            if column.kind == Kind::Gauge {
                out.push(Key::of(column.metric, ALL), numbers.map(|(_, now)| now).sum());
                continue;
            }
            let (Some(interval_s), None) = (interval_s, reset) else {
                continue;
            };
            let growths: Option<Vec<f64>> = numbers
                .filter_map(|(line, now)| self.growth(known.get(line.key.as_str()).copied(), at, now))
                .map(|growth| (growth >= 0.0).then_some(growth))
                .collect();
            match growths {
                None => out.gap(&named(column.metric, ALL), "a counter went backwards"),
                Some(growths) => {
                    let growth: f64 = growths.iter().sum();
                    if self.is_counted(column, ALL, growth, out, reported) {
                        out.push(Key::of(column.metric, ALL), growth / interval_s);
                    }
                }
            }
        }
    }

    /// Whether no growth means that nothing happened. What a session of its own counts is reported
    /// all the same.
    fn is_counted(
        &self,
        column: &Column,
        label: &str,
        growth: f64,
        out: &mut Reading,
        reported: &mut ReportedGaps,
    ) -> bool {
        let missing = match (column.kind, self.group.needs_counts) {
            (Kind::Timed, _) if !self.is_timed(label) => self.timing(label),
            (_, true) if !self.circumstances.counts => "track_counts",
            _ => return true,
        };
        let source = named(self.group.source, column.metric);
        if growth > 0.0 {
            return true;
        }
        // Rows of a group can want different settings.
        reported.once_of(
            &named(&source, missing),
            out,
            &source,
            &format!("{missing} is off"),
        );
        false
    }

    fn is_timed(&self, label: &str) -> bool {
        match self.timing(label) {
            WAL_TIMING => self.circumstances.wal_timing,
            _ => self.circumstances.io_timing,
        }
    }

    fn timing(&self, label: &str) -> &'static str {
        match (self.group.timing, label.contains("/wal/")) {
            (WAL_TIMING, _) | (_, true) => WAL_TIMING,
            _ => IO_TIMING,
        }
    }
}

/// What is not seen, and what would show it.
pub(super) fn hidden_reason(what: &str, grant: &str, user: &str) -> String {
    format!("{what} of other roles are hidden; {}", grant_hint(grant, user))
}

/// The statement that gives a right.
pub(super) fn grant_hint(grant: &str, user: &str) -> String {
    format!("GRANT {grant} TO \"{}\"", user.replace('"', "\"\""))
}

fn named(source: &str, label: &str) -> String {
    match label {
        "" => source.to_owned(),
        label => format!("{source} {label}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::group::Column;
    use super::super::table::GROUPS;
    use super::*;
    use crate::version::Version;

    fn group(source: &str) -> (&'static Group, Vec<Column>) {
        let group = GROUPS
            .iter()
            .find(|group| group.source == source)
            .expect("a group");
        (group, group.columns_in(Version::from_number(180_000)))
    }

    /// A reading of rows (key, label, reset, first numbers; the rest are 0), at so many seconds of
    /// the server.
    fn taken(start: Instant, clock_s: f64, columns: usize, rows: &[(&str, &str, f64, &[f64])]) -> Taken {
        let at = start + Duration::from_secs_f64(clock_s);
        let lines = rows.iter().map(|(key, label, reset, numbers)| Line {
            key: (*key).to_owned(),
            label: (*label).to_owned(),
            reset: Some(*reset),
            numbers: (0..columns)
                .map(|at| Some(numbers.get(at).copied().unwrap_or(0.0)))
                .collect(),
        });
        Taken {
            clock_s,
            sent: at,
            received: at,
            lines: lines.collect(),
        }
    }

    type Rows<'a> = &'a [(&'a str, &'a str, f64, &'a [f64])];

    fn reading(source: &str, circumstances: &Circumstances, before: Rows<'_>, now: Rows<'_>) -> Reading {
        let start = Instant::now();
        let (group, columns) = group(source);
        let before = taken(start, 10.0, columns.len(), before);
        let now = taken(start, 12.0, columns.len(), now);
        let mut out = Reading::new(now.received, Some(before.received));
        let part = Part {
            group,
            columns: &columns,
            before: Some(&before),
            now: &now,
            circumstances,
        };
        part.add_to(&mut out, &mut ReportedGaps::default());
        out
    }

    fn on() -> Circumstances {
        Circumstances {
            io_timing: true,
            wal_timing: true,
            counts: true,
            activities: true,
            database: "own".into(),
            ..Circumstances::default()
        }
    }

    fn value(reading: &Reading, metric: &'static str, label: &str) -> Option<f64> {
        let key = Key::of(metric, label);
        reading
            .values
            .iter()
            .find(|(other, _)| *other == key)
            .map(|(_, value)| *value)
    }

    #[test]
    fn databases_that_come_and_go_leave_the_sum_right() {
        // The first numbers are connections and commits.
        let before: Rows<'_> = &[
            ("1", "own", 1.0, &[3.0, 100.0]),
            ("2", "gone", 1.0, &[1.0, 5000.0]),
        ];
        let now: Rows<'_> = &[("1", "own", 1.0, &[4.0, 140.0]), ("3", "new", 1.0, &[2.0, 20.0])];
        let out = reading("pg_stat_database", &on(), before, now);
        assert_eq!(value(&out, "db.commits_per_s", "own"), Some(20.0));
        assert_eq!(value(&out, "db.commits_per_s", "all"), Some(30.0));
        assert_eq!(value(&out, "db.connections", "all"), Some(6.0));
        assert_eq!(out.gaps, []);
    }

    #[test]
    fn a_reset_and_a_step_back_are_gaps() {
        let before: Rows<'_> = &[
            ("1", "own", 1.0, &[3.0, 100.0]),
            ("2", "other", 1.0, &[1.0, 10.0]),
        ];
        let reset: Rows<'_> = &[
            ("1", "own", 1.0, &[3.0, 104.0]),
            ("2", "other", 2.0, &[1.0, 90.0]),
        ];
        let out = reading("pg_stat_database", &on(), before, reset);
        assert_eq!(value(&out, "db.commits_per_s", "own"), Some(2.0));
        assert_eq!(value(&out, "db.commits_per_s", "all"), None);
        assert!(out.gaps[0].reason.contains("other"), "{:?}", out.gaps);
        let back: Rows<'_> = &[("1", "own", 1.0, &[3.0, 99.0]), ("2", "other", 1.0, &[1.0, 90.0])];
        let out = reading("pg_stat_database", &on(), before, back);
        for label in ["own", "all"] {
            assert_eq!(value(&out, "db.commits_per_s", label), None, "{label}");
            assert!(
                out.gaps
                    .iter()
                    .any(|gap| gap.source == format!("db.commits_per_s {label}"))
            );
        }
    }

    #[test]
    fn what_is_not_counted_is_not_zero() {
        let rows: Rows<'_> = &[("1", "own", 1.0, &[3.0, 100.0])];
        let off = Circumstances {
            io_timing: false,
            counts: true,
            database: "own".into(),
            ..Circumstances::default()
        };
        let out = reading("pg_stat_database", &off, rows, rows);
        assert_eq!(value(&out, "db.read_ms_per_s", "own"), None);
        assert_eq!(value(&out, "db.commits_per_s", "own"), Some(0.0));
        assert!(
            out.gaps.iter().any(|gap| gap.reason == "track_io_timing is off"),
            "{:?}",
            out.gaps
        );
        let out = reading(
            "pg_stat_database",
            &Circumstances { counts: false, ..off },
            rows,
            rows,
        );
        assert_eq!(value(&out, "db.commits_per_s", "own"), None);
    }

    #[test]
    fn a_part_is_not_taken_for_the_whole() {
        let rows: Rows<'_> = &[("", "", 0.0, &[2.0, 7.0])];
        let out = reading("pg_stat_get_activity", &on(), rows, rows);
        assert_eq!(out.values, []);
        assert!(
            out.gaps[0].reason.contains("GRANT pg_read_all_stats"),
            "{:?}",
            out.gaps
        );
    }

    #[test]
    fn a_clock_that_was_set_is_not_believed() {
        let start = Instant::now();
        let check = |now_s: f64, clock_s: f64, expected: f64| {
            let before = taken(start, 10.0, 0, &[]);
            let mut now = taken(start, now_s, 0, &[]);
            now.clock_s = clock_s;
            let found = interval_s(&before, &now);
            assert!((found - expected).abs() < 1e-6, "{now_s} {clock_s}: {found}");
        };
        check(11.0, 11.0, 1.0);
        check(11.0, 10.97, 0.97);
        check(11.0, 3610.0, 1.0);
        check(11.0, 9.0, 1.0);
    }

    #[test]
    fn every_metric_is_documented() {
        let text = include_str!("../../../../docs/reference/metrics-server.md");
        for (metric, source) in super::super::metrics() {
            assert!(text.contains(&format!("`{metric}`")), "{metric}");
            assert!(text.contains(&format!("## {source}\n")), "{source}");
        }
    }
}
