//! pgdyno: measures the effect of each setting of a PostgreSQL server and its host, and restores
//! everything.
//!
//! Only this program prints, exits, or reads the environment.
/// A line of data, to standard output; `output.rs` cleans it.
macro_rules! put {
    ($($part:tt)*) => {
        crate::output::put(format_args!($($part)*))
    };
}

/// Several lines of data; what is foreign in them is on one line each (`output::cell`,
/// `show::wrapped`, `one_line`).
macro_rules! put_page {
    ($($part:tt)*) => {
        crate::output::put_page(format_args!($($part)*))
    };
}

/// Several lines for people; the same holds.
macro_rules! err_page {
    ($($part:tt)*) => {
        crate::output::err_page(format_args!($($part)*))
    };
}

/// A line for people, to standard error; the same holds.
macro_rules! err {
    ($($part:tt)*) => {
        crate::output::err(format_args!($($part)*))
    };
}

#[macro_use]
mod failure;
mod cli;
mod commands;
mod context;
mod exit;
mod generators;
mod inventory;
mod noted;
mod on_host;
mod output;
mod own_load;
mod paths;
mod placement;
mod progress;
mod provider;
mod remote;
mod repeated;
mod sandboxes;
mod shipped;
mod show;
mod ssh_way;
mod store_place;
mod target;
mod terminal;

use clap::Parser;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use std::process::ExitCode;

/// An abort leaves no image of the memory, which holds passwords. That of a server started from
/// here is its own matter: only the soft limit is inherited, and pg_ctl can raise it. What reads
/// images by a pipe asks for no limit, hence both.
fn leave_no_core() {
    let limit = getrlimit(Resource::Core);
    let none = Rlimit {
        current: Some(0),
        ..limit
    };
    // Where either is refused the other holds.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

fn main() -> ExitCode {
    leave_no_core();
    output::take_panics();
    output::hide_arguments();
    ExitCode::from(match cli::Cli::try_parse() {
        Ok(cli) => match &cli.command {
            cli::Command::Agent(args) if args.stdio => serve_coordinator(),
            _ => execute(cli),
        },
        Err(error) => refuse(&error),
    })
}

/// Runs the command that a coordinator sends.
fn serve_coordinator() -> u8 {
    code_of(commands::agent::stdio(|arguments| {
        let program = std::iter::once("pgdyno".to_owned());
        match cli::Cli::try_parse_from(program.chain(arguments)) {
            Ok(cli) => {
                name_host(&cli.command);
                code_of(context::Context::new().and_then(|context| commands::run(&context, cli.command)))
            }
            Err(error) => refuse(&error),
        }
    }))
}

/// Has commands that are shown name the host that this one is for.
fn name_host(command: &cli::Command) {
    if let Some(on) = command.on().filter(|on| on.host.is_some()) {
        output::name_host(commands::experiment::options_of(on));
    }
}

/// Runs a command on the host that it is for.
fn execute(mut cli: cli::Cli) -> u8 {
    name_host(&cli.command);
    code_of(context::Context::new().and_then(|mut context| {
        generators::take_group(&mut context, &mut cli.command)?;
        if let Some(hosts) = cli.command.hosts()
            && let Some(file) = &hosts.inventory
        {
            return inventory::run(&context, &cli.command, hosts, file);
        }
        match cli.command.host().and_then(|on| Some((on, on.host.as_ref()?))) {
            Some((on, host)) => remote::run(&context, &cli.command, on, host),
            None => commands::run(&context, cli.command),
        }
    }))
}

/// Shows why a command line is not executed, or the help that it asks for.
fn refuse(error: &clap::Error) -> u8 {
    output::command_line(error);
    if error.use_stderr() {
        exit::USAGE
    } else {
        exit::FINE
    }
}

/// The exit code of what a command has come to; a failure is shown.
fn code_of(ended: failure::Result<u8>) -> u8 {
    ended.unwrap_or_else(|error| {
        exit::print(&error);
        exit::code_of(&error)
    })
}
