//! pgdyno: what every setting of a PostgreSQL server and its host is worth, measured, and everything put back.
//!
//! Only this program prints, exits, or reads the environment.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what the program is for"
)]

mod cli;
mod commands;
mod context;
mod exit;
mod progress;
mod show;
mod target;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() {
                exit::USAGE
            } else {
                exit::FINE
            });
        }
    };
    match context::Context::new().and_then(|context| commands::run(&context, cli.command)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            exit::print(&error);
            ExitCode::from(exit::code_of(&error))
        }
    }
}
