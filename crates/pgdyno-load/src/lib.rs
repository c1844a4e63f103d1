//! Drives a PostgreSQL server with a workload and times it. Knows loads, not experiments.
//!
//! In steady state nothing is allocated, locked, formatted or logged per transaction: requests are encoded when a
//! client connects and patched in place, replies are scanned where they arrived, times go into fixed histograms.

mod books;
mod client;
mod connection;
mod data;
mod engine;
mod gate;
mod message;
mod random;
mod scanner;
mod workload;

pub use books::{Books, ErrorTally, Second, SqlState};
pub use connection::{ConnectError, where_is};
pub use data::{DataError, DataProgress, create_data, drop_data, scale_of};
pub use engine::{LoadError, LoadPlan, LoadResult, run};
pub use hdrhistogram;
pub use random::stream_seed;
pub use scanner::{Event, Malformed, Scanner};
pub use workload::Workload;
