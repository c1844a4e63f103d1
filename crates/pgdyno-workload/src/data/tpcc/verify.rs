//! What must hold of TPC-C's data: the twelve consistency conditions of clause 3.3.2, rows and
//! indexes.

use super::tables;
use super::values::{CUSTOMERS, DISTRICTS, ITEMS};
use crate::data::verify::{Question, has_indexes};
use crate::data::{Condition, DataError};
use crate::session::Session;

/// Conditions 1 to 3, 8, 9 and 11: about warehouses and districts.
const DISTRICT_LEVEL: &str = "
WITH o AS (SELECT o_w_id AS w, o_d_id AS d, max(o_id) AS last, count(*) AS n FROM orders GROUP BY 1, 2),
n AS (SELECT no_w_id AS w, no_d_id AS d, min(no_o_id) AS first, max(no_o_id) AS last, count(*) AS n
      FROM new_order GROUP BY 1, 2),
h AS (SELECT h_w_id AS w, h_d_id AS d, sum(h_amount) AS paid FROM history GROUP BY 1, 2),
c AS (SELECT c_w_id AS w, c_d_id AS d, sum(c_delivery_cnt) AS delivered FROM customer GROUP BY 1, 2),
per_d AS (
  SELECT d_w_id, d_id, d_ytd, d_next_o_id - 1 AS latest, o.last AS o_last, coalesce(o.n, 0) AS o_n,
    n.first AS n_first, n.last AS n_last, coalesce(n.n, 0) AS n_n, coalesce(paid, 0) AS paid,
    coalesce(delivered, 0) AS delivered, format('warehouse %s district %s: ', d_w_id, d_id) AS place
  FROM district LEFT JOIN o ON o.w = d_w_id AND o.d = d_id LEFT JOIN n ON n.w = d_w_id AND n.d = d_id
    LEFT JOIN h ON h.w = d_w_id AND h.d = d_id LEFT JOIN c ON c.w = d_w_id AND c.d = d_id),
per_w AS (
  SELECT w_ytd, coalesce(sum(d_ytd), 0) AS d_ytd, coalesce(sum(paid), 0) AS paid,
    format('warehouse %s: ', w_id) AS place
  FROM warehouse LEFT JOIN per_d ON d_w_id = w_id GROUP BY w_id, w_ytd),
reported AS (
  SELECT 1 AS number, w_ytd = d_ytd AS holds, place || format('w_ytd %s, sum(d_ytd) %s', w_ytd, d_ytd) AS words
    FROM per_w
  UNION ALL SELECT 2, latest IS NOT DISTINCT FROM o_last AND (n_last IS NULL OR latest = n_last),
    place || format('d_next_o_id - 1 %s, max(o_id) %s, max(no_o_id) %s', latest, o_last, n_last) FROM per_d
  UNION ALL SELECT 3, n_n = 0 OR n_last - n_first + 1 = n_n,
    place || format('max(no_o_id) %s, min(no_o_id) %s, rows of new_order %s', n_last, n_first, n_n) FROM per_d
  UNION ALL SELECT 8, w_ytd = paid, place || format('w_ytd %s, sum(h_amount) %s', w_ytd, paid) FROM per_w
  UNION ALL SELECT 9, d_ytd = paid, place || format('d_ytd %s, sum(h_amount) %s', d_ytd, paid) FROM per_d
  UNION ALL SELECT 11, o_n - n_n = 2100 + delivered,
    place || format('rows of orders %s, of new_order %s, deliveries %s', o_n, n_n, delivered) FROM per_d)
SELECT number, count(*), count(*) FILTER (WHERE holds IS NOT TRUE), min(words) FILTER (WHERE holds IS NOT TRUE)
FROM reported GROUP BY number ORDER BY number";

/// Conditions 4 to 7: about orders and their lines. Lines are joined to their orders both ways:
/// neither may be without the other.
const ORDER_LEVEL: &str = "
WITH l AS (
  SELECT ol_w_id AS w, ol_d_id AS d, ol_o_id AS o, count(*) AS n, count(ol_delivery_d) AS delivered
  FROM order_line GROUP BY 1, 2, 3),
per_o AS (
  SELECT coalesce(w, o_w_id) AS w, coalesce(d, o_d_id) AS d, coalesce(o, o_id) AS o, o_ol_cnt, o_carrier_id,
    no_o_id, coalesce(n, 0) AS n, coalesce(delivered, 0) AS delivered, o_id
  FROM l FULL JOIN orders ON o_w_id = w AND o_d_id = d AND o_id = o
    LEFT JOIN new_order ON no_w_id = coalesce(w, o_w_id) AND no_d_id = coalesce(d, o_d_id)
      AND no_o_id = coalesce(o, o_id)),
judged AS (
  SELECT w, d, o, o_ol_cnt, o_carrier_id, no_o_id, n, delivered,
    o_id IS NOT NULL AND (o_carrier_id IS NULL) = (no_o_id IS NOT NULL) AS five,
    n IS NOT DISTINCT FROM o_ol_cnt AS six,
    delivered = CASE WHEN o_carrier_id IS NULL THEN 0 ELSE n END AS seven
  FROM per_o),
per_d AS (
  SELECT w, d, sum(o_ol_cnt) AS stored, sum(n) AS counted, count(*) AS orders,
    count(*) FILTER (WHERE NOT five) AS five, count(*) FILTER (WHERE NOT six) AS six,
    count(*) FILTER (WHERE NOT seven) AS seven,
    min(format('warehouse %s district %s order %s: o_carrier_id %s, row of new_order %s', w, d, o,
      coalesce(o_carrier_id::text, 'null'), CASE WHEN no_o_id IS NULL THEN 'none' ELSE 'there' END))
      FILTER (WHERE NOT five) AS five_words,
    min(format('warehouse %s district %s order %s: o_ol_cnt %s, lines %s', w, d, o, o_ol_cnt, n))
      FILTER (WHERE NOT six) AS six_words,
    min(format('warehouse %s district %s order %s: o_carrier_id %s, %s of %s lines delivered', w, d, o,
      coalesce(o_carrier_id::text, 'null'), delivered, n)) FILTER (WHERE NOT seven) AS seven_words
  FROM judged GROUP BY w, d)
SELECT 4, count(*), count(*) FILTER (WHERE stored IS DISTINCT FROM counted),
  min(format('warehouse %s district %s: sum(o_ol_cnt) %s, rows of order_line %s', w, d, stored, counted))
    FILTER (WHERE stored IS DISTINCT FROM counted) FROM per_d
UNION ALL SELECT 5, coalesce(sum(orders), 0)::bigint, coalesce(sum(five), 0)::bigint, min(five_words) FROM per_d
UNION ALL SELECT 6, coalesce(sum(orders), 0)::bigint, coalesce(sum(six), 0)::bigint, min(six_words) FROM per_d
UNION ALL SELECT 7, coalesce(sum(orders), 0)::bigint, coalesce(sum(seven), 0)::bigint, min(seven_words) FROM per_d
ORDER BY 1";

/// Conditions 10 and 12: about customers.
const CUSTOMER_LEVEL: &str = "
WITH o AS (
  SELECT o_w_id AS w, o_d_id AS d, o_c_id AS c, sum(ol_amount) AS amount
  FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
  WHERE ol_delivery_d IS NOT NULL GROUP BY 1, 2, 3),
h AS (
  SELECT h_c_w_id AS w, h_c_d_id AS d, h_c_id AS c, sum(h_amount) AS paid FROM history GROUP BY 1, 2, 3),
per_c AS (
  SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, coalesce(amount, 0) AS amount, coalesce(paid, 0) AS paid
  FROM customer LEFT JOIN o ON o.w = c_w_id AND o.d = c_d_id AND o.c = c_id
    LEFT JOIN h ON h.w = c_w_id AND h.d = c_d_id AND h.c = c_id)
SELECT 10, count(*), count(*) FILTER (WHERE (c_balance = amount - paid) IS NOT TRUE),
  min(format('warehouse %s district %s customer %s: c_balance %s, delivered %s, paid %s', c_w_id, c_d_id, c_id,
    c_balance, amount, paid)) FILTER (WHERE (c_balance = amount - paid) IS NOT TRUE) FROM per_c
UNION ALL SELECT 12, count(*), count(*) FILTER (WHERE (c_balance + c_ytd_payment = amount) IS NOT TRUE),
  min(format('warehouse %s district %s customer %s: c_balance %s, c_ytd_payment %s, delivered %s', c_w_id, c_d_id,
    c_id, c_balance, c_ytd_payment, amount)) FILTER (WHERE (c_balance + c_ytd_payment = amount) IS NOT TRUE) FROM per_c
ORDER BY 1";

/// Each condition, written with the names of columns.
fn name(number: i32) -> &'static str {
    match number {
        1 => "1: w_ytd = sum(d_ytd)",
        2 => "2: d_next_o_id - 1 = max(o_id) = max(no_o_id)",
        3 => "3: max(no_o_id) - min(no_o_id) + 1 = rows of new_order",
        4 => "4: sum(o_ol_cnt) = rows of order_line",
        5 => "5: o_carrier_id is null where there is a row of new_order",
        6 => "6: o_ol_cnt = lines of the order",
        7 => "7: ol_delivery_d is null where o_carrier_id is",
        8 => "8: w_ytd = sum(h_amount)",
        9 => "9: d_ytd = sum(h_amount)",
        10 => "10: c_balance = delivered - paid",
        11 => "11: orders - new orders = 2100 + deliveries",
        _ => "12: c_balance + c_ytd_payment = delivered",
    }
}

pub(in crate::data) fn check(client: &mut Session, warehouses: u32) -> Result<Vec<Condition>, DataError> {
    let warehouses = i64::from(warehouses);
    let mut conditions = Vec::new();
    for (table, rows) in [
        ("district", i64::from(DISTRICTS) * warehouses),
        ("customer", i64::from(DISTRICTS * CUSTOMERS) * warehouses),
        ("item", i64::from(ITEMS)),
        ("stock", i64::from(ITEMS) * warehouses),
    ] {
        conditions.push(Question::new(client).rows(table, rows)?);
    }
    let indexes: Vec<String> = tables::ALL.iter().flat_map(|table| table.indexes()).collect();
    conditions.push(has_indexes(client, &indexes)?);
    let mut twelve = Vec::new();
    for sql in [DISTRICT_LEVEL, ORDER_LEVEL, CUSTOMER_LEVEL] {
        twelve.extend(Question::new(client).tallies(sql)?);
    }
    twelve.sort_by_key(|tally| tally.number);
    conditions.extend(
        twelve
            .into_iter()
            .map(|tally| tally.condition(name(tally.number))),
    );
    Ok(conditions)
}
