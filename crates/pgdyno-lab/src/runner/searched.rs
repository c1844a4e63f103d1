//! A search: what is tried next follows from the trials so far, and from nothing else, so that a
//! search that was killed goes on as it would have gone.

use super::outside::{Next, Outside};
use super::prepare::treatment_record;
use super::{Event, Running};
use crate::error::LabError;
use crate::plan::{BROKEN, SearchPlan, Treatment};
use crate::searched::{HALF_WIDTH, Tried};
use pgdyno_stats::Reason;

impl Running<'_, '_, '_> {
    /// Runs the trials of a search that are not stored yet. Returns whether all is done, or
    /// somebody asked to stop.
    pub(super) fn searched(&mut self) -> Result<bool, LabError> {
        let stored = self.runner.results.experiment(self.id)?;
        let search = match self.plan.search(&stored.record) {
            Some(search) => search.map_err(LabError::NothingToSearch)?,
            None => return Ok(true),
        };
        let mut tried = Tried::of(&search, &stored);
        let mut outside = Outside::begin(self.runner.optimizers, self.plan, &search)?;
        let mut place = search.place_after(tried.last);
        while tried.count < search.trials {
            let (block, position) = place;
            if let Some(reason) = self.budget_is_spent() {
                self.ends_early(reason, block - 1);
                return Ok(true);
            }
            let begun = self.runner.clock.now();
            let own = search.with(|search| match outside {
                Some(_) => search.start(&tried.trials, block),
                None => search.next(&tried.trials, block),
            });
            let next = match (own, &mut outside) {
                (Some(next), _) => Next::Try(
                    next.point,
                    why(next.reason, (search.is_larger_better(), search.has_bounds())),
                ),
                (None, Some(outside)) => outside.next(&search, &tried, block)?,
                (None, None) => Next::Nothing,
            };
            let (point, why) = match next {
                // This block has all that may be tried.
                Next::Nothing if outside.is_none() && position > 1 => {
                    place = (block + 1, 1);
                    continue;
                }
                Next::Try(point, why) => (point, why),
                Next::Nothing => {
                    self.ends_early("nothing is left that may be tried", block - 1);
                    return Ok(true);
                }
                Next::Stopped => return Ok(false),
            };
            let best = tried.best(&search);
            let treatment = self.candidate(&search, &mut tried, &point, why)?;
            self.own += self.runner.clock.now().saturating_sub(begun);
            if !self.wait_for_window(1)? {
                return Ok(false);
            }
            self.runner.results.keep()?;
            let begun = self.runner.clock.now();
            (self.runner.on_event)(Event::Suggested {
                treatment: &treatment,
                best: best.as_ref(),
            });
            (self.runner.on_event)(Event::TrialBegins {
                treatment: &treatment,
                block,
            });
            let Some((mut record, series)) = self.trial((None, &treatment), block, position) else {
                return Ok(false);
            };
            self.spend(begun, std::iter::once(&mut record));
            let trial = [(record, series)];
            self.store(&trial)?;
            tried.take_in(&search, &trial[0].0);
            place = search.place_after(tried.last);
        }
        Ok(true)
    }

    /// The treatment of a point, which is stored before its first trial.
    fn candidate(
        &mut self,
        search: &SearchPlan<'_>,
        tried: &mut Tried,
        point: &[usize],
        why: String,
    ) -> Result<Treatment, LabError> {
        // Treatments are numbered in the order in which they are stored.
        let known = tried.treatments.iter().position(|(other, _)| other == point);
        let number = known.unwrap_or(tried.treatments.len());
        let treatment = search.treatment(point, number, Some(why));
        if known.is_none() {
            let record = treatment_record(&treatment, self.plan, self.runner.catalogue);
            self.runner.results.add_treatment(self.id, &record)?;
            tried.treatments.push((point.to_vec(), treatment.name.clone()));
        }
        Ok(treatment)
    }
}

/// Why a point is tried, in a sentence's part.
fn why(reason: Reason, (larger_is_better, has_bounds): (bool, bool)) -> String {
    let sign = if larger_is_better { 1.0 } else { -1.0 };
    let percent = |logarithm: f64| 100.0 * (sign * logarithm).exp_m1();
    match reason {
        Reason::Start(_) => "a starting point".to_owned(),
        Reason::Improvement { expected, .. } if has_bounds && expected > BROKEN / 2.0 => {
            "expected to keep the bounds, which the best so far breaks".to_owned()
        }
        Reason::Improvement { expected, sd } => format!(
            "expected to differ from the best so far by {:+.1} % [{:+.1}, {:+.1}]",
            percent(expected),
            percent(expected - sign * HALF_WIDTH * sd),
            percent(expected + sign * HALF_WIDTH * sd)
        ),
        Reason::Again => "the best so far, measured again".to_owned(),
        Reason::Repeated => "nothing new was found: measured again".to_owned(),
        Reason::Turn => "its turn".to_owned(),
    }
}
