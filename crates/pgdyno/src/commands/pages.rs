//! `pgdyno completions` and `pgdyno man`: what a package installs beside the program, made from its
//! command line.

use crate::cli::{Cli, CompletionsArgs, HelpArgs};
use crate::commands::help;
use crate::exit::FINE;
use crate::failure::Result;
use crate::output;
use clap::CommandFactory;
use std::io::Write;

pub(super) fn completions(args: &CompletionsArgs) -> Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pgdyno", &mut text);
    output::data().write_all(&text)?;
    Ok(FINE)
}

/// A page of a command in roff; its name has those of the commands above it:
/// pgdyno-sandbox-create(1).
pub(super) fn man(args: &HelpArgs) -> Result<u8> {
    let mut program = Cli::command();
    program.build();
    let command = help::found(&program, &args.names)?.clone();
    let name = [&["pgdyno".to_owned()], args.names.as_slice()].concat().join("-");
    let mut text = Vec::new();
    clap_mangen::Man::new(command.display_name(name))
        .source(concat!("pgdyno ", env!("CARGO_PKG_VERSION")))
        .manual("pgdyno")
        .render(&mut text)?;
    output::data().write_all(&text)?;
    Ok(FINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each command that is shown, and of those below it.
    #[test]
    fn every_command_has_a_page_and_is_completed() {
        let mut program = Cli::command();
        program.build();
        let mut all: Vec<(Vec<String>, &clap::Command)> = vec![(Vec::new(), &program)];
        let mut completed = Vec::new();
        clap_complete::generate(
            clap_complete::Shell::Bash,
            &mut Cli::command(),
            "pgdyno",
            &mut completed,
        );
        let completed = String::from_utf8(completed).unwrap();
        while let Some((names, command)) = all.pop() {
            man(&HelpArgs { names: names.clone() }).unwrap();
            assert!(
                names.iter().all(|name| completed.contains(name.as_str())),
                "{names:?}"
            );
            let below = command.get_subcommands().filter(|below| !below.is_hide_set());
            all.extend(
                below.map(|below| ([names.as_slice(), &[below.get_name().to_owned()]].concat(), below)),
            );
        }
    }
}
