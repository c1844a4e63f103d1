//! A server's first process and its files on this host, found in /proc, or why they cannot be: a
//! number from another namespace names another process, and a path another directory.

use crate::postmaster::{NoPostmaster, Postmaster};
use crate::server::Server;
use pgdyno_host::{HostAccess, inner_number, parent, path_here, started_unix_s};
use std::path::PathBuf;

/// How far two accounts of one start may be apart: the machine's clock is set now and then, and the
/// kernel counts from its boot by the clock as it is now.
const START_APART_MAX_S: u64 = 60;

/// How the title of a process names a connection over a socket.
const OVER_SOCKET: &str = "[local]";

/// What a server reports of its processes and its files, for them to be found on this host.
#[derive(Debug, Clone)]
pub struct Sought {
    /// Its data directory, as it sees it; `None` where the role may not know it.
    data: Option<PathBuf>,
    /// The process that serves the connection.
    backend: Option<u32>,
    /// When its first process was started.
    started_unix_s: Option<u64>,
    /// Whether the connection is one within a host: over a socket, to its own address, or as the
    /// server sees it.
    is_near: bool,
    /// How the serving process names the connection in its title: by the client's port, as the
    /// server sees it, or as one over a socket.
    title: Option<String>,
}

/// Why a server is not known to run on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotHere {
    /// It is reached over a network.
    Elsewhere,
    /// It may run here, and its process is not seen.
    Unknown(String),
}

impl Sought {
    /// Asks the server. What it does not report makes the process harder to find, and is not an
    /// error.
    pub fn ask(server: &mut Server) -> Sought {
        let sql = "SELECT pg_backend_pid(), extract(epoch FROM pg_postmaster_start_time())::bigint, \
                   inet_client_addr() IS NOT DISTINCT FROM inet_server_addr(), \
                   CASE WHEN inet_client_port() > 0 THEN '(' || inet_client_port() || ')' END";
        let rows = server
            .rows("asking for the server's processes", sql)
            .unwrap_or_default();
        let value = |column: usize| rows.first().and_then(|row| row.get(column)?.as_deref());
        let data = server.value("asking for the data directory", "SHOW data_directory");
        let way = server.conninfo();
        Sought {
            data: data.ok().flatten().map(PathBuf::from),
            backend: value(0).and_then(|text| text.parse().ok()),
            started_unix_s: value(1).and_then(|text| text.parse().ok()),
            is_near: way.is_local() || way.is_here() || value(2) == Some("t"),
            title: Some(value(3).unwrap_or(OVER_SOCKET).to_owned()),
        }
    }

    /// The process id of the postmaster in this host's /proc, for a server that is known to run on
    /// it: by its own file, else as the parent of the process that serves the connection. Either
    /// way it must be a process of that name that was started when the server says.
    ///
    /// # Errors
    ///
    /// Why none is found.
    pub fn postmaster(&self, host: &dyn HostAccess) -> Result<u32, String> {
        let by_file = self
            .by_file(host)
            .and_then(|pid| self.checked(host, pid).map(|()| pid));
        by_file.or_else(|first| {
            self.serving(host).or_else(|second| {
                self.in_namespace(host).ok_or_else(|| {
                    if first == second {
                        first
                    } else {
                        format!("{first}; {second}")
                    }
                })
            })
        })
    }

    /// The same of a server that may run elsewhere. One in another pid namespace has an address of
    /// its own.
    ///
    /// # Errors
    ///
    /// [`NotHere`].
    pub fn postmaster_here(&self, host: &dyn HostAccess) -> Result<u32, NotHere> {
        if self.is_near {
            return self.postmaster(host).map_err(NotHere::Unknown);
        }
        // Over a socket, which may be a pooler's elsewhere, no port is in the title.
        let is_by_port = self.title.as_deref().is_some_and(|title| title != OVER_SOCKET);
        let found = is_by_port.then(|| self.in_namespace(host)).flatten();
        found.ok_or(NotHere::Elsewhere)
    }

    /// The same by the process that serves the connection alone: another host's server may have the
    /// same directory, port and number.
    pub fn proven(&self, host: &dyn HostAccess) -> Option<u32> {
        self.serving(host).ok().or_else(|| self.in_namespace(host))
    }

    /// The path here of the server's data directory.
    ///
    /// # Errors
    ///
    /// Why it has none, or is not known.
    pub fn data_here(&self, host: &dyn HostAccess, postmaster: u32) -> Result<PathBuf, String> {
        let unknown = || "the server's data directory is unknown".to_owned();
        let data = self.data.as_deref().ok_or_else(unknown)?;
        path_here(host, postmaster, &data.to_string_lossy()).map(PathBuf::from)
    }

    /// By the file that the server keeps in its data directory; where this process may not see
    /// where that works, name and start decide what is described.
    fn by_file(&self, host: &dyn HostAccess) -> Result<u32, String> {
        let data = self.data.as_ref();
        let data = data.ok_or_else(|| "the data directory is not known to this role".to_owned())?;
        match Postmaster::of_data(host, data) {
            Ok(found) => Ok(found.pid),
            Err(NoPostmaster::Unknown { pid: Some(pid), .. }) => Ok(pid),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The parent of the process that serves the connection.
    fn serving(&self, host: &dyn HostAccess) -> Result<u32, String> {
        let unknown = || "the server does not report the process of this connection".to_owned();
        let backend = self.backend.ok_or_else(unknown)?;
        is_named(host, backend)?;
        let pid = parent(host, backend)?;
        self.checked(host, pid).map(|()| pid)
    }

    /// The same of a server whose processes have other numbers than here, in a pid namespace of its
    /// own (a container's): the parent of the one process here that has the backend's number there
    /// and serves this very connection. The client's port, which the server sees, is in its title.
    fn in_namespace(&self, host: &dyn HostAccess) -> Option<u32> {
        let (backend, title) = (self.backend?, self.title.as_deref()?);
        let serves = |pid: &u32| {
            let command = host.read(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
            inner_number(host, *pid) == Some(backend)
                && command.contains(title)
                && is_named(host, *pid).is_ok()
        };
        let processes = host.list("/proc").ok()?.into_iter();
        let found: Vec<u32> = processes
            .filter_map(|name| name.parse().ok())
            .filter(serves)
            .filter_map(|pid| parent(host, pid).ok())
            .filter(|pid| self.checked(host, *pid).is_ok())
            .collect();
        match *found {
            [only] => Some(only),
            _ => None,
        }
    }

    fn checked(&self, host: &dyn HostAccess, pid: u32) -> Result<(), String> {
        is_named(host, pid)?;
        let expected = self
            .started_unix_s
            .ok_or_else(|| "the server does not report its start time".to_owned())?;
        let started = started_unix_s(host, pid)?;
        if started.abs_diff(expected) > START_APART_MAX_S {
            return Err(format!(
                "process {pid} here was started at another time than the server: its number is from another namespace, or \
                 of the past"
            ));
        }
        Ok(())
    }
}

fn is_named(host: &dyn HostAccess, pid: u32) -> Result<(), String> {
    let name = host.read_trimmed(&format!("/proc/{pid}/comm")).map_err(|_| {
        format!(
            "there is no process {pid} in this /proc: the server is in another pid namespace (a container), or /proc is \
             mounted with hidepid"
        )
    })?;
    if name.contains("postgres") || name == "postmaster" {
        return Ok(());
    }
    Err(format!(
        "process {pid} here is \"{name}\": the server is in another pid namespace (a container)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    /// (process id, name, parent, start in seconds after boot at 1000)
    type Process = (u32, &'static str, u32, u64);

    /// A server that was started at 1500 and serves by process 70 or another.
    fn check(file: Option<&str>, processes: &[Process], backend: u32, expected: Result<u32, &str>) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |path: String, text: String| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        if let Some(text) = file {
            write("data/postmaster.pid".into(), text.into());
        }
        write("proc/stat".into(), "cpu 1 2 3\nbtime 1000\n".into());
        for (pid, name, parent, start_s) in processes {
            write(format!("proc/{pid}/comm"), format!("{name}\n"));
            let ticks = start_s * 100;
            fs::create_dir_all(root.join("data")).unwrap();
            std::os::unix::fs::symlink("/data", root.join(format!("proc/{pid}/cwd"))).unwrap();
            let uid = fs::metadata(root.join("data")).unwrap().uid();
            // A server of a container, whose processes have numbers of their own.
            let inner = if *pid >= 1000 {
                format!("\t{}", pid - 1000)
            } else {
                String::new()
            };
            write(
                format!("proc/{pid}/status"),
                format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{pid}{inner}\n"),
            );
            write(
                format!("proc/{pid}/cmdline"),
                format!("{name}: me db 10.0.0.1(4711) idle\0"),
            );
            let between = "0 ".repeat(17);
            write(
                format!("proc/{pid}/stat"),
                format!("{pid} ({name}) S {parent} {between}{ticks} 0 0"),
            );
        }
        let sought = Sought {
            data: Some("/data".into()),
            backend: Some(backend),
            started_unix_s: Some(1500),
            is_near: true,
            title: Some("(4711)".into()),
        };
        let found = sought.postmaster(&LocalHost::at(root));
        match (&found, expected) {
            (Ok(pid), Ok(expected)) => assert_eq!(*pid, expected),
            (Err(why), Err(text)) => assert!(why.contains(text), "{why}"),
            _ => panic!("{found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn the_process_must_be_the_one_that_is_meant() {
        let server: Process = (60, "postgres", 1, 500);
        let backend: Process = (70, "postgres", 60, 700);
        check(Some("60\n/data\n1500\n"), &[server], 70, Ok(60));
        check(None, &[server, backend], 70, Ok(60));
        check(Some("nonsense"), &[server, backend], 70, Ok(60));
        check(
            Some("60\n"),
            &[(60, "bash", 1, 500)],
            70,
            Err("process 60 here is \"bash\""),
        );
        check(Some("60\n"), &[], 70, Err("no process 60"));
        check(Some("60\n"), &[(60, "postgres", 1, 90)], 70, Err("another time"));
        check(None, &[(70, "systemd", 1, 500)], 70, Err("another pid namespace"));
        check(None, &[backend, (60, "postgres", 1, 5)], 70, Err("another time"));
        let inner: [Process; 2] = [(1001, "postgres", 9, 500), (1070, "postgres", 1001, 700)];
        check(Some("1\n"), &inner, 70, Ok(1001));
        check(None, &inner, 70, Ok(1001));
        check(Some("1\n"), &inner, 71, Ok(1001));
        check(Some("2\n"), &inner, 71, Err("no process 2"));
        let late = [(1001, "postgres", 9, 5), inner[1]];
        check(Some("1\n"), &late, 70, Err("another time"));
    }
}
