//! Tables in partitions: by ranges or by hash, named as `pgbench -i --partitions` names them.

use pgdyno_engine::names;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// How the large tables of a data set are partitioned: `hash:16`, `range:16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partitions {
    /// By what a row goes to its partition.
    pub method: PartitionMethod,
    /// Number of partitions of each table.
    pub count: u32,
}

/// By what a row goes to its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartitionMethod {
    /// By the hash of its key.
    Hash,
    /// By the range that its key is in; no two ranges differ by more than one value.
    Range,
}

impl PartitionMethod {
    const ALL: [PartitionMethod; 2] = [PartitionMethod::Hash, PartitionMethod::Range];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            PartitionMethod::Hash => "hash",
            PartitionMethod::Range => "range",
        }
    }
}

names!(PartitionMethod, "partition method");

/// Planning of each statement goes by the number of partitions; beyond this it is all that a load
/// would measure. Those of all tables together are made and dropped at once, and each takes up to
/// four of the some 6,400 locks that a server has as it comes.
pub(super) const COUNT_MAX: u32 = 1_000;

impl Partitions {
    /// What follows CREATE TABLE and its columns, and the statements that make the partitions: of a
    /// table whose values of `column` go from 1 to `last`.
    pub(super) fn create(self, table: &str, column: &str, last: i64) -> String {
        let by = self.method.name().to_uppercase();
        let last = last.max(1).unsigned_abs();
        let bounds = |number: u32| {
            let from = |number: u32| u64::from(number - 1) * last / u64::from(self.count) + 1;
            match self.method {
                PartitionMethod::Hash => {
                    format!("WITH (MODULUS {}, REMAINDER {})", self.count, number - 1)
                }
                PartitionMethod::Range => {
                    let low = if number == 1 {
                        "MINVALUE".to_owned()
                    } else {
                        from(number).to_string()
                    };
                    let is_last = number == self.count;
                    let high = if is_last {
                        "MAXVALUE".to_owned()
                    } else {
                        from(number + 1).to_string()
                    };
                    format!("FROM ({low}) TO ({high})")
                }
            }
        };
        let parts = (1..).zip(self.names(table)).map(|(number, name)| {
            let bounds = bounds(number);
            format!(" CREATE TABLE {name} PARTITION OF {table} FOR VALUES {bounds};")
        });
        format!("PARTITION BY {by} ({column});{}", parts.collect::<String>())
    }

    /// Names of the partitions of a table.
    pub(super) fn names(self, table: &str) -> impl Iterator<Item = String> {
        (1..=self.count).map(move |number| format!("{table}_{number}"))
    }

    /// For people: "16 partitions by hash".
    pub fn text(self) -> String {
        let s = if self.count == 1 { "" } else { "s" };
        format!("{} partition{s} by {}", self.count, self.method)
    }
}

impl fmt::Display for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.method, self.count)
    }
}

impl FromStr for Partitions {
    type Err = String;

    fn from_str(text: &str) -> Result<Partitions, String> {
        let read = || {
            let (method, count) = text.split_once(':')?;
            let method = method.parse().ok()?;
            let count = count
                .parse()
                .ok()
                .filter(|count| (1..=COUNT_MAX).contains(count))?;
            Some(Partitions { method, count })
        };
        read().ok_or_else(|| format!("\"{text}\": expected hash:N or range:N, with N from 1 to {COUNT_MAX}"))
    }
}

impl<'de> Deserialize<'de> for Partitions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Partitions, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_read_as_they_are_shown() {
        for text in ["hash:16", "range:1", "range:1000"] {
            assert_eq!(
                text.parse::<Partitions>().map(|read| read.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            "hash",
            "hash:0",
            "hash:-1",
            "range:1001",
            "list:4",
            "hash:4:4",
            "Hash:4",
        ] {
            let error = text.parse::<Partitions>().unwrap_err();
            assert!(error.contains("expected hash:N or range:N"), "{error}");
        }
    }

    #[test]
    fn ranges_cover_every_value_once() {
        let of = |text: &str, last| {
            text.parse::<Partitions>()
                .expect("partitions")
                .create("t", "id", last)
        };
        assert_eq!(
            of("range:3", 100),
            "PARTITION BY RANGE (id); CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (34); \
             CREATE TABLE t_2 PARTITION OF t FOR VALUES FROM (34) TO (67); CREATE TABLE t_3 PARTITION OF t FOR VALUES FROM (67) TO (MAXVALUE);"
        );
        assert_eq!(
            of("hash:2", 100),
            "PARTITION BY HASH (id); CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE t_2 PARTITION OF t FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
        );
        assert_eq!(
            of("range:1", 5),
            "PARTITION BY RANGE (id); CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (MAXVALUE);"
        );
    }
}
