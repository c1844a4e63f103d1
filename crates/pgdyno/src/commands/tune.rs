//! `pgdyno tune`: the best settings of a target for a load. A search finds what may be the best, new experiments confirm it, and drop what
//! does not pay.

mod file;
mod outcome;

use crate::cli::{LoadKind, TuneArgs};
use crate::commands::experiment::{self, Begin};
use crate::commands::{profile, report, restore};
use crate::context::Context;
use crate::exit;
use crate::failure::{InContext as _, Result, Usage};
use crate::{show, target};
use file::{BEST, Common, KEPT, Start};
use outcome::{Compared, Dropped, Kept};
use pgdyno_advice::{Matters, Priors, SearchSpace, SpaceFor};
use pgdyno_host::replace_given;
use pgdyno_knobs::Setting;
use pgdyno_knobs::gucvalue::quantity;
use pgdyno_lab::{ExperimentFile, Searched};
use pgdyno_record::{Better, ExperimentStatus, Metric, StoredExperiment, TreatmentRecord};
use pgdyno_report::Report;
use pgdyno_stats::{Verdict, three_digits};
use pgdyno_store::Store;
use pgdyno_workload::Workload;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const FORMAT: &str = "pgdyno-tune/1";
/// What all experiments of tunes are tagged with.
const TAG: &str = "tune";
/// The rest of the settings that are removed together, as each of them moves little.
const REST: &str = "without-the-rest";
/// Part of all effects from which on a setting is removed alone.
const ALONE_FROM: f64 = 0.05;
/// Settings that are removed alone, at most: each is a treatment in every block.
const ALONE_MAX: usize = 6;

pub(crate) fn run(context: &Context, args: &TuneArgs) -> Result<u8> {
    let metric = metric(args)?;
    let common = Common::new(args, metric)?;
    let mut looked = profile::look(context, Some(&args.target))?;
    for (name, value) in &args.given {
        looked.known = looked.known.given_text(name, value);
    }
    let kind = args.kind.unwrap_or_else(|| kind_of(args));
    let profiles = profiles_of(context, &looked, kind)?;
    let space = space(context, args, &looked, kind, &profiles)?;
    let starts = starts(&space, &profiles);
    let memory = looked
        .known
        .get("available.memory_bytes")
        .ok()
        .and_then(serde_json::Value::as_f64);
    let text = common.search(&space, &starts, memory)?;
    parsed(context, &text)?;
    if args.dry_run {
        return dry(args, &space, &starts, &text);
    }
    let mut store = context.store(args.store.store.place())?;
    restore::before(context, None)?;
    let id = match args.after {
        Some(id) => id,
        None => measured(context, args, &mut store, &text)?,
    };
    Tune {
        context,
        args,
        common: &common,
        looked: &looked.name,
    }
    .after(&mut store, id)
}

/// The metric that decides.
fn metric(args: &TuneArgs) -> Result<&str> {
    let (name, wanted) = match (&args.maximize, &args.minimize) {
        (_, Some(name)) => (name.as_str(), Better::Lower),
        (Some(name), None) => (name.as_str(), Better::Higher),
        (None, None) => ("tps", Better::Higher),
    };
    let Some(metric) = Metric::named(name) else {
        return Err(Usage(format!(
            "{name} is no metric of a trial; the book's \"Metrics\" lists all"
        ))
        .into());
    };
    let option = match metric.better {
        Better::Higher => "--maximize",
        Better::Lower => "--minimize",
    };
    match metric.better == wanted {
        true => Ok(name),
        false => Err(Usage(format!("{name}: expected {option} {name}")).into()),
    }
}

/// The kind of a workload; a script may be anything.
fn kind_of(args: &TuneArgs) -> LoadKind {
    if args.script.is_some() {
        return LoadKind::Mixed;
    }
    match args.workload {
        Workload::Empty
        | Workload::Simple
        | Workload::Read
        | Workload::SelectOnly
        | Workload::PointSelect
        | Workload::RangeSelect
        | Workload::ReadOnly => LoadKind::Reads,
        _ => LoadKind::Writes,
    }
}

fn shares(kind: LoadKind) -> Matters {
    let (reads, writes, analytics) = match kind {
        LoadKind::Reads => (1.0, 0.0, 0.0),
        LoadKind::Writes => (0.3, 1.0, 0.0),
        LoadKind::Analytics => (0.3, 0.0, 1.0),
        LoadKind::Mixed => (0.7, 0.7, 0.7),
    };
    Matters {
        reads,
        writes,
        analytics,
    }
}

/// What advice and pgtune set here for such a load: names of starting points, with their settings.
fn profiles_of(
    context: &Context,
    looked: &profile::Looked,
    kind: LoadKind,
) -> Result<Vec<(&'static str, Vec<Setting>)>> {
    let names = match kind {
        LoadKind::Reads | LoadKind::Writes => [("advice", "oltp"), ("pgtune", "pgtune-oltp")],
        LoadKind::Analytics => [("advice", "analytics"), ("pgtune", "pgtune-dw")],
        LoadKind::Mixed => [("advice", "mixed"), ("pgtune", "pgtune-mixed")],
    };
    let resolved = names.into_iter().map(|(name, of)| {
        let resolved = profile::resolve(context, looked, of)?;
        Ok((name, resolved.to_apply()))
    });
    resolved.collect()
}

/// What the search varies.
fn space(
    context: &Context,
    args: &TuneArgs,
    looked: &profile::Looked,
    kind: LoadKind,
    profiles: &[(&'static str, Vec<Setting>)],
) -> Result<SearchSpace> {
    let priors = Priors::shipped(&context.catalogue)?;
    let known = priors.knobs();
    for knob in args.only.iter().chain(&args.without) {
        if !known.contains(&knob.as_str()) {
            return Err(Usage(format!(
                "{knob} is no knob that a search varies; those are {}",
                known.join(", ")
            ))
            .into());
        }
    }
    let starts: Vec<Vec<Setting>> = profiles.iter().map(|(_, settings)| settings.clone()).collect();
    let mut space = priors.space(&SpaceFor {
        known: &looked.known,
        catalogue: &context.catalogue,
        major: looked.major(),
        current: &|knob| looked.current(context, knob),
        load: shares(kind),
        starts: &starts,
    });
    let is_fixed = |knob: &String| args.fix.iter().any(|(fixed, _)| fixed == knob);
    space.knobs.retain(|own| {
        let is_wanted = args.only.is_empty() || args.only.contains(&own.knob);
        is_wanted && !args.without.contains(&own.knob) && !is_fixed(&own.knob)
    });
    if !args.only.is_empty() {
        space.skipped.retain(|(knob, _)| args.only.contains(knob));
    }
    if space.knobs.is_empty() {
        let why = space
            .skipped
            .iter()
            .map(|(knob, why)| format!("\n  {knob}: {why}"));
        let why: String = why.collect();
        return Err(Usage(format!("there is no knob to vary on this target{why}")).into());
    }
    Ok(space)
}

/// The starting points as levels of the space, without those that are the present state or one another.
fn starts(space: &SearchSpace, profiles: &[(&'static str, Vec<Setting>)]) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    for (name, settings) in profiles {
        let levels = space.knobs.iter().filter_map(|own| {
            let setting = settings.iter().find(|setting| setting.knob == own.knob)?;
            let mut others = own.values.iter().skip(1);
            let level = others.find(|(value, _)| is_same(value, &setting.value))?;
            Some((own.knob.clone(), level.0.clone()))
        });
        let levels: BTreeMap<String, String> = levels.collect();
        if !levels.is_empty() && starts.iter().all(|(_, other)| *other != levels) {
            starts.push(((*name).to_owned(), levels));
        }
    }
    starts
}

/// Whether two values mean the same: 1GB and 1024MB.
fn is_same(a: &str, b: &str) -> bool {
    a == b || quantity(a).is_some_and(|number| quantity(b) == Some(number))
}

fn dry(args: &TuneArgs, space: &SearchSpace, starts: &[Start], text: &str) -> Result<u8> {
    if args.store.json {
        let starts: Vec<_> = starts
            .iter()
            .map(|(name, levels)| json!({ "name": name, "levels": levels }))
            .collect();
        put_page!(
            "{:#}",
            json!({ "format": FORMAT, "space": space, "starts": starts, "file": text })
        );
        return Ok(exit::FINE);
    }
    put_page!("{text}");
    err!("{} knobs are varied:", space.knobs.len());
    for knob in &space.knobs {
        let values: Vec<&str> = knob.values.iter().map(|(value, _)| value.as_str()).collect();
        err!("  {}: {} ({})", knob.knob, values.join(", "), knob.source);
    }
    for (knob, why) in &space.skipped {
        err!("not varied: {knob}: {why}");
    }
    err!("nothing was run or changed");
    Ok(exit::FINE)
}

fn parsed(context: &Context, text: &str) -> Result<ExperimentFile> {
    let file = ExperimentFile::parse(text, Path::new("an experiment of the tune"), &context.catalogue)?;
    Ok(file)
}

/// Runs an experiment of the tune to its end; its number.
fn measured(context: &Context, args: &TuneArgs, store: &mut Store, text: &str) -> Result<i64> {
    let file = parsed(context, text)?;
    let consent = experiment::consent_of(&args.consent);
    let held = target::of_experiment(context, &file, Some(&args.target), consent.restart, "tune")?;
    let begin = Begin {
        file,
        text,
        held,
        repeat: vec!["pgdyno tune TARGET".to_owned()],
        command: "tune",
    };
    let summary = experiment::start(context, store, &consent, begin)?;
    store.tag(summary.id, TAG)?;
    restore::check(&summary.restored)?;
    restore::check_objects(&summary.restored)?;
    if summary.status != ExperimentStatus::Finished {
        fail!(
            "stopped; `pgdyno resume {}` goes on with what was running",
            summary.id
        );
    }
    Ok(summary.id)
}

/// The experiments after the search.
struct Tune<'a> {
    context: &'a Context,
    args: &'a TuneArgs,
    common: &'a Common<'a>,
    /// Name of the target.
    looked: &'a str,
}

/// A step of an experiment: name, title, settings.
type Step = (String, String, Vec<Setting>);

impl Tune<'_> {
    fn after(&self, store: &mut Store, id: i64) -> Result<u8> {
        let stored = store.experiment(id)?;
        let consent = experiment::consent_of(&self.args.consent);
        let Some(searched) = Searched::of(&stored, &self.context.catalogue, &consent)? else {
            return Err(Usage(format!("experiment {id} is no search")).into());
        };
        if stored.status != ExperimentStatus::Finished {
            return Err(Usage(format!(
                "the search of experiment {id} is not finished\nhint: pgdyno resume {id}, then pgdyno tune ... --after {id}"
            ))
            .into());
        }
        let Some(best) = &searched.best else {
            fail!(
                "all {} trials of the search failed; pgdyno show {id} has the reasons",
                searched.trials
            );
        };
        let winner = changed(&stored, &best.treatment);
        if winner.is_empty() {
            put!("the search has found nothing better than the present state (experiment {id})");
            return Ok(exit::FINE);
        }
        let (figure, [low, high]) = best.figure;
        let [figure, low, high] = [figure, low, high].map(three_digits);
        err!(
            "the best of {} trials ({} failed): {} {figure} [{low}, {high}]",
            searched.trials,
            searched.failed,
            self.common.metric
        );
        for setting in &winner {
            err!("  {} = {}", setting.knob, setting.value);
        }
        let confirmed = self.confirm(store, &stored, &winner)?;
        let best_found = Compared::of(&confirmed, BEST);
        let Some(found) = best_found.filter(|found| found.is(Verdict::Better)) else {
            return self.not_confirmed(&confirmed);
        };
        // The reference has the present value of each knob that was varied.
        let present = stored
            .record
            .treatments
            .first()
            .map_or(&[][..], |reference| &reference.levels);
        let (kept, dropped) = self.ablated(store, (&searched, present), &winner)?;
        let (kept, dropped, last) = self.proven(store, &winner, kept, dropped)?;
        self.finish(id, &searched, (&found, last.as_ref()), &kept, &dropped)
    }

    /// The winner against the present state, and against advice, in new trials.
    fn confirm(&self, store: &mut Store, stored: &StoredExperiment, winner: &[Setting]) -> Result<Report> {
        err!("confirming it against the present state, in new trials");
        let mut steps: Vec<Step> = Vec::new();
        let advice = changed(stored, "advice");
        if !advice.is_empty() && advice != winner {
            steps.push(("advice".to_owned(), "Advice".to_owned(), advice));
        }
        steps.push((
            BEST.to_owned(),
            "The best of the search".to_owned(),
            winner.to_vec(),
        ));
        let words = (
            "tune-confirm",
            "Is the best of the search better than the present state?",
        );
        self.run(store, words, &[], &steps)
    }

    fn run(
        &self,
        store: &mut Store,
        words: (&str, &str),
        base: &[Setting],
        steps: &[Step],
    ) -> Result<Report> {
        let text = self.common.compared(words, base, steps)?;
        let id = measured(self.context, self.args, store, &text)?;
        report::build(self.context, store, id)
    }

    fn not_confirmed(&self, confirmed: &Report) -> Result<u8> {
        let found = Compared::of(confirmed, BEST);
        let shown = found.as_ref().map(|found| found.shown(self.args.smallest_effect));
        if self.args.store.json {
            put_page!(
                "{:#}",
                json!({ "format": FORMAT, "outcome": "not-confirmed", "best": found.as_ref().map(Compared::document) })
            );
        } else {
            put!(
                "the best of the search is not confirmed: {}",
                shown.unwrap_or_default()
            );
            put!("no profile is written");
        }
        Ok(exit::UNDECIDED)
    }

    /// Which of the winner's settings pay: each that matters is removed alone, the rest together.
    fn ablated(
        &self,
        store: &mut Store,
        (searched, present): (&Searched, &[(String, String)]),
        winner: &[Setting],
    ) -> Result<(Vec<Kept>, Vec<Dropped>)> {
        if winner.len() == 1 {
            return Ok((vec![unmeasured(&winner[0])], Vec::new()));
        }
        err!("removing settings, to see which of them pay");
        let mut by_importance: Vec<(&Setting, f64)> = winner
            .iter()
            .map(|setting| {
                let own = searched.importance.iter().find(|(knob, _)| *knob == setting.knob);
                (setting, own.map_or(0.0, |(_, part)| *part))
            })
            .collect();
        by_importance.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let alone = by_importance
            .iter()
            .filter(|(_, part)| *part >= ALONE_FROM)
            .count();
        let alone = match winner.len() - alone.min(ALONE_MAX) {
            // One that is left over is removed alone as well.
            1 => alone.min(ALONE_MAX) + 1,
            _ => alone.min(ALONE_MAX),
        };
        let (alone, rest) = by_importance.split_at(alone);
        let value = |knob: &str| {
            present
                .iter()
                .find(|(own, _)| own == knob)
                .map(|(_, value)| value.clone())
        };
        let as_before = |setting: &&Setting| {
            Some(Setting {
                knob: setting.knob.clone(),
                value: value(&setting.knob)?,
            })
        };
        let mut steps: Vec<Step> = alone
            .iter()
            .map(|(setting, _)| {
                let (name, title) = (without(&setting.knob), format!("Without {}", setting.knob));
                (name, title, as_before(setting).into_iter().collect())
            })
            .collect();
        if !rest.is_empty() {
            let settings = rest
                .iter()
                .filter_map(|(setting, _)| as_before(setting))
                .collect();
            steps.push((REST.to_owned(), "Without the rest".to_owned(), settings));
        }
        let words = ("tune-remove", "Which settings of the best can go?");
        let report = self.run(store, words, winner, &steps)?;
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for (settings, name) in alone
            .iter()
            .map(|(setting, _)| (vec![*setting], without(&setting.knob)))
            .chain([(
                rest.iter().map(|(setting, _)| *setting).collect(),
                REST.to_owned(),
            )])
        {
            let found = Compared::of(&report, &name);
            let pays = found.as_ref().is_none_or(|found| self.pays(found));
            for setting in settings {
                let is_alone = name != REST;
                let without = found.as_ref().and_then(|found| found.effect).filter(|_| is_alone);
                match pays {
                    true => kept.push(Kept {
                        setting: setting.clone(),
                        without,
                        experiment: found.as_ref().map(|found| found.experiment),
                        trials: found.as_ref().map_or(0, |found| found.trials),
                    }),
                    false => dropped.push(Dropped {
                        setting: setting.clone(),
                        without,
                    }),
                }
            }
        }
        Ok((kept, dropped))
    }

    /// Whether the removal costs as much as matters, as far as is known.
    fn pays(&self, removed: &Compared) -> bool {
        let Some(effect) = removed.effect else {
            return true;
        };
        // A larger metric is worse where it is one to be minimised.
        let loss = match self.args.minimize {
            Some(_) => effect.ratio - 1.0,
            None => 1.0 - effect.ratio,
        };
        match effect.verdict {
            Verdict::Worse => true,
            Verdict::Undecided => loss >= self.args.smallest_effect,
            Verdict::Better | Verdict::Same | Verdict::NoGain => false,
        }
    }

    /// What is left, against the present state and the winner; where it has lost the gain, the winner stays as it is.
    fn proven(
        &self,
        store: &mut Store,
        winner: &[Setting],
        kept: Vec<Kept>,
        dropped: Vec<Dropped>,
    ) -> Result<(Vec<Kept>, Vec<Dropped>, Option<Compared>)> {
        if dropped.is_empty() || kept.is_empty() {
            return Ok((kept, dropped, None));
        }
        err!("confirming what is left against the present state");
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
        let found = Compared::of(&report, KEPT);
        match found {
            Some(found) if found.is(Verdict::Better) => Ok((kept, dropped, Some(found))),
            _ => {
                let back = dropped.iter().map(|dropped| unmeasured(&dropped.setting));
                Ok((kept.into_iter().chain(back).collect(), Vec::new(), None))
            }
        }
    }

    fn finish(
        &self,
        id: i64,
        searched: &Searched,
        (found, last): (&Compared, Option<&Compared>),
        kept: &[Kept],
        dropped: &[Dropped],
    ) -> Result<u8> {
        let smallest = self.args.smallest_effect;
        let proven = last.unwrap_or(found);
        let title = format!("Tuned for {}", self.looked);
        let summary = format!(
            "{} against the state before: {}. Found by experiment {id}.",
            self.common.metric,
            proven.shown(smallest)
        );
        let text = outcome::profile("tuned", (&title, &summary), kept)?;
        let path = &self.args.output;
        replace_given(path, text.as_bytes(), 0o644).with_context(|| format!("writing {}", path.display()))?;
        if self.args.store.json {
            let setting = |setting: &Setting| json!({ "knob": setting.knob, "value": setting.value });
            let kept: Vec<_> = kept
                .iter()
                .map(|kept| json!({ "setting": setting(&kept.setting), "without": kept.without, "trials": kept.trials }))
                .collect();
            let dropped: Vec<_> = dropped
                .iter()
                .map(|dropped| json!({ "setting": setting(&dropped.setting), "without": dropped.without }))
                .collect();
            put_page!(
                "{:#}",
                json!({
                    "format": FORMAT, "outcome": "tuned", "search": id, "trials": searched.trials,
                    "failed": searched.failed, "best": found.document(), "kept": kept, "dropped": dropped,
                    "proven": proven.document(), "profile": path,
                })
            );
            return Ok(exit::FINE);
        }
        put!(
            "{} against the state before: {}",
            self.common.metric,
            proven.shown(smallest)
        );
        for own in kept {
            let without = own.without.as_ref().map_or_else(
                || "not measured alone".to_owned(),
                |without| format!("without it {}", pgdyno_report::effect(without)),
            );
            put!("  {} = {}  ({without})", own.setting.knob, own.setting.value);
        }
        for own in dropped {
            put!(
                "dropped: {} = {}, which does not pay",
                own.setting.knob,
                own.setting.value
            );
        }
        let path = path.display();
        err!(
            "{}",
            show::wrapped(
                "",
                &format!("{path}: the settings as a profile; pgdyno apply TARGET ./{path} applies them"),
                110
            )
            .trim_end()
        );
        Ok(exit::FINE)
    }
}

fn without(knob: &str) -> String {
    format!("without-{knob}")
}

fn unmeasured(setting: &Setting) -> Kept {
    Kept {
        setting: setting.clone(),
        without: None,
        experiment: None,
        trials: 0,
    }
}

/// What a treatment of a search sets that the reference does not.
fn changed(stored: &StoredExperiment, name: &str) -> Vec<Setting> {
    let find = |name: &str| {
        let mut treatments = stored.record.treatments.iter();
        treatments.find(|treatment| treatment.name == name)
    };
    let (Some(reference), Some(treatment)) = (stored.record.treatments.first(), find(name)) else {
        return Vec::new();
    };
    let in_reference = |knob: &str, value: &str| {
        let of = |treatment: &TreatmentRecord| {
            treatment
                .settings
                .iter()
                .any(|own| own.knob == knob && own.value == value)
        };
        of(reference)
    };
    let settings = treatment.settings.iter();
    settings
        .filter(|own| !in_reference(&own.knob, &own.value))
        .map(|own| Setting {
            knob: own.knob.clone(),
            value: own.value.clone(),
        })
        .collect()
}
