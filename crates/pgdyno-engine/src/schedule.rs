//! When the transactions of an open loop are due: from a rate over time, evenly spaced or at
//! random.
//!
//! Arrivals are computed, not stored: the schedule waits at the next one until a client is free, so
//! none is ever dropped, however late it is begun.

use crate::random::{Purpose, Stream};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How arrivals are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// All with the same distance.
    Constant,
    /// Independent of one another: a Poisson process.
    Poisson,
}

/// A stretch of time over which the rate goes from one value to another in a straight line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Arrivals per second at its begin.
    pub from_per_s: f64,
    /// Arrivals per second at its end.
    pub to_per_s: f64,
    /// Its length; the last one goes on at `to_per_s` after it.
    pub length: Duration,
}

/// Arrivals per second over time.
///
/// As text: `5000`; `1000/30s,2000/30s,4000` (steps, the last one stays); `1000..20000/5m` (a
/// ramp).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate(Vec<Stretch>);

/// Beyond this no single client machine gets.
const RATE_PER_S_MAX: f64 = 10_000_000.0;
const STRETCHES_MAX: usize = 1000;

impl Rate {
    /// A rate that does not change.
    pub fn constant(per_second: f64) -> Rate {
        Rate(vec![Stretch {
            from_per_s: per_second,
            to_per_s: per_second,
            length: Duration::ZERO,
        }])
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let wrong = || {
            "expected arrivals per second, e.g. 5000, 1000/30s,2000/30s,4000 for steps, or 1000..20000/5m for a ramp"
                .to_owned()
        };
        let number = |text: &str| -> Result<f64, String> {
            let rate: f64 = text.trim().parse().map_err(|_| wrong())?;
            if rate > 0.0 && rate <= RATE_PER_S_MAX {
                Ok(rate)
            } else {
                Err(format!(
                    "a rate must be above 0 and at most {RATE_PER_S_MAX} per second, not {rate}"
                ))
            }
        };
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > STRETCHES_MAX {
            return Err(format!("at most {STRETCHES_MAX} steps"));
        }
        let mut stretches = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let (rates, length) = match part.split_once('/') {
                Some((rates, length)) => (rates, Some(duration(length)?)),
                None => (*part, None),
            };
            let (from_per_s, to_per_s) = match rates.split_once("..") {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(rates)?, number(rates)?),
            };
            let is_last = at + 1 == parts.len();
            let length = match length {
                Some(length) => length,
                None if is_last && from_per_s == to_per_s => Duration::ZERO,
                None => return Err(format!("\"{part}\" needs a length, as {part}/30s")),
            };
            stretches.push(Stretch {
                from_per_s,
                to_per_s,
                length,
            });
        }
        Ok(Rate(stretches))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, stretch) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{}", stretch.from_per_s)?;
            if stretch.to_per_s != stretch.from_per_s {
                write!(f, "..{}", stretch.to_per_s)?;
            }
            if !stretch.length.is_zero() {
                write!(f, "/{}s", stretch.length.as_secs_f64())?;
            }
        }
        Ok(())
    }
}

/// "30s", "5m", "250ms", "500us", "1h", or a bare number of seconds; up to a week.
pub fn duration(text: &str) -> Result<Duration, String> {
    const LONGEST_S: f64 = 86_400.0 * 7.0;
    let text = text.trim();
    let (number, factor_s) = if let Some(number) = text.strip_suffix("us") {
        (number, 1e-6)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 0.001)
    } else if let Some(number) = text.strip_suffix('m') {
        (number, 60.0)
    } else if let Some(number) = text.strip_suffix('h') {
        (number, 3600.0)
    } else {
        (text.strip_suffix('s').unwrap_or(text), 1.0)
    };
    let seconds = number
        .trim()
        .parse::<f64>()
        .map(|n| n * factor_s)
        .unwrap_or(f64::NAN);
    if (0.0..=LONGEST_S).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("expected a time up to a week, e.g. 500us, 20ms, 30s, 5m or 1h".to_owned())
    }
}

/// The arrivals of one thread.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    rate: Rate,
    /// Arrivals of the whole load between two of this thread.
    step: f64,
    random: Option<Stream>,
    /// Arrivals of the whole load up to the next one.
    arrival: f64,
    /// When the next one is due, on the load's clock.
    next_ns: u64,
    /// The stretch that it is in, and what was before that.
    stretch: usize,
    before: f64,
    before_s: f64,
}

impl Schedule {
    /// The share of thread `number` of `threads`: of evenly spaced arrivals every n-th one, of a
    /// Poisson process one of that rate's share, which together make it up.
    pub(crate) fn new(rate: &Rate, spacing: Spacing, seed: u64, number: u32, threads: u32) -> Schedule {
        let random =
            (spacing == Spacing::Poisson).then(|| Stream::new(seed, u64::from(number), Purpose::Arrivals));
        let mut schedule = Schedule {
            rate: rate.clone(),
            step: f64::from(threads),
            random,
            arrival: f64::from(number) - f64::from(threads),
            next_ns: 0,
            stretch: 0,
            before: 0.0,
            before_s: 0.0,
        };
        if schedule.random.is_some() {
            schedule.arrival = 0.0;
        }
        schedule.advance();
        schedule
    }

    /// When the next arrival is due.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Goes on to the one after it.
    pub(crate) fn advance(&mut self) {
        self.arrival += match &mut self.random {
            // The time between two arrivals of a Poisson process is exponential.
            Some(random) => -self.step * random.open_unit().ln(),
            None => self.step,
        };
        let due_s = self.time_of(self.arrival.max(0.0));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time after the start"
        )]
        let due_ns = (due_s * 1e9) as u64;
        self.next_ns = due_ns;
    }

    /// When the n-th arrival is due: where the integral of the rate reaches it. Only ever goes
    /// forward.
    fn time_of(&mut self, arrival: f64) -> f64 {
        let stretches = &self.rate.0;
        while let Some(stretch) = stretches.get(self.stretch) {
            let length_s = stretch.length.as_secs_f64();
            let all = (stretch.from_per_s + stretch.to_per_s) / 2.0 * length_s;
            let inside = arrival - self.before;
            if inside < all {
                // from * t + slope / 2 * t^2 = inside, in the form that stays exact for a slope
                // near zero.
                let slope = (stretch.to_per_s - stretch.from_per_s) / length_s;
                let root = (stretch.from_per_s * stretch.from_per_s + 2.0 * slope * inside)
                    .max(0.0)
                    .sqrt();
                return self.before_s + 2.0 * inside / (stretch.from_per_s + root);
            }
            self.stretch += 1;
            self.before += all;
            self.before_s += length_s;
        }
        let rate = stretches.last().map_or(1.0, |stretch| stretch.to_per_s);
        self.before_s + (arrival - self.before) / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrivals(rate: &str, spacing: Spacing, threads: u32, until_s: f64) -> Vec<u64> {
        let rate: Rate = rate.parse().unwrap();
        let mut all = Vec::new();
        for number in 0..threads {
            let mut schedule = Schedule::new(&rate, spacing, 7, number, threads);
            while (schedule.next_ns() as f64) < until_s * 1e9 {
                all.push(schedule.next_ns());
                schedule.advance();
            }
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn even_spacing_is_even_whatever_the_number_of_threads() {
        for threads in [1, 3] {
            let all = arrivals("1000", Spacing::Constant, threads, 2.0);
            assert_eq!(all.len(), 2000);
            for (i, due) in all.iter().enumerate() {
                assert!(due.abs_diff(i as u64 * 1_000_000) <= 1, "{i}: {due}");
            }
        }
    }

    #[test]
    fn a_poisson_process_has_the_rate_and_the_spread_of_one() {
        let all = arrivals("2000", Spacing::Poisson, 2, 50.0);
        let expected: f64 = 100_000.0;
        assert!(
            ((all.len() as f64) - expected).abs() < 4.0 * expected.sqrt(),
            "{}",
            all.len()
        );
        // Its counts per second have a variance equal to their mean.
        let counts: Vec<f64> = (0..50)
            .map(|s| all.iter().filter(|&&t| t / 1_000_000_000 == s).count() as f64)
            .collect();
        let variance = counts.iter().map(|c| (c - 2000.0).powi(2)).sum::<f64>() / 50.0;
        assert!((800.0..4500.0).contains(&variance), "{variance}");
    }

    #[test]
    fn steps_and_ramps_have_as_many_arrivals_as_their_rates_say() {
        let in_second = |all: &[u64], s: u64| all.iter().filter(|&&t| t / 1_000_000_000 == s).count();
        let steps = arrivals("100/2s,300/2s,50", Spacing::Constant, 1, 6.0);
        let found: Vec<usize> = (0..6).map(|s| in_second(&steps, s)).collect();
        assert_eq!(found, [100, 100, 300, 300, 50, 50]);
        let ramp = arrivals("100..500/4s", Spacing::Constant, 2, 5.0);
        let found: Vec<usize> = (0..5).map(|s| in_second(&ramp, s)).collect();
        for (found, expected) in found.iter().zip([150, 250, 350, 450, 500]) {
            assert!(found.abs_diff(expected) <= 1, "{found} of {expected}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        let check = |text: &str, message: &str| {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        };
        check("", "arrivals per second");
        check("0", "above 0");
        check("-5", "above 0");
        check("1e99", "at most");
        check("10,20", "\"10\" needs a length");
        check("10..20", "needs a length");
        check("10/x", "expected a time");
        for text in ["5000", "100/2s,300/2s,50", "100..500/4s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn quantities_of_time_have_units() {
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert!(duration("-1").is_err() && duration("inf").is_err() && duration("x").is_err());
    }

    /// Arrivals that are due before `time_s`: the integral of the rate.
    fn expected(rate: &Rate, time_s: f64) -> f64 {
        let (mut expected, mut begins_s) = (0.0, 0.0);
        let mut last = 0.0;
        for stretch in &rate.0 {
            let length_s = stretch.length.as_secs_f64();
            let inside_s = (time_s - begins_s).clamp(0.0, length_s);
            if length_s > 0.0 {
                let slope = (stretch.to_per_s - stretch.from_per_s) / length_s;
                expected += (stretch.from_per_s + slope * inside_s / 2.0) * inside_s;
            }
            begins_s += length_s;
            last = stretch.to_per_s;
        }
        expected + last * (time_s - begins_s).max(0.0)
    }

    proptest! {
        /// The time of an arrival is where the integral of the rate reaches it.
        #[test]
        fn times_are_the_inverse_of_the_integral(
            parts in prop::collection::vec((1.0_f64..1e5, 1.0_f64..1e5, 1_u64..20_000), 1..5),
            steps in prop::collection::vec(0.0_f64..1e5, 1..20),
        ) {
            let stretches = parts.iter().map(|&(from_per_s, to_per_s, ms)| Stretch { from_per_s, to_per_s, length: Duration::from_millis(ms) });
            let rate = Rate(stretches.collect());
            let mut schedule = Schedule::new(&rate, Spacing::Constant, 1, 0, 1);
            let mut arrival = 0.0;
            for step in steps {
                arrival += step;
                let time_s = schedule.time_of(arrival);
                prop_assert!((expected(&rate, time_s) - arrival).abs() < 1e-6 * arrival.max(1.0));
            }
        }
    }
}
