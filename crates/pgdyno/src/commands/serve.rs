//! `pgdyno serve`: the store as a web page, an interface for other programs, and metrics.

use crate::cli::ServeArgs;
use crate::context::Context;
use crate::exit::{self, Refused, Usage};
use crate::serve;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Where it is looked for first.
const USUAL_PORT: u16 = 7432;

pub(crate) fn run(context: &Context, args: &ServeArgs) -> anyhow::Result<u8> {
    if let Some(address) = args.listen
        && !address.ip().is_loopback()
        && !args.beyond_loopback
    {
        return Err(Refused(format!(
            "{address} is reached from other machines, and what is sent is not encrypted; --beyond-loopback agrees to it \
             (a reverse proxy or `ssh -L` on loopback is safer: docs/how-to/serve.md)"
        ))
        .into());
    }
    let listener = bind(args.listen).map_err(|error| {
        let address = args.listen.unwrap_or(usual());
        Usage(format!(
            "{address} cannot be listened on: {error}; --listen names another address"
        ))
    })?;
    let listening = listener.local_addr()?;
    serve::run(serve::Options {
        context: context.clone(),
        store: context.store_place(args.store.as_deref())?,
        listener,
        listening,
        token_file: args.token_file.clone(),
        allowed: args.allow_host.clone(),
    })?;
    Ok(exit::FINE)
}

fn usual() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, USUAL_PORT).into()
}

/// An address that was asked for, or none; without one a free port does as well.
fn bind(asked: Option<SocketAddr>) -> io::Result<TcpListener> {
    if let Some(address) = asked {
        return TcpListener::bind(address);
    }
    match TcpListener::bind(usual()) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)),
        bound => bound,
    }
}
