//! The targets of the stored experiments: what they are, what is changed on them now, and what
//! there is to advise.

use super::App;
use super::problem::Problem;
use super::source::Changed;
use crate::document::{ChangedBy, Target, Targets};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use pgdyno_knobs::ServerRef;
use pgdyno_server::Conninfo;
use pgdyno_store::{Filter, Life, Listed, Store};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The targets of the newest experiments; those of older ones are skipped.
const TARGETS_MAX: usize = 50;
/// Of a target's experiments, those that are tried for its facts.
const TRIED_MAX: usize = 3;
/// Advice that is not known yet is waited for so long; what is missing then comes with a later
/// look.
const FOR_ADVICE: Duration = Duration::from_secs(1);

/// What is changed is looked up again after so long: servers are asked for that.
const CHANGES_HOLD: Duration = Duration::from_secs(5);

/// What identifies an experiment of a target and its progress: number, start, finished trials.
type Stamp = (i64, u64, u64);

/// Advice for a target by its name, with the experiments that it was made from.
type Kept = HashMap<String, (Vec<Stamp>, Value)>;

/// Why it is unknown what is changed on a target.
const WHILE_IT_RUNS: &str = "while an experiment runs, servers are not asked, for that would disturb it";

/// What was found to be changed, when, and whether servers were asked.
#[derive(Default)]
pub(super) struct Changes(Mutex<Option<Looked>>);

type Looked = (Instant, bool, Arc<Vec<Changed>>);

/// There is no advice yet, for there was no time to make it: a later look has it.
#[derive(Debug, PartialEq, Eq)]
struct NotYet;

/// Advice that was made already: it takes the trials of up to twenty experiments to be read.
#[derive(Default)]
pub(super) struct Advices(Mutex<Kept>);

pub(super) async fn targets(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    app.json(&headers, |app, store| document(app, store)).await
}

fn document(app: &App, store: &Store) -> Result<Targets, Problem> {
    let mut targets: Vec<(String, Vec<Listed>)> = Vec::new();
    // A question in the middle of a measurement is a disturbance.
    let mut ask_servers = true;
    for listed in store.find(&Filter::default())? {
        ask_servers &= listed.life != Life::Running;
        // A record that cannot be read names no target.
        if listed.target.is_empty() {
            continue;
        }
        match targets.iter().position(|(name, _)| *name == listed.target) {
            Some(at) => targets[at].1.push(listed),
            None if targets.len() < TARGETS_MAX => targets.push((listed.target.clone(), vec![listed])),
            None => {}
        }
    }
    let changed = app.changes.now(app, ask_servers);
    let begun = Instant::now();
    let mut rows = Vec::new();
    for (name, experiments) in &targets {
        // A broken record is not in the way of an older one's facts.
        let readable = |listed: &Listed| store.experiment_alone(listed.id).ok();
        let newest = experiments.iter().take(TRIED_MAX).find_map(readable);
        let facts = newest.map(|newest| newest.record.facts).unwrap_or_default();
        let ids: Vec<i64> = experiments.iter().map(|listed| listed.id).collect();
        let patient = begun.elapsed() < FOR_ADVICE;
        let on_it = match &changed {
            _ if !ask_servers => Err(WHILE_IT_RUNS),
            Ok(changed) => Ok(of_target(changed, name)),
            Err(why) => Err(why.as_str()),
        };
        let advice = app.advices.of(name, experiments, patient, &|| {
            app.source.advice(store, name, &facts)
        });
        rows.push(Target {
            name: name.clone(),
            experiments: ids,
            why_not_known: on_it.as_ref().err().map(|why| (*why).to_owned()),
            changed: on_it.ok(),
            is_advice_due: advice == Err(NotYet),
            advice: advice.ok().flatten(),
            facts,
        });
    }
    // All of them: a journal that names a server has changed the machine too, and may name one that
    // no experiment knows.
    Ok(Targets {
        targets: rows,
        changed_on_host: (changed.as_ref().ok())
            .map(|changed| changed.iter().map(|changed| changed.journal.clone()).collect()),
        why_not_known: changed.err(),
        servers_asked: ask_servers,
    })
}

/// The journals that are about a target of this name.
fn of_target(all: &[Changed], target: &str) -> Vec<ChangedBy> {
    all.iter()
        .filter(|changed| changed.server.as_ref().and_then(name_of).as_deref() == Some(target))
        .map(|changed| changed.journal.clone())
        .collect()
}

/// What a server is called in the store.
fn name_of(server: &ServerRef) -> Option<String> {
    match server {
        ServerRef::Sandbox { name, .. } => Some(format!("sandbox {name}")),
        ServerRef::Address { conninfo, .. } => Conninfo::shown(conninfo, &|_| None).ok(),
    }
}

impl Changes {
    /// Or why that is unknown. One request asks; others wait for what it finds.
    fn now(&self, app: &App, ask_servers: bool) -> Result<Arc<Vec<Changed>>, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, asked, changed)) = &*kept
            && *asked == ask_servers
            && at.elapsed() < CHANGES_HOLD
        {
            return Ok(Arc::clone(changed));
        }
        let found = Arc::new(app.source.changed(ask_servers)?);
        *kept = Some((Instant::now(), ask_servers, Arc::clone(&found)));
        Ok(found)
    }
}

impl Advices {
    /// `None` where there is none to give.
    fn of(
        &self,
        name: &str,
        experiments: &[Listed],
        patient: bool,
        make: &dyn Fn() -> Option<Value>,
    ) -> Result<Option<Value>, NotYet> {
        let stamp: Vec<Stamp> = experiments
            .iter()
            .map(|listed| (listed.id, listed.started_unix_ms, listed.trials_finished))
            .collect();
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, advice)) = lock().get(name)
            && *known == stamp
        {
            return Ok(Some(advice.clone()));
        }
        if !patient {
            return Err(NotYet);
        }
        let Some(advice) = make() else {
            return Ok(None);
        };
        let mut kept = lock();
        if kept.len() >= TARGETS_MAX * 2 {
            kept.clear();
        }
        kept.insert(name.to_owned(), (stamp, advice.clone()));
        Ok(Some(advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What there was no time for is not said to be nothing, and comes later.
    #[test]
    fn advice_that_is_not_made_yet_is_distinguished_from_none() {
        let advices = Advices::default();
        let of = |patient, made: Option<Value>| advices.of("sandbox a", &[], patient, &|| made.clone());
        assert_eq!(of(false, Some(json!(1))), Err(NotYet));
        assert_eq!(of(true, None), Ok(None));
        assert_eq!(of(true, Some(json!(1))), Ok(Some(json!(1))));
        assert_eq!(of(false, None), Ok(Some(json!(1))));
    }
}
