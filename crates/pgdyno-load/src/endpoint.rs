//! Where a load goes, and how securely.

use crate::connection::where_is;
use postgres::{CancelToken, Client, Config, NoTls};
use rustls::ClientConfig;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// A server to be driven.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) config: Config,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) is_pooled: bool,
}

impl Endpoint {
    /// `tls` is what TLS is done with where the configuration wants it.
    pub fn new(config: Config, tls: Option<Arc<ClientConfig>>) -> Endpoint {
        Endpoint {
            config,
            tls,
            is_pooled: false,
        }
    }

    /// The same, behind a pooler or not: there a session is somebody else's the next moment, and nothing is set in it.
    pub fn pooled(self, is_pooled: bool) -> Endpoint {
        Endpoint { is_pooled, ..self }
    }

    /// Host and port, or the socket; never a password.
    pub fn place(&self) -> String {
        where_is(&self.config)
    }

    /// A connection for questions, seen under this name; behind a pooler all have the same one.
    pub(crate) fn connect_as(&self, application_name: &str) -> Result<Client, postgres::Error> {
        let mut config = self.config.clone();
        if !self.is_pooled {
            config.application_name(application_name);
        }
        match &self.tls {
            Some(tls) => config.connect(MakeRustlsConnect::new(ClientConfig::clone(tls))),
            None => config.connect(NoTls),
        }
    }
}

impl Endpoint {
    /// Asks the server to give up what a connection is doing. Whether it comes in time is not to be known.
    pub(crate) fn cancel(&self, token: &CancelToken) {
        let _ = match &self.tls {
            Some(tls) => token.cancel_query(MakeRustlsConnect::new(ClientConfig::clone(tls))),
            None => token.cancel_query(NoTls),
        };
    }
}

impl From<Config> for Endpoint {
    fn from(config: Config) -> Endpoint {
        Endpoint::new(config, None)
    }
}
