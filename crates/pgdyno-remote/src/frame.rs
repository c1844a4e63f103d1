//! Frames: a length in four bytes, most significant first, a byte that says of what kind the content is, and the content.

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
    write(out, MESSAGE, &serde_json::to_vec(message)?)
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

/// Reads the next frame; `None` where the other end has closed the connection between two. Memory is taken for bytes that have come,
/// never for those that a length announces.
pub(crate) fn read<M: Message>(from: &mut impl Read) -> Result<Option<Frame<M>>, FrameError> {
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
    if (content.len() as u64) < length {
        return Err(FrameError::Cut);
    }
    Ok(Some(match kind {
        MESSAGE => Frame::Message(serde_json::from_slice(&content)?),
        DATA => Frame::Data(content),
        REMARK => Frame::Remark(content),
        other => return Err(FrameError::Kind(other)),
    }))
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
