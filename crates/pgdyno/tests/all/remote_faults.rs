//! Faults at random instants of experiments over ssh: processes at both ends are killed, links are
//! cut, the disk there is full or cannot be written. The host is as it was by one command there, no
//! process is left, no finished trial is lost or run twice, and none counts whose load lost a host.
//! Two faults of each kind of experiment, by turn; PGDYNO_KILLS for more, as `make soak` has it.
//! Needs root.
#![allow(clippy::print_stdout, reason = "the tally is the result")]

use crate::remote::Pair;
use common::machine::{kills, turn, whole_machine};
use common::ssh::FAR;
use common::{Said, Started, kernel, pass, until};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const FAULTS: u32 = 2;
/// From so many faults on a course is a long one.
const LONG_COURSE: u32 = 20;
/// A whole experiment takes longer.
const LATEST_MS: u64 = 12_000;
/// Two treatments in three blocks.
const TRIALS: usize = 6;

const EXPERIMENT: &str = "name = \"faults\"\nquestion = \"Does everything come back?\"\ndesign = \"a-b\"\nblocks = 3\nseed = 7\n\
    [target]\nsandbox = \"main\"\n[data]\nscale = 1\n[load]\nworkload = \"tpcb\"\nclients = 2\nthreads = 1\nrate = \"200\"\n\
    warmup_s = 0.1\nmeasure_s = 1.0\nHOSTS\n[[step]]\nname = \"more\"\n[step.settings]\nwork_mem = \"7MB\"\nvm.swappiness = 17\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// The program that was started is killed.
    Coordinator,
    /// The agent is.
    Agent,
    /// The ssh that leads there is.
    Ssh,
    /// The processes that serve connections there are.
    Sshd,
    /// The link is down for a moment.
    Moment,
    /// Every packet is dropped without a word, for longer than anybody waits for a sign of life.
    Silence,
    /// There is no room left there.
    FullDisk,
    /// The home there is read-only.
    ReadOnly,
}

const ALL: &[Fault] = &[
    Fault::Coordinator,
    Fault::Agent,
    Fault::Ssh,
    Fault::Sshd,
    Fault::Moment,
    Fault::Silence,
    Fault::FullDisk,
    Fault::ReadOnly,
];
/// Those of processes and links.
const OF_PROCESSES: &[Fault] = ALL.split_at(6).0;

/// Some may have ended by themselves.
fn kill(pids: &[u32]) {
    for pid in pids {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).output();
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn is_sshds(pid: &u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("sshd"))
}

impl Fault {
    /// Brings it about, and ends it where it does not end by itself.
    fn strike(self, pair: &Pair, coordinator: &Started) {
        let state = pair.far.file("home/state");
        match self {
            Fault::Coordinator => kill(&[coordinator.id()]),
            Fault::Agent => kill(&pair.agents()),
            Fault::Ssh => kill(&children_of(coordinator.id())),
            Fault::Sshd => {
                let mut pids = pair.far.processes();
                pids.retain(is_sshds);
                kill(&pids);
            }
            Fault::Moment => {
                pair.far.take_down(true);
                pass(Duration::from_secs(2));
                pair.far.take_down(false);
            }
            Fault::Silence => {
                pair.far.cut(true);
                pass(Duration::from_secs(40));
                pair.far.cut(false);
            }
            Fault::FullDisk => {
                let filler = state.join("filler");
                let of = format!("of={}", filler.display());
                let _ = Command::new("dd").args(["if=/dev/zero", &of, "bs=1M"]).output();
                pass(Duration::from_secs(3));
                fs::remove_file(filler).expect("removed");
            }
            Fault::ReadOnly => {
                pair.far.make_read_only(true);
                pass(Duration::from_secs(3));
                pair.far.make_read_only(false);
            }
        }
    }
}

/// What the experiment touches, and what may be left of it.
fn state(data: &Path, journals: &Path) -> [String; 3] {
    let conf = fs::read_to_string(data.join("postgresql.auto.conf")).expect("a file");
    let left = fs::read_dir(journals).into_iter().flatten().flatten();
    let mut left: Vec<String> = left
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".journal"))
        .collect();
    left.sort();
    [kernel("/proc/sys/vm/swappiness"), conf, left.join(" ")]
}

/// How a course of experiments goes on over faults.
struct Course<'p> {
    pair: &'p Pair,
    file: String,
    /// For the host, on every command.
    host: &'p [&'p str],
    id: i64,
    begun: bool,
    kept: BTreeSet<(u64, String)>,
}

impl Course<'_> {
    fn start(&self) -> Started {
        let id = self.id.to_string();
        let mut words = match self.begun {
            true => vec!["resume", &*id],
            false => vec!["run", &*self.file],
        };
        words.extend(self.host);
        self.pair.start_here(&words)
    }

    fn trials(&self) -> Vec<Value> {
        let id = self.id.to_string();
        let report = self.pair.home.run(&["report", &id, "--format", "json"]).fine();
        report.json()["trials"].as_array().expect("trials").clone()
    }

    /// Takes in what is stored. An experiment that is finished is whole, and is followed by
    /// another.
    fn look(&mut self, after: &str) {
        let listed = self.pair.home.run(&["list", "--json"]).fine().json();
        let mut listed = listed.as_array().expect("a list").iter();
        let Some(this) = listed.find(|experiment| experiment["id"] == self.id) else {
            return;
        };
        self.begun = true;
        let trials = self.trials();
        let place = |trial: &Value| {
            let treatment = trial["treatment"].as_str().expect("a name").to_owned();
            (trial["block"].as_u64().expect("a number"), treatment)
        };
        let set: BTreeSet<(u64, String)> = trials.iter().map(place).collect();
        assert_eq!(set.len(), trials.len(), "a trial was run twice, {after}");
        assert!(set.is_superset(&self.kept), "a trial was lost, {after}");
        for trial in trials.iter().filter(|trial| trial["status"] == "finished") {
            // The server has counted what all hosts have driven.
            assert_eq!(trial["cross_check"]["agrees"], true, "{after}: {trial:#}");
        }
        self.kept = set;
        if this["status"] == "finished" {
            assert_eq!(trials.len(), TRIALS, "{after}");
            self.kept.clear();
            (self.id, self.begun) = (self.id + 1, false);
        }
    }
}

/// So many faults of these, one to a process; `restore` is the command that restores by hand, and
/// `state` what must come of it.
fn faults(
    course: &mut Course<'_>,
    faults: &[Fault],
    restore: &dyn Fn() -> Said,
    state: &dyn Fn() -> [String; 3],
) {
    let (pair, seed, count) = (course.pair, turn() as u64, kills(FAULTS));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let before = state();
    let (mut struck, mut changed) = (BTreeSet::new(), 0);
    for number in 1..=count {
        let fault = faults[usize::try_from(random.next_u64() % faults.len() as u64).expect("a place")];
        let after = Duration::from_millis(random.next_u64() % LATEST_MS);
        let what = format!("fault {number} of seed {seed}: {fault:?} after {after:?}");
        let started = course.start();
        pass(after);
        changed += u32::from(state() != before);
        fault.strike(pair, &started);
        let ended = started.end();
        // What waits for another coordinator ends by itself, after its time.
        until(&format!("the end of all agents, {what}"), || {
            match &*pair.agents() {
                [] => Ok(()),
                agents => Err(format!("{agents:?}\nthe run:\n{}", ended.err)),
            }
        });
        // Once: it is one command that restores.
        let restored = restore();
        assert!(
            restored.code == 0 && state() == before,
            "{what}: {:?}, {}\n{}\nthe run:\n{}",
            state(),
            restored.out,
            restored.err,
            ended.err
        );
        course.look(&what);
        struck.insert(fault);
    }
    // Of so many some strike while a treatment is tried.
    assert!(count < LONG_COURSE || changed > 0, "{count} faults");
    course.start().end().fine();
    assert_eq!(state(), before);
    course.look("after all faults");
    println!(
        "{count} kills and other faults of {} kinds, {changed} of them with changes in place; {} experiments, no trial lost or doubled",
        struck.len(),
        course.id - 1
    );
}

#[test]
fn faults_of_a_run_there_lose_nothing() {
    let _machine = whole_machine();
    let pair = Pair::with_disk(400);
    let there = pair.far.file("home/state");
    pair.run(&["sandbox", "create", "main"]).fine();
    // Journals have a directory from now on.
    pair.run(&["apply", "sandbox:main", "work_mem=8MB"]).fine();
    pair.run(&["restore"]).fine();
    let text = EXPERIMENT.replace("HOSTS\n", "");
    let file = pair.home.write("faults.toml", &text);
    let mut course = Course {
        pair: &pair,
        file: file.to_string_lossy().into_owned(),
        host: &["--host", FAR, "--grace", "2s"],
        id: 1,
        begun: false,
        kept: BTreeSet::new(),
    };
    let data = there.join("sandboxes/main/data");
    let now = || state(&data, &there.join("journal"));
    faults(&mut course, ALL, &|| pair.there("restore"), &now);
    pair.run(&["sandbox", "destroy", "main"]).fine();
}

#[test]
fn faults_of_a_load_from_two_hosts_lose_nothing() {
    let _machine = whole_machine();
    let pair = Pair::new();
    pair.home.sandbox("main", &[]);
    // The server's socket is a file, which the other host has too.
    let socket = pair.home.file("state/sandboxes/main/socket");
    let hosts = format!(
        "hosts = [\"local\", \"{FAR}\"]\nconnection = \"host={}\"\n",
        socket.display()
    );
    let file = pair
        .home
        .write("faults.toml", &EXPERIMENT.replace("HOSTS\n", &hosts));
    let mut course = Course {
        pair: &pair,
        file: file.to_string_lossy().into_owned(),
        host: &[],
        id: 1,
        begun: false,
        kept: BTreeSet::new(),
    };
    let (data, journals) = (pair.home.data("main"), pair.home.file("state/journal"));
    let now = || state(&data, &journals);
    faults(&mut course, OF_PROCESSES, &|| pair.home.run(&["restore"]), &now);
}
