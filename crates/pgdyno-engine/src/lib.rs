//! The load engine: clients execute compiled transactions on a PostgreSQL server, when they are
//! due, and their times go into books. It knows the wire, not what is driven: no workload, no
//! script's syntax, no data, no external program, no experiment.
//!
//! In steady state nothing is allocated, locked, formatted or logged per transaction: requests are
//! laid out once and only their values put in, replies are scanned where they arrived, times go
//! into fixed histograms.

pub mod actor;
mod blocking;
mod books;
mod client;
mod collect;
mod connection;
mod drive;
mod endpoint;
mod engine;
mod epoll;
mod error_text;
mod export;
pub mod expression;
#[doc(hidden)]
pub mod fuzzed;
mod gate;
mod heat;
mod interpreter;
pub mod message;
mod names;
mod part;
mod plan;
mod pooler;
pub mod program;
mod protocol;
pub mod random;
mod received;
mod reconnect;
pub mod reply;
mod result;
mod scanner;
mod schedule;
mod segments;
mod tls;
mod turns;
mod uring;
pub mod value;

pub use actor::StatementName;
pub use books::{
    Books, ErrorTally, FirstError, Instants, Parts, Second, SecondFigures, SqlState, Times, percentile_ms,
};
pub use connection::{ConnectError, Startup};
pub use endpoint::Endpoint;
pub use engine::{EngineError, Segment, run, run_segment};
pub use export::{StoredHistogram, with_interval_log, write_stored_log};
pub use hdrhistogram;
pub use heat::{Heat, Rest};
pub use names::{UnknownName, by_name};
pub use part::Counts;
pub use plan::{Arrivals, BATCH_MAX, CLIENTS_MAX, Engine, Plan, Warmup};
pub use pooler::keeps_prepared_statements;
pub use protocol::Protocol;
pub use result::{LoadResult, ServerShare, TurnShare};
pub use scanner::{Event, Malformed, Scanner, Tag};
pub use schedule::{Rate, Spacing, Stretch, duration};
pub use segments::{SegmentSecond, join_results, join_seconds};
pub use turns::{TURN_MAX, TURN_MIN};
pub use uring::HAS_IO_URING;
