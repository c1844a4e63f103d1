//! What pages of advice say of a piece in the same words, whatever their format.

use pgdyno_advice::{Advice, Shown};

/// The name by which `--detail` finds a piece of advice: its setting, else its rule.
pub(super) fn what(advice: &Advice) -> String {
    match &advice.setting {
        Some(setting) => setting.knob.clone(),
        None => advice.rule.clone(),
    }
}

/// The present value, or what holds instead.
pub(super) fn now_cell(advice: &Advice) -> String {
    match (&advice.now_means, advice.now.as_deref()) {
        (Some(means), _) => means.clone(),
        (None, Some("")) => "empty".to_owned(),
        (None, Some(now)) => now.to_owned(),
        (None, None) => "unknown".to_owned(),
    }
}

/// What trials here have shown, else what others found.
pub(super) fn expected(advice: &Advice) -> String {
    match &advice.measured {
        Some(measured) if measured.verdict == Shown::Better => {
            format!("measured here: {}", measured.summary())
        }
        Some(measured) => format!(
            "{} (measured here: {})",
            advice.effect.summary(),
            measured.summary()
        ),
        None => advice.effect.summary(),
    }
}
