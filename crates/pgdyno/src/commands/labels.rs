//! `pgdyno tag` and `pgdyno note`: what people say of experiments.

use crate::cli::{NoteArgs, TagArgs, TagDoes};
use crate::commands::stored::store;
use crate::context::Context;
use crate::exit;
use crate::failure::{Result, Usage};
use crate::show::instant;
use pgdyno_store::Store;

pub(crate) fn tag(context: &Context, args: &TagArgs) -> Result<u8> {
    let mut store = store(context, args.store.place())?;
    match &args.does {
        None => {
            for word in store.tags(args.id)? {
                put!("{word}");
            }
        }
        Some(TagDoes::Add { words }) => {
            for word in words {
                if !store.tag(args.id, word)? {
                    err!("experiment {} has the tag {word} already", args.id);
                }
            }
        }
        Some(TagDoes::Remove { words }) => {
            for word in words {
                if !store.untag(args.id, word)? {
                    err!("experiment {} has no tag {word:?}", args.id);
                }
            }
        }
    }
    Ok(exit::FINE)
}

pub(crate) fn note(context: &Context, args: &NoteArgs) -> Result<u8> {
    let mut store = store(context, args.store.place())?;
    match (&args.text, args.remove) {
        (Some(text), _) => {
            store.note(args.id, text)?;
        }
        (None, Some(number)) => {
            if !store.remove_note(args.id, number)? {
                return Err(Usage(format!(
                    "experiment {0} has no note {number}; `pgdyno note {0}` shows those there are",
                    args.id
                ))
                .into());
            }
        }
        (None, None) => {
            for note in store.notes(args.id)? {
                let text = clean(&note.text);
                put!("{}  {}  {text}", note.id, instant(note.written_unix_ms));
            }
        }
    }
    Ok(exit::FINE)
}

/// Tags and notes as lines of `pgdyno show`; none where there are none.
pub(crate) fn lines(store: &Store, id: i64) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let tags = store.tags(id)?;
    if !tags.is_empty() {
        lines.push(format!("tags: {}", tags.join(" ")));
    }
    for note in store.notes(id)? {
        lines.push(format!(
            "note of {}: {}",
            instant(note.written_unix_ms),
            clean(&note.text)
        ));
    }
    if let Some(last) = lines.last_mut() {
        last.push('\n');
    }
    Ok(lines)
}

/// Text that leaves a terminal as it is: what controls one is written out, line breaks stay.
fn clean(text: &str) -> String {
    let shown = |c: char| match c.is_control() && c != '\n' {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(shown).collect()
}
