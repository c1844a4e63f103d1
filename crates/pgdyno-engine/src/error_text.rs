//! The text of a server's error for people: bounded, on one line, without the statement.

use crate::books::SqlState;

/// Most characters of each part of a message.
const PART_CHARS: usize = 300;

/// Message, detail and hint of an error's fields (PostgreSQL documentation, "Error and Notice
/// Message Fields"), which may be cut anywhere; `None` where they are of another SQLSTATE or hold
/// no message.
pub(crate) fn of_error(mut fields: &[u8], code: SqlState) -> Option<String> {
    let (mut sqlstate, mut message, mut more) = (SqlState::UNKNOWN, None, String::new());
    while let Some((&kind, rest)) = fields.split_first() {
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        let text = &rest[..end];
        match kind {
            b'C' => sqlstate = SqlState::from_bytes(text),
            b'M' => message = Some(brief(text)),
            b'D' => more = format!("; {}", brief(text)),
            b'H' => more = format!("{more}; hint: {}", brief(text)),
            _ => {}
        }
        fields = rest.get(end + 1..).unwrap_or_default();
    }
    (sqlstate == code)
        .then(|| message.map(|message| message + &more))
        .flatten()
}

/// As much of a text as people read, on one line.
pub(crate) fn brief(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(PART_CHARS) {
        line.truncate(at);
        line += "...";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn message_detail_and_hint_are_kept_and_the_statement_is_not() {
        let code = SqlState::from_bytes(b"23505");
        let fields = b"SERROR\0VERROR\0C23505\0Mduplicate key\n value\0DKey (id)=(1) already exists.\0Htry 2\0qSELECT 'secret'\0";
        assert_eq!(
            of_error(fields, code).unwrap(),
            "duplicate key value; Key (id)=(1) already exists.; hint: try 2"
        );
        assert_eq!(of_error(fields, SqlState::from_bytes(b"23503")), None);
        let long = [b"C23505\0M".as_slice(), &b"x".repeat(1000)].concat();
        assert_eq!(of_error(&long, code).unwrap().len(), PART_CHARS + 3);
    }

    proptest! {
        #[test]
        fn no_fields_make_it_panic(fields in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = of_error(&fields, SqlState::UNKNOWN);
        }
    }
}
