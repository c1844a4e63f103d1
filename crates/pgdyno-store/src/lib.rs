//! Results: what is stored of experiments and trials. The only crate with SQL about results.

mod record;
mod schema;
mod series;
mod store;

pub use record::{
    CrossCheck, DistributionPoint, ErrorCount, ExperimentRecord, ExperimentStatus, FactRecord, Percentiles,
    PutBackRecord, SecondRecord, SettingRecord, StoredExperiment, TreatmentRecord, TrialRecord, TrialStatus,
    WorkloadRecord,
};
pub use series::{ColumnRecord, GapRecord, SeriesRecord};
pub use store::{Store, StoreError};
