//! Other hosts on the command line.

use clap::Args;
use pgdyno_remote::SshHost;

/// The host that a command works on.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Other hosts")]
pub(crate) struct HostArgs {
    /// Run on another host over ssh: ssh:HOST, ssh:USER@HOST or ssh://USER@HOST:PORT. Targets and directories are those of that host.
    #[arg(long, value_name = "HOST", global = true)]
    pub(crate) host: Option<SshHost>,
    /// With --host: use root's privileges there, by sudo without a password.
    #[arg(long, global = true, requires = "host")]
    pub(crate) sudo: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct AgentArgs {
    /// Serve one command on standard input and output. --host starts this over ssh.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Remove the agents that --host has copied to HOST.
    #[arg(long, value_name = "HOST")]
    pub(crate) remove: Option<SshHost>,
}
