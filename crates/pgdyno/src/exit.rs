//! Exit codes, and how an error is told: what, where, and what to do next.

use crate::output::{self, Style, Styled};
use pgdyno_advice::ProfileError;
use pgdyno_engine::{ConnectError, EngineError};
use pgdyno_host::HostError;
use pgdyno_knobs::{ApplyError, CatalogueError, CellError, JournalError};
use pgdyno_lab::{FileError, FindingKind, LabError, MeasureError, PlanError};
use pgdyno_report::HtmlError;
use pgdyno_sandbox::{ControlError, SandboxError};
use pgdyno_serve::TokenError;
use pgdyno_server::{ServerError, one_line};
use pgdyno_store::StoreError;
use pgdyno_workload::{DataError, Dataset, LoadError};
use std::borrow::Cow;
use std::error::Error;

/// All went well.
pub(crate) const FINE: u8 = 0;
/// Something failed.
pub(crate) const FAILED: u8 = 1;
/// The command line or a file is not as it should be.
pub(crate) const USAGE: u8 = 2;
/// A check or a gate did not hold.
pub(crate) const NOT_HELD: u8 = 3;
/// Refused for safety.
pub(crate) const REFUSED: u8 = 4;
/// A gate is undecided: nothing failed, and nothing is proven.
pub(crate) const UNDECIDED: u8 = 5;

/// An error in the command line that only shows once it is looked at.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Something that is not done without consent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// A directory of pgdyno's that other users can lead elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Exposed(pub(crate) String);

/// Several errors found at once, with the code of the gravest.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Several {
    pub(crate) text: String,
    pub(crate) code: u8,
}

type Cause = dyn Error + 'static;

/// What a transparent error holds: such an error gives its inner one's cause as its own, so that the inner one itself
/// would never be seen.
fn inner(error: &Cause) -> &Cause {
    fn lab(error: &LabError) -> Option<&Cause> {
        Some(match error {
            LabError::File(e) => e,
            LabError::Plan(e) => e,
            LabError::Store(e) => e,
            LabError::Server(e) => e,
            LabError::Data(e) => e,
            LabError::Apply(e) => e,
            LabError::Journal(e) => e,
            LabError::Pooler(e) => e,
            _ => return None,
        })
    }
    fn apply(error: &ApplyError) -> Option<&Cause> {
        Some(match error {
            ApplyError::Catalogue(e) => e,
            ApplyError::Cell(e) => e,
            ApplyError::Journal(e) => e,
            ApplyError::Server(e) => e,
            ApplyError::Control(e) => e,
            _ => return None,
        })
    }
    let found: Option<&Cause> = if let Some(e) = error.downcast_ref() {
        lab(e)
    } else if let Some(e) = error.downcast_ref() {
        apply(e)
    } else {
        match (
            error.downcast_ref(),
            error.downcast_ref(),
            error.downcast_ref(),
            error.downcast_ref(),
        ) {
            (Some(MeasureError::Load(e)), ..) => Some(e),
            (Some(MeasureError::Server(e)), ..) => Some(e),
            (Some(MeasureError::Pooler(e)), ..) => Some(e),
            (_, Some(LoadError::Engine(EngineError::Connect { source, .. })), ..) => Some(source),
            (_, Some(LoadError::Data(e)), ..) => Some(e),
            (_, _, Some(ControlError::Sandbox(e)), _) => Some(e),
            (_, _, _, Some(PlanError::Catalogue(e))) => Some(e),
            _ => None,
        }
    };
    found.map_or(error, inner)
}

/// Looks through the causes of an error for the one that decides.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    error.chain().map(inner).find_map(code_of_cause).unwrap_or(FAILED)
}

fn code_of_cause(cause: &Cause) -> Option<u8> {
    if cause.is::<Usage>()
        || cause.is::<FileError>()
        || cause.is::<CatalogueError>()
        || cause.is::<ProfileError>()
    {
        return Some(USAGE);
    }
    if matches!(cause.downcast_ref(), Some(StoreError::Words(_)))
        || matches!(cause.downcast_ref(), Some(TokenError::Unfit(_)))
    {
        return Some(USAGE);
    }
    if let Some(Several { code, .. }) = cause.downcast_ref() {
        return Some(*code);
    }
    if let Some(LabError::Findings(findings)) = cause.downcast_ref() {
        let fatal = || findings.iter().filter(|finding| finding.is_fatal());
        let has = |kind| fatal().any(|finding| finding.kind == kind);
        return match (has(FindingKind::Consent), has(FindingKind::Value)) {
            (true, _) => Some(REFUSED),
            (false, true) => Some(USAGE),
            (false, false) => Some(FAILED),
        };
    }
    if cause.is::<Refused>()
        || cause.is::<Exposed>()
        || matches!(cause.downcast_ref(), Some(TokenError::Exposed(_)))
        || matches!(cause.downcast_ref(), Some(ApplyError::NoRoom { .. }))
        || matches!(cause.downcast_ref(), Some(LabError::DataNotAgreed { .. }))
        || matches!(
            cause.downcast_ref(),
            Some(DataError::Foreign { .. } | DataError::InTheWay { .. } | DataError::Meanwhile)
        )
    {
        return Some(REFUSED);
    }
    match (
        cause.downcast_ref(),
        cause.downcast_ref(),
        cause.downcast_ref(),
        cause.downcast_ref(),
        cause.downcast_ref(),
    ) {
        (Some(PlanError::Durability { .. }), ..) | (_, Some(ControlError::NotAllowed), ..) => Some(REFUSED),
        (_, _, Some(ServerError::NotATarget { .. } | ServerError::ConnectionString), ..)
        | (_, _, _, Some(SandboxError::BadName(_)), _)
        | (_, _, _, _, Some(LoadError::Plan(_))) => Some(USAGE),
        _ => None,
    }
}

/// Whether the lines of an error are our own: what is foreign in it is on one line already.
fn has_own_lines(error: &Cause) -> bool {
    error.is::<Several>() || matches!(error.downcast_ref(), Some(LabError::Findings(_)))
}

/// The error with its causes, what is foreign in it on one line.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let words = cause.to_string();
        let words = match has_own_lines(cause) {
            true => Cow::Borrowed(words.as_str()),
            false => one_line(&words),
        };
        // Many errors hold their cause's words already.
        if !text.contains(&*words) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&words);
        }
    }
    text
}

/// What to do about it, where that is known.
pub(crate) fn hint(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().map(inner).find_map(hint_of)
}

/// The error on one line, and its hint.
pub(crate) fn print(error: &anyhow::Error) {
    let text = Styled::beginning(Style::Error, "error:", format_args!("{}", words(error)));
    output::tell_styled(&text);
    if let Some(hint) = hint(error) {
        output::tell_styled(&Styled::beginning(Style::Hint, "hint:", format_args!("{hint}")));
    }
}

fn hint_of(cause: &Cause) -> Option<&'static str> {
    if let Some(error) = cause.downcast_ref::<ServerError>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<SandboxError>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<HtmlError>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<ConnectError>() {
        return hint_of_connection(error);
    }
    if let Some(DataError::Missing { dataset, .. }) = cause.downcast_ref() {
        return Some(match dataset {
            Dataset::Pgbench => {
                "`pgdyno data create TARGET --scale N` makes it (100,000 accounts and 15 MB per unit)"
            }
            Dataset::Oltp => {
                "`pgdyno data create TARGET oltp --scale N` makes it (100,000 rows and 23 MB per unit and table)"
            }
            Dataset::Tpcc => {
                "`pgdyno data create TARGET tpcc --scale N` makes it (a warehouse and 100 MB per unit)"
            }
        });
    }
    if cause.is::<Exposed>() {
        return Some(
            "`sudo` without -E leaves the variables of the other user out; or name a directory that root alone can write by PGDYNO_HOME",
        );
    }
    if let Some(DataError::Foreign { .. }) = cause.downcast_ref() {
        return Some("a database of its own (CREATE DATABASE) has room for them");
    }
    if let Some(CatalogueError::Unknown { .. }) = cause.downcast_ref() {
        return Some("`pgdyno knobs` lists them all");
    }
    if let Some(CellError::Host(HostError::Rejected { path, .. })) = cause.downcast_ref()
        && path.starts_with("/proc/irq/")
    {
        return Some(
            "the kernel keeps some interrupts where they are: a timer's, and those of queues that it manages",
        );
    }
    if let Some(CellError::Host(error)) = cause.downcast_ref()
        && error.is_refused()
    {
        return Some(match error {
            HostError::Refused { path, .. } if path.starts_with("/sys/kernel/debug/") => {
                "root may be needed; a kernel that is locked down (Secure Boot, lockdown=) keeps debugfs from root too"
            }
            _ => "root may be needed, or this is a container with a read-only /proc/sys",
        });
    }
    if let Some(JournalError::Busy { .. }) = cause.downcast_ref() {
        return Some("`pgdyno status` shows what it changes; run this again when it has ended");
    }
    if let Some(JournalError::ChangedByOther { .. }) = cause.downcast_ref() {
        return Some("`pgdyno status` shows the change; `pgdyno restore` as that user restores it");
    }
    if let Some(ControlError::NotAllowed) = cause.downcast_ref() {
        return Some("--allow-restart with restart_command in the file's [target] permits it");
    }
    if let Some(DataError::InTheWay { .. }) = cause.downcast_ref() {
        return Some("--replace drops them (`pgdyno data create`); or name another database");
    }
    if let Some(LabError::DataNotAgreed { .. }) = cause.downcast_ref() {
        return Some(
            "--allow-data makes it and drops it at the end; `pgdyno data create` makes data that stays",
        );
    }
    if let Some(PlanError::Durability { .. }) = cause.downcast_ref() {
        return Some("--accept-durability-risk KNOB agrees to it for this one run");
    }
    None
}

fn hint_of_connection(error: &ConnectError) -> Option<&'static str> {
    match error {
        ConnectError::NotPrepared { .. } => Some(
            "--protocol extended or simple (protocol in an experiment's [load]), or pgbouncer 1.21 or later with max_prepared_statements, or its session mode",
        ),
        // insufficient_resources: of connections, mostly.
        ConnectError::Refused { sqlstate, .. } if sqlstate.starts_with("53") => {
            Some("fewer --clients, or a larger max_connections")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrappers_hold_decides_the_code() {
        let risk = || PlanError::Durability {
            treatment: "a".into(),
            knob: "fsync".into(),
        };
        let check = |error: anyhow::Error, code| assert_eq!(code_of(&error), code, "{error:?}");
        check(
            anyhow::Error::new(LabError::Plan(risk())).context("experiment 3"),
            REFUSED,
        );
        check(
            anyhow::Error::new(MeasureError::Server(ServerError::ConnectionString)),
            USAGE,
        );
        check(
            anyhow::Error::new(ApplyError::Control(ControlError::NotAllowed)),
            REFUSED,
        );
        check(
            anyhow::Error::new(MeasureError::Load(LoadError::Plan("x".into()))),
            USAGE,
        );
        check(anyhow::anyhow!("anything else"), FAILED);
        let down = ServerError::Unreachable {
            target: "x".into(),
            reason: "y".into(),
        };
        let wrapped = MeasureError::Server(down);
        assert!(hint_of(inner(&wrapped)).is_some());
    }
}
