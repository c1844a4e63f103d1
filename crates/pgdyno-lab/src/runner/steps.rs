//! A trial in its steps: data, settings, caches, what stands around, load, check, crash.

use super::data::conninfo_of;
use super::guard::{Guard, Room, watched};
use super::load::{measure_s, plan_of};
use super::{Event, Running};
use crate::decide::unsettled_s;
use crate::file::{LoadPart, Prewarm, RestartPolicy};
use crate::foreign::{Around, measure_program};
use crate::measure::{Depth, Measurement, Probe, measure};
use crate::neighbour::Neighbour;
use crate::plan::Treatment;
use crate::trial::{empty_record, failed, figures, filled, seed_of_trial};
use pgdyno_knobs::{Applied, Restart};
use pgdyno_load::Second;
use pgdyno_server::{
    Conninfo, Control, PoolMode, Pooler, PoolerKind, PoolerPlan, Server, ServerError, counters,
};
use pgdyno_store::{SeriesRecord, TrialRecord};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// A trial as it is stored.
type Done = (TrialRecord, SeriesRecord);
/// What a load has measured, and why a guard has ended it, if one has; `None` where somebody asked to stop.
type Driven = Option<(Measurement, Option<String>)>;

/// Checkpoints of a database are counted from another one: what asks is not counted with the load.
const ASIDE: &str = "template1";
/// Sessions through a pooler beside those of the load.
const POOLER_BESIDE: u32 = 4;

impl Running<'_, '_> {
    /// One trial with what was recorded beside it; `None` when it was stopped, for half a trial is none.
    pub(super) fn trial(&mut self, number: usize, block: u32, position: u32) -> Option<Done> {
        let treatment = &self.plan.treatments[number];
        let mut record = empty_record(block, position, treatment);
        let done = match self.steps(treatment, &mut record) {
            Ok(Some((measurement, guard))) => Some(self.close(number, record, measurement, guard)),
            Ok(None) => None,
            Err(reason) => Some((failed(record, reason), SeriesRecord::default())),
        };
        // What goes wrong because somebody asked to stop is no result.
        done.filter(|_| !self.is_stopped())
    }

    /// Everything up to the end of the load; an error is the reason why the trial failed.
    fn steps(&mut self, treatment: &Treatment, record: &mut TrialRecord) -> Result<Driven, String> {
        let stand = treatment.stand();
        self.go_to(&stand).map_err(text)?;
        record.stand = (!stand.is_target()).then(|| stand.label());
        self.bring_data(treatment).map_err(text)?;
        self.apply(treatment, record)?;
        let target = self.target().map_err(text)?;
        let direct = conninfo_of(self.plan, treatment, target);
        let probe = Probe {
            host: target.data.is_some().then(|| Arc::clone(self.lab.host)),
            disk: target.disk.clone(),
            postmaster: target.postmaster(&**self.lab.host),
            depth: Depth::Whole,
        };
        self.count_statements(&direct).map_err(text)?;
        self.prewarm(treatment, &direct).map_err(text)?;
        let pooler = self.pooler(treatment, &direct)?;
        let conninfo = pooler.as_ref().map_or(&direct, Pooler::conninfo).clone();
        checkpoint(&direct).map_err(text)?;
        let neighbour = Neighbour::start(&treatment.server).map_err(text)?;
        let seed = seed_of_trial(self.plan.seed, record.block, record.position);
        let driven = self.drive(treatment, &conninfo, &direct, &probe, seed);
        drop(neighbour);
        if let Some(pooler) = pooler {
            pooler.stop().map_err(text)?;
        }
        driven
    }

    fn apply(&mut self, treatment: &Treatment, record: &mut TrialRecord) -> Result<(), String> {
        let restart = match (treatment.data.prewarm, self.plan.file.target.restart) {
            (Some(Prewarm::Cold), _) => Restart::Cold,
            (_, RestartPolicy::Always) => Restart::Always,
            (_, RestartPolicy::WhenNeeded) => Restart::WhenNeeded,
        };
        let Some(at) = &mut self.at else {
            return Err("the trial has no server".to_owned());
        };
        let applied = at.changer.apply(&treatment.settings, restart).map_err(text)?;
        record.effective = applied
            .iter()
            .map(|a| (a.setting.knob.clone(), a.effective.clone()))
            .collect();
        did_not_take(&applied).map_or(Ok(()), Err)
    }

    fn drive(
        &mut self,
        treatment: &Treatment,
        conninfo: &Conninfo,
        direct: &Conninfo,
        probe: &Probe,
        seed: u64,
    ) -> Result<Driven, String> {
        let load = &treatment.load;
        let target = self.target().map_err(text)?;
        let data = target.data.clone();
        let host = Arc::clone(self.lab.host);
        let room = Room {
            part: &self.plan.file.guard,
            host: &*host,
            data: data.as_deref(),
        };
        let scratch = self.lab.scratch.join(self.id.to_string());
        let mut guard = Guard::new(&self.plan.file.guard);
        let mut cycles = Cycles::begin(load, direct).map_err(text)?;
        let plan = plan_of(load, seed).map_err(text)?;
        let (halt, mut guarded, mut enough) = (AtomicBool::new(false), None, false);
        let (stop, on_event) = (self.lab.stop, &mut *self.lab.on_event);
        let mut on_second = |second: &Second| {
            on_event(Event::Second(second));
            guarded = guarded.take().or_else(|| guard.second(&second.figures()));
            enough |= cycles.as_mut().is_some_and(|cycles| cycles.are_over(second));
            if guarded.is_some() || enough {
                halt.store(true, Ordering::Relaxed);
            }
        };
        let (measured, no_room) = watched(&room, stop, &halt, || match plan {
            Some(plan) => measure(conninfo, &plan, probe, &halt, &mut on_second),
            None => {
                let around = Around {
                    conninfo,
                    probe,
                    seed,
                    stop: &halt,
                    scratch: &scratch,
                };
                measure_program(treatment, &around, &mut on_second)
            }
        });
        let measurement = measured.map_err(text)?;
        let guarded = guarded.or(no_room);
        let stopped = measurement.load.stopped_early && guarded.is_none() && !enough;
        Ok((!stopped).then_some((measurement, guarded)))
    }

    /// The record of a load that was driven, and what a crash after it tells.
    fn close(
        &mut self,
        number: usize,
        record: TrialRecord,
        measurement: Measurement,
        guard: Option<String>,
    ) -> Done {
        let treatment = &self.plan.treatments[number];
        let mut record = filled(record, &measurement);
        record
            .figures
            .extend(figures(&self.plan.file.figure, &measurement));
        record.figures.extend(self.asked(treatment));
        record.unsettled_s = unsettled_s(&measurement);
        for warning in &measurement.warnings {
            (self.lab.on_event)(Event::TrialWarns { treatment, warning });
        }
        if let Some(reason) = guard {
            (self.lab.on_event)(Event::GuardActs {
                treatment,
                reason: &reason,
                lost: self.plan.file.blocks.saturating_sub(record.block),
            });
            self.ended.insert(number, reason.clone());
            return (failed(record, reason), measurement.series);
        }
        if treatment.load.crash == Some(true) && record.reason.is_none() {
            match self.crash() {
                Ok(recovery_s) => {
                    record.figures.insert("recovery_s".to_owned(), recovery_s);
                }
                Err(reason) => return (failed(record, reason), measurement.series),
            }
        }
        (record, measurement.series)
    }

    /// Figures that are asked from the server; one that it does not tell is missing.
    fn asked(&self, treatment: &Treatment) -> Vec<(String, f64)> {
        let figures = self.plan.file.figure.iter();
        let mut wanted = figures
            .filter_map(|figure| Some((&figure.name, figure.sql.as_ref()?)))
            .peekable();
        let (true, Ok(target)) = (wanted.peek().is_some(), self.target()) else {
            return Vec::new();
        };
        let Ok(mut server) = Server::connect(&conninfo_of(self.plan, treatment, target)) else {
            return Vec::new();
        };
        let ask = |(name, sql): (&String, &String)| {
            let value = server.value("asking for a figure", sql).ok().flatten()?;
            let value = value.parse::<f64>().ok().filter(|value| value.is_finite())?;
            Some((name.clone(), value))
        };
        wanted.filter_map(ask).collect()
    }

    /// Stops the server as a crash would, and takes the time until it answers again.
    fn crash(&self) -> Result<f64, String> {
        let Control::Sandbox(sandbox) = &self.target().map_err(text)?.control else {
            return Err("only a sandbox is killed".to_owned());
        };
        sandbox.crash().map_err(text)?;
        let begun = Instant::now();
        sandbox.start().map_err(text)?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn pooler(&self, treatment: &Treatment, direct: &Conninfo) -> Result<Option<Pooler>, String> {
        let directory = self.lab.pooler_directory(self.id);
        let Some(plan) = plan_of_pooler(treatment, directory) else {
            return Ok(None);
        };
        let Control::Sandbox(sandbox) = &self.target().map_err(text)?.control else {
            return Err("a pooler is started for sandboxes only".to_owned());
        };
        Pooler::end_left_behind(&plan.directory).map_err(text)?;
        let user = sandbox.record().user.as_ref();
        Pooler::start_before(direct, user, &plan).map(Some).map_err(text)
    }
}

/// The pooler that a treatment wants; where its file does not say how many sessions it has, as many as clients.
fn plan_of_pooler(treatment: &Treatment, directory: PathBuf) -> Option<PoolerPlan> {
    let server = &treatment.server;
    let kind = server.pooler?.kind()?;
    let clients = treatment.load.clients.unwrap_or(1);
    // Beside the load, one asks and one records.
    let clients_max = clients + POOLER_BESIDE;
    let pool_size = match kind {
        PoolerKind::Pgpool => server.pool_size.unwrap_or(clients_max).max(clients_max),
        PoolerKind::PgBouncer => server.pool_size.unwrap_or(clients),
    };
    Some(PoolerPlan {
        kind,
        mode: server.pool_mode.map_or(PoolMode::Session, PoolMode::from),
        pool_size,
        clients_max,
        directory,
        extra: Vec::new(),
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn checkpoint(conninfo: &Conninfo) -> Result<(), ServerError> {
    let mut server = Server::connect(conninfo)?;
    // On a limited disk it takes as long as it takes.
    server.without_limit()?;
    server.execute("a checkpoint before the load", "CHECKPOINT")
}

/// Whole checkpoint cycles of the measured time.
struct Cycles {
    wanted: u64,
    least_s: f64,
    server: Server,
    /// Checkpoints that had ended when measuring began.
    before: Option<u64>,
    measured_s: f64,
}

impl Cycles {
    fn begin(load: &LoadPart, direct: &Conninfo) -> Result<Option<Cycles>, ServerError> {
        let Some(wanted) = load.checkpoint_cycles else {
            return Ok(None);
        };
        Ok(Some(Cycles {
            wanted: u64::from(wanted),
            least_s: measure_s(load),
            server: Server::connect(&direct.with_database(ASIDE))?,
            before: None,
            measured_s: 0.0,
        }))
    }

    /// Whether as many checkpoints have ended as were asked for, and the least time has passed.
    fn are_over(&mut self, second: &Second) -> bool {
        if !second.measured {
            return false;
        }
        self.measured_s += second.length_s;
        let Ok(now) = counters(&mut self.server) else {
            return false;
        };
        let before = *self.before.get_or_insert(now.checkpoints);
        now.checkpoints.saturating_sub(before) >= self.wanted && self.measured_s >= self.least_s
    }
}

/// Which settings the target does not have though they were applied, if there are any.
fn did_not_take(applied: &[Applied]) -> Option<String> {
    let ignored: Vec<String> = applied
        .iter()
        .filter(|a| !a.took)
        .map(|a| {
            format!(
                "{} = {} did not take effect, it is {}",
                a.setting.knob, a.setting.value, a.effective
            )
        })
        .collect();
    (!ignored.is_empty()).then(|| ignored.join("; "))
}
