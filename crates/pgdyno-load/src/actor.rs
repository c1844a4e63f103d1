//! Who runs a client's transactions: a script's machine or a terminal of TPC-C.

use crate::machine::{Halt, Machine, Turn};
use crate::program::Program;
use crate::random::Stream;
use crate::tpcc::{Terminal, Terminals};

pub(crate) enum Actor {
    Machine(Box<Machine>),
    Terminal(Box<Terminal>),
}

/// Terminals exist where the program has them.
fn shared(program: &Program) -> &Terminals {
    program
        .terminals
        .as_ref()
        .expect("a terminal's program has terminals")
}

impl Actor {
    pub(crate) fn new(program: &Program, stream: Stream, number: u32) -> Actor {
        match &program.terminals {
            Some(terminals) => Actor::Terminal(Box::new(Terminal::new(terminals, stream, number))),
            None => Actor::Machine(Box::new(Machine::new(program, stream, number))),
        }
    }

    /// A new connection has nothing prepared but what all connections prepare.
    pub(crate) fn renew(&mut self) {
        if let Actor::Machine(machine) = self {
            machine.renew();
        }
    }

    /// Time that a person takes before the next transaction.
    pub(crate) fn pause_ns(&mut self, program: &Program) -> u64 {
        match self {
            Actor::Machine(_) => 0,
            Actor::Terminal(terminal) => terminal.pause_ns(shared(program)),
        }
    }

    /// Chooses the next transaction.
    pub(crate) fn begin(&mut self, program: &Program) {
        match self {
            Actor::Machine(machine) => machine.begin(program),
            Actor::Terminal(terminal) => terminal.begin(shared(program)),
        }
    }

    /// Begins the transaction at hand once more, with the same values.
    pub(crate) fn restart(&mut self, program: &Program) {
        match self {
            Actor::Machine(machine) => machine.restart(),
            Actor::Terminal(terminal) => terminal.restart(shared(program)),
        }
    }

    /// The kind of the transaction at hand.
    pub(crate) fn kind(&self, program: &Program) -> u32 {
        match self {
            Actor::Machine(machine) => machine.kind(program),
            Actor::Terminal(terminal) => terminal.kind(),
        }
    }

    /// Whether the transaction at hand is meant to end by a rollback.
    pub(crate) fn rolls_back(&self) -> bool {
        match self {
            Actor::Machine(_) => false,
            Actor::Terminal(terminal) => terminal.rolls_back(),
        }
    }

    /// Goes on to the next thing to wait for; what is to be sent is put into `out`.
    pub(crate) fn run(&mut self, program: &Program, out: &mut Vec<u8>) -> Result<Turn, Halt> {
        match self {
            Actor::Machine(machine) => machine.run(program, out),
            Actor::Terminal(terminal) => terminal.run(shared(program), out),
        }
    }

    /// The reply to the request at hand has come, with these rows if they were wanted.
    pub(crate) fn take_reply(&mut self, program: &Program, rows: &[u8]) -> Result<(), Halt> {
        match self {
            Actor::Machine(machine) => machine.take_reply(program, rows),
            Actor::Terminal(terminal) => {
                terminal.take_reply(rows);
                Ok(())
            }
        }
    }

    /// The request at hand failed.
    pub(crate) fn fail(&mut self) {
        if let Actor::Machine(machine) = self {
            machine.fail();
        }
    }

    /// Where the transaction at hand is, for people: a script's name and line, or the kind.
    pub(crate) fn place(&self, program: &Program) -> String {
        let kind = &program.kinds[self.kind(program) as usize];
        match self {
            Actor::Machine(machine) if program.scripted => format!("{kind}:{}", machine.line(program)),
            _ => kind.clone(),
        }
    }

    /// What the transactions had to say.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        match self {
            Actor::Machine(machine) => std::mem::take(&mut machine.notes),
            Actor::Terminal(_) => Vec::new(),
        }
    }
}
