//! Another program's load, from its start to its figures.

use super::child::{Ended, Errand, Exit, ForeignError, follow};
use super::command::{fill, has_placeholder, seed_value, warms_up_itself};
use super::environment::{self, GRACE, all_variables, text_of};
use super::format::{Commits, ForeignFormat};
use super::job::JobPlan;
use super::output::{ForeignFigures, ForeignOutput, ForeignSecond};
use pgdyno_engine::CLIENTS_MAX;
use pgdyno_engine::Endpoint;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Beside twice the time that it was given, for its connections and its report.
const LIMIT_BESIDE: Duration = Duration::from_secs(60);

/// Which program to run as a load, and for how long.
#[derive(Debug, Clone)]
pub struct ForeignPlan {
    /// Format of the program's command and output.
    pub format: ForeignFormat,
    /// The program and its arguments, with placeholders ([`crate::command_words`] splits a text
    /// into them).
    pub command: Vec<String>,
    /// Number of connections that the program opens for its load.
    pub clients: u32,
    /// Threads of the program; at most as many as clients.
    pub threads: u32,
    /// Full load before anything is measured.
    pub warmup: Duration,
    /// Time after the warm-up that figures are of.
    pub measure: Duration,
    /// Seed of the program's random numbers.
    pub seed: u64,
    /// Size of the data, in the program's own unit.
    pub scale: u32,
    /// Variables beside those of the way to the server; they count more than those. Where the
    /// server's certificate is to be verified, PGSSLMODE and PGSSLROOTCERT belong here: an endpoint
    /// does not know its files.
    pub environment: Vec<(String, String)>,
    /// Where the program runs; `None`: where this one does.
    pub directory: Option<PathBuf>,
    /// A directory for the files of the format, and for what the program leaves.
    pub files: Option<PathBuf>,
    /// After this time it is ended, and there is no result.
    pub limit: Duration,
    /// What it has for its end after SIGINT, and after SIGTERM; then it is killed.
    pub grace: Duration,
}

/// Figures of another program's load that has ended.
#[derive(Debug, Clone)]
pub struct ForeignResult {
    /// Figures that were read of its output.
    pub figures: ForeignFigures,
    /// Time from its start to its end.
    pub wall_s: f64,
    /// CPU time of the program and its descendants, from its start to its end.
    pub client_cpu_us: u64,
    /// Sessions that it was to open.
    pub sessions: u32,
    /// What the server commits for it.
    pub commits: Commits,
    /// Transactions whose end the program may not have reported, at most.
    pub in_flight_at_end_max: u64,
    /// Whether it was stopped before its time.
    pub stopped_early: bool,
    /// Why it is not a measurement, though there are figures.
    pub broken: Option<String>,
    /// Exit code or signal.
    pub exit: Exit,
}

impl ForeignPlan {
    /// The format's own command, with seed 1 and scale 1.
    pub fn new(
        format: ForeignFormat,
        clients: u32,
        threads: u32,
        warmup: Duration,
        measure: Duration,
    ) -> ForeignPlan {
        ForeignPlan {
            command: format.command.clone(),
            format,
            clients,
            threads,
            warmup,
            measure,
            seed: 1,
            scale: 1,
            environment: Vec::new(),
            directory: None,
            files: None,
            limit: (warmup + measure) * 2 + LIMIT_BESIDE,
            grace: GRACE,
        }
    }

    /// The job that makes its data, where the format has one.
    pub fn prepare(&self) -> Option<JobPlan> {
        self.beside(&self.format.prepare)
    }

    /// The job that drops them, where the format has one.
    pub fn cleanup(&self) -> Option<JobPlan> {
        self.beside(&self.format.cleanup)
    }

    fn beside(&self, command: &[String]) -> Option<JobPlan> {
        (!command.is_empty()).then(|| JobPlan {
            threads: self.threads,
            seed: self.seed,
            scale: self.scale,
            broken: self.format.broken.clone(),
            files: self.files.clone(),
            environment: self.environment.clone(),
            directory: self.directory.clone(),
            grace: self.grace,
            ..JobPlan::new(command.to_vec())
        })
    }

    /// Whether its numbers can be.
    fn check(&self) -> Result<(), ForeignError> {
        let flaw = if self.clients == 0 || self.clients > CLIENTS_MAX {
            format!("clients must be 1 to {CLIENTS_MAX}, not {}", self.clients)
        } else if self.threads == 0 || self.threads > self.clients {
            format!(
                "threads must be 1 to the number of clients ({}), not {}",
                self.clients, self.threads
            )
        } else if self.measure < Duration::from_secs(1) {
            "the measured time must be at least one second".to_owned()
        } else if self.command.is_empty() {
            format!(
                "the format {} has no command of its own; say which one to run",
                self.format.name
            )
        } else {
            return Ok(());
        };
        Err(ForeignError::Plan(flaw))
    }

    fn errand(&self, endpoint: &Endpoint) -> Result<Errand, ForeignError> {
        let seconds = match warms_up_itself(&self.command) {
            true => self.measure,
            false => self.warmup + self.measure,
        };
        let mut values = environment::values(endpoint);
        values.extend([
            ("clients", Some(self.clients.to_string())),
            ("threads", Some(self.threads.to_string())),
            ("seconds", Some(whole_s(seconds).to_string())),
            ("seed", Some(seed_value(self.seed))),
            ("scale", Some(self.scale.to_string())),
            ("warmup_s", Some(whole_s(self.warmup).to_string())),
            ("minutes", Some(whole_minutes(self.measure).to_string())),
            ("warmup_minutes", Some(whole_minutes(self.warmup).to_string())),
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

/// Programs take whole seconds.
fn whole_s(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Some take whole minutes.
fn whole_minutes(time: Duration) -> u64 {
    whole_s(time).div_ceil(60)
}

impl ForeignResult {
    /// What the server must have committed at least for what the program has counted; `None` where
    /// nobody knows.
    pub fn server_commits(&self) -> Option<u64> {
        self.figures
            .transactions?
            .checked_mul(self.commits.per_transaction?)
    }

    /// What it may have committed beside that.
    pub fn server_commits_beside_max(&self) -> u64 {
        let unfinished = self.in_flight_at_end_max * self.commits.per_transaction.unwrap_or(1);
        let sessions = u64::from(self.sessions) * self.commits.per_session_max;
        unfinished + sessions + self.commits.per_run_max
    }

    /// Client CPU per transaction of the whole run; `None` where they were not counted.
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds and transactions of a run"
    )]
    pub fn client_cpu_us_per_tx(&self) -> Option<f64> {
        let transactions = self.figures.transactions.filter(|&count| count > 0)?;
        Some(self.client_cpu_us as f64 / transactions as f64)
    }
}

/// Runs the program and reads its output. `stop` ends it early with what there is; `on_second` is
/// called with each second that the program reports, when it reports it.
pub fn run_foreign(
    endpoint: &Endpoint,
    plan: &ForeignPlan,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(&ForeignSecond),
) -> Result<ForeignResult, ForeignError> {
    plan.check()?;
    let errand = plan.errand(endpoint)?;
    let mut output = ForeignOutput::new(
        &plan.format,
        plan.warmup.as_secs_f64(),
        warms_up_itself(&plan.command),
        environment::secret(endpoint),
    );
    let ended = follow(&errand, stop, &mut |stream, bytes, since_start_s| {
        output.read(stream, bytes, since_start_s, on_second);
        true
    })?;
    let mut figures = output.finish(ended.wall_s, on_second);
    if has_placeholder(&plan.command, "minutes") {
        figures.measured_s = plan.measure.as_secs_f64();
    }
    judged(&errand, plan, &ended, figures)
}

fn judged(
    errand: &Errand,
    plan: &ForeignPlan,
    ended: &Ended,
    figures: ForeignFigures,
) -> Result<ForeignResult, ForeignError> {
    let program = errand.program();
    if ended.too_long {
        return Err(ForeignError::TooLong {
            program,
            limit: errand.limit,
            last_lines: figures.last_lines,
        });
    }
    let went_well = matches!(ended.exit, Exit::Code(code) if plan.format.exit_codes.contains(&code));
    if !ended.stopped && figures.tps.is_none() {
        let last_lines = figures.last_lines;
        return Err(match went_well {
            true => ForeignError::NothingRead {
                program,
                what: "throughput".into(),
                format: plan.format.name.clone(),
                last_lines,
            },
            false => ForeignError::Failed {
                program,
                exit: ended.exit,
                last_lines,
            },
        });
    }
    let broken = match ended.stopped {
        // How a program ends that was asked to says nothing of its figures.
        true => None,
        false => {
            let by_exit = (!went_well).then(|| format!("{program} ended with {}", ended.exit));
            figures.broken.clone().or(by_exit)
        }
    };
    let unfinished = ended.stopped || broken.is_some();
    Ok(ForeignResult {
        wall_s: ended.wall_s,
        client_cpu_us: ended.cpu_us,
        sessions: plan.clients,
        commits: plan.format.commits,
        in_flight_at_end_max: if unfinished { u64::from(plan.clients) } else { 0 },
        stopped_early: ended.stopped,
        broken,
        exit: ended.exit,
        figures,
    })
}
