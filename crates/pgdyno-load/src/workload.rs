//! Workloads: what a transaction of each is made of.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Rows of pgbench_accounts per unit of scale.
pub(crate) const ACCOUNTS_PER_SCALE: i32 = 100_000;
/// Rows of pgbench_tellers per unit of scale.
pub(crate) const TELLERS_PER_SCALE: i32 = 10;
/// Above this the keys of pgbench_accounts no longer fit four bytes.
pub(crate) const SCALE_MAX: u32 = (i32::MAX / ACCOUNTS_PER_SCALE) as u32;

/// What the transactions of a load do; the data of all of them is pgbench's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// A transaction of nothing: BEGIN and COMMIT.
    Empty,
    /// The echo of a parameter, without a table.
    Simple,
    /// One select by primary key, as `pgbench -S`.
    PointSelect,
    /// One update by primary key.
    Write,
    /// One update, one select and one insert in a transaction, as `pgbench -N`.
    SimpleUpdate,
    /// The TPC-B-like transaction of five statements, as pgbench's default.
    Tpcb,
}

impl Workload {
    /// All of them, in the order of their weight.
    pub const ALL: [Workload; 6] = [
        Workload::Empty,
        Workload::Simple,
        Workload::PointSelect,
        Workload::Write,
        Workload::SimpleUpdate,
        Workload::Tpcb,
    ];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Empty => "empty",
            Workload::Simple => "simple",
            Workload::PointSelect => "point-select",
            Workload::Write => "write",
            Workload::SimpleUpdate => "simple-update",
            Workload::Tpcb => "tpcb",
        }
    }

    /// How its transactions are bounded unless somebody asks for something else.
    pub fn usual_control(self) -> Control {
        match self {
            Workload::Simple | Workload::PointSelect | Workload::Write => Control::None,
            Workload::Empty | Workload::SimpleUpdate | Workload::Tpcb => Control::Explicit,
        }
    }

    /// Whether there is nothing between BEGIN and COMMIT.
    pub(crate) fn is_empty(self) -> bool {
        self == Workload::Empty
    }

    /// Whether it reads or writes pgbench's tables.
    pub fn needs_data(self) -> bool {
        !matches!(self, Workload::Empty | Workload::Simple)
    }

    /// The statements between BEGIN and COMMIT.
    pub(crate) fn statements(self) -> Vec<Statement> {
        use Variable::{Aid, Bid, Delta, Tid};
        let update_account = Statement::new(
            "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2",
            &[Delta, Aid],
        );
        let select_account = Statement::new("SELECT abalance FROM pgbench_accounts WHERE aid = $1", &[Aid]);
        let insert_history = Statement::new(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
            &[Tid, Bid, Aid, Delta],
        );
        match self {
            Workload::Empty => Vec::new(),
            Workload::Simple => vec![Statement::new("SELECT $1", &[Aid])],
            Workload::PointSelect => vec![select_account],
            Workload::Write => vec![update_account],
            Workload::SimpleUpdate => vec![update_account, select_account, insert_history],
            Workload::Tpcb => vec![
                update_account,
                select_account,
                Statement::new(
                    "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2",
                    &[Delta, Tid],
                ),
                Statement::new(
                    "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2",
                    &[Delta, Bid],
                ),
                insert_history,
            ],
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is none of the names.
#[derive(Debug, thiserror::Error)]
#[error("unknown {what} \"{word}\"; there are {names}")]
pub struct UnknownName {
    what: &'static str,
    word: String,
    names: String,
}

/// Finds one of `all` by its name.
pub(crate) fn by_name<T: Copy>(
    what: &'static str,
    word: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter()
        .copied()
        .find(|&one| name(one) == word)
        .ok_or_else(|| UnknownName {
            what,
            word: word.to_owned(),
            names: all.iter().map(|&one| name(one)).collect::<Vec<_>>().join(", "),
        })
}

impl FromStr for Workload {
    type Err = UnknownName;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        by_name("workload", word, &Workload::ALL, Workload::name)
    }
}

/// How the statements of a transaction are held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// Every statement commits by itself.
    None,
    /// BEGIN, the statements and COMMIT, each a round trip of its own.
    Explicit,
    /// BEGIN, the statements and COMMIT in one round trip.
    Pipelined,
}

impl Control {
    const ALL: [Control; 3] = [Control::None, Control::Explicit, Control::Pipelined];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Control::None => "none",
            Control::Explicit => "explicit",
            Control::Pipelined => "pipelined",
        }
    }
}

impl FromStr for Control {
    type Err = UnknownName;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        by_name("transaction control", word, &Control::ALL, Control::name)
    }
}

/// How a statement is put to the server (the words are pgbench's for its option -M).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As text with its values in it, parsed and planned each time.
    Simple,
    /// With parameters, parsed each time.
    Extended,
    /// With parameters, parsed once per connection.
    Prepared,
}

impl Protocol {
    const ALL: [Protocol; 3] = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        }
    }
}

impl FromStr for Protocol {
    type Err = UnknownName;
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        by_name("protocol", word, &Protocol::ALL, Protocol::name)
    }
}

/// One statement: its text and the four-byte integers it takes, in order.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) parameters: Vec<Variable>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str, parameters: &[Variable]) -> Statement {
        Statement {
            sql,
            parameters: parameters.to_vec(),
        }
    }
}

/// A value drawn once per transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Variable {
    Aid,
    Bid,
    Tid,
    Delta,
}

/// The variables of a transaction, in the order of the enumeration.
pub(crate) type Values = [i32; Variable::COUNT];

impl Variable {
    pub(crate) const COUNT: usize = 4;

    /// Bounds of each variable at a scale, in the order of the enumeration.
    pub(crate) fn ranges(scale: u32) -> [(i32, i32); Variable::COUNT] {
        let scale = i32::try_from(scale.clamp(1, SCALE_MAX)).unwrap_or(1);
        [
            (1, ACCOUNTS_PER_SCALE * scale),
            (1, scale),
            (1, TELLERS_PER_SCALE * scale),
            (-5000, 5000),
        ]
    }
}
