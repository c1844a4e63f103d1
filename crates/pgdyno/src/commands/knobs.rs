//! `pgdyno knobs`: the catalogue, all of it or one knob. Needs no server and no host.

mod explain;
mod markdown;
mod text;

use crate::cli::{KnobsArgs, KnobsFormat};
use crate::exit;
use crate::failure::Result;
use crate::output;
use pgdyno_knobs::{Catalogue, Knob};
use serde_json::json;

/// Of the JSON that is printed: the catalogue's own fields, as crates/pgdyno-knobs/src/catalogue.rs
/// explains them.
const FORMAT: &str = "pgdyno-knobs/1";
/// Columns of a page about one knob, where the terminal has as many.
const PAGE_COLUMNS: usize = 100;

/// Knobs under their headings.
type Sections<'a> = Vec<(&'a str, Vec<&'a Knob>)>;

pub(crate) fn run(args: &KnobsArgs) -> Result<u8> {
    let catalogue = Catalogue::shipped()?;
    let columns = output::columns();
    if let Some(id) = &args.id {
        let knob = catalogue.get(id)?;
        if args.json {
            put_page!("{}", json(&[knob])?);
        } else if args.format == KnobsFormat::Md {
            put_page!("{}", markdown::entry(knob).trim_end());
        } else {
            let columns = columns.unwrap_or(PAGE_COLUMNS).min(PAGE_COLUMNS);
            put_page!("{}", text::one(knob, columns));
        }
        return Ok(exit::FINE);
    }
    let sections = sections(&catalogue, args)?;
    if args.json {
        let knobs: Vec<&Knob> = sections
            .iter()
            .flat_map(|(_, knobs)| knobs.iter().copied())
            .collect();
        put_page!("{}", json(&knobs)?);
    } else if args.format == KnobsFormat::Md {
        put_page!("{}", markdown::page(&sections).trim_end());
    } else {
        put_page!("{}", text::list(&sections, columns));
    }
    Ok(exit::FINE)
}

fn json(knobs: &[&Knob]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&json!({ "format": FORMAT, "knobs": knobs }))
}

/// Those of the layer that was asked for; headings without any are omitted.
fn sections<'a>(catalogue: &'a Catalogue, args: &KnobsArgs) -> Result<Sections<'a>> {
    let mut sections = Vec::new();
    for section in catalogue.sections() {
        let mut knobs = Vec::new();
        for id in &section.ids {
            let knob = catalogue.get(id)?;
            if args.layer.is_none_or(|layer| layer == knob.layer) {
                knobs.push(knob);
            }
        }
        if !knobs.is_empty() {
            sections.push((section.title.as_str(), knobs));
        }
    }
    Ok(sections)
}
