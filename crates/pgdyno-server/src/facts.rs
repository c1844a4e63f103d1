//! Facts of a server.

use crate::server::{Server, ServerError};
use crate::settings;
use pgdyno_host::Fact;
use std::path::PathBuf;

/// Facts, and what other parts need of them.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// Everything found, for people.
    pub facts: Vec<Fact>,
    /// Its data directory, if this role may know it.
    pub data_directory: Option<PathBuf>,
}

/// Asks for version, size, and every setting that is not the server's own default. Read only.
pub fn server_facts(server: &mut Server) -> Result<ServerFacts, ServerError> {
    let mut facts = Vec::new();
    let asked = [
        ("version", "SELECT version()", "version()"),
        ("database", "SELECT current_database()", "current_database()"),
        (
            "database_size_bytes",
            "SELECT pg_database_size(current_database())",
            "pg_database_size()",
        ),
        ("data_checksums", "SHOW data_checksums", "pg_settings"),
        (
            "started",
            "SELECT pg_postmaster_start_time()",
            "pg_postmaster_start_time()",
        ),
        (
            "connections_used",
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
            "pg_stat_activity",
        ),
        (
            "extensions",
            "SELECT string_agg(extname || ' ' || extversion, ', ') FROM pg_extension",
            "pg_extension",
        ),
    ];
    for (name, sql, source) in asked {
        facts.push(asked_fact(server, name, sql, source));
    }
    // Both are younger than the oldest version that is read.
    let major = server.version().major;
    for (name, since) in [
        ("shared_memory_size_in_huge_pages", 15),
        ("huge_pages_status", 17),
    ] {
        facts.push(if major >= since {
            asked_fact(server, name, &format!("SHOW {name}"), "pg_settings")
        } else {
            let why = format!("PostgreSQL {major} does not tell; {since} and later do");
            Fact::unknown(name, "pg_settings", why)
        });
    }
    let directory = asked_fact(server, "data_directory", "SHOW data_directory", "pg_settings");
    let data_directory = directory
        .value
        .as_ref()
        .and_then(|v| v.as_str())
        .map(PathBuf::from);
    facts.push(directory);
    for guc in settings::changed(server)? {
        let pending = if guc.pending_restart {
            ", waits for a restart"
        } else {
            ""
        };
        facts.push(Fact::known(
            &guc.name,
            &format!("pg_settings, from {}{pending}", guc.source),
            if may_hold_a_secret(&guc.name) {
                "(set, not shown)".to_owned()
            } else {
                guc.shown
            },
        ));
    }
    Ok(ServerFacts {
        facts,
        data_directory,
    })
}

/// Connection strings and commands, in which people put passwords.
fn may_hold_a_secret(name: &str) -> bool {
    name.ends_with("conninfo")
        || name.ends_with("_command")
        || name.contains("password")
        || name.contains("passphrase")
}

fn asked_fact(server: &mut Server, name: &str, sql: &str, source: &str) -> Fact {
    let outcome = server.value(&format!("asking for {name}"), sql);
    Fact::new(name, source, outcome.map(|value| value.unwrap_or_default()))
}
