//! Why a question has no answer, and what a server that does not end its answers has sent.

use crate::error::ServerError;
use std::fmt;

/// Characters of the server's that an error shows.
const SHOWN_CHARS: usize = 1000;

/// Why a question has no answer.
#[derive(Debug, Clone)]
pub(crate) enum LinkError {
    /// An error message of the server; the session can be used on.
    Said {
        /// Message of the server.
        reason: String,
        /// SQLSTATE of the error.
        sqlstate: String,
    },
    /// No connection, or none any more.
    Down(String),
    /// No answer within the limit.
    Silent,
    /// More than any answer is long, or longer than any takes: what was received.
    Flood(String),
    /// What has no place in PostgreSQL's protocol.
    Protocol(String),
    /// A value that is not UTF-8.
    NoText,
}

impl LinkError {
    /// Whether the connection is of no use any more.
    pub(crate) fn is_end(&self) -> bool {
        !matches!(self, LinkError::Said { .. })
    }

    /// Whether asking again would bring the same: the role may not, or there is no such thing here.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self, LinkError::Said { sqlstate, .. }
            if sqlstate.starts_with("42") || sqlstate.starts_with("0A") || sqlstate == "55000")
    }

    /// Whether the role lacks a right.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, LinkError::Said { sqlstate, .. } if sqlstate == "42501")
    }

    /// Whether the server ended the statement, mostly because its time was over.
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(self, LinkError::Said { sqlstate, .. } if sqlstate == "57014")
    }

    /// As an error of the server, for people.
    pub(crate) fn into_server_error(self, what: &str) -> ServerError {
        let what = what.to_owned();
        match self {
            LinkError::Said { reason, sqlstate } => ServerError::Statement {
                what,
                reason,
                sqlstate,
            },
            LinkError::Flood(sent) => ServerError::Flood { what, sent },
            LinkError::Protocol(reason) => ServerError::Protocol { what, reason },
            LinkError::NoText => ServerError::Answer {
                what,
                expected: "text in UTF-8",
                found: "something else".into(),
            },
            LinkError::Down(_) | LinkError::Silent => ServerError::Broken {
                what,
                reason: self.to_string(),
            },
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Said { reason, sqlstate } => write!(f, "{reason} (SQLSTATE {sqlstate})"),
            LinkError::Down(reason) => write!(f, "{reason}"),
            LinkError::Silent => write!(f, "no answer in time"),
            LinkError::Flood(sent) => write!(f, "{sent} came and no end of the answer"),
            LinkError::Protocol(reason) => {
                write!(f, "the server does not keep to PostgreSQL's protocol: {reason}")
            }
            LinkError::NoText => write!(f, "a value is not UTF-8"),
        }
    }
}

/// What was received, the most frequent messages first: "33554432 bytes (65531 NoticeResponse, 1
/// RowDescription)".
pub(super) fn sent(bytes: usize, messages: &[(u8, u64)]) -> String {
    let mut messages = messages.to_vec();
    messages.sort_by_key(|&(tag, count)| (std::cmp::Reverse(count), tag));
    let each: Vec<String> = messages
        .iter()
        .map(|&(tag, count)| format!("{count} {}", message_name(tag)))
        .collect();
    match each.is_empty() {
        true => format!("{bytes} bytes of a message"),
        false => format!("{bytes} bytes ({})", each.join(", ")),
    }
}

/// A message of the server's by its tag, as PostgreSQL's manual names it (chapter "Message
/// Formats").
pub(super) fn message_name(tag: u8) -> String {
    let name = match tag {
        b'1' => "ParseComplete",
        b'2' => "BindComplete",
        b'3' => "CloseComplete",
        b'A' => "NotificationResponse",
        b'C' => "CommandComplete",
        b'D' => "DataRow",
        b'E' => "ErrorResponse",
        b'G' => "CopyInResponse",
        b'H' => "CopyOutResponse",
        b'I' => "EmptyQueryResponse",
        b'K' => "BackendKeyData",
        b'N' => "NoticeResponse",
        b'R' => "Authentication",
        b'S' => "ParameterStatus",
        b'T' => "RowDescription",
        b'W' => "CopyBothResponse",
        b'Z' => "ReadyForQuery",
        b'c' => "CopyDone",
        b'd' => "CopyData",
        b'n' => "NoData",
        b's' => "PortalSuspended",
        b't' => "ParameterDescription",
        _ => return format!("unknown (tag {tag})"),
    };
    name.to_owned()
}

/// As much of a server's message as an error shows.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
