//! `pgdyno sandbox` on the command line.

use super::assignment;
use clap::{Args, Subcommand};
use pgdyno_server::sandbox::{FileSystemKind, FileSystemPlan, NetworkPlan};
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
    #[arg(long, value_name = "KIND:SIZE", value_parser = file_system, conflicts_with = "data")]
    pub(crate) filesystem: Option<FileSystemPlan>,
    /// A file system of its own for the WAL.
    #[arg(long, value_name = "KIND:SIZE", value_parser = file_system, conflicts_with = "wal")]
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
    #[arg(long, value_parser = bytes)]
    pub(crate) memory: Option<u64>,
    /// Reads per second, and as many writes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iops: Option<u64>,
    /// Bytes per second read, and as many written, as 125M.
    #[arg(long, value_parser = bytes)]
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

/// 125M, 1G, 4096: powers of 1024, as everywhere in PostgreSQL and the kernel.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes above zero, with K, M, G or T, as 125M".to_owned();
    let (number, factor) = match text.trim().char_indices().last().ok_or_else(wrong)? {
        (at, 'k' | 'K') => (&text[..at], 1_u64 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        (at, 't' | 'T') => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    let number: u64 = number.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(factor).filter(|&n| n > 0).ok_or_else(wrong)
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

/// tmpfs:2G, ext4:4G.
pub(crate) fn file_system(text: &str) -> Result<FileSystemPlan, String> {
    let wrong = || {
        let names = FileSystemKind::ALL.map(FileSystemKind::name);
        format!(
            "expected a file system and its size, as ext4:4G; there are {}",
            names.join(", ")
        )
    };
    let (kind, size) = text.split_once(':').ok_or_else(wrong)?;
    Ok(FileSystemPlan {
        kind: FileSystemKind::named(kind).ok_or_else(wrong)?,
        size_bytes: bytes(size)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(bytes("125M"), Ok(125 << 20));
        assert_eq!(bytes("4096"), Ok(4096));
        assert!(bytes("0").is_err() && bytes("1X").is_err() && bytes("").is_err() && bytes("é").is_err());
        assert!(bytes("99999999999T").is_err());
        assert!(cpus("0").is_err() && cpus("nan").is_err());
    }
}
