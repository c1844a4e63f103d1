//! How tables are stored: storage parameters and the compression of long values, of a table and its
//! partitions.

use crate::error::ServerError;
use crate::quoting::{identifier, literal};
use crate::server::Server;
use serde::{Deserialize, Serialize};

/// A part of a table's storage that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum StorageOption {
    /// A storage parameter by its name.
    Parameter(String),
    /// How the long values of all columns are compressed.
    Compression,
}

/// Tables have locks of others on them: nobody is kept waiting for us for longer than this.
const LOCK_LIMIT: &str = "SET LOCAL lock_timeout = '5s'";

/// The name of a table with its schema, as search_path finds it.
pub fn qualified(server: &mut Server, table: &str) -> Result<Option<String>, ServerError> {
    let sql = format!(
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.oid = to_regclass({}) AND c.relkind IN ('r', 'p', 'm')",
        literal(table)
    );
    server.value("looking for the table", &sql)
}

/// The table, or each of its partitions that holds rows (or each column of those), and its value;
/// `None` where it is not set.
pub fn storage_of(
    server: &mut Server,
    table: &str,
    option: &StorageOption,
) -> Result<Vec<(String, Option<String>)>, ServerError> {
    let of = format!(
        "c.relkind IN ('r', 'm') AND c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass({0})) WHERE isleaf \
         UNION SELECT to_regclass({0}))",
        literal(table)
    );
    let sql = match option {
        StorageOption::Parameter(name) => format!(
            "SELECT format('%I.%I', n.nspname, c.relname), \
             (SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = {}) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {of} ORDER BY 1",
            literal(name)
        ),
        StorageOption::Compression => format!(
            "SELECT format('%I.%I ALTER COLUMN %I', n.nspname, c.relname, a.attname), \
             CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE {of} AND a.attnum > 0 AND NOT a.attisdropped AND a.attstorage IN ('x', 'm') ORDER BY 1"
        ),
    };
    let rows = server.rows("reading how the table is stored", &sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut fields = row.into_iter();
            Some((fields.next()??, fields.next()?))
        })
        .collect())
}

/// Sets what [`storage_of`] returns, all of it in one transaction. For pgdyno-knobs alone.
pub fn set_storage(
    server: &mut Server,
    option: &StorageOption,
    rows: &[(String, Option<String>)],
) -> Result<(), ServerError> {
    if rows.is_empty() {
        return Ok(());
    }
    let statements: Vec<String> = rows
        .iter()
        .map(|(what, value)| match (option, value) {
            (StorageOption::Parameter(name), Some(value)) => {
                format!(
                    "ALTER TABLE {what} SET ({} = {})",
                    identifier(name),
                    literal(value)
                )
            }
            (StorageOption::Parameter(name), None) => {
                format!("ALTER TABLE {what} RESET ({})", identifier(name))
            }
            (StorageOption::Compression, value) => {
                let method = value.as_deref().map_or_else(|| "DEFAULT".to_owned(), identifier);
                format!("ALTER TABLE {what} SET COMPRESSION {method}")
            }
        })
        .collect();
    let what = "changing how the table is stored";
    // Statements that are sent together are one transaction.
    server.execute(what, &format!("{LOCK_LIMIT}; {}", statements.join("; ")))
}
