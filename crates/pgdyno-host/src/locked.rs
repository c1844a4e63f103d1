//! Locks of files that are let go of in time.

use std::fs::File;
use std::ops::{Deref, DerefMut};

/// A file whose lock (`flock`) this process holds until the value is dropped, or until the process
/// ends.
///
/// Dropping unlocks the file instead of only closing it: a child that another thread forks at that
/// moment has the file open, and with it the lock, until it executes its program.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Takes over a file that is locked already.
    pub fn held(file: File) -> LockedFile {
        LockedFile(file)
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing, which follows, is the second best.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_gone_with_it_though_the_file_is_open_elsewhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let first = File::open(file.path()).unwrap();
        first.try_lock().unwrap();
        // As in a child that was forked and has executed nothing yet.
        let inherited = first.try_clone().unwrap();
        drop(LockedFile::held(first));
        File::open(file.path()).unwrap().try_lock().unwrap();
        drop(inherited);
    }
}
