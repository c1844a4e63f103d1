//! Levels of factors, and what a step or level sets over what is below.

use super::parts::{DataPart, ExperimentFile, FactorPart, LoadPart, ServerPart, StepPart};
use super::{settings_of, text_of};
use pgdyno_workload::Dataset;
use std::collections::BTreeSet;
use toml::Table;

/// The keys of a part, each once: what is named here, else what is named below; and which are
/// named.
macro_rules! keys {
    ($part:ident, $name:literal, $($key:ident),* $(,)?) => {
        impl $part {
            const KEYS: &[&str] = &[$(concat!($name, ".", stringify!($key))),*];

            fn each_over(&self, below: &$part) -> $part {
                $part { $($key: self.$key.clone().or_else(|| below.$key.clone())),* }
            }

            fn named(&self) -> Vec<&'static str> {
                let keys = [$((concat!($name, ".", stringify!($key)), self.$key.is_some())),*];
                keys.into_iter().filter(|(_, is_named)| *is_named).map(|(key, _)| key).collect()
            }
        }
    };
}

keys!(
    DataPart, "data", dataset, scale, reset, prewarm, fillfactor, partitions, sql
);
keys!(
    ServerPart,
    "server",
    version,
    bin,
    data_on,
    wal_on,
    temp_on,
    pooler,
    pool_mode,
    pool_size,
    neighbour,
    neighbour_memory,
    network,
    count,
    instance,
);
keys!(
    LoadPart,
    "load",
    workload,
    script,
    program,
    command,
    prepare,
    cleanup,
    protocol,
    transaction,
    on,
    hosts,
    connection,
    clients,
    threads,
    cpus,
    rate,
    spacing,
    batch_ms,
    think_ms,
    latency_limit_ms,
    max_tries,
    connect,
    warmup_s,
    settle,
    measure_s,
    checkpoint_cycles,
    crash,
);

/// Keys that decide about one thing, by the one that a factor is said to set.
fn decides_about(key: &str) -> &str {
    match key {
        "load.script" | "load.program" => "load.workload",
        "load.think_ms" => "load.rate",
        "load.settle" => "load.warmup_s",
        "load.checkpoint_cycles" => "load.measure_s",
        "server.pool_mode" => "server.pool_size",
        alone => alone,
    }
}

impl DataPart {
    /// The data set that a load reads; `None` where it reads none, or brings its own.
    pub(crate) fn of_load(&self, load: &LoadPart) -> Option<Dataset> {
        match (load.workload, self.dataset) {
            (Some(workload), _) => workload.dataset(),
            (None, Some(dataset)) => Some(dataset),
            // Scripts, pgbench itself and jobs are written for pgbench's tables, if for any; other
            // programs bring their own.
            (None, None) => match load.program.as_deref() {
                None | Some("pgbench" | "job") => Some(Dataset::Pgbench),
                Some(_) => None,
            },
        }
    }

    /// Its keys over those of `below`.
    pub(crate) fn over(&self, below: &DataPart) -> DataPart {
        self.each_over(below)
    }
}

impl ServerPart {
    /// Where its files are, by key.
    pub(crate) fn places(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("data_on", self.data_on.as_deref()),
            ("wal_on", self.wal_on.as_deref()),
            ("temp_on", self.temp_on.as_deref()),
        ]
    }

    /// Its keys over those of `below`. Programs are named by version or by directory: either
    /// replaces both.
    pub(crate) fn over(&self, below: &ServerPart) -> ServerPart {
        let mut both = self.each_over(below);
        if self.version.is_some() || self.bin.is_some() {
            both.version = self.version;
            both.bin.clone_from(&self.bin);
        }
        both
    }
}

impl LoadPart {
    /// Its keys over those of `below`. A kind of load (workload, script or program) replaces any
    /// other, with its commands.
    pub(crate) fn over(&self, below: &LoadPart) -> LoadPart {
        let mut both = self.each_over(below);
        let kind = |load: &LoadPart| (load.workload, load.script.clone(), load.program.clone());
        if self.kinds() > 0 && kind(self) != kind(below) {
            both.workload = self.workload;
            both.script.clone_from(&self.script);
            both.program.clone_from(&self.program);
            both.command.clone_from(&self.command);
            both.prepare.clone_from(&self.prepare);
            both.cleanup.clone_from(&self.cleanup);
        }
        both
    }

    /// How many kinds of load it names: a workload, a script, a program.
    pub(crate) fn kinds(&self) -> usize {
        let named = [
            self.workload.is_some(),
            self.script.is_some(),
            self.program.is_some(),
        ];
        named.into_iter().filter(|named| *named).count()
    }
}

impl ExperimentFile {
    /// All levels of all factors.
    pub(crate) fn levels(&self) -> Vec<StepPart> {
        let levels = self.factor.iter().flat_map(|f| f.levels().unwrap_or_default());
        levels.collect()
    }

    /// All that a treatment may be made of: steps, and levels of factors.
    pub(crate) fn parts(&self) -> Vec<StepPart> {
        self.step.iter().cloned().chain(self.levels()).collect()
    }

    /// Names of all profiles that it goes by.
    pub fn profiles(&self) -> BTreeSet<String> {
        let parts = self.parts().into_iter().filter_map(|part| part.profile);
        self.profile.iter().cloned().chain(parts).collect()
    }

    /// Names of all hosts that drive its loads.
    pub fn load_hosts(&self) -> BTreeSet<String> {
        let parts = self.parts().into_iter().filter_map(|part| part.load.hosts);
        self.load.hosts.iter().cloned().chain(parts).flatten().collect()
    }

    /// Connection strings by which those reach its servers.
    pub fn load_connections(&self) -> BTreeSet<String> {
        let parts = self.parts().into_iter().filter_map(|part| part.load.connection);
        self.load.connection.iter().cloned().chain(parts).collect()
    }
}

/// Why a factor has no levels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LevelsError {
    /// A knob or key, and no value for it.
    #[error("the factor \"{factor}\" has `of` without `values`")]
    NoValues {
        /// Name of the factor.
        factor: String,
    },
    /// Values, and no knob or key that takes them.
    #[error("the factor \"{factor}\" has `values` without `of`, which says of what")]
    OfNothing {
        /// Name of the factor.
        factor: String,
    },
    /// Both ways of naming levels.
    #[error("the factor \"{factor}\" has `values` and `level`: only one of them")]
    Both {
        /// Name of the factor.
        factor: String,
    },
    /// Neither values nor levels.
    #[error("the factor \"{factor}\" has no levels")]
    Nothing {
        /// Name of the factor.
        factor: String,
    },
    /// A value that the knob or key does not take.
    #[error("{of}: {reason}")]
    Value {
        /// The knob or key: "load.clients".
        of: String,
        /// What is wrong with the value, as the parser's message.
        reason: String,
    },
}

impl FactorPart {
    /// Its levels; values become levels that are named after them.
    ///
    /// # Errors
    ///
    /// [`LevelsError`], where it has none.
    pub fn levels(&self) -> Result<Vec<StepPart>, LevelsError> {
        let factor = || self.name.clone();
        match (self.of.as_deref(), self.values.is_empty(), self.level.is_empty()) {
            (None, true, false) => Ok(self.level.clone()),
            (Some(of), false, true) => self.values.iter().map(|value| level_of(of, value)).collect(),
            (Some(_), true, _) => Err(LevelsError::NoValues { factor: factor() }),
            (None, false, _) => Err(LevelsError::OfNothing { factor: factor() }),
            (Some(_), false, false) => Err(LevelsError::Both { factor: factor() }),
            (None, true, true) => Err(LevelsError::Nothing { factor: factor() }),
        }
    }
}

/// Whether it is a key of the load, the data or the server. A knob's name may begin as one does.
pub(super) fn is_key(of: &str) -> bool {
    [LoadPart::KEYS, DataPart::KEYS, ServerPart::KEYS]
        .iter()
        .any(|keys| keys.contains(&of))
}

/// A level that sets a key of the load, the data or the server, or else a knob, to a value.
fn level_of(of: &str, value: &toml::Value) -> Result<StepPart, LevelsError> {
    let (part, key) = match of.split_once('.') {
        Some(part_and_key) if is_key(of) => part_and_key,
        _ => ("settings", of),
    };
    let inner = Table::from_iter([(key.to_owned(), value.clone())]);
    let level = Table::from_iter([
        ("name".to_owned(), toml::Value::String(text_of(value))),
        (part.to_owned(), toml::Value::Table(inner)),
    ]);
    level
        .try_into()
        .map_err(|error: toml::de::Error| LevelsError::Value {
            of: of.to_owned(),
            reason: error.message().to_owned(),
        })
}

impl StepPart {
    pub(crate) fn sets_something(&self) -> bool {
        !self.keys().is_empty()
    }

    /// Names of what it sets: knobs, and keys with their part in front.
    pub(crate) fn keys(&self) -> BTreeSet<String> {
        let knobs = settings_of(&self.settings)
            .into_iter()
            .map(|setting| setting.knob);
        let profile = self.profile.as_ref().map(|_| "profile");
        let parts = [self.load.named(), self.data.named(), self.server.named()].concat();
        let keys = profile.into_iter().chain(parts.into_iter().map(decides_about));
        knobs.chain(keys.map(str::to_owned)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::LoadPart;

    #[test]
    fn another_kind_of_load_brings_its_own_commands() {
        let part = |text: &str| toml::from_str::<LoadPart>(text).expect("a load");
        let below =
            part("program = 'pgbench'\ncommand = '/opt/pgbench'\nprepare = 'p'\ncleanup = 'c'\nclients = 4");
        let other = part("program = 'sysbench'\ncleanup = 'd'").over(&below);
        assert_eq!((other.command, other.prepare), (None, None));
        assert_eq!(
            (other.cleanup.as_deref(), other.clients),
            (Some("d"), below.clients)
        );
        for same in ["clients = 8", "program = 'pgbench'"] {
            let same = part(same).over(&below);
            assert_eq!((&same.prepare, &same.cleanup), (&below.prepare, &below.cleanup));
            assert_eq!(same.command, below.command);
        }
    }
}
