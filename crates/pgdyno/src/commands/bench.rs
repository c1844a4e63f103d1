//! `pgdyno bench`: one load with live figures, or a ladder of them.

mod kept;
mod result;

use crate::cli::BenchArgs;
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{InContext as _, Result, Usage};
use crate::generators::LoadHosts;
use crate::placement::Placement;
use crate::{output, own_load, show, target};
use kept::Kept;
use pgdyno_engine::{Rate, Second, Warmup, with_interval_log};
use pgdyno_host::{HostAccess, block, given_bytes};
use pgdyno_lab::{Depth, LoadFrom, LoadPart, Measurement, Probe, load_plan, measure};
use pgdyno_remote::SshHost;
use pgdyno_sandbox::Sandbox;
use pgdyno_server::{Conninfo, Server};
use pgdyno_workload::{LoadPlan, SCRIPT_BYTES_MAX, Script, Scripts, Work};
use serde_json::{Value, json};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A load of a number of transactions ends with them, or after this.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// A load with the plan that it was driven by.
struct Driven {
    plan: LoadPlan,
    measurement: Measurement,
}

pub(crate) fn run(context: &Context, args: &BenchArgs) -> Result<u8> {
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
        postmaster: sandbox.as_ref().and_then(Sandbox::pid),
        changes: 0,
        kills: false,
        beside: Vec::new(),
        replicating: sandbox.as_ref().map(Sandbox::replicating).unwrap_or_default(),
        depth: match args.store {
            Some(_) => Depth::Whole,
            None => Depth::Host,
        },
    };
    let work = work(args)?;
    // What is wrong with the plan is wrong with it before anything is stored.
    let load = load_of(args);
    let plans = args
        .clients
        .iter()
        .map(|clients| plan_of(args, &load, &work, *clients));
    let plans = plans.collect::<Result<Vec<LoadPlan>>>()?;
    check_hosts(args)?;
    let stop = stop_flag()?;
    // Objects per second are followed by one of the result, each on a line of its own.
    let as_json = args.json || args.stream;
    let placement = Placement::new(args.placement, sandbox.as_ref())?;
    let version = Server::connect(&conninfo)?.version().to_string();
    let server = result::ServerWords {
        place: conninfo.place(),
        version,
        placement,
    };
    let mut kept = Kept::begin(context, args, (&work, load), &conninfo, sandbox.as_ref())?;
    let generators = LoadHosts::new(context);
    let from = (!args.load_from.hosts.is_empty()).then(|| LoadFrom {
        generators: &generators,
        hosts: &args.load_from.hosts,
        connection: args.load_from.connection.as_deref(),
    });
    let mut done: Vec<Driven> = Vec::new();
    for mut plan in plans {
        plan.drive.cpus = server.placement.bound();
        if args.clients.len() > 1 {
            err!(
                "{} client{}",
                plan.drive.clients,
                if plan.drive.clients == 1 { "" } else { "s" }
            );
        }
        kept.iter_mut().for_each(Kept::begins);
        let measured = own_load::counted(context, &conninfo, || {
            watch(args, &conninfo, &plan, &probe, (&stop, from.as_ref()))
        });
        let measurement = match measured {
            Ok(measurement) => measurement,
            Err(error) => {
                // What is stored has ended here, and was not killed.
                kept.map_or(Ok(()), |kept| kept.end(true))?;
                return Err(error);
            }
        };
        if !as_json && args.clients.len() == 1 {
            let too_often = result::fails_too_often(&measurement, args.max_failed);
            result::print(
                &plan,
                &measurement,
                &server,
                args.statements,
                too_often.as_deref(),
            );
        }
        let driven = Driven { plan, measurement };
        if let Some(kept) = &mut kept {
            kept.add(&driven)?;
        }
        done.push(driven);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let id = kept.as_ref().map(|kept| kept.id);
    if let Some(kept) = kept {
        kept.end(done.len() < args.clients.len() || stop.load(Ordering::Relaxed))?;
    }
    print(args, &done, &server, id);
    result(args, &done, stop.load(Ordering::Relaxed))
}

/// Refuses hosts that cannot drive the load together.
fn check_hosts(args: &BenchArgs) -> Result<()> {
    let hosts = &args.load_from.hosts;
    for name in hosts.iter().filter(|name| *name != "local") {
        name.parse::<SshHost>()
            .map_err(|why| Usage(format!("--load-host {name}: {why}, or local")))?;
    }
    if !hosts.is_empty() && matches!(args.warmup, Warmup::Settled(_)) {
        return Err(Usage("several hosts need a warm-up of a length: --warmup 5s".into()).into());
    }
    let least = args.clients.iter().min().copied().unwrap_or(1) as usize;
    match least < hosts.len() {
        true => Err(Usage(format!(
            "{} load hosts for {least} clients: each needs one at least",
            hosts.len()
        ))
        .into()),
        false => Ok(()),
    }
}

/// The documents, or the table of a ladder.
fn print(args: &BenchArgs, done: &[Driven], server: &result::ServerWords<'_>, id: Option<i64>) {
    let written = |document: &Value| match args.stream {
        true => document.to_string(),
        false => format!("{document:#}"),
    };
    let mut documents = done
        .iter()
        .map(|driven| result::as_json(&driven.plan, &driven.measurement, server, id));
    match (args.json || args.stream, args.clients.len()) {
        (true, 1) => put_page!("{}", written(&documents.next().unwrap_or_default())),
        (true, _) => {
            let runs: Vec<_> = documents.collect();
            let ladder = json!({ "format": "pgdyno-bench-ladder/1", "experiment": id, "runs": runs });
            put_page!("{}", written(&ladder));
        }
        (false, 1) => {}
        (false, _) => {
            let Some(first) = done.first() else { return };
            put_page!(
                "{}",
                result::heading(&first.plan, &first.measurement, server, None)
            );
            let (names, right) = result::LADDER;
            let rows = done
                .iter()
                .map(|driven| result::rung(&driven.plan, &driven.measurement));
            put_page!("{}", show::table(&names, &right, rows.collect()));
            for Driven { plan, measurement } in done {
                if let Some(share) = result::fails_too_often(measurement, args.max_failed) {
                    err!("{} clients: {share}", plan.drive.clients);
                }
            }
        }
    }
}

/// The exit code, or why there is no result.
fn result(args: &BenchArgs, done: &[Driven], stopped: bool) -> Result<u8> {
    let measurements = || done.iter().map(|driven| &driven.measurement);
    if let Some(reason) = measurements().find_map(|measurement| measurement.broken.as_ref()) {
        fail!("the load broke off: {reason}");
    }
    if let Some(reason) = measurements()
        .find_map(Measurement::why_nothing)
        .filter(|_| !stopped)
    {
        fail!("{reason}");
    }
    let holds = |m: &Measurement| {
        m.cross_check.is_none_or(|check| check.agrees)
            && result::fails_too_often(m, args.max_failed).is_none()
    };
    Ok(match measurements().all(holds) {
        true => exit::FINE,
        false => exit::NOT_HELD,
    })
}

/// Drives one load and shows it while it goes on: lines for people on a terminal, objects for
/// programs where asked.
fn watch(
    args: &BenchArgs,
    conninfo: &Conninfo,
    plan: &LoadPlan,
    probe: &Probe,
    way: (&Arc<AtomicBool>, Option<&LoadFrom<'_>>),
) -> Result<Measurement> {
    let lines = !args.quiet && output::remarks_are_seen();
    let show = |second: &Second| {
        let second = second.figures();
        if lines {
            err!("{}", result::line(&second, plan));
        }
        if args.stream {
            put_page!("{}", result::second_json(&second));
        }
    };
    let Some(path) = &args.histogram else {
        return Ok(measure(conninfo, plan, probe, way, &mut |second| show(second))?);
    };
    let not_written = || format!("{} could not be written", path.display());
    let file = BufWriter::new(output::private_file(path).with_context(not_written)?);
    let mut written = Ok(());
    let measured = with_interval_log(file, |write| {
        let measured = measure(conninfo, plan, probe, way, &mut |second| {
            if written.is_ok() {
                written = write(&second.books, second.length_s);
            }
            show(second);
        });
        // Responses that came after the end are the longest ones.
        let rest = measured.as_ref().map(|measured| &measured.load.in_no_second);
        if let Ok(rest) = rest
            && !rest.response_ns.is_empty()
            && written.is_ok()
        {
            written = write(rest, 0.0);
        }
        measured
    });
    written.with_context(not_written)?;
    Ok(measured.with_context(not_written)??)
}

/// The workload, or the scripts with their texts.
fn work(args: &BenchArgs) -> Result<Work> {
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
fn script(word: &str) -> Result<Script> {
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
        .map_err(|error| Usage(format!("the script {path} is not UTF-8: {}", error.utf8_error())))?;
    Ok(Script {
        name: path.to_owned(),
        text,
        weight,
    })
}

/// The load as an experiment file would have it.
fn load_of(args: &BenchArgs) -> LoadPart {
    let milliseconds = |time: Duration| Some(time.as_secs_f64() * 1e3);
    let (warmup, settle) = match (args.transactions, args.warmup) {
        // The first of a number of transactions is as good as the others.
        (Some(_), _) => (Duration::ZERO, false),
        (None, Warmup::For(warmup)) => (warmup, false),
        (None, Warmup::Settled(most)) => (most, true),
    };
    LoadPart {
        workload: args.scripts.is_empty().then_some(args.workload),
        protocol: Some(args.protocol),
        transaction: args.transaction,
        threads: args.threads,
        hosts: (!args.load_from.hosts.is_empty()).then(|| args.load_from.hosts.clone()),
        rate: args.rate.as_ref().map(Rate::to_string),
        spacing: args.rate.is_some().then(|| args.spacing.spacing()),
        batch_ms: milliseconds(args.batch),
        think_ms: milliseconds(args.think),
        latency_limit_ms: args.latency_limit.and_then(milliseconds),
        max_tries: Some(args.max_tries),
        connect: Some(args.connect),
        warmup_s: Some(warmup.as_secs_f64()),
        settle: Some(settle),
        measure_s: Some(args.duration.as_secs_f64()),
        ..LoadPart::default()
    }
}

fn plan_of(args: &BenchArgs, load: &LoadPart, work: &Work, clients: u32) -> Result<LoadPlan> {
    let load = LoadPart {
        clients: Some(clients),
        ..load.clone()
    };
    let mut plan = load_plan(&load, work.clone(), args.seed).map_err(|error| Usage(error.to_string()))?;
    plan.paced = args.paced;
    plan.drive.engine = args.engine;
    plan.drive.transactions = args.transactions;
    if args.transactions.is_some() {
        plan.drive.measure = LONGEST;
    }
    if let Some(threads) = args.threads.filter(|_| args.clients.len() == 1 && !args.connect) {
        // Of a single load it is an error to have more threads than clients; a ladder's lower rungs
        // may have fewer.
        plan.drive.threads = threads * u32::try_from(args.load_from.hosts.len().max(1)).unwrap_or(1);
    }
    Ok(plan)
}
