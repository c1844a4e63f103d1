//! Parameters that a load's own sessions begin with, by libpq's `options`: nothing changes on the
//! server.

use super::objection::{GRANTED_SINCE, Objection, no_right, of_value};
use super::{Reader, meant};
use crate::applied::{Applied, ApplyError};
use crate::catalogue::{Kind, Setting};
use crate::gucvalue;
use pgdyno_server::{Server, may_set, session_options, setting_rights};

/// Contexts of parameters that sessions may begin with; of the others only roles with a right to
/// it.
const OF_EVERYBODY: [&str; 2] = ["user", "backend"];
const OF_FEW: [&str; 2] = ["superuser", "superuser-backend"];

impl Reader<'_> {
    /// All that keeps a load's sessions from beginning with a setting.
    pub fn session_objections(&self, setting: &Setting) -> Vec<Objection> {
        self.of_session(setting)
            .unwrap_or_else(|error| vec![error.into()])
    }

    fn of_session(&self, setting: &Setting) -> Result<Vec<Objection>, ApplyError> {
        let knob = self.catalogue.check_settable(setting)?;
        let refused = |why| {
            let knob = knob.id.clone();
            Err(ApplyError::NotOfSession { knob, why })
        };
        if knob.kind != Kind::Guc {
            return refused("it is not a parameter of the server");
        }
        if self.target()?.conninfo.is_proxied() {
            return refused("a pooler gives the load sessions that have begun before");
        }
        let mut server = self.server()?;
        let guc = self.parameter(&mut server, &knob.id)?;
        let context = guc.context.as_str();
        if !OF_EVERYBODY.contains(&context) && !OF_FEW.contains(&context) {
            return refused("all sessions of the server share it");
        }
        let mut objections: Vec<Objection> = of_value(&mut server, &guc, setting)?.into_iter().collect();
        if OF_FEW.contains(&context) && !may_set(&mut server, &guc.name)? {
            let rights = setting_rights(&mut server)?;
            let grant = (server.version().major >= GRANTED_SINCE)
                .then(|| format!("GRANT SET ON PARAMETER {} TO {}", guc.name, rights.role));
            let what = format!("set {} in its sessions", guc.name);
            objections.push(no_right(&rights, what, grant.into_iter().collect()));
        }
        Ok(objections)
    }

    /// The options of a load's sessions with these settings, and what such a session reports of
    /// each.
    ///
    /// # Errors
    ///
    /// A session does not begin with them, or cannot be asked.
    pub fn in_session(&self, settings: &[Setting]) -> Result<(String, Vec<Applied>), ApplyError> {
        let named = settings.iter().map(|own| (own.knob.as_str(), own.value.as_str()));
        let options = session_options(named);
        let mut session = Server::connect(&self.target()?.conninfo.with_options(&options))?;
        let applied = settings.iter().map(|setting| {
            let guc = self.parameter(&mut session, &setting.knob)?;
            let value = meant(&mut session, &setting.value, &guc)?;
            Ok(Applied {
                setting: setting.clone(),
                took: gucvalue::same(value, &guc),
                effective: guc.shown,
                remark: None,
            })
        });
        let applied = applied.collect::<Result<_, ApplyError>>()?;
        Ok((options, applied))
    }
}
