//! Standbys that a load goes to: their ways, and the wait until they have what their primary has.

use super::target::RealTarget;
use crate::error::LabError;
use crate::ports::{Drive, Server as _};
use crate::probe::ServerBeside;
use pgdyno_sandbox::Control;
use pgdyno_server::{Conninfo, Server, pause};
use std::time::{Duration, Instant};

/// Data that was just made is replayed within this time, or something keeps the standby from it.
const REPLAYED_WITHIN: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl RealTarget<'_> {
    /// The servers that a load goes to, the first of which is watched in whole: the treatment's
    /// server and the additional ones, or its standbys.
    pub(super) fn servers_of(
        &mut self,
        drive: &Drive<'_>,
        direct: &Conninfo,
    ) -> Result<Vec<ServerBeside>, LabError> {
        if drive.treatment.is_on_standbys() {
            return self.standbys(direct, drive.database);
        }
        let own = self.beside(drive.database)?;
        Ok(std::iter::once(own).chain(drive.beside.iter().cloned()).collect())
    }

    /// First processes of the server and its standbys, where it has any.
    pub(super) fn replicating(&self) -> Result<Vec<u32>, LabError> {
        let Control::Sandbox(sandbox) = &self.changer.target()?.control else {
            return Ok(Vec::new());
        };
        let standbys = sandbox.replicating().into_iter();
        Ok(standbys.chain(sandbox.pid()).collect())
    }

    /// The standbys, when they have replayed what the server has written.
    pub(super) fn standbys(
        &self,
        direct: &Conninfo,
        database: Option<&str>,
    ) -> Result<Vec<ServerBeside>, LabError> {
        let Control::Sandbox(sandbox) = &self.changer.target()?.control else {
            return Err(LabError::ForSandboxes("a load on standbys"));
        };
        let written = Server::connect(direct)?.value("asking for its WAL", "SELECT pg_current_wal_lsn()")?;
        let written = written.unwrap_or_default();
        let mut ways = Vec::new();
        for standby in sandbox.standbys() {
            let conninfo = standby.conninfo();
            wait_for_replay(&conninfo, &written)?;
            ways.push(ServerBeside {
                conninfo: match database {
                    Some(name) => conninfo.with_database(name),
                    None => conninfo,
                },
                postmaster: standby.pid(),
            });
        }
        Ok(ways)
    }
}

/// Waits until a standby has replayed the WAL up to a place.
fn wait_for_replay(standby: &Conninfo, written: &str) -> Result<(), LabError> {
    let deadline = Instant::now() + REPLAYED_WITHIN;
    let mut server = Server::connect(standby)?;
    let sql = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
    loop {
        if server.value("asking what it has replayed", &sql)?.as_deref() == Some("t") {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(LabError::StandbyBehind {
                place: standby.place(),
                seconds: REPLAYED_WITHIN.as_secs(),
            });
        }
        pause(LOOK_AGAIN);
    }
}
