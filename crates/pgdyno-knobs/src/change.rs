//! Applying settings: read, journal, write, read back, verify.

/// What the hosts of tests leave to their `files`: all but some writes.
#[cfg(test)]
macro_rules! leaves_to_its_files {
    () => {
        fn read_in(&self, directory: &std::path::Path, name: &str) -> Result<String, HostError> {
            self.files.read_in(directory, name)
        }
        fn read(&self, path: &str) -> Result<String, HostError> {
            self.files.read(path)
        }
        fn list(&self, path: &str) -> Result<Vec<String>, HostError> {
            self.files.list(path)
        }
        fn read_link(&self, path: &str) -> Result<String, HostError> {
            self.files.read_link(path)
        }
        fn device_of(&self, path: &str) -> Result<(u32, u32), HostError> {
            self.files.device_of(path)
        }
        fn directory(&self, path: &std::path::Path) -> Result<pgdyno_host::Directory, HostError> {
            self.files.directory(path)
        }
        fn identity_of(&self, path: &str) -> Result<pgdyno_host::Identity, HostError> {
            self.files.identity_of(path)
        }
        fn writable(&self, path: &str) -> Result<(), HostError> {
            self.files.writable(path)
        }
        fn replace_raw(&self, path: &str, content: Option<&str>) -> Result<(), HostError> {
            self.files.replace_raw(path, content)
        }
        fn hold_raw(&self, path: &str, value: &str) -> Result<std::fs::File, HostError> {
            self.files.hold_raw(path, value)
        }
    };
}

mod kernel;

pub use kernel::DROP_CACHES;
mod made;
mod parameter;
mod whole;

use crate::applied::{Applied, ApplyError};
use crate::catalogue::{Catalogue, Cost, Kind, Knob, Setting};
use crate::consent::Agreed;
use crate::journal::{Entry, Journal, JournalError, Journals, Keep, Patience, Purpose, Scope};
use crate::persist::Persisted;
use crate::reader::Reader;
use crate::restore::{Restored, Restorer, groups_of, merged};
use crate::target::Target;
use crate::undo::{AUTO_CONF, SavedState, UndoUnit, UndoUnitError};
use parameter::Parameter;
use pgdyno_host::HostAccess;
use pgdyno_sandbox::Control;
use pgdyno_server::{Server, autoconf, pause, reload};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// When the server is restarted for settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Every time, so that every treatment begins with the same caches.
    Always,
    /// Every time, and the kernel's page cache is dropped meanwhile.
    Cold,
    /// Only when a setting asks for it.
    WhenNeeded,
}

/// Whether settings of the host are changed too, beside those of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfHost {
    /// Those of the server alone.
    No,
    /// Those of the host too: no other process may change it meanwhile.
    Yes,
    /// Those of the host that are the server's own, as its control group's, while another changer
    /// of this process keeps other processes from the host.
    Beside,
}

/// A server that crashed comes back by itself within this time, or not at all.
const COMES_BACK: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Turns knobs and remembers how they were.
pub struct Changer<'a> {
    host: &'a dyn HostAccess,
    catalogue: &'a Catalogue,
    target: Option<Target>,
    journal: Journal,
    /// Whether no other process may change the host meanwhile.
    has_host: bool,
    /// Undo units other than the server's parameters that were touched, in order.
    units: Vec<Touched>,
    /// What the journal calls the kernel files that were written, by their path.
    touched_as: BTreeMap<String, (String, Knob)>,
    /// Server parameters that were touched: value before the first change, and now, in
    /// postgresql.auto.conf.
    parameters: BTreeMap<String, Parameter>,
    /// Pages that were last asked for.
    pool_asked: Option<u64>,
    held: Vec<Held>,
}

/// A file whose value holds as long as it is open.
struct Held {
    path: String,
    value: String,
    _open: File,
}

/// An undo unit that was touched.
struct Touched {
    unit: UndoUnit,
    first: SavedState,
    /// As the last write left it; `None` where that was cut short.
    last: Option<SavedState>,
    /// Which of its files were written.
    files: BTreeSet<usize>,
}

impl Touched {
    /// Whether one of its files is ours to look after: of several that set others again, those that
    /// were written.
    fn has(&self, file: usize) -> bool {
        let UndoUnit::Files { leads, .. } = &self.unit else {
            return true;
        };
        *leads <= 1 || file >= *leads || self.files.contains(&file)
    }
}

/// When a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// While the server runs with what it had.
    Before,
    /// While it is stopped, if it has to be.
    Down,
    /// When it runs with what it is to have.
    After,
}

impl UndoUnit {
    fn phase(&self) -> Phase {
        match self {
            UndoUnit::Storage { .. } => Phase::Before,
            // A first process of its own has CPUs of its own.
            UndoUnit::Affinity { .. } | UndoUnit::Held { .. } | UndoUnit::OwnFile { .. } => Phase::After,
            // A sandbox's group is made when it starts.
            UndoUnit::Files { .. } if self.is_of_group() => Phase::After,
            _ => Phase::Down,
        }
    }
}

/// Puts a text in the place of postgresql.auto.conf.
fn write_auto_conf(data: &Path, text: String) -> Result<SavedState, UndoUnitError> {
    autoconf::replace(data, text.as_bytes()).map_err(|source| UndoUnitError::AutoConf {
        path: autoconf::path_in(data),
        action: "written",
        source,
    })?;
    Ok(SavedState::AutoConf(text))
}

impl<'a> Changer<'a> {
    /// Begins a journal in `journals` for changes to `target`, to the host where `of_host` says so,
    /// or to the host alone; another process that changes the same is waited for as `patience`
    /// says. `by` is the user who does it.
    pub fn begin(
        host: &'a dyn HostAccess,
        catalogue: &'a Catalogue,
        target: Option<Target>,
        journals: &Journals,
        purpose: &str,
        (by, of_host): (Option<String>, OfHost),
        patience: &mut Patience<'_>,
    ) -> Result<Changer<'a>, ApplyError> {
        let boot_id = pgdyno_host::boot_id(host)?;
        let reference = target.as_ref().map(|target| target.reference.clone());
        let was_running = target.as_ref().is_some_and(|target| target.was_running);
        let scope = Scope {
            host: of_host == OfHost::Yes || target.is_none(),
            server: target.as_ref().map(Target::server_key),
        };
        let purpose = Purpose {
            by,
            server_key: scope.server.clone(),
            ..Purpose::now(boot_id, purpose.to_owned(), reference, was_running)
        };
        let mut journal = Journal::begin(journals, purpose, &scope, patience)?;
        if let Some(target) = &target {
            let (keys, data_of) = target.shown_to_others();
            journal.of_server(keys, data_of);
        }
        Ok(Changer {
            host,
            catalogue,
            target,
            journal,
            has_host: scope.host || of_host == OfHost::Beside,
            units: Vec::new(),
            touched_as: BTreeMap::new(),
            parameters: BTreeMap::new(),
            pool_asked: None,
            held: Vec::new(),
        })
    }

    /// The server whose knobs are turned; an error for a host alone.
    pub fn target(&self) -> Result<&Target, ApplyError> {
        self.reader().target()
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            host: self.host,
            catalogue: self.catalogue,
            target: self.target.as_ref(),
            journals: None,
        }
    }

    fn can_restart(&self) -> bool {
        self.target
            .as_ref()
            .is_some_and(|target| target.control.can_restart())
    }

    /// Whether a setting could be applied here at all, found without changing anything.
    pub fn check(&self, setting: &Setting) -> Result<(), ApplyError> {
        self.reader().check(setting)
    }

    /// Brings the target to exactly `settings`: what they name is set, and what was touched before
    /// and is not named is restored. Returns what took effect, in the order of `settings`.
    pub fn apply(
        &mut self,
        settings: &[Agreed<Setting>],
        restart: Restart,
    ) -> Result<Vec<Applied>, ApplyError> {
        let settings: Vec<Setting> = settings.iter().map(|agreed| Setting::clone(agreed)).collect();
        let settings = &settings[..];
        for setting in settings {
            self.catalogue.check_settable(setting)?;
        }
        self.check_foreign()?;
        self.ensure_running()?;
        let wholes = self.whole_changes(settings)?;
        self.change_wholes(&wholes, Phase::Before)?;
        let mut needs_restart = restart != Restart::WhenNeeded && self.can_restart();
        needs_restart |= self.change_parameters(settings)?;
        let kernel = self.kernel_changes(settings, Phase::Down)?;
        needs_restart |=
            self.target.is_some() && kernel.iter().any(|change| change.knob.cost == Cost::Restart);
        needs_restart |= self.moves_wal(&wholes)?;
        // Huge pages in use cannot leave their pool, so the server is down while the kernel's knobs
        // are turned.
        if needs_restart {
            self.stop()?;
        }
        // The WAL moves first: the settings of its disk are meant for the one that it is on then.
        let turned = self
            .change_wholes(&wholes, Phase::Down)
            .and_then(|()| self.change_kernels(settings, Phase::Down))
            .and_then(|()| match restart {
                Restart::Cold => kernel::drop_caches(self.host),
                Restart::Always | Restart::WhenNeeded => Ok(()),
            });
        if needs_restart {
            // Whatever went wrong, the server is not left down.
            let started = self.start();
            turned.and(started)?;
        } else {
            turned?;
            if self.target.is_some() {
                reload(&mut self.reader().server()?)?;
            }
        }
        self.change_kernels(settings, Phase::After)?;
        self.change_wholes(&wholes, Phase::After)?;
        self.check_unnamed(settings)?;
        self.verify(settings)
    }

    /// Leaves the changes as they are and lets go of the journal, whose file is returned.
    pub fn keep(self, keep: Keep) -> Result<PathBuf, JournalError> {
        self.journal.keep(keep)
    }

    /// Restores everything and closes the journal.
    pub fn restore(self, restorer: &Restorer<'_>) -> Result<Vec<Restored>, JournalError> {
        // The connection as it is known here: the journal does not hold its password.
        let restorer = Restorer {
            conninfo: self.target.as_ref().map(|target| target.conninfo.clone()),
            ..*restorer
        };
        restorer.restore(self.journal)
    }

    /// How settings that are in force now can survive a reboot.
    pub fn persisted(&self, settings: &[Setting]) -> Result<Persisted, ApplyError> {
        self.reader().persisted(settings)
    }

    /// Starts a server that has gone away since the last time, or waits for it where only its owner
    /// can start it.
    ///
    /// # Errors
    ///
    /// A server that does not come back.
    pub fn ensure_running(&mut self) -> Result<(), ApplyError> {
        let Some(target) = &self.target else {
            return Ok(());
        };
        let conninfo = target.conninfo.clone();
        let Err(mut error) = Server::connect(&conninfo) else {
            return Ok(());
        };
        if target.control.can_restart() {
            return match self.start() {
                // It runs with its old settings now, which is all that is asked for here.
                Err(ApplyError::DoesNotStart(_)) => Ok(()),
                other => other,
            };
        }
        let deadline = Instant::now() + COMES_BACK;
        while Instant::now() < deadline {
            pause(LOOK_AGAIN);
            match Server::connect(&conninfo) {
                Ok(_) => return Ok(()),
                Err(again) => error = again,
            }
        }
        Err(error.into())
    }

    /// The one function through which anything is changed: the old state is on disk before `write`
    /// is called. What is written is `file` of the undo unit, where that has several.
    fn change(
        &mut self,
        knob: &str,
        (unit, file): (&UndoUnit, usize),
        before: SavedState,
        writing: Option<&str>,
        write: impl FnOnce(&mut Self) -> Result<SavedState, ApplyError>,
    ) -> Result<SavedState, ApplyError> {
        if unit.is_of_host() && !self.has_host {
            return Err(ApplyError::NotAnnounced {
                knob: knob.to_owned(),
            });
        }
        let intent = self.journal.intent(knob, (unit, file), before, writing);
        self.journal.append(&intent)?;
        let after = write(self)?;
        self.journal.append(&Entry::Done {
            after: after.clone().in_later_line(),
        })?;
        Ok(after)
    }

    /// Stops the server, where stopping and starting are apart. Of a user's own the journal says so
    /// first: one that is down without it was stopped by somebody else.
    ///
    /// # Errors
    ///
    /// It cannot be stopped, or there is none.
    pub fn stop(&mut self) -> Result<(), ApplyError> {
        if self.target()?.control.manager().is_some() {
            self.journal.append(&Entry::Stopping)?;
        }
        self.target()?.control.stop()?;
        Ok(())
    }

    fn start_once(&mut self) -> Result<(), ApplyError> {
        self.target()?.control.start()?;
        if self.target()?.control.manager().is_some() {
            self.journal.append(&Entry::Started)?;
        }
        Ok(())
    }

    /// Starts the server; if it does not come up, the settings from before the first change come
    /// back and it starts with those.
    fn start(&mut self) -> Result<(), ApplyError> {
        let Err(error) = self.start_once() else {
            return Ok(());
        };
        let target = self.target()?;
        // Where the server runs, one of its standbys does not, and that is not a fault of its
        // settings.
        let has_standbys =
            matches!(&target.control, Control::Sandbox(sandbox) if sandbox.record().standbys.is_some());
        if has_standbys && Server::connect(&target.conninfo).is_ok() {
            return Err(error);
        }
        let Some(data) = target.data.clone() else {
            return Err(error);
        };
        let unit = UndoUnit::AutoConf { data: data.clone() };
        let SavedState::AutoConf(now) = unit.capture(self.reader().access())? else {
            return Err(error);
        };
        let groups = groups_of(&self.journal.content()?.entries);
        let first = groups.iter().find_map(|group| match &group.first {
            // What others have set since stays theirs.
            SavedState::AutoConf(first) if group.unit == unit => {
                Some(merged(first, &group.foreign(first, &now)))
            }
            _ => None,
        });
        let Some(first) = first else {
            return Err(error);
        };
        self.change(AUTO_CONF, (&unit, 0), SavedState::AutoConf(now), None, |_| {
            Ok(write_auto_conf(&data, first)?)
        })?;
        for parameter in self.parameters.values_mut() {
            parameter.now.clone_from(&parameter.first);
        }
        // It may run and let nobody in.
        self.stop()?;
        self.start_once()?;
        Err(ApplyError::DoesNotStart(error.to_string()))
    }

    fn verify(&self, settings: &[Setting]) -> Result<Vec<Applied>, ApplyError> {
        let mut applied = self.reader().verify(settings)?;
        for line in &mut applied {
            let knob = self.catalogue.get(&line.setting.knob)?;
            match knob.kind {
                Kind::HugepagePool if knob.servers_of_pool(&line.setting.value).is_some() => {
                    line.took = line.effective.parse().ok() == self.pool_asked;
                }
                Kind::HeldFile => line.effective.clone_from(&line.setting.value),
                _ => {}
            }
        }
        Ok(applied)
    }
}

#[cfg(test)]
mod tests;
