//! The way to hosts over ssh: the user's program, and ours for hosts of each kind.

use crate::context::{Context, variable};
use crate::failure::{InContext as _, Result, Usage};
use pgdyno_host::given_text;
use pgdyno_remote::{
    AgentBinary, BinaryError, Host, Inventory, InventoryHost, Listener, RemoteError, Request, SshHost, SshWay,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Where packages put the programs for hosts of other architectures.
const PACKAGED: &str = "/usr/lib/pgdyno/agents";
/// Variables of this host that a command finds on the other one: what identifies this user to a
/// server. Everything else is the other host's.
pub(crate) const CARRIED: [&str; 1] = ["PGPASSWORD"];

/// For ssh: a host that does not answer holds up nobody, and neither does one that asks.
const CONNECT: [&str; 4] = ["-o", "ConnectTimeout=10", "-o", "BatchMode=yes"];
/// Nor does one that answers and hangs, where nobody types a password.
const GREETS_WITHIN: Duration = Duration::from_secs(60);

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

/// The hosts of a group of an inventory, one at least.
pub(crate) fn hosts_of(file: &Path, group: &str) -> Result<Vec<InventoryHost>> {
    let text = given_text(file).with_context(|| format!("{} could not be read", file.display()))?;
    let is_yaml = file
        .extension()
        .is_some_and(|extension| extension == "yml" || extension == "yaml");
    let wrong = |error| Usage(format!("{}: {error}", file.display()));
    let inventory = Inventory::parse(&text, is_yaml).map_err(wrong)?;
    let hosts = inventory.hosts_of(group).map_err(wrong)?;
    match hosts.is_empty() {
        true => Err(Usage(format!("{}: there is no host in that group", file.display())).into()),
        false => Ok(hosts),
    }
}

/// The way to a host, by the user's ssh with these first arguments; `sudo`: with root's rights
/// there.
pub(crate) fn way<'a>(program: &'a [String], host: &'a SshHost, sudo: bool) -> SshWay<'a> {
    SshWay {
        program,
        host,
        sudo,
        hidden: &CARRIED,
        greets_within: None,
    }
}

/// The user's ssh with its first arguments, for one of several hosts.
pub(crate) fn ssh_to_several(options: &[String]) -> Result<Vec<String>> {
    let mut program = ssh_program()?;
    program.extend(options.iter().cloned());
    program.extend(CONNECT.map(str::to_owned));
    Ok(program)
}

/// In place of ssh, for this host: a shell that executes the last of ssh's arguments, the command.
const HERE: [&str; 4] = [
    "sh",
    "-c",
    "while [ $# -gt 1 ]; do shift; done; exec sh -c \"$1\"",
    "sh",
];

/// By which program a host of an inventory is reached, and under which name.
pub(crate) fn program_and_host(host: &InventoryHost) -> Result<(Vec<String>, SshHost)> {
    match &host.ssh {
        Some(ssh) => Ok((ssh_to_several(&host.options)?, ssh.clone())),
        None => Ok((
            HERE.map(str::to_owned).to_vec(),
            "ssh:localhost".parse::<SshHost>().map_err(Usage)?,
        )),
    }
}

/// The way to one of several hosts, none of which holds up the others.
pub(crate) fn way_of_several<'a>(program: &'a [String], host: &'a SshHost, sudo: bool) -> SshWay<'a> {
    SshWay {
        greets_within: Some(GREETS_WITHIN),
        ..way(program, host, sudo)
    }
}

/// Runs a command on a host; its exit code.
pub(crate) fn run_on(
    context: &Context,
    way: SshWay<'_>,
    request: &Request,
    listener: &mut dyn Listener,
    stop: &AtomicBool,
) -> std::result::Result<u8, RemoteError> {
    let host = Host {
        way,
        version: env!("CARGO_PKG_VERSION"),
        binary_for: &|machine: &str| binary(context, machine),
    };
    host.run(request, listener, stop)
}

/// How often a request to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a host has to end in order.
const END_MAX: Duration = Duration::from_secs(30);

/// Hands a request to stop on to the commands on several hosts, each of which clears its own when
/// it is sent, until `is_over`. Those that take long are asked a second time, which ends their
/// connections.
pub(crate) fn hand_on_stop<'a>(
    is_asked: &dyn Fn() -> bool,
    to: impl Iterator<Item = &'a AtomicBool> + Clone,
    is_over: &AtomicBool,
) {
    let mut asked: Option<Instant> = None;
    while !is_over.load(Ordering::Relaxed) {
        if is_asked() && asked.is_none_or(|asked| asked.elapsed() > END_MAX) {
            asked = Some(Instant::now());
            to.clone().for_each(|stop| stop.store(true, Ordering::Relaxed));
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

/// The program for a host, which is read once for all hosts of its architecture.
fn binary(context: &Context, machine: &str) -> std::result::Result<AgentBinary, BinaryError> {
    static KNOWN: Mutex<BTreeMap<String, AgentBinary>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(machine) {
        return Ok(known.clone());
    }
    let read = read_binary(context, machine)?;
    known.insert(machine.to_owned(), read.clone());
    Ok(read)
}

/// This one for a host of the same architecture, else one that was put beside.
fn read_binary(context: &Context, machine: &str) -> std::result::Result<AgentBinary, BinaryError> {
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
