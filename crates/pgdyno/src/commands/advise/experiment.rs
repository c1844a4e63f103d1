//! An experiment file that would prove the advice on this target.

use super::{Page, title, write_file};
use crate::commands::drafts::{clients, comment, step, target_part};
use crate::commands::facts::Found;
use crate::failure::{Failure, Result, Usage};
use pgdyno_advice::Advice;
use pgdyno_engine::Protocol;
use pgdyno_knobs::{Catalogue, Setting};
use pgdyno_lab::why_not_in_turns;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SWITCHBACK: &str = "switchback";
/// A piece of advice that can be tried, and its setting.
type Tried<'a> = (&'a Advice, &'a Setting);

/// Writes it: the files, and the number of steps of each. What takes effect without a restart can
/// take turns within one load; where something else is advised too, these have a file of their own
/// beside the other's.
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
        let knob = catalogue.find(&setting.knob);
        knob.is_some_and(|knob| why_not_in_turns(knob, Protocol::Extended).is_none())
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
        let error = Failure::from(Usage(format!(
            "{}: nothing that is advised here can be tried by an experiment, so none is written",
            path.display()
        )));
        return Err(error.with_hint("what is for safety is not tried; --detail all shows its steps"));
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
    let in_turns = design == SWITCHBACK;
    let mut text = format!(
        "# What pgdyno advises for {}: each setting alone, compared with the present state.\n\
         # The load is a stand-in: put your own in its place where you have one.\n\n\
         name = \"advice\"\nquestion = \"What is the effect of each advised setting here?\"\n",
        comment(&page.name)
    );
    if in_turns {
        text.push_str("# Every setting takes effect at once: they take turns within one load.\n");
    }
    let _ = writeln!(
        text,
        "design = \"{design}\"\nblocks = {}\n\
         # A setting that is unlikely to gain 2 % is not tried again.\nstop = \"when-gain-decided\"\n\n{}",
        if in_turns { 16 } else { 10 },
        target_part(page.target)
    );
    if page.target.is_none_or(|target| !target.starts_with("sandbox:")) {
        text.push_str(
            "# Data that the server lacks is made with pgdyno run --allow-data only, and dropped at the end; --dry-run lists it.\n",
        );
    }
    let _ = writeln!(
        text,
        "[data]\nscale = 50\n\n[load]\nworkload = \"tpcb\"\nclients = {}\nwarmup_s = 10\nmeasure_s = {}",
        clients(&found.facts),
        if in_turns { 12 } else { 30 }
    );
    if in_turns {
        text.push_str(
            "# Prepared statements would keep plans of the setting before.\nprotocol = \"extended\"\n",
        );
    }
    let steps = steps.iter().enumerate();
    text.extend(steps.filter_map(|(number, (advice, _))| step(advice, &title(advice), number + 1)));
    text
}
