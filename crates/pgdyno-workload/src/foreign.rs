//! Other programs' loads, and jobs whose time is the result: they are started, followed, and their
//! output is read.
//!
//! What is known of a program is data (`catalog/formats/loads.toml`): the code knows lines,
//! patterns and processes.

mod child;
mod command;
mod dialogue;
mod environment;
mod format;
mod job;
mod lines;
mod output;
mod pattern;
mod run;
mod shell;
#[cfg(test)]
mod tests;

pub use child::{Exit, ForeignError};
pub use command::{CommandError, command_words};
pub use dialogue::Dialogue;
pub use environment::libpq_variables;
pub use format::{Commits, FORMAT_BYTES_MAX, ForeignFormat, FormatError, FormatFile, foreign_formats};
pub use job::{Figure, FigureFormat, JobPlan, JobResult, run_job};
pub use output::{ForeignFigures, ForeignLatency, ForeignOutput, ForeignSecond, ForeignStream};
pub use run::{ForeignPlan, ForeignResult, run_foreign};
pub(crate) use shell::{LIMIT as SHELL_LIMIT, shell};
