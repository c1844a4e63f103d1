//! A column as a blob: packed by what neighbouring values have in common, then deflated.
//!
//! A blob is one byte of format, then a zlib stream. Numbers are LEB128, signed ones zigzag;
//! docs/reference/store.md says the same for other readers.
//!
//! Format 1: the number of points; for each point how many milliseconds it is after the one before
//! it; and, byte plane by byte plane from the highest, the values' bits (IEEE 754, 64 bits)
//! exclusive-or those of the value before.
//!
//! Format 2, for values that are whole numbers or have few decimals: the number of points; for each
//! point how much longer its step in time is than the one before; a byte with the number of
//! decimals; a byte with the order (0: what each scaled value is above the least, 1: the signed
//! difference to the one before); the least or the first scaled value; what the numbers in the
//! planes are multiplied by; a byte with the number of byte planes, and these from the highest. A
//! value is its scaled value divided by the power of ten, to the bit.
//!
//! Formats 3 and 4, for columns whose times are in a list of the trial (`shared.rs`): the number of
//! the list, then what follows on the times in format 1 and in format 2; the list has the number of
//! points.
//!
//! Format 5, such a list: the number of points and their times as in format 2.

use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use std::io::Read;

const BITS: u8 = 1;
const DECIMALS: u8 = 2;
const BITS_SHARED: u8 = 3;
const DECIMALS_SHARED: u8 = 4;
const TIMES: u8 = 5;
/// A column of a day at ten points per second; a blob that promises more is damaged.
pub(super) const POINTS_MAX: usize = 864_000;
const PLANES: usize = size_of::<u64>();
/// Powers of ten that values are scaled by; more decimals are noise, which no scaling packs.
const TENS: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
/// Whole numbers up to here are exact as 64-bit IEEE numbers.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
const SHORT: &str = "it ends early";

/// The blob of a column that has its times in it; of unequal lengths the shorter one counts.
pub fn pack_points(at_ms: &[u32], values: &[f64]) -> Vec<u8> {
    let points = at_ms.len().min(values.len());
    let (at_ms, values) = (&at_ms[..points], &values[..points]);
    let mut plain = Vec::with_capacity(points * 4 + 32);
    push_number(&mut plain, points as u64);
    match scaled(values) {
        Some((decimals, numbers)) => {
            push_times(&mut plain, at_ms);
            push_decimals(&mut plain, decimals, &numbers);
            deflated(DECIMALS, &plain)
        }
        None => {
            push_steps(&mut plain, at_ms);
            push_bits(&mut plain, values);
            deflated(BITS, &plain)
        }
    }
}

/// The blob of a column whose times are those of a list.
pub(super) fn pack_values(list: u32, values: &[f64]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(values.len() * 4 + 32);
    push_number(&mut plain, list.into());
    match scaled(values) {
        Some((decimals, numbers)) => {
            push_decimals(&mut plain, decimals, &numbers);
            deflated(DECIMALS_SHARED, &plain)
        }
        None => {
            push_bits(&mut plain, values);
            deflated(BITS_SHARED, &plain)
        }
    }
}

/// The blob of a list of times.
pub(super) fn pack_times(at_ms: &[u32]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(at_ms.len() * 2 + 8);
    push_number(&mut plain, at_ms.len() as u64);
    push_times(&mut plain, at_ms);
    deflated(TIMES, &plain)
}

fn deflated(format: u8, plain: &[u8]) -> Vec<u8> {
    let mut blob = vec![format];
    // Reading from memory does not fail.
    let _ = ZlibEncoder::new(plain, Compression::default()).read_to_end(&mut blob);
    blob
}

/// How long each point is after the one before it.
fn push_steps(plain: &mut Vec<u8>, at_ms: &[u32]) {
    let mut before = 0;
    for &at in at_ms {
        push_number(plain, u64::from(at.saturating_sub(before)));
        before = before.max(at);
    }
}

/// How much longer each step is than the one before it.
fn push_times(plain: &mut Vec<u8>, at_ms: &[u32]) {
    let (mut before, mut step_before) = (0, 0);
    for &at in at_ms {
        let step = i64::from(at.saturating_sub(before));
        push_number(plain, zigzag(step - step_before));
        (before, step_before) = (before.max(at), step);
    }
}

fn push_bits(plain: &mut Vec<u8>, values: &[f64]) {
    let mut last = 0;
    let differences = values.iter().map(|value| {
        let bits = value.to_bits();
        bits ^ std::mem::replace(&mut last, bits)
    });
    push_planes(plain, &differences.collect::<Vec<u64>>(), PLANES);
}

/// The values as whole numbers of the largest power of ten that all of them are whole in, if there
/// is one: what is made of them again is the same to the bit.
fn scaled(values: &[f64]) -> Option<(u8, Vec<i64>)> {
    let whole = |value: f64, ten: f64| {
        let number = (value * ten).round();
        let exact = number.abs() <= WHOLE_MAX && (number / ten).to_bits() == value.to_bits();
        // No more than 2^53 in size.
        exact.then_some(number as i64)
    };
    (0_u8..).zip(TENS).find_map(|(decimals, ten)| {
        let numbers: Option<Vec<i64>> = values.iter().map(|value| whole(*value, ten)).collect();
        // A zero with a sign would lose it.
        let same = |numbers: &Vec<i64>| {
            let pairs = numbers.iter().zip(values);
            pairs
                .into_iter()
                .all(|(n, value)| *n != 0 || value.to_bits() == 0)
        };
        numbers.filter(same).map(|numbers| (decimals, numbers))
    })
}

fn push_decimals(plain: &mut Vec<u8>, decimals: u8, numbers: &[i64]) {
    let least = numbers.iter().copied().min().unwrap_or(0);
    let above = numbers.iter().map(|n| n.abs_diff(least));
    let unit = above.clone().fold(0, common).max(1);
    let above: Vec<u64> = above.map(|n| n / unit).collect();
    let first = numbers.first().copied().unwrap_or(0);
    let mut last = first;
    let steps: Vec<u64> = numbers
        .iter()
        .map(|&n| zigzag((n - std::mem::replace(&mut last, n)) / unit.cast_signed()))
        .collect();
    // What has fewer digits in all mostly deflates better.
    let bits = |numbers: &[u64]| -> u64 { numbers.iter().map(|n| u64::from(64 - n.leading_zeros())).sum() };
    let (order, start, numbers) = match bits(&above) <= bits(&steps) {
        true => (0, least, above),
        false => (1, first, steps),
    };
    let most = numbers.iter().copied().max().unwrap_or(0);
    let planes = PLANES - most.leading_zeros() as usize / 8;
    plain.extend([decimals, order]);
    push_number(plain, zigzag(start));
    push_number(plain, unit);
    plain.push(planes as u8);
    push_planes(plain, &numbers, planes);
}

/// Times in milliseconds, and as many values.
pub type Points = (Vec<u32>, Vec<f64>);

/// What [`pack_points`] was given, or what is wrong with the blob.
pub fn unpack_points(blob: &[u8]) -> Result<Points, String> {
    unpack_with(blob, |list| {
        Err(format!("its times are in list {list}, which is not there"))
    })
}

/// The points of a column, whose times may be in a list that is asked for by its number; or what is
/// wrong with the blob.
pub(super) fn unpack_with(
    blob: &[u8],
    list: impl FnOnce(u32) -> Result<Vec<u32>, String>,
) -> Result<Points, String> {
    let (format, plain) = inflated(blob)?;
    let mut rest = plain.as_slice();
    let at_ms = match format {
        BITS | DECIMALS => {
            let points = take_count(&mut rest)?;
            take_times(&mut rest, points, format)?
        }
        BITS_SHARED | DECIMALS_SHARED => {
            let number = take_number(&mut rest).and_then(|number| u32::try_from(number).ok());
            list(number.ok_or("it names no list of times")?)?
        }
        TIMES => return Err("it is a list of times, and no column".to_owned()),
        _ => return Err(unknown(format)),
    };
    let values = match format {
        BITS | BITS_SHARED => take_bits(rest, at_ms.len())?,
        _ => take_decimals(rest, at_ms.len())?,
    };
    Ok((at_ms, values))
}

/// A list of times, or what is wrong with the blob.
pub(super) fn unpack_times(blob: &[u8]) -> Result<Vec<u32>, String> {
    let (format, plain) = inflated(blob)?;
    let mut rest = plain.as_slice();
    match format {
        TIMES => {
            let points = take_count(&mut rest)?;
            let at_ms = take_times(&mut rest, points, format)?;
            match rest {
                [] => Ok(at_ms),
                _ => Err(format!("{} bytes follow on the times", rest.len())),
            }
        }
        BITS..=DECIMALS_SHARED => Err("it is a column, and no list of times".to_owned()),
        _ => Err(unknown(format)),
    }
}

fn unknown(format: u8) -> String {
    format!("it has format {format}; this pgdyno reads {BITS} to {TIMES}")
}

/// The format of a blob and what was deflated.
fn inflated(blob: &[u8]) -> Result<(u8, Vec<u8>), String> {
    let (&format, packed) = blob.split_first().ok_or("it is empty")?;
    if !(BITS..=TIMES).contains(&format) {
        return Err(unknown(format));
    }
    let limit = POINTS_MAX * (PLANES + 5) + 32;
    let mut plain = Vec::new();
    ZlibDecoder::new(packed)
        .take(limit as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|e| e.to_string())?;
    Ok((format, plain))
}

fn take_count(rest: &mut &[u8]) -> Result<usize, String> {
    take_number(rest)
        .and_then(|points| usize::try_from(points).ok())
        .filter(|points| *points <= POINTS_MAX)
        .ok_or_else(|| "it promises too many points".to_owned())
}

fn take_times(rest: &mut &[u8], points: usize, format: u8) -> Result<Vec<u32>, String> {
    let (mut at, mut step) = (0_u32, 0_i64);
    let mut at_ms = Vec::with_capacity(points);
    for _ in 0..points {
        let number = take_number(rest).ok_or(SHORT)?;
        step = match format {
            BITS => i64::try_from(number).unwrap_or(-1),
            _ => step.saturating_add(unzigzag(number)),
        };
        let long = u32::try_from(step).map_err(|_| "its time steps are too long")?;
        at = at.checked_add(long).ok_or("its times are too late")?;
        at_ms.push(at);
    }
    Ok(at_ms)
}

fn take_bits(rest: &[u8], points: usize) -> Result<Vec<f64>, String> {
    let mut last = 0;
    let differences = take_planes(rest, points, PLANES)?.into_iter();
    Ok(differences
        .map(|bits| {
            last ^= bits;
            f64::from_bits(last)
        })
        .collect())
}

fn take_decimals(mut rest: &[u8], points: usize) -> Result<Vec<f64>, String> {
    let byte = |rest: &mut &[u8]| -> Result<u8, String> {
        let (&byte, more) = rest.split_first().ok_or(SHORT)?;
        *rest = more;
        Ok(byte)
    };
    let decimals = byte(&mut rest)?;
    let ten = TENS
        .get(usize::from(decimals))
        .ok_or("it has too many decimals")?;
    let order = byte(&mut rest)?;
    let start = unzigzag(take_number(&mut rest).ok_or(SHORT)?);
    let unit = take_number(&mut rest).ok_or(SHORT)?;
    let planes = usize::from(byte(&mut rest)?);
    if order > 1 || planes > PLANES {
        return Err(format!("its order is {order} and its planes are {planes}"));
    }
    let mut last = start;
    let numbers = take_planes(rest, points, planes)?.into_iter();
    Ok(numbers
        .map(|number| {
            last = match order {
                0 => start.wrapping_add_unsigned(number.wrapping_mul(unit)),
                _ => last.wrapping_add(unzigzag(number).wrapping_mul(unit.cast_signed())),
            };
            last as f64 / ten
        })
        .collect())
}

fn push_planes(plain: &mut Vec<u8>, numbers: &[u64], planes: usize) {
    for plane in PLANES - planes..PLANES {
        plain.extend(numbers.iter().map(|number| number.to_be_bytes()[plane]));
    }
}

fn take_planes(rest: &[u8], points: usize, planes: usize) -> Result<Vec<u64>, String> {
    if rest.len() != points * planes {
        return Err(format!(
            "it holds {} bytes of values where {} are due",
            rest.len(),
            points * planes
        ));
    }
    let number = |point: usize| {
        let bytes = (0..planes).map(|plane| rest[plane * points + point]);
        bytes.fold(0, |number: u64, byte| number << 8 | u64::from(byte))
    };
    Ok((0..points).map(number).collect())
}

/// The greatest common divisor (Euclid).
fn common(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Signed numbers as unsigned ones, small where they are small: 0, -1, 1, -2 are 0, 1, 2, 3.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
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
mod tests;
