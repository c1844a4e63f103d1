//! The commands. Each prints its data to standard output and everything else to standard error.

pub(crate) mod advise;
pub(crate) mod agent;
pub(crate) mod apply;
mod bench;
pub(crate) mod capacity;
mod check;
pub(crate) mod compare;
mod data;
mod demo;
mod drafts;
pub(crate) mod experiment;
mod experiments;
mod export;
mod facts;
mod gate;
mod help;
mod init;
mod knobs;
mod labels;
mod list;
mod mcp;
mod pages;
pub(crate) mod profile;
pub(crate) mod report;
mod restore;
mod revert;
pub(crate) mod sandbox;
mod serve;
mod show;
mod store;
mod stored;
mod tune;
pub(crate) mod watch;

use crate::cli::Command;
use crate::context::Context;
use crate::failure::Result;

/// Runs a command; the result is its exit code.
pub(crate) fn run(context: &Context, command: Command) -> Result<u8> {
    match command {
        Command::Demo(args) => demo::run(context, &args),
        Command::Facts(args) => facts::run(context, &args),
        Command::Check(args) => check::run(context, &args),
        Command::Advise(args) => advise::run(context, &args),
        Command::Watch(args) => watch::run(context, &args),
        Command::Bench(args) => bench::run(context, &args),
        Command::Data(command) => data::run(context, command),
        Command::Run(args) => experiment::run(context, &args),
        Command::Resume(args) => experiment::resume(context, &args),
        Command::Gate(args) => gate::run(context, &args),
        Command::Tune(args) => tune::run(context, &args),
        Command::Experiments(args) => experiments::run(context, &args),
        Command::List(args) => list::run(context, &args),
        Command::Show(args) => show::run(context, &args),
        Command::Compare(args) => compare::run(context, &args),
        Command::Capacity(args) => capacity::run(context, &args),
        Command::Report(args) => report::run(context, &args),
        Command::Export(args) => export::run(context, &args),
        Command::Tag(args) => labels::tag(context, &args),
        Command::Note(args) => labels::note(context, &args),
        Command::Prune(args) => store::prune(context, &args),
        Command::Import(args) => store::import(context, &args),
        Command::CheckStore(args) => store::check(context, &args),
        Command::Profile(command) => profile::run(context, command),
        Command::Apply(args) => apply::apply(context, &args),
        Command::Verify(args) => apply::verify(context, &args),
        Command::Status(args) => apply::status(context, &args),
        Command::Confirm(args) => apply::confirm(context, &args),
        Command::RevertLater(args) => revert::run(context, &args),
        Command::Knobs(args) => knobs::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Completions(args) => pages::completions(&args),
        Command::Man(args) => pages::man(&args),
        Command::Restore(args) => restore::run(context, &args),
        Command::Sandbox(args) => sandbox::run(context, args.command),
        Command::Init(args) => init::run(context, &args),
        Command::Agent(args) => agent::run(context, &args),
        Command::Mcp(args) => mcp::run(context, &args),
        Command::Serve(args) => serve::run(context, &args),
    }
}
