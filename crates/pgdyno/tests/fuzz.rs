//! The fuzz targets, for a moment each: their seeds and some bytes at random. A binary of its own,
//! because it includes them.

#[path = "../../../fuzz/bodies/mod.rs"]
mod bodies;

use bodies::TARGETS;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use std::fs;
use std::path::Path;
use std::thread;

/// Inputs of a target, half of them a seed with other bytes in a place of it.
const CASES: u32 = 12;

/// One thread each: a target that asks a server does not run beside itself.
#[test]
fn each_target_takes_its_seeds_and_any_bytes_and_leaves_no_file() {
    thread::scope(|scope| {
        for (name, body, seeds) in TARGETS {
            scope.spawn(move || {
                for seed in seeds.iter().copied().chain([&[][..]]) {
                    bodies::run(name, seed);
                }
                let seeds: Vec<&[u8]> = seeds.iter().copied().chain([&[][..]]).collect();
                let bytes = prop::collection::vec(any::<u8>(), 0..200);
                let inputs = (select(seeds), bytes, any::<(bool, Index)>());
                let config = Config {
                    cases: CASES,
                    failure_persistence: None,
                    ..Config::default()
                };
                let ran = TestRunner::new(config).run(&inputs, |(seed, bytes, (is_random, at))| {
                    let at = at.index(seed.len() + 1);
                    let end = (at + bytes.len() / 50).min(seed.len());
                    match is_random {
                        true => body(&bytes),
                        false => body(&[&seed[..at], &bytes[..bytes.len() / 20], &seed[end..]].concat()),
                    }
                    Ok(())
                });
                ran.unwrap_or_else(|error| panic!("{name}: {error}"));
            });
        }
    });
    let prefix = format!("pgdyno-fuzz-{}", std::process::id());
    let entries = fs::read_dir(std::env::temp_dir()).expect("the directory of temporary files");
    let names = entries.flatten().map(|entry| entry.file_name());
    let left: Vec<_> = names
        .filter(|name| name.to_string_lossy().starts_with(&prefix))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn each_target_has_a_file_and_a_binary() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).expect("its manifest");
    let entries = fs::read_dir(fuzz.join("targets")).expect("the targets");
    let names = entries.map(|entry| entry.expect("a file").file_name().into_string().expect("a name"));
    let mut files: Vec<String> = names.collect();
    files.sort();
    let expected: Vec<String> = TARGETS.iter().map(|(name, ..)| format!("{name}.rs")).collect();
    assert_eq!(files, expected);
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
    for (name, ..) in TARGETS {
        let text = fs::read_to_string(fuzz.join(format!("targets/{name}.rs"))).expect("a target");
        assert!(
            text.contains(&format!("bodies::run(\"{name}\", bytes)")),
            "{text}"
        );
        let binary = format!("[[bin]]\nname = \"{name}\"\npath = \"targets/{name}.rs\"");
        assert!(manifest.contains(&binary), "{name}");
    }
}
