//! An experiment file that would prove the advice on this target.

use super::{Page, title, write_file};
use crate::commands::facts::Found;
use crate::failure::Result;
use crate::failure::Usage;
use pgdyno_advice::Advice;
use pgdyno_engine::Protocol;
use pgdyno_knobs::{Catalogue, Setting};
use pgdyno_lab::why_not_in_turns;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SWITCHBACK: &str = "switchback";
/// A piece of advice that can be tried, and its setting.
type Tried<'a> = (&'a Advice, &'a Setting);

/// Clients for each CPU: enough that commits can share flushes, few enough that they do not merely wait.
const CLIENTS_PER_CPU: u64 = 8;

/// Writes it: the files, and the number of steps of each. What takes effect without a restart can take turns within one load; where
/// something else is advised too, these have a file of their own beside the other's.
pub(super) fn write(
    page: &Page<'_>,
    found: &Found,
    catalogue: &Catalogue,
    path: &Path,
) -> Result<Vec<(PathBuf, usize)>> {
    let tried = page.advised.advice.iter().filter(|advice| advice.can_be_tried);
    let tried: Vec<Tried<'_>> = tried
        .filter_map(|advice| Some((advice, advice.setting.as_ref()?)))
        .collect();
    let takes_turns = |(_, setting): &Tried<'_>| {
        let knob = catalogue.get(&setting.knob);
        knob.is_ok_and(|knob| why_not_in_turns(knob, Protocol::Extended).is_none())
    };
    let (turns, others): (Vec<Tried<'_>>, Vec<Tried<'_>>) = tried.into_iter().partition(takes_turns);
    let mut files = Vec::new();
    for (steps, design, path) in [
        (&others, "one-at-a-time", path.to_owned()),
        (&turns, SWITCHBACK, path_of_turns(path, others.is_empty())),
    ] {
        if !steps.is_empty() {
            write_file(&path, &text(page, found, steps, design))?;
            files.push((path, steps.len()));
        }
    }
    if files.is_empty() {
        return Err(Usage(format!(
            "{}: nothing that is advised here can be tried by an experiment, so none is written\n\
             hint: what is for safety is not tried; --detail all shows its steps",
            path.display()
        ))
        .into());
    }
    Ok(files)
}

/// "advice-turns.toml" beside "advice.toml".
fn path_of_turns(path: &Path, is_alone: bool) -> PathBuf {
    if is_alone {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path
        .extension()
        .map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-turns{}", extension.unwrap_or_default()))
}

fn text(page: &Page<'_>, found: &Found, steps: &[Tried<'_>], design: &str) -> String {
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
    let in_turns = design == SWITCHBACK;
    if in_turns {
        text.push_str("# Every setting takes effect at once: they take turns within one load.\n");
    }
    let _ = writeln!(
        text,
        "design = \"{design}\"\nblocks = {}\n\
         # A setting that is unlikely to gain 2 % is not tried again.\nstop = \"when-gain-decided\"\n",
        if in_turns { 16 } else { 10 }
    );
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
        if in_turns { 12 } else { 30 }
    );
    if in_turns {
        text.push_str(
            "# Prepared statements would keep plans of the setting before.\nprotocol = \"extended\"\n",
        );
    }
    for (number, (advice, setting)) in steps.iter().enumerate() {
        let _ = writeln!(
            text,
            "\n[[step]]\nname = {}\ntitle = {}\nreason = {}\n[step.settings]\n{} = {}",
            // Several pieces of advice of one rule are distinguished.
            quoted(&format!("{}-{}", advice.rule, number + 1)),
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
    text
}

fn comment(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A text as a quoted string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
