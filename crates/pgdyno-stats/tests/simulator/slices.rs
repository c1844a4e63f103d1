//! Simulated loads second by second: treatments that take turns within a load, or have trials of
//! their own, which are turns with a long wash-out.

use super::Random;
use pgdyno_stats::Observation;

/// A host under load, second by second, and how its time is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slices {
    /// Seconds of a turn that count.
    pub(crate) measured_s: usize,
    /// Seconds before them that do not.
    pub(crate) wash_out_s: usize,
    /// Turns of each treatment in a block: together they are its trial.
    pub(crate) rounds: usize,
    /// Noise of one second, in log units.
    pub(crate) noise: f64,
    /// Correlation of the noise of consecutive seconds.
    pub(crate) rho: f64,
    /// Step of a random walk from one second to the next, in log units.
    pub(crate) walk: f64,
    /// Linear drift in a second, in log units.
    pub(crate) drift: f64,
    /// Every so many seconds a checkpoint, its length in seconds, and its cost in log units; a
    /// period of 0 is none.
    pub(crate) checkpoint: (usize, usize, f64),
    /// Seconds in which the effect of a change comes and goes, to a third of it.
    pub(crate) carry_s: f64,
    /// Noise of each start of a server, in log units.
    pub(crate) start: f64,
}

/// Turns of three seconds after a second of change and wash-out, four of them in a block, on a host
/// whose noise remembers, with drift and a checkpoint each minute.
pub(crate) const SWITCHED: Slices = Slices {
    measured_s: 3,
    wash_out_s: 1,
    rounds: 4,
    noise: 0.05,
    rho: 0.6,
    walk: 0.001,
    drift: -1e-5,
    checkpoint: (60, 10, 0.2),
    carry_s: 0.3,
    start: 0.0,
};

/// The same host with a trial for each treatment: three seconds to begin and to end it, ten of
/// warm-up, thirty measured, and a restart before each.
pub(crate) const BLOCKED: Slices = Slices {
    measured_s: 30,
    wash_out_s: 13,
    rounds: 1,
    start: 0.01,
    ..SWITCHED
};

/// Hosts on which a switchback must hold its promise.
pub(crate) fn switched_scenes() -> [(&'static str, Slices); 5] {
    let calm = Slices {
        checkpoint: (0, 0, 0.0),
        ..SWITCHED
    };
    [
        ("noise that remembers, drift, a checkpoint each minute", SWITCHED),
        ("the same, correlation of 0.9", Slices { rho: 0.9, ..SWITCHED }),
        (
            "the same, a random walk of 0.3 % a second",
            Slices {
                walk: 0.003,
                ..SWITCHED
            },
        ),
        ("no checkpoints", calm),
        (
            "an effect that stays for seconds, a wash-out of five",
            Slices {
                wash_out_s: 5,
                carry_s: 1.2,
                ..SWITCHED
            },
        ),
    ]
}

impl Slices {
    /// Seconds of a block of so many treatments.
    pub(crate) fn block_s(&self, treatments: usize) -> usize {
        self.rounds * treatments * (self.measured_s + self.wash_out_s)
    }
}

/// The trials of an experiment whose treatments have these log effects, in random order within each
/// round of turns.
pub(crate) fn switched(
    random: &mut Random,
    slices: &Slices,
    effects: &[f64],
    blocks: usize,
) -> Vec<Observation> {
    let mut order: Vec<usize> = (0..effects.len()).collect();
    let innovation = (1.0 - slices.rho * slices.rho).sqrt();
    let (period, length, cost) = slices.checkpoint;
    let (mut level, mut noise, mut effect) = (0.0, random.normal(), 0.0);
    // When the first checkpoint comes is chance.
    let mut second = whole(random.uniform() * seconds(period));
    let mut observations = Vec::with_capacity(blocks * effects.len());
    for block in 0..blocks {
        let mut sums = vec![0.0; effects.len()];
        for _ in 0..slices.rounds {
            random.shuffle(&mut order);
            for &treatment in &order {
                let start = slices.start * random.normal();
                for at in 0..slices.wash_out_s + slices.measured_s {
                    effect += (effects[treatment] - effect) * (1.0 - (-1.0 / slices.carry_s).exp());
                    let is_checkpoint = period > 0 && second % period < length;
                    let lost = if is_checkpoint { cost } else { 0.0 };
                    if at >= slices.wash_out_s {
                        sums[treatment] += (level + start + effect + slices.noise * noise - lost).exp();
                    }
                    noise = slices.rho * noise + innovation * random.normal();
                    level += slices.drift + slices.walk * random.normal();
                    second += 1;
                }
            }
        }
        let all_s = seconds(slices.measured_s * slices.rounds);
        observations.extend(sums.into_iter().enumerate().map(|(treatment, sum)| Observation {
            block,
            treatment,
            value: 1000.0 * sum / all_s,
        }));
    }
    observations
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a load")]
fn seconds(n: usize) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a period"
)]
fn whole(seconds: f64) -> usize {
    seconds as usize
}
