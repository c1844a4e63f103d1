//! The experiments of a tune, as files.

use crate::cli::TuneArgs;
use crate::failure::{Failure, InContext as _, Result};
use pgdyno_advice::{Scale, SearchSpace};
use pgdyno_host::given_text;
use pgdyno_knobs::Setting;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_lab::Reset;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Trials that a block of the search has: time enough for a round, and near enough in time to be alike.
const TRIALS_OF_BLOCK: u32 = 6;
/// Part of the available memory that buffers and sorts of all clients may take.
const MEMORY_PART: f64 = 0.75;
const BUFFERS: &str = "shared_buffers";
const SORTS: &str = "work_mem";

/// The name of the best treatment in the experiments after the search.
pub(super) const BEST: &str = "best";
/// What is left of it without the settings that do not pay.
pub(super) const KEPT: &str = "kept";

/// What all experiments of a tune have in common.
pub(super) struct Common<'a> {
    pub(super) args: &'a TuneArgs,
    pub(super) metric: &'a str,
    /// The load's kind and text: ("workload", "tpcb").
    load: (&'static str, String),
}

/// A starting point of a search: its name, and level by knob.
pub(super) type Start = (String, BTreeMap<String, String>);

impl<'a> Common<'a> {
    pub(super) fn new(args: &'a TuneArgs, metric: &'a str) -> Result<Common<'a>> {
        let load = match &args.script {
            None => ("workload", args.workload.name().to_owned()),
            Some(path) => {
                let text = given_text(path);
                (
                    "script",
                    text.with_context(|| format!("{} could not be read", path.display()))?,
                )
            }
        };
        Ok(Common { args, metric, load })
    }

    fn entries(&self, name: &str, question: &str, design: &str) -> Vec<(&'static str, Value)> {
        let args = self.args;
        let mut data = vec![("scale", i64::from(args.scale).into())];
        if args.reset != Reset::None {
            data.push(("reset", args.reset.name().into()));
        }
        if let Some(dataset) = args.dataset {
            data.push(("dataset", dataset.name().into()));
        }
        let load = table(vec![
            (self.load.0, self.load.1.as_str().into()),
            ("clients", i64::from(args.clients).into()),
            ("warmup_s", args.warmup.as_secs_f64().into()),
            ("measure_s", args.duration.as_secs_f64().into()),
        ]);
        vec![
            ("name", name.into()),
            ("question", question.into()),
            ("design", design.into()),
            ("metric", self.metric.into()),
            ("smallest_effect", args.smallest_effect.into()),
            ("data", table(data)),
            ("load", load),
        ]
    }

    /// The settings that all trials run with.
    fn base(&self, more: &[Setting]) -> Value {
        let fixed = self.args.fix.iter();
        let fixed = fixed.map(|(knob, value)| (knob.clone(), value.as_str().into()));
        let more = more.iter().map(|s| (s.knob.clone(), s.value.as_str().into()));
        Value::Table(fixed.chain(more).collect())
    }

    /// The search itself; `memory_bytes`: what the server may use, where that is known.
    pub(super) fn search(
        &self,
        space: &SearchSpace,
        starts: &[Start],
        memory_bytes: Option<f64>,
        present: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String> {
        let args = self.args;
        let mut search = vec![("trials", i64::from(args.trials).into())];
        if !args.subject_to.is_empty() {
            search.push(("subject_to", args.subject_to.clone().into()));
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
        if let Some(limit) = self.limit(space, memory_bytes, present) {
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
        let mut file = self.entries("tune", "Which settings are the best here?", "search");
        file.extend([
            ("blocks", i64::from(args.trials.div_ceil(TRIALS_OF_BLOCK)).into()),
            ("base", self.base(&[])),
            ("search", table(search)),
            ("factor", factors.into()),
        ]);
        if let Some(seed) = args.seed.and_then(|seed| i64::try_from(seed).ok()) {
            file.push(("seed", seed.into()));
        }
        if let Some(time) = args.time {
            let time = format!("{}s", time.as_secs());
            file.push(("budget", table(vec![("time", time.into())])));
        }
        toml::to_string(&table(file)).map_err(Failure::new)
    }

    /// What buffers and the sorts of all clients may take together: a part of the memory, and where that is unknown no more than now.
    fn limit(
        &self,
        space: &SearchSpace,
        memory_bytes: Option<f64>,
        present: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Value> {
        let fixed = |knob: &str| {
            self.args
                .fix
                .iter()
                .find(|(own, _)| own == knob)
                .map(|(_, value)| value.clone())
        };
        let bytes = |knob: &str| {
            let text = fixed(knob).or_else(|| present(knob))?;
            quantity(&text).map(|(_, number)| number)
        };
        let clients = f64::from(self.args.clients);
        let (mut sum, mut now, mut others) = (Vec::new(), 0.0, 0.0);
        for (knob, times) in [(BUFFERS, 1.0), (SORTS, clients)] {
            let own = bytes(knob).unwrap_or(0.0) * times;
            match space.knobs.iter().any(|varied| varied.knob == knob) {
                true => {
                    sum.push((knob, times.into()));
                    now += own;
                }
                false => others += own,
            }
        }
        if sum.is_empty() {
            return None;
        }
        // The present state is tried in any case.
        let most = memory_bytes.map_or(now, |memory| (memory * MEMORY_PART - others).max(now));
        let at_most = format!("{:.0}MB", (most / f64::from(1 << 20)).ceil());
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
        toml::to_string(&table(file)).map_err(Failure::new)
    }
}

fn table(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Table(entries.collect::<Table>())
}
