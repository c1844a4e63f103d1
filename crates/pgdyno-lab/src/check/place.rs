//! Whether the server runs on this host, and where files beside its data and its WAL can be made:
//! on the same volumes, outside the server's own directories wherever that is possible.

use super::Asked;
use crate::collect::data_here;
use pgdyno_host::HostAccess;
use pgdyno_server::{Conninfo, NotHere, Server, ServerError};
use std::path::{Path, PathBuf};

const ELSEWHERE: &str = "the host of the server is not this one";
const WAY_OUT: &str = "run it as root or as the server's user, or name a directory of that volume with --dir";

/// Where things are.
pub(super) struct Place {
    /// Whether this host is to be measured, or why not.
    pub(super) here: Result<(), String>,
    /// A directory on the data's volume.
    pub(super) data: Result<PathBuf, String>,
    /// A directory on the WAL's volume.
    pub(super) wal: Result<PathBuf, String>,
    /// Where files may have been made before.
    pub(super) searched: Vec<PathBuf>,
}

impl Place {
    pub(super) fn find(asked: &Asked<'_>, server: Option<&mut Server>) -> Place {
        let by_socket = asked.conninfo.is_some_and(Conninfo::is_by_socket);
        let data = match server {
            Some(server) => data_directory(&**asked.host, server),
            None => Err(NotHere::Unknown("no server was named".into())),
        };
        let here = match &data {
            _ if asked.host_only || by_socket => Ok(()),
            Ok(_) => Ok(()),
            Err(NotHere::Elsewhere) => Err(ELSEWHERE.to_owned()),
            Err(NotHere::Unknown(why)) => Err(format!(
                "whether the server runs on this host is not known: {why}; --host-only with --dir measures this host"
            )),
        };
        if let Some(directory) = &asked.directory {
            return Place {
                here,
                data: Ok(directory.clone()),
                wal: Ok(directory.clone()),
                searched: vec![directory.clone()],
            };
        }
        match data {
            Ok(data) => Place::beside(&**asked.host, &data, here),
            Err(not_found) => {
                let why = match not_found {
                    NotHere::Elsewhere => ELSEWHERE.to_owned(),
                    NotHere::Unknown(why) => why,
                };
                let why = format!("{why}; {WAY_OUT}");
                Place {
                    here,
                    data: Err(why.clone()),
                    wal: Err(why),
                    searched: Vec::new(),
                }
            }
        }
    }

    fn beside(host: &dyn HostAccess, data: &Path, here: Result<(), String>) -> Place {
        let link = data.join("pg_wal");
        let wal = match host.read_link(&text(&link)) {
            Ok(target) => data.join(target),
            Err(_) => link,
        };
        let candidates: Vec<PathBuf> = [data.parent(), Some(data), wal.parent(), Some(&wal)]
            .into_iter()
            .flatten()
            // A file in the root directory would be in everybody's way.
            .filter(|path| path.parent().is_some())
            .map(Path::to_owned)
            .collect();
        Place {
            here,
            data: choose(host, data, &candidates),
            wal: choose(host, &wal, &candidates),
            searched: candidates,
        }
    }
}

/// The first of some directories that is on the same volume as `near` and may be written to.
fn choose(host: &dyn HostAccess, near: &Path, candidates: &[PathBuf]) -> Result<PathBuf, String> {
    let volume = host
        .device_of(&text(near))
        .map_err(|error| format!("{error}; {WAY_OUT}"))?;
    let mut refused = None;
    for path in candidates {
        if host.device_of(&text(path)).is_ok_and(|found| found == volume) {
            match host.writable(&text(path)) {
                Ok(()) => return Ok(path.clone()),
                Err(error) => refused = Some(error.to_string()),
            }
        }
    }
    Err(format!("{}; {WAY_OUT}", refused.unwrap_or_default()))
}

/// The data directory, if it is one of this host's.
fn data_directory(host: &dyn HostAccess, server: &mut Server) -> Result<PathBuf, NotHere> {
    let shown = server.value("asking for data_directory", "SHOW data_directory");
    shown.map_err(|error| {
        NotHere::Unknown(match error {
            ServerError::Statement { sqlstate, .. } if sqlstate == "42501" => {
                let role = server.value("asking for the role", "SELECT quote_ident(current_user)");
                let role = role.ok().flatten().unwrap_or_else(|| "the role".into());
                format!("{role} may not read data_directory (GRANT pg_read_all_settings TO {role} allows it)")
            }
            error => error.to_string(),
        })
    })?;
    data_here(host, server)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_host::LocalHost;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_made_beside_the_directories_of_the_server_and_on_their_volumes() {
        let host = LocalHost::new();
        let (disk, memory) = (
            tempfile::tempdir_in("/var/tmp").unwrap(),
            tempfile::tempdir_in("/dev/shm").unwrap(),
        );
        let data = disk.path().join("data");
        fs::create_dir_all(data.join("pg_wal")).unwrap();
        let place = Place::beside(&host, &data, Ok(()));
        assert_eq!(place.data.as_deref(), Ok(disk.path()));
        assert_eq!(place.wal.as_deref(), Ok(disk.path()));

        fs::remove_dir(data.join("pg_wal")).unwrap();
        let wal = memory.path().join("wal");
        fs::create_dir(&wal).unwrap();
        symlink(&wal, data.join("pg_wal")).unwrap();
        let place = Place::beside(&host, &data, Ok(()));
        assert_eq!(place.data.as_deref(), Ok(disk.path()));
        assert_eq!(place.wal.as_deref(), Ok(memory.path()));

        fs::remove_dir(&wal).unwrap();
        let place = Place::beside(&host, &data, Ok(()));
        let why = place.wal.unwrap_err();
        assert!(why.contains("does not exist") && why.contains("--dir"), "{why}");
    }
}
