//! Simulated ladders of CPUs and clients, and how often the CPUs that a throughput needs are in the
//! interval given.

use super::Random;
use pgdyno_stats::{Capacity, CpuLevel, LoadPoint, Need, best_clients};

/// A law of throughput over CPUs, and a host.
#[derive(Clone, Copy)]
pub(crate) struct Ladder {
    pub(crate) name: &'static str,
    /// Throughput with the best clients by CPUs.
    pub(crate) law: fn(f64) -> f64,
    pub(crate) cpus: &'static [f64],
    pub(crate) blocks: u32,
    /// By how much blocks differ, in log units.
    pub(crate) between: f64,
    /// By how much trials of a block differ, in log units.
    pub(crate) noise: f64,
}

/// What is asked for: what so many times the largest measured number of CPUs give.
pub(crate) const ASKED: [f64; 4] = [0.45, 0.8, 1.25, 3.0];
const CPUS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];

/// Four blocks of five numbers of CPUs on a quiet host, and on one whose blocks differ by 5 %.
pub(crate) fn ladders() -> Vec<Ladder> {
    let usl = |n: f64| 1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.0002 * n * (n - 1.0));
    let ladder = Ladder {
        name: "scalability law, blocks alike",
        law: usl,
        cpus: &CPUS,
        blocks: 4,
        between: 0.0,
        noise: 0.02,
    };
    let apart = Ladder {
        name: "scalability law, blocks 5 % apart",
        between: 0.05,
        ..ladder
    };
    let power = Ladder {
        name: "power law, blocks 5 % apart",
        law: |n: f64| 1000.0 * n.powf(0.85),
        ..apart
    };
    let few = Ladder {
        name: "scalability law, three numbers of CPUs, blocks 5 % apart",
        cpus: &CPUS[2..],
        ..apart
    };
    vec![ladder, apart, power, few]
}

/// Outcome of many ladders.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    pub(crate) ladders: u32,
    /// With the CPUs that are needed within the bounds.
    pub(crate) held: u32,
    /// With an upper bound.
    pub(crate) bounded: u32,
    /// With a number, not bounds alone.
    pub(crate) numbers: u32,
}

/// Asks for what `times` the largest measured number of CPUs give.
pub(crate) fn covered(ladder: &Ladder, times: f64, ladders: u32) -> Covered {
    let cpus = times * ladder.cpus[ladder.cpus.len() - 1];
    let mut random = Random::new(17);
    let mut covered = Covered::default();
    for _ in 0..ladders {
        let Ok(capacity) = Capacity::fit(&measured(&mut random, ladder)) else {
            continue;
        };
        let (low, high, number) = match capacity.need((ladder.law)(cpus), 0.95) {
            Some(Need::Reachable(found)) => (found.cpus.low, found.cpus.high, true),
            Some(Need::Beyond {
                cpus_low, cpus_high, ..
            }) => (cpus_low.unwrap_or(f64::INFINITY), cpus_high, false),
            None => continue,
        };
        covered.ladders += 1;
        covered.held += u32::from(low <= cpus && high.is_none_or(|high| cpus <= high));
        covered.bounded += u32::from(high.is_some());
        covered.numbers += u32::from(number);
    }
    covered
}

/// How much more than the truth the best clients of 4 CPUs are said to give, mean over many
/// ladders: first by the best mean of all blocks, then by what the other blocks choose.
pub(crate) fn winners(ladder: &Ladder, ladders: u32) -> (f64, f64) {
    let mut random = Random::new(18);
    let (mut naive, mut own) = (0.0, 0.0);
    for _ in 0..ladders {
        let heights = heights(&mut random, ladder);
        let points = points(&mut random, ladder, &heights, 4.0);
        let best = best_clients(&points, None).expect("trials");
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let values: Vec<f64> = values.collect();
            mean_of(&values)
        };
        naive += mean(&mut points.iter().filter(|p| p.clients == best.level).map(|p| p.tps));
        own += mean(&mut best.by_block.iter().map(|&(_, tps)| tps));
    }
    let truth = f64::from(ladders) * (ladder.law)(4.0);
    (naive / truth - 1.0, own / truth - 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials")]
fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn heights(random: &mut Random, ladder: &Ladder) -> Vec<f64> {
    (0..ladder.blocks)
        .map(|_| ladder.between * random.normal())
        .collect()
}

/// Six numbers of clients, of which five give as much and one gives 3 % less.
fn points(random: &mut Random, ladder: &Ladder, heights: &[f64], cpus: f64) -> Vec<LoadPoint> {
    let mut points = Vec::new();
    for (block, height) in (1..).zip(heights) {
        for (times, share) in [(1_u32, 0.97), (2, 1.0), (3, 1.0), (4, 1.0), (6, 1.0), (8, 1.0)] {
            points.push(LoadPoint {
                block,
                clients: times,
                tps: (ladder.law)(cpus) * share * (height + ladder.noise * random.normal()).exp(),
                p99_ms: None,
            });
        }
    }
    points
}

fn measured(random: &mut Random, ladder: &Ladder) -> Vec<CpuLevel> {
    let heights = heights(random, ladder);
    let level = |&cpus: &f64| {
        let best = best_clients(&points(random, ladder, &heights, cpus), None).expect("trials");
        CpuLevel {
            cpus,
            clients: f64::from(best.level) * cpus,
            tps: best.by_block,
        }
    };
    ladder.cpus.iter().map(level).collect()
}
