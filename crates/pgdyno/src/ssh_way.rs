//! The way to hosts over ssh: the user's program, and ours for hosts of each kind.

use crate::context::{Context, variable};
use crate::failure::{Result, Usage};
use pgdyno_remote::{AgentBinary, BinaryError};
use std::path::{Path, PathBuf};

/// Where packages put the programs for hosts of other architectures.
const PACKAGED: &str = "/usr/lib/pgdyno/agents";
/// Variables of this host that a command finds on the other one: what identifies this user to a server. Everything else is the other
/// host's.
pub(crate) const CARRIED: [&str; 1] = ["PGPASSWORD"];

/// The user's ssh with its first arguments, `PGDYNO_SSH` where that is set.
pub(crate) fn ssh_program() -> Result<Vec<String>> {
    let Some(named) = variable("PGDYNO_SSH") else {
        return Ok(vec!["ssh".to_owned()]);
    };
    let words: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
    match words.is_empty() {
        true => Err(Usage("PGDYNO_SSH names no program".into()).into()),
        false => Ok(words),
    }
}

/// The program for a host: this one for one of the same architecture, else one that was put beside.
pub(crate) fn binary(context: &Context, machine: &str) -> std::result::Result<AgentBinary, BinaryError> {
    if machine == std::env::consts::ARCH {
        return AgentBinary::read(Path::new("/proc/self/exe"));
    }
    let own = context.directories.data.join("agents");
    let of = |place: &Path| place.join(machine).join("pgdyno");
    let found: Option<PathBuf> = [of(&own), of(Path::new(PACKAGED))]
        .into_iter()
        .find(|path| path.exists());
    match found {
        Some(path) => AgentBinary::read(&path),
        None => Err(BinaryError::None {
            machine: machine.to_owned(),
            place: of(&own),
        }),
    }
}
