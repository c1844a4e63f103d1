//! Where a store is.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a store is. Displays without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Path of a SQLite file.
    File(PathBuf),
    /// A database of a server, by a name that holds no password.
    Server(String),
}

impl Place {
    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Place::File(path) => Some(path),
            Place::Server(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => path.display().fmt(f),
            Place::Server(name) => f.write_str(name),
        }
    }
}
