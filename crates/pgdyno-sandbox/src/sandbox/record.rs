//! What is written down about a sandbox: sandbox.json, formats 1 to 6.

use super::binaries::major_of;
use super::file_system::FileSystem;
use super::listen::Listen;
use super::network::Network;
use super::standbys::Standbys;
use super::{SMALL_BYTES_MAX, SandboxError};
use pgdyno_host::{Directory, EntryKind, Limits, Owner, Unlimited, give};
use pgdyno_server::{User, is_sandbox_name};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The newest that this version knows; a newer one is refused, not guessed at.
const FORMAT: u32 = 6;
/// Knows no address for other hosts.
const FORMAT_WITHOUT_LISTEN: u32 = 5;
/// Knows no place of their own for temporary files either.
const FORMAT_WITHOUT_TEMP: u32 = 4;
/// Knows no standbys either.
const FORMAT_WITHOUT_STANDBYS: u32 = 3;
/// Knows no network of a sandbox's own.
const FORMAT_WITHOUT_NETWORK: u32 = 2;
/// Knows no file systems of a sandbox's own either. A sandbox is written in the oldest format that
/// has what it has, for older versions to read.
const FORMAT_WITHOUT_FILE_SYSTEMS: u32 = 1;
/// Name of the record's file, in the sandbox's directory.
const RECORD: &str = "sandbox.json";

/// Everything that is stored of a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Number of the record's format.
    pub format: u32,
    /// Name of the sandbox.
    pub name: String,
    /// False until it has been made in full.
    pub ready: bool,
    /// Version of the server, as "18.6".
    pub version: String,
    /// Directory of initdb, pg_ctl and postgres.
    pub bin: PathBuf,
    /// Absolute path of the data directory.
    pub data: PathBuf,
    /// WAL directory, where it is not inside the data directory.
    pub wal: Option<PathBuf>,
    /// Directory of the tablespace of temporary files, where these are not inside the data
    /// directory (format 5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp: Option<PathBuf>,
    /// Port on 127.0.0.1, or of its own network, and of the socket.
    pub port: u16,
    /// Whom it runs as; `None` is whoever started it.
    pub user: Option<User>,
    /// Limits of CPU, memory and I/O.
    pub limits: Limits,
    /// What the kernel does not enforce of them.
    pub unlimited: Vec<Unlimited>,
    /// Time at which it was made, since 1970.
    pub created_unix_ms: u64,
    /// File systems of its own, recorded before they are made (format 2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_systems: Vec<FileSystem>,
    /// A network of its own, recorded before it is made (format 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its standbys, recorded before they are made (format 4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standbys: Option<Standbys>,
    /// The sandbox that it is a standby of (format 4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_of: Option<String>,
    /// The address at which other hosts reach it (format 6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<Listen>,
}

impl Record {
    /// The oldest format that has what it has.
    pub(crate) fn format_needed(&self) -> u32 {
        let has_standbys = self.standbys.is_some() || self.standby_of.is_some();
        match (has_standbys, &self.network, self.file_systems.as_slice()) {
            _ if self.listen.is_some() => FORMAT,
            _ if self.temp.is_some() => FORMAT_WITHOUT_LISTEN,
            (true, ..) => FORMAT_WITHOUT_TEMP,
            (false, Some(_), _) => FORMAT_WITHOUT_STANDBYS,
            (false, None, []) => FORMAT_WITHOUT_FILE_SYSTEMS,
            (false, None, _) => FORMAT_WITHOUT_NETWORK,
        }
    }

    /// Major version of its server: 18 of "18.6".
    pub fn major(&self) -> Option<u32> {
        major_of(&self.version)
    }

    /// Its directories of the server's files: data, and WAL and temporary files where they have
    /// directories of their own.
    pub(super) fn places(&self) -> impl Iterator<Item = &PathBuf> {
        [Some(&self.data), self.wal.as_ref(), self.temp.as_ref()]
            .into_iter()
            .flatten()
    }

    fn file(directory: &Path) -> PathBuf {
        directory.join(RECORD)
    }

    /// Reads it; `None` where there is no sandbox.
    pub(crate) fn read(directory: &Path) -> Result<Option<Record>, SandboxError> {
        let path = Record::file(directory);
        let broken = |reason: String| SandboxError::Record {
            path: path.clone(),
            reason,
        };
        let held = match Directory::open(directory) {
            Ok(held) => held,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(broken(e.to_string())),
        };
        check_private(&held).map_err(broken)?;
        let text = match held.text(RECORD, SMALL_BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(broken("it is missing".into())),
            Err(e) => return Err(broken(e.to_string())),
        };
        // As earlier versions made it; without that it is as good.
        if let Ok(file) = held.file(RECORD)
            && let Ok(now) = Owner::of(&file)
            && now.mode != 0o600
        {
            let _ = give(&file, Owner { mode: 0o600, ..now });
        }
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| broken(e.to_string()))?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if (1..=u64::from(FORMAT)).contains(&format) => {
                let since = [
                    ("file_systems", FORMAT_WITHOUT_NETWORK),
                    ("network", FORMAT_WITHOUT_STANDBYS),
                    ("standbys", FORMAT_WITHOUT_TEMP),
                    ("standby_of", FORMAT_WITHOUT_TEMP),
                    ("temp", FORMAT_WITHOUT_LISTEN),
                    ("listen", FORMAT),
                ];
                let newer = since
                    .iter()
                    .find(|(name, since)| format < u64::from(*since) && value.get(name).is_some());
                if let Some((name, _)) = newer {
                    return Err(broken(format!("{name}: format {format} has no such field")));
                }
            }
            Some(format) => {
                return Err(broken(format!(
                    "it has format {format}; this pgdyno reads {FORMAT}"
                )));
            }
            None => return Err(broken("it names no format".into())),
        }
        serde_json::from_value(value)
            .map(Some)
            .map_err(|e| broken(e.to_string()))
    }

    /// Writes it in one step.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), SandboxError> {
        let path = Record::file(directory);
        let text = serde_json::to_string_pretty(self).map_err(|e| SandboxError::Record {
            path: path.clone(),
            reason: e.to_string(),
        })?;
        Directory::open(directory)
            .and_then(|held| held.replace(RECORD, text.as_bytes(), Owner::own(0o600)))
            .map_err(SandboxError::io(&path, "written"))
    }
}

/// What is run, mounted and removed is read from a sandbox's files, and programs get its paths: by
/// root only where nobody else can have written or exchanged them.
pub(super) fn check_private(directory: &Directory) -> Result<(), String> {
    let owner = directory.owner();
    if !directory.is_private() {
        return Err(format!(
            "its directory belongs to user {} (mode {:o}), and others than root and this user can write there",
            owner.uid, owner.mode
        ));
    }
    match User::is_root() && !directory.keeps_paths() {
        true => Err("other users than root can exchange a directory above it".to_owned()),
        false => Ok(()),
    }
}

/// Names below `root`, sorted; half-made ones among them.
pub fn list_names(root: &Path) -> Result<Vec<String>, SandboxError> {
    let entries = match Directory::open(root).and_then(|held| held.entries()) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(SandboxError::io(root, "read")(e)),
    };
    let mut names: Vec<String> = entries
        .into_iter()
        .filter(|(_, kind)| *kind == EntryKind::Directory)
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| check_name(name).is_ok())
        .collect();
    names.sort();
    Ok(names)
}

/// A name becomes a file name and a cgroup's name.
pub(crate) fn check_name(name: &str) -> Result<(), SandboxError> {
    match is_sandbox_name(name) {
        true => Ok(()),
        false => Err(SandboxError::BadName(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    fn record() -> Record {
        Record {
            format: FORMAT_WITHOUT_FILE_SYSTEMS,
            name: "x".to_owned(),
            ready: true,
            version: "18.1".to_owned(),
            bin: "/bin".into(),
            data: "/data".into(),
            wal: None,
            temp: None,
            port: 1,
            user: None,
            limits: Limits::default(),
            unlimited: Vec::new(),
            created_unix_ms: 0,
            file_systems: Vec::new(),
            network: None,
            standbys: None,
            standby_of: None,
            listen: None,
        }
    }

    #[test]
    fn record_is_readable_by_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        record().write(dir.path()).unwrap();
        let file = dir.path().join(RECORD);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Record::read(dir.path()).unwrap(), Some(record()));
        // As earlier versions made it.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Record::read(dir.path()).unwrap(), Some(record()));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    }

    /// A record names programs that are run: as root none of another user's.
    #[test]
    fn record_that_another_user_can_have_written_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let sandbox = home.path().join("x");
        fs::create_dir(&sandbox).unwrap();
        record().write(&sandbox).unwrap();
        let refused = |message: &str| {
            let error = Record::read(&sandbox).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        chown(&sandbox, Some(65534), None).unwrap();
        refused("belongs to user 65534");
        chown(&sandbox, Some(0), None).unwrap();
        fs::set_permissions(&sandbox, fs::Permissions::from_mode(0o777)).unwrap();
        refused("mode 777");
        fs::set_permissions(&sandbox, fs::Permissions::from_mode(0o755)).unwrap();
        chown(home.path(), Some(65534), None).unwrap();
        refused("a directory above it");
        // Nothing is unmounted or removed there.
        let error = crate::sandbox::remove_remains(home.path(), "x")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a directory above it; it is left alone"),
            "{error}"
        );
        assert!(sandbox.exists());
        chown(home.path(), Some(0), None).unwrap();
        let file = sandbox.join(RECORD);
        fs::rename(&file, sandbox.join("other")).unwrap();
        symlink("other", &file).unwrap();
        refused("symbolic link");
    }

    #[test]
    fn records_of_other_formats_and_broken_ones_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let check = |text: &str, expected: &str| {
            fs::write(dir.path().join("sandbox.json"), text).unwrap();
            let error = Record::read(dir.path()).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("sandbox.json"),
                "{error}"
            );
        };
        check("{\"format\": 7}", "format 7");
        check("{\"format\": 5, \"listen\": \"10.0.0.5/24\"}", "listen: format 5");
        check("{\"format\": 0}", "format 0");
        check("{\"format\": 2, \"network\": {}}", "network: format 2");
        check("{\"format\": 1, \"file_systems\": []}", "file_systems");
        check("{\"format\": 3, \"standby_of\": \"y\"}", "standby_of: format 3");
        check("{\"format\": 4, \"temp\": \"/t\"}", "temp: format 4");
        check("{\"format\": 2, \"name\": \"x\", \"colour\": 1}", "colour");
        check("{\"format\": 1, \"name\": \"x\", \"colour\": 1}", "colour");
        check("{\"format\": 1, \"nam", "EOF");
        assert!(Record::read(&dir.path().join("none")).unwrap().is_none());
    }

    #[test]
    fn names_are_file_names() {
        for good in ["demo", "pg-18_a"] {
            assert!(check_name(good).is_ok());
        }
        for bad in ["", "..", "a/b", "a b", &"x".repeat(41)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
