//! The tablespace of temporary files, where these are on a device of their own.

use super::{Sandbox, SandboxError};
use pgdyno_server::{Server, ServerError};
use std::path::Path;

/// Name of the tablespace, which `temp_tablespaces` names.
pub(super) const TEMP_TABLESPACE: &str = "pgdyno_temp";

impl Sandbox {
    /// Makes the tablespace where it is missing: when the sandbox is made, and after its memory has gone with a restart of the machine.
    pub(super) fn ensure_temp(&self) -> Result<(), SandboxError> {
        let Some(place) = &self.record.temp else {
            return Ok(());
        };
        let is_there = Path::read_dir(place).is_ok_and(|mut entries| entries.next().is_some());
        if is_there {
            return Ok(());
        }
        self.make_temp(place)
            .map_err(|error| self.unfit(&format!("the tablespace of temporary files: {error}")))
    }

    fn make_temp(&self, place: &Path) -> Result<(), ServerError> {
        let what = "making the tablespace of temporary files";
        let location = place.to_string_lossy().replace('\'', "''");
        let mut server = Server::connect(&self.by_socket())?;
        // What is left of one whose files are gone.
        server.execute(what, &format!("DROP TABLESPACE IF EXISTS {TEMP_TABLESPACE}"))?;
        server.execute(
            what,
            &format!("CREATE TABLESPACE {TEMP_TABLESPACE} LOCATION '{location}'"),
        )?;
        server.execute(
            what,
            &format!("GRANT CREATE ON TABLESPACE {TEMP_TABLESPACE} TO PUBLIC"),
        )
    }
}
