//! A blob of any bytes is a column, a list of times or an error; what is read of one is packed and read again as the same.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_store::{ColumnRecord, TimeLists, pack_points, pack_series, unpack_points};

type Points = (Vec<u32>, Vec<f64>);

fn bits((at_ms, values): Points) -> (Vec<u32>, Vec<u64>) {
    (at_ms, values.into_iter().map(f64::to_bits).collect())
}

fn back(points: Points) {
    let again = unpack_points(&pack_points(&points.0, &points.1)).expect("our own");
    assert_eq!(bits(again), bits(points.clone()));
    let column = ColumnRecord {
        metric: "x".to_owned(),
        label: String::new(),
        at_ms: points.0.clone(),
        values: points.1.clone(),
    };
    // Twice, so that they share a list of times.
    let packed = pack_series(&[column.clone(), column]);
    let mut lists = TimeLists::default();
    for (number, list) in (0..).zip(packed.times) {
        lists.add(number, list);
    }
    for blob in &packed.columns {
        assert_eq!(bits(lists.unpack(blob).expect("our own")), bits(points.clone()));
    }
}

fuzz_target!(|input: (&[u8], &[u8])| {
    let (blob, list) = input;
    if let Ok(points) = unpack_points(blob) {
        back(points);
    }
    let mut lists = TimeLists::default();
    lists.add(0, list.to_vec());
    if let Ok(points) = lists.unpack(blob) {
        back(points);
    }
    let _ = lists.times(0);
});
