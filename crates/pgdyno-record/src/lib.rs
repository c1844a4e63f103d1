//! What is stored of experiments and trials and handed on to the report and the page: every type of
//! it once. No I/O.

mod class;
mod experiment;
mod fact;
mod generator;
mod heat;
mod histogram;
mod metric;
mod progress;
mod search;
mod seconds;
mod series;
mod short_hash;
mod trial;

pub use class::ErrorClass;
pub use experiment::{
    BLOCKS_MAX, ChartRecord, ClaimRecord, DESIGN_OF_LOADS, ExperimentRecord, ExperimentStatus, FactorRecord,
    FigureRecord, RestoredRecord, SettingRecord, StoredExperiment, StudyRecord, TREATMENTS_MAX, TableRecord,
    TreatmentRecord, WHEN_GAIN_DECIDED, WorkloadRecord,
};
pub use fact::FactRecord;
pub use generator::GeneratorHost;
pub use heat::{HeatError, HeatRecord};
pub use histogram::{decoded_histogram, encoded_histogram};
pub use metric::{Better, Given, METRICS, Metric, MetricWords, Source, UNITS};
pub use progress::{CurrentTrial, PROGRESS_FORMAT, ProgressRecord};
pub use search::{BrokenBound, Importance, SearchStep, Searched, TreatmentEstimate};
pub use seconds::SecondRecord;
pub use series::{
    ColumnRecord, GapRecord, PackedSeries, Points, SeriesRecord, TimeLists, pack_points, pack_series,
    unpack_points,
};
pub use short_hash::short_hash;
pub use trial::{
    CrossCheck, DistributionPoint, ErrorCount, EventRecord, OpenLoopHistograms, Percentiles, StatementRecord,
    TransactionCounts, TrialRecord, TrialStatus, WarmUpEnd,
};
