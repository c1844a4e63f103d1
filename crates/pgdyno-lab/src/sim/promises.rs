//! What the runner promises, compared with the simulated world.

use super::World;
use super::optimizer::SimulatedOptimizers;
use crate::decide::Looks;
use crate::file::{Design, StopRule};
use crate::plan::{Plan, SearchPlan};
use crate::runner::{Next, Outside};
use crate::searched::Tried;
use crate::trial::seed_of_trial;
use pgdyno_engine::duration;
use pgdyno_knobs::{Outcome, Restored};
use pgdyno_record::{ExperimentStatus, RestoredRecord, StoredExperiment, TreatmentRecord, TrialRecord};
use pgdyno_stats::{Point, SpaceError};
use std::collections::{BTreeMap, BTreeSet};

/// Why an experiment may end before all its blocks are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Early {
    Decided,
    /// The budget of trials is spent.
    Trials,
    /// That of time is.
    Time,
}

/// After every process that ended in order.
pub(super) fn after_a_process(world: &World) -> Vec<String> {
    let mut broken = world.broken.clone();
    if !world.is_unrestored {
        broken.extend(world.not_restored());
        broken.extend(world.written_over());
    }
    if world.journals.iter().any(|journal| journal.is_open) {
        broken.push("a journal is open".to_owned());
    }
    broken
}

/// After an experiment that is finished.
pub(super) fn after_all(
    world: &World,
    plan: &Plan,
    stored: &StoredExperiment,
    early: Option<Early>,
) -> Vec<String> {
    let mut broken = after_a_process(world);
    broken.extend(world.not_restored());
    if stored.status != ExperimentStatus::Finished {
        broken.push(format!("it is {:?}", stored.status));
    }
    if world.servers.keys().any(|variant| !variant.is_target()) {
        broken.push("servers of the experiment are left".to_owned());
    }
    for server in world.servers.values() {
        if !server.runs || !server.copies.is_empty() {
            broken.push("the target is not as it was".to_owned());
        }
        if server.tables.values().any(|tables| tables.marked_by.is_some()) {
            broken.push("marked data is left".to_owned());
        }
        if server.databases.values().any(Option::is_some) {
            broken.push("a database is left".to_owned());
        }
    }
    let trials: Vec<&TrialRecord> = stored.trials.iter().map(|(_, trial)| trial).collect();
    match plan.search(&stored.record) {
        Some(search) => broken.extend(searched(plan, search, stored, early)),
        None => {
            broken.extend(order(plan, world, &trials));
            broken.extend(completeness(plan, stored, &trials, early));
        }
    }
    broken.extend(seeds(world, plan, &trials));
    broken.extend(beginnings(world, plan, early));
    broken.extend(ending(plan, stored, &trials, early));
    broken
}

/// What was restored is stored: the last outcome of each setting, and all that is not as before.
pub(super) fn restored(world: &World, stored: &[RestoredRecord]) -> Vec<String> {
    let name = |outcome| match outcome {
        Outcome::Restored => "restored",
        Outcome::Already => "already",
        Outcome::Left => "left",
        Outcome::Failed => "failed",
    };
    let mut expected = BTreeSet::new();
    for (i, line) in world.restored.iter().enumerate() {
        let is_same = |other: &Restored| other.knob == line.knob && other.place == line.place;
        if matches!(line.outcome, Outcome::Failed | Outcome::Left)
            || !world.restored[i + 1..].iter().any(is_same)
        {
            expected.insert((line.knob.as_str(), line.place.as_str(), name(line.outcome)));
        }
    }
    let stored = stored.iter();
    let stored = stored.map(|line| (line.knob.as_str(), line.place.as_str(), line.outcome.as_str()));
    let stored: BTreeSet<(&str, &str, &str)> = stored.collect();
    match stored == expected {
        true => Vec::new(),
        false => vec![format!("restored was {expected:?}, and stored {stored:?}")],
    }
}

/// Trials begin in the hours of the file, and as long as the budget lasts.
fn beginnings(world: &World, plan: &Plan, early: Option<Early>) -> Vec<String> {
    let mut broken = Vec::new();
    let budget = &plan.file.budget;
    let limit_s = budget.time.as_ref().and_then(|time| duration(time).ok());
    let limit_s = limit_s.map(|limit| limit.as_secs_f64());
    for begun in &world.begun {
        let now = begun.minute_of_day;
        let is_inside = world.window.is_none_or(|(from, to)| match from <= to {
            true => from <= now && now < to,
            false => from <= now || now < to,
        });
        if !is_inside {
            broken.push(format!("a trial begins in minute {now} of the day"));
        }
        if budget.trials.is_some_and(|most| begun.trials >= most as usize) {
            broken.push("a trial begins beyond the budget of trials".to_owned());
        }
        if limit_s.is_some_and(|limit_s| with_next(plan, begun.spent_s, begun.trials) > limit_s + SLACK_S) {
            broken.push("a trial begins beyond the budget of time".to_owned());
        }
    }
    let trials = world.stored[0].trials.len();
    let is_spent = limit_s.is_some_and(|limit_s| with_next(plan, world.spent_s, trials) > limit_s - SLACK_S);
    if early == Some(Early::Time) && !is_spent {
        broken.push("it ended for a budget of time that is not spent".to_owned());
    }
    broken
}

/// Trials that begin with one load.
fn begun_together(plan: &Plan) -> f64 {
    match plan.file.design {
        Design::Switchback => f64::from(u32::try_from(plan.tested().len()).unwrap_or(u32::MAX)),
        _ => 1.0,
    }
}

/// Rounding of times.
const SLACK_S: f64 = 0.01;

/// What all will have taken when one more trial has ended, which takes as long as those before did,
/// and its load at least.
fn with_next(plan: &Plan, spent_s: f64, trials: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "trials of an experiment")]
    let mean_s = spent_s / trials.max(1) as f64;
    spent_s + mean_s.max(plan.trial_s()) * begun_together(plan)
}

/// Each trial of a search is what those before it ask for, in its place, and none is missing but
/// for the budget.
fn searched(
    plan: &Plan,
    search: Result<SearchPlan<'_>, SpaceError>,
    stored: &StoredExperiment,
    early: Option<Early>,
) -> Vec<String> {
    let mut broken = Vec::new();
    let search = match search {
        Ok(search) => search,
        Err(error) => return vec![error.to_string()],
    };
    let treatments: BTreeMap<&str, &TreatmentRecord> = stored
        .record
        .treatments
        .iter()
        .map(|treatment| (treatment.name.as_str(), treatment))
        .collect();
    let mut outside = match Outside::begin(&SimulatedOptimizers, plan, &search) {
        Ok(outside) => outside,
        Err(error) => return vec![error.to_string()],
    };
    let mut tried = Tried::before(&search, stored);
    for (number, (_, trial)) in (0..).zip(&stored.trials) {
        let (place, expected) = asked(&mut outside, &search, &tried);
        if (trial.block, trial.position) != place {
            broken.push(format!("trial {number} is not in {place:?}"));
        }
        let treatment = treatments.get(trial.treatment.as_str());
        let point = treatment.and_then(|treatment| search.point_of(treatment));
        if point.is_none() || expected != point {
            broken.push(format!("trial {number} is not what those before it ask for"));
        }
        tried.take_in(&search, trial);
    }
    let count = u32::try_from(stored.trials.len()).unwrap_or(u32::MAX);
    let is_left = asked(&mut outside, &search, &tried).1.is_some();
    let is_over = match early {
        None => count == search.trials,
        Some(Early::Decided) => !is_left,
        Some(Early::Trials | Early::Time) => count < search.trials,
    };
    if !is_over {
        broken.push(format!(
            "it ended after {count} of {} trials ({early:?})",
            search.trials
        ));
    }
    if plan.file.budget.trials.is_some_and(|most| count > most) {
        broken.push("it has more trials than its budget".to_owned());
    }
    broken
}

/// Where the next trial is, and what those so far ask for: in a further block where this one has
/// all.
fn asked(
    outside: &mut Option<Outside<'_>>,
    search: &SearchPlan<'_>,
    tried: &Tried,
) -> ((u32, u32), Option<Point>) {
    let place = search.place_after(tried.last);
    let next = chosen(outside, search, tried, place.0);
    match next.is_none() && outside.is_none() && place.1 > 1 {
        true => {
            let further = (place.0 + 1, 1);
            (further, chosen(outside, search, tried, further.0))
        }
        false => (place, next),
    }
}

/// What the trials so far ask for in a block.
fn chosen(
    outside: &mut Option<Outside<'_>>,
    search: &SearchPlan<'_>,
    tried: &Tried,
    block: u32,
) -> Option<Point> {
    let Some(outside) = outside else {
        return search.with(|search| Some(search.next(&tried.trials, block)?.point));
    };
    let start = search.with(|search| search.start(&tried.trials, block));
    match start {
        Some(start) => Some(start.point),
        None => match outside.next(search, tried, block) {
            Ok(Next::Try(point, _)) => Some(point),
            _ => None,
        },
    }
}

/// Trials are stored in the order of the plan.
fn order(plan: &Plan, world: &World, trials: &[&TrialRecord]) -> Vec<String> {
    let mut broken = Vec::new();
    if world.is_switched {
        return broken;
    }
    let places: Vec<(u32, u32)> = trials.iter().map(|trial| (trial.block, trial.position)).collect();
    if !places.is_sorted_by(|one, next| one < next) {
        broken.push(format!("trials are stored out of order: {places:?}"));
    }
    for trial in trials {
        let order = plan.order_of_block(trial.block);
        let number = order.get(trial.position as usize - 1).copied();
        if number.map(|number| plan.treatments[number].name.as_str()) != Some(&trial.treatment) {
            broken.push(format!(
                "{} is not in its place of block {}",
                trial.treatment, trial.block
            ));
        }
    }
    broken
}

/// Each trial is driven with the seed of its place.
fn seeds(world: &World, plan: &Plan, trials: &[&TrialRecord]) -> Vec<String> {
    let mut broken = Vec::new();
    for trial in trials.iter().filter(|_| !world.is_switched) {
        let seed = seed_of_trial(plan.seed, trial.block, trial.position);
        let is_driven = world.drives.contains(&(seed, trial.treatment.clone()));
        if trial.tps.is_some() && !is_driven {
            broken.push(format!("{} was driven with another seed", trial.treatment));
        }
    }
    broken
}

/// No trial is missing but those that a guard, the budget or a decision has made needless.
fn completeness(
    plan: &Plan,
    stored: &StoredExperiment,
    trials: &[&TrialRecord],
    early: Option<Early>,
) -> Vec<String> {
    let mut broken = Vec::new();
    let is_guarded = |trial: &TrialRecord| trial.reason.as_deref().is_some_and(|r| r.starts_with("guard: "));
    let mut by_place: BTreeMap<(u32, &str), &TrialRecord> = BTreeMap::new();
    for trial in trials {
        by_place.insert((trial.block, &trial.treatment), trial);
    }
    let last = trials
        .last()
        .map_or((0, 0), |trial| (trial.block, trial.position));
    let is_wanted = |block: u32, position: usize| match early {
        None => true,
        Some(Early::Decided) => block <= last.0,
        Some(Early::Trials | Early::Time) => (block, position) <= (last.0, last.1 as usize),
    };
    let mut ended: BTreeSet<usize> = BTreeSet::new();
    let mut looks = Looks::new(&stored.record);
    for block in 1..=plan.file.blocks {
        let needless = looks.needless(block - 1, &ended);
        for (i, number) in plan.order_of_block(block).into_iter().enumerate() {
            let name = plan.treatments[number].name.as_str();
            let trial = by_place.get(&(block, name)).copied();
            match (trial, ended.contains(&number)) {
                (Some(_), true) => broken.push(format!("{name} is tried again after its guard")),
                (Some(_), false) if needless.contains(&number) => {
                    broken.push(format!("{name} is tried in block {block} though it is decided"));
                }
                (Some(trial), false) if is_guarded(trial) => {
                    ended.insert(number);
                }
                (None, false) if is_wanted(block, i + 1) && !needless.contains(&number) => {
                    broken.push(format!("block {block} of {name} is lost"));
                }
                _ => {}
            }
        }
        for trial in trials.iter().filter(|trial| trial.block == block) {
            looks.add(trial);
        }
    }
    broken
}

/// It ends early for a reason, and not later than that.
fn ending(
    plan: &Plan,
    stored: &StoredExperiment,
    trials: &[&TrialRecord],
    early: Option<Early>,
) -> Vec<String> {
    let mut broken = Vec::new();
    let most = plan.file.budget.trials;
    if early == Some(Early::Trials) && most.is_none_or(|most| trials.len() < most as usize) {
        broken.push("it ended for a budget of trials that is not spent".to_owned());
    }
    if plan.file.stop == StopRule::AfterBlocks {
        if early == Some(Early::Decided) && plan.file.search.is_none() {
            broken.push("it ended for a decision that nobody asked for".to_owned());
        }
        return broken;
    }
    let last = trials.iter().map(|trial| trial.block).max().unwrap_or_default();
    let mut looks = Looks::new(&stored.record);
    for block in 1..=last {
        for trial in trials.iter().filter(|trial| trial.block == block) {
            looks.add(trial);
        }
        let is_decided = looks.are_decided(block);
        if is_decided && block < last {
            broken.push(format!("it went on though all was decided after block {block}"));
        }
        if block == last && early == Some(Early::Decided) && !is_decided {
            broken.push(format!("it ended undecided after block {block}"));
        }
    }
    broken
}
