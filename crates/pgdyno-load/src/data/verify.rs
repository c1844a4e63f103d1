//! Questions by which data is checked. All of one check see the same snapshot.

use super::session::words_of;
use super::{Condition, DataError};
use postgres::Transaction;

/// Asks within a check.
pub(super) struct Question<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
}

/// How often something was compared, and what did not hold.
pub(super) struct Tally {
    pub(super) number: i32,
    compared: i64,
    broken: i64,
    first: Option<String>,
}

impl Tally {
    pub(super) fn condition(&self, name: &str) -> Condition {
        Condition {
            name: name.to_owned(),
            holds: self.broken == 0,
            words: match &self.first {
                Some(first) => format!("{} of {} not, as {first}", self.broken, self.compared),
                None => format!("{} compared", self.compared),
            },
        }
    }
}

fn failed(source: postgres::Error) -> DataError {
    words_of("checking the data", source)
}

impl<'a, 'b> Question<'a, 'b> {
    pub(super) fn new(transaction: &'a mut Transaction<'b>) -> Question<'a, 'b> {
        Question { transaction }
    }

    /// Rows of (number, how many were compared, how many do not hold, words about one of them).
    pub(super) fn tallies(self, sql: &str) -> Result<Vec<Tally>, DataError> {
        let rows = self.transaction.query(sql, &[]).map_err(failed)?;
        rows.iter()
            .map(|row| {
                Ok(Tally {
                    number: row.try_get(0)?,
                    compared: row.try_get(1)?,
                    broken: row.try_get(2)?,
                    first: row.try_get(3)?,
                })
            })
            .collect::<Result<_, _>>()
            .map_err(failed)
    }

    /// A table has so many rows.
    pub(super) fn rows(self, table: &str, expected: i64) -> Result<Condition, DataError> {
        let counted: i64 = self
            .transaction
            .query_one(&format!("SELECT count(*) FROM {table}"), &[])
            .and_then(|row| row.try_get(0))
            .map_err(failed)?;
        Ok(Condition {
            name: format!("rows of {table}"),
            holds: counted == expected,
            words: format!("{counted} of {expected}"),
        })
    }

    /// One row of (whether it holds, the figures).
    pub(super) fn holds(self, name: &str, sql: &str) -> Result<Condition, DataError> {
        self.transaction
            .query_one(sql, &[])
            .and_then(|row| {
                Ok(Condition {
                    name: name.to_owned(),
                    holds: row.try_get::<_, Option<bool>>(0)?.unwrap_or(false),
                    words: row.try_get(1)?,
                })
            })
            .map_err(failed)
    }
}

/// All of these indexes are there and valid.
pub(super) fn has_indexes(
    transaction: &mut Transaction<'_>,
    names: &[String],
) -> Result<Condition, DataError> {
    let sql = "SELECT name FROM unnest($1::text[]) AS name
               WHERE NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(name) AND indisvalid)";
    let missing: Vec<String> = transaction
        .query(sql, &[&names])
        .and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect())
        .map_err(failed)?;
    Ok(Condition {
        name: "keys and indexes".to_owned(),
        holds: missing.is_empty(),
        words: if missing.is_empty() {
            format!("{} there", names.len())
        } else {
            format!("not there: {}", missing.join(", "))
        },
    })
}
