//! The plan: treatments with all that belongs to each, and the order of trials in every block.

mod combine;
mod data;
mod load;
mod order;
mod search;

pub(crate) use data::{DataKey, data_of, listed, template_of};
pub use load::load_plan;
pub(crate) use load::{measure_s, plan_of, plan_of_load, threads_of, workload_record};
pub(crate) use search::{BROKEN, SearchPlan};

use crate::file::{
    DataPart, Design, ExperimentFile, LOOPBACK, LevelsError, LoadOn, LoadPart, Place, PoolerWord, ServerPart,
    Slices, StepPart, settings_of, turns_of_servers,
};
use pgdyno_knobs::{AGREE_TO_RISK, Catalogue, CatalogueError, ConsentError, Setting};
use pgdyno_record::ErrorClass;
use pgdyno_record::{SettingRecord, TreatmentRecord};
use pgdyno_sandbox::Binaries;
use pgdyno_stats::DesignError;
use pgdyno_stats::{FixedDesign, Rules};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Name of the treatment that all others are compared with.
pub(crate) const REFERENCE: &str = "reference";
/// Its title.
const AS_IT_IS: &str = "As it is";
/// The factor that steps are levels of.
pub const STEP: &str = "step";
/// Restart, checkpoint and cross-check of a trial take about so many seconds beside its load.
pub const BESIDE_S: f64 = 4.0;
/// More treatments than this are a mistake in the file: at a minute each they take eight hours a
/// block.
const TREATMENTS_MAX: usize = 500;

/// A treatment.
#[derive(Debug, Clone, PartialEq)]
pub struct Treatment {
    /// Unique name; "reference" for the first of steps.
    pub name: String,
    /// Title that reports show in place of the name.
    pub title: String,
    /// Why it is tried, from the file; `None` without a reason there.
    pub reason: Option<String>,
    /// All settings that it runs with: those of the base and of earlier steps too.
    pub settings: Vec<Setting>,
    /// What it sets itself, without what is below.
    pub step: Vec<Setting>,
    /// Why it is not tested; `None` where it is.
    pub why_not: Option<String>,
    /// Factor and level, in the order of the file; "step" and its name for steps.
    pub levels: Vec<(String, String)>,
    /// Number of the treatment that it is compared with; `None` where it is compared with none.
    pub against: Option<usize>,
    /// Load with every key that its step or levels change.
    pub load: LoadPart,
    /// Data with every key that its step or levels change.
    pub data: DataPart,
    /// The environment of its server: version, volumes, pooler, neighbour and network.
    pub server: ServerPart,
}

/// What the user has agreed to.
#[derive(Debug, Clone, Default)]
pub struct Consent {
    /// Knobs that trade durability and may be turned all the same.
    pub durability: Vec<String>,
    /// Whether a server that is not a sandbox may be restarted.
    pub restart: bool,
    /// Whether data may be made on a server that is not a sandbox, and dropped at the end.
    pub data: bool,
}

/// Why a file makes no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A knob or value that the catalogue refuses.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A knob that trades durability without consent.
    #[error("{treatment} sets {knob}, which can lose committed data in a crash: this needs consent")]
    Durability {
        /// Name of the treatment.
        treatment: String,
        /// Id of the knob.
        knob: String,
    },
    /// Treatments that take turns on one and the same server.
    #[error(
        "\"{one}\" and \"{other}\" have the same server, and treatments that take turns have each its own; server.instance makes another one"
    )]
    SameServer {
        /// Name of the first treatment.
        one: String,
        /// Name of the other one.
        other: String,
    },
    /// Every combination of levels is excluded.
    #[error("[[exclude]] leaves no treatment")]
    NothingLeft,
    /// Levels of a factor that are none.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// Levels that make no treatment together.
    #[error(transparent)]
    Design(#[from] DesignError),
}

impl PlanError {
    /// Durability is not traded without consent.
    pub fn class(&self) -> ErrorClass {
        match self {
            PlanError::Catalogue(error) => error.class(),
            PlanError::Durability { .. } => ErrorClass::Refused,
            PlanError::SameServer { .. } => ErrorClass::Usage,
            PlanError::NothingLeft | PlanError::Levels(_) | PlanError::Design(_) => ErrorClass::Failed,
        }
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            PlanError::Catalogue(error) => error.hint(),
            PlanError::Durability { .. } => Some(AGREE_TO_RISK),
            PlanError::NothingLeft
            | PlanError::SameServer { .. }
            | PlanError::Levels(_)
            | PlanError::Design(_) => None,
        }
    }
}

/// Treatments of an experiment file, with settings, loads and seed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The file that it was made from.
    pub file: ExperimentFile,
    /// Treatments, the reference first.
    pub treatments: Vec<Treatment>,
    /// Seed of order and load.
    pub seed: u64,
    /// Settings that all have: those of the profile, and the file's own over them.
    base: Vec<Setting>,
}

impl Plan {
    /// The server variant that is examined first: the target, or the reference's where no treatment
    /// runs on the target. Of others, programs or places may be missing, which keeps their
    /// treatments alone from being tested.
    pub(crate) fn first_variant(&self) -> ServerVariant {
        let mut variants = self.treatments.iter().map(Treatment::variant);
        let of_reference = variants.next().unwrap_or_default();
        match of_reference.is_target() || variants.any(|variant| variant.is_target()) {
            true => ServerVariant::default(),
            false => of_reference,
        }
    }

    /// Works out a file; `profiles` are the settings of those that it names. A knob that trades
    /// durability is refused without consent to just that knob.
    pub fn new(
        file: ExperimentFile,
        profiles: &ProfileSettings,
        seed: u64,
        catalogue: &Catalogue,
        consent: &Consent,
    ) -> Result<Plan, PlanError> {
        let plan = Plan::unasked(file, profiles, seed)?;
        plan.agreed(catalogue, consent)?;
        Ok(plan)
    }

    /// Works out a file without asking for consent: [`Plan::unagreed`] has what needs it.
    pub fn unasked(file: ExperimentFile, profiles: &ProfileSettings, seed: u64) -> Result<Plan, PlanError> {
        let mut base = settings_of_profile(file.profile.as_deref(), profiles);
        lay_over(&mut base, &settings_of(&file.base));
        let treatments = combine::treatments(&file, &base, profiles)?;
        let mut plan = Plan {
            file,
            treatments,
            seed,
            base,
        };
        plan.fill();
        plan.servers_differ()?;
        Ok(plan)
    }

    /// Treatments whose servers take turns have each one of its own.
    fn servers_differ(&self) -> Result<(), PlanError> {
        if turns_of_servers(&self.file).is_none() {
            return Ok(());
        }
        for (i, treatment) in self.treatments.iter().enumerate() {
            let mut before = self.treatments[..i].iter();
            if let Some(one) = before.find(|one| one.variant() == treatment.variant()) {
                return Err(PlanError::SameServer {
                    one: one.name.clone(),
                    other: treatment.name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The plan of an experiment that has begun: its treatments set what they set then, though a
    /// profile may say something else by now, or of this machine.
    pub fn recalled(
        file: ExperimentFile,
        seed: u64,
        treatments: &[TreatmentRecord],
        catalogue: &Catalogue,
        consent: &Consent,
    ) -> Result<Plan, PlanError> {
        let plan = Plan::stored(file, seed, treatments)?;
        plan.agreed(catalogue, consent)?;
        Ok(plan)
    }

    /// The same to be read, not run: nobody is asked for consent.
    pub(crate) fn stored(
        file: ExperimentFile,
        seed: u64,
        treatments: &[TreatmentRecord],
    ) -> Result<Plan, PlanError> {
        let mut plan = Plan::unasked(file, &ProfileSettings::new(), seed)?;
        let number_of = |stored: &TreatmentRecord| plan.treatments.iter().position(|t| t.name == stored.name);
        let excluded: Vec<(usize, String)> = treatments
            .iter()
            .filter_map(|stored| Some((number_of(stored)?, stored.why_not.clone()?)))
            .collect();
        plan.exclude(&excluded);
        for treatment in &mut plan.treatments {
            let stored = treatments.iter().find(|stored| stored.name == treatment.name);
            let Some(stored) = stored else { continue };
            let setting = |stored: &SettingRecord| Setting {
                knob: stored.knob.clone(),
                value: stored.value.clone(),
            };
            treatment.settings = stored.settings.iter().map(setting).collect();
            let changed = stored.settings.iter().filter(|setting| setting.changed);
            treatment.step = changed.map(setting).collect();
        }
        Ok(plan)
    }

    /// Knobs that trade durability without consent: the first treatment that sets each so, and the
    /// knob.
    pub fn unagreed(&self, catalogue: &Catalogue, consent: &Consent) -> Vec<(String, String)> {
        self.lacking_consent(catalogue, consent).unwrap_or_default()
    }

    /// The servers of the tested treatments that are not the target.
    pub(crate) fn own_servers(&self) -> BTreeSet<ServerVariant> {
        let tested = self.tested().into_iter();
        let all = tested.flat_map(|i| self.treatments[i].variants());
        all.filter(|variant| !variant.is_target()).collect()
    }

    /// Whether servers are killed while loads run.
    pub(crate) fn kills(&self) -> bool {
        self.file.event.iter().any(|event| event.kill)
    }

    /// All that may be set, by treatments and by events.
    pub(crate) fn settings(&self) -> impl Iterator<Item = Setting> {
        let of_treatments = self.treatments.iter().flat_map(|treatment| &treatment.settings);
        let of_events = self
            .file
            .event
            .iter()
            .flat_map(|event| settings_of(&event.settings));
        of_treatments.cloned().chain(of_events)
    }

    /// Settings that all treatments have.
    pub(crate) fn base(&self) -> &[Setting] {
        &self.base
    }

    /// Excludes treatments, by number, with the reason; later cumulative steps then go without
    /// their settings.
    pub fn exclude(&mut self, reasons: &[(usize, String)]) {
        for (number, reason) in reasons {
            if let Some(treatment) = self.treatments.get_mut(*number) {
                treatment.why_not = Some(reason.clone());
            }
        }
        self.fill();
    }

    /// Settings of all treatments, and what each is compared with, given what is excluded.
    fn fill(&mut self) {
        if self.file.design != Design::Cumulative {
            for i in 0..self.treatments.len() {
                let treatment = &self.treatments[i];
                let mut settings = self.base.clone();
                lay_over(&mut settings, &treatment.step);
                self.treatments[i].settings = settings;
            }
            return;
        }
        let mut so_far = self.base.clone();
        let mut before = None;
        let (mut load, mut data, mut server) = whole_parts(&self.file);
        for (i, treatment) in self.treatments.iter_mut().enumerate() {
            let step = self.file.step.iter().find(|step| step.name == treatment.name);
            treatment.settings.clone_from(&so_far);
            lay_over(&mut treatment.settings, &treatment.step);
            treatment.against = before;
            let parts = step.map(|step| {
                (
                    step.load.over(&load),
                    step.data.over(&data),
                    step.server.over(&server),
                )
            });
            let (its_load, its_data, its_server) =
                parts.unwrap_or_else(|| (load.clone(), data.clone(), server.clone()));
            if treatment.why_not.is_none() {
                so_far.clone_from(&treatment.settings);
                (load, data, server) = (its_load.clone(), its_data.clone(), its_server.clone());
                before = Some(i);
            }
            (treatment.load, treatment.data, treatment.server) = (its_load, its_data, its_server);
        }
    }

    /// What a treatment's comparisons begin with; `None` of one that is compared with nothing.
    pub(crate) fn reference_of(&self, treatment: &Treatment) -> Option<&Treatment> {
        // A search compares nothing until its end.
        if self.file.search.is_some() {
            let reference = self.treatments.first();
            return reference.filter(|reference| reference.name != treatment.name);
        }
        let mut reference = self.treatments.get(treatment.against?)?;
        // Each is compared with one before it.
        while let Some(before) = reference.against {
            reference = self.treatments.get(before)?;
        }
        Some(reference)
    }

    /// The smallest effect that all blocks find with that probability, where trials of one
    /// treatment differ by `noise_floor` (0.02 = 2 %); `None` where nothing is compared, or nothing
    /// could be found.
    pub fn minimum_detectable_effect(&self, noise_floor: f64, power: f64) -> Option<f64> {
        let comparisons = self.treatments.iter().filter(|t| t.against.is_some()).count();
        let design = FixedDesign {
            comparisons: match self.file.design {
                // With the one before, and with the reference.
                Design::Cumulative => (comparisons * 2).saturating_sub(1),
                _ => comparisons,
            },
            noise_floor,
            rules: Rules {
                confidence: self.file.confidence,
                smallest_effect: self.file.smallest_effect,
                larger_is_better: true,
            },
        };
        design.minimum_detectable_effect(self.file.blocks as usize, power)
    }

    /// Seconds of a trial's load, the mean over the tested treatments; of a switchback those of its
    /// turns.
    pub fn trial_s(&self) -> f64 {
        if let Some(slices) = Slices::of(&self.file) {
            return slices.trial_s();
        }
        let tested = self.tested();
        let all: f64 = tested.iter().map(|&i| self.treatments[i].load_s()).sum();
        #[expect(clippy::cast_precision_loss, reason = "a number of treatments")]
        let n = tested.len().max(1) as f64;
        all / n
    }

    /// Blocks that share a load, at most; `None` where each trial has a load of its own.
    pub fn blocks_of_load(&self) -> Option<u32> {
        let treatments = u32::try_from(self.tested().len()).unwrap_or(u32::MAX);
        Slices::of(&self.file).map(|slices| slices.blocks_of_load(treatments))
    }

    /// Numbers of the treatments that are tested.
    pub fn tested(&self) -> Vec<usize> {
        (0..self.treatments.len())
            .filter(|&i| self.treatments[i].why_not.is_none())
            .collect()
    }

    /// Trials in all, if every block is run.
    pub fn trials(&self) -> u32 {
        match &self.file.search {
            Some(search) => search.trials,
            None => self.file.blocks * u32::try_from(self.tested().len()).unwrap_or(u32::MAX),
        }
    }
}

impl Plan {
    /// Whether there is consent to all that the treatments and events set.
    fn agreed(&self, catalogue: &Catalogue, consent: &Consent) -> Result<(), PlanError> {
        let lacking = self.lacking_consent(catalogue, consent)?;
        match lacking.into_iter().next() {
            Some((treatment, knob)) => Err(PlanError::Durability { treatment, knob }),
            None => Ok(()),
        }
    }

    /// Knobs that trade durability without consent to just that knob, each with the first treatment
    /// or event that sets it so.
    fn lacking_consent(
        &self,
        catalogue: &Catalogue,
        consent: &Consent,
    ) -> Result<Vec<(String, String)>, PlanError> {
        let of_treatments = self.treatments.iter().map(|treatment| {
            let settings = treatment.settings.iter().chain(&treatment.step);
            (treatment.name.clone(), settings.cloned().collect::<Vec<_>>())
        });
        let of_events = self.file.event.iter().map(|event| {
            let name = format!("the event \"{}\"", event.titled());
            (name, settings_of(&event.settings))
        });
        let mut lacking: Vec<(String, String)> = Vec::new();
        for (name, settings) in of_treatments.chain(of_events) {
            for setting in &settings {
                match catalogue.agree(setting, &consent.durability) {
                    Ok(_) => {}
                    Err(ConsentError::Catalogue(error)) => return Err(error.into()),
                    Err(ConsentError::Durability { knob, .. }) => {
                        if lacking.iter().all(|(_, known)| *known != knob) {
                            lacking.push((name.clone(), knob));
                        }
                    }
                }
            }
        }
        Ok(lacking)
    }
}

/// Settings of profiles, worked out for the target, by their names.
pub type ProfileSettings = BTreeMap<String, Vec<Setting>>;

fn settings_of_profile(name: Option<&str>, profiles: &ProfileSettings) -> Vec<Setting> {
    name.and_then(|name| profiles.get(name))
        .cloned()
        .unwrap_or_default()
}

/// Adds the settings of `over`, each in place of an earlier one of its knob.
pub(crate) fn lay_over(settings: &mut Vec<Setting>, over: &[Setting]) {
    for setting in over {
        settings.retain(|other| other.knob != setting.knob);
        settings.push(setting.clone());
    }
}

fn whole_parts(file: &ExperimentFile) -> (LoadPart, DataPart, ServerPart) {
    (file.load.clone(), file.data.clone(), file.server.clone())
}

impl Treatment {
    fn reference(file: &ExperimentFile, base: &[Setting]) -> Treatment {
        let (load, data, server) = whole_parts(file);
        Treatment {
            name: REFERENCE.into(),
            title: AS_IT_IS.into(),
            reason: None,
            settings: base.to_vec(),
            step: Vec::new(),
            why_not: None,
            levels: vec![(STEP.into(), REFERENCE.into())],
            against: None,
            load,
            data,
            server,
        }
    }

    /// Adds what a step or a level sets.
    fn with(mut self, part: &StepPart, profiles: &ProfileSettings) -> Treatment {
        lay_over(
            &mut self.step,
            &settings_of_profile(part.profile.as_deref(), profiles),
        );
        lay_over(&mut self.step, &settings_of(&part.settings));
        self.load = part.load.over(&self.load);
        self.data = part.data.over(&self.data);
        self.server = part.server.over(&self.server);
        self
    }

    /// Whether a pooler is before its server.
    pub(crate) fn has_pooler(&self) -> bool {
        self.server.pooler.and_then(PoolerWord::kind).is_some()
    }

    /// Seconds of its load, warm-up included.
    pub fn load_s(&self) -> f64 {
        self.load.warmup_s.unwrap_or(0.0) + measure_s(&self.load)
    }

    /// Whether its server runs other programs than the target's.
    pub(crate) fn has_own_programs(&self) -> bool {
        self.server.version.is_some() || self.server.bin.is_some()
    }

    /// Major version of its own programs; `None` where it has none, or they cannot be run.
    pub(crate) fn own_version(&self) -> Option<u32> {
        match &self.server.bin {
            Some(bin) => Binaries::in_directory(Path::new(bin)).ok()?.major(),
            None => self.server.version,
        }
    }

    /// Where its server and data are: treatments that share this can follow one another without
    /// moving.
    pub fn variant(&self) -> ServerVariant {
        let server = &self.server;
        let elsewhere = |place: &Option<String>| {
            let is_disk = |place: &String| Place::named(place) == Ok(Place::Disk);
            place.clone().filter(|place| !is_disk(place))
        };
        ServerVariant {
            version: server.version,
            bin: server.bin.clone(),
            data_on: elsewhere(&server.data_on),
            wal_on: elsewhere(&server.wal_on),
            temp_on: elsewhere(&server.temp_on),
            network: server.network.clone().filter(|network| network != LOOPBACK),
            instance: server.instance,
            beside: 0,
        }
    }

    /// Whether its load goes to the standbys of its server.
    pub(crate) fn is_on_standbys(&self) -> bool {
        self.load.on == Some(LoadOn::Standbys)
    }

    /// How many servers run at once.
    pub fn servers(&self) -> u32 {
        self.server.count.unwrap_or(1)
    }

    /// All servers that it runs on, its own one first.
    pub(crate) fn variants(&self) -> Vec<ServerVariant> {
        let own = self.variant();
        let beside = |beside| ServerVariant {
            beside,
            ..own.clone()
        };
        (0..self.servers()).map(beside).collect()
    }
}

/// The server of a treatment, where it is not the target as it is: a sandbox of the experiment's
/// own, like the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVariant {
    /// Major version of PostgreSQL; `None` for the target's own.
    pub version: Option<u32>,
    /// Directory of PostgreSQL's programs; `None` for the target's, or those of the version.
    pub bin: Option<String>,
    /// A file system of its own for the data, or an absolute path.
    pub data_on: Option<String>,
    /// A file system of its own for WAL, or an absolute path; `None` for that of the data.
    pub wal_on: Option<String>,
    /// A file system of its own for temporary files, or an absolute path; `None` for that of the
    /// data.
    pub temp_on: Option<String>,
    /// Network between client and server; `None` for the usual one.
    pub network: Option<String>,
    /// Number of a server among those that are made alike; `None` for the first.
    pub instance: Option<u32>,
    /// Number of an additional server, from 1; 0 for the treatment's server.
    pub beside: u32,
}

impl ServerVariant {
    /// Whether it is the target itself.
    pub fn is_target(&self) -> bool {
        *self == ServerVariant::default()
    }

    /// For people, and for the name of its sandbox: "v17", "data-tmpfs-2G".
    pub fn label(&self) -> String {
        let mut parts = Vec::new();
        if let Some(version) = self.version {
            parts.push(format!("v{version}"));
        }
        let named = [
            ("bin", &self.bin),
            ("data", &self.data_on),
            ("wal", &self.wal_on),
            ("temp", &self.temp_on),
            ("net", &self.network),
        ];
        for (what, place) in named {
            if let Some(place) = place {
                let plain: String = place
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                    .collect();
                parts.push(format!("{what}-{}", plain.trim_matches('-')));
            }
        }
        if let Some(instance) = self.instance {
            parts.push(format!("instance-{instance}"));
        }
        if self.beside > 0 {
            parts.push(format!("server-{}", self.beside + 1));
        }
        parts.join("-")
    }
}

#[cfg(test)]
mod tests;
