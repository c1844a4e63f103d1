//! Columns of a trial's series as they are stored: packed by what neighbouring values have in common, then deflated.
//!
//! A blob is one byte of format, then a zlib stream of: the number of points; for each point how many milliseconds it
//! is after the one before it; and, byte plane by byte plane from the highest, the values' bits (IEEE 754, 64 bits)
//! exclusive-or those of the value before. Numbers are LEB128. docs/store.md says the same for other readers.

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use serde::{Deserialize, Serialize};
use std::io::Read;

const FORMAT: u8 = 1;
/// A column of a day at ten points per second; a blob that promises more is damaged.
const POINTS_MAX: usize = 864_000;
const PLANES: usize = size_of::<u64>();

/// One metric of a trial over time. What was not read has no point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnRecord {
    /// docs/metrics.md lists them, the unit stands last.
    pub metric: String,
    /// Which one of several (a disk, a CPU, a class of processes); else empty.
    pub label: String,
    /// When each value was read, from the start of the load; in order.
    pub at_ms: Vec<u32>,
    /// As many values.
    pub values: Vec<f64>,
}

/// Why something is missing from a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRecord {
    /// From the start of the load.
    pub at_ms: u32,
    /// File, view or metric.
    pub source: String,
    /// In words.
    pub reason: String,
}

/// The series of host and server beside a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// Columns by metric and label.
    pub columns: Vec<ColumnRecord>,
    /// What is missing, and why.
    pub gaps: Vec<GapRecord>,
}

/// The blob of a column.
pub(crate) fn pack(at_ms: &[u32], values: &[f64]) -> Vec<u8> {
    let points = at_ms.len().min(values.len());
    let mut plain = Vec::with_capacity(points * (PLANES + 2) + 4);
    push_number(&mut plain, points as u64);
    let mut before = 0;
    for &at in &at_ms[..points] {
        push_number(&mut plain, u64::from(at.saturating_sub(before)));
        before = before.max(at);
    }
    let mut last = 0;
    let differences: Vec<u64> = values[..points]
        .iter()
        .map(|value| {
            let bits = value.to_bits();
            bits ^ std::mem::replace(&mut last, bits)
        })
        .collect();
    for plane in 0..PLANES {
        plain.extend(differences.iter().map(|bits| bits.to_be_bytes()[plane]));
    }
    let mut blob = vec![FORMAT];
    // Reading from memory does not fail.
    let _ = ZlibEncoder::new(plain.as_slice(), Compression::default()).read_to_end(&mut blob);
    blob
}

/// What [`pack`] was given, or what is wrong with the blob.
pub(crate) fn unpack(blob: &[u8]) -> Result<(Vec<u32>, Vec<f64>), String> {
    let (format, packed) = blob.split_first().ok_or("it is empty")?;
    if *format != FORMAT {
        return Err(format!("its format is {format}, this pgdyno knows {FORMAT}"));
    }
    let limit = POINTS_MAX * (PLANES + 5) + 10;
    let mut plain = Vec::new();
    ZlibDecoder::new(packed)
        .take(limit as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|e| e.to_string())?;
    let mut rest = plain.as_slice();
    let short = "it ends early";
    let points = take_number(&mut rest)
        .and_then(|points| usize::try_from(points).ok())
        .filter(|points| *points <= POINTS_MAX)
        .ok_or("it promises too many points")?;
    let mut at = 0_u32;
    let mut at_ms = Vec::with_capacity(points);
    for _ in 0..points {
        let step = take_number(&mut rest).ok_or(short)?;
        let step = u32::try_from(step).map_err(|_| "its time steps are too long")?;
        at = at.checked_add(step).ok_or("its times are too late")?;
        at_ms.push(at);
    }
    if rest.len() != points * PLANES {
        return Err(format!(
            "it holds {} bytes of values where {} are due",
            rest.len(),
            points * PLANES
        ));
    }
    let mut last = 0;
    let values = (0..points)
        .map(|point| {
            let bytes = std::array::from_fn(|plane| rest[plane * points + point]);
            last ^= u64::from_be_bytes(bytes);
            f64::from_bits(last)
        })
        .collect();
    Ok((at_ms, values))
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_steady_column_is_small() {
        let at_ms: Vec<u32> = (0..3600).map(|s| s * 1000).collect();
        let values = vec![1_048_576.0; 3600];
        let blob = pack(&at_ms, &values);
        assert!(blob.len() < 200, "{} bytes", blob.len());
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(points in prop::collection::vec((0..1_000_000_u32, any::<u64>()), 0..200)) {
            let mut at_ms: Vec<u32> = points.iter().map(|p| p.0).collect();
            at_ms.sort_unstable();
            let values: Vec<f64> = points.iter().map(|p| f64::from_bits(p.1)).collect();
            let (at, back) = unpack(&pack(&at_ms, &values)).unwrap();
            prop_assert_eq!(at, at_ms);
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&values));
        }

        #[test]
        fn no_blob_makes_it_panic(blob in prop::collection::vec(any::<u8>(), 0..100), cut in 0..60_usize) {
            let _ = unpack(&blob);
            let mut whole = pack(&[1, 2, 3], &[1.0, 2.0, 3.0]);
            whole.truncate(cut.min(whole.len() - 1));
            prop_assert!(unpack(&whole).is_err());
        }
    }
}
