//! External programs that a run starts: those of loads, poolers, file systems, networks and
//! neighbours, and of a restart.

use super::{Finding, FindingKind, Preflight, PreflightReport};
use crate::file::{LOOPBACK, Place, PoolerWord};
use crate::foreign::programs_of;
use crate::plan::{Plan, Treatment};
use pgdyno_sandbox::{Binaries, BinarySources, Manager, NETWORK_PROGRAM, find_program};
use pgdyno_workload::command_words;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Runs a neighbour, so that it ends with this process.
const SETPRIV: (&str, &str) = ("setpriv", "util-linux");

/// A program, and what mends it where it is missing.
type Wanted = (String, String);

impl Preflight<'_> {
    /// Programs that are not there.
    pub(super) fn programs(&self, plan: &Plan, found: &mut PreflightReport) {
        let path = self.path.unwrap_or_default();
        missing_programs(path, plan, found);
        let manager = self.target.control.manager();
        for command in manager.map(Manager::commands).unwrap_or_default() {
            if let Some(program) = first_of_shell(command) {
                let mend = "restart_command, stop_command or start_command = \"...\" (in the file's [target], with the program's path)";
                found.add_all(missing(path, (program, mend.to_owned())));
            }
        }
    }
}

/// Programs and directories of treatments that are not there; `path` as PATH has it.
pub(super) fn missing_programs(path: &str, plan: &Plan, found: &mut PreflightReport) {
    let search = plan.file.search.as_ref();
    if let Some(command) = search.and_then(|search| search.optimizer.as_ref())
        && let Ok(words) = command_words(command)
        && let Some(program) = words.into_iter().next()
    {
        let mend = "optimizer = \"...\" (in the file's [search], with the program's path)";
        found.add_all(missing(path, (program, mend.to_owned())));
    }
    for number in plan.tested() {
        let treatment = &plan.treatments[number];
        let missing = wanted(treatment).into_iter().filter_map(|of| missing(path, of));
        found.add_all(missing.chain(missing_places(treatment)).map(|finding| Finding {
            treatments: vec![treatment.name.clone()],
            ..finding
        }));
    }
}

/// Versions and programs of servers of treatments that are not there.
pub(super) fn missing_versions(
    binaries: &BinarySources,
    stop: &AtomicBool,
    plan: &Plan,
    found: &mut PreflightReport,
) {
    let mut offers: BTreeMap<u32, Option<String>> = BTreeMap::new();
    for number in plan.tested() {
        let treatment = &plan.treatments[number];
        if let Some(bin) = &treatment.server.bin {
            if let Err(error) = Binaries::in_directory(Path::new(bin)) {
                found.add(Finding {
                    treatments: vec![treatment.name.clone()],
                    ..Finding::new(FindingKind::Other, error.to_string(), &[])
                });
            }
            continue;
        }
        let Some(version) = treatment.server.version else {
            continue;
        };
        let missing = offers
            .entry(version)
            .or_insert_with(|| binaries.offer(version, stop).err().map(|error| error.to_string()));
        if let Some(what) = missing {
            let mend = format!("apt install postgresql-{version} (or its like)");
            found.add(Finding {
                treatments: vec![treatment.name.clone()],
                ..Finding::new(FindingKind::Other, what.clone(), &[mend])
            });
        }
    }
}

/// A directory that is named and not there would be one more on the disk of the directory above it.
fn missing_places(treatment: &Treatment) -> impl Iterator<Item = Finding> {
    let places = treatment
        .server
        .places()
        .into_iter()
        .filter_map(|(_, place)| place);
    places.filter_map(|place| match Place::named(place) {
        Ok(Place::Directory(directory)) if !directory.is_dir() => {
            let what = format!("the directory {place} is not there");
            let mend = "data_on, wal_on or temp_on (in the file's [server]) of a directory that is there";
            Some(Finding::new(FindingKind::Other, what, &[mend.to_owned()]))
        }
        _ => None,
    })
}

fn missing(path: &str, (program, mend): Wanted) -> Option<Finding> {
    let is_there = match program.contains('/') {
        true => Path::new(&program).exists(),
        false => {
            let mut directories = std::env::split_paths(path);
            find_program(&program).is_absolute()
                || directories.any(|directory| directory.join(&program).exists())
        }
    };
    let what = || format!("the program {program} is not there (PATH is {path})");
    (!is_there).then(|| Finding::new(FindingKind::Other, what(), &[mend]))
}

fn wanted(treatment: &Treatment) -> Vec<Wanted> {
    let server = &treatment.server;
    let installed = |(program, package): (&str, &str)| {
        (program.to_owned(), format!("apt install {package} (or its like)"))
    };
    let of_load = "command = \"...\" (in the file's [load], with the program's path)";
    let mut wanted: Vec<Wanted> = programs_of(&treatment.load)
        .into_iter()
        .map(|program| (program, of_load.to_owned()))
        .collect();
    if let Some(kind) = server.pooler.and_then(PoolerWord::kind) {
        wanted.push(installed((kind.program(), kind.package())));
    }
    for place in server.places().into_iter().filter_map(|(_, place)| place) {
        if let Ok(Place::Made(plan)) = Place::named(place) {
            wanted.extend(plan.kind.program().map(installed));
        }
    }
    if server.network.as_ref().is_some_and(|network| network != LOOPBACK) {
        wanted.push(installed(NETWORK_PROGRAM));
    }
    if let Some(neighbour) = server.neighbour.as_deref().filter(|command| *command != "none") {
        wanted.push(installed(SETPRIV));
        let mend = "neighbour = \"...\" (in the file's [server], with the program's path)";
        wanted.extend(first_of_shell(neighbour).map(|program| (program, mend.to_owned())));
    }
    wanted
}

/// What a shell does itself, as far as a command is likely to begin with it.
const OF_SHELL: [&str; 16] = [
    "if", "for", "while", "until", "case", "cd", "exec", "exit", "export", "set", "eval", "trap", "ulimit",
    "umask", "wait", "command",
];

/// The program that a shell's command begins with, where that is a plain name or path.
fn first_of_shell(command: &str) -> Option<String> {
    let word = command.split_whitespace().next()?;
    let is_plain = word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./+".contains(c));
    let is_of_shell = OF_SHELL.contains(&word) || matches!(word, "." | ":" | "[");
    (is_plain && !is_of_shell).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ExperimentFile;
    use crate::plan::ProfileSettings;
    use pgdyno_knobs::Catalogue;

    #[test]
    fn treatment_on_a_directory_that_is_not_there_is_not_tested() {
        let text = "name='x'\nquestion='?'\ndesign='one-at-a-time'\nblocks=3\n[load]\nworkload='tpcb'\nclients=1\nmeasure_s=1\n[data]\nscale=1\n\
                    [[factor]]\nname='place'\nof='server.data_on'\nvalues=['disk', '/', '/no/such/volume']\n";
        let file = ExperimentFile::parse(text, Path::new("x"), &Catalogue::shipped().unwrap()).unwrap();
        let plan = Plan::unasked(file, &ProfileSettings::new(), 7).unwrap();
        let mut found = PreflightReport::default();
        missing_programs("", &plan, &mut found);
        let [only] = &found.findings[..] else {
            panic!("{:?}", found.findings);
        };
        assert_eq!(only.treatments, [plan.treatments[2].name.clone()]);
        assert_eq!(only.what, "the directory /no/such/volume is not there");
    }

    #[test]
    fn shell_command_is_looked_for_where_it_begins_with_a_program() {
        let check = |command: &str, expected: Option<&str>| {
            assert_eq!(first_of_shell(command).as_deref(), expected, "{command}");
        };
        check("sudo systemctl restart postgresql", Some("sudo"));
        check("/usr/bin/stress-ng --vm 1", Some("/usr/bin/stress-ng"));
        check("cd /srv && ./restart", None);
        check("A=b restart", None);
        check("(restart)", None);
        check("$HOME/restart", None);
        check("", None);
    }
}
