//! Processes: CPU time of a process and its children, and whether it lives.

use crate::access::{HostAccess, HostError};

/// Clock ticks per second in /proc/PID/stat: fixed at 100 in the kernel's user interface on every architecture.
const TICKS_PER_S: u64 = 100;

/// CPU time in microseconds that a process, its waited-for children and its living children have used.
/// Grandchildren count once their parent has reaped them. A child that vanishes between two reads is then part of
/// what its parent has waited for, so a sum can be short by that child until the next call, never too high.
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

/// The living children of a process.
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

/// (ticks of the process itself, ticks of the children it has waited for).
fn stat_ticks(host: &dyn HostAccess, pid: u32) -> Result<(u64, u64), HostError> {
    let path = format!("/proc/{pid}/stat");
    let stat = host.read(&path)?;
    parse_ticks(&stat).ok_or_else(|| HostError::Malformed {
        path,
        line: 1,
        expected: "a process status line with CPU times in fields 14 to 17",
        found: stat.chars().take(80).collect(),
    })
}

/// Fields after the command name, which may itself hold blanks and brackets (proc(5)).
pub(crate) fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest.trim_start())
}

fn parse_ticks(stat: &str) -> Option<(u64, u64)> {
    // The state is field 3, so utime (field 14) is the twelfth of the rest.
    let mut fields = after_name(stat)?.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (user, system, child_user, child_system) = (next()?, next()?, next()?, next()?);
    Some((user.checked_add(system)?, child_user.checked_add(child_system)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_do_not_shift_the_fields() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 70 30 5 6 20 0 1 0 100 1 1";
        assert_eq!(parse_ticks(stat), Some((100, 11)));
        assert_eq!(parse_ticks("42 (cut) S 1 2"), None);
        assert_eq!(parse_ticks(""), None);
    }

    #[test]
    fn this_process_lives_and_uses_cpu() {
        let host = crate::LocalHost::new();
        assert!(is_alive(&host, std::process::id()));
        assert!(!is_alive(&host, u32::MAX));
        assert!(cpu_us_of_tree(&host, std::process::id()).is_ok());
    }
}
