//! Everything that keeps a setting from being applied here, each with what mends it; and whether it
//! would restart the server.

use super::{BY_OPTIONS, Mechanism, Reader};
use crate::applied::ApplyError;
use crate::catalogue::{CatalogueError, Cost, Kind, Knob, Setting};
use crate::gucvalue;
use crate::target::Target;
use crate::undo::{AUTO_CONF, SavedState, UndoUnit, UndoUnitError, in_auto_conf};
use pgdyno_sandbox::ControlError;
use pgdyno_server::{
    Guc, Server, ServerError, SettingRights, autoconf, bounds, expected_list, is_empty_list,
    may_alter_system, missing_libraries, one_spelling, other_owner, refused_by_server, setting_rights,
};

/// Why a setting cannot be applied here, found without changing anything.
#[derive(Debug)]
pub struct Objection {
    /// The error that applying it would end with.
    pub error: ApplyError,
    /// What removes it: SQL for a superuser, or what is to be done otherwise. Empty where the
    /// caller's consent does.
    pub mends: Vec<String>,
}

impl From<ApplyError> for Objection {
    fn from(error: ApplyError) -> Objection {
        let refused = match &error {
            ApplyError::UndoUnit(UndoUnitError::Host(error)) => error.is_refused(),
            _ => false,
        };
        let mends = match refused {
            true => vec![AS_ROOT.to_owned()],
            false => Vec::new(),
        };
        Objection { error, mends }
    }
}

const AS_ROOT: &str =
    "sudo pgdyno ... (on the host itself: a container's /proc/sys may be read-only for root too)";
const WITHOUT_OPTIONS: &str = "unset PGOPTIONS (and leave options= out of the connection string)";
/// The first version in which roles other than superusers may be allowed to set a parameter of
/// theirs.
pub(super) const GRANTED_SINCE: u32 = 15;

impl Reader<'_> {
    /// All that keeps a setting from being applied here, found without changing anything.
    pub fn objections(&self, setting: &Setting) -> Vec<Objection> {
        let mut objections = self.of_target(setting);
        objections.extend(self.of_other_users(setting));
        objections
    }

    /// A change by another user, which would be taken for the original state.
    fn of_other_users(&self, setting: &Setting) -> Option<Objection> {
        let knob = self.catalogue.find(&setting.knob)?;
        let server = || self.target.map(Target::shown_to_others).unwrap_or_default();
        let error = self
            .journals?
            .conflict(&knob.id, knob.kind.is_of_host(), &server)?;
        Some(ApplyError::from(error).into())
    }

    fn of_target(&self, setting: &Setting) -> Vec<Objection> {
        match self.mechanism_of(setting) {
            Err(error) => vec![error.into()],
            Ok((knob, Mechanism::Parameter)) => self
                .of_parameter(knob, setting)
                .unwrap_or_else(|error| vec![error.into()]),
            Ok((knob, mechanism)) => {
                let mut objections: Vec<Objection> = Vec::new();
                if let Mechanism::Whole(UndoUnit::Storage { table, .. }) = &mechanism {
                    objections.extend(self.of_owner(table).unwrap_or_else(|error| Some(error.into())));
                }
                objections.extend(
                    self.check_mechanism(knob, setting, mechanism)
                        .err()
                        .map(Objection::from),
                );
                objections
            }
        }
    }

    fn mechanism_of(&self, setting: &Setting) -> Result<(&Knob, Mechanism), ApplyError> {
        let knob = self.catalogue.check_settable(setting)?;
        Ok((knob, self.mechanism(&setting.knob)?))
    }

    fn of_parameter(&self, knob: &Knob, setting: &Setting) -> Result<Vec<Objection>, ApplyError> {
        let target = self.target()?;
        let mut server = self.server()?;
        let rights = setting_rights(&mut server)?;
        let guc = match self.parameter(&mut server, &knob.id) {
            Ok(guc) => guc,
            // Some are shown to few.
            Err(error) => {
                let mends = match rights.superuser || rights.all_settings {
                    true => Vec::new(),
                    false => vec![format!("GRANT pg_read_all_settings TO {}", rights.role)],
                };
                return Ok(vec![Objection { error, mends }]);
            }
        };
        if guc.context == "internal" {
            return Ok(vec![ApplyError::ReadOnly { name: guc.name }.into()]);
        }
        if guc.source == BY_OPTIONS {
            let error = ApplyError::HiddenByOptions { name: guc.name };
            let mends = vec![WITHOUT_OPTIONS.to_owned()];
            return Ok(vec![Objection { error, mends }]);
        }
        let mut objections = Vec::new();
        objections.extend(of_value(&mut server, &guc, setting)?);
        if self.in_file_as(setting).is_none() && rights.file_settings && rights.file_settings_function {
            objections.extend(of_removal(&mut server, setting)?);
        }
        if !may_alter_system(&mut server, &guc.name)? {
            let what = format!("set {} by ALTER SYSTEM", guc.name);
            let mend = match server.version().major >= GRANTED_SINCE {
                true => format!("GRANT ALTER SYSTEM ON PARAMETER {} TO {}", guc.name, rights.role),
                false => format!("ALTER ROLE {} SUPERUSER", rights.role),
            };
            objections.push(no_right(&rights, what, vec![mend]));
        }
        objections.extend(of_rights(&rights, target.data.is_none()));
        let is_set = match target.data.is_none() && !(rights.file_settings && rights.file_settings_function) {
            true => false,
            false => self.in_file(&mut server, &guc.name)? == self.in_file_as(setting),
        };
        if guc.context == "postmaster" && !is_set {
            if !target.control.can_restart() {
                objections.push(ApplyError::from(ControlError::NotAllowed).into());
            }
            // A value that keeps the server from starting can then be taken back in the file alone.
            if target.data.is_none() {
                objections.push(Objection {
                    error: ApplyError::NoWayBack,
                    mends: vec!["run pgdyno on the server's own host, as root".to_owned()],
                });
            }
        }
        Ok(objections)
    }

    fn of_owner(&self, table: &str) -> Result<Option<Objection>, ApplyError> {
        let mut server = self.server()?;
        let Some(owner) = other_owner(&mut server, table)? else {
            return Ok(None);
        };
        let rights = setting_rights(&mut server)?;
        let mends = vec![format!("GRANT {owner} TO {}", rights.role)];
        Ok(Some(no_right(
            &rights,
            format!("change how {table} is stored"),
            mends,
        )))
    }

    /// A parameter's value in postgresql.auto.conf.
    fn in_file(&self, server: &mut Server, name: &str) -> Result<Option<String>, ApplyError> {
        let Some(data) = &self.target()?.data else {
            return Ok(in_auto_conf(server, name)?);
        };
        match (UndoUnit::AutoConf { data: data.clone() }).capture(self.access())? {
            SavedState::AutoConf(text) => {
                let value = autoconf::parse(&text).remove(name);
                Ok(value.map(|value| one_spelling(name, &value)))
            }
            _ => Ok(None),
        }
    }

    /// What postgresql.auto.conf is to hold of a parameter. ALTER SYSTEM can only remove a list
    /// that has no names; in the file itself it can be written.
    pub(crate) fn in_file_as(&self, setting: &Setting) -> Option<String> {
        let is_removed = is_empty_list(&setting.knob, &setting.value)
            && self.target.is_none_or(|target| target.data.is_none());
        (!is_removed).then(|| one_spelling(&setting.knob, &setting.value))
    }

    /// When the change of a knob counts on this target: by the server's own word for a parameter.
    pub fn cost(&self, knob: &str) -> Result<Cost, ApplyError> {
        let of = self.catalogue.get(knob)?;
        if of.kind != Kind::Guc || self.target.is_none() {
            // A host without a server has none to restart.
            return Ok(match (of.cost, of.kind) {
                (Cost::Restart, _) if self.target.is_none() => Cost::Live,
                (cost, _) => cost,
            });
        }
        Ok(
            match self.parameter(&mut self.server()?, &of.id)?.context.as_str() {
                "postmaster" => Cost::Restart,
                _ => Cost::Reload,
            },
        )
    }

    /// Whether applying a setting changes anything, from the state that the target is in now.
    pub fn would_change(&self, setting: &Setting) -> Result<bool, ApplyError> {
        let knob = self.catalogue.get(&setting.knob)?;
        if knob.kind == Kind::Guc {
            return Ok(self.in_file(&mut self.server()?, &knob.id)? != self.in_file_as(setting));
        }
        // How many pages a pool gets is known when the server is down.
        Ok(knob.kind == Kind::HugepagePool || !self.verify_one(setting)?.took)
    }
}

pub(super) fn of_value(
    server: &mut Server,
    guc: &Guc,
    setting: &Setting,
) -> Result<Option<Objection>, ServerError> {
    let bounds = bounds(server, &guc.name)?;
    let mut expected = gucvalue::expected(&setting.value, guc, &bounds)
        .or_else(|| expected_list(&guc.name, &setting.value).map(str::to_owned));
    if expected.is_none() {
        let missing = missing_libraries(server, &guc.name, &setting.value)?;
        expected = missing.first().map(|(_, place)| {
            let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
            format!(
                "libraries that the server has; {} is not in {place}",
                names.join(", ")
            )
        });
    }
    // A session may try what it may set; a parameter of the whole server cannot be tried.
    if expected.is_none() && guc.context == "user" && guc.vartype == "string" {
        let refused = refused_by_server(server, &guc.name, &setting.value)?;
        expected = refused.map(|message| format!("a value that the server takes; it says: {message}"));
    }
    let error = |expected| {
        ApplyError::from(CatalogueError::Value {
            id: setting.knob.clone(),
            value: setting.value.clone(),
            expected,
        })
    };
    let nearest = gucvalue::nearest(&setting.value, guc, &bounds);
    let mends: Vec<String> = nearest
        .map(|value| format!("{}={value}", setting.knob))
        .into_iter()
        .collect();
    Ok(expected.map(|expected| Objection {
        error: error(expected),
        mends,
    }))
}

/// A list without names where ALTER SYSTEM can only remove it: another file's would count then.
fn of_removal(server: &mut Server, setting: &Setting) -> Result<Option<Objection>, ServerError> {
    let sql = format!(
        "SELECT sourcefile || ', line ' || sourceline FROM pg_file_settings WHERE name = '{}' AND setting <> '' \
         AND sourcefile NOT LIKE '%{AUTO_CONF}' ORDER BY seqno DESC LIMIT 1",
        setting.knob.replace('\'', "''")
    );
    let place = server.value("looking for other values of a list", &sql)?;
    Ok(place.map(|place| {
        let error = CatalogueError::Value {
            id: setting.knob.clone(),
            value: setting.value.clone(),
            expected: format!(
                "a name at least: ALTER SYSTEM cannot write an empty list over the one in {place}"
            ),
        };
        Objection {
            error: ApplyError::from(error),
            mends: vec![format!("remove {place}, and reload")],
        }
    }))
}

/// What every parameter needs, whichever it is.
fn of_rights(rights: &SettingRights, by_view: bool) -> Vec<Objection> {
    let role = &rights.role;
    let mut objections = Vec::new();
    if !rights.alter_system {
        let mends = vec!["allow_alter_system = on (in postgresql.conf, and a reload)".to_owned()];
        objections.push(Objection {
            error: ApplyError::NoAlterSystem,
            mends,
        });
    }
    if !rights.reload {
        let mend = format!("GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO {role}");
        objections.push(no_right(
            rights,
            "reload the configuration".to_owned(),
            vec![mend],
        ));
    }
    let mut views = Vec::new();
    if by_view && !rights.file_settings {
        views.push(format!(
            "GRANT SELECT ON TABLE pg_catalog.pg_file_settings TO {role}"
        ));
    }
    if by_view && !rights.file_settings_function {
        views.push(format!(
            "GRANT EXECUTE ON FUNCTION pg_catalog.pg_show_all_file_settings() TO {role}"
        ));
    }
    if !views.is_empty() {
        let what = "read what the configuration files hold (pg_file_settings)".to_owned();
        objections.push(no_right(rights, what, views));
    }
    objections
}

pub(super) fn no_right(rights: &SettingRights, what: String, mends: Vec<String>) -> Objection {
    Objection {
        error: ApplyError::NoRight {
            role: rights.role.clone(),
            what,
        },
        mends,
    }
}
