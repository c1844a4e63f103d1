//! Requests of a terminal: each statement with its values from the case.

use super::super::statements::{ALL, Id};
use super::Terminal;
use crate::data::rows::Fields;
use pgdyno_engine::message::Binding;

impl Terminal<'_> {
    pub(super) fn say(&self, id: Id, at: usize, out: &mut Vec<u8>) {
        let number = id as usize;
        out.extend_from_slice(&self.terminals.parses[number]);
        let count = u16::try_from(ALL[number].types.len()).unwrap_or(0);
        let bind = Binding::new(out, &self.terminals.names[number], count);
        let case = &self.case;
        let (w, d, o) = (case.warehouse, case.district, case.order);
        let (c_w, c_d, c) = (case.customer_warehouse, case.customer_district, case.customer);
        let last = case.last.as_bytes();
        let delivery = |at: usize| case.deliveries[at];
        match id {
            Id::Begin | Id::Commit | Id::Rollback => bind,
            Id::OrderingCustomer => bind.int(w).int(d).int(c),
            Id::NextOrder | Id::StockNextOrder => bind.int(w).int(d),
            Id::InsertOrder => {
                let local = case.lines.iter().all(|line| line.supply == w);
                let count = i32::try_from(case.lines.len()).unwrap_or(0);
                bind.int(o).int(d).int(w).int(c).int(count).int(local.into())
            }
            Id::InsertNewOrder => bind.int(o).int(d).int(w),
            Id::Item => bind.int(case.lines[at - 3].item),
            Id::Stock => {
                let line = &case.lines[at - 2];
                let remote = i32::from(line.supply != w);
                bind.int(line.supply)
                    .int(line.item)
                    .int(line.quantity)
                    .int(remote)
                    .int(d)
            }
            Id::InsertLine => {
                let line = &case.lines[at];
                bind.int(o)
                    .int(d)
                    .int(w)
                    .int(line.number)
                    .int(line.item)
                    .int(line.supply)
                    .int(line.quantity)
                    .value(|out| out.hundredths(line.amount_cents))
                    .bytes(line.dist_info.as_bytes())
            }
            Id::PayersByName | Id::AskersByName => bind.int(c_w).int(c_d).bytes(last),
            Id::PayCustomer => bind
                .int(c_w)
                .int(c_d)
                .int(c)
                .value(|out| out.hundredths(case.amount_cents))
                .int(w)
                .int(d),
            Id::PayDistrict => bind.int(w).int(d).value(|out| out.hundredths(case.amount_cents)),
            Id::PayWarehouse => bind.int(w).value(|out| out.hundredths(case.amount_cents)),
            Id::InsertHistory => bind
                .int(c)
                .int(c_d)
                .int(c_w)
                .int(d)
                .int(w)
                .value(|out| out.hundredths(case.amount_cents))
                .bytes(case.history.as_bytes()),
            Id::Asker | Id::LatestOrder => bind.int(c_w).int(c_d).int(c),
            Id::Lines => bind.int(w).int(d).int(o),
            Id::DeliveryTurn => bind.int(w),
            Id::OldestOrder => bind.int(w).int(i32::try_from(at).unwrap_or(0) + 1),
            Id::Carry => {
                let (d, o, ..) = delivery(at / 2);
                bind.int(w).int(d).int(o).int(case.carrier)
            }
            Id::DeliverLines => {
                let (d, o, ..) = delivery(at / 2);
                bind.int(w).int(d).int(o)
            }
            Id::Credit => {
                let (d, _, c, sum) = delivery(at);
                bind.int(w).int(d).int(c).bytes(sum.as_bytes())
            }
            Id::CountStock => bind.int(w).int(d).int(o).int(case.threshold),
            Id::CallNewOrder => {
                let lines = &case.lines;
                bind.int(w)
                    .int(d)
                    .int(c)
                    .ints(lines.iter().map(|line| line.item))
                    .ints(lines.iter().map(|line| line.supply))
                    .ints(lines.iter().map(|line| line.quantity))
            }
            Id::CallPayment => bind
                .int(w)
                .int(d)
                .int(c_w)
                .int(c_d)
                .int(c)
                .bytes(last)
                .value(|out| out.hundredths(case.amount_cents)),
            Id::CallOrderStatus => bind.int(w).int(d).int(c).bytes(last),
            Id::CallDelivery => bind.int(w).int(case.carrier),
            Id::CallStockLevel => bind.int(w).int(d).int(case.threshold),
        }
        .execute();
    }
}
