//! Prints the tables of docs/explanation/statistics.md: how often the rules are wrong, and how soon
//! they are right. Names of some as arguments print those alone.
#![allow(clippy::print_stdout, reason = "the tables are what it is for")]

#[path = "../tests/simulator/mod.rs"]
mod simulator;

use pgdyno_stats::{FixedDesign, Rules, Sequential, StoppingRule, Verdict, looks_for};
use simulator::ladders::{ASKED, covered, ladders, winners};
use simulator::shown::Shown;
use simulator::slices::{BLOCKED, Slices, switched, switched_scenes};
use simulator::{
    Drift, QUIET, Random, Scene, effects_of_factors, experiment, fixed_blocks, is_claimed, rough_scenes,
    tally, tally_of, tally_until_decided, to_first, unequal_scenes,
};

const RULES: Rules = Rules {
    confidence: 0.95,
    smallest_effect: 0.02,
    larger_is_better: true,
};
const EXPERIMENTS: usize = 40_000;
/// Six treatments take their time: tables of their own size.
const EXPERIMENTS_OF_SIX: usize = 10_000;

fn main() {
    let mut scenes = vec![("quiet".to_owned(), QUIET)];
    scenes.extend(rough_scenes());
    let steep = Scene {
        drift: Drift::Linear(-0.02),
        ..QUIET
    };
    scenes.push(("linear drift of 2 % a trial".to_owned(), steep));
    let tables: [(&str, &dyn Fn()); 9] = [
        ("false-alarms", &|| false_alarms(&scenes)),
        ("unequal", &unequal),
        ("factors", &factors),
        ("shown", &shown),
        ("first-looks", &|| first_looks(&scenes)),
        ("power", &power),
        ("futility", &futility),
        ("switchback", &switchback),
        ("capacity", &capacity),
    ];
    let asked: Vec<String> = std::env::args().skip(1).collect();
    for name in &asked {
        let known = tables.map(|(name, _)| name).join(", ");
        assert!(
            known.split(", ").any(|one| one == name),
            "{name}: expected of {known}"
        );
    }
    for (name, table) in tables {
        if asked.is_empty() || asked.iter().any(|one| one == name) {
            table();
        }
    }
}

/// Treatments that take turns within a load, beside trials of their own: false alarms, and how soon
/// an effect of 3 % is found.
fn switchback() {
    println!("\n| host | treatments | design | looks | false alarms | 3 % found | after, s |");
    println!("|---|---:|---|---:|---:|---:|---:|");
    for (name, slices) in switched_scenes() {
        let blocked = Slices {
            rho: slices.rho,
            walk: slices.walk,
            checkpoint: slices.checkpoint,
            carry_s: slices.carry_s,
            ..BLOCKED
        };
        let often = Slices { rounds: 1, ..slices };
        for treatments in [2, 4] {
            for (design, slices, looks) in [
                ("four turns a block", slices, (7, 18)),
                ("one turn a block", often, (18, 46)),
                ("trials of their own", blocked, (7, 18)),
            ] {
                let plan = plan(treatments, looks);
                let run = |effects: &[f64]| {
                    tally_of(&plan, looks.1, EXPERIMENTS_OF_SIX, |random| {
                        switched(random, &slices, effects, looks.1)
                    })
                };
                let same = run(&vec![0.0; treatments]);
                let mut effects = vec![0.0; treatments];
                effects[1] = 0.03_f64.ln_1p();
                let better = run(&effects);
                #[expect(clippy::cast_precision_loss, reason = "seconds of a block")]
                let block_s = slices.block_s(treatments) as f64;
                println!(
                    "| {name} | {treatments} | {design} | {} to {} | {:.2} % | {:.1} % | {:.0} |",
                    looks.0,
                    looks.1,
                    same.percent(same.better_or_worse),
                    better.percent(better.better),
                    block_s * better.mean_first()
                );
            }
        }
    }
}

/// Ladders of CPUs: how often the CPUs needed are in their interval, and how often that has an
/// upper bound.
fn capacity() {
    const LADDERS: u32 = 2000;
    println!(
        "\n| law and host | 0.45 of the largest | 0.8 | 1.25 | 3 | best clients: mean of all | by other blocks |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for ladder in ladders() {
        print!("| {} |", ladder.name);
        for times in ASKED {
            let found = covered(&ladder, times, LADDERS);
            let percent = |n: u32| 100.0 * f64::from(n) / f64::from(found.ladders);
            print!(
                " {:.1} % ({:.0} %) |",
                percent(found.held),
                percent(found.bounded)
            );
        }
        let (naive, own) = winners(&ladder, LADDERS);
        println!(" {:+.2} % | {:+.2} % |", 100.0 * naive, 100.0 * own);
    }
}

fn plan(treatments: usize, looks: (usize, usize)) -> Sequential {
    let rule = StoppingRule {
        rules: RULES,
        blocks_min: looks.0,
        blocks_max: looks.1,
        may_be_futile: false,
    };
    Sequential::new(rule, &to_first(treatments)).expect("a rule that can be")
}

/// Trials until all is decided, where decided treatments are not tried again; with and without the
/// verdict "no gain".
fn futility() {
    println!(
        "\n| treatments | looks | ends with \"no gain\" | 3 % found | trials | of a fixed design | without an effect: false alarms | trials | of the same fixed design |"
    );
    println!("|---:|---|---|---:|---:|---:|---:|---:|---:|");
    let rules = Rules {
        smallest_effect: 0.03,
        ..RULES
    };
    for (treatments, looks) in [(2, (7, 18)), (2, (4, 18)), (4, (5, 24)), (6, (6, 27))] {
        for may_be_futile in [false, true] {
            let rule = StoppingRule {
                rules,
                blocks_min: looks.0,
                blocks_max: looks.1,
                may_be_futile,
            };
            let plan = Sequential::new(rule, &to_first(treatments)).expect("a rule that can be");
            let run = |effects: &[f64]| tally_until_decided(&plan, looks, QUIET, effects, EXPERIMENTS_OF_SIX);
            let mut effects = vec![0.0; treatments];
            let none = run(&effects);
            effects[1] = 0.03_f64.ln_1p();
            let one = run(&effects);
            let found = one.percent(one.better);
            #[expect(clippy::cast_precision_loss, reason = "a count of treatments")]
            let fixed = treatments as f64 * fixed_blocks(treatments, 0.03, rules, found);
            println!(
                "| {treatments} | {} to {} | {} | {found:.1} % | {:.1} | {:.2} | {:.2} % | {:.1} | {:.2} |",
                looks.0,
                looks.1,
                if may_be_futile { "yes" } else { "no" },
                one.mean_trials(),
                one.mean_trials() / fixed,
                none.percent(none.better_or_worse),
                none.mean_trials(),
                none.mean_trials() / fixed
            );
        }
    }
}

fn false_alarms(scenes: &[(String, Scene)]) {
    println!("| host | 2 treatments | 6 treatments |");
    println!("|---|---:|---:|");
    for (name, scene) in scenes {
        print!("| {name} |");
        for (treatments, first) in [(2, 5), (6, 3)] {
            let plan = plan(treatments, (first, 30));
            let found = tally(&plan, *scene, &vec![0.0; treatments], 30, EXPERIMENTS_OF_SIX);
            print!(" {:.2} % |", found.percent(found.better_or_worse));
        }
        println!();
    }
}

/// Noise that is not the same for all treatments: false alarms, and how often 3 % more of the third
/// treatment is found.
fn unequal() {
    println!(
        "\n| noise | 6 treatments, looks 3 to 30 | 7, 3 blocks | 3, looks 5 to 18 | 3 % found in 12 blocks |"
    );
    println!("|---|---:|---:|---:|---:|");
    let mut scenes = vec![("the same for all", QUIET)];
    scenes.extend(unequal_scenes());
    let mut effects = [0.0; 6];
    effects[2] = 1.03_f64.ln();
    for (name, scene) in scenes {
        print!("| {name} |");
        for (treatments, looks, experiments) in [
            (6, (3, 30), EXPERIMENTS_OF_SIX),
            (7, (3, 3), EXPERIMENTS),
            (3, (5, 18), EXPERIMENTS),
        ] {
            let plan = plan(treatments, looks);
            let found = tally(&plan, scene, &vec![0.0; treatments], looks.1, experiments);
            print!(" {:.2} % |", found.percent(found.better_or_worse));
        }
        let mut random = Random::new(11);
        let better = (0..EXPERIMENTS_OF_SIX).filter(|_| {
            let observations = experiment(&mut random, scene, &effects, 12);
            let found = pgdyno_stats::decide(&observations, &to_first(6), RULES);
            found[1].is_some_and(|effect| effect.verdict == Verdict::Better)
        });
        println!(" {:.1} % |", 100.0 * ratio(better.count(), EXPERIMENTS_OF_SIX));
    }
}

/// Effects of factors and of pairs of them: false alarms, and how often 3 % more of a level of the
/// first factor is found.
fn factors() {
    println!(
        "\n| noise | 2 x 2, 4 blocks | 2 x 3, 6 blocks | 2 x 2 x 2, 10 blocks | 3 % found, 2 x 2, 6 blocks |"
    );
    println!("|---|---:|---:|---:|---:|");
    let mut scenes = vec![("the same for all", QUIET)];
    scenes.extend(unequal_scenes());
    for (name, scene) in scenes {
        let mut random = Random::new(13);
        print!("| {name} |");
        for (sizes, blocks) in [(&[2, 2][..], 4), (&[2, 3], 6), (&[2, 2, 2], 10)] {
            let alarms = (0..EXPERIMENTS).filter(|_| {
                let found = effects_of_factors(&mut random, (scene, sizes, blocks), 0.0, RULES);
                found.iter().any(is_claimed)
            });
            print!(" {:.2} % |", 100.0 * ratio(alarms.count(), EXPERIMENTS));
        }
        let found = (0..EXPERIMENTS_OF_SIX).filter(|_| {
            let found = effects_of_factors(&mut random, (scene, &[2, 2], 6), 1.03_f64.ln(), RULES);
            found
                .first()
                .is_some_and(|effect| effect.verdict == Verdict::Better)
        });
        println!(" {:.1} % |", 100.0 * ratio(found.count(), EXPERIMENTS_OF_SIX));
    }
}

/// What is shown before or beside the verdict that decides: how often it is wrong.
fn shown() {
    println!("\n| what is shown | wrong before | now |");
    println!("|---|---:|---:|");
    for (name, shown) in Shown::ALL {
        let wrong = shown.wrong(EXPERIMENTS_OF_SIX, 17, RULES);
        let percent = wrong.map(|wrong| 100.0 * ratio(wrong, EXPERIMENTS_OF_SIX));
        println!("| {name} | {:.2} % | {:.2} % |", percent[0], percent[1]);
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
            let found = tally(&plan(2, (first, 30)), *scene, &[0.0; 2], 30, EXPERIMENTS);
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
            &plan(2, looks),
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
