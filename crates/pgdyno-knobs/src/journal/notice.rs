//! Notices: what users of a host show one another of their journals. A notice names the knobs that
//! are changed, since when and by which process, and no value.
//!
//! The notices of a registry are in its directory `notices`, which everybody may read. Those of
//! other users are untrusted text: at most they keep a change from being made, and a user's keep
//! root from changing the parameters of that user's own servers alone.

use super::registry::{Journals, OtherUser};
use super::{JournalError, io_error, line};
use crate::undo::UndoUnit;
use pgdyno_host::{Directory, EntryKind, LocalHost, Owner, make_directory, may_hang};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;
/// Of all knobs and as many devices, far less.
const BYTES_MAX: u64 = 256 << 10;
/// Of one user; more is nothing that pgdyno makes.
const NOTICES_MAX: usize = 200;
const DIRECTORY: &str = "notices";
const ENDING: &str = "json";
const DIRECTORY_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// What another user has changed, by that user's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedByOther {
    /// Login name of the user.
    pub user: String,
    /// User number of the user.
    pub uid: u32,
    /// When the change began, in milliseconds since 1970.
    pub since_unix_ms: u64,
    /// The process that made it.
    pub pid: u32,
    /// Ids of the knobs of the host that are changed.
    pub host: Vec<String>,
    /// Names of the parameters of servers that are changed.
    pub server: Vec<String>,
    servers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Notice {
    format: u32,
    since_unix_ms: u64,
    pid: u32,
    host: BTreeSet<String>,
    server: BTreeSet<String>,
    /// Hashes of what identifies the server: nobody reads a path or an address in them.
    servers: Vec<String>,
}

impl Notice {
    pub(super) fn new(since_unix_ms: u64, pid: u32) -> Notice {
        Notice {
            format: FORMAT,
            since_unix_ms,
            pid,
            host: BTreeSet::new(),
            server: BTreeSet::new(),
            servers: Vec::new(),
        }
    }

    pub(super) fn of_server(&mut self, keys: &[String]) {
        self.servers = hashes(keys);
    }

    /// Adds a knob; whether it is new.
    pub(super) fn add(&mut self, knob: &str, unit: &UndoUnit) -> bool {
        match unit.is_of_host() {
            true => self.host.insert(knob.to_owned()),
            false => self.server.insert(knob.to_owned()),
        }
    }

    pub(super) fn remove(&mut self, knob: &str, unit: &UndoUnit) {
        match unit.is_of_host() {
            true => self.host.remove(knob),
            false => self.server.remove(knob),
        };
    }

    fn parse(bytes: &[u8]) -> Result<Notice, String> {
        let notice: Notice = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        match notice.format {
            FORMAT => Ok(notice),
            other => Err(format!("it has format {other}; this pgdyno reads {FORMAT}")),
        }
    }
}

/// For the fuzz targets: any bytes are a notice that is written and read again as the same, or an
/// error.
pub(crate) fn fuzzed_notice(bytes: &[u8]) {
    if let Ok(notice) = Notice::parse(bytes) {
        let written = serde_json::to_vec(&notice).ok();
        let again = written.and_then(|bytes| Notice::parse(&bytes).ok());
        assert!(again.is_some_and(|again| again == notice));
    }
}

fn hashes(keys: &[String]) -> Vec<String> {
    keys.iter().map(|key| line::short_hash(key.as_bytes())).collect()
}

impl ChangedByOther {
    /// Whether it has changed a knob: of the host, or of the server that has one of these keys and
    /// whose data this user owns.
    fn is_of(&self, knob: &str, is_of_host: bool, keys: &[String], data_of: Option<u32>) -> bool {
        let knobs = if is_of_host { &self.host } else { &self.server };
        if !knobs.iter().any(|known| known == knob) {
            return false;
        }
        match is_of_host {
            // Only root changes the host.
            true => self.uid == 0,
            false => {
                let is_believed = self.uid == 0 || data_of == Some(self.uid);
                is_believed && hashes(keys).iter().any(|key| self.servers.contains(key))
            }
        }
    }
}

impl Journals {
    /// What other users of this host have changed, and why a notice cannot be read.
    pub fn of_others(&self) -> (Vec<ChangedByOther>, Vec<String>) {
        let (mut all, mut unreadable) = (Vec::new(), Vec::new());
        for other in &self.others {
            match notices_of(other) {
                Ok((found, wrong)) => {
                    all.extend(found);
                    unreadable.extend(wrong);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                // A home that the kernel closes to this process. What is refused here for its owner
                // or its mode is reported.
                Err(e) if e.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) && other.uid != 0 => {}
                Err(e) => unreadable.push(format!("the changes of {}: {e}", other.name)),
            }
        }
        (all, unreadable)
    }

    /// The change of another user that a change of a knob would take for the original state;
    /// `server` gives its keys and the owner of its data.
    pub(crate) fn conflict(
        &self,
        knob: &str,
        is_of_host: bool,
        server: &dyn Fn() -> (Vec<String>, Option<u32>),
    ) -> Option<JournalError> {
        let (all, _) = self.of_others();
        let mut of_knob = all
            .into_iter()
            .filter(|other| other.host.iter().chain(&other.server).any(|known| known == knob))
            .peekable();
        of_knob.peek()?;
        let (keys, data_of) = match is_of_host {
            true => (Vec::new(), None),
            false => server(),
        };
        let other = of_knob.find(|other| other.is_of(knob, is_of_host, &keys, data_of))?;
        Some(JournalError::ChangedByOther {
            knob: knob.to_owned(),
            user: other.user,
            since: utc(other.since_unix_ms),
        })
    }

    /// Writes the notice of a journal, durably.
    pub(super) fn write_notice(&self, journal: &Path, notice: &Notice) -> Result<(), JournalError> {
        let path = self.notice_of(journal);
        let bytes = serde_json::to_vec(notice).map_err(|e| JournalError::Line {
            path: path.clone(),
            line: 1,
            reason: e.to_string(),
        })?;
        let directory = self.registry.join(DIRECTORY);
        make_directory(&directory, DIRECTORY_MODE)
            .and_then(|mut held| {
                // Whatever the mask of this process is.
                held.give(Owner::own(DIRECTORY_MODE))?;
                held.replace(name_of(&path), &bytes, Owner::own(FILE_MODE))
            })
            .map_err(io_error(&path, "written"))
    }

    /// Removes the notice of a journal; nothing there is fine.
    pub(super) fn remove_notice(&self, journal: &Path) -> Result<(), JournalError> {
        let path = self.notice_of(journal);
        let held = match Directory::open(&self.registry.join(DIRECTORY)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(io_error(&path, "removed"))?,
        };
        held.remove(name_of(&path)).map_err(io_error(&path, "removed"))
    }

    /// Removes notices whose journal and copy are gone, by hand or by a damaged disk: nobody could
    /// restore what they name.
    pub(super) fn remove_stale_notices(&self) -> Result<(), JournalError> {
        let directory = self.registry.join(DIRECTORY);
        let (held, registry) =
            match Directory::open(&directory).and_then(|held| Ok((held, Directory::open(&self.registry)?))) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => other.map_err(io_error(&directory, "read"))?,
            };
        let entries = held.entries().map_err(io_error(&directory, "read"))?;
        for (name, _) in entries {
            // Another process may be writing one under another name.
            if Path::new(&name).extension() != Some(OsStr::new(ENDING)) {
                continue;
            }
            let copy = Path::new(&name).with_extension(super::registry::COPY_ENDING);
            if registry.kind(copy.as_os_str()).is_ok_and(|kind| kind.is_none()) {
                held.remove(&name).map_err(io_error(&directory, "removed"))?;
            }
        }
        Ok(())
    }

    /// Beside the copy, by the same name.
    fn notice_of(&self, journal: &Path) -> PathBuf {
        let copy = match super::registry::is_copy(journal) {
            true => journal.to_owned(),
            false => self.copy_of(journal),
        };
        let name = copy.with_extension(ENDING);
        self.registry.join(DIRECTORY).join(name_of(&name))
    }
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Another user's notices, each from a regular file of that user's, below directories of that
/// user's, without a link between.
fn notices_of(other: &OtherUser) -> io::Result<(Vec<ChangedByOther>, Vec<String>)> {
    // A home of a server that does not answer is waited for without end.
    if may_hang(&LocalHost::new(), &other.home) {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut held = Directory::open(&other.home)?;
    owned(&held, other.uid)?;
    for part in other.registry.iter().chain([OsStr::new(DIRECTORY)]) {
        held = held.directory(part)?;
        owned(&held, other.uid)?;
    }
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    let entries = held.entries()?;
    let is_notice = |(name, kind): &(std::ffi::OsString, EntryKind)| {
        *kind == EntryKind::File && Path::new(name).extension() == Some(OsStr::new(ENDING))
    };
    for (name, _) in entries.into_iter().filter(is_notice).take(NOTICES_MAX) {
        let mut bytes = Vec::new();
        let read = held
            .file_of(&name, other.uid)
            .and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        let shown = || String::from_utf8_lossy(name.as_bytes()).into_owned();
        match read
            .map_err(|e| e.to_string())
            .and_then(|_| Notice::parse(&bytes))
        {
            Ok(notice) => all.push(ChangedByOther {
                user: other.name.clone(),
                uid: other.uid,
                since_unix_ms: notice.since_unix_ms,
                pid: notice.pid,
                host: notice.host.into_iter().collect(),
                server: notice.server.into_iter().collect(),
                servers: notice.servers,
            }),
            Err(reason) => wrong.push(format!("the notice {} of {}: {reason}", shown(), other.name)),
        }
    }
    Ok((all, wrong))
}

/// A directory that no other user but root can have made, or can make files in.
fn owned(held: &Directory, uid: u32) -> io::Result<()> {
    const WRITABLE_BY_ALL: u32 = 0o002;
    let owner = held.owner();
    if ![uid, 0].contains(&owner.uid) || owner.mode & WRITABLE_BY_ALL != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to user {} with mode {:o}; expected user {uid}, and that others cannot write it",
                held.path().display(),
                owner.uid,
                owner.mode
            ),
        ));
    }
    Ok(())
}

/// An instant for people, to the minute: "2026-11-24 11:20 UTC".
fn utc(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (days, minute) = (minutes / 1440, minutes % 1440);
    // Years begin in March, in eras of 400 years (proleptic Gregorian calendar).
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        minute / 60,
        minute % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn instants_are_written_in_utc() {
        let check = |unix_s: u64, expected: &str| assert_eq!(utc(unix_s * 1000), expected);
        check(0, "1970-01-01 00:00 UTC");
        check(951_827_696, "2000-02-29 12:34 UTC");
        check(1_767_225_599, "2025-12-31 23:59 UTC");
        check(4_107_542_400, "2100-03-01 00:00 UTC");
        let _ = utc(u64::MAX);
    }

    const UID: u32 = 65_534;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        /// A registry of a user, with a notice in it.
        fn of(uid: u32) -> Place {
            let dir = tempfile::tempdir().unwrap();
            let place = Place { dir };
            fs::create_dir_all(place.notices()).unwrap();
            let text = serde_json::json!({
                "format": 1, "since_unix_ms": 951_827_696_000_u64, "pid": 7, "host": ["vm.swappiness"],
                "server": ["work_mem"], "servers": [line::short_hash(b"in /data")],
            });
            fs::write(place.notices().join("1-7-a.json"), text.to_string()).unwrap();
            place.give(uid);
            place
        }

        fn notices(&self) -> PathBuf {
            self.dir.path().join("registry/notices")
        }

        fn give(&self, uid: u32) {
            let notices = self.notices();
            let all = [
                self.dir.path().to_owned(),
                self.dir.path().join("registry"),
                notices.clone(),
                notices.join("1-7-a.json"),
            ];
            for path in all {
                chown(path, Some(uid), Some(uid)).unwrap();
            }
        }

        fn journals(&self, uid: u32) -> Journals {
            Journals {
                others: vec![OtherUser {
                    name: "other".to_owned(),
                    uid,
                    home: self.dir.path().to_owned(),
                    registry: PathBuf::from("registry"),
                }],
                ..Journals::in_test(self.dir.path())
            }
        }

        fn conflict(&self, uid: u32, knob: &str, is_of_host: bool, data_of: u32) -> Option<String> {
            let server = || (vec!["in /data".to_owned()], Some(data_of));
            let found = self.journals(uid).conflict(knob, is_of_host, &server);
            found.map(|error| error.to_string())
        }
    }

    #[test]
    fn roots_changes_are_believed_and_a_users_of_its_own_server_alone() {
        let place = Place::of(0);
        let message =
            "vm.swappiness is changed by other's pgdyno since 2000-02-29 12:34 UTC; restore that first";
        assert_eq!(place.conflict(0, "vm.swappiness", true, 1).unwrap(), message);
        assert!(place.conflict(0, "work_mem", false, 1).is_some());
        assert_eq!(place.conflict(0, "work_mem", true, 1), None, "a knob of the host");
        assert_eq!(place.conflict(0, "vm.swap", true, 1), None);
        let place = Place::of(UID);
        assert_eq!(place.conflict(UID, "vm.swappiness", true, UID), None);
        assert!(place.conflict(UID, "work_mem", false, UID).is_some());
        assert_eq!(
            place.conflict(UID, "work_mem", false, 0),
            None,
            "another's server"
        );
        let (all, wrong) = place.journals(UID).of_others();
        assert_eq!(
            (all.len(), all[0].host.as_slice()),
            (1, &["vm.swappiness".to_owned()][..])
        );
        assert!(wrong.is_empty());
    }

    #[test]
    fn notice_that_is_planted_is_not_read() {
        type Plant = fn(&Place);
        let plants: [(&str, Plant); 6] = [
            ("another user's file", |place| {
                chown(place.notices().join("1-7-a.json"), Some(1), None).unwrap();
            }),
            ("a link to a file", |place| {
                let file = place.notices().join("1-7-a.json");
                fs::rename(&file, place.dir.path().join("elsewhere")).unwrap();
                symlink(place.dir.path().join("elsewhere"), &file).unwrap();
            }),
            ("a link to a directory", |place| {
                fs::rename(place.notices(), place.dir.path().join("elsewhere")).unwrap();
                symlink(place.dir.path().join("elsewhere"), place.notices()).unwrap();
            }),
            ("another user's directory", |place| {
                chown(place.notices(), Some(1), None).unwrap();
            }),
            ("a directory that all may write", |place| {
                fs::set_permissions(place.notices(), fs::Permissions::from_mode(0o777)).unwrap();
            }),
            ("more than a notice has", |place| {
                let file = fs::File::options()
                    .write(true)
                    .open(place.notices().join("1-7-a.json"));
                file.unwrap().set_len(BYTES_MAX * 2).unwrap();
            }),
        ];
        for (what, plant) in plants {
            let place = Place::of(UID);
            plant(&place);
            let (all, _) = place.journals(UID).of_others();
            assert_eq!(all, [], "{what}");
        }
    }
}
