//! Rows of TPC-C's statements, read where they were kept.

use pgdyno_engine::reply::{Message, Messages, Values};

/// The rows of a stage, one after the other.
pub(super) struct Rows<'a>(Messages<'a>);

impl<'a> Rows<'a> {
    pub(super) fn new(reply: &'a [u8]) -> Rows<'a> {
        Rows(Messages::new(reply))
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        self.0.find_map(|message| match message {
            Message::Row(values) => Some(Row(values)),
            Message::Columns(_) | Message::End => None,
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct Row<'a>(Values<'a>);

impl<'a> Row<'a> {
    pub(super) fn value(mut self, column: usize) -> Option<&'a [u8]> {
        self.0.nth(column)?
    }

    pub(super) fn int(self, column: usize) -> Option<i32> {
        Some(i32::from_be_bytes(self.value(column)?.try_into().ok()?))
    }
}

/// Hundredths of a numeric in binary (source: PostgreSQL's numeric_send): how many digits, the
/// weight of the first, sign, places, then digits of base 10,000.
pub(super) fn cents(numeric: &[u8]) -> Option<i32> {
    let mut words = numeric
        .chunks_exact(2)
        .map(|word| i16::from_be_bytes([word[0], word[1]]));
    let (count, weight, sign, _) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if sign != 0 {
        return None;
    }
    let mut cents: i64 = 0;
    // The digit of weight -1 holds ten-thousandths.
    for place in 0..=i32::from(weight) + 1 {
        let digit = if place < i32::from(count) {
            words.next()?
        } else {
            0
        };
        cents = cents.checked_mul(10_000)?.checked_add(i64::from(digit))?;
    }
    i32::try_from(cents / 100).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_from_numerics() {
        let numeric = |words: &[i16]| {
            words
                .iter()
                .flat_map(|word| word.to_be_bytes())
                .collect::<Vec<u8>>()
        };
        assert_eq!(cents(&numeric(&[0, 0, 0, 2])), Some(0));
        assert_eq!(cents(&numeric(&[1, -1, 0, 2, 100])), Some(1));
        assert_eq!(cents(&numeric(&[2, 0, 0, 2, 12, 3400])), Some(1234));
        assert_eq!(cents(&numeric(&[1, 1, 0, 2, 5])), Some(5_000_000));
        assert_eq!(cents(&numeric(&[2, 0, 0, 2, 12])), None);
        assert_eq!(cents(&numeric(&[1, 3, 0, 2, 5])), None, "too large");
        assert_eq!(cents(b"x"), None);
    }
}
