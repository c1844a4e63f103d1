//! Questions by which data is checked. All of one check see the same snapshot.

use super::session::{self, Row, number, odd};
use super::{Condition, DataError};
use crate::session::Session;

/// Name of the step, in errors.
const STEP: &str = "checking the data";

/// Asks within the transaction of a check.
pub(super) struct Question<'a> {
    client: &'a mut Session,
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
            figures: match &self.first {
                Some(first) => format!("{} of {} not, as {first}", self.broken, self.compared),
                None => format!("{} compared", self.compared),
            },
        }
    }
}

impl<'a> Question<'a> {
    pub(super) fn new(client: &'a mut Session) -> Question<'a> {
        Question { client }
    }

    fn one(self, sql: &str) -> Result<Row, DataError> {
        let rows = session::rows_of_work(self.client, STEP, sql)?;
        rows.into_iter().next().ok_or_else(|| odd(STEP))
    }

    /// Rows of (number, how many were compared, how many do not hold, a text about one of them).
    pub(super) fn tallies(self, sql: &str) -> Result<Vec<Tally>, DataError> {
        let tally = |mut row: Row| {
            Some(Tally {
                number: number(&row, 0)?,
                compared: number(&row, 1)?,
                broken: number(&row, 2)?,
                first: row.get_mut(3)?.take(),
            })
        };
        let rows = session::rows_of_work(self.client, STEP, sql)?;
        rows.into_iter()
            .map(|row| tally(row).ok_or_else(|| odd(STEP)))
            .collect()
    }

    /// A table has so many rows.
    pub(super) fn rows(self, table: &str, expected: i64) -> Result<Condition, DataError> {
        let row = self.one(&format!("SELECT count(*) FROM {table}"))?;
        let counted: i64 = number(&row, 0).ok_or_else(|| odd(STEP))?;
        Ok(Condition {
            name: format!("rows of {table}"),
            holds: counted == expected,
            figures: format!("{counted} of {expected}"),
        })
    }

    /// One row of (whether it holds, the figures).
    pub(super) fn holds(self, name: &str, sql: &str) -> Result<Condition, DataError> {
        let row = self.one(sql)?;
        Ok(Condition {
            name: name.to_owned(),
            holds: session::text(&row, 0) == "t",
            figures: session::text(&row, 1).to_owned(),
        })
    }
}

/// All of these indexes are there and valid.
pub(super) fn has_indexes(client: &mut Session, names: &[String]) -> Result<Condition, DataError> {
    let sql = format!(
        "SELECT name FROM unnest('{{{}}}'::text[]) AS name
         WHERE NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(name) AND indisvalid)",
        names.join(",")
    );
    let rows = session::rows(client, STEP, &sql)?;
    let missing: Vec<String> = rows.iter().map(|row| session::text(row, 0).to_owned()).collect();
    Ok(Condition {
        name: "keys and indexes".to_owned(),
        holds: missing.is_empty(),
        figures: if missing.is_empty() {
            format!("{} there", names.len())
        } else {
            format!("not there: {}", missing.join(", "))
        },
    })
}
