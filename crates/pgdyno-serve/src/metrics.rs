//! The latest results and what runs now, in OpenMetrics' text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>). Figures that are missing or no
//! number are omitted.

use super::App;
use super::answer::{Body, takes_gzip};
use super::live::{elapsed_s, planned, seconds};
use super::now_unix_ms;
use super::problem::Problem;
use super::stamp::Stamp;
use super::summary::{Figures, Summary};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use pgdyno_record::METRICS;
use pgdyno_stats::{Effect, Verdict};
use pgdyno_store::{Filter, Life, Listed, Pulse, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The newest experiments by name and target; more would be more series than anybody reads.
const EXPERIMENTS_MAX: usize = 200;
/// Results that are not known yet are waited for so long: a scrape usually ends after ten seconds.
const FOR_RESULTS: Duration = Duration::from_secs(3);
const VERDICTS: [(&str, Verdict); 5] = [
    ("better", Verdict::Better),
    ("worse", Verdict::Worse),
    ("same", Verdict::Same),
    ("no-gain", Verdict::NoGain),
    ("undecided", Verdict::Undecided),
];

pub(super) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let pack = takes_gzip(&headers);
    let make = move |app: &App, store: &mut Store| {
        let seen = Seen::of(app, store)?;
        Ok((Body::new(KIND, seen.text().into_bytes(), pack), seen.is_whole))
    };
    let (body, is_whole) = app.with_store(make).await?;
    if !is_whole {
        app.fill_summaries();
    }
    Ok(body.into_response())
}

/// What the metrics are made of.
struct Seen {
    /// By their state.
    counts: BTreeMap<&'static str, u64>,
    /// The newest of each name and target that has ended with a result.
    latest: Vec<(Listed, Arc<Summary>)>,
    /// With the trials at most, where that is known.
    running: Vec<(Listed, Pulse, Option<u64>)>,
    is_whole: bool,
}

impl Seen {
    fn of(app: &App, store: &Store) -> Result<Seen, Problem> {
        let begun = Instant::now();
        let mut seen = Seen {
            counts: Life::ALL.iter().map(|life| (life.word(), 0)).collect(),
            latest: Vec::new(),
            running: Vec::new(),
            is_whole: true,
        };
        let mut reported = BTreeSet::new();
        for listed in store.find(&Filter::default())? {
            *seen.counts.entry(listed.life.word()).or_default() += 1;
            if listed.life == Life::Running {
                let pulse = store.pulse(listed.id)?;
                let summary = app.summaries.one_of_many(
                    (store, app.source.catalogue()),
                    listed.id,
                    Stamp::from(&pulse),
                )?;
                let trials = summary.and_then(|summary| planned(&pulse, &summary));
                seen.running.push((listed, pulse, trials));
                continue;
            }
            let name = (listed.name.clone(), listed.target.clone());
            if listed.trials_finished == 0 || reported.len() >= EXPERIMENTS_MAX || !reported.insert(name) {
                continue;
            }
            let (id, stamp) = (listed.id, Stamp::from(&listed));
            let summary = match app.summaries.known(id, stamp) {
                Some(known) => known,
                None if begun.elapsed() < FOR_RESULTS => {
                    app.summaries
                        .one_of_many((store, app.source.catalogue()), id, stamp)?
                }
                None => {
                    seen.is_whole = false;
                    None
                }
            };
            seen.latest.extend(summary.map(|summary| (listed, summary)));
        }
        Ok(seen)
    }

    fn text(&self) -> String {
        let mut page = Page(String::new());
        page.family("pgdyno", "info", "", "The program.");
        page.sample("pgdyno_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        page.family("pgdyno_experiments", "gauge", "", "Experiments in the store.");
        for (status, count) in &self.counts {
            page.sample("pgdyno_experiments", &[("status", status)], whole(*count));
        }
        self.experiments(&mut page);
        self.treatments(&mut page);
        self.running(&mut page);
        page.0 += "# EOF\n";
        page.0
    }

    fn experiments(&self, page: &mut Page) {
        let name = "pgdyno_experiment";
        page.family(name, "info", "", "The latest experiment of a name and a target.");
        for (listed, _) in &self.latest {
            let id = listed.id.to_string();
            let mut labels = of(listed).to_vec();
            labels.extend([("id", id.as_str()), ("status", listed.life.word())]);
            page.sample("pgdyno_experiment_info", &labels, 1.0);
        }
        let name = "pgdyno_experiment_started_timestamp_seconds";
        page.family(name, "gauge", "seconds", "When it began, in seconds since 1970.");
        for (listed, _) in &self.latest {
            page.sample(name, &of(listed), seconds(listed.started_unix_ms));
        }
        let name = "pgdyno_experiment_finished_timestamp_seconds";
        page.family(name, "gauge", "seconds", "When it ended, in seconds since 1970.");
        for (listed, _) in &self.latest {
            if let Some(finished) = listed.finished_unix_ms {
                page.sample(name, &of(listed), seconds(finished));
            }
        }
    }

    fn treatments(&self, page: &mut Page) {
        let name = "pgdyno_trials";
        page.family(
            name,
            "gauge",
            "",
            "Trials of a treatment; those that failed do not count.",
        );
        self.each(|figures, labels| {
            for (outcome, count) in [("finished", figures.finished), ("failed", figures.failed)] {
                let mut labels = labels.to_vec();
                labels.push(("outcome", outcome));
                page.sample(name, &labels, whole(count as u64));
            }
        });
        for metric in METRICS.iter().filter(|metric| !metric.exposed.is_empty()) {
            let name = format!("pgdyno_{}", metric.exposed);
            let help = format!("Mean over trials: {}.", metric.title);
            page.family(&name, "gauge", metric.exposed_unit(), &help);
            self.each(|figures, labels| {
                if let Some(mean) = figures.means.get(metric.id) {
                    page.sample(&name, labels, metric.in_base_unit(*mean));
                }
            });
        }
        type Of = fn((f64, f64, f64)) -> f64;
        let bounds: [(&str, &str, Of); 2] = [
            ("pgdyno_tps_low", "Lower bound of mean throughput.", |tps| tps.1),
            ("pgdyno_tps_high", "Upper bound of mean throughput.", |tps| tps.2),
        ];
        for (name, help, bound) in bounds {
            page.family(name, "gauge", "", help);
            self.each(|figures, labels| {
                if let Some(tps) = figures.tps {
                    page.sample(name, labels, bound(tps));
                }
            });
        }
        self.effects(page);
    }

    /// By the figure that decides, each treatment against what it is compared with.
    fn effects(&self, page: &mut Page) {
        type Of = fn(&Effect) -> f64;
        let gauges: [(&str, &str, Of); 3] = [
            (
                "pgdyno_effect_ratio",
                "The metric that decides: ratio of the treatment to the one that it is compared with.",
                |e| e.ratio,
            ),
            ("pgdyno_effect_low_ratio", "Lower bound of that ratio.", |e| {
                e.ratio_low
            }),
            ("pgdyno_effect_high_ratio", "Upper bound of that ratio.", |e| {
                e.ratio_high
            }),
        ];
        for (name, help, value) in gauges {
            page.family(name, "gauge", "ratio", help);
            self.each(|figures, labels| {
                if let Some(effect) = &figures.effect {
                    page.sample(name, &held(labels, figures), value(effect));
                }
            });
        }
        let name = "pgdyno_verdict";
        page.family(name, "stateset", "", "What may be said of that ratio.");
        self.each(|figures, labels| {
            let Some(effect) = &figures.effect else { return };
            for (word, verdict) in VERDICTS {
                let mut labels = held(labels, figures);
                labels.push((name, word));
                page.sample(name, &labels, f64::from(u8::from(effect.verdict == verdict)));
            }
        });
    }

    fn running(&self, page: &mut Page) {
        type Of = fn(&Pulse, Option<u64>) -> Option<f64>;
        let gauges: [(&str, &str, &str, Of); 5] = [
            (
                "pgdyno_running_trials_finished",
                "",
                "Finished trials of an experiment that is run.",
                |p, _| Some(whole(p.trials_finished)),
            ),
            (
                "pgdyno_running_trials_failed",
                "",
                "Its trials that failed.",
                |p, _| Some(whole(p.trials_failed)),
            ),
            (
                "pgdyno_running_trials_planned",
                "",
                "Its trials in all, at most.",
                |_, trials| trials.map(whole),
            ),
            (
                "pgdyno_running_elapsed_seconds",
                "seconds",
                "Time since its process began.",
                |p, _| elapsed_s(p),
            ),
            (
                "pgdyno_running_left_seconds",
                "seconds",
                "Time until its end, by its trials so far.",
                |p, _| p.progress.as_ref()?.left_s(now_unix_ms()),
            ),
        ];
        for (name, unit, help, value) in gauges {
            page.family(name, "gauge", unit, help);
            for (listed, pulse, trials) in &self.running {
                if let Some(value) = value(pulse, *trials) {
                    let id = listed.id.to_string();
                    page.sample(name, &numbered(listed, &id), value);
                }
            }
        }
        page.family("pgdyno_running_trial", "info", "", "The trial that is run now.");
        for (listed, pulse, _) in &self.running {
            let Some(progress) = &pulse.progress else { continue };
            let Some(current) = &progress.current else {
                continue;
            };
            let (id, block) = (listed.id.to_string(), current.block.to_string());
            let mut labels = numbered(listed, &id);
            labels.extend([
                ("treatment", current.treatment.as_str()),
                ("block", block.as_str()),
                ("phase", progress.phase.as_str()),
            ]);
            page.sample("pgdyno_running_trial_info", &labels, 1.0);
        }
    }

    fn each(&self, mut act: impl FnMut(&Figures, &[(&str, &str)])) {
        for (listed, summary) in &self.latest {
            for figures in &summary.treatments {
                let mut labels = of(listed).to_vec();
                labels.push(("treatment", &figures.name));
                act(figures, &labels);
            }
        }
    }
}

type Labels<'a> = Vec<(&'a str, &'a str)>;

fn of(listed: &Listed) -> [(&str, &str); 2] {
    [("experiment", &listed.name), ("target", &listed.target)]
}

/// Two of one name may run at a time.
fn numbered<'a>(listed: &'a Listed, id: &'a str) -> Labels<'a> {
    let mut labels = of(listed).to_vec();
    labels.push(("id", id));
    labels
}

fn held<'a>(labels: &[(&'a str, &'a str)], figures: &'a Figures) -> Labels<'a> {
    let mut labels = labels.to_vec();
    labels.extend(figures.against.as_deref().map(|against| ("against", against)));
    labels
}

fn whole(count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    let count = count as f64;
    count
}

/// The text as it grows.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        self.0 += name;
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// A label's value: backslash, quote and line feed are written out. A carriage return is allowed,
/// and a trap for who reads lines.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\r', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_what_is_no_number_is_omitted() {
        let mut page = Page(String::new());
        page.family("a_seconds", "gauge", "seconds", "Of a.");
        page.sample("a_seconds", &[("x", "\"<b>\\\n\r"), ("y", "ü")], 0.25);
        page.sample("a_seconds", &[], f64::NAN);
        page.sample("a_seconds", &[], f64::INFINITY);
        page.sample("a_seconds", &[], 1e6);
        assert_eq!(
            page.0,
            "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds Of a.\n\
             a_seconds{x=\"\\\"<b>\\\\\\n \",y=\"ü\"} 0.25\na_seconds 1000000\n"
        );
    }
}
