//! Search for the best levels of many knobs in few noisy trials.

mod forest;
mod model;
mod process;
mod space;
mod suggest;
#[cfg(test)]
mod tests;

pub use space::{Dimension, Point, SearchLevel, SearchTrial, Space, SpaceError};
pub use suggest::{Incumbent, Reason, Search, SearchMethod, Suggestion};
