//! Which store a command means: a file, or one in PostgreSQL, and the way there. The store itself
//! knows no connection strings.

use crate::context::{Context, variable};
use crate::failure::Result;
use crate::failure::Usage;
use crate::output::hide;
use pgdyno_server::{
    Found, Given, Session, begins_with_word, is_meant_as_server, keeps_sessions, shown, without_word,
};
use pgdyno_store::{Link, MissingRight, Reader, Store, StoreError};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The schema of a database that a store is in, where no other is named.
const SCHEMA: &str = "pgdyno";
/// The word of the URL that names another.
const SCHEMA_WORD: &str = "schema";
/// So long a statement of who only looks on may take, over a slow network too; a list or a trial
/// takes milliseconds.
const STATEMENT_MAX: Duration = Duration::from_secs(60);
/// NAMEDATALEN of PostgreSQL without the byte that ends a name.
const SCHEMA_BYTES_MAX: usize = 63;

/// Where a store is. Displays without a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StorePlace {
    /// Path of a SQLite file.
    File(PathBuf),
    /// A schema of a database.
    Server {
        /// The connection string; it may hold a password.
        text: String,
        schema: String,
        /// Name of the store in messages, without a password.
        name: String,
    },
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorePlace::File(path) => path.display().fmt(f),
            StorePlace::Server { name, .. } => f.write_str(name),
        }
    }
}

impl StorePlace {
    /// What a command line or a variable names.
    fn read(named: &Path) -> Result<StorePlace> {
        let text = named.to_string_lossy();
        hide(&text);
        let Some(text) = named.to_str().filter(|text| is_of_server(text)) else {
            // Else a mistyped password would become the name of a file, and be shown as such.
            if is_meant_as_server(&text) {
                return Err(Usage(format!(
                    "the store {} is neither a connection string nor a usual name of a file; expected a file, \
                     postgres://user@host/database or key=value pairs (a file of this name is given as ./NAME)",
                    Given(&text)
                ))
                .into());
            }
            return Ok(StorePlace::File(named.to_owned()));
        };
        let (text, schema) = without_word(text, SCHEMA_WORD)?;
        let schema = schema.unwrap_or_else(|| SCHEMA.to_owned());
        may_be_schema(&schema)?;
        let mut name = shown(&text, &variable)?;
        if schema != SCHEMA {
            let sign = if name.contains('?') { '&' } else { '?' };
            name += &format!("{sign}{SCHEMA_WORD}={}", in_url(&schema));
        }
        Ok(StorePlace::Server { text, schema, name })
    }

    /// The store, made if it is not there.
    fn open(self) -> Result<Store, StoreError> {
        match self {
            StorePlace::File(path) => Store::open(&path),
            StorePlace::Server { text, schema, name } => Store::over(link(text, schema, name)),
        }
    }

    /// The store as it is, neither made nor brought up to this schema; how long another process
    /// that holds it, or a server that was lost, is waited for.
    pub(crate) fn open_as_it_is(&self, patience: Duration) -> Result<Store, StoreError> {
        match self.clone() {
            StorePlace::File(path) => Store::open_as_it_is(&path, patience),
            StorePlace::Server { text, schema, name } => {
                let link = link(text, schema, name).with_patience(patience);
                Store::over_as_it_is(link.with_limits(patience, STATEMENT_MAX))
            }
        }
    }

    /// Rights that a run lacks in it, with the grants; a file has none.
    pub(crate) fn missing_rights(&self, patience: Duration) -> Result<Vec<MissingRight>, StoreError> {
        match self.clone() {
            StorePlace::File(_) => Ok(Vec::new()),
            StorePlace::Server { text, schema, name } => {
                let link = link(text, schema, name).with_patience(patience);
                Store::missing_rights(link.with_limits(patience, STATEMENT_MAX))
            }
        }
    }

    /// A text that no other store has: the name of this host and the file, or the database and its
    /// schema. Without a password.
    pub(crate) fn identity(&self) -> String {
        match self {
            StorePlace::File(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                format!("{:?} {}", rustix::system::uname().nodename(), path.display())
            }
            StorePlace::Server { schema, name, .. } => format!("{name} {schema}"),
        }
    }

    /// Whether both are the same store: a file may have several names.
    pub(crate) fn is_same(&self, other: &StorePlace) -> bool {
        match (self, other) {
            (StorePlace::File(a), StorePlace::File(b)) => a.canonicalize().ok() == b.canonicalize().ok(),
            (
                StorePlace::Server { name, schema, .. },
                StorePlace::Server {
                    name: other_name,
                    schema: other_schema,
                    ..
                },
            ) => (name, schema) == (other_name, other_schema),
            _ => false,
        }
    }

    /// The store, to be read and never changed.
    pub(crate) fn reader(self, patience: Duration) -> Result<Reader, StoreError> {
        match self {
            StorePlace::File(path) => Reader::of_file(&path, patience),
            StorePlace::Server { text, schema, name } => Reader::over(link(text, schema, name)),
        }
    }
}

/// A file that is called like a pair of a connection string is named as ./host=x.
fn is_of_server(text: &str) -> bool {
    text.starts_with("postgres://")
        || text.starts_with("postgresql://")
        || begins_with_word(text)
        || text
            .split_once('=')
            .is_some_and(|(word, _)| word.trim() == SCHEMA_WORD)
}

/// PostgreSQL cuts a longer name, and has a meaning of its own for some.
fn may_be_schema(name: &str) -> Result<(), Usage> {
    let reason = match name {
        "" => "is empty",
        "$user" => "means the user's own to PostgreSQL",
        _ if name.len() > SCHEMA_BYTES_MAX => "is longer than PostgreSQL's 63 bytes",
        _ if name.starts_with("pg_") => "begins as PostgreSQL's own do",
        _ if name.contains('\0') => "holds the character U+0000",
        _ => return Ok(()),
    };
    Err(Usage(format!(
        "the schema {name:?} of the store {reason}; name another, or none for {SCHEMA}"
    )))
}

/// A text as it is in a URL.
fn in_url(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut quoted = String::new();
    for byte in text.bytes() {
        match is_plain(byte) {
            true => quoted.push(byte.into()),
            false => quoted += &format!("%{byte:02X}"),
        }
    }
    quoted
}

/// Why there is no way through a pooler that gives each transaction another session.
const POOLED: &str = "a pooler gives each transaction another session, and a store needs one that stays: name the server itself, or a \
    database for which the pooler is in session mode";

/// The way there is looked for at each connection: after a fail-over it is another server of the
/// string.
fn link(text: String, schema: String, name: String) -> Link {
    Link::new(name, schema, move || {
        let found = Found::find(&text, &variable)?;
        // A store prepares statements, and holds locks and its schema by the session.
        if found.conninfo.is_proxied() && !keeps_sessions(&found.conninfo)? {
            return Err(POOLED.into());
        }
        Ok(Session::connect(&found.conninfo)?)
    })
}

impl Context {
    /// The store that a command names, or PGDYNO_STORE, or the usual file.
    pub(crate) fn store_place(&self, named: Option<&Path>) -> Result<StorePlace> {
        match (named, variable("PGDYNO_STORE")) {
            (Some(named), _) => StorePlace::read(named),
            (None, Some(named)) => StorePlace::read(Path::new(&named)),
            (None, None) => Ok(StorePlace::File(self.directories.data.join("results.sqlite"))),
        }
    }

    /// The store that a command names, made if it is not there.
    pub(crate) fn store(&self, named: Option<&Path>) -> Result<Store> {
        Ok(self.store_place(named)?.open()?)
    }

    /// The same, if it is there: a mistyped name must not make an empty one.
    pub(crate) fn store_if_there(&self, named: Option<&Path>) -> Result<Option<Store>> {
        let opened = match self.store_place(named)? {
            StorePlace::File(path) if !path.exists() => return Ok(None),
            StorePlace::File(path) => Store::open(&path),
            StorePlace::Server { text, schema, name } => Store::over_existing(link(text, schema, name)),
        };
        match opened {
            Err(StoreError::Missing { .. }) => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }

    /// The same; that it is not there is an error.
    pub(crate) fn store_there(&self, named: Option<&Path>) -> Result<Store> {
        let place = self.store_place(named)?;
        let missing = || Usage(format!("there is no store of results at {place}")).into();
        self.store_if_there(named)?.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_servers_are_distinguished_and_no_password_is_shown() {
        let check = |text: &str, expected: &str, is_file: bool| {
            let place = StorePlace::read(Path::new(text)).unwrap();
            assert_eq!(place.to_string(), expected, "{text}");
            assert_eq!(matches!(place, StorePlace::File(_)), is_file, "{text}");
        };
        check("a.sqlite", "a.sqlite", true);
        check("./host=x", "./host=x", true);
        check("a=b", "a=b", true);
        check("/x/dbname=y", "/x/dbname=y", true);
        let plain = "sslmode=disable&connect_timeout=1";
        check(
            &format!("postgres://ann:secret@db:1/lab?{plain}"),
            "postgres://ann@db:1/lab",
            false,
        );
        check(
            &format!("postgresql://ann:secret@db:1/lab?schema=team&{plain}"),
            "postgres://ann@db:1/lab?schema=team",
            false,
        );
        check(
            "host=db port=1 user=ann dbname=lab password='secret' schema=pgdyno",
            "postgres://ann@db:1/lab",
            false,
        );
        for first in [
            "password=secret",
            "sslmode=disable",
            "schema=pgdyno",
            "target_session_attrs=any",
            "connect_timeout=1",
            "application_name=x",
            "options='-c x=y'",
        ] {
            let text = format!("{first} password = secret user=ann host=db port=1 dbname=lab");
            check(&text, "postgres://ann@db:1/lab", false);
        }
        check(
            "host=db port=1 user=ann dbname=lab schema='a &b'",
            "postgres://ann@db:1/lab?schema=a%20%26b",
            false,
        );
        let long = "x".repeat(64);
        for schema in ["", "$user", "pg_toast", &long] {
            let text = format!("host=db user=ann schema='{schema}'");
            let message = StorePlace::read(Path::new(&text)).err().unwrap().to_string();
            assert!(message.contains("name another, or none for pgdyno"), "{message}");
        }
        for mistyped in [
            "postgres//u:hunter2@h",
            "sandbox:hunter2 x",
            "postgress://u:hunter2@h/d",
            "pasword=hunter2 host=h",
        ] {
            let message = StorePlace::read(Path::new(mistyped)).err().unwrap().to_string();
            assert!(
                !message.contains("hunter2") && message.contains("./NAME"),
                "{message}"
            );
        }
        let refused = StorePlace::read(Path::new("postgres://ann:sec@ret@db/lab"));
        let message = format!("{:#}", refused.err().unwrap());
        assert!(!message.contains("ret"), "{message}");
    }
}
