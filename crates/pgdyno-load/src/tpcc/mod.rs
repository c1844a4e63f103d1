//! TPC-C's five transactions, as a terminal runs them (TPC-C 5.11, clause 2). What a terminal does is a sequence of
//! stages; the statements of one stage need nothing of each other's replies, so that in a pipeline they share a round
//! trip.

mod rows;
mod statements;
mod terminal;

use crate::message::{SYNC, message, statement_name};
use crate::program::{Program, StatementName};
use crate::workload::{Control, Protocol};
use statements::{ALL, Id, Kind};
pub(crate) use terminal::Terminal;

/// The name of the transactions that NOPM counts.
pub(crate) const NEW_ORDER: &str = "new-order";

/// How the transactions are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) warehouses: i32,
    /// Whether each transaction is one call of a function of the server.
    pub(crate) functions: bool,
    pub(crate) control: Control,
    /// Whether terminals stay at their warehouse and wait as a person at the keys would (clause 5.2.5).
    pub(crate) paced: bool,
}

impl Style {
    /// Whether its transactions hold the statement of that number.
    fn uses(self, number: usize) -> bool {
        let calls = number >= Id::CallNewOrder as usize;
        let around = number <= Id::Commit as usize && self.control != Control::None;
        around || calls == self.functions && number > Id::Commit as usize
    }
}

/// What all terminals share: the messages of the statements.
#[derive(Debug, Clone)]
pub(crate) struct Terminals {
    style: Style,
    /// The name of each statement; none where it is parsed each time, by these messages.
    names: Vec<Vec<u8>>,
    parses: Vec<Vec<u8>>,
}

/// The transactions of TPC-C as a program.
pub(crate) fn program(protocol: Protocol, style: Style) -> Program {
    let mut program = Program::empty(protocol);
    program.kinds = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
    program.pipelines = style.control == Control::Pipelined;
    program.sleeps = style.paced;
    let prepared = protocol == Protocol::Prepared;
    let (mut names, mut parses, mut prepare) = (Vec::new(), Vec::new(), Vec::new());
    for (number, sql) in ALL.iter().enumerate() {
        program.statements.push(StatementName {
            transaction: sql.kind.map_or("every", Kind::name).to_owned(),
            sql: sql.text.to_owned(),
        });
        let name = if prepared {
            statement_name(number)
        } else {
            String::new()
        };
        let parse = parse(&name, sql);
        if prepared {
            if style.uses(number) {
                prepare.extend_from_slice(&parse);
            }
            parses.push(Vec::new());
        } else {
            parses.push(parse);
        }
        names.push(name.into_bytes());
    }
    if prepared {
        prepare.extend_from_slice(SYNC);
        program.prepare = Some(prepare);
    }
    program.terminals = Some(Terminals { style, names, parses });
    program
}

fn parse(name: &str, sql: &statements::Sql) -> Vec<u8> {
    let types = sql.types.iter().flat_map(|of| of.to_be_bytes());
    let count = u16::try_from(sql.types.len()).unwrap_or(0).to_be_bytes();
    let text = [name.as_bytes(), b"\0", sql.text.as_bytes(), b"\0"].concat();
    let body: Vec<u8> = text.into_iter().chain(count).chain(types).collect();
    message(b'P', &body)
}
