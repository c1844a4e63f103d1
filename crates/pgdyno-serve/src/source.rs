//! What the server needs of the program that runs it.

use crate::document::ChangedBy;
use pgdyno_knobs::{Catalogue, ServerRef};
use pgdyno_record::{FactRecord, StoredExperiment};
use pgdyno_report::Report;
use pgdyno_store::{Store, StoreError};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;

/// The changes of one journal, and on what they were made.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Server that the changes are of; `None` where only the host's are.
    pub server: Option<ServerRef>,
    /// Journal with its changes.
    pub journal: ChangedBy,
}

/// What is shown when the server listens.
#[derive(Debug)]
pub struct Begun {
    /// Address that the server listens on.
    pub listening: SocketAddr,
    /// A token that was drawn for this time; `None` where it is kept in a file. This is the only
    /// place where it is shown.
    pub token: Option<String>,
    /// Why the store cannot be read now; `None` where it can.
    pub store_fault: Option<StoreError>,
    /// Whether the page was built in.
    pub has_page: bool,
}

/// Where answers come from: the store, and what the program works out of it and of this host.
pub trait Source: Send + Sync + 'static {
    /// Opens the store as it is: makes none, and migrates nothing. Another process that holds it is
    /// waited for so long.
    ///
    /// # Errors
    ///
    /// If it is not there, or cannot be read.
    fn store(&self, patience: Duration) -> Result<Store, StoreError>;

    /// What is known of knobs.
    fn catalogue(&self) -> &Catalogue;

    /// The report of a stored experiment.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    fn report(&self, store: &Store, stored: &StoredExperiment) -> Result<Report, StoreError>;

    /// Advice for a target by stored facts, as `pgdyno advise --json` prints it; `None` where there
    /// is none to give.
    fn advice(&self, store: &Store, target: &str, facts: &[FactRecord]) -> Option<Value>;

    /// What is changed on this host now, and on its servers, which are asked only if that is
    /// allowed.
    ///
    /// # Errors
    ///
    /// Why that is not known.
    fn changed(&self, ask_servers: bool) -> Result<Vec<Changed>, String>;

    /// Says where the server is.
    fn begun(&self, begun: &Begun);
}
