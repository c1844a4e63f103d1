//! Replies, scanned where they arrived: nothing is copied but the start of an error.

use crate::books::SqlState;

/// A message that was found in a stretch of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// ReadyForQuery with the transaction status: `I` idle, `T` in a transaction, `E` in a failed
    /// one.
    Ready(u8),
    /// ErrorResponse with its SQLSTATE.
    Error(SqlState),
    /// CommandComplete: a statement ended well.
    Complete(Tag),
    /// DataRow: a row of the answer.
    Row,
}

/// What a completed statement did to its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Committed it.
    Commit,
    /// Rolled it back, or left it to be committed by another one.
    Rollback,
    /// Neither of these.
    Other,
}

/// Bytes that no PostgreSQL server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A message type that a server does not send here.
    #[error("the server sent a message of the unknown type 0x{0:02x}")]
    Kind(u8),
    /// A length below four or beyond a gibibyte.
    #[error("the server announced a message of {0} bytes")]
    Length(u32),
    /// COPY needs data of the client, or sends its own.
    #[error("the server began a COPY from or to the client, which a load does not do")]
    Copy,
    /// More rows than are kept for a transaction's variables.
    #[error("the rows that are to become variables have more than {KEPT_ROWS_MAX} bytes")]
    Rows,
}

/// Types that may arrive after the start-up (PostgreSQL documentation, "Message Formats").
const KINDS: &[u8] = b"123ACDEINSTZnstv";
/// PostgreSQL itself refuses messages beyond this.
const LENGTH_MAX: u32 = 1 << 30;
const HEADER: usize = 5;
/// Severity, its untranslated form and the SQLSTATE come first in an error and fit this.
const KEPT: usize = 128;
/// So much of a round trip's first error is kept for people.
const KEPT_ERROR: usize = 1024;

/// Rows that are to be kept may have so many bytes in all.
const KEPT_ROWS_MAX: usize = 16 << 20;

/// Scans the replies of one connection. Bytes may be cut anywhere between two calls.
#[derive(Debug, Clone)]
pub struct Scanner {
    header: [u8; HEADER],
    header_len: usize,
    /// Bytes of the present message that are still to come, once its header is complete.
    body_left: usize,
    kept: [u8; KEPT],
    kept_len: usize,
    /// The first error since [`Scanner::forget_error`], and whether it is the message at hand.
    error: Vec<u8>,
    is_first_error: bool,
    /// Whether rows and their columns are kept, and those that were.
    keeps_rows: bool,
    rows: Vec<u8>,
}

impl Default for Scanner {
    fn default() -> Self {
        Scanner {
            header: [0; HEADER],
            header_len: 0,
            body_left: 0,
            kept: [0; KEPT],
            kept_len: 0,
            error: Vec::with_capacity(KEPT_ERROR),
            is_first_error: false,
            keeps_rows: false,
            rows: Vec::new(),
        }
    }
}

impl Scanner {
    /// Whether rows and the names of their columns are to be kept from here on; forgets those that
    /// were.
    pub fn keep_rows(&mut self, keeps: bool) {
        self.keeps_rows = keeps;
        self.rows.clear();
    }

    /// The next error is the first one again.
    pub(crate) fn forget_error(&mut self) {
        self.error.clear();
    }

    /// The beginning of the first error since [`Scanner::forget_error`]: its fields, a type byte
    /// and a zero-terminated text each.
    pub(crate) fn error(&self) -> &[u8] {
        &self.error
    }

    /// The messages RowDescription, DataRow and CommandComplete that were kept, whole.
    pub fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// Scans `input` to its end and reports each event. After an error the connection is of no more
    /// use.
    pub fn feed(&mut self, mut input: &[u8], mut on_event: impl FnMut(Event)) -> Result<(), Malformed> {
        while !input.is_empty() {
            if self.header_len < HEADER {
                let taken = (HEADER - self.header_len).min(input.len());
                self.header[self.header_len..self.header_len + taken].copy_from_slice(&input[..taken]);
                self.header_len += taken;
                input = &input[taken..];
                if self.header_len < HEADER {
                    return Ok(());
                }
                self.begin()?;
            }
            let taken = self.body_left.min(input.len());
            self.keep(&input[..taken])?;
            self.body_left -= taken;
            input = &input[taken..];
            if self.body_left == 0 {
                self.header_len = 0;
                if let Some(event) = self.event() {
                    on_event(event);
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Malformed> {
        let [kind, length @ ..] = self.header;
        let length = u32::from_be_bytes(length);
        if matches!(kind, b'G' | b'H' | b'W') {
            return Err(Malformed::Copy);
        }
        if !KINDS.contains(&kind) {
            return Err(Malformed::Kind(kind));
        }
        // ReadyForQuery holds its status, so an empty one is as malformed as a length that cannot
        // be.
        let least = if kind == b'Z' { 5 } else { 4 };
        if !(least..=LENGTH_MAX).contains(&length) {
            return Err(Malformed::Length(length));
        }
        self.body_left = (length - 4) as usize;
        self.kept_len = 0;
        self.is_first_error = kind == b'E' && self.error.is_empty();
        if self.keeps_rows && matches!(kind, b'T' | b'D' | b'C') {
            self.rows.extend_from_slice(&self.header);
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if self.keeps_rows && matches!(self.header[0], b'T' | b'D' | b'C') {
            if self.rows.len() + bytes.len() > KEPT_ROWS_MAX {
                return Err(Malformed::Rows);
            }
            self.rows.extend_from_slice(bytes);
        }
        if self.is_first_error {
            let taken = bytes.len().min(KEPT_ERROR - self.error.len());
            self.error.extend_from_slice(&bytes[..taken]);
        }
        match self.header[0] {
            b'Z' | b'E' | b'C' => {
                let taken = bytes.len().min(KEPT - self.kept_len);
                self.kept[self.kept_len..self.kept_len + taken].copy_from_slice(&bytes[..taken]);
                self.kept_len += taken;
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&self) -> Option<Event> {
        match self.header[0] {
            b'Z' => Some(Event::Ready(self.kept[0])),
            b'E' => Some(Event::Error(sqlstate(&self.kept[..self.kept_len]))),
            b'C' => Some(Event::Complete(match &self.kept[..self.kept_len] {
                b"COMMIT\0" => Tag::Commit,
                b"ROLLBACK\0" | b"PREPARE TRANSACTION\0" => Tag::Rollback,
                _ => Tag::Other,
            })),
            // EmptyQueryResponse.
            b'I' => Some(Event::Complete(Tag::Other)),
            b'D' => Some(Event::Row),
            _ => None,
        }
    }
}

/// The field `C` of an error: fields are a type byte and a zero-terminated text each.
fn sqlstate(mut body: &[u8]) -> SqlState {
    while let Some((&field, rest)) = body.split_first() {
        let Some(end) = rest.iter().position(|&byte| byte == 0) else {
            break;
        };
        if field == b'C' {
            return SqlState::from_bytes(&rest[..end]);
        }
        body = &rest[end + 1..];
    }
    SqlState::UNKNOWN
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn reply() -> Vec<u8> {
        [
            message(b'2', b""),
            message(b'D', &[0; 20]),
            message(b'C', b"SELECT 1\0"),
            message(b'C', b"COMMIT\0"),
            message(b'E', b"SERROR\0VERROR\0C40001\0Mcould not serialize\0\0"),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    fn events(pieces: &[&[u8]]) -> Vec<Event> {
        let mut scanner = Scanner::default();
        let mut all = Vec::new();
        for piece in pieces {
            scanner.feed(piece, |event| all.push(event)).unwrap();
        }
        all
    }

    fn expected() -> Vec<Event> {
        vec![
            Event::Row,
            Event::Complete(Tag::Other),
            Event::Complete(Tag::Commit),
            Event::Error(SqlState::from_bytes(b"40001")),
            Event::Ready(b'I'),
        ]
    }

    #[test]
    fn a_reply_may_be_cut_at_any_byte() {
        let reply = reply();
        for cut in 0..=reply.len() {
            assert_eq!(
                events(&[&reply[..cut], &reply[cut..]]),
                expected(),
                "cut at {cut}"
            );
        }
        let single: Vec<&[u8]> = reply.chunks(1).collect();
        assert_eq!(events(&single), expected());
    }

    #[test]
    fn what_no_server_sends_is_named() {
        let check = |bytes: &[u8], expected| {
            assert_eq!(Scanner::default().feed(bytes, |_| ()), Err(expected));
        };
        check(b"HTTP/", Malformed::Copy);
        check(b"FTP//", Malformed::Kind(b'F'));
        check(b"Z\0\0\0\x04", Malformed::Length(4));
        check(b"D\0\0\0\x03", Malformed::Length(3));
        check(b"D\x80\0\0\0", Malformed::Length(0x8000_0000));
    }

    #[test]
    fn an_error_without_a_code_is_unknown() {
        let bytes = message(b'E', b"SERROR\0");
        assert_eq!(events(&[&bytes]), [Event::Error(SqlState::UNKNOWN)]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0_usize..400) {
            let mut scanner = Scanner::default();
            let cut = cut.min(bytes.len());
            let _ = scanner.feed(&bytes[..cut], |_| ()).and_then(|()| scanner.feed(&bytes[cut..], |_| ()));
        }
    }
}
