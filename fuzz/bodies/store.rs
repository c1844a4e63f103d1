//! What stores hold.

use super::input::{choice, halves, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pgdyno_record::{
    ColumnRecord, ExperimentRecord, ExperimentStatus, HeatRecord, ProgressRecord, SeriesRecord,
    StoredExperiment, TimeLists, TrialRecord, pack_points, pack_series, unpack_points,
};
use serde_json::json;

type Points = (Vec<u32>, Vec<f64>);

fn bits((at_ms, values): Points) -> (Vec<u32>, Vec<u64>) {
    (at_ms, values.into_iter().map(f64::to_bits).collect())
}

fn back(points: &Points) {
    let again = unpack_points(&pack_points(&points.0, &points.1)).expect("our own");
    assert_eq!(bits(again), bits(points.clone()));
    let column = ColumnRecord {
        metric: "x".to_owned(),
        label: String::new(),
        at_ms: points.0.clone(),
        values: points.1.clone(),
    };
    // Twice, so that they share a list of times.
    let packed = pack_series(&[column.clone(), column]);
    let mut lists = TimeLists::default();
    for (number, list) in (0..).zip(packed.times) {
        lists.add(number, list);
    }
    for blob in &packed.columns {
        assert_eq!(bits(lists.unpack(blob).expect("our own")), bits(points.clone()));
    }
}

/// A blob of any bytes is a column, a list of times or an error; what is read of one is packed and
/// read again as the same.
pub(super) fn series_blob(bytes: &[u8]) {
    for (blob, list) in [halves(bytes), (bytes, bytes)] {
        if let Ok(points) = unpack_points(blob) {
            back(&points);
        }
        let mut lists = TimeLists::default();
        lists.add(0, list.to_vec());
        if let Ok(points) = lists.unpack(blob) {
            back(&points);
        }
        let _ = lists.times(0);
    }
}

/// Response times over time of any bytes; what is read is packed and read again as the same.
pub(super) fn heat(bytes: &[u8]) {
    let (classes, packed) = choice(bytes);
    let record = HeatRecord {
        begins_s: 0.0,
        ends_s: 1.0,
        stretch_s: 1,
        edges_ns: (0..=u64::from(classes)).collect(),
        counts: STANDARD.encode(packed),
    };
    let Ok(counts) = record.counts() else { return };
    if let Some(again) = HeatRecord::packed((0.0, 1.0), 1, record.edges_ns, &counts)
        && counts.iter().flatten().any(|count| *count > 0)
    {
        assert_eq!(again.counts(), Ok(counts));
    }
}

/// Records of experiments and trials, with histograms of any bytes, are what a report and a trial's
/// page are made of, or errors.
pub(super) fn records(bytes: &[u8]) {
    let (experiment, rest) = halves(bytes);
    let (trial, histogram) = halves(rest);
    let (experiment, trial) = (text(experiment), text(trial));
    let _ = serde_json::from_str::<ProgressRecord>(&experiment);
    let trial = serde_json::from_str::<TrialRecord>(&trial);
    let mut trial = trial.unwrap_or_else(|_| TrialRecord::begun(1, 1, "reference"));
    if !histogram.is_empty() {
        trial.histogram = Some(STANDARD.encode(histogram));
    }
    let plain = json!({
        "name": "a", "question": "?", "design": "a-b", "blocks": 2, "seed": 1, "confidence": 0.95,
        "smallest_effect": 0.03, "file": "", "repeat": [], "target": "x", "facts": [],
        "workload": {"name": "tpcb", "scale": 1, "clients": 1, "threads": 1, "warmup_s": 1.0, "measure_s": 1.0},
        "treatments": [{"name": "reference", "title": "reference", "settings": []}],
    });
    let record = serde_json::from_str::<ExperimentRecord>(&experiment);
    let record = record.unwrap_or_else(|_| serde_json::from_value(plain).expect("a record"));
    let stored = StoredExperiment {
        id: 1,
        record,
        status: ExperimentStatus::Finished,
        started_unix_ms: 0,
        finished_unix_ms: None,
        restored: Vec::new(),
        trials: vec![(1, trial.clone()), (2, trial)],
    };
    let report = pgdyno_report::build(&stored, "fuzz", 0);
    drop(pgdyno_report::markdown(&report));
    drop(pgdyno_report::csv(&report));
    drop(pgdyno_report::trial(&stored, 1, &SeriesRecord::default()));
}
