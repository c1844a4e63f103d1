//! Ports of a real server, host, store and clock: thin adapters.

mod data;
mod load;
mod optimizer;
mod room;
mod standby;
mod target;

use crate::error::{LabError, ProviderError};
use crate::measure::Generators;
use crate::plan::{Consent, ServerVariant};
use crate::ports::{Clock, Purpose, Results, Server as _, Servers, TrialTarget};
pub(crate) use load::ASIDE;
pub(crate) use optimizer::RealOptimizers;
use pgdyno_host::{Directory, HostAccess};
use pgdyno_knobs::{ApplyError, Catalogue, Changer, Journals, Patience, RestoreOptions, Restorer, Target};
use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, RestoredRecord, SeriesRecord, StoredExperiment, TreatmentRecord,
    TrialRecord,
};
use pgdyno_sandbox::{BinarySources, Pooler, PoolerError};
use pgdyno_server::{Lookup, pause};
use pgdyno_store::{Store, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use target::RealTarget;

/// Ends the name of a pooler's directory among an experiment's files.
const POOLER: &str = "-pooler";

/// Provides the servers of an experiment: the target, and sandboxes like it that differ in version
/// or place.
pub trait ServerProvider {
    /// Makes the server if it is missing, starts it if it does not run, and returns how its
    /// settings are changed.
    fn target(&mut self, variant: &ServerVariant) -> Result<Target, ProviderError>;

    /// The server is not needed for now; it may be stopped.
    fn leave(&mut self, variant: &ServerVariant) -> Result<(), ProviderError>;

    /// Removes a server of the experiment's own, where it is there.
    fn remove(&mut self, variant: &ServerVariant) -> Result<(), ProviderError>;

    /// The experiment is at its end: what was made for it is removed, the target is as it was.
    fn end(&mut self) -> Result<(), ProviderError>;
}

/// What the adapters work with.
#[derive(Clone, Copy)]
pub(crate) struct Resources<'a> {
    pub(crate) host: &'a Arc<dyn HostAccess>,
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) journals: &'a Journals,
    pub(crate) scratch: &'a Path,
    pub(crate) binaries: &'a BinarySources,
    pub(crate) environment: Lookup<'a>,
    /// Hosts that drive loads, where others do.
    pub(crate) generators: Option<&'a dyn Generators>,
    pub(crate) consent: &'a Consent,
    /// Set to end in order.
    pub(crate) stop: &'a Arc<AtomicBool>,
}

impl<'a> Resources<'a> {
    fn restorer(&self) -> Restorer<'a> {
        Restorer {
            host: &**self.host,
            catalogue: self.catalogue,
            environment: self.environment,
            options: RestoreOptions::default(),
            conninfo: None,
        }
    }

    /// Where a pooler of an experiment has its files.
    fn pooler_directory(&self, files: &str) -> PathBuf {
        self.scratch.join(format!("{files}{POOLER}"))
    }

    /// Names of all experiments' files.
    fn names_of_files(&self) -> Vec<String> {
        let entries = Directory::open(self.scratch).and_then(|scratch| scratch.entries());
        let names = entries.unwrap_or_default().into_iter();
        names
            .filter_map(|(name, _)| name.to_str().map(str::to_owned))
            .collect()
    }

    /// Settings that no treatment changes other processes may change: a host is one process's,
    /// servers are changed side by side.
    fn changer(&self, target: Target, purpose: &Purpose<'_>) -> Result<Changer<'a>, ApplyError> {
        Changer::begin(
            &**self.host,
            self.catalogue,
            Some(target),
            self.journals,
            purpose.text,
            (None, purpose.of_host),
            &mut Patience::none(),
        )
    }
}

/// The servers that the program provides.
pub(crate) struct RealServers<'r, 'a> {
    pub(crate) resources: Resources<'a>,
    pub(crate) provider: &'r mut dyn ServerProvider,
}

fn trouble(what: impl Into<String>) -> impl FnOnce(ProviderError) -> LabError {
    let what = what.into();
    move |source| LabError::ServerVariant { what, source }
}

impl<'a> Servers<'a> for RealServers<'_, 'a> {
    fn go_to(
        &mut self,
        variant: &ServerVariant,
        purpose: &Purpose<'_>,
    ) -> Result<Box<dyn TrialTarget + 'a>, LabError> {
        let what = match variant.is_target() {
            true => "the target".to_owned(),
            false => format!("the server for \"{}\"", variant.label()),
        };
        let target = self.provider.target(variant).map_err(trouble(what))?;
        let changer = match self.resources.changer(target, purpose) {
            Ok(changer) => changer,
            // A server that was made for it does not go on running.
            Err(error) => return Err(LabError::from(error).with_left(self.leave(variant))),
        };
        let mut made = RealTarget {
            resources: self.resources,
            changer,
            scope: purpose.scope,
            session_options: String::new(),
        };
        if !made.is_sandbox() && !purpose.commands.is_empty() && self.resources.consent.data {
            let watched = made.changer.watch_objects(purpose.commands.to_vec());
            if let Err(error) = watched {
                // Its journal would be found as that of a killed experiment.
                let _ = made.changer.restore(&self.resources.restorer());
                return Err(error.into());
            }
        }
        Ok(Box::new(made))
    }

    fn leave(&mut self, variant: &ServerVariant) -> Result<(), LabError> {
        self.provider.leave(variant).map_err(trouble("leaving a server"))
    }

    fn remove(&mut self, variant: &ServerVariant) -> Result<(), LabError> {
        self.provider
            .remove(variant)
            .map_err(trouble("removing a server"))
    }

    fn end_left_behind(&mut self) -> Result<(), LabError> {
        let names = self.resources.names_of_files().into_iter();
        for name in names.filter(|name| name.ends_with(POOLER)) {
            match Pooler::end_left_behind(&self.resources.scratch.join(name)) {
                Err(PoolerError::InUse { .. }) => {}
                ended => _ = ended?,
            }
        }
        Ok(())
    }

    fn end(&mut self, files: &str) -> Result<(), LabError> {
        let is_own = |name: &str| name == files || name.starts_with(&format!("{files}-"));
        if let Ok(scratch) = Directory::open(self.resources.scratch) {
            for name in self.resources.names_of_files() {
                if is_own(&name) {
                    // What cannot be removed is in nobody's way.
                    let _ = scratch.remove_tree(name);
                }
            }
        }
        self.provider
            .end()
            .map_err(trouble("removing what the experiment had made"))
    }
}

impl Results for Store {
    fn begin(&mut self, record: &ExperimentRecord) -> Result<i64, StoreError> {
        Store::begin(self, record)
    }

    fn add_treatment(&mut self, id: i64, treatment: &TreatmentRecord) -> Result<(), StoreError> {
        Store::add_treatment(self, id, treatment)
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        Store::keep(self)
    }

    fn add_trials(&mut self, id: i64, trials: &[(TrialRecord, SeriesRecord)]) -> Result<(), StoreError> {
        Store::add_trials(self, id, trials).map(drop)
    }

    fn experiment(&self, id: i64) -> Result<StoredExperiment, StoreError> {
        Store::experiment(self, id)
    }

    fn set_status(&mut self, id: i64, status: ExperimentStatus) -> Result<(), StoreError> {
        Store::set_status(self, id, status)
    }

    fn set_restored(&mut self, id: i64, lines: &[RestoredRecord]) -> Result<(), StoreError> {
        Store::set_restored(self, id, lines)
    }
}

/// The clocks of this machine.
pub(crate) struct RealClock<'a> {
    pub(crate) begun: Instant,
    pub(crate) minute_of_day: &'a dyn Fn() -> u32,
}

impl Clock for RealClock<'_> {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn unix_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn seed(&self) -> u64 {
        self.unix_ms() ^ u64::from(std::process::id()).rotate_left(32)
    }

    fn minute_of_day(&self) -> u32 {
        (self.minute_of_day)()
    }

    fn pause(&self, length: Duration) {
        pause(length);
    }
}
