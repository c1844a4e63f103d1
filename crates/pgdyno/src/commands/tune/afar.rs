//! The experiments of a tune of a target on another host: they are run there, and what is found is
//! judged here.

use super::file::Draft;
use super::parsed;
use crate::cli::TuneArgs;
use crate::commands::experiment::{self, Book, LoadHostsOfRun, Sent, WRITTEN, takeover};
use crate::context::Context;
use crate::exit;
use crate::failure::{Failure, InContext as _, Result};
use crate::remote::{self, Kept};
use pgdyno_remote::{Request, RunEnd, SshHost};
use std::io;

/// The target's host, where that is not the one that this process runs on.
pub(super) fn host_of<'a>(context: &Context, args: &'a TuneArgs) -> Option<&'a SshHost> {
    let host = args.at.on.host.as_ref();
    host.filter(|_| context.coordinator().is_none())
}

/// What the target's host drafts.
pub(super) fn draft(context: &Context, args: &TuneArgs, host: &SshHost) -> Result<Draft> {
    let mut arguments = remote::sent_arguments(context, remote::arguments()?, true);
    arguments.retain(|argument| argument != "--json");
    arguments.push("--draft".to_owned());
    let request = remote::request(
        arguments,
        remote::carried(&args.start, args.of_load.script.as_deref())?,
    );
    let on = &args.at.on;
    let load_hosts = LoadHostsOfRun::of_command(context, on, &args.load_from, &args.target);
    let kept = Kept::Nothing(Box::new(load_hosts));
    let (code, shown) = remote::run_shown(context, (on, host), &request, Vec::new(), Some(kept))?;
    match code? {
        exit::FINE => {}
        code => return Err(exit::ended_on(&host.to_string(), code)),
    }
    serde_json::from_slice(&shown.data)
        .with_context(|| format!("{host}: what it prints is not a draft of a tune"))
}

/// Runs an experiment there, whose results are kept here with the commands that repeat it; goes on
/// with the one that was `begun` before.
pub(super) fn run(
    context: &Context,
    args: &TuneArgs,
    host: &SshHost,
    (text, begun, repeat): (&str, Option<i64>, Vec<String>),
) -> Result<RunEnd> {
    let mut arguments = match begun {
        Some(id) => vec!["resume".to_owned(), id.to_string()],
        None => vec!["run".to_owned(), WRITTEN.to_owned()],
    };
    arguments.push(format!("--target={}", args.target));
    arguments.extend(experiment::consent_options(&experiment::consent_of(
        &args.consent,
    )));
    arguments.extend(args.at.on.arguments());
    let sent = Sent::written((&parsed(context, text)?, text), &args.target);
    let book = Book::of_command(context, &args.store, &args.at, (&sent, repeat))?;
    let (book, files) = match begun {
        Some(id) => (book.of_command_resumed(id)?, Vec::new()),
        None => (book, sent.files),
    };
    let request = Request {
        takeover: Some(takeover(context, &args.store, &args.at)?),
        ..remote::request(arguments, files)
    };
    let kept = Some(Kept::of(book));
    let (code, shown) = remote::run_shown(context, (&args.at.on, host), &request, io::sink(), kept)?;
    match shown.kept {
        Some(Kept::Results(book)) => book.into_end(code),
        _ => Err(Failure::new("the results were not kept")),
    }
}
