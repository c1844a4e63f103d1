//! What the web server is sent: queries and bodies.

use super::input::{choice, text};
use pgdyno_serve::asked;
use pgdyno_stats::Price;

/// A query or a body of any bytes asks for what can be answered within limits, or is an error.
pub(super) fn requests(bytes: &[u8]) {
    const USUAL_TPS: f64 = 1000.0;
    let (which, rest) = choice(bytes);
    let query = text(rest);
    let is_amount = |amount: f64| amount.is_finite() && amount > 0.0;
    match which % 4 {
        0 => {
            if let Ok(filter) = asked::filter(&query) {
                assert!(filter.tags.len() <= asked::TAGS_MAX);
                let mut texts = filter.tags.iter().chain(&filter.name).chain(&filter.search);
                assert!(texts.all(|text| !text.trim().is_empty()));
            }
        }
        1 => {
            if let Ok(question) = asked::question(&query, USUAL_TPS) {
                let price = question.price.map(|price| match price {
                    Price::PerCpuHour(price) | Price::PerHostHour(price) => price,
                });
                let mut amounts = [Some(question.tps), question.p99_ms, price].into_iter().flatten();
                assert!(amounts.all(is_amount));
            }
        }
        2 => {
            if let Ok((_, _, metrics)) = asked::comparison(&query) {
                assert!(metrics.len() <= asked::METRICS_MAX);
            }
        }
        _ => {
            // JSON has an escape for each byte, so a text is never longer than what it was sent in.
            if let Ok(note) = asked::new_note(rest) {
                assert!(note.len() <= rest.len());
            }
        }
    }
}
