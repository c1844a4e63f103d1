//! The tables of TPC-C (clause 1.3), their keys and indexes.

/// One table.
pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static str,
    /// The columns that rows are sent for; all others are the same in every row and get these defaults meanwhile.
    pub(super) sent: &'static str,
    constants: &'static [(&'static str, &'static str)],
    key: Option<&'static str>,
    /// Beside the key: name and columns.
    index: Option<(&'static str, &'static str)>,
}

pub(super) const WAREHOUSE: Table = Table {
    name: "warehouse",
    columns: "w_id int NOT NULL, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), \
              w_city varchar(20), w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2)",
    sent: "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax",
    constants: &[("w_ytd", "300000.00")],
    key: Some("w_id"),
    index: None,
};

pub(super) const DISTRICT: Table = Table {
    name: "district",
    columns: "d_id int NOT NULL, d_w_id int NOT NULL, d_name varchar(10), d_street_1 varchar(20), \
              d_street_2 varchar(20), d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), \
              d_ytd numeric(12,2), d_next_o_id int",
    sent: "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax",
    constants: &[("d_ytd", "30000.00"), ("d_next_o_id", "3001")],
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
    constants: &[
        ("c_middle", "OE"),
        ("c_since", NOW),
        ("c_credit_lim", "50000.00"),
        ("c_balance", "-10.00"),
        ("c_ytd_payment", "10.00"),
        ("c_payment_cnt", "1"),
        ("c_delivery_cnt", "0"),
    ],
    key: Some("c_w_id, c_d_id, c_id"),
    index: Some(("customer_name", "c_w_id, c_d_id, c_last, c_first")),
};

pub(super) const HISTORY: Table = Table {
    name: "history",
    columns: "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamptz, \
              h_amount numeric(12,2), h_data varchar(24)",
    sent: "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_data",
    constants: &[("h_date", NOW), ("h_amount", "10.00")],
    key: None,
    index: None,
};

pub(super) const NEW_ORDER: Table = Table {
    name: "new_order",
    columns: "no_o_id int NOT NULL, no_d_id int NOT NULL, no_w_id int NOT NULL",
    sent: "no_o_id, no_d_id, no_w_id",
    constants: &[],
    key: Some("no_w_id, no_d_id, no_o_id"),
    index: None,
};

pub(super) const ORDERS: Table = Table {
    name: "orders",
    columns: "o_id int NOT NULL, o_d_id int NOT NULL, o_w_id int NOT NULL, o_c_id int, o_entry_d timestamptz, \
              o_carrier_id int, o_ol_cnt int, o_all_local int",
    sent: "o_id, o_d_id, o_w_id, o_c_id, o_carrier_id, o_ol_cnt",
    constants: &[("o_entry_d", NOW), ("o_all_local", "1")],
    key: Some("o_w_id, o_d_id, o_id"),
    index: Some(("orders_customer", "o_w_id, o_d_id, o_c_id, o_id")),
};

pub(super) const ORDER_LINE: Table = Table {
    name: "order_line",
    columns: "ol_o_id int NOT NULL, ol_d_id int NOT NULL, ol_w_id int NOT NULL, ol_number int NOT NULL, \
              ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamptz, ol_quantity int, ol_amount numeric(12,2), \
              ol_dist_info char(24)",
    sent: "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info",
    constants: &[("ol_quantity", "5")],
    key: Some("ol_w_id, ol_d_id, ol_o_id, ol_number"),
    index: None,
};

pub(super) const ITEM: Table = Table {
    name: "item",
    columns: "i_id int NOT NULL, i_im_id int, i_name varchar(24), i_price numeric(12,2), i_data varchar(50)",
    sent: "i_id, i_im_id, i_name, i_price, i_data",
    constants: &[],
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
    constants: &[("s_ytd", "0"), ("s_order_cnt", "0"), ("s_remote_cnt", "0")],
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

/// Stands for the instant of creation.
const NOW: &str = "now";

impl Table {
    /// Statements that make it, with the defaults, and with a comment that tells whose it is. `now` is the instant of
    /// creation as SQL reads it.
    pub(super) fn create(&self, now: &str, owned: &str) -> String {
        let name = self.name;
        let mut sql = format!(
            "CREATE TABLE {name} ({}); COMMENT ON TABLE {name} IS '{owned}';",
            self.columns
        );
        for &(column, value) in self.constants {
            let value = if value == NOW { now } else { value };
            sql.push_str(&format!(
                "ALTER TABLE {name} ALTER COLUMN {column} SET DEFAULT '{value}';"
            ));
        }
        sql
    }

    /// Statements for when the rows are there: defaults away, keys made, read by ANALYZE.
    pub(super) fn finish(&self) -> Vec<String> {
        let name = self.name;
        let mut changes: Vec<String> = self
            .constants
            .iter()
            .map(|(column, _)| format!("ALTER COLUMN {column} DROP DEFAULT"))
            .collect();
        changes.extend(self.key.map(|key| format!("ADD PRIMARY KEY ({key})")));
        let mut statements = Vec::new();
        if !changes.is_empty() {
            statements.push(format!("ALTER TABLE {name} {}", changes.join(", ")));
        }
        statements.extend(
            self.index
                .map(|(index, columns)| format!("CREATE INDEX {index} ON {name} ({columns})")),
        );
        statements.push(format!("VACUUM (ANALYZE) {name}"));
        statements
    }

    /// Names of the indexes that it must have.
    pub(super) fn indexes(&self) -> Vec<String> {
        let key = self.key.map(|_| format!("{}_pkey", self.name));
        key.into_iter()
            .chain(self.index.map(|(name, _)| name.to_owned()))
            .collect()
    }
}
