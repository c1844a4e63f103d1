//! The experiments that are shipped, as files: `catalog/experiments`.

/// Names and texts of experiment files, as a slice.
macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../catalog/experiments/", $name, ".toml")))),*]
    };
}

/// Every shipped experiment: name and text of its file.
pub(crate) const EXPERIMENTS: &[(&str, &str)] = shipped![
    "aa",
    "demo",
    "edb-commit-delay",
    "edb-cores",
    "edb-happy-zone",
    "edb-poolers",
    "edb-prepared",
    "edb-query-types",
    "edb-storage",
    "ibm-z-autovacuum",
    "ibm-z-checkpoints",
    "ibm-z-readahead",
    "ibm-z-restore-time",
    "ibm-z-scheduler",
    "ibm-z-shared-buffers",
    "ibm-z-snapshot",
    "ibm-z-swap",
    "ibm-z-wal-direct-io",
    "ibm-z-waterfall",
    "kernel-preemption",
    "percona-benchmarks",
    "percona-hugepages",
    "postgresbench",
    "rhel-cgroup",
    "rhel-cgroup-io",
    "rhel-cgroup-live",
    "rhel-checkpoint-recovery",
    "rhel-filesystem",
    "rhel-hyperthreads",
    "rhel-instances",
    "rhel-ksm",
    "rhel-mtu",
    "rhel-neighbour",
    "rhel-numa",
    "rhel-profiles",
    "rhel-readahead-load",
    "rhel-scheduler",
    "rhel-temp-files",
    "rhel-volumes",
    "rhel-wal-device",
    "senzing-autovacuum",
    "senzing-commit",
    "senzing-connections",
    "senzing-fillfactor-hot",
    "senzing-generic-plans",
    "senzing-io",
    "senzing-jit",
    "senzing-jit-live",
    "senzing-luks",
    "senzing-parameters",
    "senzing-partitions",
    "senzing-readahead-live",
    "senzing-replication",
    "senzing-toast",
    "senzing-vacuum",
    "senzing-versions",
    "senzing-xid-pause",
    "upgrade-18-19",
];

/// The text of one by its name.
pub(crate) fn experiment(name: &str) -> Option<&'static str> {
    EXPERIMENTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::EXPERIMENTS;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_directory_is_shipped() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/experiments");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        let shipped: BTreeSet<String> = EXPERIMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files, shipped);
    }

    #[test]
    fn each_is_in_the_documentation() {
        let book = include_str!("../../../docs/explanation/studies.md");
        for (name, _) in EXPERIMENTS {
            assert!(
                book.contains(&format!("`{name}`")),
                "{name} is not in docs/explanation/studies.md"
            );
        }
    }
}
