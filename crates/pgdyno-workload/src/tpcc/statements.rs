//! The statements of TPC-C's transactions, with the types of their parameters.

/// Oids of types in pg_type.
pub(super) const INT4: u32 = 23;
const TEXT: u32 = 25;
const INT4_ARRAY: u32 = 1007;
const NUMERIC: u32 = 1700;

/// A statement and the types of its parameters.
pub(super) struct Sql {
    /// The kind of transaction that it belongs to; BEGIN, COMMIT and ROLLBACK belong to all kinds.
    pub(super) kind: Option<Kind>,
    pub(super) text: &'static str,
    pub(super) types: &'static [u32],
}

/// The five transactions (clauses 2.4 to 2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [
        Kind::NewOrder,
        Kind::Payment,
        Kind::OrderStatus,
        Kind::Delivery,
        Kind::StockLevel,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => super::NEW_ORDER,
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }

    /// Percent of all transactions: the least that clause 5.2.3 allows for each, and new orders for
    /// the rest.
    pub(super) fn share_percent(self) -> i32 {
        match self {
            Kind::NewOrder => 45,
            Kind::Payment => 43,
            Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 4,
        }
    }

    /// Seconds that a person types, before it (clause 5.2.5.7).
    pub(super) fn keying_s(self) -> u64 {
        match self {
            Kind::NewOrder => 18,
            Kind::Payment => 3,
            Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 2,
        }
    }

    /// Seconds that a person thinks behind it, on average (clause 5.2.5.7).
    pub(super) fn think_mean_s(self) -> f64 {
        match self {
            Kind::NewOrder | Kind::Payment => 12.0,
            Kind::OrderStatus => 10.0,
            Kind::Delivery | Kind::StockLevel => 5.0,
        }
    }
}

/// Each statement, by its number in [`ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Id {
    Begin,
    Commit,
    Rollback,
    OrderingCustomer,
    NextOrder,
    InsertOrder,
    InsertNewOrder,
    Item,
    Stock,
    InsertLine,
    PayersByName,
    PayCustomer,
    PayDistrict,
    PayWarehouse,
    InsertHistory,
    AskersByName,
    Asker,
    LatestOrder,
    Lines,
    DeliveryTurn,
    OldestOrder,
    Carry,
    DeliverLines,
    Credit,
    StockNextOrder,
    CountStock,
    CallNewOrder,
    CallPayment,
    CallOrderStatus,
    CallDelivery,
    CallStockLevel,
}

macro_rules! sql {
    ($kind:expr, [$($of:ident),*], $text:expr) => {
        Sql { kind: $kind, text: $text, types: &[$($of),*] }
    };
}

const NEW_ORDER: Option<Kind> = Some(Kind::NewOrder);
const PAYMENT: Option<Kind> = Some(Kind::Payment);
const ORDER_STATUS: Option<Kind> = Some(Kind::OrderStatus);
const DELIVERY: Option<Kind> = Some(Kind::Delivery);
const STOCK_LEVEL: Option<Kind> = Some(Kind::StockLevel);

/// In the order of [`Id`]. A row that is changed and read is one statement with RETURNING.
pub(super) const ALL: [Sql; 31] = [
    sql!(None, [], "BEGIN"),
    sql!(None, [], "COMMIT"),
    sql!(None, [], "ROLLBACK"),
    sql!(
        NEW_ORDER,
        [INT4, INT4, INT4],
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
         WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
    ),
    sql!(
        NEW_ORDER,
        [INT4, INT4],
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_next_o_id - 1, d_tax"
    ),
    sql!(
        NEW_ORDER,
        [INT4, INT4, INT4, INT4, INT4, INT4],
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, $3, $4, now(), $5, $6)"
    ),
    sql!(
        NEW_ORDER,
        [INT4, INT4, INT4],
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)"
    ),
    sql!(
        NEW_ORDER,
        [INT4],
        "SELECT i_price, i_name, i_data FROM item WHERE i_id = $1"
    ),
    sql!(
        NEW_ORDER,
        [INT4, INT4, INT4, INT4, INT4],
        "UPDATE stock SET s_quantity = s_quantity - $3 + CASE WHEN s_quantity - $3 >= 10 THEN 0 ELSE 91 END, \
         s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $4 \
         WHERE s_w_id = $1 AND s_i_id = $2 \
         RETURNING CASE $5 WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04 \
         WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 \
         WHEN 9 THEN s_dist_09 ELSE s_dist_10 END, s_quantity, s_data"
    ),
    sql!(
        NEW_ORDER,
        [INT4, INT4, INT4, INT4, INT4, INT4, INT4, NUMERIC, TEXT],
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
         ol_amount, ol_dist_info) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
    ),
    sql!(
        PAYMENT,
        [INT4, INT4, TEXT],
        "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first"
    ),
    sql!(
        PAYMENT,
        [INT4, INT4, INT4, NUMERIC, INT4, INT4],
        "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
         c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' \
         THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, $6, $5, $4, c_data), 500) ELSE c_data END \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
         RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
         c_credit, c_credit_lim, c_discount, c_balance"
    ),
    sql!(
        PAYMENT,
        [INT4, INT4, NUMERIC],
        "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
         RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip"
    ),
    sql!(
        PAYMENT,
        [INT4, NUMERIC],
        "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
         RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip"
    ),
    sql!(
        PAYMENT,
        [INT4, INT4, INT4, INT4, INT4, NUMERIC, TEXT],
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, now(), $6, $7)"
    ),
    sql!(
        ORDER_STATUS,
        [INT4, INT4, TEXT],
        "SELECT c_id, c_balance, c_first, c_middle FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 \
         ORDER BY c_first"
    ),
    sql!(
        ORDER_STATUS,
        [INT4, INT4, INT4],
        "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
    ),
    sql!(
        ORDER_STATUS,
        [INT4, INT4, INT4],
        "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 \
         ORDER BY o_id DESC LIMIT 1"
    ),
    sql!(
        ORDER_STATUS,
        [INT4, INT4, INT4],
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3"
    ),
    // Two deliveries of a warehouse at a time would find the same oldest orders; the number is
    // "tpcc".
    sql!(DELIVERY, [INT4], "SELECT pg_advisory_xact_lock(1953522531, $1)"),
    sql!(
        DELIVERY,
        [INT4, INT4],
        "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = \
         (SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1) \
         RETURNING no_d_id, no_o_id"
    ),
    sql!(
        DELIVERY,
        [INT4, INT4, INT4, INT4],
        "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id"
    ),
    sql!(
        DELIVERY,
        [INT4, INT4, INT4],
        "WITH delivered AS (UPDATE order_line SET ol_delivery_d = now() \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount) \
         SELECT sum(ol_amount) FROM delivered"
    ),
    sql!(
        DELIVERY,
        [INT4, INT4, INT4, NUMERIC],
        "UPDATE customer SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3"
    ),
    sql!(
        STOCK_LEVEL,
        [INT4, INT4],
        "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2"
    ),
    sql!(
        STOCK_LEVEL,
        [INT4, INT4, INT4, INT4],
        "SELECT count(*) FROM (SELECT DISTINCT ol_i_id FROM order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3) AS sold \
         JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id WHERE s_quantity < $4"
    ),
    sql!(
        NEW_ORDER,
        [INT4, INT4, INT4, INT4_ARRAY, INT4_ARRAY, INT4_ARRAY],
        "SELECT tpcc_new_order($1, $2, $3, $4, $5, $6)"
    ),
    sql!(
        PAYMENT,
        [INT4, INT4, INT4, INT4, INT4, TEXT, NUMERIC],
        "SELECT tpcc_payment($1, $2, $3, $4, $5, $6, $7)"
    ),
    sql!(
        ORDER_STATUS,
        [INT4, INT4, INT4, TEXT],
        "SELECT tpcc_order_status($1, $2, $3, $4)"
    ),
    sql!(DELIVERY, [INT4, INT4], "SELECT tpcc_delivery($1, $2)"),
    sql!(
        STOCK_LEVEL,
        [INT4, INT4, INT4],
        "SELECT tpcc_stock_level($1, $2, $3)"
    ),
];
