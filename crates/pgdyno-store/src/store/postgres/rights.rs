//! Rights that the role of a store in PostgreSQL lacks to make it, or to store experiments in it:
//! found without changing anything.

use super::failed;
use super::session::{Link, Session, fits, taken};
use crate::schema::VERSION;
use crate::store::StoreError;
use pgdyno_server::SessionError;

/// What a run does with each table. Deleting is for `prune`, tags and notes for whoever writes
/// them.
const OF_RUN: [(&str, &[&str]); 5] = [
    ("about", &["SELECT"]),
    ("experiment", &["SELECT", "INSERT", "UPDATE"]),
    ("trial", &["SELECT", "INSERT"]),
    ("series", &["SELECT", "INSERT"]),
    ("gap", &["SELECT", "INSERT"]),
];

/// A right that the role of a store lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingRight {
    /// What the role may not do.
    pub what: String,
    /// The statement of an owner or superuser that allows it.
    pub grant: String,
}

/// Rights that a run lacks in the store that the link leads to, whether it is there already or not.
///
/// # Errors
///
/// A server that cannot be reached, is read-only, or gives no answer.
pub(in crate::store) fn missing(link: Link) -> Result<Vec<MissingRight>, StoreError> {
    let mut session = Session::new(link)?;
    let (place, schema) = (session.place().clone(), session.schema().to_owned());
    let client = session.client(&place, "opened")?;
    fits(client, &place)?;
    let failed = |error: SessionError| failed(&place, "opened", &error);
    let sql = "SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident($1::text), \
               has_database_privilege(current_database(), 'CREATE'), n.oid IS NOT NULL, \
               coalesce(has_schema_privilege(n.oid, 'USAGE'), false), coalesce(has_schema_privilege(n.oid, 'CREATE'), false), \
               EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid) \
               FROM (SELECT) one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = $1";
    let row = client.query_one(sql, &[&schema]).map_err(failed)?;
    let text = |at: usize| taken::<String>(&row, at, &place);
    let flag = |at: usize| taken::<bool>(&row, at, &place);
    let (role, database, quoted) = (text(0)?, text(1)?, text(2)?);
    let (makes_schemas, has_schema, may_use, may_create, has_tables) =
        (flag(3)?, flag(4)?, flag(5)?, flag(6)?, flag(7)?);
    let lacks = |what: String, right: String| MissingRight {
        what: format!("the role {role} may not {what}"),
        grant: format!("GRANT {right} TO {role}"),
    };
    let mut found = Vec::new();
    if !has_schema {
        if !makes_schemas {
            let what = format!("make the schema {quoted} in the database {database}");
            found.push(lacks(what, format!("CREATE ON DATABASE {database}")));
        }
        return Ok(found);
    }
    if !may_use {
        let what = format!("use the schema {quoted}");
        found.push(lacks(what, format!("USAGE ON SCHEMA {quoted}")));
    }
    if !has_tables {
        if !may_create {
            let what = format!("make tables in the schema {quoted}");
            found.push(lacks(what, format!("CREATE ON SCHEMA {quoted}")));
        }
        return Ok(found);
    }
    for (table, privileges) in OF_RUN {
        let sql = "SELECT privilege FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace, \
                   unnest($3::text[]) privilege WHERE n.nspname = $1 AND c.relname = $2 \
                   AND NOT has_table_privilege(c.oid, privilege)";
        let rows = client
            .query(sql, &[&schema, &table, &privileges])
            .map_err(failed)?;
        let lacking: Vec<String> = rows
            .iter()
            .map(|row| taken(row, 0, &place))
            .collect::<Result<_, _>>()?;
        if !lacking.is_empty() {
            let rights = lacking.join(", ");
            found.push(lacks(
                format!("{rights} in the table {quoted}.{table}"),
                format!("{rights} ON TABLE {quoted}.{table}"),
            ));
        }
    }
    // A store of an earlier schema is brought up to this one.
    if found.is_empty() {
        let sql = "SELECT has_table_privilege('about', 'UPDATE'), schema_version::bigint FROM about";
        for row in client.query(sql, &[]).map_err(failed)? {
            if !taken::<bool>(&row, 0, &place)? && taken::<i64>(&row, 1, &place)? < VERSION {
                let what = format!("bring the store to schema {VERSION}");
                found.push(lacks(what, format!("UPDATE ON TABLE {quoted}.about")));
            }
        }
    }
    Ok(found)
}
