//! What the series of a store take now, and would take if they were stored today, by kind of
//! metric: for docs/explanation/benchmarks.md. Usage: pack FILE
#![allow(clippy::print_stdout, reason = "an example prints")]

use pgdyno_record::{pack_points, pack_series};
use pgdyno_store::{Filter, Store};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

fn kind(metric: &str, values: &[f64]) -> &'static str {
    let varies = values.windows(2).any(|pair| pair[0] != pair[1]);
    match (metric, varies) {
        (_, false) => "constant",
        (metric, _) if metric.ends_with("_per_s") => "rates",
        (metric, _) if metric.ends_with("_ratio") => "shares",
        _ => "others",
    }
}

/// Of each kind: columns, points, bytes alone and bytes as stored now.
type Kinds = BTreeMap<&'static str, [usize; 4]>;

fn add(kinds: &mut Kinds, name: &'static str, sums: [usize; 4]) {
    let entry = kinds.entry(name).or_default();
    for (sum, more) in entry.iter_mut().zip(sums) {
        *sum += more;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: pack FILE")?;
    let store = Store::open(Path::new(&path))?;
    let (mut kinds, mut lists) = (Kinds::new(), 0);
    for listed in store.find(&Filter::default())? {
        for (trial, _) in store.experiment(listed.id)?.trials {
            let columns = store.series(trial)?.columns;
            let packed = pack_series(&columns);
            for (column, blob) in columns.iter().zip(&packed.columns) {
                let alone = pack_points(&column.at_ms, &column.values).len();
                let sums = [1, column.at_ms.len(), alone, blob.len()];
                for name in [kind(&column.metric, &column.values), "all"] {
                    add(&mut kinds, name, sums);
                }
            }
            let times = packed.times.iter().map(Vec::len).sum();
            lists += packed.times.len();
            add(&mut kinds, "all", [0, 0, 0, times]);
        }
    }
    println!("lists of times: {lists}");
    println!("kind, columns, points, bytes per point with times in each column, as stored now");
    for (name, [columns, points, alone, shared]) in kinds {
        let per_point = |bytes: usize| bytes as f64 / points.max(1) as f64;
        println!(
            "{name}, {columns}, {points}, {:.2}, {:.2}",
            per_point(alone),
            per_point(shared)
        );
    }
    Ok(())
}
