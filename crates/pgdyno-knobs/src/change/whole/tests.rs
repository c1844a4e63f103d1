//! Processors of a server that is started again between changes, on a machine made of files.

use super::*;
use crate::catalogue::Catalogue;
use crate::change::OfHost;
use crate::journal::{Journal, Journals, Patience};
use crate::restore::{Outcome, RestoreOptions, Restorer};
use crate::status::ChangeState;
use pgdyno_host::{HostAccess, HostError, LocalHost};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What processes are bound to is in files, as the kernel would show it.
struct Machine {
    dir: tempfile::TempDir,
    files: LocalHost,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let random = dir.path().join("proc/sys/kernel/random");
        fs::create_dir_all(&random).unwrap();
        fs::create_dir_all(dir.path().join("data")).unwrap();
        fs::write(random.join("boot_id"), "boot\n").unwrap();
        let files = LocalHost::at(dir.path());
        Machine { dir, files }
    }

    /// The server runs as this process from now on, bound to nothing of ours.
    fn starts(&self, pid: u32, started: u64, cpus: &str) {
        let process = self.dir.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&process).unwrap();
        let stat = format!(
            "{pid} (postgres) S 1{} {started}{}\n",
            " 0".repeat(17),
            " 0".repeat(20)
        );
        fs::write(process.join("stat"), stat).unwrap();
        fs::write(self.dir.path().join("data/postmaster.pid"), format!("{pid}\n")).unwrap();
        let _ = std::os::unix::fs::symlink("/data", process.join("cwd"));
        self.bound(pid, cpus);
    }

    fn bound(&self, pid: u32, cpus: &str) {
        let path = self.dir.path().join(format!("proc/{pid}/status"));
        let uid = fs::metadata(self.dir.path().join("data")).unwrap().uid();
        let users = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}");
        fs::write(
            path,
            format!("Name:\tpostgres\n{users}\nCpus_allowed_list:\t{cpus}\n"),
        )
        .unwrap();
    }

    fn cpus(&self, pid: u32) -> String {
        pgdyno_host::cpus_of(self, pid).unwrap()
    }
}

impl HostAccess for Machine {
    leaves_to_its_files!();
    fn write_raw(&self, path: &str, value: &str) -> Result<(), HostError> {
        self.files.write_raw(path, value)
    }
    fn bind_raw(&self, pid: u32, cpus: &[usize]) -> Result<(), HostError> {
        let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
        self.bound(pid, &cpus.join(","));
        Ok(())
    }
}

const KNOB: &str = "server.cpu_affinity";

/// A step of a test.
enum Step {
    /// Number and start of the server's new first process, and its CPUs.
    Starts(u32, u64, &'static str),
    /// A treatment that binds it; `None`: one that does not name the knob.
    Treat(Option<&'static str>),
    /// What a process is bound to then.
    Has(u32, &'static str),
}
use Step::{Has, Starts, Treat};

/// Runs the steps, compares status and restore with what the knob was before, is then, and its
/// state.
fn check(
    steps: &[Step],
    (was, now, state): (&str, &str, ChangeState),
    outcome: Outcome,
    after: &[(u32, &str)],
) {
    let machine = Machine::new();
    let dir = tempfile::tempdir().unwrap();
    let journals = Journals::in_test(dir.path());
    let catalogue = Catalogue::shipped().unwrap();
    let mut patience = Patience::none();
    let mut changer = Changer::begin(
        &machine,
        &catalogue,
        None,
        &journals,
        "test",
        (None, OfHost::Yes),
        &mut patience,
    )
    .unwrap();
    for step in steps {
        match step {
            Starts(pid, started, cpus) => machine.starts(*pid, *started, cpus),
            Treat(cpus) => treat(&mut changer, *cpus),
            Has(pid, cpus) => assert_eq!(machine.cpus(*pid), *cpus),
        }
    }
    let restorer = Restorer {
        host: &machine,
        catalogue: &catalogue,
        environment: &|_| None,
        options: RestoreOptions::default(),
        conninfo: None,
    };
    let content = changer.journal.content().unwrap();
    let lines = restorer.status(&content);
    let named = lines.iter().filter(|line| line.knob == KNOB);
    let found = named.map(|line| (&*line.was, &*line.now, line.state));
    assert_eq!(found.collect::<Vec<_>>(), [(was, now, state)]);
    let path = changer.journal.path().to_owned();
    drop(changer);
    let (journal, _) = Journal::reopen(&journals, &path).unwrap().unwrap();
    let lines = restorer.restore(journal).unwrap();
    let found = lines.iter().map(|line| (&*line.knob, line.outcome));
    assert_eq!(found.collect::<Vec<_>>(), [(KNOB, outcome)]);
    for (pid, cpus) in after {
        assert_eq!(machine.cpus(*pid), *cpus, "{pid} after restore");
    }
}

fn treat(changer: &mut Changer<'_>, cpus: Option<&str>) {
    let change = cpus.map(|cpus| WholeChange {
        setting: Setting {
            knob: KNOB.to_owned(),
            value: cpus.to_owned(),
        },
        unit: UndoUnit::Affinity {
            data: Path::new("/data").to_owned(),
        },
    });
    let changes: Vec<WholeChange> = change.into_iter().collect();
    changer.check_foreign().unwrap();
    changer.change_wholes(&changes, Phase::After).unwrap();
}

#[test]
fn a_server_that_was_started_anew_and_bound_again_is_unbound() {
    let steps = [
        Starts(10, 100, "0-3"),
        Treat(Some("0")),
        Starts(11, 200, "0-1"),
        Treat(Some("0")),
        Has(11, "0"),
    ];
    let status = ("0-1", "0", ChangeState::InForce);
    check(&steps, status, Outcome::Restored, &[(11, "0,1")]);
}

#[test]
fn a_treatment_that_does_not_name_it_takes_a_later_server_off_the_cpus_of_a_step() {
    let steps = [
        Starts(10, 100, "0-3"),
        Treat(Some("0")),
        Treat(None),
        Has(10, "0,1,2,3"),
        Starts(11, 200, "0-3"),
        Treat(Some("0")),
        Has(11, "0"),
        Treat(None),
        Has(11, "0,1,2,3"),
        Treat(Some("2")),
    ];
    check(
        &steps,
        ("0-3", "2", ChangeState::InForce),
        Outcome::Restored,
        &[(11, "0,1,2,3")],
    );
}

#[test]
fn a_server_that_was_started_again_and_not_bound_is_left_alone() {
    let steps = [
        Starts(10, 100, "0-3"),
        Treat(Some("0")),
        Starts(11, 200, "1"),
        Treat(None),
        Has(11, "1"),
    ];
    check(
        &steps,
        ("0-3", "1", ChangeState::AsBefore),
        Outcome::Already,
        &[(11, "1")],
    );
}

#[test]
fn a_number_that_another_process_has_now_is_not_the_server_that_was_bound() {
    let steps = [
        Starts(10, 100, "0-3"),
        Treat(Some("0")),
        // Bound to the same by its owner.
        Starts(10, 200, "0"),
        Treat(None),
        Has(10, "0"),
        Starts(10, 300, "1"),
        Treat(None),
        Has(10, "1"),
    ];
    check(
        &steps,
        ("0-3", "1", ChangeState::AsBefore),
        Outcome::Already,
        &[(10, "1")],
    );
}

#[test]
fn what_another_has_bound_since_stays() {
    let steps = [
        Starts(10, 100, "0-3"),
        Treat(Some("0")),
        Starts(11, 200, "0-3"),
        Treat(Some("0")),
        Treat(Some("1")),
        Starts(11, 200, "3"),
    ];
    check(
        &steps,
        ("0-3", "3", ChangeState::Foreign),
        Outcome::Left,
        &[(11, "3")],
    );
}
