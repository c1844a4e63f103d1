//! `pgdyno sandbox` on the command line.

use super::{HostArgs, assignment};
use clap::{Args, Subcommand};
use pgdyno_host::size_bytes;
use pgdyno_sandbox::{DEFAULT_MAJOR, FileSystemPlan, Listen, NetworkPlan, STANDBYS_MAX};
use std::path::PathBuf;

/// What is done to private servers, and on which host.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(flatten)]
    pub(crate) on: HostArgs,
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Create a private server and start it.
    #[command(after_help = "Example: pgdyno sandbox create main --version 17 --memory 1G --cpus 1.5")]
    Create(Box<CreateArgs>),
    /// Start a stopped or crashed private server.
    #[command(after_help = "Example: pgdyno sandbox start main")]
    Start {
        /// Name of the server.
        name: String,
    },
    /// Stop a private server.
    #[command(after_help = "Example: pgdyno sandbox stop main")]
    Stop {
        /// Name of the server.
        name: String,
    },
    /// Restart a private server.
    #[command(after_help = "Example: pgdyno sandbox restart main")]
    Restart {
        /// Name of the server.
        name: String,
    },
    /// List private servers with state, version, port and size.
    #[command(after_help = "Example: pgdyno sandbox list")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Destroy a private server and its data.
    #[command(after_help = "Example: pgdyno sandbox destroy main")]
    Destroy {
        /// Name of the server; there is no default.
        name: String,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CreateArgs {
    /// Name of the server.
    #[arg(default_value = "main")]
    pub(crate) name: String,
    /// Major version, 14 to 19.
    #[arg(long, short = 'V', default_value_t = DEFAULT_MAJOR, conflicts_with = "pg_bin")]
    pub(crate) version: u32,
    /// Directory of initdb, pg_ctl and postgres, instead of fetching them.
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Data directory: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// WAL directory: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) wal: Option<PathBuf>,
    /// Directory of temporary files, in a tablespace: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) temp: Option<PathBuf>,
    /// Separate file system for the data: tmpfs:2G, ext4:4G, xfs:4G or btrfs:4G (as root).
    #[arg(long, value_name = "KIND:SIZE", value_parser = FileSystemPlan::named, conflicts_with = "data")]
    pub(crate) filesystem: Option<FileSystemPlan>,
    /// Separate file system for the WAL.
    #[arg(long, value_name = "KIND:SIZE", value_parser = FileSystemPlan::named, conflicts_with = "wal")]
    pub(crate) wal_filesystem: Option<FileSystemPlan>,
    /// Separate file system for temporary files.
    #[arg(long, value_name = "KIND:SIZE", value_parser = FileSystemPlan::named, conflicts_with = "temp")]
    pub(crate) temp_filesystem: Option<FileSystemPlan>,
    /// Directory of the images of file systems [default: the sandbox's directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) image_directory: Option<PathBuf>,
    /// Separate network for the server, with a link of this MTU to the host: mtu:1500, mtu:9000 (as
    /// root).
    #[arg(long, value_name = "mtu:BYTES", value_parser = NetworkPlan::named)]
    pub(crate) network: Option<NetworkPlan>,
    /// Port on 127.0.0.1, or in its own network [default: a free one].
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// Listen on this address too, and let the hosts of its network in with the password, e.g.
    /// 10.0.0.5/24.
    #[arg(long, value_name = "ADDRESS/BITS", conflicts_with = "network")]
    pub(crate) listen: Option<Listen>,
    /// CPU limit, e.g. 1.5 [default: none].
    #[arg(long, value_parser = cpus)]
    pub(crate) cpus: Option<f64>,
    /// Memory limit, page cache included, e.g. 1G [default: none].
    #[arg(long, value_parser = size_bytes)]
    pub(crate) memory: Option<u64>,
    /// Limit of reads per second, and of writes per second [default: none].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iops: Option<u64>,
    /// Limit of bytes read per second, and of bytes written per second, e.g. 125M [default: none].
    #[arg(long, value_parser = size_bytes)]
    pub(crate) bandwidth: Option<u64>,
    /// Physical standbys with the same limits, each a server named NAME-standby-1 and so on.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=i64::from(STANDBYS_MAX)))]
    pub(crate) standbys: Option<u32>,
    /// Commits wait until one of the standbys has them.
    #[arg(long, requires = "standbys")]
    pub(crate) sync: bool,
    /// Parameter for postgresql.conf, e.g. max_connections=300. Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) settings: Vec<(String, String)>,
    /// Text of the postgresql.conf of another one, for one like it.
    #[arg(skip)]
    pub(crate) configuration: Option<String>,
}

pub(super) fn cpus(text: &str) -> Result<f64, String> {
    // Below a hundredth the kernel's least quota is reached.
    text.parse::<f64>()
        .ok()
        .filter(|n| (0.01..=10_000.0).contains(n))
        .ok_or_else(|| "expected a number of CPUs from 0.01, e.g. 1.5".to_owned())
}

impl CreateArgs {
    /// One without limits and with nothing of its own elsewhere.
    pub(crate) fn plain(name: &str, version: u32) -> CreateArgs {
        CreateArgs {
            name: name.to_owned(),
            version,
            pg_bin: None,
            data: None,
            wal: None,
            temp: None,
            listen: None,
            filesystem: None,
            wal_filesystem: None,
            temp_filesystem: None,
            image_directory: None,
            network: None,
            port: None,
            cpus: None,
            memory: None,
            iops: None,
            bandwidth: None,
            standbys: None,
            sync: false,
            settings: Vec::new(),
            configuration: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert!(cpus("0").is_err() && cpus("nan").is_err());
    }
}
