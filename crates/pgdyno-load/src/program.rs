//! The transactions of a load, compiled: shared by all clients.

use crate::message::{self, Layout, Part, Pieces, SYNC, Statement, Type, statement_name};
use crate::random::{Purpose, stream_seed};
use crate::script::expression::{Expr, Function, Variable, is_name_byte, is_name_start};
use crate::script::value::{Slot, Value};
use crate::tpcc::Terminals;
use crate::workload::{Control, Extent, Protocol, Step, VARIABLES, Workload};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One operation of a transaction. Jumps go to the number of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// Draws an integer within bounds.
    Draw(Variable, i64, i64),
    /// Draws so many groups of eleven digits.
    Digits(Variable, u16),
    Set(Variable, Expr),
    /// A statement goes into the request.
    Say(Say),
    /// The request goes out, and its reply is waited for; not in a pipeline.
    Trip,
    StartPipeline,
    SyncPipeline,
    EndPipeline,
    Jump(u32),
    Unless(Expr, u32),
    /// Waits for so many units of nanoseconds.
    Sleep(Expr, u64),
    Shell(Shell),
    End,
}

/// A statement in a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Say {
    pub(crate) pieces: Pieces,
    /// Its number among all statements.
    pub(crate) statement: u32,
    /// What prepares it, where that is done when it is first wanted.
    pub(crate) prepare: Option<Pieces>,
    pub(crate) capture: Option<Capture>,
}

/// Rows that become variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capture {
    /// Stands before the names of the columns.
    pub(crate) prefix: String,
    /// Whether it is exactly one row of the last statement; else any number of all statements.
    pub(crate) single: bool,
}

/// A command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    /// Where the integer goes that it prints, if it is wanted.
    pub(crate) variable: Option<Variable>,
    pub(crate) words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    Text(String),
    Variable(Variable),
}

/// Times of a statement take some 30 kB in each thread.
const TIMED_STATEMENTS_MAX: usize = 500;

/// One transaction's operations, with the line that each comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routine {
    /// Its number among the kinds of transactions.
    pub(crate) kind: u32,
    pub(crate) ops: Vec<Op>,
    pub(crate) lines: Vec<u32>,
}

impl Routine {
    pub(crate) fn push(&mut self, line: usize, op: Op) {
        self.ops.push(op);
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
    }

    pub(crate) fn here(&self) -> u32 {
        u32::try_from(self.ops.len()).unwrap_or(u32::MAX)
    }
}

/// A statement as the books name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementName {
    /// The kind of transaction that it belongs to.
    pub transaction: String,
    /// Its text.
    pub sql: String,
}

/// Commands that commit for themselves before they end: for each table, each phase, or where a procedure does.
const COMMITTING: [&str; 6] = ["VACUUM", "ANALYZE", "CLUSTER", "REINDEX", "CALL", "DO"];
/// Builds and drops in several transactions, in whatever command.
const CONCURRENTLY: &str = "CONCURRENTLY";

/// The word of a statement, or of several that go as a whole, by which it may commit more often than its client sees.
fn commits_within(sql: &str) -> Option<&'static str> {
    let first = |statement: &str| {
        let word = statement
            .split(|c: char| !c.is_ascii_alphabetic())
            .find(|word| !word.is_empty());
        let is_first = |known: &&str| word.is_some_and(|word| word.eq_ignore_ascii_case(known));
        COMMITTING.into_iter().find(is_first)
    };
    let mut words = sql.split(|c: char| !c.is_ascii_alphabetic());
    sql.split(';').find_map(first).or_else(|| {
        let found = words.any(|word| word.eq_ignore_ascii_case(CONCURRENTLY));
        found.then_some(CONCURRENTLY)
    })
}

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) protocol: Protocol,
    pub(crate) layout: Layout,
    pub(crate) routines: Vec<Routine>,
    /// Sums of the routines' weights up to each.
    pub(crate) weights: Vec<u64>,
    /// Names of the kinds of transactions.
    pub(crate) kinds: Vec<String>,
    pub(crate) statements: Vec<StatementName>,
    /// What every client's variables begin with, and their names.
    pub(crate) slots: Vec<Slot>,
    pub(crate) names: Vec<String>,
    pub(crate) prepare: Option<Vec<u8>>,
    pub(crate) variables: HashMap<Vec<u8>, Variable>,
    pub(crate) client_id: Option<Variable>,
    /// Whether some transaction sleeps.
    pub(crate) sleeps: bool,
    /// Whether some request may be so long that its reply must be read while it is sent.
    pub(crate) pipelines: bool,
    /// Whether they are the user's.
    pub(crate) scripted: bool,
    /// TPC-C's terminals, in place of the routines.
    pub(crate) terminals: Option<Terminals>,
    /// Whether somebody has asked to stop: commands of the shell are ended then.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Program {
    pub(crate) fn empty(protocol: Protocol) -> Program {
        Program {
            protocol,
            layout: Layout::default(),
            routines: Vec::new(),
            weights: Vec::new(),
            kinds: Vec::new(),
            statements: Vec::new(),
            slots: Vec::new(),
            names: Vec::new(),
            prepare: None,
            variables: HashMap::new(),
            client_id: None,
            sleeps: false,
            pipelines: false,
            scripted: false,
            terminals: None,
            stop: Arc::default(),
        }
    }

    /// The transactions of a workload on data of that extent.
    pub(crate) fn of_workload(
        workload: Workload,
        protocol: Protocol,
        control: Control,
        extent: Extent,
    ) -> Program {
        let mut program = Program::empty(protocol);
        program.kinds.push(workload.name().to_owned());
        for declared in VARIABLES {
            program.variable(declared.name);
        }
        let mut known = HashMap::new();
        for table in 1..=extent.tables.max(1) {
            let steps = workload.steps(extent, table);
            let routine = program.routine_of(&steps, control, &mut known);
            program.add(routine, 1);
        }
        if protocol == Protocol::Prepared {
            let mut prepare: Vec<u8> = Vec::new();
            let mut named: Vec<(usize, Statement)> = known.into_values().collect();
            named.sort_by_key(|(number, _)| *number);
            for (number, statement) in named {
                prepare.extend_from_slice(&statement.parse(&statement_name(number)));
            }
            prepare.extend_from_slice(SYNC);
            program.prepare = Some(prepare);
        }
        program
    }

    /// Adds a routine that is chosen `weight` times as often as one of weight 1.
    pub(crate) fn add(&mut self, routine: Routine, weight: u32) {
        let sum = self.weights.last().copied().unwrap_or(0) + u64::from(weight);
        self.routines.push(routine);
        self.weights.push(sum);
    }

    /// The number of a variable, which is made if it is new.
    pub(crate) fn variable(&mut self, name: &str) -> Variable {
        if let Some(&known) = self.variables.get(name.as_bytes()) {
            return known;
        }
        let number = Variable::try_from(self.slots.len()).unwrap_or(Variable::MAX);
        self.slots.push(Slot::EMPTY);
        self.names.push(name.to_owned());
        self.variables.insert(name.as_bytes().to_vec(), number);
        number
    }

    /// Gives the variables their values that every script of pgbench finds: scale, seeds, the client's number, and those
    /// that the user defines.
    pub(crate) fn define(&mut self, scale: u32, seed: u64, defined: &[(String, String)]) {
        let values = [
            ("scale", i64::from(scale)),
            ("random_seed", seed.cast_signed()),
            (
                "default_seed",
                stream_seed(seed, u64::MAX, Purpose::Transactions).cast_signed(),
            ),
        ];
        for (name, value) in values {
            let number = self.variable(name);
            self.slots[usize::from(number)].set(Value::Int(value));
        }
        self.client_id = Some(self.variable("client_id"));
        for (name, text) in defined {
            let number = self.variable(name);
            self.slots[usize::from(number)] = Slot::of_text(text);
            if name == "client_id" {
                self.client_id = None;
            }
        }
    }

    fn routine_of(
        &mut self,
        steps: &[Step],
        control: Control,
        known: &mut HashMap<String, (usize, Statement)>,
    ) -> Routine {
        let mut routine = Routine::default();
        let mut steps = steps.to_vec();
        if control != Control::None {
            steps.insert(0, Step::Say("BEGIN".into()));
            steps.push(Step::Say("COMMIT".into()));
        }
        let last = steps.len();
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Draw(name, low, high) => {
                    let variable = self.variable(name);
                    routine.push(1, Op::Draw(variable, low.into(), high.into()));
                }
                Step::Above(name, other, more) => {
                    let sum = [
                        Expr::Variable(self.variable(other)),
                        Expr::Constant(Value::Int(more.into())),
                    ];
                    let variable = self.variable(name);
                    routine.push(1, Op::Set(variable, Expr::Call(Function::Add, Box::new(sum))));
                }
                Step::Digits(name, groups) => {
                    let variable = self.variable(name);
                    routine.push(1, Op::Digits(variable, groups));
                }
                Step::Say(sql) => {
                    let statement = self.statement(&sql, false, |name| {
                        let declared = VARIABLES.iter().find(|declared| declared.name == name);
                        declared.map_or(Type::Unknown, |declared| declared.of)
                    });
                    let number = match known.get(&sql) {
                        Some((number, _)) => *number,
                        None => {
                            let number = self.name_statement(0, &sql);
                            known.insert(sql, (number, statement.clone()));
                            number
                        }
                    };
                    let say = self.say(&statement, number, false, None);
                    routine.push(1, Op::Say(say));
                    if control != Control::Pipelined || at + 1 == last {
                        routine.push(1, Op::Trip);
                    }
                }
            }
        }
        self.pipelines |= control == Control::Pipelined;
        routine.push(1, Op::End);
        routine
    }

    /// Enters a statement into the list of all; its number.
    pub(crate) fn name_statement(&mut self, kind: usize, sql: &str) -> usize {
        self.statements.push(StatementName {
            transaction: self.kinds[kind].clone(),
            sql: sql.to_owned(),
        });
        self.statements.len() - 1
    }

    /// Finds the variables of a statement: a colon and a name, wherever it stands, but not behind another colon.
    pub(crate) fn statement(&mut self, sql: &str, described: bool, of: impl Fn(&str) -> Type) -> Statement {
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
            parts.push(Part::Variable(self.variable(name), of(name)));
            (from, at) = (end, end);
        }
        parts.push(Part::Sql(sql[from..].to_owned()));
        Statement {
            parts,
            described,
            binary: !self.scripted,
        }
    }

    /// Lays out a statement; `lazily`: it is prepared when it is first wanted.
    pub(crate) fn say(
        &mut self,
        statement: &Statement,
        number: usize,
        lazily: bool,
        capture: Option<Capture>,
    ) -> Say {
        let name = statement_name(number);
        let pieces = match self.protocol {
            Protocol::Simple => self.layout.query(statement, &self.names),
            Protocol::Extended => self.layout.bind(statement, ""),
            Protocol::Prepared => self.layout.bind(statement, &name),
        };
        let prepare = (lazily && self.protocol == Protocol::Prepared).then(|| {
            // One of that name may be left of a try that failed.
            let prepare = [message::close(&name), statement.parse(&name)].concat();
            self.layout.bytes(&prepare)
        });
        Say {
            pieces,
            statement: u32::try_from(number).unwrap_or(u32::MAX),
            prepare,
            capture,
        }
    }

    /// What a new connection sends to be ready; ends with a Sync.
    pub(crate) fn prepare(&self) -> Option<&[u8]> {
        self.prepare.as_deref()
    }

    /// The most transactions of the server in one of the load, where each statement commits by itself.
    pub(crate) fn statements_max(&self) -> u64 {
        // One that goes as a whole may hold several.
        let says = |op: &Op| match op {
            Op::Say(say) => 1 + self.statements[say.statement as usize].sql.matches(';').count(),
            _ => 0,
        };
        let of_routine = |routine: &Routine| routine.ops.iter().map(says).sum();
        self.routines.iter().map(of_routine).max().unwrap_or(1).max(1) as u64
    }

    /// What a statement begins with that may commit more often than its client sees, if there is one.
    pub(crate) fn commits_within(&self) -> Option<&'static str> {
        self.statements.iter().find_map(|name| commits_within(&name.sql))
    }

    /// Whether there are several statements, so that each has times of its own; of very many, none has.
    pub(crate) fn times_statements(&self) -> bool {
        (2..=TIMED_STATEMENTS_MAX).contains(&self.statements.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_commit_within_are_known_by_their_words() {
        let check = |sql, expected| assert_eq!(commits_within(sql), expected, "{sql}");
        check("vacuum (parallel 2) wide", Some("VACUUM"));
        check("SELECT 1; CALL p()", Some("CALL"));
        check("create index Concurrently z ON t (a)", Some("CONCURRENTLY"));
        check("CREATE INDEX z ON t (a)", None);
        check("SELECT do FROM vacuum", None);
        check("", None);
    }
}
