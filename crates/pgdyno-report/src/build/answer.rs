//! The answer in a sentence or two.

use super::analysis::{Analysis, best_of, place_of};
use super::treatment::Drafts;
use crate::metric::{is_duration, with_unit};
use crate::model::{Curve, FactorEffect, Timeline, Treatment, Zone};
use crate::text::{listed, number, percent};
use pgdyno_record::MetricWords;
use pgdyno_record::{DESIGN_OF_LOADS, ExperimentRecord, ExperimentStatus, Searched, StoredExperiment};
use pgdyno_stats::{Effect, Verdict};

/// More names than this are a list, not a sentence.
const NAMES_IN_ANSWER: usize = 3;
/// More curves than this do not fit an answer.
const CURVES_IN_ANSWER: usize = 3;
/// So many effects of factors are reported.
const EFFECTS_IN_ANSWER: usize = 2;

/// The treatment that the answer is about: of cumulative steps the last that paid, so that a
/// control at the end is not the "after"; else the one with the best figure among those that paid.
pub(super) fn headline(analysis: &Analysis<'_>, treatments: &[Treatment]) -> Option<usize> {
    let record = analysis.record();
    let larger = record.larger_is_better(&record.metric);
    // Along a curve the first level may be the best; a first step is what the others are compared
    // with.
    let compares_none = analysis.against.iter().all(Option::is_none);
    let is_curve = compares_none && (!record.factors.is_empty() || record.design == DESIGN_OF_LOADS);
    // Within blocks, where there is a comparison: means of what was tried in other blocks differ by
    // those too.
    let merit = |i: usize| {
        let ratio = treatments[i].total.map(|total| total.ratio);
        let figure = ratio
            .filter(|_| !is_curve)
            .or_else(|| treatments[i].figures.get(&record.metric).copied());
        figure.map_or(f64::MIN, |figure| if larger { figure } else { -figure })
    };
    let measured: Vec<usize> = (0..treatments.len())
        .filter(|&i| treatments[i].trials_finished > 0)
        .filter(|&i| is_curve || analysis.against[i].is_some())
        .collect();
    let paid: Vec<usize> = measured
        .iter()
        .copied()
        .filter(|&i| {
            treatments[i]
                .step
                .is_some_and(|step| step.verdict == Verdict::Better)
        })
        .collect();
    // The best of many is not a finding: it looks better than it is.
    if record.design == "search" {
        return None;
    }
    if record.design == "cumulative" {
        return paid.last().or(measured.last()).copied();
    }
    let candidates = if paid.is_empty() { measured } else { paid };
    candidates
        .into_iter()
        .max_by(|&a, &b| merit(a).total_cmp(&merit(b)))
}

/// What is added before the end.
pub(super) fn preliminary(stored: &StoredExperiment) -> &'static str {
    match stored.status {
        ExperimentStatus::Finished => "",
        _ => " The experiment is not finished, so this is preliminary.",
    }
}

/// The whole answer.
pub(super) fn answer(analysis: &Analysis<'_>, drafts: &Drafts) -> String {
    let not_whole = preliminary(analysis.stored);
    let record = analysis.record();
    let any_finished = drafts.treatments.iter().any(|t| t.trials_finished > 0);
    let main = match record.design.as_str() {
        _ if !any_finished => None,
        "ladder" => of_curves(analysis, drafts),
        DESIGN_OF_LOADS if !record.factors.is_empty() => of_curves(analysis, drafts),
        DESIGN_OF_LOADS => of_load(record, drafts),
        "fractional" | "screening" => of_effects(record, &drafts.effects),
        "search" => Some(of_search(record, &drafts.treatments)),
        _ => of_treatments(analysis, drafts),
    };
    let main = main.or_else(|| of_events(&drafts.timelines));
    let main = main.unwrap_or_else(|| {
        let load = load_of(record);
        format!("There is no answer yet: no treatment of {load} has been measured")
    });
    let study = drafts.study.as_ref().and_then(|study| study.summary.as_ref());
    let study = study.map(|summary| format!(" {summary}.")).unwrap_or_default();
    format!("{main}.{}{study}{not_whole}", of_instances(analysis))
}

/// What the events of loads have changed; `None` without any.
fn of_events(timelines: &[Timeline]) -> Option<String> {
    let [timeline] = timelines else { return None };
    let changes = timeline.shifts.iter().filter_map(|shift| {
        let (before, after) = (shift.before_tps?, shift.after_tps?);
        let interval = shift.effect.map(|effect| {
            format!(
                " ({} %, between {} and {})",
                percent(effect.ratio),
                percent(effect.ratio_low),
                percent(effect.ratio_high)
            )
        });
        Some(format!(
            "With \u{201c}{}\u{201d} throughput went from {} to {} TPS{}",
            shift.title,
            number(before),
            number(after),
            interval.unwrap_or_default()
        ))
    });
    let changes: Vec<String> = changes.take(NAMES_IN_ANSWER).collect();
    (!changes.is_empty()).then(|| changes.join(". "))
}

/// What is made once for the whole experiment: another one of the same kind may be faster or slower
/// by chance.
const MADE_ONCE: [&str; 6] = [
    "server.version",
    "server.bin",
    "server.data_on",
    "server.wal_on",
    "server.temp_on",
    "server.instance",
];
/// Data is made once, too, unless it is made again before each trial.
const MADE_WITH_DATA: [&str; 3] = ["data.fillfactor", "data.partitions", "data.sql"];

/// That a comparison of what was made once holds for what was made; empty where nothing is compared
/// that was.
fn of_instances(analysis: &Analysis<'_>) -> String {
    let treatments = &analysis.record().treatments;
    let value = |i: usize, key: &str| {
        let mut environment = treatments[i].environment.iter();
        environment
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    };
    let is = |i: usize, key: &str, expected: &str| value(i, key) == Some(expected);
    let is_new = |i: usize, key: &&str| {
        is(i, "server.instances", "per-block")
            || MADE_WITH_DATA.contains(key) && is(i, "data.reset", "recreate")
    };
    let differs = |key: &&str| {
        let mut pairs = analysis
            .against
            .iter()
            .enumerate()
            .filter_map(|(i, against)| Some((i, (*against)?)));
        pairs.any(|(i, j)| {
            let are_new = is_new(i, key) && is_new(j, key);
            !are_new && value(i, key) != value(j, key)
        })
    };
    let keys: Vec<&str> = MADE_ONCE
        .iter()
        .chain(&MADE_WITH_DATA)
        .copied()
        .filter(|key| differs(key))
        .collect();
    match keys.is_empty() {
        true => String::new(),
        false => format!(
            " What differs in {} was made once, so this holds for these instances of it: others may differ by chance.",
            listed(&keys)
        ),
    }
}

/// The load; conditions and levels that change it are named elsewhere.
fn load_of(record: &ExperimentRecord) -> String {
    let own = |treatment: &pgdyno_record::TreatmentRecord| {
        let workload = treatment.workload.as_ref();
        workload.is_some_and(|own| own.clients != record.workload.clients)
    };
    match record.treatments.iter().any(own) {
        true => record.workload.name.clone(),
        false => format!(
            "{} with {} clients",
            record.workload.name, record.workload.clients
        ),
    }
}

/// A load alone has figures and nothing to compare them with.
fn of_load(record: &ExperimentRecord, drafts: &Drafts) -> Option<String> {
    let driven = drafts.treatments.first()?;
    let tps = number(*driven.figures.get("tps")?);
    let p95 = driven.percentiles.and_then(|percentiles| percentiles.p95_ms);
    let p95 = p95.map_or_else(String::new, |ms| format!(", p95 {} ms", number(ms)));
    Some(format!("{}: {tps} TPS{p95}", load_of(record)))
}

/// A search compares nothing: it says what is to be confirmed. Which is the best,
/// [`Report::set_search`] adds.
fn of_search(record: &ExperimentRecord, treatments: &[Treatment]) -> String {
    let measured = treatments
        .iter()
        .filter(|treatment| treatment.trials_finished > 0);
    format!(
        "{}: {} combinations of settings were tried",
        load_of(record),
        measured.count()
    )
}

/// What a search has found, in a sentence or two.
pub(super) fn of_searched(record: &ExperimentRecord, found: &Searched, title: &str) -> Option<String> {
    let (best, reference) = (found.best.as_ref()?, found.reference.as_ref());
    let is_reference = reference.is_some_and(|reference| reference.treatment == best.treatment);
    let metric = MetricWords::of(&record.metric);
    let expected = found.expected_ratio().filter(|_| !is_reference);
    let expected = expected.map_or_else(String::new, |ratio| {
        format!(", {} % to the reference", percent(ratio))
    });
    let main = format!(
        "{}: of {} trials the best is \u{201c}{title}\u{201d} with {}{expected}",
        load_of(record),
        found.path.len(),
        with_unit(&metric, best.figure)
    );
    let broken = found.broken().into_iter().map(|bound| match bound.figure {
        Some(figure) => format!("{} ({})", bound.bound, number(figure)),
        None => format!("{} (not measured)", bound.bound),
    });
    let broken: Vec<String> = broken.collect();
    let broken: Vec<&str> = broken.iter().map(String::as_str).collect();
    Some(match (broken.is_empty(), is_reference) {
        (false, _) => format!(
            "{main}, which breaks {}: no trial holds to all bounds",
            listed(&broken)
        ),
        (true, true) => format!("{main}: nothing better was found"),
        (true, false) => {
            format!("{main}. Chosen from many, it looks better than it is: new trials must confirm it")
        }
    })
}

fn of_treatments(analysis: &Analysis<'_>, drafts: &Drafts) -> Option<String> {
    let record = analysis.record();
    let treatments = &drafts.treatments;
    let best = drafts.headline?;
    let steps = groups_text(record, treatments);
    let effects = strongest(&drafts.effects);
    let steps = match (record.factors.len() > 1, effects) {
        (true, Some(effects)) => format!("{steps}. The strongest effects: {effects}"),
        _ => steps,
    };
    let after = &treatments[best];
    let before = match record.design.as_str() {
        "cumulative" => Some(0),
        _ => analysis.against[best],
    };
    let change = before.zip(after.total).and_then(|(before, total)| {
        let means = analysis.means_together([before, best], &record.metric)?;
        Some(from_to(
            record,
            means,
            &total,
            &with_text(record, treatments, best),
        ))
    });
    Some(format!("{}: {steps}", change.unwrap_or_else(|| load_of(record))))
}

/// "X went from 1,000 to 1,200 TPS with Y (+20 %, between +18 and +22 %)".
fn from_to(record: &ExperimentRecord, [was, is]: [f64; 2], total: &Effect, with: &str) -> String {
    let metric = MetricWords::of(&record.metric);
    let change = format!(
        "({} %, between {} and {} %)",
        percent(total.ratio),
        percent(total.ratio_low),
        percent(total.ratio_high)
    );
    let load = load_of(record);
    match record.metric.as_str() {
        "tps" => format!(
            "{load} went from {} to {} TPS with {with} {change}",
            number(was),
            number(is)
        ),
        "job_s" => format!(
            "The job took {} instead of {} with {with} {change}",
            with_unit(&metric, is),
            with_unit(&metric, was)
        ),
        _ if is_duration(&metric) => format!(
            "{load}: {} was {} instead of {} with {with} {change}",
            metric.title,
            with_unit(&metric, is),
            with_unit(&metric, was)
        ),
        _ => format!(
            "{load}: {} went from {} to {} with {with} {change}",
            metric.title,
            with_unit(&metric, was),
            with_unit(&metric, is)
        ),
    }
}

fn with_text(record: &ExperimentRecord, treatments: &[Treatment], best: usize) -> String {
    let title = &treatments[best].title;
    match record.design.as_str() {
        "cumulative" if best + 1 == treatments.len() => {
            let all = treatments.iter().all(|t| t.why_not.is_none());
            match all {
                true => "all steps together",
                false => "all tested steps together",
            }
            .to_owned()
        }
        "cumulative" if best > 1 => format!("the steps up to \u{201c}{title}\u{201d}"),
        _ => format!("\u{201c}{title}\u{201d}"),
    }
}

const UNDECIDED: &str = "could not be decided";

/// "A and B paid; C did harm".
fn groups_text(record: &ExperimentRecord, treatments: &[Treatment]) -> String {
    let titled = |verdict: Verdict| -> Vec<&str> {
        treatments
            .iter()
            .filter(|t| t.step.is_some_and(|step| step.verdict == verdict))
            .map(|t| t.title.as_str())
            .collect()
    };
    let groups = [
        (titled(Verdict::Better), "paid"),
        (titled(Verdict::Worse), "did harm"),
        (titled(Verdict::Same), "made no difference that matters"),
        (titled(Verdict::NoGain), "brought no gain that matters"),
        (titled(Verdict::Undecided), UNDECIDED),
    ];
    let compared = treatments.iter().filter(|t| t.step.is_some()).count();
    let what = if record.factors.is_empty() {
        "steps"
    } else {
        "treatments"
    };
    let steps: Vec<String> = groups
        .iter()
        .filter(|(titles, _)| !titles.is_empty())
        .map(|(titles, verb)| match titles.len() {
            n if n == compared && n > 1 && *verb == UNDECIDED => {
                format!("taken one by one, none of the {n} {what} could be decided")
            }
            n if n == compared && n > 1 => format!("taken one by one, all {n} {what} {verb}"),
            n if n > NAMES_IN_ANSWER => format!("{n} of {compared} {what} {verb}"),
            _ => format!("{} {verb}", listed(titles)),
        })
        .collect();
    match steps.is_empty() {
        true => "there are too few finished trials for an interval, so nothing is decided".to_owned(),
        false => steps.join("; "),
    }
}

/// Those that are decided and matter, the strongest first.
fn strongest(effects: &[FactorEffect]) -> Option<String> {
    let mut decided: Vec<(&FactorEffect, Effect)> = effects
        .iter()
        .filter_map(|one| Some((one, one.effect?)))
        .filter(|(_, effect)| matches!(effect.verdict, Verdict::Better | Verdict::Worse))
        .collect();
    decided.sort_by(|a, b| b.1.ratio.ln().abs().total_cmp(&a.1.ratio.ln().abs()));
    let texts: Vec<String> = decided
        .iter()
        .take(EFFECTS_IN_ANSWER)
        .map(|(one, effect)| {
            format!(
                "{} {} % ({} \u{2026} {})",
                one.title,
                percent(effect.ratio),
                percent(effect.ratio_low),
                percent(effect.ratio_high)
            )
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn of_effects(record: &ExperimentRecord, effects: &[FactorEffect]) -> Option<String> {
    let (load, title) = (load_of(record), MetricWords::of(&record.metric).title);
    if effects.iter().all(|one| one.effect.is_none()) {
        return Some(format!(
            "{load}: there are too few finished trials to estimate the effect of a factor"
        ));
    }
    let same = effects
        .iter()
        .filter(|one| one.effect.is_some_and(|effect| effect.verdict == Verdict::Same))
        .count();
    let summary = match strongest(effects) {
        Some(summary) => format!("the strongest effects on {title}: {summary}"),
        None => format!("no factor was found to change {title}"),
    };
    Some(match same {
        0 => format!("{load}: {summary}"),
        1 => format!("{load}: {summary}; 1 factor makes no difference that matters"),
        n => format!("{load}: {summary}; {n} factors make no difference that matters"),
    })
}

fn of_curves(analysis: &Analysis<'_>, drafts: &Drafts) -> Option<String> {
    let record = analysis.record();
    let curves = &drafts.curves;
    if curves.is_empty() {
        return extremes(analysis, &drafts.treatments);
    }
    let shown: Vec<&Curve> = match curves.len() > CURVES_IN_ANSWER {
        true => highest(curves).into_iter().collect(),
        false => curves.iter().collect(),
    };
    let mut texts: Vec<String> = shown
        .iter()
        .filter_map(|curve| {
            let peak = peak_text(curve)?;
            Some(match &curve.title {
                Some(title) => format!("with {title}, {peak}"),
                None => peak,
            })
        })
        .collect();
    if curves.len() > shown.len() {
        texts.push(format!("{} more curves are below", curves.len() - shown.len()));
    }
    let text = texts.join("; ");
    // Where each treatment has a load of its own, its curves show which.
    let load = &record.workload.name;
    let mut own = record
        .treatments
        .iter()
        .filter_map(|treatment| treatment.workload.as_ref());
    Some(match own.any(|own| own.name != *load) {
        true => super::tables::capitalised(&text),
        false => format!("{load}: {text}"),
    })
}

/// The curve that goes highest, of those over clients where there are some: they have a happy zone.
fn highest(curves: &[Curve]) -> Option<&Curve> {
    let top = |curve: &&Curve| curve.highest.as_ref().map_or(0.0, |highest| highest.tps.mean);
    let of = |zoned: bool| {
        let kept = curves.iter().filter(move |curve| curve.zone.is_some() || !zoned);
        kept.max_by(|a, b| top(a).total_cmp(&top(b)))
    };
    of(true).or_else(|| of(false))
}

fn peak_text(curve: &Curve) -> Option<String> {
    let highest = curve.highest.as_ref()?;
    let last = curve
        .points
        .last()
        .is_some_and(|last| last.x.total_cmp(&highest.x).is_eq());
    let still = if last { " and may still grow beyond" } else { "" };
    let top = format!(
        "throughput is highest with {}, {} TPS{still}",
        counted(highest.x, &curve.x),
        number(highest.tps.mean)
    );
    Some(match &curve.zone {
        Some(zone) => format!("{top}; the happy zone is {}", zone_sentence(zone)),
        None => top,
    })
}

/// "1 client", "16 clients", "0.5 CPUs"; `what` is the plural.
fn counted(n: f64, what: &str) -> String {
    match what.strip_suffix('s').filter(|_| n.total_cmp(&1.0).is_eq()) {
        Some(one) => format!("1 {one}"),
        None => format!("{n} {what}"),
    }
}

/// Client counts as text: "16 to 32 clients".
pub(crate) fn zone_sentence(zone: &Zone) -> String {
    let range = match zone.lowest == zone.highest {
        true => counted(f64::from(zone.lowest), "clients"),
        false => format!("{} to {} clients", zone.lowest, zone.highest),
    };
    match zone.past_knee {
        true => format!("{range}, where response times are past their knee already"),
        false => range,
    }
}

/// A ladder of something that has no number: its best level.
fn extremes(analysis: &Analysis<'_>, treatments: &[Treatment]) -> Option<String> {
    let record = analysis.record();
    let metric = MetricWords::of(&record.metric);
    let trials = treatments
        .iter()
        .map(|treatment| analysis.counted(&treatment.name));
    let larger = record.larger_is_better(&record.metric);
    let (best, figure) = best_of(trials, &record.metric, larger, record.confidence)?;
    let best = &treatments[best];
    place_of(record, &best.name)?;
    Some(format!(
        "{}: {} is best with \u{201c}{}\u{201d}, {}",
        load_of(record),
        metric.title,
        best.title,
        with_unit(&metric, figure.mean)
    ))
}
