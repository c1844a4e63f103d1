use super::*;
use crate::journal::Purpose;
use crate::undo::{Form, KernelFile};
use pgdyno_host::LocalHost;
use std::fs;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";
/// Huge pages and the reserve that the kernel sets again with them.
const FIRST: [&str; 2] = ["madvise", "67584"];
const SET: [&str; 2] = ["never", "11000"];

fn state(values: [&str; 2]) -> SavedState {
    SavedState::Files(values.map(|value| Some(value.to_owned())).to_vec())
}

/// The outcome where transparent huge pages were set, `shown` then as the journal has it, and both
/// files are `now`; and the files after it.
fn restored(shown: [&str; 2], now: [&str; 2]) -> (Outcome, [String; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let place = |path: &str| dir.path().join(&path[1..]);
    for (path, value) in [
        ("/proc/sys/kernel/random/boot_id", "boot"),
        (THP, now[0]),
        (RESERVE, now[1]),
    ] {
        fs::create_dir_all(place(path).parent().unwrap()).unwrap();
        fs::write(place(path), value).unwrap();
    }
    let files = [THP, RESERVE].map(|path| KernelFile {
        path: path.into(),
        form: Form::Plain,
        device: None,
    });
    let content = Content {
        purpose: Purpose::now("boot".into(), "test".into(), None, true),
        entries: vec![
            Entry::Intent {
                knob: "transparent_hugepage.enabled".into(),
                unit: UndoUnit::Files {
                    files: files.to_vec(),
                    leads: 1,
                    counterparts: false,
                },
                before: state(FIRST),
                writing: Some(SET[0].into()),
                file: 0,
                again: false,
            },
            Entry::Done { after: state(shown) },
        ],
        whole_bytes: 0,
        damage: Vec::new(),
    };
    let restorer = Restorer {
        host: &LocalHost::at(dir.path()),
        catalogue: &Catalogue::shipped().unwrap(),
        environment: &|_| None,
        options: RestoreOptions::default(),
        conninfo: None,
    };
    let lines = restorer.undo(&content, &mut |_| Ok(()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    let found = |path: &str| fs::read_to_string(place(path)).unwrap().trim().to_owned();
    (lines[0].outcome, [found(THP), found(RESERVE)])
}

#[test]
fn what_others_set_beside_ours_stays_and_ours_is_restored() {
    let check = |shown, now, outcome, after: [&str; 2]| {
        assert_eq!(
            restored(shown, now),
            (outcome, after.map(str::to_owned)),
            "{now:?}"
        );
    };
    check(SET, SET, Outcome::Restored, FIRST);
    check(SET, [SET[0], "90000"], Outcome::Restored, [FIRST[0], "90000"]);
    check(SET, ["always", "90000"], Outcome::Left, ["always", "90000"]);
    check(SET, ["always", SET[1]], Outcome::Left, ["always", SET[1]]);
    check(SET, FIRST, Outcome::Already, FIRST);
    check(SET, [FIRST[0], "90000"], Outcome::Already, [FIRST[0], "90000"]);
    // The kernel showed what was written a moment after the write was said to be done.
    check(FIRST, SET, Outcome::Restored, [FIRST[0], SET[1]]);
    check(FIRST, [SET[0], FIRST[1]], Outcome::Restored, FIRST);
}
