//! Stored experiments, as commands find them by reference.

use crate::context::Context;
use crate::failure::{Result, Usage};
use pgdyno_lab::compare::{Reference, Which};
use pgdyno_store::Store;
use std::path::Path;

/// Opens a store that is there: a mistyped name must not make an empty one.
pub(crate) fn store(context: &Context, named: Option<&Path>) -> Result<Store> {
    context.store_there(named)
}

/// The number of the experiment that a reference means; the error of an unknown one lists the
/// newest.
pub(crate) fn number(store: &Store, reference: Option<&Reference>) -> Result<i64> {
    let all = store.numbers()?;
    let there = || -> String {
        let numbers: Vec<String> = all.iter().take(10).map(|(id, _)| id.to_string()).collect();
        numbers.join(", ")
    };
    let Some((newest, _)) = all.first() else {
        return Err(Usage(format!("there is no experiment in {}", store.place())).into());
    };
    match reference.and_then(|reference| reference.experiment) {
        None => Ok(*newest),
        Some(id) if all.iter().any(|(there, _)| *there == id) => Ok(id),
        Some(id) => Err(Usage(format!(
            "there is no experiment {id} in {}; the newest are {} (`pgdyno list`)",
            store.place(),
            there()
        ))
        .into()),
    }
}

/// A reference to an experiment, and to nothing in it.
pub(crate) fn whole(reference: Option<&Reference>) -> Result<()> {
    match reference {
        Some(reference) if reference.which != Which::All => Err(Usage(format!(
            "\"{reference}\" names a part of an experiment; name the experiment alone"
        ))
        .into()),
        _ => Ok(()),
    }
}
