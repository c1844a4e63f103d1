//! A copy of a stopped sandbox's files, and the files from a copy: the one place that writes below
//! a data directory of its own accord.
//!
//! A copy is `data/`, `wal/` and, written last, `copy.json`: without it there is no copy. Blocks
//! are shared with the original where the file system can (FICLONE), else copied inside of the
//! kernel.

mod tree;

use super::{Sandbox, SandboxError, State, create};
use pgdyno_host::{Directory, EntryKind, HostAccess, LocalHost, Owner};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tree::Copier;

const FORMAT: u32 = 1;
/// What a treatment has set stays as it is: it is of the present, not of the copy.
const KEPT: &str = "postgresql.auto.conf";
/// The file of a sandbox that is there while a copy is restored.
const RESTORING: &str = "restoring";
/// The WAL is copied apart from the data, wherever it is; so a copy fits whatever place it has
/// later.
const WAL: &str = "pg_wal";
/// Replication slots.
const SLOTS: &str = "pg_replslot";

/// The content of copy.json, which marks a copy that has not ended.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    format: u32,
    sandbox: String,
    /// Of the record: distinguishes it from another sandbox of the same name.
    created_unix_ms: u64,
    bytes: u64,
    files: u64,
}

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Number of bytes that are copied so far.
    pub bytes: u64,
    /// Number of bytes to copy in all.
    pub bytes_all: u64,
}

/// Size of a copy that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Copied {
    /// Bytes of all files.
    pub bytes: u64,
    /// Number of files.
    pub files: u64,
    /// How long it took, with making it durable.
    pub seconds: f64,
    /// Whether all files share their blocks with the original.
    pub is_reflinked: bool,
}

/// Called after every file, and within large ones.
pub type OnProgress<'a> = &'a mut dyn FnMut(CopyProgress);

impl Sandbox {
    /// Copies data and WAL of the stopped server to `to`, a directory that is new or empty, or that
    /// an earlier copy was cut short in. Durable when it returns. Tablespaces are refused.
    pub fn save_copy(&self, to: &Path, on_progress: OnProgress<'_>) -> Result<Copied, SandboxError> {
        self.check_stopped()?;
        self.mount()?;
        if self.state() != State::Stopped {
            return Err(self.unfit("its server has not stopped in order; start and stop it"));
        }
        let data = self.present_data()?;
        let wal = present_wal(&data)?;
        self.check_tablespaces(&data)?;
        let begun = Instant::now();
        let held = prepare(to, &[&data, &wal])?;
        let size = |of: &Directory, but: &[&str]| of.bytes(but).map_err(SandboxError::io(of.path(), "read"));
        let bytes = size(&data, &[WAL])?.saturating_add(size(&wal, &[])?);
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
        write_mark(&held, &mark)?;
        Ok(copier.copied(begun))
    }

    /// Restores a copy in the place of data and WAL of the stopped server; where they are, and what
    /// `postgresql.auto.conf` says, stays as it is. Cut short, it leaves a sandbox that does not
    /// start until it is restored again.
    pub fn restore_copy(&self, from: &Path, on_progress: OnProgress<'_>) -> Result<Copied, SandboxError> {
        self.check_stopped()?;
        if self.record.standbys.is_some() {
            return Err(self.unfit(
                "it has standbys, which could not follow it back; use another way to reset its data",
            ));
        }
        self.mount()?;
        let mark = read_mark(from)?;
        if (mark.sandbox.as_str(), mark.created_unix_ms)
            != (self.record.name.as_str(), self.record.created_unix_ms)
        {
            let reason = format!("it is a copy of another sandbox, \"{}\"", mark.sandbox);
            return Err(place(from, reason));
        }
        let begun = Instant::now();
        let to_data = self.present_data()?;
        let to_wal = present_wal(&to_data)?;
        let held = tree::open(from)?;
        let where_from = resolved(&held)?;
        for ours in [&to_data, &to_wal] {
            if !self.owns(ours) {
                return Err(place(
                    ours.path(),
                    "it does not bear the sandbox's mark and is left alone".into(),
                ));
            }
            if where_from.starts_with(resolved(ours)?) {
                return Err(place(
                    from,
                    format!("it is in {}, which it would replace", ours.path().display()),
                ));
            }
        }
        let note = self.restoring();
        let text = from.to_string_lossy();
        let own = tree::open(&self.directory)?;
        own.replace(RESTORING, text.as_bytes(), Owner::own(0o644))
            .map_err(SandboxError::io(&note, "written"))?;
        let (from_data, from_wal) = (tree::below(&held, "data")?, tree::below(&held, "wal")?);
        let empty =
            |of: &Directory, but: &[&str]| of.empty(but).map_err(SandboxError::io(of.path(), "emptied"));
        empty(&to_data, &[WAL, KEPT])?;
        empty(&to_wal, &[])?;
        if !tree::can_share(&from_data, &to_data) {
            check_room(to_data.path(), mark.bytes)?;
        }
        let mut copier = Copier::new(mark.bytes, on_progress);
        copier.back(&from_data, &to_data, &[KEPT])?;
        copier.back(&from_wal, &to_wal, &[])?;
        tree::sync(&to_data)?;
        tree::sync(&to_wal)?;
        own.remove(RESTORING)
            .map_err(SandboxError::io(&note, "removed"))?;
        Ok(copier.copied(begun))
    }

    /// Copies data and WAL of the stopped server to the empty data directory of another sandbox.
    pub(super) fn copy_into(&self, to: &Path) -> Result<(), SandboxError> {
        self.check_stopped()?;
        self.mount()?;
        let (data, to) = (self.present_data()?, tree::open(to)?);
        let wal = present_wal(&data)?;
        self.check_tablespaces(&data)?;
        let mut on_progress = |_| {};
        let mut copier = Copier::new(0, &mut on_progress);
        copier.back(&data, &to, &[WAL])?;
        copier.directory(&wal, &to, WAL, &[])?;
        // Slots are the primary's: in a copy nobody would advance them, and they would keep all
        // WAL.
        let slots = tree::below(&to, SLOTS)?;
        slots
            .empty(&[])
            .map_err(SandboxError::io(slots.path(), "emptied"))
    }

    /// The file that is there while, and after, a copy is only in part restored: it names the copy.
    fn restoring(&self) -> PathBuf {
        self.directory.join(RESTORING)
    }

    /// A server does not start on a part of a copy: one that was cut short is restored again, where
    /// it is still there.
    pub(super) fn make_whole(&self) -> Result<(), SandboxError> {
        let note = tree::open(&self.directory)?.text(RESTORING, super::SMALL_BYTES_MAX);
        match note {
            Ok(from) if is_whole_copy(Path::new(&from)) => {
                self.restore_copy(Path::new(&from), &mut |_| {}).map(drop)
            }
            Ok(from) => Err(self.unfit(&format!(
                "its files were restored only in part, from the copy at {from}"
            ))),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn unfit(&self, reason: &str) -> SandboxError {
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

    /// The data directory. Whoever may write above it can have exchanged it, so it is one of the
    /// server's user's.
    fn present_data(&self) -> Result<Directory, SandboxError> {
        let data = tree::open(&self.record.data)?;
        of_user(&data, self.record.owner(0).uid)?;
        Ok(data)
    }

    fn check_tablespaces(&self, data: &Directory) -> Result<(), SandboxError> {
        let spaces = tree::below(data, "pg_tblspc")?;
        let entries = spaces.entries();
        match entries.map_err(SandboxError::io(spaces.path(), "read"))?.first() {
            Some(_) if self.record.temp.is_some() => Err(self
                .unfit("its temporary files have a tablespace, which is not copied; make it without --temp")),
            Some(_) => Err(self.unfit("it has tablespaces, which are not copied; drop them")),
            None => Ok(()),
        }
    }

    /// Whether a directory is this sandbox's: below its own, or marked beside.
    fn owns(&self, held: &Directory) -> bool {
        let own = || Ok::<_, SandboxError>((resolved(held)?, resolved(&tree::open(&self.directory)?)?));
        let is_below = own().is_ok_and(|(path, own)| path != own && path.starts_with(own));
        is_below || create::is_marked(held, &self.record.name)
    }
}

/// Where pg_wal leads now. The server's user makes it lead anywhere, so it is a directory of the
/// same user's.
fn present_wal(data: &Directory) -> Result<Directory, SandboxError> {
    let path = data.path().join(WAL);
    let failed = |e: io::Error| SandboxError::io(&path, "opened")(e);
    let wal = match data.kind(WAL).map_err(failed)? {
        Some(EntryKind::Link) => {
            let leads = data.read_link(WAL).map_err(failed)?;
            Directory::open(&resolved(data)?.join(leads)).map_err(failed)?
        }
        _ => data.directory(WAL).map_err(failed)?,
    };
    of_user(&wal, data.owner().uid)?;
    Ok(wal)
}

fn of_user(held: &Directory, expected: u32) -> Result<(), SandboxError> {
    match held.owner().uid {
        uid if uid == expected => Ok(()),
        uid => Err(place(
            held.path(),
            format!("it belongs to user {uid}, expected user {expected}, whom the sandbox runs as"),
        )),
    }
}

fn resolved(held: &Directory) -> Result<PathBuf, SandboxError> {
    held.resolved().map_err(SandboxError::io(held.path(), "read"))
}

/// Whether a whole copy is there.
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
        return Err(place(
            path,
            "it is not a copy of a sandbox and is left alone".into(),
        ));
    }
    // Its mark first: what is there only in part is not a copy.
    copy.remove(MARK)
        .map_err(SandboxError::io(&mark_file(path), "removed"))?;
    ["data", "wal"]
        .iter()
        .try_for_each(|part| copy.remove_tree(part))
        .and_then(|()| copy.empty(&[]))
        .and_then(|()| Directory::above(path))
        .and_then(|(above, name)| above.remove_empty(name))
        .map_err(SandboxError::io(path, "removed"))
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
fn prepare(to: &Path, originals: &[&Directory]) -> Result<Directory, SandboxError> {
    if let Ok(there) = Directory::open(to) {
        if has(&there, MARK)? {
            return Err(place(to, "there is a copy already; remove it first".into()));
        }
        if has(&there, BEGUN)? {
            remove_copy(to)?;
        } else if there.entries().is_ok_and(|entries| !entries.is_empty()) {
            return Err(place(
                to,
                "it is not empty; a copy needs a new or an empty directory".into(),
            ));
        }
    }
    let held = pgdyno_host::make_directory(to, 0o700).map_err(SandboxError::io(to, "made"))?;
    let whole = resolved(&held)?;
    for original in originals {
        if whole.starts_with(resolved(original)?) {
            let _ = Directory::above(to).and_then(|(above, name)| above.remove_empty(name));
            let reason = format!(
                "it is in {}, of which it is to be a copy",
                original.path().display()
            );
            return Err(place(to, reason));
        }
    }
    held.replace(BEGUN, b"", Owner::own(0o644))
        .map_err(SandboxError::io(&to.join(BEGUN), "written"))?;
    Ok(held)
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

fn write_mark(to: &Directory, mark: &Mark) -> Result<(), SandboxError> {
    let path = mark_file(to.path());
    let text = serde_json::to_string_pretty(mark).map_err(|e| place(&path, e.to_string()))?;
    to.replace(MARK, text.as_bytes(), Owner::own(0o644))
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
    parse_mark(&text).map_err(|reason| place(&path, reason))
}

fn parse_mark(text: &str) -> Result<Mark, String> {
    let mark: Mark = serde_json::from_str(text).map_err(|e| e.to_string())?;
    match mark.format {
        FORMAT => Ok(mark),
        other => Err(format!("it has format {other}; this pgdyno reads {FORMAT}")),
    }
}

/// For the fuzz targets: any text is a mark that is written and read again as the same, or an
/// error.
pub(crate) fn fuzzed_mark(text: &str) {
    if let Ok(mark) = parse_mark(text) {
        let written = serde_json::to_string(&mark).ok();
        assert!(written.is_some_and(|text| parse_mark(&text).is_ok_and(|again| again == mark)));
    }
}

#[cfg(test)]
mod tests;
