//! Facts of a server: what it is, how it is set, what it holds and how it fares. Read-only, in a
//! few questions.

mod ask;
mod build;
mod own;
mod schema;
mod scrub;
mod service;
mod settings;
mod statement;
mod statements;
mod texts;

use crate::error::ServerError;
use crate::lists::names_in;
use crate::server::Server;
use crate::settings::{AS_BEGUN, Guc};
use ask::{Outcome, Question, Signs};
pub use own::{Tallied, Tally, tally};
use pgdyno_host::Fact;
pub use scrub::statement as shown_statement;
use serde_json::{Map, Value, json};
use settings::{START_IN_FILES, Setting, Settings, WithoutStart};
use statement::{Group, Statement};
use statements::STATEMENTS;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Round trips of which the median is reported.
const ROUND_TRIPS: usize = 10;
/// A distant server is not asked that often.
const ROUND_TRIPS_LIMIT: Duration = Duration::from_millis(200);
const ROUND_TRIPS_LEAST: usize = 3;

/// Order of the facts, by the first word of their names. docs/reference/facts-server.md describes
/// each.
const SUBJECTS: &[&str] = &[
    "server",
    "service",
    "role",
    "round_trip_us",
    "settings",
    "extensions",
    "connections",
    "shared_memory",
    "huge_pages",
    "databases",
    "tables",
    "indexes",
    "sequences",
    "statistics",
    "vacuum",
    "xid",
    "multixact",
    "cache",
    "transactions",
    "temp_files",
    "locks",
    "checkpoints",
    "bgwriter",
    "wal",
    "replication",
    "statements",
    "jit",
];

/// Facts, and what other parts need of them.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// Everything found, for people and for the store; no secret in it.
    pub facts: Vec<Fact>,
    /// The server's data directory; `None` where the role may not read it.
    pub data_directory: Option<PathBuf>,
    /// Tablespaces that take temporary files, by name, where these do not go below the data
    /// directory.
    pub temp_directories: Vec<(String, PathBuf)>,
    /// All of pg_settings that this role may see; values that may hold a secret are replaced.
    pub settings: Vec<Guc>,
}

/// Asks for everything. Read-only; every statement is limited, and one that fails is a missing fact
/// with the reason. An error means that the connection is lost.
pub fn server_facts(server: &mut Server) -> Result<ServerFacts, ServerError> {
    let begun = Instant::now();
    let (mut settings, signs) = first_look(server, begun)?;
    let mut found = Found::default();
    for group in [Group::Light, Group::Catalog] {
        found.ask(server, &signs, group, begun)?;
    }
    let sizes = sizes(server, begun)?;
    found.without_our_own(&mut settings, server.conninfo().user());
    let settings = Settings {
        all: &settings,
        signs: &signs,
        version: server.version(),
    };
    found.note_what_other_versions_report(server.version().major);
    found.databases_with(&sizes);
    found.scans_with_statements();
    found.without_parameters();
    let configure = found.text("server.configure");
    found.add(build::fact(&signs.version, &settings, configure.as_deref()));
    settings.facts().into_iter().for_each(|fact| found.add(fact));
    own_facts(server, &signs, &settings)
        .into_iter()
        .for_each(|fact| found.add(fact));
    found.add(round_trip(server)?);
    let data_directory = settings.value("data_directory").map(PathBuf::from);
    Ok(ServerFacts {
        facts: found.in_order(),
        temp_directories: temp_directories(&settings, data_directory.as_ref()),
        data_directory,
        settings: settings.gucs(),
    })
}

/// The settings as they are for this role without what pgdyno sets for itself, and what the role
/// may.
fn first_look(
    server: &mut Server,
    begun: Instant,
) -> Result<(Result<Vec<Setting>, String>, Signs), ServerError> {
    let settings = ask_one(server, AS_BEGUN, "reading the settings", texts::SETTINGS, begun)?;
    let settings = settings.and_then(|value| {
        serde_json::from_value(value).map_err(|e| format!("the settings cannot be read: {e}"))
    });
    let sql = service::fill_in(texts::SIGNS);
    let signs = ask_one(server, texts::LIMITS, "asking what the role may", &sql, begun)?;
    let signs = signs.ok().and_then(|value| serde_json::from_value(value).ok());
    let signs = signs.unwrap_or_else(|| Signs::unknown(server.version().major));
    Ok((settings, signs))
}

fn ask_one(
    server: &mut Server,
    limits: &str,
    what: &str,
    sql: &str,
    begun: Instant,
) -> Result<Outcome, ServerError> {
    let question = Question { limits, what, begun };
    let mut outcomes = question.ask(server, &[sql.to_owned()])?;
    Ok(outcomes.pop().unwrap_or_else(|| Err("no answer".into())))
}

/// Sizes of databases by name; `None` for one that was not walked.
fn sizes(server: &mut Server, begun: Instant) -> Result<Outcome, ServerError> {
    let what = "reading the sizes of databases";
    ask_one(server, texts::SIZES_LIMIT, what, texts::SIZES, begun)
}

/// Facts by name: what is known once stays.
#[derive(Default)]
struct Found(BTreeMap<String, Fact>);

impl Found {
    fn add(&mut self, fact: Fact) {
        let known = self.0.get(&fact.name).is_some_and(|f| f.value.is_some());
        let no_news = self.0.contains_key(&fact.name) && fact.value.is_none();
        if !known && !no_news {
            self.0.insert(fact.name.clone(), fact);
        }
    }

    fn ask(
        &mut self,
        server: &mut Server,
        signs: &Signs,
        group: Group,
        begun: Instant,
    ) -> Result<(), ServerError> {
        let major = server.version().major;
        let of_group = STATEMENTS
            .iter()
            .filter(|s| s.group == group && s.since <= major && major < s.until);
        let (may, lacking) = ask::sort(of_group, signs);
        let schema = signs.statements.as_ref().map_or("public", |s| &s.schema);
        let sql: Vec<String> = may.iter().map(|s| s.text(schema)).collect();
        let question = Question {
            limits: texts::LIMITS,
            what: "reading facts",
            begun,
        };
        let outcomes = question.ask(server, &sql)?;
        for (statement, outcome) in may.iter().zip(outcomes) {
            self.take(statement, outcome);
        }
        for (statement, why) in lacking {
            self.take(statement, Err(why));
        }
        Ok(())
    }

    /// The facts of a statement's answer.
    fn take(&mut self, statement: &Statement, outcome: Outcome) {
        let mut outcome = outcome;
        for name in statement.facts {
            let value = match &mut outcome {
                Ok(object) => match object.get_mut(*name).map(Value::take) {
                    None | Some(Value::Null) => Err(statement.when_null.to_owned()),
                    Some(value) => Ok(value),
                },
                Err(why) => Err(why.clone()),
            };
            self.add(Fact::new(name, statement.source, value));
        }
    }

    /// What only other versions report is missing by name.
    fn note_what_other_versions_report(&mut self, major: u32) {
        for statement in STATEMENTS {
            let why = if major < statement.since {
                format!(
                    "PostgreSQL {major} does not report it; {} and later do",
                    statement.since
                )
            } else if major >= statement.until {
                format!(
                    "PostgreSQL {major} does not report it; versions before {} did",
                    statement.until
                )
            } else {
                continue;
            };
            for name in statement.facts {
                self.add(Fact::unknown(name, statement.source, &why));
            }
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.value.as_ref()?.as_str().map(str::to_owned)
    }

    fn value_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.get_mut(name)?.value.as_mut()
    }

    /// Sets the sizes of databases, and why some are missing.
    fn databases_with(&mut self, sizes: &Outcome) {
        let nothing = Map::new();
        let known = sizes.as_ref().ok().and_then(Value::as_object).unwrap_or(&nothing);
        let number = |name: &str| self.0.get(name)?.value.as_ref()?.as_u64();
        let pages = number("tables.bytes_estimated").zip(number("indexes.bytes_estimated"));
        let here = self.text("server.database");
        let rows = self.value_mut("databases").and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            let name = row["name"].as_str();
            let size = name.and_then(|name| known.get(name)).and_then(Value::as_u64);
            let estimate = pages.filter(|_| size.is_none() && name == here.as_deref());
            row["bytes"] = json!(size);
            row["bytes_estimated"] = json!(estimate.map(|(tables, indexes)| tables + indexes));
        }
        let total: u64 = known.values().filter_map(Value::as_u64).sum();
        let all = match sizes {
            Err(why) => Err(why.clone()),
            Ok(_) if known.values().any(Value::is_null) => Err(
                "the database has more than 20000 relations, and its files were not walked; there is an estimate in \
                 databases"
                    .to_owned(),
            ),
            Ok(_) => Ok(total),
        };
        self.add(Fact::new("databases.bytes", "pg_database_size()", all));
    }

    /// What this connection's start has set for itself, as a session that sets nothing has it.
    fn without_our_own(&mut self, settings: &mut Result<Vec<Setting>, String>, user: &str) {
        let files = self.outcome(START_IN_FILES);
        let hidden = self.outcome("settings.hidden_by_role_or_database");
        let database = self.text("server.database");
        let encoding = self.text("server.encoding");
        let without_start = WithoutStart {
            hidden: hidden.as_ref().map_err(String::as_str),
            files: files.as_ref().map_err(String::as_str),
            user,
            database: database.as_deref(),
            encoding: encoding.as_deref(),
        };
        for setting in settings.iter_mut().flatten() {
            without_start.mend(setting);
        }
        // It serves the settings, and is not a fact of its own.
        self.0.remove(START_IN_FILES);
    }

    /// The value of a fact, or why it has none.
    fn outcome(&self, name: &str) -> Outcome {
        let fact = self.0.get(name);
        let value = fact.and_then(|fact| fact.value.clone());
        value.ok_or_else(|| {
            let why = fact.and_then(|fact| fact.missing.clone());
            why.unwrap_or_else(|| "it was not asked for".to_owned())
        })
    }

    /// Each table that is scanned gets the statements that do so, as far as they are known.
    fn scans_with_statements(&mut self) {
        let known = self
            .0
            .get("tables.scanned_by")
            .and_then(|fact| fact.value.clone());
        let known = known.as_ref().and_then(Value::as_array);
        let rows = self.value_mut("tables.scanned").and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            let of_table = known
                .into_iter()
                .flatten()
                .filter(|statement| statement["table"] == row["table"]);
            let texts: Vec<String> = of_table.filter_map(scan_as_text).collect();
            row["statements"] = json!(texts);
        }
    }

    /// Texts of statements and settings, without what nobody else should see.
    fn without_parameters(&mut self) {
        if let Some(rows) = self.value_mut("settings.hidden_by_role_or_database") {
            settings::without_secrets(rows);
        }
        for name in ["statements.top", "tables.scanned_by"] {
            let rows = self.value_mut(name).and_then(Value::as_array_mut);
            for row in rows.into_iter().flatten() {
                if let Some(text) = row["text"].as_str() {
                    row["text"] = json!(scrub::statement(text));
                }
            }
        }
    }

    fn in_order(self) -> Vec<Fact> {
        let place = |fact: &Fact| {
            let subject = fact.name.split('.').next().unwrap_or_default();
            SUBJECTS
                .iter()
                .position(|s| *s == subject)
                .unwrap_or(SUBJECTS.len())
        };
        let mut facts: Vec<Fact> = self.0.into_values().collect();
        facts.sort_by_key(place);
        facts
    }
}

/// A statement that scans a table: its text, cut, with what it costs.
fn scan_as_text(statement: &Value) -> Option<String> {
    const CHARS: usize = 120;
    let text = scrub::statement(statement["text"].as_str()?);
    let text: String = match text.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    };
    Some(format!(
        "{text} ({} calls of {} ms)",
        statement["calls"], statement["mean_ms"]
    ))
}

/// What the server is, who asks, and what the role lacks.
fn own_facts(server: &Server, signs: &Signs, settings: &Settings<'_>) -> Vec<Fact> {
    let version = server.version();
    let names: Vec<&str> = settings
        .all
        .iter()
        .flatten()
        .map(|s| s.guc.name.as_str())
        .collect();
    let (service, sign) =
        service::recognise(signs, &names).unwrap_or(("none", "none of those that are known".into()));
    // The number of a release candidate is that of the release: "19rc1", not "19.0". Packages add
    // who built it.
    let named = settings
        .all
        .iter()
        .flatten()
        .find(|s| s.guc.name == "server_version");
    let named = named.and_then(|s| s.guc.setting.split(' ').next());
    let named = named.map_or_else(|| version.to_string(), str::to_owned);
    let mut grants = Vec::new();
    if !(signs.stats && signs.settings && signs.wal_directory) {
        grants.push(signs.grant("pg_monitor"));
    }
    if !signs.config {
        grants.push(signs.grant("EXECUTE ON FUNCTION pg_catalog.pg_config()"));
    }
    vec![
        Fact::known("server.version", "server_version", named),
        Fact::known(
            "server.version_num",
            "server_version_num",
            version.major * 10_000 + version.minor,
        ),
        Fact::known("service.kind", "the rules of services", service),
        Fact::known("service.sign", "roles, settings, functions, databases", sign),
        Fact::known("role.name", "current_user", signs.role.clone()),
        Fact::known("role.superuser", "is_superuser", signs.superuser),
        Fact::known(
            "role.grants_missing",
            "has_function_privilege(), pg_has_role()",
            grants,
        ),
    ]
}

/// Median time of a statement that does nothing.
fn round_trip(server: &mut Server) -> Result<Fact, ServerError> {
    let begun = Instant::now();
    let mut trips = Vec::new();
    while trips.len() < ROUND_TRIPS
        && (trips.len() < ROUND_TRIPS_LEAST || begun.elapsed() < ROUND_TRIPS_LIMIT)
    {
        trips.push(server.round_trip("timing a round trip", "SELECT 1")?);
    }
    trips.sort_unstable();
    let median = u64::try_from(trips[trips.len() / 2].as_micros()).unwrap_or(u64::MAX);
    let source = format!("SELECT 1, the median of {}", trips.len());
    Ok(Fact::known("round_trip_us", &source, median))
}

/// Where temporary files go: temp_tablespaces, else the database's own tablespace.
fn temp_directories(settings: &Settings<'_>, data: Option<&PathBuf>) -> Vec<(String, PathBuf)> {
    let signs = settings.signs;
    let name = "temp_tablespaces";
    let names = settings.value(name).map(|text| names_in(name, text));
    let mut names = names.unwrap_or_default();
    if names.is_empty() {
        names.push(signs.default_tablespace.clone());
    }
    let directory = |name: &String| {
        let there = signs.tablespaces.iter().find(|t| t.name == *name)?;
        // The path of a tablespace in place is relative to the data directory.
        let path = PathBuf::from(&there.directory);
        let path = match data {
            Some(data) => data.join(path),
            None => path,
        };
        path.is_absolute().then(|| (name.clone(), path))
    };
    names.iter().filter_map(directory).collect()
}

#[cfg(test)]
mod tests;
