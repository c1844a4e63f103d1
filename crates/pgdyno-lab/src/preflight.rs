//! What keeps an experiment, or some of its treatments, from running here: all of it at once, found
//! without changing anything, each with what mends it. A run and its dry run ask the same
//! questions.

mod ahead;
mod data;
mod programs;
mod rights;
mod room;
mod starts;
mod statements;
mod wants;

use crate::file::{SettingScope, Untested, settings_of};
use crate::measure::{Generators, LoadFrom};
use crate::plan::{Consent, Plan, ServerVariant, Treatment};
use pgdyno_host::HostAccess;
use pgdyno_knobs::{ApplyError, Catalogue, CatalogueError, Journals, Objection, Reader, Setting, Target};
use pgdyno_sandbox::{BinarySources, Control, ControlError};
use pgdyno_server::{Server, ServerError, one_line, session_limits};
use pgdyno_workload::DataObject;
use programs::missing_versions;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wants::{Allowed, for_sandboxes, of_standbys, too_many_clients, unmet};

pub use ahead::Unstarted;

/// Oldest version to experiment with.
const VERSION_MIN: u32 = 14;

/// The kind of an obstacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// Consent that was not given.
    Consent,
    /// A value or a text that is wrong.
    Value,
    /// A right that is missing.
    Right,
    /// Anything else: room, tables in the way, a place that is not there.
    Other,
}

impl FindingKind {
    /// Name in JSON: "consent".
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Consent => "consent",
            FindingKind::Value => "value",
            FindingKind::Right => "right",
            FindingKind::Other => "other",
        }
    }
}

/// Something that keeps an experiment, or treatments of it, from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind of obstacle, by which it is clear who can remove it.
    pub kind: FindingKind,
    /// The treatments that are not tested for it, by name; empty where nothing can run.
    pub treatments: Vec<String>,
    /// The obstacle in a sentence.
    pub what: String,
    /// Each by itself a flag, a key or a statement; all of them are needed, in this order.
    pub mends: Vec<String>,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, what: impl Into<String>, mends: &[String]) -> Finding {
        Finding {
            kind,
            treatments: Vec::new(),
            what: what.into(),
            mends: mends.to_vec(),
        }
    }

    /// Whether nothing can run for it.
    pub fn is_fatal(&self) -> bool {
        self.treatments.is_empty()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.treatments.is_empty() {
            write!(f, "not tested: {}: ", one_line(&self.treatments.join(", ")))?;
        }
        f.write_str(&one_line(&self.what))?;
        self.mends
            .iter()
            .try_for_each(|mend| write!(f, "\n      hint: {}", one_line(mend)))
    }
}

/// Several findings as the text of an error.
pub(crate) fn listed(findings: &[Finding]) -> String {
    let each = findings.iter().map(|finding| format!("\n  - {finding}"));
    each.collect()
}

/// Where an experiment is to run.
pub struct Preflight<'a> {
    /// The machine that trials run on.
    pub host: &'a dyn HostAccess,
    /// Knobs that may be turned.
    pub catalogue: &'a Catalogue,
    /// The server that trials run on.
    pub target: &'a Target,
    /// Which of the plan's servers that is.
    pub examined: ServerVariant,
    /// By which changes of other users are found.
    pub journals: &'a Journals,
    /// What the user has agreed to.
    pub consent: &'a Consent,
    /// Directories in which programs are looked for, as PATH has them.
    pub path: Option<&'a str>,
    /// Where programs of PostgreSQL come from.
    pub binaries: &'a BinarySources,
    /// Set to end in order.
    pub stop: &'a AtomicBool,
    /// Where copies of files are kept.
    pub scratch: &'a Path,
    /// Hosts that drive loads, where there are any.
    pub generators: Option<&'a dyn Generators>,
    /// Whether a throw-away server is started with what takes a restart. A run finds out by itself.
    pub rehearses: bool,
}

/// The obstacles of an experiment on a target.
#[derive(Debug, Default)]
pub struct PreflightReport {
    /// All that keeps something from running.
    pub findings: Vec<Finding>,
    /// What is made on a server that pgdyno did not create, and dropped at the end.
    pub objects: Vec<DataObject>,
    /// Commands that run on such a server, and may make anything there, and statements that do.
    pub commands: Vec<String>,
    /// What could not be proven, each with the reason.
    pub unproven: Vec<String>,
}

impl PreflightReport {
    fn add(&mut self, finding: Finding) {
        let same = |other: &&mut Finding| other.what == finding.what && other.mends == finding.mends;
        match self.findings.iter_mut().find(same) {
            // What keeps all from running keeps each of them.
            Some(other) if !other.is_fatal() && !finding.is_fatal() => {
                let new = finding.treatments.into_iter();
                let new: Vec<String> = new.filter(|name| !other.treatments.contains(name)).collect();
                other.treatments.extend(new);
            }
            Some(other) => other.treatments.clear(),
            None => self.findings.push(finding),
        }
    }

    fn add_all(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.add(finding));
    }

    /// Adds what another look has found.
    pub fn extend(&mut self, other: PreflightReport) {
        self.add_all(other.findings);
        self.objects.extend(other.objects);
        self.commands.extend(other.commands);
        self.unproven.extend(other.unproven);
    }

    /// Whether the experiment could not run.
    pub fn is_fatal(&self) -> bool {
        self.findings.iter().any(Finding::is_fatal)
    }
}

/// Consent that a plan lacks: the first treatment that needs it, for each knob.
pub fn consents(plan: &Plan, catalogue: &Catalogue, consent: &Consent) -> Vec<Finding> {
    let lacking = plan.unagreed(catalogue, consent).into_iter();
    lacking
        .map(|(treatment, knob)| {
            let what = format!(
                "{treatment} sets {knob}, which can lose committed data in a crash: this needs consent"
            );
            Finding::new(
                FindingKind::Consent,
                what,
                &[format!("--accept-durability-risk {knob}")],
            )
        })
        .collect()
}

impl Preflight<'_> {
    /// Finds everything, and excludes from the plan the treatments that cannot be tested.
    ///
    /// # Errors
    ///
    /// A server that cannot be asked.
    pub fn check(&self, plan: &mut Plan, server: &mut Server) -> Result<PreflightReport, ServerError> {
        let mut found = PreflightReport::default();
        for finding in consents(plan, self.catalogue, self.consent) {
            found.add(finding);
        }
        if server.version().major < VERSION_MIN {
            let version = server.version();
            let what = format!(
                "PostgreSQL {version} is too old for an experiment; {VERSION_MIN} and later can be used"
            );
            found.add(Finding::new(FindingKind::Other, what, &[]));
            return Ok(found);
        }
        self.settings(plan, &mut found);
        self.places(plan, server, &mut found)?;
        self.programs(plan, &mut found);
        missing_versions(self.binaries, self.stop, plan, &mut found);
        self.prepared(plan, &mut found);
        exclude(plan, &found);
        if self.rehearses {
            self.starts(plan, server, &mut found)?;
        }
        self.commands(plan, server, &mut found)?;
        self.rights(plan, server, &mut found)?;
        self.data(plan, server, &mut found)?;
        self.load_hosts(plan, &mut found);
        exclude(plan, &found);
        say_what_stops(plan, &mut found);
        Ok(found)
    }

    /// Hosts that would drive loads, each asked once for each way to the server.
    fn load_hosts(&self, plan: &Plan, found: &mut PreflightReport) {
        let Some(generators) = self.generators else {
            return;
        };
        let mut asked: Vec<(LoadFrom<'_>, Vec<String>)> = Vec::new();
        for number in plan.tested() {
            let treatment = &plan.treatments[number];
            let Some(hosts) = &treatment.load.hosts else {
                continue;
            };
            let from = LoadFrom {
                generators,
                hosts,
                connection: treatment.load.connection.as_deref(),
            };
            let is_same =
                |other: &LoadFrom<'_>| (other.hosts, other.connection) == (from.hosts, from.connection);
            match asked.iter_mut().find(|(other, _)| is_same(other)) {
                Some((_, treatments)) => treatments.push(treatment.name.clone()),
                None => asked.push((from, vec![treatment.name.clone()])),
            }
        }
        for (from, treatments) in asked {
            let wrong = generators.check(&from, &[&self.target.conninfo], self.stop);
            found.add_all(wrong.into_iter().map(|what| Finding {
                treatments: treatments.clone(),
                ..Finding::new(FindingKind::Other, what, &[])
            }));
        }
    }

    fn settings(&self, plan: &Plan, found: &mut PreflightReport) {
        let reader = Reader {
            host: self.host,
            catalogue: self.catalogue,
            target: Some(self.target),
            journals: Some(self.journals),
        };
        let mut seen: Vec<(Setting, Vec<Finding>)> = Vec::new();
        let mut of = |setting: &Setting| {
            if let Some((_, findings)) = seen.iter().find(|(other, _)| other == setting) {
                return findings.clone();
            }
            let objections = match plan.file.target.scope {
                SettingScope::Server => reader.objections(setting),
                SettingScope::Session => reader.session_objections(setting),
            };
            let objections = objections.into_iter();
            let findings: Vec<Finding> = objections
                .map(|objection| Preflight::of_objection(setting, objection))
                .collect();
            seen.push((setting.clone(), findings.clone()));
            findings
        };
        let elsewhere: Vec<&Treatment> = plan.treatments.iter().filter(|t| t.has_own_programs()).collect();
        let here = plan.treatments.iter().filter(|t| !t.has_own_programs());
        for treatment in here {
            // What all have is shown for none, unless other versions are tested too.
            let own = |finding: Finding| Finding {
                treatments: vec![treatment.name.clone()],
                ..finding
            };
            for finding in plan.base().iter().flat_map(&mut of) {
                found.add(match elsewhere.is_empty() {
                    true => finding,
                    false => own(finding),
                });
            }
            for finding in treatment.step.iter().flat_map(&mut of) {
                found.add(own(finding));
            }
        }
        // Each load has them.
        let events = plan
            .file
            .event
            .iter()
            .flat_map(|event| settings_of(&event.settings));
        for setting in events {
            of(&setting).into_iter().for_each(|finding| found.add(finding));
        }
        self.elsewhere(&elsewhere, found);
    }

    /// Settings of other versions than the target's, as far as the catalogue knows them.
    fn elsewhere(&self, treatments: &[&Treatment], found: &mut PreflightReport) {
        for treatment in treatments {
            // Programs that cannot be run are found by themselves.
            let Some(version) = treatment.own_version() else {
                continue;
            };
            for finding in of_version(self.catalogue, &treatment.settings, version) {
                found.add(Finding {
                    treatments: vec![treatment.name.clone()],
                    ..finding
                });
            }
            if !treatment.settings.is_empty() {
                found.unproven.push(format!(
                    "settings of {} on PostgreSQL {version}: the server is made when it is its turn",
                    treatment.name
                ));
            }
        }
    }

    fn of_objection(setting: &Setting, objection: Objection) -> Finding {
        let Objection { error, mut mends } = objection;
        let message = error.to_string();
        let is_of_server = matches!(&error, ApplyError::NoRight { .. } | ApplyError::NoAlterSystem);
        // Most errors name the knob first.
        let what = match message.starts_with(&setting.knob) || is_of_server {
            true => message,
            false => format!("{}: {message}", setting.knob),
        };
        let kind = match &error {
            ApplyError::Control(ControlError::NotAllowed) => {
                mends = vec!["--allow-restart".to_owned()];
                FindingKind::Consent
            }
            ApplyError::Catalogue(CatalogueError::Value { .. }) | ApplyError::NoParameter { .. } => {
                FindingKind::Value
            }
            ApplyError::NoRight { .. } | ApplyError::NoAlterSystem => FindingKind::Right,
            ApplyError::NoWayBack => FindingKind::Other,
            _ if !mends.is_empty() => FindingKind::Right,
            _ => FindingKind::Other,
        };
        Finding::new(kind, what, &mends)
    }

    /// What treatments ask for that this target, or this machine, has not.
    /// How many standbys the target has, each with all of its data.
    fn standbys(&self) -> u64 {
        match &self.target.control {
            Control::Sandbox(sandbox) => sandbox
                .record()
                .standbys
                .map_or(0, |standbys| standbys.count.into()),
            _ => 0,
        }
    }

    fn places(
        &self,
        plan: &Plan,
        server: &mut Server,
        found: &mut PreflightReport,
    ) -> Result<(), ServerError> {
        let mut limits = session_limits(server)?;
        // Sessions of a sandbox end with its restarts, and those of a pooler are given to the load.
        if self.is_sandbox() || self.target.conninfo.is_proxied() {
            limits.held = 0;
        }
        let standbys = self.standbys();
        let allowed = match (self.is_sandbox(), self.target.control.can_restart()) {
            (true, _) => Allowed::OfSandbox,
            (false, true) => Allowed::Restart,
            (false, false) => Allowed::NoRestart,
        };
        for treatment in &plan.treatments {
            let treatments = vec![treatment.name.clone()];
            let on_sandboxes = match self.is_sandbox() {
                true => Vec::new(),
                false => for_sandboxes(treatment, plan.kills()),
            };
            let on_sandboxes = on_sandboxes.into_iter().map(|what| {
                let mends = ["--target sandbox:NAME".to_owned()];
                Finding::new(FindingKind::Other, what, &mends)
            });
            let unmet = unmet(treatment, allowed).into_iter();
            let unmet = unmet.map(|what| Finding::new(FindingKind::Other, what, &[]));
            for finding in on_sandboxes.chain(unmet) {
                found.add(Finding {
                    treatments: treatments.clone(),
                    ..finding
                });
            }
            for what in of_standbys(treatment, standbys) {
                found.add(Finding {
                    treatments: treatments.clone(),
                    ..Finding::new(FindingKind::Other, what.to_owned(), &[])
                });
            }
            if let Some((what, room)) = too_many_clients(treatment, &limits, self.catalogue) {
                found.add(Finding {
                    treatments,
                    ..Finding::new(FindingKind::Other, what, &[format!("--set load.clients={room}")])
                });
            }
        }
        Ok(())
    }
}

/// What the catalogue has against settings on a server of a version.
fn of_version(catalogue: &Catalogue, settings: &[Setting], version: u32) -> Vec<Finding> {
    let of = |setting: &Setting| {
        let knob = match catalogue.check_settable(setting) {
            Ok(knob) => knob,
            Err(error) => return Some(error.to_string()),
        };
        let (since, until) = (knob.since.unwrap_or(0), knob.until.unwrap_or(u32::MAX));
        let hint = match version < since {
            true => format!("it has come with {since}"),
            false => format!("{until} was the last to have it"),
        };
        (!(since..=until).contains(&version))
            .then(|| format!("PostgreSQL {version} has no parameter {}; {hint}", knob.id))
    };
    let whats = settings.iter().filter_map(of);
    whats
        .map(|what| Finding::new(FindingKind::Value, what, &[]))
        .collect()
}

/// Excludes treatments that cannot be tested.
fn exclude(plan: &mut Plan, found: &PreflightReport) {
    let reasons: Vec<(usize, String)> = plan
        .treatments
        .iter()
        .enumerate()
        .filter_map(|(number, treatment)| {
            let of_it = found
                .findings
                .iter()
                .filter(|finding| finding.treatments.contains(&treatment.name));
            let reasons: Vec<&str> = of_it.map(|finding| finding.what.as_str()).collect();
            (!reasons.is_empty()).then(|| (number, reasons.join("; ")))
        })
        .collect();
    plan.exclude(&reasons);
}

/// Makes fatal what the file says is so, and says whether nothing is left to compare.
fn say_what_stops(plan: &Plan, found: &mut PreflightReport) {
    if plan.file.untested == Untested::Refuse {
        for finding in &mut found.findings {
            if !finding.treatments.is_empty() {
                finding.what = format!("{}: {}", finding.treatments.join(", "), finding.what);
            }
            finding.treatments.clear();
        }
    } else if nothing_is_left(plan) {
        let what = "no step can be tested here";
        found.add(Finding::new(FindingKind::Other, what, &[]));
    }
}

/// Whether there is nothing to compare.
fn nothing_is_left(plan: &Plan) -> bool {
    let tested = plan.tested();
    let judged = |i: &usize| plan.treatments[*i].against.is_some();
    let nothing = match plan.treatments.iter().any(|t| t.against.is_some()) {
        true => !tested.iter().any(judged),
        false => tested.is_empty(),
    };
    // Nor without what all is compared with.
    nothing || plan.treatments[0].why_not.is_some() && plan.file.factor.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_for_several_treatments_is_said_once_and_for_all_of_them_if_one_is_the_base() {
        let of = |treatment: &str, what: &str| Finding {
            treatments: vec![treatment.to_owned()],
            ..Finding::new(FindingKind::Right, what, &["GRANT x TO y".to_owned()])
        };
        let mut found = PreflightReport::default();
        for finding in [
            of("a", "no reload"),
            of("b", "no reload"),
            of("a", "no reload"),
            of("b", "no set"),
        ] {
            found.add(finding);
        }
        let shown: Vec<String> = found.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "not tested: a, b: no reload\n      hint: GRANT x TO y",
                "not tested: b: no set\n      hint: GRANT x TO y"
            ]
        );
        assert!(!found.is_fatal());
        found.add(Finding {
            treatments: Vec::new(),
            ..of("", "no reload")
        });
        found.add(of("c", "no reload"));
        assert_eq!(found.findings.len(), 2);
        assert!(found.findings[0].is_fatal() && found.is_fatal());
    }
}
