//! The rows of TPC-C's tables at the beginning (clause 4.3.3.1). A stream per table, warehouse and district, so that
//! they are the same however the work is shared out.

use super::values::{
    A_LAST, C_LAST_LOAD, CUSTOMERS, DISTRICTS, ITEMS, characters, digits, last_name, nurand, original_or_not,
    permutation, string,
};
use crate::data::DataError;
use crate::data::rows::Constant::{Hundredths, Int, Null, Text};
use crate::data::rows::{Constant, Fields, Instant, Table};
use crate::random::{Purpose, Stream};
use std::ops::RangeInclusive;

/// The first order that is not delivered yet.
const UNDELIVERED: i32 = 2_101;

/// What the rows are made from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) seed: u64,
    /// Of creation.
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

    fn now(&self) -> Constant {
        Constant::Instant(self.now.clone())
    }

    pub(super) fn items(&self, _: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        let mut stream = self.stream(Of::Item, 0, 0);
        table.section(&[], "i_id, i_im_id, i_name, i_price, i_data", |rows| {
            (1..=ITEMS).try_for_each(|item| {
                rows.row(|row| {
                    row.int(item);
                    row.int(stream.between(1, 10_000));
                    row.text(|text| string(&mut stream, 14, 24, text));
                    row.hundredths(stream.between(100, 10_000));
                    row.text(|text| original_or_not(&mut stream, text));
                })
            })
        })
    }

    pub(super) fn warehouses(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        let columns = "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax";
        table.section(&[("w_ytd", Hundredths(30_000_000))], columns, |rows| {
            range.clone().try_for_each(|warehouse| {
                let mut stream = self.stream(Of::Warehouse, warehouse, 0);
                rows.row(|row| {
                    row.int(warehouse);
                    row.text(|text| string(&mut stream, 6, 10, text));
                    address(&mut stream, row);
                    row.ten_thousandths(stream.between(0, 2_000));
                })
            })
        })
    }

    pub(super) fn districts(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        let constants = [
            ("d_ytd", Hundredths(3_000_000)),
            ("d_next_o_id", Int(CUSTOMERS + 1)),
        ];
        let columns = "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax";
        table.section(&constants, columns, |rows| {
            districts(range).try_for_each(|(warehouse, district)| {
                let mut stream = self.stream(Of::Warehouse, warehouse, district);
                rows.row(|row| {
                    row.int(district);
                    row.int(warehouse);
                    row.text(|text| string(&mut stream, 6, 10, text));
                    address(&mut stream, row);
                    row.ten_thousandths(stream.between(0, 2_000));
                })
            })
        })
    }

    pub(super) fn stock(&self, mut range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        let columns = "s_i_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
                       s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_data";
        range.try_for_each(|warehouse| {
            let mut stream = self.stream(Of::Stock, warehouse, 0);
            let constants = [
                ("s_w_id", Int(warehouse)),
                ("s_ytd", Int(0)),
                ("s_order_cnt", Int(0)),
                ("s_remote_cnt", Int(0)),
            ];
            table.section(&constants, columns, |rows| {
                (1..=ITEMS).try_for_each(|item| {
                    rows.row(|row| {
                        row.int(item);
                        row.int(stream.between(10, 100));
                        for _ in 1..=DISTRICTS {
                            row.text(|text| characters(&mut stream, 24, text));
                        }
                        row.text(|text| original_or_not(&mut stream, text));
                    })
                })
            })
        })
    }

    pub(super) fn customers(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        let columns = "c_id, c_first, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, \
                       c_discount, c_data";
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::Customer, warehouse, district);
            let constants = [
                ("c_d_id", Int(district)),
                ("c_w_id", Int(warehouse)),
                ("c_middle", Text("OE")),
                ("c_since", self.now()),
                ("c_credit_lim", Hundredths(5_000_000)),
                ("c_balance", Hundredths(-1_000)),
                ("c_ytd_payment", Hundredths(1_000)),
                ("c_payment_cnt", Int(1)),
                ("c_delivery_cnt", Int(0)),
            ];
            table.section(&constants, columns, |rows| {
                (1..=CUSTOMERS)
                    .try_for_each(|customer| rows.row(|row| fill_customer(&mut stream, customer, row)))
            })
        })
    }

    pub(super) fn history(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::History, warehouse, district);
            let constants = [
                ("h_c_d_id", Int(district)),
                ("h_c_w_id", Int(warehouse)),
                ("h_d_id", Int(district)),
                ("h_w_id", Int(warehouse)),
                ("h_date", self.now()),
                ("h_amount", Hundredths(1_000)),
            ];
            table.section(&constants, "h_c_id, h_data", |rows| {
                (1..=CUSTOMERS).try_for_each(|customer| {
                    rows.row(|row| {
                        row.int(customer);
                        row.text(|text| string(&mut stream, 12, 24, text));
                    })
                })
            })
        })
    }

    pub(super) fn orders(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let mut stream = self.stream(Of::Orders, warehouse, district);
            let lines = line_counts(&mut stream);
            let customers = permutation(&mut stream);
            let constants = [
                ("o_d_id", Int(district)),
                ("o_w_id", Int(warehouse)),
                ("o_entry_d", self.now()),
                ("o_all_local", Int(1)),
            ];
            table.section(&constants, "o_id, o_c_id, o_carrier_id, o_ol_cnt", |rows| {
                (1..)
                    .zip(customers)
                    .zip(lines)
                    .try_for_each(|((order, customer), lines)| {
                        rows.row(|row| {
                            row.int(order);
                            row.int(customer);
                            if order < UNDELIVERED {
                                row.int(stream.between(1, 10));
                            } else {
                                row.null();
                            }
                            row.int(lines);
                        })
                    })
            })
        })
    }

    pub(super) fn new_orders(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let constants = [("no_d_id", Int(district)), ("no_w_id", Int(warehouse))];
            table.section(&constants, "no_o_id", |rows| {
                (UNDELIVERED..=CUSTOMERS).try_for_each(|order| rows.row(|row| row.int(order)))
            })
        })
    }

    pub(super) fn order_lines(&self, range: RangeInclusive<i32>, table: &mut Table<'_>) -> Result {
        districts(range).try_for_each(|(warehouse, district)| {
            let lines = line_counts(&mut self.stream(Of::Orders, warehouse, district));
            let mut stream = self.stream(Of::OrderLine, warehouse, district);
            let mut constants = vec![
                ("ol_d_id", Int(district)),
                ("ol_w_id", Int(warehouse)),
                ("ol_supply_w_id", Int(warehouse)),
                ("ol_quantity", Int(5)),
                ("ol_delivery_d", self.now()),
                ("ol_amount", Hundredths(0)),
            ];
            let orders: Vec<(i32, i32)> = (1..).zip(lines).collect();
            let (delivered, open) =
                orders.split_at(orders.partition_point(|&(order, _)| order < UNDELIVERED));
            let columns = "ol_o_id, ol_number, ol_i_id, ol_dist_info";
            table.section(&constants, columns, |rows| {
                numbered(delivered).try_for_each(|(order, number)| {
                    rows.row(|row| {
                        row.int(order);
                        row.int(number);
                        row.int(stream.between(1, ITEMS));
                        row.text(|text| characters(&mut stream, 24, text));
                    })
                })
            })?;
            constants.truncate(4);
            constants.push(("ol_delivery_d", Null));
            let columns = "ol_o_id, ol_number, ol_i_id, ol_dist_info, ol_amount";
            table.section(&constants, columns, |rows| {
                numbered(open).try_for_each(|(order, number)| {
                    rows.row(|row| {
                        row.int(order);
                        row.int(number);
                        row.int(stream.between(1, ITEMS));
                        row.text(|text| characters(&mut stream, 24, text));
                        row.hundredths(stream.between(1, 999_999));
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

/// Orders with the number of each of their lines.
fn numbered(orders: &[(i32, i32)]) -> impl Iterator<Item = (i32, i32)> {
    orders
        .iter()
        .flat_map(|&(order, lines)| (1..=lines).map(move |number| (order, number)))
}

fn fill_customer(stream: &mut Stream, customer: i32, row: &mut Vec<u8>) {
    row.int(customer);
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
