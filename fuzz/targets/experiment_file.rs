//! An experiment file of any text is an experiment or an error with a line.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_knobs::Catalogue;
use pgdyno_lab::{ExperimentFile, sized};
use std::path::Path;
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().expect("the catalogue"));

fuzz_target!(|text: &str| {
    let path = Path::new("x");
    let with_size = sized(text, path, Some("night"), &["load.clients=2".to_owned(), text.chars().take(40).collect()]);
    for text in [Ok(text.to_owned()), with_size] {
        if let Err(error) = text.and_then(|text| ExperimentFile::parse(&text, path, &CATALOGUE)) {
            assert!(error.to_string().starts_with("x, line "));
        }
    }
});
