//! The command line.

mod apply;
mod bench;
mod compare;
mod gate;
mod look;
mod mcp;
mod profile;
mod remote;
mod run;
mod sandbox;
mod serve;
mod store;
mod tune;

pub(crate) use apply::{ApplyArgs, ConfirmArgs, RestoreArgs, RevertArgs, StatusArgs, VerifyArgs};
pub(crate) use bench::{BenchArgs, CreateDataArgs, DataCommand, OfLoadArgs, PlacementName};
pub(crate) use compare::{CapacityArgs, CompareArgs, ShowArgs};
pub(crate) use gate::GateArgs;
pub(crate) use look::{AdviseArgs, AdviseFormat, CheckArgs, FactsArgs, KnobsArgs, KnobsFormat, WatchArgs};
pub(crate) use mcp::McpArgs;
pub(crate) use profile::{DiffArgs, ExportArgs, ForArgs, ProfileCommand};
pub(crate) use remote::{
    AgentArgs, HostArgs, HostsArgs, LoadFromArgs, LoadGroupArgs, OnDisconnect, RunHostArgs,
};
pub(crate) use run::{ConsentArgs, ResumeArgs, RunArgs};
pub(crate) use sandbox::{CreateArgs, SandboxArgs, SandboxCommand};
pub(crate) use serve::ServeArgs;
pub(crate) use store::{
    CheckStoreArgs, ImportArgs, ListArgs, NoteArgs, PruneArgs, SaveArgs, SaveFormat, TagArgs, TagDoes,
};
pub(crate) use tune::{LoadKind, TuneArgs};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use pgdyno_engine::HAS_IO_URING;
use pgdyno_report::TextFormat;
use pgdyno_sandbox::{DEFAULT_MAJOR, MAJORS};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Measures the effect of each setting of a PostgreSQL server and its host, and restores what it
/// changed.
///
/// Exit codes: 0 success, 1 failure, 2 usage, 3 a check or gate failed, 4 refused for safety, 5 a
/// gate is undecided. A knob is a setting of the server or the host; a treatment is a set of knob
/// values; a trial is one measured load.
#[derive(Debug, Parser)]
#[command(name = "pgdyno", version, long_version = long_version(), max_term_width = 110, help_template = help_template(), disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands in the groups of the help.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Look (no setting is changed)",
        &["facts", "check", "advise", "watch", "knobs"],
    ),
    (
        "Measure",
        &[
            "demo",
            "bench",
            "data",
            "init",
            "run",
            "resume",
            "experiments",
            "gate",
            "tune",
        ],
    ),
    (
        "Change",
        &["apply", "verify", "status", "confirm", "restore", "profile"],
    ),
    (
        "Results",
        &[
            "list",
            "show",
            "compare",
            "capacity",
            "report",
            "serve",
            "export",
            "import",
            "tag",
            "note",
            "prune",
            "check-store",
        ],
    ),
    ("Lab", &["sandbox"]),
    ("Other hosts and programs", &["agent", "mcp"]),
    ("Shell", &["completions"]),
];
/// Columns of the help from which on the commands are explained, and columns in all.
const INDENT: usize = 15;
const WIDTH: usize = 100;

/// The version with what this build has in it, for `--version`; `-V` prints the number alone.
fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let (oldest, newest) = MAJORS.into_inner();
        let libc = if cfg!(target_env = "musl") {
            "musl"
        } else {
            "glibc"
        };
        let with = |has: bool, what: &str| format!("{} {what}", if has { "with" } else { "without" });
        let commit =
            option_env!("PGDYNO_COMMIT").map_or(String::new(), |commit| format!(" from commit {commit}"));
        format!(
            "{}\n\nBuilt{commit} for {} Linux with {libc}, {}, {}.\n\
             Servers of PostgreSQL {oldest} to {newest}; archives of up to {DEFAULT_MAJOR} are known, and\n\
             fetched for sandboxes.\n\
             Report {}, schema {} of the store.",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            with(pgdyno_report::page().is_ok(), "the web page"),
            with(HAS_IO_URING, "io_uring"),
            pgdyno_report::REPORT_FORMAT,
            pgdyno_store::SCHEMA_VERSION,
        )
    });
    &TEXT
}

/// The help of the program, with its commands in groups.
fn help_template() -> String {
    let command = Command::augment_subcommands(clap::Command::new("pgdyno"));
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("\n{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups += &listed(name, &about);
        }
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nCommands:\n{groups}\n\
         `pgdyno help COMMAND` shows its options. `pgdyno help TOPIC` explains one of targets, consent, journal,\n\
         verdicts, stores, exit-codes, terms.\n\nOptions:\n{{options}}"
    )
}

/// A command with what it does, in lines.
fn listed(name: &str, about: &str) -> String {
    let mut text = format!("  {name:<width$}", width = INDENT - 2);
    let mut column = INDENT;
    for word in about.split(' ') {
        if column > INDENT && column + 1 + word.chars().count() > WIDTH {
            text += &format!("\n{:INDENT$}", "");
            column = INDENT;
        }
        if column > INDENT {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += word.chars().count();
    }
    text.push('\n');
    text
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an example experiment on a private server: measure five settings and a control, report,
    /// restore (two to eight minutes).
    #[command(after_help = "Example: pgdyno demo --report demo.html")]
    Demo(DemoArgs),
    /// Show what a server and its host are, with the source of each fact. Read-only.
    #[command(after_help = "Example: pgdyno facts \"host=/var/run/postgresql user=postgres\"")]
    Facts(FactsArgs),
    /// Measure commit latency, flushes, reads and noise of a server and its host, with a verdict
    /// for each. Exit code 3 if a result is poor.
    #[command(after_help = "Example: pgdyno check sandbox:main --only commit")]
    Check(CheckArgs),
    /// Show what to change on a server and its host, and why. Read-only. Exit code 3 if something
    /// is severe.
    #[command(
        after_help = "Example: pgdyno advise \"host=/var/run/postgresql user=postgres\" --severity advice"
    )]
    Advise(AdviseArgs),
    /// Watch a server live: waits, statements, sessions, vacuum, disks, memory. Read-only.
    #[command(after_help = "Example: pgdyno watch sandbox:main")]
    Watch(WatchArgs),
    /// Run one load and compare its counts with the server's own.
    #[command(after_help = "Example: pgdyno bench sandbox:main --workload tpcb --clients 32 --duration 30s")]
    Bench(BenchArgs),
    /// Create, check or drop the data of a workload.
    #[command(
        subcommand,
        after_help = "Example: pgdyno data create sandbox:main --scale 100"
    )]
    Data(DataCommand),
    /// Write an experiment file for a target, with suggested settings and commented alternatives.
    #[command(after_help = "Example: pgdyno init sandbox:main first.toml")]
    Init(InitArgs),
    /// Run an experiment file, or a shipped experiment by its name.
    #[command(after_help = "Example: pgdyno run read-ahead.toml --dry-run")]
    Run(RunArgs),
    /// Continue an experiment that was interrupted or killed.
    #[command(after_help = "Example: pgdyno resume 3")]
    Resume(ResumeArgs),
    /// Compare two builds, files of settings or schema scripts by trials in turns on this host, for
    /// CI. Exit code 3 if HEAD is slower than BASE, 5 if that is undecided.
    #[command(after_help = "Example: pgdyno gate /opt/pg-base/bin /opt/pg-head/bin --clients 4")]
    Gate(Box<GateArgs>),
    /// Find the best settings of a server for a load without risking commits, confirm them in new
    /// trials, and keep only those that pay.
    #[command(
        after_help = "Example: pgdyno tune sandbox:main --workload tpcc --scale 10 --clients 16 --trials 30"
    )]
    Tune(Box<TuneArgs>),
    /// List the experiments in the store, all or by tag, name, status, day or text.
    #[command(after_help = "Example: pgdyno list --tag nightly --since 2026-11-01")]
    List(ListArgs),
    /// List the shipped experiments, print one as a file, or print the schema of such files.
    #[command(after_help = "Example: pgdyno experiments edb-cores")]
    Experiments(ExperimentsArgs),
    /// Show one experiment: its answer, its verdicts, its trials with their numbers.
    #[command(after_help = "Example: pgdyno show last")]
    Show(ShowArgs),
    /// Compare two treatments, experiments or trials, with gates for CI. Exit code 3 if a gate
    /// fails, 5 if one is undecided.
    #[command(after_help = "Example: pgdyno compare 3:reference 3:memory --fail-if 'tps worse than 2%'")]
    Compare(CompareArgs),
    /// Compute how many CPUs and connections a throughput needs, from an experiment that varies
    /// CPUs and clients.
    #[command(after_help = "Example: pgdyno capacity --tps 60000 --p99 20ms")]
    Capacity(CapacityArgs),
    /// Write the report of an experiment, as an HTML page or in a text format.
    #[command(after_help = "Example: pgdyno report 3 --format md")]
    Report(ReportArgs),
    /// Serve the store as a web page, and as JSON and metrics for other programs.
    #[command(after_help = "Example: pgdyno serve")]
    Serve(ServeArgs),
    /// Export trials, series or histograms in formats that other programs read.
    #[command(after_help = "Example: pgdyno export 3 --format csv -o trials.csv")]
    Export(SaveArgs),
    /// Show, add or remove an experiment's tags.
    #[command(after_help = "Example: pgdyno tag 3 add nightly")]
    Tag(TagArgs),
    /// Show, add or remove an experiment's notes.
    #[command(after_help = "Example: pgdyno note 3 \"new disk\"")]
    Note(NoteArgs),
    /// Remove old experiments from the store and free their space.
    #[command(after_help = "Example: pgdyno prune --older-than 90d --dry-run")]
    Prune(PruneArgs),
    /// Import the experiments of another store, each once.
    #[command(after_help = "Example: pgdyno import other.sqlite")]
    Import(ImportArgs),
    /// Verify that all of a store can be read. Exit code 3 if something cannot.
    #[command(after_help = "Example: pgdyno check-store")]
    CheckStore(CheckStoreArgs),
    /// List, show, compare or export sets of settings that are computed for a target.
    #[command(subcommand, after_help = "Example: pgdyno profile diff oltp sandbox:main")]
    Profile(ProfileCommand),
    /// Apply settings, verify that they took effect, and keep them until `restore`.
    #[command(after_help = "Example: pgdyno apply sandbox:main work_mem=16MB --revert-after 10m")]
    Apply(ApplyArgs),
    /// Verify that settings are in force: those named, or all that were applied. Exit code 3 if one
    /// is not.
    #[command(after_help = "Example: pgdyno verify sandbox:main work_mem=16MB")]
    Verify(VerifyArgs),
    /// Show what is changed now, by whom, since when, and what a reboot would reset.
    #[command(after_help = "Example: pgdyno status")]
    Status(StatusArgs),
    /// Keep what was applied with --revert-after.
    #[command(after_help = "Example: pgdyno confirm")]
    Confirm(ConfirmArgs),
    /// Restore what was applied, and what an interrupted or killed command has changed.
    #[command(after_help = "Example: pgdyno restore")]
    Restore(RestoreArgs),
    #[command(hide = true)]
    RevertLater(RevertArgs),
    /// List the knobs of the catalogue, or explain one: what it does, costs and risks.
    #[command(after_help = "Example: pgdyno knobs jit")]
    Knobs(KnobsArgs),
    /// Serve one command of --host on this host, or remove the programs that --host has copied.
    #[command(after_help = "Example: pgdyno agent --remove ssh:db1")]
    Agent(AgentArgs),
    /// Serve tools to an agent by the Model Context Protocol, on standard input and output:
    /// reading, and experiments on sandboxes within a budget.
    #[command(after_help = "Example: pgdyno mcp sandbox:main --budget 30m")]
    Mcp(McpArgs),
    /// Show the options of a command, or explain a topic.
    #[command(after_help = "Example: pgdyno help exit-codes")]
    Help(HelpArgs),
    /// Write the completions of a shell to standard output: `source <(pgdyno completions bash)`.
    #[command(after_help = "Example: pgdyno completions bash")]
    Completions(CompletionsArgs),
    /// Print the man page of a command; packages have them all.
    #[command(hide = true)]
    Man(HelpArgs),
    /// Create, list, start, stop or destroy private servers.
    #[command(after_help = "Example: pgdyno sandbox create main --memory 1G")]
    Sandbox(SandboxArgs),
}

impl Command {
    /// The host that it works on, where that can be another one.
    pub(crate) fn host(&self) -> Option<&HostArgs> {
        Some(match self {
            Command::Facts(args) => &args.on.on,
            Command::Check(args) => &args.on.on,
            Command::Advise(args) => &args.on.on,
            Command::Watch(args) => &args.on,
            Command::Apply(args) => &args.at.on,
            Command::Verify(args) => &args.on,
            Command::Status(args) => &args.on.on,
            Command::Confirm(args) => &args.on,
            Command::Restore(args) => &args.on,
            Command::Profile(ProfileCommand::Diff(args)) => &args.on,
            Command::Sandbox(args) => &args.on,
            Command::Run(args) => &args.at.on,
            Command::Resume(args) => &args.at.on,
            // Its experiments run there, and are judged here.
            Command::Tune(args) if args.dry_run => &args.at.on,
            _ => return None,
        })
    }

    /// The host that what it does, or has done, is on, where that can be another one.
    pub(crate) fn on(&self) -> Option<&HostArgs> {
        match self {
            Command::Tune(args) => Some(&args.at.on),
            other => other.host(),
        }
    }

    /// Whether what it does, or has done, is on another host.
    pub(crate) fn runs_elsewhere(&self) -> bool {
        self.on().is_some_and(|on| on.host.is_some())
    }

    /// The group of an inventory that drives its load, if one does.
    pub(crate) fn load_group(&self) -> Option<(&Path, &str)> {
        let args = match self {
            Command::Run(args) => &args.load_from.group,
            Command::Tune(args) => &args.load_from.group,
            Command::Resume(args) => &args.load,
            Command::Bench(args) => &args.load_from.group,
            _ => return None,
        };
        args.inventory.as_deref().zip(args.load_group.as_deref())
    }

    /// Takes hosts for those that drive its load.
    pub(crate) fn set_load_hosts(&mut self, names: &[String]) {
        match self {
            Command::Run(args) => args.load_from.hosts = names.to_vec(),
            Command::Tune(args) => args.load_from.hosts = names.to_vec(),
            Command::Bench(args) => args.load_from.hosts = names.to_vec(),
            _ => {}
        }
    }

    /// The hosts of an inventory that it is for, if it is for those.
    pub(crate) fn hosts(&self) -> Option<&HostsArgs> {
        let hosts = match self {
            Command::Facts(args) => &args.on,
            Command::Check(args) => &args.on,
            Command::Advise(args) => &args.on,
            Command::Status(args) => &args.on,
            _ => return None,
        };
        hosts.inventory.is_some().then_some(hosts)
    }

    /// Profiles that it names, which may be files.
    pub(crate) fn profiles(&self) -> Vec<String> {
        let mut words = match self {
            Command::Apply(args) => args.words(),
            Command::Verify(args) => args.words(),
            Command::Profile(ProfileCommand::Diff(args)) => vec![args.of.profile.clone()],
            Command::Tune(args) => args.start.clone(),
            _ => Vec::new(),
        };
        words.retain(|word| !word.contains('='));
        words
    }
}

/// Whether the command of this name can be for another host.
pub(crate) fn takes_host(name: &str) -> bool {
    let command = Command::augment_subcommands(clap::Command::new("pgdyno"));
    let found = command.find_subcommand(name);
    found.is_some_and(|found| found.get_arguments().any(|argument| argument.get_id() == "host"))
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreArg {
    /// Store of results: a file, or postgres://user@host/database [default: $PGDYNO_STORE, else a
    /// local file].
    // Global for `tag add` and `tag remove`, which are below a command that has it.
    #[arg(id = "store", long, value_name = "STORE", global = true)]
    place: Option<PathBuf>,
}

impl StoreArg {
    /// Its place as given; `None` for the default.
    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }
}

/// Which store, and how to print what is in it.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) store: StoreArg,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// A command with its subcommand, or a topic.
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell.
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// File of the report.
    #[arg(long, value_name = "FILE", default_value = "pgdyno-demo.html")]
    pub(crate) report: PathBuf,
    /// Keep the private server afterwards.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Directory of initdb, pg_ctl and postgres, instead of fetching the latest PostgreSQL.
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    pub(crate) target: String,
    /// File to write, which must not exist; - for standard output.
    #[arg(default_value = "experiment.toml")]
    pub(crate) file: PathBuf,
}

/// What of the shipped experiments.
#[derive(Debug, Args)]
pub(crate) struct ExperimentsArgs {
    /// Experiment whose file is printed.
    #[arg(conflicts_with = "schema")]
    pub(crate) name: Option<String>,
    /// Print the JSON schema of experiment files, for editors.
    #[arg(long)]
    pub(crate) schema: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One page with everything in it.
    Html,
    Text(TextFormat),
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Text(format) => format.name(),
        }
    }
}

/// The formats by their names, which the help lists.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let all = || iter::once(Format::Html).chain(TextFormat::ALL.map(Format::Text));
    PossibleValuesParser::new(all().map(Format::name))
        .try_map(move |name| all().find(|format| format.name() == name).ok_or("no such format"))
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Number of the experiment [default: the newest].
    pub(crate) id: Option<i64>,
    /// Format of the report.
    #[arg(long, short, value_parser = format_parser(), default_value = "html")]
    pub(crate) format: Format,
    /// File to write, - for standard output [default: pgdyno-report-ID.html; standard output for
    /// text formats].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Trials whose time series are embedded in the HTML: all, none, or numbers separated by
    /// commas. Above 5 MB the series of `all` are downsampled.
    #[arg(long, value_name = "all|none|ID,...", default_value = "all", value_parser = trials_wanted)]
    pub(crate) trials: TrialsWanted,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// Trials whose details a report includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrialsWanted {
    All,
    None,
    These(Vec<i64>),
}

fn trials_wanted(text: &str) -> Result<TrialsWanted, String> {
    let number = |word: &str| {
        let wrong =
            || format!("{word:?} is not a trial number; expected all, none, or numbers separated by commas");
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

fn assignment(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "expected NAME=VALUE, e.g. max_connections=300".to_owned())
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
    fn the_long_version_has_the_features_of_this_build() {
        let page = match pgdyno_report::page() {
            Ok(_) => ", with the web page, ",
            Err(_) => ", without the web page, ",
        };
        assert!(long_version().contains(page), "{}", long_version());
        let is_here = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        let uring = if is_here { "with io_uring." } else { " io_uring." };
        assert!(long_version().contains(uring), "{}", long_version());
    }

    #[test]
    fn every_command_is_in_one_group_and_has_an_example_that_it_takes() {
        let command = Cli::command();
        let visible: Vec<&clap::Command> = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set())
            .collect();
        let mut names: Vec<&str> = visible
            .iter()
            .map(|below| below.get_name())
            .filter(|name| *name != "help")
            .collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
        for below in visible {
            has_an_example(below, "pgdyno");
        }
    }

    /// Of this command and of those below it, whose arguments the example may have in between.
    fn has_an_example(command: &clap::Command, above: &str) {
        let name = format!("{above} {}", command.get_name());
        let help = command.get_after_help().map(ToString::to_string);
        let example = help.as_deref().and_then(|help| help.strip_prefix("Example: "));
        let example = example.unwrap_or_else(|| panic!("{name} has no example"));
        let words = pgdyno_workload::command_words(example).unwrap();
        let mut rest = words.iter();
        for part in name.split(' ') {
            assert!(rest.any(|word| word == part), "{name}: {example}");
        }
        Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{example}: {error}"));
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split([' ', ',']).next().unwrap_or_default();
        assert!(
            VERBS.contains(&first),
            "{name}: \"{about}\" does not begin with a verb"
        );
        for below in command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
        {
            has_an_example(below, &name);
        }
    }

    /// Imperatives that explain commands.
    const VERBS: [&str; 26] = [
        "Add", "Apply", "Check", "Compare", "Compute", "Continue", "Create", "Destroy", "Drop", "Export",
        "Find", "Import", "Keep", "List", "Measure", "Remove", "Restart", "Restore", "Run", "Serve", "Show",
        "Start", "Stop", "Verify", "Watch", "Write",
    ];

    #[test]
    fn an_assignment_is_split_at_its_first_sign() {
        assert_eq!(assignment("a = b=c"), Ok(("a".into(), "b=c".into())));
    }
}
