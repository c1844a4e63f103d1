//! What a command prints, kept up to a size.

use crate::log;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

/// What a command prints, up to a size. Not a pipe: a postmaster that the command starts keeps its
/// end open for as long as it lives.
pub(crate) struct Printed(File);

impl Printed {
    /// What comes after so many bytes is not kept, and a writer gets an error.
    const BYTES: u64 = 64 * 1024;

    pub(crate) fn new() -> Option<Printed> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("restart", flags).ok()?);
        file.set_len(Printed::BYTES).ok()?;
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK).ok()?;
        Some(Printed(file))
    }

    pub(crate) fn stdio(&self) -> Stdio {
        self.0.try_clone().map_or_else(|_| Stdio::null(), Stdio::from)
    }

    pub(crate) fn last(&self) -> Option<String> {
        let mut bytes = vec![0; usize::try_from(Printed::BYTES).unwrap_or(0)];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        log::last_lines(&String::from_utf8_lossy(&bytes[..end]))
    }
}
