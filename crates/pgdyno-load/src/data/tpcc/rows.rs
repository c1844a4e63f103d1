//! The rows of TPC-C's tables at the beginning (clause 4.3.3.1). A stream per table, warehouse and district, so that
//! they are the same however the work is shared out.

use super::values::{
    A_LAST, C_LAST_LOAD, CUSTOMERS, DISTRICTS, ITEMS, characters, digits, last_name, nurand, original_or_not,
    permutation, string,
};
use crate::data::DataError;
use crate::data::rows::{Fields, Rows};
use crate::random::{Purpose, Stream};
use std::ops::RangeInclusive;

/// The first order that is not delivered yet.
const UNDELIVERED: i32 = 2_101;

/// What the rows are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) seed: u64,
    /// Of creation: microseconds since 2000.
    pub(super) now_us: i64,
}

#[derive(Debug, Clone, Copy)]
#[repr(u64)]
enum Of {
    Item = 1,
    Warehouse,
    Stock,
    Customer,
    History,
    Orders,
    OrderLine,
}

impl Source {
    fn stream(self, of: Of, warehouse: i32, district: i32) -> Stream {
        let place =
            (of as u64) << 48 | u64::from(warehouse.unsigned_abs()) << 8 | u64::from(district.unsigned_abs());
        Stream::new(self.seed, place, Purpose::Data)
    }

    pub(super) fn items(self, rows: &mut Rows<'_>) -> Result<(), DataError> {
        let mut stream = self.stream(Of::Item, 0, 0);
        for item in 1..=ITEMS {
            rows.row(5, |row| {
                row.int(item);
                row.int(stream.between(1, 10_000));
                row.text(|text| string(&mut stream, 14, 24, text));
                row.hundredths(stream.between(100, 10_000));
                row.text(|text| original_or_not(&mut stream, text));
            })?;
        }
        Ok(())
    }

    pub(super) fn warehouses(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for warehouse in range {
            let mut stream = self.stream(Of::Warehouse, warehouse, 0);
            rows.row(8, |row| {
                row.int(warehouse);
                row.text(|text| string(&mut stream, 6, 10, text));
                address(&mut stream, row);
                row.ten_thousandths(stream.between(0, 2_000));
            })?;
        }
        Ok(())
    }

    pub(super) fn districts(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for (warehouse, district) in districts(range) {
            let mut stream = self.stream(Of::Warehouse, warehouse, district);
            rows.row(9, |row| {
                row.int(district);
                row.int(warehouse);
                row.text(|text| string(&mut stream, 6, 10, text));
                address(&mut stream, row);
                row.ten_thousandths(stream.between(0, 2_000));
            })?;
        }
        Ok(())
    }

    pub(super) fn stock(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for warehouse in range {
            let mut stream = self.stream(Of::Stock, warehouse, 0);
            for item in 1..=ITEMS {
                rows.row(14, |row| {
                    row.int(item);
                    row.int(warehouse);
                    row.int(stream.between(10, 100));
                    for _ in 1..=DISTRICTS {
                        row.text(|text| characters(&mut stream, 24, text));
                    }
                    row.text(|text| original_or_not(&mut stream, text));
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn customers(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for (warehouse, district) in districts(range) {
            let mut stream = self.stream(Of::Customer, warehouse, district);
            for customer in 1..=CUSTOMERS {
                rows.row(14, |row| {
                    row.int(customer);
                    row.int(district);
                    row.int(warehouse);
                    row.text(|text| string(&mut stream, 8, 16, text));
                    let name = if customer <= 1_000 {
                        customer - 1
                    } else {
                        nurand(&mut stream, A_LAST, 0, 999, C_LAST_LOAD)
                    };
                    row.text(|text| last_name(name, text));
                    address(&mut stream, row);
                    row.text(|text| digits(&mut stream, 16, text));
                    let bad = stream.between(1, 10) == 1;
                    row.text(|text| text.extend_from_slice(if bad { b"BC" } else { b"GC" }));
                    row.ten_thousandths(stream.between(0, 5_000));
                    row.text(|text| string(&mut stream, 300, 500, text));
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn history(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for (warehouse, district) in districts(range) {
            let mut stream = self.stream(Of::History, warehouse, district);
            for customer in 1..=CUSTOMERS {
                rows.row(6, |row| {
                    row.int(customer);
                    for _ in 0..2 {
                        row.int(district);
                        row.int(warehouse);
                    }
                    row.text(|text| string(&mut stream, 12, 24, text));
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn orders(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for (warehouse, district) in districts(range) {
            let mut stream = self.stream(Of::Orders, warehouse, district);
            let lines = line_counts(&mut stream);
            let customers = permutation(&mut stream);
            for ((order, customer), lines) in (1..).zip(customers).zip(lines) {
                rows.row(6, |row| {
                    row.int(order);
                    row.int(district);
                    row.int(warehouse);
                    row.int(customer);
                    if order < UNDELIVERED {
                        row.int(stream.between(1, 10));
                    } else {
                        row.null();
                    }
                    row.int(lines);
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn new_orders(self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result<(), DataError> {
        for (warehouse, district) in districts(range) {
            for order in UNDELIVERED..=CUSTOMERS {
                rows.row(3, |row| {
                    row.int(order);
                    row.int(district);
                    row.int(warehouse);
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn order_lines(
        self,
        range: RangeInclusive<i32>,
        rows: &mut Rows<'_>,
    ) -> Result<(), DataError> {
        for (warehouse, district) in districts(range) {
            let lines = line_counts(&mut self.stream(Of::Orders, warehouse, district));
            let mut stream = self.stream(Of::OrderLine, warehouse, district);
            for (order, lines) in (1..).zip(lines) {
                for number in 1..=lines {
                    rows.row(9, |row| {
                        for value in [order, district, warehouse, number] {
                            row.int(value);
                        }
                        row.int(stream.between(1, ITEMS));
                        row.int(warehouse);
                        if order < UNDELIVERED {
                            row.instant(self.now_us);
                            row.hundredths(0);
                        } else {
                            row.null();
                            row.hundredths(stream.between(1, 999_999));
                        }
                        row.text(|text| characters(&mut stream, 24, text));
                    })?;
                }
            }
        }
        Ok(())
    }

    /// How many order lines there are.
    pub(super) fn count_of_order_lines(self, range: RangeInclusive<i32>) -> u64 {
        districts(range)
            .flat_map(|(warehouse, district)| line_counts(&mut self.stream(Of::Orders, warehouse, district)))
            .map(|lines| u64::from(lines.unsigned_abs()))
            .sum()
    }
}

fn districts(warehouses: RangeInclusive<i32>) -> impl Iterator<Item = (i32, i32)> {
    warehouses.flat_map(|warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district)))
}

/// Lines of each order of a district: the first thing that the stream of its orders gives.
fn line_counts(stream: &mut Stream) -> Vec<i32> {
    (0..CUSTOMERS).map(|_| stream.between(5, 15)).collect()
}

/// Two streets, city, state and zip code (clause 4.3.2.7).
fn address(stream: &mut Stream, row: &mut Vec<u8>) {
    for _ in 0..3 {
        row.text(|text| string(stream, 10, 20, text));
    }
    row.text(|text| {
        for _ in 0..2 {
            let letter = u8::try_from(stream.between(0, 25)).unwrap_or(0);
            text.push(b'A' + letter);
        }
    });
    row.text(|text| {
        digits(stream, 4, text);
        text.extend_from_slice(b"11111");
    });
}
