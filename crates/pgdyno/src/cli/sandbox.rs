//! `pgdyno sandbox` on the command line.

use super::assignment;
use clap::{Args, Subcommand};
use pgdyno_host::size_bytes;
use pgdyno_sandbox::{FileSystemPlan, NetworkPlan};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Make a private server and start it.
    Create(Box<CreateArgs>),
    /// Start one that is stopped or crashed.
    Start {
        /// Its name.
        name: String,
    },
    /// Stop one.
    Stop {
        /// Its name.
        name: String,
    },
    /// Stop and start one.
    Restart {
        /// Its name.
        name: String,
    },
    /// All of them: state, version, port, size.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop one and remove it with its data.
    Destroy {
        /// Its name; there is no default.
        name: String,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CreateArgs {
    /// Its name.
    #[arg(default_value = "main")]
    pub(crate) name: String,
    /// Major version, 14 to 18.
    #[arg(long, short = 'V', default_value_t = 18, conflicts_with = "pg_bin")]
    pub(crate) version: u32,
    /// Directory of initdb, pg_ctl and postgres, instead of fetching them.
    #[arg(long, value_name = "DIR")]
    pub(crate) pg_bin: Option<PathBuf>,
    /// Data directory: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// WAL directory, elsewhere: new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) wal: Option<PathBuf>,
    /// A file system of its own for the data: tmpfs:2G, ext4:4G, xfs:4G or btrfs:4G (as root).
    #[arg(long, value_name = "KIND:SIZE", value_parser = FileSystemPlan::named, conflicts_with = "data")]
    pub(crate) filesystem: Option<FileSystemPlan>,
    /// A file system of its own for the WAL.
    #[arg(long, value_name = "KIND:SIZE", value_parser = FileSystemPlan::named, conflicts_with = "wal")]
    pub(crate) wal_filesystem: Option<FileSystemPlan>,
    /// Where images of file systems lie, if not in the sandbox's directory: on another disk, say.
    #[arg(long, value_name = "DIR")]
    pub(crate) image_directory: Option<PathBuf>,
    /// A network of its own for the server, joined to this machine by a link with this MTU: mtu:1500, mtu:9000 (as root).
    #[arg(long, value_name = "mtu:BYTES", value_parser = NetworkPlan::named)]
    pub(crate) network: Option<NetworkPlan>,
    /// Port on 127.0.0.1, or of its own network; a free one if not given.
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// CPUs' worth of time, as 1.5.
    #[arg(long, value_parser = cpus)]
    pub(crate) cpus: Option<f64>,
    /// Memory with its page cache, as 1G.
    #[arg(long, value_parser = size_bytes)]
    pub(crate) memory: Option<u64>,
    /// Reads per second, and as many writes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iops: Option<u64>,
    /// Bytes per second read, and as many written, as 125M.
    #[arg(long, value_parser = size_bytes)]
    pub(crate) bandwidth: Option<u64>,
    /// A line for postgresql.conf, as max_connections=300 (may be given several times).
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) settings: Vec<(String, String)>,
}

fn cpus(text: &str) -> Result<f64, String> {
    // Below a hundredth the kernel's least quota is reached.
    text.parse::<f64>()
        .ok()
        .filter(|n| (0.01..=10_000.0).contains(n))
        .ok_or_else(|| "expected a number of CPUs from 0.01, as 1.5".to_owned())
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
            filesystem: None,
            wal_filesystem: None,
            image_directory: None,
            network: None,
            port: None,
            cpus: None,
            memory: None,
            iops: None,
            bandwidth: None,
            settings: Vec::new(),
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
