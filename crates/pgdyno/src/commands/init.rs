//! `pgdyno init`: an experiment file for a target, with what suits it, and other choices beside.

use super::advise::title;
use super::drafts::{clients, comment, count, cpus, fact, step, target_part};
use super::facts::{self, Found};
use crate::cli::InitArgs;
use crate::context::Context;
use crate::exit;
use crate::failure::{Failure, InContext as _, Result, Usage};
use crate::show::bytes;
use pgdyno_advice::{Advice, Advisor, Question};
use pgdyno_host::{Fact, replace_given};
use pgdyno_server::may_hold_password;
use std::path::Path;

/// Advised settings that are steps of the file.
const STEPS: usize = 3;
/// What a unit of scale of pgbench's tables takes.
const SCALE_BYTES: u64 = 15 << 20;
const SCALE: u64 = 50;

pub(crate) fn run(context: &Context, args: &InitArgs) -> Result<u8> {
    let is_printed = args.file == Path::new("-");
    if !is_printed && args.file.exists() {
        let place = args.file.display();
        let error = Failure::from(Usage(format!("{place} is there already")));
        return Err(error.with_hint("name another file, or - for standard output"));
    }
    let found = facts::find(context, Some(&args.target), false, None)?;
    let text = text(context, args, &found)?;
    if is_printed {
        put_page!("{}", text.trim_end());
        return Ok(exit::FINE);
    }
    replace_given(&args.file, text.as_bytes(), 0o644)
        .with_context(|| format!("{} cannot be written", args.file.display()))?;
    put!(
        "{0}: `pgdyno run {0} --dry-run` checks it and changes nothing",
        args.file.display()
    );
    Ok(exit::FINE)
}

fn text(context: &Context, args: &InitArgs, found: &Found) -> Result<String> {
    let facts: Vec<Fact> = found.facts.iter().map(fact).collect();
    let advised = Advisor::shipped(&context.catalogue)?.advise(&Question {
        facts: &facts,
        settings: &found.settings,
        evidence: &[],
        allowed: &[],
        only: &[],
    });
    let tried = advised.advice.iter().filter(|advice| advice.can_be_tried);
    let tried: Vec<&Advice> = tried.take(STEPS).collect();
    let named = Some(args.target.as_str()).filter(|named| !may_hold_password(named));
    let is_sandbox = args.target.starts_with("sandbox:");
    Ok(file(found, &target_part(named), is_sandbox, &tried))
}

/// The file.
fn file(found: &Found, target: &str, is_sandbox: bool, tried: &[&Advice]) -> String {
    let name = comment(found.target.as_deref().unwrap_or("this host"));
    // A sandbox and a container may have a limit.
    let sizes = ["memory.total_bytes", "cgroup.memory_limit_bytes"];
    let memory_bytes = sizes.iter().filter_map(|name| count(&found.facts, name)).min();
    let memory = memory_bytes.map_or_else(|| "unknown".to_owned(), bytes);
    let cpus = cpus(&found.facts).map_or_else(
        || "an unknown number of CPUs".to_owned(),
        |cpus| format!("{cpus} CPUs"),
    );
    let setting = |name: &str| {
        let setting = found.settings.iter().find(|setting| setting.name == name);
        setting.map_or_else(|| "unknown".to_owned(), |setting| setting.shown.clone())
    };
    let (consent, control) = match is_sandbox {
        true => ("", ""),
        false => (
            "# Tables that the load needs and the server lacks are made with `pgdyno run --allow-data` only, and dropped at the end.\n",
            "# allow_restart = true   # settings that take a restart, by what runs the server; as `pgdyno run --allow-restart`\n",
        ),
    };
    let mut steps: String = tried
        .iter()
        .enumerate()
        .filter_map(|(number, advice)| step(advice, &title(advice), number + 1))
        .collect();
    if steps.is_empty() {
        steps = "\n[[step]]\nname = \"more-work-mem\"\n[step.settings]\nwork_mem = \"64MB\"\n".to_owned();
    }
    format!(
        "# An experiment on {name}: {cpus}, {memory} of memory, PostgreSQL {version} with shared_buffers = {buffers}.
# What is behind a # is another choice, or a further one. `pgdyno run FILE --dry-run` checks all of it and changes nothing;
# docs/reference/experiment-file.md explains every key.

name = \"first\"
question = \"What is the effect of each of these settings here?\"
design = \"one-at-a-time\"
# design = \"cumulative\"                 # each step upon the one before
blocks = 10                             # a trial of every treatment in each: more blocks find smaller effects
stop = \"when-decided\"                   # ends earlier, once every comparison is decided

{target}{control}
# What the load reads and writes: {scale_size}.
{consent}[data]
scale = {SCALE}
{larger:<40}# four times the memory: it does not fit
# prewarm = \"pg-prewarm\"                # in shared buffers before each trial
# reset = \"template\"                    # made again before each trial, by copying a database

[load]
workload = \"tpcb\"                       # as pgbench's own: reads and writes
# workload = \"select-only\"              # reads by key
# workload = \"read-write\"               # as sysbench's, of which dataset \"oltp\" is made
{clients:<40}# closed loop: as many as answers are waited for
# rate = \"500\"                          # open loop: so many per second, whatever the server does
warmup_s = 10
measure_s = 30                          # longer trials hold a checkpoint: for settings of the WAL

# Settings of all treatments, the reference too.
[base]
# max_wal_size = \"4GB\"
{steps}
# [[step]]
# name = \"read-ahead\"
# settings = {{ \"block.read_ahead_kb\" = 512 }}
",
        version = comment(&setting("server_version")),
        buffers = comment(&setting("shared_buffers")),
        scale_size = bytes(SCALE * SCALE_BYTES),
        larger = format!("# scale = {}", 4 * memory_bytes.unwrap_or(4 << 30) / SCALE_BYTES),
        clients = format!("clients = {}", clients(&found.facts)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_knobs::Catalogue;
    use pgdyno_lab::ExperimentFile;

    fn parses(text: &str) -> std::result::Result<ExperimentFile, String> {
        let catalogue = Catalogue::shipped().expect("the catalogue");
        ExperimentFile::parse(text, Path::new("x.toml"), &catalogue).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_is_whole_and_so_is_every_other_choice_in_it() {
        let found = Found {
            target: Some("a server\nname = \"evil\"".into()),
            facts: Vec::new(),
            settings: Vec::new(),
        };
        let text = file(&found, &target_part(Some("host=db user=me")), false, &[]);
        assert!(
            text.contains(": an unknown number of CPUs, unknown of memory"),
            "{text}"
        );
        parses(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut tried = 0;
        for (at, line) in text.lines().enumerate() {
            let Some((key, _)) = line.strip_prefix("# ").and_then(|line| line.split_once(" = ")) else {
                continue;
            };
            if key.contains(' ') || matches!(key, "name" | "settings") {
                continue;
            }
            // In the place of the line that has its key, where there is one.
            let lines = text
                .lines()
                .enumerate()
                .filter_map(|(other, kept)| match other == at {
                    true => line.strip_prefix("# "),
                    false => (!kept.starts_with(&format!("{key} = "))).then_some(kept),
                });
            let changed = lines.collect::<Vec<_>>().join("\n");
            parses(&changed).unwrap_or_else(|error| panic!("{line}: {error}"));
            tried += 1;
        }
        assert_eq!(tried, 9, "{text}");
        let step = text
            .replace("# [[step]]\n# name", "[[step]]\nname")
            .replace("# settings", "settings");
        assert_eq!(parses(&step).expect("a step").step.len(), 2);
    }
}
