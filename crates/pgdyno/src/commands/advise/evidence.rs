//! What experiments in the store have shown of single settings on this very target.

use crate::context::{Context, now_unix_ms};
use crate::failure::Result;
use pgdyno_advice::{Evidence, Shown};
use pgdyno_knobs::Setting;
use pgdyno_report::{Report, build};
use pgdyno_stats::Verdict;
use pgdyno_store::{Filter, Store, StoreError};
use std::path::Path;

/// Of so many of the newest experiments.
const EXPERIMENTS_MAX: usize = 20;

/// None where there is no store: advice does without, and makes none.
pub(super) fn of(context: &Context, store: Option<&Path>, target: &str) -> Vec<Evidence> {
    let found = || -> Result<Vec<Evidence>> {
        match context.store_if_there(store)? {
            Some(store) => Ok(in_store(&store, target)?),
            None => Ok(Vec::new()),
        }
    };
    found().unwrap_or_else(|error| {
        err!("results of earlier experiments are skipped: {error}");
        Vec::new()
    })
}

/// What an open store has; a single experiment that cannot be read is passed over.
pub(super) fn in_store(store: &Store, target: &str) -> Result<Vec<Evidence>, StoreError> {
    let mut evidence = Vec::new();
    let mut here = store.find(&Filter::default())?;
    here.retain(|listed| listed.target == target && listed.trials_finished > 0);
    for listed in here.iter().take(EXPERIMENTS_MAX) {
        match store.experiment(listed.id) {
            Ok(stored) => evidence.extend(shown(&build(&stored, "", now_unix_ms()))),
            Err(StoreError::Record { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(evidence)
}

/// The figure that throughput is.
const THROUGHPUT: &str = "tps";

/// Treatments that set a single thing, or add a single thing to the one that they are compared
/// with.
fn shown(report: &Report) -> Vec<Evidence> {
    // Advice is about throughput; what was decided by another figure says nothing of it.
    if report.decision.metric != THROUGHPUT {
        return Vec::new();
    }
    report
        .treatments
        .iter()
        .filter_map(|treatment| {
            let workload = treatment.workload.as_ref().unwrap_or(&report.experiment.workload);
            let load = format!("{}, {} clients", workload.name, workload.clients);
            let effect = treatment.step?;
            let mut changed = treatment.settings.iter().filter(|setting| setting.changed);
            let (Some(setting), None) = (changed.next(), changed.next()) else {
                return None;
            };
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            Some(Evidence {
                experiment: report.experiment.id,
                setting: Setting {
                    knob: setting.knob.clone(),
                    value: setting.value.clone(),
                },
                verdict: match effect.verdict {
                    Verdict::Better => Shown::Better,
                    Verdict::Worse => Shown::Worse,
                    Verdict::Same => Shown::Same,
                    Verdict::NoGain => Shown::NoGain,
                    Verdict::Undecided => Shown::Undecided,
                },
                percent: percent(effect.ratio),
                low: percent(effect.ratio_low),
                high: percent(effect.ratio_high),
                load,
            })
        })
        .collect()
}
