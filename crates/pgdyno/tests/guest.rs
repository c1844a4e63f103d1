//! pgdyno on a machine of four nodes and eight CPUs: Debian's kernel booted by emulation, and one static file in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// scripts/guest/machine.sh says what it is made of.
const MACHINE: &str = "x86_64-6.1-numa4";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What one of scripts/guest prints.
#[track_caller]
fn script(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(repository().join("scripts/guest").join(name))
        .args(arguments)
        .env("CARGO", env!("CARGO"))
        .output()
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let printed = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name}, {}:\n{error}\n{printed}",
        output.status
    );
    printed
}

/// Boots the machine with a job and a static pgdyno, and hands back its console.
fn boot(job: &str) -> String {
    let work = tempfile::tempdir().expect("a directory");
    let archive = work.path().join("archive");
    let program = PathBuf::from(script("static.sh", &[]).trim());
    let job = repository().join("scripts/guest/jobs").join(job);
    script("initramfs.sh", &[Path::new(MACHINE), &archive, &job, &program]);
    script("boot.sh", &[Path::new(MACHINE), &archive])
}

/// What a command of the job printed; it ended well.
#[track_caller]
fn printed<'a>(console: &'a str, command: &str) -> &'a str {
    let text = console
        .split_once(&format!("== {command}\n"))
        .and_then(|(_, rest)| rest.split_once("== ended with "));
    let (text, rest) = text.unwrap_or_else(|| panic!("\"{command}\" did not end in:\n{console}"));
    assert!(rest.starts_with("0\n"), "{command}:\n{console}");
    text
}

#[test]
fn one_static_file_runs_on_a_machine_of_four_nodes() {
    let console = boot("facts");
    let version = concat!("pgdyno ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&console, "pgdyno --version"), version);
    for reserved in ["node 0 has 2", "node 1 has 4", "node 2 has 6", "node 3 has 8"] {
        assert!(console.contains(reserved), "no \"{reserved}\" in:\n{console}");
    }
}
