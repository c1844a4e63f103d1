//! What a journal has changed of one undo unit: its state before, what was written, and which
//! states are ours.

use super::{Outcome, Restored, UNDONE_BY_REBOOT, foreign_message};
use crate::journal::{Content, Entry};
use crate::reader::{DEFAULT, is_same_state};
use crate::undo::{SavedState, UndoUnit, shown};
use pgdyno_server::autoconf;
use std::collections::{BTreeMap, BTreeSet};

/// A write as the journal announced it.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) knob: String,
    /// Value that was written; `None` where a parameter was removed.
    pub(crate) value: Option<String>,
    /// Which of the undo unit's files it went to.
    pub(crate) file: usize,
    /// State of the undo unit before this write.
    before: SavedState,
}

/// All changes to one undo unit.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) unit: UndoUnit,
    pub(crate) first: SavedState,
    /// States that are ours, before or after a write.
    pub(crate) known: Vec<SavedState>,
    /// What was written, in order.
    pub(crate) writes: Vec<Written>,
    /// Whether the last write was announced and not said to be done: it may be done in part.
    pub(crate) cut_short: bool,
    /// Whether other groups have files of it too, and may have written them since.
    pub(crate) shares: bool,
    /// Whether its state before the first write is known: the line that has it may be lost.
    pub(crate) is_proven: bool,
}

/// The changes of a journal by undo unit, in the order in which the undo units were touched first.
pub(crate) fn groups_of(entries: &[Entry]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<usize> = None;
    for entry in entries {
        match entry {
            Entry::Intent {
                knob,
                unit,
                before,
                writing,
                file,
                again,
            } => {
                let at = groups
                    .iter()
                    .position(|group| group.unit == *unit)
                    .unwrap_or_else(|| {
                        groups.push(Group {
                            unit: unit.clone(),
                            first: before.clone(),
                            known: Vec::new(),
                            writes: Vec::new(),
                            cut_short: false,
                            shares: false,
                            is_proven: !again,
                        });
                        groups.len() - 1
                    });
                groups[at].known.push(before.clone());
                groups[at].writes.push(Written {
                    knob: knob.clone(),
                    value: writing.clone(),
                    file: *file,
                    before: before.clone(),
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
            // What was done after it may be of what it announced.
            Entry::Lost => last = None,
            Entry::Open(_)
            | Entry::Stopping
            | Entry::Started
            | Entry::Kept(_)
            | Entry::Confirmed
            | Entry::Closed => {}
        }
    }
    groups.into_iter().flat_map(Group::by_knob).collect()
}

impl Group {
    /// Where several files set the same ones again, each knob's with these: what somebody else does
    /// to one of them is no reason to leave another one.
    fn by_knob(self) -> Vec<Group> {
        let leads = match &self.unit {
            UndoUnit::Files { leads, .. } if *leads > 1 => *leads,
            _ => return vec![self],
        };
        let of_knob = |knob: String| {
            let own = self.file_of(&knob);
            let in_part = |file: usize| match file {
                _ if file == own => Some(0),
                _ if own < leads && file >= leads => Some(1 + file - leads),
                _ => None,
            };
            let its = || self.writes.iter().filter(|write| write.knob == knob);
            let mut first = self.first.clone();
            // What they set again is as it was before all of them.
            if let Some(write) = its().next().filter(|_| own < leads) {
                first.take(&write.before, own);
            }
            let part = |state: &SavedState| state.part(&self.unit, own);
            let writes = its().filter_map(|write| {
                Some(Written {
                    file: in_part(write.file)?,
                    ..write.clone()
                })
            });
            Group {
                unit: self.unit.part(own),
                first: part(&first),
                known: self.known.iter().map(part).collect(),
                writes: writes.collect(),
                // Whichever write it was, it may have moved what they share.
                cut_short: self.cut_short,
                shares: true,
                is_proven: self.is_proven,
            }
        };
        self.names().into_iter().map(of_knob).collect()
    }

    pub(crate) fn line(&self, outcome: Outcome, detail: Option<String>) -> Restored {
        let knob = self.names().into_iter().next().unwrap_or_default();
        self.line_of(&knob, outcome, detail)
    }

    /// A line for each knob of the undo unit.
    pub(super) fn lines(&self, outcome: Outcome, detail: Option<&str>) -> Vec<Restored> {
        let names = self.names().into_iter().rev();
        names
            .map(|knob| self.line_of(&knob, outcome, detail.map(str::to_owned)))
            .collect()
    }

    /// The same where only some of its files were written back: a boot has set others again, or
    /// somebody else has set them since.
    pub(super) fn lines_of_parts(
        &self,
        before: &SavedState,
        target: &SavedState,
        is_by_boot: bool,
    ) -> Vec<Restored> {
        let names = self.names().into_iter().rev();
        names
            .map(|knob| {
                let (file, is_first) = (self.file_of(&knob), *target == self.first);
                if is_first || before.value(file) != target.value(file) {
                    self.line_of(&knob, Outcome::Restored, None)
                } else if is_by_boot {
                    self.line_of(&knob, Outcome::Already, Some(UNDONE_BY_REBOOT.to_owned()))
                } else if self.owns(file, before.value(file)) {
                    self.line_of(&knob, Outcome::Already, None)
                } else {
                    let message = foreign_message(before.value(file));
                    self.line_of(&knob, Outcome::Left, Some(message))
                }
            })
            .collect()
    }

    fn line_of(&self, knob: &str, outcome: Outcome, detail: Option<String>) -> Restored {
        Restored {
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

    /// The same in one text.
    pub(super) fn knobs(&self) -> String {
        self.names().join(", ")
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

    /// Which of the undo unit's files is a knob's own.
    pub(crate) fn file_of(&self, knob: &str) -> usize {
        let write = self.writes.iter().find(|write| write.knob == knob);
        write.map_or(0, |write| write.file)
    }

    /// The place of a knob's own file.
    pub(crate) fn place_of(&self, knob: &str) -> String {
        match &self.unit {
            UndoUnit::Files { files, .. } => files.get(self.file_of(knob)).map(|file| file.path.clone()),
            _ => None,
        }
        .unwrap_or_else(|| self.unit.place())
    }

    /// What a knob is in a state of the undo unit; both, of counterparts.
    pub(crate) fn shown_of(&self, knob: &str, state: &SavedState) -> String {
        match (&self.unit, state) {
            // What the kernel keeps beside it is not what was asked for.
            (
                UndoUnit::Files {
                    counterparts: false, ..
                },
                SavedState::Files(values),
            ) => values
                .get(self.file_of(knob))
                .cloned()
                .flatten()
                .unwrap_or_else(|| "-".to_owned()),
            _ => shown(state),
        }
    }

    /// What was changed of what is there now: a server that was started again has CPUs of its own,
    /// and what they were before ours is where it was bound first. `None` where nothing of it was
    /// changed.
    pub(crate) fn of(&self, now: &SavedState) -> Option<Group> {
        let mut states = std::iter::once(&self.first).chain(&self.known);
        let first = states.find(|state| !state.is_of_another_server(now))?;
        Some(Group {
            first: first.clone(),
            ..self.clone()
        })
    }

    /// The state from before, of those of its parts that are still there: partitions come and go.
    pub(super) fn first_of_what_is_there(&self, now: &SavedState) -> SavedState {
        match (&self.first, now) {
            (SavedState::Storage(first), SavedState::Storage(now)) => {
                let rows = now.iter().map(|(what, value)| {
                    let before = first.iter().find(|(other, _)| other == what);
                    before.cloned().unwrap_or_else(|| (what.clone(), value.clone()))
                });
                SavedState::Storage(rows.collect())
            }
            (first, _) => first.clone(),
        }
    }

    /// The last value that was set: going back to the one from before, in between trials, is none
    /// of interest.
    pub(crate) fn last_write(&self, knob: &str) -> Option<String> {
        let from_before = |value: &String| match &self.first {
            SavedState::Files(values) => values
                .get(self.file_of(knob))
                .is_some_and(|first| first.as_ref() == Some(value)),
            SavedState::AutoConf(text) => autoconf::parse(text).get(knob) == Some(value),
            SavedState::Parameter(first) => first.as_ref() == Some(value),
            first => shown(first) == *value,
        };
        let written = self.writes.iter().rev().filter(|write| write.knob == knob);
        let last = written
            .filter_map(|write| write.value.clone())
            .find(|value| !from_before(value));
        match &self.unit {
            UndoUnit::OwnFile { .. } => last.map(|text| shown(&SavedState::OwnFile(Some(text)))),
            _ => last,
        }
    }

    /// A state that the journal knows, or one that a write that was cut short can have made.
    pub(crate) fn is_ours(&self, now: &SavedState) -> bool {
        let is_as_left =
            |known: &SavedState| is_same_state(known, now) || self.unit.has_released_pages(known, now);
        if self.known.iter().any(is_as_left) {
            return true;
        }
        let written = |value: &Option<String>| self.writes.iter().any(|write| write.value == *value);
        let now = match now {
            SavedState::Files(now) => now,
            SavedState::Parameter(value) => return self.cut_short && written(value),
            SavedState::Storage(rows) => return rows.iter().all(|row| self.is_our_row(row)),
            // Between two states while it moves; else where it was to go.
            SavedState::WalDirectory(Some(path)) if path.as_os_str().is_empty() => return self.cut_short,
            // A file that is not in use yet, or was not in use any more when the machine went down.
            SavedState::Swap(Some(file)) if file.bytes == 0 => return true,
            // A file is taken away before it is made again.
            SavedState::Swap(None) => return self.cut_short,
            SavedState::WalDirectory(_) | SavedState::Swap(_) | SavedState::Affinity { .. } => {
                return self.cut_short && written(&Some(shown(now)));
            }
            SavedState::OwnFile(content) => return self.cut_short && written(content),
            // The mark says whose they are; and of objects that are only listed nothing is written.
            SavedState::Made(_) | SavedState::Objects(_) => return true,
            // It was not there before, and has a name of pgdyno's.
            SavedState::Database(_) => return true,
            SavedState::AutoConf(_) | SavedState::Held => return false,
        };
        let (leads, counterparts) = match &self.unit {
            UndoUnit::Files {
                leads, counterparts, ..
            } => (*leads, *counterparts),
            _ => (1, false),
        };
        let owns = |(at, value): (usize, &Option<String>)| self.owns(at, value.as_deref());
        // A restore that was cut short has written the ratio once, where both were 0.
        let is_zero = |value: &Option<String>| value.as_deref() == Some("0");
        let was_zero = matches!(&self.first, SavedState::Files(first) if first.iter().all(is_zero));
        if counterparts
            && was_zero
            && now
                .split_last()
                .is_some_and(|(last, others)| last.as_deref() == Some("1") && others.iter().all(is_zero))
        {
            return true;
        }
        if (self.shares || self.is_of_apart()) && now.iter().enumerate().all(owns) {
            return true;
        }
        self.cut_short
            && now.iter().enumerate().all(|(at, value)| {
                written(value)
                    || self.knows(at, value.as_deref())
                    // The kernel zeroes a counterpart, sets companions again, and fills a pool page
                    // by page.
                    || (counterparts && value.as_deref() == Some("0"))
                    || (!counterparts && at >= leads)
                    || self.known.last().is_some_and(|known| self.is_between(known.value(at), value.as_deref()))
            })
    }

    /// Whether its files are none that the kernel keeps in step: each is what it is by itself.
    fn is_of_apart(&self) -> bool {
        let is_apart = matches!(
            &self.unit,
            UndoUnit::Files {
                counterparts: false,
                ..
            }
        );
        is_apart && !self.unit.is_pool()
    }

    /// Whether one of its files has a value of ours: what was announced may not have shown yet when
    /// the write was said to be done.
    fn owns(&self, file: usize, value: Option<&str>) -> bool {
        let is_write = |write: &Written| write.file == file && write.value.as_deref() == value;
        self.knows(file, value) || self.writes.iter().any(is_write)
    }

    /// The state from before where somebody else has set some of the files since that ours set
    /// again: those stay. `None` where what was set of ours is not as it was left.
    pub(crate) fn first_beside_others(&self, now: &SavedState) -> Option<SavedState> {
        let (UndoUnit::Files { leads, files, .. }, true) = (&self.unit, self.is_of_apart()) else {
            return None;
        };
        let (own, beside) = (0..*leads, *leads..files.len());
        own.clone().all(|at| self.owns(at, now.value(at))).then(|| {
            let mut target = self.first.clone();
            let theirs = beside.filter(|at| !self.owns(*at, now.value(*at)));
            theirs.for_each(|at| target.take(now, at));
            target
        })
    }

    /// Whether one of its files had the value before or after one of our writes.
    pub(super) fn knows(&self, file: usize, value: Option<&str>) -> bool {
        let mut states = self.known.iter().chain([&self.first]);
        states.any(|known| known.value(file) == value)
    }

    /// A part of a table that is as the journal knows it, or as a write that was cut short has made
    /// it; or a new one.
    fn is_our_row(&self, row: &(String, Option<String>)) -> bool {
        let rows = |state: &SavedState| match state {
            SavedState::Storage(rows) => rows.clone(),
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

    /// A number from before up to what was to be written: a large write can be left half done, and
    /// the kernel rounds.
    fn is_between(&self, before: Option<&str>, now: Option<&str>) -> bool {
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        let last = self.writes.last().and_then(|write| write.value.as_deref());
        match (number(before), number(now), number(last)) {
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

/// The file from before, with the settings that someone else has changed since as that one left
/// them.
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
    /// What a later journal has set over this one's: restored alone, this one would be taken for
    /// overwritten by someone else, and its values from before would be lost with it.
    pub fn covered_by(&self, later: &Content) -> Option<String> {
        let (ours, theirs) = (groups_of(&self.entries), groups_of(&later.entries));
        let keys = (&self.purpose.server_key, &later.purpose.server_key);
        let are_two_servers = matches!(keys, (Some(one), Some(other)) if one != other);
        ours.iter().find_map(|group| {
            // A parameter of that name is another server's too.
            let is_apart = matches!(group.unit, UndoUnit::Parameter { .. } | UndoUnit::Storage { .. })
                && are_two_servers;
            let other = theirs
                .iter()
                .find(|other| !is_apart && other.unit.meets(&group.unit))?;
            let mut names = group.names().into_iter();
            match group.unit {
                // A file that is restored parameter by parameter.
                UndoUnit::AutoConf { .. } => names.find(|name| other.names().contains(name)),
                _ => names.next(),
            }
        })
    }
}
