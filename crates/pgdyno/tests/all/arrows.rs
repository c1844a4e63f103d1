//! The house is as ARCHITECTURE.md draws it: arrows between crates point down only.

use std::collections::BTreeMap;
use std::process::Command;

fn floors() -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("pgdyno-stats", 0),
        ("pgdyno-host", 0),
        ("pgdyno-record", 1),
        ("pgdyno-engine", 2),
        ("pgdyno-server", 2),
        ("pgdyno-judge", 2),
        ("pgdyno-workload", 3),
        ("pgdyno-sandbox", 3),
        ("pgdyno-store", 4),
        ("pgdyno-knobs", 4),
        ("pgdyno-advice", 5),
        ("pgdyno-remote", 5),
        ("pgdyno-report", 5),
        ("pgdyno-lab", 6),
        ("pgdyno-serve", 7),
        ("pgdyno-watch", 7),
        ("pgdyno", 8),
    ])
}

/// Crates that hold no code of the program: others use them in tests alone, and they use crates of
/// the lowest floor alone.
const FOR_TESTS: [&str; 2] = ["pgdyno-fixture", "pgdyno-testing"];

/// What an invariant forbids beyond the floors: a crate and what it must never depend on.
const NEVER: [(&str, &[&str]); 14] = [
    ("pgdyno-stats", &["postgres", "rusqlite", "tokio", "rustix"]),
    ("pgdyno-host", &["postgres", "rusqlite"]),
    (
        "pgdyno-record",
        &["postgres", "rusqlite", "tokio", "rustix", "pgdyno-host"],
    ),
    (
        "pgdyno-judge",
        &["postgres", "rusqlite", "tokio", "rustix", "pgdyno-host"],
    ),
    // It reads no files of anybody's, and no output of other programs.
    (
        "pgdyno-engine",
        &["rusqlite", "schemars", "serde_json", "toml", "regex-lite"],
    ),
    // What it reads of TOML is what is known of other programs' output
    // (catalog/formats/loads.toml), never an experiment.
    ("pgdyno-workload", &["rusqlite", "schemars"]),
    ("pgdyno-sandbox", &["rusqlite"]),
    ("pgdyno-knobs", &["rusqlite"]),
    // Its files, facts and settings are handed to it.
    (
        "pgdyno-advice",
        &[
            "postgres",
            "rusqlite",
            "tokio",
            "rustix",
            "pgdyno-sandbox",
            "pgdyno-store",
        ],
    ),
    // It is handed its sessions (`pgdyno_server::Session`); what reaches a server, and how, is not
    // its business.
    (
        "pgdyno-store",
        &["pgdyno-host", "pgdyno-sandbox", "rustls", "tokio"],
    ),
    ("pgdyno-lab", &["rusqlite", "pgdyno-report"]),
    // The program hands it stores; SQL about results and changes of settings are elsewhere.
    (
        "pgdyno-serve",
        &["rusqlite", "postgres", "pgdyno-host", "pgdyno-workload"],
    ),
    // It shows a target as it is now, and results are no part of that.
    ("pgdyno-watch", &["rusqlite", "pgdyno-store", "pgdyno-report"]),
    (
        "pgdyno-report",
        &[
            "rusqlite",
            "postgres",
            "pgdyno-server",
            "pgdyno-knobs",
            "pgdyno-host",
        ],
    ),
];

#[derive(Debug)]
struct Package {
    name: String,
    /// (name, whether it is for tests only)
    dependencies: Vec<(String, bool)>,
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo metadata runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    metadata["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| Package {
            name: text(&package["name"]),
            dependencies: package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .map(|d| (text(&d["name"]), text(&d["kind"]) == "dev"))
                .collect(),
        })
        .collect()
}

/// Arrows that the design does not draw, as text.
fn wrong_arrows(packages: &[Package]) -> Vec<String> {
    let floors = floors();
    let mut wrong = Vec::new();
    for package in packages {
        let is_for_tests = FOR_TESTS.contains(&package.name.as_str());
        for (dependency, in_tests) in &package.dependencies {
            if is_for_tests && floors.get(dependency.as_str()).is_some_and(|floor| *floor > 0) {
                wrong.push(format!("{} is for tests and uses {dependency}", package.name));
            }
            if !is_for_tests && !in_tests && FOR_TESTS.contains(&dependency.as_str()) {
                wrong.push(format!("{} uses {dependency} outside of tests", package.name));
            }
        }
        if is_for_tests {
            continue;
        }
        let Some(floor) = floors.get(package.name.as_str()) else {
            wrong.push(format!("{} stands on no floor", package.name));
            continue;
        };
        // A crate's own examples and tests turn a feature of it on by naming it.
        let is_itself = |(name, in_tests): &&(String, bool)| *in_tests && *name == package.name;
        for (dependency, _) in package.dependencies.iter().filter(|d| !is_itself(d)) {
            if let Some(below) = floors.get(dependency.as_str())
                && below >= floor
            {
                wrong.push(format!(
                    "{} (floor {floor}) uses {dependency} (floor {below})",
                    package.name
                ));
            }
        }
        let never = NEVER
            .iter()
            .find(|(name, _)| *name == package.name)
            .map_or(&[][..], |(_, never)| *never);
        for (dependency, _) in package.dependencies.iter().filter(|(_, for_tests)| !for_tests) {
            if never.contains(&dependency.as_str()) {
                wrong.push(format!("{} must never use {dependency}", package.name));
            }
        }
    }
    wrong
}

#[test]
fn arrows_point_down_only() {
    let packages = packages();
    assert_eq!(
        packages.len(),
        floors().len() + FOR_TESTS.len(),
        "a crate came or went: {packages:?}"
    );
    assert_eq!(wrong_arrows(&packages), Vec::<String>::new());
}

#[test]
fn a_wrong_arrow_is_seen() {
    let package = |name: &str, dependency: &str| Package {
        name: name.into(),
        dependencies: vec![(dependency.into(), false)],
    };
    for (name, dependency) in [
        ("pgdyno-stats", "pgdyno-host"),
        ("pgdyno-host", "pgdyno-server"),
        ("pgdyno-lab", "pgdyno-report"),
        ("pgdyno-report", "rusqlite"),
        ("pgdyno-server", "pgdyno-sandbox"),
        ("pgdyno-store", "pgdyno-knobs"),
        ("pgdyno-knobs", "pgdyno-advice"),
        ("pgdyno-advice", "postgres"),
        ("pgdyno-serve", "pgdyno-watch"),
        ("pgdyno-new", "serde"),
        ("pgdyno-lab", "pgdyno-testing"),
        ("pgdyno-knobs", "pgdyno-fixture"),
        ("pgdyno-fixture", "pgdyno-knobs"),
    ] {
        assert_eq!(
            wrong_arrows(&[package(name, dependency)]).len(),
            1,
            "{name} -> {dependency}"
        );
    }
}
