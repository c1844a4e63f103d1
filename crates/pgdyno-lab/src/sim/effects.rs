//! Verdicts of whole simulated experiments, compared with the effects that were simulated.

use super::files::Case;
use super::tests::{Trouble, judged, kept};
use super::world::{Odds, Surface};
use pgdyno_stats::Verdict;

const EXPERIMENTS: u64 = 300;
/// The file's own: differences below it do not matter.
const SMALLEST: f64 = 0.02;
/// An effect of this size is ten times the noise of a trial.
const LARGE: f64 = 0.1;

/// The case of a file, with effects from -16 to 24 percent, or none where it compares the reference
/// with itself.
fn case(seed: u64) -> Case {
    let (design, steps) = match seed % 3 {
        0 => ("a-a", 0),
        1 => ("a-b", 1),
        _ => ("one-at-a-time", 3),
    };
    let stop = ["after-blocks", "when-decided", "when-gain-decided"][(seed / 3 % 3) as usize];
    let steps = (0..steps).map(|step| {
        format!(
            "[[step]]\nname = 's{step}'\n[step.settings]\nwork_mem = '{}MB'\n",
            8 + step
        )
    });
    let text = format!(
        "name = 'simulated'\nquestion = '?'\ndesign = '{design}'\nblocks = 8\nstop = '{stop}'\nseed = {seed}\n\
         [data]\nscale = 1\n[load]\nworkload = 'tpcb'\nclients = 4\nwarmup_s = 0\nmeasure_s = 1\n{}",
        steps.collect::<String>()
    );
    Case {
        odds: Odds {
            // Trials that are far off, most of them flagged.
            outlier: if seed.is_multiple_of(5) { 0.05 } else { 0.0 },
            ..Odds::default()
        },
        surface: Surface {
            tps: 1000.0,
            effect: 0.4,
            noise: 0.01,
            memory: 0.3,
            drift: 0.05,
        },
        ..Case::quiet(seed, text)
    }
}

/// What an experiment has found of its effects.
#[derive(Default)]
struct Found {
    wrong: bool,
    large: u32,
    large_found: u32,
}

fn found(seed: u64) -> Found {
    let ran = kept(&case(seed), Trouble::default()).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    let mut found = Found::default();
    for (treatment, effect) in ran.plan.treatments.iter().zip(judged(&ran).totals) {
        let Some(effect) = effect else { continue };
        let ratio = 1.0 + ran.world.effect(treatment);
        let is_same = (1.0 / (1.0 + SMALLEST)..=1.0 + SMALLEST).contains(&ratio);
        let is_right = match effect.verdict {
            Verdict::Better => ratio > 1.0,
            Verdict::Worse => ratio < 1.0,
            Verdict::Same => is_same,
            Verdict::NoGain => ratio < 1.0 + SMALLEST,
            Verdict::Undecided => true,
        };
        found.wrong |= !is_right;
        if (ratio - 1.0).abs() > LARGE && ran.world.odds.outlier == 0.0 {
            found.large += 1;
            found.large_found += u32::from(is_right && effect.verdict != Verdict::Undecided);
        }
    }
    found
}

#[test]
fn verdicts_agree_with_the_simulated_effects() {
    let (mut wrong, mut alarms, mut same) = (0, 0, 0);
    let (mut large, mut large_found) = (0, 0);
    for seed in 0..EXPERIMENTS {
        let found = found(seed);
        wrong += u32::from(found.wrong);
        if seed.is_multiple_of(3) {
            same += 1;
            alarms += u32::from(found.wrong);
        }
        large += found.large;
        large_found += found.large_found;
    }
    let all = u32::try_from(EXPERIMENTS).unwrap_or(u32::MAX);
    assert!(
        wrong * 20 <= all,
        "{wrong} of {all} experiments have a wrong verdict"
    );
    assert!(
        alarms * 20 <= same,
        "{alarms} of {same} experiments find what is not there"
    );
    assert!(large >= 100, "only {large} effects are large");
    assert!(
        large_found * 100 >= large * 98,
        "{large_found} of {large} large effects are found"
    );
}
