//! Where journals are: each home's own directory, and the registry, one for all homes of a user on
//! this host.
//!
//! The registry holds a copy of each journal and the locks. By it a command with another
//! PGDYNO_HOME finds what is changed, and what a damaged journal has lost is read from the copy.

use super::content::{Content, assemble};
use super::{JournalError, io_error, line, sync_directory, trust};
use pgdyno_host::Owner;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) const ENDING: &str = "journal";
pub(super) const COPY_ENDING: &str = "changes";
/// What a damaged file is kept as, behind its name.
const DAMAGED: &str = "damaged";
const FORMAT: u32 = 1;
/// Two paths of PATH_MAX bytes, each byte of which JSON may write as six, and some text.
const HEADER_BYTES_MAX: u64 = 64 << 10;
/// Everybody may go through the registry to the notices; its other files are for their owner alone.
const REGISTRY_MODE: u32 = 0o755;

/// Another user of this host, whose notices are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherUser {
    /// Login name of the user.
    pub name: String,
    /// The user number, which owns all that is read.
    pub uid: u32,
    /// A directory that the user cannot exchange for another: the home directory.
    pub home: PathBuf,
    /// Registry of the user's journals, below `home`.
    pub registry: PathBuf,
}

/// Where journals are kept, and where all changes on this host are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journals {
    /// Directory of this home's own journals.
    pub directory: PathBuf,
    /// The registry: the same for all homes of this user on this host.
    pub registry: PathBuf,
    /// How people name this home: "PGDYNO_HOME=/srv/lab".
    pub home: String,
    /// Other users of this host, whose notices are read.
    pub others: Vec<OtherUser>,
}

/// A journal that is not closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its file; where that is gone, its copy in the registry.
    pub path: PathBuf,
    /// The other home that it belongs to; `None` for this home's.
    pub home: Option<String>,
}

/// The first line of a copy.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    journal: PathBuf,
    home: String,
}

impl Header {
    /// The first line of the bytes.
    fn parse(bytes: &[u8]) -> Result<Header, String> {
        let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let header: Header = serde_json::from_slice(first).map_err(|e| e.to_string())?;
        match header.format {
            FORMAT => Ok(header),
            other => Err(format!("it has format {other}; this pgdyno reads {FORMAT}")),
        }
    }
}

/// The files of a journal, open.
pub(super) struct Found {
    /// The journal; the copy where that is gone.
    pub(super) file: File,
    /// Copy of the journal in the registry, where there is one.
    pub(super) copy: Option<(PathBuf, File)>,
}

#[cfg(test)]
impl Journals {
    /// Those of a home below a directory that has a registry for several.
    pub(crate) fn in_test(directory: &Path) -> Journals {
        Journals {
            directory: directory.join("journal"),
            registry: directory.join("registry"),
            home: "PGDYNO_HOME=test".to_owned(),
            others: Vec::new(),
        }
    }
}

impl Journals {
    /// Journals of this home and of all others in the registry that are not closed, in the order in
    /// which they were begun. What is in the directory and cannot be trusted is among them: reading
    /// it says why.
    pub fn listed(&self) -> Result<Vec<Listed>, JournalError> {
        let own = files_in(&self.directory, ENDING)?;
        // What is in the place of a journal and is none has its copy beside it.
        let readable = own.iter().filter(|path| is_trusted(path));
        let copies_of_own: Vec<PathBuf> = readable.map(|path| self.copy_of(path)).collect();
        let mut all: Vec<Listed> = own.into_iter().map(|path| Listed { path, home: None }).collect();
        for copy in files_in(&self.registry, COPY_ENDING)? {
            if copies_of_own.contains(&copy) {
                continue;
            }
            // One that does not say whose it is could be ours.
            let Ok(header) = header_of(&copy) else {
                all.push(Listed {
                    path: copy,
                    home: None,
                });
                continue;
            };
            let is_ours = header.journal.parent().is_some_and(|directory| {
                same_file_name(directory) == same_file_name(&self.directory) || directory == self.directory
            });
            all.push(Listed {
                path: if is_trusted(&header.journal) {
                    header.journal
                } else {
                    copy
                },
                home: (!is_ours).then_some(header.home),
            });
        }
        all.sort_by_key(|listed| (super::began(&listed.path), listed.path.clone()));
        Ok(all)
    }

    /// Damaged files that were kept aside when what they prove was restored.
    pub fn damaged(&self) -> Result<Vec<PathBuf>, JournalError> {
        let mut all = files_in(&self.directory, DAMAGED)?;
        all.extend(files_in(&self.registry, DAMAGED)?);
        Ok(all)
    }

    /// What one holds, and whether its process lives; nothing is locked or changed. `None` where it
    /// is closed by now.
    pub fn look(&self, path: &Path) -> Result<Option<(Content, bool)>, JournalError> {
        let Some(found) = self.found(path, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let lives = found.is_held()?;
        let content = found.content(path)?;
        let is_over = !lives && content.is_over();
        Ok((!is_over).then_some((content, lives)))
    }

    /// Its files, opened as is wanted and trusted; `None` where it is gone.
    pub(super) fn found(&self, path: &Path, how: OFlags) -> Result<Option<Found>, JournalError> {
        if let Some(directory) = path.parent() {
            trust::directory(directory)?;
        }
        let Some(file) = trust::open(path, how)? else {
            return Ok(None);
        };
        if is_copy(path) {
            return Ok(Some(Found { file, copy: None }));
        }
        trust::directory(&self.registry)?;
        let copy = self.copy_of(path);
        let opened = trust::open(&copy, how)?;
        Ok(Some(Found {
            file,
            copy: opened.map(|file| (copy, file)),
        }))
    }

    /// Makes the registry, so that it is there after a power loss too.
    pub(super) fn make_registry(&self) -> Result<(), JournalError> {
        // The server's file is in the copies whole, which can hold secrets of others: only their
        // owner opens them.
        let made = pgdyno_host::make_directory(&self.registry, REGISTRY_MODE);
        let mut held = made.map_err(io_error(&self.registry, "made"))?;
        trust::directory(&self.registry)?;
        let owner = Owner::own(REGISTRY_MODE);
        match held.owner().uid == owner.uid {
            true => held.give(owner).map_err(io_error(&self.registry, "made")),
            false => Ok(()),
        }
    }

    /// Begins the copy of a journal: its file, and the head to be written to it.
    pub(super) fn begin_copy(&self, journal: &Path) -> Result<(PathBuf, File, String), JournalError> {
        let path = self.copy_of(journal);
        let header = Header {
            format: FORMAT,
            journal: same_file_name(journal),
            home: self.home.clone(),
        };
        let head = serde_json::to_string(&header).map_err(|e| JournalError::Line {
            path: path.clone(),
            line: 1,
            reason: e.to_string(),
        })?;
        let file = File::options()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(io_error(&path, "made"))?;
        Ok((path, file, head + "\n"))
    }

    pub(super) fn sync_registry(&self) -> Result<(), JournalError> {
        sync_directory(&self.registry)
    }

    pub(super) fn copy_of(&self, journal: &Path) -> PathBuf {
        let name = same_file_name(journal);
        let hash = line::short_hash(name.as_os_str().as_bytes());
        let stem = journal.file_stem().unwrap_or_default().to_string_lossy();
        self.registry.join(format!("{stem}-{hash}.{COPY_ENDING}"))
    }
}

impl Found {
    /// Whether a process has it locked.
    fn is_held(&self) -> Result<bool, JournalError> {
        let files = [Some(&self.file), self.copy.as_ref().map(|(_, file)| file)];
        Ok(files
            .into_iter()
            .flatten()
            .any(|file| match file.try_lock_shared() {
                Ok(()) => {
                    // Not until it is closed, for a child of another thread may have it open as
                    // well.
                    let _ = file.unlock();
                    false
                }
                Err(error) => matches!(error, TryLockError::WouldBlock),
            }))
    }

    pub(super) fn content(&self, path: &Path) -> Result<Content, JournalError> {
        let bytes = trust::content(path, &self.file)?;
        if is_copy(path) {
            return assemble(None, Some(after_header(&bytes)), path);
        }
        let copy = match &self.copy {
            Some((path, file)) => Some(trust::content(path, file)?),
            None => None,
        };
        assemble(Some(&bytes), copy.as_deref().map(after_header), path)
    }
}

/// Whether a journal is there, and can be trusted with its directory.
fn is_trusted(path: &Path) -> bool {
    let of_directory = path.parent().map_or(Ok(true), trust::directory);
    matches!(of_directory, Ok(true)) && matches!(trust::open(path, OFlags::RDONLY), Ok(Some(_)))
}

pub(super) fn is_copy(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == COPY_ENDING)
}

/// The bytes behind the first line.
fn after_header(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    end.map_or(&[], |end| &bytes[end + 1..])
}

fn header_of(copy: &Path) -> Result<Header, JournalError> {
    let wrong = |reason: String| JournalError::Line {
        path: copy.to_owned(),
        line: 1,
        reason,
    };
    let file = trust::open(copy, OFlags::RDONLY)?.ok_or_else(|| wrong("it is gone".to_owned()))?;
    let bytes = trust::head(copy, &file, HEADER_BYTES_MAX)?;
    Header::parse(&bytes).map_err(wrong)
}

/// For the fuzz targets: any bytes are a header that is written and read again as the same, or an
/// error.
pub(crate) fn fuzzed_header(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        let written = serde_json::to_vec(&header).ok();
        let again = written.and_then(|bytes| Header::parse(&bytes).ok());
        assert!(again.is_some_and(|again| again == header));
    }
}

/// A name that is the same by whichever links its directory was reached.
fn same_file_name(path: &Path) -> PathBuf {
    match (
        path.parent().and_then(|above| above.canonicalize().ok()),
        path.file_name(),
    ) {
        (Some(above), Some(name)) => above.join(name),
        _ => path.to_owned(),
    }
}

/// The files of a trusted directory with this ending, sorted; none where there is no directory.
fn files_in(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, JournalError> {
    if !trust::directory(directory)? {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(io_error(directory, "read")(e)),
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    paths.sort();
    Ok(paths)
}

/// A free name beside a damaged file, under which it is kept.
pub(super) fn damaged_name(path: &Path) -> PathBuf {
    let mut number = 0_u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.push(format!(".{DAMAGED}"));
        let name = PathBuf::from(name);
        if fs::symlink_metadata(&name).is_err() {
            return name;
        }
        number += 1;
    }
}
