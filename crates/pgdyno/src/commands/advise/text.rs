//! Advice as a page for the terminal. Commands are never broken: they are there to be copied.

use super::{Page, amount, title};
use pgdyno_knobs::{Advice, Severity, SizingLine};
use std::fmt::Write;

/// Where the text beside a word begins.
const INDENT: usize = 12;

pub(super) fn page(page: &Page<'_>, width: usize) -> String {
    let mut out = String::new();
    let heading = match page.what.is_empty() {
        true => page.name.clone(),
        false => format!("{}: {}", page.name, page.what),
    };
    wrapped(&mut out, "", 2, &heading, width);
    wrapped(
        &mut out,
        "",
        2,
        &format!("{}; {}", page.counts(), page.rest()),
        width,
    );
    for severity in Severity::ALL {
        let of: Vec<&Advice> = page
            .advised
            .advice
            .iter()
            .filter(|advice| advice.severity == severity)
            .collect();
        if of.is_empty() {
            continue;
        }
        let word = match severity {
            Severity::Severe => "SEVERE",
            Severity::Advice => "ADVICE",
            Severity::Hint => "HINTS",
        };
        let _ = writeln!(out, "\n{word}");
        for advice in of {
            one(&mut out, page, advice, width);
        }
    }
    if page.advised.advice.is_empty() {
        out.push_str("\nNothing is advised.\n");
    }
    sizing(&mut out, &page.advised.sizing, width);
    if !page.advised.set_aside.is_empty() {
        out.push_str("\nNOT ADVISED, THOUGH A RULE WOULD\n");
        for aside in &page.advised.set_aside {
            wrapped(
                &mut out,
                "  ",
                4,
                &format!("{}: {}", aside.recommended, aside.because),
                width,
            );
        }
    }
    if page.verbose && !page.advised.not_judged.is_empty() {
        out.push_str("\nNOT JUDGED\n");
        for rule in &page.advised.not_judged {
            wrapped(
                &mut out,
                "  ",
                4,
                &format!("{}: {}", rule.rule, rule.because),
                width,
            );
        }
    }
    out.trim_end().to_owned()
}

fn one(out: &mut String, page: &Page<'_>, advice: &Advice, width: usize) {
    let now = advice.now.as_deref().map(|now| match now {
        "" => "   (now empty)".to_owned(),
        now => format!("   (now {now})"),
    });
    out.push('\n');
    wrapped(
        out,
        "",
        2,
        &format!("{}{}", title(advice), now.unwrap_or_default()),
        width,
    );
    let mut line = |word: &str, text: &str| {
        if !text.is_empty() {
            wrapped(
                out,
                &format!("  {word:<width$}", width = INDENT - 2),
                INDENT,
                text,
                width,
            );
        }
    };
    if advice.setting.is_none() {
        line("do", &advice.recommended);
    }
    line("why", &advice.why);
    line("expected", &expected(advice));
    line("risk", &advice.risk);
    let cost = advice.cost.map(|cost| format!("{}; ", cost.name()));
    line(
        "cost",
        &format!(
            "{}confidence {}; rule {}",
            cost.unwrap_or_default(),
            advice.confidence.name(),
            advice.rule
        ),
    );
    line("source", &advice.source);
    if let Some(how) = &advice.how {
        line("set by", how);
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

/// What trials here have shown, else what others found.
pub(super) fn expected(advice: &Advice) -> String {
    match &advice.measured {
        Some(measured) if measured.verdict == pgdyno_knobs::Shown::Better => {
            format!("measured here: {}", measured.words())
        }
        Some(measured) => format!("{} (undecided here: {})", advice.effect.words(), measured.words()),
        None => advice.effect.words(),
    }
}

fn sizing(out: &mut String, lines: &[SizingLine], width: usize) {
    if lines.is_empty() {
        return;
    }
    out.push_str("\nSIZING\n");
    for line in lines {
        let note = line
            .note
            .as_ref()
            .map(|note| format!(" ({note})"))
            .unwrap_or_default();
        out.push('\n');
        let total = amount(line.total, line.is_bytes);
        wrapped(out, "  ", 4, &format!("{}: {total}{note}", line.title), width);
        let amounts: Vec<String> = line
            .terms
            .iter()
            .map(|term| amount(term.value, line.is_bytes))
            .collect();
        let column = amounts.iter().map(String::len).max().unwrap_or(0);
        for (term, amount) in line.terms.iter().zip(&amounts) {
            let head = format!("    {amount:>column$}  ");
            let indent = head.len();
            wrapped(out, &head, indent, &term.words, width);
        }
    }
}

/// Words after `head`, further lines indented.
fn wrapped(out: &mut String, head: &str, indent: usize, text: &str, width: usize) {
    let mut line = head.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}
