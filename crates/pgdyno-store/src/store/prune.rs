//! Retention: what a rule would remove, its removal, and the space given back.

use super::{Filter, Life, Listed, Store, StoreError, running};
use rusqlite::{Connection, TransactionBehavior};

/// Which experiments go: those that all that is given holds for. Without anything, none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneRule {
    /// The newest so many of those that the rest holds for stay.
    pub keep: Option<usize>,
    /// Begun before then.
    pub before_unix_ms: Option<u64>,
    /// What became of them.
    pub life: Option<Life>,
    /// Tags that keep an experiment; any tag does where none is given.
    pub keeping_tags: Vec<String>,
}

/// An experiment that a rule removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removable {
    /// Which.
    pub experiment: Listed,
    /// All its trials.
    pub trials: u64,
    /// What it takes: its records and series, without SQLite's own.
    pub bytes: u64,
}

/// What a rule would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// What goes, the newest first.
    pub removed: Vec<Removable>,
    /// What would go if it had no tag.
    pub kept_by_tag: Vec<Listed>,
    /// What would go if no process ran it, or if that could be told.
    pub kept_running: Vec<Listed>,
}

const TRIALS_AND_BYTES: &str = "
SELECT (SELECT count(*) FROM trial WHERE experiment_id = ?1),
       (SELECT length(CAST(record AS BLOB)) + length(CAST(put_back AS BLOB)) FROM experiment WHERE id = ?1)
     + (SELECT coalesce(sum(length(CAST(record AS BLOB))), 0) FROM trial WHERE experiment_id = ?1)
     + (SELECT coalesce(sum(length(points)), 0) FROM series s JOIN trial t ON t.id = s.trial_id
        WHERE t.experiment_id = ?1)";

impl Store {
    /// What a rule would remove; nothing is.
    pub fn plan_prune(&self, rule: &PruneRule) -> Result<PrunePlan, StoreError> {
        let mut plan = PrunePlan::default();
        if rule.keep.is_none() && rule.before_unix_ms.is_none() && rule.life.is_none() {
            return Ok(plan);
        }
        let mut meant: Vec<Listed> = self
            .find(&Filter {
                life: rule.life,
                ..Filter::default()
            })?
            .into_iter()
            .collect();
        // Numbers need not be in the order of time: some may have been imported.
        meant.sort_by_key(|listed| std::cmp::Reverse((listed.started_unix_ms, listed.id)));
        let old = |listed: &Listed| {
            rule.before_unix_ms
                .is_none_or(|before| listed.started_unix_ms < before)
        };
        for listed in meant.into_iter().skip(rule.keep.unwrap_or(0)).filter(old) {
            match listed.life {
                Life::Running => plan.kept_running.push(listed),
                Life::RunningOrKilled if rule.life.is_none() || running::is_run(&self.path, listed.id) => {
                    plan.kept_running.push(listed)
                }
                _ if rule.keeps(&listed.tags) => plan.kept_by_tag.push(listed),
                _ => {
                    let (trials, bytes) = self.takes(listed.id)?;
                    plan.removed.push(Removable {
                        experiment: listed,
                        trials,
                        bytes,
                    });
                }
            }
        }
        Ok(plan)
    }

    /// Removes what the rule means now, all or nothing, and says what that was. [`Store::reclaim`] gives its space back.
    pub fn prune(&mut self, rule: &PruneRule) -> Result<PrunePlan, StoreError> {
        let plan = self.plan_prune(rule)?;
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for removable in &plan.removed {
                transaction.execute("DELETE FROM experiment WHERE id = ?1", [removable.experiment.id])?;
            }
            transaction.commit()
        };
        remove(&mut self.connection).map_err(|e| self.failed("written", e))?;
        for removable in &plan.removed {
            running::clear(&self.path, removable.experiment.id);
        }
        Ok(plan)
    }

    /// Gives the space of what was removed back to the file system: SQLite writes the file anew. Bytes of the file before
    /// and after.
    pub fn reclaim(&mut self) -> Result<(u64, u64), StoreError> {
        let before = self.file_bytes()?;
        self.connection
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(|e| self.failed("written", e))?;
        Ok((before, self.file_bytes()?))
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        let pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        self.connection
            .query_row(pages, [], |row| row.get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(|e| self.failed("read", e))
    }

    fn takes(&self, id: i64) -> Result<(u64, u64), StoreError> {
        self.connection
            .query_row(TRIALS_AND_BYTES, [id], |row| {
                Ok((
                    row.get::<_, i64>(0)?.unsigned_abs(),
                    row.get::<_, i64>(1)?.unsigned_abs(),
                ))
            })
            .map_err(|e| self.failed("read", e))
    }
}

impl PruneRule {
    fn keeps(&self, tags: &[String]) -> bool {
        match self.keeping_tags.is_empty() {
            true => !tags.is_empty(),
            false => tags.iter().any(|tag| self.keeping_tags.contains(tag)),
        }
    }
}
