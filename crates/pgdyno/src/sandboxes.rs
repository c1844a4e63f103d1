//! Sandboxes of this home: locked for a command, made, and marked where an experiment has made them
//! for itself.

use crate::cli::CreateArgs;
use crate::context::{Context, stop_in_force};
use crate::failure::{Result, Usage};
use crate::progress;
use pgdyno_host::{Directory, Limits};
use pgdyno_sandbox::{Binaries, Guard, Plan, Sandbox, SandboxError, Standbys};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a command waits for another one that has the sandbox.
const PATIENCE: Duration = Duration::from_secs(30);

/// Locks a sandbox for `command`; says so if it has to wait.
pub(crate) fn lock_sandbox(context: &Context, name: &str, command: &str) -> Result<Guard> {
    lock_sandbox_in(&context.sandboxes(), name, command)
}

/// The same below any directory of sandboxes: another home's has its own.
pub(crate) fn lock_sandbox_in(root: &Path, name: &str, command: &str) -> Result<Guard> {
    Ok(pgdyno_sandbox::lock(
        root,
        name,
        command,
        PATIENCE,
        &mut |holder| {
            err!("waiting for the sandbox \"{name}\", which is in use by {holder}");
        },
    )?)
}

/// Fetches binaries if needed, makes the sandbox and starts it.
pub(crate) fn create(context: &Context, args: &CreateArgs) -> Result<Sandbox> {
    let file_systems = [args.filesystem, args.wal_filesystem, args.temp_filesystem];
    if args.image_directory.is_some() && file_systems.iter().all(Option::is_none) {
        let message = "--image-directory is for --filesystem, --wal-filesystem and --temp-filesystem";
        return Err(Usage(message.to_owned()).into());
    }
    let _guard = lock_sandbox(context, &args.name, "sandbox create")?;
    let standbys = args.standbys.map(|count| Standbys {
        count,
        is_sync: args.sync,
    });
    let plan = Plan {
        name: args.name.clone(),
        binaries: binaries(context, args.version, args.pg_bin.as_deref())?,
        data: args.data.clone(),
        wal: args.wal.clone(),
        temp: args.temp.clone(),
        data_file_system: args.filesystem,
        wal_file_system: args.wal_filesystem,
        temp_file_system: args.temp_filesystem,
        image_directory: args.image_directory.clone(),
        network: args.network,
        port: args.port,
        limits: Limits {
            cpus: args.cpus,
            memory_bytes: args.memory,
            iops: args.iops,
            bandwidth_bytes_per_s: args.bandwidth,
        },
        settings: args.settings.clone(),
        configuration: args.configuration.clone(),
        standbys,
        listen: args.listen,
    };
    let sandbox = pgdyno_sandbox::create(&context.sandboxes(), &plan)?;
    for gap in &sandbox.record().unlimited {
        err!("not limited: {}: {}", gap.limit, gap.why);
    }
    Ok(sandbox)
}

fn binaries(context: &Context, version: u32, directory: Option<&Path>) -> Result<Binaries, SandboxError> {
    if let Some(directory) = directory {
        return Binaries::in_directory(directory);
    }
    progress::show_downloads();
    context.binaries().of_major(version, &stop_in_force())
}

/// A sandbox that the user makes, or removes, is not an experiment's any more.
pub(crate) fn disclaim(context: &Context, name: &str) {
    // Where there is no mark there is nothing to remove.
    let _ = Directory::above(&mark_of(context, name)).and_then(|(marks, name)| marks.remove(name));
}

/// The file that says that a sandbox is an experiment's; it is there before the sandbox is.
pub(crate) fn mark_of(context: &Context, name: &str) -> PathBuf {
    marks(context).join(name)
}

/// Names of the sandboxes that experiments have made for themselves like another one; each mark
/// begins with the name of that.
pub(crate) fn made_like(context: &Context, base: &str) -> Vec<String> {
    let names = Directory::open(&marks(context)).and_then(|marks| marks.entries());
    let names = names.unwrap_or_default().into_iter();
    let names = names.map(|(name, _)| name.to_string_lossy().into_owned());
    let is_like = |name: &String| {
        let text = pgdyno_host::given_text(&mark_of(context, name));
        text.is_ok_and(|text| text.starts_with(&format!("{base}: ")))
    };
    names.filter(is_like).collect()
}

/// The directory of all marks.
pub(crate) fn marks(context: &Context) -> PathBuf {
    context.directories.state.join("stands")
}
