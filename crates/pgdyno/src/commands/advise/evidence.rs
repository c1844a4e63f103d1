//! What experiments in the store have shown of single settings on this very target.

use crate::cli::HostArgs;
use crate::commands::experiment::{host_in, named_at};
use crate::context::{Context, now_unix_ms};
use crate::failure::Result;
use pgdyno_advice::{Evidence, Shown};
use pgdyno_knobs::Setting;
use pgdyno_remote::{CarriedFile, SshHost};
use pgdyno_report::{Report, build};
use pgdyno_stats::Verdict;
use pgdyno_store::{Filter, Store, StoreError};
use std::collections::BTreeMap;
use std::path::Path;

/// Of so many of the newest experiments.
const EXPERIMENTS_MAX: usize = 20;

/// The name under which a coordinator's store is carried as far as it is of the host: no file of
/// that name is read.
const CARRIED: &str = "evidence.json";

/// Evidence by the names of its targets.
type ByTarget = BTreeMap<String, Vec<Evidence>>;

/// What the store has of a target: of one on another host, that of the coordinator.
pub(super) fn of(context: &Context, store: Option<&Path>, (target, on): (&str, &HostArgs)) -> Vec<Evidence> {
    let target = named_at(target.to_owned(), on);
    let mut all = match context.coordinator() {
        Some(_) => carried(context.carried().unwrap_or_default()),
        None => found(context, store, |name| name == target),
    };
    all.remove(&target).unwrap_or_default()
}

/// What the store here has of the targets on another host, to be carried there.
pub(crate) fn evidence_for(context: &Context, store: Option<&Path>, host: &SshHost) -> Result<CarriedFile> {
    let host = host.to_string();
    let all = found(context, store, |name| host_in(name) == Some(host.as_str()));
    Ok(CarriedFile {
        path: CARRIED.to_owned(),
        full_name: CARRIED.to_owned(),
        content: Some(serde_json::to_string(&all)?),
    })
}

fn carried(files: &[CarriedFile]) -> ByTarget {
    let file = files.iter().find(|file| file.path == CARRIED);
    let content = file.and_then(|file| file.content.as_deref());
    content
        .and_then(|content| serde_json::from_str(content).ok())
        .unwrap_or_default()
}

/// None where there is no store: advice does without, and makes none.
fn found(context: &Context, store: Option<&Path>, is_meant: impl Fn(&str) -> bool) -> ByTarget {
    let found = || -> Result<ByTarget> {
        match context.store_if_there(store)? {
            Some(store) => Ok(by_target(&store, is_meant)?),
            None => Ok(ByTarget::new()),
        }
    };
    found().unwrap_or_else(|error| {
        err!("results of earlier experiments are skipped: {error}");
        ByTarget::new()
    })
}

/// What an open store has of a target.
pub(super) fn in_store(store: &Store, target: &str) -> Result<Vec<Evidence>, StoreError> {
    let mut all = by_target(store, |name| name == target)?;
    Ok(all.remove(target).unwrap_or_default())
}

/// A single experiment that cannot be read is passed over.
fn by_target(store: &Store, is_meant: impl Fn(&str) -> bool) -> Result<ByTarget, StoreError> {
    let mut evidence = ByTarget::new();
    let mut here = store.find(&Filter::default())?;
    here.retain(|listed| is_meant(&listed.target) && listed.trials_finished > 0);
    for listed in here.iter().take(EXPERIMENTS_MAX) {
        match store.experiment(listed.id) {
            Ok(stored) => {
                let all = evidence.entry(listed.target.clone()).or_default();
                all.extend(shown(&build(&stored, "", now_unix_ms())));
            }
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
