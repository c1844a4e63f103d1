//! The load of a simulated server, second by second.

use super::{SimTarget, key};
use crate::error::LabError;
use crate::plan::{ServerVariant, Treatment, measure_s};
use crate::ports::{Drive, Driven, GoOn, InTurns, Load};
use crate::sim::World;
use crate::sim::course::{Drove, Ending, JOB};
use crate::sim::load::measurement;
use crate::sim::world::Panicked;
use pgdyno_engine::TurnShare;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a load will do by itself.
struct Fate {
    tps: f64,
    /// What a guard compares it with.
    pace_tps: Option<f64>,
    is_slow: bool,
    is_failing: bool,
    dies: bool,
    is_short: bool,
    is_enough: bool,
    disagrees: bool,
}

impl Fate {
    fn of(world: &World, drive: &Drive<'_>) -> Fate {
        let (name, seed) = (&drive.treatment.name, drive.seed.to_string());
        let is_slow = world.happens(world.odds.slow, "slow", name);
        Fate {
            tps: match is_slow {
                true => 0.0,
                false => world.tps(drive.treatment, drive.seed),
            },
            pace_tps: world.pace_tps(name),
            is_slow,
            is_failing: world.happens(world.odds.failing, "failing", name),
            is_short: world.happens(world.odds.shortage, "shortage", name),
            dies: world.happens(world.odds.dies, "dies", &seed),
            is_enough: world.happens(world.odds.enough, "enough", &seed),
            disagrees: world.happens(world.odds.disagrees, "disagrees", &seed),
        }
    }

    /// Whether the file's guard must end the load with this second: each bound is passed in every
    /// second, and that on throughput counts measured ones.
    fn is_guarded(&self, drive: &Drive<'_>, second: u32, warmup_s: f64) -> bool {
        let guard = drive.guard;
        let is_passed =
            self.is_slow && guard.p99_ms_max.is_some() || self.is_failing && guard.error_ratio_max.is_some();
        let is_behind = guard
            .slowdown_max
            .zip(self.pace_tps)
            .is_some_and(|(most, pace_tps)| self.tps.floor() < pace_tps * (1.0 - most));
        is_passed && second >= 5 || is_behind && f64::from(second) >= warmup_s + 5.0
    }
}

impl SimTarget {
    /// The seconds of a load; how it ended before its time, if it did.
    fn seconds(
        &mut self,
        drive: &Drive<'_>,
        fate: &Fate,
        (warmup_s, seconds): (f64, u32),
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> (Option<Ending>, bool) {
        let shared = self.shared.clone();
        for number in 1..=seconds {
            shared.step().ms += 1_000;
            let mut second = shared.second.borrow_mut();
            second.number = number;
            second.measured = f64::from(number) > warmup_s;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole transactions"
            )]
            let committed = fate.tps as u64;
            second.books.committed = committed;
            second.books.failed = if fate.is_failing { 9 * committed.max(1) } else { 0 };
            let goes_on = go_on(&second, self);
            if goes_on == fate.is_guarded(drive, number, warmup_s) {
                let what = format!("{}, second {number}: a guard", drive.treatment.name);
                self.shared.world.borrow_mut().broken.push(what);
            }
            if stop.load(Ordering::Relaxed) {
                return (Some(Ending::Stopped), false);
            }
            if !goes_on {
                return (Some(Ending::Guarded), false);
            }
            match number {
                2 if fate.is_short => return (Some(Ending::Shortage), false),
                3 if fate.dies => return (Some(Ending::Died), false),
                4 if fate.is_enough => return (None, true),
                _ => {}
            }
        }
        (None, false)
    }
}

impl SimTarget {
    /// The load of a switchback: each second has the throughput of the settings that are in force.
    fn turns(
        &mut self,
        fate: &Fate,
        (warmup_s, seconds): (f64, u32),
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> Driven {
        let shared = self.shared.clone();
        let begun_ms = shared.world.borrow().ms;
        let (mut ending, mut committed) = (Ending::Whole, 0);
        for number in 1..=seconds {
            let mut second = shared.second.borrow_mut();
            {
                let mut world = shared.step();
                // A change takes its time while the load goes on.
                world.ms = world.ms.max(begun_ms + u64::from(number) * 1_000);
                let touched = world.touched(self.journal);
                let set = touched.iter().filter_map(|(owner, knob, before)| {
                    let now = world.settings(owner).get(knob)?;
                    (before.as_ref() != Some(now)).then(|| format!("{knob}={now}"))
                });
                let set: Vec<String> = set.collect();
                let is = |odds, what| set.iter().any(|setting| world.happens(odds, what, setting));
                let (is_slow, is_failing) = (is(world.odds.slow, "slow"), is(world.odds.failing, "failing"));
                second.number = number;
                second.measured = f64::from(number) > warmup_s;
                second.books.committed = if is_slow { 0 } else { world.tps_of(&set) };
                second.books.failed = if is_failing { 9 * second.books.committed } else { 0 };
                committed += second.books.committed;
            }
            let goes_on = go_on(&second, self);
            if stop.load(Ordering::Relaxed) {
                ending = Ending::Stopped;
            } else if !goes_on {
                ending = Ending::Guarded;
            } else if fate.is_short && number == 2 {
                ending = Ending::Shortage;
            } else if fate.dies && number == 30 {
                ending = Ending::Died;
            } else {
                continue;
            }
            break;
        }
        let mut world = shared.step();
        let server = server!(self, world);
        server.has_pooler = false;
        server.runs = ending != Ending::Died;
        let mut measured = measurement(0.0, warmup_s, f64::from(seconds));
        measured.load.measured.committed = committed;
        measured.load.stopped_early = ending != Ending::Whole;
        measured.broken = (ending == Ending::Died).then(|| "the server died".to_owned());
        if let Some(check) = &mut measured.cross_check {
            check.agrees = !fate.disagrees;
        }
        Driven {
            measurement: measured,
            shortage: (ending == Ending::Shortage).then(|| "the host is short of memory".to_owned()),
            is_enough: false,
        }
    }
}

impl SimTarget {
    /// The load of servers that take turns: each has the throughput of its own treatment.
    fn in_turns(
        &mut self,
        drive: &Drive<'_>,
        turns: &InTurns<'_>,
        fate: &Fate,
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> Driven {
        let load = &drive.treatment.load;
        let (warmup_s, own_s) = (load.warmup_s.unwrap_or(0.0), measure_s(load));
        let many = u32::try_from(turns.treatments.len()).unwrap_or(u32::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds of a load"
        )]
        let seconds = (warmup_s + own_s * f64::from(many)) as u32;
        let (ending, is_enough) = self.seconds(drive, fate, (warmup_s, seconds), stop, go_on);
        let mut world = self.shared.step();
        server!(self, world).runs = ending != Some(Ending::Died);
        let clients = f64::from(load.clients.unwrap_or(1));
        let share = |(of, _): &(&Treatment, Option<String>)| TurnShare {
            measured: measurement(world.tps(of, drive.seed), warmup_s, own_s)
                .load
                .measured,
            busy_s: own_s * clients,
            first_errors: Vec::new(),
            lost: None,
        };
        let shares: Vec<TurnShare> = turns.treatments.iter().map(share).collect();
        let mut measured = measurement(0.0, warmup_s, own_s * f64::from(many));
        measured.load.measured.committed = shares.iter().map(|share| share.measured.committed).sum();
        measured.load.turns = shares;
        let is_cut = matches!(ending, Some(Ending::Stopped | Ending::Guarded | Ending::Shortage));
        measured.load.stopped_early = is_cut;
        measured.broken = (ending == Some(Ending::Died)).then(|| "the server died".to_owned());
        if let Some(check) = &mut measured.cross_check {
            check.agrees = !fate.disagrees;
        }
        Driven {
            measurement: measured,
            shortage: (ending == Some(Ending::Shortage)).then(|| "the host is short of memory".to_owned()),
            is_enough,
        }
    }
}

impl Load for SimTarget {
    fn drive(
        &mut self,
        drive: &Drive<'_>,
        stop: &AtomicBool,
        go_on: &mut GoOn<'_>,
    ) -> Result<Driven, LabError> {
        let mut world = self.shared.step();
        self.look(&mut world, drive);
        let treatment = drive.treatment;
        world.drives.push((drive.seed, treatment.name.clone()));
        let server = server!(self, world);
        server.has_pooler = treatment.has_pooler();
        let driven: Vec<(ServerVariant, String)> = match &drive.turns {
            None => {
                let at = world.at.iter();
                at.map(|variant| (variant.clone(), key(drive.database))).collect()
            }
            Some(turns) => {
                let each = turns.treatments.iter();
                each.map(|(of, database)| (of.variant(), key(database.as_deref())))
                    .collect()
            }
        };
        for (variant, database) in driven {
            let tables = &mut world.servers.entry(variant).or_default().tables;
            if let Some(tables) = tables.get_mut(&database) {
                tables.loads += 1;
            }
        }
        if world.goes_wrong(world.odds.panics, "panics") {
            world.has_panicked = true;
            // It ends with its owner's frames, as the load itself does.
            server!(self, world).has_pooler = false;
            drop(world);
            resume_unwind(Box::new(Panicked));
        }
        let fate = Fate::of(&world, drive);
        let (warmup_s, measured_s) = (treatment.load.warmup_s.unwrap_or(0.0), measure_s(&treatment.load));
        let before = world
            .course
            .as_ref()
            .map(|course| (course.applied.clone(), course.restart, course.recovery_s));
        drop(world);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds of a load"
        )]
        let seconds = (warmup_s + measured_s) as u32;
        if let Some(turns) = &drive.turns {
            return Ok(self.in_turns(drive, turns, &fate, stop, go_on));
        }
        if drive.changes > 0 && drive.events.is_empty() {
            return Ok(self.turns(&fate, (warmup_s, seconds), stop, go_on));
        }
        let (ending, is_enough) = self.seconds(drive, &fate, (warmup_s, seconds), stop, go_on);
        let mut world = self.shared.step();
        // A trial's record has what was in force when its load began.
        if let Some((course, before)) = world.course.as_mut().zip(before) {
            (course.applied, course.restart, course.recovery_s) = before;
        }
        let server = server!(self, world);
        server.has_pooler = false;
        server.runs = ending != Some(Ending::Died);
        // Of several it is the last one that dies.
        if let (Some(Ending::Died), [_, .., last]) = (ending, &world.at[..]) {
            let last = last.clone();
            server!(self, world).runs = true;
            world.servers.entry(last).or_default().runs = false;
        }
        let mut measured = measurement(fate.tps, warmup_s, measured_s);
        let committed = measured.load.measured.committed;
        if treatment.load.program.as_deref() == Some("job") {
            measured.figures.insert(JOB.to_owned(), measured_s);
        }
        measured.is_disturbed = world.is_disturbed(drive.seed);
        if let Some(check) = &mut measured.cross_check {
            check.agrees = !fate.disagrees;
        }
        let is_cut = matches!(ending, Some(Ending::Stopped | Ending::Guarded | Ending::Shortage));
        measured.load.stopped_early = is_cut || is_enough;
        measured.broken = (ending == Some(Ending::Died)).then(|| "the server died".to_owned());
        let whole = match (fate.disagrees, committed) {
            (true, _) => Ending::Disagrees,
            (false, 0) => Ending::Nothing,
            (false, _) => Ending::Whole,
        };
        let drove = Drove {
            block: world.seeds.get(&drive.seed).map_or(0, |(block, _)| *block),
            treatment: treatment.name.clone(),
            ending: ending.unwrap_or(whole),
            committed,
            measured_s,
            is_disturbed: measured.is_disturbed,
        };
        if let Some(course) = &mut world.course {
            course.is_stopped |= ending == Some(Ending::Stopped);
            course.drove = Some(drove);
        }
        self.change_by_someone_else(&mut world, treatment);
        let shortage = (ending == Some(Ending::Shortage)).then(|| "the host is short of memory".to_owned());
        Ok(Driven {
            measurement: measured,
            shortage,
            is_enough,
        })
    }
}
