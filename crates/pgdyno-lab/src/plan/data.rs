//! The data that treatments read, worked out from the plan alone.

use super::{Plan, ServerVariant, Treatment, plan_of_load};
use crate::file::Reset;
use pgdyno_record::short_hash;
use pgdyno_server::shown_statement;
use pgdyno_workload::{DataPlan, Dataset, MakingStatement, Partitions, makes_objects, making_statements};
use std::collections::BTreeSet;

/// What distinguishes one database's content from another's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DataKey {
    pub(crate) dataset: Dataset,
    pub(crate) scale: u32,
    pub(crate) fillfactor: Option<u32>,
    pub(crate) partitions: Option<Partitions>,
    pub(crate) sql: Option<String>,
}

impl DataKey {
    /// The name of a database of its own.
    pub(crate) fn name(&self) -> String {
        let full = self
            .fillfactor
            .map(|full| format!("_f{full}"))
            .unwrap_or_default();
        let parts = self
            .partitions
            .map(|parts| format!("_{}{}", parts.method, parts.count));
        let parts = parts.unwrap_or_default();
        let sql = self.sql.as_ref().map(|sql| format!("_s{}", short_hash(sql)));
        let sql = sql.unwrap_or_default();
        format!("pgdyno_{}_{}{full}{parts}{sql}", self.dataset.name(), self.scale)
    }

    /// The plan by which the data is made.
    pub(crate) fn plan(&self) -> DataPlan {
        DataPlan {
            fillfactor: self.fillfactor,
            partitions: self.partitions,
            sql: self.sql.clone(),
            ..DataPlan::new(self.dataset, self.scale)
        }
    }
}

/// The name of the database that new ones of a name are copied from.
pub(crate) fn template_of(name: &str) -> String {
    format!("{name}_template")
}

/// The data that a treatment's load reads; `None` where it reads none, or brings its own.
pub(crate) fn data_of(treatment: &Treatment) -> Option<DataKey> {
    let dataset = treatment.data.of_load(&treatment.load)?;
    Some(DataKey {
        dataset,
        scale: treatment.data.scale?,
        fillfactor: treatment.data.fillfactor,
        partitions: treatment.data.partitions,
        sql: treatment.data.sql.clone(),
    })
}

impl Treatment {
    /// Bytes of the data that its load reads, approximately; `None` where it reads none, or brings
    /// its own.
    pub fn data_bytes(&self) -> Option<u64> {
        Some(data_of(self)?.plan().bytes())
    }
}

/// Commands of the file, and a program that brings data of its own: nothing is known of what they
/// make on a server.
fn commands_of(treatment: &Treatment) -> impl Iterator<Item = &str> {
    let (load, data) = (&treatment.load, &treatment.data);
    let program = load.program.as_deref();
    let brings_data = program.filter(|name| *name != "pgbench" && data.dataset.is_none());
    let main = load.command.as_deref().or(brings_data);
    let each = [load.prepare.as_deref(), main, load.cleanup.as_deref()];
    each.into_iter().flatten().filter(move |_| program.is_some())
}

/// Statements of a treatment's script that make, change or remove objects. A script that cannot be
/// read has none: its error is another finding.
fn making_in(treatment: &Treatment) -> Vec<String> {
    let plan = plan_of_load(&treatment.load).ok().flatten();
    let statements = plan.and_then(|plan| making_statements(&plan).ok());
    let statements = statements.unwrap_or_default().into_iter();
    let shown =
        |of: MakingStatement| format!("{}, line {}: {}", of.script, of.line, shown_statement(&of.sql));
    statements.map(shown).collect()
}

impl Plan {
    /// Commands of the tested treatments of which nothing is known, and statements of their scripts
    /// and of figures that make, change or remove objects; each once.
    pub(crate) fn commands(&self) -> Vec<String> {
        let tested = self.tested();
        let treatments = || tested.iter().map(|&i| &self.treatments[i]);
        let commands = treatments().flat_map(commands_of).map(str::to_owned);
        let figures = self.file.figure.iter();
        let figures = figures.filter_map(|figure| Some((&figure.name, figure.sql.as_ref()?)));
        let figures = figures.filter(|(_, sql)| makes_objects(sql));
        let figures = figures.map(|(name, sql)| format!("[[figure]] {name}: {}", shown_statement(sql)));
        let mut all: Vec<String> = Vec::new();
        for command in commands.chain(treatments().flat_map(making_in)).chain(figures) {
            if !all.contains(&command) {
                all.push(command);
            }
        }
        all
    }

    /// The data of the tested treatments that `wanted` accepts.
    pub(crate) fn data(&self, wanted: impl Fn(&Treatment) -> bool) -> BTreeSet<DataKey> {
        let tested = self.tested().into_iter().map(|i| &self.treatments[i]);
        tested
            .filter(|treatment| wanted(treatment))
            .filter_map(data_of)
            .collect()
    }

    /// The first tested treatment that reads some data.
    pub(crate) fn reader_of(&self, data: &DataKey) -> Option<&Treatment> {
        let mut tested = self.tested().into_iter().map(|i| &self.treatments[i]);
        tested.find(|treatment| data_of(treatment).as_ref() == Some(data))
    }

    /// The database of some data, where it is not the target's own: one for each kind of data where
    /// there are several, or where it is renewed from a template or has SQL of its own.
    pub(crate) fn database_of(&self, data: &DataKey) -> Option<String> {
        let is_apart = self.data(|_| true).len() > 1 || self.uses_template() || data.sql.is_some();
        is_apart.then(|| data.name())
    }

    /// Whether data is renewed from a template before trials.
    pub(crate) fn uses_template(&self) -> bool {
        let mut tested = self.tested().into_iter().map(|i| &self.treatments[i]);
        tested.any(|t| t.data.reset == Some(Reset::Template))
    }

    /// Whether the files of a server are restored before trials on some data.
    pub(crate) fn copies_files(&self, variant: &ServerVariant, data: &DataKey) -> bool {
        let mut tested = self.tested().into_iter().map(|i| &self.treatments[i]);
        tested.any(|t| {
            t.data.reset == Some(Reset::Copy)
                && t.variants().contains(variant)
                && data_of(t).as_ref() == Some(data)
        })
    }
}

/// What a plan makes, each object with the room that it takes, as one line.
pub(crate) fn listed(plan: &DataPlan) -> String {
    let objects = plan.objects();
    let each = objects.iter().map(|object| match object.bytes {
        0 => object.name.clone(),
        _ => format!("{} ({})", object.name, object.size()),
    });
    let all = each.collect::<Vec<_>>().join(", ");
    match plan.partitions {
        None => all,
        Some(partitions) => format!("{all}; the large tables in {}", partitions.text()),
    }
}
