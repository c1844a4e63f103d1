//! Experiments: plan, run, resume. Knows what a trial is; turns knobs through pgdyno-knobs alone.

pub mod check;
mod collect;
mod file;
mod measure;
mod plan;
mod pooled;
mod runner;
mod trial;

pub use collect::collect_facts;
pub use file::{Design, ExperimentFile, FileError, RestartPolicy};
pub use measure::{MeasureError, Measurement, Probe, endpoint, measure};
pub use plan::{Consent, Plan, PlanError, Treatment};
pub use runner::{Event, Lab, LabError, Summary};
