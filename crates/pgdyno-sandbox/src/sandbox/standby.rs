//! Standbys: physical replicas of a sandbox, each a sandbox of its own, made of the primary's files and fed over its socket.

use super::record::Record;
use super::{Sandbox, SandboxError};
use pgdyno_host::Directory;
use pgdyno_server::{Server, pause};
use std::path::Path;
use std::time::{Duration, Instant};

/// The file that makes a server a standby.
const SIGNAL: &str = "standby.signal";
/// The primary was restarted, or they were: they connect again within this time, or something keeps them from it.
const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A slot keeps the WAL that its standby still needs, while that is down too.
fn slot_of(standby: &str) -> String {
    let plain = |c: char| match c {
        '-' => '_',
        c => c.to_ascii_lowercase(),
    };
    standby.chars().map(plain).collect()
}

impl Sandbox {
    /// Sandboxes that are its standbys, as far as they are whole.
    pub fn standbys(&self) -> Vec<Sandbox> {
        self.standbys_begun()
            .filter(|standby| standby.record().ready)
            .collect()
    }

    /// Those that are half-made too.
    pub(super) fn standbys_begun(&self) -> impl Iterator<Item = Sandbox> {
        let root = self.directory().parent().unwrap_or(Path::new("/"));
        let own = &self.record().name;
        let names = self.record().standbys.map(|standbys| standbys.names(own));
        let there = names.unwrap_or_default().into_iter();
        there
            .filter_map(move |name| Sandbox::open(root, &name).ok())
            .filter(move |standby| standby.record().standby_of.as_ref() == Some(own))
    }

    /// Stops it and its standbys.
    pub fn stop_all(&self) -> Result<(), SandboxError> {
        self.stop()?;
        self.standbys().iter().try_for_each(Sandbox::stop)
    }

    /// Starts those of its standbys that do not run, and waits until all receive its WAL.
    pub(super) fn start_standbys(&self) -> Result<(), SandboxError> {
        let standbys = self.standbys();
        standbys.iter().try_for_each(Sandbox::start)?;
        if standbys.is_empty() {
            return Ok(());
        }
        let wrong = |reason: String| SandboxError::Unfit {
            name: self.record().name.clone(),
            reason,
        };
        let deadline = Instant::now() + CONNECTED_WITHIN;
        let sql = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        let mut server = Server::connect(&self.by_socket()).map_err(|error| wrong(error.to_string()))?;
        loop {
            let streaming = server.value("asking for its standbys", sql);
            let streaming = streaming.map_err(|error| wrong(error.to_string()))?;
            let streaming = streaming
                .and_then(|count| count.parse::<usize>().ok())
                .unwrap_or(0);
            if streaming >= standbys.len() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(wrong(format!(
                    "{streaming} of {} standbys receive its WAL; the log of the others says why",
                    standbys.len()
                )));
            }
            pause(LOOK_AGAIN);
        }
    }

    /// Makes the data directory of a standby from its own, while its server is stopped for it; the lines for the standby's
    /// postgresql.conf.
    pub(super) fn replicate(&self, standby: &Record) -> Result<Vec<(String, String)>, SandboxError> {
        let slot = slot_of(&standby.name);
        let wrong = |reason: String| SandboxError::Unfit {
            name: self.record().name.clone(),
            reason,
        };
        let sql = format!("SELECT pg_create_physical_replication_slot('{slot}', true)");
        Server::connect(&self.by_socket())
            .and_then(|mut server| server.value("making a replication slot", &sql))
            .map_err(|error| wrong(error.to_string()))?;
        self.stop()?;
        self.copy_into(&standby.data)?;
        let signal = standby.data.join(SIGNAL);
        Directory::open(&standby.data)
            .and_then(|data| data.replace(SIGNAL, b"", standby.owner(0o600)))
            .map_err(SandboxError::io(&signal, "written"))?;
        let primary = format!(
            "host={} port={} user=postgres application_name={}",
            self.socket_directory().display(),
            self.record().port,
            standby.name
        );
        let settings = [
            ("primary_conninfo", primary.as_str()),
            ("primary_slot_name", &slot),
            // After a restart of the primary; five seconds by default.
            ("wal_retrieve_retry_interval", "100ms"),
            // Its own: those of the primary's file are about the primary's standbys.
            ("synchronous_standby_names", ""),
        ];
        Ok(settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_legal_names() {
        assert_eq!(slot_of("Main-standby-1"), "main_standby_1");
    }
}
