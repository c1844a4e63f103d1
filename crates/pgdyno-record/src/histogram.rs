//! Histograms of response times as texts: HdrHistogram's V2, deflated, base64. What is read may
//! come from anybody.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::io::Read;

/// Format and length before what is deflated, of four bytes each.
const DEFLATED_HEAD: usize = 8;
/// Format, length of the payload, offset and digits of four bytes each, least and largest value and
/// ratio of eight.
const HEAD: usize = 40;
/// Most bytes of a histogram that is no longer deflated; one of three digits up to an hour has some
/// 500 kB at most.
const BYTES_MAX: u64 = 4 << 20;
const DIGITS_MAX: u64 = 3;
/// Larger values are none of a time in nanoseconds.
const VALUE_MAX: u64 = 1 << 53;

/// The text of a histogram.
pub fn encoded_histogram(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Into memory, and of bounds that the format has.
    let _ = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    STANDARD.encode(bytes)
}

/// The histogram of a text. Memory is taken for bytes that are there, and never for what they
/// announce.
///
/// # Errors
///
/// Why it is none.
pub fn decoded_histogram(text: &str) -> Result<Histogram<u64>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("it is not a histogram: {error}");
    let deflated = STANDARD.decode(text).map_err(|error| wrong(&error))?;
    let deflated = deflated
        .get(DEFLATED_HEAD..)
        .ok_or_else(|| wrong(&"it ends early"))?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(deflated)
        .take(BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(&error))?;
    let number = |at: usize, length: usize| -> Option<u64> {
        let part = bytes.get(at..at + length)?.iter();
        Some(part.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    let is_whole = number(4, 4) == Some(bytes.len().saturating_sub(HEAD) as u64);
    let is_small = number(12, 4).is_some_and(|digits| digits <= DIGITS_MAX)
        && number(24, 8).is_some_and(|high| high <= VALUE_MAX);
    if !(is_whole && is_small) {
        return Err(wrong(&"it has another length, or other bounds, than a time's"));
    }
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    /// A text of bytes that are not deflated yet.
    fn text_of(plain: &[u8]) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        let mut bytes = vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0];
        bytes.extend(encoder.finish().unwrap());
        STANDARD.encode(bytes)
    }

    #[test]
    fn histogram_is_read_as_it_was_written() {
        for digits in [2, 3] {
            let mut histogram = Histogram::<u64>::new_with_bounds(1_000, 3_600_000_000_000, digits).unwrap();
            (1..2_000_u64).for_each(|n| histogram.record(n * 7_919).unwrap());
            assert_eq!(decoded_histogram(&encoded_histogram(&histogram)), Ok(histogram));
        }
    }

    #[test]
    fn what_announces_much_is_refused() {
        let head = |payload: u32, digits: u32, high: u64| {
            let mut plain = vec![0x1c, 0x84, 0x93, 0x13];
            plain.extend(payload.to_be_bytes());
            plain.extend([0; 4]);
            plain.extend(digits.to_be_bytes());
            plain.extend(1_u64.to_be_bytes());
            plain.extend(high.to_be_bytes());
            plain.extend(1_f64.to_be_bytes());
            text_of(&plain)
        };
        for (payload, digits, high) in [(u32::MAX, 3, 1 << 40), (0, 5, 1 << 40), (0, 3, u64::MAX)] {
            assert!(decoded_histogram(&head(payload, digits, high)).is_err());
        }
        assert!(decoded_histogram(&text_of(&vec![0; 64 << 20])).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_histogram_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded_histogram(&STANDARD.encode(&bytes));
            let _ = decoded_histogram(&text_of(&bytes));
        }
    }
}
