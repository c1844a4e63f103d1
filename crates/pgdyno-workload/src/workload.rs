//! Workloads: what a transaction of each is made of.

use crate::data::Dataset;
use crate::scale::{ACCOUNTS_PER_SCALE, TELLERS_PER_SCALE};
use pgdyno_engine::message::Type;
use pgdyno_engine::names;
use serde::{Deserialize, Serialize};

/// What the transactions of a load do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// A transaction of nothing: BEGIN and COMMIT.
    Empty,
    /// The echo of a parameter, without a table.
    Simple,
    /// One select by primary key from pgbench's accounts.
    Read,
    /// One update by primary key of pgbench's accounts.
    Write,
    /// One insert into pgbench's history, which commits by itself.
    Commit,
    /// One select by primary key, as `pgbench -S`.
    SelectOnly,
    /// One update, one select and one insert in a transaction, as `pgbench -N`.
    SimpleUpdate,
    /// The TPC-B-like transaction of five statements, as pgbench's default.
    Tpcb,
    /// One select by primary key, as sysbench's oltp_point_select.
    PointSelect,
    /// One range of a hundred rows by primary key.
    RangeSelect,
    /// One update of an indexed column, as sysbench's oltp_update_index.
    UpdateIndex,
    /// One update of a column without an index, as sysbench's oltp_update_non_index.
    UpdateNonIndex,
    /// Ten selects by key and four ranges in a transaction, as sysbench's oltp_read_only.
    ReadOnly,
    /// The same, then two updates, a delete and an insert, as sysbench's oltp_read_write.
    ReadWrite,
    /// One insert, as sysbench's oltp_insert.
    Insert,
    /// One delete by primary key, as sysbench's oltp_delete.
    Delete,
    /// TPC-C's five transactions, each of many statements.
    Tpcc,
    /// The same, each a call of a function of the server.
    TpccFunctions,
}

impl Workload {
    /// All of them, in the order of their data.
    pub const ALL: [Workload; 18] = [
        Workload::Empty,
        Workload::Simple,
        Workload::Read,
        Workload::Write,
        Workload::Commit,
        Workload::SelectOnly,
        Workload::SimpleUpdate,
        Workload::Tpcb,
        Workload::PointSelect,
        Workload::RangeSelect,
        Workload::UpdateIndex,
        Workload::UpdateNonIndex,
        Workload::ReadOnly,
        Workload::ReadWrite,
        Workload::Insert,
        Workload::Delete,
        Workload::Tpcc,
        Workload::TpccFunctions,
    ];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Empty => "empty",
            Workload::Simple => "simple",
            Workload::Read => "read",
            Workload::Write => "write",
            Workload::Commit => "commit",
            Workload::SelectOnly => "select-only",
            Workload::SimpleUpdate => "simple-update",
            Workload::Tpcb => "tpcb",
            Workload::PointSelect => "point-select",
            Workload::RangeSelect => "range-select",
            Workload::UpdateIndex => "update-index",
            Workload::UpdateNonIndex => "update-non-index",
            Workload::ReadOnly => "read-only",
            Workload::ReadWrite => "read-write",
            Workload::Insert => "insert",
            Workload::Delete => "delete",
            Workload::Tpcc => "tpcc",
            Workload::TpccFunctions => "tpcc-functions",
        }
    }

    /// How its transactions are bounded unless somebody asks for something else.
    pub fn usual_control(self) -> Control {
        match self {
            Workload::Empty
            | Workload::SimpleUpdate
            | Workload::Tpcb
            | Workload::ReadOnly
            | Workload::ReadWrite
            | Workload::Tpcc => Control::Explicit,
            Workload::Simple
            | Workload::Read
            | Workload::Write
            | Workload::Commit
            | Workload::SelectOnly
            | Workload::PointSelect
            | Workload::RangeSelect
            | Workload::UpdateIndex
            | Workload::UpdateNonIndex
            | Workload::Insert
            | Workload::Delete
            | Workload::TpccFunctions => Control::None,
        }
    }

    /// Whether its transactions are those of TPC-C.
    pub fn is_tpcc(self) -> bool {
        matches!(self, Workload::Tpcc | Workload::TpccFunctions)
    }

    /// Whether there is nothing between BEGIN and COMMIT.
    pub(crate) fn is_empty(self) -> bool {
        self == Workload::Empty
    }

    /// The data that it reads or writes.
    pub fn dataset(self) -> Option<Dataset> {
        match self {
            Workload::Empty | Workload::Simple => None,
            Workload::Read
            | Workload::Write
            | Workload::Commit
            | Workload::SelectOnly
            | Workload::SimpleUpdate
            | Workload::Tpcb => Some(Dataset::Pgbench),
            Workload::PointSelect
            | Workload::RangeSelect
            | Workload::UpdateIndex
            | Workload::UpdateNonIndex
            | Workload::ReadOnly
            | Workload::ReadWrite
            | Workload::Insert
            | Workload::Delete => Some(Dataset::Oltp),
            Workload::Tpcc | Workload::TpccFunctions => Some(Dataset::Tpcc),
        }
    }
}

/// A variable of a workload's statements.
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    pub(crate) of: Type,
}

/// One step of a workload's transaction; variables by their names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A uniform integer within these bounds.
    Draw(&'static str, i64, i64),
    /// So far above another variable.
    Above(&'static str, &'static str, i32),
    /// So many groups of eleven random digits.
    Digits(&'static str, u16),
    /// A statement, its variables written as in pgbench's scripts.
    Say(String),
}

/// The variables of all workloads.
pub(crate) const VARIABLES: &[Declared] = &[
    Declared {
        name: "aid",
        of: Type::Int4,
    },
    Declared {
        name: "bid",
        of: Type::Int4,
    },
    Declared {
        name: "tid",
        of: Type::Int4,
    },
    Declared {
        name: "delta",
        of: Type::Int4,
    },
    Declared {
        name: "id",
        of: Type::Int4,
    },
    Declared {
        name: "last_id",
        of: Type::Int4,
    },
    Declared {
        name: "k",
        of: Type::Int4,
    },
    Declared {
        name: "c",
        of: Type::Text,
    },
    Declared {
        name: "pad",
        of: Type::Text,
    },
];

/// Rows of a range of sysbench's (its option --range-size).
const RANGE_ROWS: i32 = 100;
/// Selects by key in a transaction of sysbench's (its option --point-selects).
const POINT_SELECTS: usize = 10;
/// Groups of digits of sysbench's columns c and pad.
const C_GROUPS: u16 = 10;
const PAD_GROUPS: u16 = 5;

/// How much data there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Scale of the data, in pgbench's units.
    pub(crate) scale: u32,
    /// sysbench's tables, and the rows of each.
    pub(crate) tables: u32,
    pub(crate) rows: u64,
    /// Whether the keys of pgbench's accounts are bigint.
    pub(crate) has_bigint_keys: bool,
}

impl Workload {
    /// The steps between BEGIN and COMMIT; `table` is the number of sysbench's table.
    pub(crate) fn steps(self, extent: Extent, table: u32) -> Vec<Step> {
        let say = |sql: &str| Step::Say(sql.to_owned());
        let scale = i64::from(extent.scale.max(1));
        let aid = Step::Draw("aid", 1, i64::from(ACCOUNTS_PER_SCALE) * scale);
        let bid = Step::Draw("bid", 1, scale);
        let tid = Step::Draw("tid", 1, i64::from(TELLERS_PER_SCALE) * scale);
        let delta = Step::Draw("delta", -5000, 5000);
        let update_account = say("UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid");
        let select_account = say("SELECT abalance FROM pgbench_accounts WHERE aid = :aid");
        let insert_history = say(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP)",
        );
        let oltp = Oltp::new(extent, table);
        match self {
            // TPC-C has terminals of its own.
            Workload::Empty | Workload::Tpcc | Workload::TpccFunctions => Vec::new(),
            Workload::Simple => vec![Step::Draw("aid", 1, i32::MAX.into()), say("SELECT :aid")],
            Workload::Read | Workload::SelectOnly => vec![aid, select_account],
            Workload::Write => vec![aid, delta, update_account],
            Workload::Commit => vec![aid, bid, tid, delta, insert_history],
            Workload::SimpleUpdate => {
                vec![
                    aid,
                    bid,
                    tid,
                    delta,
                    update_account,
                    select_account,
                    insert_history,
                ]
            }
            Workload::Tpcb => vec![
                aid,
                bid,
                tid,
                delta,
                update_account,
                select_account,
                say("UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid"),
                say("UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid"),
                insert_history,
            ],
            Workload::PointSelect => oltp.point_select(),
            Workload::RangeSelect => oltp.range("c", ""),
            Workload::UpdateIndex => oltp.update_index(),
            Workload::UpdateNonIndex => oltp.update_non_index(),
            Workload::ReadOnly => oltp.reads(),
            Workload::ReadWrite => [
                oltp.reads(),
                oltp.update_index(),
                oltp.update_non_index(),
                oltp.delete(),
                oltp.insert_again(),
            ]
            .concat(),
            Workload::Insert => oltp.insert(),
            Workload::Delete => oltp.delete(),
        }
    }
}

/// sysbench's statements over one table (source: its oltp_common.lua).
struct Oltp {
    rows: i32,
    table: u32,
}

impl Oltp {
    fn new(extent: Extent, table: u32) -> Oltp {
        let rows = i32::try_from(extent.rows.max(1)).unwrap_or(i32::MAX);
        Oltp {
            rows: rows.min(i32::MAX - RANGE_ROWS),
            table,
        }
    }

    fn say(&self, sql: &str) -> Step {
        Step::Say(sql.replace("sbtest", &format!("sbtest{}", self.table)))
    }

    fn id(&self) -> Step {
        Step::Draw("id", 1, self.rows.into())
    }

    fn k(&self) -> Step {
        Step::Draw("k", 1, self.rows.into())
    }

    fn c() -> Step {
        Step::Digits("c", C_GROUPS)
    }

    fn pad() -> Step {
        Step::Digits("pad", PAD_GROUPS)
    }

    fn point_select(&self) -> Vec<Step> {
        vec![self.id(), self.say("SELECT c FROM sbtest WHERE id = :id")]
    }

    fn range(&self, what: &str, order: &str) -> Vec<Step> {
        vec![
            self.id(),
            Step::Above("last_id", "id", RANGE_ROWS - 1),
            self.say(&format!(
                "SELECT {what} FROM sbtest WHERE id BETWEEN :id AND :last_id{order}"
            )),
        ]
    }

    fn reads(&self) -> Vec<Step> {
        let points = (0..POINT_SELECTS).flat_map(|_| self.point_select());
        let ranges = [
            self.range("c", ""),
            self.range("SUM(k)", ""),
            self.range("c", " ORDER BY c"),
            self.range("DISTINCT c", " ORDER BY c"),
        ];
        points.chain(ranges.into_iter().flatten()).collect()
    }

    fn update_index(&self) -> Vec<Step> {
        vec![self.id(), self.say("UPDATE sbtest SET k = k + 1 WHERE id = :id")]
    }

    fn update_non_index(&self) -> Vec<Step> {
        vec![
            Oltp::c(),
            self.id(),
            self.say("UPDATE sbtest SET c = :c WHERE id = :id"),
        ]
    }

    fn delete(&self) -> Vec<Step> {
        vec![self.id(), self.say("DELETE FROM sbtest WHERE id = :id")]
    }

    /// A row under the identifier that was deleted before.
    fn insert_again(&self) -> Vec<Step> {
        vec![
            self.k(),
            Oltp::c(),
            Oltp::pad(),
            self.say("INSERT INTO sbtest (id, k, c, pad) VALUES (:id, :k, :c, :pad)"),
        ]
    }

    fn insert(&self) -> Vec<Step> {
        vec![
            self.k(),
            Oltp::c(),
            Oltp::pad(),
            self.say("INSERT INTO sbtest (k, c, pad) VALUES (:k, :c, :pad)"),
        ]
    }
}

names!(Workload, "workload");

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

names!(Control, "transaction control");
