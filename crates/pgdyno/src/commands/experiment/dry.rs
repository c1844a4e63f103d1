//! `pgdyno run --dry-run`: what would keep the run from working, every trial in its order with what
//! it costs, the data that is made, and the time that all will take. Nothing is changed, made or
//! started.

pub(super) mod kept;
mod restarts;

use super::{Consent, Context, Plan, profiles_of};
use crate::cli::RunArgs;
use crate::exit;
use crate::failure::Result;
use crate::generators::generators_of;
use crate::target::{self, Ahead};
use pgdyno_engine::duration;
use pgdyno_knobs::Target;
use pgdyno_lab::{
    Design, ExperimentFile, Finding, LabError, Preflight, PreflightReport, ProfileSettings, Reset,
    ServerVariant, StopRule, Treatment, Unstarted, consents,
};
use pgdyno_server::Server;
use restarts::Restarts;
use serde_json::json;

/// Stopping and starting the server, the checkpoint before the load and the cross-check after it.
const RESTART_S: f64 = 3.0;
const BESIDE_S: f64 = 2.0;
/// Making data with its indexes, and copying it; as `pgdyno data create` and CREATE DATABASE did on
/// two cores.
const MAKE_BYTES_PER_S: f64 = 100e6;
const COPY_BYTES_PER_S: f64 = 600e6;
/// Making a server of its own.
const VARIANT_S: f64 = 8.0;

/// Noise between trials of one treatment: a quiet host, a usual one, a shaky one. `aa` measures
/// that of this host.
const NOISE: [f64; 3] = [0.01, 0.03, 0.10];
/// The usual probability at which the smallest effect is found.
const POWER: f64 = 0.8;

/// What these blocks could find.
fn detectable(plan: &Plan) -> String {
    let effects = NOISE.iter().filter_map(|noise| {
        let effect = plan.minimum_detectable_effect(*noise, POWER)?;
        Some(format!(
            "{:.1} % where trials differ by {:.0} %",
            effect * 100.0,
            noise * 100.0
        ))
    });
    let effects: Vec<String> = effects.collect();
    if effects.is_empty() {
        return match plan.file.design {
            Design::Fractional | Design::Screening => {
                "it estimates the effect of each level of a factor from all treatments together".to_owned()
            }
            _ => "it compares nothing".to_owned(),
        };
    }
    let looks = match plan.file.stop {
        StopRule::AfterBlocks => "",
        StopRule::WhenDecided | StopRule::WhenGainDecided => {
            "; evaluated after each block, it needs somewhat larger ones"
        }
    };
    format!(
        "an effect is found in four of five such experiments from {}{looks}",
        effects.join(", from ")
    )
}

/// What a trial costs beside its load.
struct Price {
    costs: Vec<&'static str>,
    seconds: f64,
}

impl Price {
    /// Of a trial whose turns are in the load of another.
    fn of_turns() -> Price {
        Price {
            costs: vec!["in turns"],
            seconds: 0.0,
        }
    }
}

/// A trial as it is planned.
struct Line<'p> {
    block: u32,
    treatment: &'p Treatment,
    price: Price,
    load_s: f64,
}

impl Line<'_> {
    fn seconds(&self) -> f64 {
        self.price.seconds + self.load_s
    }
}

/// What is known of the target before anything is done to it.
struct Looked {
    plan: Plan,
    found: PreflightReport,
    target: Option<Target>,
}

pub(super) fn dry_run(
    context: &Context,
    file: ExperimentFile,
    consent: &Consent,
    args: &RunArgs,
) -> Result<u8> {
    let drawn = file.seed.is_none();
    let mut looked = look(context, file, consent, (args.target.as_deref(), &args.given))?;
    if context.coordinator().is_none() {
        kept::look(context, args, &mut looked.found)?;
    }
    let plan = &looked.plan;
    let mut restarts = Restarts::new(context, looked.target.as_ref(), plan);
    let mut lines: Vec<Line<'_>> = Vec::new();
    // What a search tries is chosen trial by trial.
    let blocks = if plan.file.search.is_some() {
        0
    } else {
        plan.file.blocks
    };
    for block in 1..=blocks {
        for (i, number) in plan.order_of_block(block).into_iter().enumerate() {
            let treatment = &plan.treatments[number];
            let before = lines.last().map(|line| line.treatment);
            let mut price = price(treatment, before, &mut restarts);
            let mut load_s = treatment.load_s();
            if let Some(blocks) = plan.blocks_of_load() {
                let begins = i == 0 && (block - 1) % blocks == 0;
                load_s = plan.trial_s() + treatment.load.warmup_s.filter(|_| begins).unwrap_or(0.0);
                match begins {
                    true => price.costs.push("a load begins"),
                    false => price = Price::of_turns(),
                }
            }
            lines.push(Line {
                block,
                treatment,
                price,
                load_s,
            });
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "bytes of data")]
    let made_s = looked
        .found
        .objects
        .iter()
        .map(|object| object.bytes)
        .sum::<u64>() as f64
        / MAKE_BYTES_PER_S;
    let searched_s = match plan.file.search {
        Some(_) => f64::from(plan.trials()) * (plan.trial_s() + RESTART_S + BESIDE_S),
        None => 0.0,
    };
    let all_s = made_s + searched_s + lines.iter().map(Line::seconds).sum::<f64>();
    match args.store.json {
        true => put_page!(
            "{}",
            serde_json::to_string_pretty(&as_json(&looked, &lines, all_s))?
        ),
        false => print(&looked, &lines, all_s, made_s, drawn),
    }
    match looked.found.is_fatal() {
        true => Err(LabError::Findings(looked.found.findings).into()),
        false => Ok(exit::FINE),
    }
}

/// Refuses an experiment that could not be run, as a run does before its first trial.
pub(crate) fn check(
    context: &Context,
    file: ExperimentFile,
    consent: &Consent,
    target: (Option<&str>, &[(String, String)]),
) -> Result<()> {
    let found = look(context, file, consent, target)?.found;
    match found.is_fatal() {
        true => Err(LabError::Findings(found.findings).into()),
        false => Ok(()),
    }
}

/// Asks the target everything that a run asks before its first trial.
fn look(
    context: &Context,
    file: ExperimentFile,
    consent: &Consent,
    (target_text, given): (Option<&str>, &[(String, String)]),
) -> Result<Looked> {
    let seed = file.seed.unwrap_or(1);
    let ahead = target::ahead(context, &file, target_text, consent.restart)?;
    let mut found = PreflightReport::default();
    let mut not_yet = None;
    let target = match ahead {
        Ahead::There { target, findings } => {
            found.findings = findings;
            Some(*target)
        }
        Ahead::NotYet { why, version, data } => {
            found.unproven.push(why);
            not_yet = Some((version, data));
            None
        }
        Ahead::Nowhere(finding) => {
            found.findings.push(finding);
            None
        }
    };
    let text = target::text_of(&file.target, target_text).filter(|_| target.is_some());
    let profiles = match text {
        Some(text) => profiles_of(context, &file, &text, given)?,
        None => ProfileSettings::new(),
    };
    let mut plan = Plan::unasked(file, &profiles, seed)?;
    let (path, scratch) = (crate::context::variable("PATH"), context.scratch());
    let (binaries, stop) = (context.binaries(), crate::context::stop_in_force());
    match (&target, not_yet) {
        (Some(target), _) => {
            let mut server = Server::connect(&target.conninfo)?;
            let generators = generators_of(context);
            let preflight = Preflight {
                host: &context.host,
                catalogue: &context.catalogue,
                target,
                examined: ServerVariant::default(),
                journals: context.journals(),
                consent,
                path: path.as_deref(),
                binaries: &binaries,
                stop: &stop,
                scratch: &scratch,
                generators: Some(&*generators),
                rehearses: true,
            };
            let whole = plan.clone();
            found.extend(preflight.check(&mut plan, &mut server)?);
            // What is mended first is run as a whole.
            if found.is_fatal() {
                plan = whole;
            }
        }
        (None, Some((version, data))) => {
            let unstarted = Unstarted {
                host: &context.host,
                catalogue: &context.catalogue,
                consent,
                path: path.as_deref(),
                binaries: &binaries,
                stop: &stop,
                scratch: &scratch,
                version,
                data: &data,
            };
            found.extend(unstarted.check(&mut plan));
        }
        (None, None) => found
            .findings
            .extend(consents(&plan, &context.catalogue, consent)),
    }
    Ok(Looked { plan, found, target })
}

fn as_json(looked: &Looked, lines: &[Line<'_>], all_s: f64) -> serde_json::Value {
    let trials: Vec<_> = lines
        .iter()
        .map(|line| {
            json!({
                "block": line.block, "treatment": line.treatment.name, "costs": line.price.costs,
                "seconds": line.seconds(),
            })
        })
        .collect();
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.name(), "treatments": finding.treatments, "what": finding.what,
            "mends": finding.mends,
        })
    };
    let object = |object: &pgdyno_workload::DataObject| json!({ "name": object.name, "bytes": object.bytes });
    json!({
        "trials": trials,
        "seconds": all_s,
        "seed": looked.plan.file.seed,
        "findings": looked.found.findings.iter().map(finding).collect::<Vec<_>>(),
        "made": looked.found.objects.iter().map(object).collect::<Vec<_>>(),
        "commands": looked.found.commands,
        "not_proven": looked.found.unproven,
    })
}

fn print(looked: &Looked, lines: &[Line<'_>], all_s: f64, made_s: f64, drawn: bool) {
    let plan = &looked.plan;
    put!("{}\n", plan.file.question);
    for treatment in &plan.treatments {
        let settings: Vec<String> = treatment
            .step
            .iter()
            .map(|s| format!("{} = {}", s.knob, s.value))
            .collect();
        put!(
            "  {}: {}",
            treatment.title,
            if settings.is_empty() {
                "nothing set".to_owned()
            } else {
                settings.join(", ")
            }
        );
    }
    if !plan.file.event.is_empty() {
        put!("\nwhile each load runs:");
    }
    for event in &plan.file.event {
        put!("  after {}: {}", event.at, event.titled());
    }
    if !looked.found.objects.is_empty() {
        put!(
            "\nmade on the server before the first trial, and dropped at the end ({}):",
            crate::show::time(made_s)
        );
        for object in &looked.found.objects {
            put!("  {:<32} {:>8}", object.name, object.size());
        }
    }
    if !looked.found.commands.is_empty() {
        put!("\nrun on the server, which pgdyno did not create (what they leave there is named at the end):");
        for command in &looked.found.commands {
            put!("  {command}");
        }
    }
    put!("");
    for (i, line) in lines.iter().enumerate() {
        let text = format!(
            "{:>4}  block {:<3} {:<40} {:>6.0} s  {}",
            i + 1,
            line.block,
            line.treatment.name,
            line.seconds(),
            line.price.costs.join(", ")
        );
        put!("{}", text.trim_end());
    }
    let or_fewer = match plan.file.stop {
        StopRule::WhenGainDecided => {
            ", or fewer: it ends when every comparison is decided, or a gain is improbable"
        }
        StopRule::WhenDecided => ", or fewer: it ends when every comparison is decided",
        StopRule::AfterBlocks => "",
    };
    let chosen = match plan.file.search {
        Some(_) => ", each chosen by those before it",
        None => "",
    };
    let trials = lines.len().max(
        plan.file
            .search
            .as_ref()
            .map_or(0, |search| search.trials as usize),
    );
    put!(
        "\n{trials} trials{chosen}, about {}{or_fewer}",
        crate::show::time(all_s)
    );
    for end in ends_before(plan, trials, all_s) {
        put!("{end}");
    }
    put!("{}", detectable(plan));
    if drawn {
        put!("the order is drawn again when it runs: the file names no seed");
    }
    for what in &looked.found.unproven {
        put!("not proven: {what}");
    }
    if !looked.found.is_fatal() {
        for finding in &looked.found.findings {
            put!("{finding}");
        }
    }
    put!("nothing was run or changed");
}

/// What ends the experiment before all its trials, or keeps it waiting.
fn ends_before(plan: &Plan, trials: usize, all_s: f64) -> Vec<String> {
    let budget = &plan.file.budget;
    let mut ends = Vec::new();
    if let Some(most) = budget.trials.filter(|most| (*most as usize) < trials) {
        ends.push(format!("the budget of {most} trials ends it before that"));
    }
    if let Some(time) = &budget.time
        && duration(time).is_ok_and(|limit| limit.as_secs_f64() < all_s)
    {
        ends.push(format!("the budget of {time} ends it before that"));
    }
    if let Some(window) = &plan.file.window {
        ends.push(format!(
            "it runs from {} to {}; outside of it everything is restored and waits",
            window.from, window.to
        ));
    }
    ends
}

fn price(treatment: &Treatment, before: Option<&Treatment>, restarts: &mut Restarts<'_>) -> Price {
    let mut price = Price {
        costs: Vec::new(),
        seconds: BESIDE_S,
    };
    let moves = before.is_some_and(|before| before.variant() != treatment.variant());
    if (moves || before.is_none()) && !treatment.variant().is_target() {
        price.costs.push("another server");
        price.seconds += VARIANT_S;
    }
    let servers = f64::from(treatment.servers());
    if servers > 1.0 {
        price.costs.push("additional servers");
        price.seconds += (servers - 1.0) * RESTART_S;
    }
    let changes = restarts.between(before.filter(|_| !moves), treatment);
    if changes.restart {
        price.costs.push("restart");
        price.seconds += RESTART_S;
    } else if changes.any {
        price.costs.push("reload");
    }
    #[expect(clippy::cast_precision_loss, reason = "bytes of data")]
    let bytes = treatment.data_bytes().unwrap_or(0) as f64 * servers;
    match treatment.data.reset.unwrap_or_default() {
        Reset::None => {}
        Reset::Recreate => {
            price.costs.push("data made again");
            price.seconds += bytes / MAKE_BYTES_PER_S;
        }
        Reset::Template | Reset::Copy | Reset::Vacuum => {
            price.costs.push("data reset");
            price.seconds += bytes / COPY_BYTES_PER_S;
        }
    }
    price
}
