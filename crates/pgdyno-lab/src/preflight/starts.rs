//! Whether the server starts with what a treatment sets at its start: a throw-away server of the
//! same programs is started with it.

use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::plan::{Plan, Treatment};
use pgdyno_knobs::{Cost, Kind, Reader};
use pgdyno_sandbox::{Rehearsal, is_of_start, is_rehearsed, start_doubts, start_settings};
use pgdyno_server::{Server, ServerError};
use std::collections::BTreeMap;

/// Combinations of settings that are tried; each takes about a third of a second.
const TRIED_MAX: usize = 40;
/// vm.overcommit_memory of a kernel that promises no more memory than it has.
const STRICT: &str = "2";

type Settings = Vec<(String, String)>;

impl Preflight<'_> {
    /// Starts a server like the target's with each combination of settings that the target would be
    /// restarted with.
    pub(super) fn starts(
        &self,
        plan: &Plan,
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        let mut combinations: BTreeMap<Settings, Vec<String>> = BTreeMap::new();
        for treatment in plan.tested().into_iter().map(|i| &plan.treatments[i]) {
            if treatment.has_own_programs() {
                continue;
            }
            let (tried, untried) = self.at_start(treatment);
            if !untried.is_empty() {
                found.unproven.push(format!(
                    "whether the server starts with {} of {}: a second server cannot take it while the first one runs",
                    untried.join(", "),
                    treatment.name
                ));
            }
            if !tried.is_empty() {
                combinations
                    .entry(tried)
                    .or_default()
                    .push(treatment.name.clone());
            }
        }
        if combinations.is_empty() {
            return Ok(());
        }
        let rehearsal = match self.rehearsal(server)? {
            Ok(rehearsal) => rehearsal,
            Err(why) => {
                let names: Vec<String> = combinations.into_values().flatten().collect();
                found.unproven.push(unproven(&names, &why));
                return Ok(());
            }
        };
        let doubts = start_doubts(server)?;
        if !doubts.is_empty() {
            let names: Vec<String> = combinations.values().flatten().cloned().collect();
            found.unproven.push(unproven(&names, &doubts.join("; ")));
        }
        let mut failed = None;
        for (number, (settings, treatments)) in combinations.into_iter().enumerate() {
            if number >= TRIED_MAX {
                failed.get_or_insert_with(|| format!("{TRIED_MAX} others were tried"));
            }
            if let Some(why) = &failed {
                found.unproven.push(unproven(&treatments, why));
                continue;
            }
            match rehearsal.refusal(&settings) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let pairs = settings.iter().map(|(name, value)| format!("{name} = {value}"));
                    let pairs: Vec<String> = pairs.collect();
                    let what = format!("the server does not start with {}: {message}", pairs.join(", "));
                    found.add(Finding {
                        treatments,
                        ..Finding::new(FindingKind::Value, what, &[])
                    });
                }
                // What hangs once hangs again.
                Err(error) => {
                    found.unproven.push(unproven(&treatments, &error.to_string()));
                    failed = Some(error.to_string());
                }
            }
        }
        Ok(())
    }

    /// What a treatment sets at the server's start: what a throw-away server can take, and the
    /// names of the rest.
    fn at_start(&self, treatment: &Treatment) -> (Settings, Vec<String>) {
        let reader = Reader {
            host: self.host,
            catalogue: self.catalogue,
            target: Some(self.target),
            journals: Some(self.journals),
        };
        let (mut tried, mut also, mut untried) = (Settings::new(), Settings::new(), Vec::new());
        for setting in &treatment.settings {
            let is_parameter = |knob: &str| {
                self.catalogue
                    .find(knob)
                    .is_some_and(|knob| knob.kind == Kind::Guc)
            };
            if is_of_start(&setting.knob) {
                also.push((setting.knob.clone(), setting.value.clone()));
                continue;
            }
            if !reader.cost(&setting.knob).is_ok_and(|cost| cost == Cost::Restart) {
                continue;
            }
            match is_parameter(&setting.knob) && is_rehearsed(&setting.knob) {
                true => tried.push((setting.knob.clone(), setting.value.clone())),
                false => untried.push(setting.knob.clone()),
            }
        }
        if !tried.is_empty() {
            tried.append(&mut also);
        }
        tried.sort();
        (tried, untried)
    }

    /// A server like the target's, or why there is none.
    fn rehearsal(&self, server: &mut Server) -> Result<Result<Rehearsal, String>, ServerError> {
        let Some(data) = &self.target.data else {
            return Ok(Err(
                "its programs and files cannot be reached from here".to_owned()
            ));
        };
        let overcommit = self.host.read_trimmed("/proc/sys/vm/overcommit_memory");
        if overcommit.is_ok_and(|mode| mode == STRICT) {
            let why = "with vm.overcommit_memory = 2 there may be no memory for a second server";
            return Ok(Err(why.to_owned()));
        }
        let base = start_settings(server)?;
        Ok(Rehearsal::new(self.host, data, self.scratch, base).map_err(|error| error.to_string()))
    }
}

fn unproven(treatments: &[String], why: &str) -> String {
    format!(
        "whether the server starts with the settings of {}: {why}",
        treatments.join(", ")
    )
}
