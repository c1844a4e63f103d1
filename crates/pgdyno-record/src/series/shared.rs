//! The columns of one trial as blobs: times that several columns have are kept once, in a list of
//! the trial.
//!
//! The series of a trial are read together, so most of its columns have one of a few lists of
//! times; where reads come late the times are noise, and would take more than the values.

use super::blob::{POINTS_MAX, pack_points, pack_times, pack_values, unpack_times, unpack_with};
use super::{ColumnRecord, digits};
use std::collections::BTreeMap;

/// The columns of one trial as they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedSeries {
    /// Lists of times, by their numbers from 0.
    pub times: Vec<Vec<u8>>,
    /// A blob for each column, in their order.
    pub columns: Vec<Vec<u8>>,
}

/// The blobs of a trial's columns: of rates and shares five digits are kept
/// (docs/reference/store.md).
pub fn pack_series(columns: &[ColumnRecord]) -> PackedSeries {
    let times = |column: &ColumnRecord| {
        let points = column.at_ms.len().min(column.values.len());
        column.at_ms[..points].to_vec()
    };
    let mut having: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for column in columns {
        *having.entry(times(column)).or_default() += 1;
    }
    let mut packed = PackedSeries::default();
    let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for (number, (at_ms, _)) in (0..).zip(having.into_iter().filter(|(_, columns)| *columns > 1)) {
        packed.times.push(pack_times(&at_ms));
        numbers.insert(at_ms, number);
    }
    let blob = |column: &ColumnRecord| {
        let at_ms = times(column);
        let values = digits::kept(&column.metric, &column.values);
        match numbers.get(&at_ms) {
            Some(list) => pack_values(*list, &values[..at_ms.len()]),
            None => pack_points(&at_ms, &values),
        }
    };
    packed.columns = columns.iter().map(blob).collect();
    packed
}

/// The lists of times of one trial, each unpacked when a column first asks for it.
#[derive(Debug, Default)]
pub struct TimeLists {
    packed: BTreeMap<u32, Vec<u8>>,
    unpacked: BTreeMap<u32, Vec<u32>>,
}

impl TimeLists {
    /// Takes a list as it is packed.
    pub fn add(&mut self, number: u32, blob: Vec<u8>) {
        self.unpacked.remove(&number);
        self.packed.insert(number, blob);
    }

    /// The points of a column's blob: times in milliseconds and as many values; or what is wrong
    /// with it or its list.
    pub fn unpack(&mut self, blob: &[u8]) -> Result<(Vec<u32>, Vec<f64>), String> {
        unpack_with(blob, |number| self.times(number))
    }

    /// The times of a list; or what is wrong with it.
    pub fn times(&mut self, number: u32) -> Result<Vec<u32>, String> {
        if let Some(at_ms) = self.unpacked.get(&number) {
            return Ok(at_ms.clone());
        }
        let blob = self.packed.get(&number);
        let blob = blob.ok_or_else(|| format!("its times are in list {number}, which is not there"))?;
        let at_ms = unpack_times(blob).map_err(|reason| format!("list {number} of times: {reason}"))?;
        // Lists that columns share are few; unpacked ones of a foreign store must not add up.
        let points: usize = self.unpacked.values().map(Vec::len).sum();
        if points > POINTS_MAX {
            self.unpacked.clear();
        }
        self.unpacked.insert(number, at_ms.clone());
        Ok(at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::unpack_points;
    use proptest::prelude::*;

    fn column(metric: &str, at_ms: &[u32], values: &[f64]) -> ColumnRecord {
        ColumnRecord {
            metric: metric.into(),
            label: String::new(),
            at_ms: at_ms.to_vec(),
            values: values.to_vec(),
        }
    }

    fn lists(packed: &PackedSeries) -> TimeLists {
        let mut lists = TimeLists::default();
        for (number, blob) in (0..).zip(&packed.times) {
            lists.add(number, blob.clone());
        }
        lists
    }

    #[test]
    fn times_that_several_have_are_kept_once() {
        let check = |columns: &[ColumnRecord], times: usize, alone: usize| {
            let packed = pack_series(columns);
            let mut lists = lists(&packed);
            assert_eq!(packed.times.len(), times, "{columns:?}");
            let of_their_own = packed.columns.iter().filter(|blob| unpack_points(blob).is_ok());
            assert_eq!(of_their_own.count(), alone, "{columns:?}");
            for (column, blob) in columns.iter().zip(&packed.columns) {
                let points = column.at_ms.len().min(column.values.len());
                let expected = (column.at_ms[..points].to_vec(), column.values[..points].to_vec());
                assert_eq!(lists.unpack(blob).unwrap(), expected);
            }
        };
        let (long, short) = (
            column("a", &[1, 5, 9], &[0.5, 0.25, 1e-9]),
            column("b", &[1], &[7.0]),
        );
        check(&[], 0, 0);
        check(std::slice::from_ref(&long), 0, 1);
        check(&[long.clone(), short.clone()], 0, 2);
        check(&[long.clone(), short.clone(), long.clone()], 1, 1);
        check(&[long.clone(), short.clone(), short.clone(), long.clone()], 2, 0);
        // Of unequal lengths the shorter one counts.
        check(&[short, column("c", &[1, 2], &[3.0])], 1, 0);
        check(&[column("a", &[], &[]), column("b", &[], &[])], 1, 0);
    }

    #[test]
    fn a_list_that_is_missing_or_broken_is_named() {
        let both = [
            column("a", &[1, 5], &[1.0, 2.0]),
            column("b", &[1, 5], &[3.0, 4.0]),
        ];
        let packed = pack_series(&both);
        let error = TimeLists::default().unpack(&packed.columns[0]).unwrap_err();
        assert!(error.contains("list 0, which is not there"), "{error}");
        let mut lists = TimeLists::default();
        lists.add(0, vec![5, 0]);
        let error = lists.unpack(&packed.columns[0]).unwrap_err();
        assert!(error.contains("list 0 of times"), "{error}");
        lists.add(0, packed.columns[1].clone());
        let error = lists.unpack(&packed.columns[0]).unwrap_err();
        assert!(error.contains("a column, and no list"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_packed_together_is_unpacked(
            trial in prop::collection::vec((0..3_usize, prop::collection::vec(any::<u64>(), 3)), 0..20),
            times in prop::collection::vec(prop::collection::vec(0..9_000_u32, 0..4), 3),
        ) {
            let sorted: Vec<Vec<u32>> = times.into_iter().map(|mut at| { at.sort_unstable(); at }).collect();
            let of = |(which, bits): &(usize, Vec<u64>)| {
                let values: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
                column("a", &sorted[*which], &values)
            };
            let columns: Vec<ColumnRecord> = trial.iter().map(of).collect();
            let packed = pack_series(&columns);
            let mut lists = lists(&packed);
            for (column, blob) in columns.iter().zip(&packed.columns) {
                let (at_ms, values) = lists.unpack(blob).unwrap();
                let points = column.at_ms.len().min(column.values.len());
                prop_assert_eq!(&at_ms[..], &column.at_ms[..points]);
                let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(&values), bits(&column.values[..points]));
            }
        }
    }
}
