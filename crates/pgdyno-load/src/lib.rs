//! Drives a PostgreSQL server with a workload and times it. Knows loads, not experiments.
//!
//! In steady state nothing is allocated, locked, formatted or logged per transaction: requests are laid out
//! once and only their values put in, replies are scanned where they arrived, times go into fixed histograms.

mod actor;
mod blocking;
mod books;
mod client;
mod collect;
mod compile;
mod connection;
mod data;
mod drive;
mod endpoint;
mod engine;
mod epoll;
mod evaluate;
mod export;
mod expression;
mod foreign;
mod functions;
#[doc(hidden)]
pub mod fuzzed;
mod gate;
mod heat;
mod interpreter;
mod load_plan;
mod message;
mod names;
mod own;
mod part;
mod plan;
mod pooler;
mod program;
mod proof;
mod protocol;
mod random;
mod reconnect;
mod reply;
mod run;
mod scanner;
mod schedule;
mod script;
mod session;
mod tls;
mod tpcc;
mod uring;
mod value;
mod words;
mod workload;

pub use actor::StatementName;
pub use books::{
    Books, ErrorTally, FirstError, Instants, Parts, Second, SecondFigures, SqlState, Times, percentile_ms,
};
pub use connection::ConnectError;
pub use data::{
    Condition, DataError, DataObject, DataPlan, DataProgress, DataSession, Dataset, Shape, check_data,
    create_data, drop_data, shape_of, tables_of_data_sets, tables_there,
};
pub use endpoint::Endpoint;
pub use engine::{EngineError, LoadResult};
pub use export::{StoredHistogram, with_interval_log, write_stored_log};
pub use foreign::{
    CommandError, Commits, Exit, FORMAT_BYTES_MAX, Figure, FigureFormat, ForeignError, ForeignFigures,
    ForeignFormat, ForeignLatency, ForeignOutput, ForeignPlan, ForeignResult, ForeignSecond, ForeignStream,
    FormatError, JobPlan, JobResult, command_words, foreign_formats, run_foreign, run_job,
};
pub use hdrhistogram;
pub use heat::Heat;
pub use load_plan::{LoadPlan, Work};
pub use names::UnknownName;
pub use own::marked;
pub use part::Counts;
pub use plan::{Arrivals, BATCH_MAX, CLIENTS_MAX, Engine, Plan, Warmup};
pub use pooler::keeps_prepared_statements;
pub use proof::{
    Described, MakingStatement, StatementRefusal, makes_objects, making_statements, refused_questions,
    refused_statements,
};
pub use protocol::Protocol;
pub use random::stream_seed;
pub use run::{LoadError, nopm, run};
pub use scanner::{Event, Malformed, Scanner, Tag};
pub use schedule::{Rate, Spacing, Stretch, duration};
pub use script::{SCRIPT_BYTES_MAX, Script, ScriptError, Scripts};
pub use session::SessionError;
pub use workload::{Control, Workload};
