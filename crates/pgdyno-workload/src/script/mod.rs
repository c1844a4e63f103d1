//! pgbench's scripts, run as they are: read and compiled once (PostgreSQL documentation, pgbench,
//! "Custom Scripts").

mod expression;
pub(crate) mod makes;
mod shell;
pub(crate) mod split;

use expression::Wrong;
use pgdyno_engine::Protocol;
use pgdyno_engine::expression::{Expr, is_name_byte, is_name_start};
use pgdyno_engine::message::{Part, Statement, Type};
use pgdyno_engine::program::{Capture, Op, Program, Routine};
use pgdyno_engine::random::{Purpose, stream_seed};
use pgdyno_engine::value::{Slot, Value};
use serde::{Deserialize, Serialize};
use shell::{Shell, Word};
use split::{Command, Kind, split, words};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Scripts beyond this size are refused.
pub const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Variables have numbers of two bytes.
const VARIABLES_MAX: usize = 10_000;

/// A script with the weight at which it is chosen among several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Name in errors and results: that of its file.
    pub name: String,
    /// Text of the script.
    pub text: String,
    /// Weight against those of the other scripts.
    pub weight: u32,
}

/// What is wrong in a script, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Name of the script.
    pub script: String,
    /// Line of the mistake, from 1.
    pub line: usize,
    /// Column of the mistake in characters, from 1.
    pub column: usize,
    /// What is wrong there, and what was expected.
    pub message: String,
    /// Text of that line.
    pub text: String,
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScriptError {
            script,
            line,
            column,
            message,
            text,
        } = self;
        write!(
            f,
            "{script}:{line}:{column}: {message}\n    {text}\n    {:>column$}",
            "^"
        )
    }
}

/// What may be done by the scripts of a load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scripts {
    /// Scripts to choose from, at least one.
    pub scripts: Vec<Script>,
    /// Names and values of variables that are set before.
    pub variables: Vec<(String, String)>,
    /// Whether `\shell` and `\setshell` may run commands.
    pub allow_shell: bool,
}

impl Scripts {
    /// Whether they can be run with that protocol.
    pub fn check(&self, protocol: Protocol) -> Result<(), ScriptError> {
        self.compile(protocol, 1, 1, &Arc::default()).map(drop)
    }

    /// Whether one of them may ask for the scale of the data.
    pub(crate) fn wants_scale(&self) -> bool {
        let defined = self.variables.iter().any(|(name, _)| name == "scale");
        !defined && self.scripts.iter().any(|script| script.text.contains(":scale"))
    }

    /// As a program for data of that scale; commands of the shell are ended by `stop`.
    pub(crate) fn compile(
        &self,
        protocol: Protocol,
        scale: u32,
        seed: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Program, ScriptError> {
        let mut program = Program::new(protocol, true);
        define(&mut program, scale, seed, &self.variables);
        for script in &self.scripts {
            let kind = program.outline.kinds.len();
            program.outline.kinds.push(script.name.clone());
            let mut compiler = Compiler {
                program: &mut program,
                kind,
                routine: Routine::of_kind(kind),
                text: &script.text,
                newlines: script.text.match_indices('\n').map(|(at, _)| at).collect(),
                ifs: Vec::new(),
                allow_shell: self.allow_shell,
                stop,
            };
            let routine = compiler.compile().map_err(|wrong| script.error(&wrong))?;
            program.add(routine, script.weight);
        }
        Ok(program)
    }
}

impl Script {
    fn error(&self, wrong: &Wrong) -> ScriptError {
        let mut at = wrong.at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let begin = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = self.text[begin..].lines().next().unwrap_or("");
        ScriptError {
            script: self.name.clone(),
            line: self.text[..at].matches('\n').count() + 1,
            column: self.text[begin..at].chars().count() + 1,
            message: wrong.message.clone(),
            // A tab would move the mark away from its place.
            text: line_text.replace('\t', " "),
        }
    }
}

/// The statements of a script with their lines, 1-based.
pub(crate) fn statements_of_script(script: &Script) -> Result<Vec<(usize, String)>, ScriptError> {
    if script.text.len() > SCRIPT_BYTES_MAX {
        return Ok(Vec::new());
    }
    let commands = split(&script.text).map_err(|wrong| script.error(&wrong))?;
    let line = |at: usize| script.text[..at].matches('\n').count() + 1;
    let statements = commands.into_iter().filter_map(|command| match command.kind {
        Kind::Sql(sql) => Some((line(command.at), sql)),
        Kind::Meta { .. } => None,
    });
    Ok(statements.collect())
}

/// Gives the variables their values that every script of pgbench finds: scale, seeds, the client's
/// number, and those that the user defines.
fn define(program: &mut Program, scale: u32, seed: u64, defined: &[(String, String)]) {
    let values = [
        ("scale", i64::from(scale)),
        ("random_seed", seed.cast_signed()),
        (
            "default_seed",
            stream_seed(seed, u64::MAX, Purpose::Transactions).cast_signed(),
        ),
    ];
    for (name, value) in values {
        let number = program.variable(name);
        program.slots[usize::from(number)].set(Value::Int(value));
    }
    program.client_id = Some(program.variable("client_id"));
    for (name, text) in defined {
        let number = program.variable(name);
        program.slots[usize::from(number)] = Slot::of_text(text);
        if name == "client_id" {
            program.client_id = None;
        }
    }
}

/// Finds the variables of a statement: a colon and a name, wherever it is, but not behind another
/// colon.
pub(crate) fn statement(
    program: &mut Program,
    sql: &str,
    described: bool,
    of: impl Fn(&str) -> Type,
) -> Statement {
    let bytes = sql.as_bytes();
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b':' {
            at += 1;
            continue;
        }
        if !bytes.get(at + 1).is_some_and(|&byte| is_name_start(byte)) {
            while bytes.get(at) == Some(&b':') {
                at += 1;
            }
            continue;
        }
        let end = at
            + 1
            + bytes[at + 1..]
                .iter()
                .take_while(|&&byte| is_name_byte(byte))
                .count();
        let name = &sql[at + 1..end];
        parts.push(Part::Sql(sql[from..at].to_owned()));
        parts.push(Part::Variable(
            program.variable(name),
            of(name),
            sql[at..end].to_owned(),
        ));
        (from, at) = (end, end);
    }
    parts.push(Part::Sql(sql[from..].to_owned()));
    Statement {
        parts,
        described,
        binary: !program.outline.by_user,
    }
}

/// A block of `\if` whose `\endif` has not been read.
struct If {
    at: usize,
    /// The test whose failure leads to the next branch.
    test: Option<usize>,
    /// Jumps behind the whole, one per branch.
    ends: Vec<usize>,
    had_else: bool,
}

struct Compiler<'a> {
    program: &'a mut Program,
    kind: usize,
    routine: Routine,
    text: &'a str,
    /// Places of the newlines in the text.
    newlines: Vec<usize>,
    ifs: Vec<If>,
    allow_shell: bool,
    stop: &'a Arc<AtomicBool>,
}

/// Names of the meta commands, for messages.
const META_COMMANDS: &str = "set, gset, aset, if, elif, else, endif, sleep, startpipeline, syncpipeline, endpipeline, \
     shell, setshell";

impl Compiler<'_> {
    fn compile(&mut self) -> Result<Routine, Wrong> {
        let wrong = |at: usize, message: String| Err(Wrong { at, message });
        if self.text.len() > SCRIPT_BYTES_MAX {
            return wrong(0, format!("a script may have at most {SCRIPT_BYTES_MAX} bytes"));
        }
        let commands = split(self.text)?;
        if commands.is_empty() {
            return wrong(0, "the script holds no command".into());
        }
        let mut commands = commands.iter().peekable();
        while let Some(command) = commands.next() {
            match &command.kind {
                Kind::Sql(sql) => {
                    let capture = match commands.peek() {
                        Some(Command {
                            kind:
                                Kind::Meta {
                                    name: name @ ("gset" | "aset"),
                                    rest,
                                    rest_at,
                                },
                            ..
                        }) => {
                            let mut given = words(rest).into_iter();
                            let prefix = given.next().map_or("", |(_, word)| word);
                            if let Some((at, word)) = given.next() {
                                return wrong(rest_at + at, format!("unexpected {word} behind the prefix"));
                            }
                            commands.next();
                            let single = *name == "gset";
                            Some(Capture {
                                word: if single { "\\gset" } else { "\\aset" },
                                prefix: prefix.to_owned(),
                                single,
                            })
                        }
                        _ => None,
                    };
                    self.sql(command.at, sql, capture)?;
                }
                Kind::Meta { name, rest, rest_at } => self.meta(command.at, name, rest, *rest_at)?,
            }
            if self.program.slots.len() > VARIABLES_MAX {
                return wrong(
                    command.at,
                    format!("there are more than {VARIABLES_MAX} variables"),
                );
            }
        }
        if let Some(open) = self.ifs.last() {
            return wrong(open.at, "this \\if has no \\endif".into());
        }
        self.push(self.text.len(), Op::End);
        Ok(std::mem::take(&mut self.routine))
    }

    fn push(&mut self, at: usize, op: Op) {
        let line = self.newlines.partition_point(|&newline| newline < at) + 1;
        self.routine.push(line, op);
    }

    fn sql(&mut self, at: usize, sql: &str, capture: Option<Capture>) -> Result<(), Wrong> {
        let statement = statement(self.program, sql, capture.is_some(), |_| Type::Unknown);
        // The protocol counts parameters in two bytes.
        if statement.parts.len() > usize::from(u16::MAX) {
            return Err(Wrong {
                at,
                message: format!("a statement may name variables {} times at most", u16::MAX / 2),
            });
        }
        let number = self.program.name_statement(self.kind, sql);
        let say = self.program.say(&statement, number, true, capture);
        self.push(at, Op::Say(say));
        self.push(at, Op::Trip);
        Ok(())
    }

    fn expression(&mut self, text: &str, text_at: usize) -> Result<Expr, Wrong> {
        let program = &mut *self.program;
        expression::parse(text, &mut |name| program.variable(name)).map_err(|wrong| Wrong {
            at: wrong.at + text_at,
            ..wrong
        })
    }

    fn meta(&mut self, at: usize, name: &str, rest: &str, rest_at: usize) -> Result<(), Wrong> {
        let wrong = |message: &str| {
            Err(Wrong {
                at,
                message: message.to_owned(),
            })
        };
        let arguments = words(rest);
        let none_wanted = matches!(
            name,
            "else" | "endif" | "startpipeline" | "syncpipeline" | "endpipeline"
        );
        if let (true, Some((first, word))) = (none_wanted, arguments.first()) {
            return Err(Wrong {
                at: rest_at + first,
                message: format!("unexpected {word}; expected the end of the line behind \\{name}"),
            });
        }
        if name.ends_with("pipeline") && self.program.protocol == Protocol::Simple {
            return wrong("pipelines need the extended query protocol: use --protocol extended or prepared");
        }
        match name {
            "set" => {
                let Some((word_at, word)) = arguments.first().copied() else {
                    return wrong("expected a variable and an expression behind \\set");
                };
                self.check_variable(rest_at + word_at, word)?;
                let from = word_at + word.len();
                let expr = self.expression(&rest[from..], rest_at + from)?;
                let variable = self.program.variable(word);
                self.push(at, Op::Set(variable, expr));
            }
            "if" => {
                let expr = self.expression(rest, rest_at)?;
                self.ifs.push(If {
                    at,
                    test: Some(self.routine.ops.len()),
                    ends: Vec::new(),
                    had_else: false,
                });
                self.push(at, Op::Unless(expr, 0));
            }
            "elif" => {
                self.next_branch(at, name)?;
                let expr = self.expression(rest, rest_at)?;
                let here = self.routine.ops.len();
                self.push(at, Op::Unless(expr, 0));
                if let Some(open) = self.ifs.last_mut() {
                    open.test = Some(here);
                }
            }
            "else" => {
                self.next_branch(at, name)?;
                if let Some(open) = self.ifs.last_mut() {
                    open.had_else = true;
                }
            }
            "endif" => {
                let Some(open) = self.ifs.pop() else {
                    return wrong("this \\endif has no \\if");
                };
                self.land(open.test.into_iter().chain(open.ends));
            }
            "sleep" => self.sleep(at, rest_at, &arguments)?,
            "startpipeline" => {
                self.program.outline.pipelines = true;
                self.push(at, Op::StartPipeline);
            }
            "syncpipeline" => self.push(at, Op::SyncPipeline),
            "endpipeline" => self.push(at, Op::EndPipeline),
            "shell" | "setshell" => self.shell(at, name, rest_at, &arguments)?,
            "gset" | "aset" => return wrong(&format!("\\{name} must follow a statement")),
            _ => {
                return wrong(&format!(
                    "there is no meta command \\{name}; there are {META_COMMANDS}"
                ));
            }
        }
        Ok(())
    }

    /// Ends a branch of an `\if`, so that another one begins here.
    fn next_branch(&mut self, at: usize, name: &str) -> Result<(), Wrong> {
        let jump = self.routine.ops.len();
        let test = match self.ifs.last_mut() {
            Some(open) if !open.had_else => {
                open.ends.push(jump);
                open.test.take()
            }
            open => {
                let why = if open.is_some() {
                    "follows an \\else"
                } else {
                    "has no \\if"
                };
                return Err(Wrong {
                    at,
                    message: format!("this \\{name} {why}"),
                });
            }
        };
        self.push(at, Op::Jump(0));
        self.land(test.into_iter());
        Ok(())
    }

    /// Lets jumps lead here.
    fn land(&mut self, jumps: impl Iterator<Item = usize>) {
        let here = self.routine.here();
        for jump in jumps {
            if let Op::Jump(target) | Op::Unless(_, target) = &mut self.routine.ops[jump] {
                *target = here;
            }
        }
    }

    fn check_variable(&self, at: usize, word: &str) -> Result<(), Wrong> {
        let mut bytes = word.bytes();
        let good = bytes.next().is_some_and(is_name_start) && bytes.all(is_name_byte);
        if good {
            return Ok(());
        }
        Err(Wrong {
            at,
            message: format!("{word} is not a name of a variable; expected letters, digits and underscores"),
        })
    }

    fn sleep(&mut self, at: usize, rest_at: usize, arguments: &[(usize, &str)]) -> Result<(), Wrong> {
        let expected = |at: usize| Wrong {
            at,
            message: "expected a number or a variable, and us, ms or s behind \\sleep".into(),
        };
        let &(first_at, first) = arguments.first().ok_or_else(|| expected(at))?;
        let place = rest_at + first_at;
        // The unit may be separate or directly behind the digits.
        let digits = first.find(|c: char| !c.is_ascii_digit()).unwrap_or(first.len());
        let (amount, unit) = match (first.strip_prefix(':'), arguments.get(1)) {
            (Some(name), unit) => {
                self.check_variable(place, name)?;
                (
                    Expr::Variable(self.program.variable(name)),
                    unit.map_or("s", |u| u.1),
                )
            }
            (None, unit) => {
                let number = first[..digits].parse().map_err(|_| expected(place))?;
                let apart = unit.map_or("s", |u| u.1);
                let unit = if digits < first.len() {
                    &first[digits..]
                } else {
                    apart
                };
                (Expr::Constant(Value::Int(number)), unit)
            }
        };
        let unit_ns = match unit {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => return Err(expected(arguments.get(1).map_or(place, |unit| rest_at + unit.0))),
        };
        if let Some((at, word)) = arguments.get(2) {
            return Err(Wrong {
                at: rest_at + at,
                message: format!("unexpected {word} behind the unit"),
            });
        }
        self.program.outline.sleeps = true;
        self.push(at, Op::Sleep(amount, unit_ns));
        Ok(())
    }

    fn shell(
        &mut self,
        at: usize,
        name: &str,
        rest_at: usize,
        arguments: &[(usize, &str)],
    ) -> Result<(), Wrong> {
        if !self.allow_shell {
            return Err(Wrong {
                at,
                message: format!("\\{name} runs a command on this machine; --allow-shell allows it"),
            });
        }
        let mut arguments = arguments.iter();
        let variable = match name {
            "setshell" => {
                let Some(&(word_at, word)) = arguments.next() else {
                    return Err(Wrong {
                        at,
                        message: "expected a variable and a command behind \\setshell".into(),
                    });
                };
                self.check_variable(rest_at + word_at, word)?;
                Some(self.program.variable(word))
            }
            _ => None,
        };
        let mut words = Vec::new();
        for &(word_at, word) in arguments {
            words.push(match word.strip_prefix(':') {
                // Two colons mean one.
                Some(rest) if rest.starts_with(':') => Word::Text(rest.to_owned()),
                Some(name) => {
                    self.check_variable(rest_at + word_at, name)?;
                    Word::Variable(self.program.variable(name))
                }
                None => Word::Text(word.to_owned()),
            });
        }
        if words.is_empty() {
            return Err(Wrong {
                at,
                message: format!("expected a command behind \\{name}"),
            });
        }
        let shell = Shell {
            variable,
            words,
            stop: Arc::clone(self.stop),
        };
        self.push(at, Op::Aside(Box::new(shell)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
