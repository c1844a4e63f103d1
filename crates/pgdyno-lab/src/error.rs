//! Why an experiment could not be run, or not to its end.

use crate::file::FileError;
use crate::measure::MeasureError;
use crate::neighbour::NeighbourError;
use crate::plan::PlanError;
use crate::preflight::{Finding, FindingKind, listed};
use pgdyno_knobs::{Applied, ApplyError, ConsentError, JournalError};
use pgdyno_record::ErrorClass;
use pgdyno_sandbox::{PoolerError, SandboxError};
use pgdyno_server::ServerError;
use pgdyno_stats::SpaceError;
use pgdyno_store::StoreError;
use pgdyno_workload::{DataError, ScriptError};

/// Why a server of the experiment is not available, with the provider's message.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct ProviderError {
    /// One line, with all causes.
    pub text: String,
    /// What kind of failure it is.
    pub class: ErrorClass,
    /// What mends it, where that is known.
    pub hint: Option<String>,
}

impl From<SandboxError> for ProviderError {
    fn from(error: SandboxError) -> ProviderError {
        ProviderError {
            text: error.to_string(),
            class: error.class(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

/// Why an experiment could not be run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The experiment file is not valid.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file makes no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A trial that is lost, or may be.
    #[error(
        "the trial of block {block} with \"{treatment}\" has ended and could not be stored: {source}. `pgdyno resume {id}` runs it \
         again if it is missing"
    )]
    NotStored {
        /// Number of the experiment in the store.
        id: i64,
        /// Block of the trial, from 1.
        block: u32,
        /// Name of the treatment of the trial.
        treatment: String,
        /// The error of the store.
        source: Box<StoreError>,
    },
    /// The figure that decides is one that no trial has.
    #[error(
        "none of the {trials} finished trials has {metric}, the metric that decides: this target does not report it, or the load is too \
         short; choose another metric, or measure longer"
    )]
    NoFigure {
        /// Name of the figure.
        metric: String,
        /// Number of finished trials.
        trials: u32,
    },
    /// A search has nothing to vary.
    #[error("there is nothing to search: {0}")]
    NothingToSearch(SpaceError),
    /// A program that chooses what is tried next does not do so.
    #[error("the optimizer: {0}")]
    Optimizer(String),
    /// The server could not be reached or asked, before the first trial.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The data could not be made or checked.
    #[error(transparent)]
    Data(#[from] DataError),
    /// What keeps a treatment from being tried is not its own.
    #[error("a server that is not needed any more could not be restored: {0}")]
    Unready(String),
    /// The data of a treatment could not be made.
    #[error("the data of \"{treatment}\": {source}")]
    DataOf {
        /// Name of the first treatment that reads it.
        treatment: String,
        /// The error of the data.
        source: Box<LabError>,
    },
    /// Knobs could not be turned, before the first trial.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A setting that nobody has agreed to.
    #[error(transparent)]
    Consent(#[from] ConsentError),
    /// Settings that the target does not have though they were applied.
    #[error("{}", did_not_take(.0))]
    NotTaken(Vec<Applied>),
    /// Settings could not be restored, or their journal not written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A pooler that an earlier process has left.
    #[error(transparent)]
    Pooler(#[from] PoolerError),
    /// A server that only some treatments need could not be made or started.
    #[error("{what}: {source}")]
    ServerVariant {
        /// Which server it is, and what it is for.
        what: String,
        /// The error of making or starting it.
        source: ProviderError,
    },
    /// Something keeps it from running here: all of it, found before anything is changed.
    #[error("the experiment cannot run here, and nothing was changed:{}", listed(.0))]
    Findings(Vec<Finding>),
    /// The experiment failed, and settings of it are still in effect.
    #[error("{error}; {knobs} could not be restored, and the journal is kept for `pgdyno restore`")]
    NotPutBack {
        /// Knobs that are still changed.
        knobs: String,
        /// Why the experiment ended.
        error: String,
    },
    /// The experiment failed, and so did restoring the settings.
    #[error("{error}; restoring the settings failed too: {source}; run `pgdyno restore`")]
    NotRestored {
        /// Why the experiment ended.
        error: Box<LabError>,
        /// Why restoring failed.
        source: Box<LabError>,
    },
    /// It failed, and so did stopping the server that was made for it.
    #[error("{error}; the server that was made for it runs on: {source}")]
    LeftRunning {
        /// Why it ended.
        error: Box<LabError>,
        /// Why the server runs on.
        source: Box<LabError>,
    },
    /// Another server than the one the stored trials ran on.
    #[error(
        "experiment {id} ran on {was}, and this is {is}; trials of two servers cannot be compared as one: name the first with --target"
    )]
    OtherTarget {
        /// Number of the experiment in the store.
        id: i64,
        /// Name of the target that the stored trials ran on.
        was: String,
        /// Name of the target that was given now.
        is: String,
    },
    /// Somebody's tables are in the way.
    #[error(
        "the server has the tables of {dataset} at {there}, and the experiment needs {wanted}; pgdyno does not drop tables that \
         others may have created: set scale and partitions in [data] to what is there, or name another database in [target]"
    )]
    OtherData {
        /// Name of the data set whose tables these are: "pgbench".
        dataset: &'static str,
        /// What the tables on the server are: "scale 5".
        there: String,
        /// What the experiment file asks for.
        wanted: String,
    },
    /// Data on somebody's server, which nobody has agreed to.
    #[error(
        "the experiment needs data that the server lacks, and pgdyno did not create this server: data is created on it only with consent \
         ({objects})"
    )]
    DataNotAgreed {
        /// What would be made, with sizes.
        objects: String,
    },
    /// A figure's statement returned something else.
    #[error("expected a number in the first column of the first row, and it is \"{0}\"")]
    NoNumber(String),
    /// A step of a trial without a server.
    #[error("the trial has no server")]
    NoServer,
    /// A crash, a pooler or a copy of the files of a server that is not a sandbox.
    #[error("{0} is available on sandboxes only")]
    ForSandboxes(&'static str),
    /// A standby is not as its primary is.
    #[error("the standby {place} has not replayed what its primary has written after {seconds} s")]
    StandbyBehind {
        /// Place of its connection.
        place: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The load could not be driven or measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The statements of the load are not valid.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The neighbour of the load could not be started.
    #[error(transparent)]
    Neighbour(#[from] NeighbourError),
    /// The experiment is finished already.
    #[error("experiment {0} is finished; there is nothing to resume")]
    NothingToResume(i64),
}

impl LabError {
    /// That of what it holds; of findings, that of the gravest.
    pub fn class(&self) -> ErrorClass {
        match self {
            LabError::File(error) => error.class(),
            LabError::Plan(error) => error.class(),
            LabError::Store(error) => error.class(),
            LabError::NotStored { source, .. } => source.class(),
            LabError::Server(error) => error.class(),
            LabError::Data(error) => error.class(),
            LabError::Apply(error) => error.class(),
            LabError::Consent(error) => error.class(),
            LabError::Pooler(error) => error.class(),
            LabError::Measure(error) => error.class(),
            LabError::ServerVariant { source, .. } => source.class,
            LabError::LeftRunning { error, .. } => error.class(),
            LabError::NotRestored { source, .. } | LabError::DataOf { source, .. } => source.class(),
            LabError::Findings(findings) => class_of_findings(findings),
            LabError::DataNotAgreed { .. } => ErrorClass::Refused,
            _ => ErrorClass::Failed,
        }
    }

    /// The same error, after which the server that was made for it was left; with why it runs on,
    /// where it does.
    pub(crate) fn with_left(self, left: Result<(), LabError>) -> LabError {
        match left {
            Ok(()) => self,
            Err(source) => LabError::LeftRunning {
                error: Box::new(self),
                source: Box::new(source),
            },
        }
    }

    /// Number of the server among those of a load, from 0, where it is of one of them.
    pub(crate) fn server(&self) -> Option<usize> {
        match self {
            LabError::Measure(error) => error.server(),
            _ => None,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            LabError::Plan(error) => error.hint(),
            LabError::Store(error) => error.hint(),
            LabError::NotStored { source, .. } => source.hint(),
            LabError::Server(error) => error.hint(),
            LabError::Data(error) => error.hint(),
            LabError::Apply(error) => error.hint(),
            LabError::Consent(error) => error.hint(),
            LabError::Journal(error) => error.hint(),
            LabError::Pooler(error) => error.hint(),
            LabError::Measure(error) => error.hint(),
            LabError::ServerVariant { source, .. } => source.hint.as_deref(),
            LabError::LeftRunning { error, .. } => error.hint(),
            LabError::NotRestored { source, .. } | LabError::DataOf { source, .. } => source.hint(),
            LabError::DataNotAgreed { .. } => Some(
                "--allow-data makes it and drops it at the end; `pgdyno data create` makes data that stays",
            ),
            _ => None,
        }
    }

    /// Whether its text has lines of its own, in which what is foreign is on one line already.
    pub fn has_lines(&self) -> bool {
        matches!(self, LabError::Findings(_))
    }
}

fn class_of_findings(findings: &[Finding]) -> ErrorClass {
    let has = |kind| {
        findings
            .iter()
            .any(|finding| finding.is_fatal() && finding.kind == kind)
    };
    match (has(FindingKind::Consent), has(FindingKind::Value)) {
        (true, _) => ErrorClass::Refused,
        (false, true) => ErrorClass::Usage,
        (false, false) => ErrorClass::Failed,
    }
}

fn did_not_take(settings: &[Applied]) -> String {
    let messages = settings.iter().map(|a| {
        format!(
            "{} = {} did not take effect, it is {}",
            a.setting.knob, a.setting.value, a.effective
        )
    });
    messages.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_knobs::Setting;

    #[test]
    fn every_setting_that_did_not_take_is_named_with_what_it_is() {
        let applied = |knob: &str, value: &str, effective: &str| Applied {
            setting: Setting {
                knob: knob.to_owned(),
                value: value.to_owned(),
            },
            effective: effective.to_owned(),
            took: false,
            remark: None,
        };
        let error = LabError::NotTaken(vec![applied("a", "1", "2"), applied("b", "on", "off")]);
        assert_eq!(
            error.to_string(),
            "a = 1 did not take effect, it is 2; b = on did not take effect, it is off"
        );
    }
}
