//! `pgdyno watch`: a target, live in the terminal or printed once.

use crate::cli::WatchArgs;
use crate::context::{Context, stop_flag, variable};
use crate::exit;
use crate::failure::{Failure, Result, Usage};
use crate::output;
use crate::ssh_way::run_on;
use crate::target;
use crate::terminal::{self, Held};
use pgdyno_remote::{Answer, Coordinator, Listener, Output, Question, RemoteError, Request, SshWay};
use pgdyno_watch::{Model, Plan, Relay, Source, State, once};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What is read is sent to the host that shows it in such pieces.
const SENT_EVERY: Duration = Duration::from_millis(200);
/// How often is looked whether the connection begins or ends.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the other host has to end in order.
const END_MAX: Duration = Duration::from_secs(5);
/// What is kept of the words of another host, to be shown after the view.
const REMARKS_MAX: usize = 64 << 10;

pub(crate) fn run(context: &Context, args: &WatchArgs) -> Result<u8> {
    let shown_by = context.coordinator().filter(|_| !args.once);
    if !args.once && shown_by.is_none() {
        has_terminal(output::data_is_seen(), variable("TERM").as_deref())?;
    }
    let (conninfo, sandbox) = target::conninfo(context, &args.target)?;
    let name = match &sandbox {
        Some(_) => args.target.clone(),
        None => conninfo.to_string(),
    };
    let source = Source::start(Plan {
        conninfo,
        target: name,
        host: context.host.clone(),
        interval: args.interval,
    })?;
    let stop = stop_flag()?;
    if let Some(coordinator) = shown_by {
        return send(&source, coordinator, &stop);
    }
    let mut model = Model::new(Instant::now());
    if args.once {
        let state = state(args);
        once::look(&source, &mut model, args.interval, &stop);
        match args.json {
            true => put_page!("{:#}", once::as_json(&model, args.interval)),
            false => put_page!("{}", once::text(&model, &state)),
        }
    } else {
        draw(args, &source, &mut model, &stop)?;
    }
    Ok(exit::FINE)
}

fn state(args: &WatchArgs) -> State {
    let colour = !args.no_color && !args.once && variable("NO_COLOR").is_none();
    State::new(args.interval, colour, has_bars(&variable))
}

/// Draws until the user has seen enough.
fn draw(args: &WatchArgs, source: &Source, model: &mut Model, stop: &Arc<AtomicBool>) -> Result<()> {
    let mut screen = Held::take(stop)?;
    pgdyno_watch::run(source, model, &mut state(args), &mut screen, stop)?;
    if terminal::has_panicked() {
        fail!("a thread ended by a fault of the program; its words are above");
    }
    Ok(())
}

/// Sends what is read to the host that shows it, until that has seen enough.
fn send(source: &Source, coordinator: &Coordinator, stop: &AtomicBool) -> Result<u8> {
    while !stop.load(Ordering::Relaxed) {
        let seen = source.to_send(SENT_EVERY)?;
        match coordinator.ask(Question::Seen(seen)) {
            Some(Answer::Look(order)) => source.take_order(&order).map_err(Failure::new)?,
            Some(Answer::Failed(why)) => fail!("{why}"),
            Some(_) => fail!("the host that draws has answered another question than it was asked"),
            None => break,
        }
    }
    Ok(exit::FINE)
}

/// Shows a target of another host, on which it is read. The terminal is ssh's, for a password,
/// until something has come from there.
pub(crate) fn elsewhere(
    context: &Context,
    args: &WatchArgs,
    way: SshWay<'_>,
    request: &Request,
) -> Result<u8> {
    has_terminal(output::data_is_seen(), variable("TERM").as_deref())?;
    let stop = stop_flag()?;
    let (source, relay) = Source::elsewhere(args.interval, way.host.to_string());
    let mut relayed = Relayed {
        relay,
        has_begun: false,
        remarks: Vec::new(),
    };
    let (is_over, ends) = (AtomicBool::new(false), AtomicBool::new(false));
    let (viewed, is_quit, ended) = thread::scope(|scope| {
        let connection = scope.spawn(|| {
            let ended = run_on(context, way, request, &mut relayed, &ends);
            is_over.store(true, Ordering::Release);
            stop.store(true, Ordering::Release);
            ended
        });
        // A fault of the view ends the connection too.
        let viewed = catch_unwind(AssertUnwindSafe(|| {
            let mut model = Model::new(Instant::now());
            while !source.begin(&mut model, LOOK_EVERY) {
                if stop.load(Ordering::Acquire) || connection.is_finished() {
                    return Ok(());
                }
            }
            draw(args, &source, &mut model, &stop)
        }));
        let is_quit = !is_over.load(Ordering::Acquire);
        stop.store(false, Ordering::Relaxed);
        ends.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        while !connection.is_finished() {
            thread::park_timeout(LOOK_EVERY);
            // Asked once more, it ends the connection.
            let is_asked = stop.swap(false, Ordering::Relaxed) || asked.elapsed() > END_MAX;
            ends.fetch_or(is_asked, Ordering::Relaxed);
        }
        (viewed, is_quit, connection.join())
    });
    viewed.unwrap_or_else(|panic| resume_unwind(panic))?;
    let ended = ended.unwrap_or_else(|panic| resume_unwind(panic));
    if is_quit && relayed.has_begun {
        return Ok(exit::FINE);
    }
    for line in String::from_utf8_lossy(&relayed.remarks).lines() {
        err!("{line}");
    }
    match ended {
        // What its text says of changed settings is not a view's.
        Err(RemoteError::Lost { host, why }) => fail!("the connection to {host} was lost: {why}"),
        ended => Ok(ended?),
    }
}

/// What comes from the host on which a target is read.
struct Relayed {
    relay: Relay,
    /// Whether something is drawn.
    has_begun: bool,
    remarks: Vec<u8>,
}

impl Listener for Relayed {
    fn said(&mut self, line: &str) {
        if !self.has_begun {
            err!("{line}");
        }
    }

    fn printed(&mut self, output: Output<'_>) {
        let (Output::Data(bytes) | Output::Remark(bytes)) = output;
        let room = REMARKS_MAX.saturating_sub(self.remarks.len()).min(bytes.len());
        self.remarks.extend_from_slice(&bytes[..room]);
    }

    fn answer(&mut self, question: Question) -> Answer {
        self.has_begun = true;
        match question {
            Question::Seen(seen) => self.relay.take(&seen).map_or_else(Answer::Failed, Answer::Look),
            _ => Answer::Failed("a view keeps no results".to_owned()),
        }
    }
}

/// Whether a screen can be drawn at all.
fn has_terminal(is_terminal: bool, term: Option<&str>) -> Result<(), Usage> {
    let why = match term {
        _ if !is_terminal => "standard output is not a terminal",
        None | Some("dumb") => "this terminal cannot move its cursor (TERM)",
        Some(_) => return Ok(()),
    };
    Err(Usage(format!(
        "{why}; `--once` prints the overview as text, `--once --json` as JSON"
    )))
}

/// Whether the terminal's characters are those of Unicode, by the variables of the locale in their
/// order.
fn has_bars(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(variable)
        .is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_another_way_is_named() {
        assert!(has_terminal(true, Some("xterm")).is_ok());
        for (is_terminal, term) in [(false, Some("xterm")), (true, Some("dumb")), (true, None)] {
            let error = has_terminal(is_terminal, term).unwrap_err();
            assert!(error.to_string().contains("--once"), "{error}");
        }
    }

    #[test]
    fn the_first_variable_of_the_locale_that_is_set_decides() {
        let check = |set: &[(&str, &str)], bars| {
            let variable = |name: &str| {
                let found = set.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(has_bars(&variable), bars, "{set:?}");
        };
        check(&[], false);
        check(&[("LANG", "C.UTF-8")], true);
        check(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")], false);
        check(&[("LC_CTYPE", "de_DE.utf8"), ("LANG", "C")], true);
    }
}
