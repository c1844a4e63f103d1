//! Pure mathematics: effects in blocks, verdicts, steadiness. Reads no clock, does no I/O, knows no database.

mod blocks;
mod matrix;
mod steady;
mod summary;
mod verdict;

pub use blocks::{BlockFit, Contrast, Observation};
pub use steady::{Steadiness, coefficient_of_variation, has_settled, steadiness};
pub use summary::{MeanInterval, mean_interval};
pub use verdict::{Comparison, Effect, Rules, Verdict, decide};
