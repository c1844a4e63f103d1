//! `pgdyno list`, `tag`, `note`, `prune`, `import`, `check-store` and `export` on the command line.

use super::{StoreArg, StoreArgs};
use clap::{Args, Subcommand, ValueEnum};
use pgdyno_lab::compare::Reference;
use pgdyno_serve::asked::{life, since};
use pgdyno_store::Life;
use std::path::PathBuf;
use std::time::Duration;

/// A century: more is a slip of the hand.
const AGE_DAYS_MAX: f64 = 36_525.0;
const DAY_S: f64 = 86_400.0;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only experiments with this tag. Repeatable: with all of them.
    #[arg(long, value_name = "WORD")]
    pub(crate) tag: Vec<String>,
    /// Only experiments whose name contains PART.
    #[arg(long, value_name = "PART")]
    pub(crate) name: Option<String>,
    /// Only experiments that are running, killed, finished or interrupted.
    #[arg(long, value_parser = life)]
    pub(crate) status: Option<Life>,
    /// Only experiments that began on this day or later, e.g. 2026-11-01, or 2026-11-01T08:00:00Z.
    #[arg(long, value_name = "DAY", value_parser = since)]
    pub(crate) since: Option<u64>,
    /// Only experiments whose question, name, target or notes contain TEXT.
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Only the newest N of them.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TagArgs {
    /// Number of the experiment.
    pub(crate) id: i64,
    /// Add or remove tags [default: show them].
    #[command(subcommand)]
    pub(crate) does: Option<TagDoes>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagDoes {
    /// Add tags: letters, digits, dots, dashes and underscores, 40 characters at most.
    #[command(after_help = "Example: pgdyno tag 3 add nightly")]
    Add {
        /// Tags to add.
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Remove tags.
    #[command(after_help = "Example: pgdyno tag 3 remove nightly")]
    Remove {
        /// Tags to remove.
        #[arg(required = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// Number of the experiment.
    pub(crate) id: i64,
    /// Note to add, 10,000 characters at most [default: show the notes with their numbers].
    pub(crate) text: Option<String>,
    /// Remove the note of this number.
    #[arg(long, value_name = "N", conflicts_with = "text")]
    pub(crate) remove: Option<i64>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// What is given holds together: `--keep 5 --status interrupted` keeps the newest five of the
/// interrupted ones.
#[derive(Debug, Args)]
#[group(id = "rule", required = true, multiple = true, args = ["keep", "older_than", "status"])]
pub(crate) struct PruneArgs {
    /// Keep the newest N experiments.
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Remove experiments that began longer ago, e.g. 90d, 12w or 36h.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Remove experiments that are finished, interrupted or killed. Running ones are never removed.
    #[arg(long, value_parser = life)]
    pub(crate) status: Option<Life>,
    /// Keep experiments with this tag [default: keep those with any tag]. Repeatable.
    #[arg(long, value_name = "WORD")]
    pub(crate) tag_kept: Vec<String>,
    /// Print what would be removed; remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Store to import from, of this schema or an older one: a file, or
    /// postgres://user@host/database. It is not changed.
    pub(crate) other: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckStoreArgs {
    /// Store to verify: a file, or postgres://user@host/database [default: $PGDYNO_STORE, else a
    /// local file].
    pub(crate) file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Formats in which what is stored is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SaveFormat {
    /// A line for each trial with all its figures; with --series a line for each point of its
    /// series.
    Csv,
    /// The report's JSON with all series.
    Json,
    /// Apache Otava's CSV: a line for each trial of one treatment.
    Otava,
    /// PostgresBench's JSON: the trials of one treatment as the runs of a system.
    Postgresbench,
    /// HdrHistogram's log, an interval for each trial.
    Hdr,
    /// Apache Parquet for DuckDB, Spark and others: a row for each trial; with --series a row for
    /// each point of its series.
    Parquet,
    /// Bencher's metric format: the figures of each treatment, with intervals.
    Bmf,
    /// JSON of github-action-benchmark: the figure that decides, for each treatment.
    GhBenchmark,
    /// JUnit's XML: a test case for each treatment, which fails where it is worse, and is skipped
    /// where it is undecided.
    Junit,
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// Number of the experiment, or last; otava and parquet take several.
    #[arg(required_unless_present = "name")]
    pub(crate) id: Vec<Reference>,
    /// Instead of numbers, all experiments of this name, for otava and parquet.
    #[arg(long, conflicts_with = "id")]
    pub(crate) name: Option<String>,
    /// Format (docs/reference/store.md).
    #[arg(long, short, value_enum)]
    pub(crate) format: SaveFormat,
    /// Export the series instead of the trials, for csv and parquet.
    #[arg(long)]
    pub(crate) series: bool,
    /// Treatment, for otava and postgresbench [default: the first one of each experiment].
    #[arg(long, value_name = "NAME")]
    pub(crate) treatment: Option<String>,
    /// File to write, - for standard output [default: -].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// A length of time in hours, days or weeks: `12h`, `30d`, `2w`.
fn age(text: &str) -> Result<Duration, String> {
    let factors_s = [('h', 3600.0), ('d', DAY_S), ('w', 7.0 * DAY_S)];
    let found = factors_s.iter().find_map(|(unit, factor_s)| {
        let number = text.strip_suffix(*unit)?.parse::<f64>().ok()?;
        Some(number * factor_s)
    });
    found
        .filter(|seconds| (0.0..=AGE_DAYS_MAX * DAY_S).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected an age, e.g. 90d, 12w or 36h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read() {
        let days = |text| age(text).map(|age| age.as_secs_f64() / DAY_S);
        assert_eq!(days("90d"), Ok(90.0));
        assert_eq!(days("2w"), Ok(14.0));
        assert_eq!(days("36h"), Ok(1.5));
        for bad in ["", "d", "90", "-1d", "nand", "1e9w", "5m"] {
            assert!(age(bad).is_err(), "{bad}");
        }
    }
}
