//! Statements that the server would refuse: of loads and of figures.

use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::measure::endpoint;
use crate::plan::{Plan, Treatment, data_of, plan_of_load};
use pgdyno_engine::{ConnectError, Protocol, keeps_prepared_statements};
use pgdyno_workload::{
    Described, LoadPlan, StatementRefusal, Workload, refused_questions, refused_statements,
};

impl Preflight<'_> {
    /// Whether prepared statements stay with their session, where a load behind a pooler needs
    /// them. That of another program finds out by itself.
    pub(super) fn prepared(&self, plan: &Plan, found: &mut PreflightReport) {
        let conninfo = &self.target.conninfo;
        let usual = LoadPlan::closed(Workload::Simple, 1, 1).protocol;
        let needs = |treatment: &&Treatment| {
            let load = &treatment.load;
            load.program.is_none() && load.protocol.unwrap_or(usual) == Protocol::Prepared
        };
        let treatments: Vec<String> = self
            .here(plan)
            .into_iter()
            .filter(needs)
            .map(|t| t.name.clone())
            .collect();
        if !conninfo.is_proxied() || treatments.is_empty() {
            return;
        }
        if let Err(error) = keeps_prepared_statements(&endpoint(conninfo)) {
            let mend = "--set load.protocol=extended (or max_prepared_statements = 200 in pgbouncer.ini, of pgbouncer 1.21 or later)";
            let mends = match &error {
                ConnectError::NotPrepared { .. } => vec![mend.to_owned()],
                _ => Vec::new(),
            };
            found.add(Finding {
                treatments,
                ..Finding::new(FindingKind::Other, error.to_string(), &mends)
            });
        }
    }

    /// Statements of the loads that the server would refuse.
    pub(super) fn statements(&self, plan: &Plan, here: &[&Treatment], found: &mut PreflightReport) {
        let conninfo = &self.target.conninfo;
        let made = self.made(here, found);
        self.figures(plan, &made, found);
        let mut seen = Vec::new();
        for treatment in here {
            let load = (
                &treatment.load.workload,
                &treatment.load.script,
                &treatment.load.protocol,
            );
            let load_plan = match plan_of_load(&treatment.load) {
                Ok(Some(load_plan)) => load_plan,
                Ok(None) => continue,
                Err(error) => {
                    found.add(Finding {
                        treatments: vec![treatment.name.clone()],
                        ..Finding::new(FindingKind::Value, error.to_string(), &[])
                    });
                    continue;
                }
            };
            if treatment.data.sql.is_some() {
                found.unproven.push(format!(
                    "statements of {}: what they need is made by data.sql first",
                    treatment.name
                ));
                continue;
            }
            let refusals = match seen.iter().position(|(other, _)| *other == load) {
                Some(at) => at,
                None => {
                    let scale = treatment.data.scale.unwrap_or(1);
                    let asked = refused_statements(&endpoint(conninfo), &load_plan, scale, &made);
                    let asked = or_unproven(asked);
                    if let Some(why) = asked.unproven {
                        found
                            .unproven
                            .push(format!("statements of {}: {why}", treatment.name));
                    }
                    seen.push((load, asked.refusals));
                    seen.len() - 1
                }
            };
            for refusal in &seen[refusals].1 {
                found.add(Finding {
                    treatments: vec![treatment.name.clone()],
                    ..of_refusal(refusal)
                });
            }
        }
    }

    /// Tables that are there when the first load begins.
    fn made(&self, here: &[&Treatment], found: &PreflightReport) -> Vec<String> {
        let table = |name: &str| name.split(' ').nth(1).map(str::to_owned);
        // A sandbox gets its data made whatever is there.
        if self.is_sandbox() {
            let data = here.iter().filter_map(|treatment| data_of(treatment));
            let objects = data.flat_map(|key| key.plan().objects());
            return objects.filter_map(|object| table(&object.name)).collect();
        }
        found
            .objects
            .iter()
            .filter_map(|object| table(&object.name))
            .collect()
    }

    /// Statements of figures.
    fn figures(&self, plan: &Plan, made: &[String], found: &mut PreflightReport) {
        let figures = plan.file.figure.iter();
        let figures = figures.filter_map(|figure| Some((figure.name.clone(), figure.sql.clone()?)));
        let is_several = |sql: &str| sql.trim_end().trim_end_matches(';').contains(';');
        let (several, questions): (Vec<_>, Vec<_>) = figures.partition(|(_, sql)| is_several(sql));
        for (name, _) in several {
            found
                .unproven
                .push(format!("figure {name}: it may be several statements"));
        }
        if questions.is_empty() {
            return;
        }
        // Commands and scripts make what nobody knows, and a database of its own is not there yet.
        let makes_more = !plan.commands().is_empty()
            || plan
                .data(|_| true)
                .iter()
                .any(|key| plan.database_of(key).is_some());
        let may_be_made = |sql: &str| makes_more || made.iter().any(|name| sql.contains(name.as_str()));
        let asked = refused_questions(&endpoint(&self.target.conninfo), &questions, &may_be_made);
        let asked = or_unproven(asked);
        if let Some(why) = asked.unproven {
            found.unproven.push(format!("figures: {why}"));
        }
        for refusal in &asked.refusals {
            let finding = of_refusal(refusal);
            found.add(Finding {
                what: format!("[[figure]] {}", finding.what),
                ..finding
            });
        }
    }
}

fn or_unproven(asked: Result<Described, pgdyno_workload::DataError>) -> Described {
    asked.unwrap_or_else(|error| Described {
        unproven: Some(error.to_string()),
        ..Described::default()
    })
}

fn of_refusal(refusal: &StatementRefusal) -> Finding {
    let line = match refusal.line {
        0 => String::new(),
        line => format!(", line {line}"),
    };
    let what = format!(
        "{}{line}: the server refuses a statement: {} (SQLSTATE {})",
        refusal.script, refusal.reason, refusal.sqlstate
    );
    let kind = match refusal.grants.is_empty() {
        true => FindingKind::Value,
        false => FindingKind::Right,
    };
    Finding::new(kind, what, &refusal.grants)
}
