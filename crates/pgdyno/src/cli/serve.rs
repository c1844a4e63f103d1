//! `pgdyno serve` on the command line.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen, as 127.0.0.1:7432 or [::1]:7432; port 0 for a free one. 127.0.0.1:7432 if not given, or a free port
    /// where that one is taken.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Agree to an address that other machines reach. What is sent is not encrypted (docs/how-to/serve.md).
    #[arg(long)]
    pub(crate) beyond_loopback: bool,
    /// Keep the token in this file, for links and programs that outlive a start; made if it is not there.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A name by which browsers reach it, of this machine or of a reverse proxy (may be given several times).
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(crate) allow_host: Vec<String>,
    /// File of the store of results.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

/// A host's name in lower case, without a port.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if (1..=253).contains(&text.len()) && text.chars().all(fits) {
        return Ok(text.to_ascii_lowercase());
    }
    Err("expected a host's name without a scheme and a port, as results.example.org".to_owned())
}
