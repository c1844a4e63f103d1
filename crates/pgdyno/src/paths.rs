//! Paths as people name them.

use std::path::{Path, PathBuf};

/// A path from the root on; one that cannot be told stays as it is.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
