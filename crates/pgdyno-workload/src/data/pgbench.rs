//! pgbench's schema: tables and columns are those of `pgbench -i` (PostgreSQL documentation,
//! pgbench, "Initialization Options"), so that pgbench itself can run against the same data.

use super::jobs::{Job, KEYS, ROWS, Work};
use super::rows::{Constant, Fields, Filling};
use super::verify::{Question, has_indexes};
use super::{Condition, DataError, DataPlan, Recipe};
use crate::scale::{ACCOUNTS_PER_SCALE, TELLERS_PER_SCALE};
use crate::session::Session;

pub(super) const NAMES: [&str; 4] = [
    "pgbench_accounts",
    "pgbench_branches",
    "pgbench_history",
    "pgbench_tellers",
];
/// The table that carries the mark of unfinished data, and the one that may be partitioned.
pub(super) const MARKED: &str = "pgbench_accounts";

/// KEY is the type of the keys of accounts.
const TABLES: &str = "
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor = 100);
CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_history (tid int, bid int, aid KEY, delta int, mtime timestamp, filler char(22));
CREATE TABLE pgbench_accounts (aid KEY NOT NULL, bid int, abalance int, filler char(84)) ";

/// The accounts go over one connection: several, and a VACUUM for what they then may not freeze,
/// took longer.
pub(super) fn recipe(plan: &DataPlan) -> Recipe {
    let (scale, has_bigint_keys) = (plan.scale, plan.has_bigint_keys());
    let tellers = TELLERS_PER_SCALE * scale;
    let accounts = u64::from(ACCOUNTS_PER_SCALE) * u64::from(scale);
    let jobs = vec![
        Job {
            what: "filling pgbench_accounts".into(),
            step: ROWS,
            after: Vec::new(),
            work: Work::Rows(Filling {
                table: "pgbench_accounts".into(),
                whole: plan.partitions.is_none(),
                constants: vec![("abalance", Constant::Int(0)), ("filler", Constant::Text(""))],
                columns: "aid, bid",
                send: Box::new(move |sender| {
                    let mut aid = 0;
                    (1..=scale.cast_signed()).try_for_each(|bid| {
                        (0..ACCOUNTS_PER_SCALE).try_for_each(|_| {
                            aid += 1;
                            sender.row(|row| {
                                match i32::try_from(aid) {
                                    Ok(aid) if !has_bigint_keys => row.int(aid),
                                    _ => row.bigint(aid),
                                }
                                row.int(bid);
                            })
                        })
                    })
                }),
            }),
        },
        Job {
            what: "filling pgbench_branches and pgbench_tellers".into(),
            step: KEYS,
            after: Vec::new(),
            work: Work::Sql(vec![
                format!("INSERT INTO pgbench_branches SELECT i, 0, NULL FROM generate_series(1, {scale}) i"),
                format!(
                    "INSERT INTO pgbench_tellers
                     SELECT i, (i - 1) / {TELLERS_PER_SCALE} + 1, 0, NULL FROM generate_series(1, {tellers}) i"
                ),
                "ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid)".into(),
                "ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)".into(),
                "VACUUM (ANALYZE) pgbench_branches, pgbench_tellers, pgbench_history".into(),
            ]),
        },
        Job {
            what: "making the key of pgbench_accounts".into(),
            step: KEYS,
            after: vec![0],
            work: Work::Sql(vec![
                "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)".into(),
                "VACUUM (ANALYZE) pgbench_accounts".into(),
            ]),
        },
    ];
    let end = match plan.partitions {
        None => "WITH (fillfactor = 100);".to_owned(),
        Some(partitions) => partitions.create(MARKED, "aid", accounts.cast_signed()),
    };
    let key = if has_bigint_keys { "bigint" } else { "int" };
    Recipe {
        tables: format!("{}{end}", TABLES.replace("KEY", key)),
        jobs,
        rows_total: accounts,
        sorts: 1,
        finish: Vec::new(),
    }
}

/// What holds whatever ran. Sums of accounts and of the history do not: some workloads change one
/// of them alone.
pub(super) fn check(client: &mut Session, scale: u32) -> Result<Vec<Condition>, DataError> {
    let scale = i64::from(scale);
    let (accounts, tellers) = (i64::from(ACCOUNTS_PER_SCALE), i64::from(TELLERS_PER_SCALE));
    let mut conditions = Vec::new();
    for (table, rows, key, of_branch) in [
        ("pgbench_branches", scale, "bid", 1),
        ("pgbench_tellers", tellers * scale, "tid", tellers),
        ("pgbench_accounts", accounts * scale, "aid", accounts),
    ] {
        conditions.push(Question::new(client).holds(
            &format!("{table} has its rows, each of its branch"),
            &format!(
                "SELECT count(*) = {rows} AND count(*) FILTER (WHERE {key} BETWEEN 1 AND {rows}
                   AND bid = ({key} - 1) / {of_branch} + 1) = {rows},
                 format('%s of {rows} rows, %s in place', count(*), count(*) FILTER (WHERE {key} BETWEEN 1 AND {rows}
                   AND bid = ({key} - 1) / {of_branch} + 1))
                 FROM {table}"
            ),
        )?);
    }
    conditions.push(Question::new(client).holds(
        "sum(tbalance) = sum(bbalance)",
        "SELECT t = b, format('%s and %s', t, b) FROM (SELECT sum(tbalance) AS t FROM pgbench_tellers) AS tellers,
           (SELECT sum(bbalance) AS b FROM pgbench_branches) AS branches",
    )?);
    conditions.push(Question::new(client).holds(
        "pgbench_history refers only to existing rows",
        &format!(
            "SELECT count(*) = 0, format('%s rows with an unknown account, teller or branch', count(*))
             FROM pgbench_history WHERE (aid BETWEEN 1 AND {} AND tid BETWEEN 1 AND {} AND bid BETWEEN 1 AND {scale})
               IS NOT TRUE",
            accounts * scale,
            tellers * scale
        ),
    )?);
    let keys = [
        "pgbench_accounts_pkey",
        "pgbench_branches_pkey",
        "pgbench_tellers_pkey",
    ];
    conditions.push(has_indexes(client, &keys.map(str::to_owned))?);
    Ok(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;

    #[test]
    fn large_data_has_bigint_keys() {
        let check = |scale, expected: bool| {
            let recipe = recipe(&DataPlan::new(Dataset::Pgbench, scale));
            assert_eq!(recipe.tables.contains("aid bigint NOT NULL"), expected);
            assert_eq!(recipe.tables.contains("aid bigint, delta"), expected);
            assert!(!recipe.tables.contains("KEY"));
            assert_eq!(recipe.rows_total, u64::from(scale) * 100_000);
        };
        check(19_999, false);
        check(20_000, true);
        check(2_000_000, true);
    }
}
