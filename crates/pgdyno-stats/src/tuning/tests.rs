use super::*;
use crate::chance::normal;
use crate::matrix::count;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A response of three knobs that matter among twelve, with noise of 3 % and a best value of 0.5
/// (as a logarithm).
struct Made {
    space: Space,
    starts: Vec<Point>,
    noise: f64,
}

const KNOBS: usize = 12;
const LEVELS: usize = 5;
const BEST: f64 = 0.5;

/// `likely`: the level that the priors of the knobs that matter take for the best; it is the last
/// one.
fn made(likely: usize, noise: f64) -> Made {
    let level = |knob: usize, level: usize| SearchLevel {
        coordinate: Some(count(level) / count(LEVELS - 1)),
        prior: if level == if knob < 3 { likely } else { 0 } {
            4.0
        } else {
            1.0
        },
    };
    let knob = |knob: usize| Dimension {
        levels: (0..LEVELS).map(|of| level(knob, of)).collect(),
        relevance: 1.0,
    };
    Made {
        space: Space::new((0..KNOBS).map(knob).collect()).expect("a space"),
        starts: vec![vec![0; KNOBS]],
        noise,
    }
}

/// Knobs of two levels, of which the first is so many times likelier.
fn small(knobs: usize, likelier: f64) -> Made {
    let level = |prior| SearchLevel {
        coordinate: None,
        prior,
    };
    let knob = Dimension {
        levels: vec![level(likelier), level(1.0)],
        relevance: 1.0,
    };
    Made {
        space: Space::new(vec![knob; knobs]).expect("a space"),
        starts: Vec::new(),
        noise: 0.0,
    }
}

impl Made {
    fn truth(point: &[usize]) -> f64 {
        let of = |knob: usize| count(point[knob]) / count(LEVELS - 1);
        0.3 * of(0) + 0.15 * of(1) + 0.05 * of(2)
    }

    fn search<'a>(&'a self, method: SearchMethod, allowed: &'a dyn Fn(&[usize]) -> bool) -> Search<'a> {
        Search {
            space: &self.space,
            starts: &self.starts,
            allowed,
            method,
            seed: 7,
        }
    }

    /// The trials of a search; `value` is what one measures, without the noise.
    fn run(
        &self,
        search: &Search<'_>,
        trials: u32,
        value: impl Fn(&[usize]) -> Option<f64>,
    ) -> Vec<SearchTrial> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(search.seed);
        let mut done = Vec::new();
        for i in 0..trials {
            let block = i / 6;
            let Some(next) = search.next(&done, block) else {
                break;
            };
            let noise = self.noise * normal(&mut random);
            done.push(SearchTrial {
                value: value(&next.point).map(|value| value + noise),
                point: next.point,
                block,
                keeps_bounds: true,
                holds: true,
                ended_by_guard: false,
            });
        }
        done
    }
}

#[test]
fn search_begins_at_its_starts_and_stays_in_what_is_allowed() {
    let mut made = made(4, 0.03);
    made.starts.push(vec![4; KNOBS]);
    made.starts.push(vec![1; KNOBS]);
    for method in SearchMethod::ALL {
        let allowed = |point: &[usize]| point[0] + point[1] <= 4;
        let search = made.search(method, &allowed);
        let trials = made.run(&search, 20, |point| Some(Made::truth(point)));
        assert_eq!(trials.len(), 20, "{method:?}");
        // The second start is not allowed.
        assert_eq!(
            [&trials[0].point, &trials[1].point],
            [&made.starts[0], &made.starts[2]]
        );
        assert!(
            trials
                .iter()
                .all(|trial| allowed(&trial.point) && made.space.holds(&trial.point))
        );
        assert_eq!(
            trials,
            made.run(&search, 20, |point| Some(Made::truth(point))),
            "{method:?}"
        );
    }
}

#[test]
fn best_of_few_trials_is_near_the_best_there_is() {
    for (likely, least) in [(4, BEST - 0.05), (0, BEST - 0.1)] {
        let made = made(likely, 0.03);
        let mut near = 0;
        for seed in 0..10 {
            let search = Search {
                seed,
                ..made.search(SearchMethod::Process, &|_| true)
            };
            let trials = made.run(&search, 30, |point| Some(Made::truth(point)));
            let best = search.best(&trials).expect("trials");
            near += usize::from(Made::truth(&best.point) >= least);
        }
        assert!(near >= 9, "{near} of 10 where the priors favour {likely}");
    }
}

#[test]
fn knobs_that_matter_are_found() {
    let made = made(4, 0.01);
    let search = made.search(SearchMethod::Process, &|_| true);
    let trials = made.run(&search, 30, |point| Some(Made::truth(point)));
    let importance = search.importance(&trials).expect("trials");
    assert!((importance.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let most = importance.iter().copied().fold(0.0, f64::max);
    assert!(importance[0] >= most, "{importance:?}");
}

#[test]
fn what_fails_is_avoided() {
    let made = made(4, 0.01);
    let search = made.search(SearchMethod::Process, &|_| true);
    let fails = |point: &[usize]| point[0] == 4;
    let trials = made.run(&search, 30, |point| (!fails(point)).then(|| Made::truth(point)));
    let failed = trials.iter().filter(|trial| trial.value.is_none()).count();
    assert!(failed <= 6, "{failed} of 30");
    let best = search.best(&trials).expect("some did not fail");
    assert!(!fails(&best.point));
    // Whatever fails, there is something to try, and nothing is best.
    let trials = made.run(&search, 10, |_| None);
    assert_eq!((trials.len(), search.best(&trials)), (10, None));
}

#[test]
fn best_so_far_is_measured_again_in_another_block() {
    let made = made(4, 0.03);
    let search = made.search(SearchMethod::Process, &|_| true);
    let mut trials = made.run(&search, 6, |point| Some(Made::truth(point)));
    let best = search.best(&trials).expect("trials").point;
    assert_ne!(search.next(&trials, 0).expect("a point").reason, Reason::Again);
    let again = search.next(&trials, 1).expect("a point");
    assert_eq!((again.reason, &again.point), (Reason::Again, &best));
    trials.push(SearchTrial {
        point: again.point,
        value: Some(Made::truth(&best)),
        block: 1,
        keeps_bounds: true,
        holds: true,
        ended_by_guard: false,
    });
    assert_ne!(search.next(&trials, 1).expect("a point").reason, Reason::Again);
}

#[test]
fn space_that_is_used_up_is_measured_again_in_other_blocks() {
    let made = small(2, 1.0);
    for method in SearchMethod::ALL {
        let search = made.search(method, &|_| true);
        let trials = made.run(&search, 30, |point| Some(count(point[0])));
        // A block of six has no more than the four points.
        assert_eq!(trials.len(), 4, "{method:?}");
        let of_block = |block: u32| {
            let mut more = trials.clone();
            while let Some(next) = search.next(&more, block) {
                more.push(SearchTrial {
                    value: Some(count(next.point[0])),
                    point: next.point,
                    block,
                    keeps_bounds: true,
                    holds: true,
                    ended_by_guard: false,
                });
            }
            more
        };
        let mut points: Vec<Point> = of_block(1).into_iter().map(|trial| trial.point).collect();
        assert_eq!(points.len(), 8, "{method:?}");
        points.sort();
        assert!(
            points.chunks(2).all(|pair| pair[0] == pair[1]),
            "{method:?}: {points:?}"
        );
    }
}

#[test]
fn reference_that_failed_is_tried_once_more() {
    let made = made(4, 0.0);
    let search = made.search(SearchMethod::Process, &|_| true);
    let failed = |block: u32| SearchTrial {
        point: made.starts[0].clone(),
        value: None,
        block,
        keeps_bounds: true,
        holds: true,
        ended_by_guard: false,
    };
    let next = |trials: &[SearchTrial], block| search.next(trials, block).expect("a point").point;
    assert_ne!(next(&[failed(0)], 0), made.starts[0], "in its block");
    assert_eq!(next(&[failed(0)], 1), made.starts[0]);
    assert_ne!(next(&[failed(0), failed(1)], 2), made.starts[0]);
}

#[test]
fn trial_whose_figures_do_not_hold_is_not_repeated_in_its_block_and_says_nothing() {
    let made = made(4, 0.0);
    for method in SearchMethod::ALL {
        let search = made.search(method, &|_| true);
        let broken = |point: &[usize]| SearchTrial {
            point: point.to_vec(),
            value: Some(9.0),
            block: 0,
            keeps_bounds: true,
            holds: false,
            ended_by_guard: false,
        };
        let mut trials = vec![broken(&made.starts[0])];
        assert_eq!(search.best(&trials), None, "{method:?}");
        let next = search.next(&trials, 0).expect("a point");
        assert_ne!(next.point, made.starts[0], "{method:?}");
        let later = search.next(&trials, 1).expect("a point");
        assert_eq!(later.point, made.starts[0], "{method:?}: measured again");
        trials.push(SearchTrial {
            value: Some(0.1),
            keeps_bounds: true,
            holds: true,
            ..broken(&next.point)
        });
        assert_eq!(
            search.best(&trials).expect("one holds").point,
            next.point,
            "{method:?}"
        );
    }
}

#[test]
fn what_a_guard_has_ended_or_what_failed_is_not_repeated() {
    let made = small(2, 1.0);
    for method in SearchMethod::ALL {
        let search = made.search(method, &|_| true);
        let mut trials = made.run(&search, 30, |point| match point[0] {
            0 => None,
            _ => Some(count(point[1])),
        });
        let guarded = trials
            .iter()
            .position(|trial| trial.value.is_some())
            .expect("one");
        trials[guarded].ended_by_guard = true;
        let barred: Vec<Point> = trials
            .iter()
            .filter(|trial| trial.value.is_none() || trial.ended_by_guard)
            .map(|trial| trial.point.clone())
            .collect();
        let (first, mut repeated) = (trials.len(), 0);
        for block in 10..20 {
            while let Some(next) = search.next(&trials, block) {
                let is_reference = made.starts.first() == Some(&next.point);
                assert!(
                    is_reference || !barred.contains(&next.point),
                    "{method:?}: {next:?}"
                );
                repeated += 1;
                trials.push(SearchTrial {
                    value: Some(1.0),
                    point: next.point,
                    block,
                    keeps_bounds: true,
                    holds: true,
                    ended_by_guard: false,
                });
            }
        }
        assert!(repeated > 0 && trials.len() > first, "{method:?}");
    }
}

/// Chance rarely draws what the priors make unlikely four times over.
#[test]
fn small_space_is_tried_to_its_last_point() {
    let made = small(5, 9.0);
    for method in SearchMethod::ALL {
        let search = made.search(method, &|_| true);
        let trials = made.run(&search, 48, |point| Some(count(point[0])));
        let points: std::collections::BTreeSet<&Point> = trials.iter().map(|trial| &trial.point).collect();
        assert_eq!(points.len(), 32, "{method:?}");
    }
}
