//! What the knobs of a target are now, whether a setting could be applied, and whether it has taken effect. Changes nothing.

use crate::catalogue::{AUTO, Catalogue, CatalogueError, Cost, Form, Kind, Knob, Setting, split};
use crate::cell::{Captured, Cell, CellError, KernelFile, Site, form_of, read_value, shown};
use crate::change::{Applied, ApplyError};
use crate::place::{Ground, Spot, default_huge_page_kb, is_kernel_files, meminfo_value};
use crate::target::Target;
use crate::{advised, affinity, gucvalue, wal};
use pgdyno_host::{HostAccess, HostError};
use pgdyno_server::{Control, ControlError, Guc, Server, StorageOption, qualified, show};
use std::path::PathBuf;

/// Looks at the knobs of a target.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The host under the server, or the host alone.
    pub host: &'a dyn HostAccess,
    /// All knobs.
    pub catalogue: &'a Catalogue,
    /// The server; `None` for a host alone.
    pub target: Option<&'a Target>,
}

/// What a setting means here.
pub(crate) enum Means {
    /// A parameter of the server.
    Parameter,
    /// Files of the kernel, each with its cell.
    Files(Vec<(Spot, Cell)>),
    /// Something else that is saved and written as a whole.
    Whole(Cell),
}

/// A value that means "as without pgdyno", of a table's option or the WAL directory.
pub(crate) const DEFAULT: &str = "default";
/// Control groups of version 1 show "no limit" as the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 62;
/// One of so many parts of all memory is not put into a pool of huge pages. With a twentieth left, of which the kernel keeps the
/// most for itself, a guest of 1 GB could start nothing more.
const POOL_LEAVES_PART: u64 = 12;
/// Limits of control groups are rounded to whole pages, of 64 kB at most.
const PAGE_MAX_BYTES: u64 = 1 << 16;

impl<'a> Reader<'a> {
    pub(crate) fn site(&self) -> Site<'a> {
        Site {
            host: self.host,
            conninfo: self.target.map(|target| &target.conninfo),
        }
    }

    pub(crate) fn target(&self) -> Result<&'a Target, ApplyError> {
        self.target.ok_or(ApplyError::Cell(CellError::NoServer))
    }

    /// The data directory and its server, on this host.
    fn data(&self) -> Result<PathBuf, ApplyError> {
        self.target()?.data.clone().ok_or(ApplyError::HostElsewhere)
    }

    pub(crate) fn server(&self) -> Result<Server, ApplyError> {
        Ok(Server::connect(&self.target()?.conninfo)?)
    }

    fn ground(&self) -> Ground<'a> {
        Ground {
            host: self.host,
            data: self.target.and_then(|target| target.data.as_deref()),
            postmaster: self.target.and_then(|target| target.postmaster(self.host)),
        }
    }

    pub(crate) fn means(&self, setting: &str) -> Result<Means, ApplyError> {
        let knob = self.catalogue.get(setting)?;
        let instance = split(setting).1.unwrap_or_default();
        if is_kernel_files(knob.kind) {
            // A server of another machine has its own kernel.
            if self.target.is_some_and(|target| target.data.is_none()) {
                return Err(ApplyError::HostElsewhere);
            }
            let ground = self.ground();
            let cells = ground.spots(knob, setting)?.into_iter().map(|spot| {
                let cell = Cell::of_kernel_knob(&ground, self.catalogue, knob, &spot)?;
                Ok((spot, cell))
            });
            return Ok(Means::Files(cells.collect::<Result<_, CatalogueError>>()?));
        }
        Ok(match knob.kind {
            Kind::Guc => Means::Parameter,
            Kind::TableOption | Kind::ColumnCompression => Means::Whole(Cell::Storage {
                table: self.table(instance)?,
                option: match knob.kind {
                    Kind::ColumnCompression => StorageOption::Compression,
                    // The part behind the dot is the storage parameter's name.
                    _ => StorageOption::Parameter(after_dot(&knob.id).to_owned()),
                },
            }),
            Kind::WalDirectory => Means::Whole(Cell::WalDirectory { data: self.data()? }),
            Kind::Affinity => Means::Whole(Cell::Affinity { data: self.data()? }),
            Kind::SwapFile => Means::Whole(Cell::Swap {
                path: instance.to_owned(),
            }),
            Kind::HeldFile => Means::Whole(Cell::Held {
                path: knob.addresses.first().cloned().unwrap_or_default(),
            }),
            _ => {
                return Err(CatalogueError::AdvisedOnly {
                    id: knob.id.clone(),
                    how: knob.how("VALUE"),
                }
                .into());
            }
        })
    }

    fn table(&self, name: &str) -> Result<String, ApplyError> {
        let mut server = self.server()?;
        qualified(&mut server, name)?.ok_or_else(|| ApplyError::NoTable {
            table: name.to_owned(),
            database: server.conninfo().database().to_owned(),
        })
    }

    /// The state that a setting asks for, of a cell that is no kernel file and is in the state `before`.
    pub(crate) fn wanted(
        &self,
        cell: &Cell,
        setting: &Setting,
        before: &Captured,
    ) -> Result<Captured, ApplyError> {
        let value = setting.value.as_str();
        let set = (value != DEFAULT).then(|| value.to_owned());
        Ok(match (cell, before) {
            (_, Captured::Storage(rows)) => {
                Captured::Storage(rows.iter().map(|(what, _)| (what.clone(), set.clone())).collect())
            }
            (Cell::WalDirectory { .. }, _) => Captured::WalDirectory(set.map(PathBuf::from)),
            (Cell::Swap { .. }, _) => Captured::Swap(value.parse().ok().filter(|&bytes| bytes > 0)),
            (_, Captured::Affinity { pid, started, .. }) => Captured::Affinity {
                pid: *pid,
                started: *started,
                cpus: value.to_owned(),
            },
            _ => before.clone(),
        })
    }

    /// Whether a setting could be applied here at all, found without changing anything.
    pub fn check(&self, setting: &Setting) -> Result<(), ApplyError> {
        let knob = self.catalogue.check_settable(setting)?;
        let can_restart = self.target.is_none_or(|target| target.control.can_restart());
        match self.means(&setting.knob)? {
            Means::Parameter => self.check_parameter(knob),
            Means::Files(files) => {
                if knob.cost == Cost::Restart && !can_restart {
                    return Err(ControlError::NotAllowed.into());
                }
                if knob.kind == Kind::HugepagePool && setting.value == AUTO {
                    self.check_auto_pool()?;
                }
                for (spot, _) in &files {
                    self.host.writable(&spot.path)?;
                    // Where the kernel is locked down, leave to write is no leave to open.
                    self.kernel_value(knob, &spot.path)?;
                    self.check_choice(knob, setting, &spot.path)?;
                    self.check_share(knob, setting)?;
                    // A server that is stopped for it gives its memory first.
                    if knob.kind == Kind::HugepagePool
                        && self.target.is_none()
                        && let Ok(pages) = setting.value.parse()
                    {
                        self.check_room(&spot.path, pages)?;
                    }
                }
                Ok(())
            }
            Means::Whole(cell) => {
                let before = cell.capture(self.site())?;
                self.check_whole(&cell, setting, &before)
            }
        }
    }

    fn check_parameter(&self, knob: &Knob) -> Result<(), ApplyError> {
        let target = self.target()?;
        let guc = self.parameter(&mut self.server()?, &knob.id)?;
        if guc.context == "internal" {
            return Err(ApplyError::ReadOnly { name: guc.name });
        }
        if guc.context == "postmaster" {
            if !target.control.can_restart() {
                return Err(ControlError::NotAllowed.into());
            }
            // A value that keeps the server from starting can then be taken back in the file alone.
            if target.data.is_none() {
                return Err(ApplyError::NoWayBack);
            }
        }
        Ok(())
    }

    fn check_auto_pool(&self) -> Result<(), ApplyError> {
        if matches!(self.target()?.control, Control::Sandbox(_)) {
            return Ok(());
        }
        let why = "the server has to be stopped for it, which pgdyno does with sandboxes only; give a number of pages";
        Err(ApplyError::NoPoolSize(why.into()))
    }

    /// Whether the machine can live with so many pages in a pool: the kernel fills it as far as it can, and kills processes
    /// afterwards, the one that would put it back among them.
    pub(crate) fn check_room(&self, path: &str, pages: u64) -> Result<(), ApplyError> {
        let meminfo = self.host.read("/proc/meminfo")?;
        let of_path = path
            .rsplit_once("hugepages-")
            .and_then(|(_, rest)| rest.split_once("kB")?.0.parse().ok());
        let (Some(size_kb), Some(total_kb), Some(available_kb)) = (
            of_path
                .or_else(|| default_huge_page_kb(self.host))
                .filter(|&size_kb| size_kb > 0),
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
        if form_of(knob) != crate::cell::Form::Bracket {
            return Ok(());
        }
        let text = self.host.read(path)?;
        let choices: Vec<&str> = text
            .split_whitespace()
            .map(|w| w.trim_matches(['[', ']']))
            .collect();
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

    /// What the kernel makes of a value that is not below the one it has to stay below.
    fn not_below(&self, knob: &Knob) -> Option<String> {
        let above = knob.below.as_deref()?;
        let number = |id: &str| {
            self.current(id)
                .ok()?
                .parse::<u64>()
                .ok()
                .filter(|&number| number > 0)
        };
        let (low, high) = (number(&knob.id)?, number(above)?);
        (low >= high)
            .then(|| format!("it is not below {above}, {high}: the kernel takes a half of that instead"))
    }

    fn check_whole(&self, cell: &Cell, setting: &Setting, before: &Captured) -> Result<(), ApplyError> {
        let wrong = |expected: String| {
            Err(CatalogueError::Value {
                id: setting.knob.clone(),
                value: setting.value.clone(),
                expected,
            }
            .into())
        };
        match (cell, before) {
            (_, Captured::Storage(rows)) if rows.is_empty() => {
                wrong("a table with something to set: partitions, or columns with long values".into())
            }
            (_, Captured::Affinity { pid: None, .. }) => wrong("a running server on this host".into()),
            (_, Captured::Affinity { .. }) => {
                let online = self.host.read_trimmed("/sys/devices/system/cpu/online")?;
                let there = affinity::numbers(&online);
                let missing = affinity::numbers(&setting.value)
                    .into_iter()
                    .find(|cpu| !there.contains(cpu));
                missing.map_or(Ok(()), |cpu| {
                    wrong(format!("CPUs of {online}, which {cpu} is not"))
                })
            }
            (Cell::WalDirectory { .. }, _) => {
                if !matches!(self.target()?.control, Control::Sandbox(_)) {
                    return Err(ApplyError::NeedsStop);
                }
                let wanted = self.wanted(cell, setting, before)?;
                match &wanted {
                    Captured::WalDirectory(Some(to)) if wanted != *before => match wal::objection(to) {
                        Some(objection) => wrong(format!("an empty directory, or a new one: {objection}")),
                        None => Ok(()),
                    },
                    _ => Ok(()),
                }
            }
            (Cell::Swap { path }, Captured::Swap(Some(0))) => wrong(format!(
                "a path without a file; {path} is there, and is not in use as swap"
            )),
            (Cell::Held { path }, _) => Ok(self.host.writable(path)?),
            _ => Ok(()),
        }
    }

    pub(crate) fn parameter(&self, server: &mut Server, name: &str) -> Result<Guc, ApplyError> {
        show(server, name)?.ok_or_else(|| {
            let knob = self.catalogue.get(name).ok();
            let mut hint = String::new();
            if let Some(since) = knob.and_then(|knob| knob.since) {
                hint += &format!("; it has come with {since}");
            }
            if let Some(until) = knob.and_then(|knob| knob.until) {
                hint += &format!("; {until} was the last to have it");
            }
            if let Some(new) = knob.and_then(|knob| knob.renamed.as_deref()) {
                hint += &format!("; {new} took its place");
            }
            ApplyError::NoParameter {
                name: name.to_owned(),
                version: server.version().to_string(),
                hint,
            }
        })
    }

    /// The value that a knob has now, as a setting would be written.
    pub fn current(&self, knob: &str) -> Result<String, ApplyError> {
        let of = self.catalogue.get(knob)?;
        if of.kind.is_advised_only() {
            return advised::now(self, of, split(knob).1);
        }
        match self.means(knob)? {
            Means::Parameter => {
                let guc = self.parameter(&mut self.server()?, split(knob).0)?;
                Ok(guc.shown)
            }
            Means::Files(files) => {
                let mut values: Vec<String> = Vec::new();
                for (spot, _) in &files {
                    let value = self.kernel_value(of, &spot.path)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(values.join(" / "))
            }
            Means::Whole(cell) => Ok(shown(&cell.capture(self.site())?)),
        }
    }

    fn kernel_value(&self, knob: &Knob, path: &str) -> Result<String, HostError> {
        let value = read_value(
            self.host,
            &KernelFile::new(self.host, path.to_owned(), form_of(knob)),
        )?;
        Ok(match knob.kind {
            Kind::CpuQuota => self.cpus_of_quota(path, &value),
            _ => value,
        })
    }

    /// What became of settings that were applied.
    pub fn verify(&self, settings: &[Setting]) -> Result<Vec<Applied>, ApplyError> {
        settings.iter().map(|setting| self.verify_one(setting)).collect()
    }

    /// What became of a setting; what cannot be looked at is an error.
    pub fn verify_one(&self, setting: &Setting) -> Result<Applied, ApplyError> {
        let knob = self.catalogue.get(&setting.knob)?;
        let mut remark = None;
        if knob.kind.is_advised_only() {
            let effective = self.current(&setting.knob)?;
            return Ok(Applied {
                took: effective == setting.value,
                setting: setting.clone(),
                effective,
                remark,
            });
        }
        let (effective, took) = match self.means(&setting.knob)? {
            Means::Parameter => {
                let mut server = self.server()?;
                let guc = self.settled_parameter(&mut server, &knob.id, &setting.value)?;
                remark = hidden(&mut server, &knob.id)?;
                if guc.pending_restart {
                    remark = Some("it waits for a restart of the server".to_owned());
                }
                (guc.shown.clone(), gucvalue::same(&setting.value, &guc))
            }
            Means::Files(files) => {
                let mut took = true;
                for (spot, _) in &files {
                    let now = self.kernel_value(knob, &spot.path)?;
                    took &= is_same(knob, &setting.value, &now);
                }
                remark = self.not_below(knob);
                (self.current(&setting.knob)?, took)
            }
            Means::Whole(cell) => {
                let now = cell.capture(self.site())?;
                let wanted = self.wanted(&cell, setting, &now)?;
                (shown(&now), is_same_state(&wanted, &now))
            }
        };
        Ok(Applied {
            setting: setting.clone(),
            effective,
            took,
            remark,
        })
    }

    /// A reload reaches a session a moment after it was asked for.
    fn settled_parameter(&self, server: &mut Server, name: &str, asked: &str) -> Result<Guc, ApplyError> {
        const LOOKS: u32 = 40;
        let mut guc = self.parameter(server, name)?;
        for _ in 0..LOOKS {
            if gucvalue::same(asked, &guc) || guc.pending_restart {
                break;
            }
            server.execute("waiting for the reload", "SELECT pg_sleep(0.05)")?;
            guc = self.parameter(server, name)?;
        }
        Ok(guc)
    }

    /// What is to be written into the file so that the knob has the value.
    pub(crate) fn written(&self, knob: &Knob, path: &str, value: &str) -> Result<String, HostError> {
        if knob.kind != Kind::CpuQuota {
            let version_1 = value == "max" && self.host.read_trimmed(path)?.parse::<u64>().is_ok();
            return Ok(if version_1 && path.ends_with("limit_in_bytes") {
                "-1"
            } else {
                value
            }
            .to_owned());
        }
        let now = self.host.read(path)?;
        let period = self.period_us(path, &now);
        let quota = value.parse::<f64>().map(|cpus| whole(cpus * period));
        Ok(match (now.split_whitespace().count(), quota) {
            (2, Ok(quota)) => format!("{quota} {}", whole(period)),
            (2, Err(_)) => format!("max {}", whole(period)),
            (_, Ok(quota)) => quota.to_string(),
            (_, Err(_)) => "-1".to_owned(),
        })
    }

    /// A quota as a number of CPUs, or "none".
    fn cpus_of_quota(&self, path: &str, text: &str) -> String {
        let quota = text
            .split_whitespace()
            .next()
            .and_then(|quota| quota.parse::<f64>().ok());
        match quota {
            Some(quota) if quota > 0.0 => format!("{}", quota / self.period_us(path, text)),
            _ => "none".to_owned(),
        }
    }

    /// Beside the quota (version 2), or in the file beside it (version 1).
    fn period_us(&self, path: &str, text: &str) -> f64 {
        const USUAL_US: f64 = 100_000.0;
        let period = text.split_whitespace().nth(1).map(str::to_owned).or_else(|| {
            let beside = path.replace("cfs_quota_us", "cfs_period_us");
            self.host.read_trimmed(&beside).ok()
        });
        period
            .and_then(|period| period.parse().ok())
            .filter(|&period| period > 0.0)
            .unwrap_or(USUAL_US)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "microseconds of a quota")]
fn whole(us: f64) -> i64 {
    us.round() as i64
}

fn after_dot(id: &str) -> &str {
    id.split_once('.').map_or(id, |(_, rest)| rest)
}

/// Whether the file holds what was asked for, however it writes that.
pub(crate) fn is_same(knob: &Knob, asked: &str, now: &str) -> bool {
    let folded = asked.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded == now {
        return true;
    }
    match knob.form {
        Form::CpuList => affinity::numbers(asked) == affinity::numbers(now),
        Form::Decimal => match (asked.parse::<f64>(), now.parse::<f64>()) {
            (Ok(asked), Ok(now)) => (asked - now).abs() < 1e-4,
            _ => false,
        },
        Form::Integer if knob.unit.as_deref() == Some("bytes") => {
            match (asked.parse::<u64>(), now.parse::<u64>()) {
                (Ok(asked), Ok(now)) => asked.abs_diff(now) < PAGE_MAX_BYTES && asked >= PAGE_MAX_BYTES,
                (Err(_), Ok(now)) => asked == "max" && now >= NO_LIMIT_BYTES,
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether two states are the same, however the kernel writes them.
pub(crate) fn is_same_state(a: &Captured, b: &Captured) -> bool {
    match (a, b) {
        (
            Captured::Affinity {
                pid: Some(pid), cpus, ..
            },
            Captured::Affinity {
                pid: Some(other),
                cpus: now,
                ..
            },
        ) => pid == other && affinity::numbers(cpus) == affinity::numbers(now),
        _ => a == b,
    }
}

/// Roles and databases with a value of their own, which hides the one in the files from their sessions.
fn hidden(server: &mut Server, name: &str) -> Result<Option<String>, ApplyError> {
    let sql = format!(
        "SELECT string_agg(DISTINCT coalesce('role ' || r.rolname, '') || CASE WHEN r.oid IS NOT NULL AND d.oid IS NOT \
         NULL THEN ' in ' ELSE '' END || coalesce('database ' || d.datname, ''), ', ') FROM pg_db_role_setting s \
         LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase \
         WHERE EXISTS (SELECT FROM unnest(s.setconfig) c WHERE lower(split_part(c, '=', 1)) = lower('{}'))",
        name.replace('\'', "''")
    );
    let found = server.value("looking for values of roles and databases", &sql)?;
    Ok(found.filter(|who| !who.is_empty()).map(|who| {
        format!("sessions of {who} do not have it: ALTER ROLE or ALTER DATABASE has set another value")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn values_are_compared_as_the_kernel_means_them() {
        let catalogue = Catalogue::shipped().unwrap();
        let knob = |form: Form, unit: Option<&str>| Knob {
            form,
            unit: unit.map(str::to_owned),
            ..catalogue.iter().next().unwrap().clone()
        };
        assert!(is_same(&knob(Form::CpuList, None), "0,1,2", "0-2"));
        assert!(!is_same(&knob(Form::CpuList, None), "0,1", "0-2"));
        assert!(is_same(&knob(Form::Decimal, None), "1.50", "1.5"));
        assert!(is_same(
            &knob(Form::Integers, None),
            "4096  131072 6291456",
            "4096 131072 6291456"
        ));
        let bytes = knob(Form::Integer, Some("bytes"));
        assert!(is_same(&bytes, "1000000000", "999997440"));
        assert!(!is_same(&bytes, "1000000000", "900000000"));
        assert!(is_same(&bytes, "max", "9223372036854771712"));
        assert!(!is_same(&bytes, "4096", "0"));
    }
}
