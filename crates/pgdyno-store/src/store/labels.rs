//! Tags and notes of experiments: words to find them by, and what people have to say about them.

use super::{Store, StoreError, now_unix_ms};
use rusqlite::params;
use serde::Serialize;

/// Longest tag, in characters.
pub const TAG_CHARS_MAX: usize = 40;
/// Longest note, in characters.
pub const NOTE_CHARS_MAX: usize = 10_000;

/// A note on an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Number in this store.
    pub id: i64,
    /// When it was written.
    pub written_unix_ms: u64,
    /// What it says.
    pub text: String,
}

impl Store {
    /// Tags an experiment; `false` where it has that tag already.
    pub fn tag(&mut self, experiment: i64, word: &str) -> Result<bool, StoreError> {
        tag_is_fine(word).map_err(StoreError::Words)?;
        self.experiment_is_there(experiment)?;
        self.connection
            .execute(
                "INSERT OR IGNORE INTO tag (experiment_id, word) VALUES (?1, ?2)",
                params![experiment, word],
            )
            .map(|added| added > 0)
            .map_err(|e| self.failed("written", e))
    }

    /// Takes a tag from an experiment; `false` where it has none such.
    pub fn untag(&mut self, experiment: i64, word: &str) -> Result<bool, StoreError> {
        self.experiment_is_there(experiment)?;
        self.connection
            .execute(
                "DELETE FROM tag WHERE experiment_id = ?1 AND word = ?2",
                params![experiment, word],
            )
            .map(|removed| removed > 0)
            .map_err(|e| self.failed("written", e))
    }

    /// The tags of an experiment by the alphabet.
    pub fn tags(&self, experiment: i64) -> Result<Vec<String>, StoreError> {
        self.experiment_is_there(experiment)?;
        let read = || -> rusqlite::Result<Vec<String>> {
            self.connection
                .prepare("SELECT word FROM tag WHERE experiment_id = ?1 ORDER BY word")?
                .query_map([experiment], |row| row.get(0))?
                .collect()
        };
        read().map_err(|e| self.failed("read", e))
    }

    /// Adds a note to an experiment and returns the note's number.
    pub fn note(&mut self, experiment: i64, text: &str) -> Result<i64, StoreError> {
        note_is_fine(text).map_err(StoreError::Words)?;
        self.experiment_is_there(experiment)?;
        self.write(
            "INSERT INTO note (experiment_id, written_unix_ms, text) VALUES (?1, ?2, ?3)",
            params![experiment, now_unix_ms(), text],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Removes a note from an experiment; `false` where it has none of this number.
    pub fn remove_note(&mut self, experiment: i64, note: i64) -> Result<bool, StoreError> {
        self.experiment_is_there(experiment)?;
        self.connection
            .execute(
                "DELETE FROM note WHERE experiment_id = ?1 AND id = ?2",
                params![experiment, note],
            )
            .map(|removed| removed > 0)
            .map_err(|e| self.failed("written", e))
    }

    /// The notes on an experiment, the oldest first.
    pub fn notes(&self, experiment: i64) -> Result<Vec<Note>, StoreError> {
        self.experiment_is_there(experiment)?;
        let read = || -> rusqlite::Result<Vec<Note>> {
            self.connection
                .prepare("SELECT id, written_unix_ms, text FROM note WHERE experiment_id = ?1 ORDER BY id")?
                .query_map([experiment], |row| {
                    Ok(Note {
                        id: row.get(0)?,
                        written_unix_ms: row.get::<_, i64>(1)?.unsigned_abs(),
                        text: row.get(2)?,
                    })
                })?
                .collect()
        };
        read().map_err(|e| self.failed("read", e))
    }

    fn experiment_is_there(&self, id: i64) -> Result<(), StoreError> {
        let there = self
            .connection
            .query_row("SELECT count(*) FROM experiment WHERE id = ?1", [id], |row| {
                row.get::<_, i64>(0)
            })
            .map_err(|e| self.failed("read", e))?;
        match there {
            0 => Err(StoreError::Unknown {
                path: self.path.clone(),
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
        "{start:?} is no tag: expected 1 to {TAG_CHARS_MAX} characters of A-Z, a-z, 0-9, dot, dash and underscore"
    ))
}

pub(super) fn note_is_fine(text: &str) -> Result<(), String> {
    let count = text.chars().count();
    match text.trim().is_empty() {
        true => Err("the note is empty".to_owned()),
        false if count > NOTE_CHARS_MAX => Err(format!(
            "the note has {count} characters; at most {NOTE_CHARS_MAX} are kept"
        )),
        false => Ok(()),
    }
}
