//! What a statement behind metrics is: a group of numbers that are asked together, and how it is
//! said.

use crate::version::Version;

/// Before this version counters come from a file that may be half a second old; the snapshot has
/// its own time.
const SHARED_SINCE: u32 = 15;

/// The server's clock as seconds, where the values are those of this instant.
const NOW: &str = "date_part('epoch', clock_timestamp())";
/// The server's clock as of a snapshot of its statistics.
const THEN: &str = "date_part('epoch', coalesce(pg_stat_get_snapshot_timestamp(), clock_timestamp()))";

/// The settings without which times are not counted.
pub(super) const IO_TIMING: &str = "track_io_timing";
/// The setting without which times of WAL are not counted.
pub(super) const WAL_TIMING: &str = "track_wal_io_timing";

/// How often a group is asked for its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// It is asked at every tick.
    Tick,
    /// With what is asked seldom, every so many times of it.
    Seldom(u64),
}

/// How a number becomes a value of its metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A state at this instant.
    Gauge,
    /// A counter; its growth per second is the value.
    Rate,
    /// A counter of time in ms, which is only counted while a setting is on.
    Timed,
    /// Sessions that this role may not see: with any of them the group has no values.
    Hidden,
}

/// One number of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Name of the metric, as in docs/reference/metrics-server.md.
    pub(super) metric: &'static str,
    /// Expression of the number, in SQL.
    pub(super) sql: &'static str,
    /// How the number becomes a value.
    pub(super) kind: Kind,
    /// First major version that has it.
    pub(super) since: u32,
    /// Last major version that has it.
    pub(super) until: u32,
}

/// The rows of a group that become values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emit {
    /// Each row under its label.
    Rows,
    /// The row of the connected database under its name, and the sum of all under "all".
    OwnAndAll,
}

/// A statement that is asked again and again, with the numbers of its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// Name of the view or function, for gaps.
    pub(super) source: &'static str,
    /// First major version that has the view.
    pub(super) since: u32,
    /// Last major version that has the view.
    pub(super) until: u32,
    /// How often it is asked for its values.
    pub(super) pace: Pace,
    /// Whether its numbers come from a snapshot of the statistics.
    pub(super) is_snapshot: bool,
    /// Expression of what identifies a row, in SQL.
    pub(super) key: &'static str,
    /// Expression of a row's label, in SQL.
    pub(super) label: &'static str,
    /// When its counters began, where that is reported.
    pub(super) reset: &'static str,
    /// Text of the statement behind its columns, from FROM on.
    pub(super) from: &'static str,
    /// The rows that become values.
    pub(super) emit: Emit,
    /// Whether a row that was not there before began to count at zero since.
    pub(super) is_new_from_zero: bool,
    /// Whether nothing is counted while track_counts is off.
    pub(super) needs_counts: bool,
    /// The reason that is given where another reset is reported.
    pub(super) reset_reason: &'static str,
    /// The reason that is given where there is no row.
    pub(super) empty_reason: &'static str,
    /// The reason that is given where a number is in no row.
    pub(super) null_reason: &'static str,
    /// The setting that the times need.
    pub(super) timing: &'static str,
    /// What a role without rights lacks, as a statement.
    pub(super) grant: &'static str,
    /// Numbers of each row, in the order of the answer.
    pub(super) columns: &'static [Column],
}

pub(super) const fn column(metric: &'static str, sql: &'static str, kind: Kind) -> Column {
    Column {
        metric,
        sql,
        kind,
        since: 0,
        until: u32::MAX,
    }
}

pub(super) const fn gauge(metric: &'static str, sql: &'static str) -> Column {
    column(metric, sql, Kind::Gauge)
}

pub(super) const fn rate(metric: &'static str, sql: &'static str) -> Column {
    column(metric, sql, Kind::Rate)
}

pub(super) const fn timed(metric: &'static str, sql: &'static str) -> Column {
    column(metric, sql, Kind::Timed)
}

impl Column {
    pub(super) const fn since(self, since: u32) -> Column {
        Column { since, ..self }
    }

    pub(super) const fn until(self, until: u32) -> Column {
        Column { until, ..self }
    }

    /// Whether this version reports it here.
    pub(super) fn is_in(&self, version: Version) -> bool {
        (self.since..=self.until).contains(&version.major)
    }
}

/// A group with the usual values of all fields.
pub(super) const GROUP: Group = Group {
    source: "",
    since: 0,
    until: u32::MAX,
    pace: Pace::Tick,
    is_snapshot: true,
    key: "''",
    label: "''",
    reset: "NULL",
    from: "",
    emit: Emit::Rows,
    is_new_from_zero: false,
    needs_counts: false,
    reset_reason: "the statistics were reset",
    empty_reason: "it has no rows",
    null_reason: "it is not available here",
    timing: IO_TIMING,
    grant: "pg_read_all_stats",
    columns: &[],
};

impl Group {
    /// Whether this version has it.
    pub(super) fn is_in(&self, version: Version) -> bool {
        (self.since..=self.until).contains(&version.major)
    }

    /// The numbers that this version reports here.
    pub(super) fn columns_in(&self, version: Version) -> Vec<Column> {
        self.columns
            .iter()
            .copied()
            .filter(|c| c.is_in(version))
            .collect()
    }

    /// The statement: the group's number, clock, key, label, reset, and the numbers as one array.
    /// All groups' statements give the same columns, so that they can be one statement too
    /// ([`super::table::together`]).
    pub(super) fn sql(&self, number: usize, version: Version) -> String {
        let clock = match self.is_snapshot && version.major < SHARED_SINCE {
            true => THEN,
            false => NOW,
        };
        let numbers: Vec<String> = self
            .columns_in(version)
            .iter()
            .map(|c| format!("({})::float8", c.sql))
            .collect();
        format!(
            "SELECT {number}, {clock}, ({})::text, ({})::text, ({})::float8, ARRAY[{}] {}",
            self.key,
            self.label,
            self.reset,
            numbers.join(", "),
            self.from
        )
    }
}
