//! A switchback: blocks whose treatments take turns within one load.

use super::guard::Guard;
use super::{Done, Event, Running, names_of};
use crate::decide::Looks;
use crate::error::LabError;
use crate::file::{Slices, StopRule};
use crate::measurement::Measurement;
use crate::plan::Plan;
use crate::ports::{Drive, Driven, Meanwhile};
use crate::trial::{empty_record, failed, figures, filled, seed_of_trial, take_in};
use crate::turns::{Next, Turns};
use pgdyno_engine::Second;
use pgdyno_knobs::{Agreed, Restart, Setting};
use pgdyno_record::{SeriesRecord, TrialRecord};
use std::collections::BTreeSet;
use std::time::Duration;

/// A change takes up to about this long: the load is made longer by as much for each.
pub(super) const CHANGE_MAX_S: f64 = 3.0;
const TOO_SHORT: &str = "the load ended before all turns were over: changes of settings took too long";

/// Blocks of a load with the treatments that each still lacks.
type Blocks = Vec<(u32, Vec<usize>)>;

/// A trial whose turns are in a load.
struct Taking<'p> {
    number: usize,
    settings: Vec<Agreed<Setting>>,
    record: TrialRecord,
    guard: Guard<'p>,
    /// Why it has failed.
    error: Option<String>,
    /// Why a guard has ended it.
    guarded: Option<String>,
    /// Whether it is not wanted: its treatment is decided, or a guard has ended it, in an earlier
    /// block.
    is_dropped: bool,
}

/// The trials of a load that are decided: measured, failed, or ended by a guard.
struct Loaded {
    trials: Vec<(TrialRecord, SeriesRecord)>,
    /// Whether the load came to its end, and not to that of the server or of the host's memory.
    is_whole: bool,
}

impl<'x> Running<'x, '_, '_> {
    /// Runs the blocks of a switchback that are not stored yet. Returns whether all is done, or
    /// somebody asked to stop.
    pub(super) fn switched(&mut self, slices: Slices, done: &mut Done) -> Result<bool, LabError> {
        let plan = self.plan;
        let tested = u32::try_from(plan.tested().len()).unwrap_or(u32::MAX);
        let mut most = plan.blocks_of_load().unwrap_or(1);
        let mut ended = 0;
        loop {
            while ended < plan.file.blocks && self.missing(ended + 1, done).is_empty() {
                ended += 1;
                if self.is_decided(ended) {
                    self.ends_early("every comparison is decided", ended);
                    return Ok(true);
                }
            }
            if ended < plan.file.blocks {
                // Shown where it is so; what is missing is without them.
                self.needless(ended + 1);
            }
            let blocks = (ended + 1..=plan.file.blocks).map(|block| (block, self.missing(block, done)));
            let mut blocks: Blocks = blocks.filter(|(_, missing)| !missing.is_empty()).collect();
            if blocks.is_empty() {
                return Ok(true);
            }
            if !self.wait_for_window(tested)? {
                return Ok(false);
            }
            match self.blocks_in_budget(tested) {
                Ok(affordable) => {
                    let most = most.min(affordable).min(self.blocks_in_window(tested));
                    blocks.truncate(most as usize);
                }
                Err(reason) => {
                    self.ends_early(reason, ended);
                    return Ok(true);
                }
            }
            // A load is long, and a window may be: others would take the experiment for killed.
            self.runner.results.keep()?;
            let begun = self.runner.clock.now();
            let mut loaded = self.load(slices, &blocks);
            self.spend(begun, loaded.trials.iter_mut().map(|(record, _)| record));
            for trials in loaded.trials.chunk_by(|(a, _), (b, _)| a.block == b.block) {
                self.store(trials)?;
                done.extend(names_of(trials));
            }
            // What a load that broke off has measured is not confirmed: the next one has less to
            // lose.
            if !loaded.is_whole {
                most = 1;
            }
        }
    }

    /// Treatments that a block still lacks, in the order of their first turns.
    pub(super) fn missing(&self, block: u32, done: &Done) -> Vec<usize> {
        let needless = self.looks.needless(block - 1, &self.ended_before(block));
        let is_missing = |number: &usize| {
            let name = &self.plan.treatments[*number].name;
            !self.ended.contains_key(number)
                && !needless.contains(number)
                && !done.contains(&(block, name.clone()))
        };
        let order = self.plan.order_of_block(block).into_iter();
        order.filter(is_missing).collect()
    }

    /// One load over these blocks.
    fn load(&mut self, slices: Slices, blocks: &Blocks) -> Loaded {
        let (mut trials, order) = self.taking(slices, blocks);
        let mut turns = Turns::new(slices, order, trials.len());
        for (i, _) in trials
            .iter()
            .enumerate()
            .filter(|(_, trial)| trial.error.is_some())
        {
            turns.end(i);
        }
        let mut database = None;
        while let Some(first) = turns.present() {
            let Taking { number, record, .. } = &mut trials[first];
            let treatment = &self.plan.treatments[*number];
            let block = record.block;
            (self.runner.on_event)(Event::TrialBegins { treatment, block });
            match self.ready(treatment, record) {
                Ok(found) => {
                    database = found;
                    break;
                }
                // What goes wrong because somebody asked to stop is not a result.
                Err(_) if self.is_stopped() => {
                    return Loaded {
                        trials: Vec::new(),
                        is_whole: true,
                    };
                }
                Err(error) => {
                    trials[first].error = Some(error.to_string());
                    turns.end(first);
                }
            }
        }
        let Some(first) = turns.present() else {
            return self.loaded(trials, &turns, None, Ok(None));
        };
        let mut last = first;
        let driven = self.drive_turns(&mut turns, &mut trials, &mut last, database.as_deref());
        self.loaded(trials, &turns, Some(last), driven)
    }

    /// The trials of these blocks, and the number of one for each turn.
    fn taking(&self, slices: Slices, blocks: &Blocks) -> (Vec<Taking<'x>>, Vec<usize>) {
        let plan: &'x Plan = self.plan;
        let now_ms = self.runner.clock.unix_ms();
        let (mut trials, mut order) = (Vec::new(), Vec::new());
        for (block, missing) in blocks {
            let first = trials.len();
            for &number in missing {
                let position = plan.position_in_block(*block, number);
                let treatment = &plan.treatments[number];
                let record = TrialRecord {
                    warmup_s: 0.0,
                    ..empty_record(*block, position, treatment, now_ms)
                };
                let (settings, error) = match self.agreed(treatment, 0) {
                    Ok(settings) => (settings, None),
                    Err(error) => (Vec::new(), Some(error.to_string())),
                };
                trials.push(Taking {
                    number,
                    settings,
                    record,
                    guard: Guard::new(&plan.file.guard),
                    error,
                    guarded: None,
                    is_dropped: false,
                });
            }
            for round in 0..slices.rounds {
                let round = plan.order_of_round(*block, round).into_iter();
                let trial = |number| missing.iter().position(|other| *other == number);
                order.extend(round.filter_map(trial).map(|i| first + i));
            }
        }
        (trials, order)
    }

    /// Drives the load, and changes settings where a turn begins. `last` is the trial whose
    /// settings are in force, and then that of the last turn.
    fn drive_turns(
        &mut self,
        turns: &mut Turns,
        trials: &mut [Taking<'x>],
        last: &mut usize,
        database: Option<&str>,
    ) -> Result<Option<Driven>, LabError> {
        let plan = self.plan;
        let first = *last;
        let place = &trials[first].record;
        let seed = seed_of_trial(plan.seed, place.block, place.position);
        let mut treatment = plan.treatments[trials[first].number].clone();
        treatment.load.measure_s = Some(turns.longest_s(CHANGE_MAX_S));
        let variant = place.server_variant.clone();
        for trial in trials.iter_mut() {
            trial.record.server_variant.clone_from(&variant);
        }
        let drive = Drive {
            treatment: &treatment,
            database,
            guard: &plan.file.guard,
            seed,
            files: &self.files,
            changes: turns.count(),
            events: &[],
            beside: Vec::new(),
            turns: None,
        };
        let Some(at) = self.at.first_mut() else {
            return Err(LabError::NoServer);
        };
        let (clock, stop, on_event) = (self.runner.clock, self.runner.stop, &mut *self.runner.on_event);
        let mut deciding = Deciding {
            looks: self.looks.clone(),
            is_wanted: plan.file.stop != StopRule::AfterBlocks,
            blocks: plan.file.blocks,
            ended: BTreeSet::new(),
            guarded: self.ended.keys().copied().collect(),
        };
        let (mut begun, mut paces) = (None, self.paces.clone());
        at.target
            .drive(
                &drive,
                stop,
                &mut |second: &Second, target: &mut dyn Meanwhile| {
                    let length = Duration::from_secs_f64(second.length_s);
                    let begun = *begun.get_or_insert_with(|| clock.now().saturating_sub(length));
                    on_event(Event::Second(second));
                    let (counted, mut next) = turns.second(second);
                    // What is washed out is of two treatments.
                    let guarded = counted.and_then(|trial| {
                        let Taking { number, guard, .. } = &mut trials[trial];
                        let (treatment, figures) = (&plan.treatments[*number], second.figures());
                        let reason = guard.second(&figures, paces.tps(plan, treatment));
                        paces.second(treatment, &figures);
                        Some((trial, reason?))
                    });
                    if let Some((trial, reason)) = guarded {
                        let number = trials[trial].number;
                        for (i, other) in trials.iter_mut().enumerate().skip(trial) {
                            if other.number == number {
                                other.is_dropped = i > trial;
                                next = turns.end(i);
                            }
                        }
                        trials[trial].guarded = Some(reason);
                        deciding.guarded.insert(number);
                    }
                    next = deciding.after_blocks(turns, trials).unwrap_or(next);
                    loop {
                        let trial = match next {
                            Next::GoOn => return true,
                            Next::Over => return false,
                            Next::Turn(trial) => trial,
                        };
                        let Taking {
                            number,
                            settings,
                            record,
                            ..
                        } = &mut trials[trial];
                        if !turns.has_begun(trial) {
                            record.started_unix_ms = clock.unix_ms();
                        }
                        on_event(Event::Turn {
                            treatment: &plan.treatments[*number],
                            block: record.block,
                        });
                        *last = trial;
                        let applied = target.apply(settings, Restart::WhenNeeded);
                        match applied.and_then(|applied| take_in(applied, record)) {
                            Ok(()) => {
                                turns.begin(clock.now().saturating_sub(begun).as_secs_f64());
                                return true;
                            }
                            Err(error) => {
                                let is_its_own = matches!(error, LabError::NotTaken(_));
                                trials[trial].error = Some(error.to_string());
                                next = turns.end(trial);
                                // What keeps one setting from being applied may keep all: the
                                // others have their turns in another load.
                                if !is_its_own {
                                    return false;
                                }
                            }
                        }
                    }
                },
            )
            .map(Some)
    }

    /// What a load has decided of its trials. `last` is that of the last turn; `None` where no
    /// trial was ready for one.
    fn loaded(
        &mut self,
        trials: Vec<Taking<'x>>,
        turns: &Turns,
        last: Option<usize>,
        driven: Result<Option<Driven>, LabError>,
    ) -> Loaded {
        let (driven, error) = match driven {
            Ok(driven) => (driven, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let shortage = driven.as_ref().and_then(|driven| driven.shortage.clone());
        let whole = driven.map(|driven| driven.measurement);
        let broken = error.or_else(|| whole.as_ref()?.broken.clone());
        let is_whole = shortage.is_none() && broken.is_none();
        // A block counts once all its trials have had their turns.
        let open = trials.iter().enumerate().filter(|(i, _)| !turns.is_over(*i));
        let open: BTreeSet<u32> = open.map(|(_, trial)| trial.record.block).collect();
        let mut decided = Vec::new();
        let mut other = None;
        let wanted = trials
            .into_iter()
            .enumerate()
            .filter(|(_, trial)| !trial.is_dropped);
        for (i, mut trial) in wanted {
            // What goes wrong because somebody asked to stop is not a result.
            let is_last = last == Some(i) && !self.is_stopped();
            // Whatever broke the load off, it was in the last turn: all else is measured again.
            let guarded = trial
                .guarded
                .take()
                .or_else(|| shortage.clone().filter(|_| is_last));
            let error = trial.error.take().or_else(|| broken.clone().filter(|_| is_last));
            let is_complete = is_whole && !open.contains(&trial.record.block);
            let Taking { number, record, .. } = trial;
            match (guarded, error, &whole) {
                (Some(reason), ..) => {
                    let measured = whole.as_ref().map(|whole| turns.part(i).measurement(Some(whole)));
                    let series = measured.map_or_else(SeriesRecord::default, |measured| measured.series);
                    decided.push((
                        self.guarded((Some(number), &self.plan.treatments[number]), record, &reason),
                        series,
                    ));
                }
                (None, Some(error), _) if is_complete || is_last => {
                    decided.push((failed(record, error), SeriesRecord::default()));
                }
                (None, None, Some(whole)) if is_complete => {
                    let measured = turns.part(i).measurement(Some(whole));
                    decided.push((self.record_of(number, record, &measured), measured.series));
                }
                _ if is_last => other = Some(record),
                _ => {}
            }
        }
        if let Some(record) = other.filter(|_| decided.is_empty()) {
            decided.push((failed(record, TOO_SHORT.to_owned()), SeriesRecord::default()));
        }
        Loaded {
            trials: decided,
            is_whole,
        }
    }

    pub(super) fn record_of(
        &mut self,
        number: usize,
        record: TrialRecord,
        measured: &Measurement,
    ) -> TrialRecord {
        let treatment = &self.plan.treatments[number];
        for warning in &measured.warnings {
            (self.runner.on_event)(Event::TrialWarns { treatment, warning });
        }
        let mut record = filled(record, measured);
        record.figures.extend(figures(&self.plan.file.figure, measured));
        // Known of the load as a whole alone.
        record.client_cpu_us_per_tx = None;
        record
    }
}

/// What is decided while the load still runs, by its trials as they are, which nothing has
/// confirmed yet.
struct Deciding {
    looks: Looks,
    is_wanted: bool,
    /// Blocks of the experiment.
    blocks: u32,
    /// Those of the load that are over.
    ended: BTreeSet<u32>,
    /// Treatments that a guard has ended.
    guarded: BTreeSet<usize>,
}

impl Deciding {
    /// What follows where a block has just ended: the end of the load where all is decided, else a
    /// turn of a treatment that is not.
    fn after_blocks(&mut self, turns: &mut Turns, trials: &mut [Taking<'_>]) -> Option<Next> {
        if !self.is_wanted {
            return None;
        }
        let blocks: BTreeSet<u32> = trials.iter().map(|trial| trial.record.block).collect();
        let mut next = None;
        for block in blocks {
            let own = trials.iter().enumerate();
            let own: Vec<(usize, &Taking<'_>)> =
                own.filter(|(_, trial)| trial.record.block == block).collect();
            if !own.iter().all(|(i, _)| turns.is_over(*i)) || !self.ended.insert(block) {
                continue;
            }
            for (i, trial) in own.iter().filter(|(_, trial)| !trial.is_dropped) {
                let record = trial.record.clone();
                let reason = trial.error.as_ref().or(trial.guarded.as_ref());
                self.looks.add(&match reason {
                    Some(reason) => failed(record, reason.clone()),
                    None => filled(record, &turns.part(*i).measurement(None)),
                });
            }
            if block < self.blocks && self.looks.are_decided(block) {
                return Some(Next::Over);
            }
            let needless = self.looks.needless(block, &self.guarded);
            for (i, trial) in trials.iter_mut().enumerate() {
                if trial.record.block > block && needless.contains(&trial.number) && !trial.is_dropped {
                    trial.is_dropped = true;
                    next = Some(turns.end(i));
                }
            }
        }
        next
    }
}
