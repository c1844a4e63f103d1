//! Which CPUs a load and a sandbox's server share: for a single client it can move throughput
//! several-fold.

use crate::cli::PlacementName;
use crate::failure::{Refused, Result, Usage};
use pgdyno_sandbox::{Sandbox, SandboxError};
use rustix::thread::sched_getaffinity;
use serde_json::{Value, json};

/// Where both sides run. Dropped, it lets the server run again where it ran before.
pub(crate) struct Placement<'a> {
    name: PlacementName,
    /// A sandbox whose server is bound, and the CPUs that it had before.
    bound: Option<(&'a Sandbox, Vec<usize>)>,
    /// The load's CPUs; all of them where nothing is bound.
    pub(crate) client: Vec<usize>,
    server: Option<Vec<usize>>,
}

impl<'a> Placement<'a> {
    /// Binds the sandbox's server where that is asked for; the load's threads bind themselves.
    pub(crate) fn new(name: PlacementName, sandbox: Option<&'a Sandbox>) -> Result<Placement<'a>> {
        let set = sched_getaffinity(None)?;
        let all: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|&cpu| set.is_set(cpu))
            .collect();
        let (client, server) = match name {
            PlacementName::Free => {
                return Ok(Placement {
                    name,
                    bound: None,
                    client: all,
                    server: sandbox.and_then(Sandbox::cpus),
                });
            }
            PlacementName::Split if all.len() < 2 => {
                return Err(Usage("--placement split needs at least two CPUs".into()).into());
            }
            PlacementName::Split => {
                let (server, client) = all.split_at(all.len().div_ceil(2));
                (client.to_vec(), server.to_vec())
            }
            PlacementName::SameCore => (all[..1].to_vec(), all[..1].to_vec()),
        };
        let Some(sandbox) = sandbox else {
            let message = "--placement binds the processes of sandboxes only; bind another server's with taskset or its unit's CPUAffinity";
            return Err(Refused(message.into()).into());
        };
        let before = sandbox.cpus().unwrap_or(all);
        let placement = Placement {
            name,
            bound: Some((sandbox, before)),
            client,
            server: Some(server.clone()),
        };
        sandbox.bind_to_cpus(&server)?;
        Ok(placement)
    }

    /// The CPUs that the load's threads are to be bound to; none where they are free.
    pub(crate) fn bound(&self) -> Vec<usize> {
        match self.name {
            PlacementName::Free => Vec::new(),
            _ => self.client.clone(),
        }
    }

    /// The placement as a member of the result's JSON.
    pub(crate) fn as_json(&self) -> Value {
        json!({ "name": self.name.word(), "client_cpus": self.client, "server_cpus": self.server })
    }

    /// The placement as text.
    pub(crate) fn text(&self) -> String {
        let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        match &self.server {
            Some(server) => format!(
                "{}: client on CPUs {}, server on {}",
                self.name.word(),
                list(&self.client),
                list(server)
            ),
            None => format!("{}: client on CPUs {}", self.name.word(), list(&self.client)),
        }
    }
}

impl Drop for Placement<'_> {
    fn drop(&mut self) {
        if let Some((sandbox, before)) = &self.bound {
            let freed: Result<(), SandboxError> = sandbox.bind_to_cpus(before);
            if let Err(error) = freed {
                err!("the sandbox's server stays on its CPUs until it is restarted: {error}");
            }
        }
    }
}
