//! The experiments of a tune, as files.

use crate::cli::TuneArgs;
use crate::commands::drafts::{NamedLoad, table};
use crate::failure::{Failure, Result};
use pgdyno_advice::{MemoryOf, Scale, SearchSpace};
use pgdyno_knobs::Setting;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_lab::{Reset, WindowPart};
use std::collections::BTreeMap;
use toml::Value;

/// Trials that a block of the search has: time enough for a round, and near enough in time to be alike.
const TRIALS_OF_BLOCK: u32 = 6;
/// Part of the available memory that the server and its clients may take by the knobs that are memory.
const MEMORY_PART: f64 = 0.75;

/// The name of the best treatment in the experiments after the search.
pub(super) const BEST: &str = "best";
/// What is left of it without the settings that do not pay.
pub(super) const KEPT: &str = "kept";

/// What all experiments of a tune have in common.
pub(super) struct Common<'a> {
    pub(super) args: &'a TuneArgs,
    pub(super) metric: &'a str,
    load: NamedLoad,
}

/// What a search goes by to stay within the memory.
pub(super) struct MemoryUse<'a> {
    /// Knobs whose values are memory.
    pub(super) knobs: &'a [(&'a str, MemoryOf)],
    /// What the server may use; `None` where that is unknown.
    pub(super) available_bytes: Option<f64>,
    /// The present value of a knob.
    pub(super) present: &'a dyn Fn(&str) -> Option<String>,
}

/// A starting point of a search: its name, and level by knob.
pub(super) type Start = (String, BTreeMap<String, String>);

impl<'a> Common<'a> {
    pub(super) fn new(args: &'a TuneArgs, metric: &'a str) -> Result<Common<'a>> {
        let load = NamedLoad::of(&args.of_load)?;
        Ok(Common { args, metric, load })
    }

    fn entries(&self, name: &str, question: &str, design: &str) -> Vec<(&'static str, Value)> {
        let args = self.args;
        let mut data = vec![("scale", i64::from(args.scale).into())];
        if args.reset != Reset::None {
            data.push(("reset", args.reset.name().into()));
        }
        if let Some(dataset) = args.of_load.dataset {
            data.push(("dataset", dataset.name().into()));
        }
        let load = table(vec![
            (self.load.key, self.load.value.as_str().into()),
            ("clients", i64::from(args.clients).into()),
            ("warmup_s", args.warmup.as_secs_f64().into()),
            ("measure_s", args.duration.as_secs_f64().into()),
        ]);
        let mut entries = vec![
            ("name", name.into()),
            ("question", question.into()),
            ("design", design.into()),
            ("metric", self.metric.into()),
            ("smallest_effect", args.smallest_effect.into()),
            ("data", table(data)),
            ("load", load),
        ];
        if let Some(WindowPart { from, to }) = &args.between {
            let ends = vec![("from", from.as_str().into()), ("to", to.as_str().into())];
            entries.push(("window", table(ends)));
        }
        entries
    }

    /// Of experiments whose reference is the present state.
    fn guard(&self) -> Option<(&'static str, Value)> {
        let most = self.args.max_slowdown?;
        Some(("guard", table(vec![("slowdown_max", most.into())])))
    }

    /// The settings that all trials run with.
    fn base(&self, more: &[Setting]) -> Value {
        let fixed = self.args.fix.iter();
        let fixed = fixed.map(|(knob, value)| (knob.clone(), value.as_str().into()));
        let more = more.iter().map(|s| (s.knob.clone(), s.value.as_str().into()));
        Value::Table(fixed.chain(more).collect())
    }

    /// The search itself.
    pub(super) fn search(
        &self,
        space: &SearchSpace,
        starts: &[Start],
        memory: &MemoryUse<'_>,
    ) -> Result<String> {
        let args = self.args;
        let mut search = vec![("trials", i64::from(args.trials).into())];
        if !args.subject_to.is_empty() {
            search.push(("subject_to", args.subject_to.clone().into()));
        }
        if let Some(command) = &args.optimizer {
            search.push(("optimizer", command.as_str().into()));
        }
        let starts = starts.iter().map(|(name, levels)| {
            let levels = levels
                .iter()
                .map(|(knob, value)| (knob.clone(), value.as_str().into()));
            table(vec![
                ("name", name.as_str().into()),
                ("levels", Value::Table(levels.collect())),
            ])
        });
        search.push(("start", starts.collect::<Vec<_>>().into()));
        if let Some(limit) = self.limit(space, memory) {
            search.push(("limit", vec![limit].into()));
        }
        let factors = space.knobs.iter().map(|knob| {
            let values = knob.values.iter().map(|(value, _)| Value::from(value.as_str()));
            let weights = knob.values.iter().map(|(_, weight)| Value::from(*weight));
            let mut factor = vec![
                ("name", knob.knob.as_str().into()),
                ("of", knob.knob.as_str().into()),
                ("values", values.collect::<Vec<_>>().into()),
                ("weights", weights.collect::<Vec<_>>().into()),
                ("relevance", knob.relevance.into()),
            ];
            if knob.scale == Scale::None {
                factor.push(("scale", "none".into()));
            }
            table(factor)
        });
        let factors: Vec<Value> = factors.collect();
        // A block has each combination once.
        let combinations = space
            .knobs
            .iter()
            .fold(1_usize, |all, knob| all.saturating_mul(knob.values.len()));
        let of_block =
            u32::try_from(combinations).map_or(TRIALS_OF_BLOCK, |all| all.clamp(1, TRIALS_OF_BLOCK));
        let mut file = self.entries("tune", "Which settings are the best here?", "search");
        file.extend([
            ("blocks", i64::from(args.trials.div_ceil(of_block)).into()),
            ("base", self.base(&[])),
            ("search", table(search)),
            ("factor", factors.into()),
        ]);
        file.extend(self.guard());
        if let Some(seed) = args.seed.and_then(|seed| i64::try_from(seed).ok()) {
            file.push(("seed", seed.into()));
        }
        if let Some(time) = args.time {
            let time = format!("{}s", time.as_secs_f64());
            file.push(("budget", table(vec![("time", time.into())])));
        }
        toml::to_string(&table(file)).map_err(Failure::new)
    }

    /// What the server and all of its clients may take together: a part of the memory, and where that is unknown no more than now.
    fn limit(&self, space: &SearchSpace, memory: &MemoryUse<'_>) -> Option<Value> {
        let fixed = |knob: &str| {
            let mut fixed = self.args.fix.iter();
            fixed.find(|(own, _)| own == knob).map(|(_, value)| value.clone())
        };
        let bytes = |knob: &str| {
            let text = fixed(knob).or_else(|| (memory.present)(knob))?;
            quantity(&text).map(|(_, number)| number)
        };
        let (mut sum, mut now_bytes, mut others_bytes) = (Vec::new(), 0.0, 0.0);
        for &(knob, of) in memory.knobs {
            let times = match of {
                MemoryOf::Server => 1.0,
                MemoryOf::Client => f64::from(self.args.clients),
            };
            let own_bytes = bytes(knob).unwrap_or(0.0) * times;
            match space.knobs.iter().any(|varied| varied.knob == knob) {
                true => {
                    sum.push((knob, times.into()));
                    now_bytes += own_bytes;
                }
                false => others_bytes += own_bytes,
            }
        }
        if sum.is_empty() {
            return None;
        }
        // The present state is tried in any case.
        let most_bytes = memory.available_bytes.map_or(now_bytes, |available| {
            (available * MEMORY_PART - others_bytes).max(now_bytes)
        });
        let at_most = format!("{:.0}MB", (most_bytes / f64::from(1 << 20)).ceil());
        Some(table(vec![("sum", table(sum)), ("at_most", at_most.into())]))
    }

    /// Treatments compared with the present state and `base` in blocks, each with its name, title and settings.
    pub(super) fn compared(
        &self,
        (name, question): (&str, &str),
        base: &[Setting],
        steps: &[(String, String, Vec<Setting>)],
    ) -> Result<String> {
        let steps = steps.iter().map(|(name, title, settings)| {
            let settings = settings.iter().map(|s| (s.knob.clone(), s.value.as_str().into()));
            table(vec![
                ("name", name.as_str().into()),
                ("title", title.as_str().into()),
                ("settings", Value::Table(settings.collect())),
            ])
        });
        let steps: Vec<Value> = steps.collect();
        let mut file = self.entries(name, question, "one-at-a-time");
        file.extend([
            ("blocks", i64::from(self.args.blocks).into()),
            ("stop", "when-decided".into()),
            ("base", self.base(base)),
            ("step", steps.into()),
        ]);
        if base.is_empty() {
            file.extend(self.guard());
        }
        toml::to_string(&table(file)).map_err(Failure::new)
    }
}
