//! Machines booted by emulation, with the program and the libraries that it is linked to:
//! scripts/guest.

use super::Said;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/guest")
}

/// What one of scripts/guest prints.
#[track_caller]
fn script(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(scripts().join(name))
        .args(arguments)
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

/// What a guest has said from its first step to the last.
pub struct Console(String);

/// Boots a machine of scripts/guest/machine.sh with a job and the program; `options` are those of
/// boot.sh.
pub fn boot(machine: &str, job: &str, options: &[&str]) -> Console {
    let work = tempfile::tempdir().expect("a directory");
    let (machine, archive) = (Path::new(machine), work.path().join("archive"));
    let program = super::program();
    let (job, steps) = (scripts().join("jobs").join(job), scripts().join("steps.sh"));
    script("initramfs.sh", &[machine, &archive, &job, &program, &steps]);
    let mut arguments: Vec<&Path> = options.iter().map(Path::new).collect();
    arguments.extend([machine, &archive]);
    Console(script("boot.sh", &arguments))
}

impl Console {
    /// What a step of the job printed and said, and how it ended.
    #[track_caller]
    pub fn step(&self, label: &str) -> Said {
        let found = self
            .0
            .split_once(&format!("== {label}\n"))
            .and_then(|(_, rest)| rest.split_once(&format!("== end of {label}\n")))
            .and_then(|(text, _)| text.rsplit_once("== ended with "))
            .and_then(|(out, rest)| Some((out, rest.split_once('\n')?)));
        let Some((out, (code, err))) = found else {
            panic!("\"{label}\" did not end in:\n{}", self.0);
        };
        Said {
            code: code.parse().expect("a number"),
            out: out.to_owned(),
            err: err.to_owned(),
        }
    }

    /// What a step that ended well has printed.
    #[track_caller]
    pub fn printed(&self, label: &str) -> String {
        self.step(label).fine().out
    }

    /// The same in words.
    #[track_caller]
    pub fn words(&self, label: &str) -> Vec<String> {
        self.printed(label)
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    /// The same as JSON.
    #[track_caller]
    pub fn json(&self, label: &str) -> Value {
        self.step(label).fine().json()
    }
}
