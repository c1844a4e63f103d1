//! Experiments as a list: found by tag, name, status, time or text, without reading what they hold.

use super::{Row, Store, StoreError};
use pgdyno_record::{ExperimentStatus, TrialStatus};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The state of an experiment, from its record and its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// A process still runs it and holds its lock.
    Running,
    /// The process that ran it has ended without having stopped it in order.
    Killed,
    /// Begun by an earlier pgdyno that kept no lock, so it is either of these.
    RunningOrKilled,
    /// All its trials are done.
    Finished,
    /// Stopped in order before that.
    Interrupted,
}

impl Life {
    /// Every state, once, for parsing and counting.
    pub const ALL: [Life; 5] = [
        Life::Running,
        Life::Killed,
        Life::RunningOrKilled,
        Life::Finished,
        Life::Interrupted,
    ];

    /// Word for tables and messages: "running or killed".
    pub fn word(self) -> &'static str {
        match self {
            Life::Running => "running",
            Life::Killed => "killed",
            Life::RunningOrKilled => "running or killed",
            Life::Finished => "finished",
            Life::Interrupted => "interrupted",
        }
    }

    /// Whether it is meant where `asked` is: one that is unknown is meant by both that it may be.
    pub fn is(self, asked: Life) -> bool {
        self == asked || self == Life::RunningOrKilled && matches!(asked, Life::Running | Life::Killed)
    }
}

/// Conditions on experiments, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Tags that it has, all of them; empty for any.
    pub tags: Vec<String>,
    /// A part of the name, in either case.
    pub name: Option<String>,
    /// State that it is in; `None` for any.
    pub life: Option<Life>,
    /// Earliest begin, milliseconds since 1970; `None` for any.
    pub since_unix_ms: Option<u64>,
    /// A part of question, name, target or a note, in either case.
    pub search: Option<String>,
}

/// An experiment of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Number in this store, from 1.
    pub id: i64,
    /// Name as stored with its record; not unique.
    pub name: String,
    /// The question; empty where its record cannot be read.
    pub question: String,
    /// Name of the target; empty where its record cannot be read.
    pub target: String,
    /// Status as stored: of one whose process was killed it is still `Running`.
    pub status: ExperimentStatus,
    /// Status together with whether a process still runs it.
    pub life: Life,
    /// Time of its begin, since 1970.
    pub started_unix_ms: u64,
    /// Time of its end, since 1970; `None` while it runs, and where it was killed.
    pub finished_unix_ms: Option<u64>,
    /// Trials that finished and count.
    pub trials_finished: u64,
    /// Trials that failed or whose figures do not hold.
    pub trials_failed: u64,
    /// Tags in alphabetical order.
    pub tags: Vec<String>,
    /// Number of its notes.
    pub notes: u64,
}

/// The part of a record that a list shows; the rest is not made into anything.
#[derive(Default, Deserialize)]
struct Brief {
    question: String,
    target: String,
}

/// What replaces the record is up to the database: whole records over a network would be megabytes
/// for a list.
fn list_sql(brief: &str) -> String {
    format!(
        "SELECT e.id, e.name, e.status, e.started_unix_ms, e.finished_unix_ms, {brief}, e.identity IS NOT NULL, \
         (SELECT count(*) FROM trial t WHERE t.experiment_id = e.id AND t.status = $1), \
         (SELECT string_agg(word, ' ' ORDER BY word) FROM tag WHERE experiment_id = e.id), \
         (SELECT count(*) FROM note n WHERE n.experiment_id = e.id), \
         (SELECT count(*) FROM trial t WHERE t.experiment_id = e.id) \
         FROM experiment e WHERE e.started_unix_ms >= $2 ORDER BY e.id DESC"
    )
}

impl Store {
    /// The experiments that the filter lets through, the newest first.
    pub fn find(&self, filter: &Filter) -> Result<Vec<Listed>, StoreError> {
        let finished = self.encode("a status", &TrialStatus::Finished)?;
        let since = i64::try_from(filter.since_unix_ms.unwrap_or(0)).unwrap_or(i64::MAX);
        let sql = list_sql(self.database().brief());
        let values = [finished.into(), since.into()];
        let noted = self.noted(filter.search.as_deref())?;
        let all = |sql: &str| self.database().rows(sql, &values, |row| self.listed(row));
        // A record that is not JSON any more stops a server that is to take it apart: SQLSTATEs of
        // class 22.
        let mut all = match all(&sql) {
            Err(StoreError::Postgres {
                sqlstate: Some(code), ..
            }) if code.starts_with("22") => all(&list_sql("e.record"))?,
            all => all?,
        };
        self.see_lives(&mut all);
        let killed = |(listed, _): &&(Listed, bool)| listed.life == Life::Killed;
        let killed: BTreeSet<i64> = all.iter().filter(killed).map(|(listed, ..)| listed.id).collect();
        // The statement is over: only now is read what was written since it began.
        if !killed.is_subset(&self.running(&killed)?) {
            return self.find(filter);
        }
        let all = all.into_iter().map(|(listed, _)| listed);
        Ok(all.filter(|listed| fits(filter, listed, &noted)).collect())
    }

    /// Sets the state of all, with one look for all those that run.
    fn see_lives(&self, all: &mut [(Listed, bool)]) {
        let is_running = |listed: &Listed| listed.status == ExperimentStatus::Running;
        let running = all.iter().filter(|(listed, ..)| is_running(listed));
        let running: Vec<i64> = running.map(|(listed, ..)| listed.id).collect();
        let looks = self.database().look_all(&running);
        let looks: BTreeMap<i64, Option<bool>> = running.into_iter().zip(looks).collect();
        for (listed, identified) in all {
            let look = looks.get(&listed.id).copied().flatten();
            listed.life = life(listed.status, *identified, look);
        }
    }

    /// Of these experiments those that are stored as running.
    fn running(&self, of: &BTreeSet<i64>) -> Result<BTreeSet<i64>, StoreError> {
        if of.is_empty() {
            return Ok(BTreeSet::new());
        }
        let running = self.encode("a status", &ExperimentStatus::Running)?;
        let sql = "SELECT id FROM experiment WHERE status = $1";
        let ids = self.database().rows(sql, &[running.into()], |row| row.int(0))?;
        Ok(ids.into_iter().filter(|id| of.contains(id)).collect())
    }

    /// An experiment as far as its row shows, and whether it has an identity.
    fn listed(&self, row: &mut Row<'_>) -> Result<(Listed, bool), StoreError> {
        let id = row.int(0)?;
        let what = format!("experiment {id}");
        // One broken record is that experiment's trouble, not the list's; opening it shows what is
        // wrong.
        let brief: Brief = row
            .maybe_text(5)
            .ok()
            .flatten()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let tags = row.maybe_text(8)?.unwrap_or_default();
        let (trials_finished, trials) = (row.count(7)?, row.count(10)?);
        let listed = Listed {
            id,
            name: row.text(1)?,
            question: brief.question,
            target: brief.target,
            status: self.decode(&what, &row.text(2)?)?,
            life: Life::RunningOrKilled,
            started_unix_ms: row.count(3)?,
            finished_unix_ms: row.maybe_int(4)?.map(i64::unsigned_abs),
            trials_finished,
            trials_failed: trials.saturating_sub(trials_finished),
            tags: tags.split_whitespace().map(str::to_owned).collect(),
            notes: row.count(9)?,
        };
        Ok((listed, row.flag(6)?))
    }

    /// The experiments with a note that has this in it. Notes are read one by one: together they
    /// may be long.
    fn noted(&self, search: Option<&str>) -> Result<BTreeSet<i64>, StoreError> {
        let Some(search) = search else {
            return Ok(BTreeSet::new());
        };
        let sql = "SELECT experiment_id, text FROM note";
        let found = self.database().rows(sql, &[], |row| {
            let id = row.int(0)?;
            Ok(holds(&row.text(1)?, search).then_some(id))
        })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The state of an experiment.
    pub(super) fn life(&self, id: i64, status: ExperimentStatus, identified: bool) -> Life {
        let look = match status {
            ExperimentStatus::Running => self.database().look(id),
            _ => None,
        };
        life(status, identified, look)
    }

    /// Whether an experiment that seems killed has ended in order, or gone, between the look at its
    /// row and at its lock.
    pub(super) fn has_ended(&self, id: i64) -> Result<bool, StoreError> {
        Ok(self.running(&BTreeSet::from([id]))?.is_empty())
    }
}

/// The state of an experiment, by whether a process was seen to run it; one without an identity was
/// begun by a pgdyno that kept no lock.
fn life(status: ExperimentStatus, identified: bool, look: Option<bool>) -> Life {
    match (status, look) {
        (ExperimentStatus::Finished, _) => Life::Finished,
        (ExperimentStatus::Interrupted, _) => Life::Interrupted,
        (ExperimentStatus::Running, Some(true)) => Life::Running,
        (ExperimentStatus::Running, Some(false)) if identified => Life::Killed,
        (ExperimentStatus::Running, _) => Life::RunningOrKilled,
    }
}

/// Whether a text has a part, in either case.
fn holds(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn fits(filter: &Filter, listed: &Listed, noted: &BTreeSet<i64>) -> bool {
    let anywhere = |part: &String| {
        let texts = [&listed.question, &listed.name, &listed.target];
        texts.into_iter().any(|text| holds(text, part)) || noted.contains(&listed.id)
    };
    filter.tags.iter().all(|tag| listed.tags.contains(tag))
        && filter.name.as_ref().is_none_or(|part| holds(&listed.name, part))
        && filter.life.is_none_or(|asked| listed.life.is(asked))
        && filter.search.as_ref().is_none_or(anywhere)
}
