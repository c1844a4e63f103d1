//! Where results go: whether the store and the report can be written. Nothing is made.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::store_place::StorePlace;
use pgdyno_host::HostAccess;
use pgdyno_lab::{Finding, FindingKind, PreflightReport};
use pgdyno_store::StoreError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another process that has the store is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Adds what keeps results from being kept.
pub(super) fn look(context: &Context, args: &RunArgs, found: &mut PreflightReport) -> anyhow::Result<()> {
    let place = context.store_place(args.store.store.as_deref())?;
    let mut add = |what: String, mend: &str| {
        found.findings.push(Finding {
            kind: FindingKind::Other,
            treatments: Vec::new(),
            what,
            mends: vec![mend.to_owned()],
        });
    };
    let mend = "--store FILE (in a directory that you may write)";
    let is_new = match &place {
        StorePlace::File(path) => {
            // SQLite makes files beside it.
            let kept = [path.clone(), above(path)];
            for why in kept.iter().filter_map(|path| not_writable(context, path)) {
                add(
                    format!("the store {} cannot be written: {why}", path.display()),
                    mend,
                );
            }
            !path.exists()
        }
        StorePlace::Server { .. } => false,
    };
    if let Some(why) = args.report.as_deref().and_then(|path| no_report(context, path)) {
        add(
            why,
            "--report FILE (in a directory that is there, and that you may write)",
        );
    }
    if is_new {
        return Ok(());
    }
    let name = place.to_string();
    match place.open_as_it_is(PATIENCE) {
        // A run brings it to its schema.
        Err(StoreError::Older { .. }) => {}
        Err(StoreError::Missing { .. } | StoreError::Locked { .. }) => found
            .unproven
            .push(format!("the store {name}: it is not there yet, or in use")),
        Err(error) => found.findings.push(Finding {
            kind: FindingKind::Other,
            treatments: Vec::new(),
            what: error.to_string(),
            mends: vec!["--store FILE (another one)".to_owned()],
        }),
        Ok(store) if matches!(store.place(), pgdyno_store::Place::File(_)) => {}
        Ok(_) => found
            .unproven
            .push(format!("the store {name}: whether its role may write there")),
    }
    Ok(())
}

/// Why a report cannot be written, if so: a run would find out at its end.
pub(in super::super) fn no_report(context: &Context, path: &Path) -> Option<String> {
    let why = match (path.is_dir(), above(path).is_dir()) {
        (true, _) => Some("it is a directory".to_owned()),
        (_, false) => Some(format!("there is no directory {}", above(path).display())),
        (false, true) => not_writable(context, path),
    };
    why.map(|why| format!("the report {} cannot be written: {why}", path.display()))
}

fn above(path: &Path) -> PathBuf {
    let path = super::super::absolute(path);
    path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// Why a file cannot be written, or made; a directory that is not there is made by a run for the store alone.
fn not_writable(context: &Context, path: &Path) -> Option<String> {
    let path = super::super::absolute(path);
    let there = path.ancestors().find(|above| above.exists())?;
    if there != path && !there.is_dir() {
        return Some(format!("{} is no directory", there.display()));
    }
    let writable = context.host.writable(&there.to_string_lossy());
    writable.err().map(|error| error.to_string())
}
