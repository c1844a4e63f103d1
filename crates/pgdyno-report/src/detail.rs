//! The document of one trial: its series on one axis of time, marks, waits, statements. Format
//! "pgdyno-trial/1".

mod columns;
mod model;
mod packed;
#[cfg(test)]
mod tests;
mod thin;
mod waits;

pub use model::{Statement, TrialColumn, TrialDocument, TrialPart, WaitSessions, Waits};
pub use packed::{Details, PackError, Packed, Scope, pack};

use crate::build::trial_alone;
use crate::distribution::curve;
use crate::heat;
use crate::marks::marks;
use crate::model::Setting;
use pgdyno_record::{SeriesRecord, StoredExperiment, TreatmentRecord, TrialRecord};

/// Value of `format` in every document of a trial.
pub(crate) const FORMAT: &str = "pgdyno-trial/1";

/// The document of a trial with the series that were recorded beside it; `None` where the
/// experiment has no such trial.
pub fn trial(stored: &StoredExperiment, trial: i64, series: &SeriesRecord) -> Option<TrialDocument> {
    let of_report = trial_alone(stored, trial)?;
    document(stored, of_report, series)
}

/// The same from the trial as it is in a report that is there already.
fn document(
    stored: &StoredExperiment,
    mut of_report: crate::model::Trial,
    series: &SeriesRecord,
) -> Option<TrialDocument> {
    let (_, record) = stored.trials.iter().find(|(id, _)| *id == of_report.id)?;
    let treatments = &stored.record.treatments;
    let treatment = treatments.iter().find(|t| t.name == record.treatment);
    // The columns hold it.
    of_report.series = crate::model::Series::default();
    Some(TrialDocument {
        format: FORMAT,
        experiment_id: stored.id,
        load_begun_unix_ms: record.started_unix_ms,
        warmup_s: record.warmup_s,
        measured_s: record.measured_s,
        series: columns::columns(record, series),
        marks: marks(record, series),
        waits: waits::waits(series),
        statements: waits::statements(series, &record.statements),
        errors: record.errors.clone(),
        distribution: curve(record),
        latency_heat: heat::of_trials([record]),
        trial: TrialPart {
            trial: of_report,
            title: treatment.map(|t| t.title.clone()),
            settings: treatment.map(|t| settings(t, record)).unwrap_or_default(),
        },
    })
}

fn settings(treatment: &TreatmentRecord, trial: &TrialRecord) -> Vec<Setting> {
    let effective = |knob: &str| trial.effective.iter().find(|(name, _)| name == knob);
    let settings = treatment.settings.iter().map(|setting| Setting {
        knob: setting.knob.clone(),
        value: setting.value.clone(),
        effective: effective(&setting.knob).map(|(_, value)| value.clone()),
        layer: setting.layer.clone(),
        risk: setting.risk.clone(),
        changed: setting.changed,
    });
    settings.collect()
}
