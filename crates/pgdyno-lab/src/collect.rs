//! Facts of a target, in groups, as they are stored.

use pgdyno_host::{Fact, HostAccess, host_facts, storage_facts};
use pgdyno_server::sandbox::Sandbox;
use pgdyno_server::{Server, ServerError, server_facts};
use pgdyno_store::FactRecord;

/// Facts of the host (where it is this one), the server, and the sandbox it may be.
pub fn collect_facts(
    host: Option<&dyn HostAccess>,
    server: &mut Server,
    sandbox: Option<&Sandbox>,
) -> Result<Vec<FactRecord>, ServerError> {
    let found = server_facts(server)?;
    let mut facts = Vec::new();
    if let Some(host) = host {
        facts.extend(grouped("host", host_facts(host)));
        if let Some(data) = &found.data_directory {
            let data = data.to_string_lossy();
            facts.extend(grouped("host", storage_facts(host, "data", &data)));
            facts.extend(grouped(
                "host",
                storage_facts(host, "wal", &format!("{data}/pg_wal")),
            ));
        }
    }
    facts.extend(grouped("server", found.facts));
    if let Some(sandbox) = sandbox {
        facts.extend(grouped("sandbox", sandbox_facts(sandbox)));
    }
    Ok(facts)
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
    let record = sandbox.record();
    let limits = &record.limits;
    let no_limit = || "none".to_owned();
    let pairs = [
        ("name", record.name.clone()),
        ("binaries", record.bin.display().to_string()),
        ("limit_cpus", limits.cpus.map_or_else(no_limit, |v| v.to_string())),
        (
            "limit_memory_bytes",
            limits.memory_bytes.map_or_else(no_limit, |v| v.to_string()),
        ),
        ("limit_iops", limits.iops.map_or_else(no_limit, |v| v.to_string())),
        (
            "limit_bandwidth_bytes_per_s",
            limits
                .bandwidth_bytes_per_s
                .map_or_else(no_limit, |v| v.to_string()),
        ),
    ];
    let mut facts: Vec<Fact> = pairs
        .into_iter()
        .map(|(name, value)| Fact::known(name, "the sandbox's record", value))
        .collect();
    for gap in &record.unlimited {
        let name = format!("not_limited: {}", gap.limit);
        facts.push(Fact::known(&name, "cgroup", gap.why.clone()));
    }
    if limits.memory_bytes.is_some() {
        let why = "huge pages stand outside the memory limit: a server that takes them has that much more";
        facts.push(Fact::known("not_limited: huge pages", "cgroup", why));
    }
    facts
}
