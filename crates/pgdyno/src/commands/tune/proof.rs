//! What comes after a search: its best is confirmed in new trials, what does not pay is removed,
//! and what is left is compared once more.

use super::file::{Against, BEST, Caches, Common, REFERENCE, Step};
use super::outcome::{Compared, Kept, Other, Outcome, Proof};
use crate::failure::{Failure, Result};
use pgdyno_knobs::Setting;
use pgdyno_lab::compare::{Named, Which, compare};
use pgdyno_record::{BrokenBound, Searched, StoredExperiment};
use pgdyno_report::Report;
use pgdyno_stats::{Effect, Verdict};

/// The report of an experiment that has just ended, which is judged and not shown.
pub(super) fn report_of(stored: &StoredExperiment) -> Report {
    pgdyno_report::build(stored, "pgdyno", stored.started_unix_ms)
}

/// The best of a search.
pub(super) struct Winner<'w> {
    pub(super) settings: &'w [Setting],
    /// Present settings of all knobs that were varied.
    pub(super) present: Vec<Setting>,
    /// As in [`Against`].
    slowdown_max: Option<f64>,
}

impl Winner<'_> {
    pub(super) fn against(&self) -> Against<'_> {
        Against {
            base: self.settings,
            slowdown_max: self.slowdown_max,
        }
    }

    /// The present settings of these knobs.
    pub(super) fn as_before(&self, removed: &[&Setting]) -> Vec<Setting> {
        let is_removed = |own: &&Setting| removed.iter().any(|setting| setting.knob == own.knob);
        self.present.iter().filter(is_removed).cloned().collect()
    }
}

/// What every knob that was varied is set to in the reference of a search.
fn present(search: &StoredExperiment) -> Vec<Setting> {
    let reference = search.record.treatments.first().into_iter();
    let settings = reference.flat_map(|reference| &reference.settings);
    settings
        .map(|own| Setting {
            knob: own.knob.clone(),
            value: own.value.clone(),
        })
        .collect()
}

/// Proves the best of a search by further experiments.
pub(super) struct Prover<'a> {
    pub(super) common: &'a Common<'a>,
    /// Settings that the best is compared with, beside the present state.
    pub(super) others: Vec<Step>,
    /// Runs an experiment to its end, by its file.
    pub(super) run: &'a mut dyn FnMut(&str) -> Result<StoredExperiment>,
}

impl Prover<'_> {
    /// The outcome of the best of a search, which sets `winner`.
    pub(super) fn conclude(
        &mut self,
        (searched, search): (&Searched, &StoredExperiment),
        winner: &[Setting],
    ) -> Result<Outcome> {
        if winner.is_empty() {
            return Ok(Outcome::NothingBetter);
        }
        let confirmed = self.confirm(winner)?;
        let report = report_of(&confirmed);
        let Some(found) = self.accepted(&report, BEST) else {
            return Ok(Outcome::NotConfirmed {
                found: Compared::of(&report, BEST),
                broken: self.broken(&report, BEST),
            });
        };
        for bound in self.broken(&report, REFERENCE) {
            err!("the present state breaks {}, and the best does not", bound.bound);
        }
        let winner = Winner {
            settings: winner,
            present: present(search),
            slowdown_max: self.common.slowdown_below(times_tps(&report)),
        };
        let pays = match winner.settings {
            [only] => (vec![Kept::alone(only, &found)], Vec::new()),
            _ => self.ablated(searched, &winner)?,
        };
        let (kept, dropped, last) = self.proven(&winner, pays)?;
        let cold = match self.common.args.cold {
            true => Some(self.confirm_cold(&kept)?),
            false => None,
        };
        let is_worse = |cold: &&Compared| cold.effect.is_none() || cold.is(Verdict::Worse);
        if let Some(cold) = cold.as_ref().filter(is_worse) {
            return Ok(Outcome::WorseWhenCold {
                found: last.unwrap_or(found),
                cold: cold.clone(),
            });
        }
        Ok(Outcome::Tuned(Box::new(Proof {
            found,
            others: self.compared_others(&confirmed, &report),
            cold,
            last,
            kept,
            dropped,
        })))
    }

    /// The winner, advice and pgtune's settings against the present state, in new trials.
    fn confirm(&mut self, winner: &[Setting]) -> Result<StoredExperiment> {
        err!("confirming it against the present state, in new trials");
        let mut steps: Vec<Step> = Vec::new();
        for other in &self.others {
            let settings = &other.2;
            let is_known = steps.iter().any(|(.., known)| known == settings);
            if !settings.is_empty() && settings != winner && !is_known {
                steps.push(other.clone());
            }
        }
        let title = "The best of the search".to_owned();
        steps.push((BEST.to_owned(), title, winner.to_vec()));
        let words = (
            "tune-confirm",
            "Is the best of the search better than the present state?",
        );
        self.compared(words, self.common.present(), &steps)
    }

    /// What the other settings were in the experiment that has confirmed the best.
    fn compared_others(&self, confirmed: &StoredExperiment, report: &Report) -> Vec<Other> {
        let other = |(name, title, _): &Step| {
            Some(Other {
                name: name.clone(),
                title: title.clone(),
                found: Compared::of(report, name)?,
                best: self.between(confirmed, name, BEST),
            })
        };
        self.others.iter().filter_map(other).collect()
    }

    /// A treatment of an experiment against another one, within its blocks.
    fn between(&self, stored: &StoredExperiment, reference: &str, treatment: &str) -> Option<Effect> {
        let [a, b] = [reference, treatment].map(|name| Which::Treatment(name.to_owned()));
        let named = |which| Named {
            stored,
            which,
            store: None,
        };
        let compared = compare(named(&a), named(&b), &[self.common.metric.to_owned()]);
        compared.ok()?.pairs.first()?.rows.first()?.effect
    }

    /// What is kept against the present state, when loads begin with cold caches.
    fn confirm_cold(&mut self, kept: &[Kept]) -> Result<Compared> {
        err!("comparing it with the present state with cold caches");
        // Of what the profile will set.
        let settings: Vec<Setting> = kept.iter().map(|kept| kept.setting.clone()).collect();
        let report = report_of(&(self.run)(&self.common.cold(&settings)?)?);
        let id = report.experiment.id;
        let found = Compared::of(&report, BEST);
        found.ok_or_else(|| Failure::new(format!("experiment {id} is without its treatment")))
    }

    /// Runs an experiment that compares these steps.
    pub(super) fn compared(
        &mut self,
        words: (&str, &str),
        against: Against<'_>,
        steps: &[Step],
    ) -> Result<StoredExperiment> {
        let text = self.common.compared(words, Caches::Warm, against, steps)?;
        (self.run)(&text)
    }

    /// A treatment that keeps all bounds and is better than the present state. One that breaks a
    /// bound is not a state to stay with: then it is enough to keep them all.
    pub(super) fn accepted(&self, report: &Report, name: &str) -> Option<Compared> {
        let is_kept = self.broken(report, name).is_empty();
        let is_to_leave = !self.broken(report, REFERENCE).is_empty();
        let found = Compared::of(report, name).filter(|_| is_kept);
        found.filter(|found| is_to_leave || found.is(Verdict::Better))
    }

    /// The bounds that a treatment breaks, each with its figure.
    pub(super) fn broken(&self, report: &Report, name: &str) -> Vec<BrokenBound> {
        let treatment = report.treatments.iter().find(|treatment| treatment.name == name);
        let figure = |name: &str| treatment.and_then(|treatment| treatment.figures.get(name).copied());
        let bounds = self.common.bounds.iter();
        bounds
            .filter_map(|bound| bound.broken_by(figure(&bound.figure)))
            .collect()
    }
}

/// How many times the present state's throughput the best has; `None` where one is unknown.
fn times_tps(report: &Report) -> Option<f64> {
    let tps = |name: &str| {
        let treatment = report.treatments.iter().find(|own| own.name == name)?;
        treatment.figures.get("tps").copied()
    };
    Some(tps(BEST)? / tps(REFERENCE)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use pgdyno_knobs::Catalogue;
    use pgdyno_lab::{ExperimentFile, Plan, Prewarm, ProfileSettings};
    use pgdyno_record::{
        ExperimentRecord, ExperimentStatus, Importance, Percentiles, SettingRecord, TreatmentRecord,
        TrialRecord, TrialStatus, WorkloadRecord,
    };
    use std::path::Path;

    /// What a simulated server does with some settings.
    #[derive(Clone, Copy)]
    struct Answer {
        tps: f64,
        p99_ms: f64,
        /// How far trials of one treatment differ.
        noise: f64,
    }

    const USUAL: Answer = Answer {
        tps: 1_000.0,
        p99_ms: 10.0,
        noise: 0.001,
    };

    /// By settings, and by whether caches are cold.
    type Answers = fn(&[Setting], bool) -> Answer;

    fn has(settings: &[Setting], knob: &str, value: &str) -> bool {
        let mut settings = settings.iter();
        settings.any(|own| own.knob == knob && own.value == value)
    }

    fn setting(knob: &str, value: &str) -> Setting {
        Setting {
            knob: knob.to_owned(),
            value: value.to_owned(),
        }
    }

    fn workload() -> WorkloadRecord {
        WorkloadRecord {
            name: "tpcb".into(),
            scale: 1,
            clients: 1,
            threads: 1,
            warmup_s: 5.0,
            measure_s: 10.0,
        }
    }

    /// An experiment with all its trials.
    fn ended(id: i64, record: ExperimentRecord, trials: Vec<(i64, TrialRecord)>) -> StoredExperiment {
        StoredExperiment {
            id,
            record,
            status: ExperimentStatus::Finished,
            started_unix_ms: 0,
            finished_unix_ms: Some(1),
            restored: Vec::new(),
            trials,
        }
    }

    /// A file's experiment, in all its blocks.
    fn simulated(text: &str, id: i64, catalogue: &Catalogue, answers: Answers) -> StoredExperiment {
        let file = ExperimentFile::parse(text, Path::new("a file"), catalogue).unwrap();
        let is_cold = file.data.prewarm == Some(Prewarm::Cold);
        let plan = Plan::unasked(file, &ProfileSettings::new(), 1).unwrap();
        let treatments = plan.treatments.iter().map(|own| TreatmentRecord {
            levels: own.levels.clone(),
            against: own.against.map(|i| plan.treatments[i].name.clone()),
            ..TreatmentRecord::new(&own.name)
        });
        let record = ExperimentRecord {
            design: plan.file.design.name().to_owned(),
            blocks: plan.file.blocks,
            smallest_effect: plan.file.smallest_effect,
            metric: plan.file.metric.clone(),
            stop: "when-decided".to_owned(),
            treatments: treatments.collect(),
            ..ExperimentRecord::new(&plan.file.name, workload())
        };
        let mut trials = Vec::new();
        for block in 1..=plan.file.blocks {
            for (position, own) in (1..).zip(&plan.treatments) {
                let answer = answers(&own.settings, is_cold);
                let noise = f64::from((block * 7 + position * 3) % 5) - 2.0;
                let trial = TrialRecord {
                    status: TrialStatus::Finished,
                    tps: Some(answer.tps * (1.0 + answer.noise * noise)),
                    percentiles: Some(Percentiles {
                        p99_ms: Some(answer.p99_ms),
                        ..Percentiles::default()
                    }),
                    measured_s: 10.0,
                    ..TrialRecord::begun(block, position, &own.name)
                };
                trials.push((i64::from(block * 100 + position), trial));
            }
        }
        ended(id, record, trials)
    }

    /// The outcome of a winner on such a server, and the files of the experiments.
    fn concluded(
        words: &[&str],
        answers: Answers,
        winner: &[Setting],
        others: Vec<Step>,
    ) -> (Outcome, Vec<String>) {
        let line = ["pgdyno", "tune", "sandbox:t"].iter().chain(words);
        let Command::Tune(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("{words:?}");
        };
        let catalogue = Catalogue::shipped().unwrap();
        let no_script = |_: &Path| unreachable!("there is no script");
        let metric = args.minimize.as_deref().unwrap_or("tps");
        let common = Common::new((&args, metric), &catalogue, &no_script).unwrap();
        let present = winner.iter().map(|own| SettingRecord {
            knob: own.knob.clone(),
            value: BEFORE.to_owned(),
            layer: "postgres".to_owned(),
            risk: "none".to_owned(),
            changed: false,
        });
        let reference = TreatmentRecord {
            settings: present.collect(),
            ..TreatmentRecord::new(REFERENCE)
        };
        let record = ExperimentRecord {
            treatments: vec![reference],
            ..ExperimentRecord::new("tune", workload())
        };
        let search = ended(1, record, Vec::new());
        let importance = winner.iter().map(|own| Importance {
            factor: own.knob.clone(),
            part: 0.5,
        });
        let searched = Searched {
            best: None,
            reference: None,
            importance: importance.collect(),
            path: Vec::new(),
        };
        let mut texts = Vec::new();
        let mut run = |text: &str| -> Result<StoredExperiment> {
            texts.push(text.to_owned());
            let id = i64::try_from(texts.len()).unwrap() + 1;
            Ok(simulated(text, id, &catalogue, answers))
        };
        let mut prover = Prover {
            common: &common,
            others,
            run: &mut run,
        };
        let outcome = prover.conclude((&searched, &search), winner).unwrap();
        (outcome, texts)
    }

    /// Before the search.
    const BEFORE: &str = "100";

    /// Names of experiments.
    fn names(texts: &[String]) -> Vec<&str> {
        fn name_of(text: &str) -> Option<&str> {
            let line = text.lines().find_map(|line| line.strip_prefix("name = \""))?;
            line.strip_suffix('"')
        }
        texts.iter().filter_map(|text| name_of(text)).collect()
    }

    fn proof_of(outcome: Outcome) -> Proof {
        match outcome {
            Outcome::Tuned(proof) => *proof,
            other => panic!("{other:?}"),
        }
    }

    fn winner() -> Vec<Setting> {
        // Both need a restart: one experiment removes them.
        vec![
            setting("max_connections", "200"),
            setting("max_worker_processes", "20"),
        ]
    }

    /// A fifth more with many connections, and nothing by the other knob.
    fn connections_pay(settings: &[Setting], _: bool) -> Answer {
        match has(settings, "max_connections", "200") {
            true => Answer {
                tps: 1_200.0,
                ..USUAL
            },
            false => USUAL,
        }
    }

    #[test]
    fn what_brings_nothing_is_dropped_and_what_is_left_is_compared_with_the_best_and_before() {
        let other = (
            "advice".to_owned(),
            "Advice".to_owned(),
            vec![setting("max_connections", "150")],
        );
        let (outcome, texts) = concluded(&[], connections_pay, &winner(), vec![other]);
        let proof = proof_of(outcome);
        let knobs: Vec<&str> = proof.kept.iter().map(|own| own.setting.knob.as_str()).collect();
        assert_eq!(knobs, ["max_connections"]);
        assert_eq!(proof.dropped[0].setting.knob, "max_worker_processes");
        assert!(!proof.kept[0].is_undecided && !proof.dropped[0].is_undecided);
        assert_eq!(
            names(&texts),
            ["tune-confirm", "tune-remove", "tune-kept", "tune-proven"]
        );
        // Against the best, and not by two ratios to the present state.
        assert!(
            texts[2].contains("[base]\nmax_connections = \"200\""),
            "{}",
            texts[2]
        );
        assert!(proof.proven().is(Verdict::Better) && proof.proven().experiment == 5);
        let best = proof.others[0].best.unwrap();
        assert!(
            best.ratio_low > 1.15 && best.verdict == Verdict::Better,
            "{best:?}"
        );
    }

    #[test]
    fn settings_of_which_one_is_enough_do_not_all_go() {
        let answers: Answers = |settings, _| {
            let either =
                has(settings, "max_connections", "200") || has(settings, "max_worker_processes", "20");
            Answer {
                tps: if either { 1_200.0 } else { 1_000.0 },
                ..USUAL
            }
        };
        let proof = proof_of(concluded(&[], answers, &winner(), Vec::new()).0);
        assert_eq!((proof.kept.len(), proof.dropped.len()), (1, 1));
        assert!(proof.kept[0].again);
    }

    #[test]
    fn noise_that_hides_a_loss_keeps_what_was_to_go() {
        let answers: Answers = |settings, is_cold| Answer {
            noise: 0.03,
            ..connections_pay(settings, is_cold)
        };
        let proof = proof_of(concluded(&[], answers, &winner(), Vec::new()).0);
        assert_eq!((proof.kept.len(), proof.dropped.len()), (2, 0));
        assert!(proof.kept.iter().any(|own| own.is_undecided));
    }

    #[test]
    fn present_state_and_what_is_no_better_end_a_tune() {
        let (outcome, texts) = concluded(&[], connections_pay, &[], Vec::new());
        assert!(matches!(outcome, Outcome::NothingBetter) && texts.is_empty());
        let answers: Answers = |_, _| USUAL;
        let (outcome, texts) = concluded(&[], answers, &winner(), Vec::new());
        let Outcome::NotConfirmed { found, broken } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(found.unwrap().is(Verdict::Same) && broken.is_empty());
        assert_eq!(names(&texts), ["tune-confirm"]);
    }

    #[test]
    fn bound_is_kept_to_the_end_of_a_tune() {
        let words = ["--subject-to", "p99_ms <= 20"];
        // The best breaks it.
        let slow: Answers = |settings, is_cold| Answer {
            p99_ms: if has(settings, "max_connections", "200") {
                30.0
            } else {
                10.0
            },
            ..connections_pay(settings, is_cold)
        };
        let Outcome::NotConfirmed { broken, .. } = concluded(&words, slow, &winner(), Vec::new()).0 else {
            panic!("it breaks a bound");
        };
        assert_eq!((broken.len(), broken[0].figure), (1, Some(30.0)));
        // What brings no throughput keeps it.
        let held: Answers = |settings, is_cold| Answer {
            p99_ms: if has(settings, "max_worker_processes", "20") {
                15.0
            } else {
                25.0
            },
            ..connections_pay(settings, is_cold)
        };
        let proof = proof_of(concluded(&words, held, &winner(), Vec::new()).0);
        assert_eq!((proof.kept.len(), proof.dropped.len()), (2, 0));
        // The present state breaks it: to keep it is enough.
        let lame: Answers = |settings, _| Answer {
            p99_ms: if has(settings, "max_connections", "200") {
                15.0
            } else {
                25.0
            },
            ..USUAL
        };
        let proof = proof_of(concluded(&words, lame, &winner(), Vec::new()).0);
        assert_eq!(proof.kept[0].setting.knob, "max_connections");
        assert_eq!(proof.dropped.len(), 1);
    }

    #[test]
    fn cold_caches_refute_a_best_that_is_worse_then_and_leave_another_one_open() {
        let worse: Answers = |settings, is_cold| match is_cold && has(settings, "max_connections", "200") {
            true => Answer { tps: 800.0, ..USUAL },
            false => connections_pay(settings, is_cold),
        };
        let (outcome, texts) = concluded(&["--cold"], worse, &winner(), Vec::new());
        let Outcome::WorseWhenCold { found, cold } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(found.is(Verdict::Better) && cold.is(Verdict::Worse));
        assert!(texts.last().unwrap().contains("prewarm = \"cold\""));
        let open: Answers = |settings, is_cold| match is_cold {
            true => Answer { noise: 0.03, ..USUAL },
            false => connections_pay(settings, is_cold),
        };
        let proof = proof_of(concluded(&["--cold"], open, &winner(), Vec::new()).0);
        let cold = proof.cold.unwrap();
        assert!(
            !cold.is(Verdict::Worse) && !cold.loses_less_than(0.02, false),
            "{cold:?}"
        );
        let good = proof_of(concluded(&["--cold"], connections_pay, &winner(), Vec::new()).0);
        assert!(good.cold.unwrap().loses_less_than(0.02, false));
    }

    #[test]
    fn every_experiment_has_the_same_floor_of_throughput() {
        let words = ["--max-slowdown", "20%"];
        let (_, texts) = concluded(&words, connections_pay, &winner(), Vec::new());
        let floors = texts.iter().map(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("slowdown_max = "));
            line.unwrap_or("none").to_owned()
        });
        let floors: Vec<String> = floors.collect();
        // The best has 1.2 times the throughput of the present state.
        assert_eq!(floors, ["0.2", "0.333", "0.333", "0.2"]);
    }
}
