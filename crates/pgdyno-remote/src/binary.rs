//! The program that is copied to a host.

use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is copied: a build without optimisation has 200 MB.
const BYTES_MAX: u64 = 1 << 30;

/// A program for hosts of one architecture; copies of it share its bytes.
#[derive(Clone)]
pub struct AgentBinary {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) sha256: String,
}

/// Why there is no program for a host.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// No file is known that runs there.
    #[error("no pgdyno for {machine} is at {place}")]
    None {
        /// The architecture, as `uname -m` prints it.
        machine: String,
        /// Where it was looked for.
        place: PathBuf,
    },
    /// The file is there and cannot be read.
    #[error("{path} could not be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
}

impl AgentBinary {
    /// Reads the program from a file.
    ///
    /// # Errors
    ///
    /// [`BinaryError::Unreadable`].
    pub fn read(path: &Path) -> Result<AgentBinary, BinaryError> {
        let bytes = pgdyno_host::given_bytes(path, BYTES_MAX).map_err(|source| BinaryError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Ok(AgentBinary {
            sha256: hash_of(&bytes),
            bytes: bytes.into(),
        })
    }
}

/// The SHA-256 of bytes in hexadecimal digits, as `sha256sum` prints it.
pub fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
