//! Experiments made by hand, for tests.

use pgdyno_record::{
    ExperimentRecord, ExperimentStatus, Percentiles, SecondRecord, StoredExperiment, TreatmentRecord,
    TrialRecord, TrialStatus, WorkloadRecord,
};

pub(crate) fn treatment(name: &str) -> TreatmentRecord {
    TreatmentRecord::new(name)
}

/// Finished, with ten measured seconds.
pub(crate) fn trial(block: u32, treatment: &str, tps: f64) -> TrialRecord {
    let second = |i: u32| SecondRecord {
        t_s: f64::from(i + 1),
        tps: if i < 2 {
            1.0
        } else {
            tps * (1.0 + 0.001 * f64::from(i * 7 % 5))
        },
        ..SecondRecord::default()
    };
    TrialRecord {
        status: TrialStatus::Finished,
        tps: Some(tps),
        percentiles: Some(Percentiles {
            mean_ms: None,
            p50_ms: Some(1000.0 / tps),
            p95_ms: Some(2000.0 / tps),
            p99_ms: Some(3000.0 / tps),
            max_ms: Some(9000.0 / tps),
        }),
        warmup_s: 2.0,
        measured_s: 12.0,
        seconds: (0..14).map(second).collect(),
        ..TrialRecord::begun(block, 1, treatment)
    }
}

/// Finished, without trials.
pub(crate) fn experiment(id: i64, treatments: &[&str]) -> StoredExperiment {
    StoredExperiment {
        id,
        record: ExperimentRecord {
            question: "?".into(),
            blocks: 4,
            treatments: treatments.iter().map(|name| treatment(name)).collect(),
            target: "sandbox x".into(),
            ..ExperimentRecord::new(
                "x",
                WorkloadRecord {
                    name: "tpcb".into(),
                    scale: 1,
                    clients: 8,
                    threads: 1,
                    warmup_s: 2.0,
                    measure_s: 12.0,
                },
            )
        },
        status: ExperimentStatus::Finished,
        started_unix_ms: 0,
        finished_unix_ms: Some(1),
        restored: Vec::new(),
        trials: Vec::new(),
    }
}
