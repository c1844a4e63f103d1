//! Any text is response times over time or an error; what is read is packed and read again as the same.
#![no_main]
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use pgdyno_store::HeatRecord;

fuzz_target!(|bytes: &[u8]| {
    let Some((classes, packed)) = bytes.split_first() else { return };
    let record = HeatRecord {
        begins_s: 0.0,
        ends_s: 1.0,
        stretch_s: 1,
        edges_ns: (0..=u64::from(*classes)).collect(),
        counts: STANDARD.encode(packed),
    };
    let Ok(counts) = record.counts() else { return };
    if let Some(again) = HeatRecord::packed((0.0, 1.0), 1, record.edges_ns, &counts)
        && counts.iter().flatten().any(|count| *count > 0)
    {
        assert_eq!(again.counts(), Ok(counts));
    }
});
