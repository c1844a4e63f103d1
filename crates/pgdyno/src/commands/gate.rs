//! `pgdyno gate`: is HEAD slower than BASE? Both, and BASE once more, on this host; what is found
//! slower is measured a second time before it fails.

mod file;
mod outcome;
mod sides;

use crate::cli::{CreateArgs, GateArgs};
use crate::commands::drafts::NamedLoad;
use crate::commands::experiment::{self, Begin};
use crate::commands::{restore, sandbox};
use crate::context::{Context, stop_flag};
use crate::failure::{Failure, Result, Usage};
use crate::{exit, sandboxes, show, target};
use outcome::{Found, Outcome};
use pgdyno_host::given_text;
use pgdyno_lab::{Design, ExperimentFile};
use pgdyno_record::ExperimentStatus;
use pgdyno_report::{effect, markdown_text as cell, verdict_word};
use pgdyno_sandbox::DEFAULT_MAJOR;
use pgdyno_store::Store;
use serde_json::json;
use sides::{Kind, Sides};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The private server of a gate.
const NAME: &str = "pgdyno-gate";
/// The name under which one gate of a home at a time has its turn.
const TURN: &str = "pgdyno-gate-turn";

pub(crate) fn run(context: &Context, args: &GateArgs) -> Result<u8> {
    let sides = Sides::read(&args.base, &args.head, &context.catalogue)?;
    let is_build = matches!(sides.base.kind, Kind::Build(_));
    if is_build && (args.pg_bin.is_some() || args.version.is_some()) {
        let message = "builds bring their own programs: neither --pg-bin nor --version goes with them";
        return Err(Usage(message.to_owned()).into());
    }
    let load = NamedLoad::of(&args.of_load, &given_text)?;
    experiment::check_report(context, args.report.as_deref())?;
    let mut store = context.store(args.store.store.place())?;
    // What is wrong in the text shows before a server is made.
    let named = named_target(args);
    let text = |has_again| file::text(args, &sides, &load, (&named, &context.catalogue), has_again);
    parsed(context, &text(true)?)?;
    let stop = stop_flag()?;
    restore::before(context, None)?;
    let gated = match &args.target {
        Some(_) => gated(context, args, &mut store, &text, &stop),
        None => {
            // Another gate of this home has servers of the same names.
            let _turn = sandboxes::lock_sandbox(context, TURN, "gate")?;
            let gated =
                made(context, args, &sides).and_then(|()| gated(context, args, &mut store, &text, &stop));
            match (gated, removed(context)) {
                (Ok(_), Err(error)) => Err(error),
                (gated, _) => gated,
            }
        }
    }?;
    print(args, &sides, &gated)?;
    // The verdict is said first.
    gated.reported?;
    Ok(match gated.outcome {
        Outcome::Passed => exit::FINE,
        Outcome::Failed(_) => exit::NOT_HELD,
        Outcome::Undecided(_) if args.allow_undecided => exit::FINE,
        Outcome::Undecided(_) => exit::UNDECIDED,
    })
}

fn named_target(args: &GateArgs) -> String {
    let named = args.target.clone();
    named.unwrap_or_else(|| target::of_sandbox_named(NAME))
}

/// A private server for the gate; those that a killed gate has left go first.
fn made(context: &Context, args: &GateArgs, sides: &Sides) -> Result<()> {
    removed(context)?;
    let bin = match &sides.base.kind {
        Kind::Build(bin) => Some(bin.clone()),
        Kind::Settings(_) | Kind::Schema(_) => args.pg_bin.clone(),
    };
    let made = sandboxes::create(
        context,
        &CreateArgs {
            pg_bin: bin,
            cpus: args.cpus,
            memory: args.memory,
            ..CreateArgs::plain(NAME, args.version.unwrap_or(DEFAULT_MAJOR))
        },
    )?;
    err!("a private PostgreSQL {} runs", made.record().version);
    Ok(())
}

/// Removes the private server, and those that experiments have made like it.
fn removed(context: &Context) -> Result<()> {
    let own = std::iter::once(NAME.to_owned()).chain(sandboxes::made_like(context, NAME));
    let mut there = own.filter(|name| context.sandboxes().join(name).exists());
    there.try_for_each(|name| sandbox::destroy(context, &name))
}

/// What the experiments of a gate have found.
struct Gated {
    outcome: Outcome,
    /// The first experiment, and the one that was to confirm it.
    found: Vec<Found>,
    /// Whether the report of the first is written.
    reported: Result<()>,
}

fn gated(
    context: &Context,
    args: &GateArgs,
    store: &mut Store,
    text: &dyn Fn(bool) -> Result<String>,
    stop: &AtomicBool,
) -> Result<Gated> {
    let mut found = vec![measured(context, args, store, &text(true)?)?];
    // Now, because the second experiment may not come to its end.
    let reported = reported(context, args, store, found[0].id);
    let mut outcome = found[0].outcome();
    if matches!(outcome, Outcome::Failed(_)) && !found[0].has_no_head() {
        if stop.load(Ordering::Relaxed) {
            fail!("stopped before a second experiment could confirm that HEAD is slower");
        }
        err!("HEAD is slower; a second experiment is to confirm it");
        let second = measured(context, args, store, &text(false)?)?;
        outcome = outcome.confirmed_by(&second);
        found.push(second);
    }
    Ok(Gated {
        outcome,
        found,
        reported,
    })
}

fn reported(context: &Context, args: &GateArgs, store: &Store, id: i64) -> Result<()> {
    let Some(path) = &args.report else {
        return Ok(());
    };
    let report = super::report::build(context, store, id)?;
    super::report::write_html(store, &report, path)
}

fn parsed(context: &Context, text: &str) -> Result<ExperimentFile> {
    let file = ExperimentFile::parse(text, Path::new("the gate's experiment"), &context.catalogue)?;
    Ok(file)
}

/// Runs an experiment of the gate to its end.
fn measured(context: &Context, args: &GateArgs, store: &mut Store, text: &str) -> Result<Found> {
    let file = parsed(context, text)?;
    let consent = experiment::consent_of(&args.consent);
    let named = named_target(args);
    let held = target::of_experiment(context, &file, Some(&named), consent.restart, "gate")?;
    let begin = Begin {
        file,
        text,
        held,
        repeat: vec!["pgdyno gate BASE HEAD".to_owned()],
        given: &[],
        command: "gate",
    };
    let summary = experiment::start(context, store, &consent, begin)?;
    restore::check(&summary.restored)?;
    restore::check_objects(&summary.restored)?;
    if summary.status != ExperimentStatus::Finished {
        fail!("stopped; experiment {} has what was finished", summary.id);
    }
    let stored = store.experiment(summary.id)?;
    let slice_ms =
        (stored.record.design == Design::Switchback.name()).then_some(args.slice.as_secs_f64() * 1e3);
    Found::of(&stored, args.limit, slice_ms).map_err(Failure::new)
}

/// One comparison of an experiment, for people.
fn line(found: &Found, side: &outcome::Side, against: &str) -> String {
    let shown = side.effect.as_ref().map_or_else(
        || "no interval".to_owned(),
        |found_effect| {
            format!(
                "{} {}, {} blocks: {}",
                found.metric,
                effect(found_effect),
                found_effect.blocks,
                verdict_word(found_effect.verdict, found.limit)
            )
        },
    );
    let failed = match side.failed {
        0 => String::new(),
        1 => ", 1 trial failed".to_owned(),
        failed => format!(", {failed} trials failed"),
    };
    format!("{} against {against}: {shown}{failed}", side.label)
}

fn print(args: &GateArgs, sides: &Sides, gated: &Gated) -> Result<()> {
    let lines: Vec<String> = gated
        .found
        .iter()
        .flat_map(|found| {
            let head = line(found, &found.head, "BASE");
            let again = found.again.as_ref().map(|again| line(found, again, "itself"));
            let number = found.id;
            [Some(head), again]
                .into_iter()
                .flatten()
                .map(move |line| format!("{line} (experiment {number})"))
        })
        .collect();
    let (word, why) = (gated.outcome.word(), gated.outcome.why());
    if args.store.json {
        let experiments: Vec<_> = gated.found.iter().map(Found::document).collect();
        let document = json!({
            "format": "pgdyno-gate/1",
            "base": sides.base.shown, "head": sides.head.shown,
            "outcome": word, "why": why, "experiments": experiments,
        });
        put_page!("{}", serde_json::to_string_pretty(&document)?);
    } else if args.md {
        let shown = [&sides.head.shown, &sides.base.shown, &why].map(|text| cell(text));
        put_page!("**{word}**: {} against {}: {}\n", shown[0], shown[1], shown[2]);
        for line in &lines {
            put!("- {}", cell(line));
        }
    } else {
        put!("BASE: {}", sides.base.shown);
        put!("HEAD: {}", sides.head.shown);
        for line in &lines {
            put_page!("{}", show::wrapped("", line, 110).trim_end());
        }
        put_page!(
            "{}",
            show::wrapped("", &format!("gate {word}: {why}"), 110).trim_end()
        );
    }
    Ok(())
}
