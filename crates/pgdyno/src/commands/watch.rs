//! `pgdyno watch`: a target, live in the terminal or printed once.

use crate::cli::WatchArgs;
use crate::context::{Context, stop_flag, variable};
use crate::exit;
use crate::failure::{Result, Usage};
use crate::output;
use crate::target;
use crate::terminal::{self, Held};
use pgdyno_watch::{Model, Plan, Source, State, once};
use std::time::Instant;

pub(crate) fn run(context: &Context, args: &WatchArgs) -> Result<u8> {
    if !args.once {
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
    let colour = !args.no_color && !args.once && variable("NO_COLOR").is_none();
    let mut state = State::new(args.interval, colour, has_bars(&variable));
    let mut model = Model::new(Instant::now());
    if args.once {
        once::look(&source, &mut model, args.interval, &stop);
        match args.json {
            true => put_page!("{:#}", once::as_json(&model, args.interval)),
            false => put_page!("{}", once::text(&model, &state)),
        }
    } else {
        let mut screen = Held::take(&stop)?;
        pgdyno_watch::run(&source, &mut model, &mut state, &mut screen, &stop)?;
        if terminal::has_panicked() {
            fail!("a thread ended by a fault of the program; its words are above");
        }
    }
    Ok(exit::FINE)
}

/// Whether a screen can be drawn at all.
fn has_terminal(is_terminal: bool, term: Option<&str>) -> Result<(), Usage> {
    let why = match term {
        _ if !is_terminal => "standard output is no terminal",
        None | Some("dumb") => "this terminal cannot move its cursor (TERM)",
        Some(_) => return Ok(()),
    };
    Err(Usage(format!(
        "{why}, so there is nowhere to draw; --once prints one look as text, with --json for programs"
    )))
}

/// Whether the terminal's characters are those of Unicode, by the variables of the locale in their order.
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
