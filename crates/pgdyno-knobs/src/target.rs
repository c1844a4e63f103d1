//! The target whose knobs are turned: a server, with the host under it where that is within reach.

use crate::cell::ServerRef;
use pgdyno_host::HostAccess;
use pgdyno_sandbox::{Control, State};
use pgdyno_server::{Conninfo, Postmaster};
use std::path::PathBuf;

/// A server, and what may be done to it.
pub struct Target {
    /// Connection parameters of the server.
    pub conninfo: Conninfo,
    /// How the server is started and stopped, if pgdyno may.
    pub control: Control,
    /// How the journal names it.
    pub reference: ServerRef,
    /// Whether the server ran before anybody started it for the experiment; what was stopped is stopped again.
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
            Control::Sandbox(sandbox) => match sandbox.state() {
                State::Running(pid) => Some(pid),
                _ => None,
            },
            _ => {
                let found = Postmaster::of_data(host, self.data.as_ref()?);
                found.ok().map(|found| found.pid)
            }
        }
    }
}
