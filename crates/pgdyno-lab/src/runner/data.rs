//! Data of treatments: made once, brought to the same state before each trial, read into caches or kept out of them.

use super::{Event, Lab, LabError, Running, is_sandbox};
use crate::file::{Prewarm, Reset};
use crate::measure::endpoint;
use crate::plan::{Plan, Stand, Treatment};
use pgdyno_knobs::{Changer, Target};
use pgdyno_load::{DataError, DataPlan, Dataset, create_data, shape_of};
use pgdyno_server::sandbox::is_whole_copy;
use pgdyno_server::{Conninfo, Control, Server, ServerError};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// What tells one database's content from another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DataKey {
    dataset: Dataset,
    scale: u32,
    fillfactor: Option<u32>,
}

impl DataKey {
    pub(super) fn name(&self) -> String {
        let full = self
            .fillfactor
            .map(|full| format!("_f{full}"))
            .unwrap_or_default();
        format!("pgdyno_{}_{}{full}", self.dataset.name(), self.scale)
    }

    /// How it is made.
    pub(crate) fn plan(&self) -> DataPlan {
        DataPlan {
            fillfactor: self.fillfactor,
            ..DataPlan::new(self.dataset, self.scale)
        }
    }

    /// Bytes that it takes, about: tables and indexes as `pgdyno data create` makes them.
    pub(super) fn bytes(&self) -> u64 {
        self.plan().bytes()
    }
}

/// The data that a treatment's load reads; `None` where it reads none, or brings its own.
pub(crate) fn data_of(treatment: &Treatment) -> Option<DataKey> {
    let dataset = match (treatment.load.workload, treatment.data.dataset) {
        (Some(workload), _) => workload.dataset()?,
        (None, Some(dataset)) => dataset,
        // Scripts, pgbench itself and jobs are written for pgbench's tables, if for any; other programs bring their own.
        (None, None) => match treatment.load.program.as_deref() {
            None | Some("pgbench" | "job") => Dataset::Pgbench,
            Some(_) => return None,
        },
    };
    Some(DataKey {
        dataset,
        scale: treatment.data.scale?,
        fillfactor: treatment.data.fillfactor,
    })
}

impl Treatment {
    /// Bytes of the data that its load reads, about; `None` where it reads none, or brings its own.
    pub fn data_bytes(&self) -> Option<u64> {
        Some(data_of(self)?.bytes())
    }
}

/// The database of a treatment, where it is not the target's own: one for each kind of data where there are several, or where
/// it is made anew from a template.
pub(crate) fn database_of(plan: &Plan, data: DataKey) -> Option<String> {
    let tested: Vec<&Treatment> = plan.tested().into_iter().map(|i| &plan.treatments[i]).collect();
    let keys: BTreeSet<DataKey> = tested.iter().filter_map(|t| data_of(t)).collect();
    let template = tested.iter().any(|t| t.data.reset == Some(Reset::Template));
    (keys.len() > 1 || template).then(|| data.name())
}

/// The target's conninfo, or that of the treatment's own database.
pub(super) fn conninfo_of(plan: &Plan, treatment: &Treatment, target: &Target) -> Conninfo {
    match data_of(treatment).and_then(|data| database_of(plan, data)) {
        Some(name) => target.conninfo.with_database(&name),
        None => target.conninfo.clone(),
    }
}

fn template_of(name: &str) -> String {
    format!("{name}_template")
}

/// Stands and data that this run has made, and no load has used.
pub(super) type Untouched = BTreeSet<(Stand, String)>;

impl Lab<'_> {
    /// Makes the data if it is not there; whether that was so.
    pub(super) fn ensure_data(
        &mut self,
        plan: &Plan,
        changer: &mut Changer<'_>,
        data: DataKey,
    ) -> Result<bool, LabError> {
        let database = database_of(plan, data);
        let target = changer.target()?;
        let is_ours = is_sandbox(target);
        let of_target = target.conninfo.clone();
        let conninfo = match &database {
            Some(name) => {
                if !is_ours {
                    return Err(LabError::SandboxOnly(
                        "data of several kinds, or from a template,",
                    ));
                }
                make_database(&of_target, name)?;
                of_target.with_database(name)
            }
            None => of_target.clone(),
        };
        let endpoint = endpoint(&conninfo);
        let is_made = match shape_of(&endpoint, data.dataset).map(|shape| shape.scale) {
            // How full its pages were made is not told by data that is there.
            Ok(scale) if scale == data.scale && (database.is_some() || data.fillfactor.is_none()) => false,
            Ok(there) if !is_ours => {
                return Err(LabError::OtherData {
                    dataset: data.dataset.name(),
                    there,
                    wanted: data.scale,
                });
            }
            Err(DataError::Missing { .. }) if !is_ours => {
                self.create_marked(&conninfo, changer, data)?;
                true
            }
            Ok(_) | Err(DataError::Missing { .. }) => {
                self.create(&conninfo, &data.plan())?;
                true
            }
            Err(error) => return Err(error.into()),
        };
        let makes_template = plan
            .treatments
            .iter()
            .any(|t| t.data.reset == Some(Reset::Template));
        if let Some(name) = database.filter(|_| makes_template) {
            keep_template(&of_target, &name)?;
        }
        Ok(is_made)
    }

    fn create(&mut self, conninfo: &Conninfo, plan: &DataPlan) -> Result<(), LabError> {
        let (stop, on_event) = (self.stop, &mut *self.on_event);
        create_data(&endpoint(conninfo), plan, &mut |progress| {
            on_event(Event::Data(progress));
            !stop.load(Ordering::Relaxed)
        })?;
        Ok(())
    }

    /// Whether there is consent to all data that a server lacks which is no sandbox.
    pub(super) fn data_is_agreed(&self, plan: &Plan, target: &Target) -> Result<(), LabError> {
        if is_sandbox(target) || self.consent.data {
            return Ok(());
        }
        match lacking(plan, target)?.iter().map(listed).collect::<Vec<_>>() {
            lacking if lacking.is_empty() => Ok(()),
            lacking => Err(LabError::DataNotAgreed {
                objects: lacking.join(", "),
            }),
        }
    }

    /// Makes data on a server that is no sandbox: with consent, in the journal, and dropped when everything is restored.
    fn create_marked(
        &mut self,
        conninfo: &Conninfo,
        changer: &mut Changer<'_>,
        data: DataKey,
    ) -> Result<(), LabError> {
        let plan = data.plan();
        if !self.consent.data {
            return Err(LabError::DataNotAgreed {
                objects: listed(&plan),
            });
        }
        let what = format!("scale {}, about {}", plan.scale, plan.size());
        changer.make_data(plan.dataset.name(), &what, |mark| {
            let plan = DataPlan {
                mark: Some(mark.to_owned()),
                ..plan
            };
            self.create(conninfo, &plan)
        })?
    }
}

impl Running<'_, '_> {
    /// Makes data that is missing and brings it to the state that a trial of the treatment begins with.
    pub(super) fn bring_data(&mut self, treatment: &Treatment) -> Result<(), LabError> {
        let Some(data) = data_of(treatment) else {
            return Ok(());
        };
        let reset = treatment.data.reset.unwrap_or_default();
        let Some(at) = &mut self.at else { return Ok(()) };
        let key = (at.stand.clone(), data.name());
        let mut is_untouched = self.untouched.remove(&key);
        if self.whole.insert(key) && !is_untouched {
            is_untouched = self.lab.ensure_data(self.plan, &mut at.changer, data)?;
        }
        let target = at.changer.target()?;
        let conninfo = conninfo_of(self.plan, treatment, target);
        match reset {
            Reset::None => {}
            Reset::Recreate if is_untouched => {}
            Reset::Recreate => self.lab.create(&conninfo, &data.plan())?,
            Reset::Template => anew_from_template(&target.conninfo, conninfo.database())?,
            Reset::Vacuum => {
                let mut server = Server::connect(&conninfo)?;
                server.without_limit()?;
                server.execute("a vacuum before the trial", "VACUUM (ANALYZE)")?;
                server.execute("a checkpoint before the trial", "CHECKPOINT")?;
            }
            Reset::Copy => self.copy_back(&data.name())?,
        }
        Ok(())
    }

    /// The files as they were before the first trial on this server; they are saved then.
    fn copy_back(&mut self, name: &str) -> Result<(), LabError> {
        let Some(at) = &self.at else { return Ok(()) };
        let Control::Sandbox(sandbox) = &at.changer.target()?.control else {
            return Err(LabError::SandboxOnly("a copy of the files"));
        };
        let stand = if at.stand.is_target() {
            "target".to_owned()
        } else {
            at.stand.label()
        };
        let place: PathBuf = self.lab.scratch.join(format!("{}-{stand}-{name}", self.id));
        let trouble = |source: pgdyno_server::sandbox::SandboxError| LabError::Stand {
            what: "copying the data's files".to_owned(),
            source: source.into(),
        };
        sandbox.stop().map_err(trouble)?;
        // Whole copies are of the data as it was made: nothing has run on it before the first one.
        let copied = match is_whole_copy(&place) {
            true => sandbox.restore_copy(&place, &mut |_| {}),
            false => sandbox.save_copy(&place, &mut |_| {}),
        };
        // Whatever went wrong, the server is not left down.
        let started = sandbox.start();
        copied.map_err(trouble)?;
        started.map_err(trouble)
    }

    /// Where a sandbox has loaded pg_stat_statements, the load's database has the extension too: its statements have texts and counts.
    /// Where it cannot be made, what looks at statements tells that it is not there.
    pub(super) fn count_statements(&self, conninfo: &Conninfo) -> Result<(), ServerError> {
        if !self.target().is_ok_and(is_sandbox) {
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

    /// Reads the data into caches, as the treatment wants. Cold caches come with the restart.
    pub(super) fn prewarm(&self, treatment: &Treatment, conninfo: &Conninfo) -> Result<(), ServerError> {
        match treatment.data.prewarm.unwrap_or_default() {
            Prewarm::None | Prewarm::Cold => Ok(()),
            Prewarm::PgPrewarm => {
                let may_make = self.target().is_ok_and(is_sandbox);
                prewarm_with_extension(conninfo, may_make)
            }
            Prewarm::Read => read_pass(conninfo),
        }
    }
}

/// What a plan makes, each object with the room that it takes, as one line.
pub(crate) fn listed(plan: &DataPlan) -> String {
    let objects = plan.objects();
    let each = objects.iter().map(|object| match object.bytes {
        0 => object.name.clone(),
        _ => format!("{} ({})", object.name, object.size()),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The data of the tested treatments that a server lacks which is no sandbox.
pub(super) fn lacking(plan: &Plan, target: &Target) -> Result<Vec<DataPlan>, DataError> {
    let keys: BTreeSet<DataKey> = plan
        .tested()
        .into_iter()
        .filter_map(|i| data_of(&plan.treatments[i]))
        .collect();
    let endpoint = endpoint(&target.conninfo);
    let mut lacking = Vec::new();
    for key in keys {
        match shape_of(&endpoint, key.dataset) {
            Ok(_) => {}
            Err(DataError::Missing { .. }) => lacking.push(key.plan()),
            Err(error) => return Err(error),
        }
    }
    Ok(lacking)
}

fn make_database(conninfo: &Conninfo, name: &str) -> Result<(), ServerError> {
    let mut server = Server::connect(conninfo)?;
    if has_database(&mut server, name)? {
        return Ok(());
    }
    server.without_limit()?;
    server.execute("making a database", &format!("CREATE DATABASE {name}"))
}

fn has_database(server: &mut Server, name: &str) -> Result<bool, ServerError> {
    let known = format!("SELECT 1 FROM pg_database WHERE datname = '{name}'");
    Ok(server.value("looking for a database", &known)?.is_some())
}

/// The data as it was made, in a database that nobody writes to.
fn keep_template(conninfo: &Conninfo, name: &str) -> Result<(), ServerError> {
    let template = template_of(name);
    let mut server = Server::connect(conninfo)?;
    if has_database(&mut server, &template)? {
        return Ok(());
    }
    server.without_limit()?;
    server.execute(
        "making a template",
        &format!("CREATE DATABASE {template} TEMPLATE {name}"),
    )
}

fn anew_from_template(conninfo: &Conninfo, name: &str) -> Result<(), ServerError> {
    let template = template_of(name);
    let mut server = Server::connect(conninfo)?;
    server.without_limit()?;
    server.execute(
        "dropping the data of the trial before",
        &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
    )?;
    // Through WAL it would be written twice, and the load would begin with a checkpoint's worth of it.
    let by_files = match server.version().major >= 15 {
        true => " STRATEGY file_copy",
        false => "",
    };
    server.execute(
        "making the data anew",
        &format!("CREATE DATABASE {name} TEMPLATE {template}{by_files}"),
    )
}

/// Tables and indexes of the load, the smallest first, so that what does not fit is the largest.
const RELATIONS: &str = "SELECT format('%I.%I', n.nspname, c.relname)::text FROM pg_class c JOIN pg_namespace n ON \
     n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = ANY ('{KINDS}') ORDER BY pg_relation_size(c.oid)";

/// Whether pg_stat_statements is among the libraries that the server was started with, and not an extension of the database yet.
const NOT_MADE: &str = "SELECT 1 WHERE 'pg_stat_statements' = \
     ANY (regexp_split_to_array(current_setting('shared_preload_libraries'), '[\\s,]+')) \
     AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements')";
/// Also where a treatment makes transactions read only.
const MAKE: &str = "BEGIN READ WRITE; CREATE EXTENSION pg_stat_statements; COMMIT";

fn relations(server: &mut Server, kinds: &str) -> Result<Vec<String>, ServerError> {
    let sql = RELATIONS.replace("KINDS", kinds);
    let rows = server.rows("looking for tables to read", &sql)?;
    Ok(rows
        .into_iter()
        .filter_map(|mut row| row.swap_remove(0))
        .collect())
}

/// Where the extension is not there it is made, in a sandbox; on any other server its tables are read once instead.
fn prewarm_with_extension(conninfo: &Conninfo, may_make: bool) -> Result<(), ServerError> {
    let mut server = Server::connect(conninfo)?;
    server.without_limit()?;
    let there = match may_make {
        true => "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_prewarm'",
        false => "SELECT 1 FROM pg_extension WHERE extname = 'pg_prewarm'",
    };
    if server.value("looking for pg_prewarm", there)?.is_none() {
        return read_pass(conninfo);
    }
    if may_make {
        server.execute("making pg_prewarm", "CREATE EXTENSION IF NOT EXISTS pg_prewarm")?;
    }
    for relation in relations(&mut server, "r,i")? {
        let name = relation.replace('\'', "''");
        server.execute(
            "reading data into shared buffers",
            &format!("SELECT pg_prewarm('{name}'::regclass)"),
        )?;
    }
    Ok(())
}

/// Counts all rows, so that each page is read once.
fn read_pass(conninfo: &Conninfo) -> Result<(), ServerError> {
    let mut server = Server::connect(conninfo)?;
    server.without_limit()?;
    for relation in relations(&mut server, "r")? {
        server.execute("reading data once", &format!("SELECT count(*) FROM {relation}"))?;
    }
    Ok(())
}
