//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone:
//! each takes any input.

use crate::optimizer::Chosen;

/// What a program answers that chooses the next trial of a search.
pub fn chosen(line: &str) {
    match Chosen::parse(line) {
        Ok(chosen) => assert!(chosen.why.is_none_or(|why| !why.chars().any(char::is_control))),
        Err(error) => drop(error),
    }
}
