//! From records to a report: effects, verdicts, and the answer in one sentence.

mod analysis;
mod answer;
mod claims;
mod curves;
mod effects;
mod levels;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod thinned;
mod timelines;
mod treatment;

use crate::model::{Experiment, FORMAT, Factor, Report, Trial};
use analysis::Analysis;
pub(crate) use answer::zone_sentence;
use pgdyno_record::{ExperimentStatus, Searched, StoredExperiment, TreatmentEstimate};
use pgdyno_store::Life;
use treatment::{Drafts, treatment_of, trial_of};

/// Makes the report of an experiment; `generated_unix_ms` is now, `generator` the program's name
/// and version.
pub fn build(stored: &StoredExperiment, generator: &str, generated_unix_ms: u64) -> Report {
    let analysis = Analysis::new(stored);
    let drafts = drafts(&analysis);
    let answer = answer::answer(&analysis, &drafts);
    Report {
        format: FORMAT,
        generator: generator.to_owned(),
        generated_unix_ms,
        experiment: experiment(&analysis, &drafts, answer),
        decision: analysis.decision(),
        treatments: drafts.treatments,
        trials: stored
            .trials
            .iter()
            .enumerate()
            .map(|(place, (id, trial))| trial_of(*id, trial, analysis.is_excluded(place)))
            .collect(),
        timelines: drafts.timelines,
        charts: tables::charts(&analysis),
        whole_charts: tables::whole_charts(&analysis),
        tables: tables::tables(&analysis),
        study: drafts.study,
        claims: drafts.claims,
        effects: drafts.effects,
        curves: drafts.curves,
        capacity: Vec::new(),
        search: None,
        facts: stored.record.facts.clone(),
        restored: stored.restored.clone(),
    }
}

impl Report {
    /// What the store reports about the process that runs the experiment: one that is stored as
    /// running may have been killed.
    pub fn set_life(&mut self, life: Life) {
        let is_open = self.experiment.status == Life::Running.word();
        // One that has ended since it was read has more trials than are here.
        if is_open && matches!(life, Life::Killed | Life::RunningOrKilled) {
            self.experiment.status = life.word();
        }
    }
}

impl Report {
    /// What a search has found, which whoever has the catalogue of knobs works out; the answer goes
    /// by it from then on.
    pub fn set_search(&mut self, stored: &StoredExperiment, found: Searched) {
        let title = |best: &TreatmentEstimate| {
            let of = self.treatments.iter().find(|own| own.name == best.treatment);
            of.map_or_else(|| best.treatment.clone(), |own| own.title.clone())
        };
        let title = found.best.as_ref().map(title).unwrap_or_default();
        if let Some(answer) = answer::of_searched(&stored.record, &found, &title) {
            self.experiment.answer = format!("{answer}.{}", answer::preliminary(stored));
        }
        self.search = Some(found);
    }
}

/// A trial as it is in a report of its experiment.
pub(crate) fn trial_alone(stored: &StoredExperiment, trial: i64) -> Option<Trial> {
    let place = stored.trials.iter().position(|(id, _)| *id == trial)?;
    let is_excluded = Analysis::new(stored).is_excluded(place);
    Some(trial_of(trial, &stored.trials[place].1, is_excluded))
}

fn drafts(analysis: &Analysis<'_>) -> Drafts {
    let treatments = analysis.record().treatments.iter().enumerate();
    let treatments: Vec<_> = treatments.map(|(i, t)| treatment_of(analysis, i, t)).collect();
    let effects = effects::effects(analysis);
    let claims = claims::claims(analysis);
    Drafts {
        headline: answer::headline(analysis, &treatments),
        study: claims::study(analysis, &claims),
        curves: curves::curves(analysis),
        timelines: timelines::timelines(analysis),
        treatments,
        effects,
        claims,
    }
}

fn experiment(analysis: &Analysis<'_>, drafts: &Drafts, answer: String) -> Experiment {
    let (stored, record) = (analysis.stored, analysis.record());
    let name_of = |i: usize| record.treatments[i].name.clone();
    Experiment {
        id: stored.id,
        name: record.name.clone(),
        question: record.question.clone(),
        answer,
        design: record.design.clone(),
        status: match stored.status {
            ExperimentStatus::Running => Life::Running.word(),
            ExperimentStatus::Finished => Life::Finished.word(),
            ExperimentStatus::Interrupted => Life::Interrupted.word(),
        },
        started_unix_ms: stored.started_unix_ms,
        finished_unix_ms: stored.finished_unix_ms,
        blocks_planned: record.blocks,
        blocks_finished: analysis.progress.ended,
        seed: record.seed,
        reference: record
            .treatments
            .first()
            .map(|t| t.name.clone())
            .unwrap_or_default(),
        headline: drafts.headline.map(name_of),
        factors: record
            .factors
            .iter()
            .map(|factor| Factor {
                name: factor.name.clone(),
                title: factor.title.clone(),
                condition: factor.condition,
                levels: factor.levels.clone(),
            })
            .collect(),
        workload: record.workload.clone(),
        file: record.file.clone(),
        repeat: record.repeat.clone(),
    }
}
