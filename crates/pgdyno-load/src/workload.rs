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

/// A workload on the schema of pgbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// One select by primary key, as `pgbench -S`.
    PointSelect,
    /// One update, one select and one insert in a transaction, as `pgbench -N`.
    SimpleUpdate,
    /// The TPC-B-like transaction of five statements, as pgbench's default.
    Tpcb,
}

impl Workload {
    /// All of them, in the order of their weight.
    pub const ALL: [Workload; 3] = [Workload::PointSelect, Workload::SimpleUpdate, Workload::Tpcb];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Workload::PointSelect => "point-select",
            Workload::SimpleUpdate => "simple-update",
            Workload::Tpcb => "tpcb",
        }
    }

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
        let (begin, commit) = (Statement::new("BEGIN", &[]), Statement::new("COMMIT", &[]));
        match self {
            Workload::PointSelect => vec![select_account],
            Workload::SimpleUpdate => {
                vec![begin, update_account, select_account, insert_history, commit]
            }
            Workload::Tpcb => vec![
                begin,
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
                commit,
            ],
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no workload.
#[derive(Debug, thiserror::Error)]
#[error("unknown workload \"{0}\"; there are point-select, simple-update and tpcb")]
pub struct UnknownWorkload(String);

impl FromStr for Workload {
    type Err = UnknownWorkload;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Workload::ALL
            .into_iter()
            .find(|w| w.name() == name)
            .ok_or_else(|| UnknownWorkload(name.to_owned()))
    }
}

/// One statement: its text and the four-byte integers it takes, in order.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) parameters: Vec<Variable>,
}

impl Statement {
    fn new(sql: &'static str, parameters: &[Variable]) -> Statement {
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
