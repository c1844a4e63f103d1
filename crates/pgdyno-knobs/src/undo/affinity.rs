//! The CPUs that a server's processes run on. Processes that it starts later inherit them from the
//! first one.

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

/// Binds the first process, then all that it has started; what it starts meanwhile inherits from
/// it.
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

/// The numbers of a list such as "0-3,8"; none of what is no such list.
pub(crate) fn numbers(list: &str) -> Vec<usize> {
    let numbers = pgdyno_host::numbers_of_list(list).unwrap_or_default();
    numbers.into_iter().map(|number| number as usize).collect()
}
