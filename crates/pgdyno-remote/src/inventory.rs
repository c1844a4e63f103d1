//! Inventories of Ansible: which hosts there are, in which groups, and how ssh gets there.
//!
//! INI and YAML files are read, with ranges, groups of groups, and variables of hosts and groups in the file itself. What Ansible's
//! templates, scripts and directories (`group_vars`, `host_vars`) would add is not: a value that has a template in it, and that matters here,
//! is an error.

use crate::ssh_host::SshHost;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts of an inventory; a range that makes more is a mistake.
const HOSTS_MAX: usize = 10_000;
/// Groups within groups.
const DEPTH_MAX: usize = 32;
/// The group that has all hosts.
const ALL: &str = "all";
/// Hosts without a group of their own are in this one.
const UNGROUPED: &str = "ungrouped";

/// Why a text is no inventory.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A line is not what Ansible takes.
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The text is no YAML of an inventory.
    #[error("{0}")]
    Yaml(String),
    /// What it says of a host or a group cannot be.
    #[error("{name}: {why}")]
    Wrong {
        /// The host or group.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

type Variables = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct Group {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    variables: Variables,
}

/// An inventory.
#[derive(Debug, Default)]
pub struct Inventory {
    /// With their own variables, in the order of the file.
    hosts: Vec<(String, Variables)>,
    groups: BTreeMap<String, Group>,
}

/// A host, and how ssh gets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryHost {
    /// Its name in the inventory.
    pub name: String,
    /// The way to it; `None` for `ansible_connection: local`.
    pub ssh: Option<SshHost>,
    /// Options for ssh: those of `ansible_ssh_common_args`, `ansible_ssh_extra_args` and a key.
    pub options: Vec<String>,
    /// Whether root's rights are wanted there.
    pub sudo: bool,
}

impl Inventory {
    /// Reads an inventory: YAML where `is_yaml`, else INI.
    ///
    /// # Errors
    ///
    /// [`InventoryError`]: nothing of a text that is wrong in one place is used.
    pub fn parse(text: &str, is_yaml: bool) -> Result<Inventory, InventoryError> {
        let mut inventory = Inventory::default();
        inventory.groups.insert(ALL.to_owned(), Group::default());
        inventory.groups.insert(UNGROUPED.to_owned(), Group::default());
        match is_yaml {
            true => inventory.read_yaml(text)?,
            false => inventory.read_ini(text)?,
        }
        for (name, group) in &inventory.groups {
            if let Some(child) = group
                .children
                .iter()
                .find(|child| !inventory.groups.contains_key(*child))
            {
                return Err(InventoryError::Wrong {
                    name: name.clone(),
                    why: format!("its group {child} is not in the inventory"),
                });
            }
            inventory.members(name)?;
        }
        Ok(inventory)
    }

    /// Names of the groups that have hosts.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The hosts of a group and of the groups in it, in the order of the file.
    ///
    /// # Errors
    ///
    /// A group that is not in the inventory, a host that is no destination of ssh, a variable that matters and cannot be read.
    pub fn hosts_of(&self, group: &str) -> Result<Vec<InventoryHost>, InventoryError> {
        if !self.groups.contains_key(group) {
            return Err(InventoryError::Wrong {
                name: group.to_owned(),
                why: format!(
                    "there is no such group; there are {}",
                    self.groups().collect::<Vec<&str>>().join(", ")
                ),
            });
        }
        let members = self.members(group)?;
        let hosts = self
            .hosts
            .iter()
            .filter(|(name, _)| group == ALL || members.contains(name));
        hosts.map(|(name, own)| self.host(name, own)).collect()
    }

    /// The hosts of a group with those of its children; a circle is an error.
    fn members(&self, group: &str) -> Result<BTreeSet<String>, InventoryError> {
        let (mut members, mut seen) = (BTreeSet::new(), BTreeSet::new());
        self.add_members(group, &mut members, &mut seen, &mut Vec::new())?;
        Ok(members)
    }

    fn add_members<'a>(
        &'a self,
        name: &'a str,
        members: &mut BTreeSet<String>,
        seen: &mut BTreeSet<&'a str>,
        above: &mut Vec<&'a str>,
    ) -> Result<(), InventoryError> {
        let wrong = |why: &str| InventoryError::Wrong {
            name: name.to_owned(),
            why: why.to_owned(),
        };
        if above.contains(&name) {
            return Err(wrong("it is a group within itself"));
        }
        if above.len() > DEPTH_MAX {
            return Err(wrong("it is too deep within other groups"));
        }
        let Some(group) = self.groups.get(name).filter(|_| seen.insert(name)) else {
            return Ok(());
        };
        members.extend(group.hosts.iter().cloned());
        above.push(name);
        for child in &group.children {
            self.add_members(child, members, seen, above)?;
        }
        above.pop();
        Ok(())
    }
}

/// What the lines of a section are.
enum Section {
    Hosts(String),
    Variables(String),
    Children(String),
}

impl Inventory {
    fn read_ini(&mut self, text: &str) -> Result<(), InventoryError> {
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
                self.groups.entry(name.clone()).or_default();
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
                            wrong(format!("\"{word}\" is no variable: expected NAME=VALUE"))
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
                    let group = self.groups.entry(group.clone()).or_default();
                    group.variables.insert(name.trim().to_owned(), value.to_owned());
                }
                Section::Children(group) => {
                    let group = self.groups.entry(group.clone()).or_default();
                    group.children.insert(line.to_owned());
                }
            }
        }
        Ok(())
    }

    /// Adds the hosts of a pattern, as `db[01:20].example:2222`, to a group.
    fn add_hosts(&mut self, group: &str, pattern: &str, variables: &Variables) -> Result<(), String> {
        let colons = || {
            pattern
                .match_indices(':')
                .filter(|(at, _)| !inside_brackets(pattern, *at))
        };
        // An address of IPv6 has more than one.
        let (names, port) = match (colons().next(), colons().nth(1)) {
            (Some((at, _)), None) if is_number(&pattern[at + 1..]) => {
                (&pattern[..at], Some(&pattern[at + 1..]))
            }
            _ => (pattern, None),
        };
        for name in expanded(names)? {
            if self.hosts.len() >= HOSTS_MAX {
                return Err(format!("more than {HOSTS_MAX} hosts"));
            }
            let index = match self.hosts.iter().position(|(known, _)| *known == name) {
                Some(index) => index,
                None => {
                    self.hosts.push((name.clone(), Variables::new()));
                    self.hosts.len() - 1
                }
            };
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

/// Whether a position of a text is within brackets.
fn inside_brackets(text: &str, at: usize) -> bool {
    let before = &text[..at];
    before.matches('[').count() > before.matches(']').count()
}

/// The names of a pattern with ranges: `a[1:3]` is a1, a2, a3; `[01:10:3]` keeps its zeros and goes by threes; `[a:c]` are letters.
fn expanded(pattern: &str) -> Result<Vec<String>, String> {
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
    fn read_yaml(&mut self, text: &str) -> Result<(), InventoryError> {
        let groups: BTreeMap<String, Option<YamlGroup>> =
            serde_saphyr::from_str(text).map_err(|error| InventoryError::Yaml(error.to_string()))?;
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
        let own = self.groups.entry(name.to_owned()).or_default();
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

impl Inventory {
    /// All variables of a host: its own, then those of its groups, the innermost first, then those of `all`.
    fn variables(&self, name: &str, own: &Variables) -> Variables {
        let mut groups: Vec<(usize, &str, &Group)> = Vec::new();
        for (group_name, group) in &self.groups {
            let has_host = self
                .members(group_name)
                .is_ok_and(|members| members.contains(name));
            if has_host || group_name == ALL {
                groups.push((self.depth(group_name, 0), group_name, group));
            }
        }
        // What comes later wins, as with Ansible: deeper groups, and of those of the same depth the later name.
        groups.sort_by_key(|(depth, name, _)| (*depth, *name));
        let mut all = Variables::new();
        for (_, _, group) in groups {
            all.extend(group.variables.clone());
        }
        all.extend(own.clone());
        all
    }

    /// How far a group is below `all`.
    fn depth(&self, name: &str, guard: usize) -> usize {
        if name == ALL || guard > DEPTH_MAX {
            return 0;
        }
        let parents = self
            .groups
            .iter()
            .filter(|(parent, group)| *parent != ALL && group.children.contains(name));
        parents
            .map(|(parent, _)| self.depth(parent, guard + 1))
            .max()
            .unwrap_or(0)
            + 1
    }

    fn host(&self, name: &str, own: &Variables) -> Result<InventoryHost, InventoryError> {
        let variables = self.variables(name, own);
        let wrong = |why: String| InventoryError::Wrong {
            name: name.to_owned(),
            why,
        };
        let value = |names: &[&str]| -> Result<Option<&str>, InventoryError> {
            let found = names.iter().find_map(|name| Some((*name, variables.get(*name)?)));
            match found {
                Some((variable, value)) if value.contains("{{") => Err(wrong(format!(
                    "{variable} is a template, which Ansible alone evaluates"
                ))),
                found => Ok(found.map(|(_, value)| value.as_str())),
            }
        };
        let sudo = matches!(value(&["ansible_become"])?, Some("true" | "True" | "yes" | "1"));
        match value(&["ansible_connection"])? {
            None | Some("ssh" | "smart" | "paramiko") => {}
            Some("local") => {
                return Ok(InventoryHost {
                    name: name.to_owned(),
                    ssh: None,
                    options: Vec::new(),
                    sudo,
                });
            }
            Some(other) => {
                return Err(wrong(format!(
                    "ansible_connection is {other}: expected ssh or local"
                )));
            }
        }
        let address = value(&["ansible_host", "ansible_ssh_host"])?.unwrap_or(name);
        let user = value(&["ansible_user", "ansible_ssh_user"])?;
        let port = value(&["ansible_port", "ansible_ssh_port"])?;
        let at = user.map_or_else(|| address.to_owned(), |user| format!("{user}@{address}"));
        let mut options = Vec::new();
        if let Some(port) = port {
            options.extend(["-p".to_owned(), port.to_owned()]);
        }
        if let Some(key) = value(&["ansible_ssh_private_key_file", "ansible_private_key_file"])? {
            options.extend(["-i".to_owned(), key.to_owned()]);
        }
        for variable in ["ansible_ssh_common_args", "ansible_ssh_extra_args"] {
            if let Some(text) = value(&[variable])? {
                let words =
                    shell_words::split(text).map_err(|error| wrong(format!("{variable}: {error}")))?;
                options.extend(words);
            }
        }
        let ssh = format!("ssh:{at}").parse::<SshHost>().map_err(wrong)?;
        Ok(InventoryHost {
            name: name.to_owned(),
            ssh: Some(ssh),
            options,
            sudo,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INI: &str = "\
# the lab
lone.example ansible_user=ann # a comment

[db]
db[01:03].example:2222
[gen]
gen[a:c] ansible_host=10.0.0.9

[lab:children]
db
gen
[lab:vars]
ansible_user = 'root'
[db:vars]
ansible_user=postgres
ansible_become=true
ansible_ssh_common_args='-J jump -o \"A B\"'
";

    const YAML: &str = "\
all:
  hosts:
    lone.example: { ansible_user: ann }
  children:
    lab:
      vars: { ansible_user: root }
      children:
        db:
          hosts:
            db[01:03].example: { ansible_port: 2222 }
          vars: { ansible_user: postgres, ansible_become: true, ansible_ssh_common_args: '-J jump -o \"A B\"' }
        gen:
          hosts: { 'gen[a:c]': { ansible_host: 10.0.0.9 } }
";

    fn names(inventory: &Inventory, group: &str) -> Vec<String> {
        let hosts = inventory.hosts_of(group).unwrap().into_iter();
        hosts.map(|host| host.name).collect()
    }

    #[test]
    fn both_forms_say_the_same() {
        let (ini, yaml) = (
            Inventory::parse(INI, false).unwrap(),
            Inventory::parse(YAML, true).unwrap(),
        );
        for group in ["all", "lab", "db", "gen"] {
            let sorted = |inventory: &Inventory| {
                let mut hosts = inventory.hosts_of(group).unwrap();
                hosts.sort_by(|a, b| a.name.cmp(&b.name));
                hosts
            };
            assert_eq!(sorted(&ini), sorted(&yaml), "{group}");
        }
        assert_eq!(
            names(&ini, "db"),
            ["db01.example", "db02.example", "db03.example"]
        );
        assert_eq!(names(&ini, "gen"), ["gena", "genb", "genc"]);
        assert_eq!(names(&ini, "lab").len(), 6);
        assert_eq!(names(&ini, "all").len(), 7);
        let db = &ini.hosts_of("db").unwrap()[0];
        let ssh = db.ssh.as_ref().map(ToString::to_string);
        assert_eq!(ssh.as_deref(), Some("ssh:postgres@db01.example"));
        assert_eq!(db.options, ["-p", "2222", "-J", "jump", "-o", "A B"]);
        assert!(db.sudo);
        let gena = &ini.hosts_of("gen").unwrap()[0];
        assert_eq!(gena.ssh.as_ref().unwrap().to_string(), "ssh:root@10.0.0.9");
        let lone = &ini.hosts_of("ungrouped").unwrap()[0];
        assert_eq!(lone.ssh.as_ref().unwrap().to_string(), "ssh:ann@lone.example");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |text: &str, is_yaml: bool, expected: &str| {
            let read = Inventory::parse(text, is_yaml);
            let error = read
                .and_then(|inventory| inventory.hosts_of("all"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("[db\nx", false, "line 1: expected [GROUP]");
        check("x y=1 z", false, "line 1: \"z\" is no variable");
        check("db[1:999999]", false, "more than 10000 hosts");
        check("db[1:2", false, "no range");
        check("db[1:100][1:100][1:100]", false, "hosts");
        check("[a:children]\nb", false, "its group b is not in the inventory");
        check("[a:children]\nb\n[b:children]\na", false, "within itself");
        check(
            "x ansible_host='{{ other }}'",
            false,
            "ansible_host is a template",
        );
        check("x ansible_connection=winrm", false, "expected ssh or local");
        check("-oProxyCommand=evil", false, "does not begin with -");
        check("a: [1", true, "");
        let unknown = Inventory::parse("x", false)
            .unwrap()
            .hosts_of("none")
            .unwrap_err();
        assert!(
            unknown.to_string().contains("there are all, ungrouped"),
            "{unknown}"
        );
    }
}
