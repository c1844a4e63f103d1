//! The records of an experiment's trials: long texts, which two threads make into records.

use super::database::{Budget, Value};
use super::place::Place;
use super::{Store, StoreError, decode};
use pgdyno_record::{SecondRecord, TrialRecord};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// In the order of their numbers as they are found: sorting by a column beside the records would
/// write all of them to a temporary file and read them again.
pub(super) const TRIALS: &str =
    "SELECT id, record FROM trial WHERE id IN (SELECT id FROM trial WHERE experiment_id = $1) ORDER BY id";

/// A shorter record (of some minutes) is read in less time than a thread is made.
const LONG_BYTES: usize = 64 * 1024;
/// Records of an hour are a megabyte each; so many wait at most.
const WAITING_MAX: usize = 4;

/// A trial's number and its record, as it is stored and as it is read.
type Text = (i64, String);
type Trial = (i64, TrialRecord);

impl Store {
    /// The trials of an experiment in the order they ran, with their numbers: as much of them as
    /// one answer may hold.
    pub(super) fn trials(&self, experiment: i64) -> Result<Vec<Trial>, StoreError> {
        let place = self.place();
        let budget = &Budget::new(place);
        std::thread::scope(|threads| {
            let mut aside: Option<Aside<'_>> = None;
            let mut trials = Vec::new();
            let values = [Value::from(experiment)];
            self.database().each("read", TRIALS, &values, &mut |row| {
                budget.take(row.bytes())?;
                let text = (row.int(0)?, row.text(1)?);
                if aside.is_none() && text.1.len() >= LONG_BYTES {
                    aside = Aside::begin(threads, place, budget);
                }
                let left = match &aside {
                    Some(aside) => aside.give(text),
                    None => Some(text),
                };
                if let Some(text) = left {
                    trials.push(read(place, budget, &text)?);
                }
                Ok(())
            })?;
            if let Some(aside) = aside {
                trials.extend(aside.end()?);
                trials.sort_by_key(|(id, _)| *id);
            }
            Ok(trials)
        })
    }
}

/// A record's text was paid for when it came; the record takes more than that where it has many
/// short seconds.
fn read(place: &Place, budget: &Budget<'_>, (id, text): &Text) -> Result<Trial, StoreError> {
    let record: TrialRecord = decode(place, &format!("trial {id}"), text)?;
    let bytes = size_of::<Trial>() + size_of::<SecondRecord>() * record.seconds.len();
    budget.take(bytes.saturating_sub(text.len()))?;
    Ok((*id, record))
}

/// The second thread.
struct Aside<'s> {
    texts: SyncSender<Text>,
    thread: ScopedJoinHandle<'s, Result<Vec<Trial>, StoreError>>,
}

impl<'s> Aside<'s> {
    /// `None` where the system refuses a thread: one alone takes longer.
    fn begin<'e>(threads: &'s Scope<'s, 'e>, place: &'e Place, budget: &'e Budget<'e>) -> Option<Aside<'s>> {
        let (texts, waiting): (_, Receiver<Text>) = sync_channel(WAITING_MAX);
        let thread = Builder::new()
            .spawn_scoped(threads, move || {
                waiting.iter().map(|text| read(place, budget, &text)).collect()
            })
            .ok()?;
        Some(Aside { texts, thread })
    }

    /// A text that finds no room is returned: who reads the store has time for it then.
    fn give(&self, text: Text) -> Option<Text> {
        match self.texts.try_send(text) {
            Ok(()) => None,
            // The thread ends early where a record is broken, which its end reports.
            Err(TrySendError::Full(text) | TrySendError::Disconnected(text)) => Some(text),
        }
    }

    fn end(self) -> Result<Vec<Trial>, StoreError> {
        drop(self.texts);
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
