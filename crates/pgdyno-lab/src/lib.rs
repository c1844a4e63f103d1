//! Experiments: plan, run, resume. Knows what a trial is; turns knobs through pgdyno-knobs alone.

mod collect;
mod file;
mod measure;
mod plan;
mod pooled;
mod runner;
mod trial;

pub use collect::{collect_facts, collect_host_facts, runs_here};
pub use file::{Design, ExperimentFile, FileError, RestartPolicy};
pub use measure::{MeasureError, Measurement, Probe, endpoint, measure};
pub use plan::{Consent, Plan, PlanError, Treatment};
pub use runner::{Event, Lab, LabError, Summary};
