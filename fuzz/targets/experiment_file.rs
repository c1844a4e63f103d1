//! An experiment file of any text is an experiment or an error with a line.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_knobs::Catalogue;
use pgdyno_lab::ExperimentFile;
use std::path::Path;
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().expect("the catalogue"));

fuzz_target!(|text: &str| {
    if let Err(error) = ExperimentFile::parse(text, Path::new("x"), &CATALOGUE) {
        assert!(error.to_string().starts_with("x, line "));
    }
});
