//! `pgdyno list`: the experiments of the store, or some of them.

use crate::cli::ListArgs;
use crate::context::Context;
use crate::exit;
use crate::failure::Result;
use crate::show;
use pgdyno_store::{Filter, Listed};
use serde_json::json;

pub(crate) fn run(context: &Context, args: &ListArgs) -> Result<u8> {
    let named = args.store.store.place();
    let store = context.store_if_there(named)?;
    let filter = Filter {
        tags: args.tag.clone(),
        name: args.name.clone(),
        life: args.status,
        since_unix_ms: args.since,
        search: args.search.clone(),
    };
    let mut found = store
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), |store| store.find(&filter))?;
    // The newest come first.
    found.truncate(args.limit.unwrap_or(usize::MAX));
    if args.store.json {
        let rows: Vec<_> = found.iter().map(as_json).collect();
        put_page!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(exit::FINE);
    }
    let path = context.store_place(named)?;
    match (found.is_empty(), filter == Filter::default()) {
        (true, true) => err!("no experiments in {path}; `pgdyno demo` makes one"),
        (true, false) => err!("no such experiment in {path}; `pgdyno list` shows all"),
        (false, _) => put_page!("{}", table(&found)),
    }
    Ok(exit::FINE)
}

fn as_json(listed: &Listed) -> serde_json::Value {
    json!({
        "id": listed.id, "name": listed.name, "question": listed.question, "status": listed.status,
        "state": listed.life, "started_unix_ms": listed.started_unix_ms,
        "finished_unix_ms": listed.finished_unix_ms, "trials_finished": listed.trials_finished,
        "target": listed.target, "tags": listed.tags, "notes": listed.notes,
    })
}

/// Tags and notes have columns where there are any.
fn table(found: &[Listed]) -> String {
    let tagged = found.iter().any(|listed| !listed.tags.is_empty());
    let noted = found.iter().any(|listed| listed.notes > 0);
    let row = |listed: &Listed| {
        let mut row = vec![
            listed.id.to_string(),
            minute(listed.started_unix_ms),
            listed.name.clone(),
            listed.target.clone(),
            listed.life.word().to_owned(),
            listed.trials_finished.to_string(),
        ];
        if tagged {
            row.push(listed.tags.join(" "));
        }
        if noted {
            let some = listed.notes > 0;
            row.push(if some {
                listed.notes.to_string()
            } else {
                String::new()
            });
        }
        row
    };
    let mut headings = vec!["id", "started", "name", "target", "status", "trials"];
    headings.extend(tagged.then_some("tags"));
    headings.extend(noted.then_some("notes"));
    show::table(&headings, &[0, 5], found.iter().map(row).collect())
}

/// An instant to the minute.
pub(crate) fn minute(unix_ms: u64) -> String {
    let mut text = show::instant(unix_ms);
    if let Some(seconds) = text.rfind(':') {
        text.truncate(seconds);
    }
    text
}
