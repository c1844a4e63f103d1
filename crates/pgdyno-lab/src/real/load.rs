//! The load of a trial on a real server, with its pooler and neighbour.

use super::room::{Room, watched};
use super::target::{RealTarget, crash};
use crate::error::LabError;
use crate::file::{LoadPart, ServerPart};
use crate::foreign::{ProgramRun, measure_program};
use crate::measure::{LoadFrom, endpoint, measure};
use crate::neighbour::Neighbour;
use crate::plan::{Treatment, measure_s, plan_of};
use crate::pooled::BESIDE;
use crate::ports::{Apply, Drive, Driven, GoOn, Load, Meanwhile};
use crate::probe::{Depth, Probe, ServerBeside};
use pgdyno_engine::{Second, Warmup};
use pgdyno_knobs::{Agreed, Applied, Changer, Restart, Setting};
use pgdyno_sandbox::{Control, PoolMode, Pooler, PoolerKind, PoolerPlan};
use pgdyno_server::{Conninfo, Server, last_checkpoint};
use pgdyno_workload::{LoadPlan, libpq_variables};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checkpoints of a database are counted from another one: the session that asks is not counted
/// with the load.
pub(crate) const ASIDE: &str = "template1";

impl Load for RealTarget<'_> {
    fn drive(
        &mut self,
        drive: &Drive<'_>,
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> Result<Driven, LabError> {
        let treatment = drive.treatment;
        let direct = self.conninfo(drive.database)?;
        self.count_statements(&direct)?;
        let mut plan = plan_of(&treatment.load, drive.seed)?;
        if let Some(plan) = &mut plan {
            plan.session_options.clone_from(&self.session_options);
        }
        if let (Some(plan), Some(turns)) = (&mut plan, &drive.turns) {
            plan.drive.turns = Some(turns.slice);
            let servers = u32::try_from(turns.treatments.len()).unwrap_or(1);
            plan.drive.measure *= servers;
            if let Warmup::For(warmup) = &mut plan.drive.warmup {
                *warmup *= servers;
            }
        }
        let pooler = self.pooler(treatment, &direct, drive.files)?;
        let mut servers = self.servers_of(drive, &direct)?;
        if let (Some(pooler), Some(first)) = (&pooler, servers.first_mut()) {
            first.conninfo = pooler.conninfo().clone();
        }
        let driven = self.measure(drive, plan, (&servers, &direct), stop, go_on);
        if let Some(pooler) = pooler {
            pooler.stop()?;
        }
        driven
    }
}

/// What a neighbour finds in its environment: libpq's variables for the server, and PGDYNO_DATA,
/// which is the server's data directory, where that is on this host.
fn variables(
    changer: &Changer<'_>,
    server: &Conninfo,
) -> Result<Vec<(&'static str, Option<OsString>)>, LabError> {
    let mut variables = libpq_variables(&endpoint(server));
    let data = changer.target()?.data.as_ref();
    variables.push(("PGDYNO_DATA", data.map(|data| data.as_os_str().to_owned())));
    Ok(variables)
}

/// A server while its load runs.
struct Loaded<'c, 'x> {
    changer: &'c mut Changer<'x>,
    direct: &'c Conninfo,
    /// They end with the load.
    neighbours: Vec<Neighbour>,
}

impl Apply for Loaded<'_, '_> {
    fn apply(&mut self, settings: &[Agreed<Setting>], restart: Restart) -> Result<Vec<Applied>, LabError> {
        Apply::apply(self.changer, settings, restart)
    }
}

impl Meanwhile for Loaded<'_, '_> {
    fn kill(&mut self) -> Result<f64, LabError> {
        crash(self.changer)
    }

    fn start_neighbour(&mut self, part: &ServerPart) -> Result<(), LabError> {
        let variables = variables(self.changer, self.direct)?;
        self.neighbours.extend(Neighbour::start(part, &variables)?);
        Ok(())
    }
}

impl RealTarget<'_> {
    /// `servers` are those of the load, with its way to each; `direct` is the way of the questions
    /// about the treatment's own.
    fn measure(
        &mut self,
        drive: &Drive<'_>,
        plan: Option<LoadPlan>,
        (servers, direct): (&[ServerBeside], &Conninfo),
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> Result<Driven, LabError> {
        let Some((first, others)) = servers.split_first() else {
            return Err(LabError::NoServer);
        };
        let through = &first.conninfo;
        let target = self.changer.target()?;
        let driven: Vec<u32> = servers.iter().filter_map(|server| server.postmaster).collect();
        let replicating = self.replicating()?.into_iter();
        let host = self.resources.host;
        let data = target.data.clone();
        let probe = Probe {
            host: target.data.is_some().then(|| Arc::clone(host)),
            disk: target.disk.clone(),
            postmaster: first.postmaster,
            depth: Depth::Whole,
            changes: drive.changes,
            kills: drive.events.iter().any(|event| event.kill),
            beside: others.to_vec(),
            replicating: replicating.filter(|pid| !driven.contains(pid)).collect(),
        };
        let room = Room {
            part: drive.guard,
            host: &**host,
            data: data.as_deref(),
        };
        let scratch = self.resources.scratch.join(drive.files);
        let mut cycles = match Cycles::of(&drive.treatment.load) {
            Some(cycles) => Some((cycles, Server::connect(&direct.with_database(ASIDE))?)),
            None => None,
        };
        let variables = variables(&self.changer, direct)?;
        let neighbour = Neighbour::start(&drive.treatment.server, &variables)?;
        let mut loaded = Loaded {
            changer: &mut self.changer,
            direct,
            neighbours: neighbour.into_iter().collect(),
        };
        let (halt, mut is_enough) = (Arc::new(AtomicBool::new(false)), false);
        let mut on_second = |second: &Second| {
            is_enough |= cycles.as_mut().is_some_and(|(cycles, server)| {
                let last = second.measured.then(|| last_checkpoint(server).ok());
                cycles.are_over(second, last.flatten())
            });
            if !go_on(second, &mut loaded) || is_enough {
                halt.store(true, Ordering::Relaxed);
            }
        };
        let (measured, shortage) = watched(&room, stop, &halt, || match plan {
            Some(plan) => {
                let load = &drive.treatment.load;
                let from = load.hosts.as_deref().zip(self.resources.generators);
                let from = from.map(|(hosts, generators)| LoadFrom {
                    generators,
                    hosts,
                    connection: load.connection.as_deref(),
                });
                measure(through, &plan, &probe, (&halt, from.as_ref()), &mut on_second)
            }
            None => {
                let run = ProgramRun {
                    conninfo: through,
                    probe: &probe,
                    seed: drive.seed,
                    stop: &halt,
                    scratch: &scratch,
                };
                measure_program(drive.treatment, &run, &mut on_second)
            }
        });
        let mut measurement = measured?;
        let ended = loaded.neighbours.iter().filter_map(Neighbour::ended);
        measurement.warnings.extend(ended);
        Ok(Driven {
            measurement,
            shortage,
            is_enough,
        })
    }

    fn pooler(
        &self,
        treatment: &Treatment,
        direct: &Conninfo,
        files: &str,
    ) -> Result<Option<Pooler>, LabError> {
        let Some(plan) = plan_of_pooler(treatment, self.resources.pooler_directory(files)) else {
            return Ok(None);
        };
        let Control::Sandbox(sandbox) = &self.changer.target()?.control else {
            return Err(LabError::ForSandboxes("a pooler"));
        };
        Pooler::end_left_behind(&plan.directory)?;
        let user = sandbox.record().user.as_ref();
        Ok(Some(Pooler::start_before(direct, user, &plan)?))
    }
}

/// The pooler that a treatment needs; where its file does not say how many sessions it has, as many
/// as clients, and in session mode, in which nobody gives one back, with room for pgdyno's own too.
fn plan_of_pooler(treatment: &Treatment, directory: PathBuf) -> Option<PoolerPlan> {
    let server = &treatment.server;
    let kind = server.pooler?.kind()?;
    let clients = treatment.load.clients.unwrap_or(1);
    let clients_max = clients + BESIDE;
    let mode = server.pool_mode.map_or(PoolMode::Session, PoolMode::from);
    let pool_size = match (kind, mode) {
        (PoolerKind::Pgpool, _) => server.pool_size.unwrap_or(clients_max).max(clients_max),
        (PoolerKind::PgBouncer, PoolMode::Session) => server.pool_size.unwrap_or(clients_max),
        (PoolerKind::PgBouncer, _) => server.pool_size.unwrap_or(clients),
    };
    Some(PoolerPlan {
        kind,
        mode,
        pool_size,
        clients_max,
        directory,
        extra: Vec::new(),
    })
}

/// Whole checkpoint cycles of the measured time.
struct Cycles {
    wanted: u64,
    least_s: f64,
    /// The last checkpoint that had ended by the second before.
    last: Option<String>,
    /// How many have ended while measuring.
    ended: u64,
    measured_s: f64,
}

impl Cycles {
    fn of(load: &LoadPart) -> Option<Cycles> {
        Some(Cycles {
            wanted: u64::from(load.checkpoint_cycles?),
            least_s: measure_s(load),
            last: None,
            ended: 0,
            measured_s: 0.0,
        })
    }

    /// Whether as many checkpoints have ended as were asked for, and the least time has passed.
    /// `last` is the last one that has, where the server answers.
    fn are_over(&mut self, second: &Second, last: Option<String>) -> bool {
        if !second.measured {
            return false;
        }
        self.measured_s += second.length_s;
        if last.is_none() {
            return false;
        }
        let is_another = self.last.is_some() && self.last != last;
        self.ended += u64::from(is_another);
        self.last = last;
        self.ended >= self.wanted && self.measured_s >= self.least_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_engine::Books;

    #[test]
    fn cycles_are_over_when_both_the_checkpoints_and_the_least_time_have_passed() {
        let check = |seconds: &[(bool, Option<&str>)], expected: &[bool]| {
            let mut cycles = Cycles {
                wanted: 2,
                least_s: 3.0,
                last: None,
                ended: 0,
                measured_s: 0.0,
            };
            let found = seconds.iter().map(|(measured, last)| {
                let second = Second {
                    number: 1,
                    length_s: 1.0,
                    measured: *measured,
                    books: Books::new(false),
                    clients: 1,
                };
                cycles.are_over(&second, last.map(str::to_owned))
            });
            assert_eq!(found.collect::<Vec<bool>>(), expected, "{seconds:?}");
        };
        // Those of the warm-up do not count.
        check(
            &[
                (false, Some("0/5")),
                (true, Some("0/8")),
                (true, Some("0/9")),
                (true, Some("0/9")),
                (true, Some("0/A")),
            ],
            &[false, false, false, false, true],
        );
        check(
            &[
                (true, Some("0/8")),
                (true, Some("0/9")),
                (true, Some("0/A")),
                (true, Some("0/A")),
            ],
            &[false, false, true, true],
        );
        // A second in which the server does not answer is measured all the same.
        check(
            &[
                (true, Some("0/8")),
                (true, None),
                (true, Some("0/9")),
                (true, Some("0/A")),
            ],
            &[false, false, false, true],
        );
    }

    #[test]
    fn a_load_without_checkpoint_cycles_has_none() {
        assert!(Cycles::of(&LoadPart::default()).is_none());
    }
}
