//! The tablespace of temporary files, where these are on a device of their own.

use super::{Sandbox, SandboxError};
use pgdyno_host::Directory;
use pgdyno_server::{Server, ServerError};
use std::path::Path;

/// Name of the tablespace, which `temp_tablespaces` names.
pub(super) const TEMP_TABLESPACE: &str = "pgdyno_temp";

impl Sandbox {
    /// Makes the tablespace where it is missing or half-made: when the sandbox is made, and after
    /// its memory has gone with a restart of the machine.
    pub(super) fn ensure_temp(&self) -> Result<(), SandboxError> {
        let Some(place) = &self.record.temp else {
            return Ok(());
        };
        let unfit = |error: &dyn ToString| {
            self.unfit(&format!(
                "the tablespace of temporary files: {}",
                error.to_string()
            ))
        };
        let mut server = Server::connect(&self.by_socket()).map_err(|error| unfit(&error))?;
        let has_files = Path::read_dir(place).is_ok_and(|mut entries| entries.next().is_some());
        // The right is granted last.
        let sql =
            format!("SELECT 1 FROM pg_tablespace WHERE spcname = '{TEMP_TABLESPACE}' AND spcacl IS NOT NULL");
        let known = server.value("looking for the tablespace of temporary files", &sql);
        if has_files && known.map_err(|error| unfit(&error))?.is_some() {
            return Ok(());
        }
        make(&mut server, place).map_err(|error| unfit(&error))
    }
}

fn make(server: &mut Server, place: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut run = |sql: String| -> Result<(), ServerError> {
        server.execute("making the tablespace of temporary files", &sql)
    };
    // What is left of one whose files are gone, and files of one that is not known.
    run(format!("DROP TABLESPACE IF EXISTS {TEMP_TABLESPACE}"))?;
    Directory::open(place)?.empty(&[])?;
    let location = place.to_string_lossy().replace('\'', "''");
    run(format!(
        "CREATE TABLESPACE {TEMP_TABLESPACE} LOCATION '{location}'"
    ))?;
    Ok(run(format!(
        "GRANT CREATE ON TABLESPACE {TEMP_TABLESPACE} TO PUBLIC"
    ))?)
}
