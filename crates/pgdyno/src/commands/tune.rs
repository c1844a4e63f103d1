//! `pgdyno tune`: the best settings of a target for a load. A search finds what may be the best,
//! new experiments confirm it, and drop what does not pay.

mod afar;
mod file;
mod outcome;
mod proof;
mod removal;
mod space;

use crate::cli::TuneArgs;
use crate::commands::experiment::{self, Begin};
use crate::commands::{profile, restore};
use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Failure, InContext as _, Refused, Result, Usage};
use crate::remote::{arguments, without_options};
use crate::repeated::repeated;
use crate::{show, target};
use file::{Common, Draft, Memory, Step};
use outcome::{Compared, Outcome, Proof};
use pgdyno_advice::{Now, Priors};
use pgdyno_host::{given_text, replace_given};
use pgdyno_knobs::Setting;
use pgdyno_lab::{ExperimentFile, searched};
use pgdyno_record::{
    Better, BrokenBound, ExperimentStatus, Metric, Searched, SettingRecord, StoredExperiment,
};
use pgdyno_remote::{RunEnd, SshHost};
use pgdyno_report::{effect, verdict_word};
use pgdyno_stats::three_digits;
use pgdyno_store::Store;
use proof::Prover;
use serde_json::{Value as Json, json};
use space::another_value;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const FORMAT: &str = "pgdyno-tune/1";
/// What all experiments of tunes are tagged with.
const TAG: &str = "tune";
/// Titles of the starting points that are compared with the best in the end.
const OTHERS: [&str; 2] = ["Advice", "pgtune's settings"];
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
    err!("{}", common.planned(&draft.space));
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
    tune.after(&mut store, id, &draft)
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
    let (whole, not_compared) = space::whole(context, args, &looked, &profiles);
    let not_levels = space::not_levels(&space, &profiles);
    let mut draft = Draft {
        target: experiment::named_at(looked.name.clone(), &args.at.on),
        memory: Memory {
            available_bytes: available.and_then(Json::as_f64),
            sorts: space::sorts(context, args, &space, &looked),
            present: present.collect(),
        },
        not_varied: space::not_varied(&space, &profiles),
        lowered: [not_levels, not_compared].concat(),
        whole,
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
            (Some(&args.target), &args.given),
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
        let seconds: f64 = common.about_s(space).iter().sum();
        put_page!(
            "{:#}",
            json!({
                "format": FORMAT, "target": target, "space": space, "starts": starts, "file": text, "seconds": seconds,
            })
        );
        return Ok(exit::FINE);
    }
    put_page!("{text}");
    err!("{}", common.planned(space));
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

impl Tune<'_> {
    /// Runs an experiment of the tune to its end; its number. One that was begun after the search
    /// is continued, and not repeated once it is finished: what is repeated until it is better
    /// proves nothing.
    fn measured(&self, store: &mut Store, text: &str) -> Result<i64> {
        let (context, args) = (self.context, self.args);
        let begun = match self.search {
            Some(search) => begun(store, search, (self.target, text))?,
            None => None,
        };
        if let Some((id, ExperimentStatus::Finished)) = begun {
            err!("experiment {id} has measured this");
            store.tag(id, TAG)?;
            return Ok(id);
        }
        let begun = begun.map(|(id, _)| id);
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
                let ended = afar::run(context, args, host, (text, begun, repeat))
                    .map_err(|error| self.lost(error))?;
                store.tag(ended.id, TAG)?;
                ended
            }
            None => {
                let file = parsed(context, text)?;
                let held =
                    target::of_experiment(context, &file, Some(&args.target), consent.restart, "tune")?;
                let ended = match begun {
                    Some(id) => experiment::go_on(context, store, &consent, (id, self.target), held, "tune"),
                    None => {
                        let begin = Begin {
                            file,
                            text,
                            held,
                            repeat,
                            given: &args.given,
                            command: "tune",
                        };
                        experiment::start(context, store, &consent, begin)
                    }
                };
                let summary = ended.map_err(|error| self.lost(error))?;
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
                "pgdyno tune ... --after {search} continues with that experiment"
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

    fn after(&self, store: &mut Store, id: i64, draft: &Draft) -> Result<u8> {
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
        if !winner.is_empty() {
            let interval = best.interval.map(|ends| ends.map(three_digits));
            let interval = interval.map_or_else(String::new, |[low, high]| format!(" [{low}, {high}]"));
            err!(
                "the best of {} trials ({} failed): {} {}{interval}",
                searched.path.len(),
                searched.failed(),
                self.common.metric,
                three_digits(best.figure)
            );
        }
        for setting in &winner {
            err!("  {} = {}", setting.knob, setting.value);
        }
        let mut run = |text: &str| -> Result<StoredExperiment> {
            let id = self.measured(store, text)?;
            Ok(store.experiment(id)?)
        };
        let mut prover = Prover {
            common: self.common,
            others: others(draft, &stored),
            run: &mut run,
        };
        let outcome = prover.conclude((&searched, &stored), &winner)?;
        match outcome {
            Outcome::NothingBetter => Ok(self.nothing_better(id)),
            Outcome::NotConfirmed { found, broken } => self.not_confirmed(store, found.as_ref(), &broken),
            Outcome::WorseWhenCold { found, cold } => self.worse_when_cold(store, &found, &cold),
            Outcome::Tuned(proof) => {
                self.note(store, &self.outcome(&searched, &proof))?;
                self.finish(id, &searched, &proof)
            }
        }
    }

    /// Leaves a note on the search, so that its page says the outcome of what it found.
    fn note(&self, store: &mut Store, text: &str) -> Result<()> {
        if let Some(search) = self.search {
            store.note(search, text)?;
        }
        Ok(())
    }

    fn nothing_better(&self, id: i64) -> u8 {
        match self.args.store.json {
            true => put_page!(
                "{:#}",
                json!({ "format": FORMAT, "outcome": "nothing-better", "search": id })
            ),
            false => put!(
                "the search has found nothing better than the present state (experiment {id}); no profile is written"
            ),
        }
        exit::UNDECIDED
    }

    fn not_confirmed(
        &self,
        store: &mut Store,
        found: Option<&Compared>,
        broken: &[BrokenBound],
    ) -> Result<u8> {
        let shown = found.map(|found| found.shown(self.args.smallest_effect));
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
                json!({ "format": FORMAT, "outcome": "not-confirmed", "best": found.map(Compared::document), "broken": broken })
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

    /// Whether it is open if what is kept is worse with cold caches.
    fn is_cold_undecided(&self, cold: &Compared) -> bool {
        !cold.loses_less_than(self.args.smallest_effect, self.args.minimize.is_some())
    }

    /// What is kept with cold caches, in a line.
    fn shown_cold(&self, cold: &Compared) -> String {
        let open = match self.is_cold_undecided(cold) {
            true => "; whether it is worse then is undecided",
            false => "",
        };
        format!("with cold caches {}{open}", cold.shown(self.args.smallest_effect))
    }

    /// The outcome of the best of the search, in a line.
    fn outcome(&self, searched: &Searched, proof: &Proof) -> String {
        let smallest = self.args.smallest_effect;
        let expected = searched.expected_ratio().map_or_else(String::new, |ratio| {
            format!(" where the search expected {:+.1} %", 100.0 * (ratio - 1.0))
        });
        let others = proof.others.iter().filter_map(|other| {
            let best = other.best.as_ref()?;
            Some(format!("; against {} {}", other.title, effect(best)))
        });
        let others: String = others.collect();
        let names = proof.dropped.iter().map(|own| match own.is_undecided {
            true => format!("{} (undecided)", own.setting.knob),
            false => own.setting.knob.clone(),
        });
        let names: Vec<String> = names.collect();
        let dropped = match names.is_empty() {
            true => String::new(),
            false => format!("; dropped, as they do not pay: {}", names.join(", ")),
        };
        let last = proof.last.as_ref().map_or_else(String::new, |last| {
            format!("; without them {}", last.shown(smallest))
        });
        let cold = proof.cold.as_ref();
        let cold = cold.map_or_else(String::new, |cold| format!("; {}", self.shown_cold(cold)));
        let found = proof.found.shown(smallest);
        format!("confirmed: {found}{expected}{others}{dropped}{last}{cold}")
    }

    fn finish(&self, id: i64, searched: &Searched, proof: &Proof) -> Result<u8> {
        let smallest = self.args.smallest_effect;
        let proven = proof.proven();
        let title = format!("Tuned for {}", self.target);
        let cold = proof.cold.as_ref().map(|cold| self.shown_cold(cold));
        let summary = format!(
            "{} against {}: {}{}. Found by experiment {id}.",
            self.common.metric,
            self.common.before(),
            proven.shown(smallest),
            cold.as_ref().map_or_else(String::new, |cold| format!("; {cold}"))
        );
        let text = outcome::profile(PROFILE, (&title, &summary), &self.args.fix, &proof.kept)?;
        let path = &self.args.output;
        replace_given(path, text.as_bytes(), 0o644).with_context(|| format!("writing {}", path.display()))?;
        if self.args.store.json {
            put_page!("{:#}", self.document(id, searched, proof));
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
        for other in &proof.others {
            let best = other.best.as_ref().map_or_else(String::new, |best| {
                let verdict = verdict_word(best.verdict, smallest);
                format!("; the best against it: {}: {verdict}", effect(best))
            });
            put!(
                "{} against {}: {}{best}",
                other.title,
                self.common.before(),
                other.found.shown(smallest)
            );
        }
        if let Some(cold) = cold {
            put!("{cold}");
        }
        for own in &proof.kept {
            put!(
                "  {} = {}  ({})",
                own.setting.knob,
                own.setting.value,
                own.shown()
            );
        }
        for own in &proof.dropped {
            put!(
                "dropped: {} = {}, {}",
                own.setting.knob,
                own.setting.value,
                own.shown()
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

    /// What was found, for programs; docs/how-to/tune.md describes it.
    fn document(&self, id: i64, searched: &Searched, proof: &Proof) -> Json {
        let setting = |setting: &Setting| json!({ "knob": setting.knob, "value": setting.value });
        let kept = proof.kept.iter().map(|kept| {
            json!({
                "setting": setting(&kept.setting), "with": kept.with, "without": kept.without, "trials": kept.trials,
                "undecided": kept.is_undecided,
            })
        });
        let dropped = proof.dropped.iter().map(|dropped| {
            json!({
                "setting": setting(&dropped.setting), "without": dropped.without, "undecided": dropped.is_undecided,
            })
        });
        let others = proof.others.iter().map(|other| {
            let mut document = other.found.document();
            document["best"] = json!(other.best);
            (other.name.clone(), document)
        });
        let cold = proof.cold.as_ref().map(|cold| {
            let mut document = cold.document();
            document["undecided"] = json!(self.is_cold_undecided(cold));
            document
        });
        let (kept, dropped): (Vec<Json>, Vec<Json>) = (kept.collect(), dropped.collect());
        let others: serde_json::Map<String, Json> = others.collect();
        json!({
            "format": FORMAT, "outcome": "tuned", "search": id, "trials": searched.path.len(),
            "failed": searched.failed(), "expected": searched.expected_ratio(), "best": proof.found.document(),
            "others": others, "kept": kept, "dropped": dropped, "cold": cold, "proven": proof.proven().document(),
            "profile": self.args.output,
        })
    }
}

/// Advice and pgtune's settings as the best is compared with them: as a whole where that is
/// allowed, else what they set of the knobs that were varied.
fn others(draft: &Draft, search: &StoredExperiment) -> Vec<Step> {
    let names = space::SHIPPED.into_iter().zip(OTHERS);
    let other = |(name, title): (&str, &str)| {
        let whole = draft.whole.iter().find(|(own, _)| own == name);
        let (title, settings) = match whole {
            Some((_, settings)) => (title.to_owned(), settings.clone()),
            None => (
                format!("{title} of the knobs that are varied"),
                changed(search, name),
            ),
        };
        (name.to_owned(), title, settings)
    };
    names.map(other).collect()
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

/// The first experiment after a search on this target and with this file, and how far it is.
fn begun(
    store: &Store,
    search: i64,
    (target, text): (&str, &str),
) -> Result<Option<(i64, ExperimentStatus)>> {
    let newest_first = store.numbers()?.into_iter();
    for (id, status) in newest_first.rev().filter(|(id, _)| *id > search) {
        let record = store.experiment_alone(id)?.record;
        if record.file == text && record.target == target {
            return Ok(Some((id, status)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_record::{ExperimentRecord, WorkloadRecord};

    #[test]
    fn experiment_of_a_killed_tune_is_found_by_its_file_after_the_search_alone() {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::open(&home.path().join("results.sqlite")).unwrap();
        let mut begin = |file: &str, target: &str| {
            let workload = WorkloadRecord {
                name: "tpcb".into(),
                scale: 1,
                clients: 1,
                threads: 1,
                warmup_s: 0.0,
                measure_s: 1.0,
            };
            let record = ExperimentRecord {
                file: file.to_owned(),
                target: target.to_owned(),
                ..ExperimentRecord::new("x", workload)
            };
            store.begin(&record).unwrap()
        };
        let before = begin("confirm", "here");
        let search = begin("search", "here");
        let elsewhere = begin("confirm", "elsewhere");
        let killed = begin("confirm", "here");
        let repeated = begin("confirm", "here");
        assert!(before < search && search < elsewhere && elsewhere < killed && killed < repeated);
        let found = |store: &Store, text| begun(store, search, ("here", text)).unwrap();
        assert_eq!(
            found(&store, "confirm"),
            Some((killed, ExperimentStatus::Running))
        );
        assert_eq!(found(&store, "remove"), None);
        store.set_status(killed, ExperimentStatus::Finished).unwrap();
        // The first one counts, and not the one that may say something else.
        assert_eq!(
            found(&store, "confirm"),
            Some((killed, ExperimentStatus::Finished))
        );
    }
}
