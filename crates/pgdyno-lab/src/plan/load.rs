//! From a treatment to the load that is driven.

use crate::file::{DataPart, LoadPart};
use pgdyno_engine::{Arrivals, Plan, Rate, Spacing, Warmup};
use pgdyno_record::WorkloadRecord;
use pgdyno_workload::{LoadPlan, Script, ScriptError, Scripts, Work, Workload, own_cpus};
use std::time::Duration;

/// Of another program's time, where the file says nothing.
const MEASURE_S: f64 = 10.0;
/// Measured time at most, as a multiple of `measure_s`, where the end is a number of checkpoints.
const CYCLES_LONGER: f64 = 10.0;

/// Threads of a load: as the file says, else half of the CPUs, the other half being the server's;
/// one for each client where every transaction has a connection of its own. Of a load from other
/// hosts they are those of all of them, or one for each that chooses its own.
pub(crate) fn threads_of(load: &LoadPart) -> u32 {
    if load.connect == Some(true) {
        return load.clients.unwrap_or(1);
    }
    let hosts = load.hosts.as_ref().map_or(0, Vec::len);
    let each = match load.threads {
        Some(threads) => threads,
        None if hosts > 0 => 1,
        None => (own_cpus() / 2).max(1),
    };
    let hosts = u32::try_from(hosts.max(1)).unwrap_or(1);
    each.saturating_mul(hosts).min(load.clients.unwrap_or(1))
}

/// Whether each host chooses its threads: this one's CPUs are not another's.
fn threads_by_host(load: &LoadPart) -> bool {
    let has_hosts = load.hosts.as_ref().is_some_and(|hosts| !hosts.is_empty());
    has_hosts && load.threads.is_none() && load.connect != Some(true)
}

/// Seconds that are measured, at least.
pub(crate) fn measure_s(load: &LoadPart) -> f64 {
    load.measure_s.unwrap_or(MEASURE_S)
}

/// What a load is called.
fn name_of(load: &LoadPart) -> String {
    match (load.workload, &load.script, &load.program) {
        (Some(workload), _, _) => workload.to_string(),
        (None, Some(_), _) => "script".to_owned(),
        (None, None, Some(program)) => program.clone(),
        (None, None, None) => "several loads".to_owned(),
    }
}

pub(crate) fn workload_record(load: &LoadPart, data: &DataPart) -> WorkloadRecord {
    WorkloadRecord {
        name: name_of(load),
        scale: data.scale.unwrap_or(0),
        clients: load.clients.unwrap_or(1),
        threads: threads_of(load),
        warmup_s: load.warmup_s.unwrap_or(0.0),
        measure_s: measure_s(load),
    }
}

/// The built-in engine's plan, as far as it does not depend on chance; `None` where the load is
/// another program.
pub(crate) fn plan_of_load(load: &LoadPart) -> Result<Option<LoadPlan>, ScriptError> {
    plan_of(load, 0)
}

/// The built-in engine's plan; `None` where the load is another program.
pub(crate) fn plan_of(load: &LoadPart, seed: u64) -> Result<Option<LoadPlan>, ScriptError> {
    let work: Work = match (load.workload, &load.script) {
        (Some(workload), _) => workload.into(),
        (None, Some(text)) => Work::Scripts(scripts_of(text)),
        (None, None) => return Ok(None),
    };
    load_plan(load, work, seed).map(Some)
}

/// The built-in engine's plan for a load. `work` replaces the load's workload and script.
///
/// # Errors
///
/// A script that has no meaning.
pub fn load_plan(load: &LoadPart, work: Work, seed: u64) -> Result<LoadPlan, ScriptError> {
    let (clients, threads) = (load.clients.unwrap_or(1), threads_of(load));
    let usual = match &work {
        Work::Workload(workload) => LoadPlan::closed(*workload, clients, threads),
        Work::Scripts(_) => LoadPlan::closed(Workload::Simple, clients, threads),
    };
    let protocol = load.protocol.unwrap_or(usual.protocol);
    if let Work::Scripts(scripts) = &work {
        scripts.check(protocol)?;
    }
    let seconds = |seconds: Option<f64>| Duration::from_secs_f64(seconds.unwrap_or(0.0));
    let longer = if load.checkpoint_cycles.is_some() {
        CYCLES_LONGER
    } else {
        1.0
    };
    let arrivals = match load.rate.as_deref().and_then(|rate| rate.parse::<Rate>().ok()) {
        Some(rate) => Arrivals::Open {
            rate,
            spacing: load.spacing.unwrap_or(Spacing::Poisson),
            batch: seconds(load.batch_ms) / 1000,
        },
        None => Arrivals::Closed {
            think: seconds(load.think_ms) / 1000,
        },
    };
    let warmup = seconds(load.warmup_s);
    Ok(LoadPlan {
        work,
        protocol,
        control: load.transaction.unwrap_or(usual.control),
        drive: Plan {
            arrivals,
            cpus: load.cpus.iter().flatten().map(|cpu| *cpu as usize).collect(),
            warmup: match load.settle {
                Some(true) => Warmup::Settled(warmup),
                _ => Warmup::For(warmup),
            },
            measure: Duration::from_secs_f64(measure_s(load) * longer),
            connect: load.connect.unwrap_or(false),
            max_tries: load.max_tries.unwrap_or(1),
            latency_limit: load.latency_limit_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
            seed,
            ..usual.drive
        },
        paced: usual.paced,
        session_options: usual.session_options,
        threads_by_host: threads_by_host(load),
    })
}

fn scripts_of(text: &str) -> Scripts {
    Scripts {
        scripts: vec![Script {
            name: "script".to_owned(),
            text: text.to_owned(),
            weight: 1,
        }],
        ..Scripts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_choose_their_threads_where_the_file_has_none() {
        let hosts = Some(vec!["ssh:gen1".to_owned(), "ssh:gen2".to_owned()]);
        for (threads, connect, expected) in [
            (None, false, (2, true)),
            (Some(3), false, (6, false)),
            (None, true, (50, false)),
        ] {
            let load = LoadPart {
                hosts: hosts.clone(),
                clients: Some(50),
                threads,
                connect: Some(connect),
                ..LoadPart::default()
            };
            let plan = load_plan(&load, Workload::Simple.into(), 1).unwrap();
            assert_eq!((plan.drive.threads, plan.threads_by_host), expected);
        }
        assert!(!threads_by_host(&LoadPart::default()));
    }
}
