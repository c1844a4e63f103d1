//! Which pooler works in a directory: written down, proven, and ended.

use super::{PoolerError, config};
use pgdyno_host::{COMING, Directory, HostAccess, LocalHost, Owner, is_alive, started_ticks, works_in};
use pgdyno_server::pause;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FORMAT: u32 = 1;
/// After this time the next signal is tried.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// All programs that are poolers.
const PROGRAMS: [&str; 2] = ["pgbouncer", "pgpool"];

/// The content of pooler.json, by which a left pooler is found.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Announced {
    format: u32,
    program: String,
    /// `None` until it was started.
    pid: Option<u32>,
    /// Its start in ticks since the machine's; as [`started_ticks`].
    started_ticks: Option<u64>,
    /// Process id of the pgdyno that started it.
    owner_pid: u32,
    owner_started_ticks: u64,
}

impl Announced {
    /// The content of pooler.json, and which of our programs it names.
    fn parse(text: &str) -> Result<(Announced, &'static str), String> {
        let announced: Announced = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if announced.format != FORMAT {
            return Err(format!(
                "it has format {}; this pgdyno reads {FORMAT}",
                announced.format
            ));
        }
        let program = PROGRAMS.into_iter().find(|name| *name == announced.program);
        let program = program.ok_or_else(|| format!("\"{}\" is not a pooler", announced.program))?;
        Ok((announced, program))
    }
}

/// For the fuzz targets: any text is an announcement that is written and read again as the same, or
/// an error.
pub(crate) fn fuzzed_announced(text: &str) {
    if let Ok((announced, program)) = Announced::parse(text) {
        let written = serde_json::to_string(&announced).ok();
        let again = written.and_then(|text| Announced::parse(&text).ok());
        assert!(again.is_some_and(|again| again == (announced, program)));
    }
}

const ANNOUNCED: &str = "pooler.json";
const ENDED: &str = "pooler.ended";

fn file(directory: &Path) -> PathBuf {
    directory.join(ANNOUNCED)
}

/// Writes down that a pooler is about to be, or is.
pub(super) fn announce(directory: &Path, program: &str, pid: Option<u32>) -> Result<(), PoolerError> {
    let path = file(directory);
    let host = LocalHost::new();
    let own = std::process::id();
    let announced = Announced {
        format: FORMAT,
        program: program.to_owned(),
        pid,
        started_ticks: pid.and_then(|pid| started_ticks(&host, pid).ok()),
        owner_pid: own,
        owner_started_ticks: started_ticks(&host, own).unwrap_or(0),
    };
    let text = serde_json::to_string_pretty(&announced)
        .map_err(|e| PoolerError::io(&path, "written")(io::Error::other(e)))?;
    Directory::open(directory)
        .and_then(|directory| directory.replace(ANNOUNCED, text.as_bytes(), Owner::own(0o644)))
        .map_err(PoolerError::io(&path, "written"))
}

/// Whether a directory is an earlier pooler's: what it leaves is its log.
pub(super) fn is_poolers(directory: &Path) -> bool {
    let there = |directory: &Directory, name| directory.kind(name).is_ok_and(|kind| kind.is_some());
    Directory::open(directory).is_ok_and(|it| there(&it, ANNOUNCED) || there(&it, ENDED))
}

/// Removes what announced it, and its secrets. The log stays, and a mark that the directory is a
/// pooler's.
pub(super) fn forget(directory: &Path) -> Result<(), PoolerError> {
    let held = Directory::open(directory).map_err(PoolerError::io(directory, "opened"))?;
    held.replace(ENDED, b"", Owner::own(0o644))
        .map_err(PoolerError::io(&directory.join(ENDED), "written"))?;
    let coming = format!("{ANNOUNCED}{COMING}");
    // Sockets of one that could not remove them itself.
    let entries = held.entries().map_err(PoolerError::io(directory, "read"))?;
    let names = entries.into_iter().map(|(name, _)| name);
    let sockets = names.filter(|name| name.to_string_lossy().starts_with(".s."));
    let all = config::FILES
        .iter()
        .copied()
        .chain(["pid", "pgpool_status", &coming, ANNOUNCED]);
    for name in sockets.chain(all.map(OsString::from)) {
        held.remove(&name)
            .map_err(PoolerError::io(&directory.join(&name), "removed"))?;
    }
    Ok(())
}

/// A pooler that works in a directory.
pub(super) fn living(directory: &Path) -> Option<u32> {
    let directory = Directory::open(directory).and_then(|held| held.resolved()).ok()?;
    let mut all = PROGRAMS.iter().map(|program| Left::of(&directory, program));
    all.find_map(|left| left.processes().first().copied())
}

pub(super) fn end_left_behind(directory: &Path) -> Result<bool, PoolerError> {
    let path = file(directory);
    let text = match Directory::open(directory).and_then(|it| it.text(ANNOUNCED, super::SMALL_BYTES_MAX)) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(PoolerError::io(&path, "read")(e)),
    };
    let broken = |reason: String| PoolerError::io(&path, "read")(io::Error::other(reason));
    let (announced, program) = Announced::parse(&text).map_err(broken)?;
    let (host, owner) = (LocalHost::new(), announced.owner_pid);
    let owner_lives = is_alive(&host, owner)
        && started_ticks(&host, owner).is_ok_and(|ticks| ticks == announced.owner_started_ticks);
    if owner_lives && owner != std::process::id() {
        return Err(PoolerError::InUse {
            directory: directory.to_owned(),
            holder: format!("process {owner}, which has started a pooler there"),
        });
    }
    let directory = Directory::open(directory)
        .and_then(|held| held.resolved())
        .map_err(PoolerError::io(directory, "read"))?;
    let left = Left {
        started_ticks_min: announced.started_ticks.unwrap_or(announced.owner_started_ticks),
        ..Left::of(&directory, program)
    };
    let was_there = !left.processes().is_empty();
    if !left.end(&mut || ()) {
        return Err(PoolerError::Failed {
            program,
            what: "does not end".to_owned(),
            log: super::log_of(&directory),
            last_lines: super::last_lines(&super::log_of(&directory), ""),
        });
    }
    forget(&directory)?;
    Ok(was_there)
}

/// The processes of one pooler, known by their name, their user and their working directory, which
/// are nobody else's, and that they were not started before it.
pub(super) struct Left<'a> {
    directory: &'a Path,
    program: &'static str,
    started_ticks_min: u64,
}

impl<'a> Left<'a> {
    /// `directory` as the kernel calls it.
    pub(super) fn of(directory: &'a Path, program: &'static str) -> Left<'a> {
        Left {
            directory,
            program,
            started_ticks_min: 0,
        }
    }

    /// Process ids of the processes that still run.
    pub(super) fn processes(&self) -> Vec<u32> {
        let entries = LocalHost::new().list("/proc").unwrap_or_default();
        let numbers = entries.iter().filter_map(|name| name.parse().ok());
        numbers.filter(|&pid| self.is_one(pid)).collect()
    }

    fn is_one(&self, pid: u32) -> bool {
        let host = LocalHost::new();
        let name = host.read(&format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == self.program)
            && Directory::open(self.directory)
                .is_ok_and(|it| works_in(&host, pid, &it).is_ok_and(|ticks| ticks >= self.started_ticks_min))
    }

    /// Ends them: in their own order, then at once, then without asking. `reap` is called while
    /// they are waited for. Returns whether all are gone.
    pub(super) fn end(&self, reap: &mut dyn FnMut()) -> bool {
        // SIGTERM ends pgbouncer at once before 1.23; from then on it waits for its clients, and
        // SIGQUIT does not. SIGINT ends pgpool with its children, whatever its clients do.
        let first = match self.program {
            "pgpool" => Signal::INT,
            _ => Signal::TERM,
        };
        let host = LocalHost::new();
        // A process that ends has no working directory for a moment before it is gone.
        let mut seen: Vec<(u32, Option<u64>)> = Vec::new();
        for signal in [first, Signal::QUIT, Signal::KILL] {
            let all = self.processes();
            seen.extend(all.iter().map(|&pid| (pid, started_ticks(&host, pid).ok())));
            let parents = all.iter().filter(|pid| {
                let parent = pgdyno_host::parent(&host, **pid);
                signal == Signal::KILL || !parent.is_ok_and(|parent| all.contains(&parent))
            });
            parents.for_each(|pid| self.signal(*pid, signal));
            let deadline = Instant::now() + ENDS_WITHIN;
            loop {
                reap();
                seen.retain(|(pid, ticks)| {
                    is_alive(&host, *pid) && started_ticks(&host, *pid).ok() == *ticks
                });
                if seen.is_empty() && self.processes().is_empty() {
                    return true;
                }
                if Instant::now() >= deadline {
                    break;
                }
                pause(Duration::from_millis(10));
            }
        }
        false
    }

    /// The process is held by its file descriptor before it is proven once more: a number can be
    /// given to another one meanwhile.
    fn signal(&self, pid: u32, signal: Signal) {
        let Some(number) = Pid::from_raw(pid.cast_signed()) else {
            return;
        };
        if let Ok(held) = pidfd_open(number, PidfdFlags::empty())
            && self.is_one(pid)
        {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}
