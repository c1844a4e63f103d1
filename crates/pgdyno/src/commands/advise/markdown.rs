//! Advice as Markdown, for a pull request or a ticket: a table to look over, and what led to each
//! line.

use super::cells::expected;
use super::{Page, amount, title};
use pgdyno_advice::Advice;
use pgdyno_report::{markdown_code, markdown_text as escaped};
use std::fmt::Write;

pub(super) fn page(page: &Page<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## Advice for {}\n", escaped(&page.name));
    if !page.what.is_empty() {
        let _ = writeln!(out, "{}\n", escaped(&page.what));
    }
    let _ = writeln!(out, "**{}**; {}.\n", page.counts(), page.rest());
    let shown = page.shown();
    if shown.is_empty() {
        out.push_str("Nothing is advised.\n\n");
    } else {
        table(&mut out, &shown);
        for advice in shown {
            one(&mut out, page, advice);
        }
    }
    if !page.advised.sizing.is_empty() {
        out.push_str("<details><summary>Sizing</summary>\n\n| what | terms | in all |\n|---|---|---|\n");
        for line in &page.advised.sizing {
            let terms: Vec<String> = line
                .terms
                .iter()
                .map(|term| format!("{}: {}", escaped(&term.text), amount(term.value, line.is_bytes)))
                .collect();
            let note = line.note.as_ref().map(|note| format!(" ({})", escaped(note)));
            let _ = writeln!(
                out,
                "| {} | {} | {}{} |",
                escaped(&line.title),
                terms.join("<br>"),
                amount(line.total, line.is_bytes),
                note.unwrap_or_default()
            );
        }
        out.push_str("\n</details>\n\n");
    }
    list(
        &mut out,
        "Not advised, though a rule would",
        page.advised
            .skipped
            .iter()
            .map(|aside| (aside.recommended.as_str(), aside.because.as_str())),
    );
    if page.verbose {
        list(
            &mut out,
            "Not judged",
            page.advised
                .not_judged
                .iter()
                .map(|rule| (rule.rule.as_str(), rule.because.as_str())),
        );
    }
    out.trim_end().to_owned()
}

fn table(out: &mut String, advice: &[&Advice]) {
    out.push_str("| | what | now | expected | cost | confidence |\n|---|---|---|---|---|---|\n");
    for advice in advice {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            advice.severity.name(),
            heading(advice),
            match (&advice.now_means, advice.now.as_deref()) {
                (Some(means), _) => escaped(means),
                (None, None) => String::new(),
                (None, Some("")) => "empty".to_owned(),
                (None, Some(now)) => markdown_code(now),
            },
            escaped(&expected(advice)),
            advice.cost.map_or("", |cost| cost.name()),
            advice.confidence.name(),
        );
    }
    out.push('\n');
}

/// A setting as code, a finding as text.
fn heading(advice: &Advice) -> String {
    match &advice.setting {
        Some(_) => markdown_code(&title(advice)),
        None => escaped(&title(advice)),
    }
}

fn one(out: &mut String, page: &Page<'_>, advice: &Advice) {
    let _ = writeln!(out, "### {}\n", heading(advice));
    let _ = writeln!(out, "{}\n", escaped(&advice.why));
    if advice.setting.is_none() {
        let _ = writeln!(out, "- do: {}", escaped(&advice.recommended));
    }
    let _ = writeln!(out, "- risk: {}", escaped(&advice.risk));
    let _ = writeln!(out, "- source: {}", escaped(&advice.source));
    if let Some(how) = &advice.how {
        let _ = writeln!(out, "- set by: {}", escaped(how));
    }
    let _ = writeln!(out, "- rule: {}\n", advice.rule);
    for (at, step) in advice.procedure.iter().enumerate() {
        let end = if at + 1 == advice.procedure.len() {
            "\n"
        } else {
            ""
        };
        let step = match step.ends_with(';') {
            true => markdown_code(step),
            false => escaped(step),
        };
        let _ = writeln!(out, "{}. {step}{end}", at + 1);
    }
    let commands = page.commands(advice);
    if !commands.is_empty() || !advice.lines.is_empty() {
        let _ = writeln!(out, "```sh");
        for line in advice
            .lines
            .iter()
            .map(|line| format!("# {}", line.replace(['\n', '\r'], " ")))
            .chain(commands)
        {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "```\n");
    }
}

fn list<'a>(out: &mut String, title: &str, lines: impl Iterator<Item = (&'a str, &'a str)>) {
    let lines: Vec<(&str, &str)> = lines.collect();
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "<details><summary>{title}</summary>\n");
    for (what, why) in lines {
        let _ = writeln!(out, "- {}: {}", escaped(what), escaped(why));
    }
    out.push_str("\n</details>\n\n");
}
