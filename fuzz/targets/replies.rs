//! What a server sends during a load: any bytes, cut at any place, are events or an error, the same as in one piece.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_load::{Event, Malformed, Scanner};

fn scan(pieces: &[&[u8]]) -> (Vec<Event>, Vec<u8>, Option<Malformed>) {
    let mut scanner = Scanner::default();
    scanner.keep_rows(true);
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = scanner.feed(piece, |event| events.push(event)) {
            return (events, Vec::new(), Some(error));
        }
    }
    (events, scanner.rows().to_vec(), None)
}

fuzz_target!(|input: (Vec<u8>, usize)| {
    let (bytes, cut) = input;
    let cut = cut % (bytes.len() + 1);
    assert_eq!(scan(&[&bytes]), scan(&[&bytes[..cut], &bytes[cut..]]));
});
