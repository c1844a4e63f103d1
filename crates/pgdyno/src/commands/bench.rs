//! `pgdyno bench`: one load with live figures, or a ladder of them.

mod words;

use crate::cli::{BenchArgs, Spread};
use crate::context::{Context, stop_flag};
use crate::exit::{self, Usage};
use crate::placement::Placement;
use crate::{output, own_load, show, target};
use anyhow::Context as _;
use pgdyno_host::{HostAccess, block, given_bytes};
use pgdyno_lab::{Depth, Measurement, Probe, measure};
use pgdyno_load::{
    Arrivals, Control, LoadPlan, SCRIPT_BYTES_MAX, Script, Scripts, Second, Spacing, Warmup, Work,
    with_interval_log,
};
use pgdyno_sandbox::State;
use pgdyno_server::{Conninfo, Server};
use serde_json::{Value, json};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A load of a number of transactions ends with them, or after this.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

pub(crate) fn run(context: &Context, args: &BenchArgs) -> anyhow::Result<u8> {
    let (conninfo, sandbox) = target::conninfo(context, &args.target)?;
    if args.clients.len() > 1 && args.histogram.is_some() {
        return Err(Usage("--histogram is for a single number of clients".into()).into());
    }
    let data = sandbox.as_ref().map(|sandbox| sandbox.record().data.clone());
    let probe = Probe {
        host: conninfo
            .is_here()
            .then(|| Arc::new(context.host.clone()) as Arc<dyn HostAccess>),
        disk: data.and_then(|data| block::disk_of(&context.host, &data.to_string_lossy()).ok()),
        postmaster: sandbox.as_ref().and_then(|sandbox| match sandbox.state() {
            State::Running(pid) => Some(pid),
            _ => None,
        }),
        depth: Depth::Host,
    };
    let work = work(args)?;
    if let Work::Scripts(scripts) = &work {
        scripts
            .check(args.protocol)
            .map_err(|error| Usage(error.to_string()))?;
    }
    let stop = stop_flag()?;
    // Objects per second are followed by one of the result, each on a line of its own.
    let as_json = args.json || args.stream;
    let written = |document: &Value| match args.stream {
        true => document.to_string(),
        false => format!("{document:#}"),
    };
    let placement = Placement::new(args.placement, sandbox.as_ref())?;
    let version = Server::connect(&conninfo)?.version().to_string();
    let server = words::ServerWords {
        place: conninfo.place(),
        version,
        placement,
    };
    let mut done: Vec<(LoadPlan, Measurement)> = Vec::new();
    for &clients in &args.clients {
        let plan = plan_of(args, work.clone(), clients, &server.placement);
        if args.clients.len() > 1 {
            tell!("{clients} client{}", if clients == 1 { "" } else { "s" });
        }
        let measurement = own_load::counted(context, &conninfo, || {
            watch(args, &conninfo, &plan, &probe, &stop)
        })?;
        if !as_json && args.clients.len() == 1 {
            let too_often = words::fails_too_often(&measurement, args.max_failed);
            words::print(
                &plan,
                &measurement,
                &server,
                args.statements,
                too_often.as_deref(),
            );
        }
        done.push((plan, measurement));
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let mut documents = done
        .iter()
        .map(|(plan, measurement)| words::as_json(plan, measurement, &server));
    match (as_json, args.clients.len()) {
        (true, 1) => put_page!("{}", written(&documents.next().unwrap_or_default())),
        (true, _) => {
            let runs: Vec<_> = documents.collect();
            let ladder = json!({ "format": "pgdyno-bench-ladder/1", "runs": runs });
            put_page!("{}", written(&ladder));
        }
        (false, 1) => {}
        (false, _) => {
            put_page!("{}", words::heading(&done[0].0, &done[0].1, &server, None));
            let (names, right) = words::LADDER;
            let rows = done.iter().map(|(plan, m)| words::rung(plan, m)).collect();
            put_page!("{}", show::table(&names, &right, rows));
            for (plan, measurement) in &done {
                if let Some(share) = words::fails_too_often(measurement, args.max_failed) {
                    tell!("{} clients: {share}", plan.clients);
                }
            }
        }
    }
    if let Some(reason) = done
        .iter()
        .find_map(|(_, measurement)| measurement.broken.as_ref())
    {
        anyhow::bail!("the load broke off: {reason}");
    }
    let stopped = stop.load(Ordering::Relaxed);
    if let Some(reason) = done
        .iter()
        .find_map(|(_, m)| m.why_nothing())
        .filter(|_| !stopped)
    {
        anyhow::bail!(reason);
    }
    let holds = |m: &Measurement| {
        m.cross_check.is_none_or(|check| check.agrees) && words::fails_too_often(m, args.max_failed).is_none()
    };
    Ok(match done.iter().all(|(_, measurement)| holds(measurement)) {
        true => exit::FINE,
        false => exit::NOT_HELD,
    })
}

/// Drives one load and shows it while it goes on: lines for people on a terminal, objects for programs where asked.
fn watch(
    args: &BenchArgs,
    conninfo: &Conninfo,
    plan: &LoadPlan,
    probe: &Probe,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measurement> {
    let lines = !args.quiet && output::remarks_are_seen();
    let show = |second: &Second| {
        let second = second.figures();
        if lines {
            tell!("{}", words::line(&second, plan));
        }
        if args.stream {
            put_page!("{}", words::second_json(&second));
        }
    };
    let Some(path) = &args.histogram else {
        return Ok(measure(conninfo, plan, probe, stop, &mut |second| show(second))?);
    };
    let not_written = || format!("{} could not be written", path.display());
    let file = BufWriter::new(output::private_file(path).with_context(not_written)?);
    let mut written = Ok(());
    let measured = with_interval_log(file, |write| {
        measure(conninfo, plan, probe, stop, &mut |second| {
            if written.is_ok() {
                written = write(second);
            }
            show(second);
        })
    });
    written.with_context(not_written)?;
    Ok(measured.with_context(not_written)??)
}

/// The workload, or the scripts with their texts.
fn work(args: &BenchArgs) -> anyhow::Result<Work> {
    if args.scripts.is_empty() {
        return Ok(args.workload.into());
    }
    let scripts = args
        .scripts
        .iter()
        .map(|word| script(word))
        .collect::<Result<_, _>>()?;
    Ok(Work::Scripts(Scripts {
        scripts,
        variables: args.variables.clone(),
        allow_shell: args.allow_shell,
    }))
}

/// A script by its file and weight.
fn script(word: &str) -> anyhow::Result<Script> {
    let (path, weight) = match word.rsplit_once('@') {
        Some((path, weight)) if !path.is_empty() => {
            let wrong = |_| {
                Usage(format!(
                    "the weight of --script must be a whole number, not \"{weight}\""
                ))
            };
            (path, weight.parse().map_err(wrong)?)
        }
        _ => (word, 1),
    };
    let read = given_bytes(Path::new(path), SCRIPT_BYTES_MAX as u64);
    let bytes = match read {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(Usage(format!(
                "the script {path} has more than {SCRIPT_BYTES_MAX} bytes"
            ))
            .into());
        }
        read => read.with_context(|| format!("the script {path} cannot be read"))?,
    };
    let text = String::from_utf8(bytes)
        .map_err(|error| Usage(format!("the script {path} is no UTF-8: {}", error.utf8_error())))?;
    Ok(Script {
        name: path.to_owned(),
        text,
        weight,
    })
}

fn plan_of(args: &BenchArgs, work: Work, clients: u32, placement: &Placement<'_>) -> LoadPlan {
    let half = std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).max(1));
    let half = u32::try_from(half).unwrap_or(1).min(clients.max(1));
    let warmup = match args.transactions {
        // The first of a number of transactions is as good as the others.
        Some(_) => Warmup::For(Duration::ZERO),
        None => args.warmup,
    };
    LoadPlan {
        control: match &work {
            Work::Workload(workload) => args.transaction.unwrap_or(workload.usual_control()),
            Work::Scripts(_) => Control::None,
        },
        work,
        protocol: args.protocol,
        arrivals: match &args.rate {
            None => Arrivals::Closed { think: args.think },
            Some(rate) => Arrivals::Open {
                rate: rate.clone(),
                spacing: match args.spacing {
                    Spread::Constant => Spacing::Constant,
                    Spread::Poisson => Spacing::Poisson,
                },
                batch: args.batch,
            },
        },
        clients,
        threads: match args.threads {
            _ if args.connect => clients,
            None => half,
            // A ladder's lower rungs have fewer clients than its threads.
            Some(threads) if args.clients.len() > 1 => threads.min(clients.max(1)),
            Some(threads) => threads,
        },
        warmup,
        measure: args.transactions.map_or(args.duration, |_| LONGEST),
        transactions: args.transactions,
        connect: args.connect,
        cpus: placement.bound(),
        paced: args.paced,
        max_tries: args.max_tries,
        latency_limit: args.latency_limit,
        engine: args.engine,
        seed: args.seed,
    }
}
