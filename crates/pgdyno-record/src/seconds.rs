//! The seconds of a trial: in a record they are as columns, which take less than half of what rows
//! with their names do, to be kept and to be read. Rows are read too.

use crate::series::rounded;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// One second of a trial: load and host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct SecondRecord {
    /// End of the second, from the start of the load.
    pub t_s: f64,
    /// Transactions committed in it.
    pub tps: f64,
    /// 95th percentile of its response times.
    pub p95_ms: Option<f64>,
    /// Share of all CPUs that was busy.
    pub cpu_busy: Option<f64>,
    /// Share that waited for I/O.
    pub cpu_iowait: Option<f64>,
    /// Share taken by the hypervisor.
    pub cpu_steal: Option<f64>,
    /// Bytes per second read from the data's disk.
    pub disk_read_bytes_per_s: Option<f64>,
    /// Bytes per second written to it.
    pub disk_write_bytes_per_s: Option<f64>,
    /// Page cache that is not yet written to disk, in bytes.
    pub dirty_bytes: Option<f64>,
}

type Known = Vec<Option<f64>>;

/// As they are written: a value for each second, and no column of what is known of none.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Columns {
    t_s: Vec<f64>,
    tps: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    p95_ms: Known,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpu_busy: Known,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpu_iowait: Known,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cpu_steal: Known,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disk_read_bytes_per_s: Known,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    disk_write_bytes_per_s: Known,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dirty_bytes: Known,
}

/// Rates and shares are written with the digits that series have too.
pub(super) fn serialize<S: Serializer>(seconds: &[SecondRecord], to: S) -> Result<S::Ok, S::Error> {
    let column = |value: fn(&SecondRecord) -> Option<f64>, kept: fn(f64) -> f64| -> Known {
        let column: Known = seconds.iter().map(|second| value(second).map(kept)).collect();
        Some(column)
            .filter(|column| column.iter().any(Option::is_some))
            .unwrap_or_default()
    };
    let whole = |value| value;
    Columns {
        t_s: seconds.iter().map(|second| second.t_s).collect(),
        tps: seconds.iter().map(|second| rounded(second.tps)).collect(),
        p95_ms: column(|second| second.p95_ms, whole),
        cpu_busy: column(|second| second.cpu_busy, rounded),
        cpu_iowait: column(|second| second.cpu_iowait, rounded),
        cpu_steal: column(|second| second.cpu_steal, rounded),
        disk_read_bytes_per_s: column(|second| second.disk_read_bytes_per_s, rounded),
        disk_write_bytes_per_s: column(|second| second.disk_write_bytes_per_s, rounded),
        dirty_bytes: column(|second| second.dirty_bytes, whole),
    }
    .serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SecondRecord>, D::Error> {
    from.deserialize_any(Seconds)
}

struct Seconds;

impl<'de> Visitor<'de> for Seconds {
    type Value = Vec<SecondRecord>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("seconds as columns or as rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, rows: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(rows))
    }

    fn visit_map<A: MapAccess<'de>>(self, columns: A) -> Result<Self::Value, A::Error> {
        let columns = Columns::deserialize(MapAccessDeserializer::new(columns))?;
        let seconds = columns.t_s.len();
        if columns.tps.len() != seconds {
            return Err(A::Error::invalid_length(columns.tps.len(), &"a tps for each t_s"));
        }
        let of = |column: &Known, at: usize| column.get(at).copied().flatten();
        for column in columns.known() {
            if !column.is_empty() && column.len() != seconds {
                return Err(A::Error::invalid_length(column.len(), &"a value for each t_s"));
            }
        }
        let second = |at: usize| SecondRecord {
            t_s: columns.t_s[at],
            tps: columns.tps[at],
            p95_ms: of(&columns.p95_ms, at),
            cpu_busy: of(&columns.cpu_busy, at),
            cpu_iowait: of(&columns.cpu_iowait, at),
            cpu_steal: of(&columns.cpu_steal, at),
            disk_read_bytes_per_s: of(&columns.disk_read_bytes_per_s, at),
            disk_write_bytes_per_s: of(&columns.disk_write_bytes_per_s, at),
            dirty_bytes: of(&columns.dirty_bytes, at),
        };
        Ok((0..seconds).map(second).collect())
    }
}

impl Columns {
    fn known(&self) -> [&Known; 7] {
        [
            &self.p95_ms,
            &self.cpu_busy,
            &self.cpu_iowait,
            &self.cpu_steal,
            &self.disk_read_bytes_per_s,
            &self.disk_write_bytes_per_s,
            &self.dirty_bytes,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(seconds: &Value) -> Result<Vec<SecondRecord>, String> {
        deserialize(seconds).map_err(|error| error.to_string())
    }

    fn written(seconds: &[SecondRecord]) -> Value {
        serialize(seconds, serde_json::value::Serializer).expect("JSON")
    }

    #[test]
    fn seconds_are_columns_with_the_digits_of_series() {
        let first = SecondRecord {
            t_s: 6.000_264_219,
            tps: 2_047.300_434_112_548_8,
            p95_ms: Some(30.905_846),
            cpu_busy: Some(0.540_049_147_605_896),
            disk_write_bytes_per_s: Some(37_623_135.089_874_27),
            dirty_bytes: Some(387_805_184.0),
            ..SecondRecord::default()
        };
        let second = SecondRecord {
            t_s: 7.0,
            ..SecondRecord::default()
        };
        let found = written(&[first, second]);
        assert_eq!(
            found,
            json!({"t_s": [6.000_264_219, 7.0], "tps": [2047.3, 0.0], "p95_ms": [30.905_846, null],
                   "cpu_busy": [0.540_05, null], "disk_write_bytes_per_s": [37_623_000.0, null],
                   "dirty_bytes": [387_805_184.0, null]})
        );
        let rounded = SecondRecord {
            tps: 2047.3,
            cpu_busy: Some(0.540_05),
            disk_write_bytes_per_s: Some(37_623_000.0),
            ..first
        };
        assert_eq!(read(&found), Ok(vec![rounded, second]));
        assert_eq!(read(&written(&[])), Ok(Vec::new()));
    }

    #[test]
    fn rows_are_read_and_columns_that_do_not_fit_are_refused() {
        let rows = json!([{"t_s": 1.0, "tps": 1.5, "p95_ms": null, "cpu_busy": 0.5}]);
        let second = SecondRecord {
            t_s: 1.0,
            tps: 1.5,
            cpu_busy: Some(0.5),
            ..SecondRecord::default()
        };
        assert_eq!(read(&rows), Ok(vec![second]));
        for (wrong, reason) in [
            (json!({"t_s": [1.0, 2.0], "tps": [1.0]}), "a tps for each t_s"),
            (
                json!({"t_s": [1.0], "tps": [1.0], "cpu_busy": [0.1, 0.2]}),
                "a value for each t_s",
            ),
            (json!({"t_s": ["x"]}), "expected f64"),
            (json!(7), "seconds as columns or as rows"),
        ] {
            let error = read(&wrong).expect_err("refused");
            assert!(error.contains(reason), "{error}");
        }
    }
}
