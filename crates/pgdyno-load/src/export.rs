//! Response times in a format that others read: HdrHistogram's log, one interval per second.

use crate::books::Second;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// The log's column of maxima is in milliseconds.
const NS_PER_MS: f64 = 1e6;

/// Begins a log of a load's seconds, warm-up included, and lets `act` write them as they come; values are nanoseconds.
pub fn with_interval_log<R>(
    mut out: impl Write,
    act: impl FnOnce(&mut dyn FnMut(&Second) -> io::Result<()>) -> R,
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
    let result = act(&mut |second| {
        let length = Duration::from_secs_f64(second.length_s);
        log.write_histogram(&second.books.response_ns, begins, length, None)
            .map_err(|error| io::Error::other(error.to_string()))?;
        begins += length;
        Ok(())
    });
    drop(log);
    out.flush()?;
    Ok(result)
}
