//! Where data or WAL of a treatment's server is.

use pgdyno_sandbox::FileSystemPlan;
use std::path::PathBuf;

/// The network that is none: client and server on one host.
pub(crate) const LOOPBACK: &str = "loopback";
/// Where the target's own data is.
const DISK: &str = "disk";

/// A place for data or WAL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// As the target has it.
    Disk,
    /// A file system made for it.
    Made(FileSystemPlan),
    /// A directory that is there.
    Directory(PathBuf),
}

impl Place {
    /// "disk", "tmpfs:4G", "ext4:4G", "/mnt/fast".
    pub fn named(text: &str) -> Result<Place, String> {
        match text {
            DISK => Ok(Place::Disk),
            path if path.starts_with('/') => Ok(Place::Directory(PathBuf::from(path))),
            made => FileSystemPlan::named(made)
                .map(Place::Made)
                .map_err(|message| format!("{message}; or \"{DISK}\", or an absolute path")),
        }
    }
}
