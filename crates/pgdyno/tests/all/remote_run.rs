//! Experiments on a host over ssh: they run there, and their results are kept here.

use crate::remote::Pair;
use crate::tune::{COSTS, FIND};
use pgdyno_record::{
    ExperimentRecord, SeriesRecord, SettingRecord, TreatmentRecord, TrialRecord, TrialStatus, WorkloadRecord,
};
use pgdyno_store::Store;
use pgdyno_testing::ssh::FAR;
use pgdyno_testing::{Said, Started, signal, until};
use std::fs;

/// Two treatments, and a setting that is seen while a trial runs.
const EXPERIMENT: &str = "name = \"far\"\nquestion = \"Does it matter?\"\ndesign = \"a-b\"\nblocks = 3\nseed = 7\n\
    smallest_effect = 0.05\n[target]\nsandbox = \"main\"\ncreate = {}\n[data]\nscale = 1\n[load]\n\
    workload = \"tpcb\"\nclients = 2\nrate = \"200\"\nwarmup_s = 0.2\nmeasure_s = 1.0\n\
    [[step]]\nname = \"more\"\ntitle = \"More memory\"\nsettings.work_mem = \"7MB\"\n";

impl Pair {
    fn experiment(&self) -> String {
        let path = self.home.write("far.toml", EXPERIMENT);
        path.to_string_lossy().into_owned()
    }

    fn here(&self, arguments: &[&str]) -> Said {
        self.home.run(arguments)
    }

    /// What is asked here, without a host.
    fn begin(&self, more: &[&str]) -> Started {
        let file = self.experiment();
        let mut all = vec!["run", &*file];
        all.extend(more);
        let mut started = self.start(&all);
        started.until_it_prints("trial 1/6");
        started
    }

    fn until_trials(&self, count: usize) {
        until("trials", || match self.home.stored_trials(1).len() {
            fewer if fewer < count => Err(fewer),
            _ => Ok(()),
        });
    }

    /// All six trials are here, once, and everything is restored there.
    fn is_whole(&self) {
        assert_eq!(self.home.stored_trials(1).len(), 6);
        self.all_is_restored();
        assert!(!self.far.file("home/data").exists(), "results there");
        let sockets = fs::read_dir(self.far.file("home/state/agents")).expect("a directory");
        assert_eq!(sockets.count(), 0);
    }
}

#[test]
fn experiment_runs_there_and_its_results_are_here() {
    let pair = Pair::new();
    let file = pair.experiment();
    let dry = pair.run(&["run", &file, "--dry-run"]).fine();
    assert!(dry.out.contains("6 trials"), "{}", dry.out);
    assert!(!pair.home.file("data").exists(), "a rehearsal has made a store");

    let report = pair.home.file("report.html").to_string_lossy().into_owned();
    let ran = pair.run(&["run", &file, "--json", "--report", &report]).fine();
    let found = ran.json();
    let listed = pair.here(&["list", "--json"]).fine();
    let name = format!("sandbox main on {FAR}");
    assert!(listed.out.contains(&name), "{}", listed.out);
    assert_eq!(pgdyno_testing::ended(&found, "finished"), 6);
    // Both hosts have one clock, which shows what the error is.
    let facts = found["facts"].as_array().expect("facts");
    let known = |name: &str| {
        let fact = facts.iter().find(|fact| fact["name"] == name);
        fact.and_then(|fact| fact["value"].as_f64()).expect(name)
    };
    let (ahead_ms, error_ms) = (known("host.clock_ahead_ms"), known("host.clock_ahead_error_ms"));
    assert!(
        error_ms > 0.0 && ahead_ms.abs() <= error_ms + 0.1,
        "{ahead_ms} +- {error_ms}"
    );
    let repeat = found["experiment"]["repeat"].to_string();
    assert!(repeat.contains(&format!("--host {FAR}")), "{repeat}");
    assert!(ran.err.contains("work_mem"), "what was restored: {}", ran.err);
    assert!(
        fs::read_to_string(&report)
            .expect("a report")
            .contains("More memory")
    );
    let series = pair.here(&["export", "1", "--format", "csv"]).fine();
    assert!(!series.out.is_empty());
    pair.is_whole();

    // The same sandbox here would be another server.
    pair.here(&["resume", "1"]).fails(2, &["with --host ssh:far"]);
    assert!(!pair.home.file("state/sandboxes/main").exists());
    pair.run(&["resume", "1"]).fails(1, &["finished"]);
    pair.run(&["run", "no-such-experiment"])
        .fails(2, &["no-such-experiment"]);
    pair.run(&["run", &file, "--set", "load.measure_s=x"])
        .fails(2, &["expected f64"]);
    pair.here(&["run", &file, "--grace", "5s"]).fails(2, &["--host"]);
}

#[test]
fn what_experiments_there_have_shown_is_in_the_advice() {
    let pair = Pair::new();
    let knob = "checkpoint_completion_target";
    pair.run(&["sandbox", "create", "main", "--set", &format!("{knob}=0.5")])
        .fine();
    let advise = [
        "advise",
        "sandbox:main",
        "--json",
        "--only",
        "checkpoint-in-a-hurry",
    ];
    let found = pair.run(&advise).json();
    let value = found["advice"][0]["setting"]["value"].as_str().expect("a value");
    let workload = WorkloadRecord {
        name: "tpcb".into(),
        scale: 1,
        clients: 2,
        threads: 1,
        warmup_s: 0.0,
        measure_s: 1.0,
    };
    let setting = SettingRecord {
        knob: knob.into(),
        value: value.into(),
        layer: "postgres".into(),
        risk: "none".into(),
        changed: true,
    };
    let treatments = vec![
        TreatmentRecord::new("reference"),
        TreatmentRecord {
            settings: vec![setting],
            against: Some("reference".into()),
            ..TreatmentRecord::new("slow")
        },
    ];
    let mut store = Store::open(&pair.home.file("data/results.sqlite")).expect("a store");
    let record = ExperimentRecord {
        blocks: 4,
        treatments,
        target: format!("sandbox main on {FAR}"),
        ..ExperimentRecord::new("by-hand", workload)
    };
    let id = store.begin(&record).expect("begun");
    for block in 1..=4 {
        for (treatment, tps) in [("reference", 1000.0), ("slow", 500.0)] {
            let trial = TrialRecord {
                status: TrialStatus::Finished,
                tps: Some(tps + f64::from(block)),
                measured_s: 1.0,
                ..TrialRecord::begun(block, 1, treatment)
            };
            store
                .add_trial(id, &trial, &SeriesRecord::default())
                .expect("stored");
        }
    }
    drop(store);
    let found = pair.run(&advise).json();
    let skipped = found["skipped"].to_string();
    assert!(skipped.contains("measured here as worse"), "{found:#}");
}

/// What it chooses is kept here before it is tried there.
#[test]
fn search_runs_there_and_what_it_chooses_is_here() {
    let pair = Pair::new();
    let (before, _) = EXPERIMENT.split_once("[[step]]").expect("a step");
    let text = before
        .replace("a-b", "search")
        .replace("blocks = 3", "blocks = 2")
        + "[search]\ntrials = 4\n[[factor]]\nname = \"sorts\"\nof = \"work_mem\"\n\
           values = [\"4MB\", \"7MB\", \"9MB\", \"11MB\"]\n";
    let file = pair
        .home
        .write("search.toml", &text)
        .to_string_lossy()
        .into_owned();
    let found = pair.run(&["run", &file, "--json"]).fine().json();
    assert_eq!(pgdyno_testing::ended(&found, "finished"), 4);
    let names = found["treatments"].as_array().expect("treatments").iter();
    let names: Vec<&str> = names.filter_map(|treatment| treatment["name"].as_str()).collect();
    assert_eq!(names[..2], ["reference", "candidate 1"]);
    pair.all_is_restored();
}

#[test]
fn tune_measures_there_and_judges_here() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "main", "--set", "fsync=off"])
        .fine();
    let (script, profile) = (pair.home.write("find.sql", FIND), pair.home.file("found.toml"));
    let (script, output) = (script.to_string_lossy(), profile.to_string_lossy());
    let words = "tune sandbox:main --scale 1 --clients 2 --duration 1s --warmup 200ms --trials 6 --seed 1 --blocks 5 \
                 --only random_page_cost";
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.extend(["--script", &*script, "--output", &*output]);
    all.extend(COSTS);
    let dry = pair.run(&[&all[..], &["--dry-run"]].concat()).fine();
    assert!(dry.out.contains("random_page_cost"), "{}", dry.out);
    assert!(!pair.home.file("data").exists(), "a rehearsal has made a store");
    let mut stopped = pair.start(&all);
    stopped.until_it_prints("trial 2/6");
    stopped.interrupt();
    let goes_on = format!("pgdyno resume 1 --host {FAR}, then pgdyno tune ... --after 1");
    stopped.end().fails(1, &[&goes_on]);
    pair.all_is_restored();
    pair.run(&["resume", "1"]).fine();
    let found = pair
        .run(&[&all[..], &["--after", "1", "--json"]].concat())
        .fine()
        .json();
    assert_eq!(found["outcome"], "tuned", "{found:#}");
    assert_eq!(found["kept"][0]["setting"]["knob"], "random_page_cost");
    let text = fs::read_to_string(&profile).expect("a profile");
    assert!(text.contains("name = \"tuned\""), "{text}");
    let tagged = pair.here(&["list", "--tag", "tune", "--json"]).fine().out;
    let name = format!("sandbox main on {FAR}");
    assert!(tagged.matches(&name).count() >= 2, "{tagged}");
    let report = pair.here(&["report", "2", "--format", "json"]).fine().json();
    let repeat = report["experiment"]["repeat"][0].as_str().expect("a command");
    assert!(
        repeat.starts_with("pgdyno tune sandbox:main --scale 1 "),
        "{repeat}"
    );
    assert!(
        repeat.contains(&format!("--host {FAR}")) && !repeat.contains("--after"),
        "{repeat}"
    );
    pair.all_is_restored();
    assert!(!pair.far.file("home/data").exists(), "results there");
    // What is wrong is said there, and ends it here.
    pair.run(&["tune", "sandbox:none"]).fails(1, &["sandbox", "none"]);
}

#[test]
fn run_that_is_stopped_or_loses_its_coordinator_is_resumed() {
    let pair = Pair::new();
    let stopped = pair.begin(&[]);
    stopped.interrupt();
    let ended = stopped.end();
    ended.fails(
        1,
        &[
            "restoring everything",
            &format!("`pgdyno resume 1 --host {FAR}` continues"),
        ],
    );
    pair.all_is_restored();
    assert!((1..6).contains(&pair.home.stored_trials(1).len()));
    // The coordinator is killed, and the host waits for another: the one that resumes.
    let mut killed = pair.start(&["resume"]);
    killed.until_it_prints("trial ");
    signal(killed.id(), "-KILL");
    killed.end();
    // It notices that a moment later; until then the sandbox is its.
    until("a resumption that ends the run there first", || {
        let resumed = pair.run(&["resume"]);
        match resumed.code == 0 && resumed.err.contains("had lost their coordinator") {
            true => Ok(()),
            false => Err(resumed.err),
        }
    });
    pair.is_whole();
}

#[test]
fn run_goes_on_over_another_connection() {
    let pair = Pair::new();
    let started = pair.begin(&[]);
    // The ssh of this end, then sshd's process.
    let of_start = |pid: u32| {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let pids = children
            .split_whitespace()
            .filter_map(|pid| pid.parse::<u32>().ok());
        pids.collect::<Vec<u32>>()
    };
    until("an ssh to kill", || match &*of_start(started.id()) {
        [] => Err("none"),
        pids => {
            pids.iter().for_each(|pid| signal(pid, "-KILL"));
            Ok(())
        }
    });
    pair.until_trials(3);
    pair.lose_connections();
    let ended = started.end().fine();
    assert!(ended.err.contains("connected to ssh:far again"), "{}", ended.err);
    pair.is_whole();
}

#[test]
fn run_goes_on_when_a_silent_link_comes_back() {
    let pair = Pair::new();
    let mut started = pair.begin(&[]);
    pair.far.cut(true);
    started.until_it_prints("was lost (nothing was heard for 30 s)");
    pair.far.cut(false);
    started.end().fine();
    pair.is_whole();
}

#[test]
fn host_that_waits_in_vain_restores_or_keeps_what_is_changed() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "main"]).fine();
    // Every treatment sets it.
    let text = EXPERIMENT.replace("[data]", "[base]\nwork_mem = \"6MB\"\n[data]");
    let file = pair.home.write("all.toml", &text).to_string_lossy().into_owned();
    for (then, is_kept) in [("restore", false), ("keep", true)] {
        let started = pair.start(&["run", &file, "--grace", "1s", "--on-disconnect", then]);
        until("a setting", || match pair.setting("work_mem") {
            none if none.is_empty() => Err(none),
            _ => Ok(()),
        });
        signal(started.id(), "-KILL");
        started.end();
        until("the end of the agent", || match &*pair.agents() {
            [] => Ok(()),
            others => Err(others.to_vec()),
        });
        if is_kept {
            assert!(!pair.setting("work_mem").is_empty());
            pair.there("restore").fine();
        }
        pair.all_is_restored();
    }
}

#[test]
fn restore_by_hand_ends_a_run_without_a_coordinator() {
    let pair = Pair::new();
    let started = pair.begin(&["--grace", "1h"]);
    signal(started.id(), "-KILL");
    started.end();
    until("a waiting agent", || {
        let restored = pair.there("restore");
        match restored.err.contains("had lost their coordinator") {
            true => Ok(()),
            false => Err(restored.err),
        }
    });
    pair.all_is_restored();
}
