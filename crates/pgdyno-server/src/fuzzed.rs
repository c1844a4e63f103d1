//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone: each takes any input.

use crate::conninfo::{Conninfo, Lookup};
use crate::{log, pooler, sandbox};

/// A connection string: what is written down of it is the same server, and a password is not shown.
pub fn conninfo(text: &str, environment: Lookup<'_>) {
    const SECRET: &str = "hunter2";
    match Conninfo::named(text, environment) {
        Ok(found) => {
            let written = found.without_password();
            let again = Conninfo::named(&written, &|_| None);
            let is_same =
                |again: &Conninfo| again.without_password() == written && again.place() == found.place();
            assert!(again.as_ref().is_ok_and(is_same), "{written}");
        }
        Err(error) => drop(error.to_string()),
    }
    if text.contains(SECRET) {
        return;
    }
    let with_secret = format!("{text} password={SECRET}");
    if let Ok(found) = Conninfo::named(&with_secret, &|_| None)
        && found.config().get_password() == Some(SECRET.as_bytes())
    {
        let shown = format!("{found} {found:?} {}", found.without_password());
        assert!(!shown.contains(SECRET), "{text}");
    }
}

/// The end of a server's log: why it did not start, on one line.
pub fn log_tail(text: &str) {
    assert!(log::last_words(text).is_none_or(|words| !words.contains('\n')));
}

/// What `ip -json` prints of links and routes.
pub fn ip_json(text: &str) {
    sandbox::fuzzed_ip_json(text);
}

/// The mark of a copy of a sandbox, copy.json.
pub fn copy_mark(text: &str) {
    sandbox::fuzzed_mark(text);
}

/// What is written down of a pooler, pooler.json.
pub fn pooler_mark(text: &str) {
    pooler::fuzzed_announced(text);
}
