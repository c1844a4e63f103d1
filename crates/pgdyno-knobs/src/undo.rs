//! An undo unit: what is saved and written back together, and the state it was in.
//!
//! One knob is not always one value: writing vm.dirty_bytes zeroes vm.dirty_ratio, another I/O
//! scheduler sets nr_requests again, and a bad parameter that keeps the server from starting can
//! only be undone in the file.

pub(crate) mod affinity;
mod error;
mod file;
mod pool;
pub(crate) mod swap;
pub(crate) mod wal;

pub use error::UndoUnitError;
pub(crate) use file::{FilePart, Form, KernelFile, form_in, form_of, read_value, write_of};
pub(crate) use pool::TAKEN_WITHIN;

use crate::address::{HostContext, ResolvedAddress};
use crate::catalogue::{Catalogue, CatalogueError, Knob};
use pgdyno_host::{HostAccess, HostError};
use pgdyno_sandbox::Manager;
use pgdyno_server::{
    Conninfo, DatabaseObject, NoPostmaster, Postmaster, Server, ServerError, StorageOption, autoconf,
    drop_made, drop_made_database, has_database, made_objects, objects, one_spelling, set_storage,
    storage_of,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use swap::SwapFile;

/// Which server an undo unit belongs to, without any secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ServerRef {
    /// A sandbox by name, below a directory of sandboxes.
    Sandbox {
        /// Directory of all sandboxes.
        root: PathBuf,
        /// Name of the sandbox.
        name: String,
    },
    /// A server by its address.
    Address {
        /// Connection string without the password.
        conninfo: String,
        /// What starts and stops it, where its owner has agreed to that.
        manager: Option<Manager>,
        /// Its data directory, where that is on this host.
        data: Option<PathBuf>,
    },
}

impl ServerRef {
    /// What identifies it where its files are not on this host.
    pub(crate) fn key(&self) -> String {
        match self {
            ServerRef::Sandbox { root, name } => format!("sandbox {name} in {}", root.display()),
            ServerRef::Address { conninfo, .. } => format!("at {conninfo}"),
        }
    }
}

/// Where an undo unit is to be read and written.
#[derive(Clone, Copy)]
pub(crate) struct TargetAccess<'a> {
    pub(crate) host: &'a dyn HostAccess,
    /// The server, for what is asked of it.
    pub(crate) conninfo: Option<&'a Conninfo>,
}

impl TargetAccess<'_> {
    fn server(&self) -> Result<Server, UndoUnitError> {
        let conninfo = self.conninfo.ok_or(UndoUnitError::NoServer)?;
        Ok(Server::connect(conninfo)?)
    }
}

/// The file in which ALTER SYSTEM keeps parameters. It is also the name under which the journal has
/// it where it is written back as a whole, for a server that does not start.
pub(crate) const AUTO_CONF: &str = "postgresql.auto.conf";

/// What is saved and written back together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum UndoUnit {
    /// Kernel files, written back in this order.
    Files {
        /// The files, those first whose writing sets others again.
        files: Vec<KernelFile>,
        /// How many of them set those after them again.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        leads: usize,
        /// Whether they are counterparts, of which only the one that is not zero can be written
        /// back.
        counterparts: bool,
    },
    /// postgresql.auto.conf as a file, byte by byte.
    AutoConf {
        /// The server's data directory, which has the file.
        data: PathBuf,
    },
    /// One parameter of a server whose files cannot be reached.
    Parameter {
        /// Name of the parameter.
        name: String,
    },
    /// How a table and its partitions are stored.
    Storage {
        /// Its name with its schema, quoted where need be.
        table: String,
        /// Storage parameter, or compression of the columns.
        option: StorageOption,
    },
    /// The place of pg_wal: in the data directory, or behind a symbolic link.
    WalDirectory {
        /// The server's data directory.
        data: PathBuf,
    },
    /// A file that the kernel may swap to.
    Swap {
        /// Absolute path of the swap file.
        path: String,
    },
    /// The CPUs of a server's processes.
    Affinity {
        /// The server's data directory.
        data: PathBuf,
    },
    /// A file that only pgdyno makes.
    OwnFile {
        /// Absolute path of the file.
        path: String,
    },
    /// A value that holds as long as its file is open.
    Held {
        /// Absolute path of the file.
        path: String,
    },
    /// Data that an experiment makes on a server that pgdyno did not create.
    Made {
        /// Name of the data set.
        dataset: String,
        /// What the comment on each of its objects ends with.
        mark: String,
    },
    /// A database that an experiment makes on a server that pgdyno did not create.
    Database {
        /// Its name, as `is_made_database` of pgdyno-server accepts it.
        name: String,
    },
    /// What commands of an experiment may make on a server that pgdyno did not create: compared,
    /// never dropped.
    Objects {
        /// Statements that may make objects, as the experiment file has them.
        commands: Vec<String>,
    },
}

/// The state of an undo unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum SavedState {
    /// Values of the files in the undo unit's order; `None` where this kernel has no such file.
    Files(Vec<Option<String>>),
    /// Text of postgresql.auto.conf.
    AutoConf(String),
    /// The value in postgresql.auto.conf, if there is one.
    Parameter(Option<String>),
    /// Tables, or columns, with their values; `None` where it is not set.
    Storage(Vec<(String, Option<String>)>),
    /// What pg_wal points at; `None` for the data directory itself. An empty path: a move was cut
    /// short.
    WalDirectory(Option<PathBuf>),
    /// Size and attributes of the file; `None` where there is none.
    Swap(Option<SwapFile>),
    /// CPUs of the server's postmaster, and what identifies that process.
    Affinity {
        /// Process id of the postmaster; `None` where no server runs.
        pid: Option<u32>,
        /// When it was started, in ticks since boot: another process may have its number later.
        started: u64,
        /// List of CPUs as the kernel writes it: "0-3,8".
        cpus: String,
    },
    /// Content of the file; `None` where there is none.
    OwnFile(Option<String>),
    /// Nothing is known of it and nothing stays.
    Held,
    /// The objects that carry the mark, by name.
    Made(Vec<String>),
    /// Whether there is such a database.
    Database(bool),
    /// Objects of the database and its server, as DROP names them.
    Objects(Vec<DatabaseObject>),
}

/// Which of so many files make the part of one of them, of `leads` that set those after them again.
fn places_of_part(leads: usize, files: usize, file: usize) -> Vec<usize> {
    match leads {
        ..=1 => (0..files).collect(),
        _ if file < leads => std::iter::once(file).chain(leads..files).collect(),
        _ => vec![file],
    }
}

impl SavedState {
    /// Its values in the part of an undo unit.
    pub(crate) fn part(&self, unit: &UndoUnit, file: usize) -> SavedState {
        let (UndoUnit::Files { leads, .. }, SavedState::Files(values)) = (unit, self) else {
            return self.clone();
        };
        let places = places_of_part(*leads, values.len(), file);
        SavedState::Files(places.into_iter().map(|at| values[at].clone()).collect())
    }

    /// As a later line of a journal has it: the text of postgresql.auto.conf is in the first one,
    /// and what is ours in it now is known by what was written.
    pub(crate) fn in_later_line(self) -> SavedState {
        match self {
            SavedState::AutoConf(_) => SavedState::AutoConf(String::new()),
            other => other,
        }
    }

    /// The value of one of its files.
    pub(crate) fn value(&self, file: usize) -> Option<&str> {
        match self {
            SavedState::Files(values) => values.get(file)?.as_deref(),
            _ => None,
        }
    }

    /// Takes the value of one file over from another state.
    pub(crate) fn take(&mut self, other: &SavedState, file: usize) {
        if let (SavedState::Files(values), SavedState::Files(others)) = (self, other)
            && let (Some(value), Some(other)) = (values.get_mut(file), others.get(file))
        {
            value.clone_from(other);
        }
    }

    /// Whether both are the processors of a server that was started again between them, or that
    /// runs no more.
    pub(crate) fn is_of_another_server(&self, now: &SavedState) -> bool {
        let (
            SavedState::Affinity { pid, started, .. },
            SavedState::Affinity {
                pid: other,
                started: began,
                ..
            },
        ) = (self, now)
        else {
            return false;
        };
        (pid, started) != (other, began)
    }
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(leads: &usize) -> bool {
    *leads == 1
}

impl UndoUnit {
    /// The undo unit of a kernel knob's file on this host.
    pub(crate) fn of_kernel_knob(
        context: &HostContext<'_>,
        catalogue: &Catalogue,
        knob: &Knob,
        address: &ResolvedAddress,
    ) -> Result<UndoUnit, CatalogueError> {
        let host = context.host;
        let file = |knob: &Knob, path: &str| KernelFile::new(host, path.to_owned(), form_of(knob));
        if let Some(other) = &knob.counterpart {
            let mut files = vec![file(knob, &address.path)];
            let other = catalogue.get(other)?;
            // A kernel without the other one has no pair.
            for address in context.resolved(other, &other.id).unwrap_or_default() {
                files.push(file(other, &address.path));
            }
            // The same undo unit whichever of the two is set.
            files.sort_by(|a, b| a.path.cmp(&b.path));
            return Ok(UndoUnit::Files {
                files,
                leads: 1,
                counterparts: true,
            });
        }
        // A file that another knob sets again belongs to that one's undo unit: two undo units with
        // one file would take each other's values for those from before.
        let instance = address.name.split_once('@').map(|(_, instance)| instance);
        let owner = catalogue
            .iter()
            .filter(|owner| !owner.resets.is_empty())
            .find_map(|owner| {
                let name = match instance {
                    Some(instance) if owner.per == knob.per => format!("{}@{instance}", owner.id),
                    _ => owner.id.clone(),
                };
                let resolved = context.resolved(owner, &name).ok()?;
                resolved
                    .into_iter()
                    .find(|owned| owned.resets.contains(&address.path) || owned.alike.contains(&address.path))
                    .map(|address| (owner, address))
            });
        let (owner, lead) = match &owner {
            Some((owner, lead)) => (*owner, lead),
            None => (knob, address),
        };
        let mut files = vec![file(owner, &lead.path)];
        for path in lead.alike.iter().chain(&lead.resets) {
            files.push(KernelFile::new(host, path.clone(), form_in(host, path)));
        }
        Ok(UndoUnit::Files {
            files,
            leads: 1 + lead.alike.len(),
            counterparts: false,
        })
    }

    /// Of files that set the same others again, one with these; another file by itself. Where there
    /// is one such file, the undo unit.
    pub(crate) fn part(&self, file: usize) -> UndoUnit {
        let UndoUnit::Files {
            files,
            leads,
            counterparts,
        } = self
        else {
            return self.clone();
        };
        UndoUnit::Files {
            files: places_of_part(*leads, files.len(), file)
                .into_iter()
                .map(|at| files[at].clone())
                .collect(),
            leads: 1,
            counterparts: *counterparts,
        }
    }

    /// Whether they are the same, or have a file in common.
    pub(crate) fn meets(&self, other: &UndoUnit) -> bool {
        match (self, other) {
            (UndoUnit::Files { files, .. }, UndoUnit::Files { files: others, .. }) => files
                .iter()
                .any(|file| others.iter().any(|other| other.path == file.path)),
            _ => self == other,
        }
    }

    /// The undo unit under the names that its devices have now; `None` where one is gone.
    pub(crate) fn today(&self, host: &dyn HostAccess) -> Option<UndoUnit> {
        let UndoUnit::Files {
            files,
            leads,
            counterparts,
        } = self
        else {
            return Some(self.clone());
        };
        let files = files.iter().map(|file| {
            let path = file.path_now(host)?;
            Some(KernelFile { path, ..file.clone() })
        });
        Some(UndoUnit::Files {
            files: files.collect::<Option<_>>()?,
            leads: *leads,
            counterparts: *counterparts,
        })
    }

    /// Whether it is files of a control group.
    pub(crate) fn is_of_group(&self) -> bool {
        matches!(self, UndoUnit::Files { files, .. } if files.iter().any(|file| file.path.starts_with("/sys/fs/cgroup/")))
    }

    /// Whether it is the host's, and not one server's.
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(
            self,
            UndoUnit::Files { .. } | UndoUnit::Swap { .. } | UndoUnit::OwnFile { .. } | UndoUnit::Held { .. }
        )
    }

    /// The data directory of its server, where it names one.
    pub(crate) fn data(&self) -> Option<&Path> {
        match self {
            UndoUnit::AutoConf { data } | UndoUnit::WalDirectory { data } | UndoUnit::Affinity { data } => {
                Some(data)
            }
            _ => None,
        }
    }

    /// Whether what it holds is gone after a reboot.
    pub(crate) fn lives_in_kernel(&self) -> bool {
        matches!(
            self,
            UndoUnit::Files { .. } | UndoUnit::Affinity { .. } | UndoUnit::Held { .. }
        )
    }

    /// Reads its state. A file may be missing on this kernel: then there is nothing to write back.
    pub(crate) fn capture(&self, access: TargetAccess<'_>) -> Result<SavedState, UndoUnitError> {
        Ok(match self {
            UndoUnit::Files { files, .. } => {
                let mut values = Vec::new();
                for file in files {
                    match read_value(access.host, file) {
                        Ok(value) => values.push(Some(value)),
                        Err(HostError::Missing { .. }) => values.push(None),
                        Err(error) => return Err(error.into()),
                    }
                }
                SavedState::Files(values)
            }
            UndoUnit::AutoConf { data } => {
                let path = autoconf::path_in(data);
                let bytes = autoconf::read(data).map_err(|source| UndoUnitError::AutoConf {
                    path: path.clone(),
                    action: "read",
                    source,
                })?;
                let text = String::from_utf8(bytes).map_err(|_| UndoUnitError::NotText { path })?;
                SavedState::AutoConf(text)
            }
            UndoUnit::Parameter { name } => SavedState::Parameter(in_auto_conf(&mut access.server()?, name)?),
            UndoUnit::Storage { table, option } => {
                SavedState::Storage(storage_of(&mut access.server()?, table, option)?)
            }
            UndoUnit::WalDirectory { data } => SavedState::WalDirectory(wal::location(data)?),
            UndoUnit::Swap { path } => SavedState::Swap(swap::look(access.host, path)?),
            UndoUnit::Affinity { data } => affinity::capture(access.host, data)?,
            UndoUnit::OwnFile { path } => SavedState::OwnFile(match access.host.read(path) {
                Ok(text) => Some(text),
                Err(HostError::Missing { .. }) => None,
                Err(error) => return Err(error.into()),
            }),
            UndoUnit::Held { .. } => SavedState::Held,
            UndoUnit::Made { mark, .. } => SavedState::Made(made_objects(&mut access.server()?, mark)?),
            UndoUnit::Database { name } => SavedState::Database(has_database(&mut access.server()?, name)?),
            UndoUnit::Objects { .. } => SavedState::Objects(objects(&mut access.server()?)?),
        })
    }

    /// Brings what is no kernel file to a state; `before` is the one it is in.
    pub(crate) fn write(
        &self,
        access: TargetAccess<'_>,
        before: &SavedState,
        to: &SavedState,
    ) -> Result<(), UndoUnitError> {
        match (self, to) {
            (UndoUnit::Storage { option, .. }, SavedState::Storage(to)) => {
                let SavedState::Storage(before) = before else {
                    return Err(UndoUnitError::Mixed);
                };
                // Names that the server itself gives: a journal's own would be a part of a
                // statement.
                let is_there = |what: &str| before.iter().any(|(there, _)| there == what);
                let changed: Vec<_> = to
                    .iter()
                    .filter(|row| !before.contains(row) && is_there(&row.0))
                    .cloned()
                    .collect();
                Ok(set_storage(&mut access.server()?, option, &changed)?)
            }
            (UndoUnit::WalDirectory { data }, SavedState::WalDirectory(_)) if may_run(access.host, data) => {
                Err(UndoUnitError::Running)
            }
            (UndoUnit::WalDirectory { data }, SavedState::WalDirectory(to)) => {
                wal::move_to(data, to.as_deref(), &|| may_run(access.host, data))
            }
            (UndoUnit::Swap { path }, SavedState::Swap(to)) => swap::set(access.host, path, to.as_ref()),
            (
                UndoUnit::Affinity { .. },
                SavedState::Affinity {
                    pid: Some(pid), cpus, ..
                },
            ) => Ok(affinity::bind(access.host, *pid, cpus)?),
            (UndoUnit::Affinity { .. }, SavedState::Affinity { pid: None, .. })
            | (UndoUnit::Held { .. }, SavedState::Held) => Ok(()),
            (UndoUnit::OwnFile { path }, SavedState::OwnFile(to)) => {
                Ok(access.host.replace_raw(path, to.as_deref())?)
            }
            (UndoUnit::Made { mark, .. }, SavedState::Made(to)) if to.is_empty() => {
                Ok(drop_made(&mut access.server()?, mark)?)
            }
            (UndoUnit::Database { name }, SavedState::Database(false)) => {
                Ok(drop_made_database(&mut access.server()?, name)?)
            }
            _ => Err(UndoUnitError::Mixed),
        }
    }

    /// The writes that bring kernel files back to `saved`: (path, value) in order.
    pub(crate) fn writes_back(&self, saved: &SavedState) -> Vec<(String, String)> {
        let (
            UndoUnit::Files {
                files, counterparts, ..
            },
            SavedState::Files(values),
        ) = (self, saved)
        else {
            return Vec::new();
        };
        let present = files
            .iter()
            .zip(values)
            .filter_map(|(file, value)| Some((&file.path, value.as_ref()?)));
        if !counterparts {
            return present
                .map(|(path, value)| (path.clone(), value.clone()))
                .collect();
        }
        let pair: Vec<_> = present.collect();
        // The kernel refuses a written 0 for the bytes form, and writing the other form zeroes it
        // anyway.
        if let Some((path, value)) = pair.iter().find(|(_, value)| value.as_str() != "0") {
            return vec![((*path).clone(), (*value).clone())];
        }
        // With both at zero it is the ratio that takes a 0; it is last by name. One that it has
        // already does not zero the other.
        let ratio = pair.last().map(|(path, _)| (*path).clone());
        let write = |value: &str| Some((ratio.clone()?, value.to_owned()));
        [write("1"), write("0")].into_iter().flatten().collect()
    }

    /// Where it is, for people.
    pub(crate) fn place(&self) -> String {
        match self {
            UndoUnit::Files { files, .. } => files.first().map(|file| file.path.clone()).unwrap_or_default(),
            UndoUnit::AutoConf { data } => autoconf::path_in(data).display().to_string(),
            UndoUnit::Parameter { name } => format!("ALTER SYSTEM {name}"),
            UndoUnit::Storage { table, .. } => format!("ALTER TABLE {table}"),
            UndoUnit::WalDirectory { data } => data.join("pg_wal").display().to_string(),
            UndoUnit::Affinity { data } => format!("processes of the server in {}", data.display()),
            UndoUnit::Swap { path } | UndoUnit::OwnFile { path } | UndoUnit::Held { path } => path.clone(),
            UndoUnit::Made { dataset, .. } => format!("tables of {dataset}"),
            UndoUnit::Database { name } => format!("database {name}"),
            UndoUnit::Objects { commands } => format!("made by {}", commands.join("; ")),
        }
    }
}

/// What differs in a state of an undo unit from another, in short: of many files those alone, by
/// their paths.
pub(crate) fn shown_unlike(unit: &UndoUnit, state: &SavedState, other: &SavedState) -> String {
    match (unit, state, other) {
        (UndoUnit::Files { files, .. }, SavedState::Files(values), SavedState::Files(others))
            if files.len() > 2 =>
        {
            files
                .iter()
                .zip(values.iter().zip(others))
                .filter(|(_, (value, other))| value != other)
                .map(|(file, (value, _))| format!("{} in {}", value.as_deref().unwrap_or("-"), file.path))
                .collect::<Vec<_>>()
                .join(", ")
        }
        _ => shown(state),
    }
}

/// A short text of a state, for people.
pub(crate) fn shown(saved: &SavedState) -> String {
    match saved {
        SavedState::Files(values) => values
            .iter()
            .map(|value| value.as_deref().unwrap_or("-"))
            .collect::<Vec<_>>()
            .join(" / "),
        SavedState::AutoConf(_) => "the file from before".into(),
        SavedState::Parameter(value) => value.clone().unwrap_or_else(|| "(not set)".into()),
        SavedState::Storage(rows) => {
            let mut values: Vec<&str> = rows
                .iter()
                .map(|(_, value)| value.as_deref().unwrap_or("(not set)"))
                .collect();
            values.sort_unstable();
            values.dedup();
            values.join(" / ")
        }
        SavedState::WalDirectory(None) => "default".into(),
        SavedState::WalDirectory(Some(path)) if path.as_os_str().is_empty() => {
            "(a move was cut short)".into()
        }
        SavedState::WalDirectory(Some(path)) => path.display().to_string(),
        SavedState::Swap(file) => file.as_ref().map_or(0, |file| file.bytes).to_string(),
        SavedState::Affinity { pid: None, .. } => "(no server runs)".into(),
        SavedState::Affinity { cpus, .. } => cpus.clone(),
        SavedState::OwnFile(None) => "(no file)".into(),
        SavedState::OwnFile(Some(text)) => format!("{} lines", text.lines().count()),
        SavedState::Held => "(not held)".into(),
        SavedState::Made(objects) if objects.is_empty() => "(not there)".into(),
        SavedState::Made(objects) => objects.join(", "),
        SavedState::Database(false) => "(not there)".into(),
        SavedState::Database(true) => "there".into(),
        SavedState::Objects(objects) => format!("{} objects", objects.len()),
    }
}

/// A parameter's value in postgresql.auto.conf, asked of the server.
pub(crate) fn in_auto_conf(server: &mut Server, name: &str) -> Result<Option<String>, ServerError> {
    let sql = format!(
        "SELECT setting FROM pg_file_settings WHERE name = '{}' AND sourcefile LIKE '%{AUTO_CONF}' \
         ORDER BY seqno DESC LIMIT 1",
        name.replace('\'', "''")
    );
    let value = server.value(&format!("reading {AUTO_CONF}"), &sql)?;
    Ok(value.map(|value| one_spelling(name, &value)))
}

/// Whether a server may run in a data directory: one that is not known to be stopped may.
fn may_run(host: &dyn HostAccess, data: &Path) -> bool {
    !matches!(
        Postmaster::of_data(host, data),
        Err(NoPostmaster::NoFile(_) | NoPostmaster::NotRunning(_))
    )
}

#[cfg(test)]
mod tests;
