//! How a file is opened: made or brought up to this schema, or read as it is and never changed.

use super::{Sqlite, VALUE_BYTES_MAX, failed, file_id, named};
use crate::schema;
use crate::store::StoreError;
use crate::store::place::Place;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::cell::RefCell;
use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Another process may hold the file this long.
const BUSY: Duration = Duration::from_secs(30);

/// SQLite's file header (its documentation, "Database File Format"): 100 bytes with the size of a
/// page at 16, the count of changes at 24, of pages at 28, and for which count of changes the
/// number of pages is valid at 92.
const HEADER_BYTES: usize = 100;

/// Nobody else lists a directory that is made for a store. It may be passed through, because
/// sandboxes may be below it.
const DIRECTORY_MODE: u32 = 0o711;

impl Sqlite {
    /// Opens the file at `path`, making it if it is not there.
    pub(in crate::store) fn open(path: &Path) -> Result<Sqlite, StoreError> {
        let place = Place::File(path.to_owned());
        if let Some(directory) = path.parent() {
            let made = DirBuilder::new()
                .recursive(true)
                .mode(DIRECTORY_MODE)
                .create(directory);
            made.map_err(|source| StoreError::Directory {
                place: place.clone(),
                source,
            })?;
        }
        let path = &named::found(path)?;
        // SQLite would make it as the umask says, and the files beside it like it. What cannot be
        // made is SQLite's to name.
        let _ = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(named::MODE)
            .open(path);
        let (mut connection, version, clock) = opened(path, &place, OpenFlags::default(), BUSY)?;
        let failed = |source| failed(&place, "opened", source);
        if version < schema::VERSION {
            // One at a time: of two that change the journal's mode at once, one would wait for the
            // other in vain. Where a directory cannot be locked, SQLite's own locks remain.
            let _turn = named::directory_of(path).filter(|directory| directory.lock().is_ok());
            clock.stop();
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
            clock,
            opened: file_id(path),
            saved: RefCell::default(),
        })
    }

    /// Opens the file at `path` as it is, neither made nor brought up to this schema.
    pub(in crate::store) fn open_as_it_is(path: &Path, patience: Duration) -> Result<Sqlite, StoreError> {
        let place = Place::File(path.to_owned());
        let missing = || StoreError::Missing { place: place.clone() };
        let path = &named::found(path)?;
        if !path.exists() {
            return Err(missing());
        }
        let flags = OpenFlags::default() & !OpenFlags::SQLITE_OPEN_CREATE;
        let (connection, version, clock) = opened(path, &place, flags, patience)?;
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
                clock,
                opened: file_id(path),
                saved: RefCell::default(),
            }),
            found => Err(StoreError::Older { place, found }),
        }
    }

    /// Opens the file at `path`, of this schema or an older one, for reading, waiting so long for
    /// another process. Where nobody has it open it is read without locks, because SQLite's own
    /// would leave files beside it.
    pub(in crate::store) fn read(path: &Path, patience: Duration) -> Result<Sqlite, StoreError> {
        let place = Place::File(path.to_owned());
        let missing = || StoreError::Missing { place: place.clone() };
        let path = &named::found(path)?;
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
        whole(path, &place)?;
        let alone = (!log_is_there(path)).then(|| Alone(state(&about)));
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let parameter = if alone.is_some() { "immutable=1" } else { "mode=ro" };
        let failed = |source| failed(&place, "opened", source);
        let mut connection = Connection::open_with_flags(uri(path, parameter), flags).map_err(failed)?;
        let clock = guard(&mut connection, Clock::LIMIT).map_err(failed)?;
        let looked = look(&connection, &place, patience);
        let Looked { version, .. } = looked.map_err(|error| cut_off(path, &place).unwrap_or(error))?;
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
            clock,
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
) -> Result<(Connection, i64, Clock), StoreError> {
    whole(path, place)?;
    let failed = |source| failed(place, "opened", source);
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let clock = guard(&mut connection, Clock::LIMIT).map_err(failed)?;
    let Looked { version, is_store } = look(&connection, place, patience)?;
    if is_store {
        named::close_to_others(path);
    }
    for (name, value) in [("synchronous", "FULL"), ("foreign_keys", "ON")] {
        connection.pragma_update(None, name, value).map_err(failed)?;
    }
    Ok((connection, version, clock))
}

/// Bounds what the file's own schema can make SQLite do: its views and triggers are off, and so is
/// every function that is not innocuous; a value has a largest size, and a row a longest time.
fn guard(connection: &mut Connection, limit: Duration) -> rusqlite::Result<Clock> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
    let clock = Clock::with(limit);
    let watched = clock.clone();
    connection.progress_handler(Clock::EVERY_STEPS, Some(move || watched.is_over()))?;
    Ok(clock)
}

/// How long SQLite may work towards the next row.
#[derive(Clone)]
pub(super) struct Clock {
    begun: Instant,
    limit: Duration,
    /// Milliseconds after `begun`; 0 where there is no limit.
    until_ms: Arc<AtomicU64>,
}

impl Clock {
    /// Steps of SQLite's machine between two looks at the clock: some ten microseconds of work.
    const EVERY_STEPS: i32 = 10_000;
    /// No row of a store takes near as long.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Each row has so much time, from now on.
    fn with(limit: Duration) -> Clock {
        let clock = Clock {
            begun: Instant::now(),
            limit,
            until_ms: Arc::default(),
        };
        clock.start();
        clock
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The next row has all its time.
    pub(super) fn start(&self) {
        let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let until_ms = self.now_ms().saturating_add(limit_ms);
        self.until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// What follows takes as long as it takes: it grows with the file alone.
    pub(super) fn stop(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        let until_ms = self.until_ms.load(Ordering::Relaxed);
        until_ms > 0 && self.now_ms() > until_ms
    }

    /// Reason in the error of a statement that took longer than the limit.
    pub(super) fn reason() -> String {
        format!("SQLite found no row within {} s", Clock::LIMIT.as_secs())
    }
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
    named::beside(path, "-wal").exists()
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

/// The version and kind of a database that is being opened.
struct Looked {
    /// Its schema, 0 of an empty one.
    version: i64,
    /// Whether it says that it is a store: what is nobody's yet does not.
    is_store: bool,
}

/// Other programs' files and newer ones are refused.
fn look(connection: &Connection, place: &Place, patience: Duration) -> Result<Looked, StoreError> {
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
    // Virtual tables have no pages of their own.
    let names = schema::TABLES.map(|name| format!("'{name}'")).join(", ");
    let odd = format!(
        "SELECT lower(name) FROM sqlite_schema WHERE lower(name) IN ({names}) \
         AND (type <> 'table' OR coalesce(rootpage, 0) = 0) LIMIT 1"
    );
    let name = |sql: &str| {
        let name = instant.query_row(sql, [], |row| row.get::<_, String>(0));
        name.optional().map_err(failed)
    };
    let odd = name(&odd)?;
    // A generated column, of which a row holds nothing, can be as long as a value may be.
    let computed = match odd.is_some() || application != schema::APPLICATION_ID {
        true => None,
        false => name(&format!(
            "SELECT lower(s.name) FROM sqlite_schema s, pragma_table_xinfo(s.name) c \
             WHERE s.type = 'table' AND lower(s.name) IN ({names}) AND c.hidden > 1 LIMIT 1"
        ))?,
    };
    instant.commit().map_err(failed)?;
    if tables > 0 && application != schema::APPLICATION_ID {
        return Err(StoreError::Foreign { place: place.clone() });
    }
    if let Some(name) = odd {
        return Err(StoreError::NoTable {
            place: place.clone(),
            name,
        });
    }
    if let Some(name) = computed {
        return Err(StoreError::Computed {
            place: place.clone(),
            name,
        });
    }
    if version > schema::VERSION {
        return Err(StoreError::Newer {
            place: place.clone(),
            found: version,
        });
    }
    Ok(Looked {
        version,
        is_store: application == schema::APPLICATION_ID,
    })
}

/// Refuses a file that is shorter than its own head says: SQLite would report it only once it
/// misses a page.
fn whole(path: &Path, place: &Place) -> Result<(), StoreError> {
    // What a log holds need not be in the file yet.
    match cut_off(path, place).filter(|_| !log_is_there(path)) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// A file that another process is just making is shorter than its head says for a moment: it is
/// checked so often, with a pause.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What is missing of a file that is shorter than it says, which is why SQLite cannot read it.
#[expect(
    clippy::disallowed_methods,
    reason = "another process's writing cannot be waited for"
)]
pub(super) fn cut_off(path: &Path, place: &Place) -> Option<StoreError> {
    let mut found = shorter(path, place)?;
    for _ in 1..LOOKS {
        std::thread::sleep(BETWEEN_LOOKS);
        found = shorter(path, place)?;
    }
    Some(found)
}

fn shorter(path: &Path, place: &Place) -> Option<StoreError> {
    let mut head = Vec::with_capacity(HEADER_BYTES);
    let read = named::read(path).and_then(|file| {
        (&file).take(HEADER_BYTES as u64).read_to_end(&mut head)?;
        // The head first: what it says was there by then.
        Ok(file.metadata()?.len())
    });
    // What is not there or cannot be read is SQLite's to name.
    let found_bytes = read.ok()?;
    let expected_bytes = expected_bytes(&head).filter(|&expected| found_bytes < expected)?;
    Some(StoreError::Truncated {
        place: place.clone(),
        found_bytes,
        expected_bytes,
    })
}

/// How long a database that begins like this is, where that is known.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_never_comes_is_given_up_at_its_limit() {
        let mut connection = Connection::open_in_memory().unwrap();
        let clock = guard(&mut connection, Duration::from_millis(1)).unwrap();
        let endless =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let count = || connection.query_row(endless, [], |row| row.get::<_, i64>(0));
        for _ in 0..2 {
            clock.start();
            let error = failed(&Place::Server("memory".to_owned()), "read", count().unwrap_err());
            assert!(matches!(error, StoreError::Endless { .. }), "{error}");
        }
        // What grows with the file alone has no limit: a count of more steps than there are between
        // two looks.
        clock.stop();
        let long = endless.replace("FROM n)", "FROM n WHERE i < 100000)");
        let counted: i64 = connection.query_row(&long, [], |row| row.get(0)).unwrap();
        assert_eq!(counted, 100_000);
    }
}
