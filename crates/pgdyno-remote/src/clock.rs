//! A clock of the coordinator as it is known on an agent's host.

use super::agent::Coordinator;
use super::question::{Answer, Question};
use std::time::{Duration, Instant, SystemTime};

/// Questions, of which the one with the shortest answer counts.
const QUESTIONS: u32 = 16;
/// A reading that is older is read again.
const OLD: Duration = Duration::from_secs(5);
/// Two clocks drift apart by less than a second in so many: five times what crystals do.
const DRIFT: u32 = 2_000;

/// What a clock of the coordinator was at an instant here.
#[derive(Debug, Clone, Copy)]
pub struct OtherClock {
    at: Instant,
    ns: u64,
    /// The largest error of that: the answer was given between question and answer, half of which
    /// time it is.
    pub error: Duration,
}

impl OtherClock {
    /// Asks for it; `None` where the coordinator does not answer.
    pub fn ask(coordinator: &Coordinator, question: &Question) -> Option<OtherClock> {
        let mut best = OtherClock::once(coordinator, question)?;
        for _ in 1..QUESTIONS {
            let other = OtherClock::once(coordinator, question)?;
            if other.error < best.error {
                best = other;
            }
        }
        Some(best)
    }

    fn once(coordinator: &Coordinator, question: &Question) -> Option<OtherClock> {
        let asked = Instant::now();
        let Some(Answer::Clock(ns)) = coordinator.ask(question.clone()) else {
            return None;
        };
        let error = asked.elapsed() / 2;
        let at = asked + error;
        Some(OtherClock { at, ns, error })
    }

    /// Asks once more where the reading is old, and keeps the better one; `None` where the
    /// coordinator does not answer.
    pub fn renewed(self, coordinator: &Coordinator, question: &Question) -> Option<OtherClock> {
        match self.at.elapsed() > OLD {
            true => Some(self.or(OtherClock::once(coordinator, question)?)),
            false => Some(self),
        }
    }

    /// The one whose error is smaller by now.
    fn or(self, newer: OtherClock) -> OtherClock {
        match newer.error < self.error_at(newer.at) {
            true => newer,
            false => self,
        }
    }

    /// The largest error at a later instant: clocks drift apart.
    fn error_at(self, at: Instant) -> Duration {
        self.error + (at - self.at) / DRIFT
    }

    /// The largest error by now.
    pub fn error_now(self) -> Duration {
        self.error_at(Instant::now())
    }

    /// When it is at so many nanoseconds.
    pub fn instant(self, ns: u64) -> Instant {
        match ns.checked_sub(self.ns) {
            Some(later) => self.at + Duration::from_nanos(later),
            None => self.at,
        }
    }

    /// By how many milliseconds this host's time of day is ahead of it, where it is the
    /// coordinator's time of day.
    pub fn ahead_ms(self) -> f64 {
        let since = self.at.elapsed();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let here_s = now.unwrap_or_default().saturating_sub(since);
        let there_s = Duration::from_nanos(self.ns);
        match here_s.checked_sub(there_s) {
            Some(ahead) => ahead.as_secs_f64() * 1e3,
            None => -(there_s.saturating_sub(here_s)).as_secs_f64() * 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_compared_at_the_same_instant() {
        let at = Instant::now();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        for ahead_ms in [-250.0, 0.0, 3600e3] {
            let there_s = now.as_secs_f64() - ahead_ms / 1e3;
            let clock = OtherClock {
                at,
                ns: Duration::from_secs_f64(there_s).as_nanos().try_into().unwrap(),
                error: Duration::ZERO,
            };
            let found = clock.ahead_ms();
            assert!((found - ahead_ms).abs() < 1.0, "{found} for {ahead_ms}");
        }
    }

    #[test]
    fn newer_reading_is_taken_where_the_older_one_may_have_drifted_farther() {
        let reading = |at: Instant, error_us: u64| OtherClock {
            at,
            ns: 0,
            error: Duration::from_micros(error_us),
        };
        let older = reading(Instant::now(), 100);
        let at = older.at + Duration::from_secs(10);
        assert_eq!(older.or(reading(at, 5_000)).at, at);
        assert_eq!(older.or(reading(at, 5_200)).at, older.at);
    }

    #[test]
    fn an_instant_that_has_passed_is_now() {
        let clock = OtherClock {
            at: Instant::now(),
            ns: 1_000,
            error: Duration::ZERO,
        };
        assert_eq!(clock.instant(3_000), clock.at + Duration::from_nanos(2_000));
        assert_eq!(clock.instant(500), clock.at);
    }
}
