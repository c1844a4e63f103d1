//! The files of the shipped catalogue, and what must hold of each knob in them.

use super::{Form, Kind, Knob, Per};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Heading of its knobs, for people.
    pub(super) title: String,
    pub(super) knob: Vec<Knob>,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!("knobs/", $name, ".toml"),
            include_str!(concat!("../../catalog/knobs/", $name, ".toml")),
        )),*]
    };
}

/// Name and text of each, in the order in which people read about them.
pub(super) const FILES: &[(&str, &str)] = files![
    "postgres-memory",
    "postgres-io",
    "postgres-wal",
    "postgres-planner",
    "postgres-vacuum",
    "postgres-sessions",
    "postgres-monitoring",
    "tables",
    "server",
    "memory",
    "hugepages",
    "kernel",
    "block",
    "boot",
    "cpu",
    "net",
];

/// Controllers of a control group that a place may be in.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "io"];
/// What the lines for people may leave open.
const IN_LINES: [&str; 3] = ["value", "mount", "volume"];

/// What is wrong with a knob by itself.
pub(super) fn flaw(knob: &Knob) -> Option<String> {
    let advised = matches!(
        knob.kind,
        Kind::BootParameter | Kind::MountOption | Kind::VolumeFlag
    );
    let texts = [
        knob.lines.is_empty(),
        knob.undo_lines.is_empty(),
        knob.word.is_none(),
    ];
    let wants_address = matches!(
        knob.kind,
        Kind::Sysfs | Kind::Bracket | Kind::HugepagePool | Kind::CpuQuota | Kind::HeldFile
    );
    if wants_address && knob.addresses.is_empty() {
        return Some("an address is missing".into());
    }
    if !(wants_address || knob.kind == Kind::Sysctl || knob.addresses.is_empty()) {
        return Some("this kind has no address".into());
    }
    if advised && texts.contains(&true) {
        return Some("what is only advised needs word, lines and undo_lines".into());
    }
    if !advised && texts.contains(&false) {
        return Some("word and lines are for what is only advised".into());
    }
    if (knob.kind == Kind::Guc) != (knob.form == Form::Server) {
        return Some("the form of a server's parameter is \"server\", and nothing else's".into());
    }
    if knob.min.zip(knob.max).is_some_and(|(min, max)| min > max) {
        return Some("min is above max".into());
    }
    knob.addresses
        .iter()
        .chain(&knob.resets)
        .chain(&knob.alike)
        .find_map(|place| flaw_of_place(knob.per, place))
        .or_else(|| {
            let lines = knob.lines.iter().chain(&knob.undo_lines).chain(&knob.word);
            lines
                .flat_map(|line| placeholders(line))
                .find(|name| !IN_LINES.contains(name))
                .map(|name| format!("{{{name}}} is unknown in lines"))
        })
}

/// What is wrong with a path of a knob of `per`.
fn flaw_of_place(per: Option<Per>, place: &str) -> Option<String> {
    if !place.starts_with('/') && !place.starts_with("{cgroup:") {
        return Some(format!("{place} is not an absolute path"));
    }
    let names = placeholders(place);
    let wanted: &[&str] = match per {
        None => &[],
        Some(Per::Disk) => &["disk"],
        Some(Per::Interface) => &["interface"],
        Some(Per::PageSize) => &["size"],
        Some(Per::PageSizeOfNode) => &["size", "node"],
        Some(Per::Interrupt) => &["interrupt"],
        Some(Per::Table | Per::Path) => return Some("tables and paths have no address".into()),
    };
    if let Some(name) = wanted.iter().find(|name| !names.contains(name)) {
        return Some(format!("{place} lacks {{{name}}}"));
    }
    names.into_iter().find_map(|name| {
        let group = name.strip_prefix("cgroup:");
        let known = wanted.contains(&name)
            || ["default_size", "disk_number"].contains(&name)
            || group.is_some_and(|controller| CONTROLLERS.contains(&controller));
        (!known).then(|| format!("{{{name}}} in {place} is unknown, or not what it is a knob of"))
    })
}

/// Names that are in braces in a path or a line.
fn placeholders(text: &str) -> Vec<&str> {
    text.split('{')
        .skip(1)
        .map(|rest| rest.split_once('}').map_or(rest, |(name, _)| name))
        .collect()
}

/// What is wrong between knobs: id and reason.
pub(super) fn flaw_between(knobs: &BTreeMap<String, Knob>) -> Option<(String, String)> {
    knobs.values().find_map(|knob| {
        let others = knob.excludes.iter().chain(&knob.counterpart);
        let reason = others
            .chain(&knob.renamed)
            .find(|other| !knobs.contains_key(*other))
            .map(|other| format!("{other} is not a knob"))
            .or_else(|| {
                let one_sided = |other: &&String| {
                    let other = &knobs[*other];
                    knob.excludes.contains(&other.id) && !other.excludes.contains(&knob.id)
                        || knob.counterpart.as_ref() == Some(&other.id)
                            && other.counterpart.as_ref() != Some(&knob.id)
                };
                let mut others = knob.excludes.iter().chain(&knob.counterpart);
                others
                    .find(one_sided)
                    .map(|other| format!("{other} does not say the same of it"))
            });
        reason.map(|reason| (knob.id.clone(), reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(lines: &str) -> Knob {
        let text = format!(
            "title = \"t\"\n[[knob]]\nid = \"a.b\"\nlayer = \"block\"\ncost = \"live\"\nrisk = \"none\"\n\
             summary = \"s\"\nsource = \"s\"\n{lines}"
        );
        toml::from_str::<File>(&text).unwrap().knob.remove(0)
    }

    #[test]
    fn a_knob_that_could_not_be_found_or_written_is_refused() {
        let check = |lines: &str, expected: &str| {
            let found = flaw(&knob(lines));
            assert!(
                found.as_ref().is_some_and(|flaw| flaw.contains(expected)),
                "{lines}: {found:?}"
            );
        };
        let fine = "kind = \"sysfs\"\nper = \"disk\"\naddresses = [\"/sys/block/{disk}/x\"]";
        assert_eq!(flaw(&knob(fine)), None);
        check("kind = \"sysfs\"", "address is missing");
        check(
            "kind = \"sysfs\"\nper = \"disk\"\naddresses = [\"/sys/x\"]",
            "lacks {disk}",
        );
        check("kind = \"sysfs\"\naddresses = [\"/sys/{disk}\"]", "is unknown");
        check(
            "kind = \"sysfs\"\naddresses = [\"{cgroup:cats}/x\"]",
            "is unknown",
        );
        check(
            "kind = \"sysfs\"\naddresses = [\"sys/x\"]",
            "not an absolute path",
        );
        check("kind = \"table-option\"\naddresses = [\"/x\"]", "has no address");
        check("kind = \"guc\"", "\"server\"");
        check("kind = \"sysctl\"\nmin = 2\nmax = 1", "min is above max");
        check("kind = \"sysctl\"\nlines = [\"x\"]", "only advised");
        check("kind = \"mount-option\"\nlines = [\"x\"]", "needs word");
        check(
            "kind = \"mount-option\"\nword = \"x\"\nlines = [\"{cat}\"]\nundo_lines = [\"y\"]",
            "{cat} is unknown",
        );
    }

    #[test]
    fn what_knobs_say_of_each_other_is_mutual() {
        let check = |lines: [&str; 2]| {
            let mut knobs = BTreeMap::new();
            for (id, lines) in ["x", "y"].into_iter().zip(lines) {
                let mut knob = knob(&format!("kind = \"sysctl\"\n{lines}"));
                knob.id = id.into();
                knobs.insert(id.to_owned(), knob);
            }
            flaw_between(&knobs).map(|(id, reason)| format!("{id}: {reason}"))
        };
        assert_eq!(check(["counterpart = \"y\"", "counterpart = \"x\""]), None);
        assert_eq!(
            check(["excludes = [\"y\"]", ""]).unwrap(),
            "x: y does not say the same of it"
        );
        assert_eq!(
            check(["", "counterpart = \"x\""]).unwrap(),
            "y: x does not say the same of it"
        );
        assert_eq!(check(["renamed = \"z\"", ""]).unwrap(), "x: z is not a knob");
    }
}
