//! What must hold of figures: names that nobody has, and a metric that trials report.

use super::{Check, Checked, loads};
use crate::file::choices::Design;
use crate::file::parts::{ExperimentFile, LoadPart};
use crate::file::switch::{is_of_turns, turns_of_servers};
use crate::foreign::{gives, reports};
use pgdyno_record::{Given, METRICS, Metric, Source};
use pgdyno_workload::Workload;

impl Check<'_> {
    pub(super) fn figures(&self) -> Checked {
        let file = self.file;
        for (i, figure) in file.figure.iter().enumerate() {
            let taken = Metric::named(&figure.name).is_some()
                || file.figure[..i].iter().any(|other| other.name == figure.name);
            self.must(!taken, &["figure", &i.to_string(), "name"], || {
                format!("the name \"{}\" is taken", figure.name)
            })?;
            let is_one = figure.metric.is_some() != figure.sql.is_some();
            self.must(is_one, &["figure", &i.to_string()], || {
                format!(
                    "the figure \"{}\" comes from a metric or from sql: one of them",
                    figure.name
                )
            })?;
        }
        self.known_metric(&file.metric, &["metric"])
    }

    /// A metric that something is decided by: one that every such trial has.
    pub(super) fn known_metric(&self, metric: &str, keys: &[&str]) -> Checked {
        self.metric(metric, keys, false)
    }

    /// One that is shown where it was measured.
    pub(super) fn shown_metric(&self, metric: &str, keys: &[&str]) -> Checked {
        self.metric(metric, keys, true)
    }

    fn metric(&self, metric: &str, keys: &[&str], is_shown: bool) -> Checked {
        let known = known(self.file, is_shown);
        self.must(known.iter().any(|name| name == metric), keys, || {
            format!(
                "\"{metric}\" is not a metric of this experiment; expected one of {}",
                known.join(", ")
            )
        })
    }
}

impl ExperimentFile {
    /// Whether each of its trials has a metric, so that something can be decided by it.
    pub fn decides_by(&self, metric: &str) -> bool {
        known(self, false).iter().any(|name| name == metric)
    }
}

/// The metrics that each trial of a file has, or that it may have where they are only shown.
fn known(file: &ExperimentFile, is_shown: bool) -> Vec<String> {
    let parts = file.parts();
    let any = |is: fn(&LoadPart) -> bool| is(&file.load) || parts.iter().any(|p| is(&p.load));
    let servers = std::iter::once(&file.server).chain(parts.iter().map(|part| &part.server));
    let several = servers.into_iter().any(|server| server.count.unwrap_or(1) > 1);
    let of_turns = file.design == Design::Switchback;
    let of_servers = turns_of_servers(file).is_some();
    let is_given = |metric: &&Metric| match metric.given {
        _ if of_turns && !is_of_turns(metric) => false,
        // Neither seconds nor series of one of them are known.
        _ if of_servers && (metric.source != Source::Clients || metric.id == "stability_cv") => false,
        Given::Always => true,
        // A counter has no value without the hardware that counts, and decides nothing.
        Given::WhereMeasured => is_shown || metric.source != Source::Perf,
        Given::OfJobs => any(|load| load.program.as_deref() == Some("job")),
        Given::OfCrashes => any(|load| load.crash == Some(true)),
        Given::OfTpcc => any(is_tpcc),
        Given::OfLatencyLimits => any(|load| load.latency_limit_ms.is_some()),
        Given::OfSeveralServers => several,
    };
    let loads = loads(file, &parts);
    let is_of_a_load = |metric: &&Metric| {
        let given = |load: &&LoadPart| {
            load.program
                .as_deref()
                .is_none_or(|program| gives(program, metric))
        };
        loads.is_empty() || loads.iter().any(given)
    };
    let built_in = METRICS
        .iter()
        .filter(is_given)
        .filter(is_of_a_load)
        .map(|metric| metric.id.to_owned());
    let own = file.figure.iter().map(|figure| figure.name.clone());
    built_in.chain(own).collect()
}

/// Whether a load reports new orders per minute.
fn is_tpcc(load: &LoadPart) -> bool {
    load.workload.is_some_and(Workload::is_tpcc)
        || load
            .program
            .as_deref()
            .is_some_and(|program| reports(program, "nopm"))
}
