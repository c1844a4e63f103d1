//! A connection string: any text is a server or an error, what is written down of it is the same server, and no secret
//! is shown.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_server::Conninfo;

const SECRET: &str = "hunter2";

fuzz_target!(|text: &str| {
    // Files that never end are nobody's password file.
    if text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let nothing = |_: &str| None;
    match Conninfo::resolve(text, &nothing) {
        Ok(found) => {
            let written = found.without_password();
            let again = Conninfo::resolve(&written, &nothing).expect("what was written can be read");
            assert_eq!(written, again.without_password());
            assert_eq!(found.place(), again.place());
        }
        Err(error) => drop(error.to_string()),
    }
    let with_secret = format!("{text} password={SECRET}");
    if text.contains(SECRET) {
        return;
    }
    if let Ok(found) = Conninfo::resolve(&with_secret, &nothing)
        && found.config().get_password() == Some(SECRET.as_bytes())
    {
        assert!(!format!("{found} {found:?} {}", found.without_password()).contains(SECRET));
    }
});
