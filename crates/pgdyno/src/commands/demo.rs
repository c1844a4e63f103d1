//! `pgdyno demo`: the whole loop on a private server.

use crate::cli::{CreateArgs, DemoArgs};
use crate::commands::experiment::{self, Begin};
use crate::commands::{restore, sandbox};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{exit, sandboxes, shipped, target};
use pgdyno_lab::{Consent, ExperimentFile};
use pgdyno_sandbox::DEFAULT_MAJOR;
use pgdyno_server::User;
use std::path::Path;

/// The experiment as it is shipped.
const FILE: &str = "demo";
const NAME: &str = "pgdyno-demo";

/// A small machine.
const CPUS: f64 = 2.0;
const MEMORY_BYTES: u64 = 1 << 30;

pub(crate) fn run(context: &Context, args: &DemoArgs) -> Result<u8> {
    experiment::check_report(context, Some(&args.report))?;
    let root = User::is_root();
    let shipped =
        shipped::experiment(FILE).ok_or_else(|| Failure::new("the demonstration is not shipped"))?;
    let file = ExperimentFile::parse(
        shipped,
        Path::new("catalog/experiments/demo.toml"),
        &context.catalogue,
    )?;
    let mut store = context.store(args.store.place())?;
    restore::before(context, None)?;
    if context.sandboxes().join(NAME).exists() {
        err!("removing the private server of an earlier demo");
        sandbox::destroy(context, NAME)?;
    }
    if root {
        err!("creating a private PostgreSQL with the limits of a small machine: 2 CPUs, 1 GB of memory");
    } else {
        err!("creating a private PostgreSQL; without root it has no limits");
    }
    let sandbox = sandboxes::create(context, &create_args(args, root))?;
    err!("PostgreSQL {} runs; creating data", sandbox.record().version);
    let held = target::of_sandbox(context, NAME, "demo")?;
    let repeat = vec!["pgdyno demo".to_owned()];
    let summary = experiment::start(
        context,
        &mut store,
        &Consent::default(),
        Begin {
            file,
            text: shipped,
            held,
            repeat,
            given: &[],
            command: "demo",
        },
    );
    let ended =
        summary.and_then(|summary| experiment::finish(context, &store, &summary, Some(&args.report), false));
    // A failure is best examined while the server is still there; a finished demo does not need it.
    let finished = matches!(ended, Ok(exit::FINE));
    if finished && !args.keep {
        sandbox::destroy(context, NAME)?;
        err!("the private server is removed; --keep would have kept it");
    } else {
        err!("the private server is kept: sandbox:{NAME}; `pgdyno sandbox destroy {NAME}` removes it");
    }
    ended
}

fn create_args(args: &DemoArgs, root: bool) -> CreateArgs {
    CreateArgs {
        pg_bin: args.pg_bin.clone(),
        cpus: root.then_some(CPUS),
        memory: root.then_some(MEMORY_BYTES),
        ..CreateArgs::plain(NAME, DEFAULT_MAJOR)
    }
}
