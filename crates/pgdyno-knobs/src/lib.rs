//! Knobs: the catalogue, applying, verifying, restoring, and the journal that makes it reversible.
//!
//! Nothing else changes a host or a server's settings. Every change goes through one function of [`Changer`], which
//! has the old value on disk before it writes.

mod advice;
mod advised;
mod affinity;
mod catalogue;
mod cell;
mod change;
mod even;
mod expression;
#[doc(hidden)]
pub mod fuzzed;
mod gucvalue;
mod journal;
mod known;
mod permitted;
mod persist;
mod place;
mod profile;
mod reader;
mod restore;
mod sizing;
mod status;
mod swap;
mod target;
mod wal;

pub use advice::{
    Advice, AdviceError, Advised, Advisor, Confidence, Effect, Evidence, NotJudged, Question, Rule, RuleKind,
    SetAside, Severity, Shown, Statement, recommended_by,
};
pub use catalogue::{
    Catalogue, CatalogueError, Cost, Form, Gives, Kind, Knob, Layer, Per, Risk, Section, Setting, split,
};
pub use cell::{Captured, Cell, CellError, ServerRef};
pub use change::{Applied, ApplyError, Changer, Restart};
pub use expression::{Expression, ExpressionError, TEXT_MAX, Template};
pub use journal::{
    ChangedByOther, Content, Journal, JournalError, Journals, Keep, Listed, OtherUser, Patience, Purpose,
    Scope, ScopeLock, parse as parse_journal,
};
pub use known::{Known, Lacking, number_of as number};
pub use persist::{Persisted, SYSCTL_FILE, TMPFILES_FILE};
pub use profile::{
    Carrier, Exported, Files, LeftOut, Now, Only, Profile, ProfileError, ProfileSetting, ProfileValue,
    Profiles, Resolved, ResolvedSetting, Unit, Why, export,
};
pub use reader::{Objection, Place, Reader};
pub use restore::{DAMAGED_JOURNAL, LEFT_OBJECTS, Outcome, PutBack, Restorer};
pub use sizing::{Line as SizingLine, Term as SizingTerm};
pub use status::{Standing, StatusLine};
pub use target::Target;
