//! Questions of an agent that runs an experiment: its results are kept by the coordinator.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pgdyno_engine::{LoadResult, Second};
use pgdyno_record::{
    ColumnRecord, ExperimentRecord, ExperimentStatus, GapRecord, GeneratorHost, RestoredRecord, SeriesRecord,
    StoredExperiment, TimeLists, TreatmentRecord, TrialRecord, pack_series,
};
use pgdyno_workload::LoadPlan;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most points of all series of a trial: hundreds of columns of a day.
const POINTS_MAX: usize = 50_000_000;

/// Number of a question of an agent, from 1.
pub(crate) type Number = u64;

/// What is asked of the store of a coordinator. It asks for one experiment alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The coordinator's time of day, in nanoseconds since 1970.
    TimeOfDay,
    /// Begin an experiment; its number is the answer.
    Begin(Box<ExperimentRecord>),
    /// Add a treatment, which a search has chosen; it is durable with the answer.
    AddTreatment {
        /// Number of the experiment.
        id: i64,
        /// The treatment.
        treatment: Box<TreatmentRecord>,
    },
    /// Show others that the experiment is still run.
    Keep,
    /// Keep trials, all or none; they are durable with the answer.
    AddTrials {
        /// Number of the experiment.
        id: i64,
        /// The trials, each with its series.
        trials: Vec<(TrialRecord, SentSeries)>,
    },
    /// An experiment with all its trials.
    Experiment(i64),
    /// Keep how far it is.
    SetStatus {
        /// Number of the experiment.
        id: i64,
        /// What it is from now on.
        status: ExperimentStatus,
    },
    /// Keep what was restored at its end.
    SetRestored {
        /// Number of the experiment.
        id: i64,
        /// A line for each knob.
        lines: Vec<RestoredRecord>,
    },
    /// The run is at its end, and everything on this host is restored.
    Ended(RunEnd),
    /// Of a host that drives its part of a load.
    Generator(FromGenerator),
    /// Ask hosts that are to drive loads whether they reach the servers; they are being asked with
    /// the answer.
    AskLoadHosts(LoadHostWays),
    /// Have a load driven by hosts that the coordinator reaches; it has begun with the answer.
    Drive(Box<SharedLoad>),
    /// Show what was read of a target: updates of the live view, as that writes them.
    Seen(String),
    /// What comes next of the hosts' load, or of what they were asked.
    NextOfHosts {
        /// Whether it is to end before its time.
        stop: bool,
    },
}

/// Names of load hosts, each with its connection strings of the servers, which hold passwords.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadHostWays(pub Vec<(String, Vec<String>)>);

/// A load that several hosts drive together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedLoad {
    /// The hosts.
    pub hosts: LoadHostWays,
    /// Whether there is a pooler before the servers.
    pub is_pooled: bool,
    /// What they drive.
    pub plan: LoadPlan,
}

/// From a host that drives its part of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromGenerator {
    /// What time it is on the coordinator's clock.
    Clock,
    /// Its clients are connected; the instant at which all begin is the answer.
    Ready {
        /// Largest error of its idea of the coordinator's clock, in nanoseconds.
        clock_error_ns: u64,
    },
    /// A second of its load.
    Second(Box<Second>),
    /// Its load is at its end.
    Ended {
        /// What it has done.
        result: Box<LoadResult>,
        /// What it was like on its host.
        host: GeneratorHost,
    },
    /// It has no load; one line that says why.
    Failed(String),
}

/// Without connection strings.
impl fmt::Debug for LoadHostWays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// How a run has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunEnd {
    /// Number of the experiment.
    pub id: i64,
    /// Whether it can be resumed.
    pub status: ExperimentStatus,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// It is done.
    Done,
    /// It is done; number of the experiment or trial.
    Numbered(i64),
    /// What was asked for.
    Experiment(Box<StoredExperiment>),
    /// A second of a load.
    Second(Box<Second>),
    /// A load is at its end.
    Driven {
        /// What all hosts have done; its seconds have been sent.
        result: Box<LoadResult>,
        /// The hosts, each with its name.
        hosts: Vec<(String, GeneratorHost)>,
        /// Hosts that could not keep up, and how that shows.
        warnings: Vec<String>,
    },
    /// Hosts were asked: what keeps them from driving a load, each with its host.
    Objections(Vec<String>),
    /// What is to be read of a target from now on, as the live view writes it.
    Look(String),
    /// Nanoseconds of the clock that was asked for.
    Clock(u64),
    /// When the load begins, in nanoseconds of the coordinator's clock; `None` where it does not.
    /// [`Answer::Done`] instead where that is not known yet: who asks asks again.
    Begin(Option<u64>),
    /// It is not done; one line that says why.
    Failed(String),
}

/// A question or an answer with its number, by which an answer is known to be one to the last
/// question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Numbered<T> {
    pub(crate) number: Number,
    pub(crate) content: T,
}

/// The series of a trial, packed as a store keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentSeries {
    /// Lists of times by their numbers from 0, in base64.
    times: Vec<String>,
    /// Metric, label and blob in base64, of each column.
    columns: Vec<(String, String, String)>,
    gaps: Vec<GapRecord>,
}

impl SentSeries {
    /// Packs the series of a trial.
    pub fn of(series: &SeriesRecord) -> SentSeries {
        let packed = pack_series(&series.columns);
        let columns = series.columns.iter().zip(packed.columns);
        SentSeries {
            times: packed.times.iter().map(|blob| STANDARD.encode(blob)).collect(),
            columns: columns
                .map(|(column, blob)| (column.metric.clone(), column.label.clone(), STANDARD.encode(blob)))
                .collect(),
            gaps: series.gaps.clone(),
        }
    }

    /// The series again.
    ///
    /// # Errors
    ///
    /// What is wrong with it: a host may send anything.
    pub fn unpacked(self) -> Result<SeriesRecord, String> {
        let bytes = |text: &str| STANDARD.decode(text).map_err(|error| error.to_string());
        let mut lists = TimeLists::default();
        for (number, list) in (0..).zip(&self.times) {
            lists.add(number, bytes(list)?);
        }
        let (mut columns, mut points) = (Vec::new(), 0);
        for (metric, label, blob) in self.columns {
            let (at_ms, values) = lists
                .unpack(&bytes(&blob)?)
                .map_err(|why| format!("the series {metric} is damaged: {why}"))?;
            points += values.len();
            if points > POINTS_MAX {
                return Err(format!("series of more than {POINTS_MAX} points"));
            }
            columns.push(ColumnRecord {
                metric,
                label,
                at_ms,
                values,
            });
        }
        Ok(SeriesRecord {
            columns,
            gaps: self.gaps,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(metric: &str, values: &[f64]) -> ColumnRecord {
        ColumnRecord {
            metric: metric.to_owned(),
            label: "sda".to_owned(),
            at_ms: (1..=u32::try_from(values.len()).unwrap())
                .map(|second| second * 1000)
                .collect(),
            values: values.to_vec(),
        }
    }

    #[test]
    fn series_arrive_as_they_were_sent() {
        let series = SeriesRecord {
            columns: vec![
                column("disk.read_bytes", &[0.0, 4096.0, 8192.0]),
                column("disk.write_bytes", &[1.0, 2.0, 0.5]),
            ],
            gaps: vec![GapRecord {
                at_ms: 5,
                source: "pg_stat_wal".to_owned(),
                reason: "permission denied".to_owned(),
            }],
        };
        assert_eq!(SentSeries::of(&series).unpacked(), Ok(series));
    }

    #[test]
    fn damaged_series_are_refused() {
        let sent = |blob: &str| SentSeries {
            times: Vec::new(),
            columns: vec![("x".to_owned(), String::new(), blob.to_owned())],
            gaps: Vec::new(),
        };
        assert!(sent("no base64!").unpacked().is_err());
        let error = sent("AAAA").unpacked().unwrap_err();
        assert!(error.contains("the series x is damaged"), "{error}");
    }
}
