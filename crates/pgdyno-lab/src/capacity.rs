//! How many CPUs and connections a wanted throughput needs, by a stored ladder. Records in, answers
//! out; the curves are pgdyno-stats'.

mod ladder;

pub use ladder::Ladder;

use crate::file::FileError;
use ladder::{Group, groups};
use pgdyno_knobs::Catalogue;
use pgdyno_record::StoredExperiment;
use pgdyno_stats::{
    Best, Capacity, CapacityModel, CpuLevel, EXTRAPOLATES_MAX, Edge, Estimate, LoadPoint, Need, Price,
    best_clients, cost_per_million, happy_zone, three_digits,
};
use serde::Serialize;

/// What is asked for where nobody says: the throughput of the worked example in
/// docs/how-to/capacity.md.
pub const USUAL_TPS: f64 = 60_000.0;

/// A wanted throughput, with the limit and the prices that the answer goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// Wanted throughput, transactions per second.
    pub tps: f64,
    /// Client counts whose 99th percentile is longer, in ms, do not count.
    pub p99_ms: Option<f64>,
    /// Prices of CPU and host; `None` where the answer has no cost.
    pub price: Option<Price>,
    /// Number of CPUs of which the throughput is asked for, beside.
    pub cpus: Option<f64>,
}

/// An estimate with its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Estimate"))]
pub struct Bounds {
    /// The estimate itself, in the unit of what is estimated.
    pub value: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval; `None` where the data set none.
    pub high: Option<f64>,
}

impl From<Estimate> for Bounds {
    fn from(estimate: Estimate) -> Bounds {
        Bounds {
            value: estimate.value,
            low: estimate.low,
            high: estimate.high,
        }
    }
}

/// The client count with the most throughput at one number of CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Measured {
    /// Number of CPUs that the server may use.
    pub cpus: f64,
    /// Client count with the most throughput at that number of CPUs.
    pub clients: u32,
    /// Mean throughput, transactions per second, of the client counts that other blocks chose.
    pub tps: f64,
    /// Mean 99th percentile of response time over those of its trials that have one, ms.
    pub p99_ms: Option<f64>,
    /// Number of blocks that the mean is of.
    pub blocks: usize,
}

/// The answer for one combination of the other factors: a need, a zone, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Found {
    /// So many CPUs and connections.
    Needs {
        /// CPUs that the wanted throughput needs.
        cpus: Bounds,
        /// Connections that it needs with those CPUs.
        connections: Bounds,
        /// CPUs needed / largest number measured, at most 2.
        extrapolates: f64,
        /// Cost of a million transactions, in the currency of the price; `None` without a price.
        cost_per_million: Option<Bounds>,
    },
    /// The curve goes so high beyond twice the largest number measured, or never: there are bounds
    /// alone.
    Beyond {
        /// CPUs at which the upper bounds of the laws reach it; `None` where these never do.
        cpus_low: Option<f64>,
        /// CPUs at which the lower bounds of the laws reach it; `None` where these never do.
        cpus_high: Option<f64>,
        /// Throughput at the peak of the curve, where that is below what is wanted.
        peak_tps: Option<f64>,
        /// CPUs at that peak; `None` without one, or where the curve comes ever nearer to it.
        peak_cpus: Option<f64>,
        /// The peak's CPUs / largest number measured: above 1 nobody has seen it.
        peak_extrapolates: Option<f64>,
    },
    /// CPUs were not varied: what clients are good for on this machine as it is.
    Zone {
        /// Most throughput at any client count, by blocks that had no say in which it is.
        peak_tps: f64,
        /// Lower bound of its interval; `None` of a single value.
        peak_tps_low: Option<f64>,
        /// Upper bound of its interval; `None` of a single value.
        peak_tps_high: Option<f64>,
        /// Client count with the most throughput.
        peak_clients: u32,
        /// Lowest client count of the happy zone.
        lowest_clients: u32,
        /// Highest client count of the happy zone.
        highest_clients: u32,
        /// Whether more clients might still give more: the largest measured count is in the zone.
        open: bool,
        /// Whether the peak reaches the throughput that is asked for; `None` where that is within
        /// its interval or there is none.
        reaches: Option<bool>,
    },
    /// There is no curve.
    No {
        /// Reason in a sentence.
        why: String,
    },
}

impl Found {
    fn remark(&self) -> String {
        match self {
            Found::Needs { extrapolates, .. } if *extrapolates > 1.0 => {
                format!("extrapolated to {extrapolates:.1} times the largest measured")
            }
            Found::Needs { .. } => "within what was measured".to_owned(),
            Found::Beyond { peak_tps: None, .. } => {
                format!("beyond {EXTRAPOLATES_MAX} times the largest measured: bounds alone")
            }
            Found::Beyond {
                peak_tps: Some(tps),
                peak_cpus,
                peak_extrapolates,
                ..
            } => {
                let tps = three_digits(*tps);
                match peak_cpus.zip(*peak_extrapolates) {
                    Some((cpus, times)) if times > 1.0 => format!(
                        "never reached by the curve, extrapolated: its peak is {tps} TPS with {} CPUs, {times:.1} times the largest \
                         measured",
                        three_digits(cpus)
                    ),
                    Some((cpus, _)) => {
                        format!(
                            "never reached: the curve's peak is {tps} TPS with {} CPUs",
                            three_digits(cpus)
                        )
                    }
                    None => {
                        format!("never reached by the curve, extrapolated: it comes ever nearer to {tps} TPS")
                    }
                }
            }
            Found::Zone { reaches, .. } => match reaches {
                Some(true) => "reached with these CPUs",
                Some(false) => "not reached with these CPUs",
                None => "undecided with these CPUs: more blocks decide it",
            }
            .to_owned(),
            Found::No { why } => why.clone(),
        }
    }
}

/// What the CPUs that were asked for give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "CapacityGives"))]
pub struct Gives {
    /// Throughput, transactions per second.
    pub tps: Bounds,
    /// Connections with which they give it.
    pub connections: Bounds,
    /// The CPUs / largest number measured, at most 2.
    pub extrapolates: f64,
    /// Cost of a million transactions at that throughput, in the currency of the price; `None`
    /// without a price.
    pub cost_per_million: Option<Bounds>,
}

/// The answer for one combination of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "CapacityRow"))]
pub struct Row {
    /// Factor and level of the others; empty where there are none.
    pub of: Vec<(String, String)>,
    /// Kind of the fitted curve: "usl", "power-law", "two-levels"; `None` without one.
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"usl\" | \"power-law\" | \"two-levels\" | null")
    )]
    pub model: Option<&'static str>,
    /// Measured points that the curve goes by, one for each number of CPUs.
    pub measured: Vec<Measured>,
    /// Need or zone that follows from them, or why there is none.
    pub found: Found,
    /// What the CPUs give that were asked for; `None` where none were, or nothing measured speaks
    /// for an answer.
    pub gives: Option<Gives>,
    /// What to know of it: how far it is extrapolated, where the curve has its peak.
    pub remark: String,
    /// Trials and levels that were excluded, with the reason, a sentence each.
    pub notes: Vec<String>,
}

/// What a wanted throughput needs, by the trials of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "CapacityAnswer"))]
pub struct Answer {
    /// Number of the experiment in the store.
    pub experiment: i64,
    /// Name of the experiment.
    pub name: String,
    /// Names of the factors that set CPUs; empty where CPUs were not varied.
    pub cpu_factors: Vec<String>,
    /// Names of the factors that set clients.
    pub client_factors: Vec<String>,
    /// Confidence of the intervals, each by itself.
    pub confidence: f64,
    /// A row for each combination of the other factors.
    pub rows: Vec<Row>,
}

/// Works out the answer; without a row where no trial is finished. An error where the stored
/// experiment file cannot be read any more.
pub fn answer(
    stored: &StoredExperiment,
    catalogue: &Catalogue,
    question: &Question,
) -> Result<Answer, FileError> {
    let record = &stored.record;
    let ladder = Ladder::of(record, catalogue)?;
    let trials = stored.trials.iter().map(|(_, trial)| trial);
    let rows = groups(record, trials, &ladder, catalogue)
        .into_iter()
        .map(|(of, group)| {
            let mut notes: Vec<String> = group
                .unknown
                .iter()
                .map(|name| format!("\"{name}\" is excluded: its number of CPUs is unknown"))
                .collect();
            let Outcome {
                model,
                measured,
                found,
                gives,
            } = match ladder.cpus.is_empty() {
                true => zone(&group, question, record.confidence),
                false => need(&group, question, record.confidence, &mut notes),
            };
            if let Some(cpus) = question.cpus.filter(|_| gives.is_none() && model.is_some()) {
                notes.push(format!(
                    "{cpus} CPUs are beyond {EXTRAPOLATES_MAX} times the largest measured: nothing measured speaks for what they give"
                ));
            }
            Row {
                of,
                model,
                measured,
                remark: found.remark(),
                found,
                gives,
                notes,
            }
        });
    Ok(Answer {
        experiment: stored.id,
        name: record.name.clone(),
        confidence: record.confidence,
        rows: rows.collect(),
        cpu_factors: ladder.cpus,
        client_factors: ladder.clients,
    })
}

struct Outcome {
    model: Option<&'static str>,
    measured: Vec<Measured>,
    found: Found,
    gives: Option<Gives>,
}

impl Outcome {
    fn without_curve(measured: Vec<Measured>, found: Found) -> Outcome {
        Outcome {
            model: None,
            measured,
            found,
            gives: None,
        }
    }
}

fn need(group: &Group, question: &Question, confidence: f64, notes: &mut Vec<String>) -> Outcome {
    let mut levels = Vec::new();
    let mut measured = Vec::new();
    let mut one_block = false;
    for (thousandths, points) in &group.by_cpus {
        #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
        let cpus = *thousandths as f64 / 1e3;
        let best = best_clients(points, question.p99_ms);
        let Some(Best {
            level: clients,
            by_block: tps,
            by_others,
        }) = best
        else {
            notes.push(format!(
                "{cpus} CPUs are excluded: no number of clients kept the response time"
            ));
            continue;
        };
        let counts = || points.iter().map(|point| point.clients);
        if counts().max() == Some(clients) && counts().min() != Some(clients) {
            notes.push(format!(
                "with {cpus} CPUs the most clients that were measured, {clients}, did best: more might do better"
            ));
        }
        one_block |= !by_others;
        let values: Vec<f64> = tps.iter().map(|&(_, tps)| tps).collect();
        measured.push(Measured {
            cpus,
            clients,
            tps: mean(&values),
            p99_ms: p99_ms(points, clients),
            blocks: tps.len(),
        });
        levels.push(CpuLevel {
            cpus,
            clients: f64::from(clients),
            tps,
        });
    }
    if one_block {
        notes.push(
            "there is a single block, which had to choose the best clients for itself: the throughputs are a little too high, and \
             how blocks differ is not in the intervals"
                .to_owned(),
        );
    }
    let capacity = match Capacity::fit(&levels) {
        Ok(capacity) => capacity,
        Err(error) => {
            let why = error.to_string();
            return Outcome::without_curve(measured, Found::No { why });
        }
    };
    let model = match capacity.model() {
        CapacityModel::Usl => "usl",
        CapacityModel::PowerLaw => "power-law",
        CapacityModel::TwoLevels => "two-levels",
    };
    let found = match capacity.need(question.tps, confidence) {
        Some(Need::Reachable(resources)) => Found::Needs {
            cpus: resources.cpus.into(),
            connections: resources.connections.into(),
            extrapolates: resources.extrapolates,
            cost_per_million: question
                .price
                .and_then(|price| cost(price, resources.cpus, question.tps)),
        },
        Some(Need::Beyond {
            cpus_low,
            cpus_high,
            peak,
        }) => {
            let peak_cpus = peak.and_then(|peak| peak.cpus);
            let largest = levels.iter().map(|level| level.cpus).fold(0.0, f64::max);
            Found::Beyond {
                cpus_low,
                cpus_high,
                peak_tps: peak.map(|peak| peak.tps),
                peak_cpus,
                peak_extrapolates: peak_cpus.map(|cpus| cpus / largest),
            }
        }
        None => Found::No {
            why: "the wanted throughput is not a positive number".into(),
        },
    };
    let gives = question.cpus.and_then(|cpus| {
        let supply = capacity.gives(cpus, confidence)?;
        Some(Gives {
            tps: supply.tps.into(),
            connections: supply.connections.into(),
            extrapolates: supply.extrapolates,
            cost_per_million: question.price.and_then(|price| cost_at(price, cpus, supply.tps)),
        })
    });
    Outcome {
        model: Some(model),
        measured,
        found,
        gives,
    }
}

/// At the bounds of the throughput: more of it costs less.
fn cost_at(price: Price, cpus: f64, tps: Estimate) -> Option<Bounds> {
    let at = |tps: f64| cost_per_million(price, cpus, tps);
    Some(Bounds {
        value: at(tps.value)?,
        low: tps.high.and_then(at).unwrap_or(0.0),
        high: at(tps.low),
    })
}

/// At the bounds of the CPUs.
fn cost(price: Price, cpus: Estimate, tps: f64) -> Option<Bounds> {
    let at = |cpus: f64| cost_per_million(price, cpus, tps);
    Some(Bounds {
        value: at(cpus.value)?,
        low: at(cpus.low).unwrap_or(0.0),
        high: cpus.high.and_then(at),
    })
}

fn zone(group: &Group, question: &Question, confidence: f64) -> Outcome {
    let all: Vec<LoadPoint> = group.by_cpus.values().flatten().copied().collect();
    // Single trials may keep what their number of clients does not.
    let keeps = |point: &&LoadPoint| {
        question
            .p99_ms
            .is_none_or(|most| p99_ms(&all, point.clients).is_some_and(|p99| p99 <= most))
    };
    let points: Vec<LoadPoint> = all.iter().filter(keeps).copied().collect();
    let Some(zone) = happy_zone(&points, confidence) else {
        let why = "no number of clients kept the response time".to_owned();
        return Outcome::without_curve(Vec::new(), Found::No { why });
    };
    let peak = zone.peak_tps;
    // A single value has none.
    let has_interval = peak.low < peak.high;
    let found = Found::Zone {
        peak_tps: peak.mean,
        peak_tps_low: has_interval.then_some(peak.low),
        peak_tps_high: has_interval.then_some(peak.high),
        peak_clients: zone.peak_clients,
        lowest_clients: zone.lowest_clients,
        highest_clients: zone.highest_clients,
        open: zone.upper_edge == Edge::Unmeasured,
        reaches: match question.tps {
            tps if has_interval && peak.low >= tps => Some(true),
            tps if has_interval && peak.high < tps => Some(false),
            _ => None,
        },
    };
    Outcome::without_curve(Vec::new(), found)
}

/// Mean over the trials with so many clients.
fn p99_ms(points: &[LoadPoint], clients: u32) -> Option<f64> {
    let own = points.iter().filter(|point| point.clients == clients);
    let known: Vec<f64> = own.filter_map(|point| point.p99_ms).collect();
    (!known.is_empty()).then(|| mean(&known))
}

fn mean(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of trials")]
    let n = values.len() as f64;
    values.iter().sum::<f64>() / n
}

/// An answer as other programs get it, with the question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "CapacityDocument"))]
pub struct Document {
    /// Always "pgdyno-capacity/1".
    pub format: &'static str,
    /// Wanted throughput, transactions per second.
    pub tps: f64,
    /// Number of CPUs of which the throughput is asked for.
    pub cpus: Option<f64>,
    /// The longest 99th percentile of response time that counts, ms.
    pub p99_ms: Option<f64>,
    /// What an hour of a CPU costs.
    pub price_per_cpu_hour: Option<f64>,
    /// What an hour of the host costs.
    pub price_per_host_hour: Option<f64>,
    /// Answer to the question.
    pub answer: Answer,
}

/// An answer as other programs get it.
pub fn document(answer: &Answer, question: &Question) -> Document {
    let (price_per_cpu_hour, price_per_host_hour) = match question.price {
        Some(Price::PerCpuHour(price)) => (Some(price), None),
        Some(Price::PerHostHour(price)) => (None, Some(price)),
        None => (None, None),
    };
    Document {
        format: "pgdyno-capacity/1",
        tps: question.tps,
        cpus: question.cpus,
        p99_ms: question.p99_ms,
        price_per_cpu_hour,
        price_per_host_hour,
        answer: answer.clone(),
    }
}

/// Why an experiment has no answer.
pub fn varies_nothing(id: i64) -> String {
    format!("experiment {id} varies neither CPUs nor clients")
}

#[cfg(test)]
mod tests;
