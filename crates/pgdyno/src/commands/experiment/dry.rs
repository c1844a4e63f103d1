//! `pgdyno run --dry-run`: every trial in its order, what each costs, and the time that all will take.

use super::{Consent, Context, Plan};
use crate::exit;
use pgdyno_knobs::{Catalogue, Cost};
use pgdyno_lab::{ExperimentFile, ProfileSettings, Reset, Treatment};
use serde_json::json;

/// Stopping and starting the server, the checkpoint before the load and the cross-check after it.
const RESTART_S: f64 = 3.0;
const BESIDE_S: f64 = 2.0;
/// Making data with its indexes, and copying it; as `pgdyno data create` and CREATE DATABASE did on two cores.
const MAKE_BYTES_PER_S: f64 = 100e6;
const COPY_BYTES_PER_S: f64 = 600e6;
/// Making a server of its own.
const STAND_S: f64 = 8.0;

/// Noise between trials of one treatment: a quiet host, a usual one, a shaky one. `aa` measures that of this host.
const NOISE: [f64; 3] = [0.01, 0.03, 0.10];
/// The usual probability at which the smallest effect is told.
const POWER: f64 = 0.8;

/// What these blocks could find.
fn detectable(plan: &Plan) -> String {
    let told = NOISE.iter().filter_map(|noise| {
        let effect = plan.minimum_detectable_effect(*noise, POWER)?;
        Some(format!(
            "{:.1} % where trials differ by {:.0} %",
            effect * 100.0,
            noise * 100.0
        ))
    });
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => "nothing is held against anything else in it".to_owned(),
        false => format!(
            "an effect is found in four of five such experiments from {}",
            told.join(", from ")
        ),
    }
}

/// What a trial costs beside its load.
struct Price {
    words: Vec<&'static str>,
    seconds: f64,
}

pub(super) fn dry_run(
    context: &Context,
    file: ExperimentFile,
    consent: &Consent,
    as_json: bool,
) -> anyhow::Result<u8> {
    let seed = file.seed.unwrap_or(1);
    let drawn = file.seed.is_none();
    let plan = Plan::new(file, &ProfileSettings::new(), seed, &context.catalogue, consent)?;
    let mut trials = Vec::new();
    let (mut all_s, mut before): (f64, Option<&Treatment>) = (0.0, None);
    for block in 1..=plan.file.blocks {
        for number in plan.order_of_block(block) {
            let treatment = &plan.treatments[number];
            let price = price(&context.catalogue, treatment, before, &plan);
            let seconds = price.seconds + treatment.load_s();
            all_s += seconds;
            trials.push((block, treatment, price.words, seconds));
            before = Some(treatment);
        }
    }
    if as_json {
        let lines: Vec<_> = trials
            .iter()
            .map(|(block, treatment, costs, seconds)| {
                json!({"block": block, "treatment": treatment.name, "costs": costs, "seconds": seconds})
            })
            .collect();
        let whole = json!({"trials": lines, "seconds": all_s, "seed": plan.file.seed});
        put!("{}", serde_json::to_string_pretty(&whole)?);
        return Ok(exit::FINE);
    }
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
    put!("");
    for (i, (block, treatment, costs, seconds)) in trials.iter().enumerate() {
        put!(
            "{:>4}  block {block:<3} {:<40} {seconds:>6.0} s  {}",
            i + 1,
            treatment.name,
            costs.join(", ")
        );
    }
    let or_fewer = match plan.file.stop {
        pgdyno_lab::StopRule::WhenDecided => ", or fewer: it ends when every comparison is decided",
        pgdyno_lab::StopRule::AfterBlocks => "",
    };
    put!(
        "\n{} trials, about {}{or_fewer}",
        trials.len(),
        crate::show::time(all_s)
    );
    put!("{}", detectable(&plan));
    if drawn {
        put!("the order is drawn anew when it runs: the file names no seed");
    }
    put!("nothing was run; what this target does not permit is found when it runs, before the first trial");
    Ok(exit::FINE)
}

fn price(catalogue: &Catalogue, treatment: &Treatment, before: Option<&Treatment>, plan: &Plan) -> Price {
    let mut price = Price {
        words: Vec::new(),
        seconds: BESIDE_S,
    };
    let moves = before.is_none_or(|before| before.stand() != treatment.stand());
    if moves && !treatment.stand().is_target() {
        price.words.push("another server");
        price.seconds += STAND_S;
    }
    let settings = treatment
        .settings
        .iter()
        .chain(before.iter().flat_map(|t| &t.settings));
    let wants_restart = settings.clone().any(|setting| {
        let is_new = before
            .is_none_or(|before| before.settings.contains(setting) != treatment.settings.contains(setting));
        let knob = catalogue.get(&setting.knob);
        is_new && knob.is_ok_and(|knob| matches!(knob.cost, Cost::Restart | Cost::Reboot))
    });
    let always = plan.file.target.restart == pgdyno_lab::RestartPolicy::Always;
    if always || wants_restart || moves {
        price.words.push("restart");
        price.seconds += RESTART_S;
    } else if settings.count() > 0 {
        price.words.push("reload");
    }
    #[expect(clippy::cast_precision_loss, reason = "bytes of data")]
    let bytes = treatment.data_bytes().unwrap_or(0) as f64;
    match treatment.data.reset.unwrap_or_default() {
        Reset::None => {}
        Reset::Recreate => {
            price.words.push("data made anew");
            price.seconds += bytes / MAKE_BYTES_PER_S;
        }
        Reset::Template | Reset::Copy | Reset::Vacuum => {
            price.words.push("data reset");
            price.seconds += bytes / COPY_BYTES_PER_S;
        }
    }
    price
}
