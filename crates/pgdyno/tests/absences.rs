//! What must never be (ARCHITECTURE.md), as far as the text of the code shows it. Lints of the compiler do the rest:
//! printing, exiting and reading the environment outside the program are errors there (clippy.toml, Cargo.toml).

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// (path below crates/, text) of all sources; tests and comments left out.
fn sources() -> Vec<(String, String)> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).expect("readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(crates()).expect("readable").flatten() {
        walk(&entry.path().join("src"), &mut paths);
    }
    paths
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"))
        .filter(|path| !path.iter().any(|part| part == "tests"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("text");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code: Vec<&str> = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect();
            (
                path.strip_prefix(crates())
                    .expect("below")
                    .to_string_lossy()
                    .into_owned(),
                code.join("\n"),
            )
        })
        .collect()
}

fn places_of(needle: &str) -> Vec<String> {
    let mut places: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| text.contains(needle))
        .map(|(path, _)| path)
        .collect();
    places.sort();
    places
}

#[test]
fn only_knobs_changes_a_host_or_a_servers_settings() {
    // Beside its definition, the raw write of a host is called for a sandbox's own control group, which is no setting
    // of the host.
    assert_eq!(
        places_of("write_raw"),
        [
            "pgdyno-host/src/access.rs",
            "pgdyno-host/src/cgroup.rs",
            "pgdyno-knobs/src/change/kernel.rs",
            "pgdyno-knobs/src/restore.rs"
        ]
    );
    for change in ["replace_raw", "hold_raw", "bind_raw"] {
        let outside: Vec<String> = places_of(change)
            .into_iter()
            .filter(|path| !path.starts_with("pgdyno-knobs/") && path != "pgdyno-host/src/access.rs")
            .filter(|path| path != "pgdyno-host/src/facts/tests.rs")
            .collect();
        assert!(outside.is_empty(), "{change}: {outside:?}");
    }
    for change in [
        "alter_system_set",
        "alter_system_reset",
        "ALTER SYSTEM",
        "set_storage",
    ] {
        let outside: Vec<String> = places_of(change)
            .into_iter()
            .filter(|path| !path.starts_with("pgdyno-knobs/") && !path.starts_with("pgdyno-server/"))
            .collect();
        assert!(outside.is_empty(), "{change}: {outside:?}");
    }
    assert_eq!(
        places_of("autoconf::replace"),
        ["pgdyno-knobs/src/change.rs", "pgdyno-knobs/src/restore.rs"]
    );
}

#[test]
fn stats_does_no_io_and_reads_no_clock() {
    for forbidden in [
        "std::fs",
        "std::io",
        "std::net",
        "std::time",
        "std::process",
        "std::thread",
    ] {
        let places: Vec<String> = places_of(forbidden)
            .into_iter()
            .filter(|path| path.starts_with("pgdyno-stats/"))
            .collect();
        assert!(places.is_empty(), "{forbidden}: {places:?}");
    }
}

#[test]
fn sql_about_results_lives_in_the_store_alone() {
    assert!(
        places_of("rusqlite")
            .iter()
            .all(|path| path.starts_with("pgdyno-store/"))
    );
}

/// The code knows kinds of knob, never a knob's name. An action of the kernel and a parameter that is only read are
/// no knobs.
#[test]
fn no_knobs_name_stands_in_the_code_that_turns_knobs() {
    let names = pgdyno_knobs::Catalogue::shipped().expect("the catalogue");
    let mut sources = sources();
    sources.retain(|(path, _)| path.starts_with("pgdyno-knobs/") || path.starts_with("pgdyno-lab/"));
    for knob in names.iter() {
        let quoted = format!("\"{}\"", knob.id);
        let naming = sources.iter().filter(|(_, text)| text.contains(&quoted));
        let places: Vec<&String> = naming.map(|(path, _)| path).collect();
        assert!(places.is_empty(), "{}: {places:?}", knob.id);
    }
}

/// That nothing is allocated is counted by pgdyno-load's own tests. Every file of it counts, a new one too, but for these: threads
/// wait for each other before a load, and while data is made.
#[test]
fn nothing_on_the_load_path_locks_or_prints() {
    let waits = ["pgdyno-load/src/gate.rs", "pgdyno-load/src/data/jobs.rs"];
    let mut files = sources();
    files.retain(|(file, _)| file.starts_with("pgdyno-load/src/"));
    let all = files.len();
    files.retain(|(file, _)| !waits.contains(&file.as_str()));
    assert_eq!(files.len() + waits.len(), all, "each of {waits:?} is there");
    for inner in [
        "client",
        "drive/lost",
        "machine",
        "tpcc/terminal",
        "tpcc/terminal/case",
    ] {
        let path = format!("pgdyno-load/src/{inner}.rs");
        assert!(files.iter().any(|(file, _)| *file == path), "{path}");
    }
    for (file, text) in files {
        for forbidden in ["Mutex", "RwLock", "Condvar", "println", "tracing::"] {
            assert!(!text.contains(forbidden), "{file}: {forbidden}");
        }
    }
}
