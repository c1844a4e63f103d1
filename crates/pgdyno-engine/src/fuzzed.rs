//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone:
//! each takes any input.

use crate::reply::{Message, Messages};

/// The rows of a reply, as they were kept: no more is read of them than is there.
pub fn kept_reply(bytes: &[u8]) {
    let mut read = 0;
    for message in Messages::new(bytes) {
        read += match message {
            Message::Columns(names) => names.map(<[u8]>::len).sum::<usize>(),
            Message::Row(values) => values.flatten().map(<[u8]>::len).sum(),
            Message::End => 0,
        };
    }
    assert!(read <= bytes.len());
}
