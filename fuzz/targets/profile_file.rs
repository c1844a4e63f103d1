//! A profile file of any content is a profile or an error, and what is worked out of it names knobs of the catalogue.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_host::Fact;
use pgdyno_knobs::{Catalogue, Known, Now, Profiles};
use std::fs;

fuzz_target!(|text: &str| {
    let file = std::env::temp_dir().join(format!("pgdyno-fuzz-{}.toml", std::process::id()));
    if fs::write(&file, text).is_err() {
        return;
    }
    let (Ok(catalogue), Ok(mut profiles)) = (Catalogue::shipped(), Profiles::shipped()) else {
        return;
    };
    let known = Known::new(&[Fact::known("memory.total_bytes", "x", 1_u64 << 34)], &[]);
    let now = |_: &str| Now::Is("1GB".to_owned());
    match profiles.resolve(&file.to_string_lossy(), &known, &catalogue, Some(18), &now) {
        Ok(resolved) => assert!(resolved.to_apply().iter().all(|setting| catalogue.check(setting).is_ok())),
        Err(error) => drop(error.to_string()),
    }
});
