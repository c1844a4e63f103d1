//! Optimizers of others, by the lines that `pgdyno tune --optimizer` talks to them in.

use crate::fitted::Factor;
use pgdyno_stats::{Point, Search, SearchTrial};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Choices that are refused before a search ends.
const REFUSED_MAX: usize = 20;

pub(crate) struct Outside<'f> {
    factors: &'f [Factor],
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Trials that it knows of.
    known: usize,
}

impl<'f> Outside<'f> {
    pub(crate) fn start(command: &str, factors: &'f [Factor], (trials, seed): (usize, u64)) -> Outside<'f> {
        let mut words = command.split_whitespace();
        let mut child = Command::new(words.next().expect("a program"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut outside = Outside {
            factors,
            child,
            input,
            output,
            known: 0,
        };
        let factors: Vec<Value> = factors.iter().map(Factor::for_others).collect();
        outside.write(&json!({
            "format": "pgdyno-optimizer/1", "seed": seed, "trials": trials, "metric": "tps", "larger_is_better": true,
            "subject_to": [], "factors": factors,
        }));
        outside
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it reads");
    }

    /// What it chooses, other than what the block has and what may not be tried.
    pub(crate) fn next(&mut self, search: &Search<'_>, done: &[SearchTrial], block: u32) -> Option<Point> {
        for trial in &done[self.known..] {
            self.write(&json!({ "tell": {
                "levels": self.levels(&trial.point), "figure": trial.value.map(f64::exp), "value": trial.value, "holds": true,
                "ended_by_guard": false, "block": trial.block + 1,
            }}));
        }
        self.known = done.len();
        for _ in 0..REFUSED_MAX {
            self.write(&json!({ "ask": { "trial": done.len() + 1, "block": block + 1 } }));
            let mut line = String::new();
            self.output.read_line(&mut line).expect("it answers");
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let point: Point = self
                .factors
                .iter()
                .map(|factor| {
                    let level = answer["levels"][&factor.name].as_str();
                    level.map_or(0, |level| {
                        factor
                            .levels
                            .iter()
                            .position(|own| own == level)
                            .expect("a level of it")
                    })
                })
                .collect();
            let is_tried = done
                .iter()
                .any(|trial| trial.block == block && trial.point == point);
            let why = match (is_tried, (search.allowed)(&point)) {
                (true, _) => "the block has it already",
                (false, false) => "these levels are beyond a limit",
                (false, true) => return Some(point),
            };
            self.write(&json!({ "refuse": { "levels": self.levels(&point), "why": why } }));
        }
        None
    }

    fn levels(&self, point: &[usize]) -> Value {
        let levels = self.factors.iter().zip(point);
        levels
            .map(|(factor, &level)| (factor.name.clone(), factor.levels[level].clone().into()))
            .collect::<serde_json::Map<String, Value>>()
            .into()
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
