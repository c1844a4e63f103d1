//! Data and caches of a real server: tables, databases made from templates, copies of files.

use super::target::RealTarget;
use crate::error::LabError;
use crate::file::{Prewarm, Reset};
use crate::foreign::ProgramData;
use crate::measure::endpoint;
use crate::plan::{Treatment, template_of};
use crate::ports::{Caches, Data, Present, Server as _};
use pgdyno_engine::Endpoint;
use pgdyno_knobs::ApplyError;
use pgdyno_sandbox::{Control, Copied, Sandbox, SandboxError, is_whole_copy};
use pgdyno_server::{Conninfo, Server, ServerError};
use pgdyno_workload::{DataError, DataPlan, DataProgress, DataSession, Dataset, create_data, shape_of};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Data for RealTarget<'_> {
    fn present(&mut self, database: Option<&str>, dataset: Dataset) -> Result<Present, LabError> {
        match shape_of(&self.endpoint(database)?, dataset) {
            Ok(shape) => Ok(Present::There(shape)),
            Err(DataError::Missing { .. }) => Ok(Present::Missing),
            Err(error) => Err(error.into()),
        }
    }

    fn make_database(&mut self, name: &str) -> Result<(), LabError> {
        self.make_from(name, "template1")
    }

    fn create(
        &mut self,
        database: Option<&str>,
        plan: &DataPlan,
        is_marked: bool,
        go_on: &mut dyn FnMut(DataProgress) -> bool,
    ) -> Result<(), LabError> {
        if let (Some(name), Some(_)) = (database, &plan.sql) {
            // The SQL may have made anything in it the last time.
            drop_database(&self.conninfo(None)?, self.resources.stop, name)?;
            self.make_database(name)?;
        }
        let endpoint = self.endpoint(database)?;
        if !is_marked {
            create_data(&endpoint, plan, go_on)?;
            return Ok(());
        }
        let what = format!("{}, about {}", plan.scale_text(), plan.size());
        self.changer.make_data(plan.dataset.name(), &what, |mark| {
            let plan = DataPlan {
                mark: Some(mark.to_owned()),
                ..plan.clone()
            };
            create_data(&endpoint, &plan, go_on)
        })??;
        Ok(())
    }

    fn bring_of_program(
        &mut self,
        data: &ProgramData,
        treatment: &Treatment,
        files: &str,
    ) -> Result<(), LabError> {
        let (name, stop) = (data.database(), self.resources.stop);
        let (server, own) = (self.conninfo(None)?, self.conninfo(Some(&name))?);
        let reset = treatment.data.reset.unwrap_or_default();
        let is_template = reset == Reset::Template;
        let kept = if is_template {
            template_of(&name)
        } else {
            name.clone()
        };
        if reset == Reset::Recreate || !self.has_mark(&kept, &data.mark())? {
            for database in [&template_of(&name), &name] {
                drop_database(&server, stop, database)?;
            }
            self.make_database(&name)?;
            let scratch = self.resources.scratch.join(files);
            data.make(&own, &treatment.load, &scratch, stop)?;
            let mark = format!("COMMENT ON SCHEMA public IS '{}'", data.mark());
            work(&own, stop, &[("marking what a program has made", &mark)])?;
            if is_template {
                self.keep_template(&name)?;
            }
        }
        match reset {
            Reset::Template => renew_from_template(&server, stop, &name),
            Reset::Vacuum => self.vacuum(Some(&name)),
            Reset::None | Reset::Recreate | Reset::Copy => Ok(()),
        }
    }

    fn has_template(&mut self, name: &str) -> Result<bool, LabError> {
        Ok(has_database(&self.conninfo(None)?, &template_of(name))?)
    }

    fn keep_template(&mut self, name: &str) -> Result<(), LabError> {
        self.make_from(&template_of(name), name)
    }

    fn renew_from_template(&mut self, name: &str) -> Result<(), LabError> {
        renew_from_template(&self.conninfo(None)?, self.resources.stop, name)
    }

    fn vacuum(&mut self, database: Option<&str>) -> Result<(), LabError> {
        let statements = [
            ("a vacuum before the trial", "VACUUM (ANALYZE)"),
            ("a checkpoint before the trial", "CHECKPOINT"),
        ];
        Ok(work(&self.conninfo(database)?, self.resources.stop, &statements)?)
    }

    fn has_files(&mut self, name: &str) -> Result<bool, LabError> {
        Ok(is_whole_copy(&self.resources.scratch.join(name)))
    }

    fn save_files(&mut self, name: &str) -> Result<(), LabError> {
        let place = self.resources.scratch.join(name);
        self.while_stopped(|sandbox| sandbox.save_copy(&place, &mut |_| {}))
    }

    fn restore_files(&mut self, name: &str) -> Result<(), LabError> {
        let place = self.resources.scratch.join(name);
        self.while_stopped(|sandbox| sandbox.restore_copy(&place, &mut |_| {}))
    }
}

impl Caches for RealTarget<'_> {
    fn prewarm(&mut self, treatment: &Treatment, database: Option<&str>) -> Result<(), LabError> {
        let how = treatment.data.prewarm.unwrap_or_default();
        let warm = |conninfo: &Conninfo, may_make: bool| match how {
            Prewarm::None | Prewarm::Cold => Ok(()),
            Prewarm::PgPrewarm => prewarm_with_extension(conninfo, self.resources.stop, may_make),
            Prewarm::Read => read_pass(conninfo, self.resources.stop),
        };
        let own = self.conninfo(database)?;
        warm(&own, self.is_sandbox())?;
        if treatment.is_on_standbys() {
            // They have the extension from their primary.
            let standbys = self.standbys(&own, database)?;
            standbys
                .iter()
                .try_for_each(|standby| warm(&standby.conninfo, false))?;
        }
        Ok(())
    }

    fn checkpoint(&mut self, database: Option<&str>) -> Result<(), LabError> {
        // On a limited disk it takes as long as it takes.
        let statements = [("a checkpoint before the load", "CHECKPOINT")];
        Ok(work(&self.conninfo(database)?, self.resources.stop, &statements)?)
    }
}

impl RealTarget<'_> {
    fn endpoint(&self, database: Option<&str>) -> Result<Endpoint, ApplyError> {
        Ok(endpoint(&self.conninfo(database)?).stopped_by(self.resources.stop))
    }

    /// Makes a database as a copy of another one, if there is none of that name. On a server that
    /// pgdyno did not create it is in the journal first.
    fn make_from(&mut self, name: &str, template: &str) -> Result<(), LabError> {
        let (server, stop) = (self.conninfo(None)?, self.resources.stop);
        let sql = format!("CREATE DATABASE {name} TEMPLATE {template}");
        let make = || work(&server, stop, &[("making a database", &sql)]);
        if !self.is_sandbox() {
            return Ok(self.changer.make_database(name, make)??);
        }
        match has_database(&server, name)? {
            true => Ok(()),
            false => Ok(make()?),
        }
    }

    /// Whether a database is there, and its schema has this comment.
    fn has_mark(&self, database: &str, mark: &str) -> Result<bool, LabError> {
        if !has_database(&self.conninfo(None)?, database)? {
            return Ok(false);
        }
        let comment = "SELECT obj_description('public'::regnamespace, 'pg_namespace')";
        let found = Server::connect(&self.conninfo(Some(database))?)?
            .value("looking for the mark of a program's data", comment)?;
        Ok(found.as_deref() == Some(mark))
    }

    fn while_stopped(
        &self,
        act: impl FnOnce(&Sandbox) -> Result<Copied, SandboxError>,
    ) -> Result<(), LabError> {
        let Control::Sandbox(sandbox) = &self.changer.target()?.control else {
            return Err(LabError::ForSandboxes("a copy of the files"));
        };
        let trouble = |source: SandboxError| LabError::ServerVariant {
            what: "copying the data's files".to_owned(),
            source: source.into(),
        };
        sandbox.stop().map_err(trouble)?;
        let acted = act(sandbox);
        // Whatever went wrong, the server is not left down.
        let started = sandbox.start();
        acted.map_err(trouble)?;
        started.map_err(trouble)
    }

    /// Where a sandbox has loaded pg_stat_statements, the load's database has the extension too:
    /// its statements have texts and counts. Where it cannot be made, whatever reads statements
    /// reports that it is missing.
    pub(super) fn count_statements(&self, conninfo: &Conninfo) -> Result<(), ServerError> {
        if !self.is_sandbox() {
            return Ok(());
        }
        let mut server = Server::connect(conninfo)?;
        if server
            .value("looking for pg_stat_statements", NOT_MADE)?
            .is_some()
        {
            let _ = server.execute("making pg_stat_statements", MAKE);
        }
        Ok(())
    }
}

/// Statements that may take long, each with what is being done.
fn work(conninfo: &Conninfo, stop: &Arc<AtomicBool>, statements: &[(&str, &str)]) -> Result<(), DataError> {
    let mut session = DataSession::open(&endpoint(conninfo).stopped_by(stop))?;
    statements
        .iter()
        .try_for_each(|(what, sql)| session.work(what, sql))
}

fn drop_database(conninfo: &Conninfo, stop: &Arc<AtomicBool>, name: &str) -> Result<(), LabError> {
    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    Ok(work(conninfo, stop, &[("dropping data to make it again", &sql)])?)
}

fn has_database(conninfo: &Conninfo, name: &str) -> Result<bool, ServerError> {
    pgdyno_server::has_database(&mut Server::connect(conninfo)?, name)
}

fn renew_from_template(conninfo: &Conninfo, stop: &Arc<AtomicBool>, name: &str) -> Result<(), LabError> {
    let template = template_of(name);
    // Through WAL it would be written twice, and the load would begin with a checkpoint's worth of
    // it.
    let by_files = match Server::connect(conninfo)?.version().major >= 15 {
        true => " STRATEGY file_copy",
        false => "",
    };
    let made = format!("CREATE DATABASE {name} TEMPLATE {template}{by_files}");
    drop_database(conninfo, stop, name)?;
    Ok(work(
        conninfo,
        stop,
        &[("making new data from its template", &made)],
    )?)
}

/// Tables and indexes of the load, the smallest first, so that what does not fit is the largest.
const RELATIONS: &str = "SELECT format('%I.%I', n.nspname, c.relname)::text FROM pg_class c JOIN pg_namespace n ON \
     n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = ANY ('{KINDS}') ORDER BY pg_relation_size(c.oid)";

/// Whether pg_stat_statements is among the libraries that the server was started with, and not an
/// extension of the database yet.
const NOT_MADE: &str = "SELECT 1 WHERE 'pg_stat_statements' = \
     ANY (regexp_split_to_array(current_setting('shared_preload_libraries'), '[\\s,]+')) \
     AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements')";
/// Also where a treatment makes transactions read-only.
const MAKE: &str = "BEGIN READ WRITE; CREATE EXTENSION pg_stat_statements; COMMIT";

fn relations(server: &mut Server, kinds: &str) -> Result<Vec<String>, ServerError> {
    let sql = RELATIONS.replace("KINDS", kinds);
    let rows = server.rows("looking for tables to read", &sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|mut row| row.swap_remove(0))
        .collect())
}

/// Where the extension is not there it is made, in a sandbox; on any other server its tables are
/// read once instead.
fn prewarm_with_extension(
    conninfo: &Conninfo,
    stop: &Arc<AtomicBool>,
    may_make: bool,
) -> Result<(), LabError> {
    let mut server = Server::connect(conninfo)?;
    let there = match may_make {
        true => "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_prewarm'",
        false => "SELECT 1 FROM pg_extension WHERE extname = 'pg_prewarm'",
    };
    if server.value("looking for pg_prewarm", there)?.is_none() {
        return read_pass(conninfo, stop);
    }
    if may_make {
        server.execute("making pg_prewarm", "CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
    }
    let each = relations(&mut server, "r,i")?.into_iter().map(|relation| {
        let name = relation.replace('\'', "''");
        format!("SELECT pg_prewarm('{name}'::regclass)")
    });
    work_on_each(conninfo, stop, "reading data into shared buffers", each)
}

/// Counts all rows, so that each page is read once.
fn read_pass(conninfo: &Conninfo, stop: &Arc<AtomicBool>) -> Result<(), LabError> {
    let found = relations(&mut Server::connect(conninfo)?, "r")?;
    let each = found
        .into_iter()
        .map(|relation| format!("SELECT count(*) FROM {relation}"));
    work_on_each(conninfo, stop, "reading data once", each)
}

fn work_on_each(
    conninfo: &Conninfo,
    stop: &Arc<AtomicBool>,
    what: &str,
    statements: impl Iterator<Item = String>,
) -> Result<(), LabError> {
    let statements: Vec<String> = statements.collect();
    let statements: Vec<(&str, &str)> = statements.iter().map(|sql| (what, sql.as_str())).collect();
    Ok(work(conninfo, stop, &statements)?)
}
