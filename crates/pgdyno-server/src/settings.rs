//! Settings of a server: reading them, and the raw changes that pgdyno-knobs alone may make.

use crate::server::{Server, ServerError};
use serde::{Deserialize, Serialize};

/// What a session has set is not the server's: in this transaction each setting is again as the session began, whoever set it.
/// What begins with the transaction may not be set again, and a role is not another's.
pub(crate) const AS_BEGUN: &str = "SELECT set_config(name, NULL, true) FROM pg_catalog.pg_settings WHERE source = 'session' \
    AND (context = 'user' OR context = 'superuser' AND current_setting('is_superuser') = 'on') \
    AND name NOT IN ('role', 'session_authorization', 'seed', 'transaction_isolation', 'transaction_read_only', \
        'transaction_deferrable')";

/// A row of pg_settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guc {
    /// Its name.
    pub name: String,
    /// The value as the server shows it, with a unit ("128MB").
    pub shown: String,
    /// The value in the base unit, as pg_settings holds it ("16384").
    pub setting: String,
    /// The base unit ("8kB", "ms"), if it has one.
    pub unit: Option<String>,
    /// When a change takes effect: "postmaster" means restart, "sighup" reload, and so on.
    pub context: String,
    /// "bool", "enum", "integer", "real" or "string".
    pub vartype: String,
    /// Where the value comes from.
    pub source: String,
    /// The value the server starts with when nothing is set.
    pub boot_value: Option<String>,
    /// Whether a new value waits for a restart.
    pub pending_restart: bool,
}

/// One setting, or `None` where this version does not know it: as a session has it that sets nothing, for pgdyno's own session has
/// a statement_timeout.
pub fn show(server: &mut Server, name: &str) -> Result<Option<Guc>, ServerError> {
    let sql = format!(
        "SELECT name, current_setting(name), setting, unit, context, vartype, source, boot_val, pending_restart \
         FROM pg_settings WHERE name = {}",
        literal(name)
    );
    let rows = server.last_rows(&format!("reading the setting {name}"), &[AS_BEGUN, &sql])?;
    Ok(rows.into_iter().next().map(guc_of_row))
}

fn guc_of_row(row: Vec<Option<String>>) -> Guc {
    let mut fields = row.into_iter();
    let mut next = || fields.next().flatten();
    Guc {
        name: next().unwrap_or_default(),
        shown: next().unwrap_or_default(),
        setting: next().unwrap_or_default(),
        unit: next(),
        context: next().unwrap_or_default(),
        vartype: next().unwrap_or_default(),
        source: next().unwrap_or_default(),
        boot_value: next(),
        pending_restart: next().as_deref() == Some("t"),
    }
}

/// Sets a value in postgresql.auto.conf. For pgdyno-knobs alone.
pub fn alter_system_set(server: &mut Server, name: &str, value: &str) -> Result<(), ServerError> {
    let sql = format!("ALTER SYSTEM SET {} = {}", identifier(name), literal(value));
    server.execute(&format!("setting {name} to {value}"), &sql)
}

/// Removes a value from postgresql.auto.conf. For pgdyno-knobs alone.
pub fn alter_system_reset(server: &mut Server, name: &str) -> Result<(), ServerError> {
    server.execute(
        &format!("resetting {name}"),
        &format!("ALTER SYSTEM RESET {}", identifier(name)),
    )
}

/// Makes the server read its files again. The postmaster does so a moment later.
pub fn reload(server: &mut Server) -> Result<(), ServerError> {
    server.execute("reloading the configuration", "SELECT pg_reload_conf()")
}

pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(crate) fn identifier(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
