//! What ended a command: what failed, where, of which class that is, and what mends it.

use pgdyno_record::ErrorClass;
use pgdyno_server::one_line;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Returns a failure with this text.
macro_rules! fail {
    ($($text:tt)+) => {
        return Err($crate::failure::Failure::new(format_args!($($text)+)))
    };
}

/// What the commands return.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// An error that says of which class it is and what mends it.
pub(crate) trait Explained: Error {
    fn class(&self) -> ErrorClass {
        ErrorClass::Failed
    }

    fn hint(&self) -> Option<&str> {
        None
    }

    /// Whether its text has lines of its own, in which what is foreign is on one line already.
    fn has_lines(&self) -> bool {
        false
    }
}

/// What ended a command.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What was being done, from the outermost on, then the error and its causes.
    texts: Vec<String>,
    class: ErrorClass,
    hint: Option<String>,
}

impl Failure {
    /// A failure that no error of a crate describes.
    pub(crate) fn new(text: impl Display) -> Failure {
        Failure {
            texts: vec![one_line(&text.to_string()).into_owned()],
            class: ErrorClass::Failed,
            hint: None,
        }
    }

    pub(crate) fn of_class(self, class: ErrorClass) -> Failure {
        Failure { class, ..self }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Failure {
        Failure {
            hint: Some(hint.into()),
            ..self
        }
    }

    pub(crate) fn context(mut self, what: impl Display) -> Failure {
        self.texts.insert(0, one_line(&what.to_string()).into_owned());
        self
    }

    pub(crate) fn class(&self) -> ErrorClass {
        self.class
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// A failure as one of several, on one line with what mends it.
pub(crate) fn with_hint(error: impl Into<Failure>) -> String {
    let error = error.into();
    let hint = error.hint().map(|hint| format!(" ({hint})"));
    format!("{error}{}", hint.unwrap_or_default())
}

/// All texts in one line. Many errors repeat their cause.
impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut all = String::new();
        for text in &self.texts {
            if !all.contains(text) {
                if !all.is_empty() {
                    all.push_str(": ");
                }
                all.push_str(text);
            }
        }
        f.write_str(&all)
    }
}

impl<E: Explained> From<E> for Failure {
    fn from(error: E) -> Failure {
        let text = error.to_string();
        let mut texts = vec![match error.has_lines() {
            true => text,
            false => one_line(&text).into_owned(),
        }];
        let mut cause = error.source();
        while let Some(error) = cause {
            texts.push(one_line(&error.to_string()).into_owned());
            cause = error.source();
        }
        Failure {
            texts,
            class: error.class(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

/// Says of a failure what was being done.
pub(crate) trait InContext<T> {
    fn context(self, what: impl Display) -> Result<T>;

    fn with_context<C: Display>(self, what: impl FnOnce() -> C) -> Result<T>;
}

impl<T, E: Into<Failure>> InContext<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| error.into().context(what))
    }

    fn with_context<C: Display>(self, what: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|error| error.into().context(what()))
    }
}

/// An error in the command line that only shows once it is evaluated.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

impl Explained for Usage {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

/// Something that is not done without consent.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

impl Explained for Refused {
    fn class(&self) -> ErrorClass {
        ErrorClass::Refused
    }
}

/// A directory of pgdyno's that other users can lead elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Exposed(pub(crate) String);

impl Explained for Exposed {
    fn class(&self) -> ErrorClass {
        ErrorClass::Refused
    }

    fn hint(&self) -> Option<&str> {
        Some(
            "`sudo` without -E drops the variables of the other user; or name a directory that root alone can write by \
             PGDYNO_HOME",
        )
    }
}

/// Several errors found at once, a line each, with the gravest class.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Several {
    pub(crate) text: String,
    pub(crate) class: ErrorClass,
}

impl Explained for Several {
    fn class(&self) -> ErrorClass {
        self.class
    }

    fn has_lines(&self) -> bool {
        true
    }
}

/// Errors with a class, a hint or both of their own.
macro_rules! explained {
    ($($error:ty: $($what:ident),*;)*) => { $(
        impl Explained for $error {
            $(explained!(@ $error, $what);)*
        }
    )* };
    (@ $error:ty, class) => {
        fn class(&self) -> ErrorClass {
            <$error>::class(self)
        }
    };
    (@ $error:ty, hint) => {
        fn hint(&self) -> Option<&str> {
            <$error>::hint(self)
        }
    };
    (@ $error:ty, has_lines) => {
        fn has_lines(&self) -> bool {
            <$error>::has_lines(self)
        }
    };
}

explained! {
    pgdyno_advice::AdviceError: ;
    pgdyno_advice::PriorError: ;
    pgdyno_advice::ProfileError: class;
    pgdyno_engine::ConnectError: hint;
    pgdyno_knobs::ApplyError: class, hint;
    pgdyno_knobs::CatalogueError: class, hint;
    pgdyno_knobs::UndoUnitError: class, hint;
    pgdyno_knobs::ConsentError: class, hint;
    pgdyno_knobs::JournalError: hint;
    pgdyno_lab::FileError: class;
    pgdyno_lab::LabError: class, hint, has_lines;
    pgdyno_lab::MeasureError: class, hint;
    pgdyno_lab::PlanError: class, hint;
    pgdyno_remote::AgentError: ;
    pgdyno_remote::RemoteError: class, hint;
    pgdyno_report::HtmlError: hint;
    pgdyno_report::ParquetFault: ;
    pgdyno_report::PackError<pgdyno_store::StoreError>: ;
    pgdyno_sandbox::ControlError: class, hint;
    pgdyno_sandbox::SandboxError: class, hint;
    pgdyno_serve::ServeError: class;
    pgdyno_serve::TokenError: class;
    pgdyno_server::ServerError: class, hint;
    pgdyno_store::StoreError: class, hint;
    pgdyno_watch::SourceEnded: ;
    pgdyno_watch::StartError: class, hint;
    pgdyno_workload::DataError: class, hint;
    pgdyno_workload::LoadError: class, hint;
    rustix::io::Errno: ;
    serde_json::Error: ;
    std::io::Error: ;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_knobs::ApplyError;
    use pgdyno_lab::{LabError, MeasureError, PlanError};
    use pgdyno_sandbox::ControlError;
    use pgdyno_server::ServerError;
    use pgdyno_workload::LoadError;

    #[test]
    fn class_and_hint_are_those_of_what_wrappers_hold() {
        let check = |failure: Failure, class, hint: Option<&str>| {
            assert_eq!(failure.class(), class, "{failure:?}");
            let given = failure.hint();
            assert_eq!(given.is_some(), hint.is_some(), "{failure:?}");
            assert!(
                given.unwrap_or_default().contains(hint.unwrap_or_default()),
                "{failure:?}"
            );
        };
        let risk = LabError::Plan(PlanError::Durability {
            treatment: "a".into(),
            knob: "fsync".into(),
        });
        let risk = Failure::from(risk).context("experiment 3");
        assert!(
            risk.to_string().starts_with("experiment 3: a sets fsync, "),
            "{risk}"
        );
        check(risk, ErrorClass::Refused, Some("--accept-durability-risk"));
        let server = MeasureError::Server(ServerError::ConnectionString);
        check(server.into(), ErrorClass::Usage, None);
        let control = ApplyError::Control(ControlError::NotAllowed);
        check(control.into(), ErrorClass::Refused, Some("--allow-restart"));
        let load = LabError::Measure(MeasureError::Load(LoadError::Plan("x".into())));
        check(load.into(), ErrorClass::Usage, None);
        let down = LabError::NotRestored {
            error: Box::new(LabError::NoServer),
            source: Box::new(LabError::Server(ServerError::Unreachable {
                target: "x".into(),
                reason: "y".into(),
            })),
        };
        check(down.into(), ErrorClass::Failed, Some("pgdyno sandbox create"));
        check(Failure::new("anything else"), ErrorClass::Failed, None);
    }

    #[test]
    fn what_is_foreign_stays_on_one_line_and_own_lines_are_kept() {
        let foreign = Failure::new("a\nhint: b").context("c\nd");
        assert!(!foreign.to_string().contains('\n'), "{foreign}");
        let several = Failure::from(Several {
            text: "two:\n  - a\n  - b".into(),
            class: ErrorClass::Usage,
        });
        assert_eq!(several.to_string().lines().count(), 3);
    }
}
