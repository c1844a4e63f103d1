//! `pgdyno run` and `pgdyno resume`: experiments.

use crate::cli::{ConsentArgs, ResumeArgs, RunArgs};
use crate::commands::restore;
use crate::context::{Context, stop_flag, variable};
use crate::exit;
use crate::failure::{Failure, Result, Usage};
use crate::noted::Noted;
use crate::own_load;
use crate::paths::absolute;
use crate::provider::OwnServers;
use crate::target::{self, Held};
use crate::{commands, progress, shipped, show};
use pgdyno_host::HostAccess;
use pgdyno_knobs::nearest_name;
use pgdyno_lab::{Consent, ExperimentFile, Lab, LabError, Plan, ProfileSettings, Summary, sized};
use pgdyno_record::{DESIGN_OF_LOADS, ExperimentStatus};
use pgdyno_report::Report;
use pgdyno_store::Store;
use std::path::Path;
use std::sync::Arc;

mod dry;
mod given;

use dry::dry_run;
use given::with_target;

pub(crate) fn run(context: &Context, args: &RunArgs) -> Result<u8> {
    let text = text_of(&args.file)?;
    let text = sized(&text, &args.file, args.size.as_deref(), &args.set)?;
    let text = with_target(context, &text, args.target.as_deref())?;
    let file = ExperimentFile::parse(&text, &args.file, &context.catalogue)?;
    let consent = consent_of(&args.consent);
    if args.dry_run {
        return dry_run(context, file, &consent, args);
    }
    check_report(context, args.report.as_deref())?;
    dry::kept::check_rights(context, args.store.store.place())?;
    let mut store = context.store(args.store.store.place())?;
    let command = format!("run {}", args.file.display());
    restore::before(context, None)?;
    let held = target::of_experiment(context, &file, args.target.as_deref(), consent.restart, &command)?;
    let repeat = vec![repeat_command(args, &consent)];
    let summary = start(
        context,
        &mut store,
        &consent,
        Begin {
            file,
            text: &text,
            held,
            repeat,
            command: &command,
        },
    )?;
    finish(context, &store, &summary, args.report.as_deref(), args.store.json)
}

/// The text of a file, or of a shipped experiment where there is no such file.
fn text_of(path: &Path) -> Result<String> {
    if !path.exists()
        && let Some(text) = path.to_str().and_then(shipped::experiment)
    {
        return Ok(text.to_owned());
    }
    pgdyno_host::given_text(path).map_err(|error| {
        let near = near(&path.to_string_lossy());
        Usage(format!("{} could not be read: {error}{near}", path.display())).into()
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

/// Whether the report can be written, before hours of trials.
pub(crate) fn check_report(context: &Context, path: Option<&Path>) -> Result<()> {
    match path.and_then(|path| dry::kept::no_report(context, path)) {
        Some(why) => fail!("{why}"),
        None => Ok(()),
    }
}

pub(crate) fn resume(context: &Context, args: &ResumeArgs) -> Result<u8> {
    check_report(context, args.report.as_deref())?;
    dry::kept::check_rights(context, args.store.store.place())?;
    let mut store = context.store(args.store.store.place())?;
    let id = match args.id {
        Some(id) => id,
        None => store
            .numbers()?
            .into_iter()
            .find(|(_, status)| *status != ExperimentStatus::Finished)
            .map(|(id, _)| id)
            .ok_or_else(|| Usage("every experiment in the store is finished; name one to resume".into()))?,
    };
    let stored = store.experiment(id)?;
    if stored.record.design == DESIGN_OF_LOADS {
        let repeat = stored.record.repeat.join("; ");
        let message = format!(
            "experiment {id} is a load without treatments, which is not resumed; repeat it by: {repeat}"
        );
        return Err(Usage(message).into());
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
    let command = format!("resume {id}");
    restore::before(context, None)?;
    let held = target::of_experiment(context, &file, named.as_deref(), consent.restart, &command)?;
    restore::before(context, held.sandbox())?;
    let (name, conninfo) = (held.name.clone(), held.target.conninfo.clone());
    let mut provider = OwnServers::new(context, held, &command);
    let summary = own_load::counted(context, &conninfo, || {
        with_lab(context, &mut store, &consent, &mut provider, |lab| {
            lab.resume(id, &name)
        })
    })?;
    finish(context, &store, &summary, args.report.as_deref(), args.store.json)
}

/// What an experiment is begun with.
pub(crate) struct Begin<'a> {
    pub(crate) file: ExperimentFile,
    pub(crate) text: &'a str,
    pub(crate) held: Held,
    pub(crate) repeat: Vec<String>,
    pub(crate) command: &'a str,
}

/// Runs an experiment from its beginning.
pub(crate) fn start(
    context: &Context,
    store: &mut Store,
    consent: &Consent,
    begin: Begin<'_>,
) -> Result<Summary> {
    // While this waited for the target, another command may have been killed on it.
    restore::before(context, begin.held.sandbox())?;
    let (name, conninfo) = (begin.held.name.clone(), begin.held.target.conninfo.clone());
    let sandbox = begin.held.sandbox().map(str::to_owned);
    let profiles = profiles_of(context, &begin.file, &begin.held.text)?;
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
fn profiles_of(context: &Context, file: &ExperimentFile, target: &str) -> Result<ProfileSettings> {
    let names = file.profiles().into_iter();
    names
        .map(|name| {
            let settings = commands::profile::settings_for(context, &name, target)?;
            Ok((name, settings))
        })
        .collect()
}

fn with_lab(
    context: &Context,
    store: &mut Store,
    consent: &Consent,
    provider: &mut OwnServers<'_>,
    act: impl FnOnce(&mut Lab<'_>) -> Result<Summary, LabError>,
) -> Result<Summary> {
    let stop = stop_flag()?;
    let mut shown = progress::Experiment::new();
    let mut noted = Noted::new(store.progress_place());
    let journals = context.journals();
    let (scratch, binaries) = (context.scratch(), context.binaries());
    let mut on_event = |event: pgdyno_lab::Event<'_>| {
        noted.event(&event);
        shown.event(&event);
    };
    let host: Arc<dyn HostAccess> = Arc::new(context.host.clone());
    let mut lab = Lab {
        host: &host,
        catalogue: &context.catalogue,
        journals,
        scratch: &scratch,
        binaries: &binaries,
        store,
        environment: &variable,
        consent,
        provider,
        minute_of_day: &minute_of_day,
        stop: &stop,
        on_event: &mut on_event,
    };
    let outcome = act(&mut lab);
    match (outcome, shown.id) {
        (Err(error), Some(id)) => {
            Err(Failure::from(error)
                .context(format!("experiment {id} (`pgdyno resume {id}` goes on with it)")))
        }
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
    let report = commands::report::build(context, store, summary.id)?;
    if as_json {
        put_page!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    if let Some(path) = report_file {
        commands::report::write_html(store, &report, path)?;
        err!("report: {}", absolute(path).display());
    }
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
    restore::check_objects(&summary.restored)?;
    let none_finished = report.treatments.iter().all(|t| t.trials_finished == 0);
    if none_finished && summary.status == ExperimentStatus::Finished {
        fail!("no trial finished; the report shows why");
    }
    if summary.status != ExperimentStatus::Finished {
        let id = summary.id;
        let usual = context.store_place(None)?.to_string();
        let named = if store.place().to_string() == usual {
            String::new()
        } else {
            " --store ...".to_owned()
        };
        err!("stopped; what is finished is kept. `pgdyno resume {id}{named}` goes on");
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

/// The command that repeats a run. A connection string may hold a password, so only a sandbox is named in it.
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
    for key in &args.set {
        command += &format!(" --set '{key}'");
    }
    for knob in &consent.durability {
        command += &format!(" --accept-durability-risk {knob}");
    }
    if consent.restart {
        command += " --allow-restart";
    }
    if consent.data {
        command += " --allow-data";
    }
    command
}
