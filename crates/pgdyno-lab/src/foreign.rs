//! Another program as the load of a trial, or a job whose time is the result: watched,
//! cross-checked and stored as the built-in engine's load is.

use crate::file::LoadPart;
use crate::measure::{MeasureError, Shape, endpoint, watch};
use crate::measurement::{Measurement, Reported};
use crate::plan::{Treatment, measure_s, threads_of};
use crate::probe::Probe;
use pgdyno_engine::{Books, Counts, LoadResult, Second, SecondFigures};
use pgdyno_host::{Owner, USUAL_MODE, make_directory};
use pgdyno_record::{Given, Metric, Percentiles};
use pgdyno_server::Conninfo;
use pgdyno_stats::knows_percentile;
use pgdyno_workload::{
    ForeignFormat, ForeignPlan, ForeignResult, ForeignSecond, JobPlan, JobResult, command_words,
    foreign_formats, run_foreign, run_job,
};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Program name of a single command whose time is measured.
const JOB: &str = "job";
/// The figure that is its result.
const JOB_S: &str = "job_s";
/// Directory of a program's files, in the scratch directory of a run.
const FILES: &str = "files";
/// A job may take a day.
const JOB_LIMIT: Duration = Duration::from_secs(86_400);

/// What a treatment's program is run with.
pub(crate) struct ProgramRun<'a> {
    pub(crate) conninfo: &'a Conninfo,
    pub(crate) probe: &'a Probe,
    pub(crate) seed: u64,
    pub(crate) stop: &'a AtomicBool,
    /// Where programs run, and may leave files.
    pub(crate) scratch: &'a Path,
}

/// Runs a treatment's program with what goes before and after it, and watches the server meanwhile.
pub(crate) fn measure_program(
    treatment: &Treatment,
    run: &ProgramRun<'_>,
    on_second: &mut dyn FnMut(&Second),
) -> Result<Measurement, MeasureError> {
    let load = &treatment.load;
    let name = load.program.as_deref().unwrap_or(JOB);
    let scale = treatment.data.scale.unwrap_or(1);
    let prepared = run.aside(load.prepare.as_deref(), load, scale, run.stop);
    let measured = prepared.and_then(|()| match name == JOB {
        true => run.job(load, scale, on_second),
        false => run.program(load, name, scale, on_second),
    });
    // What cleans up does so too after a load that was stopped, and after half of what prepares it.
    let cleaned = run.aside(load.cleanup.as_deref(), load, scale, &AtomicBool::new(false));
    let measured = measured?;
    cleaned.map(|()| measured)
}

/// The programs that a load runs, as they are looked for.
pub(crate) fn programs_of(load: &LoadPart) -> Vec<String> {
    let Some(name) = load.program.as_deref() else {
        return Vec::new();
    };
    let first = |command: Option<&str>| command_words(command?).ok()?.into_iter().next();
    let usual = || format_of(name).ok()?.command.first().cloned();
    let main = first(load.command.as_deref()).or_else(usual);
    let aside = [first(load.prepare.as_deref()), first(load.cleanup.as_deref())];
    let is_usual = load.command.is_none();
    let needs = is_usual.then(|| format_of(name).ok()).flatten();
    let needs = needs.map(|format| format.needs).unwrap_or_default();
    main.into_iter()
        .chain(aside.into_iter().flatten())
        .chain(needs)
        .collect()
}

/// Whether a load is the usual one of a program that runs for whole minutes.
pub(crate) fn is_in_minutes(load: &LoadPart) -> bool {
    let usual = load.program.as_deref().filter(|_| load.command.is_none());
    usual.is_some_and(|name| format_of(name).is_ok_and(|format| format.is_in_minutes()))
}

/// Data that a program makes for its usual load: in a database of its own, on a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramData {
    program: String,
    scale: u32,
}

impl ProgramData {
    /// That of a treatment; `None` where its load reads a data set of pgdyno's, or the file has
    /// commands of its own.
    pub(crate) fn of(treatment: &Treatment) -> Option<ProgramData> {
        let load = &treatment.load;
        let commands = [&load.command, &load.prepare, &load.cleanup];
        let has_own = commands.into_iter().any(Option::is_some) || treatment.data.of_load(load).is_some();
        let program = load.program.clone().filter(|_| !has_own)?;
        let makes_data = format_of(&program).is_ok_and(|format| !format.prepare.is_empty());
        makes_data.then(|| ProgramData {
            program,
            scale: treatment.data.scale.unwrap_or(1),
        })
    }

    /// Name of its database.
    pub(crate) fn database(&self) -> String {
        format!("pgdyno_of_{}_{}", self.program.replace('-', "_"), self.scale)
    }

    /// What the comment on its schema says once all of it is there.
    pub(crate) fn mark(&self) -> String {
        format!("{}, scale {}, whole", self.program, self.scale)
    }

    /// Makes it, in its database, which is there and empty.
    pub(crate) fn make(
        &self,
        conninfo: &Conninfo,
        load: &LoadPart,
        scratch: &Path,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let format = format_of(&self.program)?;
        let files = scratch.join(FILES);
        write_files(&format, &files)?;
        let threads = threads_of(load);
        let plan = ForeignPlan {
            scale: self.scale,
            environment: conninfo.tls_variables(),
            files: Some(files),
            ..ForeignPlan::new(format, threads, threads, Duration::ZERO, Duration::ZERO)
        };
        if let Some(job) = plan.prepare() {
            run_job(&endpoint(conninfo), &job, stop)?;
        }
        Ok(())
    }
}

/// Writes the files that a program's commands need into a directory for nobody else: a program may
/// keep its connection there, with the password.
fn write_files(format: &ForeignFormat, directory: &Path) -> Result<(), MeasureError> {
    let above = directory.parent().unwrap_or(directory);
    let held = make_directory(above, USUAL_MODE).and_then(|_| make_directory(directory, 0o700));
    let written = held.and_then(|held| {
        let mut files = format.files.iter();
        files.try_for_each(|file| held.replace(&file.name, file.text.as_bytes(), Owner::own(0o600)))
    });
    written.map_err(|source| MeasureError::Scratch {
        path: directory.to_owned(),
        source,
    })
}

impl ProgramRun<'_> {
    fn job_plan(&self, command: &str, load: &LoadPart, scale: u32) -> Result<JobPlan, MeasureError> {
        make_directory(self.scratch, USUAL_MODE).map_err(|source| MeasureError::Scratch {
            path: self.scratch.to_owned(),
            source,
        })?;
        Ok(JobPlan {
            threads: threads_of(load),
            seed: self.seed,
            scale,
            directory: Some(self.scratch.to_owned()),
            environment: self.conninfo.tls_variables(),
            limit: JOB_LIMIT,
            ..JobPlan::new(command_words(command)?)
        })
    }

    /// A command that is not measured.
    fn aside(
        &self,
        command: Option<&str>,
        load: &LoadPart,
        scale: u32,
        stop: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let Some(command) = command else { return Ok(()) };
        let plan = self.job_plan(command, load, scale)?;
        run_job(&endpoint(self.conninfo), &plan, stop)?;
        Ok(())
    }

    fn job(
        &self,
        load: &LoadPart,
        scale: u32,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Measurement, MeasureError> {
        let command = load.command.as_deref().unwrap_or_default();
        let plan = self.job_plan(command, load, scale)?;
        let mut figures = Vec::new();
        let shape = Shape {
            clients: 1,
            warmup_s: Some(0.0),
            has_seconds: false,
        };
        let mut measurement = watch(self.conninfo, shape, self.probe, on_second, &mut |_| {
            let result = run_job(&endpoint(self.conninfo), &plan, self.stop)?;
            figures = vec![(JOB_S.to_owned(), result.wall_s)];
            figures.extend(
                result
                    .figure
                    .as_ref()
                    .map(|figure| (figure.name.clone(), figure.value)),
            );
            Ok(job_result(&result))
        })?;
        measurement.figures.extend(figures);
        // Nobody has counted what it committed.
        measurement.cross_check = None;
        measurement.unchecked = None;
        Ok(measurement)
    }

    fn program(
        &self,
        load: &LoadPart,
        name: &str,
        scale: u32,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Measurement, MeasureError> {
        let clients = load.clients.unwrap_or(1);
        let format = format_of(name)?;
        let files = self.scratch.join(FILES);
        write_files(&format, &files)?;
        let plan = ForeignPlan {
            seed: self.seed,
            scale,
            environment: self.conninfo.tls_variables(),
            files: Some(files),
            ..ForeignPlan::new(
                format,
                clients,
                threads_of(load),
                Duration::from_secs_f64(load.warmup_s.unwrap_or(0.0)),
                Duration::from_secs_f64(measure_s(load)),
            )
        };
        let plan = match load.command.as_deref() {
            Some(command) => ForeignPlan {
                command: command_words(command)?,
                ..plan
            },
            None => plan,
        };
        let mut outcome = None;
        let shape = Shape {
            clients,
            warmup_s: Some(plan.warmup.as_secs_f64()),
            has_seconds: plan.format.has_seconds(),
        };
        let mut measurement = watch(self.conninfo, shape, self.probe, on_second, &mut |on_second| {
            let mut number = 0;
            let result = run_foreign(&endpoint(self.conninfo), &plan, self.stop, &mut |second| {
                number += 1;
                on_second(&second_of(second, number, clients));
            })?;
            let load = load_result(&result, &plan);
            outcome = Some(result);
            Ok(load)
        })?;
        if let Some(result) = outcome {
            report(&mut measurement, &result, name);
        }
        Ok(measurement)
    }
}

/// Puts what the program reports of itself into the measurement.
fn report(measurement: &mut Measurement, result: &ForeignResult, program: &str) {
    let latency = &result.figures.latency;
    let committed = measurement.load.measured.committed;
    let known = |percentile, ms: Option<f64>| ms.filter(|_| knows_percentile(committed, percentile));
    measurement.reported = Some(Reported {
        program: program.to_owned(),
        percentiles: Percentiles {
            mean_ms: latency.mean_ms,
            p50_ms: known(50.0, latency.p50_ms),
            p95_ms: known(95.0, latency.p95_ms),
            p99_ms: known(99.0, latency.p99_ms),
            max_ms: latency.max_ms,
        }
        .if_any(),
        failed: result.figures.failed,
    });
    measurement.broken = measurement.broken.take().or_else(|| result.broken.clone());
    if let Some(nopm) = result.figures.nopm {
        measurement.figures.insert("nopm".to_owned(), nopm);
    }
    if result.server_commits().is_none() {
        measurement.cross_check = None;
        measurement.unchecked = None;
        measurement
            .disturbances
            .push("no cross-check: the program does not report its commits".to_owned());
    }
}

fn format_of(name: &str) -> Result<ForeignFormat, MeasureError> {
    let formats = foreign_formats()?;
    let known = formats.iter().map(|format| format.name.clone()).collect();
    let name = name.to_owned();
    let found = formats.into_iter().find(|format| format.name == name);
    found.ok_or(MeasureError::UnknownProgram { name, known })
}

/// Whether trials of a program can have a metric, as far as its known output says.
pub(crate) fn gives(program: &str, metric: &Metric) -> bool {
    if program == JOB {
        let per_transaction = metric.is_cost || metric.given == Given::Always;
        return !per_transaction;
    }
    // What a transaction costs is measured by pgdyno, and throughput is what every format has.
    match metric.id {
        "mean_ms" | "p50_ms" | "p95_ms" | "p99_ms" | "max_ms" | "nopm" => reports(program, metric.id),
        _ => !matches!(metric.given, Given::OfLatencyLimits | Given::OfSeveralServers),
    }
}

/// Whether a program's known output has a metric.
pub(crate) fn reports(program: &str, metric: &str) -> bool {
    format_of(program).is_ok_and(|format| format.reports(metric))
}

/// Programs that can be a load, by name.
pub(crate) fn programs() -> Vec<String> {
    let formats = foreign_formats().unwrap_or_default();
    formats
        .into_iter()
        .map(|format| format.name)
        .chain([JOB.to_owned()])
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "transactions of a second"
)]
fn second_of(second: &ForeignSecond, number: u32, clients: u32) -> Second {
    let mut books = Books::for_a_second();
    books.committed = (second.tps * second.length_s).round().max(0.0) as u64;
    books.failed = (second.failed_per_s.unwrap_or(0.0) * second.length_s)
        .round()
        .max(0.0) as u64;
    books.all = books.committed + books.failed;
    Second {
        number,
        length_s: second.length_s,
        measured: second.measured,
        books,
        clients,
    }
}

/// The books that a program's figures make.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "transactions of a run"
)]
fn load_result(result: &ForeignResult, plan: &ForeignPlan) -> LoadResult {
    let figures = &result.figures;
    let measured_s = if figures.measured_s > 0.0 {
        figures.measured_s
    } else {
        plan.measure.as_secs_f64()
    };
    let mut measured = Books::new(false);
    measured.committed = (figures.tps.unwrap_or(0.0) * measured_s).round().max(0.0) as u64;
    measured.failed = figures.failed.unwrap_or(0);
    measured.all = measured.committed + measured.failed;
    // Of what it has committed while it warmed up it says nothing, and what that took is in all
    // that is measured around it.
    let warmup_s = plan.warmup.as_secs_f64();
    let excluded_s = if figures.latency_includes_warmup {
        0.0
    } else {
        warmup_s
    };
    let counted = figures.transactions.unwrap_or(measured.committed);
    let committed = (counted as f64 * (1.0 + excluded_s / measured_s)).round() as u64;
    let share = measured.committed as f64 / committed.max(1) as f64;
    let seconds: Vec<SecondFigures> = (1..)
        .zip(&figures.seconds)
        .map(|(number, second)| SecondFigures {
            p95_ms: second.latency.p95_ms,
            p99_ms: second.latency.p99_ms,
            ..second_of(second, number, plan.clients).figures()
        })
        .collect();
    LoadResult {
        measured,
        whole: Counts {
            all: committed + figures.failed.unwrap_or(0),
            committed,
            failed: figures.failed.unwrap_or(0),
            server_commits: result.server_commits().unwrap_or(0),
            ..Counts::default()
        },
        seconds,
        measured_s,
        warmup_s,
        // What it may have committed beside what it has counted.
        in_flight_at_end: result.server_commits_beside_max(),
        sessions: result.sessions,
        client_cpu_us: result.client_cpu_us as f64 * share.min(1.0),
        stopped_early: result.stopped_early,
        engine: plan.format.name.clone(),
        ..LoadResult::empty()
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of CPU")]
fn job_result(result: &JobResult) -> LoadResult {
    LoadResult {
        measured_s: result.wall_s,
        client_cpu_us: result.client_cpu_us as f64,
        sessions: 1,
        stopped_early: result.stopped_early,
        engine: JOB.to_owned(),
        ..LoadResult::empty()
    }
}
