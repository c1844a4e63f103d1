//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone:
//! each takes any input.

use crate::undo::swap;
use crate::{journal, reader};
use std::path::Path;

/// A journal and its copy: whichever is there, what is whole of them is read, or it is said why
/// not.
pub fn journal_with_copy(journal: Option<&[u8]>, copy: Option<&[u8]>) {
    match journal::assemble(journal, copy, Path::new("1-2.journal")) {
        Ok(content) => drop((content.kept(), content.scope())),
        Err(error) => drop(error.to_string()),
    }
}

/// The table of an encrypted volume, as dmsetup prints it.
pub fn volume_table(text: &str) {
    reader::fuzzed_table(text);
}

/// The first page of a swap file.
pub fn swap_header(bytes: &[u8]) {
    swap::fuzzed_header(bytes);
}

/// The first line of a journal's copy in the registry.
pub fn registry_header(bytes: &[u8]) {
    journal::fuzzed_header(bytes);
}

/// What another user shows of a journal.
pub fn notice(bytes: &[u8]) {
    journal::fuzzed_notice(bytes);
}
