//! The servers of an experiment: its target, and sandboxes like it that differ in version, place or
//! network.

mod own;

use crate::commands;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::sandboxes;
use crate::target::{self, Held, Restarts};
use own::Claim;
use pgdyno_knobs::Target;
use pgdyno_lab::{ProviderError, ServerProvider, ServerVariant};
use pgdyno_sandbox::{Guard, Manager, Sandbox, State};

/// The servers of one experiment.
pub(crate) struct OwnServers<'c> {
    context: &'c Context,
    command: String,
    /// The target as it was found, until somebody asks for it.
    held: Option<Held>,
    /// The target as it was named on the command line.
    text: String,
    /// What restarts it, where its owner allows that.
    manager: Option<Manager>,
    /// The name of the sandbox that it is; `None` of any other server.
    sandbox: Option<String>,
    was_running: bool,
    /// Keeps other commands away from the target.
    guard: Option<Guard>,
    /// Sandboxes that belong to the experiment, and what keeps other commands away from them.
    own: Vec<(Claim, Guard)>,
}

impl<'c> OwnServers<'c> {
    pub(crate) fn new(context: &'c Context, held: Held, command: &str) -> OwnServers<'c> {
        OwnServers {
            context,
            command: command.to_owned(),
            text: held.text.clone(),
            manager: held.target.control.manager().cloned(),
            sandbox: held.sandbox().map(str::to_owned),
            was_running: held.target.was_running,
            held: Some(held),
            guard: None,
            own: Vec::new(),
        }
    }

    fn of_target(&mut self) -> Result<Target> {
        if let Some(held) = self.held.take() {
            let (target, guard) = held.parts();
            self.guard = guard;
            return Ok(target);
        }
        match &self.sandbox {
            Some(name) => {
                let sandbox = started(self.context, name)?;
                Ok(target::target_of(self.context, sandbox, self.was_running))
            }
            None => {
                let restarts = self.manager.clone().map_or(Restarts::Forbidden, Restarts::By);
                let held = target::named(self.context, &self.text, restarts, &self.command)?;
                Ok(held.parts().0)
            }
        }
    }

    fn base(&self) -> Result<String> {
        self.sandbox.clone().ok_or_else(|| {
            Failure::new(
                "only beside a sandbox pgdyno makes servers of its own; name one with --target sandbox:NAME",
            )
        })
    }

    /// The sandbox of a server variant, made as the target's is where there is none yet.
    fn of_own(&mut self, variant: &ServerVariant) -> Result<Target> {
        let base = self.base()?;
        let claim = Claim::of(self.context, &base, variant);
        if !self.own.iter().any(|(other, _)| *other == claim) {
            claim.ensure(self.context, &base, variant)?;
            let guard = sandboxes::lock_sandbox(self.context, &claim.name, &self.command)?;
            self.own.push((claim.clone(), guard));
        }
        let sandbox = started(self.context, &claim.name)?;
        Ok(target::target_of(self.context, sandbox, false))
    }

    fn stop(&self, variant: &ServerVariant) -> Result<()> {
        let name = match variant.is_target() {
            // Where the experiment has no other server, it goes on as it is.
            true if self.own.is_empty() => return Ok(()),
            true => self.base()?,
            false => Claim::of(self.context, &self.base()?, variant).name,
        };
        Ok(Sandbox::open(&self.context.sandboxes(), &name)?.stop_all()?)
    }

    /// Also one that a process made which was killed.
    fn remove_one(&mut self, variant: &ServerVariant) -> Result<()> {
        // Beside any other server there is none of pgdyno's.
        let Some(base) = &self.sandbox else {
            return Ok(());
        };
        let claim = Claim::of(self.context, base, variant);
        // Removing takes the lock itself.
        self.own.retain(|(other, _)| *other != claim);
        match claim.is_there(self.context) {
            true => commands::sandbox::destroy(self.context, &claim.name),
            false => Ok(()),
        }
    }

    fn remove_own(&mut self) -> Result<()> {
        for (claim, guard) in std::mem::take(&mut self.own) {
            // Removing takes the lock itself.
            drop(guard);
            commands::sandbox::destroy(self.context, &claim.name)?;
        }
        self.settle()
    }

    /// The target as it was found.
    fn settle(&mut self) -> Result<()> {
        let was_used = self.held.is_none();
        let Some(name) = self.sandbox.as_ref().filter(|_| was_used && self.was_running) else {
            return Ok(());
        };
        started(self.context, name).map(drop)
    }
}

/// A sandbox that is locked already, running.
fn started(context: &Context, name: &str) -> Result<Sandbox> {
    let sandbox = Sandbox::open(&context.sandboxes(), name)?;
    if !matches!(sandbox.state(), State::Running(_)) {
        sandbox.start()?;
    }
    Ok(sandbox)
}

/// With all its causes: the lab shows one line.
fn whole(error: Failure) -> ProviderError {
    ProviderError {
        text: error.to_string(),
        class: error.class(),
        hint: error.hint().map(str::to_owned),
    }
}

impl ServerProvider for OwnServers<'_> {
    fn target(&mut self, variant: &ServerVariant) -> Result<Target, ProviderError> {
        let target = match variant.is_target() {
            true => self.of_target(),
            false => self.of_own(variant),
        };
        target.map_err(whole)
    }

    fn leave(&mut self, variant: &ServerVariant) -> Result<(), ProviderError> {
        self.stop(variant).map_err(whole)
    }

    fn remove(&mut self, variant: &ServerVariant) -> Result<(), ProviderError> {
        self.remove_one(variant).map_err(whole)
    }

    fn end(&mut self) -> Result<(), ProviderError> {
        self.remove_own().map_err(whole)
    }
}

impl Drop for OwnServers<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.settle() {
            err!("the sandbox could not be started again: {error}");
        }
    }
}
