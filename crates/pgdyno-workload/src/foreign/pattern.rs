//! A pattern: a regular expression whose named groups are figures of a program's line.

use regex_lite::{Regex, RegexBuilder};

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1000;
/// What a compiled one may take, in bytes: a hundred times what those of the catalogue do.
const COMPILED_BYTES_MAX: usize = 256 * 1024;
/// Nested groups and repetitions in one.
const NESTING_MAX: u32 = 50;

/// The figure that a group of a pattern reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field {
    /// Seconds since the program's start.
    Time,
    /// Transactions per second.
    Tps,
    /// Transactions per minute.
    Tpm,
    /// New orders per minute.
    Nopm,
    /// How long the program counted, in seconds.
    Length,
    /// Number of transactions of the run.
    Transactions,
    /// Number of failed transactions, of the run or of the second.
    Failed,
    /// Failed transactions per second.
    FailedPerS,
    /// The percentile that [`Stat::Percentile`] is of: 95.
    Percent,
    /// A response time; its number is multiplied by this to be milliseconds.
    Latency(Stat, f64),
}

/// The statistic that a response time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stat {
    Mean,
    P50,
    P95,
    P99,
    Max,
    /// The percentile that the group `percent` names.
    Percentile,
}

/// Names of groups, for a message.
const GROUPS: &str = "t_s, tps, tpm, nopm, time_s, transactions, failed, failed_per_s, percent, and with _us, _ms or _s behind \
     them mean, p50, p95, p99, max, percentile";

impl Field {
    fn named(name: &str) -> Option<Field> {
        Some(match name {
            "t_s" => Field::Time,
            "tps" => Field::Tps,
            "tpm" => Field::Tpm,
            "nopm" => Field::Nopm,
            "time_s" => Field::Length,
            "transactions" => Field::Transactions,
            "failed" => Field::Failed,
            "failed_per_s" => Field::FailedPerS,
            "percent" => Field::Percent,
            _ => {
                let (stat, unit) = name.rsplit_once('_')?;
                let stat = match stat {
                    "mean" => Stat::Mean,
                    "p50" => Stat::P50,
                    "p95" => Stat::P95,
                    "p99" => Stat::P99,
                    "max" => Stat::Max,
                    "percentile" => Stat::Percentile,
                    _ => return None,
                };
                let to_ms = match unit {
                    "us" => 0.001,
                    "ms" => 1.0,
                    "s" => 1000.0,
                    _ => return None,
                };
                Field::Latency(stat, to_ms)
            }
        })
    }
}

/// A pattern and what its groups are.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    /// Index of each named group.
    fields: Vec<(usize, Field)>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Pattern {
    /// One whose groups are figures of a load. Errors say what is wrong with it.
    pub(super) fn of_figures(text: &str) -> Result<Pattern, String> {
        let regex = compile(text)?;
        let named = regex.capture_names().enumerate();
        let named = named.filter_map(|(index, name)| name.map(|name| (index, name)));
        let fields: Result<Vec<_>, String> = named
            .map(|(index, name)| match Field::named(name) {
                Some(field) => Ok((index, field)),
                None => Err(format!("its group {name} is unknown: known are {GROUPS}")),
            })
            .collect();
        let fields = fields?;
        let has = |wanted: Field| fields.iter().any(|&(_, field)| field == wanted);
        let has_percentile = fields
            .iter()
            .any(|(_, field)| matches!(field, Field::Latency(Stat::Percentile, _)));
        if has_percentile != has(Field::Percent) {
            return Err("its groups percentile and percent belong together".into());
        }
        match fields.is_empty() {
            true => Err("it has no named group, as (?<tps>…), and so takes no figure".into()),
            false => Ok(Pattern { regex, fields }),
        }
    }

    pub(super) fn has_latency(&self, wanted: Stat) -> bool {
        let is_it = |field: Field| matches!(field, Field::Latency(stat, _) if stat == wanted);
        self.fields.iter().any(|&(_, field)| is_it(field))
    }

    pub(super) fn has(&self, wanted: Field) -> bool {
        self.fields.iter().any(|&(_, field)| field == wanted)
    }

    /// The figures of a line, where it matches; what is not a number, or a negative one, is
    /// skipped.
    pub(super) fn read(&self, line: &str) -> Option<Vec<(Field, f64)>> {
        let found = self.regex.captures(line)?;
        let figures = self.fields.iter().filter_map(|&(index, field)| {
            let value = number(found.get(index)?.as_str())?;
            Some((field, value))
        });
        Some(figures.collect())
    }
}

/// Compiles a regular expression, with limits.
pub(super) fn compile(text: &str) -> Result<Regex, String> {
    if text.len() > PATTERN_BYTES_MAX {
        return Err(format!(
            "it has {} bytes, and may have {PATTERN_BYTES_MAX}",
            text.len()
        ));
    }
    RegexBuilder::new(text)
        .size_limit(COMPILED_BYTES_MAX)
        .nest_limit(NESTING_MAX)
        .build()
        .map_err(|error| error.to_string())
}

/// Larger than anything that is counted or timed, and still exact as a count.
const VALUE_MAX: f64 = 1e15;

/// A number from 0 to [`VALUE_MAX`].
pub(super) fn number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (0.0..=VALUE_MAX).contains(&value).then_some(value)
}
