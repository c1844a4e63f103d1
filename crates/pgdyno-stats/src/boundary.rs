//! How sure each look has to be, so that all looks together are wrong no more often than one: the boundary of a
//! group-sequential test for Student's t, computed and not looked up.
//!
//! The error allowed is spent over the blocks by the function of Hwang, Shih & DeCani (*Statistics in Medicine* 9,
//! 1990; γ = 1 is near Pocock's boundary, γ = -4 near O'Brien and Fleming's). What a critical value spends is found by
//! recursive integration as in Armitage, McPherson & Rowe (1969) and Jennison & Turnbull, *Group Sequential Methods*,
//! chapter 19, yet not for a normal variable with a known spread. With t = tan θ · √(degrees of freedom), and no
//! difference between the treatments, θ after one more block depends on the past through θ alone: by Basu's theorem
//! the sum of squares is independent of all earlier t. So the recursion over θ is exact for Student's t from the
//! first look on, where a normal approximation has three degrees of freedom against it.

use crate::matrix::count;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;
use std::sync::{Mutex, PoisonError};

/// γ of the spending function. Found by simulation (docs/explanation/statistics.md): it stops early enough where an effect is
/// clear, and leaves enough for the last look.
const GAMMA: f64 = 2.0;
/// Cells of the density of θ at each look. Twice as many move a level by less than a hundredth of it.
const CELLS: usize = 400;
/// Steps of the integrals over a block's own part and over that of the other treatments.
const STEPS: usize = 48;
const STEPS_OTHERS: usize = 16;
/// How many standard deviations the density of θ covers, and the integral over the others.
const REACH: f64 = 9.0;
const REACH_OTHERS: f64 = 5.0;

/// The share of the error that is spent when `done` (0 to 1) of the blocks are.
fn spent(done: f64) -> f64 {
    (-GAMMA * done).exp_m1() / (-GAMMA).exp_m1()
}

/// Levels that were computed before, by what they depend on: they take milliseconds, and one experiment is judged again and again.
static KNOWN: Mutex<BTreeMap<Of, Vec<f64>>> = Mutex::new(BTreeMap::new());
/// First look, last look, treatments, and the bits of the error.
type Of = (usize, usize, usize, u64);
/// More than that are forgotten: a vector has as many levels as there are looks.
const KNOWN_MAX: usize = 256;

/// The two-sided levels at which each look is to be judged, for looks after `first`, `first + 1` ... `last` blocks of
/// `treatments` treatments each; together they are wrong with probability `error`. The caller ensures
/// 2 <= first <= last, treatments >= 2 and 0 < error < 1.
pub(crate) fn levels(first: usize, last: usize, treatments: usize, error: f64) -> Vec<f64> {
    let of = (first, last, treatments, error.to_bits());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(levels) = known().get(&of) {
        return levels.clone();
    }
    let levels = computed(first, last, treatments, error);
    let mut known = known();
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(of, levels.clone());
    levels
}

fn computed(first: usize, last: usize, treatments: usize, error: f64) -> Vec<f64> {
    let mut density = Density::at(first, treatments);
    let mut so_far = 0.0;
    let mut all = Vec::with_capacity(last + 1 - first);
    for blocks in first..=last {
        let target = error * spent(count(blocks) / count(last));
        let critical = density.cut(target - so_far);
        so_far = target;
        all.push(level(critical, density.degrees_of_freedom()));
        if blocks < last {
            density = density.next();
        }
    }
    all
}

/// The two-sided level of Student's t at tan θ · √df.
fn level(theta: f64, degrees_of_freedom: f64) -> f64 {
    let t = theta.tan() * degrees_of_freedom.sqrt();
    StudentsT::new(0.0, 1.0, degrees_of_freedom).map_or(0.0, |student| 2.0 * student.sf(t))
}

/// The density of |θ| among the experiments that are still undecided after some blocks: masses of equal cells
/// from zero up.
struct Density {
    blocks: usize,
    treatments: usize,
    cell: f64,
    masses: Vec<f64>,
}

impl Density {
    /// Before anything is decided: the density of θ is proportional to cos^(df-1) θ.
    fn at(blocks: usize, treatments: usize) -> Density {
        let mut density = Density::empty(blocks, treatments);
        let power = density.degrees_of_freedom() - 1.0;
        for i in 0..CELLS {
            density.masses[i] = density.middle(i).cos().powf(power);
        }
        let total: f64 = density.masses.iter().sum();
        density.masses.iter_mut().for_each(|mass| *mass /= total);
        density
    }

    fn empty(blocks: usize, treatments: usize) -> Density {
        let degrees_of_freedom = count((blocks - 1) * (treatments - 1));
        let reach = (REACH / degrees_of_freedom.sqrt()).min(FRAC_PI_2);
        Density {
            blocks,
            treatments,
            cell: reach / count(CELLS),
            masses: vec![0.0; CELLS],
        }
    }

    fn degrees_of_freedom(&self) -> f64 {
        count((self.blocks - 1) * (self.treatments - 1))
    }

    fn middle(&self, cell: usize) -> f64 {
        (count(cell) + 0.5) * self.cell
    }

    /// Takes the mass `decided` off the far end, and returns the θ where that begins.
    fn cut(&mut self, decided: f64) -> f64 {
        let mut left = decided;
        for i in (0..CELLS).rev() {
            if self.masses[i] > left {
                let share = left / self.masses[i];
                self.masses[i] -= left;
                return (count(i) + 1.0 - share) * self.cell;
            }
            left -= self.masses[i];
            self.masses[i] = 0.0;
        }
        0.0
    }

    /// After one more block. Let c be sin θ, S the sum of the differences and R the sum of all squares: S = c·√(n·R).
    /// The block adds x to S, and to R x² and the squares of the other treatments. (√R, x, the others) has a random
    /// direction, so that S' / √R' = c·√n·cos a·cos b + sin a, where the angles have densities proportional to
    /// cos^(ν+k-3) a and cos^(ν-1) b · sin^(k-3) b; ν is the degrees of freedom of R, k the number of treatments.
    fn next(&self) -> Density {
        let mut next = Density::empty(self.blocks + 1, self.treatments);
        let of_sum = self.degrees_of_freedom() + 1.0;
        let others = count(self.treatments) - 2.0;
        let own = angles((-REACH, REACH), of_sum + others - 1.0, 0.0, STEPS);
        let rest = match self.treatments {
            2 => vec![(0.0, 1.0)],
            _ => angles((0.0, REACH_OTHERS), of_sum - 1.0, others - 1.0, STEPS_OTHERS),
        };
        let own: Vec<(f64, f64, f64)> = own.iter().map(|&(a, w)| (a.sin(), a.cos(), w)).collect();
        let (n, further) = (count(self.blocks).sqrt(), count(self.blocks + 1).sqrt());
        for (i, &mass) in self.masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            let sum = self.middle(i).sin() * n;
            for &(b, share) in &rest {
                let (sum, mass) = (sum * b.cos(), mass * share);
                for &(sine, cosine, weight) in &own {
                    let sine = (sum * cosine + sine) / further;
                    next.put(sine.clamp(-1.0, 1.0).asin().abs(), mass * weight);
                }
            }
        }
        next
    }

    /// Shares a mass out between the two cells next to it, so that its mean stays where it is.
    fn put(&mut self, theta: f64, mass: f64) {
        let place = theta / self.cell - 0.5;
        let low = place.floor();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the cells, or beyond them and kept at the border"
        )]
        let (i, upper) = (low.max(0.0) as usize, place - low);
        let i = i.min(CELLS - 1);
        let j = if low < 0.0 { 0 } else { (i + 1).min(CELLS - 1) };
        self.masses[i] += mass * (1.0 - upper);
        self.masses[j] += mass * upper;
    }
}

/// Angles with weights proportional to cos^p · sin^q, between bounds in standard deviations of a normal variable that has
/// the same peak.
fn angles(bounds: (f64, f64), cosine_power: f64, sine_power: f64, steps: usize) -> Vec<(f64, f64)> {
    let beyond = sine_power.max(0.0).sqrt();
    let angle = |bound: f64| {
        let reach = (bound.abs() + beyond) / cosine_power.max(1.0).sqrt();
        reach.min(FRAC_PI_2) * bound.signum()
    };
    let from = if bounds.0 == 0.0 { 0.0 } else { angle(bounds.0) };
    let step = (angle(bounds.1) - from) / count(steps);
    let mut all: Vec<(f64, f64)> = (0..steps)
        .map(|i| {
            let angle = from + (count(i) + 0.5) * step;
            (
                angle,
                angle.cos().powf(cosine_power) * angle.sin().abs().powf(sine_power),
            )
        })
        .collect();
    let total: f64 = all.iter().map(|(_, weight)| weight).sum();
    all.iter_mut().for_each(|(_, weight)| *weight /= total);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_look_has_the_whole_error() {
        for (blocks, treatments) in [(2, 2), (3, 2), (12, 2), (3, 6), (30, 6), (500, 2)] {
            let found = levels(blocks, blocks, treatments, 0.05)[0];
            assert!(
                (found / 0.05 - 1.0).abs() < 2e-3,
                "{blocks} {treatments}: {found}"
            );
        }
    }

    /// The last level lies between what is left to spend and the whole, and all of them together are more than the
    /// error, for looks have much in common.
    #[test]
    fn looks_share_the_error() {
        for (first, last, treatments) in [(3, 30, 2), (7, 18, 2), (3, 30, 6), (2, 10, 20)] {
            let found = levels(first, last, treatments, 0.05);
            assert_eq!(found.len(), last + 1 - first);
            let sum: f64 = found.iter().sum();
            assert!(
                sum > 0.05 && found.iter().all(|&level| level > 0.0 && level < 0.05),
                "{found:?}"
            );
            assert!((found[0] / (0.05 * spent(count(first) / count(last))) - 1.0).abs() < 5e-3);
        }
    }

    /// Nothing is lost on the way: the density after many blocks without looks is that of Student's t then.
    #[test]
    fn the_recursion_keeps_the_distribution() {
        for treatments in [2, 3, 6] {
            let mut density = Density::at(3, treatments);
            for _ in 3..20 {
                density = density.next();
            }
            let freedom = density.degrees_of_freedom();
            for tail in [0.05, 0.01, 0.001] {
                let mut copy = Density::empty(20, treatments);
                copy.masses.clone_from(&density.masses);
                let found = level(copy.cut(tail), freedom);
                assert!((found / tail - 1.0).abs() < 0.02, "{treatments} {tail}: {found}");
            }
        }
    }
}
