//! The rows of TPC-C's tables at the beginning (clause 4.3.3.1). A stream per table, warehouse and
//! district, so that they are the same however the work is shared out.

use super::values::{
    A_LAST, C_LAST_LOAD, CUSTOMERS, DISTRICTS, ITEMS, characters, digits, last_name, nurand, original_or_not,
    permutation, string,
};
use crate::data::DataError;
use crate::data::rows::{Fields, Rows};
use crate::data::session::Instant;
use pgdyno_engine::random::{Purpose, Stream};
use std::ops::RangeInclusive;

/// The first order that is not delivered yet.
const UNDELIVERED: i32 = 2_101;

/// What the rows are made from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) seed: u64,
    /// Instant of creation, which rows have as their date.
    pub(super) now: Instant,
}

type Result = std::result::Result<(), DataError>;

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
    fn stream(&self, of: Of, warehouse: i32, district: i32) -> Stream {
        let place =
            (of as u64) << 48 | u64::from(warehouse.unsigned_abs()) << 8 | u64::from(district.unsigned_abs());
        Stream::new(self.seed, place, Purpose::Data)
    }

    pub(super) fn items(&self, _: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        let mut stream = self.stream(Of::Item, 0, 0);
        (1..=ITEMS).try_for_each(|item| {
            rows.row(|row| {
                row.int(item);
                row.int(stream.between(1, 10_000));
                row.text(|text| string(&mut stream, 14, 24, text));
                row.hundredths(stream.between(100, 10_000));
                row.text(|text| original_or_not(&mut stream, text));
            })
        })
    }

    pub(super) fn warehouses(&self, mut range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        range.try_for_each(|warehouse| {
            let mut stream = self.stream(Of::Warehouse, warehouse, 0);
            rows.row(|row| {
                row.int(warehouse);
                place(&mut stream, row);
            })
        })
    }

    pub(super) fn districts(&self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::Warehouse, warehouse, district);
            rows.row(|row| {
                row.int(district);
                row.int(warehouse);
                place(&mut stream, row);
            })
        })
    }

    pub(super) fn stock(&self, mut range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        range.try_for_each(|warehouse| {
            let mut stream = self.stream(Of::Stock, warehouse, 0);
            (1..=ITEMS).try_for_each(|item| {
                rows.row(|row| {
                    row.int(item);
                    row.int(warehouse);
                    row.int(stream.between(10, 100));
                    for _ in 1..=DISTRICTS {
                        row.text(|text| characters(&mut stream, 24, text));
                    }
                    row.text(|text| original_or_not(&mut stream, text));
                })
            })
        })
    }

    pub(super) fn customers(&self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::Customer, warehouse, district);
            (1..=CUSTOMERS).try_for_each(|customer| {
                rows.row(|row| {
                    row.int(customer);
                    row.int(district);
                    row.int(warehouse);
                    person(&mut stream, customer, row);
                })
            })
        })
    }

    pub(super) fn history(&self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::History, warehouse, district);
            (1..=CUSTOMERS).try_for_each(|customer| {
                rows.row(|row| {
                    for value in [customer, district, warehouse, district, warehouse] {
                        row.int(value);
                    }
                    row.text(|text| string(&mut stream, 12, 24, text));
                })
            })
        })
    }

    pub(super) fn orders(&self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::Orders, warehouse, district);
            let lines = line_counts(&mut stream);
            let customers = permutation(&mut stream);
            (1..)
                .zip(customers)
                .zip(lines)
                .try_for_each(|((order, customer), lines)| {
                    rows.row(|row| {
                        for value in [order, district, warehouse, customer] {
                            row.int(value);
                        }
                        if order < UNDELIVERED {
                            row.int(stream.between(1, 10));
                        } else {
                            row.null();
                        }
                        row.int(lines);
                    })
                })
        })
    }

    pub(super) fn new_orders(&self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            (UNDELIVERED..=CUSTOMERS).try_for_each(|order| {
                rows.row(|row| {
                    for value in [order, district, warehouse] {
                        row.int(value);
                    }
                })
            })
        })
    }

    pub(super) fn order_lines(&self, range: RangeInclusive<i32>, rows: &mut Rows<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let lines = line_counts(&mut self.stream(Of::Orders, warehouse, district));
            let mut stream = self.stream(Of::OrderLine, warehouse, district);
            (1..).zip(lines).try_for_each(|(order, lines)| {
                (1..=lines).try_for_each(|number| {
                    rows.row(|row| {
                        let item = stream.between(1, ITEMS);
                        for value in [order, district, warehouse, number, item, warehouse] {
                            row.int(value);
                        }
                        if order < UNDELIVERED {
                            row.instant(self.now.us);
                            row.hundredths(0);
                        } else {
                            row.null();
                            row.hundredths(stream.between(1, 999_999));
                        }
                        row.text(|text| characters(&mut stream, 24, text));
                    })
                })
            })
        })
    }

    /// How many order lines there are.
    pub(super) fn count_of_order_lines(&self, range: RangeInclusive<i32>) -> u64 {
        districts(range)
            .flat_map(|(warehouse, district)| line_counts(&mut self.stream(Of::Orders, warehouse, district)))
            .map(|lines| u64::from(lines.unsigned_abs()))
            .sum()
    }
}

fn districts(warehouses: RangeInclusive<i32>) -> impl Iterator<Item = (i32, i32)> {
    warehouses.flat_map(|warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district)))
}

/// What a warehouse and a district have alike: name, address, tax.
fn place(stream: &mut Stream, row: &mut Vec<u8>) {
    row.text(|text| string(stream, 6, 10, text));
    address(stream, row);
    row.ten_thousandths(stream.between(0, 2_000));
}

/// A customer's names, address, phone, credit, discount and data.
fn person(stream: &mut Stream, customer: i32, row: &mut Vec<u8>) {
    row.text(|text| string(stream, 8, 16, text));
    let name = if customer <= 1_000 {
        customer - 1
    } else {
        nurand(stream, A_LAST, 0, 999, C_LAST_LOAD)
    };
    row.text(|text| last_name(name, text));
    address(stream, row);
    row.text(|text| digits(stream, 16, text));
    let bad = stream.between(1, 10) == 1;
    row.text(|text| text.extend_from_slice(if bad { b"BC" } else { b"GC" }));
    row.ten_thousandths(stream.between(0, 5_000));
    row.text(|text| string(stream, 300, 500, text));
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
