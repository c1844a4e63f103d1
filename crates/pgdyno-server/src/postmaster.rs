//! The first process of a server whose files are here: read from its postmaster.pid and proven, in
//! this one place.

use pgdyno_host::{Directory, HostAccess, NotThere, inner_number, works_in};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::path::Path;

const PID_FILE: &str = "postmaster.pid";
/// The file has eight lines, two of them paths.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A server's first process, proven to be one of the data directory's owner that works in that
/// directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postmaster {
    /// Process id of the postmaster.
    pub pid: u32,
    /// When it was started, in ticks since the machine was.
    pub started_ticks: u64,
    /// The server's port, where the file has it already.
    pub port: Option<u16>,
    /// Whether it is a server in single-user mode, as initdb starts it: it has no children, takes
    /// no connection, and is not stopped by pg_ctl.
    pub is_single_user: bool,
}

/// Why no postmaster is found for a data directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPostmaster {
    /// There is no file: it was stopped in order, or never started.
    #[error("there is no postmaster.pid in {0}")]
    NoFile(String),
    /// Its process is gone, or is another one.
    #[error("{0}")]
    NotRunning(String),
    /// It cannot be proven by this process, which may lack the rights.
    #[error("{why}")]
    Unknown {
        /// The number in the file, if there is one.
        pid: Option<u32>,
        /// What keeps it from being proven.
        why: String,
    },
}

impl Postmaster {
    /// The first process of the server with this data directory.
    ///
    /// The server's user writes the file and could name any process in it, so the process is
    /// proven. A server in a pid namespace of its own (a container's) has written its number there.
    ///
    /// # Errors
    ///
    /// [`NoPostmaster`].
    pub fn of_data(host: &dyn HostAccess, data: &Path) -> Result<Postmaster, NoPostmaster> {
        let unknown = |pid, why| NoPostmaster::Unknown { pid, why };
        let directory = match host.directory(data) {
            Ok(directory) => directory,
            Err(error) => return Err(unknown(None, error.to_string())),
        };
        let path = data.join(PID_FILE);
        let text = match directory.text(PID_FILE, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(NoPostmaster::NoFile(data.display().to_string()));
            }
            Err(e) => return Err(unknown(None, format!("{}: {e}", path.display()))),
        };
        let mut lines = text.lines().map(str::trim);
        // A server in single-user mode writes its number with a sign.
        let number = lines.next().and_then(|line| line.parse::<i32>().ok());
        let number = number.filter(|number| *number != 0).ok_or_else(|| {
            NoPostmaster::NotRunning(format!("{}, line 1: expected a process id", path.display()))
        })?;
        let written = number.unsigned_abs();
        let proven = works_in(host, written, &directory).map(|started_ticks| (written, started_ticks));
        let in_namespace = || in_namespace(host, written, &directory);
        match proven.or_else(|why| in_namespace().ok_or(why)) {
            Ok((pid, started_ticks)) => Ok(Postmaster {
                pid,
                started_ticks,
                port: lines.nth(2).and_then(|line| line.parse().ok()),
                is_single_user: number < 0,
            }),
            Err(why @ (NotThere::Gone(_) | NotThere::Another(_))) => {
                Err(NoPostmaster::NotRunning(why.to_string()))
            }
            Err(NotThere::Unseen(why)) => Err(unknown(Some(written), why)),
        }
    }

    /// Makes the server with this data directory read its files again, where it lets no session in
    /// that could ask for it. For pgdyno-knobs alone.
    ///
    /// # Errors
    ///
    /// Why no process is proven to be the server's, or takes no signal.
    pub fn reload_by_signal(host: &dyn HostAccess, data: &Path) -> Result<(), String> {
        let proven = || Postmaster::of_data(host, data).map_err(|error| error.to_string());
        let first = proven()?;
        let pid = Pid::from_raw(first.pid.cast_signed()).ok_or("process 0 is not a server's")?;
        // A process is held before it is proven once more: its number can be given to another one
        // meanwhile.
        let held = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| error.to_string())?;
        let again = proven()?;
        if again != first || again.is_single_user {
            return Err(format!(
                "process {} of {} takes no reload",
                again.pid,
                data.display()
            ));
        }
        pidfd_send_signal(held, Signal::HUP).map_err(|error| error.to_string())
    }
}

/// The process that has this number in a pid namespace of its own and works in the directory, and
/// its start.
fn in_namespace(host: &dyn HostAccess, number: u32, directory: &Directory) -> Option<(u32, u64)> {
    let processes = host.list("/proc").ok()?.into_iter();
    processes
        .filter_map(|name| name.parse().ok())
        .filter(|pid| inner_number(host, *pid) == Some(number))
        .find_map(|pid| Some((pid, works_in(host, pid, directory).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;
    use std::fs;
    use std::process::{Child, Command, Stdio};

    /// A process that works in a directory until its input ends.
    struct Working(Child);

    impl Working {
        fn in_directory(directory: &Path) -> Working {
            let mut command = Command::new("cat");
            command
                .current_dir(directory)
                .stdin(Stdio::piped())
                .stdout(Stdio::null());
            Working(command.spawn().unwrap())
        }
    }

    impl Drop for Working {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn found(data: &Path, text: &str) -> Result<Postmaster, NoPostmaster> {
        fs::write(data.join(PID_FILE), text).unwrap();
        Postmaster::of_data(&LocalHost::new(), data)
    }

    #[test]
    fn planted_pid_file_that_names_another_process_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
        for path in [&data, &elsewhere] {
            fs::create_dir(path).unwrap();
        }
        let (own, other) = (Working::in_directory(&data), Working::in_directory(&elsewhere));
        let text = |pid: u32| format!("{pid}\n/data\n1500\n5433\n/tmp\n");
        let proven = found(&data, &text(own.0.id())).unwrap();
        assert_eq!((proven.pid, proven.port), (own.0.id(), Some(5433)));
        for (pid, reason) in [
            (other.0.id(), "does not work in"),
            (std::process::id(), "does not work in"),
            (u32::MAX >> 2, "there is no process"),
        ] {
            let error = found(&data, &text(pid)).unwrap_err();
            assert!(matches!(error, NoPostmaster::NotRunning(_)), "{error:?}");
            assert!(error.to_string().contains(reason), "{error}");
        }
        for broken in ["", "x\n", "0\n", "-99999999999\n"] {
            assert!(matches!(found(&data, broken), Err(NoPostmaster::NotRunning(_))));
        }
        fs::remove_file(data.join(PID_FILE)).unwrap();
        let none = Postmaster::of_data(&LocalHost::new(), &data);
        assert!(matches!(none, Err(NoPostmaster::NoFile(_))), "{none:?}");
    }

    #[test]
    fn process_of_another_user_in_the_directory_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let own = Working::in_directory(dir.path());
        assert!(crate::User::is_root(), "the tests run as root");
        // A process of root's in a directory of another user's.
        std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
        fs::write(dir.path().join(PID_FILE), format!("{}\n", own.0.id())).unwrap();
        let file = dir.path().join(PID_FILE);
        std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
        let error = Postmaster::of_data(&LocalHost::new(), dir.path()).unwrap_err();
        assert!(
            error.to_string().contains("is of user 0, expected user 65534"),
            "{error}"
        );
    }
}
