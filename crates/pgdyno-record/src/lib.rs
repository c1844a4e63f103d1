//! What is stored of experiments and trials and handed on to the report and the page: every type of it once. No I/O.

mod heat;
mod metric;
mod record;
mod seconds;
mod series;

pub use heat::{HeatError, HeatRecord};
pub use metric::{Better, Given, METRICS, Metric, MetricWords, Source, UNITS};
pub use record::{
    BLOCKS_MAX, ClaimRecord, CrossCheck, CurrentTrial, DistributionPoint, ErrorCount, ExperimentRecord,
    ExperimentStatus, FactRecord, FactorRecord, FigureRecord, PROGRESS_FORMAT, Percentiles, ProgressRecord,
    PutBackRecord, SettingRecord, StatementRecord, StoredExperiment, StudyRecord, TREATMENTS_MAX,
    TableRecord, TreatmentRecord, TrialRecord, TrialStatus, WorkloadRecord,
};
pub use seconds::SecondRecord;
pub use series::{
    ColumnRecord, GapRecord, PackedSeries, Points, SeriesRecord, TimeLists, pack_points, pack_series,
    unpack_points,
};
