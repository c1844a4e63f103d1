//! The laboratory: experiments on real servers.

use crate::error::LabError;
use crate::measure::Generators;
use crate::plan::Consent;
use crate::ports::Results;
use crate::real::{RealClock, RealOptimizers, RealServers, Resources, ServerProvider};
use crate::runner::{Begin, Event, Runner, Summary};
use pgdyno_host::HostAccess;
use pgdyno_knobs::{Catalogue, Journals};
use pgdyno_sandbox::BinarySources;
use pgdyno_server::Lookup;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Host, store, servers and consent that an experiment runs with.
pub struct Lab<'a> {
    /// The host: its settings are changed and facts read there.
    pub host: &'a Arc<dyn HostAccess>,
    /// Knobs that may be turned.
    pub catalogue: &'a Catalogue,
    /// Directory and registry of journals.
    pub journals: &'a Journals,
    /// Where files of an experiment are kept while it runs: copies of data, what poolers need.
    pub scratch: &'a Path,
    /// Where programs of PostgreSQL come from.
    pub binaries: &'a BinarySources,
    /// Store that takes records and series.
    pub store: &'a mut dyn Results,
    /// Environment variables, for passwords of servers.
    pub environment: Lookup<'a>,
    /// Hosts that drive loads, where a file names some.
    pub generators: Option<&'a dyn Generators>,
    /// What the user has agreed to.
    pub consent: &'a Consent,
    /// The servers that treatments run on, which it starts and stops.
    pub provider: &'a mut dyn ServerProvider,
    /// Gives the minutes since midnight, local time.
    pub minute_of_day: &'a dyn Fn() -> u32,
    /// Set to end in order.
    pub stop: &'a Arc<AtomicBool>,
    /// Receives the events of the run, in order.
    pub on_event: &'a mut dyn FnMut(Event<'_>),
}

impl Lab<'_> {
    /// Runs an experiment from its beginning.
    ///
    /// # Errors
    ///
    /// What keeps it from running to its end; what was changed is restored then too.
    pub fn run(&mut self, begin: Begin<'_>) -> Result<Summary, LabError> {
        self.with_runner(|runner| runner.run(begin))
    }

    /// Goes on with an experiment that was interrupted or killed: what is stored is not run again.
    ///
    /// # Errors
    ///
    /// As of [`Lab::run`]; an experiment that is finished, or ran on another target.
    pub fn resume(&mut self, id: i64, name_of_target: &str) -> Result<Summary, LabError> {
        self.with_runner(|runner| runner.resume(id, name_of_target))
    }

    fn with_runner<T>(&mut self, act: impl FnOnce(&mut Runner<'_, '_>) -> T) -> T {
        let resources = Resources {
            host: self.host,
            catalogue: self.catalogue,
            journals: self.journals,
            scratch: self.scratch,
            binaries: self.binaries,
            environment: self.environment,
            generators: self.generators,
            consent: self.consent,
            stop: self.stop,
        };
        let clock = RealClock {
            begun: Instant::now(),
            minute_of_day: self.minute_of_day,
        };
        let mut servers = RealServers {
            resources,
            provider: self.provider,
        };
        act(&mut Runner {
            clock: &clock,
            results: self.store,
            servers: &mut servers,
            optimizers: &RealOptimizers { stop: self.stop },
            catalogue: self.catalogue,
            consent: self.consent,
            stop: self.stop,
            on_event: self.on_event,
        })
    }
}
