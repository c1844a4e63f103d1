//! A profile file of any content is a profile or an error, and what is worked out of it names knobs of the catalogue.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_host::Fact;
use pgdyno_knobs::{Catalogue, Known, Now, Profiles};
use std::fs;
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::shipped().expect("the catalogue"));
static SHIPPED: LazyLock<Profiles> = LazyLock::new(|| Profiles::shipped().expect("the profiles"));

fuzz_target!(|text: &str| {
    let file = std::env::temp_dir().join(format!("pgdyno-fuzz-{}.toml", std::process::id()));
    if fs::write(&file, text).is_err() {
        return;
    }
    let mut profiles = SHIPPED.clone();
    let known = Known::new(&[Fact::known("memory.total_bytes", "x", 1_u64 << 34)], &[]);
    let now = |_: &str| Now::Is("1GB".to_owned());
    match profiles.resolve(&file.to_string_lossy(), &known, &CATALOGUE, Some(18), &now) {
        Ok(resolved) => assert!(resolved.to_apply().iter().all(|setting| CATALOGUE.check(setting).is_ok())),
        Err(error) => drop(error.to_string()),
    }
});
