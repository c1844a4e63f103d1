//! Standbys: physical replicas of a sandbox, each a sandbox of its own, made of the primary's files
//! and fed over its socket.

use super::create::admit_this_machine;
use super::record::Record;
use super::{Sandbox, SandboxError, remove_remains};
use pgdyno_host::Directory;
use pgdyno_server::{Server, pause};
use std::path::Path;
use std::time::{Duration, Instant};

/// The file that makes a server a standby.
const SIGNAL: &str = "standby.signal";
/// A standby connects again when it has replayed what it had received: within this time, or
/// something keeps it from it.
const CONNECTED_WITHIN: Duration = Duration::from_secs(120);
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

    /// First processes of the servers that replicate with it: its standbys, or of a standby its
    /// primary and the other ones.
    pub fn replicating(&self) -> Vec<u32> {
        let primary = self.record().standby_of.as_ref();
        let primary = primary.and_then(|name| Sandbox::open(self.root(), name).ok());
        let standbys = primary.as_ref().unwrap_or(self).standbys();
        let all = primary.into_iter().chain(standbys);
        let others = all.filter(|other| other.record().name != self.record().name);
        others.filter_map(|other| other.pid()).collect()
    }

    /// Those that are half-made too.
    fn standbys_begun(&self) -> impl Iterator<Item = Sandbox> {
        let names = self.names_of_standbys().into_iter();
        let there = names.filter_map(|name| Sandbox::open(self.root(), &name).ok());
        there.filter(|standby| standby.record().standby_of.as_ref() == Some(&self.record().name))
    }

    /// Removes them, and what is left of one whose creation ended before its record was written.
    pub(super) fn destroy_standbys(&self) -> Result<(), SandboxError> {
        self.standbys_begun().try_for_each(Sandbox::destroy)?;
        for name in self.names_of_standbys() {
            if let Err(SandboxError::Record { .. }) = Sandbox::open(self.root(), &name) {
                remove_remains(self.root(), &name)?;
            }
        }
        Ok(())
    }

    fn names_of_standbys(&self) -> Vec<String> {
        let names = self
            .record()
            .standbys
            .map(|standbys| standbys.names(&self.record().name));
        names.unwrap_or_default()
    }

    /// The directory of all sandboxes.
    fn root(&self) -> &Path {
        self.directory().parent().unwrap_or(Path::new("/"))
    }

    /// Stops it and its standbys.
    pub fn stop_all(&self) -> Result<(), SandboxError> {
        self.stop()?;
        self.standbys().iter().try_for_each(Sandbox::stop)
    }

    /// Starts those of its standbys that do not run, and waits until all have received its WAL. One
    /// that still has much of it to receive at the deadline is not an error.
    pub(super) fn start_standbys(&self) -> Result<(), SandboxError> {
        let standbys = self.standbys();
        standbys.iter().try_for_each(Sandbox::start)?;
        if standbys.is_empty() {
            return Ok(());
        }
        let deadline = Instant::now() + CONNECTED_WITHIN;
        let sql = "SELECT application_name, state = 'streaming' AND flush_lsn IS NOT NULL FROM pg_stat_replication \
                   WHERE state IN ('streaming', 'catchup')";
        let mut server =
            Server::connect(&self.by_socket()).map_err(|error| self.unfit(&error.to_string()))?;
        loop {
            let rows = server.rows("asking for its standbys", sql);
            let rows = rows.map_err(|error| self.unfit(&error.to_string()))?;
            let is_late = Instant::now() >= deadline;
            let is_missing = |standby: &&Sandbox| {
                let name = Some(&*standby.record().name);
                let of = rows.iter().find(|row| row[0].as_deref() == name);
                of.is_none_or(|row| row[1].as_deref() != Some("t") && !is_late)
            };
            let Some(missing) = standbys.iter().find(is_missing) else {
                return Ok(());
            };
            if is_late {
                return Err(self.unfit(&format!(
                    "its standby \"{}\" receives no WAL; {} says why",
                    missing.record().name,
                    missing.log_file().display()
                )));
            }
            pause(LOOK_AGAIN);
        }
    }

    /// Makes the data directory of a standby from its own, while its server is stopped for it; the
    /// lines for the standby's postgresql.conf.
    pub(super) fn replicate(&self, standby: &Record) -> Result<Vec<(String, String)>, SandboxError> {
        let slot = slot_of(&standby.name);
        let sql = format!("SELECT pg_create_physical_replication_slot('{slot}', true)");
        Server::connect(&self.by_socket())
            .and_then(|mut server| server.value("making a replication slot", &sql))
            .map_err(|error| self.unfit(&error.to_string()))?;
        self.stop()?;
        self.copy_into(&standby.data)?;
        let signal = standby.data.join(SIGNAL);
        Directory::open(&standby.data)
            .and_then(|data| data.replace(SIGNAL, b"", standby.owner(0o600)))
            .map_err(SandboxError::io(&signal, "written"))?;
        if self.record().network.is_some() {
            admit_this_machine(standby)?;
        }
        let socket = self
            .socket_directory()
            .to_string_lossy()
            .replace('\\', "\\\\")
            .replace('\'', "\\'");
        let primary = format!(
            "host='{socket}' port={} user=postgres application_name={}",
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
