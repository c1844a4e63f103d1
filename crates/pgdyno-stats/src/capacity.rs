//! Throughput by CPUs: how many CPUs and connections a wanted throughput needs, and what it costs.
//!
//! With four or more numbers of CPUs the Universal Scalability Law is fitted (`usl.rs`; Gunther,
//! *Guerrilla Capacity Planning*, applies it to processors just so), with three a power law, with
//! two the power law through both and, for the interval, proportional growth beside it: two points
//! cannot show how a curve bends. Beyond the largest number no law is known to hold, so the bounds
//! there are the wider ones of the scalability law and the power law, unless the trials refute one
//! of them; and beyond twice that number there are bounds alone. Connections are those with which
//! each number of CPUs did best, as a power law of the CPUs. Where a number of CPUs was measured
//! more than once and surely gave enough, or too little, that bounds the answer whatever the curve
//! says.

use crate::power_law::{Inverse, PowerFit, levels, samples};
use crate::spread::{Estimate, Sample, student};
use crate::summary::mean_interval;
use crate::usl::{UslError, UslFit, UslPoint, fit_usl};

/// The best that a number of CPUs did.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuLevel {
    /// CPUs, also parts of one (0.5: a quota of half a CPU).
    pub cpus: f64,
    /// Clients with which it did best (see [`crate::best_clients`]).
    pub clients: f64,
    /// Block and throughput of each trial, transactions per second.
    pub tps: Vec<(u32, f64)>,
}

/// The kind of curve, chosen by how many numbers of CPUs were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityModel {
    /// The Universal Scalability Law: four or more numbers of CPUs.
    Usl,
    /// tps = a cpus^b: three numbers of CPUs, or more where the trials refute the scalability law.
    PowerLaw,
    /// The power law through two numbers of CPUs; its intervals also hold what proportional growth
    /// would give.
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

/// Beyond this many times the largest measured number of CPUs nothing measured speaks for an
/// answer: there are bounds alone.
pub const EXTRAPOLATES_MAX: f64 = 2.0;

/// Answer for a wanted throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Need {
    /// CPUs and connections with which the fitted curve reaches it.
    Reachable(Resources),
    /// The fitted curve reaches it beyond twice the largest measured number of CPUs, or never.
    Beyond {
        /// Lower bound of the CPUs needed: where the upper bounds of the laws reach it; `None`
        /// where even these never do.
        cpus_low: Option<f64>,
        /// Upper bound; `None` where the lower bounds of the laws never reach it.
        cpus_high: Option<f64>,
        /// The curve's peak, where that is below what is wanted.
        peak: Option<Peak>,
    },
}

/// The peak of a fitted curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// CPUs at the peak; `None` where the curve comes ever nearer to it.
    pub cpus: Option<f64>,
    /// Throughput there, transactions per second.
    pub tps: f64,
}

/// The smallest number of connections that a need has.
const ONE: f64 = 1.0;

/// CPUs and connections that a wanted throughput needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resources {
    /// CPUs needed. `high: None`: by the lower bounds of the curve it is never reached, or two
    /// measured levels without replicates set no bound.
    pub cpus: Estimate,
    /// Connections needed with them: from the lower bound at the lowest to the upper bound at the
    /// highest number of CPUs. One at the least.
    pub connections: Estimate,
    /// CPUs needed / largest measured number of CPUs; at most [`EXTRAPOLATES_MAX`].
    pub extrapolates: f64,
}

/// What a number of CPUs gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Supply {
    /// Throughput, transactions per second. `high: None`: two measured levels without replicates
    /// set no bound.
    pub tps: Estimate,
    /// Connections with which they give it; one at the least.
    pub connections: Estimate,
    /// The CPUs / largest measured number of CPUs; at most [`EXTRAPOLATES_MAX`].
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
    model: CapacityModel,
    /// The law that gives the answers.
    main: Law,
    /// One that the trials do not refute: from `beside_from` CPUs on the bounds hold for both.
    beside: Option<Law>,
    beside_from: f64,
    connections: PowerFit,
    measured: Vec<CpuLevel>,
    largest_cpus: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Law {
    /// N of the law is CPUs / unit: it is not defined below 1.
    Usl {
        fit: Box<UslFit>,
        unit: f64,
    },
    Power(PowerFit),
}

impl Law {
    /// The scalability law, or what goes for it where the trials fit a power law much better; and,
    /// where they refute neither, the other.
    fn of_many(
        trials: &[Sample],
        smallest_cpus: f64,
    ) -> Result<(CapacityModel, Law, Option<Law>), CapacityError> {
        let unit = smallest_cpus.min(1.0);
        let points: Vec<UslPoint> = trials
            .iter()
            .map(|trial| UslPoint {
                block: trial.block,
                n: trial.level / unit,
                value: trial.log_value.exp(),
            })
            .collect();
        let fit = Box::new(fit_usl(&points)?);
        let (sum, variance) = fit.misfit();
        let degrees_of_freedom = fit.degrees_of_freedom();
        let law = Law::Usl { fit, unit };
        let Some(power) = PowerFit::new(trials, None) else {
            return Ok((CapacityModel::Usl, law, None));
        };
        // One law is refuted by another that comes nearer by more than the square of Student's t,
        // as a value is by a fit's best.
        let refutes = |better: f64, other: f64, variance: f64| {
            student(REFUTES_CONFIDENCE, degrees_of_freedom)
                .is_some_and(|t| other - better > t.powi(2) * variance)
        };
        Ok(match power.misfit() {
            Some((other, own)) if refutes(other, sum, own) => {
                (CapacityModel::PowerLaw, Law::Power(power), None)
            }
            Some((other, _)) if !refutes(sum, other, variance) => {
                (CapacityModel::Usl, law, Some(Law::Power(power)))
            }
            _ => (CapacityModel::Usl, law, None),
        })
    }

    /// Throughput at `cpus`; `None` below the smallest measured number (or one) for the scalability
    /// law.
    fn interval_at(&self, cpus: f64, confidence: f64) -> Option<Estimate> {
        match self {
            Law::Usl { fit, unit } => fit.interval_at(cpus / unit, confidence),
            Law::Power(power) => Some(power.interval_at(cpus, confidence)),
        }
    }

    /// The CPUs that give `tps`. Without a spread two points are all there is, and the law through
    /// them its own bounds.
    fn inverse(&self, tps: f64, confidence: f64) -> Option<Inverse> {
        Some(match self {
            Law::Usl { fit, unit } => {
                let need = fit.need(tps, confidence)?;
                Inverse {
                    value: need.n.map(|n| n * unit),
                    low: need.low.map_or(f64::INFINITY, |n| n * unit),
                    high: need.high.map(|n| n * unit),
                }
            }
            Law::Power(power) => {
                let found = power.inverse(tps, confidence);
                if power.misfit().is_some() {
                    found
                } else {
                    Inverse {
                        low: found.value.unwrap_or(f64::INFINITY),
                        high: found.value,
                        ..found
                    }
                }
            }
        })
    }

    /// The peak, where it is below `tps`.
    fn peak_below(&self, tps: f64) -> Option<Peak> {
        let Law::Usl { fit, unit } = self else {
            return None;
        };
        let (n, value) = fit.summit();
        let peak = Peak {
            cpus: n.map(|n| n * unit),
            tps: value?,
        };
        (peak.tps < tps).then_some(peak)
    }
}

/// The confidence at which one law refutes another.
const REFUTES_CONFIDENCE: f64 = 0.95;

impl Capacity {
    /// Fits the curve that the number of levels can carry. Levels may come in any order; trials are
    /// replicates.
    pub fn fit(levels_measured: &[CpuLevel]) -> Result<Capacity, CapacityError> {
        for (index, level) in levels_measured.iter().enumerate() {
            let values = level.tps.iter().map(|&(_, value)| ("a throughput", value));
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
                .flat_map(|l| l.tps.iter().map(|&(block, tps)| (block, l.cpus, tps))),
        );
        let cpus = levels(&trials);
        let too_few = CapacityError::TooFewLevels { found: cpus.len() };
        let (Some(&smallest), Some(&largest_cpus)) = (cpus.first(), cpus.last()) else {
            return Err(too_few);
        };
        let power = |exponent| PowerFit::new(&trials, exponent).map(Law::Power).ok_or(too_few);
        let (model, main, beside) = match cpus.len() {
            1 => return Err(too_few),
            2 => (CapacityModel::TwoLevels, power(None)?, Some(power(Some(1.0))?)),
            3 => (CapacityModel::PowerLaw, power(None)?, None),
            _ => Law::of_many(&trials, smallest)?,
        };
        // The best client count of a level is one of a coarse ladder: two of them would make a
        // slope of chance.
        let clients = samples(levels_measured.iter().map(|l| (0, l.cpus, l.clients)));
        let exponent = (cpus.len() < 3).then_some(1.0);
        let connections = PowerFit::new(&clients, exponent).ok_or(too_few)?;
        Ok(Capacity {
            beside_from: if model == CapacityModel::TwoLevels {
                0.0
            } else {
                largest_cpus
            },
            model,
            main,
            beside,
            connections,
            measured: levels_measured.to_vec(),
            largest_cpus,
        })
    }

    /// The kind of curve that was fitted.
    pub fn model(&self) -> CapacityModel {
        self.model
    }

    /// What `tps` transactions per second need. `None` for a throughput or a confidence that make
    /// no sense.
    pub fn need(&self, tps: f64, confidence: f64) -> Option<Need> {
        if !(tps.is_finite() && tps > 0.0 && confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let found = self.by_the_laws(tps, confidence)?;
        let (below, enough) = self.measured_around(tps, confidence);
        // What was measured goes before the curve.
        let low = found.low.max(below);
        let high = [found.high, enough].into_iter().flatten().reduce(f64::min);
        let nearest = found
            .value
            .or(enough)
            .map(|value| value.max(below).min(enough.unwrap_or(f64::INFINITY)));
        let Some(value) = nearest.filter(|value| *value <= EXTRAPOLATES_MAX * self.largest_cpus) else {
            return Some(Need::Beyond {
                cpus_low: Some(low).filter(|low| low.is_finite() && *low > 0.0),
                cpus_high: high,
                peak: self.main.peak_below(tps),
            });
        };
        let cpus = Estimate {
            value,
            low: low.min(value),
            high: high.map(|high| high.max(value)),
        };
        Some(Need::Reachable(Resources {
            cpus,
            connections: self.connections_for(&cpus, confidence),
            extrapolates: value / self.largest_cpus,
        }))
    }

    /// What `cpus` give: the mean of their own trials where two or more were measured, else the
    /// curve. `None` beyond [`EXTRAPOLATES_MAX`] times the largest measured number, and for numbers
    /// that make no sense.
    pub fn gives(&self, cpus: f64, confidence: f64) -> Option<Supply> {
        let extrapolates = cpus / self.largest_cpus;
        let is_sense = cpus.is_finite() && cpus > 0.0 && confidence > 0.0 && confidence < 1.0;
        if !is_sense || extrapolates > EXTRAPOLATES_MAX {
            return None;
        }
        let tps = match self.measured_at(cpus, confidence) {
            Some(measured) => measured,
            None => self.curve_at(cpus, confidence)?,
        };
        let at = Estimate {
            value: cpus,
            low: cpus,
            high: Some(cpus),
        };
        Some(Supply {
            tps,
            connections: self.connections_for(&at, confidence),
            extrapolates,
        })
    }

    /// The mean over the trials at exactly so many CPUs.
    fn measured_at(&self, cpus: f64, confidence: f64) -> Option<Estimate> {
        let own = self
            .measured
            .iter()
            .filter(|level| level.cpus.total_cmp(&cpus).is_eq());
        let trials: Vec<f64> = own
            .flat_map(|level| level.tps.iter().map(|&(_, tps)| tps))
            .collect();
        let found = mean_interval(&trials, confidence).filter(|_| trials.len() > 1)?;
        Some(Estimate {
            value: found.mean,
            low: found.low.max(0.0),
            high: Some(found.high),
        })
    }

    /// The main law, with the bounds of both laws where both hold; below the smallest measured
    /// number in proportion to it.
    fn curve_at(&self, cpus: f64, confidence: f64) -> Option<Estimate> {
        let smallest = self
            .measured
            .iter()
            .map(|level| level.cpus)
            .fold(f64::INFINITY, f64::min);
        let share = (cpus / smallest).min(1.0);
        let of = |law: &Law| law.interval_at(cpus.max(smallest), confidence);
        let mut found = of(&self.main)?;
        if let Some(beside) = self.beside.as_ref().filter(|_| cpus > self.beside_from) {
            let other = of(beside)?;
            found.low = found.low.min(other.low);
            found.high = found.high.zip(other.high).map(|(a, b)| a.max(b));
        }
        Some(Estimate {
            value: found.value * share,
            low: found.low.max(0.0) * share,
            high: found.high.map(|high| high * share),
        })
    }

    /// What the main law needs, with the bounds of both laws where both hold.
    fn by_the_laws(&self, tps: f64, confidence: f64) -> Option<Inverse> {
        let mut found = self.main.inverse(tps, confidence)?;
        if let Some(beside) = &self.beside {
            let other = beside.inverse(tps, confidence)?;
            let from = self.beside_from;
            if found.low > from {
                found.low = found.low.min(other.low.max(from));
            }
            if found.high.is_none_or(|high| high > from) {
                found.high = found.high.zip(other.high).map(|(a, b)| a.max(b));
            }
        }
        Some(self.proportional_below(found, tps, confidence))
    }

    /// Below the smallest measured number a flat power law would need next to nothing: needs are
    /// proportional there.
    fn proportional_below(&self, found: Inverse, tps: f64, confidence: f64) -> Inverse {
        if let Law::Usl { .. } = self.main {
            return found;
        }
        let smallest = self
            .measured
            .iter()
            .map(|level| level.cpus)
            .fold(f64::INFINITY, f64::min);
        let laws = [
            Some(&self.main),
            self.beside.as_ref().filter(|_| self.beside_from <= 0.0),
        ];
        let there: Vec<Estimate> = laws
            .into_iter()
            .flatten()
            .filter_map(|law| law.interval_at(smallest, confidence))
            .collect();
        let Some(at) = there.first().filter(|at| at.value > tps) else {
            return found;
        };
        let least = |at: f64| smallest * tps / at;
        let value = found
            .value
            .map_or(least(at.value), |value| value.max(least(at.value)));
        let lowest = there.iter().map(|at| at.low).fold(f64::INFINITY, f64::min);
        let highest = there
            .iter()
            .map(|at| at.high)
            .reduce(|a, b| Some(a?.max(b?)))
            .flatten();
        Inverse {
            value: Some(value),
            low: highest.map_or(0.0, least),
            high: Some(least(lowest))
                .filter(|high| high.is_finite())
                .map(|high| high.max(value)),
        }
    }

    /// The most CPUs up to which each measured number surely gave less than `tps` (0 for none), and
    /// the fewest that surely gave as much: by the interval of their own trials, two or more of
    /// them.
    fn measured_around(&self, tps: f64, confidence: f64) -> (f64, Option<f64>) {
        let mut sorted: Vec<&CpuLevel> = self.measured.iter().collect();
        sorted.sort_by(|a, b| a.cpus.total_cmp(&b.cpus));
        let (mut below, mut all_below) = (0.0, true);
        for group in sorted.chunk_by(|a, b| a.cpus.total_cmp(&b.cpus).is_eq()) {
            let trials: Vec<f64> = group
                .iter()
                .flat_map(|level| level.tps.iter().map(|&(_, tps)| tps))
                .collect();
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
        // Fewer connections on more CPUs would be possible, were the exponent negative: both ends
        // are checked.
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

/// The price of a million transactions, in the currency of the price. `None` where a number is not
/// positive.
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
