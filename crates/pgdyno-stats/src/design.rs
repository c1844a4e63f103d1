//! Designs of experiments as matrices of levels: which treatments to try, given how many levels
//! each factor has.
//!
//! Level 0 of a factor is its reference, and the first treatment of each design is the reference of
//! all factors. Which treatments cannot be had (two settings that exclude one another) is known to
//! the caller, who excludes them; designs of two levels are then no longer orthogonal. Fractions
//! are in `fraction.rs`.

use crate::fraction;

/// Treatments as rows, factors as columns, numbers of levels (from 0) in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// A row for each treatment, in which each factor has the number of its level.
    pub treatments: Vec<Vec<usize>>,
    /// Length of the shortest effect-word that cannot be distinguished from nothing, for designs
    /// that are fractions of all combinations: 3 = main effects are mixed with interactions of two
    /// factors, 4 = interactions of two factors with one another, 5 = with those of three. `None`:
    /// all combinations, or not a design of that kind.
    pub resolution: Option<usize>,
}

/// Why a design cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// No factor was given.
    #[error("a design needs at least one factor")]
    NoFactor,
    /// A factor with fewer than two levels, which cannot vary.
    #[error("factor {factor} (from 0) has {levels} level, expected 2 or more: leave it out")]
    TooFewLevels {
        /// Place among the factors given, from 0.
        factor: usize,
        /// How many levels it has: 0 or 1.
        levels: usize,
    },
    /// All combinations are more treatments than the caller allows.
    #[error(
        "all combinations are {treatments} treatments and the limit is {limit}: fewer factors or levels, or a fraction"
    )]
    TooManyTreatments {
        /// Number of all combinations; the largest number there is where it cannot be counted.
        treatments: usize,
        /// Most treatments that the caller allows.
        limit: usize,
    },
    /// More factors than a screening design or a fraction has columns for.
    #[error("a design of this kind has at most {limit} factors and there are {factors}")]
    TooManyFactors {
        /// How many factors were given.
        factors: usize,
        /// Most factors of this kind of design.
        limit: usize,
    },
    /// No fraction of this size keeps main effects apart from interactions of two factors.
    #[error(
        "{factors} factors need a fraction of {needed} treatments or more (a power of two up to 64) and {treatments} were asked for"
    )]
    NoSuchFraction {
        /// How many factors were given.
        factors: usize,
        /// How many treatments were asked for.
        treatments: usize,
        /// Fewest treatments with resolution IV.
        needed: usize,
    },
}

/// Most treatments of a Plackett-Burman design made here, without its mirror image.
const LARGEST_SCREENING: usize = 48;

/// The reference, then each other level of each factor alone. `levels`: how many each factor has.
pub fn one_at_a_time(levels: &[usize]) -> Result<Design, DesignError> {
    checked(levels)?;
    let reference = vec![0; levels.len()];
    let others = levels.iter().enumerate().flat_map(|(factor, &levels)| {
        let reference = reference.clone();
        (1..levels).map(move |level| {
            let mut row = reference.clone();
            row[factor] = level;
            row
        })
    });
    Ok(Design {
        treatments: std::iter::once(reference.clone()).chain(others).collect(),
        resolution: None,
    })
}

/// All combinations, the last factor changing fastest; an error where there are more than `limit`.
pub fn full_factorial(levels: &[usize], limit: usize) -> Result<Design, DesignError> {
    checked(levels)?;
    let treatments = levels
        .iter()
        .try_fold(1_usize, |all, &levels| all.checked_mul(levels))
        .unwrap_or(usize::MAX);
    if treatments > limit {
        return Err(DesignError::TooManyTreatments { treatments, limit });
    }
    let rows = (0..treatments).map(|number| {
        let mut rest = number;
        let mut row: Vec<usize> = levels
            .iter()
            .rev()
            .map(|&levels| {
                let level = rest % levels;
                rest /= levels;
                level
            })
            .collect();
        row.reverse();
        row
    });
    Ok(Design {
        treatments: rows.collect(),
        resolution: None,
    })
}

/// Two levels, up to 47 factors in the next multiple of four of treatments (source: Plackett &
/// Burman 1946, *Biometrika* 33, 305-325): for main effects only, each of which is mixed a little
/// with many interactions.
///
/// `foldover` appends the mirror image (every level exchanged): twice the treatments, and main
/// effects are free of interactions of two factors (source: Box & Wilson 1951, *J. R. Stat. Soc. B*
/// 13, 1-45). The matrices are Hadamard's, by Paley's two constructions and doubling (source: Paley
/// 1933, *J. Math. Phys.* 12, 311-320), so they may differ from printed tables in the order of rows
/// and columns.
pub fn plackett_burman(factors: usize, foldover: bool) -> Result<Design, DesignError> {
    if factors == 0 {
        return Err(DesignError::NoFactor);
    }
    let too_many = DesignError::TooManyFactors {
        factors,
        limit: LARGEST_SCREENING - 1,
    };
    if factors >= LARGEST_SCREENING {
        return Err(too_many);
    }
    let runs = (factors + 1).next_multiple_of(4);
    let matrix = hadamard(runs).ok_or(too_many)?;
    // The first column is the mean of all; 1 is level 0.
    let mut treatments: Vec<Vec<usize>> = matrix
        .iter()
        .map(|row| {
            row[1..=factors]
                .iter()
                .map(|&entry| usize::from(entry < 0))
                .collect()
        })
        .collect();
    if foldover {
        let mirrored: Vec<Vec<usize>> = treatments
            .iter()
            .map(|row| row.iter().map(|level| 1 - level).collect())
            .collect();
        treatments.extend(mirrored);
    }
    Ok(Design {
        treatments,
        resolution: Some(if foldover { 4 } else { 3 }),
    })
}

/// What a fraction of all combinations is made of, and what it cannot distinguish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fraction {
    /// The treatments and their resolution.
    pub design: Design,
    /// How many factors, the first ones, take all their combinations.
    pub basic_factors: usize,
    /// (factor, the basic factors whose levels make its own: the sum of their numbers modulo 2),
    /// for all others.
    pub generators: Vec<(usize, Vec<usize>)>,
    /// Main effects and interactions of two factors that cannot be distinguished: each set is a
    /// list of effects, each effect a list of one or two factors. What is in no set is
    /// distinguished from all of its kind.
    pub aliases: Vec<Vec<Vec<usize>>>,
}

/// A fraction of the combinations of `factors` factors of two levels in `treatments` treatments (4,
/// 8 .. 64), of resolution IV or more. As many treatments as combinations, or more, give all
/// combinations once.
pub fn fractional_factorial(factors: usize, treatments: usize) -> Result<Fraction, DesignError> {
    if factors == 0 {
        return Err(DesignError::NoFactor);
    }
    let limit = fraction::LARGEST / 2;
    if factors > limit {
        return Err(DesignError::TooManyFactors { factors, limit });
    }
    let usable = treatments.is_power_of_two() && (4..=fraction::LARGEST).contains(&treatments);
    let columns = usable.then(|| fraction::columns(factors, treatments)).flatten();
    let columns = columns.ok_or(DesignError::NoSuchFraction {
        factors,
        treatments,
        needed: fraction::fewest_treatments(factors),
    })?;
    let basic_factors = columns.iter().filter(|column| column.count_ones() == 1).count();
    let rows = (0..1_u32 << basic_factors).map(|run| {
        columns
            .iter()
            .map(|column| usize::from((column & run).count_ones() % 2 == 1))
            .collect()
    });
    let generators = columns
        .iter()
        .enumerate()
        .skip(basic_factors)
        .map(|(factor, &column)| {
            let made_of = (0..basic_factors).filter(|basic| column >> basic & 1 == 1);
            (factor, made_of.collect())
        });
    Ok(Fraction {
        design: Design {
            treatments: rows.collect(),
            resolution: fraction::resolution(&columns),
        },
        basic_factors,
        generators: generators.collect(),
        aliases: fraction::aliases(&columns),
    })
}

fn checked(levels: &[usize]) -> Result<(), DesignError> {
    if levels.is_empty() {
        return Err(DesignError::NoFactor);
    }
    match levels.iter().position(|&levels| levels < 2) {
        Some(factor) => Err(DesignError::TooFewLevels {
            factor,
            levels: levels[factor],
        }),
        None => Ok(()),
    }
}

/// A matrix of 1 and -1 with orthogonal columns, the first row and column all 1; `None` where no
/// construction below makes one of `n` rows.
fn hadamard(n: usize) -> Option<Vec<Vec<i32>>> {
    let raw = if n == 2 {
        vec![vec![1, 1], vec![1, -1]]
    } else if n.is_multiple_of(4) && is_prime(n - 1) {
        paley_first(n - 1)
    } else if n.is_multiple_of(4) && is_prime(n / 2 - 1) && (n / 2 - 1) % 4 == 1 {
        paley_second(n / 2 - 1)
    } else if n > 2 && n.is_multiple_of(2) {
        kronecker(&[[1, 1], [1, -1]], &hadamard(n / 2)?)
    } else {
        return None;
    };
    Some(normalised(raw))
}

/// For a prime q = 3 modulo 4: I + S, where S borders the matrix of quadratic residues of i - j
/// with 1 and -1.
fn paley_first(q: usize) -> Vec<Vec<i32>> {
    (0..=q)
        .map(|i| {
            (0..=q)
                .map(|j| match (i, j) {
                    (0, _) => 1,
                    (_, 0) => -1,
                    _ if i == j => 1,
                    _ => residue(i + q - j, q),
                })
                .collect()
        })
        .collect()
}

/// For a prime q = 1 modulo 4: each entry of the symmetric bordered matrix becomes a block of two
/// by two.
fn paley_second(q: usize) -> Vec<Vec<i32>> {
    let bordered: Vec<Vec<i32>> = (0..=q)
        .map(|i| {
            (0..=q)
                .map(|j| match (i, j) {
                    _ if i == j => 0,
                    (0, _) | (_, 0) => 1,
                    _ => residue(i + q - j, q),
                })
                .collect()
        })
        .collect();
    let n = 2 * (q + 1);
    (0..n)
        .map(|i| {
            (0..n)
                .map(|j| {
                    let both_second = i % 2 == 1 && j % 2 == 1;
                    match bordered[i / 2][j / 2] {
                        0 => {
                            if i % 2 == 0 && j % 2 == 0 {
                                1
                            } else {
                                -1
                            }
                        }
                        entry => {
                            if both_second {
                                -entry
                            } else {
                                entry
                            }
                        }
                    }
                })
                .collect()
        })
        .collect()
}

fn kronecker(left: &[[i32; 2]; 2], right: &[Vec<i32>]) -> Vec<Vec<i32>> {
    let of = |factors: &[i32; 2], row: &Vec<i32>| {
        factors
            .iter()
            .flat_map(|f| row.iter().map(move |e| f * e))
            .collect()
    };
    left.iter()
        .flat_map(|factors| right.iter().map(move |row| of(factors, row)))
        .collect()
}

/// Changes signs of columns, then of rows, until the first row and column are 1.
fn normalised(mut matrix: Vec<Vec<i32>>) -> Vec<Vec<i32>> {
    let first = matrix[0].clone();
    for row in &mut matrix {
        for (entry, sign) in row.iter_mut().zip(&first) {
            *entry *= sign;
        }
        let sign = row[0];
        row.iter_mut().for_each(|entry| *entry *= sign);
    }
    matrix
}

/// 1 where `value` is a square modulo the prime `q`, 0 where it is divided by it, -1 else.
fn residue(value: usize, q: usize) -> i32 {
    match value % q {
        0 => 0,
        value if (1..q).any(|x| x * x % q == value) => 1,
        _ => -1,
    }
}

fn is_prime(n: usize) -> bool {
    n >= 2 && (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

#[cfg(test)]
mod tests;
