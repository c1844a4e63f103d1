//! Tables and functions that carry a mark in their comment: found and dropped by that mark alone,
//! whatever their names are. Objects without a mark are listed, and never dropped.

use crate::counters::wait_until_gone;
use crate::error::ServerError;
use crate::quoting::literal;
use crate::server::Server;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The application name of sessions that make data.
const MAKING: &str = "pgdyno data";
/// A session whose client was killed ends within this time, unless it builds a large index: its
/// table's lock is waited for then.
const ENDING_LIMIT: Duration = Duration::from_secs(10);

/// Tables first: functions do not depend on one another, and tables on none of them.
fn sql(mark: &str) -> String {
    let is_marked = format!(
        "d.objsubid = 0 AND d.description LIKE 'pgdyno: %' AND right(d.description, {}) = {}",
        mark.len() + 1,
        literal(&format!(" {mark}"))
    );
    format!(
        "SELECT 'TABLE', format('%I.%I', n.nspname, c.relname) FROM pg_description d \
         JOIN pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE d.classoid = 'pg_class'::regclass AND c.relkind IN ('r', 'p') AND {is_marked} \
         UNION ALL SELECT 'FUNCTION', format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) \
         FROM pg_description d JOIN pg_proc p ON p.oid = d.objoid JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE d.classoid = 'pg_proc'::regclass AND {is_marked} ORDER BY 1 DESC, 2"
    )
}

/// An object of a database or of its server, as DROP names it; in text the kind, a space, the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DatabaseObject {
    /// Its kind, by which DROP drops it.
    pub kind: ObjectKind,
    /// Its name, quoted and with its schema where it has one: `public."B C"`; of a function with
    /// the types of its arguments.
    pub name: String,
}

/// A kind of object, as SQL names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKind(&'static str);

impl ObjectKind {
    const ALL: [ObjectKind; 15] = [
        ObjectKind("AGGREGATE"),
        ObjectKind::DATABASE,
        ObjectKind("DOMAIN"),
        ObjectKind("EXTENSION"),
        ObjectKind("FOREIGN TABLE"),
        ObjectKind("FUNCTION"),
        ObjectKind("INDEX"),
        ObjectKind("MATERIALIZED VIEW"),
        ObjectKind("PROCEDURE"),
        ObjectKind("ROLE"),
        ObjectKind("SCHEMA"),
        ObjectKind("SEQUENCE"),
        ObjectKind("TABLE"),
        ObjectKind("TYPE"),
        ObjectKind("VIEW"),
    ];
    const DATABASE: ObjectKind = ObjectKind("DATABASE");

    fn named(word: &str) -> Option<ObjectKind> {
        ObjectKind::ALL.into_iter().find(|kind| kind.0 == word)
    }
}

impl fmt::Display for DatabaseObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.0, self.name)
    }
}

impl From<DatabaseObject> for String {
    fn from(object: DatabaseObject) -> String {
        object.to_string()
    }
}

impl TryFrom<String> for DatabaseObject {
    type Error = String;

    fn try_from(text: String) -> Result<DatabaseObject, String> {
        let mut kinds = ObjectKind::ALL.into_iter();
        let object = kinds.find_map(|kind| {
            let name = text.strip_prefix(kind.0)?.strip_prefix(' ')?.to_owned();
            Some(DatabaseObject { kind, name })
        });
        object.ok_or_else(|| format!("\"{text}\" is not an object: expected a kind, e.g. TABLE, and a name"))
    }
}

/// Objects of an answer with columns of kinds and names. A kind that is not in the list is an
/// error: what is overlooked stays.
fn listed(server: &mut Server, what: &str, sql: &str) -> Result<Vec<DatabaseObject>, ServerError> {
    let object = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter().flatten();
        let (kind, name) = (
            fields.next().unwrap_or_default(),
            fields.next().unwrap_or_default(),
        );
        match ObjectKind::named(&kind) {
            Some(kind) => Ok(DatabaseObject { kind, name }),
            None => Err(ServerError::Answer {
                what: what.to_owned(),
                expected: "a kind of object",
                found: kind,
            }),
        }
    };
    server.rows(what, sql)?.into_iter().map(object).collect()
}

fn marked(server: &mut Server, mark: &str) -> Result<Vec<DatabaseObject>, ServerError> {
    listed(server, "looking for data that an experiment has made", &sql(mark))
}

/// The tables and functions of the connected database whose comment begins with `pgdyno: ` and ends
/// with the mark, by name with their schema.
pub fn made_objects(server: &mut Server, mark: &str) -> Result<Vec<String>, ServerError> {
    Ok(marked(server, mark)?
        .into_iter()
        .map(|object| object.name)
        .collect())
}

/// Drops what [`made_objects`] lists, all or nothing; what others have built on it keeps it. For
/// pgdyno-knobs alone.
pub fn drop_made(server: &mut Server, mark: &str) -> Result<(), ServerError> {
    // A killed process may have left a session that is about to commit a table.
    wait_until_gone(server, MAKING, 0, ENDING_LIMIT)?;
    let made = marked(server, mark)?;
    let drops = drops_of(&made);
    if drops.is_empty() {
        return Ok(());
    }
    // Statements that are sent together are one transaction.
    server.execute("dropping the data that the experiment has made", &drops.join(" "))
}

/// Whether a database has a name as pgdyno gives it to those that an experiment makes: `pgdyno_`,
/// and letters, digits and underscores.
pub fn is_made_database(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.strip_prefix("pgdyno_")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_of_name))
}

/// Whether the server has a database of that name.
pub fn has_database(server: &mut Server, name: &str) -> Result<bool, ServerError> {
    let sql = format!("SELECT 1 FROM pg_database WHERE datname = {}", literal(name));
    Ok(server.value("looking for a database", &sql)?.is_some())
}

/// Drops a database whose name [`is_made_database`] accepts, with the sessions in it. For
/// pgdyno-knobs alone.
pub fn drop_made_database(server: &mut Server, name: &str) -> Result<(), ServerError> {
    if !is_made_database(name) {
        return Ok(());
    }
    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    server.execute("dropping a database that the experiment has made", &sql)
}

/// The statements that drop objects in their order: one for all of a kind that follow one another,
/// so that tables may refer to one another.
pub fn drops_of(objects: &[DatabaseObject]) -> Vec<String> {
    // A database is dropped by a statement of its own.
    let together =
        |a: &DatabaseObject, b: &DatabaseObject| a.kind == b.kind && a.kind != ObjectKind::DATABASE;
    let statement = |objects: &[DatabaseObject]| {
        let names: Vec<&str> = objects.iter().map(|object| object.name.as_str()).collect();
        format!("DROP {} {};", objects[0].kind.0, names.join(", "))
    };
    objects.chunk_by(together).map(statement).collect()
}

/// Objects beyond this many are not compared: the journal holds their names.
pub const OBJECTS_MAX: usize = 10_000;

/// In an order in which all of them can be dropped, where those of one kind that follow one another
/// are dropped by one statement: what is made later depends on what is made earlier, tables on
/// sequences, and tables on functions but for those that name a table. What is dropped with another
/// object is not a row of its own: parts of extensions, indexes of constraints, sequences and row
/// types of tables, partitions.
const OBJECTS: &str = "
WITH part AS (
  SELECT d.classid, d.objid FROM pg_depend d LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
  WHERE d.deptype IN ('e', 'i') OR d.deptype = 'a' AND c.relkind = 'S'),
own AS (SELECT oid, nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),
object AS (
  SELECT 1 AS turn, c.oid::bigint AS made, CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'MATERIALIZED VIEW' END AS kind,
    format('%I.%I', nspname, relname) AS name
  FROM pg_class c JOIN own ON own.oid = relnamespace
  WHERE relkind IN ('v', 'm') AND ('pg_class'::regclass, c.oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL
  SELECT CASE WHEN relkind IN ('i', 'I') THEN 2 WHEN relkind = 'S' THEN 4 ELSE 3 END, 0,
    CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX' ELSE 'TABLE' END,
    format('%I.%I', nspname, relname)
  FROM pg_class c JOIN own ON own.oid = relnamespace
  WHERE relkind IN ('r', 'p', 'f', 'S', 'i', 'I') AND NOT relispartition
    AND ('pg_class'::regclass, c.oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL
  SELECT CASE WHEN of_table THEN 1 ELSE 5 END, CASE WHEN of_table THEN p.oid::bigint ELSE 0 END,
    CASE prokind WHEN 'p' THEN 'PROCEDURE' WHEN 'a' THEN 'AGGREGATE' ELSE 'FUNCTION' END,
    format('%I.%I(%s)', nspname, proname, pg_get_function_identity_arguments(p.oid))
  FROM pg_proc p JOIN own ON own.oid = pronamespace,
    LATERAL (SELECT count(*) > 0 AS of_table FROM pg_depend d
      LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
      WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND (d.refclassid = 'pg_class'::regclass OR t.typrelid <> 0)) AS names
  WHERE ('pg_proc'::regclass, p.oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL
  SELECT 6, t.oid::bigint, CASE typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, format('%I.%I', nspname, typname)
  FROM pg_type t JOIN own ON own.oid = typnamespace LEFT JOIN pg_class c ON c.oid = typrelid
  WHERE (typtype IN ('d', 'e', 'r') OR typtype = 'c' AND c.relkind = 'c')
    AND ('pg_type'::regclass, t.oid) NOT IN (SELECT classid, objid FROM part WHERE typtype <> 'c')
  UNION ALL SELECT 7, 0, 'EXTENSION', quote_ident(extname) FROM pg_extension
  UNION ALL SELECT 8, 0, 'SCHEMA', quote_ident(nspname) FROM own WHERE ('pg_namespace'::regclass, oid) NOT IN (SELECT classid, objid FROM part)
  UNION ALL SELECT 9, 0, 'DATABASE', quote_ident(datname) FROM pg_database
  UNION ALL SELECT 10, 0, 'ROLE', quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^pg_')
SELECT kind, name FROM object ORDER BY turn, made DESC, kind, name LIMIT ";

/// All objects of the connected database, with the databases and roles of its server, in an order
/// in which they can be dropped; at most one more than [`OBJECTS_MAX`].
///
/// # Errors
///
/// The server's.
pub fn objects(server: &mut Server) -> Result<Vec<DatabaseObject>, ServerError> {
    let sql = format!("{OBJECTS}{}", OBJECTS_MAX + 1);
    listed(server, "listing the database's objects", &sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> DatabaseObject {
        let object = DatabaseObject::try_from(text.to_owned()).unwrap();
        assert_eq!(object.to_string(), text);
        object
    }

    #[test]
    fn text_that_names_no_object_is_refused() {
        for text in ["", "TABLE", "TABLEpublic.a", "table public.a", "HOUSE public.a"] {
            let error = DatabaseObject::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("expected a kind"), "{error}");
        }
    }

    #[test]
    fn objects_of_one_kind_that_follow_one_another_are_dropped_by_one_statement() {
        let objects = [
            "MATERIALIZED VIEW public.\"B C\"",
            "TABLE public.a",
            "TABLE public.\"B\"",
            "FUNCTION public.f(integer, text)",
            "DATABASE a",
            "DATABASE b",
        ];
        let expected = [
            "DROP MATERIALIZED VIEW public.\"B C\";",
            "DROP TABLE public.a, public.\"B\";",
            "DROP FUNCTION public.f(integer, text);",
            "DROP DATABASE a;",
            "DROP DATABASE b;",
        ];
        assert_eq!(drops_of(&objects.map(parsed)), expected);
        assert!(drops_of(&[]).is_empty());
    }
}
