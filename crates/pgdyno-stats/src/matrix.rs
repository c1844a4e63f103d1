//! The inverse of a small symmetric positive definite matrix, all the linear algebra a block design needs, and
//! counts as numbers.

/// A count as a number to reckon with: exact to 2^53, which no count of trials or seconds reaches.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// Inverts `matrix` (square, row by row) by Gauss-Jordan elimination with partial pivoting.
/// `None` where it is singular: the design then does not connect all treatments.
pub(crate) fn invert(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    /// Entries of a normal matrix are counts of trials, so a pivot this small is rounding error.
    const SMALLEST_PIVOT: f64 = 1e-9;
    let n = matrix.len();
    let mut left: Vec<Vec<f64>> = matrix.to_vec();
    let mut right: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
        .collect();
    for column in 0..n {
        let pivot_row =
            (column..n).max_by(|&a, &b| left[a][column].abs().total_cmp(&left[b][column].abs()))?;
        if left[pivot_row][column].abs() < SMALLEST_PIVOT {
            return None;
        }
        left.swap(column, pivot_row);
        right.swap(column, pivot_row);
        let pivot = left[column][column];
        for j in 0..n {
            left[column][j] /= pivot;
            right[column][j] /= pivot;
        }
        for row in (0..n).filter(|&row| row != column) {
            let factor = left[row][column];
            for j in 0..n {
                left[row][j] -= factor * left[column][j];
                right[row][j] -= factor * right[column][j];
            }
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::invert;

    #[test]
    fn the_inverse_times_the_matrix_is_the_identity() {
        let matrix = vec![vec![3.0, 0.0, 1.0], vec![0.0, 2.0, 1.0], vec![1.0, 1.0, 4.0]];
        let inverse = invert(&matrix).expect("regular");
        for (i, row) in inverse.iter().enumerate() {
            for j in 0..3 {
                let product: f64 = row.iter().zip(&matrix).map(|(a, b)| a * b[j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_singular_matrix_has_none() {
        assert!(invert(&[vec![1.0, 2.0], vec![2.0, 4.0]]).is_none());
    }
}
