//! Inventories of Ansible: which hosts there are, in which groups, and how ssh gets there.
//!
//! INI and YAML files are read, with ranges, groups of groups, and variables of hosts and groups in
//! the file itself. What Ansible's templates, scripts and directories (`group_vars`, `host_vars`)
//! would add is not: a value that has a template in it, and that matters here, is an error.

mod read;

use crate::ssh_host::SshHost;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts of an inventory; a range that makes more is a mistake.
const HOSTS_MAX: usize = 10_000;
/// Groups of an inventory.
const GROUPS_MAX: usize = 1_000;
/// Groups within groups.
const DEPTH_MAX: usize = 32;
/// The group that has all hosts.
const ALL: &str = "all";
/// Hosts without a group of their own are in this one.
const UNGROUPED: &str = "ungrouped";

/// Why a text is not an inventory.
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
    /// The text is not YAML of an inventory.
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

fn wrong(name: &str, why: &str) -> InventoryError {
    InventoryError::Wrong {
        name: name.to_owned(),
        why: why.to_owned(),
    }
}

/// How far a group is below `all`, on the longest way.
fn depth<'p>(
    name: &'p str,
    parents: &'p BTreeMap<String, Vec<String>>,
    known: &mut BTreeMap<String, usize>,
    below: &mut Vec<&'p str>,
) -> Result<usize, InventoryError> {
    if let Some(depth) = known.get(name) {
        return Ok(*depth);
    }
    if below.contains(&name) {
        return Err(wrong(name, "it is a group within itself"));
    }
    if below.len() > DEPTH_MAX {
        return Err(wrong(name, "it is too deep within other groups"));
    }
    below.push(name);
    let mut longest = 0;
    for parent in parents.get(name).into_iter().flatten() {
        longest = longest.max(depth(parent, parents, known, below)?);
    }
    below.pop();
    let depth = if name == ALL { 0 } else { longest + 1 };
    known.insert(name.to_owned(), depth);
    Ok(depth)
}

type Variables = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct Group {
    hosts: BTreeSet<String>,
    children: BTreeSet<String>,
    variables: Variables,
    /// Groups that it is in.
    parents: Vec<String>,
    /// How far it is below `all`, on the longest way.
    depth: usize,
}

/// An inventory.
#[derive(Debug, Default)]
pub struct Inventory {
    /// With their own variables, in the order of the file.
    hosts: Vec<(String, Variables)>,
    /// Where each is among them.
    places: BTreeMap<String, usize>,
    groups: BTreeMap<String, Group>,
    /// Bytes of the variables of hosts.
    variable_bytes: usize,
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
        inventory.lay_out()?;
        Ok(inventory)
    }

    /// Works out which groups are above each, and how far it is below `all`. A circle is an error.
    fn lay_out(&mut self) -> Result<(), InventoryError> {
        let mut parents: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, group) in &self.groups {
            for child in &group.children {
                if !self.groups.contains_key(child) {
                    return Err(wrong(name, &format!("its group {child} is not in the inventory")));
                }
                parents.entry(child.clone()).or_default().push(name.clone());
            }
        }
        let mut depths = BTreeMap::new();
        for name in self.groups.keys() {
            depth(name, &parents, &mut depths, &mut Vec::new())?;
        }
        for (name, group) in &mut self.groups {
            group.depth = depths.get(name).copied().unwrap_or(0);
            group.parents = parents.remove(name).unwrap_or_default();
        }
        Ok(())
    }

    /// Names of the groups that have hosts.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The hosts of a group and of the groups in it, in the order of the file.
    ///
    /// # Errors
    ///
    /// A group that is not in the inventory, a host that is not a destination of ssh, a variable
    /// that matters and cannot be read.
    pub fn hosts_of(&self, group: &str) -> Result<Vec<InventoryHost>, InventoryError> {
        if !self.groups.contains_key(group) {
            let known: Vec<&str> = self.groups().collect();
            let why = format!("there is no such group; there are {}", known.join(", "));
            return Err(wrong(group, &why));
        }
        let mut direct: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, of) in &self.groups {
            for host in &of.hosts {
                direct.entry(host).or_default().push(name);
            }
        }
        // Most hosts are in the same groups as others.
        let mut known: BTreeMap<&[&str], (bool, Variables)> = BTreeMap::new();
        let mut hosts = Vec::new();
        for (name, own) in &self.hosts {
            let direct = direct.get(&**name).map_or(&[][..], |direct| direct);
            let (is_member, variables) = known.entry(direct).or_insert_with(|| {
                let groups = self.above(direct);
                let is_member = group == ALL || groups.iter().any(|(_, above)| *above == group);
                (is_member, self.variables(&groups))
            });
            if *is_member {
                let mut all = variables.clone();
                all.extend(own.clone());
                hosts.push(self.host(name, &all)?);
            }
        }
        Ok(hosts)
    }

    /// These groups, and all that they are in, each with how far it is below `all`; the farthest is
    /// the last.
    fn above<'a>(&'a self, direct: &[&'a str]) -> BTreeSet<(usize, &'a str)> {
        let (mut found, mut todo) = (BTreeSet::from([(0, ALL)]), direct.to_vec());
        while let Some(name) = todo.pop() {
            if let Some(group) = self.groups.get(name)
                && found.insert((group.depth, name))
            {
                todo.extend(group.parents.iter().map(String::as_str));
            }
        }
        found
    }

    /// Variables of all these groups: what comes later wins, as with Ansible: of deeper groups, and
    /// of the same depth of the later name.
    fn variables(&self, groups: &BTreeSet<(usize, &str)>) -> Variables {
        let variables = groups
            .iter()
            .filter_map(|(_, name)| Some(&self.groups.get(*name)?.variables));
        variables
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// A host by its variables, its own included, which win.
    fn host(&self, name: &str, variables: &Variables) -> Result<InventoryHost, InventoryError> {
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
        let sudo = value(&["ansible_become"])?.is_some_and(|word| {
            let word = word.to_ascii_lowercase();
            ["true", "yes", "on", "1", "y", "t", "1.0"].contains(&&*word)
        });
        if let Some(user) = value(&["ansible_become_user"])?.filter(|user| sudo && *user != "root") {
            return Err(wrong(format!(
                "ansible_become_user = {user}: expected root, or no ansible_become for this host"
            )));
        }
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
gen # a comment
[lab:vars]
ansible_user = 'root'
[db:vars]
ansible_user=postgres
ansible_become=Yes
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
    fn variables_of_deeper_groups_win() {
        let text = "[a]\nx\n[b:children]\na\n[c:children]\nb\n[d]\nx\n[a:vars]\nansible_user=a\n[b:vars]\nansible_user=b\nansible_port=1\n\
                    [c:vars]\nansible_user=c\nansible_port=2\n[d:vars]\nansible_user=d\n[all:vars]\nansible_become=yes\n";
        let inventory = Inventory::parse(text, false).unwrap();
        for group in ["a", "b", "c", "d", "all"] {
            let hosts = inventory.hosts_of(group).unwrap();
            assert_eq!(hosts.len(), 1, "{group}");
            let ssh = hosts[0].ssh.as_ref().unwrap().to_string();
            assert_eq!((&*ssh, hosts[0].sudo), ("ssh:a@x", true), "{group}");
            assert_eq!(hosts[0].options, ["-p", "1"]);
        }
    }

    /// A way for each pair of groups of two layers: as many ways as there are cannot be walked.
    #[test]
    fn many_hosts_in_groups_with_many_ways_are_read() {
        let mut text = "[g0-0]\nhost[1:9999]\n[g0-1]\nother\n".to_owned();
        for layer in 1..30 {
            for group in 0..30 {
                text += &format!("[g{layer}-{group}:children]\n");
                let below = if layer == 1 { 2 } else { 30 };
                (0..below).for_each(|below| text += &format!("g{}-{below}\n", layer - 1));
            }
        }
        let inventory = Inventory::parse(&text, false).unwrap();
        assert_eq!(inventory.hosts_of("g29-7").unwrap().len(), 10_000);
        assert_eq!(inventory.hosts_of("g0-1").unwrap().len(), 1);
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
        check(
            "x y=1 z",
            false,
            "line 1: a word behind the host is not a variable",
        );
        check(
            &format!("db[{}1:2]", "0".repeat(70_000)),
            false,
            "more than 512 bytes",
        );
        check(
            &format!("db[1:10000] v={}", "x".repeat(1 << 20)),
            false,
            "variables of hosts",
        );
        check("db[1:999999]", false, "more than 10000 hosts");
        check("db[1:2", false, "no range");
        check(&format!("x{}", "[1:1]".repeat(9)), false, "ranges");
        check("db[1:100][1:100][1:100]", false, "hosts");
        check("[a:children]\nb", false, "its group b is not in the inventory");
        check("[a:children]\nb\n[b:children]\na", false, "within itself");
        check(
            "x ansible_become=Yes ansible_become_user=postgres",
            false,
            "expected root",
        );
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
