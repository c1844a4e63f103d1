//! One load, watched: host samples beside it, the server's own counters behind it.

mod asked;

use crate::beside::{Beside, host_second};
use crate::distribution::distribution;
use crate::measurement::{Measurement, OfServer};
use crate::probe::{Probe, ServerBeside};
use crate::statements::MeasuredStatements;
use asked::{Asked, Settled};
use pgdyno_engine::{
    ConnectError, Endpoint, Heat, LoadResult, Protocol, Rest, Second, SecondFigures, Warmup,
    keeps_prepared_statements,
};
use pgdyno_host::{CpuUse, LocalHost, OthersCpu, children, cpu_us_of_tree, online_cpus};
use pgdyno_record::{CrossCheck, ErrorClass, GeneratorHost, HeatRecord, SecondRecord, SeriesRecord};
use pgdyno_server::series::OwnCommits;
use pgdyno_server::{Conninfo, Counters, ServerError};
use pgdyno_stats::{WarmUp, coefficient_of_variation, steadiness, warm_up_end};
use pgdyno_workload::{CommandError, ForeignError, FormatError, LoadError, LoadPlan};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The name under which the load's sessions are seen.
const LOAD_NAME: &str = "pgdyno load";
/// That of the recorder's session, and of those of a `pgdyno watch` that somebody has beside the
/// load.
const RECORDER_NAME: &str = pgdyno_server::series::NAME;
/// Disturbances are reported from these on.
const UNCHECKED_KILL: &str =
    "no cross-check: the server was killed while the load ran, and began to count again";
const STEAL_MAX: f64 = 0.02;
const OTHERS_MAX: f64 = 0.10;

/// Where a load goes: the server of a connection string, under a name of its own.
pub fn endpoint(conninfo: &Conninfo) -> Endpoint {
    let mut config = conninfo.config().clone();
    config.application_name(conninfo.session_name(LOAD_NAME));
    Endpoint::new(config, conninfo.tls().cloned())
        .opened_by(conninfo.socket_user())
        .pooled(conninfo.is_proxied())
}

/// Drives a load and watches it. Errors are those of the load's start and of the server before it;
/// what happens later is part of the measurement.
pub fn measure(
    conninfo: &Conninfo,
    plan: &LoadPlan,
    probe: &Probe,
    (stop, from): (&Arc<AtomicBool>, Option<&LoadFrom<'_>>),
    on_second: &mut dyn FnMut(&Second),
) -> Result<Measurement, MeasureError> {
    let ways = std::iter::once(conninfo).chain(probe.beside.iter().map(|beside| &beside.conninfo));
    let endpoints: Vec<Endpoint> = ways.map(|way| endpoint(way).stopped_by(stop)).collect();
    if conninfo.is_proxied() && plan.protocol == Protocol::Prepared {
        keeps_prepared_statements(&endpoints[0])?;
    }
    let shape = Shape {
        clients: plan.drive.clients,
        warmup_s: match plan.drive.warmup {
            Warmup::For(warmup) => Some(warmup.as_secs_f64()),
            Warmup::Settled(_) => None,
        },
        has_seconds: true,
    };
    let (mut load_hosts, mut warnings) = (Vec::new(), Vec::new());
    let mut measurement = watch(conninfo, shape, probe, on_second, &mut |on_second| {
        let Some(from) = from else {
            return Ok(pgdyno_workload::run(&endpoints, plan, stop, on_second)?);
        };
        let beside = probe.beside.iter().map(|beside| &beside.conninfo);
        let ways: Vec<&Conninfo> = std::iter::once(conninfo).chain(beside).collect();
        let generated = from.generators.drive(from, &ways, plan, stop, on_second);
        let generated = generated.map_err(MeasureError::Generators)?;
        (load_hosts, warnings) = (generated.hosts, generated.warnings);
        Ok(generated.load)
    })?;
    measurement.warnings.extend(warnings);
    Ok(Measurement {
        latency_limit: plan.drive.latency_limit,
        load_hosts,
        ..measurement
    })
}

/// Where a load comes from that this process does not drive.
#[derive(Clone, Copy)]
pub struct LoadFrom<'a> {
    /// What leads to the hosts.
    pub generators: &'a dyn Generators,
    /// The hosts, as the user names them.
    pub hosts: &'a [String],
    /// How they reach the server, where that differs.
    pub connection: Option<&'a str>,
}

/// Hosts that drive a load together.
pub trait Generators {
    /// Goes to each host, and from there to the servers that `ways` lead to, before any load.
    /// Returns what keeps a host from driving one, with its name.
    fn check(&self, from: &LoadFrom<'_>, ways: &[&Conninfo], stop: &AtomicBool) -> Vec<String>;

    /// Drives the load on the servers that `ways` lead to, all at the same time, and returns what
    /// all hosts together have done.
    ///
    /// # Errors
    ///
    /// Why there is no result, with the host: it cannot be reached, its clients cannot connect, or
    /// it was lost.
    fn drive(
        &self,
        from: &LoadFrom<'_>,
        ways: &[&Conninfo],
        plan: &LoadPlan,
        stop: &AtomicBool,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Generated, String>;
}

/// A load that several hosts have driven.
pub struct Generated {
    /// All segments together.
    pub load: LoadResult,
    /// The hosts, each with its name.
    pub hosts: Vec<(String, GeneratorHost)>,
    /// Hosts that could not keep up, and how that shows.
    pub warnings: Vec<String>,
}

/// What drives a load, whatever it is.
pub(crate) type Driver<'d> = dyn FnMut(&mut dyn FnMut(&Second)) -> Result<LoadResult, MeasureError> + 'd;

/// What is known of a load before it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Clients of each server.
    pub(crate) clients: u32,
    /// `None` where the load reports by its seconds when its warm-up is over.
    pub(crate) warmup_s: Option<f64>,
    /// Whether it reports any seconds.
    pub(crate) has_seconds: bool,
}

/// Watches whatever `drive` does to the server, from before its first session to after its last.
pub(crate) fn watch(
    conninfo: &Conninfo,
    shape: Shape,
    probe: &Probe,
    on_second: &mut dyn FnMut(&Second),
    drive: &mut Driver<'_>,
) -> Result<Measurement, MeasureError> {
    let clients = shape.clients;
    let mut servers = vec![Asked::before(conninfo, probe.postmaster, clients)?];
    for ServerBeside { conninfo, postmaster } in &probe.beside {
        servers.push(Asked::before(conninfo, *postmaster, clients)?);
    }
    let mut statements = MeasuredStatements::begin(&mut servers[0].server, shape.warmup_s, shape.has_seconds);
    let cpu_before = probe.servers_cpu_us(&servers);
    let others_before = probe.others();
    let beside = Beside::begin(probe, conninfo);
    let begun = Instant::now();
    // Its clients connect before the load begins.
    let mut load_began = None;
    let mut heat = Heat::default();
    let mut elapsed_s = 0.0;
    let load = statements.during(&mut servers[0].server, |warmup| {
        let load = drive(&mut |second| {
            load_began.get_or_insert_with(|| Instant::now() - Duration::from_secs_f64(second.length_s));
            heat.add(second);
            warmup.second(second);
            on_second(second);
        });
        elapsed_s = begun.elapsed().as_secs_f64();
        load
    })?;
    heat.end(&load.in_no_second);
    let others = others_before.and_then(|before| Some(probe.others()?.since(&before)));
    let (statements, gap) = statements.end(&mut servers[0].server);
    // While its process is there.
    let recorder_us = probe.session_cpu_us(probe.postmaster, beside.session());
    let (mut series, own_commits) = beside.end(load_began.unwrap_or(begun));
    series.gaps.extend(gap);
    // Only the first one is recorded.
    let recorders = std::iter::once(own_commits).chain(std::iter::repeat(OwnCommits::default()));
    let settled: Result<Vec<Settled>, ServerError> = servers
        .iter_mut()
        .enumerate()
        .zip(recorders)
        .map(|((number, asked), recorder)| {
            let of_load = (&load, load.share(number));
            asked.settle(
                of_load,
                elapsed_s,
                (clients, probe.changes, probe.kills),
                recorder,
            )
        })
        .collect();
    let seconds = seconds(&series, probe.disk.as_deref(), &load);
    // The time of a process that is just ending is nobody's: its own is gone, its parent's not yet
    // grown.
    let cpu_us = cpu_before
        .filter(|_| !probe.kills)
        .zip(probe.servers_cpu_us(&servers))
        .and_then(|(a, b)| b.checked_sub(a)?.checked_sub(recorder_us));
    let measured: Vec<f64> = load
        .seconds
        .iter()
        .filter(|s| s.measured && s.length_s > 0.99)
        .map(SecondFigures::tps)
        .collect();
    // What changes while a load runs changes its level: that is no warm-up, and no trend.
    let is_uniform = probe.changes == 0;
    let warm_up = match is_uniform {
        true => warm_up_end(&measured),
        false => WarmUp::Unknown,
    };
    let settled_part = settled_part(warm_up, &heat, &load);
    let cut_s = settled_part.as_ref().map_or(0, |rest| rest.cut_s);
    let counted = measured.get(cut_s as usize..).unwrap_or_default();
    let books = settled_part.as_ref().map_or(&load.measured, |rest| &rest.books);
    let distribution = distribution(books, &heat, cut_s);
    let mut measurement = Measurement {
        warm_up,
        settled: settled_part,
        steadiness: steadiness(counted).filter(|_| is_uniform),
        stability_cv: coefficient_of_variation(counted),
        server_cpu_us_per_tx: per_transaction(cpu_us, &load),
        wal_bytes_per_tx: None,
        cross_check: None,
        unchecked: None,
        disturbances: Vec::new(),
        warnings: (few_transactions(load.measured.committed).into_iter())
            .chain((warm_up == WarmUp::Never).then(|| NEVER_STATIONARY.to_owned()))
            .collect(),
        is_disturbed: false,
        load_hosts: Vec::new(),
        reported: None,
        latency_limit: None,
        distribution,
        heat: heat_record(&heat),
        statements,
        events: Vec::new(),
        figures: BTreeMap::new(),
        servers: Vec::new(),
        // Who was thrown out by a kill that was asked for has come back by the end.
        broken: load
            .lost
            .as_ref()
            .filter(|_| !probe.kills || load.seconds.last().is_none_or(|last| last.committed == 0))
            .map(|(reason, lost)| {
                let all = clients as usize * servers.len();
                format!("{lost} of {all} clients: {reason}")
            }),
        load,
        seconds,
        series,
    };
    match settled {
        Ok(settled) => {
            let (several, mut is_wrong) = (settled.len() > 1, false);
            measurement.servers = settled
                .iter()
                .zip(&servers)
                .map(|(settled, asked)| OfServer {
                    cross_check: settled.check,
                    unchecked: settled.unchecked(&measurement.load),
                    has_restarted: settled.after.started != asked.before.counters.started,
                })
                .collect();
            for (number, (settled, asked)) in (1..).zip(settled.iter().zip(&servers)) {
                let of_server = |text: String| match several {
                    true => format!("server {number}: {text}"),
                    false => text,
                };
                let warnings = settled.warnings.iter().cloned();
                measurement.warnings.extend(warnings.map(of_server));
                let found = disturbances(&asked.before.counters, &settled.after);
                measurement.disturbances.extend(found.into_iter().map(of_server));
                let seen = &measurement.servers[number - 1];
                let unchecked = seen.unchecked.clone().map(of_server);
                // Where one server's count is not known, another one's may still say that something
                // is wrong.
                is_wrong |= unchecked.is_none() && !settled.check.agrees;
                measurement.unchecked = measurement.unchecked.take().or(unchecked);
            }
            if measurement.unchecked.is_none() || is_wrong {
                measurement.unchecked = None;
                measurement.cross_check = sum_of_checks(settled.iter().map(|settled| settled.check));
            }
            let wal = |(settled, asked): (&Settled, &Asked)| {
                settled
                    .after
                    .wal_bytes
                    .checked_sub(asked.before.counters.wal_bytes)
            };
            let wal_bytes = settled.iter().zip(&servers).map(wal).sum::<Option<u64>>();
            measurement.wal_bytes_per_tx = per_transaction(wal_bytes, &measurement.load);
            let by_others = by_others(&measurement, others, elapsed_s);
            measurement.is_disturbed = !by_others.is_empty();
            measurement.disturbances.extend(by_others);
            let unchecked = measurement.unchecked.iter();
            measurement
                .disturbances
                .extend(unchecked.map(|reason| format!("no cross-check: {reason}")));
            if measurement.servers.iter().any(|seen| seen.has_restarted) {
                // A server that crashed has begun to count again.
                measurement.cross_check = None;
                measurement.unchecked = None;
                match probe.kills {
                    true => measurement.disturbances.push(UNCHECKED_KILL.into()),
                    false => measurement.broken = Some("the server restarted during the load".into()),
                }
            }
        }
        Err(error) => {
            measurement
                .broken
                .get_or_insert(format!("the server cannot be asked after the load: {error}"));
        }
    }
    Ok(measurement)
}

/// All servers' counts together: they agree where each one's do.
fn sum_of_checks(checks: impl Iterator<Item = CrossCheck>) -> Option<CrossCheck> {
    checks.reduce(|a, b| CrossCheck {
        client: a.client + b.client,
        server: a.server + b.server,
        by_workers: a.by_workers + b.by_workers,
        allowed_difference: a.allowed_difference + b.allowed_difference,
        agrees: a.agrees && b.agrees,
    })
}

/// Why no load was driven.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The load could not be driven.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The server could not be reached or asked.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The pooler between clients and server could not be reached.
    #[error(transparent)]
    Pooler(#[from] ConnectError),
    /// The hosts that drive the load could not do so.
    #[error("the load could not be driven: {0}")]
    Generators(String),
    /// The program that is the load could not be run.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The command of such a program, or that before or after it, is not valid.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The formats of such programs cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A program without a format.
    #[error("no program \"{name}\" is known; known are {}, job", known.join(", "))]
    UnknownProgram {
        /// Name of the program, as the file has it.
        name: String,
        /// Names of the programs with a format.
        known: Vec<String>,
    },
    /// The directory that such programs run in could not be made.
    #[error("{}: {source}", path.display())]
    Scratch {
        /// Path of the directory, below pgdyno's state.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl MeasureError {
    /// Number of the server among those of the load, from 0, where it is of one of them.
    pub(crate) fn server(&self) -> Option<usize> {
        match self {
            MeasureError::Load(error) => error.server(),
            _ => None,
        }
    }

    /// That of what it holds.
    pub fn class(&self) -> ErrorClass {
        match self {
            MeasureError::Load(error) => error.class(),
            MeasureError::Server(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            MeasureError::Load(error) => error.hint(),
            MeasureError::Server(error) => error.hint(),
            MeasureError::Pooler(error) => error.hint(),
            _ => None,
        }
    }
}

/// Of a load whose warm-up goes on to its end.
const NEVER_STATIONARY: &str = "throughput changed until the end of the load, which is all warm-up: its figures are of something that changed";

/// The measured time without what its seconds show to be warm-up; `None` where there was none, or
/// it never ended, or too little is known.
fn settled_part(warm_up: WarmUp, heat: &Heat, load: &LoadResult) -> Option<Rest> {
    let WarmUp::EndsAt(seconds @ 1..) = warm_up else {
        return None;
    };
    heat.without(u32::try_from(seconds).ok()?, &load.measured, load.measured_s)
}

pub(crate) fn heat_record(heat: &Heat) -> Option<HeatRecord> {
    let span = (heat.begins_s(), heat.ends_s());
    let (edges_ns, counts) = heat.classes();
    (!heat.is_empty())
        .then(|| HeatRecord::packed(span, heat.stretch_s(), edges_ns, &counts))
        .flatten()
}

impl Probe {
    /// CPU time of programs that are neither the servers, nor pgdyno with all that it has started,
    /// nor the kernel; `None` where the servers' processes are not known, for they would be others
    /// too.
    fn others(&self) -> Option<CpuUse> {
        // A server that is killed comes back as another process.
        let first = self.postmaster.filter(|_| !self.kills);
        let postmasters = std::iter::once(first).chain(self.beside.iter().map(|beside| beside.postmaster));
        let replicating = self.replicating.iter().copied().map(Some);
        let own = postmasters.chain(replicating).chain([Some(std::process::id())]);
        let host = &**self.host.as_ref()?;
        CpuUse::now(host, &own.collect::<Option<Vec<u32>>>()?).ok()
    }

    /// CPU time of all servers, without what is asked of them.
    fn servers_cpu_us(&self, servers: &[Asked]) -> Option<u64> {
        let each = servers.iter();
        each.map(|asked| self.server_cpu_us(asked.postmaster, asked.asking))
            .sum()
    }

    /// CPU time of a server's processes but the one that serves `asking`, if it is among them: what
    /// pgdyno asks is not part of the load. Whole ticks of 10 ms.
    fn server_cpu_us(&self, postmaster: Option<u32>, asking: Option<u32>) -> Option<u64> {
        let whole = cpu_us_of_tree(&**self.host.as_ref()?, postmaster?).ok()?;
        whole.checked_sub(self.session_cpu_us(postmaster, asking))
    }

    /// CPU time of a process of a server; none where it is not among the server's.
    fn session_cpu_us(&self, postmaster: Option<u32>, session: Option<u32>) -> u64 {
        let (Some(host), Some(postmaster)) = (&self.host, postmaster) else {
            return 0;
        };
        let session = session.filter(|pid| children(&**host, postmaster).contains(pid));
        session
            .and_then(|pid| cpu_us_of_tree(&**host, pid).ok())
            .unwrap_or(0)
    }
}

fn seconds(series: &SeriesRecord, disk: Option<&str>, load: &LoadResult) -> Vec<SecondRecord> {
    let mut end = Duration::ZERO;
    let seconds = load.seconds.iter().map(|second| {
        end += Duration::from_secs_f64(second.length_s);
        SecondRecord {
            tps: second.tps(),
            p95_ms: second.p95_ms,
            ..host_second(series, disk, end)
        }
    });
    seconds.collect()
}

#[expect(clippy::cast_precision_loss, reason = "totals over counts")]
fn per_transaction(total: Option<u64>, load: &LoadResult) -> Option<f64> {
    total
        .filter(|_| load.whole.committed > 0)
        .map(|total| total as f64 / load.whole.committed as f64)
}

/// A trial of fewer transactions gets a warning.
const TRANSACTIONS_MIN: u64 = 100;

/// Of loads that end after a job there is one, and a throughput of none says enough.
pub(crate) fn few_transactions(committed: u64) -> Option<String> {
    (1..TRANSACTIONS_MIN).contains(&committed).then(|| {
        format!(
            "only {committed} transactions were measured: of fewer than {TRANSACTIONS_MIN}, throughput and percentiles are rough; a \
             longer measured time has more"
        )
    })
}

/// What the server itself did beside the load.
fn disturbances(before: &Counters, after: &Counters) -> Vec<String> {
    let mut found = Vec::new();
    let checkpoints = after.checkpoints.saturating_sub(before.checkpoints);
    if checkpoints > 0 {
        found.push(format!(
            "{checkpoints} checkpoint{}",
            if checkpoints == 1 { "" } else { "s" }
        ));
    }
    let runs = after.autovacuum_runs.saturating_sub(before.autovacuum_runs);
    if runs > 0 {
        found.push(format!(
            "autovacuum or autoanalyze on {runs} table{}",
            if runs == 1 { "" } else { "s" }
        ));
    }
    found
}

/// CPU time that others took.
fn by_others(measurement: &Measurement, others: Option<OthersCpu>, elapsed_s: f64) -> Vec<String> {
    let mut found = Vec::new();
    let steal: Vec<f64> = measurement.seconds.iter().filter_map(|s| s.cpu_steal).collect();
    #[expect(
        clippy::cast_precision_loss,
        reason = "CPU time, seconds of a load, and a count of CPUs"
    )]
    let (seconds, cpus, share) = (
        steal.len() as f64,
        // Those of the host: this process may be kept to a few.
        online_cpus(&LocalHost::new()).map(|cpus| cpus.len() as f64),
        |part: u64, whole: f64| part as f64 / 1e6 / whole,
    );
    let steal = steal.iter().sum::<f64>() / seconds.max(1.0);
    if steal > STEAL_MAX {
        found.push(format!(
            "the hypervisor took {:.0} % of the CPU time",
            steal * 100.0
        ));
    }
    let (Some(others), Some(cpus)) = (others, cpus) else {
        return found;
    };
    let used = share(others.all_us, cpus * elapsed_s);
    if used > OTHERS_MAX {
        let most = others
            .most
            .filter(|(.., us)| us.saturating_mul(2) > others.all_us);
        let most = most.map_or_else(String::new, |(name, pid, _)| {
            format!(", most of it {name} (process {pid})")
        });
        found.push(format!(
            "other programs used {:.0} % of the CPUs{most}",
            used * 100.0
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Depth;
    use std::fs;

    #[test]
    fn the_cpu_time_of_the_session_that_asks_is_no_part_of_the_load() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: u32, ticks: u64, children: &str| {
            let dir = root.path().join(format!("proc/{pid}/task/{pid}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("children"), children).unwrap();
            let stat = format!("{pid} (postgres) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100 0 0 0\n");
            fs::write(root.path().join(format!("proc/{pid}/stat")), stat).unwrap();
        };
        process(10, 5, "20 30 ");
        process(20, 100, "");
        process(30, 7, "");
        process(40, 9, "");
        let probe = Probe {
            host: Some(Arc::new(LocalHost::at(root.path()))),
            disk: None,
            postmaster: Some(10),
            depth: Depth::Host,
            changes: 0,
            kills: false,
            beside: Vec::new(),
            replicating: Vec::new(),
        };
        let check = |asking, expected_us| {
            assert_eq!(
                probe.server_cpu_us(Some(10), asking),
                Some(expected_us),
                "{asking:?}"
            );
        };
        assert_eq!(probe.session_cpu_us(Some(10), Some(30)), 70_000);
        check(Some(30), 1_050_000);
        check(None, 1_120_000);
        // Of another name space, or gone.
        check(Some(40), 1_120_000);
        check(Some(50), 1_120_000);
    }
}
