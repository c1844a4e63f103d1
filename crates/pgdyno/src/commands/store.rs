//! `pgdyno prune`, `import` and `check-store`: the care of the store.

use crate::cli::{CheckStoreArgs, ImportArgs, PruneArgs};
use crate::commands::list::minute;
use crate::commands::stored::store;
use crate::context::{Context, now_unix_ms};
use crate::exit;
use crate::failure::Result;
use crate::show;
use pgdyno_store::{Filter, ImportOutcome, Imported, Life, Listed, PrunePlan, PruneRule, Removable};
use serde_json::json;
use std::time::Duration;

/// How long the check waits for another process: as long as somebody does who looks on.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an import does: the other store's owner may be storing a trial.
const IMPORT_PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn prune(context: &Context, args: &PruneArgs) -> Result<u8> {
    let mut store = store(context, args.store.store.place())?;
    let in_a_server = store.place().file().is_none();
    let age_ms = args
        .older_than
        .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let rule = PruneRule {
        keep: args.keep,
        before_unix_ms: age_ms.map(|age_ms| now_unix_ms().saturating_sub(age_ms)),
        life: args.status,
        keeping_tags: args.tag_kept.clone(),
    };
    let plan = match args.dry_run {
        true => store.plan_prune(&rule)?,
        false => store.prune(&rule)?,
    };
    let all = store.find(&Filter::default())?;
    let is_running = all.iter().any(|listed| listed.life == Life::Running);
    let sizes = match args.dry_run || plan.removed.is_empty() {
        true => None,
        false if is_running && !in_a_server => {
            err!("an experiment runs, so its space is not released yet: the next prune does that");
            None
        }
        false => match store.reclaim() {
            Ok(sizes) => sizes,
            Err(error) => {
                err!("it is removed, but its space was not released to the file system: {error}");
                None
            }
        },
    };
    if args.store.json {
        put_page!(
            "{}",
            serde_json::to_string_pretty(&plan_as_json(&plan, args.dry_run, sizes))?
        );
        return Ok(exit::FINE);
    }
    say(&plan, args.dry_run);
    match sizes {
        Some((before, after)) => err!("the store had {}, it has {} now", mega(before), mega(after)),
        None if in_a_server && !args.dry_run && !plan.removed.is_empty() => {
            err!("the server's autovacuum makes the space usable again")
        }
        None => {}
    }
    Ok(exit::FINE)
}

fn say(plan: &PrunePlan, dry_run: bool) {
    let listed = |listed: &Listed| {
        vec![
            listed.id.to_string(),
            minute(listed.started_unix_ms),
            listed.name.clone(),
            listed.life.word().to_owned(),
        ]
    };
    if !plan.removed.is_empty() {
        let row = |removable: &Removable| {
            let mut row = listed(&removable.experiment);
            row.extend([removable.trials.to_string(), mega(removable.bytes)]);
            row
        };
        let headings = ["id", "started", "name", "status", "trials", "size"];
        let rows = plan.removed.iter().map(row).collect();
        put_page!("{}", show::table(&headings, &[0, 4, 5], rows));
    }
    let trials: u64 = plan.removed.iter().map(|r| r.trials).sum();
    let bytes: u64 = plan.removed.iter().map(|r| r.bytes).sum();
    let verb = if dry_run { "would be removed" } else { "removed" };
    err!(
        "{verb}: experiments {}, trials {trials}, {}",
        plan.removed.len(),
        mega(bytes)
    );
    let numbers = |kept: &[Listed]| {
        kept.iter()
            .map(|l| l.id.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !plan.kept_by_tag.is_empty() {
        err!("kept for their tags: {}", numbers(&plan.kept_by_tag));
    }
    if !plan.kept_running.is_empty() {
        err!("kept because they run, or may: {}", numbers(&plan.kept_running));
    }
}

fn plan_as_json(plan: &PrunePlan, dry_run: bool, sizes: Option<(u64, u64)>) -> serde_json::Value {
    let removed: Vec<_> = plan
        .removed
        .iter()
        .map(|r| json!({"id": r.experiment.id, "name": r.experiment.name, "trials": r.trials, "bytes": r.bytes}))
        .collect();
    let numbers = |kept: &[Listed]| kept.iter().map(|l| l.id).collect::<Vec<_>>();
    json!({
        "format": "pgdyno-prune/1", "dry_run": dry_run, "removed": removed,
        "kept_by_tag": numbers(&plan.kept_by_tag), "kept_running": numbers(&plan.kept_running),
        "file_bytes_before": sizes.map(|(before, _)| before), "file_bytes_after": sizes.map(|(_, after)| after),
    })
}

fn mega(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

pub(crate) fn import(context: &Context, args: &ImportArgs) -> Result<u8> {
    let mut store = context.store(args.store.store.place())?;
    let other = context.store_place(Some(&args.other))?;
    let name = other.to_string();
    let done = store.import(&other.reader(IMPORT_PATIENCE)?)?;
    if args.store.json {
        let rows: Vec<_> = done.iter().map(imported_as_json).collect();
        put_page!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(exit::FINE);
    }
    let row = |imported: &Imported| {
        let (here, what) = match imported.outcome {
            ImportOutcome::Added { id, trials } => (id.to_string(), format!("imported, trials {trials}")),
            ImportOutcome::Here {
                id,
                trials_missing: 0,
            } => (id.to_string(), "already imported".to_owned()),
            ImportOutcome::Here { id, trials_missing } => (
                id.to_string(),
                format!(
                    "already imported; the other store has {trials_missing} newer trials, which are not imported"
                ),
            ),
            ImportOutcome::Zero => (
                String::new(),
                "skipped: a text contains the character U+0000".to_owned(),
            ),
            ImportOutcome::Running => (
                String::new(),
                "skipped: still running in the other store; import it when it has ended".to_owned(),
            ),
        };
        vec![imported.theirs.to_string(), here, imported.name.clone(), what]
    };
    match done.is_empty() {
        true => err!("no experiments in {name}"),
        false => put_page!(
            "{}",
            show::table(
                &["there", "here", "name", ""],
                &[0, 1],
                done.iter().map(row).collect()
            )
        ),
    }
    Ok(exit::FINE)
}

fn imported_as_json(imported: &Imported) -> serde_json::Value {
    let (outcome, id, trials, missing) = match imported.outcome {
        ImportOutcome::Added { id, trials } => ("added", Some(id), Some(trials), None),
        ImportOutcome::Here { id, trials_missing } => ("here", Some(id), None, Some(trials_missing)),
        ImportOutcome::Running => ("running", None, None, None),
        ImportOutcome::Zero => ("refused", None, None, None),
    };
    json!({
        "theirs": imported.theirs, "name": imported.name, "outcome": outcome, "id": id, "trials": trials,
        "trials_missing": missing,
    })
}

pub(crate) fn check(context: &Context, args: &CheckStoreArgs) -> Result<u8> {
    let place = context.store_place(args.file.as_deref())?;
    let name = place.to_string();
    let found = place.reader(PATIENCE)?.check()?;
    if args.json {
        let mut value = serde_json::to_value(&found)?;
        value["format"] = json!("pgdyno-check-store/1");
        value["holds"] = json!(found.faults.is_empty());
        put_page!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        for fault in &found.faults {
            put!("{fault}");
        }
        err!(
            "{}: schema {}, experiments {}, trials {}, series {} with {} points; {}",
            name,
            found.schema,
            found.experiments,
            found.trials,
            found.columns,
            found.points,
            match found.faults.len() {
                0 => "all holds".to_owned(),
                faults => format!("faults: {faults}"),
            }
        );
    }
    Ok(if found.faults.is_empty() {
        exit::FINE
    } else {
        exit::NOT_HELD
    })
}
