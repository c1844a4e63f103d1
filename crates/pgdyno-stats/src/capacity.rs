//! Throughput by CPUs: how many CPUs and connections a wanted throughput needs, and what it costs.
//!
//! With four or more numbers of CPUs the Universal Scalability Law is fitted (`usl.rs`; Gunther, *Guerrilla Capacity
//! Planning*, applies it to processors just so), with three a power law, with two the power law through both and, for
//! the interval, proportional growth beside it: two points cannot show how a curve bends. Connections are those with
//! which each number of CPUs did best, as a power law of the CPUs. Where a number of CPUs was measured more than once
//! and surely gave enough, or too little, that bounds the answer whatever the curve says.

use crate::power_law::{Inverse, PowerFit, levels, samples};
use crate::spread::Estimate;
use crate::summary::mean_interval;
use crate::usl::{UslError, UslFit, UslPoint, fit_usl};

/// The best that a number of CPUs did.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuLevel {
    /// CPUs, also parts of one (0.5: a quota of half a CPU).
    pub cpus: f64,
    /// Clients with which it did best (see [`crate::best_within`] for a limit of response time).
    pub clients: f64,
    /// Throughput of each trial with these clients, transactions per second.
    pub tps: Vec<f64>,
}

/// The kind of curve, chosen by how many numbers of CPUs were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityModel {
    /// The Universal Scalability Law: four or more numbers of CPUs.
    Usl,
    /// tps = a cpus^b: three numbers of CPUs.
    PowerLaw,
    /// The power law through two numbers of CPUs; its intervals also hold what proportional growth would give.
    TwoLevels,
}

/// Why no curve of throughput over CPUs is fitted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// Fewer than two numbers of CPUs, which carry no curve.
    #[error("capacity needs at least 2 different numbers of CPUs and there is {found}: measure more of them")]
    TooFewLevels {
        /// How many different numbers of CPUs there are.
        found: usize,
    },
    /// A value that has no logarithm.
    #[error("level {index} (from 0): {what} is {value}, expected a finite number above 0")]
    NotPositive {
        /// Place among the levels given, from 0.
        index: usize,
        /// Name of the value within a sentence: "the number of CPUs".
        what: &'static str,
        /// The value at fault: not finite, 0 or negative.
        value: f64,
    },
    /// A level without a trial.
    #[error("level {index} (from 0) has no throughput: leave it out, or measure it")]
    Empty {
        /// Place among the levels given, from 0.
        index: usize,
    },
    /// The law could not be fitted.
    #[error(transparent)]
    Usl(#[from] UslError),
}

/// How many times the largest measured number of CPUs is still an answer. What a nearly flat curve reaches beyond it is
/// the same as never.
const FURTHEST: f64 = 1000.0;

/// Answer for a wanted throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    /// CPUs and connections with which the fitted curve reaches it.
    Reachable(Resources),
    /// The fitted curve does not go so high, at any number of CPUs up to a thousand times the largest measured one.
    Unreachable {
        /// Transactions per second at the peak of the curve; `None` for a curve that does not grow and has no peak.
        peak_tps: Option<f64>,
        /// CPUs at which the upper bounds of the curve would reach it; `None` where even these do not.
        cpus_low: Option<f64>,
    },
}

/// The smallest number of connections that a need has.
const ONE: f64 = 1.0;

/// CPUs and connections that a wanted throughput needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// CPUs needed. `high: None`: by the lower bounds of the curve it is never reached, or two measured levels without
    /// replicates cannot tell.
    pub cpus: Estimate,
    /// Connections needed with them: from the lower bound at the lowest to the upper bound at the highest number of CPUs.
    /// One at the least.
    pub connections: Estimate,
    /// CPUs needed / largest measured number of CPUs. Beyond 2, warn: nothing measured speaks for it.
    pub extrapolates: f64,
}

/// A price, by what it is paid for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Price {
    /// Price of one CPU for an hour, in any currency.
    PerCpuHour(f64),
    /// Price of the whole host for an hour.
    PerHostHour(f64),
}

/// A fitted curve of throughput over CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    curve: Curve,
    connections: PowerFit,
    measured: Vec<CpuLevel>,
    largest_cpus: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Curve {
    /// N of the law is CPUs / unit: it is not defined below 1.
    Usl {
        fit: UslFit,
        unit: f64,
    },
    Power(PowerFit),
    Two {
        power: PowerFit,
        proportional: PowerFit,
    },
}

impl Capacity {
    /// Fits the curve that the number of levels can carry. Levels may come in any order; trials are replicates.
    pub fn fit(levels_measured: &[CpuLevel]) -> Result<Capacity, CapacityError> {
        for (index, level) in levels_measured.iter().enumerate() {
            let values = level.tps.iter().map(|&value| ("a throughput", value));
            let all = [
                ("the number of CPUs", level.cpus),
                ("the number of clients", level.clients),
            ];
            for (what, value) in all.into_iter().chain(values) {
                if !(value.is_finite() && value > 0.0) {
                    return Err(CapacityError::NotPositive { index, what, value });
                }
            }
            if level.tps.is_empty() {
                return Err(CapacityError::Empty { index });
            }
        }
        let trials = samples(
            levels_measured
                .iter()
                .flat_map(|l| l.tps.iter().map(|&tps| (l.cpus, tps))),
        );
        let cpus = levels(&trials);
        let too_few = CapacityError::TooFewLevels { found: cpus.len() };
        let (Some(&smallest), Some(&largest_cpus)) = (cpus.first(), cpus.last()) else {
            return Err(too_few);
        };
        let curve = match cpus.len() {
            1 => return Err(too_few),
            2 => Curve::Two {
                power: PowerFit::new(&trials, None).ok_or(too_few)?,
                proportional: PowerFit::new(&trials, Some(1.0)).ok_or(too_few)?,
            },
            3 => Curve::Power(PowerFit::new(&trials, None).ok_or(too_few)?),
            _ => {
                let unit = smallest.min(1.0);
                let points: Vec<UslPoint> = levels_measured
                    .iter()
                    .flat_map(|l| l.tps.iter().map(|&value| (l.cpus / unit, value)))
                    .map(|(n, value)| UslPoint {
                        n,
                        value,
                        weight: 1.0,
                    })
                    .collect();
                Curve::Usl {
                    fit: fit_usl(&points)?,
                    unit,
                }
            }
        };
        // The best client count of a level is one of a coarse ladder: two of them would make a slope of chance.
        let clients = samples(levels_measured.iter().map(|l| (l.cpus, l.clients)));
        let exponent = (cpus.len() < 3).then_some(1.0);
        let connections = PowerFit::new(&clients, exponent).ok_or(too_few)?;
        Ok(Capacity {
            curve,
            connections,
            measured: levels_measured.to_vec(),
            largest_cpus,
        })
    }

    /// The kind of curve that was fitted.
    pub fn model(&self) -> CapacityModel {
        match self.curve {
            Curve::Usl { .. } => CapacityModel::Usl,
            Curve::Power(_) => CapacityModel::PowerLaw,
            Curve::Two { .. } => CapacityModel::TwoLevels,
        }
    }

    /// The scalability law behind it, with N in units of `unit` CPUs; `None` for the other models.
    pub fn law(&self) -> Option<(&UslFit, f64)> {
        match &self.curve {
            Curve::Usl { fit, unit } => Some((fit, *unit)),
            Curve::Power(_) | Curve::Two { .. } => None,
        }
    }

    /// Throughput at `cpus` with the interval of the curve. `None` for CPUs or a confidence that make no sense, and
    /// below the smallest measured number (or one) for the law.
    pub fn tps_at(&self, cpus: f64, confidence: f64) -> Option<Estimate> {
        if !(cpus.is_finite() && cpus > 0.0 && confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        Some(match &self.curve {
            Curve::Usl { fit, unit } => fit.interval_at(cpus / unit, confidence)?,
            Curve::Power(power) => power.interval_at(cpus, confidence),
            Curve::Two { power, proportional } => {
                let (curved, straight) = (
                    power.interval_at(cpus, confidence),
                    proportional.interval_at(cpus, confidence),
                );
                let (low, high) = if power.has_spread() {
                    (curved.low, curved.high?)
                } else {
                    (curved.value, curved.value)
                };
                Estimate {
                    value: curved.value,
                    low: low.min(straight.low),
                    high: Some(high.max(straight.high?)),
                }
            }
        })
    }

    /// What `tps` transactions per second need. `None` for a throughput or a confidence that make no sense.
    pub fn need(&self, tps: f64, confidence: f64) -> Option<Need> {
        if !(tps.is_finite() && tps > 0.0 && confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let (mut found, peak_tps) = self.by_the_curve(tps, confidence)?;
        found.value = found.value.filter(|value| *value <= FURTHEST * self.largest_cpus);
        let (below, enough) = self.measured_around(tps, confidence);
        let Some(value) = found.value.or(enough) else {
            return Some(Need::Unreachable {
                peak_tps,
                cpus_low: Some(found.low.max(below)).filter(|low| low.is_finite() && *low > 0.0),
            });
        };
        // What was measured goes before the curve.
        let value = value.max(below).min(enough.unwrap_or(f64::INFINITY));
        let high = [found.high, enough].into_iter().flatten().reduce(f64::min);
        let cpus = Estimate {
            value,
            low: found.low.max(below).min(value),
            high: high.map(|high| high.max(value)),
        };
        Some(Need::Reachable(Resources {
            cpus,
            connections: self.connections_for(&cpus, confidence),
            extrapolates: value / self.largest_cpus,
        }))
    }

    /// What the curve needs, and the height of its peak where it does not reach so high.
    fn by_the_curve(&self, tps: f64, confidence: f64) -> Option<(Inverse, Option<f64>)> {
        let found = match &self.curve {
            Curve::Usl { fit, unit } => {
                let need = fit.need(tps, confidence)?;
                let peak = if need.n.is_none() {
                    fit.peak(confidence)?.value.value
                } else {
                    None
                };
                let found = Inverse {
                    value: need.n.map(|n| n * unit),
                    low: need.low.map_or(f64::INFINITY, |n| n * unit),
                    high: need.high.map(|n| n * unit),
                };
                return Some((found, peak));
            }
            Curve::Power(power) => power.inverse(tps, confidence),
            Curve::Two { power, proportional } => either(power, proportional, tps, confidence),
        };
        Some((self.proportional_below(found, tps, confidence), None))
    }

    /// Below the smallest measured number a flat power law would need next to nothing: needs are proportional there.
    fn proportional_below(&self, found: Inverse, tps: f64, confidence: f64) -> Inverse {
        let smallest = self
            .measured
            .iter()
            .map(|level| level.cpus)
            .fold(f64::INFINITY, f64::min);
        let Some(there) = self
            .tps_at(smallest, confidence)
            .filter(|there| there.value > tps)
        else {
            return found;
        };
        let least = |at: f64| smallest * tps / at;
        let value = found
            .value
            .map_or(least(there.value), |value| value.max(least(there.value)));
        Inverse {
            value: Some(value),
            low: there.high.map_or(0.0, least),
            high: Some(least(there.low))
                .filter(|high| high.is_finite())
                .map(|high| high.max(value)),
        }
    }

    /// The most CPUs up to which each measured number surely gave less than `tps` (0 for none), and the fewest that
    /// surely gave as much: by the interval of their own trials, two or more of them.
    fn measured_around(&self, tps: f64, confidence: f64) -> (f64, Option<f64>) {
        let mut sorted: Vec<&CpuLevel> = self.measured.iter().collect();
        sorted.sort_by(|a, b| a.cpus.total_cmp(&b.cpus));
        let (mut below, mut all_below) = (0.0, true);
        for group in sorted.chunk_by(|a, b| a.cpus.total_cmp(&b.cpus).is_eq()) {
            let trials: Vec<f64> = group.iter().flat_map(|level| level.tps.iter().copied()).collect();
            let Some(found) = mean_interval(&trials, confidence).filter(|_| trials.len() > 1) else {
                continue;
            };
            if found.low >= tps {
                return (below, Some(group[0].cpus));
            }
            all_below &= found.high < tps;
            if all_below {
                below = group[0].cpus;
            }
        }
        (below, None)
    }

    fn connections_for(&self, cpus: &Estimate, confidence: f64) -> Estimate {
        let at = |cpus: f64| self.connections.interval_at(cpus, confidence);
        let bound = |cpus: Option<f64>| cpus.and_then(|cpus| at(cpus).high);
        // Fewer connections on more CPUs would be possible, were the exponent negative: both ends are looked at.
        let ends = (bound(Some(cpus.low).filter(|&low| low > 0.0)), bound(cpus.high));
        let low = if cpus.low > 0.0 {
            cpus.high
                .map_or(at(cpus.low).low, |high| at(cpus.low).low.min(at(high).low))
        } else {
            0.0
        };
        let high = ends.1.map(|high| ends.0.map_or(high, |low| low.max(high)));
        Estimate {
            value: self.connections.at(cpus.value).max(ONE),
            low: low.max(ONE),
            high: high.map(|high| high.max(ONE)),
        }
    }
}

/// Two levels: from the lower of the lower bounds of both laws to the higher of the upper ones. Without replicates the
/// power law goes through both points and has no bounds of its own: that they are not proportional is all the spread.
fn either(power: &PowerFit, proportional: &PowerFit, tps: f64, confidence: f64) -> Inverse {
    let (curved, straight) = (
        power.inverse(tps, confidence),
        proportional.inverse(tps, confidence),
    );
    let (low, high) = if power.has_spread() {
        (curved.low, curved.high)
    } else {
        (curved.value.unwrap_or(f64::INFINITY), curved.value)
    };
    Inverse {
        value: curved.value,
        low: straight.low.min(low),
        high: high.zip(straight.high).map(|(a, b)| a.max(b)),
    }
}

/// The price of a million transactions, in the currency of the price. `None` where a number is not positive.
pub fn cost_per_million(price: Price, cpus: f64, tps: f64) -> Option<f64> {
    const SECONDS_PER_HOUR: f64 = 3600.0;
    let per_hour = match price {
        Price::PerCpuHour(price) => price * cpus,
        Price::PerHostHour(price) => price,
    };
    let usable = [per_hour, cpus, tps].iter().all(|v| v.is_finite() && *v > 0.0);
    usable.then(|| per_hour / (tps * SECONDS_PER_HOUR) * 1e6)
}

#[cfg(test)]
mod tests;
