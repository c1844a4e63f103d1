//! Rows of a reply that somebody wants: read where they were kept, without copying.

/// A message that carries columns or a row.
pub enum Message<'a> {
    /// The names of the columns that follow.
    Columns(Names<'a>),
    /// The values of a row; `None` is null.
    Row(Values<'a>),
    /// The end of a statement's rows.
    End,
}

/// The messages of a kept reply: type, length and body each.
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Those of a reply, as they were kept.
    pub fn new(reply: &'a [u8]) -> Messages<'a> {
        Messages(reply)
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn take_int<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    take(bytes, N)?.try_into().ok()
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let [kind] = take_int(&mut self.0)?;
        let length = u32::from_be_bytes(take_int(&mut self.0)?) as usize;
        let mut body = take(&mut self.0, length.checked_sub(4)?)?;
        if kind == b'C' {
            return Some(Message::End);
        }
        let count = u16::from_be_bytes(take_int(&mut body)?);
        Some(match kind {
            b'T' => Message::Columns(Names { body, left: count }),
            _ => Message::Row(Values { body, left: count }),
        })
    }
}

/// The names in a RowDescription.
pub struct Names<'a> {
    body: &'a [u8],
    left: u16,
}

/// Behind a name: table, column, type, its length and modifier, format.
const COLUMN_REST: usize = 18;

impl<'a> Iterator for Names<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let end = self.body.iter().position(|&byte| byte == 0)?;
        let name = take(&mut self.body, end)?;
        take(&mut self.body, 1 + COLUMN_REST)?;
        Some(name)
    }
}

/// The values in a DataRow.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    body: &'a [u8],
    left: u16,
}

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        self.left = self.left.checked_sub(1)?;
        let length = i32::from_be_bytes(take_int(&mut self.body)?);
        match usize::try_from(length) {
            Ok(length) => take(&mut self.body, length).map(Some),
            Err(_) => Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_values_are_read() {
        let columns = [&b"T\0\0\0\x00\0\x02a\0"[..], &[0; 18], b"bc\0", &[0; 18]].concat();
        let row = b"D\0\0\0\x00\0\x02\0\0\0\x03xyz\xff\xff\xff\xff".to_vec();
        let mut reply = Vec::new();
        for mut message in [columns, row] {
            let length = u32::try_from(message.len() - 1).unwrap();
            message[1..5].copy_from_slice(&length.to_be_bytes());
            reply.extend_from_slice(&message);
        }
        let mut messages = Messages::new(&reply);
        let Some(Message::Columns(names)) = messages.next() else {
            panic!("columns first");
        };
        assert_eq!(names.collect::<Vec<_>>(), [&b"a"[..], b"bc"]);
        let Some(Message::Row(values)) = messages.next() else {
            panic!("then a row");
        };
        assert_eq!(values.collect::<Vec<_>>(), [Some(&b"xyz"[..]), None]);
        assert!(messages.next().is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for message in Messages::new(&bytes) {
                match message {
                    Message::Columns(names) => names.for_each(drop),
                    Message::Row(values) => values.for_each(drop),
                    Message::End => {}
                }
            }
        }
    }
}
