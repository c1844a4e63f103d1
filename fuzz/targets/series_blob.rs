//! A blob of any bytes is a column or an error; what is read of one is packed and read again as the same.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_store::{pack_points, unpack_points};

fuzz_target!(|blob: &[u8]| {
    if let Ok((at_ms, values)) = unpack_points(blob) {
        let (at, back) = unpack_points(&pack_points(&at_ms, &values)).expect("our own");
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((at, bits(&back)), (at_ms, bits(&values)));
    }
});
