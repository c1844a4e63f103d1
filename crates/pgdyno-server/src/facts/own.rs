//! Tallied of a whole server to which a load adds: what they were before and after it says what of
//! them is the load's own.

use super::ask::{Question, Signs, sort};
use super::statement::Statement;
use super::statements::STATEMENTS;
use super::texts;
use crate::error::ServerError;
use crate::server::Server;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;

/// Groups of counters, each with the fact that says since when they count.
const COUNTERS: [(&str, &[&str]); 3] = [
    (
        "statistics.since",
        &[
            "transactions.committed",
            "transactions.rolled_back",
            "temp_files.count",
            "temp_files.bytes",
        ],
    ),
    (
        "wal.since",
        &[
            "wal.records",
            "wal.full_page_images",
            "wal.bytes",
            "wal.buffers_full",
            "wal.writes",
            "wal.syncs",
        ],
    ),
    (
        "checkpoints.since",
        &[
            "checkpoints.timed",
            "checkpoints.requested",
            "checkpoints.buffers_written",
            "bgwriter.buffers_written",
            "bgwriter.stopped_by_limit",
            "bgwriter.buffers_allocated",
        ],
    ),
];
/// The fact that says which cluster it is.
const SYSTEM: &str = "server.system_identifier";

/// Each counter's value by the name of its fact, and since when it counts ("" where it was never
/// reset).
pub type Tallied = BTreeMap<String, (f64, String)>;

/// Tallied at one instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The cluster's system identifier; empty where it cannot be read.
    pub system: String,
    /// Counters of the cluster and its databases.
    pub counters: Tallied,
}

impl Tally {
    /// From facts by name, those of [`super::server_facts`] or of [`tally`].
    pub fn of<'v>(fact: impl Fn(&str) -> Option<&'v Value>) -> Tally {
        let text = |name: &str| {
            let value = fact(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut counters = Tallied::new();
        for (since, names) in COUNTERS {
            for name in names {
                if let Some(value) = fact(name).and_then(Value::as_f64) {
                    counters.insert((*name).to_owned(), (value, text(since)));
                }
            }
        }
        Tally {
            system: text(SYSTEM),
            counters,
        }
    }
}

/// Asks for the counters, as facts do.
pub fn tally(server: &mut Server) -> Result<Tally, ServerError> {
    let is_wanted = |name: &str| {
        name == SYSTEM
            || COUNTERS
                .iter()
                .any(|(since, names)| name == *since || names.contains(&name))
    };
    let major = server.version().major;
    let wanted = |statement: &&Statement| {
        let is_of_version = statement.since <= major && major < statement.until;
        is_of_version && statement.facts.iter().any(|name| is_wanted(name))
    };
    let (may, _) = sort(STATEMENTS.iter().filter(wanted), &Signs::unknown(major));
    let sql: Vec<String> = may.iter().map(|statement| statement.text("public")).collect();
    let question = Question {
        limits: texts::LIMITS,
        what: "reading the counters",
        begun: Instant::now(),
    };
    let answers = question.ask(server, &sql)?;
    let known = |name: &str| answers.iter().flatten().find_map(|object| object.get(name));
    Ok(Tally::of(known))
}
