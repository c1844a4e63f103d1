//! Restoring: undoes a journal backwards, is idempotent, and leaves alone what someone else changed since.

use crate::cell::{Captured, Cell, CellError, ServerRef, in_auto_conf, shown};
use crate::journal::{Content, Entry, Journal, JournalError};
use pgdyno_host::HostAccess;
use pgdyno_server::sandbox::{Sandbox, State};
use pgdyno_server::{
    Conninfo, Control, Lookup, Server, ServerError, alter_system_reset, alter_system_set, autoconf, reload,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What became of a knob at restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was written back.
    Restored,
    /// It was as before already.
    Already,
    /// Someone else has changed it since; it was left alone.
    Left,
    /// It could not be written back; the journal stays open.
    Failed,
}

/// One line of what was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutBack {
    /// The knob.
    pub knob: String,
    /// Its file.
    pub place: String,
    /// The value from before.
    pub was: String,
    /// The last value that was set.
    pub set_to: String,
    /// What became of it.
    pub outcome: Outcome,
    /// More, where there is more to say.
    pub detail: Option<String>,
}

/// Restores journals.
pub struct Restorer<'a> {
    /// The machine.
    pub host: &'a dyn HostAccess,
    /// For passwords of servers that are no sandbox.
    pub environment: Lookup<'a>,
    /// Whether to overwrite what someone else changed since.
    pub force: bool,
    /// The server's connection, where it is known with its password: a journal holds none.
    pub conninfo: Option<Conninfo>,
}

/// All changes to one cell.
struct Group {
    cell: Cell,
    first: Captured,
    /// States that are ours, before or after a write.
    known: Vec<Captured>,
    /// (knob, what was written), in order.
    writes: Vec<(String, Option<String>)>,
    /// Whether the last write was announced and not said to be done: it may be done in part.
    cut_short: bool,
}

impl Restorer<'_> {
    /// Restores an open journal and closes it, unless something failed: then it stays for another attempt.
    pub fn restore(&self, journal: Journal) -> Result<Vec<PutBack>, JournalError> {
        let content = journal.content()?;
        let put_back = self.undo(&content);
        if put_back.iter().all(|line| line.outcome != Outcome::Failed) {
            journal.close()?;
        }
        Ok(put_back)
    }

    fn undo(&self, content: &Content) -> Vec<PutBack> {
        let groups = groups_of(&content.entries);
        let (server_groups, kernel_groups): (Vec<&Group>, Vec<&Group>) = groups
            .iter()
            .partition(|group| !matches!(group.cell, Cell::Files { .. }));
        let rebooted =
            pgdyno_host::boot_id(self.host).is_ok_and(|boot_id| boot_id != content.purpose.boot_id);
        let mut lines = Vec::new();
        let server = content
            .purpose
            .server
            .as_ref()
            .map(|reference| self.reach(reference));
        let touched = !groups.is_empty() || !content.purpose.server_was_running;
        if let Some(ServerRef::Sandbox { root, name }) = &content.purpose.server
            && !root.join(name).exists()
        {
            // Its server went with it; what was changed of the kernel is still to be undone.
            return kernel_groups
                .iter()
                .rev()
                .map(|group| self.undo_unless_rebooted(group, rebooted))
                .collect();
        }
        // Huge pages in use cannot leave their pool, and settings that want a restart are undone by one.
        if let Some(Ok(Control::Sandbox(sandbox))) = &server
            && touched
            && let Err(error) = sandbox.stop()
        {
            lines.push(server_line(
                &sandbox.record().name,
                "stopping",
                &error.to_string(),
            ));
        }
        for group in server_groups.iter().rev() {
            lines.extend(self.undo_server(group, content.purpose.server.as_ref()));
        }
        for group in kernel_groups.iter().rev() {
            lines.push(self.undo_unless_rebooted(group, rebooted));
        }
        match server {
            Some(Ok(control)) if touched => {
                let names: Vec<&str> = server_groups
                    .iter()
                    .flat_map(|g| &g.writes)
                    .map(|(knob, _)| knob.as_str())
                    .collect();
                lines.extend(self.restart(&control, content, &names));
            }
            Some(Err(reason)) if !server_groups.is_empty() => {
                let name = content.purpose.server.as_ref().map(describe).unwrap_or_default();
                lines.push(server_line(&name, "reaching", &reason));
            }
            _ => {}
        }
        lines
    }

    fn resolve(&self, conninfo: &str) -> Result<Conninfo, ServerError> {
        match &self.conninfo {
            Some(known) => Ok(known.clone()),
            None => Conninfo::resolve(conninfo, self.environment),
        }
    }

    fn reach(&self, reference: &ServerRef) -> Result<Control, String> {
        match reference {
            ServerRef::Sandbox { root, name } => Sandbox::open(root, name)
                .map(|sandbox| Control::Sandbox(Box::new(sandbox)))
                .map_err(|e| e.to_string()),
            ServerRef::Address { conninfo, restart } => {
                let conninfo = self.resolve(conninfo).map_err(|e| e.to_string())?;
                Ok(match restart {
                    Some(restart) => Control::Command {
                        restart: restart.clone(),
                        conninfo: Box::new(conninfo),
                    },
                    None => Control::None,
                })
            }
        }
    }

    fn undo_parameter(
        &self,
        server: &mut Server,
        group: &Group,
        name: &str,
        first: Option<&str>,
    ) -> Result<PutBack, ServerError> {
        let now = in_auto_conf(server, name)?;
        if now.as_deref() == first {
            return Ok(group.line(Outcome::Already, None));
        }
        if !self.force && !group.is_ours(&Captured::Parameter(now.clone())) {
            return Ok(group.line(Outcome::Left, Some(foreign_words(now.as_deref()))));
        }
        match first {
            Some(value) => alter_system_set(server, name, value)?,
            None => alter_system_reset(server, name)?,
        }
        Ok(group.line(Outcome::Restored, None))
    }

    fn undo_unless_rebooted(&self, group: &Group, rebooted: bool) -> PutBack {
        if rebooted {
            let detail = "a reboot has undone it: what lives only in the kernel is gone";
            return group.line(Outcome::Already, Some(detail.to_owned()));
        }
        self.undo_kernel(group)
    }

    /// Brings the server to the life it had, with the settings it had; `names` are the parameters put back.
    fn restart(&self, control: &Control, content: &Content, names: &[&str]) -> Vec<PutBack> {
        let Some(reference) = &content.purpose.server else {
            return Vec::new();
        };
        let done = match (control, reference) {
            (Control::Sandbox(_), _) if !content.purpose.server_was_running => Ok(()),
            (Control::Sandbox(sandbox), _) => start_afresh(sandbox),
            (_, ServerRef::Address { conninfo, .. }) if !names.is_empty() => self
                .resolve(conninfo)
                .map_err(|e| e.to_string())
                .and_then(|conninfo| reload_at(&conninfo, names))
                .and_then(|waits| match waits.as_str() {
                    "" => Ok(()),
                    _ if control.can_restart() => control.start().map_err(|e| e.to_string()),
                    names => Err(format!(
                        "{names} wait for a restart, which nobody allowed pgdyno to do"
                    )),
                }),
            _ => Ok(()),
        };
        match done {
            Ok(()) => Vec::new(),
            Err(error) => vec![server_line(&describe(reference), "starting", &error)],
        }
    }

    fn undo_kernel(&self, group: &Group) -> PutBack {
        let now = match group.cell.capture(self.host) {
            Ok(now) => now,
            Err(error) => return group.line(Outcome::Failed, Some(error.to_string())),
        };
        if now == group.first {
            return group.line(Outcome::Already, None);
        }
        if !group.is_ours(&now) && !self.force {
            return group.line(Outcome::Left, Some(foreign_words(Some(&shown(&now)))));
        }
        for (path, value) in group.cell.writes_back(&group.first) {
            if let Err(error) = self.host.write_raw(&path, &value) {
                return group.line(Outcome::Failed, Some(error.to_string()));
            }
        }
        match group.cell.capture(self.host) {
            Ok(after) if after == group.first => group.line(Outcome::Restored, None),
            Ok(after) => group.line(
                Outcome::Failed,
                Some(format!("the kernel made {} of it", shown(&after))),
            ),
            Err(error) => group.line(Outcome::Failed, Some(error.to_string())),
        }
    }

    fn undo_server(&self, group: &Group, server: Option<&ServerRef>) -> Vec<PutBack> {
        match (&group.cell, &group.first) {
            (Cell::AutoConf { data }, Captured::AutoConf(first)) => self.undo_auto_conf(group, data, first),
            (Cell::Parameter { name }, Captured::Parameter(first)) => {
                let Some(ServerRef::Address { conninfo, .. }) = server else {
                    return vec![group.line(Outcome::Failed, Some("the journal names no server".into()))];
                };
                let done = self
                    .resolve(conninfo)
                    .and_then(|conninfo| Server::connect(&conninfo))
                    .and_then(|mut server| self.undo_parameter(&mut server, group, name, first.as_deref()));
                vec![done.unwrap_or_else(|error| group.line(Outcome::Failed, Some(error.to_string())))]
            }
            _ => vec![group.line(
                Outcome::Failed,
                Some("the journal mixes up two kinds of state".into()),
            )],
        }
    }

    fn undo_auto_conf(&self, group: &Group, data: &Path, first: &str) -> Vec<PutBack> {
        let now = match group.cell.capture(self.host) {
            Ok(Captured::AutoConf(now)) => now,
            Ok(_) => return vec![group.line(Outcome::Failed, None)],
            Err(error) => return vec![group.line(Outcome::Failed, Some(error.to_string()))],
        };
        let foreign = if self.force {
            BTreeMap::new()
        } else {
            group.foreign(first, &now)
        };
        let content = merged(first, &foreign);
        let outcome = if now == content {
            Outcome::Already
        } else if let Err(error) = autoconf::replace(data, content.as_bytes()) {
            let error = CellError::AutoConf {
                path: autoconf::path_in(data),
                action: "written",
                source: error,
            };
            return vec![group.line(Outcome::Failed, Some(error.to_string()))];
        } else {
            Outcome::Restored
        };
        let before = autoconf::parse(first);
        let names: BTreeSet<&String> = group.writes.iter().map(|(knob, _)| knob).collect();
        let not_set = || "(not set)".to_owned();
        names
            .into_iter()
            .filter(|name| *name != WHOLE_FILE)
            .map(|name| {
                let left = foreign.get(name);
                PutBack {
                    knob: name.clone(),
                    place: group.cell.place(),
                    was: before.get(name).cloned().unwrap_or_else(not_set),
                    set_to: group.last_write(name).unwrap_or_else(not_set),
                    outcome: if left.is_some() { Outcome::Left } else { outcome },
                    detail: left.map(|value| foreign_words(value.as_deref())),
                }
            })
            .collect()
    }
}

/// The name under which the whole file is written back when a server does not start.
const WHOLE_FILE: &str = "postgresql.auto.conf";

impl Group {
    fn line(&self, outcome: Outcome, detail: Option<String>) -> PutBack {
        let knob = self
            .writes
            .first()
            .map(|(knob, _)| knob.clone())
            .unwrap_or_default();
        PutBack {
            place: self.cell.place(),
            was: shown(&self.first),
            set_to: self.last_write(&knob).unwrap_or_default(),
            knob,
            outcome,
            detail,
        }
    }

    /// The last value that was set: going back to the one from before, in between trials, is none of interest.
    fn last_write(&self, knob: &str) -> Option<String> {
        let from_before = |value: &String| match &self.first {
            Captured::Files(values) => values.iter().flatten().any(|first| first == value),
            Captured::AutoConf(text) => autoconf::parse(text).get(knob) == Some(value),
            Captured::Parameter(first) => first.as_ref() == Some(value),
        };
        let written = self.writes.iter().rev().filter(|(name, _)| name == knob);
        written
            .filter_map(|(_, value)| value.clone())
            .find(|value| !from_before(value))
    }

    /// A state that the journal knows, or one that a write that was cut short can have made.
    fn is_ours(&self, now: &Captured) -> bool {
        if self.known.contains(now) {
            return true;
        }
        let written = |value: &Option<String>| self.writes.iter().any(|(_, written)| written == value);
        let now = match now {
            Captured::Files(now) => now,
            Captured::Parameter(value) => return self.cut_short && written(value),
            Captured::AutoConf(_) => return false,
        };
        let counterparts = matches!(
            &self.cell,
            Cell::Files {
                counterparts: true,
                ..
            }
        );
        let value_in = |known: &Captured, at: usize| match known {
            Captured::Files(values) => values.get(at).cloned().flatten(),
            _ => None,
        };
        self.cut_short
            && now.iter().enumerate().all(|(at, value)| {
                written(value)
                    || self.known.iter().any(|known| value_in(known, at) == *value)
                    // The kernel zeroes a counterpart, sets companions anew, and fills a pool page by page.
                    || (counterparts && value.as_deref() == Some("0"))
                    || (!counterparts && at > 0)
                    || self.known.last().is_some_and(|known| self.lies_between(value_in(known, at), value.as_ref()))
            })
    }

    /// A number from before up to what was to be written: a large write can be left half done, and the kernel rounds.
    fn lies_between(&self, before: Option<String>, now: Option<&String>) -> bool {
        let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
        let last = self.writes.last().and_then(|(_, written)| written.as_ref());
        match (number(before.as_ref()), number(now), number(last)) {
            (Some(before), Some(now), Some(last)) => (before.min(last)..=before.max(last)).contains(&now),
            _ => false,
        }
    }

    /// Settings in the file that are neither as before nor as any of our writes left them.
    fn foreign(&self, first: &str, now: &str) -> BTreeMap<String, Option<String>> {
        let (first, now) = (autoconf::parse(first), autoconf::parse(now));
        let names: BTreeSet<&String> = first.keys().chain(now.keys()).collect();
        names
            .into_iter()
            .filter(|name| {
                let value = now.get(*name);
                let ours = self
                    .writes
                    .iter()
                    .any(|(knob, written)| knob == *name && written.as_ref() == value);
                value != first.get(*name) && !ours
            })
            .map(|name| (name.clone(), now.get(name).cloned()))
            .collect()
    }
}

/// The file from before, with the settings that someone else has changed since as that one left them.
fn merged(first: &str, foreign: &BTreeMap<String, Option<String>>) -> String {
    if foreign.is_empty() {
        return first.to_owned();
    }
    let mut text: String = first
        .lines()
        .filter(|line| {
            let name = line.split_once('=').map(|(name, _)| name.trim());
            !name.is_some_and(|name| foreign.contains_key(name))
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    for (name, value) in foreign {
        if let Some(value) = value {
            text += &format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"));
        }
    }
    text
}

fn groups_of(entries: &[Entry]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<usize> = None;
    for entry in entries {
        match entry {
            Entry::Intent {
                knob,
                cell,
                before,
                writing,
            } => {
                let at = groups
                    .iter()
                    .position(|group| group.cell == *cell)
                    .unwrap_or_else(|| {
                        groups.push(Group {
                            cell: cell.clone(),
                            first: before.clone(),
                            known: Vec::new(),
                            writes: Vec::new(),
                            cut_short: false,
                        });
                        groups.len() - 1
                    });
                groups[at].known.push(before.clone());
                groups[at].writes.push((knob.clone(), writing.clone()));
                groups[at].cut_short = true;
                last = Some(at);
            }
            Entry::Done { after } => {
                if let Some(at) = last.take() {
                    groups[at].known.push(after.clone());
                    groups[at].cut_short = false;
                }
            }
            Entry::Open(_) | Entry::Closed => {}
        }
    }
    groups
}

/// A start that a killed process left behind may come in between with the settings it had read: then it is stopped and
/// started once more.
fn start_afresh(sandbox: &Sandbox) -> Result<(), String> {
    let fresh = || sandbox.stop().and_then(|()| sandbox.start());
    match fresh() {
        Err(_) if matches!(sandbox.state(), State::Running(_)) => fresh().map_err(|e| e.to_string()),
        done => done.map_err(|e| e.to_string()),
    }
}

/// Reloads and names the settings that still wait for a restart.
fn reload_at(conninfo: &Conninfo, names: &[&str]) -> Result<String, String> {
    let mut server = Server::connect(conninfo).map_err(|e| e.to_string())?;
    reload(&mut server).map_err(|e| e.to_string())?;
    // The server reads its files a moment after it was asked to.
    let what = "looking for settings that wait for a restart";
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("'{}'", name.replace('\'', "''")))
        .collect();
    let sql = format!(
        "SELECT coalesce(string_agg(name, ', '), '') FROM pg_settings WHERE pending_restart AND name IN ({})",
        quoted.join(", ")
    );
    server
        .execute(what, "SELECT pg_sleep(0.3)")
        .and_then(|()| server.value(what, &sql))
        .map(Option::unwrap_or_default)
        .map_err(|e| e.to_string())
}

fn foreign_words(now: Option<&str>) -> String {
    format!(
        "someone else set it to {} since; --force puts it back all the same",
        now.unwrap_or("(not set)")
    )
}

fn describe(server: &ServerRef) -> String {
    match server {
        ServerRef::Sandbox { name, .. } => format!("sandbox {name}"),
        ServerRef::Address { conninfo, .. } => conninfo.clone(),
    }
}

fn server_line(name: &str, action: &str, error: &str) -> PutBack {
    PutBack {
        knob: "server".into(),
        place: name.to_owned(),
        was: "running".into(),
        set_to: String::new(),
        outcome: Outcome::Failed,
        detail: Some(format!("{action} it failed: {error}")),
    }
}
