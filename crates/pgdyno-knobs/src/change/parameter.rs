//! The server's part of applying: its parameters, in postgresql.auto.conf.

use super::{Changer, write_auto_conf};
use crate::applied::ApplyError;
use crate::catalogue::{Kind, Setting};
use crate::restore::merged;
use crate::undo::{SavedState, UndoUnit, in_auto_conf};
use pgdyno_server::{Server, alter_system_reset, alter_system_set, autoconf, is_empty_list, one_spelling};
use std::collections::BTreeMap;

/// A parameter that was touched, as postgresql.auto.conf has it: the value before the first change,
/// and now.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) first: Option<String>,
    pub(super) now: Option<String>,
}

impl Changer<'_> {
    /// Changes what differs in postgresql.auto.conf. Returns whether a restart is needed for it.
    pub(super) fn change_parameters(&mut self, settings: &[Setting]) -> Result<bool, ApplyError> {
        let mut wanted: BTreeMap<String, Option<String>> = self
            .parameters
            .iter()
            .map(|(name, parameter)| (name.clone(), parameter.first.clone()))
            .collect();
        for setting in settings {
            if self.catalogue.get(&setting.knob)?.kind == Kind::Guc {
                wanted.insert(setting.knob.clone(), self.reader().in_file_as(setting));
            }
        }
        if wanted.is_empty() {
            return Ok(false);
        }
        let mut server = self.reader().server()?;
        let mut restart = false;
        for (name, value) in wanted {
            let now = match self.parameters.get(&name) {
                Some(parameter) => parameter.now.clone(),
                None => self.in_auto_conf(&mut server, &name)?,
            };
            let first = self
                .parameters
                .get(&name)
                .map_or_else(|| now.clone(), |p| p.first.clone());
            let spelled = |value: &Option<String>| value.as_ref().map(|value| one_spelling(&name, value));
            if spelled(&now) != spelled(&value) {
                restart |= self.reader().parameter(&mut server, &name)?.context == "postmaster";
                self.change_parameter(&mut server, &name, value.as_deref())?;
            }
            self.parameters.insert(name, Parameter { first, now: value });
        }
        Ok(restart)
    }

    fn in_auto_conf(&self, server: &mut Server, name: &str) -> Result<Option<String>, ApplyError> {
        if let Some(data) = &self.target()?.data {
            let unit = UndoUnit::AutoConf { data: data.clone() };
            let SavedState::AutoConf(text) = unit.capture(self.reader().access())? else {
                return Ok(None);
            };
            return Ok(autoconf::parse(&text).remove(name));
        }
        Ok(in_auto_conf(server, name)?)
    }

    fn change_parameter(
        &mut self,
        server: &mut Server,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), ApplyError> {
        let (unit, before) = match &self.target()?.data {
            Some(data) => {
                let unit = UndoUnit::AutoConf { data: data.clone() };
                let before = unit.capture(self.reader().access())?;
                (unit, before)
            }
            None => {
                let before = SavedState::Parameter(self.in_auto_conf(server, name)?);
                (
                    UndoUnit::Parameter {
                        name: name.to_owned(),
                    },
                    before,
                )
            }
        };
        self.change(name, (&unit, 0), before.clone(), value, |this| {
            match (value, &unit, &before) {
                (Some(empty), UndoUnit::AutoConf { data }, SavedState::AutoConf(text))
                    if is_empty_list(name, empty) =>
                {
                    let line = BTreeMap::from([(name.to_owned(), Some(empty.to_owned()))]);
                    return Ok(write_auto_conf(data, merged(text, &line))?);
                }
                (Some(value), ..) => alter_system_set(server, name, value)?,
                (None, ..) => alter_system_reset(server, name)?,
            }
            Ok(match &unit {
                UndoUnit::Parameter { .. } => SavedState::Parameter(value.map(str::to_owned)),
                _ => unit.capture(this.reader().access())?,
            })
        })
        .map(drop)
    }
}
