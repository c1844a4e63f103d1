//! What the runner promises, held against the simulated world.

use super::World;
use crate::decide::Looks;
use crate::file::StopRule;
use crate::plan::Plan;
use crate::trial::seed_of_trial;
use pgdyno_store::{ExperimentStatus, StoredExperiment, TrialRecord};
use std::collections::BTreeMap;

/// Why an experiment may end before all its blocks are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Early {
    Decided,
    Budget,
}

/// After every process that ended in order.
pub(super) fn after_a_process(world: &World) -> Vec<String> {
    let mut broken = world.broken.clone();
    if world.odds.not_restored == 0.0 {
        broken.extend(world.not_restored());
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
    for server in world.servers.values() {
        if server.tables.values().any(|tables| tables.marked_by.is_some()) {
            broken.push("marked data is left".to_owned());
        }
    }
    let trials: Vec<&TrialRecord> = stored.trials.iter().map(|(_, trial)| trial).collect();
    broken.extend(order(world, plan, &trials));
    broken.extend(completeness(plan, &trials, early));
    broken.extend(ending(plan, stored, &trials, early));
    broken
}

/// Trials are stored in the order of the plan, each driven with the seed of its place.
fn order(world: &World, plan: &Plan, trials: &[&TrialRecord]) -> Vec<String> {
    let mut broken = Vec::new();
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
        let seed = seed_of_trial(plan.seed, trial.block, trial.position);
        let is_driven = world.drives.contains(&(seed, trial.treatment.clone()));
        if trial.tps.is_some() && !is_driven {
            broken.push(format!("{} was driven with another seed", trial.treatment));
        }
    }
    broken
}

/// No trial is missing but those that a guard, the budget or a decision has made needless.
fn completeness(plan: &Plan, trials: &[&TrialRecord], early: Option<Early>) -> Vec<String> {
    let mut broken = Vec::new();
    let is_guarded = |trial: &TrialRecord| trial.reason.as_deref().is_some_and(|r| r.starts_with("guard: "));
    let mut by_place: BTreeMap<(u32, &str), &TrialRecord> = BTreeMap::new();
    for trial in trials {
        by_place.insert((trial.block, &trial.treatment), trial);
    }
    let mut ended: BTreeMap<usize, u32> = BTreeMap::new();
    for block in 1..=plan.file.blocks {
        for number in plan.order_of_block(block) {
            let name = plan.treatments[number].name.as_str();
            match (by_place.get(&(block, name)), ended.contains_key(&number)) {
                (Some(_), true) => broken.push(format!("{name} is tried again after its guard")),
                (Some(trial), false) if is_guarded(trial) => {
                    ended.insert(number, block);
                }
                (None, false) if early.is_none() => {
                    broken.push(format!("block {block} of {name} is lost"));
                }
                _ => {}
            }
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
    if most.is_some_and(|most| trials.len() > most as usize) {
        broken.push(format!(
            "{} trials are beyond the budget of {most:?}",
            trials.len()
        ));
    }
    let spent = most.is_some_and(|most| trials.len() >= most as usize) || plan.file.budget.time.is_some();
    if early == Some(Early::Budget) && !spent {
        broken.push("it ended for a budget that is not spent".to_owned());
    }
    if plan.file.stop != StopRule::WhenDecided {
        if early == Some(Early::Decided) {
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
