//! Processes: CPU time of a process and its children, and whether it lives.

use crate::access::{HostAccess, HostError};
use crate::beneath::Directory;
use crate::list::numbers_of_list;
use std::collections::BTreeSet;

/// Clock ticks per second in /proc/PID/stat: fixed at 100 in the kernel's user interface on every
/// architecture.
pub(crate) const TICKS_PER_S: u64 = 100;

/// CPU time in microseconds that a process, its waited-for children and its living children have
/// used. Grandchildren count once their parent has reaped them. A child that vanishes between two
/// reads is then part of what its parent has waited for, so a sum can be short by that child until
/// the next call, never too high.
pub fn cpu_us_of_tree(host: &dyn HostAccess, pid: u32) -> Result<u64, HostError> {
    let children = children(host, pid);
    let own = stat_ticks(host, pid)?;
    let living = children
        .into_iter()
        .filter_map(|child| stat_ticks(host, child).ok())
        .fold(0_u64, |sum, (own, _)| sum.saturating_add(own));
    let ticks = own.0.saturating_add(own.1).saturating_add(living);
    Ok(ticks.saturating_mul(1_000_000 / TICKS_PER_S))
}

/// The living children of a process, of those that its first thread has started (proc(5)).
pub fn children(host: &dyn HostAccess, pid: u32) -> Vec<u32> {
    let text = host
        .read(&format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default();
    text.split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// Whether the process is there (a zombie is not).
pub fn is_alive(host: &dyn HostAccess, pid: u32) -> bool {
    host.read(&format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !matches!(
            after_name(&stat).and_then(|rest| rest.chars().next()),
            Some('Z' | 'X')
        )
    })
}

/// When a process was started, in ticks since the machine was: with its number, this identifies it.
pub fn started_ticks(host: &dyn HostAccess, pid: u32) -> Result<u64, HostError> {
    let path = format!("/proc/{pid}/stat");
    ProcessStat::parse_file(&path, &host.read(&path)?).map(|stat| stat.started_ticks)
}

/// Why a process is not known to be one that works in a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotThere {
    /// There is no such process.
    #[error("there is no process {0}")]
    Gone(u32),
    /// It is somebody else's, or works elsewhere.
    #[error("{0}")]
    Another(String),
    /// This process may not see it.
    #[error("{0}")]
    Unseen(String),
}

/// Proves that a process is one of the directory's owner, works in that very directory, and is one
/// and the same all the while. Returns its start as [`started_ticks`].
///
/// A number in a file proves nothing: a user who may write the file can name any process. One with
/// other rights than its owner's, as a program with the set-user-ID bit has, is somebody else's.
///
/// # Errors
///
/// [`NotThere`], with what was found.
pub fn works_in(host: &dyn HostAccess, pid: u32, directory: &Directory) -> Result<u64, NotThere> {
    let unseen = |error: HostError| match error {
        HostError::Missing { .. } => NotThere::Gone(pid),
        other => NotThere::Unseen(other.to_string()),
    };
    if !is_alive(host, pid) {
        return Err(NotThere::Gone(pid));
    }
    let started = started_ticks(host, pid).map_err(unseen)?;
    let (owner, place) = (directory.owner().uid, directory.path().display());
    let users = users_of(host, pid).map_err(unseen)?;
    if let Some(other) = users.iter().find(|&&uid| uid != owner) {
        return Err(NotThere::Another(format!(
            "process {pid} is of user {other}, expected user {owner}, the owner of {place}"
        )));
    }
    let wanted = directory
        .identity()
        .map_err(|e| NotThere::Unseen(format!("{place}: {e}")))?;
    let works = host.identity_of(&format!("/proc/{pid}/cwd")).map_err(unseen)?;
    if works != wanted {
        return Err(NotThere::Another(format!(
            "process {pid} does not work in {place}"
        )));
    }
    match started_ticks(host, pid) {
        Ok(now) if now == started => Ok(started),
        _ => Err(NotThere::Gone(pid)),
    }
}

/// Real, effective, saved and file-system user of a process.
fn users_of(host: &dyn HostAccess, pid: u32) -> Result<Vec<u32>, HostError> {
    let path = format!("/proc/{pid}/status");
    let text = host.read(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"));
    let users: Vec<u32> = line
        .unwrap_or_default()
        .split_whitespace()
        .map_while(|uid| uid.parse().ok())
        .collect();
    match users.len() {
        4 => Ok(users),
        _ => Err(HostError::Malformed {
            path,
            line: 1,
            expected: "a line Uid with four users",
            found: text.chars().take(40).collect(),
        }),
    }
}

/// Numbers of the host's CPUs that are online, whatever this process may use; `None` where the
/// kernel does not say.
pub fn online_cpus(host: &dyn HostAccess) -> Option<BTreeSet<u32>> {
    numbers_of_list(&host.read_trimmed("/sys/devices/system/cpu/online").ok()?)
}

/// The CPUs that a process may run on, as the kernel writes them ("0-3,8").
pub fn cpus_of(host: &dyn HostAccess, pid: u32) -> Result<String, HostError> {
    let path = format!("/proc/{pid}/status");
    let text = host.read(&path)?;
    text.lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .map(|list| list.trim().to_owned())
        .ok_or_else(|| HostError::Malformed {
            path,
            line: 1,
            expected: "a line Cpus_allowed_list",
            found: text.chars().take(40).collect(),
        })
}

/// What of /proc/PID/stat is used; times in ticks, memory in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// 'R', 'S', 'D', 'Z', ...
    pub(crate) state: char,
    pub(crate) parent: u32,
    /// Times and faults of the process itself.
    pub(crate) own: Used,
    /// What the children that it has waited for had used.
    pub(crate) reaped: Used,
    /// Start of the process, in ticks since boot.
    pub(crate) started_ticks: u64,
    /// Resident pages, shared ones too. The kernel says that it may lag behind a little.
    pub(crate) resident_pages: u64,
}

/// CPU time and page faults of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) ticks: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
}

/// The parent of the kernel's threads, and its name (kthreads(7)); in a container another process
/// may have its number.
pub(crate) const KTHREADD: (u32, &str) = (2, "kthreadd");

impl ProcessStat {
    /// A process's stat with its name; `None` where it is gone, or unreadable.
    pub(crate) fn named(host: &dyn HostAccess, pid: u32) -> Option<(String, ProcessStat)> {
        let text = host.read(&format!("/proc/{pid}/stat")).ok()?;
        let name = text.split_once('(')?.1.rsplit_once(')')?.0.to_owned();
        Some((name, ProcessStat::parse(&text)?))
    }

    /// Fields as proc(5) numbers them: state 3, parent 4, faults 10 to 13, times 14 to 17, start
    /// 22, resident 24.
    pub(crate) fn parse(stat: &str) -> Option<ProcessStat> {
        let mut fields = after_name(stat)?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let mut fields = fields.skip(5);
        let mut next = || fields.next()?.parse::<u64>().ok();
        let (minor, reaped_minor, major, reaped_major) = (next()?, next()?, next()?, next()?);
        let (user, system, reaped_user, reaped_system) = (next()?, next()?, next()?, next()?);
        let mut fields = fields.skip(4);
        let started_ticks = fields.next()?.parse().ok()?;
        let resident_pages = fields.nth(1)?.parse().ok()?;
        Some(ProcessStat {
            state,
            parent,
            own: Used {
                ticks: user.checked_add(system)?,
                minor_faults: minor,
                major_faults: major,
            },
            reaped: Used {
                ticks: reaped_user.checked_add(reaped_system)?,
                minor_faults: reaped_minor,
                major_faults: reaped_major,
            },
            started_ticks,
            resident_pages,
        })
    }

    /// The same, with the path in the error.
    pub(crate) fn parse_file(path: &str, stat: &str) -> Result<ProcessStat, HostError> {
        ProcessStat::parse(stat).ok_or_else(|| HostError::Malformed {
            path: path.to_owned(),
            line: 1,
            expected: "a process status line of 24 fields or more",
            found: stat.chars().take(80).collect(),
        })
    }
}

impl Used {
    /// Growth since `before`; `None` where something went backwards.
    pub(crate) fn since(self, before: Used) -> Option<Used> {
        Some(Used {
            ticks: self.ticks.checked_sub(before.ticks)?,
            minor_faults: self.minor_faults.checked_sub(before.minor_faults)?,
            major_faults: self.major_faults.checked_sub(before.major_faults)?,
        })
    }

    /// Sum of both.
    pub(crate) fn plus(self, other: Used) -> Used {
        Used {
            ticks: self.ticks.saturating_add(other.ticks),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
        }
    }
}

/// (ticks of the process itself, ticks of the children it has waited for).
fn stat_ticks(host: &dyn HostAccess, pid: u32) -> Result<(u64, u64), HostError> {
    let path = format!("/proc/{pid}/stat");
    let stat = ProcessStat::parse_file(&path, &host.read(&path)?)?;
    Ok((stat.own.ticks, stat.reaped.ticks))
}

/// Fields after the command name, which may itself hold blanks and brackets (proc(5)).
pub(crate) fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_shift_the_fields() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 70 30 5 6 20 0 1 0 100 9000 77 18446744073709551615";
        let used = |ticks, minor_faults, major_faults| Used {
            ticks,
            minor_faults,
            major_faults,
        };
        let expected = ProcessStat {
            state: 'S',
            parent: 1,
            own: used(100, 1, 3),
            reaped: used(11, 2, 4),
            started_ticks: 100,
            resident_pages: 77,
        };
        assert_eq!(ProcessStat::parse(stat), Some(expected));
        for cut in ["42 (cut) S 1 2", "42 (cut", "", ")"] {
            assert_eq!(ProcessStat::parse(cut), None);
        }
    }

    #[test]
    fn this_process_lives_and_uses_cpu() {
        let host = crate::LocalHost::new();
        assert!(is_alive(&host, std::process::id()));
        assert!(!is_alive(&host, u32::MAX));
        assert!(cpu_us_of_tree(&host, std::process::id()).is_ok());
    }
}
