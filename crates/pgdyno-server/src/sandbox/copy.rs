//! A copy of a stopped sandbox's files, and the files from a copy: the one place that writes below a data directory of its own accord.
//!
//! A copy is `data/`, `wal/` and, written last, `copy.json`: without it there is no copy. Blocks are shared with the original where
//! the file system can (FICLONE), else copied inside of the kernel.

mod tree;

use super::{Sandbox, SandboxError, State, create};
use pgdyno_host::{Directory, EntryKind, HostAccess, LocalHost, Owner};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tree::Copier;

const FORMAT: u32 = 1;
/// What a treatment has set stays as it is: it is of the present, not of the copy.
const KEPT: &str = "postgresql.auto.conf";
/// The file of a sandbox that is there while a copy is restored.
const RESTORING: &str = "restoring";
/// The WAL is copied apart from the data, wherever it is; so a copy fits whatever place it has later.
const WAL: &str = "pg_wal";

/// copy.json.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    format: u32,
    sandbox: String,
    /// Of the record: tells it from another sandbox of the same name.
    created_unix_ms: u64,
    bytes: u64,
    files: u64,
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Bytes copied.
    pub bytes: u64,
    /// Bytes to copy.
    pub bytes_all: u64,
}

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copied {
    /// Bytes of files.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// How long it took, with making it durable.
    pub seconds: f64,
    /// Whether all files share their blocks with the original.
    pub is_reflinked: bool,
}

/// Told after every file, and within large ones.
pub type OnProgress<'a> = &'a mut dyn FnMut(CopyProgress);

impl Sandbox {
    /// Copies data and WAL of the stopped server to `to`, a directory that is new or empty, or that an earlier copy was cut short in.
    /// Durable when it returns. Tablespaces are refused.
    pub fn save_copy(&self, to: &Path, on_progress: OnProgress<'_>) -> Result<Copied, SandboxError> {
        self.check_stopped()?;
        self.mount()?;
        if self.state() != State::Stopped {
            return Err(self.unfit("its server has not stopped in order; start and stop it"));
        }
        let (data, wal) = (&self.record.data, self.present_wal()?);
        self.check_tablespaces()?;
        let begun = Instant::now();
        prepare(to, &[data, &wal])?;
        let (data, wal) = (tree::open(data)?, tree::open(&wal)?);
        let size = |of: &Directory, but: &[&str]| of.bytes(but).map_err(SandboxError::io(of.path(), "read"));
        let bytes = size(&data, &[WAL])?.saturating_add(size(&wal, &[])?);
        let held = tree::open(to)?;
        let mut copier = Copier::new(bytes, on_progress);
        if !tree::can_share(&data, &held) {
            check_room(to, bytes)?;
        }
        copier.directory(&data, &held, "data", &[WAL])?;
        copier.directory(&wal, &held, "wal", &[])?;
        tree::sync(&held)?;
        let mark = Mark {
            format: FORMAT,
            sandbox: self.record.name.clone(),
            created_unix_ms: self.record.created_unix_ms,
            bytes: copier.bytes,
            files: copier.files,
        };
        write_mark(to, &mark)?;
        Ok(copier.told(begun))
    }

    /// Puts a copy back in the place of data and WAL of the stopped server; where they are, and what `postgresql.auto.conf` says,
    /// stays as it is. Cut short, it leaves a sandbox that does not start until it is restored again.
    pub fn restore_copy(&self, from: &Path, on_progress: OnProgress<'_>) -> Result<Copied, SandboxError> {
        self.check_stopped()?;
        self.mount()?;
        let mark = read_mark(from)?;
        if (mark.sandbox.as_str(), mark.created_unix_ms)
            != (self.record.name.as_str(), self.record.created_unix_ms)
        {
            let reason = format!("it is a copy of another sandbox, \"{}\"", mark.sandbox);
            return Err(place(from, reason));
        }
        let begun = Instant::now();
        let (data, wal) = (&self.record.data, self.present_wal()?);
        for ours in [data, &wal] {
            if !self.owns(ours) {
                return Err(place(
                    ours,
                    "it does not bear the sandbox's mark and is left alone".into(),
                ));
            }
            if from.starts_with(ours) {
                return Err(place(
                    from,
                    format!("it lies in {}, which it would replace", ours.display()),
                ));
            }
        }
        let note = self.restoring();
        let words = from.to_string_lossy();
        let own = tree::open(&self.directory)?;
        own.replace(RESTORING, words.as_bytes(), Owner::own(0o644))
            .map_err(SandboxError::io(&note, "written"))?;
        let (to_data, to_wal) = (tree::open(data)?, tree::open(&wal)?);
        let (from_data, from_wal) = (tree::open(&from.join("data"))?, tree::open(&from.join("wal"))?);
        let empty =
            |of: &Directory, but: &[&str]| of.empty(but).map_err(SandboxError::io(of.path(), "emptied"));
        empty(&to_data, &[WAL, KEPT])?;
        empty(&to_wal, &[])?;
        if !tree::can_share(&from_data, &to_data) {
            check_room(data, mark.bytes)?;
        }
        let mut copier = Copier::new(mark.bytes, on_progress);
        copier.back(&from_data, &to_data, &[KEPT])?;
        copier.back(&from_wal, &to_wal, &[])?;
        tree::sync(&to_data)?;
        tree::sync(&to_wal)?;
        own.remove(RESTORING)
            .map_err(SandboxError::io(&note, "removed"))?;
        Ok(copier.told(begun))
    }

    /// The file that is there while, and after, a copy is only in part put back: it names the copy.
    fn restoring(&self) -> PathBuf {
        self.directory.join(RESTORING)
    }

    /// A server does not start on a part of a copy: one that was cut short is put back anew, where it is still there.
    pub(super) fn make_whole(&self) -> Result<(), SandboxError> {
        let note = tree::open(&self.directory)?.text(RESTORING, super::SMALL_BYTES_MAX);
        match note {
            Ok(from) if is_whole_copy(Path::new(&from)) => {
                self.restore_copy(Path::new(&from), &mut |_| {}).map(drop)
            }
            Ok(from) => Err(self.unfit(&format!(
                "its files were put back only in part, from the copy at {from}"
            ))),
            Err(_) => Ok(()),
        }
    }

    fn unfit(&self, reason: &str) -> SandboxError {
        SandboxError::Unfit {
            name: self.record.name.clone(),
            reason: reason.to_owned(),
        }
    }

    fn check_stopped(&self) -> Result<(), SandboxError> {
        if !self.record.ready {
            return Err(SandboxError::HalfMade(self.record.name.clone()));
        }
        if self.has_postmaster() || self.is_being_started() {
            return Err(self.unfit("its server runs; stop it before its files are copied"));
        }
        Ok(())
    }

    /// Where pg_wal leads now.
    fn present_wal(&self) -> Result<PathBuf, SandboxError> {
        let place = self.record.data.join(WAL);
        fs::canonicalize(&place).map_err(SandboxError::io(&place, "read"))
    }

    fn check_tablespaces(&self) -> Result<(), SandboxError> {
        let place = self.record.data.join("pg_tblspc");
        let entries = tree::open(&place)?.entries();
        match entries.map_err(SandboxError::io(&place, "read"))?.first() {
            Some(_) => Err(self.unfit("it has tablespaces, which are not copied; drop them")),
            None => Ok(()),
        }
    }

    /// Whether a directory is this sandbox's: below its own, or marked beside.
    fn owns(&self, path: &Path) -> bool {
        let below = |above: &Path| {
            fs::canonicalize(path).is_ok_and(|path| {
                fs::canonicalize(above).is_ok_and(|above| path != above && path.starts_with(above))
            })
        };
        below(&self.directory) || create::is_marked(path, &self.record.name)
    }
}

/// Whether a whole copy lies there.
pub fn is_whole_copy(path: &Path) -> bool {
    read_mark(path).is_ok()
}

/// Removes a copy, whole or cut short; what is not one is left alone. Nothing there is fine.
pub fn remove_copy(path: &Path) -> Result<(), SandboxError> {
    let copy = match Directory::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(SandboxError::io(path, "opened"))?,
    };
    if !has(&copy, MARK)? && !has(&copy, BEGUN)? {
        return Err(place(path, "it is no copy of a sandbox and is left alone".into()));
    }
    // Its mark first: what is there only in part is no copy.
    copy.remove(MARK)
        .map_err(SandboxError::io(&mark_file(path), "removed"))?;
    for part in ["data", "wal"] {
        super::remove_tree(&path.join(part))?;
    }
    super::remove_tree(path)
}

fn place(path: &Path, reason: String) -> SandboxError {
    let path = path.to_owned();
    SandboxError::Place { path, reason }
}

fn mark_file(path: &Path) -> PathBuf {
    path.join(MARK)
}

const MARK: &str = "copy.json";
const BEGUN: &str = "copy.begun";

fn has(copy: &Directory, name: &str) -> Result<bool, SandboxError> {
    let kind = copy.kind(name).map_err(SandboxError::io(copy.path(), "read"))?;
    Ok(kind == Some(EntryKind::File))
}

/// An empty directory that says that a copy has begun.
fn prepare(to: &Path, originals: &[&Path]) -> Result<(), SandboxError> {
    if let Ok(there) = Directory::open(to) {
        if has(&there, MARK)? {
            return Err(place(to, "there is a copy already; remove it first".into()));
        }
        if has(&there, BEGUN)? {
            remove_copy(to)?;
        } else if there.entries().is_ok_and(|entries| !entries.is_empty()) {
            return Err(place(
                to,
                "it is not empty; a copy wants a new or an empty directory".into(),
            ));
        }
    }
    pgdyno_host::make_directory(to, 0o700).map_err(SandboxError::io(to, "made"))?;
    let whole = fs::canonicalize(to).map_err(SandboxError::io(to, "read"))?;
    if let Some(original) = originals.iter().find(|original| whole.starts_with(original)) {
        let _ = Directory::above(to).and_then(|(above, name)| above.remove_empty(name));
        return Err(place(
            to,
            format!("it lies in {}, of which it is to be a copy", original.display()),
        ));
    }
    let begun = tree::open(to)?.replace(BEGUN, b"", Owner::own(0o644));
    begun.map_err(SandboxError::io(&to.join(BEGUN), "written"))
}

fn check_room(path: &Path, bytes: u64) -> Result<(), SandboxError> {
    match LocalHost::new().space_of(&path.to_string_lossy()) {
        Some(Ok(space)) if space.free_bytes < bytes => Err(place(
            path,
            format!("{} bytes are free there, a copy needs {bytes}", space.free_bytes),
        )),
        _ => Ok(()),
    }
}

fn write_mark(to: &Path, mark: &Mark) -> Result<(), SandboxError> {
    let path = mark_file(to);
    let text = serde_json::to_string_pretty(mark).map_err(|e| place(&path, e.to_string()))?;
    tree::open(to)?
        .replace(MARK, text.as_bytes(), Owner::own(0o644))
        .map_err(SandboxError::io(&path, "written"))
}

fn read_mark(from: &Path) -> Result<Mark, SandboxError> {
    let path = mark_file(from);
    let text = match Directory::open(from).and_then(|copy| copy.text(MARK, super::SMALL_BYTES_MAX)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let reason = "there is no whole copy: it has no copy.json, which is written last";
            return Err(place(from, reason.to_owned()));
        }
        Err(e) => return Err(SandboxError::io(&path, "read")(e)),
    };
    let mark: Mark = serde_json::from_str(&text).map_err(|e| place(&path, e.to_string()))?;
    if mark.format != FORMAT {
        let reason = format!("it has format {}, this pgdyno knows {FORMAT}", mark.format);
        return Err(place(&path, reason));
    }
    Ok(mark)
}

#[cfg(test)]
mod tests;
