//! What the series of a store take now, and would take if they were stored today, by kind of metric: for docs/benchmarks.md.
//! Usage: pack FILE
#![allow(clippy::print_stdout, reason = "an example prints")]

use pgdyno_store::{Filter, Store, StoreError, pack_points};
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

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: pack FILE")?;
    let store = Store::open(Path::new(&path))?;
    let mut kinds: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for listed in store.find(&Filter::default())? {
        for (trial, _) in store.experiment(listed.id)?.trials {
            store.each_column(trial, |column| {
                let whole = pack_points(&column.at_ms, &column.values).len();
                let sums = [1, column.at_ms.len(), whole, column.packed().len()];
                for name in [kind(&column.metric, &column.values), "all"] {
                    let entry = kinds.entry(name).or_default();
                    for (sum, more) in entry.iter_mut().zip(sums) {
                        *sum += more;
                    }
                }
                Ok::<_, StoreError>(())
            })?;
        }
    }
    println!("kind, columns, points, bytes per point as read, as stored now");
    for (name, [columns, points, whole, kept]) in kinds {
        let per_point = |bytes: usize| bytes as f64 / points.max(1) as f64;
        println!(
            "{name}, {columns}, {points}, {:.2}, {:.2}",
            per_point(whole),
            per_point(kept)
        );
    }
    Ok(())
}
