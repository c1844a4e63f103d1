//! Guards: bounds that end a trial and keep its treatment from being tried again.

use crate::file::GuardPart;
use pgdyno_engine::SecondFigures;

/// A bound must be passed in so many seconds in a row: one bad second is a checkpoint.
const IN_A_ROW: u32 = 5;
/// The bounds on a load, and how often each was passed in a row.
pub(super) struct Guard<'a> {
    part: &'a GuardPart,
    slow: u32,
    failing: u32,
}

impl<'a> Guard<'a> {
    pub(super) fn new(part: &'a GuardPart) -> Guard<'a> {
        Guard {
            part,
            slow: 0,
            failing: 0,
        }
    }

    /// Why the trial must end, if it must.
    pub(super) fn second(&mut self, second: &SecondFigures) -> Option<String> {
        self.response_time(second).or_else(|| self.errors(second))
    }

    fn response_time(&mut self, second: &SecondFigures) -> Option<String> {
        let most = self.part.p99_ms_max?;
        // A second without a single response is the slowest of all.
        let is_slow = second.p99_ms.map_or(second.committed == 0, |p99| p99 > most);
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
                assert_eq!(guard.second(&second(100, 0, Some(11.0))), None);
            }
            assert_eq!(guard.second(&second(100, 0, Some(9.0))), None, "one good second");
        }
        let reasons: Vec<Option<String>> = (0..5).map(|_| guard.second(&second(10, 5, Some(1.0)))).collect();
        assert!(reasons[..4].iter().all(Option::is_none));
        assert_eq!(
            reasons[4].as_deref(),
            Some("more than 10.0 % failed for 5 seconds (33.3 %)")
        );
        let mut guard = Guard::new(&part);
        let stuck = (0..5).find_map(|_| guard.second(&second(0, 0, None)));
        assert!(stuck.unwrap().contains("no response"));
    }
}
