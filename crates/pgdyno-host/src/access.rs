//! How a machine's files are reached: the trait, and the local machine (or a fixture tree) as one root.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Why a file of the host could not be read or written. Every case names the path.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The file is not there: another kernel, another device, or not Linux.
    #[error("{path} does not exist on this host")]
    Missing {
        /// Path on the target.
        path: String,
    },
    /// The file is there and may not be used so.
    #[error("{path} may not be {action}: {source}")]
    Refused {
        /// Path on the target.
        path: String,
        /// "read" or "written".
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel does not take this value.
    #[error("{path} does not take the value \"{value}\": {source}")]
    Rejected {
        /// Path on the target.
        path: String,
        /// What was written.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// Any other failure.
    #[error("{path} could not be {action}: {source}")]
    Io {
        /// Path on the target.
        path: String,
        /// "read" or "written".
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The content is not what the kernel documents.
    #[error("{path}, line {line}: expected {expected}, found \"{found}\"")]
    Malformed {
        /// Path on the target.
        path: String,
        /// 1-based.
        line: usize,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
}

impl HostError {
    pub(crate) fn new(path: &str, action: &'static str, source: io::Error) -> HostError {
        use io::ErrorKind as K;
        let path = path.to_owned();
        // A file of a process in /proc that was opened while the process lived says so once it is gone.
        if source.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) {
            return HostError::Missing { path };
        }
        match source.kind() {
            K::NotFound => HostError::Missing { path },
            K::PermissionDenied | K::ReadOnlyFilesystem => HostError::Refused { path, action, source },
            _ => HostError::Io { path, action, source },
        }
    }

    /// Whether more rights would help.
    pub fn is_refused(&self) -> bool {
        matches!(self, HostError::Refused { .. })
    }
}

/// A machine whose files can be read and, for pgdyno-knobs, written. Paths are absolute paths on the target.
pub trait HostAccess: Send + Sync {
    /// The content as text; bytes that are not UTF-8 are replaced.
    fn read(&self, path: &str) -> Result<String, HostError>;
    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> Result<Vec<String>, HostError>;
    /// What a symbolic link points at.
    fn read_link(&self, path: &str) -> Result<String, HostError>;
    /// Device number (major, minor) of the file system that holds `path`.
    fn device_of(&self, path: &str) -> Result<(u32, u32), HostError>;
    /// Whether this process may write the file, found without writing.
    fn writable(&self, path: &str) -> Result<(), HostError>;
    /// Writes an existing file in one call. For pgdyno-knobs alone.
    fn write_raw(&self, path: &str, value: &str) -> Result<(), HostError>;
    /// Puts a file in place in one step, durably, making its directory if need be, or removes it. For pgdyno-knobs alone.
    fn replace_raw(&self, path: &str, content: Option<&str>) -> Result<(), HostError>;
    /// Writes a file whose value holds as long as it is open, and hands it over. For pgdyno-knobs alone.
    fn hold_raw(&self, path: &str, value: &str) -> Result<fs::File, HostError>;
    /// Binds a process to CPUs. For pgdyno-knobs alone.
    fn bind_raw(&self, pid: u32, cpus: &[usize]) -> Result<(), HostError>;

    /// A file in /proc or /sys opened to be read from its start again and again, where that is possible and gives what
    /// `read` would: on the machine itself, not in a tree of files that may be replaced. `None`: use `read`.
    fn open(&self, _path: &str) -> Option<Result<fs::File, HostError>> {
        None
    }

    /// How large the file system is that holds `path`. `None` where only its files are at hand, not the machine.
    fn space_of(&self, _path: &str) -> Option<Result<Space, HostError>> {
        None
    }

    /// The content without surrounding white space.
    fn read_trimmed(&self, path: &str) -> Result<String, HostError> {
        self.read(path).map(|text| text.trim().to_owned())
    }
}

/// Makes a directory and those above it that are missing, so that none is gone after a power loss.
pub fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    let missing = path.ancestors().take_while(|above| !above.exists());
    let missing: Vec<&Path> = missing.filter(|above| *above != Path::new("")).collect();
    fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
    for made in missing {
        let above = made.parent().filter(|above| *above != Path::new(""));
        fs::File::open(above.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub bytes: u64,
    /// What users other than root may still take.
    pub free_bytes: u64,
}

/// The machine pgdyno runs on, or a tree of files that looks like one.
#[derive(Debug, Clone)]
pub struct LocalHost {
    root: PathBuf,
}

impl LocalHost {
    /// The machine itself.
    pub fn new() -> LocalHost {
        LocalHost::at("/")
    }

    /// A tree of files below `root`, for tests.
    pub fn at(root: impl AsRef<Path>) -> LocalHost {
        LocalHost {
            root: root.as_ref().to_owned(),
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Default for LocalHost {
    fn default() -> Self {
        LocalHost::new()
    }
}

impl HostAccess for LocalHost {
    fn read(&self, path: &str) -> Result<String, HostError> {
        fs::read(self.place(path))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|e| HostError::new(path, "read", e))
    }

    fn open(&self, path: &str) -> Option<Result<fs::File, HostError>> {
        (self.root == Path::new("/"))
            .then(|| fs::File::open(path).map_err(|e| HostError::new(path, "read", e)))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, HostError> {
        let entries = fs::read_dir(self.place(path)).map_err(|e| HostError::new(path, "read", e))?;
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    fn read_link(&self, path: &str) -> Result<String, HostError> {
        fs::read_link(self.place(path))
            .map(|target| target.to_string_lossy().into_owned())
            .map_err(|e| HostError::new(path, "read", e))
    }

    fn device_of(&self, path: &str) -> Result<(u32, u32), HostError> {
        let device = fs::metadata(self.place(path))
            .map_err(|e| HostError::new(path, "read", e))?
            .dev();
        Ok((rustix::fs::major(device), rustix::fs::minor(device)))
    }

    fn space_of(&self, path: &str) -> Option<Result<Space, HostError>> {
        (self.root == Path::new("/")).then(|| {
            let all = rustix::fs::statvfs(path).map_err(|e| HostError::new(path, "read", e.into()))?;
            Ok(Space {
                bytes: all.f_blocks.saturating_mul(all.f_frsize),
                free_bytes: all.f_bavail.saturating_mul(all.f_frsize),
            })
        })
    }

    fn writable(&self, path: &str) -> Result<(), HostError> {
        rustix::fs::access(self.place(path), rustix::fs::Access::WRITE_OK)
            .map_err(|e| HostError::new(path, "written", e.into()))
    }

    fn write_raw(&self, path: &str, value: &str) -> Result<(), HostError> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(self.place(path))
            .map_err(|e| HostError::new(path, "written", e))?;
        // Nothing at all would not even be a write.
        let bytes = if value.is_empty() { b"\n" } else { value.as_bytes() };
        file.write_all(bytes).map_err(|e| {
            // A number out of range, a busy device, an interrupt that the kernel keeps to itself (EIO).
            let rejected = [
                rustix::io::Errno::INVAL,
                rustix::io::Errno::RANGE,
                rustix::io::Errno::BUSY,
                rustix::io::Errno::IO,
                rustix::io::Errno::OPNOTSUPP,
            ];
            if rejected
                .iter()
                .any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
            {
                return HostError::Rejected {
                    path: path.to_owned(),
                    value: value.to_owned(),
                    source: e,
                };
            }
            HostError::new(path, "written", e)
        })
    }

    fn hold_raw(&self, path: &str, value: &str) -> Result<fs::File, HostError> {
        let wrong = |e| HostError::new(path, "held", e);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(self.place(path))
            .map_err(wrong)?;
        file.write_all(value.as_bytes()).map_err(wrong)?;
        Ok(file)
    }

    fn replace_raw(&self, path: &str, content: Option<&str>) -> Result<(), HostError> {
        let (place, wrong) = (self.place(path), |e| HostError::new(path, "written", e));
        let directory = place.parent().unwrap_or(Path::new("/"));
        match content {
            Some(content) => {
                make_directory(directory, 0o755).map_err(wrong)?;
                let mut temporary = place.clone().into_os_string();
                temporary.push(".pgdyno-new");
                let mut file = fs::File::create(&temporary).map_err(wrong)?;
                file.write_all(content.as_bytes()).map_err(wrong)?;
                file.sync_all().map_err(wrong)?;
                fs::rename(&temporary, &place).map_err(wrong)?;
            }
            None => match fs::remove_file(&place) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(wrong(e)),
                _ => {}
            },
        }
        match fs::File::open(directory) {
            Ok(directory) => directory.sync_all().map_err(wrong),
            Err(_) => Ok(()),
        }
    }

    fn bind_raw(&self, pid: u32, cpus: &[usize]) -> Result<(), HostError> {
        let path = format!("/proc/{pid}");
        if self.root != Path::new("/") {
            let source = io::Error::from(io::ErrorKind::PermissionDenied);
            return Err(HostError::new(&path, "bound to CPUs", source));
        }
        let mut set = rustix::thread::CpuSet::new();
        for &cpu in cpus.iter().filter(|&&cpu| cpu < rustix::thread::CpuSet::MAX_CPU) {
            set.set(cpu);
        }
        let process = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        rustix::thread::sched_setaffinity(process, &set)
            .map_err(|e| HostError::new(&path, "bound to CPUs", e.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_root_is_read_and_written_like_a_machine() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/sys/vm")).unwrap();
        fs::write(dir.path().join("proc/sys/vm/swappiness"), "60\n").unwrap();
        let host = LocalHost::at(dir.path());
        assert_eq!(host.read_trimmed("/proc/sys/vm/swappiness").unwrap(), "60");
        host.write_raw("/proc/sys/vm/swappiness", "1").unwrap();
        assert_eq!(host.read("/proc/sys/vm/swappiness").unwrap(), "1");
        assert_eq!(host.list("/proc/sys/vm").unwrap(), ["swappiness"]);
    }

    #[test]
    fn directories_are_made_down_to_the_last() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("a/b/c");
        for _ in 0..2 {
            make_directory(&wanted, 0o700).unwrap();
            assert_eq!(fs::metadata(&wanted).unwrap().permissions().mode() & 0o777, 0o700);
        }
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(make_directory(&dir.path().join("file/below"), 0o700).is_err());
    }

    #[test]
    fn files_of_a_machine_do_not_tell_how_full_it_is() {
        let dir = tempfile::tempdir().unwrap();
        assert!(LocalHost::at(dir.path()).space_of("/").is_none());
        let space = LocalHost::new().space_of("/").unwrap().unwrap();
        assert!(space.bytes > 0 && space.free_bytes <= space.bytes);
        assert!(LocalHost::new().space_of("/no/such/place").unwrap().is_err());
    }

    #[test]
    fn a_missing_file_is_named_and_never_created() {
        let dir = tempfile::tempdir().unwrap();
        let host = LocalHost::at(dir.path());
        let error = host.write_raw("/proc/sys/vm/none", "1").unwrap_err();
        assert!(matches!(&error, HostError::Missing { path } if path == "/proc/sys/vm/none"));
        assert!(!dir.path().join("proc/sys/vm/none").exists());
    }
}
