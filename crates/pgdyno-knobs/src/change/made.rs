//! Data on a server that pgdyno did not create: in the journal before it is made, so that every
//! restore drops it.

use super::Changer;
use crate::applied::ApplyError;
use crate::restore::{LEFT_OBJECTS, groups_of};
use crate::undo::{SavedState, UndoUnit, UndoUnitError};

/// Characters of the boot id that distinguish this machine's journals from those of another one.
const OF_BOOT_ID: usize = 8;

impl Changer<'_> {
    /// Has data made by `make`, which is given the mark that the comment on each object must end
    /// with; `what` says for people what is made. What carries the mark is dropped when everything
    /// is restored, in this process or in another after a crash.
    ///
    /// # Errors
    ///
    /// The journal's and the server's; that of `make` is the inner result.
    pub fn make_data<T>(
        &mut self,
        dataset: &str,
        what: &str,
        make: impl FnOnce(&str) -> T,
    ) -> Result<T, ApplyError> {
        let mark = self.mark()?;
        let unit = UndoUnit::Made {
            dataset: dataset.to_owned(),
            mark: mark.clone(),
        };
        let before = unit.capture(self.reader().access())?;
        let mut made = None;
        self.change(
            &format!("data.{dataset}"),
            (&unit, 0),
            before,
            Some(what),
            |this| {
                made = Some(make(&mark));
                Ok(unit.capture(this.reader().access())?)
            },
        )?;
        made.ok_or_else(|| UndoUnitError::Mixed.into())
    }

    /// Has a database made by `make`, which runs also where this journal's database of that name
    /// was dropped since. It is dropped when everything is restored.
    ///
    /// # Errors
    ///
    /// [`ApplyError::DatabaseThere`], the journal's and the server's; that of `make` is the inner
    /// result.
    pub fn make_database<E>(
        &mut self,
        name: &str,
        make: impl FnOnce() -> Result<(), E>,
    ) -> Result<Result<(), E>, ApplyError> {
        let unit = UndoUnit::Database {
            name: name.to_owned(),
        };
        let before = unit.capture(self.reader().access())?;
        if before == SavedState::Database(true) {
            let is_ours = groups_of(&self.journal.content()?.entries)
                .iter()
                .any(|group| group.unit == unit);
            return match is_ours {
                true => Ok(Ok(())),
                false => Err(ApplyError::DatabaseThere {
                    name: name.to_owned(),
                }),
            };
        }
        let mut made = Ok(());
        self.change(
            &format!("data.database.{name}"),
            (&unit, 0),
            before,
            Some("made"),
            |this| {
                made = make();
                Ok(unit.capture(this.reader().access())?)
            },
        )?;
        Ok(made)
    }

    /// Notes in the journal which objects the server has before `commands`, of which nothing is
    /// known, run on it. Restoring names what has been added, and drops nothing.
    ///
    /// # Errors
    ///
    /// The journal's and the server's.
    pub fn watch_objects(&mut self, commands: Vec<String>) -> Result<(), ApplyError> {
        let what = commands.join("; ");
        let unit = UndoUnit::Objects { commands };
        let before = unit.capture(self.reader().access())?;
        self.change(LEFT_OBJECTS, (&unit, 0), before, Some(&what), |_| {
            Ok(SavedState::Objects(Vec::new()))
        })?;
        Ok(())
    }

    /// Unique to the journal: its name, and the machine's boot.
    fn mark(&self) -> Result<String, ApplyError> {
        let boot_id = pgdyno_host::boot_id(self.host)?;
        let boot: String = boot_id
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(OF_BOOT_ID)
            .collect();
        let name = self.journal.path().file_stem().unwrap_or_default();
        Ok(format!("{}-{boot}", name.to_string_lossy()))
    }
}
