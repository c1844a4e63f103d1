//! The inverse of a small symmetric positive definite matrix, all the linear algebra a block design
//! needs, and counts as numbers.

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

/// A lower triangular matrix, row by row: the Cholesky factor of a covariance.
pub(crate) struct Lower {
    n: usize,
    rows: Vec<f64>,
}

/// Factors a symmetric matrix, of which `entry(i, j)` gives those with j <= i. `None` where it is
/// not positive definite.
pub(crate) fn cholesky(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Lower> {
    let mut rows = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let (before, here) = rows.split_at(i * n);
            let row = if j < i { &before[j * n..] } else { here };
            let known: f64 = row[..j].iter().zip(here).map(|(a, b)| a * b).sum();
            let left = entry(i, j) - known;
            rows[i * n + j] = match i == j {
                true if left > 0.0 => left.sqrt(),
                true => return None,
                false => left / rows[j * n + j],
            };
        }
    }
    Some(Lower { n, rows })
}

impl Lower {
    /// The vector which, multiplied by it, gives `right`.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut solved = Vec::with_capacity(self.n);
        for (i, right) in right.iter().enumerate() {
            let row = &self.rows[i * self.n..];
            let known: f64 = row.iter().zip(&solved).map(|(a, b): (&f64, &f64)| a * b).sum();
            solved.push((right - known) / row[i]);
        }
        solved
    }

    /// The vector which, multiplied by its transpose, gives `right`.
    pub(crate) fn solve_transposed(&self, right: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut solved = right.to_vec();
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|j| self.rows[j * n + i] * solved[j]).sum();
            solved[i] = (solved[i] - known) / self.rows[i * n + i];
        }
        solved
    }

    /// The logarithm of the product of its diagonal: half of that of the matrix's determinant.
    pub(crate) fn log_of_diagonal(&self) -> f64 {
        (0..self.n).map(|i| self.rows[i * self.n + i].ln()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{cholesky, invert};

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
    fn the_factor_of_a_matrix_solves_its_equations() {
        let matrix = [[4.0, 0.0, 0.0], [2.0, 5.0, 0.0], [1.0, 3.0, 6.0]];
        let factor = cholesky(3, |i, j| matrix[i][j]).expect("positive definite");
        let solved = factor.solve_transposed(&factor.solve(&[1.0, 2.0, 3.0]));
        for (i, right) in [1.0, 2.0, 3.0].into_iter().enumerate() {
            let left: f64 = (0..3).map(|j| matrix[i.max(j)][i.min(j)] * solved[j]).sum();
            assert!((left - right).abs() < 1e-12);
        }
        let determinant: f64 = 4.0 * (5.0 * 6.0 - 9.0) - 2.0 * (2.0 * 6.0 - 3.0) + (2.0 * 3.0 - 5.0);
        assert!((factor.log_of_diagonal() * 2.0 - determinant.ln()).abs() < 1e-12);
        assert!(cholesky(2, |_, _| 1.0).is_none());
    }

    #[test]
    fn a_singular_matrix_has_none() {
        assert!(invert(&[vec![1.0, 2.0], vec![2.0, 4.0]]).is_none());
    }
}
