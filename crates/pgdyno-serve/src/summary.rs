//! What the list and the metrics say of an experiment beyond what the store keeps for a list:
//! answer, planned trials, figures and verdicts. That takes all its trials to be read, so it is
//! made once and kept as long as nothing of it has changed.

use super::App;
use super::experiment::report_of;
use super::now_unix_ms;
use super::reports::Reports;
use super::stamp::Stamp;
use pgdyno_knobs::Catalogue;
use pgdyno_lab::searched;
use pgdyno_record::ExperimentRecord;
use pgdyno_report::{Report, build};
use pgdyno_stats::Effect;
use pgdyno_store::{Filter, Life, Store, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many are kept: a few hundred bytes each.
const KEPT_MAX: usize = 20_000;

/// How old the answer may be whether an experiment is run: it takes all of the list to be read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What all trials of an experiment together say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Summary {
    /// Trials at most, by the plan.
    pub(super) planned: Option<u64>,
    /// The answer in one sentence; none before the end.
    pub(super) answer: Option<String>,
    /// In the order of the plan, without those that were skipped.
    pub(super) treatments: Vec<Figures>,
}

/// What the trials of a treatment say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures {
    pub(super) name: String,
    pub(super) finished: usize,
    pub(super) failed: usize,
    /// Mean, lower and upper bound of the throughput.
    pub(super) tps: Option<(f64, f64, f64)>,
    /// Means over trials, by the metric's name.
    pub(super) means: BTreeMap<String, f64>,
    /// What it is compared with, and what came out by the figure that decides.
    pub(super) against: Option<String>,
    pub(super) effect: Option<Effect>,
}

/// By the experiment's number; none where its records cannot be read.
type Known = HashMap<i64, (Stamp, Option<Arc<Summary>>)>;

/// Those that were made already.
#[derive(Default)]
pub(super) struct Summaries {
    known: Mutex<Known>,
    filling: AtomicBool,
}

impl Summaries {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one of an experiment if it is there; `Some(None)` where it cannot be made.
    pub(super) fn known(&self, id: i64, stamp: Stamp) -> Option<Option<Arc<Summary>>> {
        let known = self.lock();
        let (of, summary) = known.get(&id)?;
        (*of == stamp).then(|| summary.clone())
    }

    /// The one of an experiment, made if it is not there; `None` where its records cannot be read.
    /// An error is that of the store, and may be over the next time.
    pub(super) fn of(
        &self,
        (store, catalogue): (&Store, &Catalogue),
        id: i64,
        stamp: Stamp,
    ) -> Result<Option<Arc<Summary>>, StoreError> {
        match self.known(id, stamp) {
            Some(known) => Ok(known),
            None => self.keep(id, stamp, summary((store, catalogue), id, stamp)),
        }
    }

    /// The same for one of many: what is wrong with it alone is not in the way of the others. An
    /// error passes.
    pub(super) fn one_of_many(
        &self,
        read: (&Store, &Catalogue),
        id: i64,
        stamp: Stamp,
    ) -> Result<Option<Arc<Summary>>, StoreError> {
        match self.of(read, id, stamp) {
            // A page of the file that is broken, or an experiment that was removed just now.
            Err(StoreError::Sqlite { .. } | StoreError::Unknown { .. }) => Ok(None),
            made => made,
        }
    }

    /// Keeps what was made, or that it cannot be; a store that is locked just now is read the next
    /// time.
    fn keep(
        &self,
        id: i64,
        stamp: Stamp,
        made: Result<Summary, StoreError>,
    ) -> Result<Option<Arc<Summary>>, StoreError> {
        // One broken record is that experiment's trouble, not the list's; opening it shows what is
        // wrong.
        let made = match made {
            Ok(made) => Some(Arc::new(made)),
            Err(StoreError::Record { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut known = self.lock();
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        known.insert(id, (stamp, made.clone()));
        Ok(made)
    }

    /// Keeps the summary of a report that was made for itself.
    pub(super) fn keep_from(&self, report: &Report, record: &ExperimentRecord, stamp: Stamp) {
        let _ = self.keep(
            report.experiment.id,
            stamp,
            Ok(Summary::of(report, record, stamp)),
        );
    }
}

impl App {
    /// Makes the missing summaries and reports behind the scenes; one at a time does it.
    pub(super) fn fill_summaries(self: &Arc<App>) {
        if self.summaries.filling.swap(true, Ordering::Relaxed) {
            return;
        }
        let app = Arc::clone(self);
        tokio::spawn(async move {
            // What goes wrong here goes wrong for the list too, which reports it.
            let _ = app
                .with_store(|app, store| {
                    // What goes wrong with a report is shown to who opens it.
                    let make = |id| drop(report_of(app, store, id, true));
                    Ok(fill(
                        (store, app.source.catalogue()),
                        &app.summaries,
                        &app.reports,
                        &make,
                        &|| app.is_ending(),
                    )?)
                })
                .await;
            app.summaries.filling.store(false, Ordering::Relaxed);
        });
    }
}

/// Makes what is missing, the newest first, until the program ends: summaries, and as many reports
/// as there is room for.
fn fill(
    (store, catalogue): (&Store, &Catalogue),
    summaries: &Summaries,
    reports: &Reports,
    make: &dyn Fn(i64),
    is_ending: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    let (mut quiet, mut looked): (bool, Option<Instant>) = (false, None);
    for listed in store.find(&Filter::default())? {
        if is_ending() {
            break;
        }
        let (key, stamp) = ((listed.id, true), Stamp::from(&listed));
        if reports.have_room() && !reports.have(key, stamp) {
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN) {
                (quiet, looked) = (is_quiet(store)?, Some(Instant::now()));
            }
            if quiet {
                make(listed.id);
            }
        }
        summaries.one_of_many((store, catalogue), listed.id, stamp)?;
    }
    Ok(())
}

/// While an experiment is run, more than a list needs is a disturbance.
fn is_quiet(store: &Store) -> Result<bool, StoreError> {
    let running = Filter {
        life: Some(Life::Running),
        ..Filter::default()
    };
    Ok(store.find(&running)?.is_empty())
}

fn summary((store, catalogue): (&Store, &Catalogue), id: i64, stamp: Stamp) -> Result<Summary, StoreError> {
    let stored = store.experiment(id)?;
    let mut report = build(&stored, "", now_unix_ms());
    if let Ok(Some(found)) = searched(&stored, catalogue) {
        report.set_search(&stored, found);
    }
    Ok(Summary::of(&report, &stored.record, stamp))
}

impl Summary {
    fn of(report: &Report, record: &ExperimentRecord, stamp: Stamp) -> Summary {
        let is_over = stamp.life != Life::Running;
        let tested = report.treatments.iter().filter(|t| t.why_not.is_none());
        Summary {
            planned: planned(record),
            answer: is_over.then(|| report.experiment.answer.clone()),
            treatments: tested
                .map(|t| Figures {
                    name: t.name.clone(),
                    finished: t.trials_finished,
                    failed: t.trials_failed,
                    tps: t.tps.as_ref().map(|tps| (tps.mean, tps.low, tps.high)),
                    means: t.figures.clone(),
                    against: t.against.clone(),
                    effect: t.step,
                })
                .collect(),
        }
    }
}

/// Each tested treatment once in each block; an experiment may end before that. `None` of a search,
/// whose treatments are chosen as it goes.
fn planned(record: &ExperimentRecord) -> Option<u64> {
    if record.design == "search" {
        return None;
    }
    let tested = record.treatments.iter().filter(|t| t.why_not.is_none()).count();
    Some(u64::from(record.blocks) * tested as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Body;
    use crate::problem::Problem;
    use axum::http::StatusCode;
    use pgdyno_record::ExperimentStatus;
    use pgdyno_store::Listed;
    use pgdyno_store::Place;
    use std::cell::RefCell;

    /// A store that is locked for a moment is no broken record: it is reported as locked, and read
    /// the next time.
    #[test]
    fn only_what_stays_broken_is_kept() {
        let place = || Place::File("results.sqlite".into());
        let stamp = Stamp {
            life: Life::Running,
            started_unix_ms: 1,
            finished_unix_ms: None,
            trials_finished: 1,
            trials_failed: 0,
        };
        let summaries = Summaries::default();
        let locked = summaries.keep(1, stamp, Err(StoreError::Locked { place: place() }));
        let problem = Problem::from(locked.unwrap_err());
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(summaries.known(1, stamp), None);
        let broken = StoreError::Record {
            place: place(),
            what: "trial 1".into(),
            reason: "no JSON".into(),
        };
        assert_eq!(summaries.keep(1, stamp, Err(broken)).unwrap(), None);
        assert_eq!(summaries.known(1, stamp), Some(None));
    }

    fn begun(store: &mut Store) -> i64 {
        let record = serde_json::json!({
            "name": "memory", "question": "?", "design": "one-at-a-time", "blocks": 1, "seed": 1, "confidence": 0.95,
            "smallest_effect": 0.02, "treatments": [], "facts": [], "file": "", "repeat": [], "target": "a",
            "workload": {"name": "tpcb", "scale": 1, "clients": 1, "threads": 1, "warmup_s": 0.0, "measure_s": 1.0},
        });
        store.begin(&serde_json::from_value(record).unwrap()).unwrap()
    }

    #[test]
    fn reports_are_made_ahead_while_no_experiment_runs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.sqlite");
        let (mut store, reader) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
        let reports = Reports::default();
        let catalogue = Catalogue::shipped().unwrap();
        let check = |expected: &[i64]| {
            let made = RefCell::new(Vec::new());
            let make = |id: i64| {
                let stamp = Stamp::from(&reader.pulse(id).unwrap());
                let body = || Ok(Body::new("application/json", vec![b' '; 10], false));
                drop(reports.of((id, true), stamp, body));
                made.borrow_mut().push(id);
            };
            let summaries = Summaries::default();
            fill((&reader, &catalogue), &summaries, &reports, &make, &|| false).unwrap();
            assert_eq!(*made.borrow(), expected);
            let known = |listed: &Listed| summaries.known(listed.id, Stamp::from(listed)).is_some();
            assert!(reader.find(&Filter::default()).unwrap().iter().all(known));
        };
        let first = begun(&mut store);
        store.set_status(first, ExperimentStatus::Finished).unwrap();
        let second = begun(&mut store);
        check(&[]);
        store.set_status(second, ExperimentStatus::Finished).unwrap();
        check(&[second, first]);
        check(&[]);
    }
}
