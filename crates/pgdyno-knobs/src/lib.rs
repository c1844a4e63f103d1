//! Knobs: the catalogue, applying, verifying, restoring, and the journal that makes it reversible.
//!
//! Nothing else changes a host or a server's settings. Every change goes through one function of
//! [`Changer`], which has the old value on disk before it writes.

mod address;
mod applied;
mod catalogue;
mod change;
mod consent;
#[doc(hidden)]
pub mod fuzzed;
pub mod gucvalue;
mod journal;
mod near;
mod permitted;
mod persist;
mod reader;
mod restore;
mod several;
mod status;
mod target;
mod undo;

pub use applied::{Applied, ApplyError};
pub use catalogue::{
    AUTO, CarryOver, Catalogue, CatalogueError, Cost, Form, Gives, Kind, Knob, Layer, Per, Risk, Section,
    Setting, split, sysctl_path,
};
pub use change::{Changer, DROP_CACHES, OfHost, Restart};
pub use consent::{AGREE_TO_RISK, Agreed, ConsentError};
pub use journal::{
    ChangedByOther, Content, Journal, JournalError, Journals, Keep, Listed, OtherUser, Patience, Purpose,
    Scope, ScopeLock, parse as parse_journal,
};
pub use near::nearest_name;
pub use persist::{Persisted, SYSCTL_FILE, TMPFILES_FILE};
pub use reader::{Objection, Place, Reader};
pub use restore::{DAMAGED_JOURNAL, LEFT_OBJECTS, Outcome, RestoreOptions, Restored, Restorer};
pub use several::OneOf;
pub use status::{ChangeState, StatusLine};
pub use target::Target;
pub use undo::{SavedState, ServerRef, UndoUnit, UndoUnitError};
