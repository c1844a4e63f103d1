//! A program that chooses what a search tries next: what it chooses follows from the seed and the
//! trials that it knows of.

use crate::error::LabError;
use crate::ports::{Optimizer, Optimizers};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

/// After so many choices that were refused, it varies one factor of the reference alone.
const NEAR_AFTER: u32 = 5;

pub(super) struct SimulatedOptimizers;

impl Optimizers for SimulatedOptimizers {
    fn begin(&self, _: &str) -> Result<Box<dyn Optimizer + '_>, LabError> {
        Ok(Box::new(Simulated::default()))
    }
}

#[derive(Default)]
struct Simulated {
    opening: Option<Value>,
    /// Levels of each trial that it knows of.
    known: Vec<String>,
    /// Choices of it that were refused since it was asked first for this trial.
    refused: u32,
}

impl Optimizer for Simulated {
    fn tell(&mut self, line: &str) -> Result<bool, LabError> {
        let message: Value = serde_json::from_str(line).expect("JSON");
        if self.opening.is_none() {
            assert_eq!(message["format"], "pgdyno-optimizer/1");
            self.opening = Some(message);
        } else if message.get("refuse").is_some() {
            self.refused += 1;
        } else {
            self.known.push(message["tell"]["levels"].to_string());
            self.refused = 0;
        }
        Ok(true)
    }

    fn ask(&mut self, line: &str) -> Result<Option<String>, LabError> {
        let message: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(message["ask"]["trial"], self.known.len() + 1, "it knows of all");
        let opening = self.opening.as_ref().expect("an opening");
        let mut levels = serde_json::Map::new();
        let factors = opening["factors"].as_array().expect("factors");
        let varied = self.refused as usize % factors.len();
        for (place, factor) in factors.iter().enumerate() {
            let mut hasher = DefaultHasher::new();
            (
                opening["seed"].to_string(),
                &self.known,
                self.refused,
                factor["name"].to_string(),
            )
                .hash(&mut hasher);
            let all = factor["levels"].as_array().expect("levels");
            let chosen = usize::try_from(hasher.finish() % all.len() as u64).expect("a small number");
            // The first choice is one that nobody can try, now and then.
            let level = match self.refused == 0 && self.known.len() % 5 == 3 {
                true => json!("no such level"),
                false if self.refused >= NEAR_AFTER && place != varied => all[0].clone(),
                false => all[chosen].clone(),
            };
            levels.insert(factor["name"].as_str().expect("a name").to_owned(), level);
        }
        Ok(Some(
            json!({ "levels": levels, "why": "by its seed" }).to_string(),
        ))
    }
}
