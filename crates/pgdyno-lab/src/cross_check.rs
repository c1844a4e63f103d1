//! What the clients of a load have committed against what the server has counted.

use pgdyno_engine::{LoadResult, ServerShare};
use pgdyno_record::CrossCheck;
use pgdyno_server::series::OwnCommits;
use pgdyno_server::{COMMITS_PER_WORKER, Counters};

/// Transactions of a run of autovacuum over one table, at most.
const PER_AUTOVACUUM_RUN: u64 = 8;
/// Transactions of background workers per second, at most: the launcher looks at each database once
/// a naptime, and a worker that finds nothing to do still commits a few.
const BACKGROUND_PER_S: u64 = 1;
const BACKGROUND_LEAST: u64 = 10;

/// A session's start and its preparing of statements are transactions of the server too.
const PER_SESSION: u64 = 2;
/// So are the questions of the look at the data before the load.
const DATA_CHECK: u64 = 8;
/// A change of settings while the load runs asks the server in sessions of its own, once for each
/// setting and a few times for all.
const PER_CHANGE: u64 = 20;

/// Both sides count whole transactions from the first to the last. The server's side may be larger
/// by what was in flight when the load ended, by the sessions' own start, by what this connection
/// asked meanwhile, and by autovacuum and its like; never smaller. `share` is what of the load the
/// server had.
pub(crate) fn cross_check(
    before: &Counters,
    after: &Counters,
    (load, share): (&LoadResult, ServerShare),
    elapsed_s: f64,
    (by_pooler, changes): (u64, u32),
    recorder: OwnCommits,
) -> CrossCheck {
    // Where each transaction has a session, the sessions' own transactions are as many, and known.
    let own_sessions = load.connections.is_some();
    let sessions = u64::from(share.sessions);
    let client = match own_sessions {
        true => share.server_commits + sessions * load.commits_per_session,
        false => share.server_commits,
    };
    // Behind a pooler, the recorder's commits too are reported later.
    let (recorded, perhaps) = match by_pooler {
        0 => (recorder.sure, recorder.unsure),
        _ => (0, recorder.sure + recorder.unsure),
    };
    let counted = after
        .committed
        .saturating_sub(before.committed)
        .saturating_sub(recorded);
    // The server counts what parallel workers commit as well; how many there were is known by
    // another of its counters.
    let workers = after.workers_since(before);
    let by_workers = (counted.saturating_sub(client) / COMMITS_PER_WORKER).clamp(workers.least, workers.most)
        * COMMITS_PER_WORKER;
    let server = counted.saturating_sub(by_workers);
    let own = after.own_statements.saturating_sub(before.own_statements);
    let runs = after.autovacuum_runs.saturating_sub(before.autovacuum_runs);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a load"
    )]
    let background = BACKGROUND_LEAST + elapsed_s as u64 * BACKGROUND_PER_S + runs * PER_AUTOVACUUM_RUN;
    let sessions = match own_sessions {
        true => DATA_CHECK,
        false => sessions * PER_SESSION + DATA_CHECK,
    };
    let unfinished = share.in_flight_at_end * load.commits_per_transaction_max;
    let by_changes = u64::from(changes) * PER_CHANGE;
    let allowed_difference = unfinished + sessions + own + background + by_pooler + perhaps + by_changes;
    CrossCheck {
        client,
        server,
        by_workers,
        allowed_difference,
        agrees: server >= client && server - client <= allowed_difference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load of a thousand commits by one session that asks nothing else.
    #[test]
    fn counts_agree_within_what_the_server_commits_beside_the_load() {
        let before = Counters {
            committed: 50,
            rolled_back: 0,
            wal_bytes: 0,
            checkpoints: 0,
            autovacuum_runs: 0,
            started: "now".to_owned(),
            own_statements: 0,
            starts: None,
        };
        let mut load = crate::sim::measurement(100.0, 0.0, 10.0).load;
        load.whole.server_commits = 1_000;
        let check = |committed| {
            let after = Counters {
                committed,
                ..before.clone()
            };
            let of_load = (&load, load.share(0));
            cross_check(&before, &after, of_load, 10.0, (0, 0), OwnCommits::default())
        };
        let allowed = check(1_050).allowed_difference;
        assert!(allowed < 100, "{allowed}");
        for (committed, agrees) in [
            (1_049, false),
            (1_050, true),
            (1_050 + allowed, true),
            (1_051 + allowed, false),
        ] {
            assert_eq!(check(committed).agrees, agrees, "{committed}");
        }
    }
}
