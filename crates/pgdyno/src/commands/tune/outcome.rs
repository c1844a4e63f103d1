//! What a tune has found, for people, and as a profile.

use crate::failure::{Failure, Result};
use pgdyno_knobs::Setting;
use pgdyno_report::{Report, Treatment, effect, verdict_word};
use pgdyno_stats::{Effect, Verdict};
use serde_json::{Value as Json, json};
use toml::{Table, Value};

/// A setting that pays, and what its removal was measured to cost.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) setting: Setting,
    /// Against the state before, of a setting that is the only one.
    pub(super) with: Option<Effect>,
    /// Against the best without it; `None` where it was not measured alone.
    pub(super) without: Option<Effect>,
    /// Experiment that measured it.
    pub(super) experiment: Option<i64>,
    pub(super) trials: usize,
    /// Whether it stays only because the gain was lost without all that did not pay by themselves.
    pub(super) again: bool,
}

impl Kept {
    /// A setting that was dropped, where the gain was lost with what was.
    pub(super) fn again(dropped: &Dropped) -> Kept {
        Kept {
            setting: dropped.setting.clone(),
            with: None,
            without: dropped.without,
            experiment: Some(dropped.experiment),
            trials: dropped.trials,
            again: true,
        }
    }

    /// The only setting of a winner, whose effect is the winner's.
    pub(super) fn alone(setting: &Setting, found: &Compared) -> Kept {
        Kept {
            setting: setting.clone(),
            with: found.effect,
            without: None,
            experiment: Some(found.experiment),
            trials: found.trials,
            again: false,
        }
    }

    /// Its effect in a few words.
    pub(super) fn shown(&self) -> String {
        let own = match (&self.with, &self.without) {
            (Some(with), _) => format!("with it {}", effect(with)),
            (None, Some(without)) => format!("without it {}", effect(without)),
            (None, None) => "not measured alone".to_owned(),
        };
        match self.again {
            true => format!("{own}; kept, as the gain was lost without all that did not pay"),
            false => own,
        }
    }
}

/// A setting that is dropped.
#[derive(Debug, Clone)]
pub(super) struct Dropped {
    pub(super) setting: Setting,
    pub(super) without: Option<Effect>,
    /// Experiment that measured it, alone or with others.
    pub(super) experiment: i64,
    pub(super) trials: usize,
}

/// A treatment's comparison with the reference of its experiment.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    pub(super) experiment: i64,
    pub(super) effect: Option<Effect>,
    pub(super) trials: usize,
    pub(super) failed: usize,
}

impl Compared {
    pub(super) fn of(report: &Report, name: &str) -> Option<Compared> {
        let is_it = |treatment: &&Treatment| treatment.name == name;
        let treatment = report.treatments.iter().find(is_it)?;
        Some(Compared {
            experiment: report.experiment.id,
            effect: treatment.total,
            trials: treatment.trials_finished,
            failed: treatment.trials_failed,
        })
    }

    pub(super) fn is(&self, verdict: Verdict) -> bool {
        self.effect.is_some_and(|effect| effect.verdict == verdict)
    }

    /// The effect in a line.
    pub(super) fn shown(&self, smallest_effect: f64) -> String {
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        match &self.effect {
            Some(found) => format!(
                "{}: {} ({} trials{failed}, experiment {})",
                effect(found),
                verdict_word(found.verdict, smallest_effect),
                self.trials,
                self.experiment
            ),
            None => format!(
                "no interval ({} trials{failed}, experiment {})",
                self.trials, self.experiment
            ),
        }
    }

    pub(super) fn document(&self) -> Json {
        json!({
            "experiment": self.experiment, "effect": self.effect, "trials": self.trials, "failed": self.failed,
        })
    }
}

/// The settings that pay, as a profile.
pub(super) fn profile(
    name: &str,
    (title, summary): (&str, &str),
    fixed: &[(String, String)],
    kept: &[Kept],
) -> Result<String> {
    let fixed = fixed.iter().map(|(knob, value)| {
        entry(&[
            ("knob", knob),
            ("value", value),
            ("reason", "Fixed in all trials."),
            ("source", "--fix"),
        ])
    });
    let settings = kept.iter().map(|kept| {
        let reason = match (&kept.with, &kept.without) {
            (Some(with), _) => format!("With it: {} ({} trials).", effect(with), kept.trials),
            (None, Some(without)) => format!("Without it: {} ({} trials).", effect(without), kept.trials),
            (None, None) => "Its own effect was not measured; the profile's as a whole was.".to_owned(),
        };
        let reason = match kept.again {
            true => format!("{reason} Kept, as the gain was lost without all that did not pay."),
            false => reason,
        };
        let source = kept.experiment.map_or_else(
            || "measured by pgdyno".to_owned(),
            |id| format!("measured by pgdyno, experiment {id}"),
        );
        entry(&[
            ("knob", &kept.setting.knob),
            ("value", &kept.setting.value),
            ("reason", &reason),
            ("source", &source),
        ])
    });
    let settings: Vec<Value> = fixed.chain(settings).collect();
    let mut profile = Table::new();
    for (key, text) in [("name", name), ("title", title), ("summary", summary)] {
        profile.insert(key.to_owned(), text.into());
    }
    profile.insert("setting".to_owned(), settings.into());
    toml::to_string(&profile).map_err(Failure::new)
}

fn entry(entries: &[(&str, &str)]) -> Value {
    let entries = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).into()));
    Value::Table(entries.collect())
}
