//! Moving the WAL of a stopped server to another directory and back, such that at every instant one
//! whole copy is found.
//!
//! The files are copied and made durable; then pg_wal gets another name, and the new one (a
//! symbolic link, or the directory itself) takes its place; then the renamed one is removed. So
//! pg_wal, if there is one, is whole; if there is none, the renamed one is.

use super::UndoUnitError;
use pgdyno_host::{COMING, Directory, EntryKind, Owner, give};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// In a directory that holds a server's WAL by pgdyno's doing: the data directory, and below it,
/// where the directory was there before, its owner, group and mode from then.
const MARK: &str = "pgdyno-wal-of";
/// A path and three numbers.
const MARK_BYTES_MAX: u64 = 8 << 10;
const WAL: &str = "pg_wal";
const ASIDE: &str = "pg_wal.pgdyno-old";
const RETURNING: &str = "pg_wal.pgdyno-new";
/// Directories below one another; pg_wal has two.
const DEPTH_MAX: usize = 16;

fn wrong(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> UndoUnitError {
    let path = path.to_owned();
    move |source| UndoUnitError::Wal { path, action, source }
}

fn open(path: &Path) -> Result<Directory, UndoUnitError> {
    Directory::open(path).map_err(wrong(path, "opened"))
}

fn at(
    directory: &Directory,
    name: &OsStr,
    action: &'static str,
) -> impl FnOnce(io::Error) -> UndoUnitError + use<> {
    let path = directory.path().join(name);
    move |source| UndoUnitError::Wal { path, action, source }
}

/// What pg_wal points at: `None` for a directory of its own, an empty path where a move was cut
/// short.
pub(crate) fn location(data: &Path) -> Result<Option<PathBuf>, UndoUnitError> {
    location_in(&open(data)?)
}

fn location_in(data: &Directory) -> Result<Option<PathBuf>, UndoUnitError> {
    let name = OsStr::new(WAL);
    match data.kind(name).map_err(at(data, name, "read"))? {
        Some(EntryKind::Link) => data.read_link(name).map(Some).map_err(at(data, name, "read")),
        Some(_) => Ok(None),
        None => Ok(Some(PathBuf::new())),
    }
}

/// Whether a directory holds the WAL of this data directory by pgdyno's doing.
pub(crate) fn is_ours(data: &Path, at: &Path) -> bool {
    Directory::open(at).is_ok_and(|directory| marked(&directory, data).is_ok_and(|mark| mark.is_some()))
}

/// What the mark of a directory says beside this data directory; `None` without one, and of one
/// that another user has made or that names other data, as a copy of such a directory has.
fn marked(directory: &Directory, data: &Path) -> Result<Option<String>, UndoUnitError> {
    let mark = OsStr::new(MARK);
    let marked_by = directory.owner_of(mark).map_err(at(directory, mark, "read"))?;
    if marked_by.is_none_or(|owner| owner.uid != Owner::own(0).uid) {
        return Ok(None);
    }
    let text = directory
        .text(mark, MARK_BYTES_MAX)
        .map_err(at(directory, mark, "read"))?;
    let (whose, before) = text.split_once('\n').unwrap_or((&text, ""));
    Ok((whose == data.to_string_lossy()).then(|| before.to_owned()))
}

/// Why a directory cannot take the WAL; `None` where it can: it is empty, or not there yet in a
/// directory that is.
pub(crate) fn objection(to: &Path) -> Option<String> {
    if !to.is_absolute() {
        return Some("expected an absolute path".to_owned());
    }
    match Directory::open(to).and_then(|directory| directory.entries()) {
        Ok(entries) => (!entries.is_empty()).then(|| format!("{} is not empty", to.display())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let above = to.parent().unwrap_or(Path::new("/"));
            Directory::open(above)
                .is_err()
                .then(|| format!("{} is not there", above.display()))
        }
        Err(e) => Some(format!("{}: {e}", to.display())),
    }
}

/// Moves the WAL of a stopped server to `to`, or back into the data directory. What an earlier move
/// that was cut short has left is mended first. Copying takes time: whether the server `may_run` by
/// then is asked once more before the copy takes the place of what it would write to.
pub(crate) fn move_to(
    data: &Path,
    to: Option<&Path>,
    may_run: &dyn Fn() -> bool,
) -> Result<(), UndoUnitError> {
    let held = open(data)?;
    mend(&held)?;
    if location_in(&held)?.as_deref() == to {
        return Ok(());
    }
    let old = open(&data.join(WAL))?;
    let (mut owner, expected) = (old.owner(), held.owner());
    let own_uid = Owner::own(0).uid;
    // A power failure may have taken back that it was given to the server's user.
    if owner.uid == own_uid && expected.uid != own_uid && marked(&old, data)?.is_some() {
        owner = Owner {
            mode: owner.mode,
            ..expected
        };
    }
    if owner.uid != expected.uid {
        let reason = format!(
            "it belongs to user {}, expected user {}, the owner of the data directory",
            owner.uid, expected.uid
        );
        return Err(wrong(old.path(), "read")(io::Error::other(reason)));
    }
    let (wal, aside, returning) = (OsStr::new(WAL), OsStr::new(ASIDE), OsStr::new(RETURNING));
    let mut new = match to {
        Some(to) => make_marked(to, data)?,
        None => held
            .make(returning, 0o700)
            .map_err(at(&held, returning, "made"))?,
    };
    copy(&old, &new, 0)?;
    new.give(owner)
        .map_err(wrong(new.path(), "given to the server's user"))?;
    sync(&new)?;
    if may_run() {
        return Err(UndoUnitError::Running);
    }
    held.rename(wal, aside).map_err(at(&held, wal, "renamed"))?;
    match to {
        Some(to) => held.link(to, wal, owner).map_err(at(&held, wal, "made a link"))?,
        None => held
            .rename(returning, wal)
            .map_err(at(&held, wal, "put in place"))?,
    }
    sync(&held)?;
    mend(&held)
}

/// Beside a directory, under a name that says whose it is; a file in one is made under such a name
/// by [`Directory::replace`].
fn unmarked(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(COMING);
    name
}

/// Makes a directory with the mark in it, or marks one that is there: at every instant it can be
/// recognised as ours.
fn make_marked(to: &Path, data: &Path) -> Result<Directory, UndoUnitError> {
    let mut mark = data.to_string_lossy().into_owned();
    match Directory::open(to) {
        Ok(there) => {
            let Owner { uid, gid, mode } = there.owner();
            mark += &format!("\n{uid} {gid} {mode}");
            there
                .replace(MARK, mark.as_bytes(), Owner::own(0o644))
                .map_err(at(&there, OsStr::new(MARK), "written"))?;
            return Ok(there);
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(wrong(to, "opened")(e)),
    }
    let (above, name) = Directory::above(to).map_err(wrong(to, "made"))?;
    let coming = unmarked(&name);
    remove_unmarked(&above, &name)?;
    let made = above.make(&coming, 0o700).map_err(at(&above, &coming, "made"))?;
    made.replace(MARK, mark.as_bytes(), Owner::own(0o644))
        .map_err(at(&made, OsStr::new(MARK), "written"))?;
    above.rename(&coming, &name).map_err(at(&above, &name, "made"))?;
    sync(&above)?;
    Ok(made)
}

/// Removes what was not marked yet, or not any more, of the directory `name`.
fn remove_unmarked(above: &Directory, name: &OsStr) -> Result<(), UndoUnitError> {
    let coming = unmarked(name);
    if above.kind(&coming).map_err(at(above, &coming, "read"))? != Some(EntryKind::Directory) {
        return Ok(());
    }
    let left = above.directory(&coming).map_err(at(above, &coming, "opened"))?;
    for mark in [unmarked(OsStr::new(MARK)), OsString::from(MARK)] {
        left.remove(&mark).map_err(at(&left, &mark, "removed"))?;
    }
    above.remove_empty(&coming).map_err(at(above, &coming, "removed"))
}

/// Removes what a copy that was cut short has left in a directory that pgdyno has made for this
/// server.
pub(crate) fn remove_remains(data: &Path, of: &Path) -> Result<(), UndoUnitError> {
    let (above, name) = match Directory::above(of) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(wrong(of, "opened")(e)),
    };
    remove_unmarked(&above, &name)?;
    let mut left = match Directory::open(of) {
        Ok(left) => left,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        Err(e) => return Err(wrong(of, "opened")(e)),
    };
    let (mark, coming) = (OsStr::new(MARK), unmarked(OsStr::new(MARK)));
    left.remove(&coming).map_err(at(&left, &coming, "removed"))?;
    let Some(before) = marked(&left, data)? else {
        return Ok(());
    };
    if location(data)?.as_deref() == Some(of) {
        return Ok(());
    }
    left.empty(&[MARK]).map_err(wrong(of, "emptied"))?;
    let numbers: Vec<u32> = before.trim_end().split(' ').flat_map(str::parse).collect();
    match *numbers.as_slice() {
        // It was there before, and stays as it was.
        [uid, gid, mode] => {
            left.give(Owner { uid, gid, mode })
                .map_err(wrong(of, "restored"))?;
            left.remove(mark).map_err(at(&left, mark, "removed"))
        }
        _ => {
            above
                .rename(&name, unmarked(&name))
                .map_err(wrong(of, "removed"))?;
            // It is the server's user's still, and the mark in it ours.
            let coming = unmarked(&name);
            left.remove(mark).map_err(at(&left, mark, "removed"))?;
            above
                .remove_empty(&coming)
                .map_err(at(&above, &coming, "removed"))
        }
    }
}

/// With pg_wal in place, what was renamed and what was coming are remains; without it, what was
/// renamed is the WAL.
fn mend(data: &Directory) -> Result<(), UndoUnitError> {
    let (wal, aside, returning) = (OsStr::new(WAL), OsStr::new(ASIDE), OsStr::new(RETURNING));
    let kind = |name: &OsStr| data.kind(name).map_err(at(data, name, "read"));
    if kind(wal)?.is_none() && kind(aside)?.is_some() {
        data.rename(aside, wal).map_err(at(data, wal, "restored"))?;
        sync(data)?;
    }
    if kind(wal)?.is_none() {
        return Ok(());
    }
    match kind(aside)? {
        Some(EntryKind::Link) => {
            let target = data.read_link(aside).map_err(at(data, aside, "read"))?;
            data.remove(aside).map_err(at(data, aside, "removed"))?;
            remove_remains(data.path(), &target)?;
        }
        Some(_) => data.remove_tree(aside).map_err(at(data, aside, "removed"))?,
        None => {}
    }
    data.remove_tree(returning)
        .map_err(at(data, returning, "removed"))?;
    sync(data)
}

/// Copies a tree of plain files with owners and modes, durably.
fn copy(from: &Directory, to: &Directory, depth: usize) -> Result<(), UndoUnitError> {
    if depth > DEPTH_MAX {
        let reason = format!("more than {DEPTH_MAX} directories deep");
        return Err(wrong(from.path(), "copied")(io::Error::other(reason)));
    }
    for (name, kind) in from.entries().map_err(wrong(from.path(), "read"))? {
        if name == MARK {
            continue;
        }
        if kind == EntryKind::Directory {
            let source = from.directory(&name).map_err(at(from, &name, "read"))?;
            let mut target = to.make(&name, 0o700).map_err(at(to, &name, "made"))?;
            copy(&source, &target, depth + 1)?;
            target
                .give(source.owner())
                .map_err(at(to, &name, "given to the server's user"))?;
            sync(&target)?;
            continue;
        }
        // What is not a regular file is refused, which its handle shows.
        let source = from.file(&name).map_err(at(from, &name, "read"))?;
        let target = to.create(&name, 0o600).map_err(at(to, &name, "made"))?;
        io::copy(&mut &source, &mut &target).map_err(at(from, &name, "copied"))?;
        let owner = Owner::of(&source).map_err(at(from, &name, "read"))?;
        give(&target, owner)
            .and_then(|()| target.sync_all())
            .map_err(at(to, &name, "made durable"))?;
    }
    sync(to)
}

fn sync(directory: &Directory) -> Result<(), UndoUnitError> {
    directory.sync().map_err(wrong(directory.path(), "made durable"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn move_to(data: &Path, to: Option<&Path>) -> Result<(), UndoUnitError> {
        super::move_to(data, to, &|| false)
    }

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
        for left in [ASIDE, RETURNING] {
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
        assert!(is_ours(&data, &other) && !is_ours(&other, &other));
        assert!(!is_ours(&data, &data.join(WAL).join("archive_status")));
        whole(&data);
        move_to(&data, None).unwrap();
        assert_eq!(location(&data).unwrap(), None);
        whole(&data);
        assert!(!other.exists());
    }

    #[test]
    fn wal_of_a_server_that_was_started_meanwhile_stays_where_it_is() {
        let dir = cluster();
        let (data, other) = (dir.path().join("data"), dir.path().join("wal"));
        let error = super::move_to(&data, Some(&other), &|| true).unwrap_err();
        assert!(matches!(error, UndoUnitError::Running), "{error}");
        assert_eq!(location(&data).unwrap(), None);
        whole(&data);
        remove_remains(&data, &other).unwrap();
        assert!(!other.exists());
    }

    /// Before the mark is there, and after it has gone.
    #[test]
    fn a_directory_is_known_as_ours_at_every_instant() {
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

    /// The server's user owns data and WAL, and exchanges either for a link to what is root's.
    #[test]
    fn a_link_of_the_servers_user_leads_nothing_of_roots_away() {
        const SERVER: u32 = 12_345;
        let dir = cluster();
        let (data, roots) = (dir.path().join("data"), dir.path().join("roots"));
        let theirs = |path: &Path| std::os::unix::fs::lchown(path, Some(SERVER), Some(SERVER)).unwrap();
        fs::create_dir(&roots).unwrap();
        fs::set_permissions(&roots, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(roots.join("secret"), "root only").unwrap();
        fs::set_permissions(roots.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
        for path in [&data, &data.join("pg_wal"), &data.join("pg_wal/archive_status")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
            theirs(path);
        }
        for file in ["000000010000000000000001", "archive_status/1.done"] {
            theirs(&data.join("pg_wal").join(file));
        }
        let to = dir.path().join("wal");
        // A file of the WAL, then the WAL as a whole, then where it goes to.
        symlink(roots.join("secret"), data.join("pg_wal/link")).unwrap();
        let error = move_to(&data, Some(&to)).unwrap_err().to_string();
        assert!(
            error.contains("pg_wal/link") && error.contains("symbolic link"),
            "{error}"
        );
        remove_remains(&data, &to).unwrap();
        fs::remove_file(data.join("pg_wal/link")).unwrap();
        fs::rename(data.join("pg_wal"), data.join("kept")).unwrap();
        symlink(&roots, data.join("pg_wal")).unwrap();
        theirs(&data.join("pg_wal"));
        let error = move_to(&data, Some(&to)).unwrap_err().to_string();
        assert!(error.contains("belongs to user 12345"), "{error}");
        fs::remove_file(data.join("pg_wal")).unwrap();
        fs::rename(data.join("kept"), data.join("pg_wal")).unwrap();
        symlink(&roots, &to).unwrap();
        theirs(&to);
        let error = move_to(&data, Some(&to)).unwrap_err().to_string();
        assert!(error.contains("belongs to user 12345"), "{error}");
        assert!(objection(&to).is_some());
        fs::remove_file(&to).unwrap();
        move_to(&data, Some(&to)).unwrap();
        let moved = to.join("000000010000000000000001");
        assert_eq!(fs::metadata(moved).unwrap().uid(), SERVER);
        move_to(&data, None).unwrap();
        assert!(!to.exists() && data.join("pg_wal/archive_status/1.done").exists());
        assert_eq!(fs::read_to_string(roots.join("secret")).unwrap(), "root only");
        assert_eq!(fs::metadata(&roots).unwrap().uid(), Owner::own(0).uid);
    }
}
