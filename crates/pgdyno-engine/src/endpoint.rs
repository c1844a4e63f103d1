//! Where a load goes, and how securely.

use postgres::config::{Config, Host};
use rustls::ClientConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server to be driven.
#[derive(Clone)]
pub struct Endpoint {
    /// Host, port, database and user, as libpq has them.
    pub config: Config,
    /// Certificates that TLS is done with; `None` without TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// The user, by number, as whom root opens the server's socket; `None`: the one of this
    /// process.
    pub socket_user: Option<u32>,
    /// Whether there is a pooler between.
    pub is_pooled: bool,
    /// What ends whatever is waited for on the way there.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Endpoint {
    /// `tls` is what TLS is done with where the configuration needs it.
    pub fn new(config: Config, tls: Option<Arc<ClientConfig>>) -> Endpoint {
        Endpoint {
            config,
            tls,
            socket_user: None,
            is_pooled: false,
            stop: None,
        }
    }

    /// The same with the user as whom root opens the server's socket.
    pub fn opened_by(self, socket_user: Option<u32>) -> Endpoint {
        Endpoint { socket_user, ..self }
    }

    /// The same, behind a pooler or not: there a session is somebody else's the next moment, and
    /// nothing is set in it.
    pub fn pooled(self, is_pooled: bool) -> Endpoint {
        Endpoint { is_pooled, ..self }
    }

    /// The same with more `options` of its sessions.
    pub fn with_options(&self, options: &str) -> Endpoint {
        let mut other = self.clone();
        let before = self.config.get_options().unwrap_or_default();
        other.config.options(format!("{before} {options}").trim_start());
        other
    }

    /// Where it points: "127.0.0.1:5432" or the socket's path; never a password.
    pub fn place(&self) -> String {
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let place = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) if host.contains(':') => format!("[{host}]:{port}"),
            Some(Host::Tcp(host)) => format!("{host}:{port}"),
            Some(Host::Unix(directory)) => format!("{}/.s.PGSQL.{port}", directory.display()),
            None => format!("port {port} of no host"),
        };
        match (
            self.config.get_hostaddrs().first(),
            self.config.get_hosts().first(),
        ) {
            (Some(address), Some(Host::Tcp(host))) if address.to_string() == *host => place,
            (Some(address), _) => format!("{place} ({address})"),
            (None, _) => place,
        }
    }

    /// The same; whatever is waited for on the way there ends as soon as this is set.
    pub fn stopped_by(self, stop: &Arc<AtomicBool>) -> Endpoint {
        Endpoint {
            stop: Some(Arc::clone(stop)),
            ..self
        }
    }

    /// The same for the end of something, which a request to stop does not keep from being done.
    pub fn unstopped(&self) -> Endpoint {
        Endpoint {
            stop: None,
            ..self.clone()
        }
    }

    /// Whether somebody has asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// The same, seen under this name; behind a pooler all have the same one.
    pub fn named(&self, application_name: &str) -> Endpoint {
        let mut endpoint = self.clone();
        if !self.is_pooled {
            endpoint.config.application_name(application_name);
        }
        endpoint
    }
}

impl From<Config> for Endpoint {
    fn from(config: Config) -> Endpoint {
        Endpoint::new(config, None)
    }
}
