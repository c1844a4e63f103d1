//! `pgdyno data`: the data of the workloads.

use crate::cli::{CreateDataArgs, DataCommand};
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Refused, Result};
use crate::{own_load, progress, show, target};
use pgdyno_lab::endpoint;
use pgdyno_workload::{
    Condition, DataError, DataPlan, DataProgress, Dataset, Partitions, check_data, create_data, drop_data,
    shape_of,
};
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) fn run(context: &Context, command: DataCommand) -> Result<u8> {
    match command {
        DataCommand::Create(args) => create(context, &args)?,
        DataCommand::Check {
            target,
            dataset,
            json,
        } => {
            let (conninfo, _) = target::conninfo(context, &target)?;
            let endpoint = endpoint(&conninfo).stopped_by(&stop_flag()?);
            let check = || Ok(check_data(&endpoint, dataset)?);
            let conditions = own_load::counted(context, &conninfo, check)?;
            print(&conditions, json)?;
            if conditions.iter().any(|condition| !condition.holds) {
                return Ok(exit::NOT_HELD);
            }
        }
        DataCommand::Drop { target, dataset } => {
            let (conninfo, _) = target::conninfo(context, &target)?;
            drop_data(&endpoint(&conninfo).stopped_by(&stop_flag()?), dataset)?;
        }
    }
    Ok(exit::FINE)
}

fn create(context: &Context, args: &CreateDataArgs) -> Result<()> {
    let (conninfo, _) = target::conninfo(context, &args.target)?;
    let mut plan = DataPlan::new(args.dataset, args.scale);
    plan.tables = args.tables;
    plan.seed = args.seed;
    plan.replace = args.replace;
    plan.partitions = args.partitions;
    if let Some(threads) = args.threads {
        plan.threads = threads;
    }
    plan.check()?;
    let wanted = size_text(plan.dataset, plan.scale, plan.tables, plan.partitions);
    let stop = stop_flag()?;
    let endpoint = endpoint(&conninfo).stopped_by(&stop);
    match shape_of(&endpoint, args.dataset) {
        Ok(shape) if !args.replace => {
            let there = size_text(plan.dataset, shape.scale, shape.tables, shape.partitions);
            let message =
                format!("{conninfo} holds data of {there}; --replace drops it and creates {wanted}");
            return Err(Refused(message).into());
        }
        Ok(_) | Err(DataError::Missing { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let bar = progress::DataBar::new();
    let begun = Instant::now();
    let (mut rows, mut rows_s) = (0, 0.0);
    let mut on_progress = |progress: DataProgress| {
        bar.update(progress);
        if progress.rows > rows {
            (rows, rows_s) = (progress.rows, begun.elapsed().as_secs_f64());
        }
        !stop.load(Ordering::Relaxed)
    };
    let created = own_load::counted(context, &conninfo, || {
        Ok(create_data(&endpoint, &plan, &mut on_progress)?)
    });
    bar.done();
    created?;
    let all_s = begun.elapsed().as_secs_f64();
    err!(
        "{conninfo} holds data of {wanted}: {rows} rows in {rows_s:.2} s, {all_s:.2} s with keys and statistics"
    );
    Ok(())
}

fn size_text(dataset: Dataset, scale: u32, tables: u32, partitions: Option<Partitions>) -> String {
    let text = match dataset {
        Dataset::Pgbench => format!("scale {scale}"),
        Dataset::Oltp => format!("scale {scale} in {tables} tables of {dataset}"),
        Dataset::Tpcc => format!("scale {scale} of {dataset}"),
    };
    match partitions {
        None => text,
        Some(partitions) => format!("{text}, {}", partitions.text()),
    }
}

fn print(conditions: &[Condition], json: bool) -> Result<()> {
    if json {
        put_page!("{}", serde_json::to_string_pretty(conditions)?);
        return Ok(());
    }
    let rows = conditions
        .iter()
        .map(|condition| {
            let holds = if condition.holds { "holds" } else { "DOES NOT HOLD" };
            vec![
                condition.name.clone(),
                holds.to_owned(),
                condition.figures.clone(),
            ]
        })
        .collect();
    put_page!("{}", show::table(&["condition", "", "figures"], &[], rows));
    Ok(())
}
