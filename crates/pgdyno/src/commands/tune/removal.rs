//! Which settings of a winner pay: what does not is removed, and what is left is compared once
//! more.

use super::file::{ALONE_MAX, KEPT, Step};
use super::outcome::{Compared, Dropped, Kept, Removal, loss};
use super::proof::{Prover, Winner, report_of};
use crate::failure::Result;
use pgdyno_knobs::Setting;
use pgdyno_record::Searched;

/// Settings that are removed together, as each of them moves little.
const REST: &str = "without-the-rest";
/// Part of all effects from which on a setting is removed alone.
const ALONE_FROM: f64 = 0.05;

/// Settings that are removed together, by importance.
type Group<'w> = Vec<&'w Setting>;

/// What is known of a group whose removal was measured.
struct Removed {
    experiment: i64,
    found: Option<Compared>,
    removal: Removal,
}

impl Prover<'_> {
    /// Which of the winner's settings pay: each that matters is removed alone, the rest together.
    pub(super) fn ablated(
        &mut self,
        searched: &Searched,
        winner: &Winner<'_>,
    ) -> Result<(Vec<Kept>, Vec<Dropped>)> {
        err!("removing settings, to see which of them pay");
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for settings in self.common.by_turns(winner.settings, &winner.present) {
            let groups = by_importance(searched, settings);
            let found = eliminated(groups, |groups| self.removed(winner, groups))?;
            kept.extend(found.0);
            dropped.extend(found.1);
        }
        Ok((kept, dropped))
    }

    /// Removes each of these groups, in one experiment.
    fn removed(&mut self, winner: &Winner<'_>, groups: &[Group<'_>]) -> Result<Vec<Removed>> {
        let steps: Vec<Step> = groups
            .iter()
            .enumerate()
            .map(|(i, group)| {
                let (name, title) = words_of(i, group);
                (name, title, winner.as_before(group))
            })
            .collect();
        let words = ("tune-remove", "Which settings of the best can go?");
        let report = report_of(&self.compared(words, winner.against(), &steps)?);
        let (smallest, is_minimized) = (self.common.args.smallest_effect, self.is_minimized());
        let removed = steps.iter().map(|(name, ..)| {
            let found = Compared::of(&report, name);
            // Without them a bound is broken that holds with them.
            let keeps_bound = found.is_some() && !self.broken(&report, name).is_empty();
            let removal = match &found {
                Some(found) if !keeps_bound => Removal::of(found, smallest, is_minimized),
                _ => Removal {
                    pays: true,
                    is_undecided: !keeps_bound,
                },
            };
            Removed {
                experiment: report.experiment.id,
                found,
                removal,
            }
        });
        Ok(removed.collect())
    }

    /// What is left, against the present state and the winner. Where the gain is lost without all
    /// that was dropped, the half of it that cost the most is kept after all, and what is left then
    /// is compared, until it holds.
    pub(super) fn proven(
        &mut self,
        winner: &Winner<'_>,
        (mut kept, mut dropped): (Vec<Kept>, Vec<Dropped>),
    ) -> Result<(Vec<Kept>, Vec<Dropped>, Option<Compared>)> {
        while !dropped.is_empty() {
            // Of several that bring the same, each can go, and not all.
            if !kept.is_empty() {
                err!("comparing what is left with the best, and with the present state");
                if let Some(found) = self.holds(winner, &kept, &dropped)? {
                    return Ok((kept, dropped, Some(found)));
                }
            }
            let is_minimized = self.is_minimized();
            keep_half(&mut kept, &mut dropped, |ratio| loss(ratio, is_minimized));
        }
        Ok((kept, dropped, None))
    }

    /// What is left against the present state, where a loss that matters against the winner is
    /// excluded.
    fn holds(&mut self, winner: &Winner<'_>, kept: &[Kept], dropped: &[Dropped]) -> Result<Option<Compared>> {
        let title = "Without what does not pay";
        let removed: Vec<&Setting> = dropped.iter().map(|own| &own.setting).collect();
        let step = (KEPT.to_owned(), title.to_owned(), winner.as_before(&removed));
        let words = ("tune-kept", "Does the gain stay without what does not pay?");
        let report = report_of(&self.compared(words, winner.against(), &[step])?);
        let (smallest, is_minimized) = (self.common.args.smallest_effect, self.is_minimized());
        let found = Compared::of(&report, KEPT);
        let stays = found.is_some_and(|found| found.loses_less_than(smallest, is_minimized));
        if !stays || !self.broken(&report, KEPT).is_empty() {
            return Ok(None);
        }
        let left = kept.iter().map(|kept| kept.setting.clone()).collect();
        let words = ("tune-proven", "Is what is left better than the present state?");
        let step = (KEPT.to_owned(), title.to_owned(), left);
        let report = report_of(&self.compared(words, self.common.present(), &[step])?);
        Ok(self.accepted(&report, KEPT))
    }

    fn is_minimized(&self) -> bool {
        self.common.args.minimize.is_some()
    }
}

/// Which settings pay, by the removal of groups: what one removes is one experiment. A group that
/// pays is halved until those that pay are single settings, so that there are as many further
/// experiments, at most, as the largest group has halvings.
fn eliminated<'w>(
    mut groups: Vec<Group<'w>>,
    mut remove: impl FnMut(&[Group<'w>]) -> Result<Vec<Removed>>,
) -> Result<(Vec<Kept>, Vec<Dropped>)> {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    while !groups.is_empty() {
        let mut halves = Vec::new();
        for (group, removed) in groups.iter().zip(remove(&groups)?) {
            if removed.removal.pays && group.len() > 1 {
                let (more, less) = group.split_at(group.len().div_ceil(2));
                halves.extend([more.to_vec(), less.to_vec()]);
                continue;
            }
            let own = removed.found.as_ref().filter(|_| group.len() == 1);
            let (without, trials) = (
                own.and_then(|found| found.effect),
                removed.found.as_ref().map_or(0, |found| found.trials),
            );
            for setting in group.iter().copied().cloned() {
                let (experiment, is_undecided) = (removed.experiment, removed.removal.is_undecided);
                match removed.removal.pays {
                    true => kept.push(Kept {
                        setting,
                        with: None,
                        without,
                        experiment: Some(experiment),
                        trials,
                        again: false,
                        is_undecided,
                    }),
                    false => dropped.push(Dropped {
                        setting,
                        without,
                        experiment,
                        trials,
                        is_undecided,
                    }),
                }
            }
        }
        groups = halves;
    }
    Ok((kept, dropped))
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
fn by_importance<'w>(searched: &Searched, mut all: Vec<&'w Setting>) -> Vec<Group<'w>> {
    let part = |setting: &Setting| {
        let own = searched.importance.iter().find(|own| own.factor == setting.knob);
        own.map_or(0.0, |own| own.part)
    };
    all.sort_by(|a, b| part(b).total_cmp(&part(a)));
    let large = all.iter().filter(|setting| part(setting) >= ALONE_FROM).count();
    let rest = all.split_off(large.min(ALONE_MAX));
    let mut groups: Vec<Group<'w>> = all.into_iter().map(|setting| vec![setting]).collect();
    groups.extend((!rest.is_empty()).then_some(rest));
    groups
}

/// Name and title of a step without a group, the so many'th of its experiment.
fn words_of(i: usize, group: &[&Setting]) -> (String, String) {
    match group {
        [only] => (format!("without-{}", only.knob), format!("Without {}", only.knob)),
        several => {
            let knobs: Vec<&str> = several.iter().map(|own| own.knob.as_str()).collect();
            (
                format!("{REST}-{}", i + 1),
                format!("Without {}", knobs.join(", ")),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_stats::{Effect, Verdict};

    fn setting(knob: &str) -> Setting {
        Setting {
            knob: knob.to_owned(),
            value: "1".to_owned(),
        }
    }

    fn removed(ratio: f64, verdict: Verdict, width: f64) -> Compared {
        Compared {
            experiment: 7,
            effect: Some(Effect {
                ratio,
                ratio_low: ratio - width,
                ratio_high: ratio + width,
                verdict,
                blocks: 5,
            }),
            trials: 5,
            failed: 0,
            fails_more: false,
        }
    }

    #[test]
    fn what_cost_the_most_is_kept_after_all() {
        let one = |knob: &str, ratio: Option<f64>| Dropped {
            setting: setting(knob),
            without: ratio.and_then(|ratio| removed(ratio, Verdict::Same, 0.0).effect),
            experiment: 7,
            trials: 5,
            is_undecided: false,
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

    #[test]
    fn interval_decides_whether_a_setting_pays_and_the_estimate_only_where_it_does_not() {
        let check = |found: &Compared, is_minimized, pays, is_undecided| {
            let expected = Removal { pays, is_undecided };
            assert_eq!(Removal::of(found, 0.02, is_minimized), expected, "{found:?}");
        };
        check(&removed(0.95, Verdict::Worse, 0.02), false, true, false);
        check(&removed(0.985, Verdict::Worse, 0.01), false, true, false);
        check(&removed(1.05, Verdict::Worse, 0.02), true, true, false);
        check(&removed(1.0, Verdict::Same, 0.01), false, false, false);
        check(&removed(1.05, Verdict::Undecided, 0.06), false, false, false);
        // A point estimate of a loss that an interval up to a loss of 7 % does not decide.
        check(&removed(0.97, Verdict::Undecided, 0.04), false, true, true);
        check(&removed(0.99, Verdict::Undecided, 0.04), false, false, true);
        check(&removed(1.01, Verdict::Undecided, 0.04), true, false, true);
        let fails = Compared {
            fails_more: true,
            ..removed(1.0, Verdict::Undecided, 0.01)
        };
        check(&fails, false, true, true);
        let unknown = Compared {
            effect: None,
            ..fails
        };
        check(&unknown, false, true, false);
    }

    #[test]
    fn group_that_pays_is_halved_until_the_settings_that_pay_are_alone() {
        let all: Vec<Setting> = (0..20).map(|i| setting(&format!("knob{i}"))).collect();
        let mut experiments = 0;
        let (kept, dropped) = eliminated(vec![all.iter().collect()], |groups| {
            experiments += 1;
            let of = |group: &Group<'_>| {
                let pays = group
                    .iter()
                    .any(|own| ["knob3", "knob17"].contains(&own.knob.as_str()));
                let found = match pays {
                    true => removed(0.9, Verdict::Worse, 0.01),
                    false => removed(1.0, Verdict::Same, 0.01),
                };
                Removed {
                    experiment: experiments,
                    removal: Removal::of(&found, 0.02, false),
                    found: Some(found),
                }
            };
            Ok(groups.iter().map(of).collect())
        })
        .unwrap();
        let mut names: Vec<&str> = kept.iter().map(|own| own.setting.knob.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["knob17", "knob3"]);
        assert_eq!(dropped.len(), 18);
        // One, and four or five halvings of twenty.
        assert!(experiments <= 6, "{experiments}");
        assert!(kept.iter().all(|own| own.without.is_some()));
    }
}
