//! Retention: what a rule would remove, its removal, and the space given back.

use super::{Filter, Life, Listed, Store, StoreError};

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
SELECT (SELECT count(*) FROM trial WHERE experiment_id = $1),
       (SELECT octet_length(record) + octet_length(put_back) FROM experiment WHERE id = $1)
     + (SELECT coalesce(sum(octet_length(record)), 0) FROM trial WHERE experiment_id = $1)
     + (SELECT coalesce(sum(octet_length(points)), 0) FROM series s JOIN trial t ON t.id = s.trial_id
        WHERE t.experiment_id = $1)";

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
                Life::RunningOrKilled if rule.life.is_none() || self.database().is_run(listed.id) => {
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

    /// Removes what the rule means now, all or nothing, and says what that was. What a process has begun to run since it was
    /// looked at stays. [`Store::reclaim`] gives the space back.
    pub fn prune(&mut self, rule: &PruneRule) -> Result<PrunePlan, StoreError> {
        let mut plan = self.plan_prune(rule)?;
        let database = self.database();
        let (removed, kept) = database.transaction(|_| {
            let (mut removed, mut kept) = (Vec::new(), Vec::new());
            for removable in &plan.removed {
                let id = removable.experiment.id;
                if !database.hold(id)? {
                    kept.push(removable.experiment.clone());
                    continue;
                }
                let deleted = database.execute("DELETE FROM experiment WHERE id = $1", &[id.into()]);
                // Whoever takes it from here on waits for the row, and finds it gone.
                database.let_go(id);
                deleted?;
                removed.push(removable.clone());
            }
            Ok((removed, kept))
        })?;
        plan.removed = removed;
        plan.kept_running.extend(kept);
        for removable in &plan.removed {
            database.clear(removable.experiment.id);
        }
        Ok(plan)
    }

    /// Gives the space of what was removed back to the file system: SQLite writes the file anew. Bytes of the file before
    /// and after; `None` in PostgreSQL, whose autovacuum makes the space usable again.
    pub fn reclaim(&mut self) -> Result<Option<(u64, u64)>, StoreError> {
        self.database().reclaim()
    }

    fn takes(&self, id: i64) -> Result<(u64, u64), StoreError> {
        let found = self.database().first(TRIALS_AND_BYTES, &[id.into()], |row| {
            Ok((row.count(0)?, row.maybe_int(1)?.unwrap_or(0).unsigned_abs()))
        })?;
        Ok(found.unwrap_or_default())
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
