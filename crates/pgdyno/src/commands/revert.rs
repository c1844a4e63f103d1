//! The dead man's timer: a process of its own that restores changes at an instant, unless they are
//! confirmed before.

use crate::cli::RevertArgs;
use crate::commands::restore;
use crate::context::{Context, now_unix_ms};
use crate::exit;
use crate::failure::{Failure, InContext as _, Refused, Result};
use pgdyno_host::{Directory, HostAccess};
use pgdyno_knobs::{Content, Keep, RestoreOptions};
use pgdyno_sandbox::{answer, find_program};
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

/// Refuses it where it would end with the login session that starts it.
pub(crate) fn check(host: &dyn HostAccess) -> Result<()> {
    let own = host.read("/proc/self/cgroup").unwrap_or_default();
    let Some(session) = session_of(&own) else {
        return Ok(());
    };
    let of_session = loginctl(&["--property=Name", session]);
    let of_logind = loginctl(&[
        "--property=KillUserProcesses",
        "--property=KillOnlyUsers",
        "--property=KillExcludeUsers",
    ]);
    let user = property(&of_session, "Name");
    if !kills(&of_logind, user) {
        return Ok(());
    }
    let error = Refused(format!(
        "--revert-after: the process that restores would be killed with this login session: logind has KillUserProcesses=yes for {user}"
    ));
    Err(Failure::from(error).with_hint(format!(
        "KillExcludeUsers={user} in /etc/systemd/logind.conf keeps it; or use --until-exit"
    )))
}

/// The login session of a process by its control groups, if it is in one.
fn session_of(groups: &str) -> Option<&str> {
    let mut parts = groups.lines().flat_map(|line| line.split('/'));
    parts.find_map(|part| part.strip_prefix("session-")?.strip_suffix(".scope"))
}

/// What logind says of itself, or of a session; nothing where it cannot be asked.
fn loginctl(words: &[&str]) -> String {
    let mut command = Command::new(find_program("loginctl"));
    command.arg("show-session").args(words);
    let output = answer(command).ok().filter(|output| output.status.success());
    output.map_or_else(String::new, |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

fn property<'t>(text: &'t str, name: &str) -> &'t str {
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    lines
        .find(|(known, _)| *known == name)
        .map_or("", |(_, value)| value)
}

/// Whether logind kills what a user has started once the session is at its end, as logind.conf(5)
/// has it.
fn kills(logind: &str, user: &str) -> bool {
    let names = |list: &str| list.split_whitespace().any(|name| name == user);
    let is_meant = match property(logind, "KillOnlyUsers") {
        "" => !names(property(logind, "KillExcludeUsers")),
        only => names(only),
    };
    property(logind, "KillUserProcesses") == "yes" && is_meant
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_of_a_login_session_is_known_by_its_control_group() {
        for (groups, session) in [
            ("0::/user.slice/user-1000.slice/session-c3.scope\n", Some("c3")),
            (
                "1:name=systemd:/user.slice/user-0.slice/session-7.scope\n0::/\n",
                Some("7"),
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n",
                None,
            ),
            ("0::/system.slice/ssh.service\n", None),
            ("", None),
        ] {
            assert_eq!(session_of(groups), session, "{groups}");
        }
    }

    #[test]
    fn logind_kills_the_processes_of_the_users_that_it_names() {
        let check = |yes: &str, only: &str, but: &str, expected: bool| {
            let logind = format!("KillUserProcesses={yes}\nKillOnlyUsers={only}\nKillExcludeUsers={but}\n");
            assert_eq!(kills(&logind, "ann"), expected, "{logind}");
        };
        check("no", "", "", false);
        check("yes", "", "root", true);
        check("yes", "", "root ann", false);
        check("yes", "bob ann", "ann", true);
        check("yes", "bob", "", false);
        assert!(!kills("", "ann"));
    }
}
