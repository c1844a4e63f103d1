//! How long whoever moves the bytes may wait.

/// The CPUs' clocks differ by less.
const CLOCKS_APART_NS: u64 = 1_000;

/// What comes next for whoever moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send what is to be sent, then wait for bytes.
    Wait(Pause),
    /// All clients have ended.
    End,
}

/// How long to wait at most; instants in nanoseconds of the load's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Instant at which the pause was worked out.
    pub(crate) now_ns: u64,
    /// Instant at which the pause ends at the latest.
    pub(crate) until_ns: u64,
}

impl Pause {
    /// Length of the pause.
    pub(crate) fn ns(self) -> u64 {
        self.until_ns.saturating_sub(self.now_ns)
    }

    /// Whether a timer that goes off at an instant ends it: then, or before, which does no harm.
    /// One that may have gone off already, by a clock of another CPU, does not.
    pub(crate) fn ends_by(self, timer_ns: u64) -> bool {
        (self.now_ns + CLOCKS_APART_NS..=self.until_ns).contains(&timer_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a wait without a limit would have nothing left to end it.
    #[test]
    fn a_timer_that_may_have_gone_off_ends_no_pause() {
        let pause = Pause {
            now_ns: 1_000_000,
            until_ns: 2_000_000,
        };
        for (timer_ns, ends) in [
            (0, false),
            (1_000_000, false),
            (1_000_500, false),
            (1_500_000, true),
            (2_000_000, true),
            (2_000_001, false),
        ] {
            assert_eq!(pause.ends_by(timer_ns), ends, "{timer_ns}");
        }
    }
}
