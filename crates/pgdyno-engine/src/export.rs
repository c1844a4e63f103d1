//! Response times in a format that others read: HdrHistogram's log, one interval per second or per
//! trial.

use crate::books::Books;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use pgdyno_record::decoded_histogram;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// The log's column of maxima is in milliseconds.
const NS_PER_MS: f64 = 1e6;

/// Begins a log of a load's intervals, warm-up included, and lets `act` write the books of each,
/// with its length in seconds, as they come; values are nanoseconds.
pub fn with_interval_log<R>(
    mut out: impl Write,
    act: impl FnOnce(&mut dyn FnMut(&Books, f64) -> io::Result<()>) -> R,
) -> io::Result<R> {
    let now = SystemTime::now();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("response times of committed transactions, in nanoseconds")
        .with_start_time(now)
        .with_base_time(now)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(&mut out, &mut serializer)?;
    let mut begins = Duration::ZERO;
    let result = act(&mut |books, length_s| {
        let length = Duration::from_secs_f64(length_s);
        log.write_histogram(&books.response_ns, begins, length, None)
            .map_err(|error| io::Error::other(error.to_string()))?;
        begins += length;
        Ok(())
    });
    drop(log);
    out.flush()?;
    Ok(result)
}

/// A histogram of response times in nanoseconds as it is stored: HdrHistogram's V2, deflated,
/// base64.
#[derive(Debug, Clone, Copy)]
pub struct StoredHistogram<'a> {
    /// What it is of; characters that a log's tag cannot hold become `_`.
    pub tag: &'a str,
    /// Begin of the interval, after that of the log.
    pub begins: Duration,
    /// Length of the measured time.
    pub length: Duration,
    /// Histogram as it is stored: V2, deflated, base64.
    pub encoded: &'a str,
}

/// Writes stored histograms as a log that began at `start`, an interval for each. An error names
/// the one that cannot be read.
pub fn write_stored_log<'a>(
    mut out: impl Write,
    start: SystemTime,
    histograms: impl Iterator<Item = StoredHistogram<'a>>,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("response times of committed transactions, in nanoseconds; an interval is a trial")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(&mut out, &mut serializer)?;
    for stored in histograms {
        let unreadable = |error: &dyn std::fmt::Display| {
            io::Error::other(format!("the histogram of {}: {error}", stored.tag))
        };
        let histogram = decoded_histogram(stored.encoded).map_err(|error| unreadable(&error))?;
        let tag = stored.tag.replace([',', ' ', '\r', '\n'], "_");
        log.write_histogram(&histogram, stored.begins, stored.length, Tag::new(&tag))
            .map_err(|error| unreadable(&error))?;
    }
    drop(log);
    out.flush()
}
