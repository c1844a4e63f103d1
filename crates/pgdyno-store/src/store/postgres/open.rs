//! How a store in PostgreSQL is opened: made or brought up to this schema, or read as it is and
//! never changed.

use super::session::{Link, Session, fits, quoted, taken};
use super::{LOCKS, Postgres, failed};
use crate::schema::postgres::{PROGRAM, STEPS};
use crate::schema::{TABLES, VERSION};
use crate::store::StoreError;
use crate::store::place::Place;
use pgdyno_server::{Session as Client, SessionError};
use postgres::error::SqlState;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What is there before anything is done.
enum There {
    /// No schema of that name, or an empty one that somebody has made for us.
    Nothing { has_schema: bool },
    /// A store, with its version and the number of its schema.
    Store { version: i64, number: u32 },
}

/// What may be done to open a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum May {
    /// Make it, or bring it up to this schema.
    Make,
    /// Bring it up to this schema.
    Migrate,
    /// Leave it as it is.
    Nothing,
}

impl Postgres {
    /// Opens the store, and does to it what may be done if it must.
    pub(in crate::store) fn open(link: Link, may: May) -> Result<Postgres, StoreError> {
        let mut session = Session::new(link)?;
        let place = session.place().clone();
        let schema = session.schema().to_owned();
        let client = session.client(&place, "opened")?;
        fits(client, &place)?;
        let found = match look(client, &schema, &place)? {
            There::Nothing { .. } if may != May::Make => return Err(StoreError::Missing { place }),
            There::Store { version, number } if version == VERSION => number,
            There::Store { version: found, .. } if may == May::Nothing => {
                return Err(StoreError::Older { place, found });
            }
            _ => migrate(client, &schema, &place)?,
        };
        session.number = found;
        Ok(Postgres {
            place,
            version: VERSION,
            seen: BTreeSet::new(),
            session: RefCell::new(session),
        })
    }

    /// Opens the store to read it at one instant, whatever others write meanwhile.
    pub(in crate::store) fn read(link: Link) -> Result<Postgres, StoreError> {
        let mut session = Session::new(link)?;
        let place = session.place().clone();
        let schema = session.schema().to_owned();
        let client = session.client(&place, "opened")?;
        let There::Store { version, number } = look(client, &schema, &place)? else {
            return Err(StoreError::Missing { place });
        };
        // Before the instant, which is that of the transaction's first statement.
        let held = format!("SELECT objid::bigint {LOCKS}");
        let rows = client
            .query(&held, &[&i64::from(number)])
            .map_err(|e| failed(&place, "opened", &e))?;
        let seen = rows
            .iter()
            .map(|row| taken(row, 0, &place))
            .collect::<Result<_, _>>()?;
        client
            .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1")
            .map_err(|e| failed(&place, "opened", &e))?;
        session.number = number;
        session.in_transaction = true;
        Ok(Postgres {
            place,
            version,
            seen,
            session: RefCell::new(session),
        })
    }
}

/// What is there; other programs' and newer ones are refused.
fn look(client: &mut Client, schema: &str, place: &Place) -> Result<There, StoreError> {
    let failed = |e: SessionError| failed(place, "opened", &e);
    let foreign = || StoreError::Foreign { place: place.clone() };
    let row = client
        .query_opt(
            "SELECT n.oid, (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid), \
             EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'about'), \
             (SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = ANY ($2) \
              AND c.relkind NOT IN ('r', 'p') LIMIT 1) \
             FROM pg_namespace n WHERE n.nspname = $1",
            &[&schema, &TABLES.as_slice()],
        )
        .map_err(failed)?;
    let Some(row) = row else {
        return Ok(There::Nothing { has_schema: false });
    };
    let (number, relations) = (taken(&row, 0, place)?, taken::<i64>(&row, 1, place)?);
    let has_about: bool = taken(&row, 2, place)?;
    if let Some(name) = taken::<Option<String>>(&row, 3, place)? {
        return Err(StoreError::NoTable {
            place: place.clone(),
            name,
        });
    }
    if !has_about {
        return match relations {
            0 => Ok(There::Nothing { has_schema: true }),
            _ => Err(foreign()),
        };
    }
    let about = format!(
        "SELECT program::text, schema_version::bigint FROM {}.about",
        quoted(schema)
    );
    let rows = match client.query(&about, &[]) {
        Err(SessionError::Driver(error)) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => {
            return Err(foreign());
        }
        rows => rows.map_err(failed)?,
    };
    match &rows[..] {
        [row] if taken::<&str>(row, 0, place)? == PROGRAM => match taken(row, 1, place)? {
            found if found > VERSION => Err(StoreError::Newer {
                place: place.clone(),
                found,
            }),
            version => Ok(There::Store { version, number }),
        },
        _ => Err(foreign()),
    }
}

/// Brings the store to this version's schema, and returns the schema's number. Whoever comes second
/// waits, and finds it done.
fn migrate(client: &mut Client, schema: &str, place: &Place) -> Result<u32, StoreError> {
    let failed = |e: SessionError| failed(place, "made or brought up to date", &e);
    // Where it fails, the session is dropped and the transaction with it.
    client.batch_execute("BEGIN").map_err(failed)?;
    client
        .execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('pgdyno store ' || $1::text, 0))",
            &[&schema],
        )
        .map_err(failed)?;
    let version = match look(client, schema, place)? {
        There::Store { version, .. } => version,
        There::Nothing { has_schema } => {
            // Whoever may not make schemas may be given an empty one.
            if !has_schema {
                let make = format!("CREATE SCHEMA {}", quoted(schema));
                client.batch_execute(&make).map_err(failed)?;
            }
            0
        }
    };
    for (to, step) in STEPS {
        if to > version {
            client.batch_execute(step).map_err(failed)?;
            client
                .execute("UPDATE about SET schema_version = $1", &[&to])
                .map_err(failed)?;
        }
    }
    let There::Store { number, .. } = look(client, schema, place)? else {
        return Err(StoreError::Missing { place: place.clone() });
    };
    client.batch_execute("COMMIT").map_err(failed)?;
    Ok(number)
}
