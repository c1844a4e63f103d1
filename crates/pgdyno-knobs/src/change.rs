//! Applying settings: read, journal, write, read back, verify.

mod kernel;

use crate::catalogue::{AUTO, Catalogue, CatalogueError, Cost, Kind, Setting};
use crate::cell::{Captured, Cell, CellError, ServerRef, in_auto_conf, read_value};
use crate::gucvalue;
use crate::journal::{Entry, Journal, JournalError, Purpose};
use crate::restore::{PutBack, Restorer};
use kernel::KernelChange;
use pgdyno_host::{HostAccess, HostError};
use pgdyno_server::{
    Conninfo, Control, ControlError, Guc, Server, ServerError, alter_system_reset, alter_system_set,
    autoconf, pause, reload, show,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// When the server is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Every time, so that every treatment begins with the same caches.
    Always,
    /// Only when a setting asks for it.
    WhenNeeded,
}

/// The target whose knobs are turned.
pub struct Target {
    /// How to connect.
    pub conninfo: Conninfo,
    /// Starting and stopping.
    pub control: Control,
    /// How the journal names it.
    pub reference: ServerRef,
    /// Whether the server ran before anybody started it for the experiment; what was stopped is stopped again.
    pub was_running: bool,
    /// The data directory, where its files can be reached from here.
    pub data: Option<PathBuf>,
    /// The disk that holds it, a name in /sys/block.
    pub disk: Option<String>,
}

/// What became of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// What was asked for.
    pub setting: Setting,
    /// What the target reports now. This counts.
    pub effective: String,
    /// Whether that is the same.
    pub took: bool,
}

/// Why settings could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not in the catalogue, or out of range.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A kernel file or the server's file.
    #[error(transparent)]
    Cell(#[from] CellError),
    /// Nothing is changed that is not in the journal first.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The server refused something.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Starting or stopping.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The server does not come up with these settings; the old ones are back and it runs.
    #[error("the server does not start with these settings: {0}")]
    DoesNotStart(String),
    /// This version has no such parameter.
    #[error("PostgreSQL {version} has no parameter {name}")]
    NoParameter {
        /// Its name.
        name: String,
        /// The server's version.
        version: String,
    },
    /// The server's host is another machine, or cannot be told to be this one.
    #[error("the server's files are not within reach here, so its host is not known to be this machine")]
    HostElsewhere,
    /// A parameter that could keep the server from starting, and no file to take it back in.
    #[error(
        "it needs a restart, and if the server did not start with it, its file could not be mended from here"
    )]
    NoWayBack,
    /// Somebody else turns the same knobs: what is measured then is nobody's treatment.
    #[error("someone else has changed {place} since: it is {found}, and was left as {left}")]
    Foreign {
        /// The kernel file.
        place: String,
        /// As it is now.
        found: String,
        /// As the last write of this process left it.
        left: String,
    },
    /// What was not named did not go back to what it was.
    #[error("{place} did not go back to what it was before")]
    NotBack {
        /// The kernel file.
        place: String,
    },
    /// A pool sized by the server's need, where the need cannot be known.
    #[error("how many huge pages the server needs cannot be computed: {0}")]
    NoPoolSize(String),
}

impl From<HostError> for ApplyError {
    fn from(error: HostError) -> Self {
        ApplyError::Cell(error.into())
    }
}

/// The version since which a server tells how many huge pages it would need.
const POOL_SIZE_TOLD_SINCE: u32 = 15;

/// A server that crashed comes back by itself within this time, or not at all.
const COMES_BACK: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Turns knobs and remembers how they were.
pub struct Changer<'a> {
    host: &'a dyn HostAccess,
    catalogue: &'a Catalogue,
    target: Target,
    journal: Journal,
    /// Kernel cells that were touched, in order.
    cells: Vec<Touched>,
    /// Server parameters that were touched: value before the first change, and now, in postgresql.auto.conf.
    parameters: BTreeMap<String, Parameter>,
    /// Pages that were last asked for.
    pool_asked: Option<u64>,
}

/// A kernel cell that was touched.
struct Touched {
    cell: Cell,
    first: Captured,
    /// As the last write left it; `None` where that was cut short.
    last: Option<Captured>,
}

#[derive(Debug, Clone)]
struct Parameter {
    first: Option<String>,
    now: Option<String>,
}

impl<'a> Changer<'a> {
    /// Begins a journal in `journals` for changes to `target`.
    pub fn begin(
        host: &'a dyn HostAccess,
        catalogue: &'a Catalogue,
        target: Target,
        journals: &Path,
        purpose: &str,
    ) -> Result<Changer<'a>, ApplyError> {
        let boot_id = pgdyno_host::boot_id(host)?;
        let reference = Some(target.reference.clone());
        let purpose = Purpose::now(boot_id, purpose.to_owned(), reference, target.was_running);
        let journal = Journal::begin(journals, purpose)?;
        Ok(Changer {
            host,
            catalogue,
            target,
            journal,
            cells: Vec::new(),
            parameters: BTreeMap::new(),
            pool_asked: None,
        })
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether a setting could be applied here at all, found without changing anything.
    pub fn check(&self, setting: &Setting) -> Result<(), ApplyError> {
        let knob = self.catalogue.check(setting)?;
        if knob.kind == Kind::Guc {
            let mut server = Server::connect(&self.target.conninfo)?;
            let guc = self.parameter(&mut server, &knob.id)?;
            if guc.context == "postmaster" {
                if !self.target.control.can_restart() {
                    return Err(ControlError::NotAllowed.into());
                }
                // A value that keeps the server from starting can then be taken back in the file alone.
                if self.target.data.is_none() {
                    return Err(ApplyError::NoWayBack);
                }
            }
            return Ok(());
        }
        if self.target.data.is_none() {
            return Err(ApplyError::HostElsewhere);
        }
        if knob.cost == Cost::Restart && !self.target.control.can_restart() {
            return Err(ControlError::NotAllowed.into());
        }
        if knob.kind == Kind::HugepagePool && setting.value == AUTO {
            let version = Server::connect(&self.target.conninfo)?.version();
            if !matches!(self.target.control, Control::Sandbox(_)) || version.major < POOL_SIZE_TOLD_SINCE {
                let why = "only a sandbox of 15 or later tells; give a number of pages";
                return Err(ApplyError::NoPoolSize(why.into()));
            }
        }
        let Some(path) = knob.path(self.target.disk.as_deref())? else {
            return Ok(());
        };
        self.host.writable(&path)?;
        if knob.kind == Kind::Bracket {
            let text = self.host.read(&path)?;
            let choices: Vec<&str> = text
                .split_whitespace()
                .map(|w| w.trim_matches(['[', ']']))
                .collect();
            if !choices.contains(&setting.value.as_str()) {
                return Err(CatalogueError::Value {
                    id: knob.id.clone(),
                    value: setting.value.clone(),
                    expected: format!("one of {} on this host", choices.join(", ")),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Brings the target to exactly `settings`: what they name is set, and what was touched before and is not named
    /// goes back to what it was. Returns what took effect, in the order of `settings`.
    pub fn apply(&mut self, settings: &[Setting], restart: Restart) -> Result<Vec<Applied>, ApplyError> {
        for setting in settings {
            self.catalogue.check(setting)?;
        }
        self.check_foreign()?;
        self.ensure_running()?;
        let mut needs_restart = restart == Restart::Always && self.target.control.can_restart();
        needs_restart |= self.change_parameters(settings)?;
        let kernel = self.kernel_changes(settings)?;
        needs_restart |= kernel.iter().any(|change| change.knob.cost == Cost::Restart);
        // Huge pages in use cannot leave their pool, so the server is down while the kernel's knobs are turned.
        if needs_restart {
            self.target.control.stop()?;
        }
        let turned = kernel.iter().try_for_each(|change| self.change_kernel(change));
        if needs_restart {
            // Whatever went wrong, the server is not left down.
            let started = self.start();
            turned.and(started)?;
        } else {
            turned?;
            let mut server = Server::connect(&self.target.conninfo)?;
            reload(&mut server)?;
        }
        self.check_unnamed(settings)?;
        self.verify(settings)
    }

    /// Puts everything back and closes the journal.
    pub fn put_back(self, restorer: &Restorer<'_>) -> Result<Vec<PutBack>, JournalError> {
        // The connection as it is known here: the journal does not hold its password.
        let restorer = Restorer {
            conninfo: Some(self.target.conninfo.clone()),
            ..*restorer
        };
        restorer.restore(self.journal)
    }

    /// A server that went away since the last time is started, or waited for where only its owner can do that.
    fn ensure_running(&mut self) -> Result<(), ApplyError> {
        let Err(mut error) = Server::connect(&self.target.conninfo) else {
            return Ok(());
        };
        if self.target.control.can_restart() {
            return match self.start() {
                // It runs with its old settings now, which is all that is asked for here.
                Err(ApplyError::DoesNotStart(_)) => Ok(()),
                other => other,
            };
        }
        let deadline = Instant::now() + COMES_BACK;
        while Instant::now() < deadline {
            pause(LOOK_AGAIN);
            match Server::connect(&self.target.conninfo) {
                Ok(_) => return Ok(()),
                Err(again) => error = again,
            }
        }
        Err(error.into())
    }

    fn parameter(&self, server: &mut Server, name: &str) -> Result<Guc, ApplyError> {
        show(server, name)?.ok_or_else(|| ApplyError::NoParameter {
            name: name.to_owned(),
            version: server.version().to_string(),
        })
    }

    /// Changes what differs in postgresql.auto.conf. Tells whether a restart is needed for it.
    fn change_parameters(&mut self, settings: &[Setting]) -> Result<bool, ApplyError> {
        let mut wanted: BTreeMap<String, Option<String>> = self
            .parameters
            .iter()
            .map(|(name, parameter)| (name.clone(), parameter.first.clone()))
            .collect();
        for setting in settings {
            if self.catalogue.get(&setting.knob)?.kind == Kind::Guc {
                wanted.insert(setting.knob.clone(), Some(setting.value.clone()));
            }
        }
        if wanted.is_empty() {
            return Ok(false);
        }
        let mut server = Server::connect(&self.target.conninfo)?;
        let mut restart = false;
        for (name, value) in wanted {
            let now = match self.parameters.get(&name) {
                Some(parameter) => parameter.now.clone(),
                None => self.in_auto_conf(&mut server, &name)?,
            };
            let first = self
                .parameters
                .get(&name)
                .map_or_else(|| now.clone(), |p| p.first.clone());
            if now != value {
                restart |= self.parameter(&mut server, &name)?.context == "postmaster";
                self.change_parameter(&mut server, &name, value.as_deref())?;
            }
            self.parameters.insert(name, Parameter { first, now: value });
        }
        Ok(restart)
    }

    fn in_auto_conf(&self, server: &mut Server, name: &str) -> Result<Option<String>, ApplyError> {
        if let Some(data) = &self.target.data {
            let Captured::AutoConf(text) = (Cell::AutoConf { data: data.clone() }).capture(self.host)? else {
                return Ok(None);
            };
            return Ok(autoconf::parse(&text).remove(name));
        }
        Ok(in_auto_conf(server, name)?)
    }

    fn change_parameter(
        &mut self,
        server: &mut Server,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), ApplyError> {
        let (cell, before) = match &self.target.data {
            Some(data) => {
                let cell = Cell::AutoConf { data: data.clone() };
                let before = cell.capture(self.host)?;
                (cell, before)
            }
            None => {
                let before = Captured::Parameter(self.in_auto_conf(server, name)?);
                (
                    Cell::Parameter {
                        name: name.to_owned(),
                    },
                    before,
                )
            }
        };
        self.change(name, &cell, before, value, |this| {
            match value {
                Some(value) => alter_system_set(server, name, value)?,
                None => alter_system_reset(server, name)?,
            }
            Ok(match &cell {
                Cell::Parameter { .. } => Captured::Parameter(value.map(str::to_owned)),
                _ => cell.capture(this.host)?,
            })
        })
        .map(drop)
    }

    /// The one function through which anything is changed: the old state is on disk before `write` is called.
    fn change(
        &mut self,
        knob: &str,
        cell: &Cell,
        before: Captured,
        writing: Option<&str>,
        write: impl FnOnce(&mut Self) -> Result<Captured, ApplyError>,
    ) -> Result<Captured, ApplyError> {
        self.journal.append(&Entry::Intent {
            knob: knob.to_owned(),
            cell: cell.clone(),
            before,
            writing: writing.map(str::to_owned),
        })?;
        let after = write(self)?;
        self.journal.append(&Entry::Done { after: after.clone() })?;
        Ok(after)
    }

    /// Starts the server; if it does not come up, the settings from before the first change come back and it starts
    /// with those.
    fn start(&mut self) -> Result<(), ApplyError> {
        let Err(error) = self.target.control.start() else {
            return Ok(());
        };
        let Some(data) = self.target.data.clone() else {
            return Err(error.into());
        };
        let cell = Cell::AutoConf { data: data.clone() };
        let Captured::AutoConf(mut text) = cell.capture(self.host)? else {
            return Err(error.into());
        };
        let first = self
            .journal
            .content()?
            .entries
            .into_iter()
            .find_map(|entry| match entry {
                Entry::Intent {
                    before: Captured::AutoConf(text),
                    ..
                } => Some(text),
                _ => None,
            });
        let Some(first) = first else {
            return Err(error.into());
        };
        let before = Captured::AutoConf(std::mem::replace(&mut text, first));
        self.change("postgresql.auto.conf", &cell, before, None, |_| {
            autoconf::replace(&data, text.as_bytes()).map_err(|source| CellError::AutoConf {
                path: autoconf::path_in(&data),
                action: "written",
                source,
            })?;
            Ok(Captured::AutoConf(text.clone()))
        })?;
        for parameter in self.parameters.values_mut() {
            parameter.now.clone_from(&parameter.first);
        }
        self.target.control.start()?;
        Err(ApplyError::DoesNotStart(error.to_string()))
    }

    fn verify(&self, settings: &[Setting]) -> Result<Vec<Applied>, ApplyError> {
        let mut server = Server::connect(&self.target.conninfo)?;
        settings
            .iter()
            .map(|setting| {
                let knob = self.catalogue.get(&setting.knob)?;
                let (effective, took) = match knob.path(self.target.disk.as_deref())? {
                    None => {
                        let guc = self.settled_parameter(&mut server, &knob.id, &setting.value)?;
                        (guc.shown.clone(), gucvalue::same(&setting.value, &guc))
                    }
                    Some(path) => {
                        let cell = Cell::of_kernel_knob(self.catalogue, knob, self.target.disk.as_deref())?;
                        let change = KernelChange {
                            knob: knob.clone(),
                            cell,
                            path,
                            value: setting.value.clone(),
                        };
                        let now = read_value(self.host, &self.file(&change))?;
                        let took = match setting.value.as_str() {
                            AUTO => now.parse().ok() == self.pool_asked,
                            value => now == value,
                        };
                        (now, took)
                    }
                };
                Ok(Applied {
                    setting: setting.clone(),
                    effective,
                    took,
                })
            })
            .collect()
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
}
