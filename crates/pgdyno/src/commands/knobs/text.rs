//! Knobs for the terminal: a list that is cut to it, and a page about one.

use super::{PAGE_COLUMNS, Sections, explain};
use crate::show::wrapped_at;
use pgdyno_knobs::{Knob, Risk};
use std::fmt::Write;

/// Widest column of ids; a longer id pushes the rest of its line to the right.
const ID_COLUMNS: usize = 36;
/// Below this width the layer, which the heading nearly gives, is omitted, and risks are shown as
/// marks.
const WIDE_FROM_COLUMNS: usize = 100;
/// What is cut ends so.
const CUT: char = '\u{2026}';
/// Sign for a value without risk.
const DASH: &str = "\u{2013}";

/// All knobs under their headings, each on one line of at most `columns`.
pub(super) fn list(sections: &Sections<'_>, columns: Option<usize>) -> String {
    let mut page = String::new();
    let wide = columns.is_none_or(|columns| columns >= WIDE_FROM_COLUMNS);
    let all = || sections.iter().flat_map(|(_, knobs)| knobs.iter().copied());
    let layer = widest(all().map(|knob| knob.layer.name()));
    let cost = widest(all().map(|knob| knob.cost.name()));
    let risk = widest(all().map(|knob| mark(knob, wide)));
    for (title, knobs) in sections {
        let _ = writeln!(page, "{title}");
        let id = widest(knobs.iter().map(|knob| knob.id.as_str())).min(ID_COLUMNS);
        for knob in knobs {
            let mut line = format!("  {:id$}  ", knob.id);
            if wide {
                let _ = write!(line, "{:layer$}  ", knob.layer.name());
            }
            let (takes, mark) = (knob.cost.name(), mark(knob, wide));
            let _ = write!(line, "{takes:cost$}  {mark:risk$}  {}", knob.summary);
            let _ = writeln!(page, "{}", cut(&line, columns));
        }
        page.push('\n');
    }
    let stability = if wide { Risk::Stability.name() } else { "!" };
    let durability = if wide { Risk::Durability.name() } else { "!!" };
    let legend = format!(
        "{} in all; `pgdyno knobs ID` explains one. A new value takes effect at once (live) or after a reload, a \
         restart and so on. {stability}: {}; {durability}: {}.",
        all().count(),
        explain::STABILITY,
        explain::DURABILITY,
    );
    page += &wrapped_at("", &legend, 0, columns.unwrap_or(PAGE_COLUMNS));
    page.trim_end().to_owned()
}

fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// The risk as a word, or as a mark.
fn mark(knob: &Knob, wide: bool) -> &'static str {
    match (knob.risk, wide) {
        (Risk::None, _) => DASH,
        (risk, true) => risk.name(),
        (Risk::Stability, false) => "!",
        (Risk::Durability, false) => "!!",
    }
}

/// The line, or as much of it as fits.
fn cut(line: &str, columns: Option<usize>) -> String {
    match columns {
        Some(columns) if line.chars().count() > columns => {
            let kept: String = line.chars().take(columns.saturating_sub(1)).collect();
            format!("{}{CUT}", kept.trim_end())
        }
        _ => line.to_owned(),
    }
}

/// Everything about one knob, as text.
pub(super) fn one(knob: &Knob, columns: usize) -> String {
    let mut page = format!("{}\n", knob.id);
    page += &wrapped_at("  ", &knob.summary, 2, columns);
    page.push('\n');
    let mut properties = vec![
        ("layer", knob.layer.name().to_owned()),
        ("kind", explain::kind(knob.kind).to_owned()),
        ("value", knob.legal()),
        ("takes", explain::cost(knob.cost).to_owned()),
        ("risk", explain::risk(knob)),
    ];
    properties.extend(explain::particulars(knob));
    properties.push(("source", knob.source.clone()));
    let width = properties.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in &properties {
        page += &wrapped_at(&format!("  {name:width$}  "), text, width + 4, columns);
    }
    for (heading, lines) in [
        ("lines to write", &knob.lines),
        ("lines that take it away", &knob.undo_lines),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(page, "\n  {heading}");
        }
        // Lines to copy are not broken.
        for line in lines {
            let _ = writeln!(page, "    {line}");
        }
    }
    page.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_knobs::Catalogue;

    fn sections(catalogue: &Catalogue) -> Sections<'_> {
        let knobs = |ids: &[String]| ids.iter().map(|id| catalogue.get(id).unwrap()).collect();
        let sections = catalogue.sections().iter();
        sections.map(|s| (s.title.as_str(), knobs(&s.ids))).collect()
    }

    #[test]
    fn no_line_of_the_list_is_wider_than_the_terminal() {
        let catalogue = Catalogue::shipped().unwrap();
        for columns in [80, 100, 120, 200] {
            let list = list(&sections(&catalogue), Some(columns));
            let wide: Vec<&str> = list.lines().filter(|l| l.chars().count() > columns).collect();
            assert!(wide.is_empty(), "{columns}: {wide:?}");
            assert!(list.contains(CUT));
        }
        let whole = list(&sections(&catalogue), None);
        assert!(!whole.contains(CUT));
        assert!(catalogue.iter().all(|knob| whole.contains(&knob.summary)));
    }

    #[test]
    fn a_page_is_wrapped_but_for_lines_to_copy() {
        let catalogue = Catalogue::shipped().unwrap();
        for knob in catalogue.iter() {
            let page = one(knob, 80);
            let copied: Vec<&String> = knob.lines.iter().chain(&knob.undo_lines).collect();
            for line in page.lines().filter(|line| line.chars().count() > 80) {
                // A path has no blank to break it at.
                let long = line.split_whitespace().any(|word| word.len() > 60);
                assert!(long || copied.iter().any(|copy| line.contains(*copy)), "{line}");
            }
        }
    }

    #[test]
    fn what_cannot_be_set_is_shown_with_its_lines() {
        let catalogue = Catalogue::shipped().unwrap();
        let page = one(catalogue.get("mount.noatime").unwrap(), 100);
        let expected = "\
mount.noatime
  Reads do not write the time of access. relatime, the default, writes it about once a day for each
  file: little to gain but on many files.

  layer      block
  kind       an option of a mount: advised and looked for, never set
  value      one of on, off
  takes      remount
  risk       none but time
  of         an absolute path; where the data is if nothing is said:
             mount.noatime@/var/lib/postgresql
  looks for  noatime
  source     mount(8)

  lines to write
    /etc/fstab: add noatime to the options of {mount}
    mount -o remount,noatime {mount}

  lines that take it away
    /etc/fstab: take noatime out of the options of {mount}
    mount -o remount,relatime {mount}";
        assert_eq!(page, expected);
    }
}
