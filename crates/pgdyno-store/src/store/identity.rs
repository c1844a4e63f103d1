//! What identifies an experiment in any store, so that none is imported twice.

use pgdyno_record::ExperimentRecord;
use sha2::{Digest, Sha256};
use std::hash::{BuildHasher, RandomState};

/// The identity of an experiment that is begun now.
pub(super) fn new(record: &ExperimentRecord, started_unix_ms: i64) -> String {
    // The standard library seeds these from the system's randomness: the same file may be begun
    // twice in a millisecond.
    let chance = RandomState::new().hash_one(std::process::id()).to_be_bytes();
    hash(record, started_unix_ms.unsigned_abs(), &chance)
}

/// The identity of one from before they were stored: it follows from target, start, seed and file.
pub(super) fn derived(record: &ExperimentRecord, started_unix_ms: u64) -> String {
    hash(record, started_unix_ms, &[])
}

/// SHA-256 over the parts, each with its length before it, in hexadecimal digits.
fn hash(record: &ExperimentRecord, started_unix_ms: u64, chance: &[u8]) -> String {
    let mut hasher = Sha256::new();
    let (start, seed) = (started_unix_ms.to_be_bytes(), record.seed.to_be_bytes());
    for part in [
        record.target.as_bytes(),
        &start,
        &seed,
        record.file.as_bytes(),
        chance,
    ] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
