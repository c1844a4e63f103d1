//! Exit codes, and how a failure is shown.

use crate::failure::Failure;
use crate::output::{self, Style, Styled};
use pgdyno_record::ErrorClass;

/// Code of a command that did what was asked.
pub(crate) const FINE: u8 = 0;
/// Code of a command that failed.
pub(crate) const FAILED: u8 = 1;
/// The command line or a file is not as it should be.
pub(crate) const USAGE: u8 = 2;
/// A check or a gate did not hold.
pub(crate) const NOT_HELD: u8 = 3;
/// Code of a command that is refused for safety.
pub(crate) const REFUSED: u8 = 4;
/// A gate is undecided: nothing failed, and nothing is proven.
pub(crate) const UNDECIDED: u8 = 5;

pub(crate) fn code_of(failure: &Failure) -> u8 {
    match failure.class() {
        ErrorClass::Failed => FAILED,
        ErrorClass::Usage => USAGE,
        ErrorClass::Refused => REFUSED,
    }
}

/// The failure of a command that has ended with this code on a host, and was shown.
pub(crate) fn ended_on(host: &str, code: u8) -> Failure {
    let class = match code {
        USAGE => ErrorClass::Usage,
        REFUSED => ErrorClass::Refused,
        _ => ErrorClass::Failed,
    };
    Failure::new(format_args!(
        "{host}: the command there ended with exit code {code}, for the reason above"
    ))
    .of_class(class)
}

/// The failure on one line, and what mends it.
pub(crate) fn print(failure: &Failure) {
    let text = Styled::beginning(Style::Error, "error:", format_args!("{failure}"));
    output::err_styled(&text);
    if let Some(hint) = failure.hint() {
        output::err_styled(&Styled::beginning(Style::Hint, "hint:", format_args!("{hint}")));
    }
}
