//! Which places a journal may name: those that the catalogue has, and files of pgdyno's own. What a
//! planted or damaged journal names beside them is neither read nor written.

use crate::address::DISK_NUMBER;
use crate::catalogue::{Catalogue, Kind, sysctl_path};
use crate::persist::{SYSCTL_FILE, TMPFILES_FILE};
use crate::undo::{FilePart, UndoUnit, swap};
use pgdyno_host::Directory;
use pgdyno_server::is_made_database;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path};

/// Why an undo unit is none that pgdyno would have changed; `None`: it is one.
pub(crate) fn refusal(unit: &UndoUnit, catalogue: &Catalogue) -> Option<String> {
    let unknown = |path: &str| format!("{path} is not a place that pgdyno changes");
    match unit {
        UndoUnit::Files { files, .. } => {
            let unknown_file = files.iter().find(|file| !is_kernel_file(catalogue, &file.path));
            unknown_file.map(|file| unknown(&file.path))
        }
        UndoUnit::OwnFile { path } => {
            let is_own = [SYSCTL_FILE, TMPFILES_FILE].contains(&path.as_str());
            (!is_own).then(|| unknown(path))
        }
        UndoUnit::Held { path } => {
            let mut held = catalogue.iter().filter(|knob| knob.kind == Kind::HeldFile);
            let is_held = held.any(|knob| knob.addresses.contains(path));
            (!is_held).then(|| unknown(path))
        }
        UndoUnit::Parameter { name } => {
            let is_parameter = catalogue.find(name).is_some_and(|knob| knob.kind == Kind::Guc);
            (!is_parameter).then(|| format!("{name} is not a parameter that pgdyno changes"))
        }
        UndoUnit::Swap { path } if is_plain(Path::new(path)) => swap::objection(path),
        UndoUnit::Swap { path } => Some(unknown(path)),
        UndoUnit::AutoConf { data } | UndoUnit::WalDirectory { data } | UndoUnit::Affinity { data } => {
            let reason = is_plain(data).then(|| not_data(data));
            reason.unwrap_or_else(|| Some(unknown(&data.display().to_string())))
        }
        UndoUnit::Database { name } => {
            (!is_made_database(name)).then(|| format!("{name} is not a database that pgdyno makes"))
        }
        // Asked of the server by its name, and only what it answers is set.
        UndoUnit::Storage { .. } | UndoUnit::Made { .. } | UndoUnit::Objects { .. } => None,
    }
}

/// In every data directory.
const MARK: &str = "PG_VERSION";

/// Why the data directory of an undo unit may be another one than it was: it is there, and is empty
/// of what every one has.
pub(crate) fn not_mounted(unit: &UndoUnit) -> Option<String> {
    let data = unit.data().filter(|_| !unit.lives_in_kernel())?;
    let held = Directory::open(data).ok()?;
    let is_there = held.kind(OsStr::new(MARK)).ok()?.is_some();
    (!is_there).then(|| {
        format!(
            "{} has no {MARK}: mount it and run `pgdyno restore` again, or `pgdyno restore --force` where its data is gone",
            data.display()
        )
    })
}

/// Why a directory is not a server's data; `None` where it is, or where there is none.
fn not_data(data: &Path) -> Option<String> {
    const MARK_BYTES_MAX: u64 = 64;
    let failed = |why: String| {
        Some(format!(
            "{} is not used as a data directory: {why}",
            data.display()
        ))
    };
    let held = match Directory::open(data) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return failed(e.to_string()),
        Ok(held) => held,
    };
    let text = held
        .file_of(MARK, held.owner().uid)
        .and_then(|_| held.text(MARK, MARK_BYTES_MAX));
    match text {
        Ok(text) if text.trim().parse::<u32>().is_ok() => None,
        Ok(_) => failed(format!("its {MARK} is not a server's")),
        Err(e) => failed(format!("{MARK}: {e}")),
    }
}

/// Whether a path is absolute and goes down only.
fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// Whether a knob of the catalogue, or what one sets again, can be at this path.
fn is_kernel_file(catalogue: &Catalogue, path: &str) -> bool {
    if !is_plain(Path::new(path)) || !(path.starts_with("/proc/") || path.starts_with("/sys/")) {
        return false;
    }
    catalogue.iter().any(|knob| {
        let mut all = knob.addresses.iter().chain(&knob.resets).chain(&knob.alike);
        knob.kind == Kind::Sysctl && sysctl_path(&knob.id) == path || all.any(|address| fits(address, path))
    })
}

/// Whether an address of the catalogue can mean this path. `*` and a placeholder mean a name, or a
/// part of one, and that of a control group any directories.
fn fits(address: &str, path: &str) -> bool {
    let ((address, wanted), (path, part)) = (FilePart::of_path(address), FilePart::of_path(path));
    match (wanted, part) {
        (None, None) => {}
        (Some(wanted), Some(part)) if wanted.key == part.key => {
            let is_number = || part.line.split(':').all(|number| number.parse::<u32>().is_ok());
            if !(wanted.line == part.line || wanted.line == DISK_NUMBER && is_number()) {
                return false;
            }
        }
        _ => return false,
    }
    if let Some((before, rest)) = address.split_once("{cgroup:") {
        let after = rest.split_once('}').map_or("", |(_, after)| after);
        let long_enough = path.len() >= before.len() + after.len();
        let below = path.starts_with("/sys/fs/cgroup/");
        return below && long_enough && path.starts_with(before) && path.ends_with(after);
    }
    let (mut names, mut found) = (address.split('/'), path.split('/'));
    loop {
        match (names.next(), found.next()) {
            (None, None) => return true,
            (Some(name), Some(found)) if fits_name(name, found) => {}
            _ => return false,
        }
    }
}

fn fits_name(name: &str, found: &str) -> bool {
    let hole = match (name.find('*'), name.find('{')) {
        (Some(star), _) => Some((star, star + 1)),
        (None, Some(open)) => name[open..].find('}').map(|close| (open, open + close + 1)),
        (None, None) => None,
    };
    let Some((from, to)) = hole else {
        return name == found;
    };
    let (start, end) = (&name[..from], &name[to..]);
    found.len() > start.len() + end.len() && found.starts_with(start) && found.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::{Form, KernelFile};
    use std::path::PathBuf;

    fn refused(unit: &UndoUnit) -> bool {
        refusal(unit, &Catalogue::shipped().unwrap()).is_some()
    }

    fn kernel(path: &str) -> UndoUnit {
        UndoUnit::Files {
            files: vec![KernelFile {
                path: path.into(),
                form: Form::Plain,
                device: None,
            }],
            leads: 1,
            counterparts: false,
        }
    }

    #[test]
    fn places_of_the_catalogue_are_permitted_and_all_others_refused() {
        for path in [
            "/proc/sys/vm/swappiness",
            "/sys/block/vda/queue/scheduler",
            "/sys/block/loop7/queue/read_ahead_kb",
            "/sys/devices/system/node/node3/hugepages/hugepages-2048kB/nr_hugepages",
            "/sys/fs/cgroup/system.slice/pgdyno.service/memory.max",
            "/sys/fs/cgroup/blkio/pgdyno/main/blkio.throttle.read_iops_device#254:0",
            "/sys/fs/cgroup/pgdyno/main/io.max#254:0 wbps",
            "/proc/irq/27/smp_affinity_list",
            "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        ] {
            assert!(!refused(&kernel(path)), "{path}");
        }
        for path in [
            "/etc/passwd",
            "/proc/sys/kernel/core_pattern",
            "/proc/sysrq-trigger",
            "/proc/sys/vm/../kernel/core_pattern",
            "/sys/block/../../../etc/queue/scheduler",
            "/sys/block/vda/x/queue/scheduler",
            "/sys/block//queue/scheduler",
            "/sys/fs/cgroup/../../../etc/memory.max",
            "/sys/fs/cgroup/pgdyno/main/io.max",
            "/sys/fs/cgroup/pgdyno/main/io.max#254:0 hidden",
            "/sys/fs/cgroup/pgdyno/main/io.max#a/b wbps",
            "/sys/fs/cgroup/pgdyno/main/memory.max#254:0",
            "proc/sys/vm/swappiness",
            "",
        ] {
            assert!(refused(&kernel(path)), "{path}");
        }
        let own = |path: &str| UndoUnit::OwnFile { path: path.into() };
        assert!(!refused(&own(SYSCTL_FILE)) && refused(&own("/etc/cron.d/x")));
        let held = |path: &str| UndoUnit::Held { path: path.into() };
        assert!(!refused(&held("/dev/cpu_dma_latency")) && refused(&held("/dev/sda")));
        let parameter = |name: &str| UndoUnit::Parameter { name: name.into() };
        assert!(!refused(&parameter("work_mem")) && refused(&parameter("no_such_parameter")));
        let data = |path: &str| UndoUnit::AutoConf { data: path.into() };
        assert!(refused(&data("/srv/../etc")) && refused(&data("x")));
        let database = |name: &str| UndoUnit::Database { name: name.into() };
        assert!(!refused(&database("pgdyno_pgbench_1_template")));
        for name in ["postgres", "pgdyno_", "pgdyno_x; DROP TABLE y", "pgdyno_X"] {
            assert!(refused(&database(name)), "{name}");
        }
    }

    /// A data directory says its version by its owner's file, and a swap file is where nobody else
    /// can exchange it.
    #[test]
    fn directory_that_is_no_servers_data_and_swap_file_of_others_are_refused() {
        const STRANGER: u32 = 12_345;
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let of = |data: &Path| {
            [
                UndoUnit::AutoConf { data: data.into() },
                UndoUnit::WalDirectory { data: data.into() },
                UndoUnit::Affinity { data: data.into() },
            ]
        };
        let is_refused = |part: Option<&str>| {
            for unit in of(&data) {
                let reason = refusal(&unit, &Catalogue::shipped().unwrap());
                assert_eq!(reason.is_some(), part.is_some(), "{reason:?}");
                let part = part.unwrap_or_default();
                assert!(reason.unwrap_or_default().contains(part), "{part}");
            }
        };
        // Gone with its sandbox: there is nothing to be restored, which restoring says.
        is_refused(None);
        std::fs::create_dir(&data).unwrap();
        is_refused(Some("No such file"));
        std::fs::write(data.join("PG_VERSION"), "18\n").unwrap();
        is_refused(None);
        std::os::unix::fs::chown(&data, Some(STRANGER), None).unwrap();
        is_refused(Some("belongs to user 0, expected user 12345"));
        std::os::unix::fs::chown(data.join("PG_VERSION"), Some(STRANGER), None).unwrap();
        is_refused(None);
        std::fs::write(data.join("PG_VERSION"), "root:x:0:0\n").unwrap();
        is_refused(Some("not a server's"));
        let swap = |path: PathBuf| UndoUnit::Swap {
            path: path.to_string_lossy().into_owned(),
        };
        assert!(refused(&swap(data.join("swap"))) && !refused(&swap(dir.path().join("swap"))));
        assert!(refused(&UndoUnit::Swap { path: "swap".into() }));
    }
}
