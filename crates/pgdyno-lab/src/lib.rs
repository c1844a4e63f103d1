//! Experiments: plan, run, resume. Knows what a trial is; turns knobs through pgdyno-knobs alone.

mod bench;
mod beside;
pub mod capacity;
pub mod check;
mod collect;
pub mod compare;
mod cross_check;
mod decide;
mod distribution;
mod error;
mod file;
mod foreign;
pub mod fuzzed;
mod horizon;
mod lab;
mod measure;
mod measurement;
mod neighbour;
mod optimizer;
mod plan;
mod pooled;
mod ports;
mod preflight;
mod probe;
mod real;
mod recorder;
mod runner;
mod searched;
#[cfg(test)]
mod sim;
mod statements;
mod trial;
mod turns;

pub use bench::Loads;
pub use collect::{Collected, collect_facts, collect_host_facts, runs_here};
pub use error::{LabError, ProviderError};
pub use file::{
    Bound, BudgetPart, ChartForm, ChartPart, ClaimPart, CreatePart, DataPart, Design, EventPart,
    ExperimentFile, FactorPart, FigurePart, FileError, Found, GuardPart, Instances, LOAD_HOSTS_MAX,
    LevelsError, LimitPart, LoadOn, LoadPart, MethodWord, Place, PoolModeWord, PoolerWord, Prewarm, Reset,
    RestartPolicy, SearchPart, ServerPart, SettingScope, StartPart, StepPart, StopRule, StudyPart,
    SwitchPart, TablePart, Take, TargetPart, Untested, WindowPart, asks_for_target, given, sized,
    why_not_in_turns,
};
pub use lab::Lab;
pub use measure::{Generated, Generators, LoadFrom, MeasureError, endpoint, measure};
pub use measurement::{Measurement, Reported};
pub use plan::{
    BESIDE_S, Consent, Plan, PlanError, ProfileSettings, STEP, ServerVariant, Treatment, load_plan,
};
pub use ports::Results;
pub use preflight::{Finding, FindingKind, Preflight, PreflightReport, Unstarted, consents};
pub use probe::{Depth, Probe};
pub use real::ServerProvider;
pub use recorder::{Column, Event as RecorderEvent, Recorder, RecorderOptions, Series, Source, WaitSecond};
pub use runner::{Begin, Event, Summary};
pub use searched::searched;
pub use turns::TRANSACTIONS_OF_TURN;
