//! Parsers of foreign bytes that nothing outside needs, for the fuzz targets (fuzz/bodies) alone:
//! each takes any input.

use crate::perf::symbols::{Functions, Mapping};

/// The symbols of a program, the kernel's list of functions, and what a process has mapped.
pub fn symbols(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for functions in [Functions::of_program(bytes), Functions::of_kernel(&text)] {
        for address in [0, 1, 0x1000, u64::MAX] {
            let _ = (functions.at(address), functions.at_offset(address));
        }
    }
    for mapping in Mapping::all(&text) {
        assert!(!mapping.name().contains('/'));
        assert!(mapping.offset_of(mapping.start.wrapping_sub(1)).is_none());
    }
}
