//! All about single pieces of advice. Commands are never broken: they are there to be copied.

use super::cells::{expected, now_cell, what};
use super::{Page, colour, title};
use crate::failure::{Failure, Result, Usage};
use crate::output::Styled;
use crate::show::wrapped_at;
use pgdyno_advice::{Advice, Advisor};
use std::fmt::Write;

/// Where the text beside a word begins.
const INDENT: usize = 12;
/// The word that means each of them.
const ALL: &str = "all";

/// Names that nobody can mean are mistakes: neither a rule, nor a setting that rules are about.
pub(super) fn check(advisor: &Advisor, names: &[String]) -> Result<()> {
    let is_known = |name: &str| {
        let knob = pgdyno_knobs::split(name).0;
        let is_meant = |about: &str| pgdyno_knobs::split(about).0 == knob;
        let mut rules = advisor.rules().iter();
        name == ALL || rules.any(|rule| rule.id == name || rule.knob().is_some_and(is_meant))
    };
    match names.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let error = Failure::from(Usage(format!(
                "--detail {name}: there is no such rule or advised setting; expected a name of the column \"what\", or all"
            )));
            Err(error.with_hint("pgdyno advise --all lists those that speak here"))
        }
        None => Ok(()),
    }
}

fn is_meant(advice: &Advice, name: &str) -> bool {
    let instance_free = |knob: &str| pgdyno_knobs::split(knob).0.to_owned();
    name == ALL || name == advice.rule || name == what(advice) || instance_free(&what(advice)) == name
}

pub(super) fn all(out: &mut Styled, page: &Page<'_>, width: usize) {
    for name in page.details {
        let meant: Vec<&Advice> = match name.as_str() {
            ALL => page.shown(),
            name => {
                let all = page.advised.advice.iter();
                all.filter(|advice| is_meant(advice, name)).collect()
            }
        };
        if meant.is_empty() {
            out.push_str("\n");
            *out += &wrapped_at("", &silence(page, name), 2, width);
        }
        for advice in meant {
            one(out, page, advice, width);
        }
    }
}

/// Why nothing is said under a name.
fn silence(page: &Page<'_>, name: &str) -> String {
    let aside = page.advised.skipped.iter().find(|aside| aside.rule == name);
    let not_judged = page.advised.not_judged.iter().find(|rule| rule.rule == name);
    match (aside, not_judged) {
        (Some(aside), _) => format!("{name}: not advised: {}", aside.because),
        (_, Some(rule)) => format!("{name}: not judged: {}", rule.because),
        _ if name == ALL => "Nothing is advised.".to_owned(),
        _ => format!("{name}: nothing to say here."),
    }
}

fn one(out: &mut Styled, page: &Page<'_>, advice: &Advice, width: usize) {
    out.push_str("\n");
    let now = match (&advice.setting, &advice.now) {
        (Some(_), _) | (None, Some(_)) => format!(" (now {})", now_cell(advice)),
        (None, None) => String::new(),
    };
    let means = advice.recommended_means.as_ref();
    let means = means.map_or_else(String::new, |means| format!(", {means}"));
    let summary = format!("{}: {}{means}{now}", advice.severity.name(), title(advice));
    let heading = wrapped_at("", &summary, 2, width);
    let word = advice.severity.name();
    out.push_styled(colour(advice.severity), word);
    *out += heading.strip_prefix(word).unwrap_or(&heading);
    let mut line = |word: &str, text: &str| {
        if !text.is_empty() {
            let head = format!("  {word:<width$}", width = INDENT - 2);
            *out += &wrapped_at(&head, text, INDENT, width);
        }
    };
    if advice.setting.is_none() {
        line("do", &advice.recommended);
    }
    line("why", &advice.why);
    line("expected", &expected(advice));
    line("risk", &advice.risk);
    let cost = advice.cost.map(|cost| format!("{}; ", cost.name()));
    let confidence = advice.confidence.name();
    line(
        "cost",
        &format!(
            "{}confidence {confidence}; rule {}",
            cost.unwrap_or_default(),
            advice.rule
        ),
    );
    line("source", &advice.source);
    if let Some(how) = &advice.how {
        line("set by", how);
    }
    for (at, step) in advice.procedure.iter().enumerate() {
        let word = if at == 0 { "steps" } else { "" };
        let number = format!("{}. ", at + 1);
        let head = format!("  {word:<width$}{number}", width = INDENT - 2);
        match is_command(step) {
            true => {
                let _ = writeln!(out, "{head}{step}");
            }
            false => *out += &wrapped_at(&head, step, INDENT + number.len(), width),
        }
    }
    for (at, text) in advice.lines.iter().enumerate() {
        let word = if at == 0 { "write" } else { "" };
        let _ = writeln!(out, "  {word:<width$}{text}", width = INDENT - 2);
    }
    for (at, command) in page.commands(advice).iter().enumerate() {
        let word = if at == 0 { "try" } else { "" };
        let _ = writeln!(out, "  {word:<width$}{command}", width = INDENT - 2);
    }
}

/// SQL as a whole step.
fn is_command(step: &str) -> bool {
    step.ends_with(';')
}
