//! pgbench's schema: tables and columns are those of `pgbench -i` (PostgreSQL documentation, pgbench, "Initialization
//! Options"), so that pgbench itself can run against the same data.

use super::{DataError, DataPlan, DataProgress, connect};
use crate::endpoint::Endpoint;
use crate::workload::{ACCOUNTS_PER_SCALE, TELLERS_PER_SCALE};
use postgres::Client;
use std::io::Write;

/// Rows are handed to COPY in pieces of about this size.
const PIECE_BYTES: usize = 256 * 1024;

pub(super) const DROP: &str =
    "DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers";
const TABLES: &str = "
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor = 100);
CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
";

/// The steps after the rows, each its own statement (VACUUM takes no transaction).
const FINISH: [(&str, &str); 5] = [
    (
        "making the key of pgbench_branches",
        "ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid)",
    ),
    (
        "making the key of pgbench_tellers",
        "ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid)",
    ),
    (
        "making the key of pgbench_accounts",
        "ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
    ),
    (
        "vacuum and analyze",
        "VACUUM (ANALYZE) pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
    ),
    ("checkpoint", "CHECKPOINT"),
];

/// Creates the data afresh at `scale` (100,000 accounts and about 15 MB each). `on_progress` answers whether to go
/// on; tables and rows come in one transaction, so that a stop or an error leaves what was there before.
pub(super) fn create(
    endpoint: &Endpoint,
    plan: &DataPlan,
    on_progress: &mut dyn FnMut(DataProgress) -> bool,
) -> Result<(), DataError> {
    let mut client = connect(endpoint)?;
    // A connection string may carry limits that are meant for transactions, not for this.
    client
        .batch_execute("SET statement_timeout = 0")
        .map_err(|source| DataError::Step {
            step: "preparing the session",
            source,
        })?;
    let scale = plan.scale.cast_signed();
    let counts = [
        ("pgbench_branches", scale),
        ("pgbench_tellers", TELLERS_PER_SCALE * scale),
        ("pgbench_accounts", ACCOUNTS_PER_SCALE * scale),
    ];
    let mut progress = DataProgress {
        step: "rows",
        rows: 0,
        rows_total: counts.iter().map(|&(_, n)| u64::from(n.unsigned_abs())).sum(),
    };
    let begin = |source| DataError::Step {
        step: "creating the tables",
        source,
    };
    let mut transaction = client.transaction().map_err(begin)?;
    transaction
        .batch_execute(DROP)
        .and_then(|()| transaction.batch_execute(TABLES))
        .map_err(begin)?;
    for (table, rows) in counts {
        let filling = |source| DataError::Step {
            step: "filling the tables",
            source,
        };
        let per_branch = rows / scale;
        let sql = format!("COPY {table} FROM STDIN WITH (FREEZE)");
        let mut writer = transaction.copy_in(sql.as_str()).map_err(filling)?;
        let mut piece = Vec::with_capacity(PIECE_BYTES + 64);
        for row in 1..=rows {
            append_row(&mut piece, table, row, (row - 1) / per_branch + 1);
            progress.rows += 1;
            if piece.len() >= PIECE_BYTES || row == rows {
                writer
                    .write_all(&piece)
                    .map_err(|source| DataError::Copy { table, source })?;
                piece.clear();
                if !on_progress(progress) {
                    return Err(DataError::Stopped);
                }
            }
        }
        writer.finish().map_err(filling)?;
    }
    transaction.commit().map_err(|source| DataError::Step {
        step: "committing the rows",
        source,
    })?;
    let finished = finish(&mut client, progress, on_progress);
    if finished.is_err() {
        // Rows without keys are no data: better none than half.
        let _ = client.batch_execute(DROP);
    }
    finished
}

fn finish(
    client: &mut Client,
    progress: DataProgress,
    on_progress: &mut dyn FnMut(DataProgress) -> bool,
) -> Result<(), DataError> {
    for (step, sql) in FINISH {
        if !on_progress(DataProgress { step, ..progress }) {
            return Err(DataError::Stopped);
        }
        client
            .batch_execute(sql)
            .map_err(|source| DataError::Step { step, source })?;
    }
    Ok(())
}

/// One line of COPY's text format. Branches hold no number of a branch besides their own.
fn append_row(piece: &mut Vec<u8>, table: &str, row: i32, branch: i32) {
    append_number(piece, row);
    if table != "pgbench_branches" {
        piece.push(b'\t');
        append_number(piece, branch);
    }
    // A NULL filler for the small tables and a blank one for the accounts, as pgbench does.
    let rest: &[u8] = if table == "pgbench_accounts" {
        b"\t0\t\n"
    } else {
        b"\t0\t\\N\n"
    };
    piece.extend_from_slice(rest);
}

fn append_number(piece: &mut Vec<u8>, mut number: i32) {
    let start = piece.len();
    loop {
        piece.push(b'0' + u8::try_from(number % 10).unwrap_or(0));
        number /= 10;
        if number == 0 {
            break;
        }
    }
    piece[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copys_text_format() {
        let line = |table, row, branch| {
            let mut piece = Vec::new();
            append_row(&mut piece, table, row, branch);
            String::from_utf8(piece).unwrap()
        };
        assert_eq!(line("pgbench_branches", 1, 1), "1\t0\t\\N\n");
        assert_eq!(line("pgbench_tellers", 20, 2), "20\t2\t0\t\\N\n");
        assert_eq!(
            line("pgbench_accounts", 2_147_400_000, 21_474),
            "2147400000\t21474\t0\t\n"
        );
    }
}
