//! Changes of a kernel file, on a machine made of files.

use super::*;
use crate::journal::{Journal, Journals, Patience};
use crate::restore::{Outcome, RestoreOptions, Restorer};
use pgdyno_host::{HostError, LocalHost};
use std::fs;
use std::sync::Mutex;

const KNOB: &str = "vm.swappiness";
const FILE: &str = "proc/sys/vm/swappiness";
/// Writing it sets the other one again, as the kernel does.
const SETS_AGAIN: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const SET_AGAIN: &str = "/proc/sys/vm/min_free_kbytes";

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    Work,
    /// As of a file that the kernel does not change.
    Nothing,
    Fail,
}

struct Machine {
    dir: tempfile::TempDir,
    files: LocalHost,
    journals: Journals,
    writes: Mutex<Writes>,
    /// Of each write, whether the old value was in a journal by then.
    was_saved: Mutex<Vec<bool>>,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/sys/kernel/random/boot_id", "boot\n"),
            (FILE, "60\n"),
            (SETS_AGAIN, "always [madvise] never\n"),
            (SET_AGAIN, "30000\n"),
        ] {
            let path = dir.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Machine {
            files: LocalHost::at(dir.path()),
            journals: Journals::in_test(&dir.path().join("journals")),
            dir,
            writes: Mutex::new(Writes::Work),
            was_saved: Mutex::default(),
        }
    }

    fn now(&self) -> String {
        fs::read_to_string(self.dir.path().join(FILE))
            .unwrap()
            .trim()
            .to_owned()
    }

    fn set(&self, value: &str) {
        fs::write(self.dir.path().join(FILE), value).unwrap();
    }

    fn writes(&self, writes: Writes) {
        *self.writes.lock().unwrap() = writes;
    }

    fn changer<'a>(&'a self, catalogue: &'a Catalogue) -> Changer<'a> {
        let mut patience = Patience::none();
        let scope = (None, OfHost::Yes);
        Changer::begin(
            self,
            catalogue,
            None,
            &self.journals,
            "test",
            scope,
            &mut patience,
        )
        .unwrap()
    }

    fn restorer<'a>(&'a self, catalogue: &'a Catalogue) -> Restorer<'a> {
        Restorer {
            host: self,
            catalogue,
            environment: &|_| None,
            options: RestoreOptions::default(),
            conninfo: None,
        }
    }

    fn is_saved(&self) -> bool {
        let files = fs::read_dir(&self.journals.directory).into_iter().flatten();
        let mut texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap_or_default());
        texts.any(|text| text.contains(KNOB) && text.contains("60"))
    }
}

impl HostAccess for Machine {
    leaves_to_its_files!();
    fn write_raw(&self, path: &str, value: &str) -> Result<(), HostError> {
        self.was_saved.lock().unwrap().push(self.is_saved());
        match *self.writes.lock().unwrap() {
            Writes::Work if path == SETS_AGAIN => {
                let words = ["always", "madvise", "never"];
                let shown = words.map(|word| match word == value {
                    true => format!("[{word}]"),
                    false => word.to_owned(),
                });
                self.files.write_raw(path, &shown.join(" "))?;
                self.files.write_raw(SET_AGAIN, "67584")
            }
            Writes::Work => self.files.write_raw(path, value),
            Writes::Nothing => Ok(()),
            Writes::Fail => self.files.write_raw("/proc/not/there", value),
        }
    }
    fn bind_raw(&self, pid: u32, cpus: &[usize]) -> Result<(), HostError> {
        self.files.bind_raw(pid, cpus)
    }
}

fn apply(changer: &mut Changer<'_>, value: Option<&str>) -> Result<Vec<Applied>, ApplyError> {
    let setting = value.map(|value| {
        let setting = Setting {
            knob: KNOB.to_owned(),
            value: value.to_owned(),
        };
        changer.catalogue.agree(&setting, &[]).unwrap()
    });
    changer.apply(setting.as_slice(), Restart::WhenNeeded)
}

#[test]
fn a_file_is_written_when_its_old_value_is_in_the_journal() {
    let (machine, catalogue) = (Machine::new(), Catalogue::shipped().unwrap());
    let mut changer = machine.changer(&catalogue);
    assert!(!machine.is_saved());
    assert!(apply(&mut changer, Some("10")).unwrap()[0].took);
    assert_eq!(
        (machine.now(), &*machine.was_saved.lock().unwrap()),
        ("10".to_owned(), &vec![true])
    );
}

#[test]
fn a_value_of_someone_else_is_refused_and_kept() {
    let (machine, catalogue) = (Machine::new(), Catalogue::shipped().unwrap());
    let mut changer = machine.changer(&catalogue);
    apply(&mut changer, Some("10")).unwrap();
    machine.set("33");
    for value in [Some("1"), None] {
        let refused = apply(&mut changer, value);
        assert!(matches!(refused, Err(ApplyError::Foreign { .. })), "{refused:?}");
        assert_eq!(machine.now(), "33");
    }
    let lines = changer.restore(&machine.restorer(&catalogue)).unwrap();
    assert_eq!(
        (lines[0].outcome, machine.now()),
        (Outcome::Left, "33".to_owned())
    );
}

#[test]
fn a_file_that_is_not_named_and_keeps_its_value_is_an_error() {
    let (machine, catalogue) = (Machine::new(), Catalogue::shipped().unwrap());
    let mut changer = machine.changer(&catalogue);
    apply(&mut changer, Some("10")).unwrap();
    machine.writes(Writes::Nothing);
    let kept = apply(&mut changer, None);
    assert!(matches!(kept, Err(ApplyError::NotBack { .. })), "{kept:?}");
}

#[test]
fn a_file_that_another_one_sets_again_is_written_after_it_though_it_has_its_value() {
    let (machine, catalogue) = (Machine::new(), Catalogue::shipped().unwrap());
    let mut changer = machine.changer(&catalogue);
    let settings = [
        ("vm.min_free_kbytes", "30000"),
        ("transparent_hugepage.enabled", "never"),
    ];
    let agreed = settings.map(|(knob, value)| {
        let (knob, value) = (knob.to_owned(), value.to_owned());
        catalogue.agree(&Setting { knob, value }, &[]).unwrap()
    });
    let applied = changer.apply(&agreed, Restart::WhenNeeded).unwrap();
    assert!(applied.iter().all(|line| line.took), "{applied:?}");
    changer.restore(&machine.restorer(&catalogue)).unwrap();
    let now = |path| machine.files.read_trimmed(path).unwrap();
    assert_eq!(
        (now(SETS_AGAIN).as_str(), now(SET_AGAIN).as_str()),
        ("always [madvise] never", "30000")
    );
}

#[test]
fn a_journal_is_kept_until_all_is_restored() {
    let (machine, catalogue) = (Machine::new(), Catalogue::shipped().unwrap());
    let mut changer = machine.changer(&catalogue);
    apply(&mut changer, Some("10")).unwrap();
    machine.writes(Writes::Fail);
    let path = changer.journal.path().to_owned();
    let restorer = machine.restorer(&catalogue);
    let lines = changer.restore(&restorer).unwrap();
    assert_eq!((lines[0].outcome, path.exists()), (Outcome::Failed, true));
    machine.writes(Writes::Work);
    let (journal, _) = Journal::reopen(&machine.journals, &path).unwrap().unwrap();
    let lines = restorer.restore(journal).unwrap();
    assert_eq!((lines[0].outcome, path.exists()), (Outcome::Restored, false));
    assert_eq!(machine.now(), "60");
}
