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
/// Behind a pooler the next message may be another session's: what is asked goes by the simple protocol, and settings hold for a
/// transaction. Where it is known that there is none, sessions are set up.
#[test]
fn sessions_that_may_be_a_poolers_are_neither_prepared_nor_set() {
    for typed in [
        ".query(",
        ".query_one(",
        ".query_opt(",
        ".query_raw(",
        ".prepare_typed(",
    ] {
        let outside: Vec<String> = places_of(typed)
            .into_iter()
            .filter(|path| {
                !path.starts_with("pgdyno-store/") && path != "pgdyno-server/src/driver/session.rs"
            })
            // A web address has one, and the load's own layout of messages.
            .filter(|path| path != "pgdyno/src/serve/door.rs" && path != "pgdyno-load/src/program.rs")
            .collect();
        assert!(outside.is_empty(), "{typed}: {outside:?}");
    }
    let sets: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| {
            let mut said = text.match_indices("\"SET ").map(|(at, _)| &text[at + 5..]);
            said.any(|rest| !rest.starts_with("LOCAL "))
        })
        .map(|(path, _)| path)
        .filter(|path| !path.starts_with("pgdyno-store/"))
        .collect();
    let guarded = [
        "pgdyno-lab/src/check/commit.rs",
        "pgdyno-server/src/series/link.rs",
        "pgdyno-server/src/server.rs",
    ];
    let outside: Vec<&String> = sets.iter().filter(|path| !guarded.contains(&&***path)).collect();
    assert!(outside.is_empty(), "{outside:?}");
}

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

/// All output goes through `pgdyno/src/output.rs`, which cleans it of what a terminal obeys and of passwords. The lints in clippy.toml
/// forbid the functions; here no file may set them aside but these two, and no other way may be opened.
#[test]
fn nothing_is_printed_past_the_cleaning() {
    let expected = ["pgdyno/src/output.rs", "pgdyno/src/watch/terminal.rs"];
    for way in ["io::stdout()", "io::stderr()"] {
        let outside: Vec<String> = places_of(way)
            .into_iter()
            .filter(|path| !expected.contains(&path.as_str()))
            .collect();
        assert!(outside.is_empty(), "{way}: {outside:?}");
    }
    for way in [
        "println!",
        "print!(",
        "dbg!",
        "Stdio::inherit",
        "/dev/tty",
        "/dev/stdout",
        "/dev/stderr",
        "/proc/self/fd",
        "from_raw_fd",
        "tracing_subscriber::fmt",
        "ClapError::exit",
        ".set_prefix(",
        "set_message(",
        "try_get_matches",
        "::parse()",
    ] {
        let outside: Vec<String> = places_of(way)
            .into_iter()
            .filter(|path| path.starts_with("pgdyno/") && !expected.contains(&path.as_str()))
            // A text's `parse` names its type behind it, or leaves it out; `Cli::parse` alone reads the command line.
            .filter(|path| way != "::parse()" || path == "pgdyno/src/main.rs")
            .collect();
        assert!(outside.is_empty(), "{way}: {outside:?}");
    }
    let aside: Vec<String> = places_of("clippy::disallowed_methods")
        .into_iter()
        .filter(|path| path.starts_with("pgdyno/"))
        .collect();
    assert_eq!(
        aside,
        [
            "pgdyno/src/context.rs",
            "pgdyno/src/output.rs",
            "pgdyno/src/watch/terminal.rs"
        ]
    );
}

/// Root reads and writes files by handles of their directories (`pgdyno_host::Directory`), so that a user who owns a directory leads
/// it nowhere. A path by its name is for files that nobody else can exchange.
#[test]
fn files_are_reached_by_handles_of_their_directories() {
    const BY_NAME: [&str; 20] = [
        "fs::read(",
        "fs::read_to_string(",
        "fs::read_dir(",
        "fs::write(",
        "fs::copy(",
        "fs::rename(",
        "fs::hard_link(",
        "fs::remove_file(",
        "fs::remove_dir(",
        "fs::remove_dir_all(",
        "fs::metadata(",
        "fs::symlink_metadata(",
        "fs::set_permissions(",
        "File::open(",
        "File::create(",
        "File::create_new(",
        "File::options(",
        "OpenOptions::new(",
        "symlink(",
        "chown(",
    ];
    /// What may reach files by their names, and why.
    const ALLOWED: [(&str, &str); 14] = [
        (
            "pgdyno-host/src/access.rs",
            "/proc and /sys, which hold no file of a user's",
        ),
        ("pgdyno-host/src/cgroup.rs", "/sys/fs/cgroup, likewise"),
        ("pgdyno-host/src/beneath/", "what everything else goes through"),
        (
            "pgdyno-host/src/probe/own_file.rs",
            "its own open file, through /proc/self/fd",
        ),
        ("pgdyno-host/src/series/fixture.rs", "fixtures of tests"),
        (
            "pgdyno-knobs/src/journal",
            "pgdyno's own directory, whose files it checks by itself",
        ),
        ("pgdyno-knobs/src/profile.rs", "a profile that the user names"),
        ("pgdyno-lab/src/file.rs", "an experiment that the user names"),
        ("pgdyno-lab/src/runner.rs", "pgdyno's own scratch directory"),
        (
            "pgdyno-server/src/conninfo/",
            "the user's own password and service files",
        ),
        ("pgdyno-server/src/tls.rs", "the user's own key"),
        ("pgdyno-server/src/pooler.rs", "/dev/urandom"),
        ("pgdyno-server/src/sandbox/binaries.rs", "pgdyno's own cache"),
        (
            "pgdyno-server/src/sandbox/lock.rs",
            "pgdyno's own directory of locks",
        ),
    ];
    /// Of a sandbox, whose directory is root's: its record, its images, its mount points and its namespace.
    const SANDBOX: [&str; 4] = [
        "pgdyno-server/src/sandbox/file_system.rs",
        "pgdyno-server/src/sandbox/file_system/tools.rs",
        "pgdyno-server/src/sandbox/network.rs",
        "pgdyno-server/src/sandbox/record.rs",
    ];
    let is_allowed =
        |path: &str| ALLOWED.iter().any(|(allowed, _)| path.starts_with(allowed)) || SANDBOX.contains(&path);
    let crates = ["pgdyno-host/", "pgdyno-server/", "pgdyno-knobs/", "pgdyno-lab/"];
    let mut found = Vec::new();
    for (path, text) in sources() {
        if path.contains("/tests/") || is_allowed(&path) || !crates.iter().any(|name| path.starts_with(name))
        {
            continue;
        }
        for call in BY_NAME {
            let whole = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if text.match_indices(call).any(|(at, _)| whole(at)) {
                found.push(format!("{path}: {call}"));
            }
        }
    }
    assert!(found.is_empty(), "use pgdyno_host::Directory: {found:#?}");
}
