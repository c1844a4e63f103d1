//! `pgdyno facts`: what a target is, or a host alone. Read-only.

mod text;

use crate::cli::FactsArgs;
use crate::context::Context;
use crate::exit;
use crate::failure::{Result, Usage};
use crate::target;
use pgdyno_host::{HostAccess, LocalHost};
use pgdyno_lab::{collect_facts, collect_host_facts, runs_here};
use pgdyno_record::FactRecord;
use pgdyno_server::{Guc, Server};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Of the JSON that is printed; docs/reference/facts.md describes it.
const FORMAT: &str = "pgdyno-facts/1";

/// Facts, and whose they are; no name where it is a host alone.
pub(super) struct Found {
    pub(super) target: Option<String>,
    pub(super) facts: Vec<FactRecord>,
    pub(super) settings: Vec<Guc>,
}

pub(crate) fn run(context: &Context, args: &FactsArgs) -> Result<u8> {
    let begun = Instant::now();
    let found = find(
        context,
        args.target.as_deref(),
        args.host_only,
        args.root.as_deref(),
    )?;
    if args.json {
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let value = json!({
            "format": FORMAT, "took_ms": took_ms, "target": found.target, "facts": found.facts,
            "settings": found.settings,
        });
        put_page!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        if let Some(target) = &found.target {
            put!("{target}\n");
        }
        put_page!("{}", text::page(&found.facts));
    }
    Ok(exit::FINE)
}

/// Facts of a target, of this host alone, or of a host by its files.
pub(super) fn find(
    context: &Context,
    target: Option<&str>,
    host_only: bool,
    root: Option<&Path>,
) -> Result<Found> {
    Ok(match (root, target) {
        (Some(root), _) if !root.is_dir() => {
            return Err(Usage(format!("--root {}: there is no such directory", root.display())).into());
        }
        (Some(root), _) => of_host(&LocalHost::at(root)),
        (None, _) if host_only => of_host(&context.host),
        (None, Some(target)) => of_target(context, target)?,
        // Nobody was named: a host without a server is fine.
        (None, None) => of_target(context, "").unwrap_or_else(|error| {
            err!("the host alone is read: {error}");
            of_host(&context.host)
        }),
    })
}

fn of_host(host: &dyn HostAccess) -> Found {
    Found {
        target: None,
        facts: collect_host_facts(host),
        settings: Vec::new(),
    }
}

fn of_target(context: &Context, text: &str) -> Result<Found> {
    let (conninfo, sandbox) = target::conninfo(context, text)?;
    let mut server = Server::connect(&conninfo)?;
    let here = runs_here(&context.host, &mut server);
    let host: Option<&dyn HostAccess> = if here { Some(&context.host) } else { None };
    let collected = collect_facts(host, &mut server, sandbox.as_ref())?;
    Ok(Found {
        facts: collected.facts,
        settings: collected.settings,
        target: Some(match sandbox {
            Some(sandbox) => format!("sandbox {}", sandbox.record().name),
            None => conninfo.to_string(),
        }),
    })
}
