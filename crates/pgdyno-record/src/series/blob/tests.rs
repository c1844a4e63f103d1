//! What is packed comes back to the bit; no blob makes the reader panic.

use super::*;
use proptest::prelude::*;

#[test]
fn a_steady_column_is_small() {
    let at_ms: Vec<u32> = (0..3600).map(|s| s * 1000).collect();
    let values = vec![1_048_576.0; 3600];
    let blob = pack_points(&at_ms, &values);
    assert!(blob.len() < 200, "{} bytes", blob.len());
}

proptest! {
    #[test]
    fn what_is_packed_is_unpacked(points in prop::collection::vec((0..1_000_000_u32, any::<u64>()), 0..200)) {
        let mut at_ms: Vec<u32> = points.iter().map(|p| p.0).collect();
        at_ms.sort_unstable();
        let values: Vec<f64> = points.iter().map(|p| f64::from_bits(p.1)).collect();
        let (at, back) = unpack_points(&pack_points(&at_ms, &values)).unwrap();
        prop_assert_eq!(at, at_ms);
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&back), bits(&values));
    }

    #[test]
    fn no_blob_makes_it_panic(blob in prop::collection::vec(any::<u8>(), 0..100), cut in 0..60_usize) {
        let _ = unpack_points(&blob);
        let mut whole = pack_points(&[1, 2, 3], &[1.0, 2.0, 3.0]);
        whole.truncate(cut.min(whole.len() - 1));
        prop_assert!(unpack_points(&whole).is_err());
    }
}

/// What an earlier version wrote must stay readable: a blob of format 1, byte for byte.
#[test]
fn a_blob_of_format_1_is_read() {
    let (at_ms, values) = ([1000, 2001, 5000], [0.1, 0.2, 1e-9]);
    let mut plain = vec![3];
    push_steps(&mut plain, &at_ms);
    push_bits(&mut plain, &values);
    let expected = [
        vec![3, 0xe8, 0x07, 0xe9, 0x07, 0xb7, 0x17],
        // The highest bytes of 0.1, of 0.1 and 0.2, of 0.2 and 1e-9.
        vec![0x3f, 0x00, 0x01],
    ]
    .concat();
    assert_eq!(plain[..expected.len()], expected);
    let found = unpack_points(&deflated(BITS, &plain)).unwrap();
    assert_eq!(found, (at_ms.to_vec(), values.to_vec()));
}

/// The same of format 2: a column of three points with one decimal.
#[test]
fn a_blob_of_format_2_is_read() {
    let plain = [
        vec![3, 0xd0, 0x0f, 0x02, 0x9c, 0x1f],
        // One decimal, as they are above the least, which is 0.5; times one; one plane.
        vec![1, 0, 10, 1, 1, 0, 5, 250],
    ]
    .concat();
    let found = unpack_points(&deflated(DECIMALS, &plain)).unwrap();
    assert_eq!(found, (vec![1000, 2001, 5000], vec![0.5, 1.0, 25.5]));
    let as_now = pack_points(&[1000, 2001, 5000], &[0.5, 1.0, 25.5]);
    assert_eq!(unpack_points(&as_now).unwrap(), found);
}

/// And of formats 3 to 5, so that they stay what they are.
#[test]
fn blobs_with_a_list_of_times_are_read() {
    let at_ms = vec![1000, 2001, 5000];
    let list = deflated(TIMES, &[3, 0xd0, 0x0f, 0x02, 0x9c, 0x1f]);
    assert_eq!(pack_times(&at_ms), list);
    assert_eq!(unpack_times(&list).unwrap(), at_ms);
    let lists = |number: u32| (number == 200).then(|| at_ms.clone()).ok_or_else(String::new);
    let plain = [0xc8, 0x01, 1, 0, 10, 1, 1, 0, 5, 250];
    let column = deflated(DECIMALS_SHARED, &plain);
    let expected = (at_ms.clone(), vec![0.5, 1.0, 25.5]);
    assert_eq!(unpack_with(&column, lists).unwrap(), expected);
    let mut plain = vec![0xc8, 0x01];
    push_bits(&mut plain, &expected.1);
    assert_eq!(
        unpack_with(&deflated(BITS_SHARED, &plain), lists).unwrap(),
        expected
    );

    let check = |found: Result<Points, String>, reason: &str| {
        let error = found.unwrap_err();
        assert!(error.contains(reason), "{error}");
    };
    check(unpack_points(&column), "list 200, which is not there");
    check(unpack_points(&list), "a list of times, and no column");
    check(
        unpack_with(&column, |_| Ok(vec![1, 2])),
        "3 bytes of values where 2",
    );
    check(
        unpack_times(&column).map(|at| (at, vec![])),
        "a column, and no list",
    );
    check(
        unpack_times(&deflated(TIMES, &[1, 0, 0])).map(|at| (at, vec![])),
        "1 bytes follow",
    );
    check(unpack_times(&[6, 1]).map(|at| (at, vec![])), "it has format 6");
}

#[test]
fn few_decimals_are_packed_as_whole_numbers() {
    let check = |values: &[f64], format: u8| {
        let at_ms: Vec<u32> = (1..).take(values.len()).map(|s| s * 1000).collect();
        let blob = pack_points(&at_ms, values);
        assert_eq!(blob[0], format, "{values:?}");
        let (at, back) = unpack_points(&blob).unwrap();
        assert_eq!(at, at_ms);
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(values));
    };
    check(&[], DECIMALS);
    check(&[0.0, 0.0, 0.0], DECIMALS);
    check(&[1.5, -2.25, 0.125], DECIMALS);
    check(&[0.1, 0.2, 0.3, 1e15], BITS);
    check(&[0.1, 0.2, 0.3, 1e9], DECIMALS);
    check(&[9_007_199_254_740_992.0, -9_007_199_254_740_992.0], DECIMALS);
    check(&[4096.0, 40_960.0, 8192.0, 4096.0], DECIMALS);
    check(&[1e300], BITS);
    check(&[0.0, -0.0], BITS);
    check(&[f64::NAN, 1.0], BITS);
    check(&[f64::INFINITY], BITS);
    check(&[1.0 / 3.0, 0.1], BITS);
}

proptest! {
    #[test]
    fn decimals_are_unpacked(points in prop::collection::vec((0..5_000_u32, -1_000_000_000..1_000_000_000_i64), 0..200),
                             decimals in 0..9_u32) {
        let mut at = 0;
        let at_ms: Vec<u32> = points.iter().map(|p| { at += p.0; at }).collect();
        let ten = 10_f64.powi(decimals.cast_signed());
        let values: Vec<f64> = points.iter().map(|p| p.1 as f64 / ten).collect();
        prop_assert_eq!(unpack_points(&pack_points(&at_ms, &values)).unwrap(), (at_ms, values));
    }

    #[test]
    fn no_stream_makes_it_panic(plain in prop::collection::vec(any::<u8>(), 0..60), format in 1..6_u8, points in 0..9_u32) {
        let blob = deflated(format, &plain);
        let _ = unpack_with(&blob, |_| Ok((0..points).collect()));
        let _ = unpack_times(&blob);
    }
}
