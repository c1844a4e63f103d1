//! The command line.

mod apply;
mod bench;
mod compare;
mod profile;
mod sandbox;
mod serve;
mod store;

pub(crate) use apply::{ApplyArgs, ConfirmArgs, RestoreArgs, RevertArgs, StatusArgs, VerifyArgs};
pub(crate) use bench::{BenchArgs, CreateDataArgs, DataCommand, PlacementName, Spread};
pub(crate) use compare::{CapacityArgs, CompareArgs, ShowArgs};
pub(crate) use profile::{DiffArgs, ExportArgs, ForArgs, ProfileCommand};
pub(crate) use sandbox::{CreateArgs, SandboxCommand};
pub(crate) use serve::ServeArgs;
pub(crate) use store::{
    CheckStoreArgs, ImportArgs, ListArgs, NoteArgs, PruneArgs, SaveArgs, SaveFormat, TagArgs, TagDoes,
};

use crate::watch::keys::{INTERVAL_MAX, INTERVAL_MIN};
use clap::{Args, Parser, Subcommand, ValueEnum};
use pgdyno_knobs::Layer;
use pgdyno_lab::check::Step;
use pgdyno_load::duration;
use std::path::PathBuf;
use std::time::Duration;

/// A dynamometer for PostgreSQL: measures what each setting of a server and its host is worth, and puts everything
/// back.
///
/// Exit codes: 0 fine, 1 failed, 2 usage, 3 a check or gate did not hold, 4 refused for safety, 5 a gate is
/// undecided.
#[derive(Debug, Parser)]
#[command(name = "pgdyno", version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The whole loop on a private server: measure, turn six knobs, decide, report, put back (about eight minutes).
    Demo(DemoArgs),
    /// What a server and its host are: read only.
    Facts(FactsArgs),
    /// Small measurements of a server and its host, each with a verdict. Exit code 3 where one is poor.
    Check(CheckArgs),
    /// What to change on a server and its host, and why: read only. Exit code 3 where something is severe.
    Advise(AdviseArgs),
    /// A target live in the terminal: waits, statements, sessions, vacuum, disks, memory; read only.
    Watch(WatchArgs),
    /// One load with live figures, cross-checked with the server's own counters.
    Bench(BenchArgs),
    /// Data of the workloads.
    #[command(subcommand)]
    Data(DataCommand),
    /// Run an experiment file, unattended.
    Run(RunArgs),
    /// Go on with an experiment that was interrupted or killed.
    Resume(ResumeArgs),
    /// Experiments in the store: all, or those that a tag, a name, a status, a day or words mean.
    List(ListArgs),
    /// Experiments that are shipped, among them those of the published studies; one as a file; the schema of such files.
    Experiments(ExperimentsArgs),
    /// One experiment as text: its answer, its verdicts, and its trials with their numbers.
    Show(ShowArgs),
    /// Hold one treatment, experiment or trial against another, with gates for CI. Exit code 3 if a gate fails, 5 if one is
    /// undecided.
    Compare(CompareArgs),
    /// How many CPUs and connections a wanted throughput needs, by a stored ladder of CPUs and clients.
    Capacity(CapacityArgs),
    /// Write the report of an experiment.
    Report(ReportArgs),
    /// The store as a web page on this machine, with what runs now, and as JSON and metrics for other programs.
    Serve(ServeArgs),
    /// Hand on what is stored of an experiment: its trials, series or histograms, in formats that other programs read.
    Export(SaveArgs),
    /// Words by which an experiment is found again: shown, added, removed.
    Tag(TagArgs),
    /// What there is to say about an experiment: shown, or one more.
    Note(NoteArgs),
    /// Remove old experiments from the store, and give their space back.
    Prune(PruneArgs),
    /// Take over the experiments of another store, each once.
    Import(ImportArgs),
    /// Whether a store is whole: the file, and every record and series in it. Exit code 3 where something does not hold.
    CheckStore(CheckStoreArgs),
    /// Sets of settings with reasons, worked out for a target by its facts: shown, compared, exported; `apply` takes them.
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Turn knobs, check that they took effect, and keep them until `restore`.
    Apply(ApplyArgs),
    /// Whether settings are in force: those named, or all that was applied. Exit code 3 where one is not.
    Verify(VerifyArgs),
    /// What is changed now, by whom, since when, and what a reboot would undo.
    Status(StatusArgs),
    /// Let what was applied with --revert-after stay.
    Confirm(ConfirmArgs),
    /// Put back what was applied, and what an interrupted or killed command has changed.
    Restore(RestoreArgs),
    #[command(hide = true)]
    RevertLater(RevertArgs),
    /// The knobs there are: what each does, what applying costs, what it risks.
    Knobs(KnobsArgs),
    /// Private servers.
    #[command(subcommand)]
    Sandbox(SandboxCommand),
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store of results: a file, or postgres://user@host/database.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where the report is written.
    #[arg(long, value_name = "FILE", default_value = "pgdyno-demo.html")]
    pub(crate) report: PathBuf,
    /// Keep the private server afterwards.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Directory of initdb, pg_ctl and postgres, instead of fetching the latest PostgreSQL.
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// The store of results: a file, or postgres://user@host/database.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FactsArgs {
    /// sandbox:NAME or a connection string; without one PG* variables and libpq's defaults, and the host alone if no server
    /// answers there.
    pub(crate) target: Option<String>,
    /// The host alone: no server is asked.
    #[arg(long, conflicts_with = "target")]
    pub(crate) host_only: bool,
    /// The host alone, as its files below another directory tell: a container's root, a copy of /proc, /sys and /etc.
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub(crate) root: Option<PathBuf>,
    /// Print JSON (docs/facts.md).
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    #[arg(required_unless_present = "host_only")]
    pub(crate) target: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure these alone, in their usual order: timer, round_trip, commit, wal_sync, read, noise, clock, steal.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = step)]
    pub(crate) only: Vec<Step>,
    /// Length of the measurement of commits; all others keep their proportion to it.
    #[arg(long, value_name = "N", default_value_t = 3.0, value_parser = check_seconds)]
    pub(crate) seconds: f64,
    /// Measure this host, not the server; a server that is named tells where its files are and how it flushes.
    #[arg(long)]
    pub(crate) host_only: bool,
    /// Make the files of wal_sync and read in DIR, instead of beside the server's WAL and data.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Formats of advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseFormat {
    /// A page for the terminal.
    Text,
    /// Markdown.
    Md,
}

/// The least severity that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdviseSeverity {
    /// Dangers alone.
    Severe,
    /// Dangers and what is worth doing.
    Advice,
    /// All, with what is worth knowing.
    Hint,
}

impl From<AdviseSeverity> for pgdyno_knobs::Severity {
    fn from(severity: AdviseSeverity) -> pgdyno_knobs::Severity {
        match severity {
            AdviseSeverity::Severe => pgdyno_knobs::Severity::Severe,
            AdviseSeverity::Advice => pgdyno_knobs::Severity::Advice,
            AdviseSeverity::Hint => pgdyno_knobs::Severity::Hint,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// sandbox:NAME or a connection string; without one PG* variables and libpq's defaults, and the host alone if no server
    /// answers there.
    pub(crate) target: Option<String>,
    /// The host alone: no server is asked.
    #[arg(long, conflicts_with = "target")]
    pub(crate) host_only: bool,
    /// The host alone, as its files below another directory tell.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "check"])]
    pub(crate) root: Option<PathBuf>,
    /// Print JSON (docs/advise.md).
    #[arg(long)]
    pub(crate) json: bool,
    /// Format of the page.
    #[arg(long, value_enum, default_value_t = AdviseFormat::Text, conflicts_with = "json")]
    pub(crate) format: AdviseFormat,
    /// Advise also what is advised only if asked for: durability, mitigations (may be given several times).
    #[arg(long, value_name = "WORD")]
    pub(crate) allow: Vec<String>,
    /// Show advice of this severity and above; JSON has all of it.
    #[arg(long, value_enum, default_value_t = AdviseSeverity::Hint, value_name = "SEVERITY")]
    pub(crate) severity: AdviseSeverity,
    /// Show also settings of which a gain of at most 2 % is expected.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Show all about one rule or setting of the table: why, risk, source, steps (may be given several times; `all` for each).
    #[arg(long, short, value_name = "WHAT", conflicts_with = "json")]
    pub(crate) detail: Vec<String>,
    /// List also how sizes are worked out, what is not advised and why, and the rules that could not be judged.
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// No colours (also with NO_COLOR set).
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Measure first what rules ask for: commit, flush of the WAL, round trip, clock, stolen time (some seconds).
    #[arg(long)]
    pub(crate) check: bool,
    /// Let this rule alone speak (may be given several times).
    #[arg(long, value_name = "RULE")]
    pub(crate) only: Vec<String>,
    /// Write an experiment file that would prove the advised settings here, each by itself.
    #[arg(long, value_name = "FILE")]
    pub(crate) experiment: Option<PathBuf>,
    /// The store of results, a file or postgres://user@host/database, for what experiments have shown here.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    pub(crate) target: String,
    /// Time between two readings, 100ms to 60s.
    #[arg(long, short, default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// No colours (also with NO_COLOR set).
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Print the overview once and end.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON.
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
}

/// An interval that the samplers can keep.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        return Ok(interval);
    }
    Err("expected 100ms to 60s".into())
}

/// Consent that is asked for anew each time.
#[derive(Debug, Args)]
pub(crate) struct ConsentArgs {
    /// Agree that KNOB may lose committed data in a crash (may be given several times).
    #[arg(long, value_name = "KNOB")]
    pub(crate) accept_durability_risk: Vec<String>,
    /// Agree that a server which pgdyno did not create is restarted, by the file's restart_command.
    #[arg(long)]
    pub(crate) allow_restart: bool,
    /// Agree that the data which the load needs and the server lacks is made on a server which pgdyno did not create, and dropped
    /// at the end, and that the file's own commands (prepare, command, cleanup), and statements of its scripts that make or drop
    /// objects, run there; `run --dry-run` lists all of it.
    #[arg(long)]
    pub(crate) allow_data: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The experiment file, or the name of a shipped one (`pgdyno experiments` lists them).
    pub(crate) file: PathBuf,
    /// One of the file's sizes, as "night".
    #[arg(long)]
    pub(crate) size: Option<String>,
    /// Another value of one of the file's keys, as load.measure_s=60 (may be given several times).
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Prove settings, rights, statements, consent and room, and print all that would fail with what mends it; every trial with its
    /// cost, the data that is made, and the time that all takes. Run and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// sandbox:NAME or a connection string, instead of the file's target.
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Write the report here at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// What of the shipped experiments.
#[derive(Debug, Args)]
pub(crate) struct ExperimentsArgs {
    /// Print this one's file.
    #[arg(conflicts_with = "schema")]
    pub(crate) name: Option<String>,
    /// Print the JSON schema of experiment files, for editors.
    #[arg(long)]
    pub(crate) schema: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Number of the experiment; the last one that is not finished if not given.
    pub(crate) id: Option<i64>,
    /// sandbox:NAME or a connection string, instead of the file's target.
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Write the report here at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Html,
    Md,
    Json,
    /// A line for each trial with all its figures.
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Number of the experiment; the newest if not given.
    pub(crate) id: Option<i64>,
    /// Format of the report.
    #[arg(long, short, value_enum, default_value_t = Format::Html)]
    pub(crate) format: Format,
    /// File to write, - for standard output. Default: pgdyno-report-ID.html, or standard output for md and json.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Trials whose series go along in HTML: all, none, or their numbers with commas. Where all are too many for a file of 5 MB,
    /// they have fewer points, and the page says so.
    #[arg(long, value_name = "all|none|ID,...", default_value = "all", value_parser = trials_wanted)]
    pub(crate) trials: TrialsWanted,
    /// The store of results: a file, or postgres://user@host/database.
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<PathBuf>,
}

/// Trials whose details go along in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrialsWanted {
    All,
    None,
    These(Vec<i64>),
}

fn trials_wanted(text: &str) -> Result<TrialsWanted, String> {
    let number = |word: &str| {
        let wrong =
            || format!("{word:?} is no number of a trial; all, none, or numbers with commas are wanted");
        word.trim().parse::<i64>().map_err(|_| wrong())
    };
    match text {
        "all" => Ok(TrialsWanted::All),
        "none" => Ok(TrialsWanted::None),
        numbers => Ok(TrialsWanted::These(
            numbers.split(',').map(number).collect::<Result<_, _>>()?,
        )),
    }
}

/// Formats of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KnobsFormat {
    Text,
    Md,
}

#[derive(Debug, Args)]
pub(crate) struct KnobsArgs {
    /// Id of a knob, to be told all about it.
    pub(crate) id: Option<String>,
    /// The knobs of one layer: postgres, table, kernel, memory, block, cpu or net.
    #[arg(long, value_parser = layer, conflicts_with = "id")]
    pub(crate) layer: Option<Layer>,
    /// As text for the terminal, or as a page in Markdown (docs/knobs.md).
    #[arg(long, short, value_enum, default_value_t = KnobsFormat::Text)]
    pub(crate) format: KnobsFormat,
    /// Print JSON.
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
}

fn step(text: &str) -> Result<Step, String> {
    Step::named(text).ok_or_else(|| {
        let names: Vec<&str> = Step::ALL.into_iter().map(Step::name).collect();
        format!("expected one or more of {}", names.join(", "))
    })
}

fn layer(text: &str) -> Result<Layer, String> {
    let all = Layer::ALL.into_iter();
    all.clone().find(|layer| layer.name() == text).ok_or_else(|| {
        let names: Vec<&str> = all.map(Layer::name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn check_seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|n| (0.1..=600.0).contains(n))
        .ok_or_else(|| "expected a number of seconds from 0.1 to 600".to_owned())
}

fn assignment(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "expected NAME=VALUE, as max_connections=300".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_assignment_is_split_at_its_first_sign() {
        assert_eq!(assignment("a = b=c"), Ok(("a".into(), "b=c".into())));
    }
}
