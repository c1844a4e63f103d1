//! Facts as a page for people: by subject, aligned, within 100 columns; what is not known is at the
//! end with the reasons.

use crate::show::{self, wrapped_at};
use pgdyno_record::FactRecord;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Columns of the page. Only a word that is longer goes beyond.
const WIDTH: usize = 100;
/// Widest column of names; a longer name pushes its own value to the right.
const NAME_MAX: usize = 36;

/// Headings of subjects, the first word of a fact's name, where that word alone would not do.
const HEADINGS: [(&str, &str); 10] = [
    ("cpu", "CPU"),
    ("numa", "memory nodes"),
    ("huge_pages", "huge pages"),
    ("thp", "transparent huge pages"),
    ("sched", "scheduler"),
    ("sysctl", "kernel parameters"),
    ("process", "the server's first process"),
    ("cgroup", "the server's control groups"),
    ("wal", "WAL"),
    ("xid", "transaction ids"),
];

/// What distinguishes the members of a list, or says the most, is first.
const FIRST: [&str; 18] = [
    "name",
    "value",
    "node",
    "zone",
    "database",
    "schema",
    "table",
    "index",
    "device",
    "level",
    "page_bytes",
    "flaw",
    "kind",
    "number",
    "cpus",
    "soft",
    "same_device",
    "same_disk",
];

/// What is in the JSON alone: of a setting, the value in the server's own unit and where exactly it
/// was set.
const NOT_SHOWN: [&str; 4] = ["setting", "unit", "boot_value", "file"];
/// A longer list of short members is in lines, not in a table.
const TABLE_ROWS_MAX: usize = 16;

/// Where a field is among others.
fn rank(name: &str) -> usize {
    FIRST
        .iter()
        .position(|first| *first == name)
        .unwrap_or(FIRST.len())
}

/// All facts as a page of text.
pub(super) fn page(facts: &[FactRecord]) -> String {
    let mut page = String::new();
    let (known, unknown): (Vec<&FactRecord>, Vec<&FactRecord>) =
        facts.iter().partition(|fact| fact.value.is_some());
    let mut sections: Vec<(String, Vec<(&str, &Value)>)> = Vec::new();
    for fact in known {
        let (heading, name) = headed(fact);
        let Some(value) = &fact.value else { continue };
        match sections.iter_mut().find(|(other, _)| *other == heading) {
            Some((_, lines)) => lines.push((name, value)),
            None => sections.push((heading, vec![(name, value)])),
        }
    }
    for (heading, lines) in &sections {
        let _ = writeln!(page, "{heading}");
        section(&mut page, lines);
        page.push('\n');
    }
    reasons(&mut page, &unknown);
    page.trim_end().to_owned()
}

/// "Host: CPU" and the rest of the name, for "cpu.model"; storage is distinguished by what it
/// holds.
fn headed(fact: &FactRecord) -> (String, &str) {
    let group = capital(&fact.group);
    let Some((subject, rest)) = fact.name.split_once('.') else {
        return (group, &fact.name);
    };
    if subject == fact.group {
        return (group, rest);
    }
    if subject == "storage" {
        return match rest.rsplit_once('.') {
            Some((role, rest)) => (
                format!("{group}: storage of {}", role.replacen('.', " ", 1)),
                rest,
            ),
            None => (format!("{group}: storage"), rest),
        };
    }
    let heading = HEADINGS.iter().find(|(word, _)| *word == subject);
    let heading = heading.map_or_else(|| subject.replace('_', " "), |(_, heading)| (*heading).to_owned());
    (format!("{group}: {heading}"), rest)
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn section(page: &mut String, lines: &[(&str, &Value)]) {
    let width = lines
        .iter()
        .map(|(name, _)| name.len())
        .filter(|&width| width <= NAME_MAX)
        .max()
        .unwrap_or(0);
    for (name, value) in lines {
        if let Some(members) = objects(value) {
            let _ = writeln!(page, "  {name}");
            list(page, &members);
            continue;
        }
        let indent = 2 + width.max(name.len()) + 2;
        let head = format!("  {name:width$}  ");
        let indent = indent.min(2 + NAME_MAX + 2);
        *page += &wrapped_at(&head, &shown(name, value), indent, WIDTH);
    }
}

/// The members of a list of objects.
fn objects(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let members = value.as_array().filter(|members| !members.is_empty())?;
    members.iter().map(Value::as_object).collect()
}

/// A table where it fits, else each member as pairs.
fn list(page: &mut String, members: &[&Map<String, Value>]) {
    let mut names: Vec<&str> = Vec::new();
    for name in members.iter().flat_map(|member| member.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.contains(&"value") {
        names.retain(|name| !NOT_SHOWN.contains(name));
    }
    names.sort_by_key(|name| rank(name));
    if names.len() <= 2 && members.len() > TABLE_ROWS_MAX {
        let text = |member: &&Map<String, Value>| {
            let values = names
                .iter()
                .filter_map(|name| Some(part(name, member.get(*name)?)));
            values.collect::<Vec<_>>().join(" ")
        };
        let all: Vec<String> = members.iter().map(text).collect();
        return *page += &wrapped_at("    ", &all.join(", "), 4, WIDTH);
    }
    let cell = |member: &Map<String, Value>, name: &str| {
        member
            .get(name)
            .filter(|value| !value.is_null())
            .map(|value| part(name, value))
    };
    let rows: Vec<Vec<Option<String>>> = members
        .iter()
        .map(|member| names.iter().map(|name| cell(member, name)).collect())
        .collect();
    let widths: Vec<usize> = (0..names.len())
        .map(|at| {
            let cells = rows
                .iter()
                .map(|row| row[at].as_deref().unwrap_or("-").chars().count());
            cells.chain([names[at].len()]).max().unwrap_or(0)
        })
        .collect();
    if 2 + widths.iter().map(|width| width + 2).sum::<usize>() <= WIDTH {
        let mut line = |cells: Vec<&str>| {
            let cells = cells
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:width$}"));
            let _ = writeln!(page, "    {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        };
        line(names.clone());
        for row in &rows {
            line(row.iter().map(|cell| cell.as_deref().unwrap_or("-")).collect());
        }
        return;
    }
    for row in &rows {
        let pairs: Vec<String> = names
            .iter()
            .zip(row)
            .filter_map(|(name, cell)| Some(format!("{name} {}", cell.as_ref()?)))
            .collect();
        *page += &wrapped_at("    ", &pairs.join(", "), 8, WIDTH);
    }
}

/// For people: sizes in their largest unit, lists with commas, objects as pairs.
fn shown(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64() {
            Some(bytes) if is_size(name) => show::bytes(bytes),
            _ => number.to_string(),
        },
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Array(values) => joined(name, values, ", "),
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| rank(name));
            let pairs = fields.into_iter().map(|(field, value)| {
                // "soft" and "hard" of a size are sizes.
                let named = if is_size(name) { name } else { field };
                format!("{field} {}", part(named, value))
            });
            pairs.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Within an object commas are between the pairs, so a list in it has blanks.
fn part(name: &str, value: &Value) -> String {
    match value {
        Value::Array(values) => joined(name, values, " "),
        value => shown(name, value),
    }
}

fn joined(name: &str, values: &[Value], between: &str) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    values
        .iter()
        .map(|value| shown(name, value))
        .collect::<Vec<_>>()
        .join(between)
}

/// Transfer units of a network are shown in bytes as they are.
fn is_size(name: &str) -> bool {
    (name.ends_with("_bytes") || name == "bytes" || name == "bytes_estimated")
        && name != "mtu_bytes"
        && !name.starts_with("vm.")
}

/// Each reason once, with all that it keeps from being known.
fn reasons(page: &mut String, unknown: &[&FactRecord]) {
    if unknown.is_empty() {
        return;
    }
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for fact in unknown {
        let why = fact.missing.as_deref().unwrap_or("no reason is recorded");
        let source = fact.source.split(", ").next().unwrap_or_default();
        // A function or a view of the server may be in a statement that the reader runs.
        let why = match source.starts_with('/') {
            true => why.replace(source, "its file"),
            false => why.to_owned(),
        };
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(&fact.name),
            None => reasons.push((why, vec![&fact.name])),
        }
    }
    let _ = writeln!(page, "Not known");
    for (why, names) in &reasons {
        *page += &wrapped_at("  ", &names.join(", "), 4, WIDTH);
        *page += &wrapped_at("      ", why, 6, WIDTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fact(group: &str, name: &str, outcome: Result<Value, &str>) -> FactRecord {
        FactRecord {
            group: group.into(),
            name: name.into(),
            value: outcome.clone().ok(),
            missing: outcome.err().map(str::to_owned),
            source: format!("/proc/{name}"),
        }
    }

    #[test]
    fn a_page_is_aligned_and_ends_with_what_is_not_known() {
        let facts = [
            fact("host", "cpu.model", Ok(json!("AMD EPYC"))),
            fact("host", "cpu.smt_active", Ok(json!(false))),
            fact("host", "memory.total_bytes", Ok(json!(3_u64 << 29))),
            fact(
                "host",
                "sysctl.a",
                Err("/proc/sysctl.a does not exist on this host"),
            ),
            fact(
                "host",
                "sysctl.b",
                Err("/proc/sysctl.b does not exist on this host"),
            ),
            fact(
                "host",
                "numa.nodes",
                Ok(
                    json!([{"node": 0, "memory_bytes": 1 << 30, "cpus": "0-1"}, {"node": 1, "memory_bytes": null, "cpus": "2"}]),
                ),
            ),
            fact("host", "storage.data.disks", Ok(json!(["sda", "sdb"]))),
            fact(
                "host",
                "process.limits.core_file_bytes",
                Ok(json!({"soft": 0, "hard": "unlimited"})),
            ),
            fact("server", "version", Ok(json!("18"))),
        ];
        let expected = "\
Host: CPU
  model       AMD EPYC
  smt_active  no

Host: memory
  total_bytes  1.5 GB

Host: memory nodes
  nodes
    node  cpus  memory_bytes
    0     0-1   1.0 GB
    1     2     -

Host: storage of data
  disks  sda, sdb

Host: the server's first process
  limits.core_file_bytes  soft 0 B, hard unlimited

Server
  version  18

Not known
  sysctl.a, sysctl.b
      its file does not exist on this host";
        assert_eq!(page(&facts), expected);
    }

    #[test]
    fn nothing_but_a_long_word_goes_beyond_the_page() {
        let words = "word ".repeat(60);
        let device = json!({"name": "sda", "model": words, "kind": "sata", "bytes": 1_u64 << 40});
        let facts = [
            fact("host", "kernel.boot_line", Ok(json!(words))),
            fact("host", "storage.data.devices", Ok(json!([device, device]))),
            fact("host", "x.y", Err(&words)),
        ];
        let page = page(&facts);
        assert!(page.lines().all(|line| line.len() <= WIDTH), "{page}");
        assert!(page.lines().count() > 12, "{page}");
    }
}
