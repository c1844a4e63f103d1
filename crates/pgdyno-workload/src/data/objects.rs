//! What a data set consists of: its tables and functions by name, and the room that they take.

use super::{DataPlan, Dataset, pgbench, tpcc};

/// A table with its indexes, or a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataObject {
    /// Kind and name: "table pgbench_accounts", "function tpcc_delivery".
    pub name: String,
    /// With indexes, about; 0 of a function.
    pub bytes: u64,
}

/// Bytes of a unit of scale as `pgdyno data create` makes it, measured with PostgreSQL 15, indexes
/// included: table, bytes that grow with the scale, bytes that do not.
const PGBENCH: [(&str, u64, u64); 4] = [
    ("pgbench_accounts", 15_710_000, 0),
    ("pgbench_branches", 80, 57_344),
    ("pgbench_history", 0, 0),
    ("pgbench_tellers", 800, 57_344),
];
const OLTP: (u64, u64) = (25_450_000, 0);

impl DataObject {
    /// The room that it takes, for people.
    pub fn size(&self) -> String {
        match self.bytes {
            0 => "empty".to_owned(),
            bytes => size_text(bytes),
        }
    }
}

/// Bytes for people, rounded up.
fn size_text(bytes: u64) -> String {
    match bytes {
        0..=1_048_575 => format!("{} kB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MB", bytes.div_ceil(1 << 20)),
    }
}

impl DataPlan {
    /// What it makes, in the order of names.
    pub fn objects(&self) -> Vec<DataObject> {
        let scale = u64::from(self.scale);
        let fuller = u64::from(self.fillfactor.unwrap_or(100).max(1));
        let table = |name: String, of_scale: u64, fixed: u64| DataObject {
            name: format!("table {name}"),
            bytes: (of_scale * scale + fixed) * 100 / fuller,
        };
        match self.dataset {
            Dataset::Pgbench => PGBENCH
                .into_iter()
                .map(|(name, of_scale, fixed)| table(name.to_owned(), of_scale, fixed))
                .collect(),
            Dataset::Oltp => (1..=self.tables)
                .map(|number| table(format!("sbtest{number}"), OLTP.0, OLTP.1))
                .collect(),
            Dataset::Tpcc => {
                let tables =
                    tpcc::sizes().map(|(name, of_scale, fixed)| table(name.to_owned(), of_scale, fixed));
                let functions = tpcc::FUNCTION_SIGNATURES.iter().map(|signature| DataObject {
                    name: format!("function {}", signature.split('(').next().unwrap_or_default()),
                    bytes: 0,
                });
                tables.chain(functions).collect()
            }
        }
    }

    /// Names of the tables that have rows of their own: in place of a partitioned one its
    /// partitions.
    pub(super) fn stored_tables(&self) -> Vec<String> {
        let is_partitioned = |name: &str| match self.dataset {
            Dataset::Pgbench => name == pgbench::MARKED,
            Dataset::Oltp => true,
            Dataset::Tpcc => tpcc::partitioned().any(|table| table == name),
        };
        let tables = self.table_names().into_iter();
        tables
            .flat_map(|name| match self.partitions {
                Some(partitions) if is_partitioned(&name) => partitions.names(&name).collect(),
                _ => vec![name],
            })
            .collect()
    }

    /// Bytes of all of it, about.
    pub fn bytes(&self) -> u64 {
        self.objects().iter().map(|object| object.bytes).sum()
    }

    /// Scale as text: "scale 5", "scale 5 in 16 partitions by hash".
    pub fn scale_text(&self) -> String {
        super::scale_text(self.scale, self.partitions)
    }

    /// Size as text: "1500 MB".
    pub fn size(&self) -> String {
        size_text(self.bytes())
    }

    /// Names of the tables of the data set.
    pub(super) fn table_names(&self) -> Vec<String> {
        let tables = self.objects().into_iter();
        tables
            .filter_map(|object| Some(object.name.strip_prefix("table ")?.to_owned()))
            .collect()
    }
}
