//! Restoring: undoes a journal backwards, is idempotent, and leaves alone what someone else changed since.

use crate::cell::{Captured, Cell, CellError, ServerRef, Site, in_auto_conf, shown};
use crate::journal::{Content, Entry, Journal, JournalError};
use crate::persist::set_at_boot;
use crate::reader::{DEFAULT, is_same_state};
use crate::wal;
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

/// A write as the journal announced it.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) knob: String,
    /// `None` removes a parameter.
    pub(crate) value: Option<String>,
    /// Which of the cell's files it went to.
    pub(crate) file: usize,
}

/// All changes to one cell.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) cell: Cell,
    pub(crate) first: Captured,
    /// States that are ours, before or after a write.
    pub(crate) known: Vec<Captured>,
    /// What was written, in order.
    pub(crate) writes: Vec<Written>,
    /// Whether the last write was announced and not said to be done: it may be done in part.
    pub(crate) cut_short: bool,
}

/// When a cell is put back.
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

/// What the boots since have made of the changes of a journal.
pub(crate) struct Boot {
    /// Whether the machine was booted anew.
    pub(crate) rebooted: bool,
    /// Kernel files and values that files of pgdyno's own, written by the journal, set at each boot.
    persisted: Vec<(String, String)>,
}

impl Boot {
    pub(crate) fn of(groups: &[Group], rebooted: bool) -> Boot {
        let own = groups
            .iter()
            .filter(|group| matches!(group.cell, Cell::OwnFile { .. }));
        let last = own.filter_map(|group| group.writes.last()?.value.as_deref());
        Boot {
            rebooted,
            persisted: last.flat_map(set_at_boot).collect(),
        }
    }

    /// Whether a boot sets something of the cell.
    pub(crate) fn sets(&self, cell: &Cell) -> bool {
        let Cell::Files { files, .. } = cell else {
            return false;
        };
        let mut paths = self.persisted.iter().map(|(path, _)| path);
        paths.any(|path| files.iter().any(|file| file.path == *path))
    }

    /// Whether a boot has set something of the cell, which is in the state `now`.
    pub(crate) fn has_set(&self, cell: Option<&Cell>, now: Option<&Captured>) -> bool {
        let (Some(Cell::Files { files, .. }), Some(Captured::Files(values))) = (cell, now) else {
            return false;
        };
        files.iter().zip(values).any(|(file, value)| {
            let mut persisted = self.persisted.iter();
            persisted.any(|(path, set)| *path == file.path && value.as_ref() == Some(set))
        })
    }
}

impl Group {
    fn turn(&self) -> Turn {
        match self.cell {
            Cell::Affinity { .. } | Cell::Held { .. } => Turn::First,
            // A group goes with the last of its processes, and a new one has limits of its own.
            Cell::Files { .. } if self.cell.is_of_group() => Turn::First,
            Cell::AutoConf { .. } | Cell::Parameter { .. } => Turn::Parameters,
            Cell::Files { .. } | Cell::Swap { .. } | Cell::OwnFile { .. } | Cell::WalDirectory { .. } => {
                Turn::Host
            }
            Cell::Storage { .. } => Turn::Last,
        }
    }

    /// Whether it goes with the files of its server.
    fn is_in_server(&self) -> bool {
        matches!(
            self.cell,
            Cell::AutoConf { .. } | Cell::Parameter { .. } | Cell::WalDirectory { .. } | Cell::Storage { .. }
        )
    }
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
        let of = |turn: Turn| groups.iter().rev().filter(move |group| group.turn() == turn);
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
        let server = reference.map(|reference| self.reach(reference));
        let touched = !groups.is_empty() || !content.purpose.server_was_running;
        lines.extend(of(Turn::First).flat_map(|group| self.undo_on_host(group, &boot)));
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
        for group in of(Turn::Parameters) {
            lines.extend(self.undo_server(group, reference));
        }
        lines.extend(of(Turn::Host).flat_map(|group| self.undo_on_host(group, &boot)));
        match server {
            Some(Ok(control)) if touched => {
                let names: Vec<&str> = of(Turn::Parameters)
                    .flat_map(|group| &group.writes)
                    .map(|write| write.knob.as_str())
                    .collect();
                let last: Vec<&Group> = of(Turn::Last).collect();
                lines.extend(self.restart(&control, content, &names, !last.is_empty()));
                let conninfo = self.conninfo_of(&control, reference);
                for group in last {
                    lines.push(match &conninfo {
                        Ok(conninfo) => self.undo_whole(group, Some(conninfo)),
                        Err(error) => group.line(Outcome::Failed, Some(error.clone())),
                    });
                }
                if let Control::Sandbox(sandbox) = &control
                    && !content.purpose.server_was_running
                    && let Err(error) = sandbox.stop()
                {
                    lines.push(server_line(
                        &sandbox.record().name,
                        "stopping",
                        &error.to_string(),
                    ));
                }
            }
            Some(Err(reason)) if groups.iter().any(Group::is_in_server) => {
                let name = reference.map(describe).unwrap_or_default();
                lines.push(server_line(&name, "reaching", &reason));
            }
            _ => {}
        }
        lines
    }

    pub(crate) fn rebooted(&self, content: &Content) -> bool {
        pgdyno_host::boot_id(self.host).is_ok_and(|boot_id| boot_id != content.purpose.boot_id)
    }

    fn conninfo_of(&self, control: &Control, reference: Option<&ServerRef>) -> Result<Conninfo, String> {
        match (control, reference) {
            (Control::Sandbox(sandbox), _) => Ok(sandbox.conninfo()),
            (_, Some(ServerRef::Address { conninfo, .. })) => {
                self.resolve(conninfo).map_err(|e| e.to_string())
            }
            _ => Err("the journal names no server".to_owned()),
        }
    }

    /// How a journal's server is asked now; `None` for one that names none.
    pub(crate) fn asked(&self, content: &Content) -> Option<Result<Conninfo, String>> {
        let reference = content.purpose.server.as_ref()?;
        Some(
            self.reach(reference)
                .and_then(|control| self.conninfo_of(&control, Some(reference))),
        )
    }

    /// Puts back what is saved as a whole.
    fn undo_whole(&self, group: &Group, conninfo: Option<&Conninfo>) -> PutBack {
        let site = Site {
            host: self.host,
            conninfo,
        };
        if matches!(group.cell, Cell::Held { .. }) {
            let detail = "it has ended with the process that held it";
            return group.line(Outcome::Already, Some(detail.to_owned()));
        }
        let now = match group.cell.capture(site) {
            Ok(now) => now,
            Err(error) => return group.line(Outcome::Failed, Some(error.to_string())),
        };
        if let (
            Captured::Affinity { pid, started, .. },
            Captured::Affinity {
                pid: now,
                started: began,
                ..
            },
        ) = (&group.first, &now)
            && (pid, started) != (now, began)
        {
            let detail = "the server was started anew since, and its processes are bound to nothing of ours";
            return group.line(Outcome::Already, Some(detail.to_owned()));
        }
        let first = group.first_of_what_is_there(&now);
        // The first process is bound before all others, so that it is as before does not tell of them.
        if let Captured::Affinity { pid: Some(_), .. } = now
            && (group.is_ours(&now) || self.force)
            && let Err(error) = group.cell.write(site, &now, &first)
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
        if !group.is_ours(&now) && !self.force {
            return group.line(Outcome::Left, Some(foreign_words(Some(&shown(&now)))));
        }
        if let Err(error) = group.cell.write(site, &now, &first) {
            return group.line(Outcome::Failed, Some(error.to_string()));
        }
        match group.cell.capture(site) {
            Ok(after) if is_same_state(&after, &first) => done(Outcome::Restored),
            Ok(after) => group.line(Outcome::Failed, Some(format!("it is {} now", shown(&after)))),
            Err(error) => group.line(Outcome::Failed, Some(error.to_string())),
        }
    }

    /// What a move of the WAL that was cut short has left where it was going to.
    fn remove_remains(&self, group: &Group) -> Result<(), CellError> {
        let Cell::WalDirectory { data } = &group.cell else {
            return Ok(());
        };
        for write in &group.writes {
            if let Some(path) = write.value.as_deref().filter(|path| path.starts_with('/')) {
                wal::remove_remains(data, Path::new(path))?;
            }
        }
        Ok(())
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

    fn undo_on_host(&self, group: &Group, boot: &Boot) -> Vec<PutBack> {
        let today = group.cell.today(self.host);
        let now = today.as_ref().and_then(|cell| cell.capture(self.site()).ok());
        let set_again = boot.rebooted && boot.has_set(today.as_ref(), now.as_ref());
        if boot.rebooted && group.cell.lives_in_kernel() && !set_again {
            let detail = "a reboot has undone it: what lives only in the kernel is gone";
            return group.lines(Outcome::Already, Some(detail));
        }
        if !matches!(group.cell, Cell::Files { .. }) {
            return vec![self.undo_whole(group, None)];
        }
        match today {
            Some(cell) => {
                let group = Group {
                    cell,
                    ..group.clone()
                };
                self.undo_kernel(&group, set_again)
            }
            None => {
                let detail = "the device is gone, and what was set in it with it";
                group.lines(Outcome::Already, Some(detail))
            }
        }
    }

    /// Brings the server to the life it had, with the settings it had; `names` are the parameters put back. One that was
    /// stopped is started all the same where there is something to ask of it.
    fn restart(&self, control: &Control, content: &Content, names: &[&str], is_wanted: bool) -> Vec<PutBack> {
        let Some(reference) = &content.purpose.server else {
            return Vec::new();
        };
        let done = match (control, reference) {
            (Control::Sandbox(_), _) if !content.purpose.server_was_running && !is_wanted => Ok(()),
            (Control::Sandbox(sandbox), _) => start_afresh(sandbox),
            (_, ServerRef::Address { conninfo, .. }) if !names.is_empty() => self
                .resolve(conninfo)
                .map_err(|e| e.to_string())
                .and_then(|conninfo| match reload_at(&conninfo, names) {
                    Ok(waits) if waits.is_empty() => Ok(()),
                    // It waits for a restart, or is down with what was just taken back.
                    _ if control.can_restart() => control.start().map_err(|e| e.to_string()),
                    Ok(names) => Err(format!(
                        "{names} wait for a restart, which nobody allowed pgdyno to do"
                    )),
                    Err(error) => Err(error),
                }),
            _ => Ok(()),
        };
        match done {
            Ok(()) => Vec::new(),
            Err(error) => vec![server_line(&describe(reference), "starting", &error)],
        }
    }

    fn site(&self) -> Site<'_> {
        Site {
            host: self.host,
            conninfo: None,
        }
    }

    /// `set_again`: its value comes from a file of pgdyno's own, by which it was set at boot.
    fn undo_kernel(&self, group: &Group, set_again: bool) -> Vec<PutBack> {
        let site = self.site();
        let now = match group.cell.capture(site) {
            Ok(now) => now,
            Err(error) => return group.lines(Outcome::Failed, Some(&error.to_string())),
        };
        if now == group.first {
            return group.lines(Outcome::Already, None);
        }
        if matches!(&now, Captured::Files(values) if values.iter().all(Option::is_none)) {
            let detail = "it is not there any more, and what was set in it went with it";
            return group.lines(Outcome::Already, Some(detail));
        }
        if !group.is_ours(&now) && !set_again && !self.force {
            return group.lines(Outcome::Left, Some(&foreign_words(Some(&shown(&now)))));
        }
        for (path, value) in group.cell.writes_back(&group.first) {
            if let Err(error) = self.host.write_raw(&path, &value) {
                return group.lines(Outcome::Failed, Some(&error.to_string()));
            }
        }
        match group.cell.capture(site) {
            Ok(after) if after == group.first => group.lines(Outcome::Restored, None),
            Ok(after) => group.lines(
                Outcome::Failed,
                Some(&format!("the kernel made {} of it", shown(&after))),
            ),
            Err(error) => group.lines(Outcome::Failed, Some(&error.to_string())),
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
            _ => vec![group.line(Outcome::Failed, Some(CellError::Mixed.to_string()))],
        }
    }

    fn undo_auto_conf(&self, group: &Group, data: &Path, first: &str) -> Vec<PutBack> {
        let now = match group.cell.capture(self.site()) {
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
        let names: BTreeSet<&String> = group.writes.iter().map(|write| &write.knob).collect();
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
pub(crate) const WHOLE_FILE: &str = "postgresql.auto.conf";

impl Group {
    pub(crate) fn line(&self, outcome: Outcome, detail: Option<String>) -> PutBack {
        let knob = self.names().into_iter().next().unwrap_or_default();
        self.line_of(&knob, outcome, detail)
    }

    /// A line for each knob of the cell.
    fn lines(&self, outcome: Outcome, detail: Option<&str>) -> Vec<PutBack> {
        let names = self.names().into_iter().rev();
        names
            .map(|knob| self.line_of(&knob, outcome, detail.map(str::to_owned)))
            .collect()
    }

    fn line_of(&self, knob: &str, outcome: Outcome, detail: Option<String>) -> PutBack {
        PutBack {
            place: self.place_of(knob),
            was: if self.names().len() <= 1 && self.file_of(knob) == 0 {
                shown(&self.first)
            } else {
                self.shown_of(knob, &self.first)
            },
            set_to: self.last_write(knob).unwrap_or_default(),
            knob: knob.to_owned(),
            outcome,
            detail,
        }
    }

    /// The knobs that were set, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for write in &self.writes {
            if !names.contains(&write.knob) {
                names.push(write.knob.clone());
            }
        }
        names
    }

    /// Which of the cell's files is a knob's own.
    fn file_of(&self, knob: &str) -> usize {
        let write = self.writes.iter().find(|write| write.knob == knob);
        write.map_or(0, |write| write.file)
    }

    /// The place of a knob's own file.
    pub(crate) fn place_of(&self, knob: &str) -> String {
        match &self.cell {
            Cell::Files { files, .. } => files.get(self.file_of(knob)).map(|file| file.path.clone()),
            _ => None,
        }
        .unwrap_or_else(|| self.cell.place())
    }

    /// What a knob is in a state of the cell; both, of counterparts.
    pub(crate) fn shown_of(&self, knob: &str, state: &Captured) -> String {
        match (&self.cell, state) {
            // What the kernel keeps beside it is not what was asked for.
            (
                Cell::Files {
                    counterparts: false, ..
                },
                Captured::Files(values),
            ) => values
                .get(self.file_of(knob))
                .cloned()
                .flatten()
                .unwrap_or_else(|| "-".to_owned()),
            _ => shown(state),
        }
    }

    /// The state from before, of those of its parts that are still there: partitions come and go.
    fn first_of_what_is_there(&self, now: &Captured) -> Captured {
        match (&self.first, now) {
            (Captured::Storage(first), Captured::Storage(now)) => {
                let rows = now.iter().map(|(what, value)| {
                    let before = first.iter().find(|(other, _)| other == what);
                    before.cloned().unwrap_or_else(|| (what.clone(), value.clone()))
                });
                Captured::Storage(rows.collect())
            }
            (first, _) => first.clone(),
        }
    }

    /// The last value that was set: going back to the one from before, in between trials, is none of interest.
    pub(crate) fn last_write(&self, knob: &str) -> Option<String> {
        let from_before = |value: &String| match &self.first {
            Captured::Files(values) => values
                .get(self.file_of(knob))
                .is_some_and(|first| first.as_ref() == Some(value)),
            Captured::AutoConf(text) => autoconf::parse(text).get(knob) == Some(value),
            Captured::Parameter(first) => first.as_ref() == Some(value),
            first => shown(first) == *value,
        };
        let written = self.writes.iter().rev().filter(|write| write.knob == knob);
        let last = written
            .filter_map(|write| write.value.clone())
            .find(|value| !from_before(value));
        match &self.cell {
            Cell::OwnFile { .. } => last.map(|text| shown(&Captured::OwnFile(Some(text)))),
            _ => last,
        }
    }

    /// A state that the journal knows, or one that a write that was cut short can have made.
    pub(crate) fn is_ours(&self, now: &Captured) -> bool {
        if self.known.iter().any(|known| is_same_state(known, now)) {
            return true;
        }
        let written = |value: &Option<String>| self.writes.iter().any(|write| write.value == *value);
        let now = match now {
            Captured::Files(now) => now,
            Captured::Parameter(value) => return self.cut_short && written(value),
            Captured::Storage(rows) => return rows.iter().all(|row| self.is_our_row(row)),
            // Between two states while it moves; else where it was to go.
            Captured::WalDirectory(Some(path)) if path.as_os_str().is_empty() => return self.cut_short,
            // A file that is not in use yet, or was not in use any more when the machine went down.
            Captured::Swap(Some(0)) => return true,
            // A file is taken away before it is made anew.
            Captured::Swap(None) => return self.cut_short,
            Captured::WalDirectory(_) | Captured::Swap(_) | Captured::Affinity { .. } => {
                return self.cut_short && written(&Some(shown(now)));
            }
            Captured::OwnFile(content) => return self.cut_short && written(content),
            Captured::AutoConf(_) | Captured::Held => return false,
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

    /// A part of a table that is as the journal knows it, or as a write that was cut short has made it; or a new one.
    fn is_our_row(&self, row: &(String, Option<String>)) -> bool {
        let rows = |state: &Captured| match state {
            Captured::Storage(rows) => rows.clone(),
            _ => Vec::new(),
        };
        let is_known = self.known.iter().any(|known| rows(known).contains(row));
        let is_new = !rows(&self.first).iter().any(|(what, _)| *what == row.0);
        let is_written = self.cut_short
            && self
                .writes
                .iter()
                .any(|write| write.value.as_deref().filter(|value| *value != DEFAULT) == row.1.as_deref());
        is_known || is_new || is_written
    }

    /// A number from before up to what was to be written: a large write can be left half done, and the kernel rounds.
    fn lies_between(&self, before: Option<String>, now: Option<&String>) -> bool {
        let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
        let last = self.writes.last().and_then(|write| write.value.as_ref());
        match (number(before.as_ref()), number(now), number(last)) {
            (Some(before), Some(now), Some(last)) => (before.min(last)..=before.max(last)).contains(&now),
            _ => false,
        }
    }

    /// Settings in the file that are neither as before nor as any of our writes left them.
    pub(crate) fn foreign(&self, first: &str, now: &str) -> BTreeMap<String, Option<String>> {
        let (first, now) = (autoconf::parse(first), autoconf::parse(now));
        let names: BTreeSet<&String> = first.keys().chain(now.keys()).collect();
        names
            .into_iter()
            .filter(|name| {
                let value = now.get(*name);
                let ours = self
                    .writes
                    .iter()
                    .any(|write| write.knob == **name && write.value.as_ref() == value);
                value != first.get(*name) && !ours
            })
            .map(|name| (name.clone(), now.get(name).cloned()))
            .collect()
    }
}

/// The file from before, with the settings that someone else has changed since as that one left them.
pub(crate) fn merged(first: &str, foreign: &BTreeMap<String, Option<String>>) -> String {
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

impl Content {
    /// What a later journal has set over this one's: put back alone, this one would be taken for overwritten by someone else, and
    /// its values from before would be lost with it.
    pub fn covered_by(&self, later: &Content) -> Option<String> {
        let (ours, theirs) = (groups_of(&self.entries), groups_of(&later.entries));
        ours.iter().find_map(|group| {
            let other = theirs.iter().find(|other| other.cell == group.cell)?;
            let mut names = group.names().into_iter();
            match group.cell {
                // A file that is put back parameter by parameter.
                Cell::AutoConf { .. } => names.find(|name| other.names().contains(name)),
                _ => names.next(),
            }
        })
    }
}

pub(crate) fn groups_of(entries: &[Entry]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<usize> = None;
    for entry in entries {
        match entry {
            Entry::Intent {
                knob,
                cell,
                before,
                writing,
                file,
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
                groups[at].writes.push(Written {
                    knob: knob.clone(),
                    value: writing.clone(),
                    file: *file,
                });
                groups[at].cut_short = true;
                last = Some(at);
            }
            Entry::Done { after } => {
                if let Some(at) = last.take() {
                    groups[at].known.push(after.clone());
                    groups[at].cut_short = false;
                }
            }
            Entry::Open(_) | Entry::Kept(_) | Entry::Confirmed | Entry::Closed => {}
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
        "someone else set it to {} since, and that stays (restore --force puts it back all the same)",
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
