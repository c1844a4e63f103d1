//! The server of a journal: connects to it, restores its parameters, and starts or stops it as it
//! was.

use super::group::Group;
use super::{Note, Outcome, Restored, Restorer, foreign_message};
use crate::journal::{Content, Entry};
use crate::target::other_than;
use crate::undo::{SavedState, ServerRef, UndoUnit, UndoUnitError, in_auto_conf};
use pgdyno_sandbox::{Control, Down, Managed, Sandbox, State};
use pgdyno_server::{
    Conninfo, Found, Postmaster, Server, ServerError, alter_system_reset, alter_system_set, pause, reload,
};
use std::path::Path;
use std::time::{Duration, Instant};

/// A server reads its files within this time after a signal to reload them.
const RELOADS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What a server has made of a reload.
enum Reloaded {
    /// Names of the settings that still wait for a restart; empty where none does.
    Waiting(String),
    /// It has not read its files again, for there is a fault in them: a restart would end it.
    NotRead,
}

impl Restorer<'_> {
    pub(super) fn conninfo_of(
        &self,
        control: &Control,
        reference: Option<&ServerRef>,
    ) -> Result<Conninfo, String> {
        match (control, reference) {
            (Control::Sandbox(sandbox), _) => Ok(sandbox.conninfo()),
            (_, Some(ServerRef::Address { conninfo, .. })) => {
                self.resolve(conninfo).map_err(|e| e.to_string())
            }
            _ => Err("the journal names no server".to_owned()),
        }
    }

    /// How a journal's server is asked now; `None` for one that names none.
    pub(crate) fn asked(&self, content: &Content) -> Option<Result<Conninfo, String>> {
        let reference = content.purpose.server.as_ref()?;
        Some(
            self.reach(reference)
                .and_then(|control| self.conninfo_of(&control, Some(reference))),
        )
    }

    fn resolve(&self, conninfo: &str) -> Result<Conninfo, ServerError> {
        match &self.conninfo {
            Some(known) => Ok(known.clone()),
            None => Found::find_or_await(conninfo, self.environment),
        }
    }

    /// Why nothing is restored in a server: one that is not a sandbox lets nobody in, a sandbox
    /// would have to be stopped while the host boots, or an address leads to another server than
    /// the one of this `key`. `None` where none of these is so, or where it does not run.
    pub(super) fn closed(&self, reference: &ServerRef, key: Option<&str>) -> Option<String> {
        let conninfo = match reference {
            ServerRef::Address { conninfo, .. } => conninfo,
            ServerRef::Sandbox { root, name } => {
                let sandbox = Sandbox::open(root, name).ok().filter(|_| self.options.at_boot)?;
                return matches!(sandbox.state(), State::Running(_)).then(|| {
                    format!("not restored: the sandbox {name} runs, and nothing is stopped at boot; `pgdyno restore` restores it")
                });
            }
        };
        let connected = self
            .resolve(conninfo)
            .and_then(|conninfo| Server::connect(&conninfo));
        match connected {
            Err(error @ ServerError::Login { .. }) => Some(format!(
                "not restored: {error}; a journal holds no password: set PGPASSWORD, or a line in the file that PGPASSFILE names, \
                 and run `pgdyno restore` again"
            )),
            Ok(_) if self.options.overwrites => None,
            Ok(mut server) => {
                let (key, found) = (key?, other_than(&mut server, key?)?);
                Some(format!(
                    "not restored: the server that answers is one {found}, and what was changed is of one {key}; \
                     `pgdyno restore --force` restores it there all the same"
                ))
            }
            _ => None,
        }
    }

    pub(super) fn reach(&self, reference: &ServerRef) -> Result<Control, String> {
        match reference {
            ServerRef::Sandbox { root, name } => Sandbox::open(root, name)
                .map(|sandbox| Control::Sandbox(Box::new(sandbox)))
                .map_err(|e| e.to_string()),
            ServerRef::Address {
                conninfo,
                manager,
                data,
            } => {
                let conninfo = self.resolve(conninfo).map_err(|e| e.to_string())?;
                Ok(match manager {
                    Some(manager) => {
                        let managed = Managed::new(manager.clone(), conninfo, data.clone());
                        Control::Managed(Box::new(managed))
                    }
                    None => Control::None,
                })
            }
        }
    }

    /// Starts, restarts or stops the server as it was, with the settings it had; `names` are the
    /// restored parameters, in the files in `data` where these are within reach. A sandbox that was
    /// stopped is started all the same where there is something to ask of it.
    pub(super) fn restart(
        &self,
        control: &Control,
        content: &Content,
        (names, data): (&[&str], Option<&Path>),
        (is_stopped, is_wanted): (bool, bool),
        note: &mut Note<'_>,
    ) -> Vec<Restored> {
        let Some(reference) = &content.purpose.server else {
            return Vec::new();
        };
        let down = control.down();
        if self.options.at_boot && (down.is_some() || matches!(control, Control::Sandbox(_))) {
            return Vec::new();
        }
        // What a killed process had stopped, and what did not survive our settings.
        let is_ours = match down {
            Some(Down::Stopped) => content.has_stopped_server(),
            Some(Down::Died) => true,
            None => false,
        };
        if down.is_some() && !is_stopped && !is_ours {
            let detail = "it is down, and pgdyno has not stopped it: it is not started";
            return vec![Restored {
                outcome: Outcome::Left,
                ..server_line(&describe(reference), detail)
            }];
        }
        let started = |done: Result<(), String>| done.map_err(|why| format!("starting it failed: {why}"));
        let done = match (control, reference) {
            (Control::Sandbox(_), _) if !content.purpose.server_was_running && !is_wanted => Ok(()),
            (Control::Sandbox(sandbox), _) => started(start_afresh(sandbox)),
            (Control::Managed(_), _) if is_stopped => started(control.start().map_err(|e| e.to_string())),
            (_, ServerRef::Address { conninfo, .. }) if !names.is_empty() => self
                .resolve(conninfo)
                .map_err(|e| e.to_string())
                .and_then(|conninfo| match self.reload_at(&conninfo, names, data) {
                    Ok(Reloaded::NotRead) => Err(format!(
                        "reloading it failed: it has not read its files again within {} s; its log shows what is wrong in them",
                        RELOADS_WITHIN.as_secs()
                    )),
                    Ok(Reloaded::Waiting(names)) if names.is_empty() => Ok(()),
                    Ok(Reloaded::Waiting(names)) if self.options.at_boot => Err(format!(
                        "{names} count after its next start: nothing is restarted at boot"
                    )),
                    Ok(Reloaded::Waiting(_)) if control.can_restart() => started(restart(control, note)),
                    // It is down with what was just taken back; of one that only a command restarts
                    // nobody knows.
                    Err(_)
                        if !self.options.at_boot
                            && (is_ours || control.can_restart() && !control.can_stop()) =>
                    {
                        started(restart(control, note))
                    }
                    Ok(Reloaded::Waiting(names)) => Err(format!(
                        "{names} wait for a restart, which nobody allowed pgdyno to do"
                    )),
                    Err(error) => Err(format!("reloading it failed: {error}")),
                }),
            _ if is_ours => started(control.start().map_err(|e| e.to_string())),
            _ => Ok(()),
        };
        match done {
            Ok(()) => Vec::new(),
            Err(error) => vec![server_line(&describe(reference), &error)],
        }
    }

    /// Reloads and names the settings that still wait for a restart. What was set may let nobody in
    /// before it is reloaded: then a server whose process is on this host gets a signal to reload.
    fn reload_at(
        &self,
        conninfo: &Conninfo,
        names: &[&str],
        data: Option<&Path>,
    ) -> Result<Reloaded, String> {
        let error = match Server::connect(conninfo) {
            Ok(_) => return waiting_at(conninfo, names),
            Err(error) => error.to_string(),
        };
        let by_signal = data.map(|data| Postmaster::reload_by_signal(self.host, data));
        match by_signal {
            None => return Err(error),
            Some(Err(why)) => {
                return Err(format!(
                    "{error}; it cannot be reloaded by a signal either: {why}"
                ));
            }
            Some(Ok(())) => {}
        }
        let deadline = Instant::now() + RELOADS_WITHIN;
        while Server::connect(conninfo).is_err() && Instant::now() < deadline {
            pause(LOOK_AGAIN);
        }
        waiting_at(conninfo, names)
    }

    pub(super) fn undo_server(&self, group: &Group, server: Option<&ServerRef>) -> Vec<Restored> {
        match (&group.unit, &group.first) {
            (UndoUnit::AutoConf { data }, SavedState::AutoConf(first)) => {
                self.undo_auto_conf(group, data, first)
            }
            (UndoUnit::Parameter { name }, SavedState::Parameter(first)) => {
                let Some(ServerRef::Address { conninfo, .. }) = server else {
                    return vec![group.line(Outcome::Failed, Some("the journal names no server".into()))];
                };
                let done = self
                    .resolve(conninfo)
                    .and_then(|conninfo| Server::connect(&conninfo))
                    .and_then(|mut server| self.undo_parameter(&mut server, group, name, first.as_deref()));
                vec![done.unwrap_or_else(|error| group.line(Outcome::Failed, Some(error.to_string())))]
            }
            _ => vec![group.line(Outcome::Failed, Some(UndoUnitError::Mixed.to_string()))],
        }
    }

    fn undo_parameter(
        &self,
        server: &mut Server,
        group: &Group,
        name: &str,
        first: Option<&str>,
    ) -> Result<Restored, ServerError> {
        let now = in_auto_conf(server, name)?;
        if now.as_deref() == first {
            return Ok(group.line(Outcome::Already, None));
        }
        if !self.options.overwrites && !group.is_ours(&SavedState::Parameter(now.clone())) {
            return Ok(group.line(Outcome::Left, Some(foreign_message(now.as_deref()))));
        }
        match first {
            Some(value) => alter_system_set(server, name, value)?,
            None => alter_system_reset(server, name)?,
        }
        Ok(group.line(Outcome::Restored, None))
    }
}

/// A start that a killed process left behind may come in between with the settings it had read:
/// then it is stopped and started once more.
fn start_afresh(sandbox: &Sandbox) -> Result<(), String> {
    let fresh = || sandbox.stop().and_then(|()| sandbox.start());
    match fresh() {
        Err(_) if matches!(sandbox.state(), State::Running(_)) => fresh().map_err(|e| e.to_string()),
        done => done.map_err(|e| e.to_string()),
    }
}

/// Restarts a server of the user's own. The journal says that it is stopped meanwhile, so that a
/// restore after a kill starts it.
fn restart(control: &Control, note: &mut Note<'_>) -> Result<(), String> {
    note(&Entry::Stopping).map_err(|error| error.to_string())?;
    stop(control)?;
    control.start().map_err(|error| error.to_string())?;
    note(&Entry::Started).map_err(|error| error.to_string())
}

/// Stops a server, with its standbys where it is a sandbox; whether it is down then.
pub(super) fn stop(control: &Control) -> Result<bool, String> {
    match control {
        Control::Sandbox(sandbox) => sandbox
            .stop_all()
            .map(|()| true)
            .map_err(|error| error.to_string()),
        Control::Managed(_) | Control::None => control.stop().map_err(|error| error.to_string()),
    }
}

/// Names the settings that still wait for a restart, after a reload.
fn waiting_at(conninfo: &Conninfo, names: &[&str]) -> Result<Reloaded, String> {
    let mut server = Server::connect(conninfo).map_err(|e| e.to_string())?;
    let what = "looking for settings that wait for a restart";
    // A session reads the files of its server a moment after it was asked to.
    let loaded = |server: &mut Server| {
        let sql = "SELECT pg_conf_load_time()";
        server.value(what, sql).map_err(|e| e.to_string())
    };
    let before = loaded(&mut server)?;
    reload(&mut server).map_err(|e| e.to_string())?;
    let deadline = Instant::now() + RELOADS_WITHIN;
    while loaded(&mut server)? == before {
        if Instant::now() >= deadline {
            return Ok(Reloaded::NotRead);
        }
        pause(LOOK_AGAIN);
    }
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("'{}'", name.replace('\'', "''")))
        .collect();
    let sql = format!(
        "SELECT coalesce(string_agg(name, ', '), '') FROM pg_settings WHERE pending_restart AND name IN ({})",
        quoted.join(", ")
    );
    let waiting = server.value(what, &sql).map_err(|e| e.to_string())?;
    Ok(Reloaded::Waiting(waiting.unwrap_or_default()))
}

pub(super) fn describe(server: &ServerRef) -> String {
    match server {
        ServerRef::Sandbox { name, .. } => format!("sandbox {name}"),
        ServerRef::Address { conninfo, .. } => conninfo.clone(),
    }
}

pub(super) fn server_line(name: &str, detail: &str) -> Restored {
    Restored {
        knob: "server".into(),
        place: name.to_owned(),
        was: "running".into(),
        set_to: String::new(),
        outcome: Outcome::Failed,
        detail: Some(detail.to_owned()),
    }
}
