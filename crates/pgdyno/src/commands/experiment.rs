//! `pgdyno run` and `pgdyno resume`: experiments.

use crate::cli::{ConsentArgs, HostArgs, ResumeArgs, RunArgs};
use crate::commands::restore;
use crate::context::{Context, stop_flag, variable};
use crate::exit;
use crate::failure::{Failure, Result, Usage};
use crate::generators::generators_of;
use crate::noted::Noted;
use crate::own_load;
use crate::paths::absolute;
use crate::provider::OwnServers;
use crate::repeated::shell_word;
use crate::target::{self, Held};
use crate::{commands, progress, shipped, show};
use pgdyno_host::HostAccess;
use pgdyno_knobs::nearest_name;
use pgdyno_lab::{Consent, ExperimentFile, Lab, LabError, Plan, ProfileSettings, Summary, sized};
use pgdyno_record::{DESIGN_OF_LOADS, ExperimentStatus};
use pgdyno_remote::{Coordinator, SshHost};
use pgdyno_report::Report;
use pgdyno_store::Store;
use std::path::Path;
use std::sync::Arc;

mod afar;
mod dry;
mod given;
mod keeper;
mod load_hosts;

pub(crate) use afar::{Book, Sent, WRITTEN, takeover, takeover_of};
pub(crate) use dry::check;
use dry::dry_run;
use given::with_target;
pub(crate) use keeper::options_of;
use keeper::{Keeper, Kept};
pub(crate) use load_hosts::LoadHostsOfRun;

pub(crate) fn run(context: &Context, args: &RunArgs) -> Result<u8> {
    let text = text_of(context, &args.file)?;
    let text = sized(&text, &args.file, args.size.as_deref(), &args.sets())?;
    let text = with_target(context, &text, args.target.as_deref())?;
    let file = ExperimentFile::parse(&text, &args.file, &context.catalogue)?;
    let consent = consent_of(&args.consent);
    let on = &args.at.on;
    target::check_consent(&file.target, args.target.as_deref(), consent.restart, on)?;
    if args.dry_run {
        return dry_run(context, file, &consent, args);
    }
    let mut kept = Kept::open(context, &args.store, args.report.as_deref(), &args.at.on)?;
    let command = format!("run {}", args.file.display());
    restore::before(context, None)?;
    let mut held = target::of_experiment(context, &file, args.target.as_deref(), consent.restart, &command)?;
    held.name = named_at(held.name, &args.at.on);
    let repeat = vec![repeat_command(args, &consent)];
    let summary = start(
        context,
        kept.keeper(),
        &consent,
        Begin {
            file,
            text: &text,
            held,
            repeat,
            given: &args.given,
            command: &command,
        },
    )?;
    kept.finish(context, &summary, args.report.as_deref(), args.store.json)
}

/// A target's name, with its host where that is another one than the coordinator's: a server of the
/// same name may be on either.
pub(crate) fn named_at(target: String, on: &HostArgs) -> String {
    match &on.host {
        Some(host) => format!("{target}{ON}{host}"),
        None => target,
    }
}

/// Between a target's name and that of its host.
pub(crate) const ON: &str = " on ";

/// The host in the name of a target, if it is one over ssh.
pub(crate) fn host_in(target: &str) -> Option<&str> {
    let (_, host) = target.rsplit_once(ON)?;
    host.parse::<SshHost>().is_ok().then_some(host)
}

/// The text of a file, or of a shipped experiment where there is no such file.
fn text_of(context: &Context, path: &Path) -> Result<String> {
    context.given_text(path).or_else(|error| {
        let shipped = path.to_str().and_then(shipped::experiment);
        if let Some(text) = shipped.filter(|_| !path.exists()) {
            return Ok(text.to_owned());
        }
        let near = near(&path.to_string_lossy());
        Err(Usage(format!("{} could not be read: {error}{near}", path.display())).into())
    })
}

/// The nearest name of a shipped experiment, if one is near.
fn near(name: &str) -> String {
    let known = shipped::EXPERIMENTS.iter().map(|(known, _)| *known);
    nearest_name(name, known).map_or_else(
        || "; `pgdyno experiments` lists the shipped ones".to_owned(),
        |known| format!("; did you mean the shipped \"{known}\"?"),
    )
}

/// Why a file cannot be written, or made.
pub(crate) fn not_writable(context: &Context, path: &Path) -> Option<String> {
    dry::kept::not_writable(context, path)
}

/// Whether the report can be written, before hours of trials.
pub(crate) fn check_report(context: &Context, path: Option<&Path>) -> Result<()> {
    match path.and_then(|path| dry::kept::no_report(context, path)) {
        Some(why) => fail!("{why}"),
        None => Ok(()),
    }
}

pub(crate) fn resume(context: &Context, args: &ResumeArgs) -> Result<u8> {
    let mut kept = Kept::open(context, &args.store, args.report.as_deref(), &args.at.on)?;
    let id = kept.to_resume(args.id)?;
    let stored = kept.keeper().experiment(id)?;
    if stored.record.design == DESIGN_OF_LOADS {
        let repeat = stored.record.repeat.join("; ");
        let message = format!(
            "experiment {id} is a load without treatments, which is not resumed; repeat it by: {repeat}"
        );
        return Err(Usage(message).into());
    }
    let (ran_on, named) = (host_in(&stored.record.target), args.at.on.host.as_ref());
    if ran_on != named.map(ToString::to_string).as_deref() {
        let with = ran_on.map_or_else(
            || "without --host".to_owned(),
            |host| format!("with --host {host}"),
        );
        return Err(Usage(format!("experiment {id} is resumed where it ran: {with}")).into());
    }
    let file = ExperimentFile::parse(
        &stored.record.file,
        Path::new("the stored experiment"),
        &context.catalogue,
    )?;
    let consent = consent_of(&args.consent);
    let named = args
        .target
        .clone()
        .or_else(|| stored.record.sandbox.as_deref().map(target::of_sandbox_named));
    target::check_consent(&file.target, named.as_deref(), consent.restart, &args.at.on)?;
    let command = format!("resume {id}");
    // It may be this experiment's own that has lost its coordinator.
    if let Some(of_store) = context.coordinator().and_then(Coordinator::of_store) {
        restore::end_waiting_agents(of_store)?;
    }
    restore::before(context, None)?;
    let held = target::of_experiment(context, &file, named.as_deref(), consent.restart, &command)?;
    let name = named_at(held.name.clone(), &args.at.on);
    let summary = go_on(context, kept.keeper(), &consent, (id, &name), held, &command)?;
    kept.finish(context, &summary, args.report.as_deref(), args.store.json)
}

/// Goes on with an experiment that was interrupted or killed, on its target, by number and name.
pub(crate) fn go_on(
    context: &Context,
    store: &mut dyn Keeper,
    consent: &Consent,
    (id, name): (i64, &str),
    held: Held,
    command: &str,
) -> Result<Summary> {
    restore::before(context, held.sandbox())?;
    let conninfo = held.target.conninfo.clone();
    let mut provider = OwnServers::new(context, held, command);
    own_load::counted(context, &conninfo, || {
        with_lab(context, store, consent, &mut provider, |lab| lab.resume(id, name))
    })
}

/// What an experiment is begun with.
pub(crate) struct Begin<'a> {
    pub(crate) file: ExperimentFile,
    pub(crate) text: &'a str,
    pub(crate) held: Held,
    pub(crate) repeat: Vec<String>,
    /// Facts that the file's profiles go by, in place of those that are found out.
    pub(crate) given: &'a [(String, String)],
    pub(crate) command: &'a str,
}

/// Runs an experiment from its beginning.
pub(crate) fn start(
    context: &Context,
    store: &mut dyn Keeper,
    consent: &Consent,
    begin: Begin<'_>,
) -> Result<Summary> {
    // While this waited for the target, another command may have been killed on it.
    restore::before(context, begin.held.sandbox())?;
    let (name, conninfo) = (begin.held.name.clone(), begin.held.target.conninfo.clone());
    let sandbox = begin.held.sandbox().map(str::to_owned);
    let profiles = profiles_of(context, &begin.file, &begin.held.text, begin.given)?;
    let mut provider = OwnServers::new(context, begin.held, begin.command);
    own_load::counted(context, &conninfo, || {
        with_lab(context, store, consent, &mut provider, |lab| {
            lab.run(pgdyno_lab::Begin {
                file: begin.file,
                profiles,
                text: begin.text,
                name_of_target: &name,
                sandbox: sandbox.as_deref(),
                repeat: begin.repeat,
            })
        })
    })
}

/// Settings of the profiles that a file names, worked out for the target.
fn profiles_of(
    context: &Context,
    file: &ExperimentFile,
    target: &str,
    given: &[(String, String)],
) -> Result<ProfileSettings> {
    let names = file.profiles().into_iter();
    names
        .map(|name| {
            let settings = commands::profile::settings_for(context, &name, target, given)?;
            Ok((name, settings))
        })
        .collect()
}

fn with_lab(
    context: &Context,
    store: &mut dyn Keeper,
    consent: &Consent,
    provider: &mut OwnServers<'_>,
    act: impl FnOnce(&mut Lab<'_>) -> Result<Summary, LabError>,
) -> Result<Summary> {
    let stop = stop_flag()?;
    let mut shown = progress::Experiment::new();
    let mut noted = Noted::new(store.noted_in());
    let resumed_with = store.options();
    let journals = context.journals();
    let (scratch, binaries) = (context.scratch(), context.binaries());
    let mut on_event = |event: pgdyno_lab::Event<'_>| {
        noted.event(&event);
        shown.event(&event);
    };
    let host: Arc<dyn HostAccess> = Arc::new(context.host.clone());
    let generators = generators_of(context);
    let mut lab = Lab {
        host: &host,
        catalogue: &context.catalogue,
        journals,
        scratch: &scratch,
        binaries: &binaries,
        store,
        environment: &variable,
        generators: Some(&*generators),
        consent,
        provider,
        minute_of_day: &minute_of_day,
        stop: &stop,
        on_event: &mut on_event,
    };
    let outcome = act(&mut lab);
    match (outcome, shown.id) {
        (Err(error), Some(id)) => Err(Failure::from(error).context(format!(
            "experiment {id} (`pgdyno resume {id}{resumed_with}` continues it)"
        ))),
        (outcome, _) => Ok(outcome?),
    }
}

fn minute_of_day() -> u32 {
    let now = jiff::ZonedDateTime::now();
    u32::try_from(i32::from(now.hour()) * 60 + i32::from(now.minute())).unwrap_or(0)
}

/// Prints the result: the table on standard output, or the report as JSON.
pub(crate) fn finish(
    context: &Context,
    store: &Store,
    summary: &Summary,
    report_file: Option<&Path>,
    as_json: bool,
) -> Result<u8> {
    let report = show_report(context, store, summary.id, report_file, as_json)?;
    show_end(summary)?;
    end_of(context, store, &report, summary.status, "")
}

/// Prints the result of a run, and writes its report.
fn show_report(
    context: &Context,
    store: &Store,
    id: i64,
    report_file: Option<&Path>,
    as_json: bool,
) -> Result<Report> {
    let report = commands::report::build(context, store, id)?;
    if as_json {
        put_page!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    if let Some(path) = report_file {
        commands::report::write_html(store, &report, path)?;
        err!("report: {}", absolute(path).display());
    }
    Ok(report)
}

/// Shows what the run took, and what was restored on this host.
fn show_end(summary: &Summary) -> Result<()> {
    if summary.all_s > 0.0 {
        let share = summary.own_s / summary.all_s * 100.0;
        err!(
            "storing and deciding took {:.1} s of {} ({share:.2} %)",
            summary.own_s,
            show::time(summary.all_s)
        );
    }
    if !summary.restored.is_empty() {
        err_page!("\nrestored:\n{}", show::restored(&summary.restored));
    }
    restore::check(&summary.restored)?;
    restore::check_objects(&summary.restored)
}

/// The exit code of a run; says how it is gone on with where it was stopped. `options` are those
/// that it is resumed with.
fn end_of(
    context: &Context,
    store: &Store,
    report: &Report,
    status: ExperimentStatus,
    options: &str,
) -> Result<u8> {
    let none_finished = report.treatments.iter().all(|t| t.trials_finished == 0);
    if none_finished && status == ExperimentStatus::Finished {
        fail!("no trial finished; the report shows why");
    }
    if status != ExperimentStatus::Finished {
        let id = report.experiment.id;
        let usual = context.store_place(None)?.to_string();
        let named = if store.place().to_string() == usual {
            String::new()
        } else {
            " --store ...".to_owned()
        };
        err!("stopped; finished trials are kept. `pgdyno resume {id}{options}{named}` continues");
        return Ok(exit::FAILED);
    }
    Ok(exit::FINE)
}

fn print(report: &Report) {
    put!("{}\n", report.experiment.question);
    put_page!("{}\n", show::verdicts(report));
    for treatment in report.treatments.iter().filter(|t| t.why_not.is_some()) {
        put!(
            "not tested: {}: {}",
            treatment.title,
            treatment.why_not.as_deref().unwrap_or_default()
        );
    }
    if let Some(floor) = report.decision.noise_floor {
        put!(
            "noise floor {:.1} % between trials of one treatment; intervals hold together at {:.0} %",
            floor * 100.0,
            report.decision.confidence * 100.0
        );
    }
    put!("{}", report.experiment.answer);
}

pub(crate) fn consent_of(args: &ConsentArgs) -> Consent {
    Consent {
        durability: args.accept_durability_risk.clone(),
        restart: args.allow_restart,
        data: args.allow_data,
    }
}

/// The command that repeats a run. A connection string may hold a password, so only a sandbox is
/// named in it.
fn repeat_command(args: &RunArgs, consent: &Consent) -> String {
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let mut command = format!("pgdyno run {name}");
    if let Some(target) = &args.target {
        let shown = if target.starts_with("sandbox:") {
            target
        } else {
            "\"...\""
        };
        command += &format!(" --target {shown}");
    }
    if let Some(size) = &args.size {
        command += &format!(" --size {size}");
    }
    for key in &args.sets() {
        command += &format!(" --set {}", shell_word(key));
    }
    for (fact, value) in &args.given {
        command += &format!(" --given {}", shell_word(&format!("{fact}={value}")));
    }
    for option in consent_options(consent) {
        command += &format!(" {option}");
    }
    command + &options_of(&args.at.on)
}

/// The options that give this consent.
pub(crate) fn consent_options(consent: &Consent) -> Vec<String> {
    let durability = consent.durability.iter();
    let mut options: Vec<String> = durability
        .map(|knob| format!("--accept-durability-risk={knob}"))
        .collect();
    options.extend(consent.restart.then(|| "--allow-restart".to_owned()));
    options.extend(consent.data.then(|| "--allow-data".to_owned()));
    options
}
