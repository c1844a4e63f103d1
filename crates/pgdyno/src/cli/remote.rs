//! Other hosts on the command line.

use clap::{ArgGroup, Args, ValueEnum};
use pgdyno_engine::duration;
use pgdyno_remote::SshHost;
use std::path::PathBuf;
use std::time::Duration;

/// The host that a command works on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct HostArgs {
    /// Run on another host over ssh: ssh:HOST, ssh:USER@HOST or ssh://USER@HOST:PORT. Targets and
    /// directories are those of that host.
    #[arg(long, value_name = "HOST", global = true)]
    pub(crate) host: Option<SshHost>,
    /// With --host: use root's privileges there, by sudo without a password.
    #[arg(long, global = true, requires = "host")]
    pub(crate) sudo: bool,
}

impl HostArgs {
    /// As arguments of a command.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = String> {
        let host = self.host.as_ref().map(|host| format!("--host={host}"));
        host.into_iter().chain(self.sudo.then(|| "--sudo".to_owned()))
    }
}

/// The host that a command looks at, or all hosts of an inventory.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct HostsArgs {
    #[command(flatten)]
    pub(crate) on: HostArgs,
    /// Run on all hosts of an Ansible inventory (INI or YAML) over ssh, and show what differs
    /// between them.
    #[arg(long, value_name = "FILE", conflicts_with = "host")]
    pub(crate) inventory: Option<PathBuf>,
    /// Only the hosts of this group of the inventory.
    #[arg(long, value_name = "GROUP", default_value = "all", requires = "inventory")]
    pub(crate) target_group: String,
    /// The longest that a host of the inventory may take, without what it takes to copy pgdyno
    /// there.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s", requires = "inventory")]
    pub(crate) host_timeout: Duration,
}

/// A group of an inventory that drives a load.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct LoadGroupArgs {
    /// Ansible inventory (INI or YAML) of --load-group.
    #[arg(long, value_name = "FILE", requires = "load_group")]
    pub(crate) inventory: Option<PathBuf>,
    /// Drive the load from all hosts of this group of the inventory, over ssh.
    #[arg(long, value_name = "GROUP", requires = "inventory")]
    pub(crate) load_group: Option<String>,
}

/// The hosts that drive a load.
#[derive(Debug, Clone, Default, Args)]
#[command(group = ArgGroup::new("load_from").args(["load_hosts", "load_group"]))]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct LoadFromArgs {
    /// Drive the load from HOST, ssh:NAME or local, with its part of the clients. Repeatable.
    #[arg(id = "load_hosts", long = "load-host", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) group: LoadGroupArgs,
    /// How the load hosts reach the server, e.g. host=10.0.0.5 [default: as this host does].
    #[arg(
        id = "load_connection",
        long = "load-connection",
        value_name = "STRING",
        requires = "load_from"
    )]
    pub(crate) connection: Option<String>,
}

/// What an agent does that has waited in vain for another connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDisconnect {
    /// End what runs in order, and restore every setting.
    #[default]
    Restore,
    /// End at once: settings stay as they are until `pgdyno restore`.
    Keep,
}

/// The host that a command which may outlive its connection runs on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct RunHostArgs {
    #[command(flatten)]
    pub(crate) on: HostArgs,
    /// With --host: how long an experiment, or apply --until-exit, goes on there without a
    /// connection, while this command tries to have another.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = grace, requires = "host")]
    pub(crate) grace: u32,
    /// With --host: what happens there after that time.
    #[arg(long, value_enum, default_value_t, requires = "host")]
    pub(crate) on_disconnect: OnDisconnect,
}

/// Seconds of a time.
fn grace(text: &str) -> Result<u32, String> {
    /// A day: an experiment may be one of a night.
    const SECONDS_MAX: u64 = 24 * 3600;
    match duration(text)?.as_secs() {
        seconds @ 1..=SECONDS_MAX => Ok(u32::try_from(seconds).unwrap_or(u32::MAX)),
        _ => Err("expected a time of 1 s to 24 h, e.g. 60s or 10m".to_owned()),
    }
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct AgentArgs {
    /// Serve one command on standard input and output. --host starts this over ssh.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Drive a part of a load for the coordinator that has started this.
    #[arg(long, hide = true)]
    pub(crate) load: bool,
    /// Remove the agents that --host has copied to HOST.
    #[arg(long, value_name = "HOST")]
    pub(crate) remove: Option<SshHost>,
}
