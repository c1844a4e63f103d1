//! Pure mathematics: effects in blocks, verdicts, steadiness, scaling, designs. Reads no clock, does no I/O, knows no database.

mod blocks;
mod boundary;
mod changepoint;
mod interaction;
mod matrix;
mod outlier;
mod power;
mod ranks;
mod reciprocal;
mod search;
mod sequential;
mod spread;
mod steady;
mod summary;
mod usl;
mod verdict;

pub use blocks::{BlockFit, Contrast, Observation};
pub use changepoint::{Stationarity, effective_sample_size, stationarity, warm_up_end};
pub use interaction::{FactorialEffect, Level, factorial_effects, screening_effects};
pub use outlier::{Excluded, OutlierRule, WhyExcluded, excluded};
pub use power::{FixedDesign, looks_for};
pub use ranks::{RankInterval, percentile_interval};
pub use sequential::{Looked, MOST_BLOCKS, Sequential, StoppingRule, Trials};
pub use spread::{Estimate, OpenEstimate};
pub use steady::{Steadiness, coefficient_of_variation, has_settled, steadiness};
pub use summary::{MeanInterval, mean_interval};
pub use usl::{UslError, UslFit, UslNeed, UslParameters, UslPeak, UslPoint, fit_usl};
pub use verdict::{Comparison, Effect, Rules, Verdict, decide};
