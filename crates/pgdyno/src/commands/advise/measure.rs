//! The small measurements as facts, `check.NAME.figure` and `check.NAME.verdict`.

use crate::cli::AdviseArgs;
use crate::context::{Context, stop_flag};
use crate::failure::Result;
use crate::target;
use pgdyno_host::{Fact, HostAccess};
use pgdyno_lab::check::{Asked, Event, Grade, Step, check};
use std::sync::Arc;
use std::time::Duration;

/// Those that rules ask for; the others of `pgdyno check` take longer.
const STEPS: [Step; 5] = [
    Step::Timer,
    Step::RoundTrip,
    Step::Commit,
    Step::WalSync,
    Step::Steal,
];
/// Length of the measurement of commits, to which the others keep their proportion.
const LENGTH: Duration = Duration::from_secs(1);

pub(super) fn facts(context: &Context, args: &AdviseArgs) -> Result<Vec<Fact>> {
    let conninfo = match &args.target {
        Some(text) => Some(target::conninfo(context, text)?.0),
        None => None,
    };
    let host: Arc<dyn HostAccess> = Arc::new(context.host.clone());
    let asked = Asked {
        conninfo: conninfo.as_ref(),
        host: &host,
        steps: STEPS
            .into_iter()
            .filter(|step| conninfo.is_some() || !step.asks_the_server())
            .collect(),
        length: LENGTH,
        host_only: conninfo.is_none(),
        directory: None,
    };
    let stop = stop_flag()?;
    let report = check(&asked, &stop, &mut |event| {
        if let Event::Remark(text) = event {
            err!("{text}");
        }
    })?;
    if report.is_stopped {
        fail!("stopped before the end of the measurements; the files that were made are gone");
    }
    let mut facts = Vec::new();
    for measured in &report.measurements {
        let name = |field: &str| format!("check.{}.{field}", measured.name);
        let figure = match (measured.verdict, measured.figure) {
            // A figure that is not what it seems is none.
            (Grade::Unknown, _) | (_, None) => Err(measured
                .why
                .clone()
                .unwrap_or_else(|| "it was not measured".into())),
            (_, Some(figure)) => Ok((figure * 1000.0).round() / 1000.0),
        };
        facts.push(Fact::new(&name("figure"), "pgdyno check", figure));
        facts.push(Fact::known(
            &name("verdict"),
            "pgdyno check",
            measured.verdict.word(),
        ));
    }
    Ok(facts)
}
