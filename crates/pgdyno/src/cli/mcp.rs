//! `pgdyno mcp` on the command line.

use super::StoreArg;
use clap::Args;
use pgdyno_engine::duration;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Targets that the agent may read: sandbox:NAME, on which it may run experiments too, or a
    /// connection string without a password.
    #[arg(required = true, value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// Time that its experiments may take in all.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}
