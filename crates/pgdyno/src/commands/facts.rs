//! `pgdyno facts`: what a target is.

use crate::cli::FactsArgs;
use crate::context::Context;
use crate::{exit, show, target};
use pgdyno_host::HostAccess;
use pgdyno_lab::collect_facts;
use pgdyno_server::Server;

pub(crate) fn run(context: &Context, args: &FactsArgs) -> anyhow::Result<u8> {
    let (conninfo, sandbox) = target::conninfo(context, &args.target)?;
    let mut server = Server::connect(&conninfo)?;
    // A server reached over a socket runs here; of one reached over TCP that is not known.
    let local = conninfo.is_local();
    let host: Option<&dyn HostAccess> = if local { Some(&context.host) } else { None };
    let facts = collect_facts(host, &mut server, sandbox.as_ref())?;
    if args.json {
        put!("{}", serde_json::to_string_pretty(&facts)?);
        return Ok(exit::FINE);
    }
    if !local {
        tell!(
            "{} is reached over the network: facts of its host are not known",
            conninfo.place()
        );
    }
    let rows = facts
        .into_iter()
        .map(|fact| {
            let value = fact.shown().lines().collect::<Vec<_>>().join(" ");
            vec![fact.group, fact.name, value]
        })
        .collect();
    put!("{}", show::table(&["of", "fact", "value"], &[], rows));
    Ok(exit::FINE)
}
