//! Simulated experiments: what a host does to trials, and how often a rule is then wrong or right.
#![allow(dead_code, reason = "tests and the example each use a part")]

pub(crate) mod ladders;
pub(crate) mod shown;
pub(crate) mod slices;

use pgdyno_stats::{
    Comparison, Effect, Looked, Observation, Rules, Sequential, Trials, Verdict, decide, factorial_effects,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::f64::consts::TAU;

/// How the level moves from one trial to the next, in log units.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Drift {
    /// Not at all.
    None,
    /// By as much each time.
    Linear(f64),
    /// By a normal step with this standard deviation.
    Walk(f64),
}

/// Where a simulated experiment takes place, and what its treatments do besides having an effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    /// Log units of one trial.
    pub(crate) noise: f64,
    /// Correlation of the noise of consecutive trials.
    pub(crate) rho: f64,
    pub(crate) drift: Drift,
    /// Share of trials that lose 10 to 30 %.
    pub(crate) outliers: f64,
    /// A treatment, and how many times as large its noise is.
    pub(crate) noisier: Option<(usize, f64)>,
    /// A treatment, the share of its trials that stall, and what those lose.
    pub(crate) stalls: Option<(usize, f64, f64)>,
    /// Each trial has one of two levels, this far apart in log units.
    pub(crate) bimodal: f64,
    /// A treatment whose trials fail where their noise is in the lowest of these shares.
    pub(crate) fails_low: Option<(usize, f64)>,
}

/// Independent noise of 2 %, nothing else.
pub(crate) const QUIET: Scene = Scene {
    noise: 0.02,
    rho: 0.0,
    drift: Drift::None,
    outliers: 0.0,
    noisier: None,
    stalls: None,
    bimodal: 0.0,
    fails_low: None,
};

/// Treatments that are no better or worse than others, and are noisier, stall or have two levels.
pub(crate) fn unequal_scenes() -> Vec<(&'static str, Scene)> {
    let noisier = |treatment, times| Scene {
        noisier: Some((treatment, times)),
        ..QUIET
    };
    vec![
        ("a treatment three times as noisy", noisier(1, 3.0)),
        ("the reference three times as noisy", noisier(0, 3.0)),
        ("a treatment ten times as noisy", noisier(1, 10.0)),
        ("the reference ten times as noisy", noisier(0, 10.0)),
        (
            "two levels, 6 % apart",
            Scene {
                bimodal: 0.06,
                ..QUIET
            },
        ),
    ]
}

/// Hosts that are not quiet: noise of 2 % that remembers the last trial, a level that moves by 0.3
/// % with each trial or wanders by 0.5 %, and one trial of twenty that loses 10 to 30 %.
pub(crate) fn rough_scenes() -> Vec<(String, Scene)> {
    let mut scenes = Vec::new();
    for rho in [0.3, 0.6] {
        for (name, drift) in [
            ("linear drift", Drift::Linear(-0.003)),
            ("random walk", Drift::Walk(0.005)),
        ] {
            for outliers in [0.0, 0.05] {
                let name = format!("rho {rho}, {name}, {} % outliers", 100.0 * outliers);
                let scene = Scene {
                    rho,
                    drift,
                    outliers,
                    ..QUIET
                };
                scenes.push((name, scene));
            }
        }
    }
    scenes
}

/// A normal variable with a fixed seed behind it.
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Between 0 and 1, neither included.
    #[expect(clippy::cast_precision_loss, reason = "53 bits")]
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for i in (1..items.len()).rev() {
            #[expect(clippy::cast_possible_truncation, reason = "a remainder of i + 1")]
            let j = (self.0.next_u64() % (i as u64 + 1)) as usize;
            items.swap(i, j);
        }
    }
}

/// The trials of an experiment whose treatments have these log effects, in random order within each
/// block, without those that failed.
pub(crate) fn experiment(
    random: &mut Random,
    scene: Scene,
    effects: &[f64],
    blocks: usize,
) -> Vec<Observation> {
    let mut order: Vec<usize> = (0..effects.len()).collect();
    let (mut level, mut noise) = (0.0, random.normal());
    let innovation = (1.0 - scene.rho * scene.rho).sqrt();
    let mut observations = Vec::new();
    for block in 0..blocks {
        random.shuffle(&mut order);
        for &treatment in &order {
            let times = match scene.noisier {
                Some((noisier, times)) if noisier == treatment => times,
                _ => 1.0,
            };
            let mut log = level + scene.noise * times * noise + effects[treatment];
            if scene.outliers > 0.0 && random.uniform() < scene.outliers {
                log += (0.9 - 0.2 * random.uniform()).ln();
            }
            if scene.bimodal > 0.0 {
                log += scene.bimodal * (random.uniform() - 0.5).signum() / 2.0;
            }
            if let Some((stalls, share, loss)) = scene.stalls
                && stalls == treatment
                && random.uniform() < share
            {
                log += (1.0 - loss).ln();
            }
            let has_failed =
                matches!(scene.fails_low, Some((fails, share)) if fails == treatment && below(noise, share));
            if !has_failed {
                observations.push(Observation {
                    block,
                    treatment,
                    value: 1000.0 * log.exp(),
                });
            }
            noise = scene.rho * noise + innovation * random.normal();
            level += match scene.drift {
                Drift::None => 0.0,
                Drift::Linear(step) => step,
                Drift::Walk(sd) => sd * random.normal(),
            };
        }
    }
    observations
}

/// Whether a normal value is in the lowest of these shares (Abramowitz & Stegun 26.2.23, which is
/// good to 0.0005).
fn below(normal: f64, share: f64) -> bool {
    let t = (-2.0 * share.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let under = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    normal < above / under - t
}

/// Every treatment against the first.
pub(crate) fn to_first(treatments: usize) -> Vec<Comparison> {
    (1..treatments)
        .map(|treatment| Comparison {
            treatment,
            reference: 0,
        })
        .collect()
}

/// Outcome of many experiments.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    pub(crate) experiments: usize,
    /// With any comparison better or worse.
    pub(crate) better_or_worse: usize,
    /// With the first comparison better.
    pub(crate) better: usize,
    /// With any comparison the same.
    pub(crate) same: usize,
    /// With the first comparison ended because a gain is improbable.
    pub(crate) no_gain: usize,
    /// Blocks until each was done.
    pub(crate) blocks: Vec<usize>,
    /// Blocks until the first comparison of each was decided.
    pub(crate) first: Vec<usize>,
    /// Trials that each took, where decided treatments are not tried again.
    pub(crate) trials: Vec<usize>,
}

impl Tally {
    #[expect(clippy::cast_precision_loss, reason = "counts of experiments")]
    pub(crate) fn percent(&self, n: usize) -> f64 {
        100.0 * n as f64 / self.experiments as f64
    }

    pub(crate) fn median_blocks(&mut self) -> usize {
        self.blocks.sort_unstable();
        self.blocks[self.blocks.len() / 2]
    }

    pub(crate) fn mean_blocks(&self) -> f64 {
        mean(&self.blocks)
    }

    /// Blocks until the first comparison was decided.
    pub(crate) fn mean_first(&self) -> f64 {
        mean(&self.first)
    }

    pub(crate) fn mean_trials(&self) -> f64 {
        mean(&self.trials)
    }

    fn add(&mut self, looked: &Looked, blocks_max: usize) {
        let has = |verdict| looked.effects.iter().flatten().any(|e| e.verdict == verdict);
        self.experiments += 1;
        self.better_or_worse += usize::from(has(Verdict::Better) || has(Verdict::Worse));
        let first = looked.effects[0].map(|effect| effect.verdict);
        self.better += usize::from(first == Some(Verdict::Better));
        self.no_gain += usize::from(first == Some(Verdict::NoGain));
        self.same += usize::from(has(Verdict::Same));
        let last = looked
            .decided_after
            .iter()
            .map(|after| after.unwrap_or(blocks_max))
            .max();
        self.blocks.push(last.unwrap_or(blocks_max));
        self.first.push(looked.decided_after[0].unwrap_or(blocks_max));
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of blocks")]
fn mean(blocks: &[usize]) -> f64 {
    blocks.iter().sum::<usize>() as f64 / blocks.len() as f64
}

/// Runs `experiments` under `plan`, on two threads, each with its own seed.
pub(crate) fn tally(
    plan: &Sequential,
    scene: Scene,
    effects: &[f64],
    blocks_max: usize,
    experiments: usize,
) -> Tally {
    tally_of(plan, blocks_max, experiments, |random| {
        experiment(random, scene, effects, blocks_max)
    })
}

/// The same of experiments that `make` makes.
pub(crate) fn tally_of(
    plan: &Sequential,
    blocks_max: usize,
    experiments: usize,
    make: impl Fn(&mut Random) -> Vec<Observation> + Sync,
) -> Tally {
    let ended: Vec<usize> = (0..blocks_max).collect();
    on_two_threads(experiments, |random, tally| {
        let observations = make(random);
        let trials = Trials {
            observations: &observations,
            ended: &ended,
        };
        tally.add(&plan.look(trials), blocks_max);
    })
}

/// The same of treatments that are compared with the first, each until that is decided.
pub(crate) fn tally_until_decided(
    plan: &Sequential,
    looks: (usize, usize),
    scene: Scene,
    effects: &[f64],
    experiments: usize,
) -> Tally {
    on_two_threads(experiments, |random, tally| {
        let mut observations = experiment(random, scene, effects, looks.1);
        let mut looked = None;
        for block in looks.0..=looks.1 {
            let ended: Vec<usize> = (0..block).collect();
            let found = plan.look(Trials {
                observations: &observations,
                ended: &ended,
            });
            let decided = &found.decided_after;
            observations.retain(|one| {
                let is_open = |treatment: usize| decided[treatment - 1].is_none();
                let is_needed = match one.treatment {
                    0 => decided.contains(&None),
                    treatment => is_open(treatment),
                };
                one.block < block || is_needed
            });
            let is_done = found.done;
            looked = Some(found);
            if is_done {
                break;
            }
        }
        tally.add(&looked.expect("a look"), looks.1);
        tally.trials.push(observations.len());
    })
}

/// The blocks that a fixed design of so many treatments needs to find an effect of the second in
/// this percentage of experiments, between two numbers by how near each comes.
#[expect(clippy::cast_precision_loss, reason = "counts of blocks")]
pub(crate) fn fixed_blocks(treatments: usize, effect: f64, rules: Rules, percent: f64) -> f64 {
    let found = |blocks: usize| {
        let mut effects = vec![0.0; treatments];
        effects[1] = effect.ln_1p();
        let one = |random: &mut Random, tally: &mut Tally| {
            let observations = experiment(random, QUIET, &effects, blocks);
            let found = decide(&observations, &to_first(treatments), rules)[0];
            tally.experiments += 1;
            tally.better += usize::from(found.is_some_and(|effect| effect.verdict == Verdict::Better));
        };
        let tally = on_two_threads(20_000, one);
        tally.percent(tally.better)
    };
    let (mut blocks, mut below) = (2, 0.0);
    loop {
        let here = found(blocks);
        if here >= percent {
            return blocks as f64 - (here - percent) / (here - below);
        }
        (blocks, below) = (blocks + 1, here);
    }
}

fn on_two_threads(experiments: usize, one: impl Fn(&mut Random, &mut Tally) + Sync) -> Tally {
    let half = |seed: u64| {
        let mut random = Random::new(seed);
        let mut tally = Tally::default();
        for _ in 0..experiments / 2 {
            one(&mut random, &mut tally);
        }
        tally
    };
    let (mut one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(2));
        (half(1), other.join().expect("no panic"))
    });
    one.experiments += other.experiments;
    one.better_or_worse += other.better_or_worse;
    one.better += other.better;
    one.same += other.same;
    one.no_gain += other.no_gain;
    one.blocks.extend(other.blocks);
    one.first.extend(other.first);
    one.trials.extend(other.trials);
    one
}

/// Effects of all factors and pairs of them, of a simulated factorial with so many levels of each
/// factor; the last level of the first factor has an effect, in log units.
pub(crate) fn effects_of_factors(
    random: &mut Random,
    (scene, sizes, blocks): (Scene, &[usize], usize),
    log_effect: f64,
    rules: Rules,
) -> Vec<Effect> {
    let mut levels: Vec<Vec<usize>> = vec![Vec::new()];
    for &size in sizes {
        let longer = |of: &Vec<usize>| {
            (0..size)
                .map(|level| [&of[..], &[level]].concat())
                .collect::<Vec<_>>()
        };
        levels = levels.iter().flat_map(longer).collect();
    }
    let effects: Vec<f64> = levels
        .iter()
        .map(|of| if of[0] + 1 == sizes[0] { log_effect } else { 0.0 })
        .collect();
    let observations = experiment(random, scene, &effects, blocks);
    let found = factorial_effects(&levels, &observations, rules).unwrap_or_default();
    found.into_iter().filter_map(|one| one.effect).collect()
}

/// Whether an effect is said to be better or worse.
pub(crate) fn is_claimed(effect: &Effect) -> bool {
    matches!(effect.verdict, Verdict::Better | Verdict::Worse)
}
