//! Rows in COPY's binary format (PostgreSQL documentation, COPY, "Binary Format"), sent in pieces.

use super::DataError;
use super::session::{Instant, WITHOUT_LIMITS, step_error};
use crate::session::{COPY_HEADER_BYTES, CopyIn, Session};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows are handed over in pieces of about this size: small enough for a processor's cache.
const PIECE_BYTES: usize = 64 * 1024;
/// More than the longest row.
const ROW_BYTES_MAX: usize = 4 * 1024;
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const NULL: i32 = -1;
const END: i16 = -1;

/// Rows for one table, or a part of them.
pub(super) struct Filling {
    pub(super) table: String,
    /// Whether this is all of the table: then its rows can be written as frozen, and nothing is
    /// left to do for VACUUM.
    pub(super) whole: bool,
    /// Columns that are the same in all rows.
    pub(super) constants: Vec<(&'static str, Constant)>,
    /// The other ones, in the order in which they are sent.
    pub(super) columns: &'static str,
    /// Sends them.
    pub(super) send: Send,
}

/// Sends all rows of a filling.
pub(super) type Send = Box<dyn FnOnce(&mut Rows<'_>) -> Result<(), DataError> + std::marker::Send>;

/// A value that is the same in all rows.
#[derive(Debug, Clone)]
pub(super) enum Constant {
    Int(i32),
    Text(&'static str),
    /// A numeric with two decimal places, in hundredths.
    Hundredths(i32),
    Instant(Instant),
}

impl Constant {
    fn sql(&self) -> String {
        match self {
            Constant::Int(value) => value.to_string(),
            Constant::Text(text) => format!("'{text}'"),
            Constant::Hundredths(value) => {
                let (sign, size) = (if *value < 0 { "-" } else { "" }, value.unsigned_abs());
                format!("{sign}{}.{:02}", size / 100, size % 100)
            }
            Constant::Instant(instant) => format!("'{}'", instant.sql),
        }
    }

    fn append(&self, row: &mut Vec<u8>) {
        match self {
            Constant::Int(value) => row.int(*value),
            Constant::Text(text) => row.text(|row| row.extend_from_slice(text.as_bytes())),
            Constant::Hundredths(value) => row.hundredths(*value),
            Constant::Instant(instant) => row.instant(instant.us),
        }
    }
}

impl Filling {
    /// Does it in a transaction of its own, and by one COPY: each further one would leave pages
    /// behind it that it has made and not used (seen with PostgreSQL 18).
    pub(super) fn run(
        self,
        client: &mut Session,
        settings: &str,
        stop: &AtomicBool,
        sent: &AtomicU64,
    ) -> Result<(), DataError> {
        let table = self.table.as_str();
        let failed = |source| step_error(format!("filling {table}"), source);
        let mut columns = self.columns.to_owned();
        let (mut before, mut after, mut options) = (String::new(), String::new(), "");
        let mut suffix = Vec::new();
        if self.whole {
            // A table that is emptied in this transaction may be given frozen rows. Nobody else
            // fills it, so it can have defaults meanwhile: the server lays a default into a row far
            // quicker than it reads a value.
            before = format!("TRUNCATE {table};");
            options = ", FREEZE";
            for (column, value) in &self.constants {
                let value = value.sql();
                before.push_str(&format!(
                    "ALTER TABLE {table} ALTER {column} SET DEFAULT {value};"
                ));
                after.push_str(&format!("ALTER TABLE {table} ALTER {column} DROP DEFAULT;"));
            }
        } else {
            for (column, value) in &self.constants {
                columns.push_str(", ");
                columns.push_str(column);
                value.append(&mut suffix);
            }
        }
        let count = i16::try_from(columns.split(',').count()).unwrap_or(i16::MAX);
        let copy = format!("COPY {table} ({columns}) FROM STDIN WITH (FORMAT binary{options})");
        let before = format!("BEGIN; {WITHOUT_LIMITS} {settings} {before}");
        client.work(&before).map_err(failed)?;
        let mut piece = Vec::with_capacity(COPY_HEADER_BYTES + PIECE_BYTES + ROW_BYTES_MAX);
        piece.extend_from_slice(&[0; COPY_HEADER_BYTES]);
        piece.extend_from_slice(HEADER);
        let mut rows = Rows {
            piece,
            in_piece: 0,
            columns: count,
            suffix,
            copy: client.copy_in(&copy).map_err(failed)?,
            table,
            stop,
            sent,
        };
        let filled = (self.send)(&mut rows).and_then(|()| rows.end());
        match filled {
            Ok(()) => rows.copy.finish().map_err(failed)?,
            Err(error) => {
                rows.copy.fail();
                return Err(error);
            }
        }
        client.work(&format!("{after} COMMIT")).map_err(failed)
    }
}

/// Takes rows, field by field, and sends them.
pub(super) struct Rows<'a> {
    piece: Vec<u8>,
    in_piece: u64,
    columns: i16,
    /// Fields that end every row.
    suffix: Vec<u8>,
    copy: CopyIn<'a>,
    table: &'a str,
    stop: &'a AtomicBool,
    sent: &'a AtomicU64,
}

impl Rows<'_> {
    /// One row: `fields` puts all columns that the filling has named.
    pub(super) fn row(&mut self, fields: impl FnOnce(&mut Vec<u8>)) -> Result<(), DataError> {
        self.piece.extend_from_slice(&self.columns.to_be_bytes());
        fields(&mut self.piece);
        self.piece.extend_from_slice(&self.suffix);
        self.in_piece += 1;
        if self.piece.len() >= PIECE_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), DataError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(DataError::Stopped);
        }
        let sent = self.copy.send(&mut self.piece);
        sent.map_err(|source| step_error(format!("sending rows to {}", self.table), source))?;
        self.piece.truncate(COPY_HEADER_BYTES);
        self.sent.fetch_add(self.in_piece, Ordering::Relaxed);
        self.in_piece = 0;
        Ok(())
    }

    /// The last piece.
    fn end(&mut self) -> Result<(), DataError> {
        self.piece.extend_from_slice(&END.to_be_bytes());
        self.send()
    }
}

/// The fields of a row.
pub(crate) trait Fields {
    /// Writes an int4.
    fn int(&mut self, value: i32);
    /// Writes an int8.
    fn bigint(&mut self, value: i64);
    /// Writes NULL.
    fn null(&mut self);
    /// char, varchar or text: what `put` appends, which must be ASCII.
    fn text(&mut self, put: impl FnOnce(&mut Vec<u8>));
    /// numeric with two places, from hundredths; fewer than 10^10 of them.
    fn hundredths(&mut self, value: i32);
    /// numeric with four places, from ten-thousandths; fewer than 10,000 of them.
    fn ten_thousandths(&mut self, value: i32);
    /// timestamptz, from microseconds since 2000.
    fn instant(&mut self, us: i64);
}

impl Fields for Vec<u8> {
    fn int(&mut self, value: i32) {
        self.extend_from_slice(&4_i32.to_be_bytes());
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn bigint(&mut self, value: i64) {
        self.extend_from_slice(&8_i32.to_be_bytes());
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn null(&mut self) {
        self.extend_from_slice(&NULL.to_be_bytes());
    }

    fn text(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let start = self.len();
        self.extend_from_slice(&[0; 4]);
        put(self);
        let length = i32::try_from(self.len() - start - 4).unwrap_or(0);
        self[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    fn hundredths(&mut self, value: i32) {
        // Digits of base 10,000, the first one the units of 10,000^weight.
        let size = value.unsigned_abs();
        let digits = [size / 1_000_000, size / 100 % 10_000, size % 100 * 100];
        numeric(self, digits, value < 0, 2);
    }

    fn ten_thousandths(&mut self, value: i32) {
        numeric(self, [0, 0, value.unsigned_abs()], value < 0, 4);
    }

    fn instant(&mut self, us: i64) {
        self.bigint(us);
    }
}

/// numeric's binary form (source: numeric_send in PostgreSQL's numeric.c): how many digits of base
/// 10,000, weight of the first one, sign, places shown, the digits; zeros at both ends are omitted.
/// Here the middle one of three has the weight 0.
fn numeric(row: &mut Vec<u8>, digits: [u32; 3], negative: bool, places: u16) {
    const NEGATIVE: u16 = 0x4000;
    let first = digits.iter().position(|&digit| digit != 0).unwrap_or(3);
    let end = digits
        .iter()
        .rposition(|&digit| digit != 0)
        .map_or(first, |last| last + 1);
    let kept = &digits[first..end];
    let weight: u16 = match (kept.len(), first) {
        (0, _) | (_, 1) => 0,
        (_, 0) => 1,
        _ => u16::MAX, // -1
    };
    let count = u16::try_from(kept.len()).unwrap_or(0);
    row.extend_from_slice(&(8 + 2 * u32::from(count)).to_be_bytes());
    for word in [count, weight, if negative { NEGATIVE } else { 0 }, places] {
        row.extend_from_slice(&word.to_be_bytes());
    }
    for &digit in kept {
        row.extend_from_slice(&u16::try_from(digit).unwrap_or(0).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_copys_binary_format() {
        let check = |put: &dyn Fn(&mut Vec<u8>), expected: &[u8]| {
            let mut row = Vec::new();
            put(&mut row);
            assert_eq!(row, expected);
        };
        check(&|row| row.int(-2), &[0, 0, 0, 4, 255, 255, 255, 254]);
        check(&|row| row.null(), &[255, 255, 255, 255]);
        check(
            &|row| row.text(|text| text.extend_from_slice(b"ab")),
            &[0, 0, 0, 2, b'a', b'b'],
        );
        check(&|row| row.instant(258), &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2]);
    }

    /// (number of digits, weight, sign, places, digits) as numeric_send gives them for the same
    /// values.
    #[test]
    fn numbers_are_numerics_binary_format() {
        let words = |put: &dyn Fn(&mut Vec<u8>)| {
            let mut row = Vec::new();
            put(&mut row);
            let words: Vec<i16> = row[4..]
                .chunks(2)
                .map(|pair| i16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            assert_eq!(row[..4], i32::try_from(words.len() * 2).unwrap().to_be_bytes());
            words
        };
        assert_eq!(words(&|row| row.hundredths(0)), [0, 0, 0, 2]);
        assert_eq!(words(&|row| row.hundredths(1)), [1, -1, 0, 2, 100]);
        assert_eq!(words(&|row| row.hundredths(1000)), [1, 0, 0, 2, 10]);
        assert_eq!(words(&|row| row.hundredths(5_000_000)), [1, 1, 0, 2, 5]);
        assert_eq!(
            words(&|row| row.hundredths(1_234_567)),
            [3, 1, 0, 2, 1, 2345, 6700]
        );
        assert_eq!(words(&|row| row.hundredths(-1000)), [1, 0, 0x4000, 2, 10]);
        assert_eq!(words(&|row| row.ten_thousandths(2000)), [1, -1, 0, 4, 2000]);
        assert_eq!(words(&|row| row.ten_thousandths(0)), [0, 0, 0, 4]);
    }

    #[test]
    fn constants_are_the_same_in_sql() {
        assert_eq!(Constant::Hundredths(-1000).sql(), "-10.00");
        assert_eq!(Constant::Hundredths(5).sql(), "0.05");
        assert_eq!(Constant::Text("OE").sql(), "'OE'");
    }
}
