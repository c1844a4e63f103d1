//! SIGKILL at random instants of a real experiment: every knob comes back, no finished trial is
//! lost or run twice. Five kills; PGDYNO_KILLS=1000 for the long run of `make soak`. Needs root.
#![allow(clippy::print_stdout, reason = "the tally is what is looked at")]

use common::machine::{kills, quiet_machine};
use common::{Home, disk_of, ended, kernel, said, signal};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Child;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const KILLS: u32 = 5;

const FILE: &str = r#"
name = "kill"
question = "Does everything come back?"
design = "cumulative"
blocks = 3
seed = 1
[target]
sandbox = "x"
[data]
scale = 1
[load]
workload = "tpcb"
clients = 4
threads = 1
rate = "200"
warmup_s = 0.1
measure_s = 1.0
[base]
max_connections = 60
[[step]]
name = "dirty"
[step.settings]
vm.dirty_background_bytes = 67108864
vm.dirty_bytes = 536870912
[[step]]
name = "memory"
[step.settings]
shared_buffers = "64MB"
vm.nr_hugepages = "auto"
huge_pages = "on"
[[step]]
name = "disk"
[step.settings]
block.read_ahead_kb = 64
block.scheduler = "none"
[[step]]
name = "kernel"
[step.settings]
vm.swappiness = 17
transparent_hugepage.enabled = "never"
work_mem = "8MB"
[[step]]
name = "slow"
[step.settings]
commit_delay = 100000
commit_siblings = 0
"#;
/// Three blocks of the reference and five steps.
const TRIALS: usize = 18;

/// Everything that the experiment touches, as it is now.
fn state(home: &Home, disk: &str) -> Vec<(String, String)> {
    let vm = [
        "dirty_background_bytes",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_ratio",
        "swappiness",
        "nr_hugepages",
        "min_free_kbytes",
    ];
    let queue = ["read_ahead_kb", "scheduler", "nr_requests"];
    let mut paths: Vec<String> = vm.iter().map(|name| format!("/proc/sys/vm/{name}")).collect();
    paths.extend(queue.iter().map(|name| format!("/sys/block/{disk}/queue/{name}")));
    paths.push("/sys/kernel/mm/transparent_hugepage/enabled".to_owned());
    let mut all: Vec<(String, String)> = paths
        .into_iter()
        .map(|path| (path.clone(), kernel(&path)))
        .collect();
    let auto_conf = home.data("x").join("postgresql.auto.conf");
    all.push((
        "postgresql.auto.conf".into(),
        fs::read_to_string(auto_conf).expect("a file"),
    ));
    for name in ["max_connections", "shared_buffers", "huge_pages", "work_mem"] {
        all.push((name.into(), home.ask("x", &format!("SHOW {name}"))));
    }
    all
}

/// Lets it run until the instant, unless it ends by itself before.
fn wait_until(child: &mut Child, instant: Instant) {
    let (_never, alarm) = channel::<()>();
    while Instant::now() < instant && child.try_wait().expect("a child").is_none() {
        let _ = alarm.recv_timeout(Duration::from_millis(1));
    }
}

/// Treatments by block and position, as they were run.
fn order_of(report: &Value) -> Vec<(u64, String)> {
    let mut trials = report["trials"].as_array().expect("trials").clone();
    trials.sort_by_key(|trial| (trial["block"].as_u64(), trial["position"].as_u64()));
    let name = |trial: &Value| trial["treatment"].as_str().expect("a name").to_owned();
    trials
        .iter()
        .map(|trial| (trial["block"].as_u64().expect("a number"), name(trial)))
        .collect()
}

/// The same as they were to be run.
fn planned(home: &Home, path: &str) -> Vec<(u64, String)> {
    let plan = home.run(&["run", path, "--dry-run", "--json"]).fine().json();
    let trials = plan["trials"].as_array().expect("trials").iter();
    let name = |trial: &Value| trial["treatment"].as_str().expect("a name").to_owned();
    trials
        .map(|trial| (trial["block"].as_u64().expect("a number"), name(trial)))
        .collect()
}

/// What was stored before a kill and what was run after it make the experiment that was planned,
/// decided as it would have been.
fn check_whole(home: &Home, path: &str, id: i64, kept: &BTreeSet<(u64, String)>) {
    let all = home.stored_trials(id);
    let set: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), set.len()), (TRIALS, TRIALS));
    assert!(set.is_superset(kept), "a finished trial was lost");
    let json = home
        .run(&["report", &id.to_string(), "--format", "json"])
        .fine()
        .json();
    assert_eq!(ended(&json, "finished"), TRIALS, "{json}");
    assert_eq!(order_of(&json), planned(home, path));
    // A tenth of a second more for each commit. Three trials may be too few to decide it.
    let treatments = json["treatments"].as_array().expect("treatments");
    let [.., before, slow] = &treatments[..] else {
        panic!("{json}");
    };
    let verdict = slow["step"]["verdict"].as_str();
    assert!(matches!(verdict, Some("worse" | "undecided")), "{slow}");
    let best = |treatment: &Value| {
        let of = json["trials"].as_array().expect("trials").iter();
        let of = of.filter(|trial| trial["treatment"] == treatment["name"]);
        of.filter_map(|trial| trial["tps"].as_f64()).fold(0.0, f64::max)
    };
    assert!(best(slow) > 0.0 && best(slow) < best(before) / 2.0, "{json}");
}

#[test]
fn kills_at_random_instants_lose_nothing() {
    let kills = kills(KILLS);
    let _machine = quiet_machine();
    let home = Home::on_disk();
    home.sandbox("x", &[]);
    let path = home.write("kill.toml", FILE).to_string_lossy().into_owned();
    let disk = disk_of(&home.data("x"));
    let before = state(&home, &disk);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(20_260);
    // Two trials end within this, on this machine and beside what else runs on it, with all that
    // happens between them.
    let until = |arguments: &[&str], trial: &str| {
        let started = Instant::now();
        let mut child = home.start(arguments);
        child.until_it_prints(trial);
        let length = started.elapsed();
        signal(child.id(), "-KILL");
        child.end();
        home.run(&["restore"]).fine();
        length
    };
    until(&["run", &path], "trial 2/");
    let latest = until(&["resume", "1"], "trial 4/");
    let mut kept: BTreeSet<(u64, String)> = home.stored_trials(1).into_iter().collect();
    // An experiment that comes to its end between kills is followed by another.
    let (mut id, mut begun, mut killed, mut dirty, mut survived) = (1, true, 0, 0, 0);
    let next = |id: i64, begun| match begun {
        true => vec!["resume".to_owned(), id.to_string()],
        false => vec!["run".to_owned(), path.clone()],
    };
    while killed < kills {
        let arguments = next(id, begun);
        let mut child = home.spawn(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let most_us = u64::try_from(latest.as_micros()).expect("not for ever");
        let instant = Instant::now() + Duration::from_micros(random.next_u64() % most_us);
        wait_until(&mut child, instant);
        if child.try_wait().expect("a child").is_some() {
            let ended = said(child.wait_with_output().expect("its output"));
            assert_eq!(ended.code, 0, "after {killed} kills: {}", ended.err);
            check_whole(&home, &path, id, &kept);
            kept.clear();
            (id, begun) = (id + 1, false);
            continue;
        }
        child.kill().expect("killed");
        child.wait().expect("dead");
        killed += 1;
        let left = fs::read_dir(home.file("state/journal"))
            .into_iter()
            .flatten()
            .flatten();
        dirty += u32::from(
            left.into_iter()
                .any(|e| e.path().extension().is_some_and(|ending| ending == "journal")),
        );
        let restored = home.run(&["restore"]).fine();
        assert_eq!(
            state(&home, &disk),
            before,
            "after kill {killed}\n{}\n{}",
            restored.out,
            restored.err
        );
        // A second restore finds nothing to do.
        assert!(home.run(&["restore"]).fine().err.contains("nothing to restore"));
        let listed = home.run(&["list", "--json"]).fine().json();
        let listed = listed.as_array().expect("a list");
        assert!(
            listed
                .iter()
                .all(|experiment| experiment["id"].as_i64() <= Some(id)),
            "{listed:?}"
        );
        let this = listed.iter().find(|experiment| experiment["id"] == id);
        begun = this.is_some();
        if begun {
            let now = home.stored_trials(id);
            let set: BTreeSet<_> = now.iter().cloned().collect();
            assert_eq!(set.len(), now.len(), "a trial was run twice");
            assert!(set.is_superset(&kept), "a finished trial was lost");
            // Stored before an earlier kill, and still there.
            survived += kept.len();
            kept = set;
        }
        // Killed after its last word to the store.
        if this.is_some_and(|experiment| experiment["status"] == "finished") {
            check_whole(&home, &path, id, &kept);
            kept.clear();
            (id, begun) = (id + 1, false);
        }
    }
    // Of five, most may fall beside it by chance.
    let expected = if kills < 20 { 1 } else { kills / 2 };
    assert!(
        dirty >= expected,
        "{dirty} of {kills} kills fell where something is changed; expected {expected}"
    );
    assert!(kills < 20 || survived > 0, "no trial was stored before a kill");
    let arguments = next(id, begun);
    home.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        .fine();
    check_whole(&home, &path, id, &kept);
    assert_eq!(state(&home, &disk), before);
    println!(
        "{killed} kills within {latest:?}, {dirty} of them with changes in place; {id} experiments of {TRIALS} trials, none lost or doubled over a kill"
    );
}
