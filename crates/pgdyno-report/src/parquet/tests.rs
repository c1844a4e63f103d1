//! What is written is read back, and says what the CSV says.

use super::*;
use crate::{SERIES_HEAD, build, csv, series_csv};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use bytes::Bytes;
use pgdyno_record::{ExperimentRecord, ExperimentStatus, StoredExperiment, TrialRecord};
use serde_json::json;

fn report() -> Report {
    let treatment = |name: &str, level: &str| {
        json!({"name": name, "title": name, "reason": null, "why_not": null, "settings": [],
               "levels": [["read ahead", level]]})
    };
    let record: ExperimentRecord = serde_json::from_value(json!({
        "name": "night \u{e4}", "question": "?", "design": "one-at-a-time", "blocks": 4, "seed": 1, "confidence": 0.95,
        "smallest_effect": 0.02,
        "workload": {"name": "write", "scale": 1, "clients": 8, "threads": 1, "warmup_s": 2.0, "measure_s": 12.0},
        "treatments": [treatment("reference", "4k"), treatment("a, b", "1M")], "facts": [], "file": "", "repeat": [],
        "target": "sandbox a",
    }))
    .unwrap();
    let trial = |block: u32, treatment: &str, status: &str, tps: Option<f64>| -> TrialRecord {
        serde_json::from_value(json!({
            "block": block, "position": 1, "treatment": treatment, "status": status, "reason": tps.is_none().then_some("it broke"),
            "started_unix_ms": 1_700_000_000_123_u64, "effective": [], "tps": tps, "committed": 100, "failed": 0,
            "errors": [], "percentiles": null, "histogram": null, "distribution": [], "steadiness": null,
            "stability_cv": null, "warmup_s": 2.0, "measured_s": 12.5, "client_cpu_us_per_tx": 0.1,
            "server_cpu_us_per_tx": null, "wal_bytes_per_tx": null, "cross_check": null, "disturbances": ["x", "y"],
            "seconds": [],
        }))
        .unwrap()
    };
    let stored = StoredExperiment {
        id: 3,
        record,
        status: ExperimentStatus::Finished,
        started_unix_ms: 1,
        finished_unix_ms: Some(2),
        restored: Vec::new(),
        trials: vec![
            (7, trial(1, "reference", "finished", Some(1000.25))),
            (8, trial(1, "a, b", "failed", None)),
            (9, trial(2, "a, b", "finished", Some(1.0 / 3.0))),
        ],
    };
    build(&stored, "", 3)
}

fn rows(bytes: Vec<u8>) -> Vec<Row> {
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    reader
        .get_row_iter(None)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// As the CSV writes it.
fn shown(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Bool(flag) => flag.to_string(),
        Field::Int(number) => number.to_string(),
        Field::Long(number) | Field::TimestampMillis(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Str(text) if text.contains(',') => format!("\"{text}\""),
        Field::Str(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn trials_are_those_of_the_csv() {
    let report = report();
    let mut bytes = Vec::new();
    trials_parquet(std::slice::from_ref(&report), &mut bytes).unwrap();
    let rows = rows(bytes);
    let text = csv(&report);
    let mut lines = text.trim_end().split("\r\n");
    let name = |name: &str| match name {
        "started" => "started_unix_ms".to_owned(),
        other => other.to_owned(),
    };
    let own = |(column, _): &(&String, &Field)| column.as_str() != "name";
    let heads: Vec<String> = rows[0]
        .get_column_iter()
        .filter(own)
        .map(|(column, _)| name(column))
        .collect();
    assert_eq!(lines.next(), Some(heads.join(",").as_str()));
    for (row, line) in rows.iter().zip(lines) {
        let cells: Vec<String> = row
            .get_column_iter()
            .filter(own)
            .map(|(_, field)| shown(field))
            .collect();
        assert_eq!(cells.join(","), line);
    }
    assert_eq!(rows.len(), 3);
    assert!(heads.contains(&"factor:read ahead".to_owned()), "{heads:?}");
}

#[test]
fn series_are_those_of_the_csv() {
    let report = report();
    let column = |metric: &str, points: u32| ColumnRecord {
        metric: metric.to_owned(),
        label: "sda".to_owned(),
        at_ms: (1..=points).map(|second| second * 1000).collect(),
        values: (1..=points)
            .map(|n| if n == 2 { f64::NAN } else { f64::from(n) / 3.0 })
            .collect(),
    };
    let mut bytes = Vec::new();
    let mut expected = SERIES_HEAD.to_owned();
    let mut file = SeriesParquet::new(&mut bytes).unwrap();
    // Less than a column has, so that one is in several groups.
    file.group_rows = 200;
    for trial in &report.trials {
        for column in [column("a_per_s", 3), column("b_ratio", 0), column("c_ms", 500)] {
            file.add(3, trial, &column).unwrap();
            expected += &series_csv(trial.id, &column);
        }
    }
    file.close().unwrap();
    let reader = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
    let groups: Vec<i64> = (reader.metadata().row_groups().iter())
        .map(|group| group.num_rows())
        .collect();
    assert_eq!(groups, [200, 200, 200, 200, 200, 200, 200, 109]);
    let rows = rows(bytes);
    let names = ["trial", "metric", "label", "at_ms", "value"];
    let mut found = SERIES_HEAD.to_owned();
    for row in &rows {
        let cell = |name: &str| {
            row.get_column_iter()
                .find(|(column, _)| *column == name)
                .unwrap()
                .1
        };
        found += &(names.map(|name| shown(cell(name))).join(",") + "\r\n");
    }
    assert_eq!(found, expected);
    assert_eq!(rows.len(), 3 * 503);
}

#[test]
fn a_file_without_rows_is_a_file() {
    let mut bytes = Vec::new();
    SeriesParquet::new(&mut bytes).unwrap().close().unwrap();
    assert!(rows(bytes).is_empty());
    let mut bytes = Vec::new();
    trials_parquet(&[], &mut bytes).unwrap();
    assert!(rows(bytes).is_empty());
}
