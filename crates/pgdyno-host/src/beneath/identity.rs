//! What a file is, whatever it is called.

/// A file or directory, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device that holds it.
    pub device: u64,
    /// Number of the inode on that device.
    pub inode: u64,
}

impl Identity {
    pub(crate) fn of(found: &rustix::fs::Stat) -> Identity {
        Identity {
            device: found.st_dev,
            inode: found.st_ino,
        }
    }
}
