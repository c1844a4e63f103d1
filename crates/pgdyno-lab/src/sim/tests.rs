use super::World;
use super::files::Case;
use super::optimizer::SimulatedOptimizers;
use super::ports::Shared;
use super::promises::{Early, after_a_process, after_all, restored};
use super::world::{Killed, Panicked, drawn};
use crate::error::LabError;
use crate::file::tests::{on_a_host, shipped};
use crate::file::{Design, ExperimentFile};
use crate::plan::{Consent, Plan, ProfileSettings};
use crate::runner::{Begin, Event, Runner, Summary};
use crate::trial::seed_of_trial;
use pgdyno_judge::{Judge, Judged, Observations, Progress};
use pgdyno_knobs::{Catalogue, Outcome};
use pgdyno_record::{ExperimentStatus, StoredExperiment, TrialRecord};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().expect("the catalogue"));

/// Processes until an experiment must be finished: faults that come by chance go away.
const PROCESSES_MAX: u32 = 200;

/// What disturbs the processes that run an experiment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trouble {
    kill_at: Option<u64>,
    /// The next processes are killed after so many steps of their own.
    kills: [Option<u64>; 2],
    interrupt_at: Option<u64>,
    /// Trials that the store has room for at first.
    room: Option<usize>,
    /// The second process has no consent to data.
    without_consent: bool,
}

/// An experiment that was run to its end.
pub(super) struct Ran {
    pub(super) world: World,
    pub(super) plan: Plan,
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

    /// The trials without the time at which they ran, and that they took.
    fn trials(&self) -> Vec<TrialRecord> {
        let trials = self.stored().trials.iter();
        let timeless = |(_, trial): &(i64, TrialRecord)| TrialRecord {
            started_unix_ms: 0,
            took_s: None,
            ..trial.clone()
        };
        trials.map(timeless).collect()
    }
}

fn consent(data: bool) -> Consent {
    let risky = ["fsync", "full_page_writes", "synchronous_commit"];
    Consent {
        durability: risky.map(str::to_owned).to_vec(),
        restart: true,
        data,
    }
}

/// How a process ended.
enum End {
    Killed,
    Panicked,
    Done(Result<Summary, LabError>),
}

/// One process, and why the experiment ended early in it.
fn process(
    shared: &Shared,
    act: impl FnOnce(&mut Runner<'_, 'static>) -> Result<Summary, LabError>,
) -> (End, Option<Early>) {
    let (clock, mut results, mut servers) = (shared.clone(), shared.clone(), shared.clone());
    let stop = Arc::clone(&shared.world.borrow().stop);
    let consent = consent(shared.world.borrow().may_make_data);
    let mut early = None;
    let mut on_event = |event: Event<'_>| match event {
        Event::EndsEarly { reason, .. } => {
            early = Some(match reason {
                "the budget of trials is spent" => Early::Trials,
                "the budget of time is spent" => Early::Time,
                _ => Early::Decided,
            });
        }
        // A trial that is not stored by now is none.
        Event::PuttingBack => shared.world.borrow_mut().course = None,
        _ => {}
    };
    let mut runner = Runner {
        clock: &clock,
        results: &mut results,
        servers: &mut servers,
        optimizers: &SimulatedOptimizers,
        catalogue: &CATALOGUE,
        consent: &consent,
        stop: &stop,
        on_event: &mut on_event,
    };
    let end = match catch_unwind(AssertUnwindSafe(|| act(&mut runner))) {
        Ok(outcome) => End::Done(outcome),
        Err(payload) if payload.is::<Killed>() => End::Killed,
        Err(payload) if payload.is::<Panicked>() => End::Panicked,
        Err(payload) => resume_unwind(payload),
    };
    (end, early)
}

/// What is wrong after a process: it ends before the experiment does only if it must, and
/// everything is as it was.
fn after(world: &World, end: &End) -> Vec<String> {
    let mut broken = after_a_process(world);
    let mut must = |holds: bool, what: String| {
        if !holds {
            broken.push(what);
        }
    };
    let status = world.stored.first().map(|stored| stored.status);
    match end {
        End::Killed => return Vec::new(),
        End::Panicked => {
            must(world.has_panicked, "it panicked by itself".to_owned());
            let has_reason = world.excuse.is_some() || status == Some(ExperimentStatus::Interrupted);
            must(has_reason, format!("it panicked and is {status:?}"));
        }
        End::Done(Ok(summary)) => {
            let is_stopped = world.stop.load(Ordering::Relaxed);
            must(
                summary.status == ExperimentStatus::Finished || is_stopped,
                "it was interrupted by nobody".to_owned(),
            );
            must(
                status == Some(summary.status),
                format!("{:?} is stored as {status:?}", summary.status),
            );
            let stored = &world.stored[0].restored;
            broken.extend(restored(world, stored));
        }
        End::Done(Err(error)) => {
            let text = error.to_string();
            let is_about_consent = matches!(error, LabError::DataNotAgreed { .. } | LabError::Findings(_));
            let lacks_consent = is_about_consent && !world.may_make_data;
            let excuse = world.excuse.as_ref();
            must(
                excuse.is_some_and(|excuse| text.contains(excuse)) || lacks_consent,
                format!("it ended for {excuse:?}, and reports {text}"),
            );
            must(
                !world.restored.iter().any(|line| line.outcome == Outcome::Failed)
                    || text.contains("could not be restored")
                    || text.contains("restoring the settings failed"),
                format!("what is not restored is not reported: {text}"),
            );
        }
    }
    broken
}

/// Runs a case to its end, in as many processes as it takes; an error names a promise that was
/// broken on the way.
fn run(case: &Case, trouble: Trouble) -> Result<Ran, String> {
    let file = ExperimentFile::parse(&case.text, Path::new("simulated"), &CATALOGUE)
        .map_err(|error| format!("{error}\n{}", case.text))?;
    let mut world = case.world();
    // A search goes on to a further block where one has all that may be tried.
    let blocks = file.search.as_ref().map_or(file.blocks, |search| search.trials);
    for block in 1..=blocks {
        for position in 1..=64 {
            let seed = seed_of_trial(file.seed.unwrap_or_default(), block, position);
            world.seeds.insert(seed, (block, position));
        }
    }
    let window = file.window.as_ref();
    world.window = window.map(|hours| hours.minutes().expect("times of the day"));
    world.restarts = file.target.restart;
    world.is_switched = file.design == Design::Switchback;
    world.kill_at = trouble.kill_at;
    world.kills = trouble.kills.into_iter().flatten().collect();
    world.interrupt_at = trouble.interrupt_at;
    world.room = trouble.room.unwrap_or(usize::MAX);
    let shared = Shared::new(world, &CATALOGUE);
    let (mut early, mut steps) = (None, None);
    for _ in 0..PROCESSES_MAX {
        let begun = !shared.world.borrow().stored.is_empty();
        let (end, ended_early) = process(&shared, |runner| match begun {
            true => runner.resume(0, "simulated"),
            false => runner.run(Begin {
                file: file.clone(),
                profiles: ProfileSettings::new(),
                text: &case.text,
                name_of_target: "simulated",
                sandbox: None,
                repeat: Vec::new(),
            }),
        });
        let mut world = shared.world.borrow_mut();
        steps.get_or_insert(world.steps);
        early = ended_early;
        let broken = after(&world, &end);
        if !broken.is_empty() {
            return Err(broken.join("; "));
        }
        let is_finished =
            matches!(&end, End::Done(Ok(summary)) if summary.status == ExperimentStatus::Finished);
        if is_finished {
            break;
        }
        world.reboot();
        world.may_make_data = !(trouble.without_consent && world.process == 1);
    }
    let mut world = std::mem::replace(&mut *shared.world.borrow_mut(), case.world());
    let spent_s = world.spent_s;
    world.reboot();
    world.spent_s = spent_s;
    let Some(stored) = world.stored.first() else {
        return Err("it never began".to_owned());
    };
    let plan = Plan::recalled(
        file,
        stored.record.seed,
        &stored.record.treatments,
        &CATALOGUE,
        &consent(true),
    );
    Ok(Ran {
        plan: plan.map_err(|error| error.to_string())?,
        world,
        early,
        steps: steps.unwrap_or_default(),
    })
}

/// Runs a case and holds all promises against it.
pub(super) fn kept(case: &Case, trouble: Trouble) -> Result<Ran, String> {
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
    for_seeds_and(count, &[], check);
}

/// Checks those, too, that once broke a promise.
fn for_seeds_and(count: u64, once_broken: &[u64], check: impl Fn(u64) -> Result<(), String>) {
    let broken = match number_in(REPLAY) {
        Some(seed) => first_broken([seed], check),
        None => {
            let count = number_in(TIMES).unwrap_or(1) * count;
            first_broken(once_broken.iter().copied().chain(0..count), check)
        }
    };
    if let Some(broken) = broken {
        panic!("{broken}");
    }
}

/// What the first seed breaks that breaks something, and how it is replayed.
fn first_broken(
    seeds: impl IntoIterator<Item = u64>,
    check: impl Fn(u64) -> Result<(), String>,
) -> Option<String> {
    seeds.into_iter().find_map(|seed| {
        let broken = check(seed).err()?;
        let text = Case::drawn(seed).text;
        Some(format!(
            "seed {seed}: {broken}\n{REPLAY}={seed} replays it:\n{text}"
        ))
    })
}

#[test]
fn a_broken_promise_is_reported_with_the_seed_that_replays_it() {
    let check = |seed| match seed {
        3 | 5 => Err("a trial is lost".to_owned()),
        _ => Ok(()),
    };
    let broken = first_broken(0..10, check).expect("a broken promise");
    assert!(
        broken.starts_with("seed 3: a trial is lost\nPGDYNO_SIM_SEED=3 replays it:\nname = "),
        "{broken}"
    );
    assert_eq!(first_broken(6..10, check), None);
}

/// What may happen to a case, beside its own faults.
fn trouble_of(seed: u64, steps: u64) -> Trouble {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a step")]
    #[expect(clippy::cast_precision_loss, reason = "steps of an experiment")]
    let some_step = |what| Some(1 + (drawn(seed, what, "") * steps as f64) as u64);
    let is = |what| drawn(seed, what, "") < 0.3;
    let calm = Trouble {
        without_consent: is("without consent"),
        ..Trouble::default()
    };
    match seed % 4 {
        0 => calm,
        1 => Trouble {
            kill_at: some_step("kill"),
            kills: ["again", "and again"].map(|what| some_step(what).filter(|_| is("is killed again"))),
            ..calm
        },
        2 => Trouble {
            interrupt_at: some_step("interrupt"),
            ..calm
        },
        _ => Trouble {
            room: some_step("room").and_then(|step| usize::try_from(step % 7).ok()),
            ..calm
        },
    }
}

#[test]
fn every_promise_holds_in_ten_thousand_experiments() {
    // An experiment seemed to be over, its copies of files were removed, and it was resumed.
    for_seeds_and(10_000, &[96_212], |seed| {
        let case = Case::drawn(seed);
        kept(&case, trouble_of(seed, 300)).map(drop)
    });
}

#[test]
fn an_experiment_is_resumed_on_its_own_target_alone_and_not_once_it_is_finished() {
    let ran = kept(&Case::drawn(0), Trouble::default()).expect("it keeps its promises");
    let shared = Shared::new(ran.world, &CATALOGUE);
    let resumed = |status, target: &str| {
        shared.world.borrow_mut().stored[0].status = status;
        let steps = shared.world.borrow().steps;
        let end = process(&shared, |runner| runner.resume(0, target)).0;
        assert_eq!(shared.world.borrow().steps, steps + 1, "the store alone is asked");
        match end {
            End::Done(Err(error)) => error,
            _ => panic!("{status:?} on {target}: it was resumed"),
        }
    };
    for status in [ExperimentStatus::Interrupted, ExperimentStatus::Running] {
        let error = resumed(status, "another");
        assert!(matches!(error, LabError::OtherTarget { .. }), "{error}");
    }
    let error = resumed(ExperimentStatus::Finished, "simulated");
    assert!(matches!(error, LabError::NothingToResume(0)), "{error}");
}

/// A kill at every other step, with other processes after it.
fn killed_everywhere(case: &Case) -> Result<(), String> {
    let whole = kept(case, Trouble::default())?;
    for step in (1 + case.seed % 2..=whole.steps).step_by(2) {
        let trouble = Trouble {
            kill_at: Some(step),
            ..Trouble::default()
        };
        kept(case, trouble).map_err(|broken| format!("killed at step {step}: {broken}"))?;
    }
    Ok(())
}

#[test]
fn a_kill_among_other_faults_loses_and_doubles_no_trial() {
    for_seeds_and(60, &[90], |seed| killed_everywhere(&Case::drawn(seed)));
}

/// What may be concluded from all that is stored.
pub(super) fn judged(ran: &Ran) -> Judged {
    let stored = ran.stored();
    let judge = Judge::new(&stored.record, &stored.record.metric);
    let mut observed = Observations::default();
    for (_, trial) in &stored.trials {
        judge.observe(&mut observed, trial);
    }
    let progress = Progress {
        ended: ran.plan.file.blocks as usize,
        is_over: true,
    };
    judge.judge(&observed, progress)
}

/// All that is stored but for when it was measured, and what may be concluded from it.
fn result_of(ran: &Ran) -> (Vec<TrialRecord>, String) {
    let text = format!("{:?} {:?} {:?}", ran.early, judged(ran), ran.stored().record);
    (ran.trials(), text)
}

/// A kill at each step, and an interrupt at some: everything is as without.
fn same_everywhere(seed: u64) -> Result<(), String> {
    const INTERRUPTS_EVERY: u64 = 4;
    let case = Case::steady(seed);
    let whole = kept(&case, Trouble::default())?;
    let expected = result_of(&whole);
    for step in 1..=whole.steps {
        let kill = Trouble {
            kill_at: Some(step),
            ..Trouble::default()
        };
        let interrupt = Trouble {
            interrupt_at: Some(step),
            ..Trouble::default()
        };
        let is_interrupted = step % INTERRUPTS_EVERY == seed % INTERRUPTS_EVERY;
        for trouble in [Some(kill), is_interrupted.then_some(interrupt)]
            .into_iter()
            .flatten()
        {
            let with = |broken| format!("{trouble:?}: {broken}\n{}", case.text);
            let resumed = kept(&case, trouble).map_err(with)?;
            if result_of(&resumed) != expected {
                return Err(with("another result than without".to_owned()));
            }
        }
    }
    Ok(())
}

/// Of the files, every fourth ends when all is decided, and every fourth has servers of two
/// versions.
#[test]
fn a_kill_or_interrupt_at_any_step_changes_no_result() {
    for_seeds(60, same_everywhere);
}

/// Each trial of a switchback has the throughput of its own settings, though a change takes a
/// second of the load, and blocks share loads of ten minutes.
#[test]
fn each_trial_of_a_switchback_has_the_seconds_of_its_settings() {
    let case = Case::quiet(7, Case::switchback(7, 12));
    let ran = kept(&case, Trouble::default()).unwrap();
    let stored = ran.stored();
    assert_eq!(stored.trials.len(), 12 * 4);
    assert_eq!(ran.world.drives.len(), 2, "loads");
    for (_, trial) in &stored.trials {
        let number = ran.plan.treatments.iter().position(|t| t.name == trial.treatment);
        let settings = ran.plan.treatments[number.unwrap()].settings.iter();
        let settings: Vec<String> = settings.map(|s| format!("{}={}", s.knob, s.value)).collect();
        #[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
        let expected = ran.world.tps_of(&settings) as f64;
        assert_eq!(
            (trial.tps, trial.measured_s),
            (Some(expected), 12.0),
            "{settings:?}"
        );
    }
}

/// A load of ten minutes that begins a minute before the window's end would go on after it.
#[test]
fn settings_of_a_switchback_change_within_the_window_alone() {
    let window = "[window]\nfrom = '01:00'\nto = '01:05'\n[data]";
    let text = Case::switchback(7, 12).replace("[data]", window);
    let ran = kept(&Case::quiet(7, text), Trouble::default()).unwrap();
    let trials = &ran.stored().trials;
    assert_eq!(trials.len(), 12 * 4);
    for (_, trial) in trials {
        let minute = trial.started_unix_ms / 60_000 % 1440;
        assert!(
            (60..65).contains(&minute),
            "block {}: minute {minute}",
            trial.block
        );
    }
}

#[test]
fn a_switchback_keeps_all_promises_whatever_fails() {
    for_seeds(100, |seed| {
        let text = Case::switchback(seed, 1 + u32::try_from(seed % 5).unwrap_or_default());
        let case = Case {
            text,
            ..Case::drawn(seed)
        };
        let ran = kept(&case, trouble_of(seed, 400));
        ran.map(drop).map_err(|broken| format!("{broken}\n{}", case.text))
    });
}

#[test]
fn a_switchback_that_is_killed_anywhere_loses_and_doubles_no_trial() {
    for_seeds(2, |seed| {
        let whole = Case::quiet(seed, Case::switchback(seed, 3));
        let case = Case {
            text: whole.text.clone(),
            ..Case::drawn(seed)
        };
        let killed = killed_everywhere(&whole).and_then(|()| killed_everywhere(&case));
        killed.map_err(|broken| format!("{broken}\n{}", case.text))
    });
}

/// Servers that take turns: a load for each block, whose trials have each the throughput of their
/// own treatment.
#[test]
fn each_trial_in_turns_has_what_its_own_server_did() {
    for seed in 0..12 {
        let case = Case::quiet(seed, Case::in_turns(seed, 4));
        let ran = kept(&case, Trouble::default()).unwrap();
        let stored = ran.stored();
        assert_eq!(
            (stored.trials.len(), ran.world.drives.len()),
            (4 * 3, 4),
            "{seed}"
        );
        for (_, trial) in &stored.trials {
            let number = ran.plan.treatments.iter().position(|t| t.name == trial.treatment);
            let treatment = &ran.plan.treatments[number.unwrap()];
            let seeds = ran.world.drives.iter().map(|(seed, _)| *seed);
            let mut expected = seeds.map(|seed| (ran.world.tps(treatment, seed) * 5.0).floor() / 5.0);
            let tps = trial.tps.unwrap();
            assert!(
                expected.any(|expected| (tps - expected).abs() < 1e-9),
                "{seed}: {tps}"
            );
            let variant = treatment.variant();
            let label = (!variant.is_target()).then(|| variant.label());
            assert_eq!(trial.server_variant, label, "{seed}");
        }
    }
}

#[test]
fn servers_in_turns_keep_all_promises_whatever_fails() {
    for_seeds(100, |seed| {
        let text = Case::in_turns(seed, 1 + u32::try_from(seed % 5).unwrap_or_default());
        let case = Case {
            text,
            is_sandbox: true,
            ..Case::drawn(seed)
        };
        let ran = kept(&case, trouble_of(seed, 300));
        ran.map(drop).map_err(|broken| format!("{broken}\n{}", case.text))
    });
}

#[test]
fn servers_in_turns_that_are_killed_anywhere_lose_and_double_no_trial() {
    for_seeds(4, |seed| {
        let whole = Case::quiet(seed, Case::in_turns(seed, 2));
        let case = Case {
            text: whole.text.clone(),
            is_sandbox: true,
            ..Case::drawn(seed)
        };
        let killed = killed_everywhere(&whole).and_then(|()| killed_everywhere(&case));
        killed.map_err(|broken| format!("{broken}\n{}", case.text))
    });
}

/// What a file does to the server while loads run is done in each of them, at its time, and undone
/// before the next.
#[test]
fn events_happen_in_every_trial_and_are_undone_after_it() {
    const TEXT: &str = "name = 'events'\nquestion = '?'\ndesign = 'one-at-a-time'\nblocks = 3\nseed = 7\n\
        [target]\nrestart = 'when-needed'\n[data]\nscale = 1\n[load]\nworkload = 'tpcb'\nclients = 4\nwarmup_s = 2\nmeasure_s = 44\n\
        [[step]]\nname = 's0'\nsettings.work_mem = '8MB'\n\
        [[event]]\nat = '10s'\ntitle = 'swappiness'\nsettings = { 'vm.swappiness' = 1, commit_delay = 10 }\n\
        [[event]]\nat = '21s'\nkill = true\n[[event]]\nat = '32s'\nneighbour = 'true'\n";
    for_seeds(60, |seed| {
        let ran = kept(&Case::quiet(seed, TEXT.to_owned()), trouble_of(seed, 200))?;
        for (_, trial) in &ran.stored().trials {
            let expected = [
                ("swappiness", 12.0),
                ("the server is killed", 23.0),
                ("a neighbour starts", 34.0),
            ];
            // A kill takes its time, and what is due meanwhile comes later.
            let as_asked = trial.events.iter().zip(expected).all(|(event, (title, t_s))| {
                event.title == title && (t_s - 0.1..t_s + 5.0).contains(&event.t_s)
            });
            let all = as_asked && trial.events.len() == expected.len();
            if trial.status == pgdyno_record::TrialStatus::Finished && !all {
                let events = &trial.events;
                return Err(format!(
                    "block {} of {}: {events:?}",
                    trial.block, trial.treatment
                ));
            }
        }
        Ok(())
    });
}

#[test]
fn new_instances_are_made_for_each_block_but_the_first() {
    let text = |instances: &str| {
        format!(
            "name = 'simulated'\nquestion = '?'\ndesign = 'one-at-a-time'\nblocks = 3\nseed = 7\n[target]\ninstances = '{instances}'\n\
             [data]\nscale = 1\n[load]\nworkload = 'tpcb'\nclients = 4\nwarmup_s = 0\nmeasure_s = 1\n\
             [[step]]\nname = 'a'\nserver.version = 16\n[[step]]\nname = 'b'\nserver.version = 17\n"
        )
    };
    for (instances, removed) in [("once", 0), ("per-block", 4)] {
        let ran = kept(&Case::quiet(7, text(instances)), Trouble::default()).unwrap();
        assert_eq!(
            (ran.world.removed, ran.stored().trials.len()),
            (removed, 9),
            "{instances}"
        );
    }
}

#[test]
fn every_shipped_experiment_keeps_all_promises_when_it_is_killed() {
    const KILLS: u64 = 12;
    for (name, text) in shipped() {
        // Simulated loads have no response times.
        let text = on_a_host(&text, 24 << 30).replace("\nmetric = \"p99_ms\"", "");
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
