//! Pools of huge pages: the kernel counts pages that a process has in them until it ends, whatever
//! size the pool was given meanwhile.

use super::{SavedState, TargetAccess, UndoUnit, UndoUnitError};
use pgdyno_server::pause;
use std::time::{Duration, Instant};

/// How long a process that ends may hold huge pages.
const PAGES_LEAVE_WITHIN: Duration = Duration::from_secs(5);
/// How long a file may show the value from before a write: some values are taken by a worker of the
/// kernel's.
pub(crate) const TAKEN_WITHIN: Duration = Duration::from_secs(1);
/// What the path of a memory node's pool has in it.
const OF_NODE: &str = "/node/node";

impl UndoUnit {
    /// Reads its state when it should be `wanted`. A process that ends frees its huge pages a
    /// moment after its other files and sockets are closed, and some files show what was written
    /// to them a moment later.
    pub(crate) fn capture_after(
        &self,
        access: TargetAccess<'_>,
        wanted: &SavedState,
    ) -> Result<SavedState, UndoUnitError> {
        let within = match self.is_pool() {
            true => PAGES_LEAVE_WITHIN,
            false => TAKEN_WITHIN,
        };
        let deadline = Instant::now() + within;
        loop {
            let now = self.capture(access)?;
            if now == *wanted || Instant::now() >= deadline {
                return Ok(now);
            }
            pause(Duration::from_millis(10));
        }
    }

    /// Whether it is the size of a pool of huge pages.
    pub(crate) fn is_pool(&self) -> bool {
        matches!(self, UndoUnit::Files { files, .. } if files.iter().any(|file| file.path.ends_with("/nr_hugepages")))
    }

    /// Whether all that has changed since a pool was left is that processes have released pages
    /// that it had beyond its size: those of its nodes are fewer, its size is the same, and all of
    /// it is there.
    pub(crate) fn has_released_pages(&self, left: &SavedState, now: &SavedState) -> bool {
        let (UndoUnit::Files { files, .. }, SavedState::Files(left), SavedState::Files(now)) =
            (self, left, now)
        else {
            return false;
        };
        let number = |value: Option<&Option<String>>| value?.as_ref()?.parse::<u64>().ok();
        let (mut size, mut of_nodes) = (None, 0_u64);
        for (at, file) in files.iter().enumerate() {
            let (Some(left), Some(now)) = (number(left.get(at)), number(now.get(at))) else {
                return false;
            };
            if file.path.contains(OF_NODE) {
                of_nodes = of_nodes.saturating_add(now);
                if now > left {
                    return false;
                }
            } else if now == left && size.is_none() {
                size = Some(now);
            } else {
                return false;
            }
        }
        self.is_pool() && size.is_some_and(|size| of_nodes >= size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::{Form, KernelFile};

    fn pool(nodes: usize) -> UndoUnit {
        let file = |path: String| KernelFile {
            path,
            form: Form::Plain,
            device: None,
        };
        let of_node = |n| format!("/sys/devices/system/node/node{n}/hugepages/hugepages-2048kB/nr_hugepages");
        let paths = std::iter::once("/proc/sys/vm/nr_hugepages".to_owned()).chain((0..nodes).map(of_node));
        UndoUnit::Files {
            files: paths.map(file).collect(),
            leads: 1,
            counterparts: false,
        }
    }

    #[test]
    fn pages_that_are_released_change_a_pool_and_no_others_do() {
        let state =
            |values: &[&str]| SavedState::Files(values.iter().map(|v| Some((*v).to_owned())).collect());
        for (left, now, expected) in [
            // Made smaller while a server had pages: these went with it, all or some of them.
            (&["0", "75"][..], &["0", "0"][..], true),
            (&["0", "75"], &["0", "10"], true),
            (&["50", "40", "60"], &["50", "20", "30"], true),
            // Somebody has made it smaller, or larger, or has moved pages.
            (&["50", "50"], &["0", "0"], false),
            (&["0", "75"], &["10", "75"], false),
            (&["0", "10"], &["0", "75"], false),
            (&["50", "25", "25"], &["50", "20", "20"], false),
            (&["50", "25", "25"], &["50", "0", "50"], false),
            (&["0", "75"], &["0", "-"], false),
        ] {
            let pool = pool(left.len() - 1);
            assert_eq!(
                pool.has_released_pages(&state(left), &state(now)),
                expected,
                "{left:?} {now:?}"
            );
        }
        let other = UndoUnit::Files {
            files: Vec::new(),
            leads: 1,
            counterparts: false,
        };
        assert!(!other.has_released_pages(&state(&[]), &state(&[])));
    }
}
