//! What the knobs of a target are now, whether a setting could be applied, and whether it has taken
//! effect. Changes nothing.

mod advised;
mod check;
mod objection;
mod session;
mod whereabouts;

pub(crate) use advised::fuzzed_table;
pub use objection::Objection;
pub use whereabouts::Place;

use crate::address::{HostContext, ResolvedAddress, is_kernel_files};
use crate::applied::{Applied, ApplyError};
use crate::catalogue::{Catalogue, CatalogueError, Form, Kind, Knob, Setting, split};
use crate::gucvalue;
use crate::journal::Journals;
use crate::several;
use crate::target::Target;
use crate::undo::swap::SwapFile;
use crate::undo::{
    KernelFile, SavedState, TargetAccess, UndoUnit, UndoUnitError, affinity, form_of, read_value, shown,
};
use pgdyno_host::{HostAccess, HostError};
use pgdyno_server::{Guc, Server, ServerError, StorageOption, bounds, qualified, show};
use std::path::PathBuf;

/// Reads the knobs of a target.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The host under the server, or the host alone.
    pub host: &'a dyn HostAccess,
    /// Knobs that can be read.
    pub catalogue: &'a Catalogue,
    /// The server; `None` for a host alone.
    pub target: Option<&'a Target>,
    /// By which changes of other users are found; `None` where they do not matter.
    pub journals: Option<&'a Journals>,
}

/// How a setting is read and changed here.
pub(crate) enum Mechanism {
    /// A parameter of the server.
    Parameter,
    /// Files of the kernel, each with its undo unit.
    Files(Vec<(ResolvedAddress, UndoUnit)>),
    /// Something else that is saved and written as a whole.
    Whole(UndoUnit),
}

/// A value that means "as without pgdyno", of a table's option or the WAL directory.
pub(crate) const DEFAULT: &str = "default";
/// The source, as the server names it, of what a session's start has set.
const BY_OPTIONS: &str = "client";
/// The swap file where no path is given: beside the data directory.
const SWAP_FILE: &str = "pgdyno.swap";
/// Control groups of version 1 show "no limit" as the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 62;
/// Limits of control groups are rounded to whole pages, of 64 kB at most.
const PAGE_MAX_BYTES: u64 = 1 << 16;

impl<'a> Reader<'a> {
    pub(crate) fn access(&self) -> TargetAccess<'a> {
        TargetAccess {
            host: self.host,
            conninfo: self.target.map(|target| &target.conninfo),
        }
    }

    pub(crate) fn target(&self) -> Result<&'a Target, ApplyError> {
        self.target.ok_or(ApplyError::UndoUnit(UndoUnitError::NoServer))
    }

    /// The data directory and its server, on this host.
    fn data(&self) -> Result<PathBuf, ApplyError> {
        self.target()?.data.clone().ok_or(ApplyError::HostElsewhere)
    }

    pub(crate) fn server(&self) -> Result<Server, ApplyError> {
        Ok(Server::connect(&self.target()?.conninfo)?)
    }

    pub(crate) fn context(&self) -> HostContext<'a> {
        HostContext {
            host: self.host,
            data: self.target.and_then(|target| target.data.as_deref()),
            postmaster: self.target.and_then(|target| target.postmaster(self.host)),
        }
    }

    pub(crate) fn mechanism(&self, setting: &str) -> Result<Mechanism, ApplyError> {
        let knob = self.catalogue.get(setting)?;
        let instance = split(setting).1.unwrap_or_default();
        if is_kernel_files(knob.kind) {
            // A server of another machine has its own kernel.
            if self.target.is_some_and(|target| target.data.is_none()) {
                return Err(ApplyError::HostElsewhere);
            }
            let context = self.context();
            let units = context.resolved(knob, setting)?.into_iter().map(|address| {
                let unit = UndoUnit::of_kernel_knob(&context, self.catalogue, knob, &address)?;
                Ok((address, unit))
            });
            return Ok(Mechanism::Files(units.collect::<Result<_, CatalogueError>>()?));
        }
        Ok(match knob.kind {
            Kind::Guc => Mechanism::Parameter,
            Kind::TableOption | Kind::ColumnCompression => Mechanism::Whole(UndoUnit::Storage {
                table: self.table(instance)?,
                option: match knob.kind {
                    Kind::ColumnCompression => StorageOption::Compression,
                    // The part behind the dot is the storage parameter's name.
                    _ => StorageOption::Parameter(after_dot(&knob.id).to_owned()),
                },
            }),
            Kind::WalDirectory => Mechanism::Whole(UndoUnit::WalDirectory { data: self.data()? }),
            Kind::Affinity => Mechanism::Whole(UndoUnit::Affinity { data: self.data()? }),
            Kind::SwapFile if instance.is_empty() => Mechanism::Whole(UndoUnit::Swap {
                path: self
                    .data()?
                    .with_file_name(SWAP_FILE)
                    .to_string_lossy()
                    .into_owned(),
            }),
            Kind::SwapFile => Mechanism::Whole(UndoUnit::Swap {
                path: instance.to_owned(),
            }),
            Kind::HeldFile => Mechanism::Whole(UndoUnit::Held {
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

    pub(crate) fn parameter(&self, server: &mut Server, name: &str) -> Result<Guc, ApplyError> {
        show(server, name)?.ok_or_else(|| {
            let knob = self.catalogue.find(name);
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
        match self.mechanism(knob)? {
            Mechanism::Parameter => {
                let guc = self.parameter(&mut self.server()?, split(knob).0)?;
                match guc.source.as_str() {
                    BY_OPTIONS => Err(ApplyError::HiddenByOptions { name: guc.name }),
                    _ => Ok(guc.shown),
                }
            }
            Mechanism::Files(files) => {
                let mut values: Vec<String> = Vec::new();
                for (address, _) in &files {
                    let value = self.kernel_value(of, &address.path)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(values.join(" / "))
            }
            Mechanism::Whole(unit) => Ok(shown(&unit.capture(self.access())?)),
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

    /// Outcome of settings that were applied.
    pub fn verify(&self, settings: &[Setting]) -> Result<Vec<Applied>, ApplyError> {
        settings.iter().map(|setting| self.verify_one(setting)).collect()
    }

    /// Outcome of a setting; what cannot be read is an error.
    pub fn verify_one(&self, setting: &Setting) -> Result<Applied, ApplyError> {
        let knob = self.catalogue.get(&setting.knob)?;
        let mut remark = None;
        if knob.kind.is_advised_only() {
            let effective = self.current(&setting.knob)?;
            return Ok(Applied {
                took: effective == setting.value
                    || (setting.value == DEFAULT && knob.unset.as_ref() == Some(&effective)),
                setting: setting.clone(),
                effective,
                remark,
            });
        }
        let (effective, took) = match self.mechanism(&setting.knob)? {
            Mechanism::Parameter => {
                let mut server = self.server()?;
                let (guc, took) = self.settled_parameter(&mut server, &knob.id, &setting.value)?;
                remark = hidden(&mut server, &knob.id)?;
                if guc.pending_restart {
                    remark = Some("it waits for a restart of the server".to_owned());
                }
                (guc.shown, took)
            }
            Mechanism::Files(files) => {
                let mut took = true;
                for (address, _) in &files {
                    let now = self.kernel_value(knob, &address.path)?;
                    took &= is_same(knob, &self.listed(knob, &setting.value)?, &now);
                }
                remark = self.not_below(knob);
                (self.current(&setting.knob)?, took)
            }
            Mechanism::Whole(unit) => {
                let now = unit.capture(self.access())?;
                let wanted = wanted(&unit, setting, &now);
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

    /// A parameter, and whether it has the value: a reload reaches a session a moment after it was
    /// asked for.
    fn settled_parameter(
        &self,
        server: &mut Server,
        name: &str,
        asked: &str,
    ) -> Result<(Guc, bool), ApplyError> {
        const LOOKS: u32 = 40;
        let mut guc = self.parameter(server, name)?;
        let asked = meant(server, asked, &guc)?;
        for _ in 0..LOOKS {
            if gucvalue::same(asked, &guc) || guc.pending_restart {
                break;
            }
            server.execute("waiting for the reload", "SELECT pg_sleep(0.05)")?;
            guc = self.parameter(server, name)?;
        }
        let took = gucvalue::same(asked, &guc);
        Ok((guc, took))
    }

    /// What is to be written into the file so that the knob has the value.
    pub(crate) fn written(&self, knob: &Knob, path: &str, value: &str) -> Result<String, HostError> {
        if knob.kind != Kind::CpuQuota {
            return Ok(if value == "max" && path.ends_with("limit_in_bytes") {
                "-1".to_owned()
            } else {
                self.listed(knob, value)?
            });
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

    /// A value with the CPUs of the memory node that it names, or with the part that it means of
    /// what the host has.
    pub(super) fn listed(&self, knob: &Knob, value: &str) -> Result<String, HostError> {
        if let Some(part) = knob.part_of(value) {
            return several::listed_part(self.host, knob, part);
        }
        match knob.node_of(value) {
            Some(node) => self
                .host
                .read_trimmed(&format!("/sys/devices/system/node/node{node}/cpulist")),
            None => Ok(value.to_owned()),
        }
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

/// The state that a setting asks for, of an undo unit that is no kernel file and is in the state
/// `before`.
pub(crate) fn wanted(unit: &UndoUnit, setting: &Setting, before: &SavedState) -> SavedState {
    let value = setting.value.as_str();
    let set = (value != DEFAULT).then(|| value.to_owned());
    match (unit, before) {
        (_, SavedState::Storage(rows)) => {
            SavedState::Storage(rows.iter().map(|(what, _)| (what.clone(), set.clone())).collect())
        }
        (UndoUnit::WalDirectory { .. }, _) => SavedState::WalDirectory(set.map(PathBuf::from)),
        (UndoUnit::Swap { .. }, _) => SavedState::Swap(
            value
                .parse()
                .ok()
                .filter(|&bytes| bytes > 0)
                .map(SwapFile::of_size),
        ),
        (_, SavedState::Affinity { pid, started, .. }) => SavedState::Affinity {
            pid: *pid,
            started: *started,
            cpus: value.to_owned(),
        },
        _ => before.clone(),
    }
}

/// Whether two states are the same, however the kernel writes them.
pub(crate) fn is_same_state(a: &SavedState, b: &SavedState) -> bool {
    match (a, b) {
        (
            SavedState::Affinity {
                pid: Some(_), cpus, ..
            },
            SavedState::Affinity {
                pid: Some(_),
                cpus: now,
                ..
            },
        ) => !a.is_of_another_server(b) && affinity::numbers(cpus) == affinity::numbers(now),
        (SavedState::Swap(Some(a)), SavedState::Swap(Some(b))) => a.is_like(b),
        _ => a == b,
    }
}

/// The word that the server takes for a value of a parameter.
fn meant<'a>(server: &mut Server, asked: &'a str, guc: &Guc) -> Result<&'a str, ServerError> {
    if guc.vartype != "enum" {
        return Ok(asked);
    }
    let words = bounds(server, &guc.name)?.words;
    Ok(gucvalue::meant(asked, &words, server.version().major))
}

/// Roles and databases with a value of their own, which hides the one in the files from their
/// sessions.
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
