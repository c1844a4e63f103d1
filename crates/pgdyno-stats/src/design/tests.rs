use super::*;
use proptest::prelude::*;

/// Each level of each factor, and each pair of levels of each two factors, equally often.
fn assert_orthogonal(treatments: &[Vec<usize>], levels: &[usize]) {
    let n = treatments.len();
    for (i, &first) in levels.iter().enumerate() {
        for a in 0..first {
            let times = treatments.iter().filter(|row| row[i] == a).count();
            assert_eq!(times * first, n, "factor {i} level {a}");
            for (j, &second) in levels.iter().enumerate().skip(i + 1) {
                for b in 0..second {
                    let times = treatments.iter().filter(|row| row[i] == a && row[j] == b).count();
                    assert_eq!(times * first * second, n, "factors {i} {j} levels {a} {b}");
                }
            }
        }
    }
}

fn distinct(treatments: &[Vec<usize>]) -> usize {
    treatments.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// No column is the product of two others, not even in part.
fn assert_main_effects_clear(treatments: &[Vec<usize>]) {
    let sign = |level: usize| if level == 0 { 1 } else { -1 };
    let k = treatments[0].len();
    for i in 0..k {
        for j in 0..i {
            for l in 0..j {
                let sum: i32 = treatments
                    .iter()
                    .map(|r| sign(r[i]) * sign(r[j]) * sign(r[l]))
                    .sum();
                assert_eq!(sum, 0, "{i} {j} {l}");
            }
        }
    }
}

#[test]
fn every_number_of_factors_has_a_screening_design() {
    for factors in 1..LARGEST_SCREENING {
        let plain = plackett_burman(factors, false).unwrap();
        assert_eq!(plain.treatments.len(), (factors / 4 + 1) * 4);
        assert_orthogonal(&plain.treatments, &vec![2; factors]);
        assert_eq!(plain.treatments[0], vec![0; factors]);
        let folded = plackett_burman(factors, true).unwrap();
        assert_eq!(folded.treatments.len(), 2 * plain.treatments.len());
        assert_orthogonal(&folded.treatments, &vec![2; factors]);
        if factors < 16 {
            assert_main_effects_clear(&folded.treatments);
        }
    }
    assert_eq!(
        plackett_burman(48, false),
        Err(DesignError::TooManyFactors {
            factors: 48,
            limit: 47
        })
    );
    assert_eq!(plackett_burman(0, true), Err(DesignError::NoFactor));
}

#[test]
fn fractions_keep_what_they_promise() {
    let check = |factors: usize, treatments: usize, resolution: Option<usize>| {
        let found = fractional_factorial(factors, treatments).unwrap();
        assert_eq!(found.design.resolution, resolution, "{factors} in {treatments}");
        let rows = &found.design.treatments;
        assert_eq!(distinct(rows), rows.len());
        assert_eq!(rows[0], vec![0; factors]);
        assert_orthogonal(rows, &vec![2; factors]);
        assert_main_effects_clear(rows);
        assert_eq!(found.generators.len(), factors - found.basic_factors);
        for (factor, made_of) in &found.generators {
            for row in rows {
                assert_eq!(
                    row[*factor],
                    made_of.iter().map(|&basic| row[basic]).sum::<usize>() % 2
                );
            }
        }
        assert_eq!(
            resolution == Some(4),
            !found.aliases.is_empty(),
            "{:?}",
            found.aliases
        );
        assert!(
            found.aliases.iter().flatten().all(|effect| effect.len() == 2),
            "main effects are clear"
        );
    };
    check(1, 4, None);
    check(2, 4, None);
    check(3, 8, None);
    check(4, 8, Some(4));
    check(5, 16, Some(5));
    check(6, 16, Some(4));
    check(6, 32, Some(6));
    check(7, 16, Some(4));
    check(7, 32, Some(4));
    check(7, 64, Some(7));
    check(8, 16, Some(4));
    check(8, 32, Some(4));
    check(8, 64, Some(5));
    check(9, 32, Some(4));
    check(9, 64, Some(4));
    check(10, 32, Some(4));
    check(10, 64, Some(4));
    check(16, 32, Some(4));
    check(17, 64, Some(4));
    check(32, 64, Some(4));
}

#[test]
fn aliases_are_named() {
    let found = fractional_factorial(4, 8).unwrap();
    assert_eq!(found.generators, [(3, vec![0, 1, 2])]);
    assert_eq!(
        found.aliases,
        [
            vec![vec![0, 1], vec![2, 3]],
            vec![vec![0, 2], vec![1, 3]],
            vec![vec![0, 3], vec![1, 2]]
        ]
    );
}

#[test]
fn what_there_is_not_is_refused() {
    let check = |factors, treatments, expected: &str| {
        let found = fractional_factorial(factors, treatments).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    };
    check(0, 8, "at least one factor");
    check(5, 8, "16 treatments or more");
    check(4, 4, "8 treatments or more");
    check(3, 4, "8 treatments or more");
    check(9, 24, "32 treatments or more");
    check(17, 128, "64 treatments or more");
    check(33, 64, "at most 32 factors");
    assert_eq!(
        full_factorial(&[2; 70], 1000),
        Err(DesignError::TooManyTreatments {
            treatments: usize::MAX,
            limit: 1000
        })
    );
    assert_eq!(
        full_factorial(&[4, 4], 15),
        Err(DesignError::TooManyTreatments {
            treatments: 16,
            limit: 15
        })
    );
    assert_eq!(
        one_at_a_time(&[2, 1]),
        Err(DesignError::TooFewLevels { factor: 1, levels: 1 })
    );
    assert_eq!(one_at_a_time(&[]), Err(DesignError::NoFactor));
}

#[test]
fn one_at_a_time_by_hand() {
    assert_eq!(
        one_at_a_time(&[2, 3]).unwrap().treatments,
        [[0, 0], [1, 0], [0, 1], [0, 2]]
    );
}

proptest! {
    #[test]
    fn a_full_factorial_has_each_combination_once(levels in prop::collection::vec(2_usize..5, 1..5)) {
        let found = full_factorial(&levels, 1000).unwrap();
        prop_assert_eq!(found.treatments.len(), levels.iter().product::<usize>());
        prop_assert_eq!(distinct(&found.treatments), found.treatments.len());
        assert_orthogonal(&found.treatments, &levels);
        prop_assert_eq!(&found.treatments[0], &vec![0; levels.len()]);
    }

    #[test]
    fn one_at_a_time_changes_one(levels in prop::collection::vec(2_usize..5, 1..8)) {
        let found = one_at_a_time(&levels).unwrap();
        prop_assert_eq!(found.treatments.len(), 1 + levels.iter().map(|l| l - 1).sum::<usize>());
        prop_assert_eq!(distinct(&found.treatments), found.treatments.len());
        prop_assert!(found.treatments[1..].iter().all(|row| row.iter().filter(|&&l| l > 0).count() == 1));
    }
}
