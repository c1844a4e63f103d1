//! A terminal: draws what a transaction is about (`case.rs`), and runs it stage by stage (TPC-C
//! 5.11, clause 2).

mod case;
mod say;

use super::rows::{Row, Rows, cents};
use super::statements::{Id, Kind};
use super::{Style, Terminals};
use crate::data::tpcc::values::{DISTRICTS, ITEMS};
use crate::workload::Control;
use case::{Case, LINES_MOST, Line, Text};
use pgdyno_engine::actor::{Actor, Halt, Trip, Turn};
use pgdyno_engine::message::SYNC;
use pgdyno_engine::random::Stream;

/// Width of s_dist_xx.
const DIST_INFO_BYTES: usize = 24;

/// The actor of one client of TPC-C.
pub(super) struct Terminal<'a> {
    terminals: &'a Terminals,
    stream: Stream,
    stream_at_begin: Stream,
    home: i32,
    kind: Kind,
    /// Whether that is the next one, which is yet to begin; and the one before.
    chosen: bool,
    last_kind: Kind,
    case: Case,
    stage: u32,
    /// Statements of the stage that were sent.
    at: usize,
    /// Rows of the stage's statements.
    rows: Vec<u8>,
    name: Vec<u8>,
}

/// What a statement returned is not what it returns on whole data.
fn damaged(what: &str) -> Halt {
    Halt(format!(
        "the data of tpcc is damaged: {what}; `pgdyno data check` shows details"
    ))
}

impl Terminal<'_> {
    pub(super) fn new(terminals: &Terminals, stream: Stream, number: u32) -> Terminal<'_> {
        let warehouses = terminals.style.warehouses.max(1);
        let case = Case {
            warehouse: 1,
            district: 1,
            customer: 0,
            customer_warehouse: 1,
            customer_district: 1,
            last: Text::EMPTY,
            amount_cents: 0,
            carrier: 0,
            threshold: 0,
            lines: Vec::with_capacity(LINES_MOST),
            unused_item: false,
            order: 0,
            history: Text::EMPTY,
            deliveries: Vec::with_capacity(DISTRICTS as usize),
        };
        Terminal {
            terminals,
            stream_at_begin: stream.clone(),
            stream,
            home: 1 + i32::try_from(number % warehouses.unsigned_abs()).unwrap_or(0),
            kind: Kind::NewOrder,
            chosen: false,
            last_kind: Kind::NewOrder,
            case,
            stage: 0,
            at: 0,
            rows: Vec::new(),
            name: Vec::new(),
        }
    }

    fn choose(&mut self) {
        let mut drawn = self.stream.between(1, 100);
        let chosen = Kind::ALL.into_iter().find(|kind| {
            drawn -= kind.share_percent();
            drawn <= 0
        });
        self.kind = chosen.unwrap_or(Kind::NewOrder);
        self.chosen = true;
    }

    fn is_by_name(&self) -> bool {
        self.case.customer == 0
    }

    /// The last line asks for an item that does not exist: its stock and its line are skipped.
    fn known_lines(&self) -> &[Line] {
        &self.case.lines[..self.case.lines.len() - usize::from(self.case.unused_item)]
    }

    /// How many statements the present stage has; `None` behind the last one.
    fn statements(&self, style: Style) -> Option<usize> {
        if style.functions {
            let around = if style.control == Control::None { 0 } else { 2 };
            return (self.stage == 0).then_some(1 + around);
        }
        let by_name = usize::from(self.is_by_name());
        let delivered = self.case.deliveries.len();
        let counts: &[usize] = match self.kind {
            Kind::NewOrder => {
                let known = self.known_lines().len();
                &[3 + self.case.lines.len(), 2 + known, known + 1]
            }
            // Found by name first, else paid at once; what follows needs both names.
            Kind::Payment => &[1 + by_name, 3, 2],
            Kind::OrderStatus => &[2, 1, 2],
            Kind::Delivery => &[2, DISTRICTS as usize, 2 * delivered, delivered + 1],
            Kind::StockLevel => &[2, 2],
        };
        counts.get(self.stage as usize).copied()
    }

    /// Which statement is at a place of the present stage.
    fn statement(&self, style: Style, at: usize) -> Id {
        if style.functions {
            return match (style.control, at) {
                (Control::None, _) | (_, 1) => match self.kind {
                    Kind::NewOrder => Id::CallNewOrder,
                    Kind::Payment => Id::CallPayment,
                    Kind::OrderStatus => Id::CallOrderStatus,
                    Kind::Delivery => Id::CallDelivery,
                    Kind::StockLevel => Id::CallStockLevel,
                },
                (_, 0) => Id::Begin,
                _ => Id::Commit,
            };
        }
        match (self.kind, self.stage, at) {
            (_, 0, 0) => Id::Begin,
            (Kind::NewOrder, 0, 1) => Id::OrderingCustomer,
            (Kind::NewOrder, 0, 2) => Id::NextOrder,
            (Kind::NewOrder, 0, _) => Id::Item,
            (Kind::NewOrder, 1, 0) => Id::InsertOrder,
            (Kind::NewOrder, 1, 1) => Id::InsertNewOrder,
            (Kind::NewOrder, 1, _) => Id::Stock,
            (Kind::NewOrder, _, at) if at < self.known_lines().len() => Id::InsertLine,
            (Kind::NewOrder, ..) if self.case.unused_item => Id::Rollback,
            (Kind::Payment, 0, _) => Id::PayersByName,
            (Kind::Payment, 1, 0) => Id::PayCustomer,
            (Kind::Payment, 1, 1) => Id::PayDistrict,
            (Kind::Payment, 1, _) => Id::PayWarehouse,
            (Kind::Payment, 2, 0) => Id::InsertHistory,
            (Kind::OrderStatus, 0, _) if self.is_by_name() => Id::AskersByName,
            (Kind::OrderStatus, 0, _) => Id::Asker,
            (Kind::OrderStatus, 1, _) => Id::LatestOrder,
            (Kind::OrderStatus, 2, 0) => Id::Lines,
            (Kind::Delivery, 0, _) => Id::DeliveryTurn,
            (Kind::Delivery, 1, _) => Id::OldestOrder,
            (Kind::Delivery, 2, at) if at % 2 == 0 => Id::Carry,
            (Kind::Delivery, 2, _) => Id::DeliverLines,
            (Kind::Delivery, 3, at) if at < self.case.deliveries.len() => Id::Credit,
            (Kind::StockLevel, 0, _) => Id::StockNextOrder,
            (Kind::StockLevel, 1, 0) => Id::CountStock,
            _ => Id::Commit,
        }
    }

    /// Takes from the rows of a stage what the next ones need.
    fn finish_stage(&mut self, style: Style) -> Result<(), Halt> {
        if style.functions {
            return Ok(());
        }
        let mut rows = Rows::new(&self.rows);
        let case = &mut self.case;
        match (self.kind, self.stage) {
            (Kind::NewOrder, 0) => {
                rows.next()
                    .ok_or_else(|| damaged("a customer or a warehouse is missing"))?;
                let district = rows.next().and_then(|row| row.int(0));
                case.order = district.ok_or_else(|| damaged("a district is missing"))?;
                for line in case.lines.iter_mut().filter(|line| line.item <= ITEMS) {
                    let price = rows.next().and_then(|row| cents(row.value(0)?));
                    let price = price.ok_or_else(|| damaged("an item is missing"))?;
                    line.amount_cents = price * line.quantity;
                }
            }
            (Kind::NewOrder, 1) => {
                for line in case.lines.iter_mut().filter(|line| line.item <= ITEMS) {
                    let row = rows.next();
                    let info = row
                        .and_then(|row| row.value(0))
                        .ok_or_else(|| damaged("a stock is missing"))?;
                    line.dist_info = Text::of(&info[..info.len().min(DIST_INFO_BYTES)]);
                }
            }
            (Kind::Payment | Kind::OrderStatus, 0) if case.customer == 0 => {
                // The middle one, rounded up (clauses 2.5.2.2 and 2.6.2.2).
                let count = Rows::new(&self.rows).count();
                let found = rows
                    .nth(count.div_ceil(2).saturating_sub(1))
                    .and_then(|row| row.int(0));
                case.customer = found.ok_or_else(|| damaged("no customer has a last name"))?;
            }
            (Kind::Payment, 1) => {
                rows.next().ok_or_else(|| damaged("a customer is missing"))?;
                let (district, warehouse) = (rows.next(), rows.next());
                let name = |row: Option<Row<'_>>| {
                    let name = row.and_then(|row| row.value(0));
                    Text::of(name.unwrap_or_default())
                };
                case.history = name(warehouse);
                case.history.push(b"    ");
                case.history.push(name(district).as_bytes());
            }
            (Kind::OrderStatus, 1) => {
                let found = rows.next().and_then(|row| row.int(0));
                case.order = found.ok_or_else(|| damaged("a customer has no order"))?;
            }
            (Kind::Delivery, 0) => case.deliveries.clear(),
            (Kind::Delivery, 1) => {
                case.deliveries.clear();
                for row in rows {
                    if let (Some(district), Some(order)) = (row.int(0), row.int(1)) {
                        case.deliveries.push((district, order, 0, Text::EMPTY));
                    }
                }
            }
            (Kind::Delivery, 2) => {
                for delivery in &mut case.deliveries {
                    let customer = rows.next().and_then(|row| row.int(0));
                    let sum = rows.next().and_then(|row| row.value(0));
                    delivery.2 = customer.ok_or_else(|| damaged("an order is missing"))?;
                    delivery.3 = Text::of(sum.ok_or_else(|| damaged("an order has no lines"))?);
                }
            }
            (Kind::StockLevel, 0) => {
                let found = rows.next().and_then(|row| row.int(0));
                case.order = found.ok_or_else(|| damaged("a district is missing"))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Actor for Terminal<'_> {
    /// How long the person thinks and types.
    fn pause_ns(&mut self) -> u64 {
        /// Think times are cut at so many times their mean (clause 5.2.5.4).
        const THINK_MEANS_MAX: f64 = 10.0;
        if !self.terminals.style.paced {
            return 0;
        }
        let mean_s = self.last_kind.think_mean_s();
        let think_s = (-self.stream.open_unit().ln() * mean_s).min(THINK_MEANS_MAX * mean_s);
        if !self.chosen {
            self.choose();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below two minutes"
        )]
        let think_ns = (think_s * 1e9) as u64;
        think_ns + self.kind.keying_s() * 1_000_000_000
    }

    fn begin(&mut self) {
        if !self.chosen {
            self.choose();
        }
        self.chosen = false;
        self.last_kind = self.kind;
        self.stream_at_begin = self.stream.clone();
        self.restart();
    }

    fn restart(&mut self) {
        self.stream = self.stream_at_begin.clone();
        self.draw(self.terminals.style);
        (self.stage, self.at) = (0, 0);
        self.rows.clear();
    }

    fn kind(&self) -> u32 {
        self.kind as u32
    }

    fn rolls_back(&self) -> bool {
        self.kind == Kind::NewOrder && self.case.unused_item
    }

    fn run(&mut self, out: &mut Vec<u8>) -> Result<Turn, Halt> {
        out.clear();
        loop {
            let Some(count) = self.statements(self.terminals.style) else {
                return Ok(Turn::End);
            };
            if self.at == count {
                if count > 0 {
                    self.finish_stage(self.terminals.style)?;
                    self.rows.clear();
                }
                self.stage += 1;
                self.at = 0;
                continue;
            }
            let mut id;
            let first = self.at;
            loop {
                id = self.statement(self.terminals.style, self.at);
                self.say(id, self.at, out);
                self.at += 1;
                if self.terminals.style.control != Control::Pipelined || self.at == count {
                    break;
                }
            }
            out.extend_from_slice(SYNC);
            return Ok(Turn::Send(Trip {
                syncs: 1,
                captures: true,
                statement: (self.at - first == 1).then_some(id as u32),
            }));
        }
    }

    fn take_reply(&mut self, reply: &[u8]) -> Result<(), Halt> {
        self.rows.extend_from_slice(reply);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::statements::ALL;
    use super::*;
    use crate::wire::kinds;
    use pgdyno_engine::Protocol;
    use pgdyno_engine::random::Purpose;

    fn terminals(functions: bool, control: Control) -> Terminals {
        let style = Style {
            warehouses: 3,
            functions,
            control,
            paced: false,
        };
        Terminals::new(Protocol::Prepared, style)
    }

    #[test]
    fn every_statement_has_its_place_and_its_parameters() {
        assert_eq!(Id::CallStockLevel as usize, ALL.len() - 1);
        assert_eq!(ALL[Id::Begin as usize].text, "BEGIN");
        assert!(ALL[Id::CountStock as usize].text.contains("count(*)"));
        assert!(ALL[Id::DeliveryTurn as usize].text.contains("lock"));
        assert!(ALL[Id::InsertHistory as usize].text.contains("history"));
        for sql in &ALL {
            let highest = (1..).take_while(|n| sql.text.contains(&format!("${n}"))).count();
            assert_eq!(highest, sql.types.len(), "{}", sql.text);
        }
        assert_eq!(
            Kind::ALL.iter().map(|kind| kind.share_percent()).sum::<i32>(),
            100
        );
    }

    #[test]
    fn drawn_cases_are_what_the_specification_wants() {
        let terminals = terminals(false, Control::Explicit);
        let mut terminal = Terminal::new(&terminals, Stream::new(1, 1, Purpose::Transactions), 0);
        let mut seen = [0_u32; 5];
        let (mut unused, mut remote, mut lines, mut by_name, mut elsewhere) = (0, 0, 0, 0, 0);
        for _ in 0..20_000 {
            terminal.begin();
            seen[terminal.kind() as usize] += 1;
            let case = &terminal.case;
            match terminal.kind {
                Kind::NewOrder => {
                    assert!((5..=15).contains(&case.lines.len()));
                    assert!(case.lines.iter().all(|line| (1..=3).contains(&line.supply)));
                    unused += u32::from(case.unused_item);
                    lines += case.lines.len();
                    remote += case
                        .lines
                        .iter()
                        .filter(|line| line.supply != case.warehouse)
                        .count();
                }
                Kind::Payment => {
                    by_name += u32::from(case.customer == 0);
                    elsewhere += u32::from(case.customer_warehouse != case.warehouse);
                }
                _ => {}
            }
        }
        let percent = |n: u32, of: u32| f64::from(n) * 100.0 / f64::from(of);
        assert!((43.0..47.0).contains(&percent(seen[0], 20_000)), "{seen:?}");
        assert!(seen[2..].iter().all(|&n| (650..950).contains(&n)), "{seen:?}");
        assert!((0.5..1.6).contains(&percent(unused, seen[0])), "{unused}");
        #[expect(clippy::cast_possible_truncation, reason = "small counts")]
        let remote = percent(remote as u32, lines as u32);
        assert!((0.8..1.2).contains(&remote), "{remote}");
        assert!((58.0..62.0).contains(&percent(by_name, seen[1])));
        assert!((13.0..17.0).contains(&percent(elsewhere, seen[1])));
    }

    #[test]
    fn stages_share_a_round_trip_in_a_pipeline() {
        for (control, functions, expected) in [
            (Control::None, true, &["BES"][..]),
            (Control::Explicit, true, &["BES", "BES", "BES"]),
            (Control::Pipelined, true, &["BEBEBES"]),
        ] {
            let terminals = terminals(functions, control);
            let mut terminal = Terminal::new(&terminals, Stream::new(1, 1, Purpose::Transactions), 0);
            terminal.begin();
            let (mut out, mut trips) = (Vec::new(), Vec::new());
            while let Turn::Send(_) = terminal.run(&mut out).unwrap() {
                trips.push(kinds(&out));
            }
            assert_eq!(trips, expected);
        }
    }
}
