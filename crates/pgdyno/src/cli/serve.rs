//! `pgdyno serve` on the command line.

use super::StoreArg;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen at, e.g. [::1]:7432; port 0 for a free one [default: 127.0.0.1:7432, or a
    /// free port if it is taken].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Allow an address that other machines can reach. Traffic is not encrypted
    /// (docs/how-to/serve.md).
    #[arg(long)]
    pub(crate) beyond_loopback: bool,
    /// Keep the token in FILE, so that links keep working after a restart; created if it does not
    /// exist.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Host name by which browsers reach the server, e.g. of a reverse proxy. Repeatable.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) allow_host: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArg,
}

/// A host's name in lower case, without a port.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if (1..=253).contains(&text.len()) && text.chars().all(fits) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("expected a host's name without a scheme and a port, e.g. results.example.org".to_owned())
}
