//! What must hold where several hosts drive a load.

use super::{Check, Checked, NO_PASSWORD, holds_password};
use crate::file::choices::Design;
use crate::file::parts::{LoadPart, ServerPart};

/// More hosts of a load are a mistake in the file.
pub const LOAD_HOSTS_MAX: usize = 100;

impl Check<'_> {
    pub(super) fn hosts(&self) -> Checked {
        let file = self.file;
        let parts = file.parts();
        let whole = std::iter::once((file.load.clone(), file.server.clone()));
        let parts = parts
            .iter()
            .map(|part| (part.load.over(&file.load), part.server.over(&file.server)));
        whole.chain(parts).try_for_each(|(load, server)| {
            let key = &["load", "connection"];
            self.must(load.hosts.is_some() || load.connection.is_none(), key, || {
                "connection is how load hosts reach the server: name the hosts with hosts = [...]".into()
            })?;
            match load.hosts {
                Some(_) => self.hosts_of(&load, &server),
                None => Ok(()),
            }
        })
    }

    fn hosts_of(&self, load: &LoadPart, server: &ServerPart) -> Checked {
        let hosts = load.hosts.as_deref().unwrap_or_default();
        let key = &["load", "hosts"];
        self.must((1..=LOAD_HOSTS_MAX).contains(&hosts.len()), key, || {
            format!(
                "hosts names {} hosts: expected 1 to {LOAD_HOSTS_MAX}",
                hosts.len()
            )
        })?;
        let connection = load.connection.as_deref().unwrap_or_default();
        self.must(!holds_password(connection), &["load", "connection"], || {
            NO_PASSWORD.into()
        })?;
        let has_host = ["host=", "hostaddr=", "://"]
            .iter()
            .any(|word| connection.contains(word));
        self.must(
            load.connection.is_none() || has_host,
            &["load", "connection"],
            || "connection names no host: expected host=... as the load hosts reach the server".into(),
        )?;
        let is_name = |name: &str| {
            let first = name.chars().next();
            let is_odd = |c: char| c.is_whitespace() || c.is_control();
            first.is_some_and(|first| first != '-') && !name.contains(is_odd)
        };
        let is_known = |host: &String| host == "local" || host.strip_prefix("ssh:").is_some_and(is_name);
        if let Some(other) = hosts.iter().find(|host| !is_known(host)) {
            return Err(self.wrong(
                key,
                format!("\"{other}\" is not a host of a load: expected \"local\" or \"ssh:NAME\""),
            ));
        }
        let clients = load.clients.unwrap_or(u32::MAX) as usize;
        self.must(hosts.len() <= clients, key, || {
            format!(
                "{} hosts for {clients} clients: each needs one at least",
                hosts.len()
            )
        })?;
        let is_plain = load.program.is_none() && load.cpus.is_none() && load.settle != Some(true);
        self.must(is_plain, key, || {
            "hosts needs pgdyno's own clients and a fixed warm-up: remove program, cpus and settle".into()
        })?;
        let is_afar = hosts.iter().any(|host| host != "local");
        self.must(!is_afar || server.pooler.is_none(), key, || {
            "the pooler accepts connections from its own host only: remove the hosts = [\"ssh:...\"] or the pooler".into()
        })?;
        self.must(self.file.design != Design::Switchback, key, || {
            "design = \"switchback\" takes turns within one process: remove hosts".into()
        })
    }
}
