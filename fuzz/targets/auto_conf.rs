//! postgresql.auto.conf of any text is a map.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = pgdyno_server::autoconf::parse(text);
});
