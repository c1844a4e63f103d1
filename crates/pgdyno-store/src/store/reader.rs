//! A store that is read and never changed: to be checked, or imported into another.

use super::database::Database;
use super::place::Place;
use super::postgres::{Link, Postgres};
use super::sqlite::Sqlite;
use super::{StoreError, decode};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;

/// A store of this or an older schema that is read as it is.
pub struct Reader {
    database: Box<dyn Database>,
}

impl Reader {
    /// The store in the file at `path`, waiting for another process as long as `patience`.
    pub fn of_file(path: &Path, patience: Duration) -> Result<Reader, StoreError> {
        let database = Box::new(Sqlite::read(path, patience)?);
        Ok(Reader { database })
    }

    /// The store in PostgreSQL that the link leads to, as it is now.
    pub fn over(link: Link) -> Result<Reader, StoreError> {
        let database = Box::new(Postgres::read(link)?);
        Ok(Reader { database })
    }

    /// Path or server of the store, for messages.
    pub fn place(&self) -> &Place {
        self.database.place()
    }

    pub(super) fn database(&self) -> &dyn Database {
        &*self.database
    }

    pub(super) fn decode<T: DeserializeOwned>(&self, what: &str, text: &str) -> Result<T, StoreError> {
        decode(self.place(), what, text)
    }
}
