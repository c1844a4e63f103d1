//! Tags and notes of experiments: words to find them by, and what people have to say about them.

use super::{Store, StoreError, now_unix_ms};
use serde::Serialize;

/// Longest tag, in characters.
pub const TAG_CHARS_MAX: usize = 40;
/// Longest note, in characters.
pub const NOTE_CHARS_MAX: usize = 10_000;

/// A note on an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Note {
    /// Number in this store, from 1.
    pub id: i64,
    /// Time at which it was written, since 1970.
    pub written_unix_ms: u64,
    /// Text as it was written, at most 10,000 characters.
    pub text: String,
}

/// Twice is once: a note of that instant with that text is kept once.
pub(super) const INSERT_NOTE: &str = "
INSERT INTO note (experiment_id, written_unix_ms, text) SELECT $1, $2, $3 WHERE NOT EXISTS
(SELECT 1 FROM note WHERE experiment_id = $1 AND written_unix_ms = $2 AND text = $3)";
pub(super) const INSERT_TAG: &str =
    "INSERT INTO tag (experiment_id, word) VALUES ($1, $2) ON CONFLICT DO NOTHING";

impl Store {
    /// Tags an experiment; `false` where it has that tag already.
    pub fn tag(&mut self, experiment: i64, word: &str) -> Result<bool, StoreError> {
        tag_is_fine(word).map_err(StoreError::Words)?;
        self.experiment_is_there(experiment)?;
        let added = self
            .database()
            .execute(INSERT_TAG, &[experiment.into(), word.into()])?;
        Ok(added > 0)
    }

    /// Takes a tag from an experiment; `false` where it has none such.
    pub fn untag(&mut self, experiment: i64, word: &str) -> Result<bool, StoreError> {
        self.experiment_is_there(experiment)?;
        let removed = self.database().execute(
            "DELETE FROM tag WHERE experiment_id = $1 AND word = $2",
            &[experiment.into(), word.into()],
        )?;
        Ok(removed > 0)
    }

    /// The tags of an experiment by the alphabet.
    pub fn tags(&self, experiment: i64) -> Result<Vec<String>, StoreError> {
        self.experiment_is_there(experiment)?;
        self.database().rows(
            "SELECT word FROM tag WHERE experiment_id = $1 ORDER BY word",
            &[experiment.into()],
            |row| row.text(0),
        )
    }

    /// Adds a note to an experiment and returns the note's number.
    pub fn note(&mut self, experiment: i64, text: &str) -> Result<i64, StoreError> {
        note_is_fine(text).map_err(StoreError::Words)?;
        self.experiment_is_there(experiment)?;
        let values = [experiment.into(), now_unix_ms().into(), text.into()];
        self.database().execute(INSERT_NOTE, &values)?;
        let sql = "SELECT max(id) FROM note WHERE experiment_id = $1 AND written_unix_ms = $2 AND text = $3";
        self.database().number(sql, &values)
    }

    /// Removes a note from an experiment; `false` where it has none of this number.
    pub fn remove_note(&mut self, experiment: i64, note: i64) -> Result<bool, StoreError> {
        self.experiment_is_there(experiment)?;
        let sql = "DELETE FROM note WHERE experiment_id = $1 AND id = $2";
        let removed = self.database().execute(sql, &[experiment.into(), note.into()])?;
        Ok(removed > 0)
    }

    /// The notes on an experiment, the oldest first.
    pub fn notes(&self, experiment: i64) -> Result<Vec<Note>, StoreError> {
        self.experiment_is_there(experiment)?;
        self.database().rows(
            "SELECT id, written_unix_ms, text FROM note WHERE experiment_id = $1 ORDER BY id",
            &[experiment.into()],
            |row| {
                Ok(Note {
                    id: row.int(0)?,
                    written_unix_ms: row.count(1)?,
                    text: row.text(2)?,
                })
            },
        )
    }

    fn experiment_is_there(&self, id: i64) -> Result<(), StoreError> {
        let sql = "SELECT count(*) FROM experiment WHERE id = $1";
        match self.database().number(sql, &[id.into()])? {
            0 => Err(StoreError::Unknown {
                place: self.place().clone(),
                id,
            }),
            _ => Ok(()),
        }
    }
}

/// A tag is a word that a shell leaves alone.
pub(super) fn tag_is_fine(word: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let count = word.chars().count();
    if (1..=TAG_CHARS_MAX).contains(&count) && word.chars().all(fits) {
        return Ok(());
    }
    let start: String = word.chars().take(TAG_CHARS_MAX).collect();
    Err(format!(
        "{start:?} is not a tag: expected 1 to {TAG_CHARS_MAX} characters of A-Z, a-z, 0-9, dot, dash and underscore"
    ))
}

pub(super) fn note_is_fine(text: &str) -> Result<(), String> {
    let count = text.chars().count();
    match text.trim().is_empty() {
        true => Err("the note is empty".to_owned()),
        false if text.contains('\0') => {
            Err("the note holds the character U+0000, which is not kept".to_owned())
        }
        false if count > NOTE_CHARS_MAX => Err(format!(
            "the note has {count} characters; at most {NOTE_CHARS_MAX} are kept"
        )),
        false => Ok(()),
    }
}
