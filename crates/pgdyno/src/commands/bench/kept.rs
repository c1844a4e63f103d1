//! `pgdyno bench --store`: loads are stored as the trials of an experiment without treatments.

use super::Driven;
use crate::cli::BenchArgs;
use crate::context::{Context, now_unix_ms};
use crate::target;
use pgdyno_host::HostAccess;
use pgdyno_lab::{LoadPart, Loads, collect_facts};
use pgdyno_record::ExperimentStatus;
use pgdyno_sandbox::Sandbox;
use pgdyno_server::{Conninfo, Server};
use pgdyno_store::Store;
use pgdyno_workload::{Work, shape_of};

/// Loads in a store, the first ones of which have been driven.
pub(super) struct Kept {
    store: Store,
    loads: Loads,
    /// Number in the store.
    pub(super) id: i64,
    trials: usize,
    started_unix_ms: u64,
}

impl Kept {
    /// Begins the experiment, before the first load.
    pub(super) fn begin(
        context: &Context,
        args: &BenchArgs,
        (work, load): (&Work, LoadPart),
        conninfo: &Conninfo,
        sandbox: Option<&Sandbox>,
    ) -> anyhow::Result<Option<Kept>> {
        let Some(place) = &args.store else { return Ok(None) };
        let mut store = context.store(place.as_deref())?;
        let host = conninfo.is_here().then_some(&context.host as &dyn HostAccess);
        let facts = collect_facts(host, &mut Server::connect(conninfo)?, sandbox)?.facts;
        let name = sandbox.map(|sandbox| sandbox.record().name.clone());
        let loads = Loads {
            work: work.to_string(),
            load,
            scale: scale(work, conninfo),
            clients: args.clients.clone(),
            seed: args.seed,
            target: name
                .as_ref()
                .map_or_else(|| conninfo.to_string(), |name| target::shown_sandbox(name)),
            sandbox: name,
            facts,
            repeat: repeat(&args.target),
        };
        let id = store.begin(&loads.record())?;
        Ok(Some(Kept {
            store,
            loads,
            id,
            trials: 0,
            started_unix_ms: now_unix_ms(),
        }))
    }

    /// Notes when the next load begins.
    pub(super) fn begins(&mut self) {
        self.started_unix_ms = now_unix_ms();
    }

    /// Stores a load that was driven.
    pub(super) fn add(&mut self, driven: &Driven) -> anyhow::Result<()> {
        let measurement = &driven.measurement;
        let trial = self.loads.trial(self.trials, self.started_unix_ms, measurement);
        self.store.add_trial(self.id, &trial, &measurement.series)?;
        self.trials += 1;
        Ok(())
    }

    /// Ends the experiment and says where it is.
    pub(super) fn end(mut self, stopped: bool) -> anyhow::Result<()> {
        let status = match stopped {
            true => ExperimentStatus::Interrupted,
            false => ExperimentStatus::Finished,
        };
        self.store.set_status(self.id, status)?;
        let (id, place) = (self.id, self.store.place());
        tell!("stored as experiment {id} in {place}: `pgdyno show {id}`, `pgdyno compare {id} ...`");
        Ok(())
    }
}

/// Scale of the data that a workload runs on; 0 where it has none, or it cannot be read. The load itself says why.
fn scale(work: &Work, conninfo: &Conninfo) -> u32 {
    let dataset = match work {
        Work::Workload(workload) => workload.dataset(),
        Work::Scripts(_) => None,
    };
    let shape = dataset.and_then(|dataset| shape_of(&pgdyno_lab::endpoint(conninfo), dataset).ok());
    shape.map_or(0, |shape| shape.scale)
}

/// The command as it was given. A connection string may hold a password, so only a sandbox is named in it.
fn repeat(target: &str) -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| {
        let argument = argument.to_string_lossy().into_owned();
        match argument == target && target::sandbox_named(target).is_none() {
            true => "\"...\"".to_owned(),
            false => quoted(&argument),
        }
    });
    let words: Vec<String> = std::iter::once("pgdyno".to_owned()).chain(arguments).collect();
    words.join(" ")
}

/// For a shell, where that is necessary.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=:./,@%+".contains(c);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}
