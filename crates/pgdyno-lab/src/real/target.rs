//! One real server: its changes, facts, crashes and figures.

use super::Resources;
use crate::collect::collect_facts;
use crate::error::LabError;
use crate::file::SettingScope;
use crate::plan::Plan;
use crate::ports::{Apply, Changes, Server};
use crate::preflight::{Preflight, PreflightReport};
use crate::probe::ServerBeside;
use pgdyno_knobs::{Agreed, Applied, ApplyError, Changer, Reader, Restart, Restored, Setting};
use pgdyno_record::FactRecord;
use pgdyno_sandbox::{Control, ControlError};
use pgdyno_server::{Conninfo, Server as Connection};
use std::time::Instant;

/// A server and the journal of its changes.
pub(super) struct RealTarget<'a> {
    pub(super) resources: Resources<'a>,
    pub(super) changer: Changer<'a>,
    pub(super) scope: SettingScope,
    /// What the load's sessions begin with, where settings are theirs.
    pub(super) session_options: String,
}

impl RealTarget<'_> {
    /// The target's own, or that of another database on its server.
    pub(super) fn conninfo(&self, database: Option<&str>) -> Result<Conninfo, ApplyError> {
        let conninfo = &self.changer.target()?.conninfo;
        Ok(match database {
            Some(name) => conninfo.with_database(name),
            None => conninfo.clone(),
        })
    }
}

impl Server for RealTarget<'_> {
    fn is_sandbox(&self) -> bool {
        let target = self.changer.target();
        target.is_ok_and(|target| matches!(target.control, Control::Sandbox(_)))
    }

    fn preflight(&mut self, plan: &mut Plan) -> Result<PreflightReport, LabError> {
        let target = self.changer.target()?;
        let mut server = Connection::connect(&target.conninfo)?;
        let path = (self.resources.environment)("PATH");
        let preflight = Preflight {
            host: &**self.resources.host,
            catalogue: self.resources.catalogue,
            target,
            examined: plan.first_variant(),
            journals: self.resources.journals,
            consent: self.resources.consent,
            path: path.as_deref(),
            binaries: self.resources.binaries,
            stop: self.resources.stop,
            scratch: self.resources.scratch,
            generators: self.resources.generators,
            rehearses: false,
        };
        Ok(preflight.check(plan, &mut server)?)
    }

    fn ensure_running(&mut self) -> Result<(), LabError> {
        self.changer.ensure_running()?;
        match &self.changer.target()?.control {
            // One of its standbys may be gone.
            Control::Sandbox(sandbox) if sandbox.record().standbys.is_some() => Ok(sandbox
                .start()
                .map_err(ControlError::from)
                .map_err(ApplyError::from)?),
            _ => Ok(()),
        }
    }

    fn stop(&mut self) -> Result<(), LabError> {
        Ok(self.changer.stop()?)
    }

    fn beside(&mut self, database: Option<&str>) -> Result<ServerBeside, LabError> {
        Ok(ServerBeside {
            conninfo: self.conninfo(database)?,
            postmaster: self.changer.target()?.postmaster(&**self.resources.host),
        })
    }

    fn facts(&mut self) -> Result<Vec<FactRecord>, LabError> {
        let target = self.changer.target()?;
        let sandbox = match &target.control {
            Control::Sandbox(sandbox) => Some(&**sandbox),
            _ => None,
        };
        let host = target.data.is_some().then_some(&**self.resources.host);
        let mut server = Connection::connect(&target.conninfo)?;
        Ok(collect_facts(host, &mut server, sandbox)?.facts)
    }

    fn crash(&mut self) -> Result<f64, LabError> {
        crash(&self.changer)
    }

    fn figure(&mut self, database: Option<&str>, sql: &str) -> Result<f64, LabError> {
        let mut server = Connection::connect(&self.conninfo(database)?)?;
        let value = server.value("asking for a figure", sql)?.unwrap_or_default();
        let number = value.parse::<f64>().ok().filter(|value| value.is_finite());
        number.ok_or(LabError::NoNumber(value))
    }
}

/// Kills a sandbox's server and starts it again; seconds until it answers.
pub(super) fn crash(changer: &Changer<'_>) -> Result<f64, LabError> {
    let Control::Sandbox(sandbox) = &changer.target()?.control else {
        return Err(LabError::ForSandboxes("a crash"));
    };
    let trouble = |source: pgdyno_sandbox::SandboxError| LabError::ServerVariant {
        what: "a crash of the server".to_owned(),
        source: source.into(),
    };
    sandbox.crash().map_err(trouble)?;
    let begun = Instant::now();
    sandbox.start_alone().map_err(trouble)?;
    let recovery_s = begun.elapsed().as_secs_f64();
    sandbox.start().map_err(trouble)?;
    Ok(recovery_s)
}

impl Apply for Changer<'_> {
    fn apply(&mut self, settings: &[Agreed<Setting>], restart: Restart) -> Result<Vec<Applied>, LabError> {
        Ok(Changer::apply(self, settings, restart)?)
    }
}

impl Apply for RealTarget<'_> {
    fn apply(&mut self, settings: &[Agreed<Setting>], restart: Restart) -> Result<Vec<Applied>, LabError> {
        if self.scope == SettingScope::Server {
            return Apply::apply(&mut self.changer, settings, restart);
        }
        let settings: Vec<Setting> = settings.iter().map(|agreed| Setting::clone(agreed)).collect();
        let reader = Reader {
            host: &**self.resources.host,
            catalogue: self.resources.catalogue,
            target: Some(self.changer.target()?),
            journals: None,
        };
        let (options, applied) = reader.in_session(&settings)?;
        self.session_options = options;
        Ok(applied)
    }
}

impl Changes for RealTarget<'_> {
    fn restore(self: Box<Self>) -> Result<Vec<Restored>, LabError> {
        let restorer = self.resources.restorer();
        Ok(self.changer.restore(&restorer)?)
    }
}
