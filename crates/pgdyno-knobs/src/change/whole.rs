//! Applying what is neither a parameter nor a kernel file: tables, the WAL's place, swap,
//! processors, files of our own. Each is saved and written as a whole.

use super::{Changer, Held, Phase, Touched};
use crate::applied::ApplyError;
use crate::catalogue::Setting;
use crate::reader::{Mechanism, is_same_state, wanted};
use crate::undo::{SavedState, UndoUnit, UndoUnitError, shown};
use std::fs::File;

/// A change of something that is neither a parameter nor a kernel file.
pub(super) struct WholeChange {
    setting: Setting,
    unit: UndoUnit,
}

impl Changer<'_> {
    /// What settings name of that.
    pub(super) fn whole_changes(&self, settings: &[Setting]) -> Result<Vec<WholeChange>, ApplyError> {
        let mut changes = Vec::new();
        for setting in settings {
            if let Mechanism::Whole(unit) = self.reader().mechanism(&setting.knob)? {
                changes.push(WholeChange {
                    setting: setting.clone(),
                    unit,
                });
            }
        }
        Ok(changes)
    }

    pub(super) fn moves_wal(&self, changes: &[WholeChange]) -> Result<bool, ApplyError> {
        let wal: Vec<&UndoUnit> = changes
            .iter()
            .map(|change| &change.unit)
            .chain(self.units.iter().map(|touched| &touched.unit))
            .filter(|unit| matches!(unit, UndoUnit::WalDirectory { .. }))
            .collect();
        for unit in wal {
            let now = unit.capture(self.reader().access())?;
            if self.whole_wanted(unit, changes, &now) != now {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state that an undo unit is to have: as named, else as it was before it was touched.
    fn whole_wanted(&self, unit: &UndoUnit, changes: &[WholeChange], now: &SavedState) -> SavedState {
        if let Some(change) = changes.iter().find(|change| change.unit == *unit) {
            return wanted(unit, &change.setting, now);
        }
        let touched = self.units.iter().find(|touched| touched.unit == *unit);
        match touched.map(|touched| &touched.first) {
            // Another first process has nothing of what was set: else `touched` has taken its CPUs
            // from before.
            Some(first) if !first.is_of_another_server(now) => first.clone(),
            _ => now.clone(),
        }
    }

    pub(super) fn change_wholes(&mut self, changes: &[WholeChange], phase: Phase) -> Result<(), ApplyError> {
        if phase == Phase::After {
            let named = |path: &str| {
                changes
                    .iter()
                    .any(|change| matches!(&change.unit, UndoUnit::Held { path: of } if of == path))
            };
            self.held.retain(|held| named(&held.path));
        }
        let mut units: Vec<(String, Option<String>, UndoUnit)> = Vec::new();
        for Touched { unit, .. } in &self.units {
            let is_whole = !matches!(unit, UndoUnit::Files { .. });
            if is_whole && !changes.iter().any(|change| change.unit == *unit) {
                units.push((unit.place(), None, unit.clone()));
            }
        }
        for WholeChange { setting, unit } in changes {
            units.push((setting.knob.clone(), Some(setting.value.clone()), unit.clone()));
        }
        for (name, value, unit) in units.into_iter().filter(|(_, _, unit)| unit.phase() == phase) {
            let before = unit.capture(self.reader().access())?;
            if let (UndoUnit::Held { path }, Some(value)) = (&unit, &value) {
                self.hold(&name, &unit, path, value)?;
                continue;
            }
            let wanted = self.whole_wanted(&unit, changes, &before);
            if is_same_state(&wanted, &before) {
                continue;
            }
            let value = value.unwrap_or_else(|| shown(&wanted));
            self.change_whole(&name, &unit, before, &wanted, &value)?;
        }
        Ok(())
    }

    fn change_whole(
        &mut self,
        name: &str,
        unit: &UndoUnit,
        before: SavedState,
        wanted: &SavedState,
        value: &str,
    ) -> Result<(), ApplyError> {
        let at = self.touched(unit, &before);
        self.units[at].last = None;
        let after = self.change(name, (unit, 0), before.clone(), Some(value), |this| {
            let access = this.reader().access();
            unit.write(access, &before, wanted)?;
            Ok(unit.capture(access)?)
        })?;
        self.units[at].last = Some(after);
        Ok(())
    }

    /// The place of an undo unit among those that were touched; `before` is its state if this is
    /// the first time, or the first of a server that was started again.
    pub(super) fn touched(&mut self, unit: &UndoUnit, before: &SavedState) -> usize {
        if let Some(at) = self.units.iter().position(|touched| touched.unit == *unit) {
            if self.units[at].first.is_of_another_server(before) {
                self.units[at].first = before.clone();
            }
            return at;
        }
        self.units.push(Touched {
            unit: unit.clone(),
            first: before.clone(),
            last: None,
            files: std::collections::BTreeSet::new(),
        });
        self.units.len() - 1
    }

    /// Opens the file and keeps it open: the kernel forgets the value when this process ends,
    /// however it ends.
    fn hold(&mut self, name: &str, unit: &UndoUnit, path: &str, value: &str) -> Result<(), ApplyError> {
        if self
            .held
            .iter()
            .any(|held| held.path == path && held.value == value)
        {
            return Ok(());
        }
        self.held.retain(|held| held.path != path);
        let open = self.change_held(name, unit, path, value)?;
        self.held.push(Held {
            path: path.to_owned(),
            value: value.to_owned(),
            _open: open,
        });
        Ok(())
    }

    fn change_held(
        &mut self,
        name: &str,
        unit: &UndoUnit,
        path: &str,
        value: &str,
    ) -> Result<File, ApplyError> {
        let mut opened = None;
        // Four bytes are taken for a binary number there, anything else for a hexadecimal one.
        let written = value
            .parse::<u32>()
            .map_or_else(|_| value.to_owned(), |n| format!("0x{n:08x}"));
        self.change(name, (unit, 0), SavedState::Held, Some(value), |this| {
            opened = Some(this.host.hold_raw(path, &written)?);
            Ok(SavedState::Held)
        })?;
        opened.ok_or_else(|| UndoUnitError::Mixed.into())
    }

    /// Writes a file of pgdyno's own, by which settings survive a reboot.
    pub fn write_own_file(&mut self, path: &str, content: &str) -> Result<(), ApplyError> {
        let unit = UndoUnit::OwnFile {
            path: path.to_owned(),
        };
        let before = unit.capture(self.reader().access())?;
        let wanted = SavedState::OwnFile(Some(content.to_owned()));
        if before == wanted {
            return Ok(());
        }
        self.change_whole(path, &unit, before, &wanted, content)
    }
}

#[cfg(test)]
mod tests;
