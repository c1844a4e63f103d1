//! A store in PostgreSQL: a schema of a database, for many people and machines. The connection is
//! made by whoever knows how to reach the server, and handed over.

mod open;
mod rights;
mod session;

pub(super) use open::May;
pub use rights::MissingRight;
pub(super) use rights::missing;
pub use session::Link;

use super::StoreError;
use super::database::{Act, Database, ROWS_MAX, Row, Value, endless_rows, hold_no_zero};
use super::place::Place;
use bytes::BytesMut;
use pgdyno_server::SessionError;
use postgres::error::{Error, SqlState};
use postgres::types::{FromSql, IsNull, ToSql, Type};
use session::Session;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The advisory locks of a schema. There the two halves of a lock's key have no sign; a key of two
/// halves has objsubid 2.
const LOCKS: &str = "FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 \
                     AND classid::bigint = $1 \
                     AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())";

/// A store in a schema of a PostgreSQL database.
pub(super) struct Postgres {
    place: Place,
    version: i64,
    /// What was being run when a reader's one instant was about to come: its rows say so, whatever
    /// has ended since.
    seen: BTreeSet<i64>,
    session: RefCell<Session>,
}

impl Postgres {
    /// Sends a statement, once more where the connection is lost before the first row came and
    /// nothing else is at stake. Gives the number of rows that it has changed.
    fn send(
        &self,
        action: &'static str,
        sql: &str,
        values: &[Value],
        act: Act<'_>,
    ) -> Result<u64, StoreError> {
        hold_no_zero(&self.place, values)?;
        let mut session = self.session.borrow_mut();
        let had_rows = Cell::new(false);
        let mut act = |row: &mut Row<'_>| {
            had_rows.set(true);
            act(row)
        };
        let first = session.send(&self.place, action, sql, values, &mut act);
        match first {
            Err(_) if !session.in_transaction && session.may_return() && !had_rows.get() => {
                session.renew(&self.place, action)?;
                session.send(&self.place, action, sql, values, &mut act)
            }
            other => other,
        }
    }

    fn plain(&self, action: &'static str, sql: &str) -> Result<(), StoreError> {
        self.send(action, sql, &[], &mut |_| Ok(())).map(drop)
    }
}

/// The server's error, distinguished where something can be done about it.
fn failed(place: &Place, action: &'static str, error: &SessionError) -> StoreError {
    let place = place.clone();
    let error = match error {
        SessionError::Driver(error) => error,
        SessionError::Limit(reason) => {
            return StoreError::Endless {
                place,
                action,
                reason: reason.clone(),
            };
        }
    };
    let Some(server) = error.as_db_error() else {
        let reason = innermost(error);
        return match is_lost(error) {
            true => StoreError::Gone {
                place,
                action,
                reason,
            },
            false => StoreError::Postgres {
                place,
                action,
                reason,
                sqlstate: None,
            },
        };
    };
    let reason = format!("{} (SQLSTATE {})", server.message(), server.code().code());
    match server.code() {
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Denied { place, reason },
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::ReadOnly { place },
        code if *code == SqlState::LOCK_NOT_AVAILABLE => StoreError::Locked { place },
        _ if is_lost(error) => StoreError::Gone {
            place,
            action,
            reason,
        },
        code => StoreError::Postgres {
            place,
            action,
            reason,
            sqlstate: Some(code.code().to_owned()),
        },
    }
}

/// Whether the connection is of no use any more: it broke, or the server has ended the session.
fn is_lost(error: &Error) -> bool {
    let Some(server) = error.as_db_error() else {
        let cause = std::error::Error::source(error);
        return error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>());
    };
    let code = server.code();
    // Class 08: connection exceptions.
    code.code().starts_with("08")
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_SESSION_TIMEOUT,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ]
        .contains(code)
}

/// The last cause of an error: the system's own message.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

impl Value {
    fn kind(&self) -> Type {
        match self {
            // The server finds out by the statement.
            Value::Null => Type::UNKNOWN,
            Value::Int(_) => Type::INT8,
            Value::Text(_) => Type::TEXT,
            Value::Blob(_) => Type::BYTEA,
        }
    }
}

type Trouble = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Trouble> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) => number.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Value, Trouble> {
        Ok(match *kind {
            Type::BOOL => Value::Int(bool::from_sql(kind, raw)?.into()),
            Type::INT4 => Value::Int(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Value::Int(i64::from_sql(kind, raw)?),
            Type::BYTEA => Value::Blob(raw.to_vec()),
            _ => Value::Text(<&str>::from_sql(kind, raw)?.to_owned()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Value, Trouble> {
        Ok(Value::Null)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::BOOL | Type::INT4 | Type::INT8 | Type::BYTEA)
            || <&str as FromSql>::accepts(kind)
    }
}

impl Session {
    /// Sends a statement and hands over its rows as they come.
    fn send(
        &mut self,
        place: &Place,
        action: &'static str,
        sql: &str,
        values: &[Value],
        act: Act<'_>,
    ) -> Result<u64, StoreError> {
        let client = self.client(place, action)?;
        let parameters = values.iter().map(|value| (value, value.kind()));
        /// The server's trouble, or that of whoever takes the rows.
        enum Why {
            Session(SessionError),
            Act(StoreError),
        }
        impl From<SessionError> for Why {
            fn from(error: SessionError) -> Why {
                Why::Session(error)
            }
        }
        let mut rows = 0;
        let outcome = client.each(sql, parameters, |row| {
            rows += 1;
            if rows > ROWS_MAX {
                return Err(Why::Act(endless_rows(place, action)));
            }
            let values = (0..row.len()).map(|at| row.try_get(at)).collect::<Result<_, _>>();
            let values = values.map_err(SessionError::from)?;
            act(&mut Row { values, place }).map_err(Why::Act)
        });
        let outcome = outcome.map_err(|why| match why {
            Why::Session(error) => failed(place, action, &error),
            Why::Act(error) => error,
        });
        match &outcome {
            Err(StoreError::Gone { reason, .. }) => self.lose(reason),
            Err(StoreError::Endless { reason, .. }) => self.give_up(reason),
            _ => {}
        }
        outcome
    }
}

impl Database for Postgres {
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
        self.send(action, sql, values, act).map(drop)
    }

    fn execute(&self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        self.send("written", sql, values, &mut |_| Ok(()))
    }

    fn begin(&self) -> Result<(), StoreError> {
        self.plain("written", "BEGIN")?;
        self.session.borrow_mut().in_transaction = true;
        Ok(())
    }

    fn commit(&self) -> Result<(), StoreError> {
        self.plain("written", "COMMIT")?;
        self.session.borrow_mut().in_transaction = false;
        Ok(())
    }

    fn roll_back(&self) {
        let was_open = self.session.borrow().in_transaction;
        if was_open {
            // With a connection that is lost it is forgotten in any case.
            let _ = self.plain("written", "ROLLBACK");
            self.session.borrow_mut().in_transaction = false;
        }
    }

    fn may_try_again(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Gone { .. }) && self.session.borrow().may_return()
    }

    fn brief(&self) -> &'static str {
        "json_build_object('question', e.record::json -> 'question', 'target', e.record::json -> 'target')::text"
    }

    fn hold(&self, experiment: i64) -> Result<bool, StoreError> {
        if self.session.borrow().held.contains_key(&experiment) {
            return Ok(true);
        }
        let (class, object) = self.key(experiment);
        let sql = "SELECT pg_try_advisory_lock($1::int4, $2::int4)";
        let mut is_ours = false;
        self.each("written", sql, &[class.into(), object.into()], &mut |row| {
            is_ours = row.flag(0)?;
            Ok(())
        })?;
        if is_ours {
            self.session.borrow_mut().held.insert(experiment, false);
        }
        Ok(is_ours)
    }

    fn say_runs(&self, experiment: i64, runs: bool) {
        if let Some(says) = self.session.borrow_mut().held.get_mut(&experiment) {
            *says = runs;
        }
    }

    fn keep(&self) -> Result<(), StoreError> {
        self.plain("looked for", "SELECT 1")
    }

    fn is_current(&self) -> bool {
        let sql = "SELECT schema_version FROM about";
        let found = (self as &dyn Database).first(sql, &[], |row| row.int(0));
        matches!(found, Ok(Some(version)) if version == self.version)
    }

    fn let_go(&self, experiment: i64) {
        if self.session.borrow_mut().held.remove(&experiment).is_some() {
            let (class, object) = self.key(experiment);
            // One that stays goes with the session.
            let sql = "SELECT pg_advisory_unlock($1::int4, $2::int4)";
            let _ = self.each("written", sql, &[class.into(), object.into()], &mut |_| Ok(()));
        }
    }

    fn look(&self, experiment: i64) -> Option<bool> {
        self.look_all(&[experiment]).pop().flatten()
    }

    /// One look at the locks for all.
    fn look_all(&self, experiments: &[i64]) -> Vec<Option<bool>> {
        let is_seen = |id: &i64| self.seen.contains(id);
        let held = match experiments.iter().all(is_seen) {
            true => Ok(Some(BTreeSet::new())),
            false => self.locks(),
        };
        let unsigned = |half: i64| half & 0xffff_ffff;
        let runs = |id: &i64| match &held {
            _ if is_seen(id) => Some(true),
            Ok(Some(held)) => Some(held.contains(&unsigned(self.key(*id).1))),
            // A standby, or a server that gave no answer.
            Ok(None) | Err(_) => None,
        };
        experiments.iter().map(runs).collect()
    }

    fn clear(&self, _: i64) {}

    fn reclaim(&self) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(None)
    }

    /// The server checks its pages as it reads them, where it has checksums; everything is read for
    /// the rest of the check.
    fn own_faults(&self, _: usize) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn lost_references(&self) -> Result<Vec<String>, StoreError> {
        let mut lost = Vec::new();
        for (table, key, parent, number) in [
            ("trial", "experiment_id", "experiment", "id"),
            ("series", "trial_id", "trial", "NULL::bigint"),
            ("gap", "trial_id", "trial", "rowid"),
            ("tag", "experiment_id", "experiment", "NULL::bigint"),
            ("note", "experiment_id", "experiment", "id"),
        ] {
            let sql = format!(
                "SELECT {number} FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = {table}.{key})"
            );
            self.each("read", &sql, &[], &mut |row| {
                let which = row
                    .maybe_int(0)?
                    .map_or_else(String::new, |number| format!(" {number}"));
                lost.push(format!(
                    "{table}{which} refers to a row of {parent} that is not there"
                ));
                Ok(())
            })?;
        }
        Ok(lost)
    }

    fn unchanged(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Postgres {
    /// Second halves of the keys of this schema's locks; `None` on a standby, which knows nothing
    /// of its primary's.
    fn locks(&self) -> Result<Option<BTreeSet<i64>>, StoreError> {
        let sql = format!(
            "SELECT NULL::bigint WHERE pg_is_in_recovery() \
             UNION ALL SELECT objid::bigint {LOCKS} AND NOT pg_is_in_recovery()"
        );
        let class = Value::Int(self.key(0).0 & 0xffff_ffff);
        let locks = (self as &dyn Database).rows(&sql, &[class], |row| row.maybe_int(0))?;
        Ok(locks.into_iter().collect())
    }

    fn key(&self, experiment: i64) -> (i64, i64) {
        self.session.borrow().key(experiment)
    }
}
