//! `pgdyno agent`: the end of a connection that is on the other host, and the removal of what such
//! connections leave there.

use crate::cli::AgentArgs;
use crate::context::{Context, serve_request, stop_flag, waiting_agents};
use crate::exit;
use crate::failure::{InContext as _, Result};
use crate::output;
use crate::ssh_way::{ssh_program, way};
use pgdyno_remote::{Coordinator, Hello, PROTOCOL, Request, Streams, remove_agents, serve};
use rustix::process::{Signal, getpid, kill_process};

mod load;

pub(crate) fn run(context: &Context, args: &AgentArgs) -> Result<u8> {
    if args.load {
        return load::run(context);
    }
    let Some(host) = &args.remove else {
        return Ok(exit::FINE);
    };
    let (program, stop) = (ssh_program()?, stop_flag()?);
    match remove_agents(way(&program, host, false), &stop)? {
        Some(place) => put!("{place} on {host} is removed"),
        None => put!("there is no agent on {host}"),
    }
    Ok(exit::FINE)
}

/// Serves a coordinator on standard input and output; `run` runs a command line.
pub(crate) fn stdio(run: impl FnOnce(Vec<String>) -> u8) -> Result<u8> {
    let streams = Streams::of_process().context("the agent's connection")?;
    let hello = Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let stop = || {
        // A command that ends in order at Ctrl-C does so here, and one that is simply ended is
        // simply ended.
        let _ = kill_process(getpid(), Signal::TERM);
    };
    let run = |request: &Request, coordinator: Coordinator| {
        serve_request(request, coordinator);
        for argument in &request.arguments {
            output::hide(argument);
        }
        run(request.arguments.clone())
    };
    Ok(serve(streams, hello, waiting_agents().as_deref(), stop, run)?)
}
