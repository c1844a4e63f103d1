//! Facts of a target, in groups, as they are stored.

use pgdyno_host::{Fact, HostAccess, host_facts, path_here, process_facts, same_device_fact, storage_facts};
use pgdyno_record::FactRecord;
use pgdyno_sandbox::{Manager, Sandbox};
use pgdyno_server::{Guc, NotHere, Server, ServerError, ServerFacts, Sought, server_facts};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

/// Facts of a machine alone, without a server.
pub fn collect_host_facts(host: &dyn HostAccess) -> Vec<FactRecord> {
    grouped("host", host_facts(host)).collect()
}

/// What was found out about a target.
#[derive(Debug, Clone)]
pub struct Collected {
    /// Facts in groups, as they are stored.
    pub facts: Vec<FactRecord>,
    /// All settings of the server that the role may see, secrets replaced.
    pub settings: Vec<Guc>,
}

/// Facts of the host (where it is this one), the server, and the sandbox it may be. Host and server
/// are read at the same time.
pub fn collect_facts(
    host: Option<&dyn HostAccess>,
    server: &mut Server,
    sandbox: Option<&Sandbox>,
) -> Result<Collected, ServerError> {
    let (of_host, found) = thread::scope(|scope| {
        let reader = host.map(|host| scope.spawn(move || host_facts(host)));
        let found = server_facts(server);
        let of_host = reader.map(|reader| reader.join().unwrap_or_else(|panic| resume_unwind(panic)));
        (of_host.unwrap_or_default(), found)
    });
    let found = found?;
    let mut facts: Vec<FactRecord> = grouped("host", of_host).collect();
    match host {
        Some(host) => {
            let sought = Sought::ask(server);
            let postmaster = sought.postmaster(host);
            facts.extend(grouped(
                "host",
                of_places_and_process(host, &found, postmaster.clone()),
            ));
            if sandbox.is_none() {
                facts.extend(grouped("server", manager_facts(host, &sought, postmaster)));
            }
        }
        None => facts.extend(grouped("host", vec![elsewhere()])),
    }
    facts.extend(grouped("server", found.facts));
    if let Some(sandbox) = sandbox {
        facts.extend(grouped("sandbox", sandbox_facts(sandbox)));
    }
    Ok(Collected {
        facts,
        settings: found.settings,
    })
}

/// Whether the server runs on this host, as far as this process can see it: reached over its own
/// socket or a sandbox's own network, or with its first process found here.
pub fn runs_here(host: &dyn HostAccess, server: &mut Server) -> bool {
    server.conninfo().is_here() || Sought::ask(server).postmaster_here(host).is_ok()
}

/// The path here of the server's data directory. Its name and port prove nothing: another host's
/// server may well have the same.
pub(crate) fn data_here(host: &dyn HostAccess, server: &mut Server) -> Result<PathBuf, NotHere> {
    let sought = Sought::ask(server);
    let postmaster = sought.postmaster_here(host)?;
    sought.data_here(host, postmaster).map_err(NotHere::Unknown)
}

fn elsewhere() -> Fact {
    let why = "the server is reached over a network, and its processes are not found on this machine; run pgdyno on the \
               server's own machine";
    Fact::unknown("host.facts", "/proc", why)
}

/// Where a server keeps what: (role, directory).
fn places(data: Option<PathBuf>, temporary: &[(String, PathBuf)]) -> Vec<(String, PathBuf)> {
    let Some(data) = data else {
        return Vec::new();
    };
    let temporary = temporary
        .iter()
        .map(|(name, directory)| (format!("temp.{name}"), directory.clone()));
    [
        ("data".to_owned(), data.clone()),
        ("wal".to_owned(), data.join("pg_wal")),
    ]
    .into_iter()
    .chain(temporary)
    .collect()
}

/// Storage below the server's directories, and its first process. Without the process nobody knows
/// whether a directory of that name is the server's: in a container it would be another one.
fn of_places_and_process(
    host: &dyn HostAccess,
    found: &ServerFacts,
    postmaster: Result<u32, String>,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    // Its first process works in its data directory: that is seen where the server does not report
    // it.
    let at_work = |pid: &u32| {
        host.read_link(&format!("/proc/{pid}/cwd"))
            .ok()
            .map(PathBuf::from)
    };
    let data = found.data_directory.clone();
    let places = places(
        data.or_else(|| postmaster.as_ref().ok().and_then(at_work)),
        &found.temp_directories,
    );
    if places.is_empty() {
        let role = found.facts.iter().find(|fact| fact.name == "role.name");
        // As the server quotes it.
        let role = role.and_then(|fact| fact.value.as_ref()?.as_str());
        let way = role.map_or_else(
            || "membership in pg_read_all_settings shows it".to_owned(),
            |role| format!("GRANT pg_read_all_settings TO {role} shows it"),
        );
        let why = format!(
            "this role may not read the server's data directory; {way}, and root sees where the server works"
        );
        facts.push(Fact::unknown("storage.data.path", "data_directory", why));
    }
    let mut here = Vec::new();
    for (role, place) in &places {
        let path = place.to_string_lossy();
        match postmaster
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|pid| path_here(host, *pid, &path))
        {
            Ok(path) => {
                facts.extend(storage_facts(host, role, &path));
                here.push(Some(path));
            }
            Err(why) => {
                facts.push(Fact::unknown(&format!("storage.{role}.path"), &path, why));
                here.push(None);
            }
        }
    }
    if let [Some(data), Some(wal), ..] = here.as_slice() {
        facts.push(same_device_fact(host, data, wal));
    }
    match postmaster {
        Ok(pid) => facts.extend(process_facts(host, pid)),
        Err(why) => facts.push(Fact::unknown("process.pid", "postmaster.pid, /proc", why)),
    }
    facts
}

/// What starts and stops the server, by its first process.
fn manager_facts(host: &dyn HostAccess, sought: &Sought, postmaster: Result<u32, String>) -> Vec<Fact> {
    let found = postmaster.and_then(|pid| Manager::find(host, pid, &sought.data_here(host, pid)?));
    let source = "the first process's control group, parent and arguments; systemctl show, container inspect";
    match found {
        Ok(manager) => vec![
            Fact::known("manager.kind", source, manager.kind()),
            Fact::known("manager.restart", source, manager.to_string()),
        ],
        Err(why) => vec![Fact::unknown("manager.kind", source, why)],
    }
}

fn grouped(group: &str, facts: Vec<Fact>) -> impl Iterator<Item = FactRecord> {
    facts.into_iter().map(move |fact| FactRecord {
        group: group.to_owned(),
        name: fact.name,
        value: fact.value,
        missing: fact.missing,
        source: fact.source,
    })
}

fn sandbox_facts(sandbox: &Sandbox) -> Vec<Fact> {
    const RECORD: &str = "the sandbox's record";
    let record = sandbox.record();
    let limits = &record.limits;
    let mut facts = vec![
        Fact::known("sandbox.name", RECORD, record.name.clone()),
        Fact::known("sandbox.binaries", RECORD, record.bin.display().to_string()),
    ];
    let number = |name: &str, limit: Option<u64>| match limit {
        Some(limit) => Fact::known(name, RECORD, limit),
        None => Fact::known(name, RECORD, "none"),
    };
    facts.push(match limits.cpus {
        Some(cpus) => Fact::known("sandbox.limits.cpus", RECORD, cpus),
        None => Fact::known("sandbox.limits.cpus", RECORD, "none"),
    });
    facts.extend([
        number("sandbox.limits.memory_bytes", limits.memory_bytes),
        number("sandbox.limits.iops", limits.iops),
        number(
            "sandbox.limits.bandwidth_bytes_per_s",
            limits.bandwidth_bytes_per_s,
        ),
    ]);
    let mut gaps: Vec<String> = record
        .unlimited
        .iter()
        .map(|gap| format!("{}: {}", gap.limit, gap.why))
        .collect();
    if limits.memory_bytes.is_some() {
        gaps.push(
            "huge pages: the memory limit does not count them, so a server that uses them has that much more memory".into(),
        );
    }
    if !gaps.is_empty() {
        facts.push(Fact::known("sandbox.not_limited", "cgroup", gaps));
    }
    facts
}
