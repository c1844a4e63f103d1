//! How sure each look has to be, so that all looks together are wrong no more often than one: the
//! boundary of a group-sequential test for Student's t, computed and not looked up.
//!
//! The error allowed is spent over the blocks by the function of Hwang, Shih & DeCani (*Statistics
//! in Medicine* 9, 1990; γ = 1 is near Pocock's boundary, γ = -4 near O'Brien and Fleming's). What
//! a critical value spends is found by recursive integration as in Armitage, McPherson & Rowe
//! (1969) and Jennison & Turnbull, *Group Sequential Methods*, chapter 19, yet not for a normal
//! variable with a known spread. With t = tan θ · √(degrees of freedom), and no difference between
//! the treatments, θ after one more block depends on the past through θ alone: by Basu's theorem
//! the sum of squares is independent of all earlier t. So the recursion over θ is exact for
//! Student's t from the first look on, where a normal approximation has three degrees of freedom
//! against it.

use crate::matrix::count;
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::collections::BTreeMap;
use std::f64::consts::FRAC_PI_2;
use std::sync::{Mutex, PoisonError};

/// γ of the spending function. Found by simulation (docs/explanation/statistics.md): it stops early
/// enough where an effect is clear, and leaves enough for the last look.
pub(crate) const EARLY: f64 = 2.0;
/// The same where comparisons without a gain end by a bound of their own: what is left of the
/// trials is better spent later.
pub(crate) const EVENLY: f64 = 0.0;
/// Cells of the density of θ at each look. Twice as many move a level by less than a hundredth of
/// it.
const CELLS: usize = 400;
/// Steps of the integral over what a block adds.
const STEPS: usize = 48;
/// How many standard deviations the density of θ covers.
const REACH: f64 = 9.0;

/// The share of the error that is spent when `done` (0 to 1) of the blocks are.
fn spent(done: f64, gamma: f64) -> f64 {
    match gamma == 0.0 {
        true => done,
        false => (-gamma * done).exp_m1() / (-gamma).exp_m1(),
    }
}

/// Levels that were computed before, by what they depend on: they take milliseconds, and one
/// experiment is judged again and again.
static KNOWN: Mutex<BTreeMap<Of, Vec<f64>>> = Mutex::new(BTreeMap::new());
/// First look, last look, and the bits of the error and of γ.
type Of = (usize, usize, u64, u64);
/// More than that are forgotten: a vector has as many levels as there are looks.
const KNOWN_MAX: usize = 256;

/// The two-sided levels at which each look is to be judged, for looks after `first`, `first + 1`
/// ... `last` blocks; together they are wrong with probability `error`, spent with `gamma`. The
/// caller ensures 2 <= first <= last and 0 < error < 1.
pub(crate) fn levels(first: usize, last: usize, error: f64, gamma: f64) -> Vec<f64> {
    let of = (first, last, error.to_bits(), gamma.to_bits());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(levels) = known().get(&of) {
        return levels.clone();
    }
    let levels = computed(first, last, error, gamma);
    let mut known = known();
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(of, levels.clone());
    levels
}

fn computed(first: usize, last: usize, error: f64, gamma: f64) -> Vec<f64> {
    let mut density = Density::at(first);
    let mut so_far = 0.0;
    let mut all = Vec::with_capacity(last + 1 - first);
    for blocks in first..=last {
        let target = error * spent(count(blocks) / count(last), gamma);
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

/// The density of |θ| among the experiments that are still undecided after some blocks: masses of
/// equal cells from zero up.
struct Density {
    blocks: usize,
    cell: f64,
    masses: Vec<f64>,
}

impl Density {
    /// Before anything is decided: the density of θ is proportional to cos^(df-1) θ.
    fn at(blocks: usize) -> Density {
        let mut density = Density::empty(blocks);
        let power = density.degrees_of_freedom() - 1.0;
        for i in 0..CELLS {
            density.masses[i] = density.middle(i).cos().powf(power);
        }
        let total: f64 = density.masses.iter().sum();
        density.masses.iter_mut().for_each(|mass| *mass /= total);
        density
    }

    fn empty(blocks: usize) -> Density {
        let degrees_of_freedom = count(blocks - 1);
        let reach = (REACH / degrees_of_freedom.sqrt()).min(FRAC_PI_2);
        Density {
            blocks,
            cell: reach / count(CELLS),
            masses: vec![0.0; CELLS],
        }
    }

    fn degrees_of_freedom(&self) -> f64 {
        count(self.blocks - 1)
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

    /// After one more block. Let c be sin θ, S the sum of the differences and R the sum of their
    /// squares: S = c·√(n·R). The block adds x to S, and x² to R. (√R, x) has a random direction,
    /// so that S' / √R' = c·√n·cos a + sin a, where the density of the angle a is proportional to
    /// cos^(n-1) a.
    fn next(&self) -> Density {
        let mut next = Density::empty(self.blocks + 1);
        let own = angles(self.degrees_of_freedom());
        let (n, further) = (count(self.blocks).sqrt(), count(self.blocks + 1).sqrt());
        for (i, &mass) in self.masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            let sum = self.middle(i).sin() * n;
            for &(sine, cosine, weight) in &own {
                let sine = (sum * cosine + sine) / further;
                next.put(sine.clamp(-1.0, 1.0).asin().abs(), mass * weight);
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

/// Sines and cosines of angles with weights proportional to cos^power, as far as a normal variable
/// with the same peak reaches.
fn angles(power: f64) -> Vec<(f64, f64, f64)> {
    let reach = (REACH / power.sqrt()).min(FRAC_PI_2);
    let step = 2.0 * reach / count(STEPS);
    let weighted = |i: usize| {
        let (sine, cosine) = ((count(i) + 0.5) * step - reach).sin_cos();
        (sine, cosine, cosine.powf(power))
    };
    let mut all: Vec<(f64, f64, f64)> = (0..STEPS).map(weighted).collect();
    let total: f64 = all.iter().map(|(.., weight)| weight).sum();
    all.iter_mut().for_each(|(.., weight)| *weight /= total);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_look_has_the_whole_error() {
        for blocks in [2, 3, 12, 30, 500] {
            let found = levels(blocks, blocks, 0.05, EARLY)[0];
            assert!((found / 0.05 - 1.0).abs() < 2e-3, "{blocks}: {found}");
        }
    }

    /// The last level is between what is left to spend and the whole, and all of them together are
    /// more than the error, for looks have much in common.
    #[test]
    fn looks_share_the_error() {
        for (first, last) in [(3, 30), (7, 18), (2, 10)] {
            let found = levels(first, last, 0.05, EARLY);
            assert_eq!(found.len(), last + 1 - first);
            let sum: f64 = found.iter().sum();
            assert!(
                sum > 0.05 && found.iter().all(|&level| level > 0.0 && level < 0.05),
                "{found:?}"
            );
            assert!((found[0] / (0.05 * spent(count(first) / count(last), EARLY)) - 1.0).abs() < 5e-3);
        }
    }

    /// Nothing is lost on the way: the density after many blocks without looks is that of Student's
    /// t then.
    #[test]
    fn the_recursion_keeps_the_distribution() {
        let mut density = Density::at(3);
        for _ in 3..20 {
            density = density.next();
        }
        let freedom = density.degrees_of_freedom();
        for tail in [0.05, 0.01, 0.001] {
            let mut copy = Density::empty(20);
            copy.masses.clone_from(&density.masses);
            let found = level(copy.cut(tail), freedom);
            assert!((found / tail - 1.0).abs() < 0.02, "{tail}: {found}");
        }
    }
}
