//! Fills a store with made-up trials (the mix of columns is assumed), and prints what a point takes
//! and how long it takes to look: for benches/store.sh. Usage: fill FILE [TRIALS] [COLUMNS]
//! [POINTS] [RATES, % of columns]
#![allow(clippy::print_stdout, reason = "an example prints")]

use pgdyno_record::{
    ColumnRecord, ExperimentRecord, ExperimentStatus, SeriesRecord, TrialRecord, pack_series,
};
use pgdyno_store::{Filter, Store};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// Trials of an experiment: ten treatments in four blocks.
const TRIALS_OF_ONE: usize = 40;
/// Columns that were read together, and so have the same times: in trials that were recorded, 390
/// columns have 25 lists of them.
const COLUMNS_OF_ONE_READ: usize = 16;
/// As many facts as a host and a server have.
const FACTS: usize = 400;

/// What a column looks like. Shares are of the columns that are no rates.
#[derive(Clone, Copy)]
enum Kind {
    /// Never changes: sizes, limits, idle devices.
    Constant,
    /// Mostly zero: what happens now and then.
    Rare,
    /// A whole number that walks: pages, bytes in multiples of a page.
    Walk,
    /// A small whole number: sessions, processes.
    Count,
    /// A share in hundredths, as of clock ticks in a second.
    Share,
    /// A counter's growth by the exact length of its interval: every bit of it is noise, of which
    /// the store keeps five digits.
    Rate,
}

const KINDS: [(Kind, usize); 6] = [
    (Kind::Constant, 30),
    (Kind::Rare, 20),
    (Kind::Walk, 15),
    (Kind::Count, 15),
    (Kind::Share, 15),
    (Kind::Rate, 0),
];

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// Around 0, as a sum of six evenly spread numbers is.
    fn about(&mut self, spread: u64) -> i64 {
        let sum: u64 = (0..6).map(|_| self.below(spread + 1)).sum();
        sum.cast_signed() / 3 - spread.cast_signed()
    }

    fn values(&mut self, kind: Kind, points: usize) -> Vec<f64> {
        let mut walk = 1_000_000 + self.below(1_000_000).cast_signed();
        let level = 1 + self.below(60).cast_signed();
        let mut value = |random: &mut Random| -> f64 {
            match kind {
                Kind::Constant => level as f64 * 4096.0,
                Kind::Rare => match random.below(30) {
                    0 => random.below(50) as f64,
                    _ => 0.0,
                },
                Kind::Walk => {
                    walk += random.about(20);
                    walk as f64 * 4096.0
                }
                Kind::Count => (level + random.about(2)).max(0) as f64,
                Kind::Share => (level + random.about(8)).clamp(0, 100) as f64 / 100.0,
                Kind::Rate => {
                    let seconds = 1.0 + random.about(1_000_000) as f64 / 1e9;
                    (50_000 + random.about(3_000)) as f64 / seconds
                }
            }
        };
        (0..points).map(|_| value(self)).collect()
    }

    /// Readings to a schedule: a millisecond late now and then.
    fn times(&mut self, points: usize) -> Vec<u32> {
        let late = |random: &mut Random| u32::from(random.below(20) == 0);
        (1..)
            .take(points)
            .map(|second: u32| second * 1000 + late(self))
            .collect()
    }
}

fn series(
    random: &mut Random,
    columns: usize,
    points: usize,
    rates: usize,
    only: Option<Kind>,
) -> SeriesRecord {
    let kinds: Vec<Kind> = KINDS
        .iter()
        .flat_map(|(kind, share)| std::iter::repeat_n(*kind, *share))
        .collect();
    let kind = |index: usize| match index * 100 < columns * rates {
        true => Kind::Rate,
        false => kinds[index * 37 % kinds.len()],
    };
    let times: Vec<Vec<u32>> = (0..columns.div_ceil(COLUMNS_OF_ONE_READ))
        .map(|_| random.times(points))
        .collect();
    let column = |index: usize| {
        let kind = only.unwrap_or(kind(index));
        // The store keeps the digits of a metric by the unit in its name.
        let unit = match kind {
            Kind::Rate => "_per_s",
            Kind::Share => "_ratio",
            _ => "",
        };
        ColumnRecord {
            metric: format!("bench.metric_{index:03}{unit}"),
            label: String::new(),
            at_ms: times[index / COLUMNS_OF_ONE_READ].clone(),
            values: random.values(kind, points),
        }
    };
    SeriesRecord {
        columns: (0..columns).map(column).collect(),
        gaps: Vec::new(),
    }
}

fn experiment(number: usize) -> Result<ExperimentRecord, Box<dyn Error>> {
    let fact = |n: usize| {
        json!({"group": "host", "name": format!("fact.{n}"), "value": n * 4096, "missing": null,
               "source": "/proc/meminfo"})
    };
    let treatment = |n: usize| {
        json!({"name": format!("t{n}"), "title": format!("Treatment {n}"), "reason": null, "why_not": null,
               "settings": []})
    };
    Ok(serde_json::from_value(json!({
        "name": format!("nightly-{}", number % 7), "question": "What is it worth?", "design": "one-at-a-time",
        "blocks": 4, "seed": number, "confidence": 0.95, "smallest_effect": 0.02,
        "workload": {"name": "tpcb", "scale": 10, "clients": 8, "threads": 2, "warmup_s": 60.0, "measure_s": 3600.0},
        "treatments": (0..10).map(treatment).collect::<Vec<_>>(), "facts": (0..FACTS).map(fact).collect::<Vec<_>>(),
        "file": "name = 'nightly'\n".repeat(50), "repeat": [], "target": "sandbox bench",
    }))?)
}

fn trial(number: usize) -> Result<TrialRecord, Box<dyn Error>> {
    let at = number % TRIALS_OF_ONE;
    Ok(serde_json::from_value(json!({
        "block": at / 10 + 1, "position": at % 10 + 1, "treatment": format!("t{}", at % 10), "status": "finished",
        "reason": null, "started_unix_ms": number, "effective": [], "tps": 1000.0, "committed": 3_600_000, "failed": 0,
        "errors": [], "percentiles": null, "histogram": null, "distribution": [], "steadiness": null,
        "stability_cv": null, "warmup_s": 60.0, "measured_s": 3600.0, "client_cpu_us_per_tx": null,
        "server_cpu_us_per_tx": null, "wal_bytes_per_tx": null, "cross_check": null, "disturbances": [], "seconds": [],
    }))?)
}

fn fill(
    path: &Path,
    trials: usize,
    columns: usize,
    points: usize,
    rates: usize,
) -> Result<(), Box<dyn Error>> {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(1));
    let mut store = Store::open(path)?;
    let mut id = 0;
    for number in 0..trials {
        if number % TRIALS_OF_ONE == 0 {
            if number > 0 {
                store.set_status(id, ExperimentStatus::Finished)?;
            }
            id = store.begin(&experiment(number)?)?;
        }
        store.add_trial(
            id,
            &trial(number)?,
            &series(&mut random, columns, points, rates, None),
        )?;
    }
    Ok(store.set_status(id, ExperimentStatus::Finished)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = Path::new(
        arguments
            .first()
            .ok_or("usage: fill FILE [TRIALS] [COLUMNS] [POINTS]")?,
    );
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (trials, columns, points) = (number(1, 200)?, number(2, 200)?, number(3, 3600)?);
    let rates = number(4, 5)?;
    let began = Instant::now();
    fill(path, trials, columns, points, rates)?;
    println!(
        "trials {trials}, columns {columns}, points {points}, rates {rates} %; filled in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let bytes = std::fs::metadata(path)?.len();
    println!(
        "file {bytes} bytes, bytes per point {:.3}",
        bytes as f64 / (trials * columns * points) as f64
    );
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(2));
    for ((kind, share), name) in KINDS
        .iter()
        .zip(["constant", "rare", "walk", "count", "share", "rate"])
    {
        let sample = series(&mut random, 10, points, 0, Some(*kind));
        let packed = pack_series(&sample.columns);
        let packed: usize = packed.times.iter().chain(&packed.columns).map(Vec::len).sum();
        println!(
            "  {name:8} {share:2} parts, bytes per point {:.3}",
            packed as f64 / (10 * points) as f64
        );
    }
    let began = Instant::now();
    let store = Store::open(path)?;
    let listed = store.find(&Filter::default())?;
    println!("list of {}: {:.4} s", listed.len(), began.elapsed().as_secs_f64());
    let began = Instant::now();
    let read = store.series(i64::try_from(trials / 2 + 1)?)?;
    println!(
        "one trial of {} columns: {:.4} s",
        read.columns.len(),
        began.elapsed().as_secs_f64()
    );
    Ok(())
}
