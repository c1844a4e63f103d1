//! Transactions as operations over variables, compiled before the load. The interpreter executes them.

use crate::actor::{Actor, Outline, StatementName, Transactions};
use crate::expression::{Expr, Trouble, Variable};
use crate::interpreter::Interpreter;
use crate::message::{self, Layout, Pieces, Statement, statement_name};
use crate::protocol::Protocol;
use crate::random::Stream;
use crate::value::Slot;
use std::collections::HashMap;
use std::fmt;

/// One operation of a transaction. Jumps go to the number of an operation.
#[derive(Debug)]
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
    Aside(Box<dyn Aside>),
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
    /// What asks for it, in messages.
    pub(crate) word: &'static str,
    /// Stands before the names of the columns.
    pub(crate) prefix: String,
    /// Whether it is exactly one row of the last statement; else any number of all statements.
    pub(crate) single: bool,
}

/// What an operation does beside the load; the other clients of the thread wait for it.
pub trait Aside: fmt::Debug + Send + Sync {
    /// Reads and sets variables; `names` are theirs, by their numbers.
    ///
    /// # Errors
    ///
    /// The transaction cannot go on.
    fn run(&self, slots: &mut [Slot], names: &[String]) -> Result<(), Trouble>;
}

/// One transaction's operations, with the line that each comes from.
#[derive(Debug, Default)]
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

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) outline: Outline,
    pub(crate) protocol: Protocol,
    pub(crate) layout: Layout,
    pub(crate) routines: Vec<Routine>,
    /// Sums of the routines' weights up to each.
    pub(crate) weights: Vec<u64>,
    /// What every client's variables begin with, and their names.
    pub(crate) slots: Vec<Slot>,
    pub(crate) names: Vec<String>,
    pub(crate) variables: HashMap<Vec<u8>, Variable>,
    /// The variable that holds the client's number.
    pub(crate) client_id: Option<Variable>,
}

impl Transactions for Program {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn actor(&self, stream: Stream, number: u32) -> Box<dyn Actor + '_> {
        Box::new(Interpreter::new(self, stream, number))
    }
}

impl Program {
    /// One without transactions; `by_user`: see [`Outline`]. A user's variables keep their values from one transaction to the next.
    pub(crate) fn new(protocol: Protocol, by_user: bool) -> Program {
        Program {
            outline: Outline {
                by_user,
                commits_max: 1,
                ..Outline::default()
            },
            protocol,
            layout: Layout::default(),
            routines: Vec::new(),
            weights: Vec::new(),
            slots: Vec::new(),
            names: Vec::new(),
            variables: HashMap::new(),
            client_id: None,
        }
    }

    /// Adds a routine that is chosen `weight` times as often as one of weight 1.
    pub(crate) fn add(&mut self, routine: Routine, weight: u32) {
        // A statement that goes as a whole may hold several.
        let says = |op: &Op| match op {
            Op::Say(say) => {
                let name = &self.outline.statements[say.statement as usize];
                1 + name.sql.matches(';').count() as u64
            }
            _ => 0,
        };
        let commits = routine.ops.iter().map(says).sum();
        self.outline.commits_max = self.outline.commits_max.max(commits);
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

    /// Enters a statement into the list of all; its number.
    pub(crate) fn name_statement(&mut self, kind: usize, sql: &str) -> usize {
        self.outline.statements.push(StatementName {
            transaction: self.outline.kinds[kind].clone(),
            sql: sql.to_owned(),
        });
        self.outline.statements.len() - 1
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
            Protocol::Simple => self.layout.query(statement),
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
}
