//! `pgdyno data`: the data of the workloads.

use crate::cli::DataCommand;
use crate::context::{Context, stop_flag};
use crate::exit::{self, Refused};
use crate::{progress, target};
use pgdyno_lab::endpoint;
use pgdyno_load::{DataError, create_data, drop_data, scale_of};
use std::sync::atomic::Ordering;

pub(crate) fn run(context: &Context, command: DataCommand) -> anyhow::Result<u8> {
    match command {
        DataCommand::Create {
            target,
            scale,
            replace,
        } => {
            let (conninfo, _) = target::conninfo(context, &target)?;
            match scale_of(&endpoint(&conninfo)) {
                Ok(there) if !replace => {
                    let words = format!(
                        "{conninfo} holds data of scale {there}; --replace drops it and creates it at scale {scale}"
                    );
                    return Err(Refused(words).into());
                }
                Ok(_) | Err(DataError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let stop = stop_flag()?;
            let bar = progress::DataBar::new();
            let created = create_data(&endpoint(&conninfo), scale, &mut |progress| {
                bar.update(progress);
                !stop.load(Ordering::Relaxed)
            });
            bar.done();
            created?;
            tell!("{conninfo} holds data of scale {scale}");
        }
        DataCommand::Drop { target } => {
            let (conninfo, _) = target::conninfo(context, &target)?;
            drop_data(&endpoint(&conninfo))?;
        }
    }
    Ok(exit::FINE)
}
