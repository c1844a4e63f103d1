//! How a machine's files are reached: the trait, and the local machine (or a fixture tree) as one
//! root.

use crate::beneath::{Directory, Identity, Owner, Reached, not_regular, read_whole, refused, walk};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// No file of a host that is read here is near this: the largest, /proc/PID/smaps of a large
/// server, has some MB.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Processes of a large machine, or devices; more is not a directory of a host.
const NAMES_MAX: usize = 1 << 20;

/// Why a file of the host could not be read or written. Every case names the path.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The file is not there: another kernel, another device, or not Linux.
    #[error("{path} does not exist on this host")]
    Missing {
        /// Path on the target, as "/proc/meminfo".
        path: String,
    },
    /// The file is there and may not be used so.
    #[error("{path} may not be {action}: {source}")]
    Refused {
        /// Path on the target.
        path: String,
        /// What was tried, as a participle: "read" or "written".
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file does not end within what a file of the kernel or the system holds.
    #[error("{path} is larger than {limit_bytes} bytes, the most that is read of one file of a host")]
    TooLarge {
        /// Path on the target.
        path: String,
        /// Most bytes that are read of a file.
        limit_bytes: u64,
    },
    /// The kernel does not take this value.
    #[error("{path} does not take the value \"{value}\": {source}")]
    Rejected {
        /// Path on the target.
        path: String,
        /// Value that was written.
        value: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// A system call failed for another reason.
    #[error("{path} could not be {action}: {source}")]
    Io {
        /// Path on the target.
        path: String,
        /// What was tried, as a participle: "read" or "written".
        action: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The content is not what the kernel documents.
    #[error("{path}, line {line}: expected {expected}, found \"{found}\"")]
    Malformed {
        /// Path on the target.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// Form that the kernel documents: "a number of kB".
        expected: &'static str,
        /// Text that the line has instead.
        found: String,
    },
}

impl HostError {
    pub(crate) fn new(path: &str, action: &'static str, source: io::Error) -> HostError {
        use io::ErrorKind as K;
        let path = path.to_owned();
        // A file of a process in /proc that was opened while the process lived says so once it is
        // gone.
        if source.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) {
            return HostError::Missing { path };
        }
        match source.kind() {
            K::NotFound => HostError::Missing { path },
            K::FileTooLarge if action == "read" => HostError::TooLarge {
                path,
                limit_bytes: FILE_BYTES_MAX,
            },
            K::PermissionDenied | K::ReadOnlyFilesystem => HostError::Refused { path, action, source },
            _ => HostError::Io { path, action, source },
        }
    }

    /// Whether more rights would help.
    pub fn is_refused(&self) -> bool {
        matches!(self, HostError::Refused { .. })
    }
}

/// A machine whose files can be read and, for pgdyno-knobs, written. Paths are absolute paths on
/// the target.
pub trait HostAccess: Send + Sync {
    /// The content of a regular file as text, of limited size; bytes that are not UTF-8 are
    /// replaced.
    fn read(&self, path: &str) -> Result<String, HostError>;
    /// The same of a file in a directory that another user may write: links are not followed, and
    /// it is a file that the directory's owner may read.
    fn read_in(&self, directory: &Path, name: &str) -> Result<String, HostError>;
    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> Result<Vec<String>, HostError>;
    /// What a symbolic link points at.
    fn read_link(&self, path: &str) -> Result<String, HostError>;
    /// Device number (major, minor) of the file system that holds `path`.
    fn device_of(&self, path: &str) -> Result<(u32, u32), HostError>;
    /// Opens a directory that another user may write: what is read in it is of the directory that
    /// is held.
    fn directory(&self, path: &Path) -> Result<Directory, HostError>;
    /// What identifies the file or directory at `path` on the machine, whatever it is called.
    fn identity_of(&self, path: &str) -> Result<Identity, HostError>;
    /// Whether this process may write the file, found without writing.
    fn writable(&self, path: &str) -> Result<(), HostError>;
    /// Writes an existing file in one call. For pgdyno-knobs alone.
    fn write_raw(&self, path: &str, value: &str) -> Result<(), HostError>;
    /// Puts a file in place in one step, durably, making its directory if need be, or removes it.
    /// For pgdyno-knobs alone.
    fn replace_raw(&self, path: &str, content: Option<&str>) -> Result<(), HostError>;
    /// Writes a file whose value holds as long as it is open, and hands it over. For pgdyno-knobs
    /// alone.
    fn hold_raw(&self, path: &str, value: &str) -> Result<File, HostError>;
    /// Binds a process to CPUs. For pgdyno-knobs alone.
    fn bind_raw(&self, pid: u32, cpus: &[usize]) -> Result<(), HostError>;

    /// A file in /proc or /sys opened to be read from its start again and again, where that is
    /// possible and gives what `read` would: on the machine itself, not in a tree of files that may
    /// be replaced. `None`: use `read`.
    fn open(&self, _path: &str) -> Option<Result<File, HostError>> {
        None
    }

    /// How large the file system is that holds `path`. `None` where only its files are at hand, not
    /// the machine.
    fn space_of(&self, _path: &str) -> Option<Result<Space, HostError>> {
        None
    }

    /// The content without surrounding white space.
    fn read_trimmed(&self, path: &str) -> Result<String, HostError> {
        self.read(path).map(|text| text.trim().to_owned())
    }
}

/// Room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system.
    pub bytes: u64,
    /// Room that users other than root may still take.
    pub free_bytes: u64,
    /// The kernel's number of the file system; 0 of some in memory.
    pub id: u64,
}

/// The machine pgdyno runs on, or a tree of files that looks like one.
#[derive(Debug, Clone)]
pub struct LocalHost {
    root: PathBuf,
}

impl LocalHost {
    /// Access to the machine that pgdyno runs on.
    pub fn new() -> LocalHost {
        LocalHost::at("/")
    }

    /// A tree of files below `root`, for tests.
    pub fn at(root: impl AsRef<Path>) -> LocalHost {
        LocalHost {
            root: root.as_ref().to_owned(),
        }
    }

    fn is_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The root of a tree of files, held open: nothing outside of it is reached from it.
    fn held_root(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, &self.root, flags, Mode::empty())?)
    }

    /// What a path means: on the machine as the kernel resolves it, in a tree of files below its
    /// root. `through_last`: a symbolic link at the end is followed.
    fn reach(&self, path: &str, through_last: bool) -> io::Result<Reached> {
        walk(self.held_root()?.as_fd(), Path::new(path), through_last)
    }

    /// Opens a file without waiting for anybody at its other end.
    fn opened(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if self.is_machine() {
            return Ok(openat(CWD, path, flags, Mode::empty())?);
        }
        let reached = self.reach(path, true)?;
        // A device may act when it is opened.
        let found = fstat(reached.open(OFlags::PATH)?)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => reached.open(flags),
            _ => Err(not_regular(&found)),
        }
    }

    /// The regular file at a path, to read it. Those of /proc and /sys are regular files, too.
    pub(crate) fn regular(&self, path: &str) -> io::Result<File> {
        let handle = self.opened(path, OFlags::RDONLY)?;
        let found = fstat(&handle)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(File::from(handle)),
            _ => Err(not_regular(&found)),
        }
    }

    fn held(&self, path: &Path) -> io::Result<Directory> {
        if self.is_machine() {
            return Directory::open(path);
        }
        Directory::open_in_root(&self.held_root()?, path)
    }

    fn stat(&self, path: &str) -> Result<rustix::fs::Stat, HostError> {
        let found = || -> io::Result<rustix::fs::Stat> {
            if self.is_machine() {
                return Ok(rustix::fs::stat(path)?);
            }
            Ok(fstat(self.reach(path, true)?.open(OFlags::PATH)?)?)
        };
        found().map_err(|e| HostError::new(path, "read", e))
    }

    /// A directory that is made, durably, where it is missing.
    fn made(&self, path: &Path) -> io::Result<Directory> {
        match (self.held(path), path.parent(), path.file_name()) {
            (Err(e), Some(above), Some(name)) if e.kind() == io::ErrorKind::NotFound => {
                let above = self.made(above)?;
                let made = above.make(name, 0o755)?;
                above.sync()?;
                Ok(made)
            }
            (other, _, _) => other,
        }
    }
}

impl Default for LocalHost {
    fn default() -> Self {
        LocalHost::new()
    }
}

impl HostAccess for LocalHost {
    fn read(&self, path: &str) -> Result<String, HostError> {
        self.regular(path)
            .and_then(|file| read_whole(&file, FILE_BYTES_MAX))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|e| HostError::new(path, "read", e))
    }

    fn read_in(&self, directory: &Path, name: &str) -> Result<String, HostError> {
        self.held(directory)
            .and_then(|directory| directory.text(name, FILE_BYTES_MAX))
            .map_err(|e| HostError::new(&directory.join(name).to_string_lossy(), "read", e))
    }

    fn open(&self, path: &str) -> Option<Result<File, HostError>> {
        self.is_machine()
            .then(|| File::open(path).map_err(|e| HostError::new(path, "read", e)))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, HostError> {
        let wrong = |e| HostError::new(path, "read", e);
        if !self.is_machine() {
            let entries = self.held(Path::new(path)).and_then(|it| it.entries());
            let names = entries.map_err(wrong)?.into_iter();
            return Ok(names
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect());
        }
        let entries = fs::read_dir(path).map_err(wrong)?;
        let mut names: Vec<String> = entries
            .flatten()
            .take(NAMES_MAX + 1)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        if names.len() > NAMES_MAX {
            return Err(wrong(refused(format!("it has more than {NAMES_MAX} entries"))));
        }
        names.sort();
        Ok(names)
    }

    fn read_link(&self, path: &str) -> Result<String, HostError> {
        let target = || -> io::Result<String> {
            let target = if self.is_machine() {
                readlinkat(CWD, path, Vec::new())?
            } else {
                let reached = self.reach(path, false)?;
                readlinkat(&reached.parent, &reached.name, Vec::new())?
            };
            Ok(OsString::from_vec(target.into_bytes())
                .to_string_lossy()
                .into_owned())
        };
        target().map_err(|e| HostError::new(path, "read", e))
    }

    fn device_of(&self, path: &str) -> Result<(u32, u32), HostError> {
        let device = self.stat(path)?.st_dev;
        Ok((rustix::fs::major(device), rustix::fs::minor(device)))
    }

    fn directory(&self, path: &Path) -> Result<Directory, HostError> {
        self.held(path)
            .map_err(|e| HostError::new(&path.to_string_lossy(), "read", e))
    }

    fn identity_of(&self, path: &str) -> Result<Identity, HostError> {
        Ok(Identity::of(&self.stat(path)?))
    }

    fn space_of(&self, path: &str) -> Option<Result<Space, HostError>> {
        self.is_machine().then(|| {
            let all = rustix::fs::statvfs(path).map_err(|e| HostError::new(path, "read", e.into()))?;
            Ok(Space {
                bytes: all.f_blocks.saturating_mul(all.f_frsize),
                free_bytes: all.f_bavail.saturating_mul(all.f_frsize),
                id: all.f_fsid,
            })
        })
    }

    fn writable(&self, path: &str) -> Result<(), HostError> {
        let asked = || -> io::Result<()> {
            if self.is_machine() {
                return Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?);
            }
            let reached = self.reach(path, true)?;
            let flags = AtFlags::empty();
            Ok(rustix::fs::accessat(
                &reached.parent,
                &reached.name,
                rustix::fs::Access::WRITE_OK,
                flags,
            )?)
        };
        asked().map_err(|e| HostError::new(path, "written", e))
    }

    fn write_raw(&self, path: &str, value: &str) -> Result<(), HostError> {
        let mut file = self
            .opened(path, OFlags::WRONLY | OFlags::TRUNC)
            .map(File::from)
            .map_err(|e| HostError::new(path, "written", e))?;
        // Nothing at all would not even be a write.
        let bytes = if value.is_empty() { b"\n" } else { value.as_bytes() };
        file.write_all(bytes).map_err(|e| {
            // A number out of range, a busy device, an interrupt that the kernel keeps to itself
            // (EIO).
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

    fn hold_raw(&self, path: &str, value: &str) -> Result<File, HostError> {
        let wrong = |e| HostError::new(path, "held", e);
        let mut file = self.opened(path, OFlags::WRONLY).map(File::from).map_err(wrong)?;
        file.write_all(value.as_bytes()).map_err(wrong)?;
        Ok(file)
    }

    fn replace_raw(&self, path: &str, content: Option<&str>) -> Result<(), HostError> {
        let wrong = |e| HostError::new(path, "written", e);
        let path = Path::new(path);
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(wrong(refused("expected the path of a file")));
        };
        let directory = match content {
            Some(_) => self.made(above).map_err(wrong)?,
            None => match self.held(above) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => other.map_err(wrong)?,
            },
        };
        match content {
            Some(content) => directory.replace(name, content.as_bytes(), Owner::own(0o644)),
            None => directory.remove(name).and_then(|()| directory.sync()),
        }
        .map_err(wrong)
    }

    fn bind_raw(&self, pid: u32, cpus: &[usize]) -> Result<(), HostError> {
        let path = format!("/proc/{pid}");
        if !self.is_machine() {
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
    fn files_of_a_machine_do_not_show_how_full_it_is() {
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

    /// A tree of files from somebody else, as `facts --root` reads it.
    fn tree() -> (tempfile::TempDir, LocalHost) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("root/etc")).unwrap();
        fs::write(dir.path().join("outside"), "not of the tree").unwrap();
        fs::write(dir.path().join("root/etc/inside"), "of the tree").unwrap();
        let host = LocalHost::at(dir.path().join("root"));
        (dir, host)
    }

    #[test]
    fn links_in_a_tree_end_below_its_root() {
        let (dir, host) = tree();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, dir.path().join("root").join(name)).unwrap();
        };
        link("/etc/inside", "absolute");
        link("../../../etc/inside", "upwards");
        link("../outside", "out");
        link(&dir.path().join("outside").to_string_lossy(), "away");
        link("/..", "above");
        link("loop", "loop");
        for inside in ["/absolute", "/upwards", "/above/etc/inside", "/../../etc/inside"] {
            assert_eq!(host.read(inside).unwrap(), "of the tree", "{inside}");
        }
        for outside in ["/out", "/away", "/above/outside", "/../outside"] {
            let missing = HostError::Missing {
                path: outside.to_owned(),
            };
            assert_eq!(host.read(outside).unwrap_err().to_string(), missing.to_string());
            assert!(host.writable(outside).is_err() && host.device_of(outside).is_err());
            assert!(host.write_raw(outside, "written").is_err());
        }
        assert_eq!(host.list("/above").unwrap(), host.list("/").unwrap());
        assert_eq!(host.read_link("/out").unwrap(), "../outside");
        assert!(host.read("/loop").is_err());
        assert_eq!(
            fs::read_to_string(dir.path().join("outside")).unwrap(),
            "not of the tree"
        );
    }

    #[test]
    fn what_never_ends_in_a_tree_is_refused_by_name() {
        let (dir, host) = tree();
        let at = |name: &str| dir.path().join("root").join(name);
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, mode, 0).unwrap();
        let zero = rustix::fs::makedev(1, 5);
        rustix::fs::mknodat(CWD, at("zero"), FileType::CharacterDevice, mode, zero).unwrap();
        File::create(at("large")).unwrap().set_len(1 << 40).unwrap();
        for (path, reason) in [
            ("/fifo", "/fifo may not be read: it is a FIFO"),
            ("/zero", "/zero may not be read: it is a device"),
            ("/large", "/large is larger than 16777216 bytes"),
        ] {
            let error = host.read(path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(host.write_raw("/fifo", "1").is_err() && host.write_raw("/zero", "1").is_err());
        // The machine's own files are bounded, too.
        let machine = LocalHost::new().read(&at("fifo").to_string_lossy()).unwrap_err();
        assert!(machine.to_string().contains("FIFO"), "{machine}");
        assert!(LocalHost::new().read("/dev/zero").unwrap_err().is_refused());
    }

    #[test]
    fn a_file_of_pgdynos_own_is_replaced_and_removed() {
        let (dir, host) = tree();
        host.replace_raw("/etc/new.d/file", Some("a = 1\n")).unwrap();
        assert_eq!(host.read("/etc/new.d/file").unwrap(), "a = 1\n");
        for _ in 0..2 {
            host.replace_raw("/etc/new.d/file", None).unwrap();
            host.replace_raw("/none/at/all", None).unwrap();
        }
        assert_eq!(
            fs::read_dir(dir.path().join("root/etc/new.d")).unwrap().count(),
            0
        );
    }
}
