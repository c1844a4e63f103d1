//! What can be watched of a target beside a load, and how much of it is recorded.

use pgdyno_host::HostAccess;
use pgdyno_server::Conninfo;
use std::sync::Arc;

/// What can be watched of a target.
pub struct Probe {
    /// Its machine, if it is this one.
    pub host: Option<Arc<dyn HostAccess>>,
    /// The disk of its data.
    pub disk: Option<String>,
    /// Process id of the postmaster, if it runs on this machine.
    pub postmaster: Option<u32>,
    /// How much is recorded beside the load.
    pub depth: Depth,
    /// Changes of settings that pgdyno makes while the load runs, at most: they ask the server too.
    pub changes: u32,
    /// Whether the server is killed while the load runs, because somebody asked for it.
    pub kills: bool,
    /// Additional servers, which get the whole load at the same time.
    pub beside: Vec<ServerBeside>,
    /// First processes of servers that replicate with those of the load: what they use is no other
    /// program's.
    pub replicating: Vec<u32>,
}

/// A server of a load that has several: of the first one series are recorded too, of the others
/// counts and CPU time alone.
#[derive(Debug, Clone)]
pub struct ServerBeside {
    /// The way of the load and of the questions.
    pub conninfo: Conninfo,
    /// Process id of its postmaster, if it runs on this machine.
    pub postmaster: Option<u32>,
}

/// How much is recorded beside a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Of the host, what shows whether something disturbed the load.
    Host,
    /// Everything: host, processes, the server's statistics, what its sessions wait for.
    Whole,
}
