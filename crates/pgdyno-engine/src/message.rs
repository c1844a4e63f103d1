//! Requests: laid out once as bytes and holes; per transaction only the values are put in.
//!
//! Message layouts: PostgreSQL documentation, "Message Formats" (protocol 3.0).

use crate::expression::Variable;
use crate::value::Slot;
use std::ops::Range;

const BINARY: u16 = 1;

/// Ends a request of the extended protocol.
pub const SYNC: &[u8] = b"S\0\0\0\x04";
/// Execute the unnamed portal to its end.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
/// Describe the unnamed portal: returns the names of its columns.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// The message Terminate, which ends a session.
pub(crate) const TERMINATE: &[u8] = b"X\0\0\0\x04";
/// Ends a failed transaction, as a simple query.
pub(crate) const ROLLBACK: &[u8] = b"Q\0\0\0\x0dROLLBACK\0";

/// What is declared to the server about a variable in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Nothing: it goes as text, and the server finds out what it is, as with pgbench.
    Unknown,
    /// An integer of four bytes, sent in binary.
    Int4,
    /// An integer of eight bytes, sent in binary.
    Int8,
    /// Text, which looks the same in binary.
    Text,
}

impl Type {
    /// The type's oid in pg_type.
    fn oid(self) -> u32 {
        match self {
            Type::Unknown => 0,
            Type::Int4 => 23,
            Type::Int8 => 20,
            Type::Text => 25,
        }
    }
}

/// A stretch of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// SQL that is the same in every execution.
    Sql(String),
    /// A variable, and its text in a statement: its name, where it has no value and values are part
    /// of the text.
    Variable(Variable, Type, String),
}

/// A statement with the variables that are in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Text of the statement, piece by piece.
    pub parts: Vec<Part>,
    /// Whether the names of the columns are needed with the rows.
    pub described: bool,
    /// Whether values come in binary; else as text, as with pgbench.
    pub binary: bool,
}

impl Statement {
    fn parameters(&self) -> impl Iterator<Item = (Variable, Type)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(variable, of, _) => Some((*variable, *of)),
            Part::Sql(_) => None,
        })
    }

    /// With `$1`, `$2` ... for its variables.
    pub fn sql(&self) -> String {
        self.sql_with(|number| format!("${number}"))
    }

    /// With a text for each of its variables, which are counted from 1.
    pub fn sql_with(&self, text_of: impl Fn(usize) -> String) -> String {
        let mut number = 0;
        let mut sql = String::new();
        for part in &self.parts {
            match part {
                Part::Sql(text) => sql.push_str(text),
                Part::Variable(..) => {
                    number += 1;
                    sql.push_str(&text_of(number));
                }
            }
        }
        sql
    }

    /// The Parse message that gives it a name.
    pub fn parse(&self, name: &str) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(self.sql().as_bytes());
        body.push(0);
        body.extend_from_slice(&count(self.parameters().count()).to_be_bytes());
        for (_, of) in self.parameters() {
            body.extend_from_slice(&of.oid().to_be_bytes());
        }
        message(b'P', &body)
    }
}

/// A message with its type, length and body.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Closes a prepared statement of that name, if there is one.
pub(crate) fn close(name: &str) -> Vec<u8> {
    message(b'C', format!("S{name}\0").as_bytes())
}

/// The driver that asks questions calls its own s0, s1 and so on; behind a pooler both may meet in
/// one session.
pub fn statement_name(number: usize) -> String {
    format!("p{number}")
}

fn count(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

/// A piece of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Bytes that are the same each time.
    Fixed(Range<usize>),
    /// A variable as an integer of four bytes.
    Int4(Variable),
    /// A variable as an integer of eight bytes.
    Int8(Variable),
    /// A variable as a parameter: its length and its text, or null.
    Parameter(Variable),
    /// A variable within a simple query, by what is there if it has no value.
    Text(Variable, Range<usize>),
    /// The length of a message is here and counts from here.
    Begin,
    /// The message ends here.
    End,
}

/// A stretch of pieces.
pub(crate) type Pieces = Range<u32>;

/// Every request of a load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    fixed: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Layout {
    fn here(&self) -> u32 {
        u32::try_from(self.pieces.len()).unwrap_or(u32::MAX)
    }

    fn store(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.fixed.len();
        self.fixed.extend_from_slice(bytes);
        start..self.fixed.len()
    }

    fn fix(&mut self, first: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let stored = self.store(bytes);
        let inside = self.pieces.len() > first as usize;
        match self.pieces.last_mut() {
            Some(Piece::Fixed(range)) if inside && range.end == stored.start => range.end = stored.end,
            _ => self.pieces.push(Piece::Fixed(stored)),
        }
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Pieces {
        let first = self.here();
        self.fix(first, bytes);
        first..self.here()
    }

    /// A simple query; values are in its text, and a variable without one is left as it is written.
    pub(crate) fn query(&mut self, statement: &Statement) -> Pieces {
        let first = self.here();
        self.fix(first, b"Q");
        self.pieces.push(Piece::Begin);
        for part in &statement.parts {
            match part {
                Part::Sql(sql) => self.fix(first, sql.as_bytes()),
                Part::Variable(variable, of, written) => {
                    // Text that is drawn holds no quote; a user writes the quotes.
                    let quote: &[u8] = if *of == Type::Text { b"'" } else { b"" };
                    self.fix(first, quote);
                    let unset = self.store(written.as_bytes());
                    self.pieces.push(Piece::Text(*variable, unset));
                    self.fix(first, quote);
                }
            }
        }
        self.fix(first, b"\0");
        self.pieces.push(Piece::End);
        first..self.here()
    }

    /// Bind and Execute of the prepared statement `name`; the unnamed one is parsed before.
    pub(crate) fn bind(&mut self, statement: &Statement, name: &str) -> Pieces {
        let first = self.here();
        if name.is_empty() {
            self.fix(first, &statement.parse(""));
        }
        self.fix(first, b"B");
        self.pieces.push(Piece::Begin);
        self.fix(first, b"\0"); // the unnamed portal
        self.fix(first, name.as_bytes());
        self.fix(first, b"\0");
        // One code for all of them; none means text.
        let formats: &[u16] = match statement.parameters().next() {
            Some((_, Type::Unknown)) => &[0],
            None if !statement.binary => &[0],
            _ => &[1, BINARY],
        };
        let put = |layout: &mut Layout, numbers: &[u16]| {
            for number in numbers {
                layout.fix(first, &number.to_be_bytes());
            }
        };
        put(self, formats);
        put(self, &[count(statement.parameters().count())]);
        for (variable, of) in statement.parameters() {
            match of {
                Type::Int4 => {
                    self.fix(first, &4_u32.to_be_bytes());
                    self.pieces.push(Piece::Int4(variable));
                }
                Type::Int8 => {
                    self.fix(first, &8_u32.to_be_bytes());
                    self.pieces.push(Piece::Int8(variable));
                }
                Type::Unknown | Type::Text => self.pieces.push(Piece::Parameter(variable)),
            }
        }
        put(self, if statement.binary { &[1, BINARY] } else { &[0] });
        self.pieces.push(Piece::End);
        if statement.described {
            self.fix(first, DESCRIBE);
        }
        self.fix(first, EXECUTE);
        first..self.here()
    }

    /// Appends a stretch of pieces to a request.
    pub(crate) fn encode(&self, pieces: &Pieces, slots: &[Slot], out: &mut Vec<u8>) {
        let mut begin = 0;
        for piece in &self.pieces[pieces.start as usize..pieces.end as usize] {
            match piece {
                Piece::Fixed(range) => out.extend_from_slice(&self.fixed[range.clone()]),
                Piece::Int4(variable) => {
                    #[expect(clippy::cast_possible_truncation, reason = "drawn within four bytes")]
                    let value = slots[usize::from(*variable)].int() as i32;
                    out.extend_from_slice(&value.to_be_bytes());
                }
                Piece::Int8(variable) => {
                    let value = slots[usize::from(*variable)].int();
                    out.extend_from_slice(&value.to_be_bytes());
                }
                Piece::Parameter(variable) => push_parameter(&slots[usize::from(*variable)], out),
                Piece::Text(variable, unset) => {
                    let slot = &slots[usize::from(*variable)];
                    if slot.is_set() {
                        slot.write(out);
                    } else {
                        out.extend_from_slice(&self.fixed[unset.clone()]);
                    }
                }
                Piece::Begin => {
                    begin = out.len();
                    out.extend_from_slice(&[0; 4]);
                }
                Piece::End => put_length(out, begin),
            }
        }
    }
}

/// Length and text of a parameter; -1 means null.
fn push_parameter(slot: &Slot, out: &mut Vec<u8>) {
    let begin = out.len();
    if slot.is_null() {
        out.extend_from_slice(&u32::MAX.to_be_bytes());
        return;
    }
    out.extend_from_slice(&[0; 4]);
    slot.write(out);
    let length = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes the length of a message whose length field is at `begin` and which ends here.
fn put_length(out: &mut [u8], begin: usize) {
    let length = u32::try_from(out.len() - begin).unwrap_or(u32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
}

/// A Bind written value by value, for whoever has no slots: all parameters and results in binary.
pub struct Binding<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
}

impl<'a> Binding<'a> {
    /// Begins to bind the prepared statement `name` to `parameters` values.
    pub fn new(out: &'a mut Vec<u8>, name: &[u8], parameters: u16) -> Binding<'a> {
        out.push(b'B');
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        out.push(0); // the unnamed portal
        out.extend_from_slice(name);
        out.push(0);
        for number in [1, BINARY, parameters] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        Binding { out, begin }
    }

    /// An integer of four bytes.
    pub fn int(self, value: i32) -> Self {
        self.out.extend_from_slice(&4_u32.to_be_bytes());
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Text, or whatever has these bytes in binary.
    pub fn bytes(self, value: &[u8]) -> Self {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.out.extend_from_slice(&length.to_be_bytes());
        self.out.extend_from_slice(value);
        self
    }

    /// A value of another type with its length, both appended by `put`.
    pub fn value(self, put: impl FnOnce(&mut Vec<u8>)) -> Self {
        put(self.out);
        self
    }

    /// An array of integers of four bytes, of one dimension (source: PostgreSQL's array_send).
    pub fn ints(self, values: impl ExactSizeIterator<Item = i32>) -> Self {
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        self.out.extend_from_slice(&(20 + 8 * count).to_be_bytes());
        // Dimensions, nulls, type, length, lower bound.
        for number in [1, 0, Type::Int4.oid(), count, 1] {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        for value in values {
            self.out.extend_from_slice(&4_u32.to_be_bytes());
            self.out.extend_from_slice(&value.to_be_bytes());
        }
        self
    }

    /// Ends the Bind; what it binds is to be executed.
    pub fn execute(self) {
        for number in [1, BINARY] {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        put_length(self.out, self.begin);
        self.out.extend_from_slice(EXECUTE);
    }
}

/// The kinds of the messages in `bytes`: fails where a length does not fit.
#[cfg(test)]
pub fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        kinds.push(char::from(kind));
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        bytes = &rest[length..];
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn statement(of: Type, described: bool) -> Statement {
        Statement {
            parts: vec![
                Part::Sql("SELECT ".into()),
                Part::Variable(1, of, ":delta".into()),
                Part::Sql(", ".into()),
                Part::Variable(0, of, ":aid".into()),
            ],
            described,
            binary: of != Type::Unknown,
        }
    }

    fn slots() -> Vec<Slot> {
        let mut slots = vec![Slot::EMPTY; 2];
        slots[0].set(Value::Int(0x0102_0304));
        slots[1].set(Value::Int(-7));
        slots
    }

    fn encoded(layout: &Layout, pieces: &Pieces, slots: &[Slot]) -> Vec<u8> {
        let mut out = Vec::new();
        layout.encode(pieces, slots, &mut out);
        out
    }

    #[test]
    fn values_stand_where_the_statement_wants_them() {
        let mut layout = Layout::default();
        let binary = layout.bind(&statement(Type::Int4, false), "s1");
        let bytes = encoded(&layout, &binary, &slots());
        assert_eq!(kinds(&bytes), "BE");
        let at = |needle: &[u8]| bytes.windows(needle.len()).position(|w| w == needle);
        let second = at(&[1, 2, 3, 4]).unwrap();
        assert_eq!(
            at(&(-7_i32).to_be_bytes()).unwrap() + 8,
            second,
            "a value, a length, a value"
        );
        let wide = layout.bind(&statement(Type::Int8, false), "s1");
        let bytes = encoded(&layout, &wide, &slots());
        let at = |needle: &[u8]| bytes.windows(needle.len()).position(|w| w == needle);
        let value = at(&(-7_i64).to_be_bytes()).unwrap();
        assert_eq!(bytes[value - 4..value], 8_u32.to_be_bytes());
        assert_eq!(at(&0x0102_0304_i64.to_be_bytes()), Some(value + 12));

        let text = layout.bind(&statement(Type::Unknown, true), "");
        let bytes = encoded(&layout, &text, &slots());
        assert_eq!(kinds(&bytes), "PBDE");
        assert!(bytes.windows(6).any(|w| w == b"\0\0\0\x02-7"));
        let bytes = encoded(&layout, &text, &[slots()[0].clone(), Slot::EMPTY]);
        assert!(bytes.windows(4).any(|w| w == [0xff; 4]), "not set: null");
    }

    #[test]
    fn a_simple_query_leaves_what_is_not_set_as_it_is_written() {
        let mut layout = Layout::default();
        let query = layout.query(&statement(Type::Int4, false));
        let bytes = encoded(&layout, &query, &slots());
        assert_eq!(&bytes[5..], b"SELECT -7, 16909060\0");
        assert_eq!(kinds(&bytes), "Q");
        let bytes = encoded(&layout, &query, &[Slot::EMPTY, slots()[1].clone()]);
        assert_eq!(&bytes[5..], b"SELECT -7, :aid\0");
    }

    #[test]
    fn a_binding_is_a_whole_message() {
        let mut out = Vec::new();
        Binding::new(&mut out, b"s1", 3)
            .int(1)
            .bytes(b"abc")
            .ints([1, 2].into_iter())
            .execute();
        assert_eq!(kinds(&out), "BE");
        assert_eq!(kinds(&close("s1")), "C");
        assert_eq!(kinds(ROLLBACK), "Q");
        assert_eq!(kinds(TERMINATE), "X");
    }
}
