//! Captured machines: the files of a host that pgdyno reads, as one text each in `fixtures/hosts`.
//! For tests alone.
//!
//! The format is in docs/reference/fixtures.md. A test unpacks a machine into a directory of its
//! own, which is its host's root.

mod archive;
mod broken;

pub use archive::{Archive, ArchiveError, Entry};
pub use broken::Fault;

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The file system in memory.
const MEMORY: &str = "/dev/shm";
/// Of the archives' names.
const SUFFIX: &str = ".machine";
/// The machine that the broken ones are made of: the one with the smallest tree of control groups.
const WHOLE: &str = "x86_64-6.12-cgroup2";

/// An unpacked machine, removed when it is dropped.
#[derive(Debug)]
pub struct Machine {
    name: String,
    directory: TempDir,
}

impl Machine {
    /// A machine of `fixtures/hosts`, or a broken one made of one of them (`broken-empty`).
    ///
    /// # Panics
    ///
    /// Panics where there is no such machine, or it cannot be unpacked.
    pub fn named(name: &str) -> Self {
        let archive = archive(name);
        let prefix = format!("{name}-");
        let mut directory = tempfile::Builder::new();
        let directory = directory.prefix(&prefix);
        // A disk's file system takes a long time for thousands of small files that come and go.
        let directory = directory.tempdir_in(MEMORY).or_else(|_| directory.tempdir());
        let directory = directory.expect("a directory for a machine");
        unpack(&archive, directory.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let name = name.to_owned();
        Self { name, directory }
    }

    /// Every machine that was captured.
    pub fn captured() -> Vec<Self> {
        captured_names().iter().map(|name| Self::named(name)).collect()
    }

    /// Names of all machines, broken ones too, sorted.
    pub fn names() -> Vec<String> {
        let mut names = captured_names();
        names.extend(Fault::ALL.map(|fault| fault.machine()));
        names.sort();
        names
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The root of its files.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }
}

/// The directory of the archives.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

fn captured_names() -> Vec<String> {
    let entries = fs::read_dir(directory()).expect("fixtures/hosts");
    let files = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = files
        .filter_map(|file| file.strip_suffix(SUFFIX).map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// The files of a machine, as [`Machine::named`] unpacks them.
///
/// # Panics
///
/// Panics where there is no such machine, or its archive is none.
pub fn archive(name: &str) -> Archive {
    match Fault::ALL.into_iter().find(|fault| fault.machine() == name) {
        Some(fault) => fault.of(&read(WHOLE)),
        None => read(name),
    }
}

fn read(name: &str) -> Archive {
    let path = directory().join(format!("{name}{SUFFIX}"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Archive::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes an archive's files and links below a directory.
///
/// # Errors
///
/// What the system says. A file that is there already is an error.
pub fn unpack(archive: &Archive, root: &Path) -> io::Result<()> {
    for (name, entry) in archive.entries() {
        let path = root.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match entry {
            Entry::File(bytes) => io::Write::write_all(&mut fs::File::create_new(&path)?, bytes)?,
            Entry::Link(target) => symlink(target, &path)?,
        }
    }
    Ok(())
}
