//! The two forms of an inventory's text: INI, and YAML.

use super::{DEPTH_MAX, GROUPS_MAX, Group, HOSTS_MAX, Inventory, InventoryError, UNGROUPED, Variables};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Ranges in one name.
const RANGES_MAX: usize = 8;
/// Longest name, with its ranges.
const NAME_BYTES_MAX: usize = 512;
/// Variables of all hosts, each of which has those of its line.
const VARIABLE_BYTES_MAX: usize = 64 << 20;

/// What the lines of a section are.
enum Section {
    Hosts(String),
    Variables(String),
    Children(String),
}

impl Inventory {
    /// The group of that name, a new one if there is none.
    fn group(&mut self, name: &str) -> Result<&mut Group, String> {
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(name) {
            return Err(format!("more than {GROUPS_MAX} groups"));
        }
        Ok(self.groups.entry(name.to_owned()).or_default())
    }

    pub(super) fn read_ini(&mut self, text: &str) -> Result<(), InventoryError> {
        let mut section = Section::Hosts(UNGROUPED.to_owned());
        for (number, line) in text.lines().enumerate() {
            let wrong = |why: String| InventoryError::Line {
                line: number + 1,
                why,
            };
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(head) = line.strip_prefix('[') {
                section = section_of(head)
                    .ok_or_else(|| wrong("expected [GROUP], [GROUP:vars] or [GROUP:children]".to_owned()))?;
                let (Section::Hosts(name) | Section::Variables(name) | Section::Children(name)) = &section;
                self.group(name).map_err(wrong)?;
                continue;
            }
            match &section {
                Section::Hosts(group) => {
                    let words = shell_words::split(line).map_err(|error| wrong(error.to_string()))?;
                    // What follows a # of its own is a comment.
                    let words: Vec<&str> = words
                        .iter()
                        .map(String::as_str)
                        .take_while(|word| !word.starts_with('#'))
                        .collect();
                    let Some((pattern, rest)) = words.split_first() else {
                        continue;
                    };
                    let mut variables = Variables::new();
                    for word in rest {
                        let (name, value) = word.split_once('=').ok_or_else(|| {
                            // It may be a part of a password.
                            wrong("a word behind the host is not a variable: expected NAME=VALUE".to_owned())
                        })?;
                        variables.insert(name.to_owned(), value.to_owned());
                    }
                    self.add_hosts(group, pattern, &variables).map_err(wrong)?;
                }
                Section::Variables(group) => {
                    let (name, value) = line
                        .split_once('=')
                        .ok_or_else(|| wrong("expected NAME=VALUE".to_owned()))?;
                    let value = unquoted(value.trim());
                    let group = self.group(group).map_err(wrong)?;
                    group.variables.insert(name.trim().to_owned(), value.to_owned());
                }
                Section::Children(group) => {
                    let group = self.group(group).map_err(wrong)?;
                    let child = line.split('#').next().unwrap_or_default().trim();
                    group.children.insert(child.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Adds the hosts of a pattern, as `db[01:20].example:2222`, to a group.
    fn add_hosts(&mut self, group: &str, pattern: &str, variables: &Variables) -> Result<(), String> {
        if pattern.len() > NAME_BYTES_MAX {
            return Err(format!("a name of more than {NAME_BYTES_MAX} bytes"));
        }
        let bytes: usize = variables
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        // A colon within brackets is a range's.
        let mut depth = 0_usize;
        let mut colons = pattern.bytes().enumerate().filter(|(_, byte)| {
            match byte {
                b'[' => depth += 1,
                b']' => depth = depth.saturating_sub(1),
                _ => return *byte == b':' && depth == 0,
            }
            false
        });
        // An address of IPv6 has more than one.
        let (names, port) = match (colons.next(), colons.next()) {
            (Some((at, _)), None) if is_number(&pattern[at + 1..]) => {
                (&pattern[..at], Some(&pattern[at + 1..]))
            }
            _ => (pattern, None),
        };
        for name in expanded(names)? {
            if self.hosts.len() >= HOSTS_MAX {
                return Err(format!("more than {HOSTS_MAX} hosts"));
            }
            let index = match self.places.get(&name) {
                Some(index) => *index,
                None => {
                    self.hosts.push((name.clone(), Variables::new()));
                    self.places.insert(name.clone(), self.hosts.len() - 1);
                    self.hosts.len() - 1
                }
            };
            self.variable_bytes += bytes;
            if self.variable_bytes > VARIABLE_BYTES_MAX {
                return Err(format!(
                    "variables of hosts are more than {VARIABLE_BYTES_MAX} bytes"
                ));
            }
            let own = &mut self.hosts[index].1;
            own.extend(variables.clone());
            if let Some(port) = port {
                own.insert("ansible_port".to_owned(), port.to_owned());
            }
            self.groups
                .entry(group.to_owned())
                .or_default()
                .hosts
                .insert(name);
        }
        Ok(())
    }
}

fn section_of(head: &str) -> Option<Section> {
    let (inner, rest) = head.split_once(']')?;
    if !rest.trim().is_empty() && !rest.trim().starts_with('#') {
        return None;
    }
    let (name, kind) = match inner.split_once(':') {
        Some((name, kind)) => (name, Some(kind)),
        None => (inner, None),
    };
    let name = name.trim().to_owned();
    if name.is_empty() {
        return None;
    }
    match kind {
        None => Some(Section::Hosts(name)),
        Some("vars") => Some(Section::Variables(name)),
        Some("children") => Some(Section::Children(name)),
        Some(_) => None,
    }
}

/// The text without a pair of quotation marks around it.
fn unquoted(text: &str) -> &str {
    let pair = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    pair('"').or_else(|| pair('\'')).unwrap_or(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The names of a pattern with ranges: `a[1:3]` is a1, a2, a3; `[01:10:3]` keeps its zeros and goes
/// by threes; `[a:c]` are letters.
fn expanded(pattern: &str) -> Result<Vec<String>, String> {
    if pattern.matches('[').count() > RANGES_MAX {
        return Err(format!("\"{pattern}\" has more than {RANGES_MAX} ranges"));
    }
    let Some((before, rest)) = pattern.split_once('[') else {
        return Ok(vec![pattern.to_owned()]);
    };
    let wrong = || format!("\"{pattern}\" has no range as [1:20], [01:20:2] or [a:f]");
    let (range, after) = rest.split_once(']').ok_or_else(wrong)?;
    let parts: Vec<&str> = range.split(':').collect();
    let (begin, end, step) = match *parts.as_slice() {
        [begin, end] => (begin, end, 1),
        [begin, end, step] => (
            begin,
            end,
            step.parse::<usize>()
                .ok()
                .filter(|step| *step > 0)
                .ok_or_else(wrong)?,
        ),
        _ => return Err(wrong()),
    };
    let begin = if begin.is_empty() { "0" } else { begin };
    let values: Vec<String> = if is_number(begin) && is_number(end) {
        let width = if begin.starts_with('0') { begin.len() } else { 0 };
        let (Ok(begin), Ok(end)) = (begin.parse::<u64>(), end.parse::<u64>()) else {
            return Err(wrong());
        };
        let all = (begin..=end).step_by(step).take(HOSTS_MAX + 1);
        all.map(|number| format!("{number:0width$}")).collect()
    } else {
        let letter = |text: &str| match *text.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() => Ok(letter),
            _ => Err(wrong()),
        };
        let all = (letter(begin)?..=letter(end)?).step_by(step);
        all.filter(u8::is_ascii_alphabetic)
            .map(|letter| char::from(letter).to_string())
            .collect()
    };
    let mut names = Vec::new();
    for rest in expanded(after)? {
        for value in &values {
            if names.len() > HOSTS_MAX {
                return Err(format!("\"{pattern}\" is more than {HOSTS_MAX} hosts"));
            }
            names.push(format!("{before}{value}{rest}"));
        }
    }
    Ok(names)
}

/// A group in YAML.
#[derive(Debug, Default, Deserialize)]
struct YamlGroup {
    #[serde(default)]
    hosts: Option<BTreeMap<String, Option<BTreeMap<String, Value>>>>,
    #[serde(default)]
    children: Option<BTreeMap<String, Option<YamlGroup>>>,
    #[serde(default)]
    vars: Option<BTreeMap<String, Value>>,
}

impl Inventory {
    pub(super) fn read_yaml(&mut self, text: &str) -> Result<(), InventoryError> {
        let groups: BTreeMap<String, Option<YamlGroup>> =
            // Lines around an error may have passwords.
            serde_saphyr::from_str(text)
                .map_err(|error: serde_saphyr::Error| InventoryError::Yaml(error.without_snippet().to_string()))?;
        for (name, group) in groups {
            self.add_yaml(&name, group.unwrap_or_default(), 0)?;
        }
        Ok(())
    }

    fn add_yaml(&mut self, name: &str, group: YamlGroup, depth: usize) -> Result<(), InventoryError> {
        let wrong = |why: String| InventoryError::Wrong {
            name: name.to_owned(),
            why,
        };
        if depth > DEPTH_MAX {
            return Err(wrong("it is too deep within other groups".to_owned()));
        }
        let own = self.group(name).map_err(wrong)?;
        own.variables.extend(texts(group.vars.unwrap_or_default()));
        for (pattern, variables) in group.hosts.unwrap_or_default() {
            self.add_hosts(name, &pattern, &texts(variables.unwrap_or_default()))
                .map_err(wrong)?;
        }
        for (child, inner) in group.children.unwrap_or_default() {
            if let Some(own) = self.groups.get_mut(name) {
                own.children.insert(child.clone());
            }
            self.add_yaml(&child, inner.unwrap_or_default(), depth + 1)?;
        }
        Ok(())
    }
}

/// Values as texts; lists and maps matter to nothing here.
fn texts(values: BTreeMap<String, Value>) -> Variables {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    values
        .into_iter()
        .map(|(name, value)| (name, text(value)))
        .collect()
}
