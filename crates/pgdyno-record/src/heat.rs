//! Response times over time as they are stored with a trial: a count for each stretch and class,
//! packed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Write as _};

/// Counts of a trial at most: a thousand stretches of five hundred classes.
const COUNTS_MAX: usize = 500_000;
/// Bytes of a count, at most.
const PLANES_MAX: usize = 8;

/// How many transactions of each stretch of a trial's measured time had a response time of which
/// class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatRecord {
    /// Seconds from the load's begin to that of the first stretch.
    pub begins_s: f64,
    /// Seconds from the load's begin to the end of the last stretch, which may be a shorter one.
    pub ends_s: f64,
    /// Length of a stretch in seconds; the last one may be shorter.
    pub stretch_s: u32,
    /// Lower edges of the classes in nanoseconds, rising, and the upper one of the last.
    pub edges_ns: Vec<u64>,
    /// zlib, base64: the bytes that a count takes; then of all counts, stretch by stretch and in
    /// them class by class, the lowest byte, then of all the next one, and so on.
    pub counts: String,
}

/// Why the counts of a trial cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its response times over time cannot be read: {0}")]
pub struct HeatError(String);

impl HeatRecord {
    /// Packs the counts: for each stretch one for each class. `None` where they are none, too many,
    /// or of other classes.
    pub fn packed(
        (begins_s, ends_s): (f64, f64),
        stretch_s: u32,
        edges_ns: Vec<u64>,
        counts: &[Vec<u64>],
    ) -> Option<HeatRecord> {
        let classes = edges_ns.len().checked_sub(1).filter(|classes| *classes > 0)?;
        let fits = counts.iter().all(|stretch| stretch.len() == classes);
        if !fits || counts.is_empty() || counts.len() * classes > COUNTS_MAX {
            return None;
        }
        let most = counts.iter().flatten().max().copied().unwrap_or(0);
        let planes = PLANES_MAX - usize::try_from(most.leading_zeros() / 8).unwrap_or(0);
        let mut bytes = vec![u8::try_from(planes).unwrap_or(0)];
        for plane in 0..planes {
            bytes.extend(counts.iter().flatten().map(|count| count.to_le_bytes()[plane]));
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes).ok()?;
        Some(HeatRecord {
            begins_s,
            ends_s,
            stretch_s,
            edges_ns,
            counts: STANDARD.encode(encoder.finish().ok()?),
        })
    }

    /// For each stretch a count for each class.
    pub fn counts(&self) -> Result<Vec<Vec<u64>>, HeatError> {
        let broken = |reason: &str| HeatError(reason.to_owned());
        if self.stretch_s == 0 || !self.begins_s.is_finite() || !self.ends_s.is_finite() {
            return Err(broken("its stretches have no length"));
        }
        if self.edges_ns.len() < 2 || !self.edges_ns.is_sorted_by(|a, b| a < b) {
            return Err(broken("the edges of its classes do not rise"));
        }
        let packed = STANDARD
            .decode(&self.counts)
            .map_err(|error| HeatError(error.to_string()))?;
        let bytes_max = COUNTS_MAX * PLANES_MAX + 1;
        let mut bytes = Vec::new();
        let mut decoder = ZlibDecoder::new(packed.as_slice()).take(bytes_max as u64 + 1);
        decoder
            .read_to_end(&mut bytes)
            .map_err(|error| HeatError(error.to_string()))?;
        if bytes.len() > bytes_max {
            return Err(broken("it holds more counts than any trial has"));
        }
        let (planes, bytes) = bytes.split_first().ok_or_else(|| broken("it is empty"))?;
        let (planes, classes) = (usize::from(*planes), self.edges_ns.len() - 1);
        if planes > PLANES_MAX || (planes == 0) != bytes.is_empty() {
            return Err(broken("its counts have no such size"));
        }
        let counts = bytes.len() / planes.max(1);
        if counts * planes != bytes.len() || counts % classes != 0 {
            return Err(broken("the number of counts differs from the number of classes"));
        }
        let count = |at: usize| {
            (0..planes)
                .rev()
                .fold(0, |sum, plane| sum << 8 | u64::from(bytes[plane * counts + at]))
        };
        let stretch = |first: usize| (first..first + classes).map(count).collect();
        Ok((0..counts).step_by(classes).map(stretch).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(counts: &[Vec<u64>]) -> Option<HeatRecord> {
        let classes = counts.first().map_or(0, Vec::len) as u64;
        HeatRecord::packed(
            (5.0, 65.0),
            1,
            (0..=classes).map(|edge| edge * 1000).collect(),
            counts,
        )
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            counts in (1..20_usize).prop_flat_map(|classes| prop::collection::vec(prop::collection::vec(
                prop_oneof![Just(0), 0..300_u64, any::<u64>()], classes), 1..40)),
        ) {
            // One must not be nothing: without any transaction there are no planes.
            let mut counts = counts;
            counts[0][0] |= 1;
            prop_assert_eq!(packed(&counts).unwrap().counts().unwrap(), counts);
        }

        #[test]
        fn no_text_makes_it_panic(
            text in ".*",
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            edges_ns in prop::collection::vec(0..100_u64, 0..6),
        ) {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&bytes).unwrap();
            for counts in [text, STANDARD.encode(&bytes), STANDARD.encode(encoder.finish().unwrap())] {
                let record = HeatRecord { begins_s: 0.0, ends_s: 1.0, stretch_s: 1, edges_ns: edges_ns.clone(), counts };
                if let Ok(read) = record.counts() {
                    prop_assert!(read.iter().all(|stretch| stretch.len() + 1 == edges_ns.len()));
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_not_packed() {
        assert_eq!(packed(&[]), None);
        assert_eq!(packed(&[vec![1, 2], vec![1]]), None);
        assert_eq!(packed(&vec![vec![1; 500]; 1001]), None);
    }

    #[test]
    fn a_minute_takes_little() {
        let tail = |second: u64, class: u64| (4000 / (1 + class * class)) + (second * 7 + class * 3) % 5;
        let counts: Vec<Vec<u64>> = (0..60)
            .map(|s| (0..30).map(|class| tail(s, class)).collect())
            .collect();
        let text = serde_json::to_string(&packed(&counts).unwrap()).unwrap();
        assert!(text.len() < 2500, "{}", text.len());
    }
}
