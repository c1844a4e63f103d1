//! A store in one file of SQLite: safe for two processes, every trial durable when it ends.

mod named;
mod open;
pub(super) mod running;

pub(super) use open::Alone;

use super::StoreError;
use super::database::{Act, Database, Row, Value, hold_no_zero};
use super::place::Place;
use open::Clock;
use running::RunningLock;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Statement};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The longest value of a store is the record of a trial: one of two days has some 14 MB.
const VALUE_BYTES_MAX: i32 = 20 << 20;

/// A store in a SQLite file.
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    place: Place,
    version: i64,
    /// Kept while this process runs experiments, so that others see that they live.
    running: RefCell<BTreeMap<i64, RunningLock>>,
    /// Where it is read without SQLite's locks.
    alone: Option<Alone>,
    /// How long it may take from here to the next row.
    clock: Clock,
    /// The file that was opened, where it is written: another one, or none, may have its name
    /// later.
    opened: Option<FileId>,
    /// Where what a removed file held was saved.
    saved: RefCell<Option<PathBuf>>,
}

/// Device and number of a file.
pub(super) type FileId = (u64, u64);

/// What has this name now.
pub(super) fn file_id(path: &Path) -> Option<FileId> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}

impl Sqlite {
    /// Refuses to write into a file that nobody finds any more: what it holds is saved beside it
    /// first.
    fn is_in_place(&self) -> Result<(), StoreError> {
        if self.opened.is_none() || file_id(&self.path) == self.opened {
            return Ok(());
        }
        let mut saved = self.saved.borrow_mut();
        if saved.is_none() {
            // SQLite would make it as the umask says, and takes an empty file that is there.
            self.clock.start();
            *saved = free_name(&self.path).filter(|path| {
                let copied = self
                    .connection
                    .execute("VACUUM INTO $1", [path.to_string_lossy()]);
                // An empty file, or a part of a copy, is of no use to anybody.
                if copied.is_err() {
                    named::remove(path);
                }
                copied.is_ok()
            });
        }
        Err(StoreError::Removed {
            place: self.place.clone(),
            saved: saved.clone(),
        })
    }

    fn failed(&self, action: &'static str, source: rusqlite::Error) -> StoreError {
        failed(&self.place, action, source)
    }

    /// A statement with its values.
    fn prepared(&self, sql: &str, values: &[Value]) -> rusqlite::Result<Statement<'_>> {
        let mut statement = self.connection.prepare(sql)?;
        for (number, value) in (1..).zip(values) {
            // To SQLite $2 is a name, and the numbers of names are in the order of the text.
            if let Some(at) = statement.parameter_index(&format!("${number}"))? {
                statement.raw_bind_parameter(at, value)?;
            }
        }
        Ok(statement)
    }

    fn number(&self, sql: &str) -> Result<i64, StoreError> {
        self.clock.start();
        self.connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|e| self.failed("read", e))
    }

    fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.clock.start();
        self.connection
            .execute_batch(sql)
            .map_err(|e| self.failed("written", e))
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        let pages = self.number("PRAGMA page_count")?;
        Ok((pages * self.number("PRAGMA page_size")?).unsigned_abs())
    }
}

/// An empty file of its own beside a store, for its owner alone.
fn free_name(path: &Path) -> Option<PathBuf> {
    const NAMES_TRIED: u32 = 1000;
    for number in 1..=NAMES_TRIED {
        let name = named::beside(path, &format!("-saved-{number}"));
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(named::MODE)
            .open(&name);
        match made {
            Ok(_) => return Some(name),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// SQLite's error, or its cause where that is known: another process has the file, or a part of it
/// is missing.
fn failed(place: &Place, action: &'static str, source: rusqlite::Error) -> StoreError {
    if let (Some(ErrorCode::DatabaseCorrupt), Place::File(path)) = (source.sqlite_error_code(), place)
        && let Some(truncated) = open::cut_off(path, place)
    {
        return truncated;
    }
    let place = place.clone();
    let endless = |reason: String| StoreError::Endless {
        place: place.clone(),
        action,
        reason,
    };
    match source.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => endless(Clock::reason()),
        Some(ErrorCode::TooBig) => endless(format!("a value is longer than {VALUE_BYTES_MAX} bytes")),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked { place },
        _ => StoreError::Sqlite {
            place,
            action,
            source,
        },
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// A value of a row. The tables hold no numbers but whole ones.
fn value(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Value> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(_) => Value::Text(row.get(at)?),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        ValueRef::Null | ValueRef::Real(_) => Value::Null,
    })
}

impl Database for Sqlite {
    fn place(&self) -> &Place {
        &self.place
    }

    fn version(&self) -> i64 {
        self.version
    }

    fn each(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value],
        act: Act<'_>,
    ) -> Result<(), StoreError> {
        hold_no_zero(&self.place, values)?;
        let failed = |e| self.failed(action, e);
        let mut statement = self.prepared(sql, values).map_err(failed)?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        self.clock.start();
        while let Some(row) = rows.next().map_err(failed)? {
            self.clock.start();
            let values = (0..columns).map(|at| value(row, at)).collect::<Result<_, _>>();
            act(&mut Row {
                values: values.map_err(failed)?,
                place: &self.place,
            })?;
        }
        Ok(())
    }

    fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        hold_no_zero(&self.place, values)?;
        self.clock.start();
        self.is_in_place()?;
        self.prepared(sql, values)
            .and_then(|mut statement| statement.raw_execute())
            .map(|rows| rows as u64)
            .map_err(|e| self.failed("written", e))
    }

    fn begin(&self) -> Result<(), StoreError> {
        self.is_in_place()?;
        self.batch("BEGIN IMMEDIATE")
    }

    fn keep(&self) -> Result<(), StoreError> {
        self.is_in_place()
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.batch("COMMIT")
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // What fails here fails again at the next statement, which reports it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn may_try_again(&self, _: &StoreError) -> bool {
        false
    }

    fn brief(&self) -> &'static str {
        // What is not JSON any more is nothing here; opening it shows what is wrong.
        "CASE WHEN json_valid(e.record) THEN json_object('question', e.record ->> '$.question', 'target', e.record ->> '$.target') END"
    }

    fn hold(&self, experiment: i64) -> Result<bool, StoreError> {
        match RunningLock::take(&self.path, experiment) {
            Ok(Some(lock)) => {
                self.running.borrow_mut().insert(experiment, lock);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(source) => Err(StoreError::Lock {
                place: self.place.clone(),
                source,
            }),
        }
    }

    fn let_go(&self, experiment: i64) {
        if let Some(lock) = self.running.borrow_mut().remove(&experiment) {
            lock.release();
        }
    }

    fn look(&self, experiment: i64) -> Option<bool> {
        match self.running.borrow().contains_key(&experiment) {
            true => Some(true),
            false => running::look(&self.path, experiment),
        }
    }

    fn clear(&self, experiment: i64) {
        running::clear(&self.path, experiment);
    }

    fn reclaim(&self) -> Result<Option<(u64, u64)>, StoreError> {
        let before = self.file_bytes()?;
        self.clock.stop();
        self.connection
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(|e| self.failed("written", e))?;
        Ok(Some((before, self.file_bytes()?)))
    }

    fn own_faults(&self, most: usize) -> Result<Vec<String>, StoreError> {
        let check = || -> rusqlite::Result<Vec<String>> {
            self.connection
                .prepare(&format!("PRAGMA integrity_check({most})"))?
                .query_map([], |row| row.get::<_, String>(0))?
                .collect()
        };
        // It reads the whole file, and grows with that alone.
        self.clock.stop();
        match check() {
            Ok(lines) => Ok(lines
                .into_iter()
                .filter(|line| line != "ok")
                .map(|line| format!("SQLite: {line}"))
                .collect()),
            // A page that is damaged badly ends the check itself.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                Ok(vec![format!("SQLite: {error}")])
            }
            Err(error) => Err(self.failed("read", error)),
        }
    }

    fn lost_references(&self) -> Result<Vec<String>, StoreError> {
        let look = || -> rusqlite::Result<Vec<String>> {
            self.connection
                .prepare("PRAGMA foreign_key_check")?
                .query_map([], |row| {
                    let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
                    let number: Option<i64> = row.get(1)?;
                    let which = number.map_or_else(String::new, |number| format!(" {number}"));
                    Ok(format!(
                        "{table}{which} refers to a row of {parent} that is not there"
                    ))
                })?
                .collect()
        };
        self.clock.stop();
        look().map_err(|e| self.failed("read", e))
    }

    fn unchanged(&self) -> Result<(), StoreError> {
        match &self.alone {
            Some(alone) if !alone.is_unchanged(&self.path) => Err(StoreError::Meanwhile {
                place: self.place.clone(),
            }),
            _ => Ok(()),
        }
    }
}
