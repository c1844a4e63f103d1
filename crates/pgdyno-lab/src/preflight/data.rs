//! Data that the server lacks, holds otherwise or has no room for; commands of which nobody knows
//! what they make.

use super::room::{Need, check_room};
use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::measure::endpoint;
use crate::plan::{Plan, data_of, listed, template_of};
use pgdyno_knobs::ApplyError;
use pgdyno_sandbox::Control;
use pgdyno_server::{OBJECTS_MAX, Server, ServerError, has_database, objects};
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
                "commands and statements of the file may create or drop objects on this server, which pgdyno did not create: they need \
                 consent, and what they leave is listed at the end: {}",
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
        let here = self.here(plan);
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
            let mut lacking = Vec::new();
            for (key, data) in keys.iter().zip(plans) {
                match plan.database_of(key) {
                    Some(database) => lacking.push(Lacking {
                        database: Some(database),
                        data,
                    }),
                    None => self.of_data(data, server, found, &mut lacking)?,
                }
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
        lacking: &mut Vec<Lacking>,
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
                    lacking.push(Lacking { database: None, data });
                } else {
                    let what = format!(
                        "the tables {} exist but hold no data of {set} ({why}); they are not changed",
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

    /// Databases that would be made: the right to it, and that there are none of these names.
    fn of_databases(
        &self,
        plan: &Plan,
        lacking: &[Lacking],
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        let sql = "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = current_user AND NOT rolcreatedb AND NOT rolsuper";
        if let Some(role) = server.value("asking whether the role may make databases", sql)? {
            let what = format!("the role {role} may not create databases");
            let mends = [format!("ALTER ROLE {role} CREATEDB")];
            found.add(Finding::new(FindingKind::Right, what, &mends));
        }
        for name in lacking.iter().filter_map(|lacking| lacking.database.as_ref()) {
            let template = plan.uses_template().then(|| template_of(name));
            for name in std::iter::once(name.clone()).chain(template) {
                if has_database(server, &name)? {
                    let error = ApplyError::DatabaseThere { name: name.clone() };
                    let mends = [format!(
                        "`pgdyno restore` (where a killed experiment has left it), or DROP DATABASE {name}"
                    )];
                    found.add(Finding::new(FindingKind::Other, error.to_string(), &mends));
                }
            }
        }
        Ok(())
    }

    /// Data that would be made on a server that pgdyno did not create: consent, rights, room.
    fn of_lacking(
        &self,
        plan: &Plan,
        lacking: &[Lacking],
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        found.objects = lacking
            .iter()
            .flat_map(|lacking| lacking.data.objects())
            .collect();
        if !self.consent.data {
            let listed: Vec<String> = lacking.iter().map(Lacking::listed).collect();
            let what = format!(
                "the experiment needs data that the server lacks, and pgdyno did not create this server: data is created on it only with \
                 consent. It would be created, and dropped at the end: {}",
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
        if lacking.iter().any(|lacking| lacking.database.is_some()) {
            self.of_databases(plan, lacking, server, found)?;
        }
        match schema {
            // Of databases of its own the role is the owner.
            _ if lacking.iter().all(|lacking| lacking.database.is_some()) => {}
            None => {
                let what = format!(
                    "the role {role} has no schema in its search_path in which it could create tables"
                );
                let mends = [
                    format!("CREATE SCHEMA IF NOT EXISTS AUTHORIZATION {role}"),
                    format!("{alter} SET search_path = {role}, public"),
                ];
                found.add(Finding::new(FindingKind::Right, what, &mends));
            }
            Some(schema) if may_create.as_deref() != Some("t") => {
                let what = format!("the role {role} may not create tables in the schema {schema}");
                let mends = [format!("GRANT CREATE ON SCHEMA {schema} TO {role}")];
                found.add(Finding::new(FindingKind::Right, what, &mends));
            }
            Some(_) => {}
        }
        if is_standby.as_deref() == Some("t") {
            let what = "the server is a standby: no data can be created on it";
            let mends = ["--target \"... target_session_attrs=primary\"".to_owned()];
            found.add(Finding::new(FindingKind::Other, what, &mends));
        } else if read_only.as_deref() == Some("on") {
            let what = format!("transactions of the role {role} are read-only");
            let mends = [format!("{alter} SET default_transaction_read_only = off")];
            found.add(Finding::new(FindingKind::Right, what, &mends));
        }
        let copies = if plan.uses_template() { 2 } else { 1 };
        let bytes: u64 = lacking.iter().map(|lacking| lacking.data.bytes()).sum();
        let bytes = bytes.saturating_mul(copies);
        let Some(data) = &self.target.data else {
            let why = "free space on the server's disk: its files cannot be read from this host";
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

/// Data that is to be made.
struct Lacking {
    /// The database that is made for it, where it is not the target's own.
    database: Option<String>,
    data: DataPlan,
}

impl Lacking {
    fn listed(&self) -> String {
        let objects = listed(&self.data);
        match &self.database {
            Some(name) => format!("database {name} with {objects}"),
            None => objects,
        }
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
