//! Results: what is stored of experiments and trials. The only crate with SQL about results.

mod schema;
mod store;

pub use schema::VERSION as SCHEMA_VERSION;
pub use store::{
    Filter, ImportOutcome, Imported, Integrity, Life, Link, Listed, MissingRight, NOTE_CHARS_MAX, Note,
    Place, ProgressPlace, PrunePlan, PruneRule, Pulse, Reader, Removable, Store, StoreError, TAG_CHARS_MAX,
    Unreached,
};
