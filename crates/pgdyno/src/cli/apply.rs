//! `pgdyno apply`, `verify`, `status`, `confirm` and `restore` on the command line.

use super::{HostArgs, HostsArgs, RunHostArgs};
use clap::Args;
use pgdyno_engine::duration;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// sandbox:NAME or a connection string; empty for PG* variables and libpq's defaults. With
    /// --host-only there is no target: this is the first setting.
    pub(crate) target: String,
    /// Profiles by name or file, and settings, e.g. work_mem=8MB, vm.swappiness=1,
    /// block.read_ahead_kb@wal=128, table.fillfactor@accounts=90. Of several values of a knob the
    /// last one wins.
    #[arg(value_name = "PROFILE|KNOB=VALUE")]
    pub(crate) settings: Vec<String>,
    /// This host only; do not connect to a server.
    #[arg(long)]
    pub(crate) host_only: bool,
    /// Check settings and privileges. Print each problem with its fix, or each change and whether
    /// it needs a restart. Change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Keep running, and restore everything on Ctrl-C. With --host it goes on over another
    /// connection when one is lost.
    #[arg(long, conflicts_with = "revert_after")]
    pub(crate) until_exit: bool,
    /// Restore everything after this time, e.g. 10m, unless `pgdyno confirm` is run before.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) revert_after: Option<Duration>,
    /// Make the host's settings survive a reboot, by files in /etc/sysctl.d and /etc/tmpfiles.d.
    #[arg(long, conflicts_with_all = ["until_exit", "revert_after"])]
    pub(crate) persist: bool,
    /// Allow stopping and starting a server that pgdyno did not create, by what runs it
    /// (`pgdyno facts` shows it as manager.*).
    #[arg(long)]
    pub(crate) allow_restart: bool,
    /// Command that restarts the server, in place of what runs it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart_command: Option<String>,
    /// Command that stops the server, in place of what runs it; with --start-command.
    #[arg(
        long,
        value_name = "COMMAND",
        requires = "start_command",
        conflicts_with = "restart_command"
    )]
    pub(crate) stop_command: Option<String>,
    /// Command that starts it again.
    #[arg(long, value_name = "COMMAND", requires = "stop_command")]
    pub(crate) start_command: Option<String>,
    /// Allow KNOB, which may lose committed data in a crash. Repeatable.
    #[arg(long, value_name = "KNOB")]
    pub(crate) accept_durability_risk: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: RunHostArgs,
}

impl ApplyArgs {
    /// What is to be applied: of a host alone, nothing is a target.
    pub(crate) fn words(&self) -> Vec<String> {
        let first = self.host_only.then(|| self.target.clone());
        first.into_iter().chain(self.settings.clone()).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// sandbox:NAME or a connection string [default: everything that was applied]. With --host-only
    /// there is no target: this is the first setting.
    pub(crate) target: Option<String>,
    /// Profiles and settings to verify.
    #[arg(value_name = "PROFILE|KNOB=VALUE")]
    pub(crate) settings: Vec<String>,
    /// This host only; do not connect to a server.
    #[arg(long, requires = "target")]
    pub(crate) host_only: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) on: HostArgs,
}

impl VerifyArgs {
    /// Settings to verify.
    pub(crate) fn words(&self) -> Vec<String> {
        let first = self.target.clone().filter(|_| self.host_only);
        first.into_iter().chain(self.settings.clone()).collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) on: HostsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConfirmArgs {
    /// Numbers from `pgdyno status` [default: all that wait].
    #[arg(value_name = "NUMBER")]
    pub(crate) numbers: Vec<usize>,
    #[command(flatten)]
    pub(crate) on: HostArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RevertArgs {
    /// Path of the journal whose changes are restored.
    pub(crate) journal: PathBuf,
    /// When, in milliseconds since 1970.
    #[arg(long)]
    pub(crate) at: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Numbers from `pgdyno status` [default: everything].
    #[arg(value_name = "NUMBER")]
    pub(crate) numbers: Vec<usize>,
    /// Only what a command that was interrupted or killed has changed: what `apply` keeps stays.
    #[arg(long, conflicts_with = "numbers")]
    pub(crate) interrupted: bool,
    /// Only what was changed for this sandbox. Repeatable.
    #[arg(long, value_name = "NAME", conflicts_with = "numbers")]
    pub(crate) sandbox: Vec<String>,
    /// Restore what --interrupted does, and start, stop or restart no server: for use while the
    /// host boots.
    #[arg(long, conflicts_with_all = ["numbers", "host"])]
    pub(crate) at_boot: bool,
    /// Also overwrite what someone else has changed since.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) on: HostArgs,
}
