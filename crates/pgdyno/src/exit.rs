//! Exit codes, and how an error is told: what, where, and what to do next.

use pgdyno_knobs::{ApplyError, CatalogueError, CellError};
use pgdyno_lab::{FileError, LabError, PlanError};
use pgdyno_load::{DataError, LoadError};
use pgdyno_report::HtmlError;
use pgdyno_server::sandbox::SandboxError;
use pgdyno_server::{ControlError, ServerError};

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

/// An error in the command line that only shows once it is looked at.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Something that is not done without consent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// Looks through the causes of an error for the one that decides.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if cause.is::<Usage>() || cause.is::<FileError>() || cause.is::<CatalogueError>() {
            return USAGE;
        }
        if cause.is::<Refused>() {
            return REFUSED;
        }
        match cause.downcast_ref::<PlanError>() {
            Some(PlanError::Durability { .. }) => return REFUSED,
            Some(PlanError::Catalogue(_)) => return USAGE,
            None => {}
        }
        match cause.downcast_ref::<LabError>() {
            Some(LabError::Plan(PlanError::Durability { .. })) => return REFUSED,
            Some(LabError::File(_) | LabError::Plan(_)) => return USAGE,
            _ => {}
        }
        if let Some(ControlError::NotAllowed) = cause.downcast_ref::<ControlError>() {
            return REFUSED;
        }
        if let Some(ServerError::NotATarget { .. } | ServerError::ConnectionString) = cause.downcast_ref() {
            return USAGE;
        }
        if let Some(SandboxError::BadName(_)) = cause.downcast_ref() {
            return USAGE;
        }
        if let Some(LoadError::Plan(_)) = cause.downcast_ref() {
            return USAGE;
        }
    }
    FAILED
}

/// The error with its causes on one line, and a hint where there is one.
pub(crate) fn print(error: &anyhow::Error) {
    let mut text = String::new();
    for cause in error.chain() {
        let words = cause.to_string();
        // Many errors hold their cause's words already.
        if !text.contains(&words) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&words);
        }
    }
    eprintln!("error: {text}");
    if let Some(hint) = error.chain().find_map(hint_of) {
        eprintln!("hint: {hint}");
    }
}

fn hint_of(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(error) = cause.downcast_ref::<ServerError>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<SandboxError>() {
        return error.hint();
    }
    if let Some(error) = cause.downcast_ref::<HtmlError>() {
        return error.hint();
    }
    if let Some(LoadError::Data(error)) = cause.downcast_ref::<LoadError>() {
        return hint_of(error);
    }
    if let Some(LoadError::Connect { .. }) = cause.downcast_ref::<LoadError>() {
        return Some(
            "fewer --clients, or a larger max_connections, where the server says there are too many",
        );
    }
    if let Some(DataError::Missing { .. }) = cause.downcast_ref::<DataError>() {
        return Some("`pgdyno data create TARGET --scale N` makes it (100,000 accounts and 15 MB per unit)");
    }
    if let Some(error) = cause.downcast_ref::<ApplyError>() {
        return match error {
            ApplyError::Server(error) => error.hint(),
            ApplyError::Cell(CellError::Host(error)) if error.is_refused() => {
                Some("root may be needed, or this is a container with a read-only /proc/sys")
            }
            ApplyError::Control(ControlError::NotAllowed) => {
                Some("--allow-restart with restart_command in the file's [target] permits it")
            }
            _ => None,
        };
    }
    match cause.downcast_ref::<LabError>() {
        Some(LabError::Server(error)) => error.hint(),
        Some(LabError::Plan(PlanError::Durability { .. })) => {
            Some("--accept-durability-risk KNOB agrees to it for this one run")
        }
        Some(LabError::Data(error)) => hint_of(error),
        _ => None,
    }
}
