//! `pgdyno sandbox`: private servers.

use crate::cli::SandboxCommand;
use crate::commands::restore;
use crate::context::Context;
use crate::failure::Result;
use crate::sandboxes::{create, disclaim, lock_sandbox};
use crate::{exit, show};
use pgdyno_sandbox::{Guard, Sandbox, SandboxError, State};
use serde_json::json;
use std::path::Path;

pub(crate) fn run(context: &Context, command: SandboxCommand) -> Result<u8> {
    let root = context.sandboxes();
    match command {
        SandboxCommand::Create(args) => {
            let sandbox = create(context, &args)?;
            disclaim(context, &args.name);
            put_page!("{}", how_to_connect(&sandbox));
        }
        SandboxCommand::Start { name } => {
            let _guard = lock_sandbox(context, &name, "sandbox start")?;
            let sandbox = Sandbox::open(&root, &name)?;
            let _guards = lock_standbys(context, &sandbox, "sandbox start")?;
            if sandbox.state() == State::Crashed {
                err!("the sandbox \"{name}\" had crashed; it recovers now");
            }
            sandbox.start()?;
            put_page!("{}", how_to_connect(&sandbox));
        }
        SandboxCommand::Stop { name } => {
            let _guard = lock_sandbox(context, &name, "sandbox stop")?;
            let sandbox = Sandbox::open(&root, &name)?;
            let _guards = lock_standbys(context, &sandbox, "sandbox stop")?;
            sandbox.stop_all()?;
        }
        SandboxCommand::Restart { name } => {
            let _guard = lock_sandbox(context, &name, "sandbox restart")?;
            let sandbox = Sandbox::open(&root, &name)?;
            let _guards = lock_standbys(context, &sandbox, "sandbox restart")?;
            sandbox.stop_all()?;
            sandbox.start()?;
        }
        SandboxCommand::List { json } => list(&root, json)?,
        SandboxCommand::Destroy { name } => destroy(context, &name)?,
    }
    Ok(exit::FINE)
}

/// Removes a sandbox, half-made or with a broken record too.
pub(crate) fn destroy(context: &Context, name: &str) -> Result<()> {
    let root = context.sandboxes();
    let _guard = lock_sandbox(context, name, "sandbox destroy")?;
    let opened = Sandbox::open(&root, name);
    if let Some(primary) = opened
        .as_ref()
        .ok()
        .and_then(|sandbox| primary_of(&root, sandbox))
    {
        fail!(
            "the sandbox \"{name}\" is a standby of \"{primary}\"; `pgdyno sandbox destroy {primary}` removes both"
        );
    }
    restore::before_destroying(context, name)?;
    match opened {
        Ok(sandbox) => {
            let _guards = lock_standbys(context, &sandbox, "sandbox destroy")?;
            for standby in sandbox.standbys() {
                restore::before_destroying(context, &standby.record().name)?;
            }
            sandbox.destroy()?;
        }
        Err(SandboxError::Record { .. }) => {
            pgdyno_sandbox::remove_remains(&root, name)?;
            err!(
                "the record of the sandbox \"{name}\" could not be read: what it had outside of {} stays (directories of --data, --wal and \
                 --temp, images, its control group)",
                root.join(name).display()
            );
        }
        Err(error) => return Err(error.into()),
    }
    disclaim(context, name);
    Ok(())
}

/// The sandbox that lists this one as its standby.
fn primary_of(root: &Path, standby: &Sandbox) -> Option<String> {
    let record = standby.record();
    let primary = Sandbox::open(root, record.standby_of.as_ref()?)
        .ok()?
        .record()
        .clone();
    let names = primary.standbys.map(|standbys| standbys.names(&primary.name));
    names
        .unwrap_or_default()
        .contains(&record.name)
        .then_some(primary.name)
}

/// Keeps other commands away from its standbys.
fn lock_standbys(context: &Context, sandbox: &Sandbox, command: &str) -> Result<Vec<Guard>> {
    let standbys = sandbox.standbys();
    let locked = standbys
        .iter()
        .map(|standby| lock_sandbox(context, &standby.record().name, command));
    locked.collect()
}

fn how_to_connect(sandbox: &Sandbox) -> String {
    let record = sandbox.record();
    let address = match &record.network {
        Some(network) => format!(
            "{}, over {} with an MTU of {} bytes",
            network.server_address, network.name, network.mtu_bytes
        ),
        None => match record.listen {
            Some(listen) => format!("127.0.0.1 and {}", listen.address),
            None => "127.0.0.1".to_owned(),
        },
    };
    let standbys = record.standbys.map_or_else(String::new, |standbys| {
        let wait = if standbys.is_sync {
            "; commits wait for one of them"
        } else {
            ""
        };
        format!(
            "\n  standbys:     {}{wait}",
            standbys.names(&record.name).join(", ")
        )
    });
    format!(
        "sandbox {}: PostgreSQL {} runs on port {} of {address}\n  for pgdyno:   sandbox:{}\n  for psql:     psql -h {} \
         -p {} -U postgres\n  over TCP:     user postgres, password in {}{standbys}",
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
                    "wal": record.wal, "temp": record.temp, "file_systems": record.file_systems, "network": record.network, "listen": record.listen,
                    "standby_of": record.standby_of, "standbys": record.standbys,
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
        err!("no sandboxes; `pgdyno sandbox create` makes one");
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
            let of = entry["standby_of"]
                .as_str()
                .map(|primary| format!(", standby of {primary}"));
            vec![
                text(&entry["name"]),
                text(&entry["state"]) + &of.unwrap_or_default(),
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
    let texts = those.iter().map(|own| {
        let size = own["size_bytes"].as_u64().map_or_else(String::new, show::bytes);
        let kind = own["kind"].as_str().unwrap_or_default();
        match own["holds"].as_str() {
            Some(part @ ("wal" | "temp")) => format!("{part}: {kind} {size}"),
            _ => format!("{kind} {size}"),
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}
