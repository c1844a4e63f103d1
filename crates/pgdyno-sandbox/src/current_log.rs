//! The log that a server which pgdyno did not create writes to: what it says of a start that
//! failed.

use crate::log;
use pgdyno_host::{Directory, HostAccess, LocalHost, path_here};
use pgdyno_server::{Conninfo, Postmaster, Server, pause};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The log that a server on this machine writes to, and what its directory held before the restart.
pub(crate) struct CurrentLog {
    path: PathBuf,
    /// Kept open: its name may be another file's by the time that it is read.
    log: File,
    before: u64,
    data: Directory,
    /// Bytes of the other files in its directory, by name: a start may go on in one of them. `None`
    /// where there are too many.
    beside: Option<BTreeMap<OsString, u64>>,
}

impl CurrentLog {
    /// In the data directory: the server's logging process writes there which files it writes.
    const NAMES: &str = "current_logfiles";
    /// Bytes of it: three lines with a path each.
    const NAMES_MAX: u64 = 16 * 1024;
    /// A directory with more files is not read: a year of hourly ones is below it.
    const BESIDE_MAX: usize = 10_000;
    /// How long the reason of a failed start is waited for: it is written within milliseconds, on a
    /// busy machine later.
    const PATIENCE: Duration = Duration::from_secs(3);
    const PAUSE: Duration = Duration::from_millis(50);

    /// Asks the server with this data directory, while it can be asked. A log that may not be read
    /// is none.
    pub(crate) fn of(conninfo: &Conninfo, data: &Path) -> Option<CurrentLog> {
        let mut server = Server::connect(conninfo).ok()?;
        let file = server.value("asking for the log", "SELECT pg_catalog.pg_current_logfile()");
        CurrentLog::found(data, file.ok()?.as_deref())
    }

    /// The server chooses the name, so the directory is proven to be a running server's, and the
    /// log is its owner's. Without a file of its logging process, it is the one that its first
    /// process writes to.
    fn found(directory: &Path, file: Option<&str>) -> Option<CurrentLog> {
        let host = LocalHost::new();
        let first = Postmaster::of_data(&host, directory).ok()?;
        let data = Directory::open(directory).ok()?;
        let path = match file {
            Some(file) => {
                let file = directory.join(file);
                PathBuf::from(path_here(&host, first.pid, &file.to_string_lossy()).ok()?)
            }
            None => PathBuf::from(host.read_link(&format!("/proc/{}/fd/2", first.pid)).ok()?),
        };
        let (above, name) = Directory::above(&path).ok()?;
        let log = above.file_of(name, data.owner().uid).ok()?;
        let before = log.metadata().ok()?.len();
        let entries = above.entries().ok();
        let entries = entries.filter(|entries| entries.len() <= CurrentLog::BESIDE_MAX);
        let size = |(name, _): (OsString, _)| Some((name.clone(), above.size(name).ok()?));
        let beside = entries.map(|entries| entries.into_iter().filter_map(size).collect());
        Some(CurrentLog {
            path,
            log,
            before,
            data,
            beside,
        })
    }

    /// What it says since, as the end of a sentence. The logging process outlives a server that did
    /// not start, and writes its last lines a moment after the restart command has failed.
    pub(crate) fn end(&self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let (path, text) = self.since();
            let runs = || Postmaster::of_data(&LocalHost::new(), self.data.path()).is_ok();
            if log::has_reason(&text) || runs() || begun.elapsed() >= CurrentLog::PATIENCE {
                let text = log::last_lines(&text)?;
                return Some(format!("; the server's log {} ends with: {text}", path.display()));
            }
            pause(CurrentLog::PAUSE);
        }
    }

    /// What was written since, and the file that it ends in.
    fn since(&self) -> (PathBuf, String) {
        let text = log::since(&self.log, self.before).unwrap_or_default();
        match self.next() {
            Some((path, later)) => (path, text + &later),
            None => (self.path.clone(), text),
        }
    }

    /// The file that the server went on with, if it is another one, and what it has written there.
    /// By default each start begins a file; and somebody may have moved the one that was open.
    fn next(&self) -> Option<(PathBuf, String)> {
        let names = self.data.text(CurrentLog::NAMES, CurrentLog::NAMES_MAX).ok()?;
        let (_, file) = names.lines().next()?.split_once(' ')?;
        let path = self.data.path().join(file);
        let (above, name) = Directory::above(&path).ok()?;
        let log = above.file_of(&name, self.data.owner().uid).ok()?;
        let (new, old) = (log.metadata().ok()?, self.log.metadata().ok()?);
        if (new.dev(), new.ino()) == (old.dev(), old.ino()) {
            return None;
        }
        let before = match path == self.path {
            true => 0,
            false => self.beside.as_ref()?.get(&name).copied().unwrap_or(0),
        };
        Some((path, log::since(&log, before)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    /// The server names its log: a file of root's is not shown, nor is one that a proven server is
    /// not behind.
    #[test]
    fn log_is_one_of_the_owner_of_a_running_servers_data() {
        const SERVER: u32 = 12_345;
        let dir = tempfile::tempdir().unwrap();
        let (data, secret) = (dir.path().join("data"), dir.path().join("secret"));
        fs::create_dir(&data).unwrap();
        fs::write(&secret, "FATAL:  root only\n").unwrap();
        fs::write(data.join("log"), "FATAL:  old\n").unwrap();
        assert!(CurrentLog::found(&data, Some("log")).is_none(), "no server runs");
        let mut server = Command::new("cat")
            .current_dir(&data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .uid(SERVER)
            .spawn()
            .unwrap();
        fs::write(data.join("postmaster.pid"), format!("{}\n", server.id())).unwrap();
        for path in [&data, &data.join("log"), &data.join("postmaster.pid")] {
            chown(path, Some(SERVER), Some(SERVER)).unwrap();
        }
        let log = CurrentLog::found(&data, Some("log")).unwrap();
        assert_eq!(log.end(), None);
        symlink(dir.path(), data.join("way")).unwrap();
        for file in ["../secret", "way/secret", &secret.to_string_lossy()] {
            assert!(CurrentLog::found(&data, Some(file)).is_none(), "{file}");
        }
        // What has its name meanwhile is not shown.
        fs::write(data.join("log"), "FATAL:  old\nFATAL:  new\n").unwrap();
        fs::rename(data.join("log"), data.join("moved")).unwrap();
        symlink(&secret, data.join("log")).unwrap();
        let message = log.end().unwrap();
        assert!(message.ends_with("ends with: new"), "{message}");
        server.kill().unwrap();
        server.wait().unwrap();
    }

    /// The server has ended, and its logging process has not.
    #[test]
    fn last_lines_of_a_server_that_did_not_start_are_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "LOG:  shutting down\n").unwrap();
        let log = CurrentLog {
            log: File::open(&path).unwrap(),
            before: 0,
            data: Directory::open(dir.path()).unwrap(),
            beside: None,
            path: path.clone(),
        };
        let (begins, begun) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            begins.send(()).unwrap();
            log.end()
        });
        begun.recv().unwrap();
        fs::write(&path, "LOG:  shutting down\nFATAL:  could not load it\n").unwrap();
        let message = reader.join().unwrap().unwrap();
        assert!(message.ends_with("ends with: could not load it"), "{message}");
    }
}
