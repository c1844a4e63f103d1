//! Throughput by CPUs: how many CPUs and connections a wanted throughput needs, and what it costs.
//!
//! With four or more numbers of CPUs the Universal Scalability Law is fitted (`usl.rs`; Gunther, *Guerrilla Capacity
//! Planning*, applies it to processors just so), with three a power law, with two the power law through both and, for
//! the interval, proportional growth beside it: two points cannot show how a curve bends. Connections are those with
//! which each number of CPUs did best, as a power law of the CPUs.

use crate::power_law::{Inverse, PowerFit, levels, samples};
use crate::spread::Estimate;
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

/// Which curve was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityModel {
    /// The Universal Scalability Law: four or more numbers of CPUs.
    Usl,
    /// tps = a cpus^b: three numbers of CPUs.
    PowerLaw,
    /// The power law through two numbers of CPUs; its intervals also hold what proportional growth would give.
    TwoLevels,
}

/// Why there is no curve.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// One number of CPUs says nothing of others.
    #[error("capacity needs at least 2 different numbers of CPUs and there is {found}: measure more of them")]
    TooFewLevels {
        /// Different numbers of CPUs.
        found: usize,
    },
    /// A value that has no logarithm.
    #[error("level {index} (from 0): {what} is {value}, expected a finite number above 0")]
    NotPositive {
        /// Which level.
        index: usize,
        /// What of it.
        what: &'static str,
        /// What it is.
        value: f64,
    },
    /// A level without a trial.
    #[error("level {index} (from 0) has no throughput: leave it out, or measure it")]
    Empty {
        /// Which level.
        index: usize,
    },
    /// The law could not be fitted.
    #[error(transparent)]
    Usl(#[from] UslError),
}

/// What a wanted throughput needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    /// This many.
    Reachable(Resources),
    /// The fitted curve does not go so high, at any number of CPUs.
    Unreachable {
        /// Transactions per second at the peak of the curve; `None` for a curve that does not grow and has no peak.
        peak_tps: Option<f64>,
        /// CPUs at which the upper bounds of the curve would reach it; `None` where even these do not.
        cpus_low: Option<f64>,
    },
}

/// CPUs and connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// CPUs needed. `high: None`: by the lower bounds of the curve it is never reached, or two measured levels without
    /// replicates cannot tell.
    pub cpus: Estimate,
    /// Connections needed with them: from the lower bound at the lowest to the upper bound at the highest number of CPUs.
    pub connections: Estimate,
    /// CPUs needed / largest measured number of CPUs. Beyond 2, warn: nothing measured speaks for it.
    pub extrapolates: f64,
}

/// What the price is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Price {
    /// Of one CPU for an hour, any currency.
    PerCpuHour(f64),
    /// Of the whole host for an hour.
    PerHostHour(f64),
}

/// A fitted curve of throughput over CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    curve: Curve,
    connections: PowerFit,
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
            largest_cpus,
        })
    }

    /// Which curve was fitted.
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
        let (found, peak_tps) = match &self.curve {
            Curve::Usl { fit, unit } => {
                let need = fit.need(tps, confidence)?;
                let found = Inverse {
                    value: need.n.map(|n| n * unit),
                    low: need.low.map_or(f64::INFINITY, |n| n * unit),
                    high: need.high.map(|n| n * unit),
                };
                let peak = if found.value.is_none() {
                    fit.peak(confidence)?.value.value
                } else {
                    None
                };
                (found, peak)
            }
            Curve::Power(power) => (power.inverse(tps, confidence), None),
            Curve::Two { power, proportional } => (either(power, proportional, tps, confidence), None),
        };
        let Some(value) = found.value else {
            return Some(Need::Unreachable {
                peak_tps,
                cpus_low: Some(found.low).filter(|low| low.is_finite() && *low > 0.0),
            });
        };
        let cpus = Estimate {
            value,
            low: found.low.min(value),
            high: found.high,
        };
        Some(Need::Reachable(Resources {
            cpus,
            connections: self.connections_for(&cpus, confidence),
            extrapolates: value / self.largest_cpus,
        }))
    }

    fn connections_for(&self, cpus: &Estimate, confidence: f64) -> Estimate {
        let at = |cpus: f64| self.connections.interval_at(cpus, confidence);
        let bound = |cpus: Option<f64>| cpus.and_then(|cpus| at(cpus).high);
        // Fewer connections on more CPUs would be possible, were the exponent negative: both ends are looked at.
        let ends = (bound(Some(cpus.low).filter(|&low| low > 0.0)), bound(cpus.high));
        Estimate {
            value: self.connections.at(cpus.value),
            low: if cpus.low > 0.0 {
                cpus.high
                    .map_or(at(cpus.low).low, |high| at(cpus.low).low.min(at(high).low))
            } else {
                0.0
            },
            high: ends.1.map(|high| ends.0.map_or(high, |low| low.max(high))),
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
