//! A tree of files that looks like a machine, for the tests beside.

use super::Reading;
use super::files::Buffer;
use crate::LocalHost;
use std::fs;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(super) struct Tree {
    dir: TempDir,
    pub(super) host: LocalHost,
    pub(super) buffer: Buffer,
    start: Instant,
}

impl Tree {
    /// With these files: (path, content).
    pub(super) fn new(files: &[(&str, &str)]) -> Tree {
        let dir = tempfile::tempdir().unwrap();
        let host = LocalHost::at(dir.path());
        let tree = Tree {
            dir,
            host,
            buffer: Buffer::default(),
            start: Instant::now(),
        };
        tree.put(files);
        tree
    }

    pub(super) fn put(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = self.dir.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    pub(super) fn remove(&self, path: &str) {
        let path = self.dir.path().join(path.trim_start_matches('/'));
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    /// An instant so many seconds after the tree was made: no test waits.
    pub(super) fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }
}

/// The values of a reading as "metric label value" lines, in their order.
pub(super) fn lines(reading: &Reading) -> Vec<String> {
    let line = |(key, value): &(super::Key, f64)| {
        let name = if key.label.is_empty() {
            key.metric.to_string()
        } else {
            format!("{}[{}]", key.metric, key.label)
        };
        format!("{name} {value}")
    };
    reading.values.iter().map(line).collect()
}

/// Whether each of these lines is among the values.
#[track_caller]
pub(super) fn has(reading: &Reading, expected: &[&str]) {
    let lines = lines(reading);
    for line in expected {
        assert!(lines.iter().any(|l| l == line), "{line} is not in {lines:#?}");
    }
}

/// Whether there is no value of this metric.
#[track_caller]
pub(super) fn has_no(reading: &Reading, metric: &str) {
    assert_eq!(reading.value(metric), None, "{metric}");
}

/// Sources of its gaps.
pub(super) fn gaps(reading: &Reading) -> Vec<&str> {
    reading.gaps.iter().map(|gap| gap.source.as_str()).collect()
}
