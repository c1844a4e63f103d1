//! Every shipped profile applied to a real server and this host: it starts, runs a load, `verify`
//! is clean, and all of it comes back. Each on one of the versions, on another one with each
//! commit; PGDYNO_MATRIX=all for each on all. Needs root.

use common::machine::{quiet_machine, turn, versions, whole_matrix};
use common::{Home, kernel};
use serde_json::Value;
use std::fs;

/// Of the host, what profiles turn most.
const FILES: [&str; 7] = [
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/swappiness",
    "/proc/sys/net/core/somaxconn",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

fn profiles(home: &Home) -> Vec<String> {
    let list = home.run(&["profile", "list", "--json"]).fine().json();
    let name = |profile: &Value| profile["name"].as_str().expect("a name").to_owned();
    list["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .map(name)
        .collect()
}

#[test]
fn a_server_of_every_version_runs_with_every_profile() {
    let _machine = quiet_machine();
    let home = Home::new();
    let profiles = profiles(&home);
    assert!(profiles.len() >= 15, "{profiles:?}");
    let (turn, mut applied_to) = (turn(), 0);
    let versions = versions();
    for (v, version) in versions.iter().enumerate() {
        let name = format!("v{version}");
        home.run(&["sandbox", "create", &name, "--version", version, "--memory", "2G"])
            .fine();
        let target = format!("sandbox:{name}");
        let auto_conf = || fs::read_to_string(home.data(&name).join("postgresql.auto.conf")).expect("a file");
        let before = (FILES.map(kernel), auto_conf());
        for (p, profile) in profiles.iter().enumerate() {
            if (p + turn) % versions.len() != v && !whole_matrix() {
                continue;
            }
            applied_to += 1;
            let case = format!("{profile} on {version}");
            let applied = home.run(&["apply", &target, profile]);
            assert_eq!(applied.code, 0, "{case}\n{}\n{}", applied.out, applied.err);
            let load = [
                "bench",
                &target,
                "--workload",
                "empty",
                "--clients",
                "2",
                "--transactions",
                "300",
                "--json",
            ];
            let result = home.run(&load).fine().json();
            assert!(
                result["committed"].as_u64().is_some_and(|n| n > 0),
                "{case}: {result}"
            );
            let verified = home.run(&["verify", &target, profile]);
            assert_eq!(verified.code, 0, "{case}\n{}\n{}", verified.out, verified.err);
            if applied.err.contains("nothing to do") {
                continue;
            }
            let restored = home.run(&["restore"]).fine();
            assert!(!restored.out.contains("FAILED"), "{case}\n{}", restored.out);
            assert_eq!((FILES.map(kernel), auto_conf()), before, "{case}");
        }
        home.run(&["sandbox", "destroy", &name]).fine();
    }
    let times = if whole_matrix() { versions.len() } else { 1 };
    assert_eq!(applied_to, profiles.len() * times);
}
