//! What is changed now, by a journal: what was set, what it is, and what a reboot would undo.
//! Changes nothing.

use crate::journal::Content;
use crate::reader::is_same_state;
use crate::restore::{Boot, Group, Restorer, groups_of};
use crate::undo::{AUTO_CONF, SavedState, TargetAccess, UndoUnit};
use pgdyno_server::autoconf;
use serde::Serialize;
use std::collections::BTreeSet;

/// Whether a change is still in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum ChangeState {
    /// It still has the value that was set.
    InForce,
    /// As it was before it was set.
    AsBefore,
    /// A reboot has reset it.
    Rebooted,
    /// Someone else has set it to something else.
    Foreign,
    /// It cannot be read now.
    Unknown,
}

/// A change and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StatusLine {
    /// Id of the knob in the catalogue.
    pub knob: String,
    /// Where the value is: the path of a file, or a command such as "ALTER SYSTEM work_mem".
    pub place: String,
    /// Value before the first change of the journal.
    pub was: String,
    /// Last value that the journal's process set.
    pub set_to: String,
    /// Value that it has now; empty where that is not known.
    pub now: String,
    /// Why the present value is not known; `None` where it is.
    #[cfg_attr(feature = "typescript", ts(optional = nullable))]
    pub why: Option<String>,
    /// Whether the change is still in effect.
    pub state: ChangeState,
    /// Whether a reboot resets it.
    pub until_reboot: bool,
}

impl Restorer<'_> {
    /// What a journal has changed, and the state of that.
    pub fn status(&self, content: &Content) -> Vec<StatusLine> {
        let groups = groups_of(&content.entries);
        let boot = Boot::of(&groups, self.rebooted(content));
        let asked = self.asked(content);
        let access = TargetAccess {
            host: self.host,
            conninfo: asked.as_ref().and_then(|asked| asked.as_ref().ok()),
        };
        groups
            .iter()
            .flat_map(|group| match self.refusal(group) {
                Some(why) => refused(group, &why),
                None => of_group(group, access, &boot),
            })
            .collect()
    }
}

/// What is not even read, or cannot be compared with what was before.
fn refused(group: &Group, why: &str) -> Vec<StatusLine> {
    let line = |name: String| StatusLine {
        place: group.place_of(&name),
        was: if group.is_proven {
            group.shown_of(&name, &group.first)
        } else {
            String::new()
        },
        set_to: group.last_write(&name).unwrap_or_default(),
        now: String::new(),
        why: Some(why.to_owned()),
        state: ChangeState::Unknown,
        knob: name,
        until_reboot: group.unit.lives_in_kernel(),
    };
    group.names().into_iter().map(line).collect()
}

fn of_group(group: &Group, access: TargetAccess<'_>, boot: &Boot) -> Vec<StatusLine> {
    let unit = group.unit.today(access.host);
    let now = match &unit {
        Some(unit) => unit.capture(access).map_err(|e| e.to_string()),
        None => Err("the device is gone".to_owned()),
    };
    if let (SavedState::AutoConf(first), Ok(SavedState::AutoConf(now))) = (&group.first, &now) {
        return of_file(group, first, now);
    }
    let of_now = now.as_ref().ok().map_or(Some(group.clone()), |now| group.of(now));
    let is_untouched = of_now.is_none();
    let group = &of_now.unwrap_or_else(|| group.clone());
    let own_file = |name: &str| match &unit {
        Some(UndoUnit::Files { files, .. }) => files.get(group.file_of(name)),
        _ => None,
    };
    // Its own file is ours where somebody has set another one of its undo unit.
    let is_own = |name: &str, now: &SavedState| {
        let file = group.file_of(name);
        let target = group.first_beside_others(now);
        target.is_some_and(|target| target.value(file) == group.first.value(file))
    };
    let state = |name: &str| match &now {
        Err(_) => ChangeState::Unknown,
        Ok(now) if boot.has_set(own_file(name), now.value(group.file_of(name))) => ChangeState::InForce,
        Ok(_) if boot.rebooted && group.unit.lives_in_kernel() => ChangeState::Rebooted,
        Ok(now) if is_untouched || is_same_state(now, &group.first) => ChangeState::AsBefore,
        Ok(now) if group.is_ours(now) => ChangeState::InForce,
        Ok(now) if is_own(name, now) => match group.file_of(name) {
            file if now.value(file) == group.first.value(file) => ChangeState::AsBefore,
            _ => ChangeState::InForce,
        },
        Ok(_) => ChangeState::Foreign,
    };
    let names = group.names().into_iter();
    names
        .map(|name| StatusLine {
            place: group.place_of(&name),
            was: group.shown_of(&name, &group.first),
            set_to: group.last_write(&name).unwrap_or_default(),
            now: now
                .as_ref()
                .map_or_else(|_| String::new(), |now| group.shown_of(&name, now)),
            why: now.as_ref().err().cloned(),
            state: state(&name),
            knob: name,
            until_reboot: group.unit.lives_in_kernel() && !boot.sets(&group.unit),
        })
        .collect()
}

/// A line for each parameter of postgresql.auto.conf.
fn of_file(group: &Group, first: &str, now: &str) -> Vec<StatusLine> {
    let foreign = group.foreign(first, now);
    let (before, values) = (autoconf::parse(first), autoconf::parse(now));
    let names: BTreeSet<&String> = group.writes.iter().map(|write| &write.knob).collect();
    let or_not_set = |value: Option<&String>| value.cloned().unwrap_or_else(|| "(not set)".to_owned());
    names
        .into_iter()
        .filter(|name| *name != AUTO_CONF)
        .map(|name| StatusLine {
            knob: name.clone(),
            place: group.unit.place(),
            was: or_not_set(before.get(name)),
            set_to: or_not_set(group.last_write(name).as_ref()),
            now: or_not_set(values.get(name)),
            why: None,
            state: if foreign.contains_key(name) {
                ChangeState::Foreign
            } else if values.get(name) == before.get(name) {
                ChangeState::AsBefore
            } else {
                ChangeState::InForce
            },
            until_reboot: false,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::journal::{Entry, Purpose};
    use crate::restore::RestoreOptions;
    use pgdyno_host::LocalHost;

    #[test]
    fn of_what_cannot_be_read_the_reason_is_no_value() {
        let host = LocalHost::at("/no/such/machine");
        let restorer = Restorer {
            host: &host,
            catalogue: &Catalogue::shipped().unwrap(),
            environment: &|_| None,
            options: RestoreOptions::default(),
            conninfo: None,
        };
        let check = |unit: UndoUnit, before: SavedState, expected: (&str, bool, &str)| {
            let content = Content {
                purpose: Purpose::now("boot".into(), "test".into(), None, true),
                entries: vec![Entry::Intent {
                    knob: "x".into(),
                    unit,
                    before,
                    writing: Some("1".into()),
                    file: 0,
                    again: false,
                }],
                whole_bytes: 0,
                damage: Vec::new(),
            };
            let lines = serde_json::to_value(restorer.status(&content)).unwrap();
            let (now, why, state) = (&lines[0]["now"], &lines[0]["why"], &lines[0]["state"]);
            assert_eq!(
                (now.as_str().unwrap(), why.is_string(), state.as_str().unwrap()),
                expected
            );
        };
        let parameter = UndoUnit::Parameter { name: "x".into() };
        check(parameter, SavedState::Parameter(None), ("", true, "unknown"));
        check(
            UndoUnit::OwnFile {
                path: crate::persist::SYSCTL_FILE.into(),
            },
            SavedState::OwnFile(None),
            ("(no file)", false, "as-before"),
        );
    }
}
