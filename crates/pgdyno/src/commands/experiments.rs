//! `pgdyno experiments`: those that are shipped, one as a file, and the schema of such files.

use crate::cli::ExperimentsArgs;
use crate::context::Context;
use crate::exit;
use crate::failure::{Result, Usage};
use crate::shipped;
use pgdyno_lab::{ExperimentFile, Plan, ProfileSettings, asks_for_target, given};
use serde_json::json;
use std::path::Path;

/// A host on which each of them can be planned.
const SOME_MEMORY_BYTES: u64 = 64 << 30;
const SOME_CPUS: f64 = 16.0;

pub(crate) fn run(context: &Context, args: &ExperimentsArgs) -> Result<u8> {
    if args.schema {
        put_page!("{}", serde_json::to_string_pretty(&ExperimentFile::schema())?);
        return Ok(exit::FINE);
    }
    if let Some(name) = &args.name {
        let text = shipped::experiment(name).ok_or_else(|| {
            Usage(format!(
                "no experiment \"{name}\" is shipped; `pgdyno experiments` lists those there are"
            ))
        })?;
        put_page!("{}", text.trim_end());
        return Ok(exit::FINE);
    }
    let mut lines = Vec::new();
    for (name, text) in shipped::EXPERIMENTS {
        // Of no host: the number of trials and their length are the same on all.
        let text = match asks_for_target(text) {
            Some(part) if part.create.as_ref().is_none_or(|create| create.memory.is_none()) => {
                given(text, Some(SOME_MEMORY_BYTES), Some(SOME_CPUS))
            }
            _ => (*text).to_owned(),
        };
        let file = ExperimentFile::parse(&text, Path::new(name), &context.catalogue)?;
        let plan = Plan::new(
            file,
            &ProfileSettings::new(),
            1,
            &context.catalogue,
            &consent_to_all(context),
        )?;
        lines.push((*name, plan));
    }
    if args.json {
        let values: Vec<_> = lines
            .iter()
            .map(|(name, plan)| {
                let sizes: Vec<&String> = plan.file.size.keys().collect();
                json!({
                    "name": name, "question": plan.file.question, "study": plan.file.study.as_ref().map(|s| &s.source),
                    "trials": plan.trials(), "load_seconds": plan.trial_s() * f64::from(plan.trials()), "sizes": sizes,
                })
            })
            .collect();
        put_page!("{}", serde_json::to_string_pretty(&values)?);
        return Ok(exit::FINE);
    }
    for (name, plan) in &lines {
        let load_s = plan.trial_s() * f64::from(plan.trials());
        let sizes: Vec<&str> = plan.file.size.keys().map(String::as_str).collect();
        let sizes = if sizes.is_empty() {
            String::new()
        } else {
            format!(", --size {}", sizes.join("|"))
        };
        put!("{name:<26} {}", plan.file.question);
        put!(
            "{:<26} {} trials, {} of load{sizes}",
            "",
            plan.trials(),
            crate::show::time(load_s)
        );
    }
    Ok(exit::FINE)
}

/// For the list alone: nothing is run.
fn consent_to_all(context: &Context) -> pgdyno_lab::Consent {
    pgdyno_lab::Consent {
        data: false,
        durability: context.catalogue.iter().map(|knob| knob.id.clone()).collect(),
        restart: false,
    }
}
