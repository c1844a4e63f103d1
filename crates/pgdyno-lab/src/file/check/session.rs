//! What must hold where settings are those of the load's own sessions, which have them from their
//! begin to their end.

use super::{Check, Checked};
use crate::file::choices::{Design, PoolerWord, Prewarm, SettingScope};

impl Check<'_> {
    pub(super) fn scope(&self) -> Checked {
        let file = self.file;
        if file.target.scope == SettingScope::Server {
            return Ok(());
        }
        let refuse = |why: &str| {
            Err(self.wrong(
                &["target", "scope"],
                format!("scope = \"session\" sets parameters when a session of the load starts: {why}"),
            ))
        };
        if file.design == Design::Switchback {
            return refuse("in a switchback all treatments share the sessions of one load");
        }
        if file.event.iter().any(|event| !event.settings.is_empty()) {
            return refuse("an event changes settings while sessions go on");
        }
        let parts = file.parts();
        let loads = parts.iter().map(|part| &part.load).chain([&file.load]);
        if loads.into_iter().any(|load| load.program.is_some()) {
            return refuse("another program may start its sessions differently");
        }
        let mut servers = parts.iter().map(|part| &part.server).chain([&file.server]);
        if servers.any(|server| server.pooler.is_some_and(|pooler| pooler != PoolerWord::None)) {
            return refuse("a pooler's sessions were started earlier");
        }
        let mut data = parts.iter().map(|part| &part.data).chain([&file.data]);
        if data.any(|data| data.prewarm == Some(Prewarm::Cold)) {
            return refuse("prewarm = \"cold\" restarts the server");
        }
        Ok(())
    }
}
