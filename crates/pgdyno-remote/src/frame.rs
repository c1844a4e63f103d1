//! Frames: a length in four bytes, most significant first, a byte that says of what kind the
//! content is, and the content.

use crate::message::{FromAgent, ToAgent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};

/// Most bytes of a frame's content.
pub(crate) const CONTENT_MAX: usize = 16 << 20;

/// A message, in JSON.
const MESSAGE: u8 = 1;
/// Bytes of the command's standard output.
const DATA: u8 = 2;
/// Bytes of its standard error.
const REMARK: u8 = 3;
/// The beginning of a message that is longer than a frame; it ends with a frame of the kind
/// [`MESSAGE`].
const PART: u8 = 4;

/// Most bytes of a message. The trials of the longest experiment are within it.
const MESSAGE_MAX: usize = 256 << 20;

/// What one frame holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame<M> {
    Message(M),
    Data(Vec<u8>),
    Remark(Vec<u8>),
}

/// Why bytes are no frames.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the connection ended within a frame")]
    Cut,
    #[error("a frame of {0} bytes, which is more than {CONTENT_MAX}")]
    TooLong(u64),
    #[error("a message of more than {MESSAGE_MAX} bytes")]
    MessageTooLong,
    #[error("a message with something else in the middle of it")]
    Mixed,
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    #[error("a message that is not one of this version: {0}")]
    Message(#[from] serde_json::Error),
}

/// Messages of one direction; the type keeps an end from reading its own.
pub(crate) trait Message: Serialize + DeserializeOwned {}

impl Message for ToAgent {}
impl Message for FromAgent {}

/// Writes a message and hands it over to the other end.
pub(crate) fn write_message(out: &mut impl Write, message: &impl Message) -> Result<(), FrameError> {
    let content = serde_json::to_vec(message)?;
    if content.len() > MESSAGE_MAX {
        return Err(FrameError::MessageTooLong);
    }
    let mut rest = &content[..];
    while rest.len() > CONTENT_MAX {
        let (part, after) = rest.split_at(CONTENT_MAX);
        write(out, PART, part)?;
        rest = after;
    }
    write(out, MESSAGE, rest)
}

/// Writes bytes that the command has printed: `is_data` to its standard output.
pub(crate) fn write_printed(out: &mut impl Write, is_data: bool, bytes: &[u8]) -> Result<(), FrameError> {
    write(out, if is_data { DATA } else { REMARK }, bytes)
}

fn write(out: &mut impl Write, kind: u8, content: &[u8]) -> Result<(), FrameError> {
    let too_long = || FrameError::TooLong(content.len() as u64);
    if content.len() > CONTENT_MAX {
        return Err(too_long());
    }
    let length = u32::try_from(content.len()).map_err(|_| too_long())?;
    let mut head = [0; 5];
    head[..4].copy_from_slice(&length.to_be_bytes());
    head[4] = kind;
    out.write_all(&head)?;
    out.write_all(content)?;
    Ok(out.flush()?)
}

/// Reads the next frame, or message of several; `None` where the other end has closed the
/// connection between two.
pub(crate) fn read<M: Message>(from: &mut impl Read) -> Result<Option<Frame<M>>, FrameError> {
    let mut message = Vec::new();
    loop {
        let Some((kind, mut content)) = read_content(from)? else {
            return match message.is_empty() {
                true => Ok(None),
                false => Err(FrameError::Cut),
            };
        };
        if kind == PART || kind == MESSAGE {
            if message.len() + content.len() > MESSAGE_MAX {
                return Err(FrameError::MessageTooLong);
            }
            match message.is_empty() {
                true => message = content,
                false => message.append(&mut content),
            }
            match kind {
                MESSAGE => return Ok(Some(Frame::Message(serde_json::from_slice(&message)?))),
                // A part without content would let an endless message take no memory, and no end.
                _ if message.is_empty() => return Err(FrameError::Mixed),
                _ => continue,
            }
        }
        return match kind {
            _ if !message.is_empty() => Err(FrameError::Mixed),
            DATA => Ok(Some(Frame::Data(content))),
            REMARK => Ok(Some(Frame::Remark(content))),
            other => Err(FrameError::Kind(other)),
        };
    }
}

/// Reads the kind and the content of a frame. Memory is taken for bytes that have come, never for
/// those that a length announces.
fn read_content(from: &mut impl Read) -> Result<Option<(u8, Vec<u8>)>, FrameError> {
    let mut head = [0; 5];
    let first = loop {
        match from.read(&mut head) {
            Ok(read) => break read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    };
    if first == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[first..]).map_err(cut)?;
    let [a, b, c, d, kind] = head;
    let length = u64::from(u32::from_be_bytes([a, b, c, d]));
    if length > CONTENT_MAX as u64 {
        return Err(FrameError::TooLong(length));
    }
    let mut content = Vec::new();
    from.take(length).read_to_end(&mut content)?;
    match (content.len() as u64) < length {
        true => Err(FrameError::Cut),
        false => Ok(Some((kind, content))),
    }
}

fn cut(error: io::Error) -> FrameError {
    match error.kind() {
        ErrorKind::UnexpectedEof => FrameError::Cut,
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads all frames; `Err` at the first that is none.
    fn all(mut bytes: &[u8]) -> Result<Vec<Frame<FromAgent>>, FrameError> {
        let mut frames = Vec::new();
        while let Some(frame) = read(&mut bytes)? {
            frames.push(frame);
        }
        Ok(frames)
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, &FromAgent::Ended { code: 3 }).unwrap();
        write_printed(&mut bytes, true, b"data\xff").unwrap();
        write_printed(&mut bytes, false, b"").unwrap();
        let found = all(&bytes).unwrap();
        let expected = [
            Frame::Message(FromAgent::Ended { code: 3 }),
            Frame::Data(b"data\xff".to_vec()),
            Frame::Remark(Vec::new()),
        ];
        assert_eq!(found, expected);
        for cut in 1..bytes.len() {
            match all(&bytes[..cut]) {
                Ok(some) => assert!(some.len() < expected.len()),
                Err(error) => assert!(matches!(error, FrameError::Cut), "{error}"),
            }
        }
    }

    #[test]
    fn message_longer_than_a_frame_is_whole_again() {
        let why = "x".repeat(CONTENT_MAX + 5);
        let mut bytes = Vec::new();
        write_message(&mut bytes, &FromAgent::Refused { why: why.clone() }).unwrap();
        assert_eq!(bytes[4], PART);
        assert_eq!(all(&bytes).unwrap(), [Frame::Message(FromAgent::Refused { why })]);
        let cut = all(&bytes[..CONTENT_MAX + 5]).unwrap_err();
        assert!(matches!(cut, FrameError::Cut), "{cut}");
        let mut mixed = bytes[..CONTENT_MAX + 5].to_vec();
        write_printed(&mut mixed, true, b"x").unwrap();
        assert!(matches!(all(&mixed), Err(FrameError::Mixed)));
        assert!(matches!(all(&[0, 0, 0, 0, PART]), Err(FrameError::Mixed)));
    }

    #[test]
    fn length_beyond_the_limit_is_refused_before_anything_is_read() {
        let error = all(&[0xff, 0xff, 0xff, 0xff, 1]).unwrap_err();
        assert!(matches!(error, FrameError::TooLong(_)), "{error}");
        let error = write_printed(&mut Vec::new(), true, &vec![0; CONTENT_MAX + 1]).unwrap_err();
        assert!(matches!(error, FrameError::TooLong(_)), "{error}");
        assert!(matches!(all(&[0, 0, 0, 0, 9]), Err(FrameError::Kind(9))));
        assert!(matches!(all(&[0, 0, 0, 1, 1, b'x']), Err(FrameError::Message(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = all(&bytes);
        }
    }
}
