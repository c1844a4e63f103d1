//! The kernel's part of applying: which files are to be written, in which order, and what must be
//! back afterwards.

use super::{Changer, Phase, Touched};
use crate::address::{default_huge_page_kb, is_kernel_files, is_of_group, page_kb_of_pool};
use crate::applied::ApplyError;
use crate::catalogue::{Gives, Kind, Knob, Setting};
use crate::reader::{Mechanism, is_same};
use crate::undo::{Form, KernelFile, SavedState, TAKEN_WITHIN, UndoUnit, read_value, shown_unlike, write_of};
use pgdyno_host::HostAccess;
use pgdyno_sandbox::Control;
use pgdyno_server::pause;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Pages beyond the server's need: its own share of the pool is rounded up in several places.
const POOL_HEADROOM: f64 = 1.02;
/// Attempts to fill a pool, compacting memory in between.
const POOL_ATTEMPTS: u32 = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A kernel file that is to be written.
pub(super) struct KernelChange {
    pub(super) knob: Knob,
    /// As it is called in the journal: with its instance, and its file where it has several.
    pub(super) name: String,
    pub(super) unit: UndoUnit,
    pub(super) path: String,
    /// As it is in the file, or "auto" for a pool, with a number where it is for several servers.
    pub(super) value: String,
}

impl Changer<'_> {
    /// What an earlier treatment touched and this one does not name must be as before.
    pub(super) fn check_unnamed(&self, settings: &[Setting]) -> Result<(), ApplyError> {
        let changes = self.named(settings, &[Phase::Down, Phase::After])?;
        let named: BTreeMap<&str, &str> = changes
            .iter()
            .map(|change| (change.path.as_str(), change.value.as_str()))
            .collect();
        for touched in &self.units {
            let Touched { unit, first, .. } = touched;
            let access = self.reader().access();
            let now = match unit {
                UndoUnit::Files { files, .. }
                    if !files.iter().any(|file| named.contains_key(file.path.as_str())) =>
                {
                    unit.capture_after(access, first)?
                }
                _ => unit.capture(access)?,
            };
            let (
                UndoUnit::Files {
                    files,
                    leads,
                    counterparts,
                },
                SavedState::Files(values),
                SavedState::Files(now),
            ) = (unit, first, now)
            else {
                continue;
            };
            let is_named = |file: &KernelFile| named.contains_key(file.path.as_str());
            if *counterparts && files.iter().any(is_named) {
                continue;
            }
            let left_to_kernel = lead_differs(unit, first, |path| named.get(path).copied());
            // The pages of all nodes are the sum of those of each.
            let part_of_pool = changes
                .iter()
                .any(|change| change.unit == *unit && change.knob.kind == Kind::HugepagePool);
            for (at, ((file, first), now)) in files.iter().zip(values).zip(&now).enumerate() {
                let is_kernels = left_to_kernel && at >= *leads || part_of_pool && at == 0;
                if first != now && touched.has(at) && !is_named(file) && !is_kernels {
                    return Err(ApplyError::NotBack {
                        place: file.path.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The files that settings name, with what is to be in them.
    fn named(&self, settings: &[Setting], phases: &[Phase]) -> Result<Vec<KernelChange>, ApplyError> {
        let mut named = Vec::new();
        for setting in settings {
            let knob = self.catalogue.get(&setting.knob)?;
            let phase = if is_of_group(knob) {
                Phase::After
            } else {
                Phase::Down
            };
            if !is_kernel_files(knob.kind) || !phases.contains(&phase) {
                continue;
            }
            let Mechanism::Files(files) = self.reader().mechanism(&setting.knob)? else {
                continue;
            };
            for (address, unit) in files {
                named.push(KernelChange {
                    value: self.reader().written(knob, &address.path, &setting.value)?,
                    knob: knob.clone(),
                    name: address.name,
                    unit,
                    path: address.path,
                });
            }
        }
        Ok(named)
    }

    /// Which kernel files are to be written: what is no longer named is restored first, then what
    /// is named.
    pub(super) fn kernel_changes(
        &self,
        settings: &[Setting],
        phase: Phase,
    ) -> Result<Vec<KernelChange>, ApplyError> {
        let mut named = self.named(settings, &[phase])?;
        // Within an undo unit, the file that sets the others again is written first.
        named.sort_by_key(KernelChange::place_in_cell);
        let mut changes: Vec<KernelChange> = Vec::new();
        // What the first file of an undo unit sets again is restored after it: before, the value
        // may not be legal.
        let mut late: Vec<KernelChange> = Vec::new();
        let is_named = |path: &str| named.iter().any(|change| change.path == path);
        for touched in self.units.iter().filter(|touched| touched.unit.phase() == phase) {
            let Touched { unit, first, .. } = touched;
            let UndoUnit::Files {
                files,
                leads,
                counterparts,
            } = unit
            else {
                continue;
            };
            // Of counterparts, setting one unsets the other: there is nothing to restore beside it.
            if *counterparts && files.iter().any(|file| is_named(&file.path))
                || unit.capture(self.reader().access())? == *first
            {
                continue;
            }
            let left_to_kernel = lead_differs(unit, first, |path| {
                let change = named.iter().find(|change| change.path == path)?;
                Some(change.value.as_str())
            });
            for (path, value) in unit.writes_back(first) {
                let at = files.iter().position(|file| file.path == path).unwrap_or(0);
                let sets_others_again = at < *leads;
                if is_named(&path) || !touched.has(at) || (left_to_kernel && !sets_others_again) {
                    continue;
                }
                let named_as = |path: &str| self.touched_as.get(path).cloned();
                // What was set again beside a file goes by that one's name.
                let beside = || files.iter().find_map(|file| named_as(&file.path));
                let Some((name, knob)) = named_as(&path).or_else(beside) else {
                    continue;
                };
                let change = KernelChange {
                    knob,
                    name,
                    unit: unit.clone(),
                    path,
                    value,
                };
                let sets_again =
                    |other: &KernelChange| other.sets_others_again() && other.unit == change.unit;
                if !*counterparts && !sets_others_again && named.iter().any(sets_again) {
                    late.push(change);
                } else if *counterparts || self.is_to_be_written(&change, &changes)? {
                    changes.push(change);
                }
            }
        }
        for change in named.into_iter().chain(late) {
            if self.is_to_be_written(&change, &changes)? {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// Writes them, in their order.
    pub(super) fn change_kernels(&mut self, settings: &[Setting], phase: Phase) -> Result<(), ApplyError> {
        let changes = self.kernel_changes(settings, phase)?;
        changes.iter().try_for_each(|change| self.change_kernel(change))
    }

    /// A pool's size is only known once the server is stopped; and a file is set again by what is
    /// first in its undo unit.
    fn is_to_be_written(&self, change: &KernelChange, before: &[KernelChange]) -> Result<bool, ApplyError> {
        let set_again = before.iter().any(|other| {
            other.unit == change.unit && other.sets_others_again() && !change.sets_others_again()
        });
        let now = read_value(self.host, &change.file())?;
        let same = now == change.value || is_same(&change.knob, &change.value, &now);
        Ok(change.knob.kind == Kind::HugepagePool || set_again || !same)
    }

    fn change_kernel(&mut self, change: &KernelChange) -> Result<(), ApplyError> {
        let is_pool = change.knob.kind == Kind::HugepagePool;
        let before = change.unit.capture(self.reader().access())?;
        let value = if let Some(servers) = change.knob.servers_of_pool(&change.value) {
            let there = pool_of(self.first_of(&change.unit).unwrap_or(&before));
            self.pool_size(change, servers)?.max(there).to_string()
        } else {
            change.value.clone()
        };
        if is_pool && let Ok(pages) = value.parse() {
            self.reader().check_room(&change.path, pages)?;
        }
        let at = self.touched(&change.unit, &before);
        let name = (change.name.clone(), change.knob.clone());
        self.touched_as.entry(change.path.clone()).or_insert(name);
        let touched = &mut self.units[at];
        if touched.files.insert(change.place_in_cell()) && change.is_one_of_several() {
            touched.first.take(&before, change.place_in_cell());
        }
        touched.last = None;
        if is_pool {
            self.pool_asked = value.parse().ok();
        }
        let file = change.file();
        let was = before.value(change.place_in_cell()).map(str::to_owned);
        let unit = (&change.unit, change.place_in_cell());
        let after = self.change(&change.name, unit, before, Some(&value), |this| {
            let (path, text) = write_of(&change.path, &value);
            this.host.write_raw(path, &text)?;
            for _ in 1..POOL_ATTEMPTS {
                if !is_pool || read_value(this.host, &file)? == value {
                    break;
                }
                // An action, not a state: there is nothing to restore.
                let _ = this.host.write_raw("/proc/sys/vm/compact_memory", "1");
                this.host.write_raw(path, &text)?;
            }
            let deadline = Instant::now() + TAKEN_WITHIN;
            while !is_pool
                && was.as_ref() != Some(&value)
                && was.as_deref() == Some(&*read_value(this.host, &file)?)
                && Instant::now() < deadline
            {
                pause(LOOK_AGAIN);
            }
            Ok(change.unit.capture(this.reader().access())?)
        })?;
        self.units[at].last = Some(after);
        Ok(())
    }

    fn first_of(&self, unit: &UndoUnit) -> Option<&SavedState> {
        let touched = self.units.iter().find(|touched| touched.unit == *unit)?;
        Some(&touched.first)
    }

    /// What this process has set must still be as it was left.
    pub(super) fn check_foreign(&self) -> Result<(), ApplyError> {
        for touched in &self.units {
            let Touched {
                unit, first, last, ..
            } = touched;
            let mut now = unit.capture(self.reader().access())?;
            if let Some(last) = last
                && let SavedState::Files(values) = &mut now
            {
                (0..values.len())
                    .filter(|at| !touched.has(*at))
                    .for_each(|at| now.take(last, at));
            }
            if let Some(last) = last
                && now != *last
                && !unit.has_released_pages(last, &now)
                // Another first process of the server has CPUs of its own, and nobody has set them.
                && !last.is_of_another_server(&now)
                // A sandbox's group is made again with it, as it was.
                && !(unit.is_of_group() && now == *first)
            {
                return Err(ApplyError::Foreign {
                    place: unit.place(),
                    found: shown_unlike(unit, &now, last),
                    left: shown_unlike(unit, last, &now),
                });
            }
        }
        Ok(())
    }

    /// Pages that the stopped server will need, and so many servers like it, beside what others use
    /// of the pool.
    fn pool_size(&self, change: &KernelChange, servers: u64) -> Result<u64, ApplyError> {
        let control = &self.target()?.control;
        let none = || ApplyError::NoPoolSize("this kernel has no huge pages".into());
        let page_kb = page_kb_of_pool(self.host, &change.path).ok_or_else(none)?;
        // 0, or none before 14: the kernel's default.
        let mut knobs = self.catalogue.iter();
        let of_size = knobs.find(|knob| knob.gives == Some(Gives::HugePageSize));
        let asked_kb = of_size.and_then(|knob| control.computed_parameter(&knob.id).ok());
        let server_kb = asked_kb
            .and_then(|kb| kb.trim().parse::<u64>().ok())
            .filter(|&kb| kb > 0)
            .or_else(|| default_huge_page_kb(self.host))
            .ok_or_else(none)?;
        if server_kb != page_kb {
            return Err(ApplyError::NoPoolSize(format!(
                "the server takes pages of {server_kb} kB, and this pool has pages of {page_kb} kB; set \
                 hugepages.pool@{server_kb} in its place"
            )));
        }
        let wrong = |why: String| ApplyError::NoPoolSize(format!("{why}; give a number of pages"));
        let needed: u64 = match (
            control.computed_parameter("shared_memory_size_in_huge_pages"),
            control,
        ) {
            (Ok(pages), _) => pages
                .parse()
                .map_err(|_| wrong(format!("the server reports \"{pages}\"")))?,
            // Before 15 only a server that runs has a size.
            (Err(_), Control::Sandbox(sandbox)) => {
                let bytes = sandbox.shared_memory_by_dry_run();
                bytes
                    .map_err(|error| wrong(error.to_string()))?
                    .div_ceil(page_kb * 1024)
            }
            (Err(error), _) => return Err(wrong(error.to_string())),
        };
        let pages = |name: &str| -> Result<u64, ApplyError> {
            let path = format!("/sys/kernel/mm/hugepages/hugepages-{page_kb}kB/{name}");
            Ok(self.host.read_trimmed(&path)?.parse().unwrap_or(0))
        };
        let taken = pages("nr_hugepages")?.saturating_sub(pages("free_hugepages")?);
        let others = taken + pages("resv_hugepages")?;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of pages"
        )]
        let needed = (needed as f64 * POOL_HEADROOM).ceil() as u64;
        Ok(others + needed.saturating_mul(servers))
    }
}

/// Whether a file that sets others of its undo unit again is to have another value than before:
/// what those are then is the kernel's choice, and their values from before may not even be legal.
fn lead_differs<'a>(unit: &UndoUnit, first: &SavedState, named: impl Fn(&str) -> Option<&'a str>) -> bool {
    let (
        UndoUnit::Files {
            files,
            leads,
            counterparts: false,
        },
        SavedState::Files(first),
    ) = (unit, first)
    else {
        return false;
    };
    let mut leads = files.iter().zip(first).take(*leads);
    leads.any(|(lead, first)| named(&lead.path).is_some_and(|value| first.as_deref() != Some(value)))
}

impl KernelChange {
    fn file(&self) -> KernelFile {
        match &self.unit {
            UndoUnit::Files { files, .. } => files.iter().find(|file| file.path == self.path).cloned(),
            _ => None,
        }
        .unwrap_or(KernelFile {
            path: self.path.clone(),
            form: Form::Plain,
            device: None,
        })
    }

    fn sets_others_again(&self) -> bool {
        matches!(&self.unit, UndoUnit::Files { leads, .. } if self.place_in_cell() < *leads)
    }

    /// Whether other files set the same ones again, but not this one.
    fn is_one_of_several(&self) -> bool {
        matches!(&self.unit, UndoUnit::Files { leads, .. } if *leads > 1) && self.sets_others_again()
    }

    fn place_in_cell(&self) -> usize {
        match &self.unit {
            UndoUnit::Files { files, .. } => {
                files.iter().position(|file| file.path == self.path).unwrap_or(0)
            }
            _ => 0,
        }
    }
}

/// Pages that were in the pool before: what somebody else has put there is not taken away.
fn pool_of(saved: &SavedState) -> u64 {
    match saved {
        SavedState::Files(values) => values
            .first()
            .cloned()
            .flatten()
            .and_then(|pages| pages.parse().ok())
            .unwrap_or(0),
        _ => 0,
    }
}

/// The file that drops caches of the kernel, once, when it is written.
pub const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Drops what the kernel has in its page cache and has written; nothing stays changed
/// (Documentation/admin-guide/sysctl/vm.rst).
pub(super) fn drop_caches(host: &dyn HostAccess) -> Result<(), ApplyError> {
    const PAGE_CACHE_DENTRIES_INODES: &str = "3";
    rustix::fs::sync();
    Ok(host.write_raw(DROP_CACHES, PAGE_CACHE_DENTRIES_INODES)?)
}
