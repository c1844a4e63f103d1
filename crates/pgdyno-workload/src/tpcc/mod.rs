//! TPC-C's five transactions, as a terminal runs them (TPC-C 5.11, clause 2). What a terminal does
//! is a sequence of stages; the statements of one stage need nothing of each other's replies, so
//! that in a pipeline they share a round trip.

mod rows;
mod statements;
mod terminal;

use crate::workload::Control;
use pgdyno_engine::Protocol;
use pgdyno_engine::actor::{Actor, Outline, StatementName, Transactions};
use pgdyno_engine::message::{SYNC, message, statement_name};
use pgdyno_engine::random::Stream;
use statements::{ALL, Id, Kind};
use terminal::Terminal;

/// The name of the transactions that NOPM counts.
pub(crate) const NEW_ORDER: &str = "new-order";

/// How the transactions are run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) warehouses: i32,
    /// Whether each transaction is one call of a function of the server.
    pub(crate) functions: bool,
    pub(crate) control: Control,
    /// Whether terminals stay at their warehouse and wait as a person at the keys would (clause
    /// 5.2.5).
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
#[derive(Debug)]
pub(crate) struct Terminals {
    outline: Outline,
    style: Style,
    /// The name of each statement; none where it is parsed each time, by these messages.
    names: Vec<Vec<u8>>,
    parses: Vec<Vec<u8>>,
}

impl Transactions for Terminals {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn actor(&self, stream: Stream, number: u32) -> Box<dyn Actor + '_> {
        Box::new(Terminal::new(self, stream, number))
    }
}

impl Terminals {
    pub(crate) fn new(protocol: Protocol, style: Style) -> Terminals {
        let mut outline = Outline {
            kinds: Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            pipelines: style.control == Control::Pipelined,
            sleeps: style.paced,
            commits_max: 1,
            ..Outline::default()
        };
        let prepared = protocol == Protocol::Prepared;
        let (mut names, mut parses, mut prepare) = (Vec::new(), Vec::new(), Vec::new());
        for (number, sql) in ALL.iter().enumerate() {
            outline.statements.push(StatementName {
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
            outline.prepare = Some(prepare);
        }
        Terminals {
            outline,
            style,
            names,
            parses,
        }
    }
}

fn parse(name: &str, sql: &statements::Sql) -> Vec<u8> {
    let types = sql.types.iter().flat_map(|of| of.to_be_bytes());
    let count = u16::try_from(sql.types.len()).unwrap_or(0).to_be_bytes();
    let text = [name.as_bytes(), b"\0", sql.text.as_bytes(), b"\0"].concat();
    let body: Vec<u8> = text.into_iter().chain(count).chain(types).collect();
    message(b'P', &body)
}
