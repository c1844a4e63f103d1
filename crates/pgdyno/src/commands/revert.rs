//! The dead man's timer: a process of its own that restores changes at an instant, unless they are
//! confirmed before.

use crate::cli::RevertArgs;
use crate::commands::restore;
use crate::context::{Context, now_unix_ms};
use crate::exit;
use crate::failure::{InContext as _, Result};
use pgdyno_host::Directory;
use pgdyno_knobs::{Content, Keep, RestoreOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// A server that is down or out of reach just then may be back soon.
const TRIED_EVERY: Duration = Duration::from_secs(30);
const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// Where it prints its result.
const LOG: &str = "revert.log";

/// Starts it, apart from this process and its terminal. A password goes by the environment, which
/// only this user can read.
pub(crate) fn spawn(journal: &Path, until_unix_ms: u64, password: Option<&[u8]>) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let program = std::env::current_exe().context("this program's own file")?;
    let log = journal.with_file_name(LOG);
    let log = Directory::above(&log)
        .and_then(|(above, name)| match above.create(&name, 0o600) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => above.append(&name),
            other => other,
        })
        .with_context(|| log.display().to_string())?;
    let mut command = Command::new(program);
    command
        .args(["revert-later", "--at"])
        .arg(until_unix_ms.to_string())
        .arg(journal)
        .stdin(Stdio::null())
        .stdout(Stdio::from(log.try_clone()?))
        .stderr(Stdio::from(log))
        .process_group(0);
    if let Some(password) = password {
        command.env("PGPASSWORD", std::ffi::OsStr::from_bytes(password));
    }
    command.spawn().context("starting the process that restores it")?;
    Ok(())
}

/// What that process does.
pub(crate) fn run(context: &Context, args: &RevertArgs) -> Result<u8> {
    // Restored or confirmed meanwhile. What cannot be read now may be later.
    let is_over = || {
        let found = context.journals().look(&args.journal);
        found.is_ok_and(|found| !found.is_some_and(|(content, _)| is_pending(&content)))
    };
    while now_unix_ms() < args.at {
        if is_over() {
            return Ok(exit::FINE);
        }
        pgdyno_server::pause(LOOK_AGAIN);
    }
    let give_up = Instant::now() + TRIED_FOR;
    let (mut shown, mut last) = (String::new(), String::new());
    while !is_over() {
        match restored(context, args, &mut shown) {
            Ok(true) => break,
            // An experiment runs: this waits for its end.
            Ok(false) => pgdyno_server::pause(LOOK_AGAIN),
            Err(error) if Instant::now() >= give_up => return Err(error),
            Err(error) => {
                let text = error.to_string();
                if text != last {
                    err!("{text}; tried again every {} s", TRIED_EVERY.as_secs());
                    last = text;
                }
                pgdyno_server::pause(TRIED_EVERY);
            }
        }
    }
    Ok(exit::FINE)
}

/// Whether a journal's changes are neither restored nor confirmed yet.
fn is_pending(content: &Content) -> bool {
    matches!(content.kept(), Some(Keep::UnlessConfirmed { .. }))
}

/// Restores what is due, and shows it unless it is what was shown last; `false` where another
/// process holds it.
fn restored(context: &Context, args: &RevertArgs, shown: &mut String) -> Result<bool> {
    let is_due = |path: &Path, content: &Content| path == args.journal && is_pending(content);
    let mut left = restore::left_behind(context, RestoreOptions::default(), None, is_due)?;
    restore::check_unreadable(&mut left)?;
    if !left.held.is_empty() {
        return Ok(false);
    }
    let page = crate::show::restored(&left.lines);
    if page != *shown {
        err!("{}: its time was over", args.journal.display());
        err_page!("{page}");
        *shown = page;
    }
    restore::check(&left.lines)?;
    restore::check_covered(&left)?;
    Ok(true)
}
