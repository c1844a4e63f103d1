//! Dead rows that cannot be removed during a load: who keeps them, and where they pile up. By rules
//! fixed beforehand.

use pgdyno_server::{Holder, PiledUp, Server, ServerError, holders, next_transaction, piled_up};

/// Loads of fewer transactions that write leave too few dead rows to matter.
const WRITES_MIN: u64 = 1_000;
/// A table of fewer bytes is read from few pages, however many dead rows it has: pgbench's branches
/// and tellers are updated by each transaction, and settle at 256 to 320 kB where nothing holds
/// their rows.
const PILE_BYTES_MIN: u64 = 512 << 10;
/// Holders that are named.
const NAMED_MAX: usize = 2;

/// What was there before a load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    next_transaction: u64,
    piled_up: Vec<PiledUp>,
}

impl Before {
    pub(crate) fn look(server: &mut Server) -> Result<Before, ServerError> {
        Ok(Before {
            next_transaction: next_transaction(server)?,
            piled_up: piled_up(server)?,
        })
    }

    /// Warnings about the load that ran since; a query that fails is one of them.
    pub(crate) fn warnings(&self, server: &mut Server) -> Vec<String> {
        let mut after = || Ok((next_transaction(server)?, holders(server)?, piled_up(server)?));
        match after() {
            Ok((next, holders, tables)) => {
                let began = next.saturating_sub(self.next_transaction);
                let mut found: Vec<String> = held_back(began, &holders).into_iter().collect();
                found.extend(self.grown(&tables));
                found
            }
            Err::<_, ServerError>(error) => vec![format!("dead rows are not known: {error}")],
        }
    }

    /// Tables of size whose dead rows outnumber the live ones, and became more during the load.
    fn grown(&self, now: &[PiledUp]) -> Vec<String> {
        let before = |table: &str| {
            let known = self.piled_up.iter().find(|known| known.table == table);
            known.map_or(0, |known| known.dead_rows)
        };
        now.iter()
            .filter(|now| now.bytes >= PILE_BYTES_MIN && now.dead_rows > before(&now.table))
            .map(|now| {
                format!(
                    "dead rows pile up in {}: {} beside {} live, {} kB",
                    now.table,
                    now.dead_rows,
                    now.live_rows,
                    now.bytes.div_ceil(1024)
                )
            })
            .collect()
    }
}

/// Whoever has kept the rows of at least half of the load's writing transactions.
fn held_back(began: u64, holders: &[Holder]) -> Option<String> {
    if began < WRITES_MIN {
        return None;
    }
    let long: Vec<String> = holders
        .iter()
        .filter(|holder| holder.age >= began / 2)
        .take(NAMED_MAX)
        .map(|holder| format!("{}, for {} transactions", holder.who, holder.age))
        .collect();
    (!long.is_empty()).then(|| {
        format!(
            "dead rows could not be removed: the horizon is held back by {}",
            long.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_of_half_the_load_is_named_and_a_short_one_is_not() {
        let holder = |who: &str, age| Holder {
            who: who.to_owned(),
            age,
        };
        let holders = [
            holder("session 7 (idle in transaction, psql)", 9_000),
            holder("slot s", 4_999),
        ];
        let text = held_back(10_000, &holders).unwrap_or_default();
        assert!(
            text.contains("session 7 (idle in transaction, psql), for 9000 transactions"),
            "{text}"
        );
        assert!(!text.contains("slot s"), "{text}");
        assert_eq!(held_back(10_000, &holders[1..]), None);
        assert_eq!(held_back(999, &holders), None);
    }

    #[test]
    fn dead_rows_that_grow_are_reported_and_those_that_were_there_are_not() {
        let table = |table: &str, dead_rows| PiledUp {
            table: table.to_owned(),
            dead_rows,
            live_rows: 1,
            bytes: 600 << 10,
        };
        let small = PiledUp {
            bytes: 500 << 10,
            ..table("small", 9_000)
        };
        let before = Before {
            next_transaction: 0,
            piled_up: vec![table("old", 5_000), table("grows", 2_000)],
        };
        let now = [
            table("old", 5_000),
            table("grows", 7_000),
            table("new", 1_000),
            small,
        ];
        assert_eq!(
            before.grown(&now),
            [
                "dead rows pile up in grows: 7000 beside 1 live, 600 kB",
                "dead rows pile up in new: 1000 beside 1 live, 600 kB"
            ]
        );
    }
}
