//! A job: a command that does something once, and how long it took.

use super::child::{Errand, Exit, ForeignError, follow};
use super::command::{fill, seed_value};
use super::environment::{self, GRACE, all_variables, text_of};
use super::lines::{LastLines, LineCutter};
use super::output::ForeignStream;
use super::pattern::{compile, number};
use pgdyno_engine::Endpoint;
use regex_lite::Regex;
use serde::Deserialize;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// After this time a job is ended, unless its plan says otherwise.
const LIMIT: Duration = Duration::from_hours(24);

/// A command whose wall-clock time is the result.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// The program and its arguments, with the placeholders of a load's but those of clients and
    /// times.
    pub command: Vec<String>,
    /// Value of `{threads}` in the command.
    pub threads: u32,
    /// Value of `{seed}` in the command.
    pub seed: u64,
    /// Value of `{scale}` in the command.
    pub scale: u32,
    /// A figure of its output that is the result beside its time.
    pub figure: Option<FigureFormat>,
    /// Exit codes of a job that went well.
    pub exit_codes: Vec<i32>,
    /// A line that matches one of these says that it has failed, whatever its exit code; it is
    /// ended then.
    pub broken: Vec<Regex>,
    /// A directory for the files of the program's format, and for what it leaves.
    pub files: Option<PathBuf>,
    /// Variables beside those of the way to the server; they count more than those.
    pub environment: Vec<(String, String)>,
    /// Where the program runs; `None`: where this one does.
    pub directory: Option<PathBuf>,
    /// After this time it is ended, and there is no result.
    pub limit: Duration,
    /// What it has for its end after SIGINT, and after SIGTERM; then it is killed.
    pub grace: Duration,
}

/// A figure as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    pattern: String,
    #[serde(default)]
    unit: String,
    larger_is_better: bool,
}

/// How a figure is found in a job's output. Can be read from a table of a file by serde: name,
/// pattern, unit, larger_is_better.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct FigureFormat {
    /// Name of the figure in results.
    pub name: String,
    /// Unit as it is shown; empty without one.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub larger_is_better: bool,
    pattern: Regex,
}

impl TryFrom<Written> for FigureFormat {
    type Error = String;

    fn try_from(written: Written) -> Result<FigureFormat, String> {
        FigureFormat::new(
            &written.name,
            &written.pattern,
            &written.unit,
            written.larger_is_better,
        )
    }
}

impl FigureFormat {
    /// One that is the group `value` of a regular expression. Errors say what is wrong with it.
    pub fn new(
        name: &str,
        pattern: &str,
        unit: &str,
        larger_is_better: bool,
    ) -> Result<FigureFormat, String> {
        let flaw = |flaw: String| format!("the pattern of the figure {name}: {flaw}");
        let pattern = compile(pattern).map_err(flaw)?;
        if !pattern.capture_names().flatten().any(|group| group == "value") {
            return Err(flaw("it has no group (?<value>…)".into()));
        }
        Ok(FigureFormat {
            name: name.to_owned(),
            unit: unit.to_owned(),
            larger_is_better,
            pattern,
        })
    }

    fn read(&self, line: &str) -> Option<f64> {
        number(self.pattern.captures(line)?.name("value")?.as_str())
    }
}

/// A figure of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name of the figure in results.
    pub name: String,
    /// Number in the last line of the output that has it.
    pub value: f64,
    /// Unit as it is shown; empty without one.
    pub unit: String,
    /// Whether a larger value is the better one.
    pub larger_is_better: bool,
}

/// Time and figure of a job that has ended.
#[derive(Debug, Clone)]
pub struct JobResult {
    /// Time from its start to its end.
    pub wall_s: f64,
    /// CPU time of the program and its descendants.
    pub client_cpu_us: u64,
    /// Exit code or signal.
    pub exit: Exit,
    /// The figure that was asked for; `None` of one that was stopped before it printed it.
    pub figure: Option<Figure>,
    /// Whether it was stopped before its end: its time is then none of the job.
    pub stopped_early: bool,
    /// The last lines of its output, without the password.
    pub last_lines: Vec<String>,
}

impl JobPlan {
    /// A command of which nothing but its time is wanted.
    pub fn new(command: Vec<String>) -> JobPlan {
        JobPlan {
            command,
            threads: 1,
            seed: 1,
            scale: 1,
            figure: None,
            exit_codes: vec![0],
            broken: Vec::new(),
            files: None,
            environment: Vec::new(),
            directory: None,
            limit: LIMIT,
            grace: GRACE,
        }
    }

    fn errand(&self, endpoint: &Endpoint) -> Result<Errand, ForeignError> {
        let mut values = environment::values(endpoint);
        values.extend([
            ("threads", Some(self.threads.to_string())),
            ("seed", Some(seed_value(self.seed))),
            ("scale", Some(self.scale.to_string())),
            ("files", text_of(self.files.as_deref())),
        ]);
        Ok(Errand {
            words: fill(&self.command, &values)?,
            variables: all_variables(endpoint, &self.environment),
            directory: self.directory.clone(),
            limit: self.limit,
            grace: self.grace,
        })
    }
}

/// Runs a job to its end; `stop` ends it early. One that ends otherwise than it should is an error.
pub fn run_job(endpoint: &Endpoint, plan: &JobPlan, stop: &AtomicBool) -> Result<JobResult, ForeignError> {
    let errand = plan.errand(endpoint)?;
    let mut last_lines = LastLines::without(environment::secret(endpoint));
    let (mut value, is_broken) = (None, Cell::new(false));
    let mut on_line = |line: &str| {
        last_lines.keep(line);
        is_broken.set(is_broken.get() || plan.broken.iter().any(|broken| broken.is_match(line)));
        value = plan
            .figure
            .as_ref()
            .and_then(|figure| figure.read(line))
            .or(value);
    };
    let mut cutters = [LineCutter::default(), LineCutter::default()];
    let ended = follow(&errand, stop, &mut |stream, bytes, _| {
        cutters[usize::from(stream == ForeignStream::Err)].push(bytes, &mut on_line);
        !is_broken.get()
    })?;
    for cutter in &mut cutters {
        cutter.end(&mut on_line);
    }
    let (program, last_lines) = (errand.program(), last_lines.into_vec());
    if ended.too_long {
        return Err(ForeignError::TooLong {
            program,
            limit: errand.limit,
            last_lines,
        });
    }
    if ended.refused || is_broken.get() {
        return Err(ForeignError::Broken { program, last_lines });
    }
    let went_well = matches!(ended.exit, Exit::Code(code) if plan.exit_codes.contains(&code));
    if !ended.stopped && !went_well {
        return Err(ForeignError::Failed {
            program,
            exit: ended.exit,
            last_lines,
        });
    }
    let figure = plan.figure.as_ref().zip(value).map(|(format, value)| Figure {
        name: format.name.clone(),
        value,
        unit: format.unit.clone(),
        larger_is_better: format.larger_is_better,
    });
    if let (Some(wanted), None, false) = (&plan.figure, &figure, ended.stopped) {
        return Err(ForeignError::NothingRead {
            program,
            what: wanted.name.clone(),
            format: format!("of the figure {}", wanted.name),
            last_lines,
        });
    }
    Ok(JobResult {
        wall_s: ended.wall_s,
        client_cpu_us: ended.cpu_us,
        exit: ended.exit,
        figure,
        stopped_early: ended.stopped,
        last_lines,
    })
}
