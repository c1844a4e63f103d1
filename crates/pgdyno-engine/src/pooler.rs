//! Whether prepared statements stay with their session, asked before a load that needs them.
//!
//! A pooler in transaction mode gives each transaction any of its sessions. What was prepared in
//! one is not there in the next, and thousands of transactions would fail for it.

use crate::connection::{ConnectError, Startup};
use crate::endpoint::Endpoint;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::io;
use std::time::Duration;

/// Not a name that the load or the driver gives to a statement.
const NAME: &str = "pgdyno_kept";
/// A pooler that has no second session to give lets one wait, and nothing is learnt.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prepares a statement in one session and looks for it when another one may have taken its place.
/// An error says that it is gone, or that there is no connection at all.
pub fn keeps_prepared_statements(endpoint: &Endpoint) -> Result<(), ConnectError> {
    let mut owner = Startup::begin(endpoint)?;
    let mut other = Startup::begin(endpoint)?;
    let prepared = owner.do_all(&request(|bytes| {
        frontend::parse(NAME, "SELECT 1", [], bytes)?;
        frontend::sync(bytes);
        Ok(())
    }));
    prepared.map_err(|error| owner.of_prepared(error))?;
    // The pooler's session is free again, and the one that became free last is mostly the next to
    // be given away.
    other.do_all(&request(|bytes| frontend::query("BEGIN", bytes)))?;
    owner.set_timeout(PATIENCE);
    let found = owner.do_all(&request(|bytes| {
        frontend::describe(b'S', NAME, bytes)?;
        frontend::sync(bytes);
        Ok(())
    }));
    // Nothing is left behind, in whichever of the two sessions it was prepared.
    let close = request(|bytes| {
        frontend::close(b'S', NAME, bytes)?;
        frontend::sync(bytes);
        Ok(())
    });
    let commit = request(|bytes| frontend::query("COMMIT", bytes));
    let _ = other.do_all(&close).and_then(|()| other.do_all(&commit));
    let _ = owner.do_all(&close);
    owner.end();
    other.end();
    match found {
        Err(ConnectError::Unreachable { source, .. })
            if matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Ok(())
        }
        Err(error) => Err(owner.of_prepared(error)),
        Ok(()) => Ok(()),
    }
}

fn request(write: impl FnOnce(&mut BytesMut) -> io::Result<()>) -> BytesMut {
    let mut bytes = BytesMut::new();
    write(&mut bytes).expect("constant texts hold no zero");
    bytes
}
