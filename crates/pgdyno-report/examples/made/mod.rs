//! Made-up trials that hold all that a real one of an hour does: seconds with all their fields, the
//! histogram, its points, response times over time, statements; and series beside them.

mod series;

pub(crate) use series::series;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use pgdyno_record::{DistributionPoint, ExperimentRecord, HeatRecord, SecondRecord, TrialRecord};
use serde_json::{Value, json};
use std::error::Error;

/// What goes along with a trial, as pgdyno-lab stores it.
const CURVE: [f64; 15] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 80.0, 85.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.9, 99.95, 99.99,
];
const STATEMENTS: u32 = 20;
const WARMUP_S: u32 = 60;
/// Stretches of a heat map at most, and its classes: four to a factor of two, from 1 ms to 0.5 s.
const STRETCHES_MAX: u32 = 300;
const CLASSES: u64 = 36;
/// Drawn response times of a trial, each of which represents many.
const DRAWN: u32 = 20_000;

/// A small generator (Numerical Recipes' constants): the same numbers on every machine.
pub(crate) struct Random(pub(crate) u32);

impl Random {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1_u32 << 24)
    }

    /// With a third of them above twice `middle`, and one in a thousand above twenty times.
    fn skewed(&mut self, middle: f64) -> f64 {
        middle * ((self.next() + self.next() + self.next() - 1.5) * 2.0).exp()
    }
}

pub(crate) fn experiment(trials: u32, seconds: u32) -> Result<ExperimentRecord, serde_json::Error> {
    let treatment =
        |name: &str| json!({"name": name, "title": name, "reason": null, "why_not": null, "settings": []});
    let treatments = ["reference", "a", "b", "c"].map(treatment);
    let warmup_s = WARMUP_S.min(seconds / 2);
    serde_json::from_value(json!({
        "name": "hundred", "question": "How large is a report?", "design": "one-at-a-time", "blocks": trials / 4, "seed": 1,
        "confidence": 0.95, "smallest_effect": 0.02,
        "workload": {"name": "tpcb", "scale": 100, "clients": 32, "threads": 4, "warmup_s": warmup_s,
                     "measure_s": seconds - warmup_s},
        "treatments": treatments, "facts": [], "file": "", "repeat": [], "target": "x",
    }))
}

/// The trial of this number, from 0 on.
pub(crate) fn trial(number: u32, seconds: u32, random: &mut Random) -> Result<TrialRecord, Box<dyn Error>> {
    let treatment = ["reference", "a", "b", "c"][(number % 4) as usize];
    let tps = 2000.0 + 100.0 * f64::from(number % 4);
    let warmup_s = WARMUP_S.min(seconds / 2);
    let mut histogram = Histogram::<u64>::new_with_max(3_600_000_000_000, 3)?;
    for _ in 0..DRAWN {
        histogram.record_n((random.skewed(9.0) * 1e6) as u64, 350)?;
    }
    let ms = |percentile: f64| histogram.value_at_percentile(percentile) as f64 / 1e6;
    let mut packed = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut packed)?;
    let mut record: TrialRecord = serde_json::from_value(json!({
        "block": number / 4 + 1, "position": number % 4 + 1, "treatment": treatment, "status": "finished", "reason": null,
        "started_unix_ms": 1_760_000_000_000_u64 + u64::from(number) * 3_700_000, "effective": [],
        "tps": tps + random.next() * 20.0, "committed": u64::from(DRAWN) * 350, "failed": 3,
        "errors": [{"sqlstate": "40001", "count": 3}],
        "percentiles": {"p50_ms": ms(50.0), "p95_ms": ms(95.0), "p99_ms": ms(99.0), "max_ms": ms(100.0)},
        "histogram": STANDARD.encode(packed), "distribution": [], "steadiness": null, "stability_cv": 0.05,
        "warmup_s": warmup_s, "measured_s": seconds - warmup_s, "client_cpu_us_per_tx": 11.0 + random.next(),
        "server_cpu_us_per_tx": 300.0 + random.next(), "wal_bytes_per_tx": 5000.0 + random.next(),
        "counters_per_tx": {"page_faults": 2.0 + random.next(), "context_switches": 14.0 + random.next()},
        "cross_check": {"client": 7_120_000, "server": 7_120_011, "allowed_difference": 64, "agrees": true},
        "disturbances": [], "seconds": [], "statements": (0..STATEMENTS).map(|n| statement(n, random)).collect::<Vec<_>>(),
    }))?;
    record.distribution = CURVE
        .into_iter()
        .map(|percentile| DistributionPoint::new(percentile, ms(percentile)))
        .collect();
    record.heat = heat(warmup_s, seconds, random);
    record.seconds = (1..=seconds).map(|at| second(at, tps, random)).collect();
    Ok(record)
}

fn statement(number: u32, random: &mut Random) -> Value {
    json!({
        "query_id": i64::from(number) * 7_919_773_311_117 - 71_000_000_000_000,
        "text": format!("UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2 /* {number} */"),
        "calls": 7_000_000, "total_ms": (random.next() * 1e9).round() / 1e3, "rows": 7_000_000,
        "blocks_hit": 40_000_000, "blocks_read": 900_000, "wal_bytes": 9_000_000_000_u64,
    })
}

fn heat(warmup_s: u32, seconds: u32, random: &mut Random) -> Option<HeatRecord> {
    let measured_s = seconds - warmup_s;
    let stretch_s = measured_s.div_ceil(STRETCHES_MAX).next_power_of_two();
    let edge_ns = |class: u64| (4 + class % 4) << (18 + class / 4);
    let mut stretch = || -> Vec<u64> {
        let counts = (0..CLASSES).map(|class| {
            let far = (class as f64 - 13.0) / 5.0;
            ((-far * far).exp() * 8000.0 * f64::from(stretch_s) * (0.8 + 0.4 * random.next())) as u64 / 30
        });
        counts.collect()
    };
    let counts: Vec<Vec<u64>> = (0..measured_s.div_ceil(stretch_s)).map(|_| stretch()).collect();
    HeatRecord::packed(
        (f64::from(warmup_s), f64::from(seconds)),
        stretch_s,
        (0..=CLASSES).map(edge_ns).collect(),
        &counts,
    )
}

/// With the digits that measured values have.
fn second(at: u32, tps: f64, random: &mut Random) -> SecondRecord {
    SecondRecord {
        t_s: f64::from(at) + (random.next() * 1e6).round() / 1e9,
        tps: tps * (0.95 + 0.1 * random.next()),
        p95_ms: Some(25.0 + (random.next() * 1e7).round() / 1e6),
        cpu_busy: Some(0.5 + 0.4 * random.next()),
        cpu_iowait: Some(0.1 * random.next()),
        cpu_steal: Some(0.02 * random.next()),
        disk_read_bytes_per_s: Some(1e6 * random.next()),
        disk_write_bytes_per_s: Some(4e7 * (0.9 + 0.2 * random.next())),
        dirty_bytes: Some((random.next() * 1e5).round() * 4096.0),
    }
}
