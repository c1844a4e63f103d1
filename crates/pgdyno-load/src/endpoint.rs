//! Where a load goes, and how securely.

use crate::connection::where_is;
use postgres::{Client, Config, NoTls};
use rustls::ClientConfig;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A server to be driven.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) config: Config,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl Endpoint {
    /// `tls` is what TLS is done with where the configuration wants it.
    pub fn new(config: Config, tls: Option<Arc<ClientConfig>>) -> Endpoint {
        Endpoint { config, tls }
    }

    /// Host and port, or the socket; never a password.
    pub fn place(&self) -> String {
        where_is(&self.config)
    }

    /// A connection for questions.
    pub(crate) fn connect(&self) -> Result<Client, postgres::Error> {
        match &self.tls {
            Some(tls) => self
                .config
                .connect(MakeRustlsConnect::new(ClientConfig::clone(tls))),
            None => self.config.connect(NoTls),
        }
    }
}

impl From<Config> for Endpoint {
    fn from(config: Config) -> Endpoint {
        Endpoint::new(config, None)
    }
}
