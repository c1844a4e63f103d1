//! Knobs: the catalogue, applying, verifying, restoring, and the journal that makes it reversible.
//!
//! Nothing else changes a host or a server's settings. Every change goes through one function of [`Changer`], which
//! has the old value on disk before it writes.

mod catalogue;
mod cell;
mod change;
mod expression;
mod gucvalue;
mod journal;
mod known;
mod profile;
mod restore;

pub use catalogue::{
    Catalogue, CatalogueError, Cost, Form, Kind, Knob, Layer, Per, Risk, Section, Setting, split,
};
pub use cell::{Captured, Cell, CellError, ServerRef};
pub use change::{Applied, ApplyError, Changer, Restart, Target};
pub use expression::{Expression, ExpressionError, TEXT_MAX, Template};
pub use journal::{Content, Journal, JournalError, Purpose, parse as parse_journal, stale_journals};
pub use known::{Known, Lacking};
pub use profile::{
    Carrier, Exported, LeftOut, Only, Place, Profile, ProfileError, ProfileSetting, ProfileValue, Profiles,
    Resolved, ResolvedSetting, Unit, Why, export,
};
pub use restore::{Outcome, PutBack, Restorer};
