use super::World;
use super::files::Case;
use super::ports::Shared;
use super::promises::{Early, after_a_process, after_all};
use super::world::{Killed, drawn};
use crate::file::ExperimentFile;
use crate::plan::{Consent, Plan, ProfileSettings};
use crate::runner::{Begin, Event, LabError, Runner, Summary};
use crate::trial::seed_of_trial;
use pgdyno_knobs::Catalogue;
use pgdyno_store::{ExperimentStatus, StoredExperiment, TrialRecord};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, LazyLock};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().expect("the catalogue"));

/// Processes until an experiment must be finished: faults that come by chance go away.
const PROCESSES_MAX: u32 = 200;

/// What disturbs the processes that run an experiment.
#[derive(Debug, Clone, Copy, Default)]
struct Trouble {
    kill_at: Option<u64>,
    interrupt_at: Option<u64>,
    /// Trials that the store has room for at first.
    room: Option<usize>,
}

/// An experiment that was run to its end.
struct Ran {
    world: World,
    plan: Plan,
    early: Option<Early>,
    /// Steps of the process that ran first.
    steps: u64,
}

impl Ran {
    fn stored(&self) -> &StoredExperiment {
        &self.world.stored[0]
    }

    fn broken(&self) -> Vec<String> {
        after_all(&self.world, &self.plan, self.stored(), self.early)
    }

    /// The trials without the time at which they ran.
    fn trials(&self) -> Vec<TrialRecord> {
        let trials = self.stored().trials.iter();
        let timeless = |(_, trial): &(i64, TrialRecord)| TrialRecord {
            started_unix_ms: 0,
            ..trial.clone()
        };
        trials.map(timeless).collect()
    }
}

fn consent() -> Consent {
    let risky = ["fsync", "full_page_writes", "synchronous_commit"];
    Consent {
        durability: risky.map(str::to_owned).to_vec(),
        restart: true,
        data: true,
    }
}

/// One process: `None` where it was killed.
fn process(
    shared: &Shared,
    early: &mut Option<Early>,
    act: impl FnOnce(&mut Runner<'_, 'static>) -> Result<Summary, LabError>,
) -> Option<Result<Summary, LabError>> {
    let (clock, mut results, mut servers) = (shared.clone(), shared.clone(), shared.clone());
    let stop = Arc::clone(&shared.world.borrow().stop);
    let consent = consent();
    let mut on_event = |event: Event<'_>| {
        if let Event::EndsEarly { reason, .. } = event {
            *early = Some(match reason.contains("budget") {
                true => Early::Budget,
                false => Early::Decided,
            });
        }
    };
    let mut runner = Runner {
        clock: &clock,
        results: &mut results,
        servers: &mut servers,
        catalogue: &CATALOGUE,
        consent: &consent,
        stop: &stop,
        on_event: &mut on_event,
    };
    match catch_unwind(AssertUnwindSafe(|| act(&mut runner))) {
        Ok(outcome) => Some(outcome),
        Err(payload) if payload.is::<Killed>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs a case to its end, in as many processes as it takes; an error names a promise that was broken on the way.
fn run(case: &Case, trouble: Trouble) -> Result<Ran, String> {
    let parse = || ExperimentFile::parse(&case.text, Path::new("simulated"), &CATALOGUE);
    let file = parse().map_err(|error| format!("{error}\n{}", case.text))?;
    let mut world = case.world();
    for block in 1..=file.blocks {
        for position in 1..=64 {
            let seed = seed_of_trial(file.seed.unwrap_or_default(), block, position);
            world.seeds.insert(seed, (block, position));
        }
    }
    world.kill_at = trouble.kill_at;
    world.interrupt_at = trouble.interrupt_at;
    world.room = trouble.room.unwrap_or(usize::MAX);
    let shared = Shared::new(world, &CATALOGUE);
    let mut early = None;
    let mut steps = None;
    for _ in 0..PROCESSES_MAX {
        let begun = !shared.world.borrow().stored.is_empty();
        let outcome = process(&shared, &mut early, |runner| match begun {
            true => runner.resume(0, "simulated"),
            false => runner.run(Begin {
                file: parse().map_err(LabError::from)?,
                profiles: ProfileSettings::new(),
                text: &case.text,
                name_of_target: "simulated",
                repeat: Vec::new(),
            }),
        });
        let mut world = shared.world.borrow_mut();
        steps.get_or_insert(world.steps);
        if outcome.is_some() {
            let broken = after_a_process(&world);
            if !broken.is_empty() {
                return Err(broken.join("; "));
            }
        }
        world.reboot();
        world.room = usize::MAX;
        if let Some(Ok(summary)) = &outcome
            && summary.status == ExperimentStatus::Finished
        {
            break;
        }
    }
    let world = std::mem::replace(&mut *shared.world.borrow_mut(), case.world());
    let Some(stored) = world.stored.first() else {
        return Err("it never began".to_owned());
    };
    let plan = Plan::recalled(
        parse().map_err(|error| error.to_string())?,
        stored.record.seed,
        &stored.record.treatments,
        &CATALOGUE,
        &consent(),
    );
    Ok(Ran {
        plan: plan.map_err(|error| error.to_string())?,
        world,
        early,
        steps: steps.unwrap_or_default(),
    })
}

/// Runs a case and holds all promises against it.
fn kept(case: &Case, trouble: Trouble) -> Result<Ran, String> {
    let ran = run(case, trouble)?;
    match ran.broken() {
        broken if broken.is_empty() => Ok(ran),
        broken => Err(broken.join("; ")),
    }
}

/// The environment variable that replays one seed.
const REPLAY: &str = "PGDYNO_SIM_SEED";
/// That multiplies how many experiments are simulated.
const TIMES: &str = "PGDYNO_SIM_TIMES";

fn number_in(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "only a test reads it, to replay a seed")]
    std::env::var(name).ok()?.parse().ok()
}

/// Checks many seeds, or the one that is to be replayed.
fn for_seeds(count: u64, check: impl Fn(u64) -> Result<(), String>) {
    let seeds = match number_in(REPLAY) {
        Some(seed) => seed..seed + 1,
        None => 0..number_in(TIMES).unwrap_or(1) * count,
    };
    for seed in seeds {
        if let Err(broken) = check(seed) {
            panic!(
                "seed {seed}: {broken}\n{REPLAY}={seed} replays it:\n{}",
                Case::drawn(seed).text
            );
        }
    }
}

/// What may happen to a case, beside its own faults.
fn trouble_of(seed: u64, steps: u64) -> Trouble {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a step")]
    #[expect(clippy::cast_precision_loss, reason = "steps of an experiment")]
    let some_step = |what| 1 + (drawn(seed, what, "") * steps as f64) as u64;
    match seed % 4 {
        0 => Trouble::default(),
        1 => Trouble {
            kill_at: Some(some_step("kill")),
            ..Trouble::default()
        },
        2 => Trouble {
            interrupt_at: Some(some_step("interrupt")),
            ..Trouble::default()
        },
        _ => Trouble {
            room: Some(usize::try_from(some_step("room") % 7).unwrap_or_default()),
            ..Trouble::default()
        },
    }
}

#[test]
fn every_promise_holds_in_ten_thousand_experiments() {
    for_seeds(10_000, |seed| {
        let case = Case::drawn(seed);
        kept(&case, trouble_of(seed, 300)).map(drop)
    });
}

/// A kill at each step, with another process after it.
fn killed_everywhere(case: &Case) -> Result<u64, String> {
    let whole = kept(case, Trouble::default())?;
    for step in 1..=whole.steps {
        let kill_at = Some(step);
        let trouble = Trouble {
            kill_at,
            ..Trouble::default()
        };
        let resumed = kept(case, trouble).map_err(|broken| format!("killed at step {step}: {broken}"))?;
        if case.repeats() && resumed.trials() != whole.trials() {
            return Err(format!(
                "killed at step {step}, other trials are stored than without"
            ));
        }
    }
    Ok(whole.steps)
}

#[test]
fn a_kill_at_any_step_loses_and_doubles_no_trial_and_changes_no_verdict() {
    for_seeds(60, |seed| killed_everywhere(&Case::drawn(seed)).map(drop));
}

/// The files that pgdyno ships: name and text.
fn shipped() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/experiments");
    let mut files: Vec<(String, String)> = std::fs::read_dir(directory)
        .expect("the shipped experiments")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a text"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn every_shipped_experiment_keeps_all_promises_when_it_is_killed() {
    const KILLS: u64 = 12;
    for (name, text) in shipped() {
        let text = match text.contains("\nseed =") {
            true => text,
            false => format!("seed = 7\n{text}"),
        };
        let case = Case::quiet(1, text);
        let whole = kept(&case, Trouble::default()).unwrap_or_else(|broken| panic!("{name}: {broken}"));
        for kill in 1..=KILLS {
            let kill_at = Some(whole.steps * kill / (KILLS + 1));
            let trouble = Trouble {
                kill_at,
                ..Trouble::default()
            };
            let resumed =
                kept(&case, trouble).unwrap_or_else(|broken| panic!("{name}, {kill_at:?}: {broken}"));
            assert!(
                resumed.trials() == whole.trials(),
                "{name}, {kill_at:?}: other trials"
            );
        }
    }
}
