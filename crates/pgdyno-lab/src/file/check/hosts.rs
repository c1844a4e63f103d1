//! What must hold where several hosts drive a load.

use super::{Check, Checked};
use crate::file::choices::Design;
use crate::file::parts::LoadPart;

/// More hosts are a mistake in the file.
const HOSTS_MAX: usize = 100;

impl Check<'_> {
    pub(super) fn hosts(&self) -> Checked {
        let file = self.file;
        let parts = file.parts();
        let loads =
            std::iter::once(file.load.clone()).chain(parts.iter().map(|part| part.load.over(&file.load)));
        loads
            .filter(|load| load.hosts.is_some())
            .try_for_each(|load| self.hosts_of(&load))
    }

    fn hosts_of(&self, load: &LoadPart) -> Checked {
        let hosts = load.hosts.as_deref().unwrap_or_default();
        let key = &["load", "hosts"];
        self.must((1..=HOSTS_MAX).contains(&hosts.len()), key, || {
            format!("hosts = {} of them: expected 1 to {HOSTS_MAX}", hosts.len())
        })?;
        let is_known = |host: &String| host == "local" || host.starts_with("ssh:");
        if let Some(other) = hosts.iter().find(|host| !is_known(host)) {
            return Err(self.wrong(
                key,
                format!("\"{other}\" is no host of a load: expected \"local\" or \"ssh:NAME\""),
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
            "hosts drive pgdyno's own clients, on CPUs of their kernels' choice, after a warm-up of a length: neither program nor cpus nor \
             settle = true"
                .into()
        })?;
        self.must(self.file.design != Design::Switchback, key, || {
            "design = \"switchback\" takes turns within one process: hosts is of other designs".into()
        })
    }
}
