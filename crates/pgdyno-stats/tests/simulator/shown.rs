//! What is shown before or beside the verdict that decides: how often it is wrong, by the rules
//! that were usual before and by those of now.

use super::{QUIET, Random, Scene, experiment, is_claimed, to_first};
use pgdyno_stats::{
    Comparison, Effect, Observation, Rules, Sequential, StoppingRule, Trials, Verdict, WarmUp,
    compare_within, decide, warm_up_end,
};

/// Experiments without any effect of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    /// A fixed number of blocks, evaluated after each.
    Early,
    /// Another figure at the stop that the one that decides has brought about.
    Beside,
    /// Any two treatments, one pair at a time.
    EachPair,
    /// The seconds of one trial of each side.
    TwoTrials,
    /// Findings of studies, each with its own comparison in a few blocks.
    Findings,
    /// Data that was made once for each treatment.
    Instances,
    /// "Better" of a treatment that is slower, for its trials stall now and then, and who stalls is
    /// flagged.
    Stalls,
    /// "Better" of a treatment without an effect whose slow trials fail.
    FailsLow,
    /// A warm-up in a series that has none.
    WarmUps,
}

impl Shown {
    pub(crate) const ALL: [(&str, Shown); 9] = [
        (
            "a fixed design of ten blocks, six treatments, evaluated after each block",
            Shown::Early,
        ),
        (
            "another figure, when the one that decides has stopped the experiment",
            Shown::Beside,
        ),
        (
            "all pairs of seven treatments, asked for one at a time",
            Shown::EachPair,
        ),
        ("one trial of each side, by its seconds", Shown::TwoTrials),
        (
            "findings of studies that differ from none, 86 in two or three blocks each",
            Shown::Findings,
        ),
        (
            "data made once for each of two treatments, 1.5 % apart",
            Shown::Instances,
        ),
        (
            "\"better\" of a treatment that loses 2.4 %: a quarter of its trials stall",
            Shown::Stalls,
        ),
        (
            "\"better\" of a treatment without an effect whose slow trials fail",
            Shown::FailsLow,
        ),
        ("a warm-up in a minute without one", Shown::WarmUps),
    ];

    /// How many of so many are wrong, by the rules of before and by those of now.
    pub(crate) fn wrong(self, experiments: usize, seed: u64, rules: Rules) -> [usize; 2] {
        let mut random = Random::new(seed);
        (0..experiments).fold([0, 0], |[before, now], _| {
            let found = self.is_wrong(&mut random, rules);
            [before + usize::from(found[0]), now + usize::from(found[1])]
        })
    }

    /// Whether one of them is wrong before and now.
    fn is_wrong(self, random: &mut Random, rules: Rules) -> [bool; 2] {
        match self {
            Shown::Early => {
                let observations = experiment(random, QUIET, &[0.0; 6], 10);
                let after = |block: usize| claims(&until(&observations, block), &to_first(6), rules);
                [(2..=10).any(after), after(10)]
            }
            Shown::Beside => beside(random, rules),
            Shown::EachPair => {
                let observations = experiment(random, QUIET, &[0.0; 7], 6);
                let pairs: Vec<Comparison> = (1..7)
                    .flat_map(|treatment| {
                        (0..treatment).map(move |reference| Comparison { treatment, reference })
                    })
                    .collect();
                let alone = pairs.iter().any(|pair| claims(&observations, &[*pair], rules));
                // The experiment's own comparisons hold together, and any other pair with all
                // pairs.
                let of_all = decide(&observations, &pairs, rules);
                let mut others = pairs.iter().zip(&of_all).filter(|(pair, _)| pair.reference != 0);
                let is_other = others.any(|(_, effect)| effect.as_ref().is_some_and(is_claimed));
                [alone, claims(&observations, &to_first(7), rules) || is_other]
            }
            Shown::TwoTrials => {
                let mut trial = || {
                    let level = 0.02 * random.normal();
                    series(random, 60)
                        .iter()
                        .map(|second| second * level.exp())
                        .collect::<Vec<f64>>()
                };
                let (a, b) = (trial(), trial());
                let found = compare_within(&a, &b, rules);
                // There is no verdict now.
                [found.is_some_and(|found| is_claimed(&found.effect)), false]
            }
            Shown::Findings => {
                const TOGETHER: u32 = 86;
                let shared = Rules {
                    confidence: 1.0 - (1.0 - rules.confidence) / f64::from(TOGETHER),
                    ..rules
                };
                (0..TOGETHER).fold([false; 2], |wrong, _| {
                    let observations = experiment(random, QUIET, &[0.0; 2], 3);
                    let two = until(&observations, 2);
                    [
                        wrong[0] || claims(&two, &to_first(2), rules),
                        wrong[1] || claims(&observations, &to_first(2), shared),
                    ]
                })
            }
            Shown::Instances => {
                const APART: f64 = 0.015;
                let own = [APART * random.normal(), APART * random.normal()];
                let once = experiment(random, QUIET, &own, 10);
                let each = Scene {
                    noise: QUIET.noise.hypot(APART),
                    ..QUIET
                };
                let made_each = experiment(random, each, &[0.0; 2], 10);
                [once, made_each].map(|observations| claims(&observations, &to_first(2), rules))
            }
            Shown::Stalls => {
                let scene = Scene {
                    stalls: Some((1, 0.25, 0.21)),
                    ..QUIET
                };
                let all = experiment(random, scene, &[0.0, 1.03_f64.ln()], 12);
                // What is flagged was not counted; flags that one treatment alone has exclude
                // nothing now.
                let unflagged: Vec<Observation> =
                    all.iter().filter(|one| one.value > 900.0).copied().collect();
                [unflagged, all].map(|observations| better(&observations, [0, 0], rules))
            }
            Shown::FailsLow => {
                let scene = Scene {
                    fails_low: Some((1, 0.3)),
                    ..QUIET
                };
                let observations = experiment(random, scene, &[0.0; 2], 12);
                let failed = 24 - observations.len();
                [0, failed].map(|failed| better(&observations, [failed, 0], rules))
            }
            Shown::WarmUps => {
                let series = series(random, 60);
                let cut = matches!(warm_up_end(&series), WarmUp::EndsAt(1..));
                [mser_5(&series) > 0, cut]
            }
        }
    }
}

fn until(observations: &[Observation], blocks: usize) -> Vec<Observation> {
    observations
        .iter()
        .filter(|one| one.block < blocks)
        .copied()
        .collect()
}

fn claims(observations: &[Observation], comparisons: &[Comparison], rules: Rules) -> bool {
    let found = decide(observations, comparisons, rules);
    found.iter().flatten().any(is_claimed)
}

/// Whether the second treatment is better than the first one; so many trials of either have failed,
/// the second one's first.
fn better(observations: &[Observation], failed: [usize; 2], rules: Rules) -> bool {
    let found = decide(observations, &to_first(2), rules).remove(0);
    found.is_some_and(|effect| effect.where_failed(failed[0], failed[1]).verdict == Verdict::Better)
}

/// The figure that decides has 3 % of effect, and another none; their noise is the same, as that of
/// throughput and of response times is.
fn beside(random: &mut Random, rules: Rules) -> [bool; 2] {
    let rule = StoppingRule {
        rules,
        blocks_min: 3,
        blocks_max: 18,
        may_be_futile: false,
    };
    let plan = Sequential::new(rule, &to_first(2)).expect("a plan");
    let other = experiment(random, QUIET, &[0.0; 2], 18);
    let deciding: Vec<Observation> = other
        .iter()
        .map(|one| Observation {
            value: one.value * if one.treatment == 1 { 1.03 } else { 1.0 },
            ..*one
        })
        .collect();
    let look = |observations: &[Observation], blocks: usize| {
        plan.look(Trials {
            observations,
            ended: &(0..blocks).collect::<Vec<usize>>(),
        })
    };
    let stop = (3..=18)
        .find(|blocks| look(&deciding, *blocks).done)
        .unwrap_or(18);
    let latest: Vec<Option<Effect>> = look(&other, stop).latest;
    [
        claims(&until(&other, stop), &to_first(2), rules),
        latest.iter().flatten().any(is_claimed),
    ]
}

/// Throughput of so many seconds, with noise of 5 % that remembers the second before.
fn series(random: &mut Random, seconds: usize) -> Vec<f64> {
    let mut noise = random.normal();
    let mut next = || {
        noise = 0.5 * noise + 0.75_f64.sqrt() * random.normal();
        1000.0 * (0.05 * noise).exp()
    };
    (0..seconds).map(|_| next()).collect()
}

/// Where a warm-up ends by MSER-5 (White, Cobb & Spratt 2000): the end that makes the standard
/// error of the mean of what is left least, of means of five.
#[expect(clippy::cast_precision_loss, reason = "numbers of seconds")]
fn mser_5(series: &[f64]) -> usize {
    let means: Vec<f64> = series
        .chunks_exact(5)
        .map(|five| five.iter().sum::<f64>() / 5.0)
        .collect();
    let error = |cut: &usize| {
        let left = &means[*cut..];
        let mean = left.iter().sum::<f64>() / left.len() as f64;
        left.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (left.len() as f64).powi(2)
    };
    let cuts = 0..=means.len() / 2;
    cuts.min_by(|a, b| error(a).total_cmp(&error(b))).unwrap_or(0) * 5
}
