//! What is known of a program: its commands, its lines, what it commits. Read from the catalogue or
//! from the user's file.

use super::command::{command_words, has_placeholder};
use super::pattern::{Field, Pattern, Stat, compile};
use regex_lite::Regex;
use serde::Deserialize;

const SHIPPED: &str = include_str!("../../catalog/formats/loads.toml");
/// Longest text of formats, in bytes.
pub const FORMAT_BYTES_MAX: usize = 256 * 1024;
/// Patterns of a kind in one format.
const PATTERNS_MAX: usize = 32;

/// What is wrong with a format.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It cannot be read as TOML, or has an unknown key.
    #[error("{file}: {source}")]
    Syntax {
        /// Path of the file that has the format.
        file: String,
        /// The parser's error, with line and column.
        source: Box<toml::de::Error>,
    },
    /// The file is longer than a file of formats may be.
    #[error("{file} has {bytes} bytes, and may have {FORMAT_BYTES_MAX}")]
    TooLong {
        /// Path of the file that has the formats.
        file: String,
        /// Length of the file.
        bytes: usize,
    },
    /// Two formats have the same name.
    #[error("{file}: there are two formats by the name {name}")]
    Twice {
        /// Path of the file that has the formats.
        file: String,
        /// Name that both have.
        name: String,
    },
}

/// A format as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    source: String,
    command: Option<String>,
    prepare: Option<String>,
    cleanup: Option<String>,
    #[serde(default)]
    second: Vec<String>,
    #[serde(default, rename = "final")]
    last: Vec<String>,
    #[serde(default)]
    broken: Vec<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    file: Vec<FormatFile>,
    #[serde(default = "zero_alone")]
    exit_codes: Vec<i32>,
    commits_per_transaction: Option<u64>,
    #[serde(default)]
    commits_per_session_max: u64,
    #[serde(default)]
    commits_per_run_max: u64,
}

fn zero_alone() -> Vec<i32> {
    vec![0]
}

/// A file that a program's commands need, in the directory `{files}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatFile {
    /// Name of the file.
    pub name: String,
    /// What is in it; nothing is put into it.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: Vec<ForeignFormat>,
}

/// What the server commits for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commits {
    /// For each transaction that the program counts; `None`: the server's count says nothing about
    /// the program's.
    pub per_transaction: Option<u64>,
    /// For each session beside them, at most: its start, its prepared statements.
    pub per_session_max: u64,
    /// For each run beside them, at most.
    pub per_run_max: u64,
}

/// What is known of a program. Can be read from a table of a file by serde: the keys are those of
/// `catalog/formats/loads.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct ForeignFormat {
    /// Name of the program, which `--program` takes.
    pub name: String,
    /// Description in a few words.
    pub about: String,
    /// Program version whose output, or manual, the patterns are made from.
    pub source: String,
    /// Words of the command that drives the load, with placeholders; empty where the user must say.
    pub command: Vec<String>,
    /// Words of the command that makes the data; empty where there is none.
    pub prepare: Vec<String>,
    /// Words of the command that drops the data; empty where there is none.
    pub cleanup: Vec<String>,
    /// Programs beside the first words of its commands that must be installed.
    pub needs: Vec<String>,
    /// Files that its commands need.
    pub files: Vec<FormatFile>,
    /// Exit codes of a run that went well.
    pub exit_codes: Vec<i32>,
    /// What the server commits for it.
    pub commits: Commits,
    pub(super) second: Vec<Pattern>,
    pub(super) last: Vec<Pattern>,
    pub(super) broken: Vec<Regex>,
}

impl ForeignFormat {
    /// Whether a line at its end can report a response time: `mean_ms`, `p50_ms`, `p95_ms`,
    /// `p99_ms` or `max_ms`.
    pub fn reports(&self, metric: &str) -> bool {
        let (stat, is_percentile) = match metric {
            "mean_ms" => (Stat::Mean, false),
            "p50_ms" => (Stat::P50, true),
            "p95_ms" => (Stat::P95, true),
            "p99_ms" => (Stat::P99, true),
            "max_ms" => (Stat::Max, false),
            "nopm" => return self.last.iter().any(|pattern| pattern.has(Field::Nopm)),
            _ => return false,
        };
        // Which percentile a line has may be in the line.
        let reports = |pattern: &Pattern| {
            pattern.has_latency(stat) || is_percentile && pattern.has_latency(Stat::Percentile)
        };
        self.last.iter().any(reports)
    }

    /// Whether its usual command runs for whole minutes.
    pub fn is_in_minutes(&self) -> bool {
        has_placeholder(&self.command, "minutes")
    }

    /// Whether it reports its throughput while it runs.
    pub fn has_seconds(&self) -> bool {
        !self.second.is_empty()
    }
}

impl TryFrom<Written> for ForeignFormat {
    type Error = String;

    fn try_from(written: Written) -> Result<ForeignFormat, String> {
        let name = &written.name;
        let words = |key: &str, text: &Option<String>| match text {
            None => Ok(Vec::new()),
            Some(text) => command_words(text).map_err(|error| format!("{key} of the format {name}: {error}")),
        };
        let patterns = |key: &str, texts: &[String]| patterns(name, key, texts, Pattern::of_figures);
        let second = patterns("second", &written.second)?;
        let last = patterns("final", &written.last)?;
        let takes_tps = |pattern: &Pattern| pattern.has(Field::Tps) || pattern.has(Field::Tpm);
        if let Some(at) = second.iter().position(|pattern| !takes_tps(pattern)) {
            return Err(format!(
                "pattern {} of second of the format {name} lacks a group tps or tpm",
                at + 1
            ));
        }
        let takes_any = |pattern: &Pattern| takes_tps(pattern) || pattern.has(Field::Transactions);
        if second.is_empty() && !last.iter().any(takes_any) {
            return Err(format!(
                "the format {name} takes no throughput: it needs a pattern in second, or one in final with a group tps, \
                 tpm or transactions"
            ));
        }
        Ok(ForeignFormat {
            command: words("command", &written.command)?,
            prepare: words("prepare", &written.prepare)?,
            cleanup: words("cleanup", &written.cleanup)?,
            broken: self::patterns(name, "broken", &written.broken, compile)?,
            second,
            last,
            exit_codes: written.exit_codes,
            commits: Commits {
                per_transaction: written.commits_per_transaction,
                per_session_max: written.commits_per_session_max,
                per_run_max: written.commits_per_run_max,
            },
            needs: written.needs,
            files: written.file,
            about: written.about,
            source: written.source,
            name: written.name,
        })
    }
}

fn patterns<T>(
    name: &str,
    key: &str,
    texts: &[String],
    read: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if texts.len() > PATTERNS_MAX {
        return Err(format!(
            "{key} of the format {name} has {} patterns, and may have {PATTERNS_MAX}",
            texts.len()
        ));
    }
    let numbered = (1..).zip(texts);
    numbered
        .map(|(at, text)| {
            read(text).map_err(|flaw| format!("pattern {at} of {key} of the format {name}: {flaw}"))
        })
        .collect()
}

impl ForeignFormat {
    /// The formats of a text; `file` is what errors call it.
    pub fn parse(text: &str, file: &str) -> Result<Vec<ForeignFormat>, FormatError> {
        if text.len() > FORMAT_BYTES_MAX {
            return Err(FormatError::TooLong {
                file: file.to_owned(),
                bytes: text.len(),
            });
        }
        let read: File = toml::from_str(text).map_err(|source| FormatError::Syntax {
            file: file.to_owned(),
            source: Box::new(source),
        })?;
        let formats = read.format;
        let twice = |(at, format): (usize, &ForeignFormat)| {
            let names = formats[..at].iter().map(|earlier| &earlier.name);
            names.into_iter().any(|name| *name == format.name)
        };
        match formats.iter().enumerate().find(|&pair| twice(pair)) {
            Some((_, format)) => Err(FormatError::Twice {
                file: file.to_owned(),
                name: format.name.clone(),
            }),
            None => Ok(formats),
        }
    }
}

/// The formats of the catalogue.
pub fn foreign_formats() -> Result<Vec<ForeignFormat>, FormatError> {
    ForeignFormat::parse(SHIPPED, "formats/loads.toml")
}
