//! The servers of an experiment: its target, and sandboxes like it that differ in version, place or network.

use crate::cli::CreateArgs;
use crate::commands;
use crate::context::Context;
use crate::target::{self, Held};
use pgdyno_knobs::Target;
use pgdyno_lab::{Stand, StandError, Stands};
use pgdyno_server::Control;
use pgdyno_server::sandbox::{Guard, Network, NetworkPlan, Sandbox, State};

/// Longest name of a sandbox that is made here; a sandbox's own limit is 40.
const NAME_MAX: usize = 40;

/// The servers of one experiment.
pub(crate) struct OwnStands<'c> {
    context: &'c Context,
    command: String,
    /// The target as it was found, until somebody asks for it.
    held: Option<Held>,
    /// As it was named.
    text: String,
    /// The command that restarts it, where its owner allows that.
    restart: Option<String>,
    /// The sandbox that it is.
    sandbox: Option<String>,
    was_running: bool,
    /// Keep other commands away.
    guards: Vec<Guard>,
    /// Sandboxes that belong to the experiment, in the order they were asked for.
    own: Vec<String>,
}

impl<'c> OwnStands<'c> {
    pub(crate) fn new(context: &'c Context, held: Held, command: &str) -> OwnStands<'c> {
        OwnStands {
            context,
            command: command.to_owned(),
            text: held.text.clone(),
            restart: match &held.target.control {
                Control::Command { restart, .. } => Some(restart.clone()),
                Control::Sandbox(_) | Control::None => None,
            },
            sandbox: held.sandbox().map(str::to_owned),
            was_running: held.target.was_running,
            held: Some(held),
            guards: Vec::new(),
            own: Vec::new(),
        }
    }

    fn of_target(&mut self) -> anyhow::Result<Target> {
        if let Some(held) = self.held.take() {
            let (target, guard) = held.parts();
            self.guards.extend(guard);
            return Ok(target);
        }
        match &self.sandbox {
            Some(name) => started(self.context, name, self.was_running),
            None => {
                let held = target::named(self.context, &self.text, self.restart.clone(), &self.command)?;
                Ok(held.parts().0)
            }
        }
    }

    fn base(&self) -> anyhow::Result<String> {
        self.sandbox.clone().ok_or_else(|| {
            anyhow::anyhow!(
                "only beside a sandbox pgdyno makes servers of its own; name one with --target sandbox:NAME"
            )
        })
    }

    /// The sandbox of a stand, made as the target's is where there is none yet.
    fn of_own(&mut self, stand: &Stand) -> anyhow::Result<Target> {
        let base = self.base()?;
        let name = name_of(&base, stand);
        if !self.own.contains(&name) {
            if Sandbox::open(&self.context.sandboxes(), &name).is_err() {
                commands::sandbox::create(self.context, &self.like(&base, &name, stand)?)?;
            }
            self.guards
                .push(target::lock_sandbox(self.context, &name, &self.command)?);
            self.own.push(name.clone());
        }
        started(self.context, &name, false)
    }

    fn like(&self, base: &str, name: &str, stand: &Stand) -> anyhow::Result<CreateArgs> {
        let record = Sandbox::open(&self.context.sandboxes(), base)?.record().clone();
        let major = record
            .version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        let path = |place: &Option<String>| {
            place
                .as_ref()
                .filter(|place| place.starts_with('/'))
                .map(|place| std::path::Path::new(place).join(name))
        };
        let file_system = |place: &Option<String>| {
            let named = place.as_ref().filter(|place| !place.starts_with('/'));
            named
                .map(|text| crate::cli::file_system(text))
                .transpose()
                .map_err(anyhow::Error::msg)
        };
        let version = stand
            .version
            .or(major)
            .unwrap_or(*pgdyno_server::sandbox::MAJORS.end());
        Ok(CreateArgs {
            // Another version has another directory.
            pg_bin: stand.version.is_none().then_some(record.bin),
            data: path(&stand.data_on),
            wal: path(&stand.wal_on).map(|path| path.with_extension("wal")),
            filesystem: file_system(&stand.data_on)?,
            wal_filesystem: file_system(&stand.wal_on)?,
            network: match &stand.network {
                Some(network) => Some(NetworkPlan::named(network).map_err(anyhow::Error::msg)?),
                None => record.network.as_ref().map(Network::plan),
            },
            cpus: record.limits.cpus,
            memory: record.limits.memory_bytes,
            iops: record.limits.iops,
            bandwidth: record.limits.bandwidth_bytes_per_s,
            ..CreateArgs::plain(name, version)
        })
    }

    /// The target as it was found.
    fn settle(&mut self) -> anyhow::Result<()> {
        let Some(name) = self
            .sandbox
            .as_ref()
            .filter(|_| self.held.is_none() && self.was_running)
        else {
            return Ok(());
        };
        let sandbox = Sandbox::open(&self.context.sandboxes(), name)?;
        if !matches!(sandbox.state(), State::Running(_)) {
            sandbox.start()?;
        }
        Ok(())
    }
}

/// A sandbox that is locked already.
fn started(context: &Context, name: &str, was_running: bool) -> anyhow::Result<Target> {
    let sandbox = Sandbox::open(&context.sandboxes(), name)?;
    if !matches!(sandbox.state(), State::Running(_)) {
        sandbox.start()?;
    }
    Ok(target::target_of(context, sandbox, was_running))
}

fn name_of(base: &str, stand: &Stand) -> String {
    let name = format!("{base}-{}", stand.label().to_lowercase());
    name.chars()
        .take(NAME_MAX)
        .collect::<String>()
        .trim_end_matches('-')
        .to_owned()
}

impl Stands for OwnStands<'_> {
    fn target(&mut self, stand: &Stand) -> Result<Target, StandError> {
        let target = match stand.is_target() {
            true => self.of_target(),
            false => self.of_own(stand),
        };
        target.map_err(Into::into)
    }

    fn leave(&mut self, stand: &Stand) -> Result<(), StandError> {
        let name = match stand.is_target() {
            // Where the experiment has no other server, it goes on as it is.
            true if self.own.is_empty() => return Ok(()),
            true => self.base()?,
            false => name_of(&self.base()?, stand),
        };
        Ok(Sandbox::open(&self.context.sandboxes(), &name)?.stop()?)
    }

    fn end(&mut self) -> Result<(), StandError> {
        // Their locks go first: removing takes its own.
        let own = std::mem::take(&mut self.own);
        let kept = self.guards.len().saturating_sub(own.len());
        self.guards.truncate(kept);
        for name in own {
            commands::sandbox::destroy(self.context, &name)?;
        }
        Ok(self.settle()?)
    }
}

impl Drop for OwnStands<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.settle() {
            tell!("the sandbox could not be started again: {error:#}");
        }
    }
}
