//! Expressions and sentences over what is known of a target. Evaluates without I/O; no text makes
//! it panic.

mod functions;
mod guard;

pub(crate) use functions::size as size_text;

use crate::known::{Known, Lacking, number_of};
use guard::guarded;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Engine, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::Value;
use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock};

/// Bytes of an expression or a template: the parser's and the compiler's recursion stay within any
/// thread's stack.
pub const TEXT_MAX: usize = 4000;
/// Steps of an evaluation: those of the longest text, and some rounds of loops.
const STEPS_MAX: u64 = 20_000;
/// Bytes of a text that comes out.
const RESULT_MAX: usize = 65_536;
/// Members of a list that comes out.
const MEMBERS_MAX: usize = 10_000;
/// Characters of an expression that an error shows.
const SHOWN_MAX: usize = 160;

/// What is wrong with an expression or a template, or with its evaluation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The expression is not valid.
    #[error("`{expression}`: {reason}")]
    Syntax {
        /// Text of the expression.
        expression: String,
        /// Error of the parser.
        reason: String,
    },
    /// A fact has no value.
    #[error("`{expression}`: {lacking}")]
    Lacking {
        /// Text of the expression.
        expression: String,
        /// Fact that has no value, and why.
        lacking: Lacking,
    },
    /// It cannot be worked out: a division by zero, a text where a number is wanted.
    #[error("`{expression}`: {reason}")]
    Failed {
        /// Text of the expression.
        expression: String,
        /// Error of the evaluation.
        reason: String,
    },
}

impl ExpressionError {
    /// Why there is no value, for people who do not want to see the expression where a fact is all
    /// that lacks.
    pub(crate) fn reason(&self) -> String {
        match self {
            ExpressionError::Lacking { lacking, .. } => lacking.to_string(),
            other => other.to_string(),
        }
    }

    /// The fact that is missing and why, where that is all that is wrong.
    pub fn missing(&self) -> Option<(&str, &str)> {
        match self {
            ExpressionError::Lacking {
                lacking: Lacking::Missing { name, why },
                ..
            } => Some((name, why)),
            _ => None,
        }
    }
}

/// An expression over facts: `min(available.memory_bytes / 4, GB(8))`.
/// docs/reference/expressions.md describes the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression(String);

impl Expression {
    /// Reads an expression; the names in it are checked when it is evaluated.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        let text = text.trim();
        let wrong = |reason: String| ExpressionError::Syntax {
            expression: shown(text),
            reason,
        };
        let checked = guarded(text, true).map_err(wrong)?;
        ENGINE
            .compile_expression(&checked)
            .map_err(|error| wrong(reason_of(&error)))?;
        Ok(Expression(text.to_owned()))
    }

    /// Text of the expression, as it was parsed.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Its value: a number, text, truth value or list. A number is finite.
    pub fn evaluate(&self, known: &Known) -> Result<Value, ExpressionError> {
        let checked = guarded(&self.0, true).map_err(|reason| self.failed(reason))?;
        let engine = &*ENGINE;
        let compiled = engine
            .compile_expression(&checked)
            .map_err(|error| self.failed(reason_of(&error)))?;
        for name in compiled.undeclared_variables(false) {
            beginning(&name, known).map_err(|lacking| self.lacking(lacking))?;
        }
        let root = Engine::from_object(Room::root(known));
        let value = compiled.eval(root).map_err(|error| of_error(&self.0, &error))?;
        plain(&value).map_err(|lack| match lack {
            Lack::Reason(reason) => self.failed(reason),
            Lack::Room(room) => match known.get(&room) {
                Err(lacking) => self.lacking(lacking),
                Ok(_) => self.failed(format!("\"{room}\" is not a single fact")),
            },
        })
    }

    /// Its value where it is a truth value.
    pub fn holds(&self, known: &Known) -> Result<bool, ExpressionError> {
        match self.evaluate(known)? {
            Value::Bool(holds) => Ok(holds),
            other => Err(self.failed(format!("expected true or false, found {other}"))),
        }
    }

    /// The facts that it names and that have a value of their own, with that value as text, by
    /// name.
    pub fn facts(&self, known: &Known) -> Vec<(String, String)> {
        let names = ENGINE
            .compile_expression(&self.0)
            .map(|compiled| compiled.undeclared_variables(true))
            .unwrap_or_default();
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        };
        let mut facts: Vec<(String, String)> = names
            .into_iter()
            .filter_map(|name| {
                let value = text(known.get(&name).ok()?)?;
                Some((name, value))
            })
            .collect();
        facts.sort();
        facts
    }

    fn failed(&self, reason: String) -> ExpressionError {
        ExpressionError::Failed {
            expression: shown(&self.0),
            reason,
        }
    }

    fn lacking(&self, lacking: Lacking) -> ExpressionError {
        ExpressionError::Lacking {
            expression: shown(&self.0),
            lacking,
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sentence with expressions in it: `{{ huge_pages.needed | number }} pages of {{
/// huge_pages.default_bytes | size }}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Parses a sentence with expressions in braces.
    pub fn parse(text: &str) -> Result<Template, ExpressionError> {
        let wrong = |reason: String| ExpressionError::Syntax {
            expression: shown(text),
            reason,
        };
        let checked = guarded(text, false).map_err(wrong)?;
        ENGINE
            .template_from_str(&checked)
            .map_err(|error| wrong(reason_of(&error)))?;
        Ok(Template(text.to_owned()))
    }

    /// Text of the sentence, as it was parsed.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The sentence with all values in it.
    pub fn render(&self, known: &Known) -> Result<String, ExpressionError> {
        let checked = guarded(&self.0, false).map_err(|reason| ExpressionError::Failed {
            expression: shown(&self.0),
            reason,
        })?;
        let template = ENGINE
            .template_from_str(&checked)
            .map_err(|error| of_error(&self.0, &error))?;
        for name in template.undeclared_variables(false) {
            beginning(&name, known).map_err(|lacking| ExpressionError::Lacking {
                expression: shown(&self.0),
                lacking,
            })?;
        }
        let mut written = Bounded(Vec::new());
        let root = Engine::from_object(Room::root(known));
        template
            .render_captured_to(root, &mut written)
            .map_err(|error| of_error(&self.0, &error))?;
        Ok(String::from_utf8_lossy(&written.0).into_owned())
    }
}

/// A text that does not grow beyond a limit.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > RESULT_MAX {
            return Err(io::Error::other(format!(
                "the text is longer than {RESULT_MAX} bytes"
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(STEPS_MAX));
    engine.set_formatter(functions::format);
    functions::add_to(&mut engine);
    engine
});

/// Where names begin, or go on: the engine's view of what is known.
#[derive(Debug)]
struct Room {
    known: Known,
    /// Empty for the root.
    path: String,
}

impl Room {
    fn root(known: &Known) -> Room {
        Room {
            known: known.clone(),
            path: String::new(),
        }
    }

    fn child(&self, word: &str) -> Option<Engine> {
        if self.path.is_empty() && functions::is_function(word) {
            return functions::of_known(word, &self.known);
        }
        let path = match self.path.as_str() {
            "" => word.to_owned(),
            room => format!("{room}.{word}"),
        };
        if self.known.is_room(&path) {
            return Some(Engine::from_object(Room {
                known: self.known.clone(),
                path,
            }));
        }
        match self.known.get(&path) {
            Ok(value) => Some(of_json(value)),
            // Words that begin names of other targets: what follows decides which fact is meant.
            Err(_) if self.path.is_empty() && self.known.may_begin(word) => Some(Engine::from_object(Room {
                known: self.known.clone(),
                path,
            })),
            Err(_) if goes_on(&path) => Some(Engine::from_object(Room {
                known: self.known.clone(),
                path,
            })),
            Err(lacking) => Some(of_lacking(lacking)),
        }
    }

    /// The list that is a value of its own beside the names below it (`databases`,
    /// `databases.bytes`).
    fn own_list(&self) -> Option<&Vec<Value>> {
        self.known.get(&self.path).ok()?.as_array()
    }
}

impl Object for Room {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.own_list() {
            Some(_) => ObjectRepr::Seq,
            None => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Engine) -> Option<Engine> {
        match key.as_str() {
            Some(word) => self.child(word),
            None => self.own_list()?.get(key.as_usize()?).map(of_json),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.own_list() {
            Some(list) => Enumerator::Seq(list.len()),
            None => Enumerator::NonEnumerable,
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Whether a name that has no value may be the beginning of the one that is meant: `storage.data`
/// where no server is read.
fn goes_on(path: &str) -> bool {
    const MIDDLES: [&str; 11] = [
        "process.limits",
        "server.build",
        "storage.data",
        "storage.temp",
        "storage.wal",
        "storage.wal_on_device_of_data",
        "sysctl.fs",
        "sysctl.kernel",
        "sysctl.net",
        "sysctl.vm",
        "thp.khugepaged",
    ];
    MIDDLES.contains(&path)
}

fn of_lacking(lacking: Lacking) -> Engine {
    Engine::from(Error::new(ErrorKind::UndefinedError, lacking.to_string()).with_source(lacking))
}

/// Whether a word may begin a fact's name, or is a function's.
fn beginning(word: &str, known: &Known) -> Result<(), Lacking> {
    if functions::is_function(word) || known.may_begin(word) {
        return Ok(());
    }
    Err(Lacking::Unknown {
        name: word.to_owned(),
        nearest: known.nearest_beginning(word, &functions::NAMES),
    })
}

fn of_json(value: &Value) -> Engine {
    match value {
        Value::Null => Engine::from(()),
        Value::Bool(truth) => Engine::from(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Engine::from(number),
            (None, Some(number)) => Engine::from(number),
            (None, None) => Engine::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        // Joined many times over it would be a text without bounds.
        Value::String(text) if text.len() > RESULT_MAX => {
            let reason = format!("a fact's text is longer than {RESULT_MAX} bytes");
            Engine::from(Error::new(ErrorKind::InvalidOperation, reason))
        }
        Value::String(text) => Engine::from(text.as_str()),
        Value::Array(members) => Engine::from_iter(members.iter().map(of_json)),
        Value::Object(fields) => {
            Engine::from_pairs(fields.iter().map(|(name, value)| (name.clone(), of_json(value))))
        }
    }
}

/// Why a value cannot be handed on.
enum Lack {
    Reason(String),
    /// Names that begin so would have values.
    Room(String),
}

/// A value of the engine's as a plain one.
fn plain(value: &Engine) -> Result<Value, Lack> {
    let wrong = |reason: &str| Err(Lack::Reason(reason.to_owned()));
    match value.kind() {
        ValueKind::Bool => Ok(Value::from(value.is_true())),
        ValueKind::Number => plain_number(value).map_err(Lack::Reason),
        ValueKind::String => match value.as_str() {
            Some(text) if text.len() > RESULT_MAX => wrong("the text is too long"),
            Some(text) => Ok(Value::from(text)),
            None => wrong("expected a text"),
        },
        ValueKind::Seq | ValueKind::Iterable => {
            if value.len().is_none_or(|members| members > MEMBERS_MAX) {
                return wrong("the list is too long");
            }
            let Ok(members) = value.try_iter() else {
                return wrong("the list cannot be gone through");
            };
            let members: Result<Vec<Value>, Lack> = members.map(|member| plain_member(&member)).collect();
            members.map(Value::Array)
        }
        ValueKind::Invalid => wrong("it has no value"),
        _ => match value.downcast_object_ref::<Room>() {
            Some(room) => Err(Lack::Room(room.path.clone())),
            None => wrong("expected a number, a text, true, false, or a list of those"),
        },
    }
}

/// A member of a list; lists of lists are not handed on, for they may be as deep as a text is long.
fn plain_member(member: &Engine) -> Result<Value, Lack> {
    match member.kind() {
        ValueKind::Bool | ValueKind::Number | ValueKind::String => plain(member),
        _ => Err(Lack::Reason(
            "expected a list of numbers, texts or truth values".to_owned(),
        )),
    }
}

fn plain_number(value: &Engine) -> Result<Value, String> {
    if let Ok(whole) = i64::try_from(value.clone())
        && value.is_integer()
    {
        return Ok(Value::from(whole));
    }
    let number = functions::number(value)?;
    Ok(number_of(number))
}

fn of_error(text: &str, error: &Error) -> ExpressionError {
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        if let Some(lacking) = source.downcast_ref::<Lacking>() {
            return ExpressionError::Lacking {
                expression: shown(text),
                lacking: lacking.clone(),
            };
        }
        cause = source.source();
    }
    ExpressionError::Failed {
        expression: shown(text),
        reason: reason_of(error),
    }
}

/// The engine's reason for what went wrong.
fn reason_of(error: &Error) -> String {
    let detail = error.detail().unwrap_or_default();
    match error.kind() {
        ErrorKind::OutOfFuel => "it does not come to an end".to_owned(),
        ErrorKind::UndefinedError => "a part of it has no value".to_owned(),
        ErrorKind::WriteFailure => format!("the text is longer than {RESULT_MAX} bytes"),
        _ if detail.is_empty() => error.kind().to_string(),
        _ => detail.to_owned(),
    }
}

/// As much of a text as an error shows.
fn shown(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
