//! Drives a PostgreSQL server with a workload and times it. Knows loads, not experiments.
//!
//! In steady state nothing is allocated, locked, formatted or logged per transaction: requests are laid out
//! once and only their values put in, replies are scanned where they arrived, times go into fixed histograms.

mod blocking;
mod books;
mod client;
mod collect;
mod connection;
mod data;
mod drive;
mod endpoint;
mod engine;
mod epoll;
mod export;
mod gate;
mod message;
mod plan;
mod pooler;
mod random;
mod reconnect;
mod scanner;
mod schedule;
mod tls;
mod uring;
mod workload;

pub use books::{Books, ErrorTally, Instants, Parts, Second, SecondFigures, SqlState, percentile_ms};
pub use connection::ConnectError;
pub use data::{DataError, DataProgress, create_data, drop_data, scale_of};
pub use drive::Counts;
pub use endpoint::Endpoint;
pub use engine::{LoadError, LoadResult, run};
pub use export::with_interval_log;
pub use hdrhistogram;
pub use plan::{Arrivals, CLIENTS_MAX, Engine, LoadPlan};
pub use pooler::keeps_prepared_statements;
pub use random::stream_seed;
pub use scanner::{Event, Malformed, Scanner};
pub use schedule::{Rate, Spacing, Stretch, duration};
pub use workload::{Control, Protocol, UnknownName, Workload};
