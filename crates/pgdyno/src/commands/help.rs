//! `pgdyno help`: the options of a command, or what a term or a rule of several commands means.

mod topics;

use crate::cli::{Cli, HelpArgs};
use crate::exit::FINE;
use crate::failure::{Result, Usage};
use crate::output;
use clap::{CommandFactory, Parser};
use pgdyno_knobs::nearest_name;
use topics::TOPICS;

pub(super) fn run(args: &HelpArgs) -> Result<u8> {
    if let [name] = args.names.as_slice()
        && let Some((_, text)) = TOPICS.iter().find(|(topic, _)| topic == name)
    {
        put_page!("{text}");
        return Ok(FINE);
    }
    found(&Cli::command(), &args.names)?;
    let words = ["pgdyno"]
        .into_iter()
        .chain(args.names.iter().map(String::as_str));
    if let Err(help) = Cli::try_parse_from(words.chain(["--help"])) {
        output::command_line(&help);
    }
    Ok(FINE)
}

/// The command of these names, each below the one before it.
pub(super) fn found<'c>(program: &'c clap::Command, names: &[String]) -> Result<&'c clap::Command> {
    let mut command = program;
    for name in names {
        command = command
            .find_subcommand(name)
            .filter(|below| !below.is_hide_set())
            .ok_or_else(|| unknown(command, name))?;
    }
    Ok(command)
}

fn unknown(above: &clap::Command, name: &str) -> Usage {
    let commands = above
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .map(clap::Command::get_name);
    let is_program = above.get_name() == "pgdyno";
    let topics = TOPICS.iter().map(|(topic, _)| *topic).filter(|_| is_program);
    let near = nearest_name(name, commands.chain(topics));
    let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    let what = match is_program {
        true => "command or topic".to_owned(),
        false => format!("subcommand of \"{}\"", above.get_name()),
    };
    Usage(format!("no {what} is named \"{name}\"{near}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_no_name_of_a_command_and_is_named_in_the_help() {
        let program = Cli::command();
        let help = program.clone().render_long_help().to_string();
        for (topic, text) in TOPICS {
            assert!(program.find_subcommand(topic).is_none(), "{topic}");
            assert!(help.contains(topic), "{topic} is not in the help");
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{topic}: {line}");
            }
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        let check = |names: &[&str], wanted: &str| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let error = run(&HelpArgs { names }).unwrap_err().to_string();
            assert_eq!(error, wanted);
        };
        check(
            &["exit-code"],
            "no command or topic is named \"exit-code\"; did you mean \"exit-codes\"?",
        );
        check(
            &["comparee"],
            "no command or topic is named \"comparee\"; did you mean \"compare\"?",
        );
        check(
            &["data", "creat"],
            "no subcommand of \"data\" is named \"creat\"; did you mean \"create\"?",
        );
        check(&["revert-later"], "no command or topic is named \"revert-later\"");
    }
}
