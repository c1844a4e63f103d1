//! Moving the WAL of a stopped server to another directory and back, such that at every instant one whole copy is found.
//!
//! The files are copied and made durable; then pg_wal is set aside under another name, and the new one (a symbolic link, or
//! the directory itself) takes its place; then what was set aside is removed. So pg_wal, if there is one, is whole; if there
//! is none, what was set aside is.

use crate::cell::CellError;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

/// In a directory that holds a server's WAL by pgdyno's doing: the data directory, and below it, where the directory was there
/// before, its owner, group and mode from then.
const MARK: &str = "pgdyno-wal-of";
const ASIDE: &str = "pg_wal.pgdyno-old";
const COMING: &str = "pg_wal.pgdyno-new";
/// Ends the names of what is not marked as ours yet, or not any more.
const UNMARKED: &str = ".pgdyno-new";

fn wrong(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> CellError {
    let path = path.to_owned();
    move |source| CellError::Wal { path, action, source }
}

/// What pg_wal points at: `None` for a directory of its own, an empty path where a move was cut short.
pub(crate) fn location(data: &Path) -> Result<Option<PathBuf>, CellError> {
    let place = data.join("pg_wal");
    match fs::symlink_metadata(&place) {
        Ok(meta) if meta.is_symlink() => fs::read_link(&place).map(Some).map_err(wrong(&place, "read")),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Some(PathBuf::new())),
        Err(e) => Err(wrong(&place, "read")(e)),
    }
}

/// Why a directory cannot take the WAL; `None` where it can: it is empty, or not there yet in a directory that is.
pub(crate) fn objection(to: &Path) -> Option<String> {
    if !to.is_absolute() {
        return Some("expected an absolute path".to_owned());
    }
    match fs::read_dir(to) {
        Ok(mut entries) => entries
            .next()
            .is_some()
            .then(|| format!("{} is not empty", to.display())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let above = to.parent().unwrap_or(Path::new("/"));
            (!above.is_dir()).then(|| format!("{} is not there", above.display()))
        }
        Err(e) => Some(format!("{}: {e}", to.display())),
    }
}

/// Moves the WAL of a stopped server to `to`, or back into the data directory. What an earlier move that was cut short has
/// left is mended first.
pub(crate) fn move_to(data: &Path, to: Option<&Path>) -> Result<(), CellError> {
    let (place, aside, coming) = (data.join("pg_wal"), data.join(ASIDE), data.join(COMING));
    mend(&place, &aside, &coming, data)?;
    if location(data)?.as_deref() == to {
        return Ok(());
    }
    let new = to.unwrap_or(&coming);
    let old = fs::canonicalize(&place).map_err(wrong(&place, "read"))?;
    let owner = fs::metadata(&old).map_err(wrong(&old, "read"))?;
    if to.is_some() {
        let mut mark = data.to_string_lossy().into_owned();
        if let Ok(before) = fs::metadata(new) {
            mark += &format!("\n{} {} {}", before.uid(), before.gid(), before.mode() & 0o7777);
        }
        make_marked(new, mark.as_bytes())?;
    }
    fs::create_dir_all(new).map_err(wrong(new, "made"))?;
    chown(new, Some(owner.uid()), Some(owner.gid())).map_err(wrong(new, "given to the server's user"))?;
    fs::set_permissions(new, fs::Permissions::from_mode(owner.mode() & 0o7777))
        .map_err(wrong(new, "closed"))?;
    copy(&old, new)?;
    fs::rename(&place, &aside).map_err(wrong(&place, "set aside"))?;
    match to {
        Some(to) => {
            symlink(to, &place).map_err(wrong(&place, "made a link"))?;
            let _ = std::os::unix::fs::lchown(&place, Some(owner.uid()), Some(owner.gid()));
        }
        None => fs::rename(&coming, &place).map_err(wrong(&place, "put in place"))?,
    }
    sync(data)?;
    mend(&place, &aside, &coming, data)
}

/// Beside a directory, or a file in one, under a name that tells whose it is.
fn unmarked(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNMARKED);
    name.into()
}

/// Makes a directory with the mark in it, or marks one that is there: at no instant there is one that nobody can tell to be ours.
fn make_marked(directory: &Path, mark: &[u8]) -> Result<(), CellError> {
    if directory.is_dir() {
        let (place, coming) = (directory.join(MARK), unmarked(&directory.join(MARK)));
        write_durably(&coming, mark)?;
        fs::rename(&coming, &place).map_err(wrong(&place, "written"))?;
        return sync(directory);
    }
    let coming = unmarked(directory);
    remove_unmarked(directory)?;
    fs::create_dir(&coming).map_err(wrong(&coming, "made"))?;
    write_durably(&coming.join(MARK), mark)?;
    fs::rename(&coming, directory).map_err(wrong(directory, "made"))?;
    sync(directory.parent().unwrap_or(Path::new("/")))
}

/// Removes what was not marked yet, or not any more.
fn remove_unmarked(directory: &Path) -> Result<(), CellError> {
    let (mark, coming) = (unmarked(&directory.join(MARK)), unmarked(directory));
    for file in [mark, coming.join(MARK)] {
        gone(fs::remove_file(&file)).map_err(wrong(&file, "removed"))?;
    }
    gone(fs::remove_dir(&coming)).map_err(wrong(&coming, "removed"))
}

/// What is not there need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        other => other,
    }
}

/// Removes what a copy that was cut short has left in a directory that pgdyno has made for this server.
pub(crate) fn remove_remains(data: &Path, of: &Path) -> Result<(), CellError> {
    remove_unmarked(of)?;
    let mark = fs::read_to_string(of.join(MARK)).unwrap_or_default();
    let mut lines = mark.lines();
    if lines.next() != Some(&data.to_string_lossy()) || location(data)?.as_deref() == Some(of) {
        return Ok(());
    }
    clear(of)?;
    let numbers: Vec<u32> = lines
        .next()
        .unwrap_or_default()
        .split(' ')
        .flat_map(str::parse)
        .collect();
    match numbers.as_slice() {
        // It was there before, and stays as it was.
        &[uid, gid, mode] => {
            chown(of, Some(uid), Some(gid)).map_err(wrong(of, "given back"))?;
            fs::set_permissions(of, fs::Permissions::from_mode(mode)).map_err(wrong(of, "given back"))?;
            let mark = of.join(MARK);
            fs::remove_file(&mark).map_err(wrong(&mark, "removed"))
        }
        _ => {
            fs::rename(of, unmarked(of)).map_err(wrong(of, "removed"))?;
            remove_unmarked(of)
        }
    }
}

/// With pg_wal in place, what was set aside and what was coming are remains; without it, what was set aside is the WAL.
fn mend(place: &Path, aside: &Path, coming: &Path, data: &Path) -> Result<(), CellError> {
    let there = |path: &Path| fs::symlink_metadata(path).is_ok();
    if !there(place) && there(aside) {
        fs::rename(aside, place).map_err(wrong(place, "put back"))?;
        sync(data)?;
    }
    if !there(place) {
        return Ok(());
    }
    if let Ok(meta) = fs::symlink_metadata(aside) {
        if meta.is_symlink() {
            let target = fs::read_link(aside).map_err(wrong(aside, "read"))?;
            fs::remove_file(aside).map_err(wrong(aside, "removed"))?;
            remove_remains(data, &target)?;
        } else {
            fs::remove_dir_all(aside).map_err(wrong(aside, "removed"))?;
        }
    }
    if there(coming) {
        fs::remove_dir_all(coming).map_err(wrong(coming, "removed"))?;
    }
    sync(data)
}

/// Empties a directory but for its mark: what has one is known to be pgdyno's.
fn clear(directory: &Path) -> Result<(), CellError> {
    let entries = fs::read_dir(directory).map_err(wrong(directory, "read"))?;
    for entry in entries.flatten().filter(|entry| entry.file_name() != MARK) {
        let path = entry.path();
        let done = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        };
        done.map_err(wrong(&path, "removed"))?;
    }
    Ok(())
}

/// Copies a tree of plain files with owners and modes, durably.
fn copy(from: &Path, to: &Path) -> Result<(), CellError> {
    let entries = fs::read_dir(from).map_err(wrong(from, "read"))?;
    for entry in entries {
        let entry = entry.map_err(wrong(from, "read"))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == MARK {
            continue;
        }
        let meta = entry.metadata().map_err(wrong(&source, "read"))?;
        if meta.is_dir() {
            fs::create_dir_all(&target).map_err(wrong(&target, "made"))?;
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(wrong(&source, "copied"))?;
            let file = File::open(&target).map_err(wrong(&target, "opened"))?;
            file.sync_all().map_err(wrong(&target, "made durable"))?;
        }
        chown(&target, Some(meta.uid()), Some(meta.gid()))
            .map_err(wrong(&target, "given to the server's user"))?;
        fs::set_permissions(&target, fs::Permissions::from_mode(meta.mode() & 0o7777))
            .map_err(wrong(&target, "closed"))?;
    }
    sync(to)
}

fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), CellError> {
    fs::write(path, bytes).map_err(wrong(path, "written"))?;
    sync(path)
}

fn sync(path: &Path) -> Result<(), CellError> {
    File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(wrong(path, "made durable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let wal = dir.path().join("data/pg_wal");
        fs::create_dir_all(wal.join("archive_status")).unwrap();
        fs::write(wal.join("000000010000000000000001"), "wal").unwrap();
        fs::write(wal.join("archive_status/1.done"), "").unwrap();
        dir
    }

    fn whole(data: &Path) {
        let wal = data.join("pg_wal");
        assert_eq!(
            fs::read_to_string(wal.join("000000010000000000000001")).unwrap(),
            "wal"
        );
        assert!(wal.join("archive_status/1.done").exists());
        for left in [ASIDE, COMING] {
            assert!(fs::symlink_metadata(data.join(left)).is_err(), "{left}");
        }
    }

    #[test]
    fn it_goes_and_comes_back_and_leaves_nothing() {
        let dir = cluster();
        let (data, other) = (dir.path().join("data"), dir.path().join("other/wal"));
        fs::create_dir(dir.path().join("other")).unwrap();
        move_to(&data, Some(&other)).unwrap();
        assert_eq!(location(&data).unwrap(), Some(other.clone()));
        whole(&data);
        move_to(&data, None).unwrap();
        assert_eq!(location(&data).unwrap(), None);
        whole(&data);
        assert!(!other.exists());
    }

    /// Before the mark is there, and after it has gone.
    #[test]
    fn a_directory_is_told_to_be_ours_at_every_instant() {
        for (was_there, begun) in [(false, 0), (false, 1), (false, 2), (true, 1), (true, 2)] {
            let dir = cluster();
            let (data, other) = (dir.path().join("data"), dir.path().join("wal"));
            let mark = if was_there {
                fs::create_dir(&other).unwrap();
                other.join("pgdyno-wal-of.pgdyno-new")
            } else {
                fs::create_dir(dir.path().join("wal.pgdyno-new")).unwrap();
                dir.path().join("wal.pgdyno-new").join(MARK)
            };
            match begun {
                0 => {}
                1 => fs::write(&mark, "").unwrap(),
                _ => fs::write(&mark, data.to_string_lossy().as_bytes()).unwrap(),
            }
            remove_remains(&data, &other).unwrap();
            let left: Vec<_> = fs::read_dir(dir.path())
                .unwrap()
                .flatten()
                .map(|e| e.file_name())
                .collect();
            assert_eq!(left.len(), 1 + usize::from(was_there), "{left:?}");
            assert!(!was_there || fs::read_dir(&other).unwrap().next().is_none());
            move_to(&data, Some(&other)).unwrap();
            assert_eq!(location(&data).unwrap(), Some(other.clone()));
            move_to(&data, None).unwrap();
            whole(&data);
            assert_eq!(other.exists(), was_there);
        }
    }

    /// Each state that a kill can leave, both ways.
    #[test]
    fn a_move_that_was_cut_short_is_mended() {
        for cut in 0..4 {
            let dir = cluster();
            let (data, other) = (dir.path().join("data"), dir.path().join("wal"));
            fs::create_dir(&other).unwrap();
            fs::write(other.join(MARK), data.to_string_lossy().as_bytes()).unwrap();
            fs::write(
                other.join("000000010000000000000001"),
                if cut == 0 { "w" } else { "wal" },
            )
            .unwrap();
            if cut > 0 {
                fs::create_dir(other.join("archive_status")).unwrap();
                fs::write(other.join("archive_status/1.done"), "").unwrap();
                fs::rename(data.join("pg_wal"), data.join(ASIDE)).unwrap();
            }
            if cut > 1 {
                symlink(&other, data.join("pg_wal")).unwrap();
            }
            if cut > 2 {
                fs::remove_dir_all(data.join(ASIDE)).unwrap();
            }
            move_to(&data, None).unwrap();
            remove_remains(&data, &other).unwrap();
            assert_eq!(location(&data).unwrap(), None, "{cut}");
            whole(&data);
            assert!(!other.exists(), "{cut}");
        }
    }

    #[test]
    fn a_directory_that_was_there_before_stays_as_it_was() {
        let dir = cluster();
        let (data, other) = (dir.path().join("data"), dir.path().join("wal"));
        fs::create_dir(&other).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o751)).unwrap();
        move_to(&data, Some(&other)).unwrap();
        move_to(&data, None).unwrap();
        whole(&data);
        assert_eq!(fs::metadata(&other).unwrap().mode() & 0o7777, 0o751);
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_ours_is_not_removed() {
        let dir = cluster();
        let other = dir.path().join("wal");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("letters"), "of somebody").unwrap();
        assert!(objection(&other).unwrap().contains("not empty"));
        remove_remains(&dir.path().join("data"), &other).unwrap();
        assert!(other.join("letters").exists());
        assert!(objection(Path::new("relative")).is_some());
        assert!(objection(&dir.path().join("none/wal")).is_some());
        assert!(objection(&dir.path().join("new")).is_none());
    }
}
