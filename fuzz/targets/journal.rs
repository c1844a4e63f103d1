//! A journal of any bytes is read, cut off or refused; what is read once is read again from its whole part.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_knobs::parse_journal;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(content) = parse_journal(bytes, Path::new("1-2.journal"))
        && content.damage.is_empty()
    {
        let whole = usize::try_from(content.whole_bytes).expect("its own length");
        let again = parse_journal(&bytes[..whole], Path::new("1-2.journal")).expect("readable");
        assert_eq!(again.entries, content.entries);
    }
});
