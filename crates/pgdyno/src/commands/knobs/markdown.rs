//! The book's reference page of knobs, which `make docs` writes.

use super::{Sections, explain};
use pgdyno_knobs::{Form, Kind, Knob, Risk};
use std::fmt::Write;

const HEAD: &str = "\
# Knobs

All knobs: what pgdyno can set, and what it only advises. Each is data in `catalog/knobs/`; this page is
`pgdyno knobs --format md`. `pgdyno knobs` lists them, `pgdyno knobs ID` explains one.

A setting names a knob by its id. Where a knob exists several times, the device or group follows after an @:
`block.read_ahead_kb@sda`. Files are tried in the order given, because kernels have moved some.

Below the text of a knob are its layer, its kind, and what a new value needs to take effect: nothing (*live*), a
*reload* or *restart* of the server, a *remount*, a *reboot*. Then what it risks: with *stability* a bad value can bring
the server or the host down, with *durability* committed data can be lost in a crash; safe values cost nothing.

| kind | what it is |
|---|---|
";

const TAIL: &str = "\
## Sources

Ranges, contexts and effects are those of the documentation of PostgreSQL and of the kernel. Marks in brackets are
studies that measured: [ibm-z] PostgreSQL on Linux on IBM Z, Beyerle, 2018; [senzing] PostgreSQL tweaks for large
entity-resolution loads, the repository's read-me; [rhel] Tuning Red Hat Enterprise Linux for databases, Rao, 2015;
[percona-hugepages] PostgreSQL and huge pages, Laudares and Zechel, 2019; [edb-60k] 60,000 TPS: how many CPUs?, Mannem,
2019. T1 and the like are the recommendations of the first by number.
";

/// The page of all knobs, in Markdown.
pub(super) fn page(sections: &Sections<'_>) -> String {
    let mut page = HEAD.to_owned();
    let mut kinds = Vec::new();
    for knob in sections.iter().flat_map(|(_, knobs)| knobs) {
        if !kinds.contains(&knob.kind) {
            kinds.push(knob.kind);
            let _ = writeln!(page, "| {} | {} |", name(knob.kind), explain::kind(knob.kind));
        }
    }
    page.push('\n');
    for (title, knobs) in sections {
        let _ = writeln!(page, "- [{title}](#{}) ({})", anchor(title), knobs.len());
    }
    page.push('\n');
    for (title, knobs) in sections {
        let _ = writeln!(page, "## {title}\n");
        for knob in knobs {
            page.push_str(&entry(knob));
        }
    }
    page.push_str(TAIL);
    page
}

/// The word for it in the catalogue.
fn name(kind: Kind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// One knob, below a heading that can be linked to.
pub(super) fn entry(knob: &Knob) -> String {
    let mut entry = format!("### `{}`\n\n{}\n\n", knob.id, escaped(&knob.summary));
    let mut risk = match knob.risk {
        Risk::None => "no risk".to_owned(),
        risk => format!("**{}**", risk.name()),
    };
    if !knob.safe.is_empty() {
        let _ = write!(risk, " (safe: {})", knob.safe.join(", "));
    }
    let _ = writeln!(
        entry,
        "{} \u{b7} {} \u{b7} {} \u{b7} {risk}\n",
        knob.layer.name(),
        name(knob.kind),
        knob.cost.name(),
    );
    // Of a parameter without a unit there is nothing to say that the server would not say better.
    if knob.form != Form::Server || knob.unit.is_some() {
        let _ = writeln!(entry, "- value: {}", escaped(&knob.legal()));
    }
    for (name, text) in explain::particulars(knob) {
        let text = match name {
            "file" | "resets" | "as do" | "looks for" => code(&text),
            _ => escaped(&text),
        };
        let _ = writeln!(entry, "- {name}: {text}");
    }
    let _ = writeln!(entry, "- source: {}\n", escaped(&knob.source));
    for (heading, lines) in [
        ("Lines to write:", &knob.lines),
        ("Lines that take it away:", &knob.undo_lines),
    ] {
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(entry, "{heading}\n");
        for line in lines {
            let _ = writeln!(entry, "    {line}");
        }
        entry.push('\n');
    }
    entry
}

/// As GitHub makes an anchor of a heading.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Paths with commas between, each as code.
fn code(paths: &str) -> String {
    let each: Vec<String> = paths.split(", ").map(|path| format!("`{path}`")).collect();
    each.join(", ")
}

/// Text that must not become a tag or an emphasis.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('*', "\\*")
        .replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_linked_as_they_are_anchored() {
        assert_eq!(
            anchor("Write-ahead log, checkpoints and replication"),
            "write-ahead-log-checkpoints-and-replication"
        );
        assert_eq!(escaped("enable_* < 1"), "enable_\\* &lt; 1");
        assert_eq!(code("/a, /b"), "`/a`, `/b`");
    }
}
