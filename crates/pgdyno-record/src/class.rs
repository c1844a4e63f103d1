//! The class of an error.

/// What kind of failure an error is. The exit code of the program follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Something that was tried failed.
    Failed,
    /// The command line, a file or a value in them is wrong.
    Usage,
    /// Refused for safety: consent, ownership or room is missing.
    Refused,
}
