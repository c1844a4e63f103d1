//! `pgdyno profile` on the command line.

use super::HostArgs;
use clap::{Args, Subcommand, ValueEnum};
use pgdyno_advice::Carrier;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List the shipped profiles.
    #[command(after_help = "Example: pgdyno profile list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a profile's settings and the reason for each.
    #[command(after_help = "Example: pgdyno profile show oltp")]
    Show {
        /// Name of a shipped profile, or a file (a path with / or .toml in it).
        profile: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a profile would change on a target, and what it skips and why. Read-only.
    #[command(after_help = "Example: pgdyno profile diff oltp sandbox:main")]
    Diff(DiffArgs),
    /// Export a profile, computed for a target, in the format of another program.
    #[command(after_help = "Example: pgdyno profile export oltp sandbox:main --as tuned -o oltp.conf")]
    Export(ExportArgs),
}

/// A profile and whom it is for.
#[derive(Debug, Args)]
pub(crate) struct ForArgs {
    /// Name of a shipped profile, or a file (a path with / or .toml in it).
    pub(crate) profile: String,
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    #[arg(required_unless_present = "host_only")]
    pub(crate) target: Option<String>,
    /// This host only; do not connect to a server.
    #[arg(long, conflicts_with = "target")]
    pub(crate) host_only: bool,
    /// Set a fact that cannot be read, or replace one, e.g. available.memory_bytes=64GB.
    /// Repeatable.
    #[arg(long, value_name = "FACT=VALUE", value_parser = super::assignment)]
    pub(crate) given: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) of: ForArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) on: HostArgs,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A profile of TuneD.
    Tuned,
    /// A file for /etc/sysctl.d.
    #[value(name = "sysctl.d")]
    SysctlD,
    /// A file for include in postgresql.conf.
    #[value(name = "postgresql.conf")]
    PostgresqlConf,
    /// SQL.
    AlterSystem,
    /// A playbook.
    Ansible,
}

impl ExportFormat {
    pub(crate) fn carrier(self) -> Carrier {
        match self {
            ExportFormat::Tuned => Carrier::Tuned,
            ExportFormat::SysctlD => Carrier::SysctlD,
            ExportFormat::PostgresqlConf => Carrier::PostgresqlConf,
            ExportFormat::AlterSystem => Carrier::AlterSystem,
            ExportFormat::Ansible => Carrier::Ansible,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) of: ForArgs,
    /// Format (docs/how-to/profiles.md lists what each can hold).
    #[arg(long = "as", value_enum)]
    pub(crate) format: ExportFormat,
    /// File, or a directory for a file of the usual name [default: standard output].
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,
}
