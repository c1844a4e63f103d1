//! Response times in a format that others read: HdrHistogram's log, one interval per second.

use crate::engine::LoadResult;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::io;
use std::time::{Duration, SystemTime};

/// Nanoseconds in a millisecond: the log's column of maxima is in milliseconds.
const NS_PER_MS: f64 = 1e6;

/// The seconds of a load that began at `started`, warm-up included; values are nanoseconds.
pub fn interval_log(load: &LoadResult, started: SystemTime) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("response times of committed transactions, in nanoseconds")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(NS_PER_MS)
        .begin_log_with(&mut text, &mut serializer)?;
    let mut begins = Duration::ZERO;
    for second in &load.seconds {
        let length = Duration::from_secs_f64(second.length_s);
        log.write_histogram(&second.books.response_ns, begins, length, None)
            .map_err(|error| io::Error::other(error.to_string()))?;
        begins += length;
    }
    drop(log);
    Ok(text)
}
