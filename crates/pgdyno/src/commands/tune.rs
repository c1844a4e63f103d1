//! `pgdyno tune`: the best settings of a target for a load. A search finds what may be the best,
//! new experiments confirm it, and drop what does not pay.

mod afar;
mod file;
mod outcome;
mod removal;
mod space;

use crate::cli::TuneArgs;
use crate::commands::experiment::{self, Begin};
use crate::commands::{profile, report, restore};
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Failure, InContext as _, Refused, Result, Usage};
use crate::remote::{arguments, without_options};
use crate::repeated::repeated;
use crate::{show, target};
use file::{BEST, Caches, Common, Draft, Memory, REFERENCE};
use outcome::{Compared, Dropped, Kept};
use pgdyno_advice::{Now, Priors};
use pgdyno_host::{given_text, replace_given};
use pgdyno_knobs::Setting;
use pgdyno_lab::{Bound, ExperimentFile, searched};
use pgdyno_record::{
    Better, BrokenBound, ExperimentStatus, Metric, Searched, SettingRecord, StoredExperiment,
};
use pgdyno_remote::{RunEnd, SshHost};
use pgdyno_report::Report;
use pgdyno_stats::{Verdict, three_digits};
use pgdyno_store::Store;
use serde_json::{Value as Json, json};
use space::another_value;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const FORMAT: &str = "pgdyno-tune/1";
/// What all experiments of tunes are tagged with.
const TAG: &str = "tune";
/// Starting points that are compared with the best in the end: name and title.
const OTHERS: [(&str, &str); 2] = [
    ("advice", "Advice for the knobs that are varied"),
    ("pgtune", "pgtune's settings of the knobs that are varied"),
];
/// Name of the profile that it writes.
const PROFILE: &str = "tuned";

pub(crate) fn run(context: &Context, args: &TuneArgs) -> Result<u8> {
    let metric = metric(args)?;
    let common = Common::new((args, metric), &context.catalogue, &|path| {
        context.given_text(path)
    })?;
    if args.draft {
        restore::before(context, None)?;
        put_page!("{}", serde_json::to_string(&draft(context, &common)?)?);
        return Ok(exit::FINE);
    }
    if args.dry_run {
        return dry(&common, &draft(context, &common)?);
    }
    check_output(context, &args.output)?;
    // Each experiment has a flag of its own, which it may take down.
    let stop = stop_flag()?;
    let elsewhere = afar::host_of(context, args);
    // What a killed command has left is no present state.
    let draft = match elsewhere {
        Some(host) => afar::draft(context, args, host)?,
        None => {
            restore::before(context, None)?;
            draft(context, &common)?
        }
    };
    let text = common.search(&draft)?;
    let file = parsed(context, &text)?;
    err!("{}", common.planned());
    for line in draft.not_tried() {
        err!("{line}");
    }
    let mut store = context.store(args.store.store.place())?;
    let mut tune = Tune {
        context,
        args,
        common: &common,
        target: &draft.target,
        elsewhere,
        stop: &stop,
        search: args.after,
    };
    let id = match args.after {
        Some(id) => {
            tune.is_the_same(&store.experiment(id)?, &file)?;
            // One that was killed, or has failed, has none yet.
            store.tag(id, TAG)?;
            id
        }
        None => tune.measured(&mut store, &text)?,
    };
    tune.search = Some(id);
    tune.after(&mut store, id)
}

/// Looks at the target.
fn draft(context: &Context, common: &Common<'_>) -> Result<Draft> {
    let args = common.args;
    let mut looked = profile::look(context, Some(&args.target))?;
    looked.take_given(&args.given)?;
    let kind = args.kind.unwrap_or_else(|| space::kind_of(args));
    let profiles = space::profiles_of(context, &looked, kind, &args.start)?;
    let priors = Priors::shipped(&context.catalogue)?;
    let space = space::space(context, args, (&priors, &looked), kind, &profiles)?;
    let starts = space::starts(&space, &profiles);
    let present = priors
        .memory()
        .into_iter()
        .filter_map(|(knob, _)| match looked.current(context, knob) {
            Now::Is(now) => Some((knob.to_owned(), now)),
            Now::Unknown | Now::Nowhere(_) => None,
        });
    let available = looked.known.get("available.memory_bytes").ok();
    let mut draft = Draft {
        target: experiment::named_at(looked.name.clone(), &args.at.on),
        memory: Memory {
            available_bytes: available.and_then(Json::as_f64),
            sorts: space::sorts(context, args, &space, &looked),
            present: present.collect(),
        },
        not_varied: space::not_varied(&space, &profiles),
        lowered: Vec::new(),
        space,
        starts,
    };
    common.fits_in_time(&draft.space)?;
    common.keep_within_memory(&mut draft)?;
    parsed(context, &common.search(&draft)?)?;
    if args.cold {
        // Hours before it is run.
        let knobs = draft.space.knobs.iter();
        let settings: Vec<Setting> = knobs.filter_map(another_value).take(1).collect();
        let cold = parsed(context, &common.cold(&settings)?)?;
        experiment::check(
            context,
            cold,
            &experiment::consent_of(&args.consent),
            Some(&args.target),
        )?;
    }
    Ok(draft)
}

/// Whether the profile can be written, before hours of trials: not over what is none of a tune's.
fn check_output(context: &Context, path: &Path) -> Result<()> {
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        return Err(Usage(format!("--output: there is no directory {}", directory.display())).into());
    }
    let is_own = |text: &str| text.contains(&format!("name = \"{PROFILE}\""));
    if path.exists() && !given_text(path).is_ok_and(|there| is_own(&there)) {
        return Err(Refused(format!(
            "{} exists and was not written by `pgdyno tune`; it is not overwritten",
            path.display()
        ))
        .into());
    }
    let above = directory.unwrap_or(Path::new("."));
    if let Some(why) = experiment::not_writable(context, path)
        && experiment::not_writable(context, above).is_some()
    {
        fail!("--output: {why}");
    }
    Ok(())
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
            "{name} is not a metric of a trial; the book's \"Metrics of trials\" lists all"
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

fn dry(common: &Common<'_>, draft: &Draft) -> Result<u8> {
    let (args, text) = (common.args, common.search(draft)?);
    let Draft {
        target,
        space,
        starts,
        ..
    } = draft;
    if args.store.json {
        let starts: Vec<_> = starts
            .iter()
            .map(|(name, levels)| json!({ "name": name, "levels": levels }))
            .collect();
        put_page!(
            "{:#}",
            json!({ "format": FORMAT, "target": target, "space": space, "starts": starts, "file": text })
        );
        return Ok(exit::FINE);
    }
    put_page!("{text}");
    err!("{}", common.planned());
    err!("{} knobs are varied:", space.knobs.len());
    for knob in &space.knobs {
        let values: Vec<&str> = knob.values.iter().map(|(value, _)| value.as_str()).collect();
        err!("  {}: {} ({})", knob.knob, values.join(", "), knob.source);
    }
    for (knob, why) in &space.skipped {
        err!("not varied: {knob}: {why}");
    }
    for line in draft.not_tried() {
        err!("{line}");
    }
    err!("nothing was run or changed");
    Ok(exit::FINE)
}

fn parsed(context: &Context, text: &str) -> Result<ExperimentFile> {
    let file = ExperimentFile::parse(text, Path::new("an experiment of the tune"), &context.catalogue)?;
    Ok(file)
}

/// The experiments of a tune.
struct Tune<'a> {
    context: &'a Context,
    args: &'a TuneArgs,
    common: &'a Common<'a>,
    /// Name of the target.
    target: &'a str,
    /// The target's host, where it is not this one.
    elsewhere: Option<&'a SshHost>,
    /// Whether it was asked to end.
    stop: &'a AtomicBool,
    /// Number of the search, once it has ended.
    search: Option<i64>,
}

/// What new trials have found of the best of a search, against the present state.
struct Proof {
    /// All of it.
    found: Compared,
    /// Advice and pgtune's settings in the same experiment, each with its name and title.
    others: Vec<(&'static str, &'static str, Compared)>,
    /// The same with cold caches, where that was asked for.
    cold: Option<Compared>,
    /// Without what does not pay, where something does not.
    last: Option<Compared>,
}

/// A step of an experiment: name, title, settings.
type Step = (String, String, Vec<Setting>);

impl Tune<'_> {
    /// Runs an experiment of the tune to its end; its number.
    fn measured(&self, store: &mut Store, text: &str) -> Result<i64> {
        let (context, args) = (self.context, self.args);
        let stopped = |running: Option<i64>| {
            let goes_on = match (self.search, running) {
                (Some(search), _) => format!("pgdyno tune ... --after {search}"),
                (None, Some(id)) => format!("{}, then pgdyno tune ... --after {id}", self.resume(id)),
                (None, None) => "the same command".to_owned(),
            };
            format!("stopped; to continue: {goes_on}, with the same options and store")
        };
        if self.stop.load(Ordering::Relaxed) {
            fail!("{}", stopped(None));
        }
        let consent = experiment::consent_of(&args.consent);
        let own = without_options(arguments()?, &["--after"]).into_iter();
        let repeat = vec![repeated(own.map(OsString::from), &args.target)];
        let RunEnd { id, status } = match self.elsewhere {
            Some(host) => {
                let ended =
                    afar::run(context, args, host, (text, repeat)).map_err(|error| self.lost(error))?;
                store.tag(ended.id, TAG)?;
                ended
            }
            None => {
                let file = parsed(context, text)?;
                let held =
                    target::of_experiment(context, &file, Some(&args.target), consent.restart, "tune")?;
                let begin = Begin {
                    file,
                    text,
                    held,
                    repeat,
                    command: "tune",
                };
                let started = experiment::start(context, store, &consent, begin);
                let summary = started.map_err(|error| self.lost(error))?;
                store.tag(summary.id, TAG)?;
                restore::check(&summary.restored)?;
                restore::check_objects(&summary.restored)?;
                RunEnd {
                    id: summary.id,
                    status: summary.status,
                }
            }
        };
        match status {
            ExperimentStatus::Finished => Ok(id),
            _ => fail!("{}", stopped(Some(id))),
        }
    }

    /// An error of a later experiment, with how the tune is gone on with.
    fn lost(&self, error: Failure) -> Failure {
        match self.search {
            Some(search) => error.with_hint(format!(
                "pgdyno tune ... --after {search} begins that experiment again"
            )),
            None => error,
        }
    }

    /// The command that goes on with an experiment.
    fn resume(&self, id: i64) -> String {
        format!("pgdyno resume {id}{}", experiment::options_of(&self.args.at.on))
    }

    /// Refuses a search that was begun on another target, or for something else than is asked for
    /// now.
    fn is_the_same(&self, stored: &StoredExperiment, now: &ExperimentFile) -> Result<()> {
        let id = stored.id;
        let then = parsed(self.context, &stored.record.file)?;
        let bounds = |file: &ExperimentFile| file.search.as_ref().map(|search| search.subject_to.clone());
        let differences = [
            ("the target", stored.record.target != self.target),
            ("the metric", then.metric != now.metric),
            ("the load", then.load != now.load),
            ("--session-scope", then.target.scope != now.target.scope),
            ("the data", then.data != now.data),
            ("--fix", then.base != now.base),
            ("--subject-to", bounds(&then) != bounds(now)),
        ];
        match differences.iter().find(|(_, differs)| *differs) {
            Some((what, _)) => {
                let message = format!("experiment {id} is not what is asked for now: {what} differs");
                let hint = format!("give the options that it was begun with; pgdyno show {id} has them");
                Err(Failure::from(Usage(message)).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    fn after(&self, store: &mut Store, id: i64) -> Result<u8> {
        let stored = store.experiment(id)?;
        let Some(searched) = searched(&stored, &self.context.catalogue)? else {
            return Err(Usage(format!("experiment {id} is not a search")).into());
        };
        if stored.status != ExperimentStatus::Finished {
            let error = Failure::from(Usage(format!("the search of experiment {id} is not finished")));
            let hint = format!("{}, then pgdyno tune ... --after {id}", self.resume(id));
            return Err(error.with_hint(hint));
        }
        let Some(best) = &searched.best else {
            fail!(
                "all {} trials of the search failed; pgdyno show {id} has the reasons",
                searched.path.len()
            );
        };
        let winner = changed(&stored, &best.treatment);
        if winner.is_empty() {
            match self.args.store.json {
                true => put_page!(
                    "{:#}",
                    json!({ "format": FORMAT, "outcome": "nothing-better", "search": id })
                ),
                false => put!(
                    "the search has found nothing better than the present state (experiment {id}); no profile is written"
                ),
            }
            return Ok(exit::UNDECIDED);
        }
        let interval = best.interval.map(|ends| ends.map(three_digits));
        let interval = interval.map_or_else(String::new, |[low, high]| format!(" [{low}, {high}]"));
        err!(
            "the best of {} trials ({} failed): {} {}{interval}",
            searched.path.len(),
            searched.failed(),
            self.common.metric,
            three_digits(best.figure)
        );
        for setting in &winner {
            err!("  {} = {}", setting.knob, setting.value);
        }
        let confirmed = self.confirm(store, &stored, &winner)?;
        let broken = self.broken(&confirmed, BEST)?;
        let Some(found) = self.accepted(&confirmed, BEST)? else {
            return self.not_confirmed(store, &confirmed, &broken);
        };
        for bound in self.broken(&confirmed, REFERENCE)? {
            err!("the present state breaks {}, and the best does not", bound.bound);
        }
        let (kept, dropped) = match &*winner {
            [only] => (vec![Kept::alone(only, &found)], Vec::new()),
            _ => self.ablated(store, (&searched, &stored), &winner)?,
        };
        let (kept, dropped, last) = self.proven(store, &winner, (kept, dropped))?;
        // Of what the profile will set.
        let settings: Vec<Setting> = kept.iter().map(|kept| kept.setting.clone()).collect();
        let cold = self
            .args
            .cold
            .then(|| self.confirm_cold(store, &settings))
            .transpose()?;
        let is_worse = |cold: &&Compared| cold.effect.is_none() || cold.is(Verdict::Worse);
        if let Some(cold) = cold.as_ref().filter(is_worse) {
            return self.worse_when_cold(store, last.as_ref().unwrap_or(&found), cold);
        }
        let others = OTHERS
            .iter()
            .filter_map(|(name, title)| Some((*name, *title, Compared::of(&confirmed, name)?)));
        let others = others.collect();
        let proof = Proof {
            found,
            others,
            cold,
            last,
        };
        self.note(store, &self.outcome(&searched, &proof, &dropped))?;
        self.finish(id, &searched, &proof, &kept, &dropped)
    }

    /// The winner, advice and pgtune's settings against the present state, in new trials.
    fn confirm(&self, store: &mut Store, stored: &StoredExperiment, winner: &[Setting]) -> Result<Report> {
        err!("confirming it against the present state, in new trials");
        let mut steps: Vec<Step> = Vec::new();
        for (name, title) in OTHERS {
            let settings = changed(stored, name);
            if !settings.is_empty()
                && settings != winner
                && steps.iter().all(|(_, _, known)| *known != settings)
            {
                steps.push((name.to_owned(), title.to_owned(), settings));
            }
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

    /// What is kept against the present state, when loads begin with cold caches.
    fn confirm_cold(&self, store: &mut Store, kept: &[Setting]) -> Result<Compared> {
        err!("comparing it with the present state with cold caches");
        let id = self.measured(store, &self.common.cold(kept)?)?;
        let found = Compared::of(&report::build(self.context, store, id)?, BEST);
        found.ok_or_else(|| Failure::new(format!("experiment {id} is without its treatment")))
    }

    fn run(
        &self,
        store: &mut Store,
        words: (&str, &str),
        base: &[Setting],
        steps: &[Step],
    ) -> Result<Report> {
        let text = self.common.compared(words, Caches::Warm, base, steps)?;
        let id = self.measured(store, &text)?;
        report::build(self.context, store, id)
    }

    /// A treatment that keeps all bounds and is better than the present state. One that breaks a
    /// bound is not a state to stay with: then it is enough to keep them all.
    fn accepted(&self, report: &Report, name: &str) -> Result<Option<Compared>> {
        let is_kept = self.broken(report, name)?.is_empty();
        let is_to_leave = !self.broken(report, REFERENCE)?.is_empty();
        let found = Compared::of(report, name).filter(|_| is_kept);
        Ok(found.filter(|found| is_to_leave || found.is(Verdict::Better)))
    }

    /// The bounds that a treatment breaks, each with its figure.
    fn broken(&self, report: &Report, name: &str) -> Result<Vec<BrokenBound>> {
        let treatment = report.treatments.iter().find(|treatment| treatment.name == name);
        let mut broken = Vec::new();
        for text in &self.args.subject_to {
            let bound = Bound::parse(text).map_err(Usage)?;
            let figure = treatment.and_then(|treatment| treatment.figures.get(&bound.figure));
            broken.extend(bound.broken_by(figure.copied()));
        }
        Ok(broken)
    }

    /// Leaves a note on the search, so that its page says the outcome of what it found.
    fn note(&self, store: &mut Store, text: &str) -> Result<()> {
        if let Some(search) = self.search {
            store.note(search, text)?;
        }
        Ok(())
    }

    fn not_confirmed(&self, store: &mut Store, confirmed: &Report, broken: &[BrokenBound]) -> Result<u8> {
        let found = Compared::of(confirmed, BEST);
        let shown = found.as_ref().map(|found| found.shown(self.args.smallest_effect));
        let shown = shown.unwrap_or_default();
        let bounds = broken.iter().map(|broken| match broken.figure {
            Some(figure) => format!("; it breaks {}: it is {}", broken.bound, three_digits(figure)),
            None => format!("; it breaks {}: it was not measured", broken.bound),
        });
        let bounds: String = bounds.collect();
        self.note(store, &format!("not confirmed: {shown}{bounds}"))?;
        if self.args.store.json {
            put_page!(
                "{:#}",
                json!({ "format": FORMAT, "outcome": "not-confirmed", "best": found.as_ref().map(Compared::document), "broken": broken })
            );
        } else {
            put!("the best of the search is not confirmed: {shown}{bounds}");
            put!("no profile is written");
        }
        Ok(exit::UNDECIDED)
    }

    fn worse_when_cold(&self, store: &mut Store, found: &Compared, cold: &Compared) -> Result<u8> {
        let smallest = self.args.smallest_effect;
        let text = format!(
            "not confirmed with cold caches: {}; with warm ones {}",
            cold.shown(smallest),
            found.shown(smallest)
        );
        self.note(store, &text)?;
        if self.args.store.json {
            put_page!(
                "{:#}",
                json!({ "format": FORMAT, "outcome": "not-confirmed", "best": found.document(), "cold": cold.document() })
            );
        } else {
            put!("the best of the search is {text}");
            put!("no profile is written");
        }
        Ok(exit::UNDECIDED)
    }

    /// The outcome of the best of the search, in a line.
    fn outcome(&self, searched: &Searched, proof: &Proof, dropped: &[Dropped]) -> String {
        let smallest = self.args.smallest_effect;
        let expected = searched.expected_ratio().map_or_else(String::new, |ratio| {
            format!(" where the search expected {:+.1} %", 100.0 * (ratio - 1.0))
        });
        let names: Vec<&str> = dropped.iter().map(|own| own.setting.knob.as_str()).collect();
        let dropped = match names.is_empty() {
            true => String::new(),
            false => format!("; dropped, as they do not pay: {}", names.join(", ")),
        };
        let last = proof.last.as_ref().map_or_else(String::new, |last| {
            format!("; without them {}", last.shown(smallest))
        });
        let cold = proof.cold.as_ref().map_or_else(String::new, |cold| {
            format!("; with cold caches {}", cold.shown(smallest))
        });
        let found = proof.found.shown(smallest);
        format!("confirmed: {found}{expected}{dropped}{last}{cold}")
    }

    fn finish(
        &self,
        id: i64,
        searched: &Searched,
        proof: &Proof,
        kept: &[Kept],
        dropped: &[Dropped],
    ) -> Result<u8> {
        let smallest = self.args.smallest_effect;
        let proven = proof.last.as_ref().unwrap_or(&proof.found);
        let title = format!("Tuned for {}", self.target);
        let summary = format!(
            "{} against {}: {}. Found by experiment {id}.",
            self.common.metric,
            self.common.before(),
            proven.shown(smallest)
        );
        let text = outcome::profile(PROFILE, (&title, &summary), &self.args.fix, kept)?;
        let path = &self.args.output;
        replace_given(path, text.as_bytes(), 0o644).with_context(|| format!("writing {}", path.display()))?;
        if self.args.store.json {
            let setting = |setting: &Setting| json!({ "knob": setting.knob, "value": setting.value });
            let kept: Vec<_> = kept
                .iter()
                .map(|kept| {
                    json!({ "setting": setting(&kept.setting), "with": kept.with, "without": kept.without, "trials": kept.trials })
                })
                .collect();
            let others = proof
                .others
                .iter()
                .map(|(name, _, found)| ((*name).to_owned(), found.document()));
            let others: serde_json::Map<String, Json> = others.collect();
            let dropped: Vec<_> = dropped
                .iter()
                .map(|dropped| json!({ "setting": setting(&dropped.setting), "without": dropped.without }))
                .collect();
            put_page!(
                "{:#}",
                json!({
                    "format": FORMAT, "outcome": "tuned", "search": id, "trials": searched.path.len(),
                    "failed": searched.failed(), "expected": searched.expected_ratio(), "best": proof.found.document(),
                    "others": others, "kept": kept, "dropped": dropped,
                    "cold": proof.cold.as_ref().map(Compared::document), "proven": proven.document(), "profile": path,
                })
            );
            return Ok(exit::FINE);
        }
        put!(
            "{} against {}: {}",
            self.common.metric,
            self.common.before(),
            proven.shown(smallest)
        );
        if let Some(ratio) = searched.expected_ratio() {
            put!("the search expected {:+.1} % of its best", 100.0 * (ratio - 1.0));
        }
        for (_, title, found) in &proof.others {
            put!(
                "{title} against {}: {}",
                self.common.before(),
                found.shown(smallest)
            );
        }
        if let Some(cold) = &proof.cold {
            put!("with cold caches: {}", cold.shown(smallest));
        }
        for own in kept {
            put!(
                "  {} = {}  ({})",
                own.setting.knob,
                own.setting.value,
                own.shown()
            );
        }
        for own in dropped {
            put!(
                "dropped: {} = {}, which does not pay",
                own.setting.knob,
                own.setting.value
            );
        }
        let path = match path
            .parent()
            .is_some_and(|directory| !directory.as_os_str().is_empty())
        {
            true => path.display().to_string(),
            false => format!("./{}", path.display()),
        };
        let options = experiment::options_of(&self.args.at.on);
        let applied = format!("the settings as a profile: pgdyno apply TARGET {path}{options}");
        err!("{}", show::wrapped("", &applied, 110).trim_end());
        Ok(exit::FINE)
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
    let is_in_reference = |setting: &SettingRecord| {
        let mut settings = reference.settings.iter();
        settings.any(|own| (&own.knob, &own.value) == (&setting.knob, &setting.value))
    };
    let settings = treatment.settings.iter();
    settings
        .filter(|own| !is_in_reference(own))
        .map(|own| Setting {
            knob: own.knob.clone(),
            value: own.value.clone(),
        })
        .collect()
}
