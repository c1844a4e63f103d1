//! The tables of TPC-C (clause 1.3), their keys and indexes.

use super::values::CUSTOMERS;
use crate::data::Partitions;
use crate::data::rows::Constant;
use crate::data::rows::Constant::{Hundredths, Int, Text};
use crate::data::session::Instant;

/// One table.
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static str,
    /// Columns that are sent; [`Table::constants`] has the others.
    pub(super) sent: &'static str,
    /// Columns that no statement compares.
    unread: &'static [&'static str],
    /// Column that it is partitioned by, where partitions are asked for: of the tables that grow
    /// with the warehouses.
    pub(super) by: Option<&'static str>,
    key: Option<&'static str>,
    /// Beside the key: name and columns.
    index: Option<(&'static str, &'static str)>,
}

pub(super) const WAREHOUSE: Table = Table {
    name: "warehouse",
    columns: "w_id int NOT NULL, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
              w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2)",
    sent: "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax",
    unread: &[],
    by: None,
    key: Some("w_id"),
    index: None,
};

pub(super) const DISTRICT: Table = Table {
    name: "district",
    columns: "d_id int NOT NULL, d_w_id int NOT NULL, d_name varchar(10), d_street_1 varchar(20), \
              d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), \
              d_ytd numeric(12,2), d_next_o_id int",
    sent: "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax",
    unread: &[],
    by: None,
    key: Some("d_w_id, d_id"),
    index: None,
};

pub(super) const CUSTOMER: Table = Table {
    name: "customer",
    columns: "c_id int NOT NULL, c_d_id int NOT NULL, c_w_id int NOT NULL, c_first varchar(16), c_middle char(2), \
              c_last varchar(16), c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), \
              c_state char(2), c_zip char(9), c_phone char(16), c_since timestamptz, c_credit char(2), \
              c_credit_lim numeric(12,2), c_discount numeric(4,4), c_balance numeric(12,2), \
              c_ytd_payment numeric(12,2), c_payment_cnt int, c_delivery_cnt int, c_data varchar(500)",
    sent: "c_id, c_d_id, c_w_id, c_first, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, \
           c_discount, c_data",
    unread: &[
        "c_first",
        "c_street_1",
        "c_street_2",
        "c_city",
        "c_state",
        "c_zip",
        "c_phone",
        "c_since",
        "c_discount",
        "c_data",
    ],
    by: Some("c_w_id"),
    key: Some("c_w_id, c_d_id, c_id"),
    index: Some(("customer_name", "c_w_id, c_d_id, c_last, c_first")),
};

pub(super) const HISTORY: Table = Table {
    name: "history",
    columns: "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamptz, \
              h_amount numeric(12,2), h_data varchar(24)",
    sent: "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_data",
    unread: &["h_data"],
    by: Some("h_w_id"),
    key: None,
    index: None,
};

pub(super) const NEW_ORDER: Table = Table {
    name: "new_order",
    columns: "no_o_id int NOT NULL, no_d_id int NOT NULL, no_w_id int NOT NULL",
    sent: "no_o_id, no_d_id, no_w_id",
    unread: &[],
    by: Some("no_w_id"),
    key: Some("no_w_id, no_d_id, no_o_id"),
    index: None,
};

pub(super) const ORDERS: Table = Table {
    name: "orders",
    columns: "o_id int NOT NULL, o_d_id int NOT NULL, o_w_id int NOT NULL, o_c_id int, o_entry_d timestamptz, \
              o_carrier_id int, o_ol_cnt int, o_all_local int",
    sent: "o_id, o_d_id, o_w_id, o_c_id, o_carrier_id, o_ol_cnt",
    unread: &[],
    by: Some("o_w_id"),
    key: Some("o_w_id, o_d_id, o_id"),
    index: Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")),
};

pub(super) const ORDER_LINE: Table = Table {
    name: "order_line",
    columns: "ol_o_id int NOT NULL, ol_d_id int NOT NULL, ol_w_id int NOT NULL, ol_number int NOT NULL, \
              ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamptz, ol_quantity int, ol_amount numeric(12,2), \
              ol_dist_info char(24)",
    sent: "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info",
    unread: &["ol_dist_info"],
    by: Some("ol_w_id"),
    key: Some("ol_w_id, ol_d_id, ol_o_id, ol_number"),
    index: None,
};

pub(super) const ITEM: Table = Table {
    name: "item",
    columns: "i_id int NOT NULL, i_im_id int, i_name varchar(24), i_price numeric(12,2), i_data varchar(50)",
    sent: "i_id, i_im_id, i_name, i_price, i_data",
    unread: &["i_name", "i_data"],
    by: None,
    key: Some("i_id"),
    index: None,
};

pub(super) const STOCK: Table = Table {
    name: "stock",
    columns: "s_i_id int NOT NULL, s_w_id int NOT NULL, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), \
              s_dist_03 char(24), s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), \
              s_dist_08 char(24), s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, \
              s_remote_cnt int, s_data varchar(50)",
    sent: "s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, \
           s_dist_08, s_dist_09, s_dist_10, s_data",
    unread: &[
        "s_dist_01",
        "s_dist_02",
        "s_dist_03",
        "s_dist_04",
        "s_dist_05",
        "s_dist_06",
        "s_dist_07",
        "s_dist_08",
        "s_dist_09",
        "s_dist_10",
        "s_data",
    ],
    by: Some("s_w_id"),
    key: Some("s_w_id, s_i_id"),
    index: None,
};

pub(super) const ALL: [&Table; 9] = [
    &WAREHOUSE,
    &DISTRICT,
    &CUSTOMER,
    &HISTORY,
    &NEW_ORDER,
    &ORDERS,
    &ORDER_LINE,
    &ITEM,
    &STOCK,
];

impl Table {
    /// Columns that are the same in all rows at the beginning (clause 4.3.3.1).
    pub(super) fn constants(&self, now: &Instant) -> Vec<(&'static str, Constant)> {
        let now = || Constant::Instant(now.clone());
        match self.name {
            "warehouse" => vec![("w_ytd", Hundredths(30_000_000))],
            "district" => vec![
                ("d_ytd", Hundredths(3_000_000)),
                ("d_next_o_id", Int(CUSTOMERS + 1)),
            ],
            "customer" => vec![
                ("c_middle", Text("OE")),
                ("c_since", now()),
                ("c_credit_lim", Hundredths(5_000_000)),
                ("c_balance", Hundredths(-1_000)),
                ("c_ytd_payment", Hundredths(1_000)),
                ("c_payment_cnt", Int(1)),
                ("c_delivery_cnt", Int(0)),
            ],
            "history" => vec![("h_date", now()), ("h_amount", Hundredths(1_000))],
            "orders" => vec![("o_entry_d", now()), ("o_all_local", Int(1))],
            "order_line" => vec![("ol_quantity", Int(5))],
            "stock" => vec![
                ("s_ytd", Int(0)),
                ("s_order_cnt", Int(0)),
                ("s_remote_cnt", Int(0)),
            ],
            _ => Vec::new(),
        }
    }

    /// Statements that make it, with a comment that shows whose it is.
    pub(super) fn create(&self, owned: &str, partitions: Option<Partitions>, warehouses: i64) -> String {
        let name = self.name;
        let end = match partitions.zip(self.by) {
            None => ";".to_owned(),
            Some((partitions, column)) => partitions.create(name, column, warehouses),
        };
        format!(
            "CREATE TABLE {name} ({}) {end} COMMENT ON TABLE {name} IS '{owned}';",
            self.columns
        )
    }

    /// Statements for when the rows are there: key and index, and statistics. Those of columns that
    /// no statement compares are left to autovacuum, whenever it comes by: they take longer than
    /// all others.
    pub(super) fn finish(&self) -> Vec<String> {
        let name = self.name;
        let key = self
            .key
            .map(|key| format!("ALTER TABLE {name} ADD PRIMARY KEY ({key})"));
        let index = self
            .index
            .map(|(index, columns)| format!("CREATE INDEX {index} ON {name} ({columns})"));
        let statistics = |value: i32| {
            let changes: Vec<String> = self
                .unread
                .iter()
                .map(|column| format!("ALTER {column} SET STATISTICS {value}"))
                .collect();
            (!changes.is_empty()).then(|| format!("ALTER TABLE {name} {}", changes.join(", ")))
        };
        [
            key,
            index,
            statistics(0),
            Some(format!("VACUUM (ANALYZE) {name}")),
            statistics(-1),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Names of the indexes that it must have.
    pub(super) fn indexes(&self) -> Vec<String> {
        let key = self.key.map(|_| format!("{}_pkey", self.name));
        key.into_iter()
            .chain(self.index.map(|(name, _)| name.to_owned()))
            .collect()
    }
}
