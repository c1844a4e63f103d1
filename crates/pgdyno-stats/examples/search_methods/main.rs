//! Ways to search compared on responses: share of seeds that reach 95 % of the best, and after how
//! many trials.
//!
//! `cargo run --release -p pgdyno-stats --example search_methods -- [SEEDS [TRIALS [METHOD]]]
//! [FILE...] [NAME=COMMAND...]`: on made-up responses, or on those that are fitted to trials in
//! files of `benches/surfaces.sh`, and then also by optimizers of others
//! (`smac=python3 contrib/smac_optimizer.py`).
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

mod fitted;
mod made_up;
mod outside;
mod response;

use fitted::Recorded;
use outside::Outside;
use pgdyno_stats::{Search, SearchMethod, SearchTrial};
use response::number;

fn main() {
    let (mut numbers, mut files, mut outside, mut only) = (Vec::new(), Vec::new(), Vec::new(), None);
    for argument in std::env::args().skip(1) {
        match (argument.parse::<usize>(), argument.split_once('=')) {
            (Ok(number), _) => numbers.push(number),
            (Err(_), Some((name, command))) => outside.push((name.to_owned(), command.to_owned())),
            (Err(_), None) if argument.ends_with(".json") => files.push(argument),
            (Err(_), None) => only = Some(argument),
        }
    }
    let seeds = numbers.first().copied().unwrap_or(50) as u64;
    let trials = numbers.get(1).copied().unwrap_or(30);
    let is_wanted = |method: &&SearchMethod| only.as_ref().is_none_or(|only| format!("{method:?}") == *only);
    println!(
        "{:<28} {:<12} reached 95 %  median trials  mean of best  at 12",
        "response", "method"
    );
    if files.is_empty() {
        for (name, knobs, right) in [
            ("16 knobs, good priors", 16, 0.7),
            ("16 knobs, misleading priors", 16, 0.0),
            ("40 knobs, good priors", 40, 0.7),
        ] {
            for method in SearchMethod::ALL.iter().filter(is_wanted) {
                let paths = (0..seeds).map(|seed| {
                    let response = made_up::response(knobs, right, seed);
                    response.search(*method, (trials, seed), &mut own)
                });
                show((name, &format!("{method:?}")), &paths.collect::<Vec<_>>(), trials);
            }
        }
    }
    for file in &files {
        let name = file
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".json");
        let response = Recorded::read(file).response(1);
        for method in SearchMethod::ALL.iter().filter(is_wanted) {
            let paths = (0..seeds).map(|seed| response.search(*method, (trials, seed), &mut own));
            show((name, &format!("{method:?}")), &paths.collect::<Vec<_>>(), trials);
        }
        let factors = Recorded::read(file).factors;
        for (of, command) in &outside {
            let paths = (0..seeds).map(|seed| {
                let mut other = Outside::start(command, &factors, (trials, seed));
                response.search(
                    SearchMethod::Process,
                    (trials, seed),
                    &mut |search, done, block| {
                        // Starting points are tried first, as in a tune.
                        let start = search.start(done, block).map(|start| start.point);
                        start.or_else(|| other.next(search, done, block))
                    },
                )
            });
            show((name, of), &paths.collect::<Vec<_>>(), trials);
        }
        for (number, start) in response.starts.iter().enumerate().skip(1) {
            println!(
                "{name:<28} start {number}      {:>40.3}",
                response.part_of_best(start)
            );
        }
    }
}

fn own(search: &Search<'_>, done: &[SearchTrial], block: u32) -> Option<pgdyno_stats::Point> {
    search.next(done, block).map(|next| next.point)
}

/// A row: of each seed the best so far after each trial, as a part of the best there is.
fn show((response, method): (&str, &str), paths: &[Vec<f64>], trials: usize) {
    let ends = paths.iter().filter_map(|path| path.last());
    let share = number(ends.filter(|end| **end >= 0.95).count()) / number(paths.len());
    let mut first: Vec<usize> = paths
        .iter()
        .map(|path| {
            // From there on, not for a moment.
            let below = path.iter().rposition(|of| *of < 0.95);
            below.map_or(1, |last| last + 2)
        })
        .collect();
    first.sort_unstable();
    let mean = |at: usize| {
        let all = paths.iter().map(|path| path[at.min(path.len() - 1)]);
        all.sum::<f64>() / number(paths.len())
    };
    println!(
        "{response:<28} {method:<12} {:>10.0} %  {:>13}  {:>12.3}  {:>5.3}",
        share * 100.0,
        first[first.len() / 2],
        mean(trials - 1),
        mean(11),
    );
}
