//! The CPUs that a server's processes run on. Processes that it starts later inherit them from the first one.

use super::{SavedState, UndoUnitError};
use pgdyno_host::{HostAccess, HostError, children, cpus_of};
use pgdyno_server::Postmaster;
use std::path::Path;

/// Sessions that are begun while the processes are bound have to be found in another round.
const ROUNDS: u32 = 5;

pub(crate) fn capture(host: &dyn HostAccess, data: &Path) -> Result<SavedState, UndoUnitError> {
    let state = Postmaster::of_data(host, data)
        .ok()
        .map(|found| (found.pid, found.started_ticks, cpus_of(host, found.pid)));
    Ok(match state {
        Some((pid, started, cpus)) => SavedState::Affinity {
            pid: Some(pid),
            started,
            cpus: cpus?,
        },
        None => SavedState::Affinity {
            pid: None,
            started: 0,
            cpus: String::new(),
        },
    })
}

/// Binds the first process, then all that it has started; what it starts meanwhile inherits from it.
pub(crate) fn bind(host: &dyn HostAccess, pid: u32, cpus: &str) -> Result<(), HostError> {
    let wanted = numbers(cpus);
    host.bind_raw(pid, &wanted)?;
    let bound = cpus_of(host, pid)?;
    for _ in 0..ROUNDS {
        let mut rest: Vec<u32> = children(host, pid);
        // A session that has ended needs no CPU.
        rest.retain(|&child| cpus_of(host, child).is_ok_and(|now| now != bound));
        if rest.is_empty() {
            break;
        }
        for child in rest {
            match host.bind_raw(child, &wanted) {
                Err(error) if pgdyno_host::is_alive(host, child) => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The numbers of a list such as "0-3,8".
pub(crate) fn numbers(list: &str) -> Vec<usize> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    list.split(',')
        .flat_map(|part| match part.split_once('-') {
            Some((first, last)) => match (number(first), number(last)) {
                (Some(first), Some(last)) => (first..=last).collect::<Vec<_>>(),
                _ => Vec::new(),
            },
            None => number(part).into_iter().collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_numbers() {
        assert_eq!(numbers("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(numbers("nonsense"), [] as [usize; 0]);
    }
}
