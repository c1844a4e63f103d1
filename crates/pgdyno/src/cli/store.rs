//! `pgdyno list`, `tag`, `note`, `prune`, `import`, `check-store` and `export` on the command line.

use clap::{Args, Subcommand, ValueEnum};
use pgdyno_serve::asked::{life, since};
use pgdyno_store::Life;
use std::path::PathBuf;
use std::time::Duration;

/// A century: more is a slip of the hand.
const AGE_DAYS_MAX: f64 = 36_525.0;
const DAY_S: f64 = 86_400.0;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Those with this tag (may be given several times, for all of them).
    #[arg(long, value_name = "WORD")]
    pub(crate) tag: Vec<String>,
    /// Those with this in their name.
    #[arg(long, value_name = "PART")]
    pub(crate) name: Option<String>,
    /// Those that are running, killed, finished or interrupted.
    #[arg(long, value_parser = life)]
    pub(crate) status: Option<Life>,
    /// Those begun on this day or later, as 2026-11-01; or at this instant, as 2026-11-01T08:00:00Z.
    #[arg(long, value_name = "DAY", value_parser = since)]
    pub(crate) since: Option<u64>,
    /// Those with this in their question, name, target or a note.
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) store: super::StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TagArgs {
    /// Number of the experiment.
    pub(crate) id: i64,
    /// What to do; without it the tags are shown.
    #[command(subcommand)]
    pub(crate) does: Option<TagDoes>,
    /// The store of results: a file, or postgres://user@host/database.
    #[arg(long, value_name = "STORE", global = true)]
    pub(crate) store: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagDoes {
    /// Add tags: words of letters, digits, dots, dashes and underscores, 40 characters at most.
    Add {
        /// The words.
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Remove tags.
    Remove {
        /// The words.
        #[arg(required = true)]
        words: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// Number of the experiment.
    pub(crate) id: i64,
    /// What to add, 10,000 characters at most; without it the notes are shown with their numbers.
    pub(crate) text: Option<String>,
    /// Remove the note of this number.
    #[arg(long, value_name = "N", conflicts_with = "text")]
    pub(crate) remove: Option<i64>,
    /// The store of results: a file, or postgres://user@host/database.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
}

/// What is given holds together: `--keep 5 --status interrupted` keeps the newest five of the interrupted ones.
#[derive(Debug, Args)]
#[group(id = "rule", required = true, multiple = true, args = ["keep", "older_than", "status"])]
pub(crate) struct PruneArgs {
    /// Keep the newest N.
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Remove those begun longer ago, as 90d, 12w or 36h.
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Remove those that are finished, interrupted or killed. One that a process runs stays.
    #[arg(long, value_parser = life)]
    pub(crate) status: Option<Life>,
    /// Keep those with this tag, and no others for their tags (may be given several times); without it any tag keeps.
    #[arg(long, value_name = "WORD")]
    pub(crate) tag_kept: Vec<String>,
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) store: super::StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The other store, of this schema or an older one: a file, or postgres://user@host/database; it is not changed.
    pub(crate) other: PathBuf,
    #[command(flatten)]
    pub(crate) store: super::StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckStoreArgs {
    /// The store: a file, or postgres://user@host/database; the usual one if not given.
    pub(crate) file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Formats in which what is stored is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SaveFormat {
    /// A line for each trial with all its figures; with --series a line for each point of its series.
    Csv,
    /// The report's JSON with all series.
    Json,
    /// Apache Otava's CSV: a line for each trial of one treatment.
    Otava,
    /// HdrHistogram's log, an interval for each trial.
    Hdr,
    /// Apache Parquet for DuckDB, Spark and others: a row for each trial; with --series a row for each point of its series.
    Parquet,
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// Number of the experiment; several for otava and parquet.
    #[arg(required_unless_present = "name")]
    pub(crate) id: Vec<i64>,
    /// All experiments of this name in place of numbers, for otava and parquet: the nights of one experiment.
    #[arg(long, conflicts_with = "id")]
    pub(crate) name: Option<String>,
    /// The format (docs/reference/store.md).
    #[arg(long, short, value_enum)]
    pub(crate) format: SaveFormat,
    /// The series in place of the trials, for csv and parquet.
    #[arg(long)]
    pub(crate) series: bool,
    /// The treatment, for otava; the first one of each experiment if not given.
    #[arg(long, value_name = "NAME")]
    pub(crate) treatment: Option<String>,
    /// File to write; standard output if not given, or with -.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The store of results: a file, or postgres://user@host/database.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
}

/// State of an experiment.
fn age(text: &str) -> Result<Duration, String> {
    let factors_s = [('h', 3600.0), ('d', DAY_S), ('w', 7.0 * DAY_S)];
    let found = factors_s.iter().find_map(|(unit, factor_s)| {
        let number = text.strip_suffix(*unit)?.parse::<f64>().ok()?;
        Some(number * factor_s)
    });
    found
        .filter(|seconds| (0.0..=AGE_DAYS_MAX * DAY_S).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected an age, as 90d, 12w or 36h".to_owned())
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
