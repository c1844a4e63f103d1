//! What a search has found so far.

use serde::Serialize;

/// The figure of a treatment as all trials of the search together have it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TreatmentEstimate {
    /// Name of the treatment.
    pub treatment: String,
    /// Its figure, in the unit of the experiment's metric.
    pub figure: f64,
    /// The ends of the figure's 95 % interval, the lower first; `None` where the method has none.
    pub interval: Option<[f64; 2]>,
}

/// A trial of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SearchStep {
    /// Number of the trial in the store.
    pub trial: i64,
    /// Name of the treatment that it tried.
    pub treatment: String,
    /// The figure that decides; `None` where the trial did not finish, or its figures do not hold.
    pub figure: Option<f64>,
    /// Bounds that it breaks, as `p99_ms <= 20`, each with its figure where it has one.
    pub broken: Vec<BrokenBound>,
    /// The best of the trials up to this one; `None` before the first that did not fail.
    pub best: Option<TreatmentEstimate>,
}

/// A bound that a trial or a treatment breaks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct BrokenBound {
    /// The bound as the file has it.
    pub bound: String,
    /// The figure that is beyond it; `None` where it was not measured.
    pub figure: Option<f64>,
}

/// A factor's part of what the settings changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Importance {
    /// Name of the factor.
    pub factor: String,
    /// Its part; those of all factors are 1 together.
    pub part: f64,
}

/// What a search has found so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Searched {
    /// The best that was tried; `None` where every trial failed.
    pub best: Option<TreatmentEstimate>,
    /// The state before the search.
    pub reference: Option<TreatmentEstimate>,
    /// Factors, the most important first; empty before there is anything to go by.
    pub importance: Vec<Importance>,
    /// Trials in the order they ran.
    pub path: Vec<SearchStep>,
}

impl Searched {
    /// Number of trials that failed, or whose figures do not hold.
    pub fn failed(&self) -> usize {
        self.path.iter().filter(|step| step.figure.is_none()).count()
    }

    /// Bounds that the best breaks, each as in the first of its trials that did: then nothing that
    /// was tried holds to all of them.
    pub fn broken(&self) -> Vec<&BrokenBound> {
        let is_best = |step: &&SearchStep| {
            self.best
                .as_ref()
                .is_some_and(|best| best.treatment == step.treatment)
        };
        let all = self.path.iter().filter(is_best).flat_map(|step| &step.broken);
        let mut broken: Vec<&BrokenBound> = Vec::new();
        for own in all {
            if broken.iter().all(|known| known.bound != own.bound) {
                broken.push(own);
            }
        }
        broken
    }

    /// By what factor the best is expected to be above the reference, 1.2 = 20 % more, before it is
    /// confirmed.
    pub fn expected_ratio(&self) -> Option<f64> {
        let (best, reference) = (self.best.as_ref()?, self.reference.as_ref()?);
        Some(best.figure / reference.figure).filter(|ratio| ratio.is_finite())
    }
}
