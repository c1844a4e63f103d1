//! Where results go: whether the store and the report can be written. Nothing is made.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::failure::Result;
use crate::paths::absolute;
use crate::store_place::StorePlace;
use pgdyno_host::HostAccess;
use pgdyno_lab::{Finding, FindingKind, LabError, PreflightReport};
use pgdyno_store::{MissingRight, StoreError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long another process that has the store is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Adds what keeps results from being kept.
pub(super) fn look(context: &Context, args: &RunArgs, found: &mut PreflightReport) -> Result<()> {
    let place = context.store_place(args.store.store.place())?;
    if let Some(why) = args.report.as_deref().and_then(|path| no_report(context, path)) {
        let mend = "--report FILE (in a directory that is there, and that you may write)";
        found
            .findings
            .push(of_place(FindingKind::Other, why, mend.to_owned()));
    }
    match no_store(context, &place) {
        Ok(findings) if findings.is_empty() => {}
        // What is said of the store once is not said again in other words by who opens it.
        Ok(findings) => {
            found.findings.extend(findings);
            return Ok(());
        }
        Err(error) => {
            found.findings.push(unusable(&error));
            return Ok(());
        }
    }
    if matches!(&place, StorePlace::File(path) if !path.exists()) {
        return Ok(());
    }
    match place.open_as_it_is(PATIENCE) {
        // A run brings it to its schema, or makes it.
        Ok(_) | Err(StoreError::Older { .. } | StoreError::Missing { .. }) => {}
        Err(StoreError::Locked { .. }) => found.unproven.push(format!("the store {place}: it is in use")),
        Err(error) => found.findings.push(unusable(&error)),
    }
    Ok(())
}

fn of_place(kind: FindingKind, what: String, mend: String) -> Finding {
    Finding {
        kind,
        treatments: Vec::new(),
        what,
        mends: vec![mend],
    }
}

fn unusable(error: &StoreError) -> Finding {
    of_place(
        FindingKind::Other,
        error.to_string(),
        "--store FILE (another one)".to_owned(),
    )
}

/// What keeps a run from writing to a store: the right that is missing, with what gives it.
fn no_store(context: &Context, place: &StorePlace) -> Result<Vec<Finding>, StoreError> {
    if let StorePlace::File(path) = place {
        // SQLite makes files beside it.
        let kept = [path.clone(), above(path)];
        let why = kept.iter().find_map(|path| not_writable(context, path));
        let finding = why.map(|why| {
            let what = format!("the store {} cannot be written: {why}", path.display());
            let mend = "--store FILE (in a directory that you may write)";
            of_place(FindingKind::Other, what, mend.to_owned())
        });
        return Ok(finding.into_iter().collect());
    }
    let missing = place.missing_rights(PATIENCE)?;
    let finding = |right: MissingRight| {
        let what = format!("the store {place} cannot be written: {}", right.what);
        of_place(FindingKind::Right, what, right.grant)
    };
    Ok(missing.into_iter().map(finding).collect())
}

/// Refuses a store in PostgreSQL whose role lacks a right, before hours of trials.
pub(in super::super) fn check_rights(context: &Context, store: Option<&Path>) -> Result<()> {
    let place = context.store_place(store)?;
    if matches!(place, StorePlace::File(_)) {
        return Ok(());
    }
    let findings = no_store(context, &place)?;
    match findings.is_empty() {
        true => Ok(()),
        false => Err(LabError::Findings(findings).into()),
    }
}

/// Why a report cannot be written, if so: a run would find out at its end.
pub(in super::super) fn no_report(context: &Context, path: &Path) -> Option<String> {
    let why = match (path.is_dir(), above(path).is_dir()) {
        (true, _) => Some("it is a directory".to_owned()),
        (_, false) => Some(format!("there is no directory {}", above(path).display())),
        (false, true) => not_writable(context, path),
    };
    // A program that was built without its page has none to write.
    let why = why.or_else(|| pgdyno_report::page().err().map(|error| error.to_string()));
    why.map(|why| format!("the report {} cannot be written: {why}", path.display()))
}

fn above(path: &Path) -> PathBuf {
    let path = absolute(path);
    path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

/// Why a file cannot be written, or made; a directory that is not there is made by a run for the
/// store alone.
pub(crate) fn not_writable(context: &Context, path: &Path) -> Option<String> {
    let path = absolute(path);
    let there = path.ancestors().find(|above| above.exists())?;
    if there != path && !there.is_dir() {
        return Some(format!("{} is not a directory", there.display()));
    }
    let writable = context.host.writable(&there.to_string_lossy());
    writable.err().map(|error| error.to_string())
}
