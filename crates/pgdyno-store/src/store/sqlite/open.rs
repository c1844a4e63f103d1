//! How a file is opened: made or brought up to this schema, or read as it is and never changed.

use super::{Sqlite, failed, file_id};
use crate::schema;
use crate::store::StoreError;
use crate::store::database::Place;
use rusqlite::{Connection, OpenFlags};
use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Another process may hold the file this long.
const BUSY: Duration = Duration::from_secs(30);

/// SQLite's file header (its documentation, "Database File Format"): 100 bytes with the size of a page at 16, the count
/// of changes at 24, of pages at 28, and for which count of changes the number of pages is valid at 92.
const HEADER_BYTES: usize = 100;

impl Sqlite {
    /// Opens the file at `path`, making it if it is not there.
    pub(in crate::store) fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let place = Place::File(path.to_owned());
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|source| StoreError::Directory {
                place: place.clone(),
                source,
            })?;
        }
        let (mut connection, version) = opened(path, &place, OpenFlags::default(), BUSY)?;
        let failed = |source| failed(&place, "opened", source);
        if version < schema::VERSION {
            // One at a time: of two that change the journal's mode at once, one would wait for the other in vain. Where a directory
            // cannot be locked, SQLite's own locks remain.
            let turn = path.parent().and_then(|directory| File::open(directory).ok());
            let _turn = turn.filter(|directory| directory.lock().is_ok());
            // Kept in the file from then on.
            connection
                .pragma_update(None, "journal_mode", "WAL")
                .map_err(failed)?;
            schema::migrate(&mut connection).map_err(failed)?;
        }
        Ok(Sqlite {
            connection,
            path: path.to_owned(),
            place,
            version: schema::VERSION,
            running: RefCell::default(),
            alone: None,
            opened: file_id(path),
            saved: RefCell::default(),
        })
    }

    /// Opens the file at `path` as it is, neither made nor brought up to this schema.
    pub(in crate::store) fn open_as_it_is(path: &Path, patience: Duration) -> Result<Sqlite, StoreError> {
        let place = Place::File(path.to_owned());
        let missing = || StoreError::Missing { place: place.clone() };
        if !path.exists() {
            return Err(missing());
        }
        let flags = OpenFlags::default() & !OpenFlags::SQLITE_OPEN_CREATE;
        let (connection, version) = opened(path, &place, flags, patience)?;
        match version {
            // An empty file.
            0 => Err(missing()),
            schema::VERSION => Ok(Sqlite {
                connection,
                path: path.to_owned(),
                place,
                version,
                running: RefCell::default(),
                alone: None,
                opened: file_id(path),
                saved: RefCell::default(),
            }),
            found => Err(StoreError::Older { place, found }),
        }
    }

    /// Opens the file at `path`, of this schema or an older one, for reading, waiting so long for another process. Where nobody
    /// has it open it is read without locks, because SQLite's own would leave files beside it.
    pub(in crate::store) fn read(path: &Path, patience: Duration) -> Result<Sqlite, StoreError> {
        let place = Place::File(path.to_owned());
        let missing = || StoreError::Missing { place: place.clone() };
        let about = std::fs::metadata(path)
            .ok()
            .filter(Metadata::is_file)
            .ok_or_else(missing)?;
        if about.len() == 0 {
            return Err(StoreError::Truncated {
                place,
                found_bytes: 0,
                expected_bytes: HEADER_BYTES as u64,
            });
        }
        whole(path)?;
        let alone = (!log_is_there(path)).then(|| Alone(state(&about)));
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let parameter = if alone.is_some() { "immutable=1" } else { "mode=ro" };
        let failed = |source| failed(&place, "opened", source);
        let connection = Connection::open_with_flags(uri(path, parameter), flags).map_err(failed)?;
        let version = look(&connection, &place, patience)?;
        if version == 0 {
            return Err(StoreError::Foreign { place });
        }
        Ok(Sqlite {
            connection,
            path: path.to_owned(),
            place,
            version,
            running: RefCell::default(),
            alone,
            opened: None,
            saved: RefCell::default(),
        })
    }
}

/// A connection with its settings, and the schema of what is there.
fn opened(
    path: &Path,
    place: &Place,
    flags: OpenFlags,
    patience: Duration,
) -> Result<(Connection, i64), StoreError> {
    whole(path)?;
    let failed = |source| failed(place, "opened", source);
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let version = look(&connection, place, patience)?;
    for (name, value) in [("synchronous", "FULL"), ("foreign_keys", "ON")] {
        connection.pragma_update(None, name, value).map_err(failed)?;
    }
    Ok((connection, version))
}

/// Length and time of a file that is read without locks.
pub(in crate::store) struct Alone((u64, SystemTime));

impl Alone {
    /// Whether the file was let alone meanwhile.
    pub(super) fn is_unchanged(&self, path: &Path) -> bool {
        let now = std::fs::metadata(path).ok().map(|about| state(&about));
        now == Some(self.0) && !log_is_there(path)
    }
}

fn state(about: &Metadata) -> (u64, SystemTime) {
    (about.len(), about.modified().unwrap_or(SystemTime::UNIX_EPOCH))
}

/// SQLite's write-ahead log, which is there while somebody has the store open, or was killed.
fn log_is_there(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}

/// A path as SQLite's URI.
fn uri(path: &Path, parameter: &str) -> String {
    use std::os::unix::ffi::OsStrExt;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut text = "file:".to_owned();
    for &byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                text.push(char::from(byte))
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text + "?" + parameter
}

/// The schema of a file, 0 of an empty one; other programs' and newer ones are refused.
fn look(connection: &Connection, place: &Place, patience: Duration) -> Result<i64, StoreError> {
    let failed = |source| failed(place, "opened", source);
    connection.busy_timeout(patience).map_err(failed)?;
    // All of one instant: another process may be making the store just now.
    let instant = connection.unchecked_transaction().map_err(failed)?;
    let number = |sql: &str| {
        instant
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(failed)
    };
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    let version = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    instant.commit().map_err(failed)?;
    if tables > 0 && application != schema::APPLICATION_ID {
        return Err(StoreError::Foreign { place: place.clone() });
    }
    if version > schema::VERSION {
        return Err(StoreError::Newer {
            place: place.clone(),
            found: version,
        });
    }
    Ok(version)
}

/// Refuses a file that is shorter than its own head says: SQLite would tell only once it misses a page.
fn whole(path: &Path) -> Result<(), StoreError> {
    // What a log holds need not be in the file yet.
    if log_is_there(path) {
        return Ok(());
    }
    let mut head = Vec::with_capacity(HEADER_BYTES);
    let read = File::open(path).and_then(|file| {
        let about = file.metadata()?;
        file.take(HEADER_BYTES as u64).read_to_end(&mut head)?;
        Ok(about.len())
    });
    // What is not there or cannot be read is SQLite's to name.
    let Ok(found_bytes) = read else {
        return Ok(());
    };
    match expected_bytes(&head) {
        Some(expected_bytes) if found_bytes < expected_bytes => Err(StoreError::Truncated {
            place: Place::File(path.to_owned()),
            found_bytes,
            expected_bytes,
        }),
        _ => Ok(()),
    }
}

/// How long a database that begins like this is, where that can be told.
fn expected_bytes(head: &[u8]) -> Option<u64> {
    if !head.starts_with(b"SQLite format 3\0") {
        return None;
    }
    let Ok(head) = <&[u8; HEADER_BYTES]>::try_from(head) else {
        return Some(HEADER_BYTES as u64);
    };
    let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let page_bytes = match u16::from_be_bytes([head[16], head[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    (number(24) == number(92)).then(|| page_bytes * u64::from(number(28)))
}
