//! Paths as people name them.

use std::path::{Path, PathBuf};

/// The absolute path, or the given one where that cannot be determined.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
