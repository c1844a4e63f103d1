//! Results: what is stored of experiments and trials. The only crate with SQL about results.

mod heat;
mod judge;
mod record;
mod schema;
mod series;
mod store;

pub use heat::{HeatError, HeatRecord};
pub use judge::{Judge, Judged, Observations, first_look};
pub use record::{
    BLOCKS_MAX, ClaimRecord, CrossCheck, CurrentTrial, DistributionPoint, ErrorCount, ExperimentRecord,
    ExperimentStatus, FactRecord, FactorRecord, FigureRecord, Percentiles, ProgressRecord, PutBackRecord,
    SecondRecord, SettingRecord, StatementRecord, StoredExperiment, StudyRecord, TREATMENTS_MAX, TableRecord,
    TreatmentRecord, TrialRecord, TrialStatus, WorkloadRecord,
};
pub use series::{
    ColumnRecord, GapRecord, PackedSeries, SeriesRecord, TimeLists, pack_points, pack_series, unpack_points,
};
pub use store::{
    Filter, ImportOutcome, Imported, Integrity, Life, Link, Listed, MissingRight, NOTE_CHARS_MAX, Note,
    Place, ProgressPlace, PrunePlan, PruneRule, Pulse, Reader, Removable, Store, StoreError, TAG_CHARS_MAX,
};
