//! Before a sandbox runs: what is known without its server.

use super::programs::{missing_programs, missing_versions};
use super::room::{Need, check_room, of_own_servers};
use super::wants::{Allowed, unmet};
use super::{Finding, FindingKind, PreflightReport, consents, exclude, of_version, say_what_stops};
use crate::file::Reset;
use crate::plan::{Consent, Plan, ServerVariant, data_of};
use pgdyno_host::{HostAccess, tree_bytes};
use pgdyno_knobs::Catalogue;
use pgdyno_sandbox::BinarySources;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A sandbox that a run makes or starts.
pub struct Unstarted<'a> {
    /// The machine that trials run on.
    pub host: &'a dyn HostAccess,
    /// Knobs that may be turned.
    pub catalogue: &'a Catalogue,
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
    /// Major version of its server.
    pub version: Option<u32>,
    /// Data directory of the server.
    pub data: &'a Path,
}

impl Unstarted<'_> {
    /// Finds what can be found, and excludes from the plan the treatments that cannot be tested.
    pub fn check(&self, plan: &mut Plan) -> PreflightReport {
        let mut found = PreflightReport::default();
        for finding in consents(plan, self.catalogue, self.consent) {
            found.add(finding);
        }
        for treatment in &plan.treatments {
            let version = treatment.own_version().or(self.version);
            let wrong = version.map(|version| of_version(self.catalogue, &treatment.settings, version));
            let unmet = unmet(treatment, Allowed::OfSandbox).into_iter();
            let unmet = unmet.map(|what| Finding::new(FindingKind::Other, what, &[]));
            for finding in wrong.into_iter().flatten().chain(unmet) {
                found.add(Finding {
                    treatments: vec![treatment.name.clone()],
                    ..finding
                });
            }
        }
        missing_programs(self.path.unwrap_or_default(), plan, &mut found);
        missing_versions(self.binaries, self.stop, plan, &mut found);
        exclude(plan, &found);
        say_what_stops(plan, &mut found);
        self.room(plan, &mut found);
        found
    }

    fn room(&self, plan: &Plan, found: &mut PreflightReport) {
        let tested: Vec<_> = plan.tested().into_iter().map(|i| &plan.treatments[i]).collect();
        let here = || tested.iter().filter(|treatment| treatment.variant().is_target());
        let keys: BTreeSet<_> = here().filter_map(|treatment| data_of(treatment)).collect();
        let all: u64 = keys.iter().map(|key| key.plan().bytes()).sum();
        let has = |reset: Reset| here().any(|t| t.data.reset == Some(reset));
        let times = if has(Reset::Template) { 2 } else { 1 };
        // How much of it is the data is known when its server runs.
        let there = tree_bytes(self.data);
        let needs = |bytes: u64, found: &mut PreflightReport| {
            let data = ("data", self.data, bytes);
            let copy = ("a copy of the files", self.scratch, there.max(bytes));
            let own = [data].into_iter().chain(has(Reset::Copy).then_some(copy));
            let mut needs: Vec<Need> = own
                .map(|(what, place, bytes)| Need {
                    what,
                    place: place.to_owned(),
                    bytes,
                })
                .collect();
            needs.extend(of_own_servers(
                plan,
                (&ServerVariant::default(), self.data),
                found,
            ));
            needs
        };
        let (mut most, mut least) = (PreflightReport::default(), PreflightReport::default());
        let needed = needs(all * times, &mut most);
        check_room(self.host, plan, self.data, &needed, &mut most);
        let needed = needs((all * times).saturating_sub(there), &mut least);
        check_room(self.host, plan, self.data, &needed, &mut least);
        if least.findings.len() < most.findings.len() {
            let why =
                "free space for the data: how much the sandbox already holds is known only when it runs";
            least.unproven.push(why.to_owned());
        }
        found.extend(least);
    }
}
