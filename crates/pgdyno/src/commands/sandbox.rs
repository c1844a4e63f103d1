//! `pgdyno sandbox`: private servers.

use crate::cli::{CreateArgs, SandboxCommand};
use crate::commands::restore;
use crate::context::{Context, stop_in_force};
use crate::failure::Result;
use crate::failure::Usage;
use crate::target::lock_sandbox;
use crate::{exit, progress, show, stands};
use pgdyno_host::Limits;
use pgdyno_sandbox::{Binaries, Plan, Sandbox, SandboxError, State};
use serde_json::json;
use std::path::Path;

pub(crate) fn run(context: &Context, command: SandboxCommand) -> Result<u8> {
    let root = context.sandboxes();
    match command {
        SandboxCommand::Create(args) => {
            let sandbox = create(context, &args)?;
            stands::disclaim(context, &args.name);
            put_page!("{}", how_to_connect(&sandbox));
        }
        SandboxCommand::Start { name } => {
            let _guard = lock_sandbox(context, &name, "sandbox start")?;
            let sandbox = Sandbox::open(&root, &name)?;
            if sandbox.state() == State::Crashed {
                tell!("the sandbox \"{name}\" had crashed; it recovers now");
            }
            sandbox.start()?;
            put_page!("{}", how_to_connect(&sandbox));
        }
        SandboxCommand::Stop { name } => {
            let _guard = lock_sandbox(context, &name, "sandbox stop")?;
            Sandbox::open(&root, &name)?.stop()?;
        }
        SandboxCommand::Restart { name } => {
            let _guard = lock_sandbox(context, &name, "sandbox restart")?;
            let sandbox = Sandbox::open(&root, &name)?;
            sandbox.stop()?;
            sandbox.start()?;
        }
        SandboxCommand::List { json } => list(&root, json)?,
        SandboxCommand::Destroy { name } => destroy(context, &name)?,
    }
    Ok(exit::FINE)
}

/// Fetches binaries if needed, makes the sandbox and starts it.
pub(crate) fn create(context: &Context, args: &CreateArgs) -> Result<Sandbox> {
    if args.image_directory.is_some() && args.filesystem.is_none() && args.wal_filesystem.is_none() {
        let words = "--image-directory is for --filesystem and --wal-filesystem";
        return Err(Usage(words.to_owned()).into());
    }
    let _guard = lock_sandbox(context, &args.name, "sandbox create")?;
    let plan = Plan {
        name: args.name.clone(),
        binaries: binaries(context, args.version, args.pg_bin.as_deref())?,
        data: args.data.clone(),
        wal: args.wal.clone(),
        data_file_system: args.filesystem,
        wal_file_system: args.wal_filesystem,
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
    };
    let sandbox = pgdyno_sandbox::create(&context.sandboxes(), &plan)?;
    for gap in &sandbox.record().unlimited {
        tell!("not limited: {}: {}", gap.limit, gap.why);
    }
    Ok(sandbox)
}

fn binaries(context: &Context, version: u32, directory: Option<&Path>) -> Result<Binaries, SandboxError> {
    if let Some(directory) = directory {
        return Binaries::in_directory(directory);
    }
    progress::show_downloads();
    let cache = context.directories.cache.join("postgresql");
    let installed = context.directories.state.join("postgresql");
    Binaries::of_major(version, &cache, &installed, &stop_in_force())
}

/// Removes a sandbox, half-made or with a broken record too.
pub(crate) fn destroy(context: &Context, name: &str) -> Result<()> {
    let root = context.sandboxes();
    let _guard = lock_sandbox(context, name, "sandbox destroy")?;
    restore::before_destroying(context, name)?;
    match Sandbox::open(&root, name) {
        Ok(sandbox) => sandbox.destroy()?,
        Err(SandboxError::Record { .. }) => pgdyno_sandbox::remove_remains(&root, name)?,
        Err(error) => return Err(error.into()),
    }
    stands::disclaim(context, name);
    Ok(())
}

fn how_to_connect(sandbox: &Sandbox) -> String {
    let record = sandbox.record();
    let address = match &record.network {
        Some(network) => format!(
            "{}, over {} with an MTU of {} bytes",
            network.server_address, network.name, network.mtu_bytes
        ),
        None => "127.0.0.1".to_owned(),
    };
    format!(
        "sandbox {}: PostgreSQL {} runs on port {} of {address}\n  for pgdyno:   sandbox:{}\n  for psql:     psql -h {} \
         -p {} -U postgres\n  over TCP:     user postgres, password in {}",
        record.name,
        record.version,
        record.port,
        record.name,
        sandbox.socket_directory().display(),
        record.port,
        sandbox.directory().join("password").display()
    )
}

fn list(root: &Path, as_json: bool) -> Result<()> {
    let mut found = Vec::new();
    for name in pgdyno_sandbox::list_names(root)? {
        found.push(match Sandbox::open(root, &name) {
            Ok(sandbox) => {
                let record = sandbox.record();
                let state = match sandbox.state() {
                    State::Running(_) => "running",
                    State::Stopped => "stopped",
                    State::Crashed => "crashed",
                    State::HalfMade => "half-made",
                    State::Unmounted => "unmounted",
                };
                json!({
                    "name": name, "state": state, "version": record.version, "port": record.port,
                    "size_bytes": sandbox.size_bytes(), "data": record.data, "limits": record.limits,
                    "wal": record.wal, "file_systems": record.file_systems, "network": record.network,
                })
            }
            Err(error) => json!({ "name": name, "state": "half-made", "reason": error.to_string() }),
        });
    }
    if as_json {
        put_page!("{}", serde_json::to_string_pretty(&found)?);
        return Ok(());
    }
    if found.is_empty() {
        tell!("no sandboxes; `pgdyno sandbox create` makes one");
        return Ok(());
    }
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "\u{2013}".to_owned(),
        other => other.to_string(),
    };
    let rows = found
        .iter()
        .map(|entry| {
            let size = entry["size_bytes"]
                .as_u64()
                .map_or_else(|| "\u{2013}".to_owned(), show::bytes);
            vec![
                text(&entry["name"]),
                text(&entry["state"]),
                text(&entry["version"]),
                text(&entry["port"]),
                size,
                file_systems(entry),
                entry["network"]["mtu_bytes"]
                    .as_u64()
                    .map_or_else(|| "\u{2013}".to_owned(), |mtu| format!("mtu {mtu}")),
            ]
        })
        .collect();
    put_page!(
        "{}",
        show::table(
            &[
                "name",
                "state",
                "version",
                "port",
                "size",
                "file system",
                "network"
            ],
            &[3, 4],
            rows
        )
    );
    Ok(())
}

/// "ext4 4 GiB", "tmpfs 2 GiB, wal: xfs 1 GiB": those of a sandbox's own.
fn file_systems(entry: &serde_json::Value) -> String {
    let those = entry["file_systems"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if those.is_empty() {
        return "\u{2013}".to_owned();
    }
    let words = those.iter().map(|own| {
        let size = own["size_bytes"].as_u64().map_or_else(String::new, show::bytes);
        let kind = own["kind"].as_str().unwrap_or_default();
        match own["holds"].as_str() {
            Some("wal") => format!("wal: {kind} {size}"),
            _ => format!("{kind} {size}"),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}
