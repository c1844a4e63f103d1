//! From what is known of a target to what is advised there: rules, sizes, profiles, and what is
//! written of them for other programs.
//!
//! Pure: facts, settings and texts come in, texts and settings go out. It does no I/O, reads no
//! clock and changes nothing.

mod advice;
mod even;
mod expression;
mod known;
mod profile;
mod sizing;

pub use advice::{
    Advice, AdviceError, Advised, Advisor, Confidence, Effect, Evidence, NotJudged, Question, Rule, RuleKind,
    Severity, Shown, SkippedAdvice, Statement, recommended_by,
};
pub use expression::{Expression, ExpressionError, TEXT_MAX, Template};
pub use known::{Known, Lacking, number_of as number};
pub use profile::{
    Carrier, Exported, Files, Matters, MemoryOf, Now, Only, PriorError, Priors, Profile, ProfileError,
    ProfileMeasured, ProfileSetting, ProfileValue, Profiles, Resolved, ResolvedSetting, Scale, SearchSpace,
    SkippedSetting, SpaceFor, SpaceKnob, Unit, Why, export, is_profile_path, knob_text,
};
pub use sizing::session_sorts;
pub use sizing::{Line as SizingLine, Term as SizingTerm};
