//! `pgdyno advise`: what to change on a target and why. Read-only, but for what `--check` writes
//! for its measurements.

mod cells;
mod detail;
mod evidence;
mod experiment;
mod markdown;
mod measure;
mod text;

pub(crate) use evidence::evidence_for;

use super::drafts::fact;
use super::experiment::{ON, host_in, options_of};
use super::facts::{self, Found};
use crate::cli::{AdviseArgs, AdviseFormat};
use crate::context::Context;
use crate::exit;
use crate::failure::{InContext as _, Result, Usage};
use crate::output::{self, Style};
use crate::own_load;
use crate::repeated::shell_word;
use crate::target;
use pgdyno_advice::{Advice, Advised, Advisor, Question, Rule, RuleKind, Severity};
use pgdyno_host::{Fact, replace_given};
use pgdyno_record::FactRecord;
use pgdyno_server::may_hold_password;
use pgdyno_store::Store;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Of the JSON that is printed; docs/reference/advice.md describes it.
const FORMAT: &str = "pgdyno-advice/1";
/// Columns of a page that goes to no terminal.
const WIDTH_USUAL: usize = 100;
const WIDTH_MIN: usize = 60;
const WIDTH_MAX: usize = 140;

/// Advice with what is to be said around it.
struct Page<'a> {
    /// The target, for people; "this host" where no server was asked.
    name: String,
    /// What it is, in a line.
    what: String,
    /// As the user named it on the command line; `None` where it holds a password, or is a tree of
    /// files.
    target: Option<&'a str>,
    /// Whether no server is meant.
    is_host_alone: bool,
    /// Options of another host that it is on, from a space on; empty for this one.
    options: String,
    advised: &'a Advised,
    verbose: bool,
    /// Whether small gains are shown too.
    all: bool,
    /// The least severity that is shown.
    least: Severity,
    /// Rules and settings of which all is shown; of none a table.
    details: &'a [String],
}

pub(crate) fn run(context: &Context, args: &AdviseArgs) -> Result<u8> {
    let begun = Instant::now();
    let advisor = Advisor::shipped(&context.catalogue)?;
    known_words(&advisor, args)?;
    detail::check(&advisor, &args.detail)?;
    let found = facts::find(
        context,
        args.target.as_deref(),
        args.host_only,
        args.root.as_deref(),
    )?;
    let mut facts: Vec<Fact> = found.facts.iter().map(fact).collect();
    if found.target.is_some() {
        own_load::take_out(context, args.target.as_deref().unwrap_or_default(), &mut facts)?;
    }
    if args.check {
        facts.extend(measure::facts(context, args)?);
    }
    let evidence = match &found.target {
        Some(name) => evidence::of(context, args.store.place(), (name, &args.on.on)),
        None => Vec::new(),
    };
    let advised = advisor.advise(&Question {
        facts: &facts,
        settings: &found.settings,
        evidence: &evidence,
        allowed: &args.allow,
        only: &args.only,
    });
    let named = match (&args.root, &args.target) {
        (Some(_), _) => None,
        // libpq's defaults, or nothing but the host.
        (None, named) => Some(named.as_deref().unwrap_or_default()),
    };
    let target = named.filter(|text| !may_hold_password(text));
    let page = Page {
        name: found.target.clone().unwrap_or_else(|| "this host".into()),
        what: what(&found),
        target,
        is_host_alone: found.target.is_none(),
        options: options_of(&args.on.on),
        advised: &advised,
        verbose: args.verbose,
        all: args.all,
        least: args.severity.into(),
        details: &args.detail,
    };
    if args.json {
        put_page!("{:#}", as_json(&page, found.target.as_deref(), begun)?);
    } else {
        match args.format {
            AdviseFormat::Text => {
                output::put_styled(&text::page(&page, width()), args.no_color);
            }
            AdviseFormat::Md => put_page!("{}", markdown::page(&page)),
        }
    }
    if let Some(file) = &args.experiment {
        for (file, steps) in experiment::write(&page, &found, &context.catalogue, file)? {
            err!(
                "{}: an experiment with {steps} steps; pgdyno run {0} proves them here",
                file.display()
            );
        }
    }
    Ok(match advised.is_severe() {
        true => exit::NOT_HELD,
        false => exit::FINE,
    })
}

/// Advice for a target of stored experiments, by the facts that one of them has kept and by what
/// all have shown. Settings are not stored, so what asks for them is among what could not be
/// judged.
pub(crate) fn of_stored(
    context: &Context,
    store: &Store,
    target: &str,
    facts: &[FactRecord],
) -> Result<Value> {
    let begun = Instant::now();
    let facts: Vec<Fact> = facts.iter().map(fact).collect();
    let evidence = evidence::in_store(store, target)?;
    let advised = Advisor::shipped(&context.catalogue)?.advise(&Question {
        facts: &facts,
        settings: &[],
        evidence: &evidence,
        allowed: &[],
        only: &[],
    });
    let host = host_in(target).map_or_else(String::new, |host| format!("{ON}{host}"));
    let named = target.strip_suffix(&host).unwrap_or(target);
    let sandbox = named.strip_prefix("sandbox ").map(target::of_sandbox_named);
    let page = Page {
        name: target.to_owned(),
        what: String::new(),
        target: sandbox.as_deref(),
        is_host_alone: false,
        options: host.replace(ON, " --host "),
        advised: &advised,
        verbose: false,
        all: true,
        least: Severity::Hint,
        details: &[],
    };
    as_json(&page, Some(target), begun)
}

/// Refuses rules and words of --allow that do not exist.
fn known_words(advisor: &Advisor, args: &AdviseArgs) -> Result<()> {
    for only in &args.only {
        if !advisor.rules().iter().any(|rule| rule.id == *only) {
            return Err(Usage(format!(
                "--only {only}: there is no such rule; docs/reference/advice.md lists them, and so does --verbose"
            ))
            .into());
        }
    }
    let mut words: Vec<&str> = advisor.rules().iter().filter_map(Rule::allowed_by).collect();
    words.sort_unstable();
    words.dedup();
    match args.allow.iter().find(|word| !words.contains(&word.as_str())) {
        Some(word) => Err(Usage(format!("--allow {word}: expected one of {}", words.join(", "))).into()),
        None => Ok(()),
    }
}

/// What a target is, in a line.
fn what(found: &Found) -> String {
    let value = |name: &str| found.facts.iter().find(|fact| fact.name == name)?.value.as_ref();
    let mut parts = Vec::new();
    if let Some(version) = value("server.version").and_then(Value::as_str) {
        parts.push(format!("PostgreSQL {version}"));
    }
    if let Some(cpus) = value("cpu.online_count").and_then(Value::as_u64) {
        parts.push(format!("{cpus} CPUs"));
    }
    if let Some(memory) = value("memory.total_bytes").and_then(Value::as_u64) {
        parts.push(format!("{} of memory", crate::show::bytes(memory)));
    }
    parts.join(", ")
}

fn width() -> usize {
    output::columns().map_or(WIDTH_USUAL, |columns| columns.clamp(WIDTH_MIN, WIDTH_MAX))
}

/// The colour of a severity's word, which only repeats it.
fn colour(severity: Severity) -> Style {
    match severity {
        Severity::Severe => Style::Error,
        Severity::Advice => Style::Warning,
        Severity::Hint => Style::Hint,
    }
}

impl Page<'_> {
    /// What the page shows: of small gains only as many as asked for, and nothing below the least
    /// severity.
    fn shown(&self) -> Vec<&Advice> {
        let all = self.advised.advice.iter();
        all.filter(|advice| advice.severity <= self.least && (self.all || !advice.is_small))
            .collect()
    }

    /// This command again, without its options but for those of its host.
    fn command(&self) -> String {
        let command = match (self.is_host_alone, self.target) {
            (true, None) => "pgdyno advise --root DIR".to_owned(),
            (true, Some(_)) => "pgdyno advise --host-only".to_owned(),
            (false, Some("") | None) => "pgdyno advise ...".to_owned(),
            (false, Some(target)) => format!("pgdyno advise {}", shell_word(target)),
        };
        command + &self.options
    }

    /// Commands that try a piece of advice here, to be copied. What is for safety is not tried: its
    /// steps take their place.
    fn commands(&self, advice: &Advice) -> Vec<String> {
        let (Some(setting), Some(target)) = (&advice.setting, self.target) else {
            return Vec::new();
        };
        if !advice.can_be_applied || advice.how.is_some() || advice.kind == RuleKind::Safety {
            return Vec::new();
        }
        let target = match self.is_host_alone {
            true => "--host-only".to_owned(),
            false => shell_word(target),
        };
        let assignment = shell_word(&format!("{}={}", setting.knob, setting.value));
        let consent = match advice.wants_consent {
            true => format!(" --accept-durability-risk {}", setting.knob),
            false => String::new(),
        };
        let mut commands = vec![format!(
            "pgdyno apply {target} {assignment} --revert-after 10m{consent}{}",
            self.options
        )];
        // Of another host none writes a file.
        if advice.can_be_tried && !self.is_host_alone && self.options.is_empty() {
            let file = format!("{}.toml", advice.rule);
            // Severe advice is no success, and && would stop there.
            let then = match advice.severity {
                Severity::Severe => ";",
                Severity::Advice | Severity::Hint => " &&",
            };
            commands.push(format!(
                "pgdyno advise {target} --only {} --experiment {file}{then} pgdyno run {file}{consent}",
                advice.rule
            ));
        }
        commands
    }

    /// "1 severe, 3 advised, 5 hints; 7 small ones: --all"
    fn counts(&self) -> String {
        let all = self.advised.advice.iter();
        let small = all.filter(|advice| !self.all && advice.is_small).count();
        let of = |severity| {
            let all = self.advised.advice.iter();
            all.filter(|advice| advice.severity == severity && (self.all || !advice.is_small))
                .count()
        };
        let hints = of(Severity::Hint);
        let counts = format!(
            "{} severe, {} advised, {hints} {}",
            of(Severity::Severe),
            of(Severity::Advice),
            if hints == 1 { "hint" } else { "hints" }
        );
        match small {
            0 => counts,
            1 => format!("{counts}; 1 small one (at most 2 %): --all"),
            small => format!("{counts}; {small} small ones (at most 2 % each): --all"),
        }
    }

    /// How many rules said nothing, and why.
    fn rest(&self) -> String {
        let listed = if self.verbose { "" } else { ": --verbose" };
        format!(
            "{} rules found nothing to say; {} not advised, {} not judged{listed}",
            self.advised.silent,
            self.advised.skipped.len(),
            self.advised.not_judged.len(),
        )
    }
}

/// What a piece of advice is called: the setting, else its rule's name in words.
pub(super) fn title(advice: &Advice) -> String {
    match &advice.setting {
        Some(setting) => format!("{} = {}", setting.knob, setting.value),
        None => {
            let words = advice.rule.replace('-', " ");
            let mut letters = words.chars();
            letters
                .next()
                .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

/// A number of a sizing's line as people read it.
fn amount(value: f64, is_bytes: bool) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes are not negative, and far below 2^63"
    )]
    let whole = value.round() as u64;
    if is_bytes {
        crate::show::bytes(whole)
    } else {
        whole.to_string()
    }
}

fn as_json(page: &Page<'_>, target: Option<&str>, begun: Instant) -> Result<Value> {
    let mut document = json!({
        "format": FORMAT,
        "took_ms": u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        "target": target,
        "severe": page.advised.is_severe(),
    });
    let mut advised = serde_json::to_value(page.advised)?;
    if let Some(list) = advised.get_mut("advice").and_then(Value::as_array_mut) {
        for (value, advice) in list.iter_mut().zip(&page.advised.advice) {
            value["commands"] = json!(page.commands(advice));
        }
    }
    if let (Some(document), Value::Object(fields)) = (document.as_object_mut(), advised) {
        document.extend(fields);
    }
    Ok(document)
}

/// A file's content, whole or not at all.
fn write_file(path: &Path, text: &str) -> Result<()> {
    replace_given(path, text.as_bytes(), 0o644)
        .with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests;
