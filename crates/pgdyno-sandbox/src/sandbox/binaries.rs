//! PostgreSQL's programs in a directory.

use super::{SandboxError, owner_of, process};
use crate::programs;
use pgdyno_host::LocalHost;
use pgdyno_server::VERSION_MIN;
use std::fs;
use std::path::{Path, PathBuf};

/// Programs that are ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// Directory of initdb, pg_ctl and postgres.
    pub directory: PathBuf,
    /// Full version, as "18.6", or "19rc1" of one that is not released.
    pub version: String,
}

impl Binaries {
    /// Those in a directory of the system, such as /usr/lib/postgresql/15/bin.
    ///
    /// # Errors
    ///
    /// A program that is missing or cannot be run, and a version before 13.
    pub fn in_directory(directory: &Path) -> Result<Binaries, SandboxError> {
        let directory = fs::canonicalize(directory).map_err(SandboxError::io(directory, "read"))?;
        for program in ["initdb", "pg_ctl", "postgres"] {
            if !directory.join(program).is_file() {
                return Err(SandboxError::Place {
                    path: directory,
                    reason: format!("there is no {program} in it"),
                });
            }
        }
        let version = version_of(&directory)?;
        if major_of(&version).is_some_and(|major| major < VERSION_MIN) {
            return Err(SandboxError::Place {
                path: directory,
                reason: format!("it holds PostgreSQL {version}; a sandbox needs {VERSION_MIN} or later"),
            });
        }
        Ok(Binaries { directory, version })
    }

    /// Major version: 18 of "18.6", 19 of "19rc1".
    pub fn major(&self) -> Option<u32> {
        major_of(&self.version)
    }
}

/// The number that a version begins with.
pub(super) fn major_of(version: &str) -> Option<u32> {
    let end = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version[..end].parse().ok()
}

/// "postgres (PostgreSQL) 18.6 (Debian ...)" names its version in the third word.
fn version_of(directory: &Path) -> Result<String, SandboxError> {
    let failed = |reason: String| SandboxError::Program {
        program: "postgres --version",
        reason,
    };
    // As the user that the server runs as: whose program it is, is not known.
    let user = owner_of(&LocalHost::new())?;
    let asked = process::command(&directory.join("postgres"), user.as_ref(), &[]);
    let asked = asked.and_then(|mut command| {
        command.arg("--version");
        programs::answer(command)
    });
    let output = asked.map_err(|e| failed(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let message = String::from_utf8_lossy(&output.stderr);
    text.split_whitespace()
        .nth(2)
        .filter(|_| output.status.success())
        .map(str::to_owned)
        .ok_or_else(|| failed(format!("{}{}", text.trim(), message.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_the_programs_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let error = Binaries::in_directory(dir.path()).unwrap_err().to_string();
        assert!(error.contains("initdb"), "{error}");
    }

    #[test]
    fn a_version_begins_with_its_major() {
        for (version, expected) in [
            ("18.6", Some(18)),
            ("19rc1", Some(19)),
            ("20devel", Some(20)),
            ("x", None),
        ] {
            assert_eq!(major_of(version), expected, "{version}");
        }
    }
}
