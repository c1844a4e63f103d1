//! Experiments: plan, run, resume. Knows what a trial is; turns knobs through pgdyno-knobs alone.

mod beside;
pub mod check;
mod collect;
mod file;
mod measure;
mod plan;
mod pooled;
mod recorder;
mod runner;
mod trial;

pub use collect::{Collected, collect_facts, collect_host_facts, postmaster_here, runs_here};
pub use file::{Design, ExperimentFile, FileError, RestartPolicy};
pub use measure::{Depth, MeasureError, Measurement, Probe, endpoint, measure};
pub use plan::{Consent, Plan, PlanError, Treatment};
pub use recorder::{Column, Event as RecorderEvent, Recorder, RecorderOptions, Series, Source, WaitSecond};
pub use runner::{Event, Lab, LabError, Summary};
