//! Drives a load: compiles its transactions for the data that is there, and hands them to the
//! engine.

use crate::compile;
use crate::data::{self, DataError, Dataset, Shape};
use crate::load_plan::{LoadPlan, Work};
use crate::script::ScriptError;
use crate::tpcc::{self, Style, Terminals};
use crate::workload::{Extent, Workload};
use pgdyno_engine::Endpoint;
use pgdyno_engine::Second;
use pgdyno_engine::actor::Transactions;
use pgdyno_engine::{self as engine, EngineError, LoadResult, Segment};
use pgdyno_record::ErrorClass;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Why no load could be driven.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The numbers of the plan are not possible.
    #[error("{0}")]
    Plan(String),
    /// A script is not what a script must be.
    #[error("{0}")]
    Script(#[from] ScriptError),
    /// The data of the workload is not there.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The engine could not drive it.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl LoadError {
    /// Number of the server among the endpoints, from 0, where it is of one of them.
    pub fn server(&self) -> Option<usize> {
        match self {
            LoadError::Engine(error) => error.server(),
            _ => None,
        }
    }

    /// A load that cannot be driven as it is given is a mistake of the command line or the file.
    pub fn class(&self) -> ErrorClass {
        match self {
            LoadError::Plan(_) => ErrorClass::Usage,
            LoadError::Data(error) => error.class(),
            LoadError::Script(_) | LoadError::Engine(_) => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            LoadError::Data(error) => error.hint(),
            LoadError::Engine(error) => error.hint(),
            LoadError::Plan(_) | LoadError::Script(_) => None,
        }
    }
}

/// Connects all clients, drives the load and returns its books. Each endpoint gets the whole load,
/// all at the same time; their data must be alike. `stop` ends it early with what there is;
/// `on_second` is called about once a second with what all threads did in it.
///
/// # Errors
///
/// The plan cannot be, a script is wrong, data is missing, or the engine cannot drive the load.
pub fn run(
    endpoints: &[Endpoint],
    plan: &LoadPlan,
    stop: &AtomicBool,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadResult, LoadError> {
    plan.check().map_err(LoadError::Plan)?;
    let transactions = transactions(endpoints, plan)?;
    Ok(engine::run(
        &of_sessions(endpoints, plan),
        &plan.drive,
        transactions.as_ref(),
        stop,
        on_second,
    )?)
}

/// Drives a segment of a load as [`run`] drives all of it; `begin` gives the instant at which it
/// begins, when its clients are connected.
///
/// # Errors
///
/// As [`run`].
pub fn run_segment(
    endpoints: &[Endpoint],
    (plan, segment): (&LoadPlan, Segment),
    stop: &AtomicBool,
    begin: &mut dyn FnMut() -> Option<Instant>,
    on_second: &mut dyn FnMut(&Second),
) -> Result<LoadResult, LoadError> {
    plan.check().map_err(LoadError::Plan)?;
    let transactions = transactions(endpoints, plan)?;
    Ok(engine::run_segment(
        &of_sessions(endpoints, plan),
        (&plan.drive, segment),
        transactions.as_ref(),
        stop,
        begin,
        on_second,
    )?)
}

/// Where the load's sessions go, with the options that they have.
fn of_sessions(endpoints: &[Endpoint], plan: &LoadPlan) -> Vec<Endpoint> {
    let of = |endpoint: &Endpoint| match plan.session_options.as_str() {
        "" => endpoint.clone(),
        options => endpoint.with_options(options),
    };
    endpoints.iter().map(of).collect()
}

/// The shape of the data that all have, with the rows that each has: loads insert and delete.
fn shape_of(endpoints: &[Endpoint], dataset: Dataset) -> Result<Shape, LoadError> {
    let mut shapes = endpoints.iter().map(|endpoint| data::shape_of(endpoint, dataset));
    let mut of_all = shapes
        .next()
        .ok_or_else(|| LoadError::Plan("there is no server".to_owned()))??;
    for (shape, endpoint) in shapes.zip(&endpoints[1..]) {
        let shape = shape?;
        of_all.rows = of_all.rows.min(shape.rows);
        let rows = of_all.rows;
        if (Shape { rows, ..shape }) != of_all {
            return Err(LoadError::Plan(format!(
                "the servers have other data: {}, and {} of {}",
                of_all.text(),
                shape.text(),
                endpoint.place()
            )));
        }
    }
    Ok(of_all)
}

/// Compiles the transactions for the data that is there.
fn transactions(endpoints: &[Endpoint], plan: &LoadPlan) -> Result<Box<dyn Transactions>, LoadError> {
    match &plan.work {
        Work::Workload(workload) => {
            let mut extent = Extent {
                scale: 1,
                tables: 1,
                rows: 1,
                has_bigint_keys: false,
            };
            if let Some(dataset) = workload.dataset() {
                let shape = shape_of(endpoints, dataset)?;
                if workload.is_tpcc() {
                    let style = Style {
                        warehouses: i32::try_from(shape.scale).unwrap_or(i32::MAX),
                        functions: *workload == Workload::TpccFunctions,
                        control: plan.control,
                        paced: plan.paced,
                    };
                    return Ok(Box::new(Terminals::new(plan.protocol, style)));
                }
                extent = Extent {
                    scale: shape.scale,
                    tables: shape.tables,
                    rows: shape.rows,
                    has_bigint_keys: shape.has_bigint_keys,
                };
            }
            let program = compile::program(*workload, plan.protocol, plan.control, extent);
            Ok(Box::new(program))
        }
        Work::Scripts(scripts) => {
            // What is wrong with a script is wrong without a server, too.
            scripts.check(plan.protocol)?;
            let scale = match scripts
                .wants_scale()
                .then(|| shape_of(endpoints, Dataset::Pgbench))
            {
                None | Some(Err(LoadError::Data(DataError::Missing { .. }))) => 1,
                Some(shape) => shape?.scale,
            };
            let stop = endpoints.first().and_then(|endpoint| endpoint.stop.clone());
            Ok(Box::new(scripts.compile(
                plan.protocol,
                scale,
                plan.drive.seed,
                &stop.unwrap_or_default(),
            )?))
        }
    }
}

/// New orders per minute that were committed; `None` where no transaction is a new order of tpcc.
#[expect(clippy::cast_precision_loss, reason = "a count of transactions")]
pub fn nopm(load: &LoadResult) -> Option<f64> {
    let (_, books) = load.kinds.iter().find(|(name, _)| name == tpcc::NEW_ORDER)?;
    (load.measured_s > 0.0).then(|| books.kept as f64 * 60.0 / load.measured_s)
}
