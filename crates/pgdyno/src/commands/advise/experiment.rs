//! An experiment file that would prove the advice on this target.

use super::{Page, title, write_file};
use crate::commands::facts::Found;
use crate::failure::Result;
use crate::failure::Usage;
use pgdyno_engine::Protocol;
use pgdyno_knobs::{Catalogue, Knob};
use pgdyno_lab::why_not_in_turns;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// Clients for each CPU: enough that commits can share flushes, few enough that they do not merely wait.
const CLIENTS_PER_CPU: u64 = 8;

/// Writes it; the result is the number of its steps.
pub(super) fn write(page: &Page<'_>, found: &Found, catalogue: &Catalogue, path: &Path) -> Result<usize> {
    let (text, steps) = text(page, found, catalogue);
    if steps == 0 {
        return Err(Usage(format!(
            "{}: nothing that is advised here can be tried by an experiment, so none is written\n\
             hint: what is for safety is not tried; --detail all shows its steps",
            path.display()
        ))
        .into());
    }
    write_file(path, &text)?;
    Ok(steps)
}

fn text(page: &Page<'_>, found: &Found, catalogue: &Catalogue) -> (String, usize) {
    let number = |name: &str| {
        let fact = found.facts.iter().find(|fact| fact.name == name)?;
        fact.value.as_ref().and_then(Value::as_u64)
    };
    let cpus = number("cpu.online_count").unwrap_or(2);
    let most = number("connections.max").unwrap_or(100);
    let clients = (cpus * CLIENTS_PER_CPU).clamp(8, 256).min((most / 2).max(1));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# What pgdyno advises for {}: each setting alone, compared with the present state.\n\
         # The load is a stand-in: put your own in its place where you have one.\n",
        comment(&page.name)
    );
    let _ = writeln!(text, "name = \"advice\"");
    let _ = writeln!(
        text,
        "question = \"What is the effect of each advised setting here?\""
    );
    let in_turns = protocol_for_turns(page, catalogue);
    match in_turns {
        Some(_) => text.push_str("# Every setting takes effect at once: they take turns within one load.\ndesign = \"switchback\"\nblocks = 8\n\n"),
        None => text.push_str("design = \"one-at-a-time\"\nblocks = 5\n\n"),
    }
    match page.target.filter(|target| !target.is_empty()) {
        Some(target) => match target.strip_prefix("sandbox:") {
            Some(name) => {
                let _ = writeln!(text, "[target]\nsandbox = {}\n", quoted(name));
            }
            None => {
                let _ = writeln!(text, "[target]\nconnection = {}\n", quoted(target));
            }
        },
        // The connection string holds a password, or is libpq's defaults.
        None => text.push_str("# Name the server with pgdyno run --target.\n\n"),
    }
    if page.target.is_none_or(|target| !target.starts_with("sandbox:")) {
        text.push_str(
            "# Data that the server lacks is made with pgdyno run --allow-data only, and dropped at the end; --dry-run lists it.\n",
        );
    }
    let _ = writeln!(
        text,
        "[data]\nscale = 50\n\n[load]\nworkload = \"tpcb\"\nclients = {clients}\nwarmup_s = 10\nmeasure_s = {}",
        if in_turns.is_some() { 12 } else { 30 }
    );
    if in_turns == Some(Protocol::Extended) {
        text.push_str(
            "# Prepared statements would keep plans of the setting before.\nprotocol = \"extended\"\n",
        );
    }
    let mut steps = 0;
    for advice in page.advised.advice.iter().filter(|advice| advice.can_be_tried) {
        let Some(setting) = &advice.setting else { continue };
        steps += 1;
        let _ = writeln!(
            text,
            "\n[[step]]\nname = {}\ntitle = {}\nreason = {}\n[step.settings]\n{} = {}",
            // Several pieces of advice of one rule are distinguished.
            quoted(&format!("{}-{steps}", advice.rule)),
            quoted(&title(advice)),
            quoted(&advice.why),
            quoted(&setting.knob),
            quoted(&setting.value)
        );
        if advice.wants_consent {
            let _ = writeln!(
                text,
                "# Trades durability: pgdyno run needs --accept-durability-risk {}",
                setting.knob
            );
        }
    }
    (text, steps)
}

/// How statements are sent so that all advised settings can take turns within one load; `None` where one of them cannot.
fn protocol_for_turns(page: &Page<'_>, catalogue: &Catalogue) -> Option<Protocol> {
    let tried = page.advised.advice.iter().filter(|advice| advice.can_be_tried);
    let settings = tried.filter_map(|advice| advice.setting.as_ref());
    let knobs = settings.map(|setting| catalogue.get(&setting.knob).ok());
    let knobs: Vec<&Knob> = knobs.collect::<Option<_>>()?;
    let can = |protocol: &Protocol| {
        knobs
            .iter()
            .all(|knob| why_not_in_turns(knob, *protocol).is_none())
    };
    [Protocol::Prepared, Protocol::Extended].into_iter().find(can)
}

fn comment(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A text as a quoted string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
