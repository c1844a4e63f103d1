//! Rows in COPY's binary format (PostgreSQL documentation, COPY, "Binary Format"), sent in pieces.

use super::DataError;
use postgres::CopyInWriter;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows are handed over in pieces of about this size: small enough for a processor's cache.
const PIECE_BYTES: usize = 64 * 1024;
/// More than the longest row.
const ROW_BYTES_MAX: usize = 4 * 1024;
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const NULL: i32 = -1;
const END: i16 = -1;

/// Writes all rows of a filling.
pub(super) type Fill = Box<dyn FnOnce(&mut Rows<'_>) -> Result<(), DataError> + Send>;

/// Takes rows, field by field, and sends them.
pub(super) struct Rows<'a> {
    piece: Vec<u8>,
    in_piece: u64,
    writer: CopyInWriter<'a>,
    table: &'a str,
    stop: &'a AtomicBool,
    sent: &'a AtomicU64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        writer: CopyInWriter<'a>,
        table: &'a str,
        stop: &'a AtomicBool,
        sent: &'a AtomicU64,
    ) -> Rows<'a> {
        let mut piece = Vec::with_capacity(PIECE_BYTES + ROW_BYTES_MAX);
        piece.extend_from_slice(HEADER);
        Rows {
            piece,
            in_piece: 0,
            writer,
            table,
            stop,
            sent,
        }
    }

    /// One row: `fields` puts exactly `columns` of them.
    pub(super) fn row(&mut self, columns: i16, fields: impl FnOnce(&mut Vec<u8>)) -> Result<(), DataError> {
        self.piece.extend_from_slice(&columns.to_be_bytes());
        fields(&mut self.piece);
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
        self.writer
            .write_all(&self.piece)
            .map_err(|source| DataError::Copy {
                table: self.table.to_owned(),
                source,
            })?;
        self.piece.clear();
        self.sent.fetch_add(self.in_piece, Ordering::Relaxed);
        self.in_piece = 0;
        Ok(())
    }

    /// The writer, to be finished.
    pub(super) fn finish(mut self) -> Result<CopyInWriter<'a>, DataError> {
        self.piece.extend_from_slice(&END.to_be_bytes());
        self.send()?;
        Ok(self.writer)
    }
}

/// The fields of a row.
pub(crate) trait Fields {
    /// int4.
    fn int(&mut self, value: i32);
    /// NULL.
    fn null(&mut self);
    /// char, varchar or text: what `put` appends, which must be ASCII.
    fn text(&mut self, put: impl FnOnce(&mut Vec<u8>));
    /// numeric with two places, from hundredths below 10^8, not negative.
    fn hundredths(&mut self, value: i32);
    /// numeric with four places, from ten-thousandths below 10,000, not negative.
    fn ten_thousandths(&mut self, value: i32);
    /// timestamptz, from microseconds since 2000.
    fn instant(&mut self, us: i64);
}

impl Fields for Vec<u8> {
    fn int(&mut self, value: i32) {
        self.extend_from_slice(&4_i32.to_be_bytes());
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
        let digits = [value / 1_000_000, value / 100 % 10_000, value % 100 * 100];
        numeric(self, digits, 1, 2);
    }

    fn ten_thousandths(&mut self, value: i32) {
        numeric(self, [0, 0, value], 1, 4);
    }

    fn instant(&mut self, us: i64) {
        self.extend_from_slice(&8_i32.to_be_bytes());
        self.extend_from_slice(&us.to_be_bytes());
    }
}

/// numeric's binary form (source: numeric_send in PostgreSQL's numeric.c): how many digits, weight of the first one,
/// sign, places shown, the digits; zeros at both ends are left out.
fn numeric(row: &mut Vec<u8>, digits: [i32; 3], weight: i16, places: i16) {
    let first = digits.iter().position(|&digit| digit != 0).unwrap_or(3);
    let end = digits
        .iter()
        .rposition(|&digit| digit != 0)
        .map_or(first, |last| last + 1);
    let kept = &digits[first..end];
    let count = i16::try_from(kept.len()).unwrap_or(0);
    let weight = if count == 0 {
        0
    } else {
        weight - i16::try_from(first).unwrap_or(0)
    };
    row.extend_from_slice(&(8 + 2 * i32::from(count)).to_be_bytes());
    for word in [count, weight, 0, places] {
        row.extend_from_slice(&word.to_be_bytes());
    }
    for &digit in kept {
        row.extend_from_slice(&i16::try_from(digit).unwrap_or(0).to_be_bytes());
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

    /// (number of digits, weight, sign, places, digits) as numeric_send gives them for the same values.
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
        assert_eq!(words(&|row| row.ten_thousandths(2000)), [1, -1, 0, 4, 2000]);
        assert_eq!(words(&|row| row.ten_thousandths(0)), [0, 0, 0, 4]);
    }
}
