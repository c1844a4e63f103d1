//! Applying settings: read, journal, write, read back, verify.

use crate::catalogue::{AUTO, Catalogue, CatalogueError, Cost, Kind, Knob, Setting};
use crate::cell::{Captured, Cell, CellError, KernelFile, ServerRef, in_auto_conf, read_value};
use crate::gucvalue;
use crate::journal::{Entry, Journal, JournalError, Purpose};
use crate::restore::{PutBack, Restorer};
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

/// Pages beyond the server's need: its own share of the pool is rounded up in several places.
const POOL_HEADROOM: f64 = 1.02;
/// The version since which a server tells how many huge pages it would need.
const POOL_SIZE_TOLD_SINCE: u32 = 15;
/// Attempts to fill a pool, compacting memory in between.
const POOL_ATTEMPTS: u32 = 3;

/// A server that crashed comes back by itself within this time, or not at all.
const COMES_BACK: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Turns knobs and remembers how they were.
pub struct Changer<'a> {
    host: &'a dyn HostAccess,
    catalogue: &'a Catalogue,
    target: Target,
    journal: Journal,
    /// Kernel cells that were touched, in order, with their first state.
    cells: Vec<(Cell, Captured)>,
    /// Server parameters that were touched: value before the first change, and now, in postgresql.auto.conf.
    parameters: BTreeMap<String, Parameter>,
    /// Pages that were last asked for.
    pool_asked: Option<u64>,
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
        let running = Server::connect(&target.conninfo).is_ok();
        let reference = Some(target.reference.clone());
        let journal = Journal::begin(
            journals,
            Purpose::now(boot_id, purpose.to_owned(), reference, running),
        )?;
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

    /// What an earlier treatment touched and this one does not name must be as before.
    fn check_unnamed(&self, settings: &[Setting]) -> Result<(), ApplyError> {
        let mut named = BTreeMap::new();
        for setting in settings {
            if let Some(path) = self
                .catalogue
                .get(&setting.knob)?
                .path(self.target.disk.as_deref())?
            {
                named.insert(path, setting.value.clone());
            }
        }
        for (cell, captured) in &self.cells {
            let now = cell.capture(self.host)?;
            let (Cell::Files { files, counterparts }, Captured::Files(first), Captured::Files(now)) =
                (cell, captured, now)
            else {
                continue;
            };
            if *counterparts && files.iter().any(|file| named.contains_key(&file.path)) {
                continue;
            }
            if lead_differs(files, captured, *counterparts, |path| named.get(path).cloned()) {
                continue;
            }
            for ((file, first), now) in files.iter().zip(first).zip(&now) {
                if first != now && !named.contains_key(&file.path) {
                    return Err(ApplyError::NotBack {
                        place: file.path.clone(),
                    });
                }
            }
        }
        Ok(())
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
    }

    /// The one function through which anything is changed: the old state is on disk before `write` is called.
    fn change(
        &mut self,
        knob: &str,
        cell: &Cell,
        before: Captured,
        writing: Option<&str>,
        write: impl FnOnce(&mut Self) -> Result<Captured, ApplyError>,
    ) -> Result<(), ApplyError> {
        self.journal.append(&Entry::Intent {
            knob: knob.to_owned(),
            cell: cell.clone(),
            before,
            writing: writing.map(str::to_owned),
        })?;
        let after = write(self)?;
        Ok(self.journal.append(&Entry::Done { after })?)
    }

    /// Which kernel files are to be written: what is no longer named goes back first, then what is named.
    fn kernel_changes(&self, settings: &[Setting]) -> Result<Vec<KernelChange>, ApplyError> {
        let mut named = Vec::new();
        for setting in settings {
            let knob = self.catalogue.get(&setting.knob)?;
            if let Some(path) = knob.path(self.target.disk.as_deref())? {
                let cell = Cell::of_kernel_knob(self.catalogue, knob, self.target.disk.as_deref())?;
                named.push(KernelChange {
                    knob: knob.clone(),
                    cell,
                    path,
                    value: setting.value.clone(),
                });
            }
        }
        // Within a cell, the file that sets the others anew is written first.
        named.sort_by_key(KernelChange::place_in_cell);
        let mut changes: Vec<KernelChange> = Vec::new();
        let is_named = |path: &str| named.iter().any(|change| change.path == path);
        for (cell, first) in &self.cells {
            let Cell::Files { files, counterparts } = cell else {
                continue;
            };
            // Of counterparts, setting one unsets the other: there is nothing to bring back beside it.
            if *counterparts && files.iter().any(|file| is_named(&file.path))
                || cell.capture(self.host)? == *first
            {
                continue;
            }
            let left_to_kernel = lead_differs(files, first, *counterparts, |path| {
                named
                    .iter()
                    .find(|change| change.path == path)
                    .map(|change| change.value.clone())
            });
            for (path, value) in cell.writes_back(first) {
                if is_named(&path) || left_to_kernel {
                    continue;
                }
                let knob = self.knob_of(&path).unwrap_or_else(|| self.knob_of_cell(cell));
                let change = KernelChange {
                    knob,
                    cell: cell.clone(),
                    path,
                    value,
                };
                if *counterparts || self.is_to_be_written(&change, &changes)? {
                    changes.push(change);
                }
            }
        }
        for change in named {
            if self.is_to_be_written(&change, &changes)? {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// A pool's size is only known once the server is stopped; and a file is set anew by what stands first in its cell.
    fn is_to_be_written(&self, change: &KernelChange, before: &[KernelChange]) -> Result<bool, ApplyError> {
        let set_anew = before
            .iter()
            .any(|other| other.cell == change.cell && other.place_in_cell() == 0);
        let now = read_value(self.host, &self.file(change))?;
        Ok(change.knob.kind == Kind::HugepagePool || set_anew || now != change.value)
    }

    fn knob_of(&self, path: &str) -> Option<Knob> {
        self.catalogue
            .iter()
            .find(|knob| knob.path(self.target.disk.as_deref()).ok().flatten().as_deref() == Some(path))
            .cloned()
    }

    /// A companion file is in the catalogue under its cell's first file at least.
    fn knob_of_cell(&self, cell: &Cell) -> Knob {
        self.knob_of(&cell.place())
            .unwrap_or_else(|| unreachable!("cells are made of knobs of the catalogue"))
    }

    fn file(&self, change: &KernelChange) -> KernelFile {
        match &change.cell {
            Cell::Files { files, .. } => files.iter().find(|file| file.path == change.path).cloned(),
            _ => None,
        }
        .unwrap_or(KernelFile {
            path: change.path.clone(),
            form: crate::cell::Form::Plain,
        })
    }

    fn change_kernel(&mut self, change: &KernelChange) -> Result<(), ApplyError> {
        let is_pool = change.knob.kind == Kind::HugepagePool;
        let before = change.cell.capture(self.host)?;
        let value = if change.value == AUTO {
            let there = pool_of(self.first_of(&change.cell).unwrap_or(&before));
            self.pool_size()?.max(there).to_string()
        } else {
            change.value.clone()
        };
        if self.first_of(&change.cell).is_none() {
            self.cells.push((change.cell.clone(), before.clone()));
        }
        if is_pool {
            self.pool_asked = value.parse().ok();
        }
        let file = self.file(change);
        self.change(&change.knob.id, &change.cell, before, Some(&value), |this| {
            this.host.write_raw(&change.path, &value)?;
            for _ in 1..POOL_ATTEMPTS {
                if !is_pool || read_value(this.host, &file)? == value {
                    break;
                }
                // An action, not a state: there is nothing to put back.
                let _ = this.host.write_raw("/proc/sys/vm/compact_memory", "1");
                this.host.write_raw(&change.path, &value)?;
            }
            Ok(change.cell.capture(this.host)?)
        })
    }

    fn first_of(&self, cell: &Cell) -> Option<&Captured> {
        self.cells
            .iter()
            .find(|(known, _)| known == cell)
            .map(|(_, first)| first)
    }

    /// Pages that the stopped server will need beside what others use of the pool.
    fn pool_size(&self) -> Result<u64, ApplyError> {
        let Control::Sandbox(sandbox) = &self.target.control else {
            return Err(ApplyError::NoPoolSize(
                "it needs a sandbox; give a number of pages".into(),
            ));
        };
        let needed = sandbox
            .computed_parameter("shared_memory_size_in_huge_pages")
            .map_err(|e| {
                ApplyError::NoPoolSize(format!(
                    "{e} (the server tells it since 15); give a number of pages"
                ))
            })?;
        let needed: u64 = needed.parse().map_err(|_| {
            ApplyError::NoPoolSize(format!("the server says \"{needed}\"; give a number of pages"))
        })?;
        let meminfo = self.host.read("/proc/meminfo")?;
        let pages = |name: &str| -> u64 {
            let line = meminfo
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
        };
        let others =
            pages("HugePages_Total").saturating_sub(pages("HugePages_Free")) + pages("HugePages_Rsvd");
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of pages"
        )]
        let needed = (needed as f64 * POOL_HEADROOM).ceil() as u64;
        Ok(others + needed)
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

/// Whether the file that sets the others of its cell anew is to have another value than before: what the others are
/// then is the kernel's choice, and their values from before may not even be legal.
fn lead_differs(
    files: &[KernelFile],
    first: &Captured,
    counterparts: bool,
    named: impl Fn(&str) -> Option<String>,
) -> bool {
    let (Some(lead), Captured::Files(first), false) = (files.first(), first, counterparts) else {
        return false;
    };
    named(&lead.path).is_some_and(|value| first.first() != Some(&Some(value)))
}

impl KernelChange {
    fn place_in_cell(&self) -> usize {
        match &self.cell {
            Cell::Files { files, .. } => files.iter().position(|file| file.path == self.path).unwrap_or(0),
            _ => 0,
        }
    }
}

/// Pages that were in the pool before: what somebody else has put there is not taken away.
fn pool_of(captured: &Captured) -> u64 {
    match captured {
        Captured::Files(values) => values
            .first()
            .cloned()
            .flatten()
            .and_then(|pages| pages.parse().ok())
            .unwrap_or(0),
        _ => 0,
    }
}

/// A kernel file that is to be written.
struct KernelChange {
    knob: Knob,
    cell: Cell,
    path: String,
    value: String,
}
