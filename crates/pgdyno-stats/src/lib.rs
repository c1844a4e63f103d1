//! Pure mathematics: effects in blocks, verdicts, steadiness, scaling, designs. Reads no clock, does no I/O, knows no database.

mod blocks;
mod matrix;
mod reciprocal;
mod search;
mod spread;
mod steady;
mod summary;
mod usl;
mod verdict;

pub use blocks::{BlockFit, Contrast, Observation};
pub use spread::{Estimate, OpenEstimate};
pub use steady::{Steadiness, coefficient_of_variation, has_settled, steadiness};
pub use summary::{MeanInterval, mean_interval};
pub use usl::{UslError, UslFit, UslNeed, UslParameters, UslPeak, UslPoint, fit_usl};
pub use verdict::{Comparison, Effect, Rules, Verdict, decide};
