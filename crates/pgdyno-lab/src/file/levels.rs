//! Levels of factors, and what a step or level sets over what stands below.

use super::parts::{DataPart, ExperimentFile, FactorPart, LoadPart, ServerPart, StepPart};
use super::{settings_of, words_of};
use std::collections::BTreeSet;
use toml::Table;

/// What is named here, else what is named below.
macro_rules! over {
    ($this:expr, $below:expr, $kind:ident { $($field:ident),* $(,)? }) => {
        $kind { $($field: $this.$field.clone().or_else(|| $below.$field.clone())),* }
    };
}

impl DataPart {
    /// Its keys over those of `below`.
    pub(crate) fn over(&self, below: &DataPart) -> DataPart {
        over!(
            self,
            below,
            DataPart {
                dataset,
                scale,
                reset,
                prewarm,
                fillfactor
            }
        )
    }
}

impl ServerPart {
    /// Its keys over those of `below`.
    pub(crate) fn over(&self, below: &ServerPart) -> ServerPart {
        over!(
            self,
            below,
            ServerPart {
                version,
                data_on,
                wal_on,
                pooler,
                pool_mode,
                pool_size,
                neighbour,
                neighbour_memory,
                network
            }
        )
    }
}

impl LoadPart {
    /// Its keys over those of `below`. A kind of load (workload, script or program) replaces any other.
    pub(crate) fn over(&self, below: &LoadPart) -> LoadPart {
        let mut both = over!(
            self,
            below,
            LoadPart {
                workload,
                script,
                program,
                command,
                prepare,
                cleanup,
                protocol,
                transaction,
                clients,
                threads,
                cpus,
                rate,
                spacing,
                think_ms,
                latency_limit_ms,
                max_tries,
                connect,
                warmup_s,
                settle,
                measure_s,
                checkpoint_cycles,
                crash
            }
        );
        if self.kinds() > 0 {
            both.workload = self.workload;
            both.script.clone_from(&self.script);
            both.program.clone_from(&self.program);
            both.command.clone_from(&self.command);
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
}

impl FactorPart {
    /// Its levels; values become levels that are named after them.
    pub fn levels(&self) -> Result<Vec<StepPart>, String> {
        let name = &self.name;
        match (self.of.as_deref(), self.values.is_empty(), self.level.is_empty()) {
            (None, true, false) => Ok(self.level.clone()),
            (Some(of), false, true) => self.values.iter().map(|value| level_of(of, value)).collect(),
            (Some(_), true, _) => Err(format!("the factor \"{name}\" has `of` without `values`")),
            (None, false, _) => Err(format!(
                "the factor \"{name}\" has `values` without `of`, which says of what"
            )),
            (Some(_), false, false) => Err(format!(
                "the factor \"{name}\" has `values` and `level`: only one of them"
            )),
            (None, true, true) => Err(format!("the factor \"{name}\" has no levels")),
        }
    }
}

/// A level that sets a key of the load, the data or the server, or else a knob, to a value.
fn level_of(of: &str, value: &toml::Value) -> Result<StepPart, String> {
    let name = words_of(value);
    let level = |part: &str, key: &str| -> Result<StepPart, toml::de::Error> {
        let inner = Table::from_iter([(key.to_owned(), value.clone())]);
        let name = toml::Value::String(name.clone());
        Table::from_iter([
            ("name".to_owned(), name),
            (part.to_owned(), toml::Value::Table(inner)),
        ])
        .try_into()
    };
    // A knob's name may begin as a part's does.
    let as_key = of
        .split_once('.')
        .filter(|(part, _)| matches!(*part, "load" | "data" | "server"));
    let found = match as_key.map(|(part, key)| level(part, key)) {
        Some(Err(error)) if error.message().contains("unknown field") => level("settings", of),
        Some(found) => found,
        None => level("settings", of),
    };
    found.map_err(|error| format!("{of}: {}", error.message()))
}

impl StepPart {
    pub(crate) fn sets_something(&self) -> bool {
        !self.keys().is_empty()
    }

    /// Names of what it sets: knobs, and keys with their part in front.
    pub(crate) fn keys(&self) -> Vec<String> {
        // Each part is taken apart whole, so that no key of it can be forgotten here.
        let LoadPart {
            workload: _,
            script: _,
            program: _,
            command,
            prepare,
            cleanup,
            protocol,
            transaction,
            clients,
            threads,
            cpus,
            rate,
            spacing,
            think_ms,
            latency_limit_ms,
            max_tries,
            connect,
            warmup_s,
            settle,
            measure_s,
            checkpoint_cycles,
            crash,
        } = &self.load;
        let DataPart {
            dataset,
            scale,
            reset,
            prewarm,
            fillfactor,
        } = &self.data;
        let ServerPart {
            version,
            data_on,
            wal_on,
            pooler,
            pool_mode,
            pool_size,
            neighbour,
            neighbour_memory,
            network,
        } = &self.server;
        let named = [
            ("profile", self.profile.is_some()),
            ("load.workload", self.load.kinds() > 0),
            ("load.command", command.is_some()),
            ("load.prepare", prepare.is_some()),
            ("load.cleanup", cleanup.is_some()),
            ("load.protocol", protocol.is_some()),
            ("load.transaction", transaction.is_some()),
            ("load.clients", clients.is_some()),
            ("load.threads", threads.is_some()),
            ("load.cpus", cpus.is_some()),
            ("load.rate", rate.is_some() || think_ms.is_some()),
            ("load.spacing", spacing.is_some()),
            ("load.latency_limit_ms", latency_limit_ms.is_some()),
            ("load.max_tries", max_tries.is_some()),
            ("load.connect", connect.is_some()),
            (
                "load.measure_s",
                measure_s.is_some() || checkpoint_cycles.is_some(),
            ),
            ("load.warmup_s", warmup_s.is_some() || settle.is_some()),
            ("load.crash", crash.is_some()),
            ("data.scale", scale.is_some()),
            ("data.dataset", dataset.is_some()),
            ("data.reset", reset.is_some()),
            ("data.prewarm", prewarm.is_some()),
            ("data.fillfactor", fillfactor.is_some()),
            ("server.version", version.is_some()),
            ("server.data_on", data_on.is_some()),
            ("server.wal_on", wal_on.is_some()),
            ("server.pooler", pooler.is_some()),
            ("server.pool_size", pool_size.is_some() || pool_mode.is_some()),
            ("server.neighbour", neighbour.is_some()),
            ("server.neighbour_memory", neighbour_memory.is_some()),
            ("server.network", network.is_some()),
        ];
        let set = named.into_iter().filter(|(_, is_set)| *is_set);
        let keys = settings_of(&self.settings).into_iter().map(|s| s.knob);
        keys.chain(set.map(|(key, _)| key.to_owned())).collect()
    }
}
