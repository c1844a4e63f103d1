//! The experiments of a tune, as files.

use crate::cli::{LoadFromArgs, TuneArgs};
use crate::commands::drafts::{NamedLoad, table};
use crate::failure::{Failure, Result, Usage};
use crate::show;
use pgdyno_advice::{MemoryOf, Priors, Scale, SearchSpace};
use pgdyno_knobs::{Catalogue, Cost, Setting};
use pgdyno_lab::{BESIDE_S, Bound, ExperimentFile, Reset, SettingScope, WindowPart};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;
use toml::Value;

/// Trials that a block of the search has: time enough for a round, and near enough in time to be
/// alike.
const TRIALS_OF_BLOCK: u32 = 6;
/// Part of the available memory that the server and its clients may take by the knobs that are
/// memory.
const MEMORY_PART: f64 = 0.75;

/// The design in which settings take turns within one load.
const SWITCHBACK: &str = "switchback";
/// Settings that are removed alone, at most: each is a treatment in every block.
pub(super) const ALONE_MAX: usize = 6;
/// The name of the best treatment in the experiments after the search.
pub(super) const BEST: &str = "best";
/// The present state, in all of them.
pub(super) const REFERENCE: &str = "reference";
/// What is left of it without the settings that do not pay.
pub(super) const KEPT: &str = "kept";

/// What is in the caches when the load of a trial begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caches {
    /// What the warm-up brings.
    Warm,
    /// Nothing, and no warm-up.
    Cold,
}

/// What all experiments of a tune have in common.
pub(super) struct Common<'a> {
    pub(super) args: &'a TuneArgs,
    pub(super) metric: &'a str,
    /// What the best must hold to.
    pub(super) bounds: Vec<Bound>,
    catalogue: &'a Catalogue,
    load: NamedLoad,
}

/// What the treatments of an experiment are compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Against<'b> {
    /// Settings that all of them have; none where it is the present state.
    pub(super) base: &'b [Setting],
    /// The share by which throughput may be below it before a trial is ended.
    pub(super) slowdown_max: Option<f64>,
}

/// A step of an experiment: name, title, settings.
pub(super) type Step = (String, String, Vec<Setting>);

/// What a search begins with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Draft {
    /// Name of the target.
    pub(super) target: String,
    pub(super) space: SearchSpace,
    pub(super) starts: Vec<Start>,
    /// What starting points set beside the knobs that are varied: names of knobs by that of the
    /// starting point.
    #[serde(default)]
    pub(super) not_varied: BTreeMap<String, Vec<String>>,
    /// What starting points have otherwise than their profiles, a line each.
    #[serde(default)]
    pub(super) lowered: Vec<String>,
    /// What advice and pgtune set as a whole, by the name of the starting point; none on a server
    /// that is no sandbox, where nothing is changed that is not varied.
    #[serde(default)]
    pub(super) whole: Vec<(String, Vec<Setting>)>,
    pub(super) memory: Memory,
}

impl Draft {
    /// What of the starting points is not tried, a line each.
    pub(super) fn not_tried(&self) -> impl Iterator<Item = String> {
        let lines = self.not_varied.iter();
        let lines =
            lines.map(|(start, knobs)| format!("of {start}, not varied and not tried: {}", knobs.join(", ")));
        lines.chain(self.lowered.iter().cloned())
    }
}

/// What a search goes by to stay within the memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    /// What the server may use; `None` where that is unknown.
    pub(super) available_bytes: Option<f64>,
    /// How many times what a knob gives to each sort may be taken at once.
    pub(super) sorts: f64,
    /// Present values of the knobs that are memory.
    pub(super) present: BTreeMap<String, String>,
}

/// The memory that the server and its clients may take together.
struct Limit {
    /// Knobs with the times that their values are taken.
    sum: Vec<(String, f64)>,
    at_most_bytes: f64,
}

/// A starting point of a search: its name, and level by knob.
pub(super) type Start = (String, BTreeMap<String, String>);

impl<'a> Common<'a> {
    /// `read` reads the script.
    pub(super) fn new(
        (args, metric): (&'a TuneArgs, &'a str),
        catalogue: &'a Catalogue,
        read: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<Common<'a>> {
        let load = match &args.program {
            Some(program) => NamedLoad {
                key: "program",
                value: program.clone(),
            },
            None => NamedLoad::of(&args.of_load, read)?,
        };
        let bounds = args
            .subject_to
            .iter()
            .map(|text| Bound::parse(text).map_err(Usage));
        Ok(Common {
            args,
            metric,
            bounds: bounds.collect::<Result<_, _>>()?,
            catalogue,
            load,
        })
    }

    fn entries(
        &self,
        (name, question): (&str, &str),
        design: &str,
        caches: Caches,
    ) -> Vec<(&'static str, Value)> {
        let args = self.args;
        let mut data = vec![("scale", i64::from(args.scale).into())];
        if args.reset != Reset::None {
            data.push(("reset", args.reset.name().into()));
        }
        if let Some(dataset) = args.of_load.dataset {
            data.push(("dataset", dataset.name().into()));
        }
        let warmup = match caches {
            Caches::Warm => args.warmup,
            Caches::Cold => {
                data.push(("prewarm", "cold".into()));
                Duration::ZERO
            }
        };
        let mut load = vec![
            (self.load.key, self.load.value.as_str().into()),
            ("clients", i64::from(args.clients).into()),
            ("warmup_s", warmup.as_secs_f64().into()),
            ("measure_s", args.duration.as_secs_f64().into()),
        ];
        if let Some(rate) = &args.rate {
            load.push(("rate", rate.as_str().into()));
        }
        let LoadFromArgs {
            hosts, connection, ..
        } = &args.load_from;
        if !hosts.is_empty() {
            load.push(("hosts", hosts.clone().into()));
        }
        if let Some(connection) = connection {
            load.push(("connection", connection.as_str().into()));
        }
        if let Some(command) = &args.command {
            load.push(("command", command.as_str().into()));
        }
        let mut entries = vec![
            ("name", name.into()),
            ("question", question.into()),
            ("design", design.into()),
            ("metric", self.metric.into()),
            ("smallest_effect", args.smallest_effect.into()),
            ("data", table(data)),
            ("load", table(load)),
        ];
        if args.scope() == SettingScope::Session {
            entries.push(("target", table(vec![("scope", "session".into())])));
        }
        if let Some(WindowPart { from, to }) = &args.between {
            let ends = vec![("from", from.as_str().into()), ("to", to.as_str().into())];
            entries.push(("window", table(ends)));
        }
        entries
    }

    /// Whether a knob takes a restart, in some version at least.
    fn needs_restart(&self, knob: &str) -> bool {
        let known = self.catalogue.find(knob);
        known.is_none_or(|knob| {
            matches!(knob.cost, Cost::Restart | Cost::Remount | Cost::Reboot) || knob.restart_until.is_some()
        })
    }

    /// The present state, as what treatments are compared with.
    pub(super) fn present(&self) -> Against<'static> {
        Against {
            base: &[],
            slowdown_max: self.args.max_slowdown,
        }
    }

    /// The share by which throughput may be below that of the best, which has so many times that of
    /// the present state: the floor is the same for all experiments.
    pub(super) fn slowdown_below(&self, times: Option<f64>) -> Option<f64> {
        /// A guard takes a share between nothing and all.
        const LEAST: f64 = 0.01;
        let most = self.args.max_slowdown?;
        let share = times.map_or(most, |times| 1.0 - (1.0 - most) / times);
        // As many digits as a person would give.
        Some(((share * 1e3).round() / 1e3).clamp(LEAST, 1.0 - LEAST))
    }

    /// What the best is compared with: "the state before", or that with what `--fix` sets.
    pub(super) fn before(&self) -> String {
        let fixed = self
            .args
            .fix
            .iter()
            .map(|(knob, value)| format!("{knob} = {value}"));
        match fixed.collect::<Vec<String>>() {
            fixed if fixed.is_empty() => "the state before".to_owned(),
            fixed => format!("the state before with {}", fixed.join(", ")),
        }
    }

    /// The settings that all trials run with.
    fn base(&self, more: &[Setting]) -> Value {
        let fixed = self.args.fix.iter();
        let fixed = fixed.map(|(knob, value)| (knob.clone(), value.as_str().into()));
        let more = more.iter().map(|s| (s.knob.clone(), s.value.as_str().into()));
        Value::Table(fixed.chain(more).collect())
    }

    /// The search itself.
    pub(super) fn search(&self, draft: &Draft) -> Result<String> {
        let Draft {
            space,
            starts,
            memory,
            ..
        } = draft;
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
        if let Some(Limit { sum, at_most_bytes }) = self.limit(space, memory)? {
            let sum = sum.into_iter().map(|(knob, times)| (knob, Value::from(times)));
            let at_most = format!("{:.0}MB", (at_most_bytes / f64::from(1 << 20)).ceil());
            let limit = vec![("sum", Value::Table(sum.collect())), ("at_most", at_most.into())];
            search.push(("limit", vec![table(limit)].into()));
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
            if knob.scale != Scale::default() {
                factor.push(("scale", knob.scale.name().into()));
            }
            table(factor)
        });
        let factors: Vec<Value> = factors.collect();
        let of_block = trials_of_block(space);
        let words = ("tune", "Which settings are the best here?");
        let mut file = self.entries(words, "search", Caches::Warm);
        // Where no knob needs a restart, none is made: what a trial leaves in the caches is the
        // same for all. Where some do, each trial begins with one, or those alone would begin with
        // cold caches.
        let needs_restart = space.knobs.iter().any(|knob| self.needs_restart(&knob.knob));
        if args.scope() == SettingScope::Server && !needs_restart {
            file.push(("target", table(vec![("restart", "when-needed".into())])));
        }
        file.extend([
            ("blocks", i64::from(args.trials.div_ceil(of_block)).into()),
            ("base", self.base(&[])),
            ("search", table(search)),
            ("factor", factors.into()),
        ]);
        file.extend(guard(args.max_slowdown));
        if let Some(seed) = args.seed.and_then(|seed| i64::try_from(seed).ok()) {
            file.push(("seed", seed.into()));
        }
        if let Some(time) = args.time {
            let time = format!("{}s", time.as_secs_f64());
            file.push(("budget", table(vec![("time", time.into())])));
        }
        toml::to_string(&table(file)).map_err(Failure::new)
    }

    /// What the server and all of its clients may take together: a part of the memory, and where
    /// that is unknown no more than now.
    fn limit(&self, space: &SearchSpace, memory: &Memory) -> Result<Option<Limit>> {
        let priors = Priors::shipped(self.catalogue)?;
        let fixed = |knob: &str| {
            let mut fixed = self.args.fix.iter();
            fixed.find(|(own, _)| own == knob).map(|(_, value)| value.clone())
        };
        let bytes = |knob: &str| {
            let text = fixed(knob).or_else(|| memory.present.get(knob).cloned())?;
            self.catalogue.number_of(knob, &text)
        };
        let (mut sum, mut now_bytes, mut others_bytes) = (Vec::new(), 0.0, 0.0);
        for (knob, of) in priors.memory() {
            let times = match of {
                MemoryOf::Server => 1.0,
                MemoryOf::Client => memory.sorts,
            };
            let own_bytes = bytes(knob).unwrap_or(0.0) * times;
            match space.knobs.iter().any(|varied| varied.knob == knob) {
                true => {
                    sum.push((knob.to_owned(), times));
                    now_bytes += own_bytes;
                }
                false => others_bytes += own_bytes,
            }
        }
        if sum.is_empty() {
            return Ok(None);
        }
        // The present state is tried in any case.
        let most_bytes = memory.available_bytes.map_or(now_bytes, |available| {
            (available * MEMORY_PART - others_bytes).max(now_bytes)
        });
        Ok(Some(Limit {
            sum,
            at_most_bytes: most_bytes,
        }))
    }

    /// Lowers what starting points have of memory beyond the limit: of the knob that takes the
    /// most, to its next lower value, or else the present one.
    pub(super) fn keep_within_memory(&self, draft: &mut Draft) -> Result<()> {
        let Some(limit) = self.limit(&draft.space, &draft.memory)? else {
            return Ok(());
        };
        let bytes = |knob: &str, value: &str| self.catalogue.number_of(knob, value).unwrap_or(0.0);
        let values_of = |knob: &str| {
            let own = draft.space.knobs.iter().find(|own| own.knob == knob);
            own.map_or(&[][..], |own| &own.values)
        };
        for (name, levels) in &mut draft.starts {
            loop {
                let taken = limit.sum.iter().map(|(knob, times)| {
                    let present = values_of(knob).first().map_or("0", |(value, _)| value);
                    let value = levels.get(knob).map_or(present, String::as_str);
                    (knob, times * bytes(knob, value).max(0.0))
                });
                let taken: Vec<(&String, f64)> = taken.collect();
                if taken.iter().map(|(_, bytes)| bytes).sum::<f64>() <= limit.at_most_bytes {
                    break;
                }
                let own = taken.iter().filter(|(knob, _)| levels.contains_key(*knob));
                let Some((knob, _)) = own.max_by(|a, b| a.1.total_cmp(&b.1)) else {
                    break;
                };
                let Some(before) = levels.remove(*knob) else { break };
                let lower = values_of(knob).iter().map(|(value, _)| value);
                let lower = lower.filter(|value| bytes(knob, value) < bytes(knob, &before));
                let lower = lower.max_by(|a, b| bytes(knob, a).total_cmp(&bytes(knob, b)));
                let tried = match lower {
                    Some(value) => {
                        levels.insert((*knob).clone(), value.clone());
                        value.as_str()
                    }
                    None => "its present value",
                };
                draft.lowered.push(format!(
                    "of {name}, {knob} = {before} is beyond the memory that is there: {tried} is tried"
                ));
            }
        }
        // The present state is tried anyway.
        draft.starts.retain(|(_, levels)| !levels.is_empty());
        Ok(())
    }

    /// Refuses a time that is over before the first block of the search.
    pub(super) fn fits_in_time(&self, space: &SearchSpace) -> Result<()> {
        let (trials, load) = (trials_of_block(space), self.args.warmup + self.args.duration);
        let block_s = f64::from(trials) * self.trial_s();
        match self.args.time.filter(|time| time.as_secs_f64() < block_s) {
            Some(time) => Err(Usage(format!(
                "--time {}: a block of the search alone is {trials} trials of {} of load, with about {} beside each",
                shown(time),
                shown(load),
                show::time(BESIDE_S)
            ))
            .into()),
            None => Ok(()),
        }
    }

    /// Seconds of a trial, with what is beside its load.
    fn trial_s(&self) -> f64 {
        (self.args.warmup + self.args.duration).as_secs_f64() + BESIDE_S
    }

    /// About how many seconds the search takes, and all that comes after it, at most: without what
    /// is compared again where the gain is lost, or groups of settings are divided.
    pub(super) fn about_s(&self, space: &SearchSpace) -> [f64; 2] {
        let args = self.args;
        let limit_s = args.time.map_or(f64::INFINITY, |time| time.as_secs_f64());
        // Present state, advice, pgtune and the best; the best without each group; what is left
        // beside the best, and beside the present state; the same with cold caches.
        let groups = space.knobs.len().min(ALONE_MAX + 1);
        let treatments = 4 + (1 + groups) + 4 + if args.cold { 2 } else { 0 };
        let treatments = f64::from(u32::try_from(treatments).unwrap_or(u32::MAX));
        [
            (f64::from(args.trials) * self.trial_s()).min(limit_s),
            f64::from(args.blocks) * treatments * self.trial_s(),
        ]
    }

    /// How much it may take, for people.
    pub(super) fn planned(&self, space: &SearchSpace) -> String {
        let args = self.args;
        let cold = if args.cold { ", with cold caches too" } else { "" };
        let others = match args.could_be_of_sessions() && !args.target.starts_with("sandbox:") {
            true => {
                "\nall sessions of the server have what is tried; --session-scope sets it in the load's own"
            }
            false => "",
        };
        let [search_s, after_s] = self.about_s(space);
        format!(
            "about {} at most: {} to search, with {} trials of {} of load{}; then {} to confirm the best, to remove what does not \
             pay, and to confirm what is left{cold}, with {} blocks at most of each experiment (less where it is decided early)\
             {others}",
            show::time(search_s + after_s),
            show::time(search_s),
            args.trials,
            shown(args.warmup + args.duration),
            args.time
                .map_or_else(String::new, |time| format!(", within {}", shown(time))),
            show::time(after_s),
            args.blocks
        )
    }

    /// What is kept of the best of a search compared with the present state, when loads begin with
    /// cold caches.
    pub(super) fn cold(&self, kept: &[Setting]) -> Result<String> {
        let words = (
            "tune-cold",
            "Is what is kept of the best worse than the present state with cold caches?",
        );
        let title = "What is kept of the best".to_owned();
        let step = (BEST.to_owned(), title, kept.to_vec());
        self.compared(words, Caches::Cold, self.present(), &[step])
    }

    /// Treatments compared in blocks, each with its name, title and settings: within one load where
    /// all of them can take turns.
    pub(super) fn compared(
        &self,
        words: (&str, &str),
        caches: Caches,
        against: Against<'_>,
        steps: &[Step],
    ) -> Result<String> {
        if caches == Caches::Warm
            && let Some(text) = self.in_turns(words, against, steps)?
        {
            return Ok(text);
        }
        self.comparison(words, ("one-at-a-time", caches), against, steps)
    }

    /// The same within one load, where all of them can take turns, and turns have each figure that
    /// is bounded.
    fn in_turns(&self, words: (&str, &str), against: Against<'_>, steps: &[Step]) -> Result<Option<String>> {
        let text = self.comparison(words, (SWITCHBACK, Caches::Warm), against, steps)?;
        let file = ExperimentFile::parse(&text, Path::new(words.0), self.catalogue);
        let has_all = |file: ExperimentFile| self.bounds.iter().all(|bound| file.decides_by(&bound.figure));
        Ok(file.is_ok_and(has_all).then_some(text))
    }

    /// Those of the best's settings that cannot take turns with the present ones within one load
    /// (they need a restart, or plans are kept), and those that can.
    pub(super) fn by_turns<'b>(&self, best: &'b [Setting], present: &[Setting]) -> [Vec<&'b Setting>; 2] {
        let against = Against {
            base: best,
            slowdown_max: None,
        };
        let takes_turns = |setting: &&Setting| {
            let own = present.iter().filter(|own| own.knob == setting.knob);
            let step = (BEST.to_owned(), BEST.to_owned(), own.cloned().collect());
            let text = self.in_turns(("turns", "Does it take turns?"), against, &[step]);
            matches!(text, Ok(Some(_)))
        };
        let (in_turns, between) = best.iter().partition(takes_turns);
        [between, in_turns]
    }

    fn comparison(
        &self,
        words: (&str, &str),
        (design, caches): (&str, Caches),
        against: Against<'_>,
        steps: &[Step],
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
        let mut file = self.entries(words, design, caches);
        file.extend([
            ("blocks", i64::from(self.args.blocks).into()),
            ("stop", "when-decided".into()),
            ("base", self.base(against.base)),
            ("step", steps.into()),
        ]);
        file.extend(guard(against.slowdown_max));
        toml::to_string(&table(file)).map_err(Failure::new)
    }
}

/// Trials of a block of the search, which has each combination once.
fn trials_of_block(space: &SearchSpace) -> u32 {
    let counts = space.knobs.iter().map(|knob| knob.values.len());
    let combinations = counts.fold(1_usize, usize::saturating_mul);
    u32::try_from(combinations).map_or(TRIALS_OF_BLOCK, |all| all.clamp(1, TRIALS_OF_BLOCK))
}

/// The guard that ends a trial whose throughput is below the reference's by this share.
fn guard(slowdown_max: Option<f64>) -> Option<(&'static str, Value)> {
    let most = slowdown_max?;
    Some(("guard", table(vec![("slowdown_max", most.into())])))
}

fn shown(time: Duration) -> String {
    show::time(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use pgdyno_advice::SpaceKnob;
    use pgdyno_lab::Prewarm;

    /// What `act` makes of the experiments of a command line without a script.
    fn of_line<T>(words: &[&str], act: impl FnOnce(&Common<'_>, &Catalogue) -> T) -> T {
        let line = ["pgdyno", "tune", "sandbox:t"].iter().chain(words);
        let Command::Tune(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("{words:?}");
        };
        let catalogue = Catalogue::shipped().unwrap();
        let no_script = |_: &Path| unreachable!("there is no script");
        let common = Common::new((&args, "tps"), &catalogue, &no_script).unwrap();
        act(&common, &catalogue)
    }

    #[test]
    fn load_is_at_a_rate_and_from_the_hosts_that_are_named() {
        let words = "--rate 500 --load-host ssh:gen1 --load-host local --load-connection host=10.0.0.5";
        let words: Vec<&str> = words.split(' ').collect();
        let text = of_line(&words, |common, _| common.cold(&[]).unwrap());
        for expected in [
            "rate = \"500\"",
            "hosts = [\"ssh:gen1\", \"local\"]",
            "connection = \"host=10.0.0.5\"",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn time_that_is_over_before_a_block_is_refused() {
        let knob = SpaceKnob {
            knob: "work_mem".into(),
            values: ["4MB", "8MB"].map(|value| (value.to_owned(), 1.0)).to_vec(),
            scale: Scale::Log,
            relevance: 1.0,
            reason: String::new(),
            source: String::new(),
        };
        let space = |knobs| SearchSpace {
            knobs: vec![knob.clone(); knobs],
            skipped: Vec::new(),
        };
        let check = |time: &str, knobs| {
            let words = ["--warmup", "5s", "--duration", "10s", "--time", time];
            let fits = of_line(&words, |common, _| common.fits_in_time(&space(knobs)));
            fits.map_err(|error| error.to_string())
        };
        // With 4 s beside the load of each.
        assert_eq!(check("114s", 3), Ok(()));
        assert_eq!(check("38s", 1), Ok(()));
        let why = check("113s", 3).unwrap_err();
        assert!(why.contains("6 trials of 15"), "{why}");
    }

    #[test]
    fn whole_tune_is_estimated_and_not_its_search_alone() {
        let space = SearchSpace {
            knobs: Vec::new(),
            skipped: Vec::new(),
        };
        let about = |words: &[&str]| {
            let words = [&["--warmup", "5s", "--duration", "11s", "--trials", "30"], words].concat();
            of_line(&words, |common, _| common.about_s(&space).map(f64::round))
        };
        // Trials of 20 s; ten blocks of nine treatments, and two more with cold caches.
        assert_eq!(about(&[]), [600.0, 1_800.0]);
        assert_eq!(about(&["--time", "5m", "--cold"]), [300.0, 2_200.0]);
    }

    #[test]
    fn settings_that_can_take_turns_are_compared_within_one_load() {
        let check = |words: &[&str], caches: Caches, knobs: &[&str], expected: &str| {
            let settings = knobs.iter().map(|knob| Setting {
                knob: (*knob).to_owned(),
                value: "10".into(),
            });
            let step = (BEST.to_owned(), "The best".to_owned(), settings.collect());
            let text = of_line(words, |common, _| {
                let against = common.present();
                common.compared(("x", "?"), caches, against, &[step]).unwrap()
            });
            let design = format!("design = \"{expected}\"");
            assert!(text.contains(&design), "{design}: {words:?} {knobs:?}: {text}");
        };
        let (own, delay) = ("one-at-a-time", ["commit_delay"]);
        check(&[], Caches::Warm, &delay, SWITCHBACK);
        check(&[], Caches::Cold, &delay, own);
        check(&[], Caches::Warm, &["commit_delay", "max_connections"], own);
        check(&["--rate", "100"], Caches::Warm, &delay, own);
        check(&["--session-scope"], Caches::Warm, &delay, own);
        check(&["--program", "pgbench"], Caches::Warm, &delay, own);
        check(
            &["--subject-to", "p99_ms <= 20"],
            Caches::Warm,
            &delay,
            SWITCHBACK,
        );
        check(&["--subject-to", "cpus <= 3"], Caches::Warm, &delay, own);
        let several = [
            "--subject-to",
            "p99_ms <= 20",
            "--subject-to",
            "wal_bytes_per_tx <= 9000",
        ];
        check(&several, Caches::Warm, &delay, own);
    }

    #[test]
    fn every_comparison_has_the_floor_of_the_present_state() {
        let of =
            |words: &[&str], times: Option<f64>| of_line(words, |common, _| common.slowdown_below(times));
        let words = ["--max-slowdown", "20%"];
        assert_eq!(of(&[], Some(2.0)), None);
        // Four fifths of the present state are two fifths of what is twice as good.
        assert_eq!(of(&words, Some(2.0)), Some(0.6));
        assert_eq!(of(&words, Some(1.0)), Some(0.2));
        assert_eq!(of(&words, None), Some(0.2));
        assert_eq!(of(&words, Some(0.5)), Some(0.01));
        let step = ("without".to_owned(), "Without".to_owned(), Vec::new());
        let text = of_line(&words, |common, _| {
            let against = Against {
                base: &[],
                slowdown_max: common.slowdown_below(Some(2.0)),
            };
            common
                .compared(("x", "?"), Caches::Warm, against, &[step])
                .unwrap()
        });
        assert!(text.contains("slowdown_max = 0.6"), "{text}");
    }

    #[test]
    fn settings_that_cannot_take_turns_are_removed_apart() {
        let settings = |value: &str| {
            ["commit_delay", "max_connections", "random_page_cost"].map(|knob| Setting {
                knob: knob.to_owned(),
                value: value.to_owned(),
            })
        };
        let check = |words: &[&str], expected: [&[&str]; 2]| {
            let (best, present) = (settings("50"), settings("100"));
            let groups = of_line(words, |common, _| {
                let groups = common.by_turns(&best, &present);
                groups.map(|group| group.iter().map(|own| own.knob.clone()).collect::<Vec<String>>())
            });
            assert_eq!(groups, expected.map(|group| group.to_vec()), "{words:?}");
        };
        check(&[], [&["max_connections", "random_page_cost"], &["commit_delay"]]);
        check(
            &["--rate", "100"],
            [&["commit_delay", "max_connections", "random_page_cost"], &[]],
        );
    }

    #[test]
    fn best_is_compared_with_cold_caches_and_the_same_load() {
        let command = "pgbench -S {host}";
        let words = [
            "--program",
            "pgbench",
            "--cold",
            "--warmup",
            "3s",
            "--command",
            command,
        ];
        let setting = Setting {
            knob: "work_mem".into(),
            value: "8MB".into(),
        };
        let file = of_line(&words, |common, catalogue| {
            let text = common.cold(&[setting]).unwrap();
            ExperimentFile::parse(&text, Path::new("a file"), catalogue).unwrap()
        });
        assert_eq!(file.data.prewarm, Some(Prewarm::Cold));
        assert_eq!(file.load.warmup_s, Some(0.0));
        assert_eq!(file.load.program.as_deref(), Some("pgbench"));
        assert_eq!(file.load.command.as_deref(), Some(command));
        assert_eq!(file.step[0].settings["work_mem"], Value::from("8MB"));
    }
}
