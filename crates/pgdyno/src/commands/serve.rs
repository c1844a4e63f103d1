//! `pgdyno serve`: the store as a web page, an interface for other programs, and metrics.

use crate::cli::ServeArgs;
use crate::commands::{advise, apply, report};
use crate::context::Context;
use crate::exit;
use crate::failure::{Refused, Result, Usage};
use crate::paths::absolute;
use crate::repeated::shell_word;
use crate::store_place::StorePlace;
use pgdyno_knobs::Catalogue;
use pgdyno_record::{FactRecord, StoredExperiment};
use pgdyno_report::Report;
use pgdyno_serve::{Begun, Changed, Options, Source};
use pgdyno_store::{Store, StoreError};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where it is looked for first.
const USUAL_PORT: u16 = 7432;
/// A load that is measured on this machine goes first.
const NICE: i32 = 10;

/// What the server is given of the program.
struct Given {
    context: Context,
    store: StorePlace,
    token_file: Option<PathBuf>,
}

impl Source for Given {
    fn store(&self, patience: Duration) -> Result<Store, StoreError> {
        self.store.open_as_it_is(patience)
    }

    fn catalogue(&self) -> &Catalogue {
        &self.context.catalogue
    }

    fn report(&self, store: &Store, stored: &StoredExperiment) -> Result<Report, StoreError> {
        report::of_stored(&self.context, store, stored)
    }

    fn advice(&self, store: &Store, target: &str, facts: &[FactRecord]) -> Option<Value> {
        advise::of_stored(&self.context, store, target, facts).ok()
    }

    fn changed(&self, ask_servers: bool) -> Result<Vec<Changed>, String> {
        apply::changed(&self.context, ask_servers).map_err(|error| format!("{error}"))
    }

    /// The link is the only place where the token is shown.
    fn begun(&self, begun: &Begun) {
        let mut listening = begun.listening;
        err!("serving {}; Ctrl-C ends it", self.store);
        if !listening.ip().is_loopback() {
            err!("other machines reach it, and what is sent is not encrypted (docs/how-to/serve.md)");
        }
        if listening.ip().is_unspecified() {
            listening.set_ip(match listening {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        if let Some(error) = &begun.store_fault {
            err!("{error}; until that is mended the page says so");
        }
        if !begun.has_page {
            err!(
                "this pgdyno was built without its web page: /api/ and /metrics answer, and `make build` builds it with the page \
                 (Node is needed)"
            );
        }
        match (&begun.token, &self.token_file) {
            (Some(token), _) => put!("http://{listening}/?token={token}"),
            (None, Some(path)) => {
                let path = absolute(path);
                let path = shell_word(&path.to_string_lossy());
                put!("http://{listening}/?token=$(cat {path})");
            }
            (None, None) => {}
        }
    }
}

pub(crate) fn run(context: &Context, args: &ServeArgs) -> Result<u8> {
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
    // Threads begin with their parent's. Where that is refused, it is only less polite.
    let _ = rustix::process::setpriority_process(None, NICE);
    let source = Given {
        context: context.clone(),
        store: context.store_place(args.store.place())?,
        token_file: args.token_file.clone(),
    };
    pgdyno_serve::run(Options {
        source: Arc::new(source),
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
