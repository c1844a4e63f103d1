//! What goes wrong, reported in the same form everywhere: a sentence, and what to do about it.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use pgdyno_lab::compare::CompareError;
use pgdyno_store::StoreError;
use serde_json::json;

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) error: String,
    pub(super) what_to_do: Option<String>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Problem {
        Problem {
            status,
            error: error.into(),
            what_to_do: None,
        }
    }

    /// A request that cannot be understood.
    pub(super) fn wrong(error: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn nothing(error: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, error)
    }

    /// Trouble of this program's own.
    pub(super) fn failed(error: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    pub(super) fn do_this(mut self, what_to_do: impl Into<String>) -> Problem {
        self.what_to_do = Some(what_to_do.into());
        self
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        json!({"error": self.error, "what_to_do": self.what_to_do})
    }

    /// For an address that is there, asked in a way that is not.
    pub(super) fn wrong_method() -> Problem {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this address does not answer to this method",
        )
        .do_this("GET /api/openapi.json lists all addresses with their methods")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.as_json().to_string()).into_response();
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let text = error.to_string();
        let later = StatusCode::SERVICE_UNAVAILABLE;
        match error {
            StoreError::Unknown { .. } => Problem::nothing(text),
            StoreError::Words(_) => Problem::wrong(text),
            StoreError::Missing { .. } => Problem::new(later, text).do_this(
                "`pgdyno demo` or `pgdyno run` makes it; `pgdyno serve --store FILE` reads another one",
            ),
            StoreError::Locked { .. } | StoreError::Meanwhile { .. } => Problem::new(later, text)
                .do_this("wait until the other process is done; this is tried again with every request"),
            StoreError::Unreachable { .. } | StoreError::Gone { .. } => {
                Problem::new(later, text).do_this("start that server; this is tried again with every request")
            }
            StoreError::Truncated { .. } => Problem::failed(text)
                .do_this("restore the file from a copy; `pgdyno check-store` checks that it is intact"),
            StoreError::Newer { .. } => {
                Problem::failed(text).do_this("use the newer pgdyno, or `pgdyno serve --store FILE`")
            }
            StoreError::Older { .. } => {
                Problem::failed(text).do_this("run that once, when no earlier pgdyno uses the store any more")
            }
            StoreError::Foreign { .. } => Problem::failed(text).do_this("`pgdyno serve --store FILE`"),
            StoreError::Sqlite { .. } | StoreError::Record { .. } => {
                Problem::failed(text).do_this("`pgdyno check-store` shows what of the store is readable")
            }
            _ => Problem::failed(text),
        }
    }
}

impl From<CompareError> for Problem {
    fn from(error: CompareError) -> Problem {
        Problem::wrong(error.to_string())
    }
}
