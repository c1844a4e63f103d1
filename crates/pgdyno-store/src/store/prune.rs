//! Retention: what a rule would remove, its removal, and the space returned.

use super::{Filter, Life, Listed, Store, StoreError, Value};
use std::collections::BTreeMap;

/// Which experiments go: those that all that is given holds for. Without anything, none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneRule {
    /// The newest so many of those that the rest holds for stay.
    pub keep: Option<usize>,
    /// Begin before which an experiment is removed, milliseconds since 1970; `None` for any.
    pub before_unix_ms: Option<u64>,
    /// State in which an experiment is removed; `None` for any.
    pub life: Option<Life>,
    /// Tags that keep an experiment; any tag does where none is given.
    pub keeping_tags: Vec<String>,
}

/// An experiment that a rule removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removable {
    /// The experiment as lists show it.
    pub experiment: Listed,
    /// Number of its trials, failed ones included.
    pub trials: u64,
    /// Bytes of its records and series, without what SQLite adds.
    pub bytes: u64,
}

/// The experiments that a rule removes and keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// Experiments to remove, the newest first.
    pub removed: Vec<Removable>,
    /// Experiments that are kept for one of their tags.
    pub kept_by_tag: Vec<Listed>,
    /// Experiments that are kept because a process runs them, or may.
    pub kept_running: Vec<Listed>,
}

/// So many experiments are asked for at once: a round trip each would take longer than a statement.
const AT_ONCE: usize = 500;

const TRIALS_AND_BYTES: &str = "
SELECT e.id, (SELECT count(*) FROM trial WHERE experiment_id = e.id),
       octet_length(e.record) + octet_length(e.put_back)
     + (SELECT coalesce(sum(octet_length(record)), 0) FROM trial WHERE experiment_id = e.id)
     + (SELECT coalesce(sum(octet_length(points)), 0) FROM series s JOIN trial t ON t.id = s.trial_id
        WHERE t.experiment_id = e.id)
FROM experiment e WHERE e.id IN ";

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
                _ => plan.removed.push(Removable {
                    experiment: listed,
                    trials: 0,
                    bytes: 0,
                }),
            }
        }
        for removable in plan.removed.chunks_mut(AT_ONCE) {
            self.weigh(removable)?;
        }
        Ok(plan)
    }

    /// Removes what the rule means now, all or nothing, and says what that was. What a process has
    /// begun to run since it was checked stays. [`Store::reclaim`] returns the space.
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

    /// Gives the space of what was removed back to the file system: SQLite writes the file again.
    /// Bytes of the file before and after; `None` in PostgreSQL, whose autovacuum makes the space
    /// usable again.
    pub fn reclaim(&mut self) -> Result<Option<(u64, u64)>, StoreError> {
        self.database().reclaim()
    }

    /// Fills in the trials and bytes of experiments.
    fn weigh(&self, experiments: &mut [Removable]) -> Result<(), StoreError> {
        let ids: Vec<Value> = experiments.iter().map(|r| r.experiment.id.into()).collect();
        let places: Vec<String> = (1..=ids.len()).map(|at| format!("${at}")).collect();
        let sql = format!("{TRIALS_AND_BYTES} ({})", places.join(", "));
        let found = self.database().rows(&sql, &ids, |row| {
            Ok((row.int(0)?, (row.count(1)?, row.count(2)?)))
        })?;
        let found: BTreeMap<i64, (u64, u64)> = found.into_iter().collect();
        for removable in experiments {
            let weight = found.get(&removable.experiment.id);
            (removable.trials, removable.bytes) = weight.copied().unwrap_or_default();
        }
        Ok(())
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
