//! What a transaction is about: drawn at its beginning (TPC-C clause 2), filled by what the server
//! sends.

use super::super::Style;
use super::super::statements::Kind;
use super::Terminal;
use crate::data::tpcc::values::{
    A_ID, A_ITEM, A_LAST, C_ID, C_ITEM, C_LAST_RUN, CUSTOMERS, DISTRICTS, ITEMS, last_name, nurand,
};
use pgdyno_engine::random::Stream;

/// Lines of an order (clause 2.4.1.3).
const LINES_LEAST: i32 = 5;
pub(super) const LINES_MOST: usize = 15;
/// The longest text a terminal sends: a history's data.
const TEXT_BYTES: usize = 24;

/// A short text that needs no memory of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    bytes: [u8; TEXT_BYTES],
    length: usize,
}

impl Text {
    pub(super) const EMPTY: Text = Text {
        bytes: [0; TEXT_BYTES],
        length: 0,
    };

    pub(super) fn push(&mut self, more: &[u8]) {
        let taken = more.len().min(TEXT_BYTES - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&more[..taken]);
        self.length += taken;
    }

    pub(super) fn of(bytes: &[u8]) -> Text {
        let mut text = Text::EMPTY;
        text.push(bytes);
        text
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// Its place in the order, from 1.
    pub(super) number: i32,
    pub(super) item: i32,
    pub(super) supply: i32,
    pub(super) quantity: i32,
    pub(super) amount_cents: i32,
    pub(super) dist_info: Text,
}

/// What a transaction is about, and what it found out.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) warehouse: i32,
    pub(super) district: i32,
    /// 0: to be found by the last name.
    pub(super) customer: i32,
    pub(super) customer_warehouse: i32,
    pub(super) customer_district: i32,
    pub(super) last: Text,
    pub(super) amount_cents: i32,
    pub(super) carrier: i32,
    pub(super) threshold: i32,
    pub(super) lines: Vec<Line>,
    /// Whether the last line asks for an item that does not exist.
    pub(super) unused_item: bool,
    pub(super) order: i32,
    pub(super) history: Text,
    /// What a delivery delivers: district, order, customer, and the sum as the server sent it.
    pub(super) deliveries: Vec<(i32, i32, i32, Text)>,
}

impl Terminal<'_> {
    pub(super) fn draw(&mut self, style: Style) {
        let warehouses = style.warehouses.max(1);
        let (stream, case) = (&mut self.stream, &mut self.case);
        case.warehouse = if style.paced {
            self.home
        } else {
            stream.between(1, warehouses)
        };
        case.district = stream.between(1, DISTRICTS);
        (case.customer_warehouse, case.customer_district) = (case.warehouse, case.district);
        case.unused_item = false;
        // Another warehouse than this one; each is as likely.
        let another = |stream: &mut Stream| {
            let drawn = stream.between(1, warehouses - 1);
            drawn + i32::from(drawn >= case.warehouse)
        };
        match self.kind {
            Kind::NewOrder => {
                case.customer = nurand(stream, A_ID, 1, CUSTOMERS, C_ID);
                let count = stream.between(LINES_LEAST, LINES_MOST as i32);
                case.unused_item = stream.between(1, 100) == 1;
                case.lines.clear();
                for number in 1..=count {
                    let item = nurand(stream, A_ITEM, 1, ITEMS, C_ITEM);
                    let remote = warehouses > 1 && stream.between(1, 100) == 1;
                    case.lines.push(Line {
                        number,
                        item: if case.unused_item && number == count {
                            ITEMS + 1
                        } else {
                            item
                        },
                        supply: if remote { another(stream) } else { case.warehouse },
                        quantity: stream.between(1, 10),
                        amount_cents: 0,
                        dist_info: Text::EMPTY,
                    });
                }
                // Stock is taken in one order by all terminals, so that none waits for another in a
                // ring; the unused item stays the last.
                case.lines
                    .sort_unstable_by_key(|line| (line.item > ITEMS, line.supply, line.item));
            }
            Kind::Payment | Kind::OrderStatus => {
                if self.kind == Kind::Payment && warehouses > 1 && stream.between(1, 100) <= 15 {
                    case.customer_warehouse = another(stream);
                    case.customer_district = stream.between(1, DISTRICTS);
                }
                case.amount_cents = stream.between(100, 500_000);
                case.last = Text::EMPTY;
                if stream.between(1, 100) <= 60 {
                    self.name.clear();
                    last_name(nurand(stream, A_LAST, 0, 999, C_LAST_RUN), &mut self.name);
                    case.last.push(&self.name);
                    case.customer = 0;
                } else {
                    case.customer = nurand(stream, A_ID, 1, CUSTOMERS, C_ID);
                }
            }
            Kind::Delivery => case.carrier = stream.between(1, 10),
            Kind::StockLevel => case.threshold = stream.between(10, 20),
        }
    }
}
