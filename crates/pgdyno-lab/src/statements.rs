//! What the server counted of each statement in the measured time of a load.

use pgdyno_load::Second;
use pgdyno_server::{Server, ServerError, StatementGrowth, StatementLook};
use pgdyno_store::{GapRecord, StatementRecord};

/// So many are stored with a trial, the dearest first.
const STATEMENTS_MAX: usize = 20;
/// Seconds of a load are whole ones; a warm-up need not be.
const HALF_S: f64 = 0.5;

/// Statements from the end of a load's warm-up to its own.
pub(crate) struct MeasuredStatements {
    look: Result<Option<StatementLook>, ServerError>,
    /// How long the warm-up is; `None` where the load tells when it is over.
    warmup_s: Option<f64>,
    elapsed_s: f64,
    has_begun: bool,
}

impl MeasuredStatements {
    /// Looks for the first time, before the load.
    pub(crate) fn begin(server: &mut Server, warmup_s: Option<f64>) -> MeasuredStatements {
        MeasuredStatements {
            look: StatementLook::new(server),
            warmup_s,
            elapsed_s: 0.0,
            has_begun: warmup_s.is_some_and(|warmup_s| warmup_s < HALF_S),
        }
    }

    /// Looks again when the warm-up is over, one time and no more: a look takes the server a few milliseconds.
    pub(crate) fn second(&mut self, server: &mut Server, second: &Second) {
        if let (true, Ok(Some(look))) = (self.is_due(second), &mut self.look)
            && let Err(error) = look.renew(server)
        {
            self.look = Err(error);
        }
    }

    /// Where nobody knows it before, a warm-up is over when the first measured second is.
    fn is_due(&mut self, second: &Second) -> bool {
        self.elapsed_s += second.length_s;
        let is_over = self
            .warmup_s
            .is_some_and(|warmup_s| self.elapsed_s + HALF_S > warmup_s);
        let is_due = !self.has_begun && (second.measured || is_over);
        self.has_begun |= is_due;
        is_due
    }

    /// Looks for the last time, after the load. That there is no pg_stat_statements is no gap.
    pub(crate) fn end(self, server: &mut Server) -> (Vec<StatementRecord>, Option<GapRecord>) {
        let grown = self.look.and_then(|look| match look {
            // A load that has ended before was not measured.
            Some(look) if self.has_begun => look.grown(server, STATEMENTS_MAX),
            _ => Ok(Vec::new()),
        });
        match grown {
            Ok(grown) => (grown.into_iter().map(record).collect(), None),
            Err(error) => {
                let gap = GapRecord {
                    at_ms: 0,
                    source: "pg_stat_statements, each statement".to_owned(),
                    reason: error.to_string(),
                };
                (Vec::new(), Some(gap))
            }
        }
    }
}

fn record(grown: StatementGrowth) -> StatementRecord {
    StatementRecord {
        query_id: grown.query_id,
        text: grown.text,
        calls: grown.calls,
        total_ms: grown.total_ms,
        rows: grown.rows,
        blocks_hit: grown.blocks_hit,
        blocks_read: grown.blocks_read,
        wal_bytes: grown.wal_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_load::Books;

    #[test]
    fn it_begins_once_and_when_the_warm_up_is_over() {
        let check = |warmup_s: Option<f64>, measured_from: u32, expected: &[u32]| {
            let mut statements = MeasuredStatements {
                look: Ok(None),
                warmup_s,
                elapsed_s: 0.0,
                has_begun: warmup_s.is_some_and(|warmup_s| warmup_s < HALF_S),
            };
            let second = |number: u32| Second {
                number,
                length_s: 1.0,
                measured: number >= measured_from,
                books: Books::new(false),
                clients: 1,
            };
            let looks: Vec<u32> = (1..=9)
                .filter(|number| statements.is_due(&second(*number)))
                .collect();
            assert_eq!(looks, expected, "{warmup_s:?}");
        };
        check(Some(0.0), 1, &[]);
        check(Some(3.0), 4, &[3]);
        check(Some(2.4), 4, &[2]);
        check(None, 6, &[6]);
        check(None, 99, &[]);
    }
}
