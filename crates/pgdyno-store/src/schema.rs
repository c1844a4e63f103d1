//! The schema, and how a store is brought up to it. docs/reference/store.md describes it.

pub(crate) mod postgres;

use rusqlite::{Connection, TransactionBehavior};

/// Version of the schema this pgdyno writes, in SQLite's user_version.
pub const VERSION: i64 = 5;

/// Marks the file as pgdyno's: SQLite's application_id, "pgdy".
pub(crate) const APPLICATION_ID: i64 = 0x7067_6479;

/// Its tables. Others, and views, may be whoever's they are.
pub(crate) const TABLES: [&str; 7] = ["about", "experiment", "trial", "series", "gap", "tag", "note"];

/// Step n brings a store from version n to n + 1.
pub(crate) const STEPS: [&str; VERSION as usize] = [
    "
CREATE TABLE experiment (
    id               INTEGER PRIMARY KEY,
    name             TEXT    NOT NULL,
    status           TEXT    NOT NULL,
    started_unix_ms  INTEGER NOT NULL,
    finished_unix_ms INTEGER,
    record           TEXT    NOT NULL,
    put_back         TEXT    NOT NULL DEFAULT '[]'
) STRICT;
CREATE TABLE trial (
    id            INTEGER PRIMARY KEY,
    experiment_id INTEGER NOT NULL REFERENCES experiment (id) ON DELETE CASCADE,
    block         INTEGER NOT NULL,
    treatment     TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    record        TEXT    NOT NULL,
    UNIQUE (experiment_id, block, treatment)
) STRICT;
",
    "
CREATE TABLE series (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    metric   TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    points   BLOB    NOT NULL,
    PRIMARY KEY (trial_id, metric, label)
) STRICT, WITHOUT ROWID;
CREATE TABLE gap (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    at_ms    INTEGER NOT NULL,
    source   TEXT    NOT NULL,
    reason   TEXT    NOT NULL
) STRICT;
CREATE INDEX gap_of_trial ON gap (trial_id);
",
    "
ALTER TABLE experiment ADD COLUMN identity TEXT;
CREATE UNIQUE INDEX experiment_identity ON experiment (identity);
CREATE INDEX trial_by_status ON trial (experiment_id, status);
CREATE TABLE tag (
    experiment_id INTEGER NOT NULL REFERENCES experiment (id) ON DELETE CASCADE,
    word          TEXT    NOT NULL,
    PRIMARY KEY (experiment_id, word)
) STRICT, WITHOUT ROWID;
CREATE TABLE note (
    id              INTEGER PRIMARY KEY,
    experiment_id   INTEGER NOT NULL REFERENCES experiment (id) ON DELETE CASCADE,
    written_unix_ms INTEGER NOT NULL,
    text            TEXT    NOT NULL
) STRICT;
CREATE INDEX note_of_experiment ON note (experiment_id);
",
    // The tables are the same; blobs may refer to lists of times, which earlier versions cannot
    // read.
    "",
    // So are seconds of records, as columns.
    "",
];

/// Brings a store to this version's schema. Whoever comes second finds it done: the version is read
/// again when nobody else can write.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if from >= VERSION {
        return transaction.commit();
    }
    for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()
}
