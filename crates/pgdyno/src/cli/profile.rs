//! `pgdyno profile` on the command line.

use clap::{Args, Subcommand, ValueEnum};
use pgdyno_advice::Carrier;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Those that are shipped.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Its settings with their reasons, as they are written.
    Show {
        /// Name of a shipped one, or a file (a path with / or .toml in it).
        profile: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what it would change on a target, and what it skips and why. Read-only.
    Diff(DiffArgs),
    /// Write it for another program, worked out for a target.
    Export(ExportArgs),
}

/// A profile and whom it is for.
#[derive(Debug, Args)]
pub(crate) struct ForArgs {
    /// Name of a shipped one, or a file (a path with / or .toml in it).
    pub(crate) profile: String,
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults.
    #[arg(required_unless_present = "host_only")]
    pub(crate) target: Option<String>,
    /// This host, without a server.
    #[arg(long, conflicts_with = "target")]
    pub(crate) host_only: bool,
    /// A fact that cannot be read, or is to be another, as available.memory_bytes=64GB (may be given several times).
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
    /// The format (docs/how-to/profiles.md lists what each can hold).
    #[arg(long = "as", value_enum)]
    pub(crate) format: ExportFormat,
    /// A file, or a directory that it is written below by its usual name; standard output if not given.
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,
}
