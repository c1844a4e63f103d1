//! Which settings of a winner pay: what does not is removed, and what is left is compared once
//! more.

use super::file::{BEST, KEPT};
use super::outcome::{Compared, Dropped, Kept};
use super::{Step, Tune};
use crate::failure::Result;
use pgdyno_knobs::Setting;
use pgdyno_record::{Searched, StoredExperiment};
use pgdyno_store::Store;

/// The rest of the settings that are removed together, as each of them moves little.
const REST: &str = "without-the-rest";
/// Part of all effects from which on a setting is removed alone.
const ALONE_FROM: f64 = 0.05;
/// Settings that are removed alone, at most: each is a treatment in every block.
const ALONE_MAX: usize = 6;

impl Tune<'_> {
    /// Which of the winner's settings pay: each that matters is removed alone, the rest together.
    pub(super) fn ablated(
        &self,
        store: &mut Store,
        (searched, stored): (&Searched, &StoredExperiment),
        winner: &[Setting],
    ) -> Result<(Vec<Kept>, Vec<Dropped>)> {
        err!("removing settings, to see which of them pay");
        // The reference sets each knob that was varied to its present value.
        let reference = stored.record.treatments.first().into_iter();
        let present = reference.flat_map(|reference| &reference.settings);
        let present: Vec<Setting> = present
            .map(|own| Setting {
                knob: own.knob.clone(),
                value: own.value.clone(),
            })
            .collect();
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for settings in self.common.by_turns(winner, &present) {
            if !settings.is_empty() {
                let found = self.removed(store, (winner, &present), by_importance(searched, settings))?;
                kept.extend(found.0);
                dropped.extend(found.1);
            }
        }
        Ok((kept, dropped))
    }

    /// Which settings pay of those that are removed alone and of the rest, in one experiment.
    fn removed(
        &self,
        store: &mut Store,
        (winner, present): (&[Setting], &[Setting]),
        (alone, rest): (Vec<&Setting>, Vec<&Setting>),
    ) -> Result<(Vec<Kept>, Vec<Dropped>)> {
        let as_before = |settings: &[&Setting]| {
            let is_removed = |own: &&Setting| settings.iter().any(|setting| setting.knob == own.knob);
            present.iter().filter(is_removed).cloned().collect()
        };
        let mut steps: Vec<Step> = Vec::new();
        for setting in &alone {
            let (name, title) = (without(&setting.knob), format!("Without {}", setting.knob));
            steps.push((name, title, as_before(&[*setting])));
        }
        if !rest.is_empty() {
            steps.push((REST.to_owned(), "Without the rest".to_owned(), as_before(&rest)));
        }
        let words = ("tune-remove", "Which settings of the best can go?");
        let report = self.run(store, words, winner, &steps)?;
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        let groups = alone
            .iter()
            .map(|setting| (vec![*setting], without(&setting.knob)));
        for (settings, name) in groups.chain([(rest, REST.to_owned())]) {
            let found = Compared::of(&report, &name);
            // Without it a bound is broken that holds with it.
            let keeps_bound = found.is_some() && !self.broken(&report, &name)?.is_empty();
            let pays = keeps_bound || found.as_ref().is_none_or(|found| self.pays(found));
            for setting in settings {
                let is_alone = name != REST;
                let without = found.as_ref().and_then(|found| found.effect).filter(|_| is_alone);
                match pays {
                    true => kept.push(Kept {
                        setting: setting.clone(),
                        with: None,
                        without,
                        experiment: found.as_ref().map(|found| found.experiment),
                        trials: found.as_ref().map_or(0, |found| found.trials),
                        again: false,
                    }),
                    false => dropped.push(Dropped {
                        setting: setting.clone(),
                        without,
                        experiment: report.experiment.id,
                        trials: found.as_ref().map_or(0, |found| found.trials),
                    }),
                }
            }
        }
        Ok((kept, dropped))
    }

    /// Whether the removal costs as much as matters, as far as is known.
    fn pays(&self, removed: &Compared) -> bool {
        let effect = removed.effect;
        effect.is_none_or(|effect| self.loss(effect.ratio) >= self.args.smallest_effect)
    }

    /// What is left, against the present state and the winner. Where the gain is lost without all
    /// that was dropped, the half of it that cost the most is kept after all, and what is left then
    /// is compared, until it holds.
    pub(super) fn proven(
        &self,
        store: &mut Store,
        winner: &[Setting],
        (mut kept, mut dropped): (Vec<Kept>, Vec<Dropped>),
    ) -> Result<(Vec<Kept>, Vec<Dropped>, Option<Compared>)> {
        while !dropped.is_empty() {
            // Of several that bring the same, each can go, and not all.
            if !kept.is_empty() {
                err!("confirming what is left against the present state");
                if let Some(found) = self.holds(store, winner, &kept)? {
                    return Ok((kept, dropped, Some(found)));
                }
            }
            keep_half(&mut kept, &mut dropped, |ratio| self.loss(ratio));
        }
        Ok((kept, dropped, None))
    }

    /// What is left against the present state, where it brings as much as the winner.
    fn holds(&self, store: &mut Store, winner: &[Setting], kept: &[Kept]) -> Result<Option<Compared>> {
        let left: Vec<Setting> = kept.iter().map(|kept| kept.setting.clone()).collect();
        let steps = [
            (
                BEST.to_owned(),
                "The best of the search".to_owned(),
                winner.to_vec(),
            ),
            (KEPT.to_owned(), "Without what does not pay".to_owned(), left),
        ];
        let words = ("tune-kept", "Does the gain stay without what does not pay?");
        let report = self.run(store, words, &[], &steps)?;
        let ratio = |name: &str| Compared::of(&report, name).and_then(|found| Some(found.effect?.ratio));
        let lost = match (ratio(KEPT), ratio(BEST)) {
            (Some(kept), Some(best)) => self.loss(kept / best),
            _ => f64::INFINITY,
        };
        let holds = lost < self.args.smallest_effect;
        Ok(self.accepted(&report, KEPT)?.filter(|_| holds))
    }

    /// What a ratio loses; a larger metric is worse where it is one to be minimised.
    fn loss(&self, ratio: f64) -> f64 {
        match self.args.minimize {
            Some(_) => ratio - 1.0,
            None => 1.0 - ratio,
        }
    }
}

/// Keeps the half of what was dropped that cost the most, and at least one; of what was not removed
/// alone nothing is known.
fn keep_half(kept: &mut Vec<Kept>, dropped: &mut Vec<Dropped>, loss: impl Fn(f64) -> f64) {
    let cost = |one: &Dropped| one.without.map_or(f64::NEG_INFINITY, |effect| loss(effect.ratio));
    dropped.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    let half = dropped.len().div_ceil(2);
    kept.extend(dropped.drain(..half).map(|one| Kept::again(&one)));
}

/// The settings that are removed alone, by what the search found of them, and the rest.
fn by_importance<'w>(searched: &Searched, mut all: Vec<&'w Setting>) -> (Vec<&'w Setting>, Vec<&'w Setting>) {
    let part = |setting: &Setting| {
        let own = searched.importance.iter().find(|own| own.factor == setting.knob);
        own.map_or(0.0, |own| own.part)
    };
    all.sort_by(|a, b| part(b).total_cmp(&part(a)));
    let large = all.iter().filter(|setting| part(setting) >= ALONE_FROM).count();
    let alone = match all.len() - large.min(ALONE_MAX) {
        // One that is left over is removed alone as well.
        1 => all.len(),
        _ => large.min(ALONE_MAX),
    };
    let rest = all.split_off(alone);
    (all, rest)
}

fn without(knob: &str) -> String {
    format!("without-{knob}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_stats::{Effect, Verdict};

    #[test]
    fn what_cost_the_most_is_kept_after_all() {
        let one = |knob: &str, ratio: Option<f64>| Dropped {
            setting: Setting {
                knob: knob.to_owned(),
                value: "1".to_owned(),
            },
            without: ratio.map(|ratio| Effect {
                ratio,
                ratio_low: ratio,
                ratio_high: ratio,
                verdict: Verdict::Same,
                blocks: 5,
            }),
            experiment: 7,
            trials: 5,
        };
        let (mut kept, mut dropped) = (
            Vec::new(),
            vec![
                one("unknown", None),
                one("little", Some(0.995)),
                one("most", Some(0.985)),
            ],
        );
        keep_half(&mut kept, &mut dropped, |ratio| 1.0 - ratio);
        let names =
            |kept: &[Kept]| -> Vec<String> { kept.iter().map(|one| one.setting.knob.clone()).collect() };
        assert_eq!(names(&kept), ["most", "little"]);
        assert!(kept.iter().all(|one| one.again));
        assert_eq!(dropped.len(), 1);
        keep_half(&mut kept, &mut dropped, |ratio| 1.0 - ratio);
        assert_eq!((names(&kept)[2].as_str(), dropped.len()), ("unknown", 0));
    }
}
