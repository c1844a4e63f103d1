//! Restoring: undoes a journal backwards, is idempotent, and leaves alone what someone else changed
//! since.

mod boot;
mod group;
mod server;

pub(crate) use boot::Boot;
pub(crate) use group::{Group, groups_of, merged};

use crate::catalogue::Catalogue;
use crate::journal::{Content, Entry, Journal, JournalError};
use crate::permitted::{not_mounted, refusal};
use crate::reader::is_same_state;
use crate::undo::{
    AUTO_CONF, SavedState, ServerRef, TargetAccess, UndoUnit, UndoUnitError, shown, shown_unlike, wal,
    write_of,
};
use pgdyno_host::HostAccess;
use pgdyno_sandbox::{Control, Down};
use pgdyno_server::{Conninfo, DatabaseObject, Lookup, OBJECTS_MAX, autoconf, drops_of};
use serde::{Deserialize, Serialize};
use server::{describe, server_line, stop};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Outcome of a knob at restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The value from before was written back.
    Restored,
    /// It was as before already.
    Already,
    /// Someone else has changed it since; it was left alone.
    Left,
    /// It could not be written back; the journal stays open.
    Failed,
}

/// One line of what was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    /// Id of the knob in the catalogue.
    pub knob: String,
    /// Where the value is: the path of a file, or a command such as "ALTER SYSTEM work_mem".
    pub place: String,
    /// Value before the first change of the journal.
    pub was: String,
    /// Last value that the journal's process set.
    pub set_to: String,
    /// Whether it was restored, or why not.
    pub outcome: Outcome,
    /// Why it was left or failed; `None` where there is no more to it.
    pub detail: Option<String>,
}

/// What a restorer does beyond the usual, and what not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreOptions {
    /// It overwrites what someone else changed since.
    pub overwrites: bool,
    /// The host boots: servers are down as everything is, and are started by what runs them, which
    /// may wait for the end of this.
    pub at_boot: bool,
}

/// Undoes the changes of journals on one host.
pub struct Restorer<'a> {
    /// The machine whose files are written.
    pub host: &'a dyn HostAccess,
    /// Places beside those in it are never written, whatever a journal says.
    pub catalogue: &'a Catalogue,
    /// For passwords of servers that are no sandbox.
    pub environment: Lookup<'a>,
    /// What it does beyond the usual, and what not.
    pub options: RestoreOptions,
    /// The server's connection, where it is known with its password: a journal holds none.
    pub conninfo: Option<Conninfo>,
}

/// When an undo unit is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// First, with the server as it is found.
    First,
    /// The server's parameters, while it is down if it can be.
    Parameters,
    /// The host's, while the server is down if it can be.
    Host,
    /// What is asked of a server that runs with its old parameters.
    Last,
}

impl Group {
    fn turn(&self) -> Turn {
        match self.unit {
            UndoUnit::Affinity { .. } | UndoUnit::Held { .. } => Turn::First,
            // A group goes with the last of its processes, and a new one has limits of its own.
            UndoUnit::Files { .. } if self.unit.is_of_group() => Turn::First,
            UndoUnit::AutoConf { .. } | UndoUnit::Parameter { .. } => Turn::Parameters,
            UndoUnit::Files { .. }
            | UndoUnit::Swap { .. }
            | UndoUnit::OwnFile { .. }
            | UndoUnit::WalDirectory { .. } => Turn::Host,
            UndoUnit::Storage { .. }
            | UndoUnit::Made { .. }
            | UndoUnit::Database { .. }
            | UndoUnit::Objects { .. } => Turn::Last,
        }
    }

    /// Whether it goes with the files of its server.
    fn is_in_server(&self) -> bool {
        matches!(
            self.unit,
            UndoUnit::AutoConf { .. }
                | UndoUnit::Parameter { .. }
                | UndoUnit::WalDirectory { .. }
                | UndoUnit::Storage { .. }
                | UndoUnit::Made { .. }
                | UndoUnit::Database { .. }
                | UndoUnit::Objects { .. }
        )
    }
}

/// Writes a line into the journal that is restored.
type Note<'a> = dyn FnMut(&Entry) -> Result<(), JournalError> + 'a;

/// Those whose turn it is, the last that was touched first.
fn of_turn(groups: &[Group], turn: Turn) -> impl Iterator<Item = &Group> {
    groups.iter().rev().filter(move |group| group.turn() == turn)
}

impl Restorer<'_> {
    /// Restores an open journal and closes it, unless something failed: then it stays for another
    /// attempt. Of a damaged one what it proves is restored, and its file is kept under another
    /// name; lines at the end say what is wrong with it.
    pub fn restore(&self, mut journal: Journal) -> Result<Vec<Restored>, JournalError> {
        let mut content = journal.content()?;
        let mut restored = self.undo(&content, &mut |entry| match content.damage.is_empty() {
            true => journal.append(entry),
            false => Ok(()),
        });
        if restored.iter().any(|line| line.outcome == Outcome::Failed) {
            return Ok(restored);
        }
        let refused = |group: &Group| self.refusal(group).map(|why| format!("{}: {why}", group.knobs()));
        content
            .damage
            .extend(groups_of(&content.entries).iter().filter_map(refused));
        let path = journal.path().display().to_string();
        if let Some(aside) = journal.close(&content)? {
            restored.push(Restored {
                knob: DAMAGED_JOURNAL.to_owned(),
                place: path,
                was: String::new(),
                set_to: String::new(),
                outcome: Outcome::Left,
                detail: Some(format!(
                    "{}; kept as {}",
                    content.damage.join("; "),
                    aside.display()
                )),
            });
        }
        Ok(restored)
    }

    /// Why what a journal says of an undo unit is not written: it is not a place of the
    /// catalogue's, or its state before is lost.
    pub(crate) fn refusal(&self, group: &Group) -> Option<String> {
        let lost = || {
            let reason = "the line with the value before the first change is lost, so it is not restored";
            (!group.is_proven).then(|| reason.to_owned())
        };
        refusal(&group.unit, self.catalogue).or_else(lost)
    }

    /// Undoes what is in a journal; `note` writes a line into it before the server is stopped, and
    /// when it is started again.
    fn undo(&self, content: &Content, note: &mut Note<'_>) -> Vec<Restored> {
        let groups = groups_of(&content.entries);
        // It may come later, and the journal waits for it.
        let mut absent: Vec<(Group, String)> = Vec::new();
        let mut there: Vec<Group> = Vec::new();
        for group in groups {
            match not_mounted(&group.unit).filter(|_| !self.options.overwrites) {
                Some(why) => absent.push((group, why)),
                None => there.push(group),
            }
        }
        let (groups, refused): (Vec<Group>, Vec<Group>) =
            there.into_iter().partition(|group| self.refusal(group).is_none());
        let lines = refused
            .iter()
            .flat_map(|group| group.lines(Outcome::Left, self.refusal(group).as_deref()));
        let mut all: Vec<Restored> = lines.collect();
        let of_absent = absent.iter();
        all.extend(of_absent.flat_map(|(group, why)| group.lines(Outcome::Failed, Some(why))));
        let why = absent.first().map(|(_, why)| why.as_str());
        all.extend(self.undo_groups(content, (groups, why), note));
        all
    }

    /// Without touching the server where its data directory is `absent`, for that reason.
    fn undo_groups(
        &self,
        content: &Content,
        (groups, absent): (Vec<Group>, Option<&str>),
        note: &mut Note<'_>,
    ) -> Vec<Restored> {
        let boot = Boot::of(&groups, self.rebooted(content));
        let reference = content.purpose.server.as_ref();
        if let Some(ServerRef::Sandbox { root, name }) = reference
            && !root.join(name).exists()
        {
            // Its server went with it; what was changed of the host is still to be undone.
            return groups
                .iter()
                .rev()
                .filter(|group| !group.is_in_server())
                .flat_map(|group| self.undo_on_host(group, &boot))
                .collect();
        }
        let mut lines = Vec::new();
        let closed = || {
            let key = content.purpose.server_key.as_deref();
            let why = reference.and_then(|reference| self.closed(reference, key));
            why.filter(|_| groups.iter().any(Group::is_in_server))
        };
        // A part of it would be restored only in a file, and the server would go on with what was
        // set.
        if let Some(why) = absent.map(str::to_owned).or_else(closed) {
            let (of_server, of_host): (Vec<Group>, Vec<Group>) =
                groups.into_iter().partition(Group::is_in_server);
            let failed = of_server
                .iter()
                .rev()
                .flat_map(|group| self.not_reached(group, &why));
            lines.extend(failed);
            let of_host = of_host.iter().rev();
            lines.extend(of_host.flat_map(|group| self.undo_on_host(group, &boot)));
            return lines;
        }
        let server = reference.map(|reference| self.reach(reference));
        let touched = !groups.is_empty() || !content.purpose.server_was_running;
        lines.extend(of_turn(&groups, Turn::First).flat_map(|group| self.undo_on_host(group, &boot)));
        let mut is_stopped = false;
        // What its owner has stopped stays so.
        let is_owners =
            |control: &Control| control.down() == Some(Down::Stopped) && !content.has_stopped_server();
        if let Some(Ok(control)) = &server
            && touched
            && self.needs_stop(control, &groups)
            && !is_owners(control)
        {
            let noted = match control.manager() {
                Some(_) => note(&Entry::Stopping).map_err(|e| e.to_string()),
                None => Ok(()),
            };
            match noted.and_then(|()| stop(control)) {
                Ok(stopped) => is_stopped = stopped,
                Err(error) => lines.extend(
                    reference.map(|of| server_line(&describe(of), &format!("stopping it failed: {error}"))),
                ),
            }
        }
        for group in of_turn(&groups, Turn::Parameters) {
            lines.extend(self.undo_server(group, reference));
        }
        lines.extend(of_turn(&groups, Turn::Host).flat_map(|group| self.undo_on_host(group, &boot)));
        match server {
            Some(Ok(control)) if touched || control.manager().is_some() => {
                let revived = self.revive(&control, content, &groups, is_stopped, note);
                if (is_stopped || content.has_stopped_server())
                    && control.manager().is_some()
                    && control.down().is_none()
                    && let Err(error) = note(&Entry::Started)
                {
                    let name = reference.map(describe).unwrap_or_default();
                    lines.push(server_line(
                        &name,
                        &format!("its start is not written down: {error}"),
                    ));
                }
                lines.extend(revived);
            }
            Some(Err(reason)) if groups.iter().any(Group::is_in_server) => {
                let name = reference.map(describe).unwrap_or_default();
                lines.push(server_line(&name, &format!("reaching it failed: {reason}")));
            }
            _ => {}
        }
        lines
    }

    /// Whether a server is down while its settings are restored: a sandbox, and another one where
    /// its WAL is moved back, or its huge pages are to leave their pool. While the host boots none
    /// is stopped.
    fn needs_stop(&self, control: &Control, groups: &[Group]) -> bool {
        let is_moved = |group: &Group| {
            let is_of_files = matches!(group.unit, UndoUnit::WalDirectory { .. }) || group.unit.is_pool();
            is_of_files
                && group
                    .unit
                    .capture(self.access())
                    .is_ok_and(|now| now != group.first)
        };
        match control {
            _ if self.options.at_boot => false,
            Control::Sandbox(_) => true,
            Control::Managed(_) => control.can_stop() && groups.iter().any(is_moved),
            Control::None => false,
        }
    }

    /// Starts or stops the server as it was, and restores what only a running server can.
    fn revive(
        &self,
        control: &Control,
        content: &Content,
        groups: &[Group],
        is_stopped: bool,
        note: &mut Note<'_>,
    ) -> Vec<Restored> {
        let names: Vec<&str> = of_turn(groups, Turn::Parameters)
            .flat_map(|group| &group.writes)
            .map(|write| write.knob.as_str())
            .collect();
        let last: Vec<&Group> = of_turn(groups, Turn::Last).collect();
        let data = groups.iter().find_map(|group| group.unit.data());
        let wanted = (is_stopped, !last.is_empty());
        let mut lines = self.restart(control, content, (&names, data), wanted, note);
        let conninfo = self.conninfo_of(control, content.purpose.server.as_ref());
        for group in last {
            lines.push(match &conninfo {
                Ok(conninfo) => self.undo_whole(group, Some(conninfo)),
                Err(error) => group.line(Outcome::Failed, Some(error.clone())),
            });
        }
        if let Control::Sandbox(_) = control
            && !content.purpose.server_was_running
            && let Err(error) = stop(control)
        {
            let name = content.purpose.server.as_ref().map(describe).unwrap_or_default();
            lines.push(server_line(&name, &format!("stopping it failed: {error}")));
        }
        lines
    }

    pub(crate) fn rebooted(&self, content: &Content) -> bool {
        let then = &content.purpose.boot_id;
        // Lost with the first line.
        !then.is_empty() && pgdyno_host::boot_id(self.host).is_ok_and(|boot_id| boot_id != *then)
    }

    /// Restores what is saved as a whole.
    fn undo_whole(&self, group: &Group, conninfo: Option<&Conninfo>) -> Restored {
        let access = TargetAccess {
            host: self.host,
            conninfo,
        };
        if matches!(group.unit, UndoUnit::Held { .. }) {
            let detail = "it has ended with the process that held it";
            return group.line(Outcome::Already, Some(detail.to_owned()));
        }
        let now = match group.unit.capture(access) {
            Ok(now) => now,
            Err(error) => return group.line(Outcome::Failed, Some(error.to_string())),
        };
        if let (SavedState::Objects(before), SavedState::Objects(now)) = (&group.first, &now) {
            return match left_of(before, now) {
                None => group.line(Outcome::Already, None),
                left => group.line(Outcome::Left, left),
            };
        }
        let Some(group) = &group.of(&now) else {
            let detail = "the server was started again since, and its processes are bound to nothing of ours";
            return group.line(Outcome::Already, Some(detail.to_owned()));
        };
        let first = group.first_of_what_is_there(&now);
        // The first process is bound before all others, so that it is as before proves nothing
        // about them.
        if let SavedState::Affinity { pid: Some(_), .. } = now
            && (group.is_ours(&now) || self.options.overwrites)
            && let Err(error) = group.unit.write(access, &now, &first)
        {
            return group.line(Outcome::Failed, Some(error.to_string()));
        }
        let done = |outcome: Outcome| match self.remove_remains(group) {
            Ok(()) => group.line(outcome, None),
            Err(error) => group.line(Outcome::Failed, Some(error.to_string())),
        };
        if is_same_state(&now, &first) {
            return done(Outcome::Already);
        }
        if !group.is_ours(&now) && !self.options.overwrites {
            return group.line(Outcome::Left, Some(foreign_message(Some(&shown(&now)))));
        }
        if let Err(error) = group.unit.write(access, &now, &first) {
            return group.line(Outcome::Failed, Some(error.to_string()));
        }
        match group.unit.capture(access) {
            Ok(after) if is_same_state(&after, &first) => done(Outcome::Restored),
            Ok(after) => group.line(Outcome::Failed, Some(format!("it is {} now", shown(&after)))),
            Err(error) => group.line(Outcome::Failed, Some(error.to_string())),
        }
    }

    /// What a move of the WAL that was cut short has left where it was going to.
    fn remove_remains(&self, group: &Group) -> Result<(), UndoUnitError> {
        let UndoUnit::WalDirectory { data } = &group.unit else {
            return Ok(());
        };
        for write in &group.writes {
            if let Some(path) = write.value.as_deref().filter(|path| path.starts_with('/')) {
                wal::remove_remains(data, Path::new(path))?;
            }
        }
        Ok(())
    }

    fn undo_on_host(&self, group: &Group, boot: &Boot) -> Vec<Restored> {
        let today = group.unit.today(self.host);
        let now = today.as_ref().and_then(|unit| unit.capture(self.access()).ok());
        let set_again = boot.has_set_some(today.as_ref(), now.as_ref());
        if boot.rebooted && group.unit.lives_in_kernel() && !set_again {
            return group.lines(Outcome::Already, Some(UNDONE_BY_REBOOT));
        }
        if !matches!(group.unit, UndoUnit::Files { .. }) {
            return vec![self.undo_whole(group, None)];
        }
        let left = self.undo_left_on_loop(group, today.as_ref());
        match today {
            Some(unit) => {
                let group = Group {
                    unit,
                    ..group.clone()
                };
                let mut lines = self.undo_kernel(&group, set_again.then_some(boot));
                lines.extend(left);
                lines
            }
            None if !left.is_empty() => left,
            None => {
                let detail = "the device is gone, and what was set in it with it";
                group.lines(Outcome::Already, Some(detail))
            }
        }
    }

    /// What a loop device has kept that shows another file by now, or none: the kernel keeps
    /// settings by its name.
    fn undo_left_on_loop(&self, group: &Group, today: Option<&UndoUnit>) -> Vec<Restored> {
        let UndoUnit::Files { files, .. } = &group.unit else {
            return Vec::new();
        };
        let is_left = files.iter().any(|file| file.is_left_on_loop(self.host));
        match group.unit.capture(self.access()) {
            Ok(now) if is_left && today != Some(&group.unit) && group.is_ours(&now) && now != group.first => {
                self.undo_kernel(group, None)
            }
            _ => Vec::new(),
        }
    }

    fn access(&self) -> TargetAccess<'_> {
        TargetAccess {
            host: self.host,
            conninfo: None,
        }
    }

    /// `boot`: it has set something of it again, by a file of pgdyno's own.
    fn undo_kernel(&self, group: &Group, boot: Option<&Boot>) -> Vec<Restored> {
        let access = self.access();
        let now = match group.unit.capture(access) {
            Ok(now) => now,
            Err(error) => return group.lines(Outcome::Failed, Some(&error.to_string())),
        };
        let boot = boot.filter(|_| !self.options.overwrites);
        let is_ours = group.is_ours(&now) || self.options.overwrites;
        let target = match boot {
            Some(boot) => Some(boot.without_its(group, &now)),
            None if is_ours || now == group.first => Some(group.first.clone()),
            None => group.first_beside_others(&now),
        };
        let lines_of_parts = |target: &SavedState| group.lines_of_parts(&now, target, boot.is_some());
        if let Some(target) = target.as_ref().filter(|target| **target == now) {
            return match boot.is_some() || is_ours || now == group.first {
                true => group.lines(Outcome::Already, None),
                false => lines_of_parts(target),
            };
        }
        if matches!(&now, SavedState::Files(values) if values.iter().all(Option::is_none)) {
            let detail = "it is not there any more, and what was set in it went with it";
            return group.lines(Outcome::Already, Some(detail));
        }
        let Some(target) = target else {
            let last = group.known.last().unwrap_or(&group.first);
            return group.lines(
                Outcome::Left,
                Some(&foreign_message(Some(&shown_unlike(&group.unit, &now, last)))),
            );
        };
        for (path, value) in group.unit.writes_back(&target) {
            let (path, text) = write_of(&path, &value);
            if let Err(error) = self.host.write_raw(path, &text) {
                return group.lines(Outcome::Failed, Some(&error.to_string()));
            }
        }
        match group.unit.capture_after(access, &target) {
            Ok(after) if after == target => lines_of_parts(&target),
            Ok(after) => group.lines(
                Outcome::Failed,
                Some(&format!(
                    "the kernel made {} of it",
                    shown_unlike(&group.unit, &after, &target)
                )),
            ),
            Err(error) => group.lines(Outcome::Failed, Some(&error.to_string())),
        }
    }

    fn undo_auto_conf(&self, group: &Group, data: &Path, first: &str) -> Vec<Restored> {
        let now = match group.unit.capture(self.access()) {
            Ok(SavedState::AutoConf(now)) => now,
            Ok(_) => return vec![group.line(Outcome::Failed, Some(UndoUnitError::Mixed.to_string()))],
            Err(error) => return vec![group.line(Outcome::Failed, Some(error.to_string()))],
        };
        let foreign = if self.options.overwrites {
            BTreeMap::new()
        } else {
            group.foreign(first, &now)
        };
        let content = merged(first, &foreign);
        let outcome = if now == content {
            Outcome::Already
        } else if let Err(error) = autoconf::replace(data, content.as_bytes()) {
            let error = UndoUnitError::AutoConf {
                path: autoconf::path_in(data),
                action: "written",
                source: error,
            };
            return vec![group.line(Outcome::Failed, Some(error.to_string()))];
        } else {
            Outcome::Restored
        };
        lines_of_file(group, first, |name| match foreign.get(name) {
            Some(value) => (Outcome::Left, Some(foreign_message(value.as_deref()))),
            None => (outcome, None),
        })
    }

    /// Lines for what is left as it is, as its server lets nobody in.
    fn not_reached(&self, group: &Group, why: &str) -> Vec<Restored> {
        match (&group.unit, &group.first) {
            (UndoUnit::AutoConf { .. }, SavedState::AutoConf(first)) => {
                lines_of_file(group, first, |_| (Outcome::Failed, Some(why.to_owned())))
            }
            _ => group.lines(Outcome::Failed, Some(why)),
        }
    }
}

/// A line for each parameter of postgresql.auto.conf.
fn lines_of_file(
    group: &Group,
    first: &str,
    outcome: impl Fn(&String) -> (Outcome, Option<String>),
) -> Vec<Restored> {
    let before = autoconf::parse(first);
    let names: BTreeSet<&String> = group.writes.iter().map(|write| &write.knob).collect();
    let not_set = || "(not set)".to_owned();
    names
        .into_iter()
        .filter(|name| *name != AUTO_CONF)
        .map(|name| {
            let (outcome, detail) = outcome(name);
            Restored {
                knob: name.clone(),
                place: group.unit.place(),
                was: before.get(name).cloned().unwrap_or_else(not_set),
                set_to: group.last_write(name).unwrap_or_else(not_set),
                outcome,
                detail,
            }
        })
        .collect()
}

/// The name under which a damaged journal is among what was restored.
pub const DAMAGED_JOURNAL: &str = "journal";

/// The knob of lines that name what commands of an experiment have left on a server that pgdyno did
/// not create.
pub const LEFT_OBJECTS: &str = "data.commands";
/// Objects named in a line, at most.
const NAMED_MAX: usize = 20;

/// What has been added to a server's objects since, if anything has.
fn left_of(before: &[DatabaseObject], now: &[DatabaseObject]) -> Option<String> {
    if before.len().max(now.len()) > OBJECTS_MAX {
        return Some(format!(
            "the server has more than {OBJECTS_MAX} objects, which are not compared: look for what its commands have left"
        ));
    }
    let before: BTreeSet<&DatabaseObject> = before.iter().collect();
    let new: Vec<DatabaseObject> = now
        .iter()
        .filter(|object| !before.contains(object))
        .cloned()
        .collect();
    let (named, more) = new.split_at(new.len().min(NAMED_MAX));
    let beyond = match more.len() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    let names: Vec<String> = named.iter().map(DatabaseObject::to_string).collect();
    (!new.is_empty()).then(|| {
        format!(
            "left on the server, and not there before: {}{beyond}; if nobody else has made it, drop it: {}",
            names.join(", "),
            drops_of(named).join(" ")
        )
    })
}

const UNDONE_BY_REBOOT: &str = "a reboot has reset it: the kernel does not keep it";

fn foreign_message(now: Option<&str>) -> String {
    format!(
        "someone else set it to {} since, and that stays (restore --force restores it all the same)",
        now.unwrap_or("(not set)")
    )
}

#[cfg(test)]
mod tests;
