//! Whether a setting could be applied here at all, found without changing anything.

use super::{Mechanism, Reader, wanted};
use crate::address::{meminfo_value, page_kb_of_pool};
use crate::applied::ApplyError;
use crate::catalogue::{CatalogueError, Cost, Kind, Knob, Setting};
use crate::undo::{FilePart, SavedState, UndoUnit, affinity, form_of, wal};
use pgdyno_host::{choices, has_own_root};
use pgdyno_sandbox::ControlError;
use pgdyno_server::Postmaster;

/// One of so many parts of all memory is not put into a pool of huge pages. With a twentieth left,
/// of which the kernel keeps the most for itself, a guest of 1 GB could start nothing more.
const POOL_LEAVES_PART: u64 = 12;

impl Reader<'_> {
    /// Whether a setting could be applied here at all, found without changing anything: the first
    /// of what keeps it from that.
    pub fn check(&self, setting: &Setting) -> Result<(), ApplyError> {
        let first = self.objections(setting).into_iter().next();
        first.map_or(Ok(()), |objection| Err(objection.error))
    }

    /// The same of what is not a parameter.
    pub(super) fn check_mechanism(
        &self,
        knob: &Knob,
        setting: &Setting,
        mechanism: Mechanism,
    ) -> Result<(), ApplyError> {
        let can_restart = self.target.is_none_or(|target| target.control.can_restart());
        match mechanism {
            Mechanism::Parameter => Ok(()),
            Mechanism::Files(files) => {
                for (address, _) in &files {
                    self.host.writable(FilePart::of_path(&address.path).0)?;
                    // Where the kernel is locked down, leave to write is no leave to open.
                    self.kernel_value(knob, &address.path)?;
                    self.check_choice(knob, setting, &address.path)?;
                    self.check_nodes(knob, setting, &address.path)?;
                    self.check_share(knob, setting)?;
                    // A server that is stopped for it gives its memory first.
                    if knob.kind == Kind::HugepagePool
                        && self.target.is_none()
                        && let Ok(pages) = setting.value.parse()
                    {
                        self.check_room(&address.path, pages)?;
                    }
                }
                // Consent to a restart comes last, so that a knob that cannot be set at all is not
                // said to lack consent alone.
                if knob.cost == Cost::Restart && !can_restart {
                    return Err(ControlError::NotAllowed.into());
                }
                if knob.servers_of_pool(&setting.value).is_some() {
                    self.check_auto_pool()?;
                }
                Ok(())
            }
            Mechanism::Whole(unit) => {
                let before = unit.capture(self.access())?;
                self.check_whole(&unit, setting, &before)
            }
        }
    }

    /// Whether the memory nodes are here that a value names, by itself or for their CPUs.
    fn check_nodes(&self, knob: &Knob, setting: &Setting, path: &str) -> Result<(), ApplyError> {
        let listed = self.listed(knob, &setting.value)?;
        if path.ends_with("/cpuset.mems") {
            for node in affinity::numbers(&listed) {
                self.host
                    .read(&format!("/sys/devices/system/node/node{node}/cpulist"))?;
            }
        }
        Ok(())
    }

    fn check_auto_pool(&self) -> Result<(), ApplyError> {
        match self.target()?.control.can_stop() {
            true => Ok(()),
            false => Err(ApplyError::NoPoolSize(
                "the server has to be stopped for it, which --allow-restart permits where pgdyno finds what runs it; give a number of \
                 pages"
                    .into(),
            )),
        }
    }

    /// Whether the machine can live with so many pages in a pool: the kernel fills it as far as it
    /// can, and kills processes afterwards, the one that would restore it among them.
    pub(crate) fn check_room(&self, path: &str, pages: u64) -> Result<(), ApplyError> {
        let meminfo = self.host.read("/proc/meminfo")?;
        let (Some(size_kb), Some(total_kb), Some(available_kb)) = (
            page_kb_of_pool(self.host, path),
            meminfo_value(&meminfo, "MemTotal"),
            meminfo_value(&meminfo, "MemAvailable"),
        ) else {
            return Ok(());
        };
        let now: u64 = self.host.read_trimmed(path)?.parse().unwrap_or(0);
        let spare_kb = total_kb / POOL_LEAVES_PART;
        let more_kb = pages.saturating_sub(now).saturating_mul(size_kb);
        let room_kb = available_kb.saturating_sub(spare_kb);
        if more_kb <= room_kb {
            return Ok(());
        }
        Err(ApplyError::NoRoom {
            path: path.to_owned(),
            pages,
            more_kb,
            available_kb,
            spare_kb,
            fits: now + room_kb / size_kb,
        })
    }

    /// A list of choices names those of this host.
    fn check_choice(&self, knob: &Knob, setting: &Setting, path: &str) -> Result<(), ApplyError> {
        if form_of(knob) != crate::undo::Form::Bracket {
            return Ok(());
        }
        let text = self.host.read(path)?;
        let choices: Vec<&str> = choices(&text).collect();
        if choices.contains(&setting.value.as_str()) {
            return Ok(());
        }
        Err(CatalogueError::Value {
            id: setting.knob.clone(),
            value: setting.value.clone(),
            expected: format!("one of {} on this host", choices.join(", ")),
        }
        .into())
    }

    fn check_share(&self, knob: &Knob, setting: &Setting) -> Result<(), ApplyError> {
        let (Some(percent), Ok(value)) = (knob.memory_percent_max, setting.value.parse::<u64>()) else {
            return Ok(());
        };
        let meminfo = self.host.read("/proc/meminfo")?;
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
        let total_kb = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        let kb = if knob.unit.as_deref() == Some("bytes") {
            value / 1024
        } else {
            value
        };
        match total_kb.map(|total| total / 100 * u64::from(percent)) {
            Some(most) if kb > most => Err(CatalogueError::Value {
                id: setting.knob.clone(),
                value: setting.value.clone(),
                expected: format!(
                    "at most {most} kB here, {percent} % of the memory: more of it stops machines"
                ),
            }
            .into()),
            _ => Ok(()),
        }
    }

    fn check_whole(&self, unit: &UndoUnit, setting: &Setting, before: &SavedState) -> Result<(), ApplyError> {
        let wrong = |expected: String| {
            Err(CatalogueError::Value {
                id: setting.knob.clone(),
                value: setting.value.clone(),
                expected,
            }
            .into())
        };
        match (unit, before) {
            (_, SavedState::Storage(rows)) if rows.is_empty() => {
                wrong("a table with something to set: partitions, or columns with long values".into())
            }
            (_, SavedState::Affinity { pid: None, .. }) => wrong("a running server on this host".into()),
            (_, SavedState::Affinity { .. }) => {
                let online = self.host.read_trimmed("/sys/devices/system/cpu/online")?;
                let there = affinity::numbers(&online);
                let missing = affinity::numbers(&setting.value)
                    .into_iter()
                    .find(|cpu| !there.contains(cpu));
                missing.map_or(Ok(()), |cpu| {
                    wrong(format!("CPUs of {online}, which {cpu} is not"))
                })
            }
            (UndoUnit::WalDirectory { data }, _) => {
                let control = &self.target()?.control;
                if !control.can_restart() {
                    return Err(ControlError::NotAllowed.into());
                }
                if !control.can_stop() {
                    return Err(ApplyError::NeedsStop);
                }
                let is_contained = || {
                    Postmaster::of_data(self.host, data).is_ok_and(|first| has_own_root(self.host, first.pid))
                };
                let wanted = wanted(unit, setting, before);
                match (&wanted, before) {
                    _ if wanted == *before => Ok(()),
                    _ if is_contained() => wrong(
                        "a server that sees this host's directories, which one in a container does not"
                            .into(),
                    ),
                    // A WAL that its owner has moved is refused: restoring could not make that
                    // directory again. Where a move was cut short there is no path.
                    (_, SavedState::WalDirectory(Some(now)))
                        if !now.as_os_str().is_empty() && !wal::is_ours(data, now) =>
                    {
                        let now = now.display();
                        wrong(format!(
                            "a WAL in the data directory; this one is in {now} already"
                        ))
                    }
                    (SavedState::WalDirectory(Some(to)), _) => match wal::objection(to) {
                        Some(objection) => wrong(format!("an empty directory, or a new one: {objection}")),
                        None => Ok(()),
                    },
                    _ => Ok(()),
                }
            }
            (UndoUnit::Swap { path }, SavedState::Swap(Some(file))) if file.bytes == 0 => wrong(format!(
                "a path without a file; {path} is there, and is not in use as swap"
            )),
            (UndoUnit::Held { path }, _) => Ok(self.host.writable(path)?),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn a_pool_leaves_the_machine_something_to_live_on() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "proc/meminfo",
            "MemTotal: 1200000 kB\nMemAvailable: 512000 kB\nHugepagesize: 2048 kB\n",
        );
        write("proc/sys/vm/nr_hugepages", "10\n");
        write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
        let (host, catalogue) = (
            pgdyno_host::LocalHost::at(dir.path()),
            Catalogue::shipped().unwrap(),
        );
        let check = |knob: &str, value: &str| {
            let reader = Reader {
                host: &host,
                catalogue: &catalogue,
                target: None,
                journals: None,
            };
            reader.check(&Setting {
                knob: knob.into(),
                value: value.into(),
            })
        };
        // A twelfth of all memory stays: 412000 kB are 201 pages more.
        check("vm.nr_hugepages", "211").unwrap();
        let error = check("vm.nr_hugepages", "212").unwrap_err();
        assert!(matches!(error, ApplyError::NoRoom { fits: 211, .. }), "{error}");
        assert!(matches!(
            check("hugepages.pool@1048576", "1").unwrap_err(),
            ApplyError::NoRoom { fits: 0, .. }
        ));
        write("proc/sys/vm/nr_hugepages", "500\n");
        check("vm.nr_hugepages", "400").unwrap();
        check("vm.nr_hugepages", "18446744073709551615").unwrap_err();
    }
}
