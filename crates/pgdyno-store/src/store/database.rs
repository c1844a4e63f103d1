//! The seam between the store's rules and the database below: statements that every database
//! understands, and the few things that each does in its own way.

use super::StoreError;
use super::place::Place;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the rows of one answer may hold that are kept together: far more than the trials of any
/// experiment.
const ANSWER_BYTES_MAX: usize = 128 << 20;
/// A file of some kilobytes can hold series that unpack to gigabytes: those of a reading may take
/// so much from the start, then so many times what they take as they are packed (real ones take 4
/// to 12 times), and never more than that of a day with 500 columns.
const UNPACKED_BYTES_FREE: usize = 32 << 20;
const UNPACKED_RATIO: usize = 32;
const UNPACKED_BYTES_MAX: usize = 512 << 20;
/// Rows of one answer, however they are used.
pub(super) const ROWS_MAX: u64 = 50_000_000;

/// A value of a statement or of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Value {
        Value::Text(text.clone())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Blob(bytes)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, T::into)
    }
}

/// Refuses texts with the character U+0000: PostgreSQL keeps none, and a store must fit into any
/// database.
pub(super) fn hold_no_zero(place: &Place, values: &[Value]) -> Result<(), StoreError> {
    let has_zero = |value: &Value| matches!(value, Value::Text(text) if text.contains('\0'));
    match values.iter().any(has_zero) {
        true => Err(StoreError::Zero { place: place.clone() }),
        false => Ok(()),
    }
}

/// A row of an answer; a value that is taken is no longer in it.
pub(super) struct Row<'a> {
    pub(super) values: Vec<Value>,
    pub(super) place: &'a Place,
}

impl Row<'_> {
    /// What the row takes in memory, about.
    pub(super) fn bytes(&self) -> usize {
        const OVERHEAD_BYTES: usize = 64;
        let each = self.values.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::Null | Value::Int(_) => 0,
        });
        each.map(|bytes| bytes + OVERHEAD_BYTES).sum()
    }

    fn take(&mut self, at: usize) -> Value {
        self.values
            .get_mut(at)
            .map_or(Value::Null, |value| std::mem::replace(value, Value::Null))
    }

    fn wrong(&self, at: usize, expected: &str) -> StoreError {
        StoreError::Record {
            place: self.place.clone(),
            what: "a row".to_owned(),
            reason: format!("its column {} is no {expected}", at + 1),
        }
    }

    pub(super) fn int(&mut self, at: usize) -> Result<i64, StoreError> {
        self.maybe_int(at)?.ok_or_else(|| self.wrong(at, "number"))
    }

    pub(super) fn maybe_int(&mut self, at: usize) -> Result<Option<i64>, StoreError> {
        match self.take(at) {
            Value::Int(number) => Ok(Some(number)),
            Value::Null => Ok(None),
            _ => Err(self.wrong(at, "number")),
        }
    }

    /// A number that is never negative, and 32 bits long.
    pub(super) fn small(&mut self, at: usize) -> Result<u32, StoreError> {
        let number = self.int(at)?;
        u32::try_from(number).map_err(|_| self.wrong(at, "number of 32 bits"))
    }

    pub(super) fn count(&mut self, at: usize) -> Result<u64, StoreError> {
        Ok(self.int(at)?.unsigned_abs())
    }

    pub(super) fn flag(&mut self, at: usize) -> Result<bool, StoreError> {
        Ok(self.int(at)? != 0)
    }

    pub(super) fn text(&mut self, at: usize) -> Result<String, StoreError> {
        self.maybe_text(at)?.ok_or_else(|| self.wrong(at, "text"))
    }

    pub(super) fn maybe_text(&mut self, at: usize) -> Result<Option<String>, StoreError> {
        match self.take(at) {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => Err(self.wrong(at, "text")),
        }
    }

    pub(super) fn blob(&mut self, at: usize) -> Result<Vec<u8>, StoreError> {
        match self.take(at) {
            Value::Blob(bytes) => Ok(bytes),
            _ => Err(self.wrong(at, "blob")),
        }
    }
}

/// What one reading may keep in memory; all threads of it share one.
pub(super) struct Budget<'a> {
    place: &'a Place,
    left: AtomicUsize,
}

impl Budget<'_> {
    pub(super) fn new(place: &Place) -> Budget<'_> {
        Budget {
            place,
            left: AtomicUsize::new(ANSWER_BYTES_MAX),
        }
    }

    /// Takes the bytes of what is kept next.
    pub(super) fn take(&self, bytes: usize) -> Result<(), StoreError> {
        let take = |left: usize| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(too_much(self.place, ANSWER_BYTES_MAX)),
        }
    }
}

fn too_much(place: &Place, bytes_max: usize) -> StoreError {
    StoreError::Endless {
        place: place.clone(),
        action: "read",
        reason: format!("what is read at once is longer than {bytes_max} bytes"),
    }
}

/// Refuses series that take more in memory than series that are so long as they are packed can.
pub(super) fn unpacked_fit(place: &Place, packed_bytes: usize, bytes: usize) -> Result<(), StoreError> {
    let bytes_max = packed_bytes
        .saturating_mul(UNPACKED_RATIO)
        .saturating_add(UNPACKED_BYTES_FREE)
        .min(UNPACKED_BYTES_MAX);
    match bytes <= bytes_max {
        true => Ok(()),
        false => Err(too_much(place, bytes_max)),
    }
}

/// The error for an answer with more rows than any store has.
pub(super) fn endless_rows(place: &Place, action: &'static str) -> StoreError {
    StoreError::Endless {
        place: place.clone(),
        action,
        reason: format!("one answer has more than {ROWS_MAX} rows"),
    }
}

/// What is done with each row of an answer.
pub(super) type Act<'a> = &'a mut dyn FnMut(&mut Row<'_>) -> Result<(), StoreError>;

/// A database that holds a store. Statements are plain SQL with parameters $1, $2, which SQLite and
/// PostgreSQL both understand; outside of a transaction each may be sent a second time where the
/// first was lost with its connection, so each is such that twice is once.
pub(super) trait Database: Send {
    /// Path or server of the store, for messages.
    fn place(&self) -> &Place;

    /// Version of the schema that was found when it was opened.
    fn version(&self) -> i64;

    /// Hands each row of an answer to `act`, which must not use the same database. `action` is
    /// "read" or "written", for errors.
    fn each(&self, action: &'static str, sql: &str, values: &[Value], act: Act<'_>)
    -> Result<(), StoreError>;

    /// Rows that a statement has changed.
    fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, StoreError>;

    /// Begins a transaction that writes.
    fn begin(&self) -> Result<(), StoreError>;

    /// Keeps what the transaction has written; durable when this returns.
    fn commit(&self) -> Result<(), StoreError>;

    /// Forgets what the transaction has written, if there is one.
    fn roll_back(&self);

    /// Whether an error means that the connection is gone and that another may be had, so that a
    /// transaction may be tried again.
    fn may_try_again(&self, error: &StoreError) -> bool;

    /// An expression over the experiment `e` for JSON with its question and target at least.
    fn brief(&self) -> &'static str;

    /// Marks an experiment as run by this process until it ends; `false` where another process runs
    /// it.
    fn hold(&self, experiment: i64) -> Result<bool, StoreError>;

    /// Whether the row of an experiment that is marked so is known to say that it runs: then no
    /// other process has ended it where it still does when a lost connection is made again.
    fn say_runs(&self, _experiment: i64, _runs: bool) {}

    /// Makes a lost connection again, with the marks of what this process runs.
    fn keep(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether what was opened is there still and of the schema that it was of; `false` where
    /// opening again is as good.
    fn is_current(&self) -> bool {
        false
    }

    /// Ends the mark of `hold`: this process no longer runs the experiment.
    fn let_go(&self, experiment: i64);

    /// Whether a process runs this experiment, this one too; `None` where that is unknown.
    fn look(&self, experiment: i64) -> Option<bool>;

    /// The same of several experiments, in their order.
    fn look_all(&self, experiments: &[i64]) -> Vec<Option<bool>> {
        experiments.iter().map(|id| self.look(*id)).collect()
    }

    /// The same, with what is unknown counted as run: nothing is removed for that.
    fn is_run(&self, experiment: i64) -> bool {
        self.look(experiment) != Some(false)
    }

    /// Removes what the process of an experiment that is gone has left.
    fn clear(&self, experiment: i64);

    /// Returns the space of what was removed to the file system. Bytes before and after; `None`
    /// where the database does it by itself.
    fn reclaim(&self) -> Result<Option<(u64, u64)>, StoreError>;

    /// What the database's own check finds: at most so many sentences.
    fn own_faults(&self, most: usize) -> Result<Vec<String>, StoreError>;

    /// Rows that refer to one that is not there.
    fn lost_references(&self) -> Result<Vec<String>, StoreError>;

    /// Whether what was read is of one instant, where that is only known afterwards.
    fn unchanged(&self) -> Result<(), StoreError>;
}

impl dyn Database + '_ {
    /// All rows of an answer, each made into something.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: &[Value],
        mut make: impl FnMut(&mut Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        let budget = Budget::new(self.place());
        self.each("read", sql, values, &mut |row| {
            budget.take(row.bytes())?;
            all.push(make(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// The first row of an answer, if there is one.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: &[Value],
        make: impl FnMut(&mut Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.rows(sql, values, make)?.into_iter().next())
    }

    /// The one number that a statement gives, such as a count.
    pub(super) fn number(&self, sql: &str, values: &[Value]) -> Result<i64, StoreError> {
        Ok(self.first(sql, values, |row| row.int(0))?.unwrap_or(0))
    }

    /// The number that an INSERT with RETURNING gives its row; `None` where no row was inserted.
    pub(super) fn insert(&self, sql: &str, values: &[Value]) -> Result<Option<i64>, StoreError> {
        let mut id = None;
        self.each("written", sql, values, &mut |row| {
            id = Some(row.int(0)?);
            Ok(())
        })?;
        Ok(id)
    }

    /// Inserts many rows of as many values each.
    pub(super) fn insert_all(&self, into: &str, rows: &[Vec<Value>]) -> Result<(), StoreError> {
        // A round trip takes longer than a statement of this size.
        const AT_ONCE: usize = 64;
        for rows in rows.chunks(AT_ONCE) {
            let mut number = 0;
            let mut row_of = |row: &Vec<Value>| {
                let parameter = |_: &Value| {
                    number += 1;
                    format!("${number}")
                };
                format!("({})", row.iter().map(parameter).collect::<Vec<_>>().join(", "))
            };
            let places: Vec<String> = rows.iter().map(&mut row_of).collect();
            let sql = format!("INSERT INTO {into} VALUES {}", places.join(", "));
            self.execute(&sql, &rows.concat())?;
        }
        Ok(())
    }

    /// All that `act` writes, or nothing of it. Where the connection is lost meanwhile, `act` is
    /// called once more on a new one, with `true`: what it had written may be there nevertheless,
    /// if only the answer was lost.
    pub(super) fn transaction<T>(
        &self,
        mut act: impl FnMut(bool) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut once = |again: bool| {
            self.begin()?;
            let done = act(again)?;
            self.commit()?;
            Ok(done)
        };
        let mut outcome = once(false);
        if let Err(error) = &outcome {
            let again = self.may_try_again(error);
            self.roll_back();
            if again {
                outcome = once(true);
                if outcome.is_err() {
                    self.roll_back();
                }
            }
        }
        outcome
    }
}
