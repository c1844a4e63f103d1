//! What the boots since have made of the changes of a journal.

use super::Group;
use crate::persist::set_at_boot;
use crate::undo::{KernelFile, SavedState, UndoUnit};

/// Whether there was one, and what it set again.
pub(crate) struct Boot {
    /// Whether the machine was booted again.
    pub(crate) rebooted: bool,
    /// Kernel files and values that files of pgdyno's own, written by the journal, set at each
    /// boot.
    persisted: Vec<(String, String)>,
}

impl Boot {
    pub(crate) fn of(groups: &[Group], rebooted: bool) -> Boot {
        let own = groups
            .iter()
            .filter(|group| matches!(group.unit, UndoUnit::OwnFile { .. }));
        let last = own.filter_map(|group| group.writes.last()?.value.as_deref());
        Boot {
            rebooted,
            persisted: last.flat_map(set_at_boot).collect(),
        }
    }

    /// Whether a boot sets something of the undo unit.
    pub(crate) fn sets(&self, unit: &UndoUnit) -> bool {
        let UndoUnit::Files { files, .. } = unit else {
            return false;
        };
        let mut paths = self.persisted.iter().map(|(path, _)| path);
        paths.any(|path| files.iter().any(|file| file.path == *path))
    }

    /// Whether a boot has set a file to the value that it has.
    pub(crate) fn has_set(&self, file: Option<&KernelFile>, value: Option<&str>) -> bool {
        let mut persisted = self.persisted.iter().filter(|_| self.rebooted);
        persisted
            .any(|(path, set)| file.is_some_and(|file| file.path == *path) && value == Some(set.as_str()))
    }

    /// Whether a boot has set something of the undo unit, which is in the state `now`.
    pub(super) fn has_set_some(&self, unit: Option<&UndoUnit>, now: Option<&SavedState>) -> bool {
        let (Some(UndoUnit::Files { files, .. }), Some(now)) = (unit, now) else {
            return false;
        };
        let mut files = files.iter().enumerate();
        files.any(|(at, file)| self.has_set(Some(file), now.value(at)))
    }

    /// The state `now` of a group's undo unit without what a boot has set of it: that is as before,
    /// and so is what the kernel has set again beside it as it did then. Everything else was set by
    /// this boot or by someone since, and stays.
    pub(super) fn without_its(&self, group: &Group, now: &SavedState) -> SavedState {
        let UndoUnit::Files {
            files,
            leads,
            counterparts: false,
        } = &group.unit
        else {
            return group.first.clone();
        };
        let is_set = |at: usize| self.has_set(files.get(at), now.value(at));
        let lead_is_set = (0..*leads).any(is_set);
        let is_kernels = |at: usize| lead_is_set && at >= *leads && group.knows(at, now.value(at));
        let mut target = now.clone();
        let its = (0..files.len()).filter(|&at| is_set(at) || is_kernels(at));
        its.for_each(|at| target.take(&group.first, at));
        target
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;
    use crate::journal::{Content, Entry, Purpose};
    use crate::persist::{Persisted, TMPFILES_FILE};
    use crate::restore::{Outcome, RestoreOptions, Restorer};
    use crate::status::ChangeState;
    use crate::undo::{Form, KernelFile, SavedState, UndoUnit};
    use pgdyno_host::LocalHost;
    use std::fs;

    const SCHEDULER: &str = "/sys/block/vda/queue/scheduler";
    const REQUESTS: &str = "/sys/block/vda/queue/nr_requests";

    /// Scheduler and requests of a device: `set` by a journal and kept beyond a reboot, `booted` as
    /// they are after it.
    fn check(
        set: (&str, &str),
        booted: (&str, &str),
        expected: (&str, &str),
        outcomes: (Outcome, Outcome),
        states: (ChangeState, ChangeState),
        force: bool,
    ) {
        let (dir, host) = machine(booted);
        let file = |path: &str| KernelFile {
            path: path.into(),
            form: Form::Plain,
            device: None,
        };
        let unit = UndoUnit::Files {
            files: vec![file(SCHEDULER), file(REQUESTS)],
            leads: 1,
            counterparts: false,
        };
        let state = |scheduler: &str, requests: &str| {
            SavedState::Files(vec![Some(scheduler.into()), Some(requests.into())])
        };
        let intent = |knob: &str, before: SavedState, writing: &str, file: usize| Entry::Intent {
            knob: knob.into(),
            unit: unit.clone(),
            before,
            writing: Some(writing.into()),
            file,
            again: false,
        };
        let done = |after: SavedState| Entry::Done { after };
        let persisted = Persisted {
            files: vec![
                (SCHEDULER.to_owned(), set.0.to_owned()),
                (REQUESTS.to_owned(), set.1.to_owned()),
            ],
            ..Persisted::default()
        };
        let own = persisted.tmpfiles_file("").unwrap();
        let content = Content {
            purpose: Purpose::now("the boot before".into(), "test".into(), None, true),
            entries: vec![
                intent("block.scheduler@vda", state("none", "64"), set.0, 0),
                // The kernel sets it again.
                done(state(set.0, "256")),
                intent("block.nr_requests@vda", state(set.0, "256"), set.1, 1),
                done(state(set.0, set.1)),
                Entry::Intent {
                    knob: TMPFILES_FILE.into(),
                    unit: UndoUnit::OwnFile {
                        path: TMPFILES_FILE.into(),
                    },
                    before: SavedState::OwnFile(None),
                    writing: Some(own),
                    file: 0,
                    again: false,
                },
            ],
            whole_bytes: 0,
            damage: Vec::new(),
        };
        let restorer = Restorer {
            host: &host,
            catalogue: &Catalogue::shipped().unwrap(),
            environment: &|_| None,
            options: RestoreOptions {
                overwrites: force,
                ..RestoreOptions::default()
            },
            conninfo: None,
        };
        let status = restorer.status(&content);
        assert_eq!((status[0].state, status[1].state), states);
        let lines = restorer.undo(&content, &mut |_| Ok(()));
        let outcome = |knob: &str| {
            lines
                .iter()
                .find(|line| line.knob.starts_with(knob))
                .unwrap()
                .outcome
        };
        assert_eq!(
            (outcome("block.scheduler"), outcome("block.nr_requests")),
            outcomes,
            "{lines:?}"
        );
        let found = |path: &str| fs::read_to_string(dir.path().join(&path[1..])).unwrap();
        let found = (found(SCHEDULER), found(REQUESTS));
        assert_eq!((found.0.trim(), found.1.trim()), expected);
    }

    fn machine((scheduler, requests): (&str, &str)) -> (tempfile::TempDir, LocalHost) {
        let dir = tempfile::tempdir().unwrap();
        let boot_id = "/proc/sys/kernel/random/boot_id";
        for (path, value) in [
            (boot_id, "this one"),
            (SCHEDULER, scheduler),
            (REQUESTS, requests),
        ] {
            let path = dir.path().join(&path[1..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }
        let host = LocalHost::at(dir.path());
        (dir, host)
    }

    #[test]
    fn a_boot_has_set_what_is_restored_and_somebody_else_what_stays() {
        use ChangeState::{InForce, Rebooted};
        use Outcome::{Already, Restored};
        let set = ("kyber", "512");
        let both = (Restored, Restored);
        check(set, set, ("none", "64"), both, (InForce, InForce), false);
        // As the kernel set it again beside the scheduler.
        check(
            set,
            ("kyber", "256"),
            ("none", "64"),
            both,
            (InForce, Rebooted),
            false,
        );
        // Somebody has set the one, or the other.
        check(
            set,
            ("kyber", "32"),
            ("none", "32"),
            (Restored, Already),
            (InForce, Rebooted),
            false,
        );
        check(
            set,
            ("bfq", "512"),
            ("bfq", "64"),
            (Already, Restored),
            (Rebooted, InForce),
            false,
        );
        // Neither is ours.
        check(
            set,
            ("bfq", "32"),
            ("bfq", "32"),
            (Already, Already),
            (Rebooted, Rebooted),
            false,
        );
        check(
            set,
            ("kyber", "32"),
            ("none", "64"),
            both,
            (InForce, Rebooted),
            true,
        );
    }
}
