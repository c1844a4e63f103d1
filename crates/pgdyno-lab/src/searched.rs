//! What the trials of a search have found.

use crate::error::LabError;
use crate::file::ExperimentFile;
use crate::plan::{Consent, Plan, SearchPlan};
use pgdyno_knobs::Catalogue;
use pgdyno_record::{StoredExperiment, TreatmentRecord, TrialRecord};
use pgdyno_stats::{Incumbent, Point, SearchTrial};
use std::path::Path;

/// Half the width of a 95 % interval, in standard deviations.
pub(crate) const HALF_WIDTH: f64 = 1.96;

/// The best so far of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct BestSoFar {
    /// Name of its treatment.
    pub treatment: String,
    /// Its figure by all trials together.
    pub figure: f64,
    /// The ends of the figure's 95 % interval, the lower first; `None` where the method has none.
    pub interval: Option<[f64; 2]>,
}

/// What was tried so far.
pub(crate) struct Tried {
    /// Treatments that are stored, with their points.
    pub(crate) treatments: Vec<(Point, String)>,
    /// Trials of them, in order.
    pub(crate) trials: Vec<SearchTrial>,
    /// All trials.
    pub(crate) count: u32,
}

impl Tried {
    /// All that is stored of a search.
    pub(crate) fn of(search: &SearchPlan<'_>, stored: &StoredExperiment) -> Tried {
        let of = |treatment: &TreatmentRecord| Some((search.point_of(treatment)?, treatment.name.clone()));
        let treatments = stored.record.treatments.iter();
        let tested = treatments.filter(|treatment| treatment.why_not.is_none());
        let mut tried = Tried {
            treatments: tested.filter_map(of).collect(),
            trials: Vec::new(),
            count: 0,
        };
        for (_, record) in &stored.trials {
            tried.take_in(search, record);
        }
        tried
    }

    pub(crate) fn take_in(&mut self, search: &SearchPlan<'_>, record: &TrialRecord) {
        self.count += 1;
        let point = self.treatments.iter().find(|(_, name)| *name == record.treatment);
        let trial = point.map(|(point, _)| search.trial(point, record));
        self.trials.extend(trial);
    }

    pub(crate) fn name_of(&self, point: &[usize]) -> Option<&str> {
        let mut treatments = self.treatments.iter();
        treatments
            .find(|(other, _)| other == point)
            .map(|(_, name)| name.as_str())
    }

    pub(crate) fn best_so_far(&self, search: &SearchPlan<'_>, best: &Incumbent) -> Option<BestSoFar> {
        let treatment = self.name_of(&best.point)?.to_owned();
        let figure = |times: f64| search.figure(best.mean + times * HALF_WIDTH * best.sd);
        let (one, other) = (figure(-1.0), figure(1.0));
        Some(BestSoFar {
            treatment,
            figure: search.figure(best.mean),
            interval: best.sd.is_finite().then(|| [one.min(other), one.max(other)]),
        })
    }
}

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// The best that was tried; `None` where every trial failed.
    pub best: Option<BestSoFar>,
    /// Factors, each with its part of what the settings changed (all together 1), the largest first.
    pub importance: Vec<(String, f64)>,
    /// Trials that are stored.
    pub trials: u32,
    /// Those of them that failed.
    pub failed: u32,
}

impl Searched {
    /// What a stored experiment of `design = "search"` has found so far; `None` where it is none.
    ///
    /// # Errors
    ///
    /// Its file cannot be read any more, or it has nothing to vary.
    pub fn of(
        stored: &StoredExperiment,
        catalogue: &Catalogue,
        consent: &Consent,
    ) -> Result<Option<Searched>, LabError> {
        let file = ExperimentFile::parse(&stored.record.file, Path::new("the stored experiment"), catalogue)?;
        let names: Vec<String> = file.factor.iter().map(|factor| factor.name.clone()).collect();
        let (seed, treatments) = (stored.record.seed, &stored.record.treatments);
        let plan = Plan::recalled(file, seed, treatments, catalogue, consent)?;
        let Some(search) = plan.search(&stored.record) else {
            return Ok(None);
        };
        let search = search.map_err(LabError::NothingToSearch)?;
        let tried = Tried::of(&search, stored);
        let best = search.with(|search| search.best(&tried.trials));
        let importance = search.with(|search| search.importance(&tried.trials));
        let mut importance: Vec<(String, f64)> =
            names.into_iter().zip(importance.unwrap_or_default()).collect();
        importance.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let failed = tried
            .trials
            .iter()
            .filter(|trial| trial.value.is_none() || !trial.holds)
            .count();
        Ok(Some(Searched {
            best: best.and_then(|best| tried.best_so_far(&search, &best)),
            importance,
            trials: tried.count,
            failed: u32::try_from(failed).unwrap_or(u32::MAX),
        }))
    }
}
