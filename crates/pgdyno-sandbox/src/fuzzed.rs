//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone:
//! each takes any input.

use crate::manager::container;
use crate::{log, pooler, sandbox};

/// The end of a server's log: why it did not start, on one line.
pub fn log_tail(text: &str) {
    assert!(log::last_lines(text).is_none_or(|lines| !lines.contains('\n')));
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

/// What docker and podman print of a container.
pub fn inspected_container(json: &[u8]) {
    container::fuzzed_inspected(json);
}
