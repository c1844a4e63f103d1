//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone:
//! each takes any input.

use crate::conninfo::{Conninfo, Lookup};

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
