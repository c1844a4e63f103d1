//! Settings of a server: reading them, and the raw changes that pgdyno-knobs alone may make.

use crate::error::ServerError;
use crate::lists::assigned;
use crate::quoting::{identifier, literal};
use crate::server::Server;
use serde::{Deserialize, Serialize};

/// What a session has set is not the server's: in this transaction each setting is again as the
/// session began, whoever set it. What begins with the transaction may not be set again, and a role
/// is not another's.
pub(crate) const AS_BEGUN: &str = "SELECT set_config(name, NULL, true) FROM pg_catalog.pg_settings WHERE source = 'session' \
    AND (context = 'user' OR context = 'superuser' AND current_setting('is_superuser') = 'on') \
    AND name NOT IN ('role', 'session_authorization', 'seed', 'transaction_isolation', 'transaction_read_only', \
        'transaction_deferrable')";

/// A row of pg_settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guc {
    /// Name of the parameter.
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

/// One setting, or `None` where this version does not know it: as a session has it that sets
/// nothing, for pgdyno's own session has a statement_timeout.
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

/// Bounds of a parameter's value, by pg_settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GucBounds {
    /// Smallest value in the base unit.
    pub min: Option<f64>,
    /// Largest value in the base unit.
    pub max: Option<f64>,
    /// Legal words of an enumeration; empty for other types.
    pub words: Vec<String>,
}

/// The bounds of a setting that [`show`] has found.
pub fn bounds(server: &mut Server, name: &str) -> Result<GucBounds, ServerError> {
    let sql = format!(
        "SELECT min_val, max_val, array_to_string(enumvals, chr(10)) FROM pg_settings WHERE name = {}",
        literal(name)
    );
    let rows = server.rows(&format!("reading what {name} may be"), &sql)?;
    let mut fields = rows.into_iter().next().unwrap_or_default().into_iter();
    let mut next = || fields.next().flatten();
    let mut number = || next()?.parse().ok();
    Ok(GucBounds {
        min: number(),
        max: number(),
        words: next()
            .map(|words| words.lines().map(str::to_owned).collect())
            .unwrap_or_default(),
    })
}

/// What the server says to a value that a session may set for itself: its message where it refuses
/// it. Nothing is changed.
pub fn refused_by_server(
    server: &mut Server,
    name: &str,
    value: &str,
) -> Result<Option<String>, ServerError> {
    /// The class of values that are not right.
    const DATA_EXCEPTION: &str = "22";
    let what = format!("trying {name} = {value}");
    // What no session can set, none can try.
    let Some(assigned) = assigned(name, value) else {
        return Ok(None);
    };
    let sql = format!("BEGIN; SET LOCAL {} = {assigned}; ROLLBACK", identifier(name));
    match server.execute(&what, &sql) {
        Ok(()) => Ok(None),
        Err(ServerError::Statement { reason, sqlstate, .. }) => {
            server.execute(&what, "ROLLBACK")?;
            // What may not be set is another matter than what it may be.
            Ok(sqlstate.starts_with(DATA_EXCEPTION).then_some(reason))
        }
        Err(error) => Err(error),
    }
}

/// Rights of the connected role on the server's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingRights {
    /// Name of the role, quoted as in SQL.
    pub role: String,
    /// Whether the role is a superuser, who has every right.
    pub superuser: bool,
    /// Whether the role may reload the configuration.
    pub reload: bool,
    /// Whether it may read the view of what the configuration files hold,
    pub file_settings: bool,
    /// and call the function behind it.
    pub file_settings_function: bool,
    /// Whether it sees settings that are for few.
    pub all_settings: bool,
    /// Whether ALTER SYSTEM is allowed at all (`allow_alter_system`).
    pub alter_system: bool,
}

/// Asks what the connected role may do.
pub fn setting_rights(server: &mut Server) -> Result<SettingRights, ServerError> {
    let sql = "SELECT quote_ident(rolname), rolsuper, has_function_privilege('pg_catalog.pg_reload_conf()', 'EXECUTE'), \
         has_table_privilege('pg_catalog.pg_file_settings', 'SELECT'), \
         has_function_privilege('pg_catalog.pg_show_all_file_settings()', 'EXECUTE'), \
         pg_has_role('pg_read_all_settings', 'USAGE'), \
         coalesce(current_setting('allow_alter_system', true), 'on') = 'on' FROM pg_roles WHERE rolname = current_user";
    let rows = server.rows("asking for the role's rights", sql)?;
    let mut fields = rows.into_iter().next().unwrap_or_default().into_iter();
    let role = fields.next().flatten().unwrap_or_default();
    let mut holds = || fields.next().flatten().as_deref() == Some("t");
    Ok(SettingRights {
        role,
        superuser: holds(),
        reload: holds(),
        file_settings: holds(),
        file_settings_function: holds(),
        all_settings: holds(),
        alter_system: holds(),
    })
}

/// Whether the connected role may set a parameter by ALTER SYSTEM. Before 15 that is for
/// superusers.
pub fn may_alter_system(server: &mut Server, name: &str) -> Result<bool, ServerError> {
    has_privilege(server, name, "ALTER SYSTEM")
}

/// Whether the connected role may set a parameter in its own sessions that is for superusers.
/// Before 15 nobody else may.
pub fn may_set(server: &mut Server, name: &str) -> Result<bool, ServerError> {
    has_privilege(server, name, "SET")
}

fn has_privilege(server: &mut Server, name: &str, privilege: &str) -> Result<bool, ServerError> {
    let sql = match server.version().major >= 15 {
        true => format!("SELECT has_parameter_privilege({}, '{privilege}')", literal(name)),
        false => "SELECT rolsuper FROM pg_roles WHERE rolname = current_user".to_owned(),
    };
    let value = server.value("asking for the role's rights", &sql)?;
    Ok(value.as_deref() == Some("t"))
}

/// The role that owns a table, as SQL has it, where the connected role has not its rights.
pub fn other_owner(server: &mut Server, table: &str) -> Result<Option<String>, ServerError> {
    let sql = format!(
        "SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = to_regclass({}) \
         AND NOT pg_has_role(relowner, 'USAGE')",
        literal(table)
    );
    server.value("asking whose table it is", &sql)
}

/// Sets a value in postgresql.auto.conf. For pgdyno-knobs alone.
///
/// # Errors
///
/// [`ServerError::NotWritable`] for a list without names; else the server's.
pub fn alter_system_set(server: &mut Server, name: &str, value: &str) -> Result<(), ServerError> {
    let assigned = assigned(name, value).ok_or_else(|| ServerError::NotWritable {
        name: name.to_owned(),
        value: value.to_owned(),
    })?;
    let sql = format!("ALTER SYSTEM SET {} = {assigned}", identifier(name));
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
