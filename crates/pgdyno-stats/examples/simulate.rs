//! Prints the tables of docs/explanation/statistics.md: how often the rules are wrong, and how soon they are right.
#![allow(clippy::print_stdout, reason = "the tables are what it is for")]

#[path = "../tests/simulator/mod.rs"]
mod simulator;

use pgdyno_stats::{FixedDesign, OutlierRule, Rules, Sequential, StoppingRule, looks_for};
use simulator::{Drift, QUIET, Scene, rough_scenes, tally, to_first};

const RULES: Rules = Rules {
    confidence: 0.95,
    smallest_effect: 0.02,
    larger_is_better: true,
};
const EXPERIMENTS: usize = 40_000;
/// Leaving trials out takes its time: a table of its own size.
const EXPERIMENTS_OF_ALL_KINDS: usize = 10_000;

fn main() {
    let mut scenes = vec![("quiet".to_owned(), QUIET)];
    scenes.extend(rough_scenes());
    let steep = Scene {
        drift: Drift::Linear(-0.02),
        ..QUIET
    };
    scenes.push(("linear drift of 2 % a trial".to_owned(), steep));
    false_alarms(&scenes);
    first_looks(&scenes);
    power();
}

fn plan(treatments: usize, looks: (usize, usize), outliers: bool) -> Sequential {
    let rule = StoppingRule {
        rules: RULES,
        blocks_min: looks.0,
        blocks_max: looks.1,
        outliers: outliers.then(OutlierRule::default),
    };
    let numbers: Vec<usize> = (0..treatments).collect();
    Sequential::new(rule, &numbers, &to_first(treatments)).expect("a rule that can be")
}

fn false_alarms(scenes: &[(String, Scene)]) {
    println!("| host | 2 treatments | outliers excluded | 6 treatments | outliers excluded |");
    println!("|---|---:|---:|---:|---:|");
    for (name, scene) in scenes {
        print!("| {name} |");
        for (treatments, first) in [(2, 5), (6, 3)] {
            for outliers in [false, true] {
                let plan = plan(treatments, (first, 30), outliers);
                let found = tally(
                    &plan,
                    *scene,
                    &vec![0.0; treatments],
                    30,
                    EXPERIMENTS_OF_ALL_KINDS,
                );
                print!(" {:.2} % |", found.percent(found.better_or_worse));
            }
        }
        println!();
    }
}

/// Two treatments: too early a first look trusts the host to have no drift.
fn first_looks(scenes: &[(String, Scene)]) {
    println!("\n| host | first look after 2 | 3 | 5 | 7 | 9 |");
    println!("|---|---:|---:|---:|---:|---:|");
    let last = scenes.len() - 1;
    for (name, scene) in [&scenes[1], &scenes[last]] {
        print!("| {name} |");
        for first in [2, 3, 5, 7, 9] {
            let found = tally(&plan(2, (first, 30), false), *scene, &[0.0; 2], 30, EXPERIMENTS);
            print!(" {:.2} % |", found.percent(found.better_or_worse));
        }
        println!();
    }
}

fn power() {
    println!(
        "\n| looks | found | median trials | mean trials | fixed trials for 90 % | median of them | fixed trials for as much | median of them |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let design = FixedDesign {
        treatments: 2,
        comparisons: 1,
        noise_floor: QUIET.noise.exp_m1(),
        rules: RULES,
    };
    let fixed = |power| 2 * design.blocks_needed(0.03, power).expect("few blocks");
    let nine = fixed(0.9);
    for looks in [
        looks_for(nine / 2),
        (7, 24),
        (7, 30),
        (5, 18),
        (5, 24),
        (5, 30),
        (3, 30),
    ] {
        let mut found = tally(
            &plan(2, looks, false),
            QUIET,
            &[0.0, 1.03_f64.ln()],
            looks.1,
            EXPERIMENTS,
        );
        let share = found.percent(found.better);
        let as_much = fixed(share / 100.0);
        let (median, mean) = (2 * found.median_blocks(), 2.0 * found.mean_blocks());
        println!(
            "| {} to {} | {share:.1} % | {median} | {mean:.1} | {nine} | {:.2} | {as_much} | {:.2} |",
            looks.0,
            looks.1,
            ratio(median, nine),
            ratio(median, as_much)
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}
