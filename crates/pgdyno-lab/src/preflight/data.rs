//! Data that the server lacks, holds otherwise or has no room for; commands of which nobody knows what they make.

use super::room::{Need, check_room, here};
use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::measure::endpoint;
use crate::plan::{Plan, data_of, listed};
use pgdyno_sandbox::Control;
use pgdyno_server::{OBJECTS_MAX, Server, ServerError, objects};
use pgdyno_workload::{DataError, DataPlan, Dataset, shape_of, tables_there};
use std::collections::BTreeSet;

impl Preflight<'_> {
    pub(super) fn is_sandbox(&self) -> bool {
        matches!(self.target.control, Control::Sandbox(_))
    }

    /// Commands of which nobody knows what they make on a server that pgdyno did not create.
    pub(super) fn commands(
        &self,
        plan: &Plan,
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        found.commands = plan.commands();
        if self.is_sandbox() || found.commands.is_empty() {
            found.commands.clear();
            return Ok(());
        }
        if !self.consent.data {
            let what = format!(
                "commands and statements of the file may make or drop objects on the server, and pgdyno did not create this server: they run \
                 with consent only, and what they leave is named at the end: {}",
                found.commands.join("; ")
            );
            let mends = ["--allow-data".to_owned()];
            found.add(Finding::new(FindingKind::Consent, what, &mends));
        }
        if objects(server)?.len() > OBJECTS_MAX {
            found.unproven.push(format!(
                "what the commands leave on the server: it has more than {OBJECTS_MAX} objects, which are not compared"
            ));
        }
        Ok(())
    }

    pub(super) fn data(
        &self,
        plan: &Plan,
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        let here = here(plan);
        let keys: BTreeSet<_> = here.iter().filter_map(|treatment| data_of(treatment)).collect();
        let plans: Vec<DataPlan> = keys.iter().map(|key| key.plan()).collect();
        for wrong in plans.iter().filter_map(|plan| plan.check().err()) {
            found.add(Finding::new(FindingKind::Other, wrong.to_string(), &[]));
        }
        if self.is_sandbox() {
            let needs = self.sandbox_needs(plan, server, found)?;
            if let Some(data) = &self.target.data {
                check_room(self.host, plan, data, &needs, found);
            }
        } else {
            if keys.iter().any(|key| plan.database_of(key).is_some()) {
                let what = "data of several kinds, from a template or with SQL of its own is for sandboxes only: pgdyno makes no database on a server \
                            that it did not create";
                found.add(Finding::new(
                    FindingKind::Other,
                    what,
                    &["--target sandbox:NAME".to_owned()],
                ));
                return Ok(());
            }
            let mut lacking = Vec::new();
            for data in plans {
                self.of_data(data, server, found, &mut lacking)?;
            }
            if !lacking.is_empty() {
                self.of_lacking(plan, &lacking, server, found)?;
            }
        }
        self.statements(plan, &here, found);
        Ok(())
    }

    fn of_data(
        &self,
        data: DataPlan,
        server: &mut Server,
        found: &mut PreflightReport,
        lacking: &mut Vec<DataPlan>,
    ) -> Result<(), ServerError> {
        let endpoint = endpoint(&self.target.conninfo);
        let set = data.dataset.name();
        match shape_of(&endpoint, data.dataset) {
            Ok(shape) if shape.is_of(&data) && data.fillfactor.is_none() => {
                // Its terminals put statements together, which are not known beforehand.
                if data.dataset == Dataset::Tpcc {
                    let there = tables_there(&endpoint, data.dataset).unwrap_or_default();
                    let mends = grants(server, &there, &["SELECT", "INSERT", "UPDATE", "DELETE"])?;
                    if !mends.is_empty() {
                        let what =
                            format!("the role may not do on the tables of {set} what its transactions do");
                        found.add(Finding::new(FindingKind::Right, what, &mends));
                    }
                }
            }
            Ok(shape) => {
                let what = format!(
                    "the server has the tables of {set} at {}, and the experiment needs {}; pgdyno does not drop tables that \
                     others may have created",
                    shape.text(),
                    data.scale_text()
                );
                let mut mends = Vec::new();
                if shape.scale != data.scale {
                    mends.push(format!("--set data.scale={}", shape.scale));
                }
                match shape.partitions.filter(|_| shape.partitions != data.partitions) {
                    Some(there) => mends.push(format!("--set data.partitions={there}")),
                    None if shape.partitions != data.partitions => mends.clear(),
                    None => {}
                }
                found.add(Finding::new(FindingKind::Other, what, &mends));
            }
            Err(DataError::Missing { why, .. }) => {
                let there = tables_there(&endpoint, data.dataset).unwrap_or_default();
                if there.is_empty() {
                    lacking.push(data);
                } else {
                    let what = format!(
                        "the tables {} are there, and hold no data of {set} ({why}); they are left alone",
                        there.join(", ")
                    );
                    let mends = ["--target \"... dbname=NAME\" (another database)".to_owned()];
                    found.add(Finding::new(FindingKind::Other, what, &mends));
                }
            }
            Err(error) => {
                let there = tables_there(&endpoint, data.dataset).unwrap_or_default();
                let mends = grants(server, &there, &["SELECT"])?;
                let kind = match mends.is_empty() {
                    true => FindingKind::Other,
                    false => FindingKind::Right,
                };
                found.add(Finding::new(kind, error.to_string(), &mends));
            }
        }
        Ok(())
    }

    /// Data that would be made on a server that pgdyno did not create: consent, rights, room.
    fn of_lacking(
        &self,
        plan: &Plan,
        lacking: &[DataPlan],
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        found.objects = lacking.iter().flat_map(DataPlan::objects).collect();
        if !self.consent.data {
            let listed: Vec<String> = lacking.iter().map(listed).collect();
            let what = format!(
                "the server lacks the experiment's data, and pgdyno did not create this server: nothing is made on it without \
                 consent. It would be made, and dropped at the end: {}",
                listed.join(", ")
            );
            let mends = ["--allow-data".to_owned()];
            found.add(Finding::new(FindingKind::Consent, what, &mends));
        }
        let sql = "SELECT quote_ident(current_schema()), has_schema_privilege(current_schema(), 'CREATE'), \
                   current_setting('transaction_read_only'), quote_ident(current_user), pg_is_in_recovery(), \
                   quote_ident(current_database())";
        let rows = server.rows("asking where tables would be made", sql)?;
        let mut fields = rows.into_iter().next().unwrap_or_default().into_iter();
        let mut next = || fields.next().flatten();
        let (schema, may_create, read_only, role, is_standby) = (next(), next(), next(), next(), next());
        let role = role.unwrap_or_default();
        // What is set for the role in the database comes before what is set for either.
        let alter = format!("ALTER ROLE {role} IN DATABASE {}", next().unwrap_or_default());
        match schema {
            None => {
                let what =
                    format!("the role {role} has no schema that tables would be made in (search_path)");
                let mends = [
                    format!("CREATE SCHEMA IF NOT EXISTS AUTHORIZATION {role}"),
                    format!("{alter} SET search_path = {role}, public"),
                ];
                found.add(Finding::new(FindingKind::Right, what, &mends));
            }
            Some(schema) if may_create.as_deref() != Some("t") => {
                let what = format!("the role {role} may not make tables in the schema {schema}");
                let mends = [format!("GRANT CREATE ON SCHEMA {schema} TO {role}")];
                found.add(Finding::new(FindingKind::Right, what, &mends));
            }
            Some(_) => {}
        }
        if is_standby.as_deref() == Some("t") {
            let what = "the server is a standby, which takes no data of its own";
            let mends = ["--target \"... target_session_attrs=primary\"".to_owned()];
            found.add(Finding::new(FindingKind::Other, what, &mends));
        } else if read_only.as_deref() == Some("on") {
            let what = format!("transactions of the role {role} are read-only");
            let mends = [format!("{alter} SET default_transaction_read_only = off")];
            found.add(Finding::new(FindingKind::Right, what, &mends));
        }
        let bytes = lacking.iter().map(DataPlan::bytes).sum();
        let Some(data) = &self.target.data else {
            let why = "room on the server's disk: it is not within reach from here";
            found.unproven.push(why.to_owned());
            return Ok(());
        };
        let mut needs = vec![Need {
            what: "data",
            place: data.clone(),
            bytes,
        }];
        needs.extend(self.wal_need(server, bytes)?);
        check_room(self.host, plan, data, &needs, found);
        Ok(())
    }
}

/// The grants that the role lacks on tables.
fn grants(server: &mut Server, tables: &[String], privileges: &[&str]) -> Result<Vec<String>, ServerError> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = tables
        .iter()
        .map(|name| format!("('{}')", name.replace('\'', "''")))
        .collect();
    let lacking: Vec<String> = privileges
        .iter()
        .map(|privilege| {
            format!("CASE WHEN NOT has_table_privilege(c.oid, '{privilege}') THEN '{privilege}' END")
        })
        .collect();
    let sql = format!(
        "SELECT format('GRANT %s ON TABLE %I.%I TO %s', lacking, nspname, relname, quote_ident(current_user)) \
         FROM (SELECT concat_ws(', ', {}) AS lacking, n.nspname, c.relname \
         FROM (VALUES {}) AS named (name) JOIN pg_class c ON c.oid = to_regclass(quote_ident(name)) \
         JOIN pg_namespace n ON n.oid = c.relnamespace) AS of WHERE lacking <> '' ORDER BY 1",
        lacking.join(", "),
        names.join(", ")
    );
    let rows = server.rows("asking which tables may be read", &sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| row.into_iter().next()?)
        .collect())
}
