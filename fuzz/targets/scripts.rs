//! pgbench's scripts: any text is a program or an error with its place.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_load::{Protocol, Script, Scripts};

fuzz_target!(|input: (String, bool)| {
    let (text, prepared) = input;
    let lines = text.lines().count().max(1);
    let scripts = Scripts {
        scripts: vec![Script {
            name: "a.sql".into(),
            text,
            weight: 1,
        }],
        variables: Vec::new(),
        allow_shell: true,
    };
    let protocol = if prepared { Protocol::Prepared } else { Protocol::Simple };
    if let Err(error) = scripts.check(protocol) {
        // A newline at the end begins one more line.
        assert!((1..=lines + 1).contains(&error.line) && error.column >= 1, "{error}");
    }
});
