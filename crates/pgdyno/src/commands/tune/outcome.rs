//! What a tune has found, for people, and as a profile.

use super::file::REFERENCE;
use crate::failure::{Failure, Result};
use pgdyno_knobs::Setting;
use pgdyno_record::BrokenBound;
use pgdyno_report::{Report, Treatment, effect, verdict_word};
use pgdyno_stats::{Effect, Verdict};
use serde_json::{Value as Json, json};
use toml::{Table, Value};

/// What new trials have shown of the best of a search.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is the present state.
    NothingBetter,
    /// It is not better, or it breaks these bounds.
    NotConfirmed {
        found: Option<Compared>,
        broken: Vec<BrokenBound>,
    },
    /// It is better, and worse with cold caches.
    WorseWhenCold { found: Compared, cold: Compared },
    /// It is better.
    Tuned(Box<Proof>),
}

/// How much better it is, and which of its settings pay.
#[derive(Debug)]
pub(super) struct Proof {
    /// All of it, against the present state.
    pub(super) found: Compared,
    /// Advice and pgtune's settings in the same experiment.
    pub(super) others: Vec<Other>,
    /// What is kept, with cold caches, where that was asked for.
    pub(super) cold: Option<Compared>,
    /// What is kept, where something does not pay.
    pub(super) last: Option<Compared>,
    pub(super) kept: Vec<Kept>,
    pub(super) dropped: Vec<Dropped>,
}

impl Proof {
    /// What is kept, against the present state.
    pub(super) fn proven(&self) -> &Compared {
        self.last.as_ref().unwrap_or(&self.found)
    }
}

/// Settings that the best is compared with, beside the present state.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) name: String,
    pub(super) title: String,
    /// Against the present state.
    pub(super) found: Compared,
    /// The best against them.
    pub(super) best: Option<Effect>,
}

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
    /// Whether no interval decides that it pays.
    pub(super) is_undecided: bool,
}

/// Of a setting of which no interval decides whether it pays.
const UNDECIDED: &str = "whether it pays is undecided";

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
            is_undecided: dropped.is_undecided,
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
            is_undecided: false,
        }
    }

    /// Its effect in a few words.
    pub(super) fn shown(&self) -> String {
        let own = match (&self.with, &self.without) {
            (Some(with), _) => format!("with it {}", effect(with)),
            (None, Some(without)) => format!("without it {}", effect(without)),
            (None, None) => "not measured alone".to_owned(),
        };
        let own = match self.is_undecided {
            true => format!("{own}; {UNDECIDED}"),
            false => own,
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
    /// Whether no interval decides that it does not pay.
    pub(super) is_undecided: bool,
}

impl Dropped {
    /// Why it is dropped, in a few words.
    pub(super) fn shown(&self) -> String {
        match self.is_undecided {
            true => format!("which costs less than matters as far as is known; {UNDECIDED}"),
            false => "which does not pay".to_owned(),
        }
    }
}

/// What the removal of settings from the best has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Removal {
    pub(super) pays: bool,
    pub(super) is_undecided: bool,
}

impl Removal {
    /// By the interval, and where that decides nothing by the estimate: what costs less than
    /// matters does not pay.
    pub(super) fn of(found: &Compared, smallest_effect: f64, is_minimized: bool) -> Removal {
        // Where it always fails, or a guard has ended it, there is no effect.
        let Some(effect) = found.effect else {
            return Removal {
                pays: true,
                is_undecided: !found.fails_more,
            };
        };
        let is_little = found.loses_less_than(smallest_effect, is_minimized);
        let is_loss = found.is(Verdict::Worse);
        let is_much = found.fails_more || loss(effect.ratio, is_minimized) >= smallest_effect;
        Removal {
            pays: !is_little && (is_loss || is_much),
            is_undecided: !is_little && !is_loss,
        }
    }
}

/// What a ratio loses; a larger metric is worse where it is one to be minimised.
pub(super) fn loss(ratio: f64, is_minimized: bool) -> f64 {
    match is_minimized {
        true => ratio - 1.0,
        false => 1.0 - ratio,
    }
}

/// A treatment's comparison with the reference of its experiment.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    pub(super) experiment: i64,
    pub(super) effect: Option<Effect>,
    pub(super) trials: usize,
    pub(super) failed: usize,
    /// Whether it fails more often than the reference.
    pub(super) fails_more: bool,
}

impl Compared {
    pub(super) fn of(report: &Report, name: &str) -> Option<Compared> {
        let named = |name: &str| report.treatments.iter().find(|own| own.name == name);
        let treatment: &Treatment = named(name)?;
        let failed = named(REFERENCE).map_or(0, |reference| reference.trials_failed);
        Some(Compared {
            experiment: report.experiment.id,
            effect: treatment.total,
            trials: treatment.trials_finished,
            failed: treatment.trials_failed,
            fails_more: treatment.trials_failed > failed,
        })
    }

    /// Whether the interval excludes a loss of so much, and no more trials fail.
    pub(super) fn loses_less_than(&self, smallest_effect: f64, is_minimized: bool) -> bool {
        let worst = |effect: Effect| match is_minimized {
            true => effect.ratio_high,
            false => effect.ratio_low,
        };
        let lost = self.effect.map(|effect| loss(worst(effect), is_minimized));
        !self.fails_more && lost.is_some_and(|lost| lost < smallest_effect)
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
        let reason = match kept.is_undecided {
            true => format!("{reason} Whether it pays is undecided."),
            false => reason,
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
