//! The target whose knobs are turned: a server, with the host under it where that is within reach.

use crate::journal::server_key_of_data;
use crate::undo::ServerRef;
use pgdyno_host::{Directory, HostAccess};
use pgdyno_sandbox::Control;
use pgdyno_server::{Conninfo, Postmaster, Server};
use std::path::PathBuf;

/// A server, and what may be done to it.
pub struct Target {
    /// Connection parameters of the server.
    pub conninfo: Conninfo,
    /// How the server is started and stopped, if pgdyno may.
    pub control: Control,
    /// Name of the server in journals.
    pub reference: ServerRef,
    /// Whether the server ran before anybody started it for the experiment; what was stopped is
    /// stopped again.
    pub was_running: bool,
    /// The data directory, where its files can be reached from here.
    pub data: Option<PathBuf>,
    /// The disk that holds it, a name in /sys/block.
    pub disk: Option<String>,
}

impl Target {
    /// The server's first process, where it runs on this host.
    pub fn postmaster(&self, host: &dyn HostAccess) -> Option<u32> {
        match &self.control {
            Control::Sandbox(sandbox) => sandbox.pid(),
            _ => {
                let found = Postmaster::of_data(host, self.data.as_ref()?);
                found.ok().map(|found| found.pid)
            }
        }
    }

    /// What identifies the server on this host: its data directory, else the identifier that initdb
    /// gave it.
    pub(crate) fn server_key(&self) -> String {
        match &self.data {
            Some(data) => server_key_of_data(data),
            None => self.key_of_system(),
        }
    }

    fn key_of_system(&self) -> String {
        let key = Server::connect(&self.conninfo)
            .ok()
            .and_then(|mut server| key_of_system(&mut server));
        key.unwrap_or_else(|| self.reference.key())
    }

    /// By what users who see different things of a server identify it, and who owns its data.
    pub(crate) fn shown_to_others(&self) -> (Vec<String>, Option<u32>) {
        let data = self.data.as_deref();
        let data_of = data.and_then(|data| Directory::open(data).ok());
        let data_of = data_of.map(|held| held.owner().uid);
        let of_data = data.map(server_key_of_data);
        let of_system = match &self.control {
            // Nobody else's server, and it may not run yet.
            Control::Sandbox(_) => None,
            _ => Some(self.key_of_system()),
        };
        (of_data.into_iter().chain(of_system).collect(), data_of)
    }
}

/// What the key of a server begins with that is identified by what initdb gave it.
const BY_SYSTEM: &str = "with the system identifier ";

/// The key of a server by the identifier that initdb gave it, where it is known.
fn key_of_system(server: &mut Server) -> Option<String> {
    let sql = "SELECT system_identifier::text FROM pg_control_system()";
    let identifier = server.value("asking for the server's identifier", sql).ok()??;
    Some(format!("{BY_SYSTEM}{identifier}"))
}

/// The key of the server that answers, where it is not the one with this key: an address may lead
/// to another one by now.
pub(crate) fn other_than(server: &mut Server, key: &str) -> Option<String> {
    let found = key.starts_with(BY_SYSTEM).then(|| key_of_system(server))??;
    (found != key).then_some(found)
}
