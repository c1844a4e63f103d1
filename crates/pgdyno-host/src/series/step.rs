//! From one read to the next: what was kept of the last one, how long ago it was, and which reasons
//! were reported.

use super::{Reading, growth};
use crate::access::HostError;
use std::collections::BTreeMap;
use std::time::Instant;

/// Why a counter that is smaller than before gives no rate.
pub(super) const WENT_BACK: &str = "a counter went backwards: it was restarted; its rates begin again";

/// The last state of a source.
#[derive(Debug)]
pub(super) struct Last<S>(Option<(Instant, S)>);

impl<S> Default for Last<S> {
    fn default() -> Self {
        Last(None)
    }
}

/// A state to compare with, and how long ago it was.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before<'a, S> {
    pub(super) state: &'a S,
    pub(super) seconds: f64,
}

impl<S> Last<S> {
    /// Takes the new state and lets `fill` write the reading, with the state before where there is
    /// one.
    pub(super) fn step(
        &mut self,
        at: Instant,
        now: S,
        fill: impl FnOnce(Option<Before<'_, S>>, &S, &mut Reading),
    ) -> Reading {
        let before = self.0.take();
        let (since, before) = match &before {
            Some((since, state)) if at > *since => {
                let seconds = at.duration_since(*since).as_secs_f64();
                (Some(*since), Some(Before { state, seconds }))
            }
            _ => (None, None),
        };
        let mut reading = Reading::new(at, since);
        fill(before, &now, &mut reading);
        self.0 = Some((at, now));
        reading
    }

    /// A read that failed: rates begin again after it.
    pub(super) fn lost(&mut self, at: Instant, error: &HostError) -> Reading {
        self.0 = None;
        lost(at, error)
    }
}

/// A reading that is only a gap.
pub(super) fn lost(at: Instant, error: &HostError) -> Reading {
    let mut reading = Reading::new(at, None);
    gap_of(&mut reading, error);
    reading
}

/// Adds the reason why a file was not read.
pub(super) fn gap_of(reading: &mut Reading, error: &HostError) {
    let path = match error {
        HostError::Missing { path }
        | HostError::Refused { path, .. }
        | HostError::Rejected { path, .. }
        | HostError::Io { path, .. }
        | HostError::TooLarge { path, .. }
        | HostError::Malformed { path, .. } => path,
    };
    reading.gap(path, error);
}

/// Growths of several counters of one thing; `None` as soon as one of them went backwards.
pub(super) fn growths<const N: usize>(before: &[u64; N], now: &[u64; N]) -> Option<[f64; N]> {
    let mut all = [0.0; N];
    for (growth_of_one, (before, now)) in all.iter_mut().zip(before.iter().zip(now)) {
        *growth_of_one = growth(*before, *now)?;
    }
    Some(all)
}

/// Something with a name among several of its kind.
pub(super) trait Named {
    fn name(&self) -> &str;
}

/// The thing of the same name; `place` is where it was in the other list, which nearly always is
/// its place here too.
pub(super) fn same<'a, T: Named>(all: &'a [T], place: usize, name: &str) -> Option<&'a T> {
    all.get(place)
        .filter(|one| one.name() == name)
        .or_else(|| all.iter().find(|one| one.name() == name))
}

/// Reports each thing that was there before and is no more.
pub(super) fn report_gone<T: Named>(before: &[T], now: &[T], source: &str, reading: &mut Reading) {
    for (place, one) in before.iter().enumerate() {
        if same(now, place, one.name()).is_none() {
            reading.gap(&format!("{source} {}", one.name()), "it is no longer listed");
        }
    }
}

/// Reasons that a source gave at its last reading: each is reported once, until it changes or has
/// ceased in between.
#[derive(Debug, Default)]
pub(super) struct ReportedGaps(BTreeMap<String, String>);

impl ReportedGaps {
    /// Takes out of the reading what was reported before.
    pub(super) fn filter(&mut self, reading: &mut Reading) {
        let now: BTreeMap<String, String> = reading
            .gaps
            .iter()
            .map(|gap| (gap.source.clone(), gap.reason.clone()))
            .collect();
        reading
            .gaps
            .retain(|gap| self.0.get(&gap.source) != Some(&gap.reason));
        self.0 = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_reason_is_reported_once_until_it_changes_or_ceases() {
        let mut reported = ReportedGaps::default();
        let mut count = |reason: Option<&str>| {
            let mut reading = Reading::new(Instant::now(), None);
            if let Some(reason) = reason {
                reading.gap("a", reason);
            }
            reported.filter(&mut reading);
            reading.gaps.len()
        };
        let counts: Vec<usize> = [Some("x"), Some("x"), Some("y"), Some("y"), None, Some("y")]
            .into_iter()
            .map(&mut count)
            .collect();
        assert_eq!(counts, [1, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn a_lost_read_starts_again_and_no_time_gives_no_rate() {
        let start = Instant::now();
        let mut last = Last::default();
        let since = |last: &mut Last<u64>, s| {
            last.step(start + Duration::from_secs(s), 1, |_, _, _| {})
                .since
                .is_some()
        };
        assert!(!since(&mut last, 0));
        assert!(!since(&mut last, 0));
        assert!(since(&mut last, 1));
        let missing = HostError::Missing { path: "/a".into() };
        assert_eq!(last.lost(start, &missing).gaps[0].source, "/a");
        assert!(!since(&mut last, 2));
    }

    #[test]
    fn one_counter_that_goes_backwards_spoils_all_of_its_thing() {
        assert_eq!(growths(&[1, 2], &[3, 2]), Some([2.0, 0.0]));
        assert_eq!(growths(&[1, 2], &[3, 1]), None);
    }
}
