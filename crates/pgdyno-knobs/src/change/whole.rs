//! Applying what is neither a parameter nor a kernel file: tables, the WAL's place, swap, processors, files of our own. Each
//! is saved and written as a whole.

use super::{Changer, Held, Phase, Touched};
use crate::applied::ApplyError;
use crate::catalogue::Setting;
use crate::cell::{Captured, Cell, CellError, shown};
use crate::reader::{Means, is_same_state, wanted};
use std::fs::File;

/// A change of something that is neither a parameter nor a kernel file.
pub(super) struct WholeChange {
    setting: Setting,
    cell: Cell,
}

impl Changer<'_> {
    /// What settings name of that.
    pub(super) fn whole_changes(&self, settings: &[Setting]) -> Result<Vec<WholeChange>, ApplyError> {
        let mut changes = Vec::new();
        for setting in settings {
            if let Means::Whole(cell) = self.reader().means(&setting.knob)? {
                changes.push(WholeChange {
                    setting: setting.clone(),
                    cell,
                });
            }
        }
        Ok(changes)
    }

    pub(super) fn moves_wal(&self, changes: &[WholeChange]) -> Result<bool, ApplyError> {
        let wal: Vec<&Cell> = changes
            .iter()
            .map(|change| &change.cell)
            .chain(self.cells.iter().map(|touched| &touched.cell))
            .filter(|cell| matches!(cell, Cell::WalDirectory { .. }))
            .collect();
        for cell in wal {
            let now = cell.capture(self.reader().site())?;
            if self.whole_wanted(cell, changes, &now) != now {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state that a cell is to have: as named, else as it was before it was touched.
    fn whole_wanted(&self, cell: &Cell, changes: &[WholeChange], now: &Captured) -> Captured {
        if let Some(change) = changes.iter().find(|change| change.cell == *cell) {
            return wanted(cell, &change.setting, now);
        }
        let touched = self.cells.iter().find(|touched| touched.cell == *cell);
        match touched.map(|touched| &touched.first) {
            // Another first process has nothing of what was set: else `touched` has taken its CPUs from before.
            Some(first) if !first.is_of_another_server(now) => first.clone(),
            _ => now.clone(),
        }
    }

    pub(super) fn change_wholes(&mut self, changes: &[WholeChange], phase: Phase) -> Result<(), ApplyError> {
        if phase == Phase::After {
            let named = |path: &str| {
                changes
                    .iter()
                    .any(|change| matches!(&change.cell, Cell::Held { path: of } if of == path))
            };
            self.held.retain(|held| named(&held.path));
        }
        let mut cells: Vec<(String, Option<String>, Cell)> = Vec::new();
        for Touched { cell, .. } in &self.cells {
            let is_whole = !matches!(cell, Cell::Files { .. });
            if is_whole && !changes.iter().any(|change| change.cell == *cell) {
                cells.push((cell.place(), None, cell.clone()));
            }
        }
        for WholeChange { setting, cell } in changes {
            cells.push((setting.knob.clone(), Some(setting.value.clone()), cell.clone()));
        }
        for (name, value, cell) in cells.into_iter().filter(|(_, _, cell)| cell.phase() == phase) {
            let before = cell.capture(self.reader().site())?;
            if let (Cell::Held { path }, Some(value)) = (&cell, &value) {
                self.hold(&name, &cell, path, value)?;
                continue;
            }
            let wanted = self.whole_wanted(&cell, changes, &before);
            if is_same_state(&wanted, &before) {
                continue;
            }
            let value = value.unwrap_or_else(|| shown(&wanted));
            self.change_whole(&name, &cell, before, &wanted, &value)?;
        }
        Ok(())
    }

    fn change_whole(
        &mut self,
        name: &str,
        cell: &Cell,
        before: Captured,
        wanted: &Captured,
        value: &str,
    ) -> Result<(), ApplyError> {
        let at = self.touched(cell, &before);
        self.cells[at].last = None;
        let after = self.change(name, (cell, 0), before.clone(), Some(value), |this| {
            let site = this.reader().site();
            cell.write(site, &before, wanted)?;
            Ok(cell.capture(site)?)
        })?;
        self.cells[at].last = Some(after);
        Ok(())
    }

    /// The place of a cell among those that were touched; `before` is its state if this is the first time, or the first of a
    /// server that was started again.
    pub(super) fn touched(&mut self, cell: &Cell, before: &Captured) -> usize {
        if let Some(at) = self.cells.iter().position(|touched| touched.cell == *cell) {
            if self.cells[at].first.is_of_another_server(before) {
                self.cells[at].first = before.clone();
            }
            return at;
        }
        self.cells.push(Touched {
            cell: cell.clone(),
            first: before.clone(),
            last: None,
            files: std::collections::BTreeSet::new(),
        });
        self.cells.len() - 1
    }

    /// Opens the file and keeps it open: the kernel forgets the value when this process ends, however it ends.
    fn hold(&mut self, name: &str, cell: &Cell, path: &str, value: &str) -> Result<(), ApplyError> {
        if self
            .held
            .iter()
            .any(|held| held.path == path && held.value == value)
        {
            return Ok(());
        }
        self.held.retain(|held| held.path != path);
        let open = self.change_held(name, cell, path, value)?;
        self.held.push(Held {
            path: path.to_owned(),
            value: value.to_owned(),
            _open: open,
        });
        Ok(())
    }

    fn change_held(&mut self, name: &str, cell: &Cell, path: &str, value: &str) -> Result<File, ApplyError> {
        let mut opened = None;
        // Four bytes are taken for a binary number there, anything else for a hexadecimal one.
        let written = value
            .parse::<u32>()
            .map_or_else(|_| value.to_owned(), |n| format!("0x{n:08x}"));
        self.change(name, (cell, 0), Captured::Held, Some(value), |this| {
            opened = Some(this.host.hold_raw(path, &written)?);
            Ok(Captured::Held)
        })?;
        opened.ok_or_else(|| CellError::Mixed.into())
    }

    /// Writes a file of pgdyno's own, by which settings survive a reboot.
    pub fn write_own_file(&mut self, path: &str, content: &str) -> Result<(), ApplyError> {
        let cell = Cell::OwnFile {
            path: path.to_owned(),
        };
        let before = cell.capture(self.reader().site())?;
        let wanted = Captured::OwnFile(Some(content.to_owned()));
        if before == wanted {
            return Ok(());
        }
        self.change_whole(path, &cell, before, &wanted, content)
    }
}

#[cfg(test)]
mod tests;
