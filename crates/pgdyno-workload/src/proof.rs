//! Whether a server takes a load's statements: each is described by it, and planned for its rights.
//! Nothing is executed.

use crate::data::{DataError, Dataset};
use crate::load_plan::{LoadPlan, Work};
use crate::script::ScriptError;
use crate::script::makes::Making;
use crate::script::statement as compiled;
use crate::script::statements_of_script;
use crate::session::{Session, SessionError};
use crate::workload::{Extent, Step};
use pgdyno_engine::Endpoint;
use pgdyno_engine::Protocol;
use pgdyno_engine::message::Type;
use pgdyno_engine::program::Program;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a server refuses of a load, found without executing anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRefusal {
    /// Name of the script or workload that has the statement.
    pub script: String,
    /// Line in the script, from 1; 0 in a workload.
    pub line: usize,
    /// Message of the server.
    pub reason: String,
    /// SQLSTATE of the error: "42501".
    pub sqlstate: String,
    /// Statements that give the missing rights, where it is rights that are missing and they could
    /// be found.
    pub grants: Vec<String>,
}

/// What was found of a load's statements.
#[derive(Debug, Default)]
pub struct Described {
    /// Statements that the server refuses, each with its place.
    pub refusals: Vec<StatementRefusal>,
    /// Why some of them were not asked about, if any were not.
    pub unproven: Option<String>,
}

/// A statement of a load.
pub(crate) struct LoadStatement {
    pub(crate) script: String,
    pub(crate) line: usize,
    /// With `$1`, `$2` ... for its variables.
    pub(crate) sql: String,
    /// With NULL for its variables.
    pub(crate) with_nulls: String,
    pub(crate) has_variables: bool,
}

/// Statements of a load beyond this many are not checked: a script has a few.
const STATEMENTS_MAX: usize = 1_000;
/// A statement is planned within this time, or is let pass.
const PLAN_LIMIT: Duration = Duration::from_secs(10);
/// What PostgreSQL can plan without executing it.
const PLANNED: [&str; 7] = ["select", "insert", "update", "delete", "merge", "with", "values"];
/// What a name that does not exist is answered with: tables, columns, functions, prepared
/// statements, cursors.
const MISSING: [&str; 5] = [UNDEFINED_FUNCTION, "42P01", "42703", "26000", "34000"];
const UNDEFINED_FUNCTION: &str = "42883";
/// SQLSTATE of a statement that statement_timeout has ended.
const CANCELED: &str = "57014";
/// SQLSTATE of a right that the role lacks.
const DENIED: &str = "42501";
const PRIVILEGES: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];
/// Names in a statement beyond this many are not looked up.
const NAMES_MAX: usize = 200;

impl Work {
    /// Its statements, each once; of TPC-C none, whose terminals put theirs together.
    fn statements(&self, scale: u32) -> Result<Vec<LoadStatement>, ScriptError> {
        let mut program = Program::new(Protocol::Simple, true);
        let mut statements = Vec::new();
        match self {
            Work::Workload(workload) => {
                let extent = Extent {
                    scale,
                    tables: 1,
                    rows: scale.into(),
                    has_bigint_keys: false,
                };
                for step in workload.steps(extent, 1) {
                    if let Step::Say(sql) = step {
                        statements.push(statement(&mut program, workload.name(), 0, &sql));
                    }
                }
            }
            Work::Scripts(scripts) => {
                for script in &scripts.scripts {
                    for (line, sql) in statements_of_script(script)? {
                        statements.push(statement(&mut program, &script.name, line, &sql));
                    }
                }
            }
        }
        Ok(statements)
    }
}

fn statement(program: &mut Program, script: &str, line: usize, sql: &str) -> LoadStatement {
    let statement = compiled(program, sql, false, |_| Type::Unknown);
    LoadStatement {
        script: script.to_owned(),
        line,
        with_nulls: statement.sql_with(|_| "NULL".to_owned()),
        has_variables: statement.parts.len() > 1,
        sql: statement.sql(),
    }
}

/// Scripts with such statements may name what only they make.
const MAKING: [&str; 6] = ["create", "set", "prepare", "declare", "do", "call"];

/// What the server would refuse of a load; `made` are tables that will be there by then. A script
/// that makes tables of its own, or looks for them elsewhere, is not held to those that are
/// missing.
///
/// # Errors
///
/// No connection. A script that cannot be read has no statements here: [`crate::Scripts::check`]
/// has its error.
pub fn refused_statements(
    endpoint: &Endpoint,
    load: &LoadPlan,
    scale: u32,
    made: &[String],
) -> Result<Described, DataError> {
    let statements = load.work.statements(scale).unwrap_or_default();
    let makes_some = statements
        .iter()
        .any(|of| MAKING.contains(&first_word(&of.sql).as_str()));
    let is_simple = load.protocol == Protocol::Simple;
    let mut found = described(endpoint, &statements, is_simple, &|of| {
        makes_some || made.iter().any(|name| of.sql.contains(name.as_str()))
    })?;
    if let Work::Workload(workload) = load.work
        && workload.dataset() == Some(Dataset::Tpcc)
    {
        found.unproven = Some("terminals of TPC-C put them together during the load".to_owned());
    }
    Ok(found)
}

/// Statements of a load that make, change or remove objects that stay, each with its script and
/// line. What a script has made as temporary is its own. Of the built-in workloads there are none.
///
/// # Errors
///
/// A script that cannot be read.
pub fn making_statements(load: &LoadPlan) -> Result<Vec<MakingStatement>, ScriptError> {
    let mut found = Vec::new();
    let Work::Scripts(scripts) = &load.work else {
        return Ok(found);
    };
    for script in &scripts.scripts {
        let mut making = Making::default();
        for (line, sql) in statements_of_script(script)? {
            if making.is_in(&sql) {
                found.push(MakingStatement {
                    script: script.name.clone(),
                    line,
                    sql,
                });
            }
        }
    }
    Ok(found)
}

/// Whether a text of one or several statements makes, changes or removes objects that stay.
pub fn makes_objects(sql: &str) -> bool {
    Making::default().is_in(sql)
}

/// A statement of a script that makes, changes or removes objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakingStatement {
    /// Name of the script that has the statement.
    pub script: String,
    /// Line in the script, from 1.
    pub line: usize,
    /// Text of the statement, as the script has it.
    pub sql: String,
}

/// What the server would refuse of single statements, each with what it is called; `may_be_made`:
/// whether what such a statement names may be missing yet.
///
/// # Errors
///
/// No connection.
pub fn refused_questions(
    endpoint: &Endpoint,
    questions: &[(String, String)],
    may_be_made: &dyn Fn(&str) -> bool,
) -> Result<Described, DataError> {
    let of = |(name, sql): &(String, String)| LoadStatement {
        script: name.clone(),
        line: 0,
        sql: sql.clone(),
        with_nulls: sql.clone(),
        has_variables: false,
    };
    let statements: Vec<LoadStatement> = questions.iter().map(of).collect();
    described(endpoint, &statements, false, &|of| may_be_made(&of.sql))
}

/// `is_simple`: variables become text of the statement, whatever they mean there.
fn described(
    endpoint: &Endpoint,
    statements: &[LoadStatement],
    is_simple: bool,
    may_be_made: &dyn Fn(&LoadStatement) -> bool,
) -> Result<Described, DataError> {
    let opened = Session::open(endpoint, "pgdyno");
    let mut client = opened.map_err(|source| DataError::Connect { source })?;
    // A transaction each: behind a pooler the next message may be another session's, and a setting
    // would stay in this one.
    let begin = format!("BEGIN; SET LOCAL statement_timeout = {}", PLAN_LIMIT.as_millis());
    let mut refusals: Vec<StatementRefusal> = Vec::new();
    let mut unproven = None;
    if statements.len() > STATEMENTS_MAX {
        unproven = Some(format!("there are more than {STATEMENTS_MAX}"));
    }
    for of in statements.iter().take(STATEMENTS_MAX) {
        // A pooler in statement mode refuses this, and then all that follows.
        let begun = client.rows(&begin);
        let outcome = begun.map(|_| client.describe(&of.sql).and_then(|()| plan(&mut client, of)));
        let (message, sqlstate) = match outcome {
            Ok(Err(SessionError::Refused { sqlstate, .. })) if sqlstate == CANCELED => {
                unproven = Some(format!(
                    "one takes longer than {} s to plan",
                    PLAN_LIMIT.as_secs()
                ));
                (String::new(), sqlstate)
            }
            Ok(Err(SessionError::Refused { message, sqlstate })) => (message, sqlstate),
            Ok(Ok(())) => (String::new(), String::new()),
            Ok(Err(error)) | Err(error) => {
                unproven = Some(error.to_string());
                break;
            }
        };
        if let Err(error) = client.rows("ROLLBACK") {
            unproven = Some(error.to_string());
            break;
        }
        if message.is_empty() {
            continue;
        }
        let is_missing = MISSING.contains(&sqlstate.as_str());
        let is_denied = sqlstate == DENIED;
        let may_be_text = is_simple && of.has_variables;
        let is_of_names = is_missing && sqlstate != UNDEFINED_FUNCTION;
        if is_missing && may_be_made(of) || may_be_text && !is_of_names && !is_denied {
            unproven.get_or_insert_with(|| {
                format!("some name what is not there yet, or only a value completes them ({message})")
            });
            continue;
        }
        let refusal = StatementRefusal {
            script: of.script.clone(),
            line: of.line,
            reason: message,
            sqlstate,
            grants: match is_denied {
                true => grants(&mut client, &of.sql),
                false => Vec::new(),
            },
        };
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    Ok(Described { refusals, unproven })
}

/// Planning checks rights, describing does not. What is wrong only with NULL for its variables is
/// let pass.
fn plan(client: &mut Session, of: &LoadStatement) -> Result<(), SessionError> {
    if !PLANNED.contains(&first_word(&of.sql).as_str()) {
        return Ok(());
    }
    match client.rows(&format!("EXPLAIN {}", of.with_nulls)) {
        Err(SessionError::Refused { sqlstate, .. }) if sqlstate != DENIED && sqlstate != CANCELED => Ok(()),
        outcome => outcome.map(drop),
    }
}

fn first_word(sql: &str) -> String {
    let word = sql.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next();
    word.unwrap_or_default().to_ascii_lowercase()
}

/// The grants that a statement lacks: of each table that it names, those of its own words that the
/// role has not.
fn grants(client: &mut Session, sql: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let words: BTreeSet<String> = sql
        .split(|c: char| !is_part(c))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .map(|word| word.trim_end_matches('.').to_ascii_lowercase())
        .take(NAMES_MAX)
        .collect();
    let wanted: Vec<&str> = PRIVILEGES
        .into_iter()
        .filter(|privilege| *privilege == "SELECT" || words.contains(&privilege.to_ascii_lowercase()))
        .collect();
    let names: Vec<String> = words.iter().map(|word| format!("('{word}')")).collect();
    let lacking: Vec<String> = wanted
        .iter()
        .map(|privilege| {
            format!("CASE WHEN NOT has_table_privilege(c.oid, '{privilege}') THEN '{privilege}' END")
        })
        .collect();
    let question = format!(
        "SELECT format('GRANT %s ON TABLE %I.%I TO %s', concat_ws(', ', {}), n.nspname, c.relname, quote_ident(current_user)) \
         FROM (VALUES {}) AS named (name) JOIN pg_class c ON c.oid = to_regclass(name) \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
         AND concat_ws(', ', {}) <> '' GROUP BY 1 ORDER BY 1",
        lacking.join(", "),
        names.join(", "),
        lacking.join(", "),
    );
    let rows = client.rows(&question).unwrap_or_default();
    rows.into_iter()
        .filter_map(|row| row.into_iter().next()?)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    /// They run on servers of others without consent to objects.
    #[test]
    fn built_in_workload_makes_no_objects() {
        for workload in Workload::ALL {
            for statement in Work::from(workload).statements(1).unwrap() {
                assert!(!makes_objects(&statement.sql), "{workload}: {}", statement.sql);
            }
        }
    }
}
