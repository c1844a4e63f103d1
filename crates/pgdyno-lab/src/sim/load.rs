//! The simulated load: throughput from a known response surface, with noise that remembers, drift
//! and outliers.

use super::World;
use super::world::drawn;
use crate::file::Design;
use crate::measurement::Measurement;
use crate::plan::Treatment;
use pgdyno_engine::{Books, LoadResult, Second};
use pgdyno_record::{CrossCheck, SeriesRecord, TrialStatus};
use pgdyno_stats::WarmUp;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Earlier trials whose noise is remembered.
const REMEMBERED: u32 = 8;

/// Roughly normal: mean 0, variance 1.
fn noise(seed: u64, key: &str) -> f64 {
    let sum: f64 = (0..12).map(|i| drawn(seed, "noise", &format!("{key}/{i}"))).sum();
    sum - 6.0
}

impl World {
    /// What a treatment's settings bring, as a share of the reference's throughput.
    pub(super) fn effect(&self, treatment: &Treatment) -> f64 {
        let settings = treatment.step.iter().map(|s| format!("{}={}", s.knob, s.value));
        self.effect_of(&settings.collect::<Vec<_>>())
    }

    /// Transactions of a second in which these settings are in force, each "knob=value".
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of transactions"
    )]
    pub(super) fn tps_of(&self, settings: &[String]) -> u64 {
        (self.surface.tps * (1.0 + self.effect_of(settings))).max(10.0) as u64
    }

    fn effect_of(&self, settings: &[String]) -> f64 {
        let effects = settings.iter();
        effects
            .map(|setting| (drawn(self.seed, "effect", setting) - 0.4) * self.surface.effect)
            .sum()
    }

    /// Throughput of a treatment in the trial that has this seed: the same however often the trial
    /// is repeated.
    pub(super) fn tps(&self, treatment: &Treatment, seed: u64) -> f64 {
        let (block, position) = self.seeds.get(&seed).copied().unwrap_or_default();
        let number = block * 64 + position;
        let surface = self.surface;
        let effect = self.effect(treatment);
        let remembered = match surface.memory > 0.0 {
            true => REMEMBERED,
            false => 1,
        };
        let remembered = (0..remembered.min(number)).map(|back| {
            let weight = surface.memory.powi(back.try_into().unwrap_or(i32::MAX));
            weight * noise(self.seed, &(number - back).to_string())
        });
        let noise = surface.noise * remembered.sum::<f64>();
        let drift = surface.drift * f64::from(number) / 100.0;
        let outlier = match self.is_outlier(seed) {
            true => 0.4,
            false => 1.0,
        };
        (surface.tps * (1.0 + effect + noise + drift)).max(10.0) * outlier
    }

    /// Throughput of the reference's finished trials so far, which another treatment's is compared
    /// with.
    pub(super) fn pace_tps(&self, treatment: &str) -> Option<f64> {
        let stored = self.stored.first()?;
        let against = |name: &str| {
            let own = stored.record.treatments.iter().find(|own| own.name == name)?;
            own.against.clone()
        };
        let first = || {
            let first = stored.record.treatments.first()?.name.clone();
            (stored.record.design == Design::Search.name() && first != treatment).then_some(first)
        };
        let mut reference = against(treatment).or_else(first)?;
        while let Some(before) = against(&reference) {
            reference = before;
        }
        let own = stored.trials.iter().map(|(_, trial)| trial);
        let own = own.filter(|trial| trial.treatment == reference && trial.status == TrialStatus::Finished);
        let figures: Vec<(f64, f64)> = own
            .filter_map(|trial| Some((trial.tps?, trial.measured_s)))
            .collect();
        let seconds: f64 = figures.iter().map(|(_, seconds)| seconds).sum();
        let committed: f64 = figures.iter().map(|(tps, seconds)| tps * seconds).sum();
        (seconds >= 5.0).then(|| committed / seconds)
    }

    fn is_outlier(&self, seed: u64) -> bool {
        self.happens(self.odds.outlier, "outlier", &seed.to_string())
    }

    /// Whether others have taken CPU time from the trial that has this seed: of most outliers, and
    /// of trials that are none too.
    pub(super) fn is_disturbed(&self, seed: u64) -> bool {
        let odds = match self.is_outlier(seed) {
            true => 0.8,
            false => self.odds.outlier / 2.0,
        };
        self.happens(odds, "disturbed", &seed.to_string())
    }
}

/// A second of the load without response times; it is used again, for its books are large.
pub(super) fn empty_second() -> Second {
    Second {
        number: 0,
        length_s: 1.0,
        measured: false,
        books: Books::for_a_second(),
        clients: 1,
    }
}

/// What a load has measured.
pub(crate) fn measurement(tps: f64, warmup_s: f64, measured_s: f64) -> Measurement {
    // Books of a second, which have no room for three digits of times that nobody measured: a
    // quarter million of them is made.
    static EMPTY: LazyLock<LoadResult> = LazyLock::new(|| LoadResult {
        measured: Books::for_a_second(),
        ..LoadResult::empty()
    });
    let mut load = EMPTY.clone();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of transactions"
    )]
    let committed = (tps * measured_s) as u64;
    (load.measured.all, load.measured.committed, load.measured.kept) = (committed, committed, committed);
    (load.measured_s, load.warmup_s, load.sessions) = (measured_s, warmup_s, 1);
    "simulated".clone_into(&mut load.engine);
    Measurement {
        load,
        seconds: Vec::new(),
        series: SeriesRecord::default(),
        cross_check: Some(CrossCheck {
            client: committed,
            server: committed,
            by_workers: 0,
            allowed_difference: 0,
            agrees: true,
        }),
        unchecked: None,
        warm_up: WarmUp::Unknown,
        settled: None,
        steadiness: None,
        stability_cv: None,
        server_cpu_us_per_tx: None,
        wal_bytes_per_tx: None,
        disturbances: Vec::new(),
        warnings: Vec::new(),
        is_disturbed: false,
        load_hosts: Vec::new(),
        reported: None,
        latency_limit: None,
        statements: Vec::new(),
        distribution: Vec::new(),
        heat: None,
        events: Vec::new(),
        figures: BTreeMap::new(),
        servers: Vec::new(),
        broken: None,
    }
}
