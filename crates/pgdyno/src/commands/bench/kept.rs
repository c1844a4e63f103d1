//! `pgdyno bench --store`: loads are stored as the trials of an experiment without treatments.

use super::Driven;
use crate::cli::BenchArgs;
use crate::context::{Context, now_unix_ms};
use crate::failure::Result;
use crate::failure::Usage;
use crate::repeated::repeated;
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
    /// Number of the experiment in the store.
    pub(super) id: i64,
    trials: u32,
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
    ) -> Result<Option<Kept>> {
        let Some(place) = &args.store else { return Ok(None) };
        let twice = |at: &usize| args.clients[..*at].contains(&args.clients[*at]);
        if let Some(at) = (0..args.clients.len()).find(twice) {
            let clients = args.clients[at];
            let message =
                format!("--clients names {clients} twice, and --store keeps each number once; name it once");
            return Err(Usage(message).into());
        }
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
            repeat: repeated(std::env::args_os().skip(1), &args.target),
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
    pub(super) fn add(&mut self, driven: &Driven) -> Result<()> {
        let measurement = &driven.measurement;
        self.trials += 1;
        let of = (self.trials, driven.plan.drive.clients);
        let trial = self.loads.trial(of, self.started_unix_ms, measurement);
        self.store.add_trial(self.id, &trial, &measurement.series)?;
        Ok(())
    }

    /// Ends the experiment and says where it is.
    pub(super) fn end(mut self, stopped: bool) -> Result<()> {
        let status = match stopped {
            true => ExperimentStatus::Interrupted,
            false => ExperimentStatus::Finished,
        };
        self.store.set_status(self.id, status)?;
        let (id, place) = (self.id, self.store.place());
        err!("stored as experiment {id} in {place}: `pgdyno show {id}`, `pgdyno compare {id} ...`");
        Ok(())
    }
}

/// Scale of the data that a workload runs on; 0 where it has none, or it cannot be read. The load
/// itself says why.
fn scale(work: &Work, conninfo: &Conninfo) -> u32 {
    let dataset = match work {
        Work::Workload(workload) => workload.dataset(),
        Work::Scripts(_) => None,
    };
    let shape = dataset.and_then(|dataset| shape_of(&pgdyno_lab::endpoint(conninfo), dataset).ok());
    shape.map_or(0, |shape| shape.scale)
}
