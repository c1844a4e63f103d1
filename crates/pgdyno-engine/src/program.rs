//! Transactions as operations over variables, compiled before the load. The interpreter executes
//! them.

use crate::actor::{Outline, StatementName};
use crate::expression::{Expr, Variable};
use crate::message::{self, Layout, Pieces, Statement, statement_name};
use crate::protocol::Protocol;
use crate::value::{Slot, Trouble};
use std::collections::HashMap;
use std::fmt;

/// One operation of a transaction. Jumps go to the number of an operation.
#[derive(Debug)]
pub enum Op {
    /// Draws an integer within bounds.
    Draw(Variable, i64, i64),
    /// Draws so many groups of eleven digits.
    Digits(Variable, u16),
    /// Gives a variable the value of an expression.
    Set(Variable, Expr),
    /// A statement goes into the request.
    Say(Say),
    /// The request goes out, and its reply is waited for; not in a pipeline.
    Trip,
    /// What follows goes out without a wait.
    StartPipeline,
    /// A Sync within a pipeline.
    SyncPipeline,
    /// The pipeline goes out, and its replies are waited for.
    EndPipeline,
    /// Continues at that operation.
    Jump(u32),
    /// Continues at that operation unless the expression is true.
    Unless(Expr, u32),
    /// Waits for so many units of nanoseconds.
    Sleep(Expr, u64),
    /// Runs something beside the load, such as a shell command.
    Aside(Box<dyn Aside>),
    /// Ends the transaction.
    End,
}

/// A statement in a request: see [`Program::say`].
#[derive(Debug, Clone, PartialEq)]
pub struct Say {
    pub(crate) pieces: Pieces,
    /// Number of the statement among all of the program.
    pub(crate) statement: u32,
    /// What prepares it, where that is done when it is first wanted.
    pub(crate) prepare: Option<Pieces>,
    pub(crate) capture: Option<Capture>,
}

/// Stores rows of a reply in variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Name of the command, in messages: "\\gset".
    pub word: &'static str,
    /// Prefix of the variables before the names of the columns.
    pub prefix: String,
    /// Whether it is exactly one row of the last statement; else any number of all statements.
    pub single: bool,
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
pub struct Routine {
    /// Its number among the kinds of transactions.
    pub kind: u32,
    /// Operations in order, the last one [`Op::End`].
    pub ops: Vec<Op>,
    pub(crate) lines: Vec<u32>,
}

impl Routine {
    /// One without operations, of the kind of that number.
    pub fn of_kind(kind: usize) -> Routine {
        Routine {
            kind: u32::try_from(kind).unwrap_or(u32::MAX),
            ..Routine::default()
        }
    }

    /// Adds an operation.
    pub fn push(&mut self, line: usize, op: Op) {
        self.ops.push(op);
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
    }

    /// The number of the next operation.
    pub fn here(&self) -> u32 {
        u32::try_from(self.ops.len()).unwrap_or(u32::MAX)
    }
}

/// The transactions of a load, as routines of which one is chosen at random for each.
#[derive(Debug)]
pub struct Program {
    /// What the engine has to know of them.
    pub outline: Outline,
    /// How their statements are put to the server.
    pub protocol: Protocol,
    pub(crate) layout: Layout,
    pub(crate) routines: Vec<Routine>,
    /// Sums of the routines' weights up to each.
    pub(crate) weights: Vec<u64>,
    /// What every client's variables begin with, by their numbers.
    pub slots: Vec<Slot>,
    pub(crate) names: Vec<String>,
    pub(crate) variables: HashMap<Vec<u8>, Variable>,
    /// The variable that holds the client's number.
    pub client_id: Option<Variable>,
}

impl Program {
    /// One without transactions; `by_user`: see [`Outline`]. A user's variables keep their values
    /// from one transaction to the next.
    pub fn new(protocol: Protocol, by_user: bool) -> Program {
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
    pub fn add(&mut self, routine: Routine, weight: u32) {
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
    pub fn variable(&mut self, name: &str) -> Variable {
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
    pub fn name_statement(&mut self, kind: usize, sql: &str) -> usize {
        self.outline.statements.push(StatementName {
            transaction: self.outline.kinds[kind].clone(),
            sql: sql.to_owned(),
        });
        self.outline.statements.len() - 1
    }

    /// Lays out a statement; `lazily`: it is prepared when it is first wanted.
    pub fn say(
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
