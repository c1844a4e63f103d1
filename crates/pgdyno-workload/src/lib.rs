//! What a load does: scripts, TPC-C, the sets of pgbench and sysbench, their data, and external
//! programs. It compiles transactions and hands them to the engine; it moves no bytes of a load and
//! times nothing that the engine drives. Knows loads, not experiments.

mod compile;
mod data;
mod foreign;
mod load_plan;
mod own;
mod own_cpus;
mod proof;
mod run;
mod scale;
mod script;
mod session;
mod tpcc;
#[cfg(test)]
mod wire;
mod workload;

pub use data::{
    Condition, DataError, DataObject, DataPlan, DataProgress, DataSession, Dataset, PartitionMethod,
    Partitions, Shape, check_data, create_data, drop_data, shape_of, tables_of_data_sets, tables_there,
};
pub use foreign::{
    CommandError, Commits, Dialogue, Exit, FORMAT_BYTES_MAX, Figure, FigureFormat, ForeignError,
    ForeignFigures, ForeignFormat, ForeignLatency, ForeignOutput, ForeignPlan, ForeignResult, ForeignSecond,
    ForeignStream, FormatError, FormatFile, JobPlan, JobResult, command_words, foreign_formats,
    libpq_variables, run_foreign, run_job,
};
pub use load_plan::{LoadPlan, Work};
pub use own::marked;
pub use own_cpus::own_cpus;
pub use proof::{
    Described, MakingStatement, StatementRefusal, makes_objects, making_statements, refused_questions,
    refused_statements,
};
pub use run::{LoadError, nopm, run, run_segment};
pub use script::{SCRIPT_BYTES_MAX, Script, ScriptError, Scripts};
pub use session::SessionError;
pub use workload::{Control, Workload};
