//! Every shipped profile applied to a real server and this host: it starts, runs a load, `verify` is clean, and all of it comes
//! back. On 14 and 18 each, on the versions between some; PGDYNO_MATRIX=all for all. Needs root.

mod common;

use common::machine::whole_machine;
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

#[expect(
    clippy::disallowed_methods,
    reason = "the whole matrix is asked for by a variable"
)]
fn whole() -> bool {
    std::env::var("PGDYNO_MATRIX").is_ok_and(|asked| asked == "all")
}

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
    let _machine = whole_machine();
    let home = Home::new();
    let profiles = profiles(&home);
    assert!(profiles.len() >= 15, "{profiles:?}");
    for (v, version) in ["14", "15", "16", "17", "18"].into_iter().enumerate() {
        let (name, outermost) = (format!("v{version}"), v == 0 || v == 4);
        home.run(&["sandbox", "create", &name, "--version", version, "--memory", "2G"])
            .fine();
        let target = format!("sandbox:{name}");
        let auto_conf = || fs::read_to_string(home.data(&name).join("postgresql.auto.conf")).expect("a file");
        let before = (FILES.map(kernel), auto_conf());
        for (p, profile) in profiles.iter().enumerate() {
            if !outermost && p % 3 != v - 1 && !whole() {
                continue;
            }
            let words = format!("{profile} on {version}");
            let applied = home.run(&["apply", &target, profile]);
            assert_eq!(applied.code, 0, "{words}\n{}\n{}", applied.out, applied.err);
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
                "{words}: {result}"
            );
            let verified = home.run(&["verify", &target, profile]);
            assert_eq!(verified.code, 0, "{words}\n{}\n{}", verified.out, verified.err);
            if applied.err.contains("nothing to do") {
                continue;
            }
            let restored = home.run(&["restore"]).fine();
            assert!(!restored.out.contains("FAILED"), "{words}\n{}", restored.out);
            assert_eq!((FILES.map(kernel), auto_conf()), before, "{words}");
        }
        home.run(&["sandbox", "destroy", &name]).fine();
    }
}
