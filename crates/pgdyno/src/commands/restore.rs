//! `pgdyno restore`: puts back what a killed command has left.

use crate::cli::RestoreArgs;
use crate::context::{Context, variable};
use crate::{exit, show};
use pgdyno_knobs::{JournalError, Outcome, PutBack, Restorer, stale_journals};

pub(crate) fn run(context: &Context, args: &RestoreArgs) -> anyhow::Result<u8> {
    let restorer = Restorer {
        host: &context.host,
        environment: &variable,
        force: args.force,
        conninfo: None,
    };
    let mut all = Vec::new();
    let mut held = Vec::new();
    // The newest first: what was changed last is undone first.
    for journal in stale_journals(&context.journals())?.into_iter().rev() {
        match restorer.restore_file(&journal) {
            Ok(lines) => all.extend(lines),
            Err(error @ JournalError::Held { .. }) => held.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    if args.json {
        put!("{}", serde_json::to_string_pretty(&all)?);
    } else if !all.is_empty() {
        put!("{}", show::put_back(&all));
    } else if held.is_empty() {
        tell!("nothing to put back");
    }
    check(&all)?;
    if let Some(error) = held.pop() {
        return Err(
            anyhow::Error::new(error).context("not put back; end that command (Ctrl-C does it in order)")
        );
    }
    Ok(exit::FINE)
}

/// Whether everything could be put back.
pub(crate) fn check(lines: &[PutBack]) -> anyhow::Result<()> {
    let failed: Vec<&str> = lines
        .iter()
        .filter(|line| line.outcome == Outcome::Failed)
        .map(|line| line.knob.as_str())
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    anyhow::bail!(
        "{} could not be put back; the journal is kept, mend the cause and run `pgdyno restore` again",
        failed.join(", ")
    )
}
