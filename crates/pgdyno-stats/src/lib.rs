//! Pure mathematics: effects in blocks, verdicts, steadiness, scaling, designs. Reads no clock,
//! does no I/O, knows no database.

mod autocorrelation;
mod best;
mod blocks;
mod boundary;
mod capacity;
#[cfg(test)]
mod chance;
mod changepoint;
mod compare;
mod design;
mod digits;
mod fraction;
mod happy;
mod heights;
mod interaction;
mod matrix;
mod moderated;
mod pairs;
mod power;
mod power_law;
mod ranks;
mod reciprocal;
mod search;
mod sequential;
mod spread;
mod steady;
mod summary;
mod trial_length;
mod tuning;
mod usl;
mod verdict;

pub use best::{Best, LevelPoint, best_level};
pub use blocks::{BlockFit, Contrast, Observation};
pub use capacity::{
    Capacity, CapacityError, CapacityModel, CpuLevel, EXTRAPOLATES_MAX, Need, Peak, Price, Resources, Supply,
    cost_per_million,
};
pub use changepoint::{Stationarity, WarmUp, effective_sample_size, stationarity, warm_up_end};
pub use compare::{Basis, Compared, WithinTrial, compare_samples, compare_within, within_trial_interval};
pub use design::{
    Design, DesignError, Fraction, fractional_factorial, full_factorial, one_at_a_time, plackett_burman,
};
pub use digits::three_digits;
pub use happy::{Edge, HappyZone, LoadPoint, NoKnee, best_clients, happy_zone};
pub use interaction::{FactorialEffect, Level, factorial_effects, screening_effects};
pub use pairs::Comparison;
pub use power::{FixedDesign, looks_for};
pub use ranks::{RankInterval, independent_share, knows_percentile, percentile_interval};
pub use sequential::{FUTILITY_ERROR, Looked, MOST_BLOCKS, Sequential, StoppingRule, Trials};
pub use spread::{Estimate, OpenEstimate};
pub use steady::{Steadiness, coefficient_of_variation, has_settled, steadiness};
pub use summary::{MeanInterval, mean_interval};
pub use trial_length::{NoiseParts, TrialLength};
pub use tuning::{
    Dimension, Incumbent, Point, Reason, Search, SearchLevel, SearchMethod, SearchTrial, Space, SpaceError,
    Suggestion,
};
pub use usl::{UslError, UslFit, UslNeed, UslParameters, UslPeak, UslPoint, fit_usl};
pub use verdict::{Effect, Rules, Verdict, decide};
