//! Guards: bounds that end a trial and keep its treatment from being tried again.

use crate::file::GuardPart;
use crate::plan::{Plan, Treatment};
use pgdyno_engine::SecondFigures;
use pgdyno_record::{TrialRecord, TrialStatus};
use std::collections::BTreeMap;

const IN_A_ROW: u32 = GuardPart::IN_A_ROW;

/// Throughput of a treatment so far, by its measured seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    committed: f64,
    seconds: f64,
}

/// The throughput so far of the treatments that others are compared with, by their names.
#[derive(Debug, Clone, Default)]
pub(super) struct Paces(BTreeMap<String, Pace>);

impl Paces {
    /// Takes in a trial, if it is of a reference.
    pub(super) fn trial(&mut self, plan: &Plan, record: &TrialRecord) {
        let treatment = plan.treatments.iter().find(|own| own.name == record.treatment);
        if let (Some(treatment), TrialStatus::Finished, Some(tps)) = (treatment, record.status, record.tps) {
            self.add(treatment, tps, record.measured_s);
        }
    }

    /// Takes in a second, if it is of a reference.
    pub(super) fn second(&mut self, treatment: &Treatment, second: &SecondFigures) {
        self.add(treatment, second.tps(), second.length_s);
    }

    fn add(&mut self, treatment: &Treatment, tps: f64, seconds: f64) {
        if treatment.against.is_none() {
            let pace = self.0.entry(treatment.name.clone()).or_default();
            pace.committed += tps * seconds;
            pace.seconds += seconds;
        }
    }

    /// Transactions per second of the reference that a treatment is compared with; `None` before it
    /// has enough seconds, and for a reference.
    pub(super) fn tps(&self, plan: &Plan, treatment: &Treatment) -> Option<f64> {
        let pace = self.0.get(&plan.reference_of(treatment)?.name)?;
        (pace.seconds >= f64::from(IN_A_ROW)).then(|| pace.committed / pace.seconds)
    }
}

/// The bounds on a load, and how often each was passed in a row.
pub(super) struct Guard<'a> {
    part: &'a GuardPart,
    slow: u32,
    /// Time without a response so far.
    silent_ms: f64,
    failing: u32,
    behind: u32,
}

impl<'a> Guard<'a> {
    pub(super) fn new(part: &'a GuardPart) -> Guard<'a> {
        Guard {
            part,
            slow: 0,
            silent_ms: 0.0,
            failing: 0,
            behind: 0,
        }
    }

    /// Why the trial must end, if it must. `pace_tps` is the throughput of the reference, where
    /// there is one to compare with.
    pub(super) fn second(&mut self, second: &SecondFigures, pace_tps: Option<f64>) -> Option<String> {
        let (slow, failing) = (self.response_time(second), self.errors(second));
        let behind = self.slowdown(second, pace_tps);
        slow.or(failing).or(behind)
    }

    /// Caches are filled again while a load warms up, so that only measured seconds are compared.
    fn slowdown(&mut self, second: &SecondFigures, pace_tps: Option<f64>) -> Option<String> {
        let (most, pace_tps) = (self.part.slowdown_max?, pace_tps?);
        let tps = second.tps();
        let is_behind = second.measured && tps < pace_tps * (1.0 - most);
        self.behind = if is_behind { self.behind + 1 } else { 0 };
        (self.behind >= IN_A_ROW).then(|| {
            format!(
                "throughput was more than {:.1} % below the reference's for {IN_A_ROW} seconds ({tps:.0} of {pace_tps:.0} TPS)",
                most * 100.0
            )
        })
    }

    fn response_time(&mut self, second: &SecondFigures) -> Option<String> {
        let most = self.part.p99_ms_max?;
        self.silent_ms = match second.committed {
            0 => self.silent_ms + second.length_s * 1e3,
            _ => 0.0,
        };
        // A transaction under way may be a long one within the bound.
        let is_slow = second.p99_ms.map_or(self.silent_ms > most, |p99| p99 > most);
        self.slow = if is_slow { self.slow + 1 } else { 0 };
        (self.slow >= IN_A_ROW).then(|| {
            let seen = second
                .p99_ms
                .map_or("no response".to_owned(), |p99| format!("{p99:.1} ms"));
            format!("p99 was beyond {most} ms for {IN_A_ROW} seconds ({seen})")
        })
    }

    fn errors(&mut self, second: &SecondFigures) -> Option<String> {
        let most = self.part.error_ratio_max?;
        #[expect(clippy::cast_precision_loss, reason = "counts of a second")]
        let (failed, all) = (second.failed as f64, (second.failed + second.committed) as f64);
        let ratio = if all > 0.0 { failed / all } else { 0.0 };
        self.failing = if ratio > most { self.failing + 1 } else { 0 };
        (self.failing >= IN_A_ROW).then(|| {
            format!(
                "more than {:.1} % failed for {IN_A_ROW} seconds ({:.1} %)",
                most * 100.0,
                ratio * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ExperimentFile;
    use crate::plan::ProfileSettings;
    use pgdyno_knobs::Catalogue;
    use std::path::Path;

    fn second(committed: u64, failed: u64, p99_ms: Option<f64>) -> SecondFigures {
        SecondFigures {
            number: 1,
            length_s: 1.0,
            measured: true,
            committed,
            failed,
            clients: 1,
            p50_ms: None,
            p95_ms: None,
            p99_ms,
        }
    }

    #[test]
    fn a_bound_acts_when_it_is_passed_in_a_row() {
        let part = GuardPart {
            p99_ms_max: Some(10.0),
            error_ratio_max: Some(0.1),
            ..GuardPart::default()
        };
        let mut guard = Guard::new(&part);
        for _ in 0..3 {
            for _ in 0..4 {
                assert_eq!(guard.second(&second(100, 0, Some(11.0)), None), None);
            }
            assert_eq!(
                guard.second(&second(100, 0, Some(9.0)), None),
                None,
                "one good second"
            );
        }
        let reasons: Vec<Option<String>> = (0..5)
            .map(|_| guard.second(&second(10, 5, Some(1.0)), None))
            .collect();
        assert!(reasons[..4].iter().all(Option::is_none));
        assert_eq!(
            reasons[4].as_deref(),
            Some("more than 10.0 % failed for 5 seconds (33.3 %)")
        );
        let mut guard = Guard::new(&part);
        let stuck = (0..5).find_map(|_| guard.second(&second(0, 0, None), None));
        assert!(stuck.unwrap().contains("no response"));
        let part = GuardPart {
            p99_ms_max: Some(8_000.0),
            ..GuardPart::default()
        };
        let mut guard = Guard::new(&part);
        let silent = (0..20).position(|_| guard.second(&second(0, 0, None), None).is_some());
        assert_eq!(silent, Some(12), "eight seconds are within the bound");
    }

    #[test]
    fn what_is_slower_than_the_reference_is_ended_once_there_is_one() {
        let part = GuardPart {
            slowdown_max: Some(0.2),
            ..GuardPart::default()
        };
        let text = "name = 'x'\nquestion = '?'\ndesign = 'a-b'\nblocks = 2\n[data]\nscale = 1\n[load]\nworkload = 'tpcb'\nclients = 1\nmeasure_s = 9\n\
             [[step]]\nname = 'a'\nsettings.jit = false\n";
        let catalogue = Catalogue::shipped().unwrap();
        let file = ExperimentFile::parse(text, Path::new("x.toml"), &catalogue).unwrap();
        let plan = Plan::unasked(file, &ProfileSettings::new(), 1).unwrap();
        let [reference, other] = &plan.treatments[..] else {
            panic!("{plan:?}")
        };
        let mut paces = Paces::default();
        for _ in 0..4 {
            paces.second(reference, &second(100, 0, None));
            paces.second(other, &second(1, 0, None));
            assert_eq!(paces.tps(&plan, other), None, "too few seconds");
        }
        paces.second(reference, &second(150, 0, None));
        assert_eq!(paces.tps(&plan, reference), None, "the reference itself");
        let pace_tps = paces.tps(&plan, other);
        assert_eq!(pace_tps, Some(110.0));
        let five = |committed: u64, measured: bool, pace_tps: Option<f64>| {
            let mut guard = Guard::new(&part);
            let own = SecondFigures {
                measured,
                ..second(committed, 0, None)
            };
            (0..5).find_map(|_| guard.second(&own, pace_tps))
        };
        assert_eq!(five(50, true, None), None, "nothing to compare with");
        assert_eq!(five(50, false, pace_tps), None, "warming up");
        assert_eq!(five(88, true, pace_tps), None, "just within the bound");
        assert_eq!(
            five(87, true, pace_tps).as_deref(),
            Some("throughput was more than 20.0 % below the reference's for 5 seconds (87 of 110 TPS)")
        );
    }
}
