//! What is shown while something long goes on: a bar on a terminal, lines elsewhere.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use pgdyno_lab::{Event, Treatment};
use pgdyno_stats::three_digits;
use pgdyno_workload::DataProgress;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};
use tracing_indicatif::IndicatifLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Shows a bar while PostgreSQL is downloaded: the archive library reports its bytes to a span of
/// that name.
pub(crate) fn show_downloads() {
    let style = ProgressStyle::with_template(
        "fetching PostgreSQL {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} left",
    );
    let Ok(style) = style else { return };
    let layer = IndicatifLayer::new()
        .with_progress_style(style)
        .with_filter(filter_fn(|meta| {
            meta.is_span() && meta.name() == "get_archive" && meta.target().contains("maven")
        }));
    // A second call in one process finds the first one's in place, which is as good.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}

/// A bar for the creation of data.
pub(crate) struct DataBar(ProgressBar);

impl DataBar {
    pub(crate) fn new() -> DataBar {
        let bar = ProgressBar::no_length();
        let template = "{msg} {wide_bar} {human_pos}/{human_len} rows, {rate} rows/s, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(out, "{:.0}", state.per_sec());
            };
            bar.set_style(style.with_key("rate", rate));
        }
        DataBar(bar)
    }

    pub(crate) fn update(&self, progress: DataProgress) {
        self.0.set_length(progress.rows_total);
        self.0.set_position(progress.rows);
        output::show_beside(&self.0, &format!("creating data: {}", progress.step));
    }

    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// The progress of an experiment.
pub(crate) struct Experiment {
    bar: ProgressBar,
    data: Option<DataBar>,
    terminal: bool,
    trials: u32,
    done: u32,
    done_before: u32,
    /// Trials that have had a turn in the load that runs, by block and name; they end with it.
    turned: BTreeSet<(u32, String)>,
    trial_s: f64,
    /// What a budget of time left when the first trial began.
    budget: Option<Duration>,
    begun: Instant,
    now: String,
    /// Titles of treatments, by name.
    titles: BTreeMap<String, String>,
    /// Levels of the treatments of a search, by name.
    levels: BTreeMap<String, Vec<(String, String)>>,
    pub(crate) id: Option<i64>,
}

impl Experiment {
    pub(crate) fn new() -> Experiment {
        let bar = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Experiment {
            bar,
            data: None,
            terminal: output::remarks_are_seen(),
            trials: 0,
            done: 0,
            done_before: 0,
            turned: BTreeSet::new(),
            trial_s: 0.0,
            budget: None,
            begun: Instant::now(),
            now: String::new(),
            titles: BTreeMap::new(),
            levels: BTreeMap::new(),
            id: None,
        }
    }

    /// Changes the bars by an event of the run.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Data(progress) => self.data.get_or_insert_with(DataBar::new).update(*progress),
            Event::NotTested { treatment, reason } => {
                self.line(&format!("not tested: {} ({reason})", treatment.title));
            }
            Event::GoingTo(variant) => self.draw(&format!("going to the server for {}", variant.label())),
            Event::Waiting { minutes } => {
                self.line(&format!("outside of its hours: waiting for {minutes} minutes"))
            }
            Event::TrialWarns { treatment, warning } => {
                self.line(&format!("{}: {warning}", treatment.title));
            }
            Event::GuardActs {
                treatment,
                reason,
                lost,
            } => {
                self.trials = self.trials.saturating_sub(*lost);
                self.line(&format!("{} is not tried again: {reason}", treatment.title));
            }
            Event::Settled { treatment, lost } => {
                self.trials = self.trials.saturating_sub(*lost);
                self.line(&format!("{} is decided, and not tried again", treatment.title));
            }
            Event::EndsEarly { reason, blocks } => {
                self.line(&format!("ends after {blocks} blocks: {reason}"))
            }
            Event::Begun {
                id,
                trials,
                done,
                trial_s,
                budget_s,
            } => {
                if let Some(data) = self.data.take() {
                    data.done();
                }
                self.id = Some(*id);
                (self.trials, self.done, self.done_before) = (*trials, *done, *done);
                self.trial_s = *trial_s;
                self.budget = budget_s.and_then(|left_s| Duration::try_from_secs_f64(left_s).ok());
                self.begun = Instant::now();
                let left = duration_text(self.left());
                self.line(&format!(
                    "experiment {id}: {trials} trials, {done} done, about {left} left"
                ));
                if self.terminal {
                    self.bar.set_draw_target(ProgressDrawTarget::stderr());
                    self.bar.set_length(u64::from(*trials));
                    self.bar.enable_steady_tick(Duration::from_millis(500));
                }
            }
            Event::Suggested { treatment, best } => {
                if let Some(best) = best {
                    let title = self.titles.get(&best.treatment).unwrap_or(&best.treatment);
                    let interval = best.interval.map(|ends| ends.map(three_digits));
                    let interval =
                        interval.map_or_else(String::new, |[low, high]| format!(" [{low}, {high}]"));
                    let figure = three_digits(best.figure);
                    self.line(&format!("best so far: {title}, {figure}{interval}"));
                }
                let why = treatment.reason.as_deref().unwrap_or_default();
                let like = best.and_then(|best| self.levels.get(&best.treatment));
                let line = match like {
                    Some(like) if *like != treatment.levels => {
                        let differ = treatment.levels.iter().filter(|level| !like.contains(level));
                        let differ = differ.map(|(factor, level)| format!("{factor} {level}"));
                        let differ: Vec<String> = differ.collect();
                        format!(
                            "next: {}, the best so far with {} ({why})",
                            treatment.title,
                            differ.join(", ")
                        )
                    }
                    _ => format!("next: {} ({why})", treatment.title),
                };
                self.line(&line);
                self.levels
                    .insert(treatment.name.clone(), treatment.levels.clone());
            }
            Event::TrialBegins { treatment, block } => {
                self.turned.clear();
                self.begins(treatment, *block);
            }
            Event::Turn { treatment, block } => {
                let is_next = self.turned.last().is_none_or(|last| last.0 < *block);
                self.turned.insert((*block, treatment.name.clone()));
                if is_next && !self.terminal {
                    let left = duration_text(self.left());
                    self.line(&format!("block {block}, about {left} left"));
                }
                self.begins(treatment, *block);
            }
            Event::Second(second) => {
                let second = second.figures();
                self.draw(&format!(
                    "{} TPS{}",
                    three_digits(second.tps()),
                    if second.measured { "" } else { " (warm-up)" }
                ));
            }
            Event::TrialEnds(trial) => {
                self.done += 1;
                self.turned.remove(&(trial.block, trial.treatment.clone()));
                let result = match (&trial.reason, trial.tps) {
                    (Some(reason), _) => format!("failed: {reason}"),
                    (None, Some(tps)) => format!("{} TPS", three_digits(tps)),
                    (None, None) => match trial.figures.get("job_s").copied() {
                        Some(seconds) => format!("{} s", three_digits(seconds)),
                        None => "no result".to_owned(),
                    },
                };
                if !self.terminal || trial.reason.is_some() {
                    let title = self.titles.get(&trial.treatment).unwrap_or(&trial.treatment);
                    let (done, all, block) = (self.done, self.trials, trial.block);
                    self.line(&format!("trial {done}/{all}: block {block}, {title}: {result}"));
                }
                self.draw(&result);
            }
            Event::PuttingBack => {
                self.bar.finish_and_clear();
                self.line("restoring everything");
            }
        }
    }

    fn begins(&mut self, treatment: &Treatment, block: u32) {
        self.now = format!("block {block}, {}", treatment.title);
        let title = treatment.title.clone();
        self.titles.insert(treatment.name.clone(), title);
        self.draw("applying settings");
    }

    /// Trials that are done, and those before the present one in the load that runs.
    fn passed(&self) -> u32 {
        let turned = u32::try_from(self.turned.len()).unwrap_or(u32::MAX);
        self.done + turned.saturating_sub(1)
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| err!("{text}"));
    }

    fn draw(&self, what: &str) {
        self.bar.set_position(u64::from(self.passed()));
        let number = (self.passed() + 1).min(self.trials);
        let left = duration_text(self.left());
        let text = format!(
            "trial {number}/{}, {}: {what}, {left} left",
            self.trials, self.now
        );
        output::show_beside(&self.bar, &text);
    }

    /// From the mean length of the trials so far; of turns within a load, whose length is planned,
    /// from that. A budget of time ends it sooner.
    fn left(&self) -> Duration {
        let budget = self
            .budget
            .map(|budget| budget.saturating_sub(self.begun.elapsed()));
        self.trials_left().min(budget.unwrap_or(Duration::MAX))
    }

    fn trials_left(&self) -> Duration {
        let here = self.done - self.done_before;
        if here == 0 || !self.turned.is_empty() {
            let trials = self.trials.saturating_sub(self.passed());
            return Duration::from_secs_f64(self.trial_s * f64::from(trials));
        }
        let each_s = self.begun.elapsed().as_secs_f64() / f64::from(here);
        let all_s = each_s * f64::from(self.trials - self.done_before);
        Duration::from_secs_f64((all_s - self.begun.elapsed().as_secs_f64()).max(0.0))
    }
}

fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}
