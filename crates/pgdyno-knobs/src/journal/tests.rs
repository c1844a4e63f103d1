use super::*;
use crate::catalogue::{Catalogue, Setting};
use crate::change::{Changer, OfHost, Restart};
use crate::consent::Agreed;
use crate::restore::{DAMAGED_JOURNAL, Outcome, RestoreOptions, Restored, Restorer};
use pgdyno_host::{HostAccess, LocalHost};
use proptest::prelude::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::OnceLock;

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const WRITEBACK: &str = "/proc/sys/vm/dirty_writeback_centisecs";
const FIRST: (&str, &str) = ("60", "500");
const SET: (&str, &str) = ("20", "100");

/// Reading it takes longer than a test.
static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();

fn agreed(catalogue: &Catalogue, knob: &str, value: &str) -> Agreed<Setting> {
    let setting = Setting {
        knob: knob.to_owned(),
        value: value.to_owned(),
    };
    catalogue.agree(&setting, &[]).unwrap()
}

/// A machine of files with journals, changed by a process that was killed.
struct Machine {
    dir: tempfile::TempDir,
    host: LocalHost,
    catalogue: &'static Catalogue,
    journals: Journals,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        for (path, value) in [
            ("/proc/sys/kernel/random/boot_id", "boot"),
            ("/proc/meminfo", "MemTotal: 1000000 kB"),
            (SWAPPINESS, FIRST.0),
            (WRITEBACK, FIRST.1),
        ] {
            let path = dir.path().join(&path[1..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }
        Machine {
            host: LocalHost::at(dir.path()),
            catalogue: CATALOGUE.get_or_init(|| Catalogue::shipped().unwrap()),
            journals: Journals::in_test(dir.path()),
            dir,
        }
    }

    fn begin(&self, purpose: &str) -> Result<Changer<'_>, crate::applied::ApplyError> {
        let mut patience = Patience::none();
        Changer::begin(
            &self.host,
            self.catalogue,
            None,
            &self.journals,
            purpose,
            (None, OfHost::Yes),
            &mut patience,
        )
    }

    /// One knob, the same once more, and another one: three intents. Its process is killed.
    fn changed(&self) -> PathBuf {
        let mut changer = self.begin("test").unwrap();
        let setting = |knob: &str, value: &str| agreed(self.catalogue, knob, value);
        changer
            .apply(&[setting("vm.swappiness", "10")], Restart::WhenNeeded)
            .unwrap();
        let both = [
            setting("vm.swappiness", SET.0),
            setting("vm.dirty_writeback_centisecs", SET.1),
        ];
        changer.apply(&both, Restart::WhenNeeded).unwrap();
        drop(changer);
        assert_eq!(self.state(), SET);
        self.journals.listed().unwrap()[0].path.clone()
    }

    fn state(&self) -> (&'static str, &'static str) {
        let known = |path: &str, values: [&'static str; 2]| {
            let now = self.host.read_trimmed(path).unwrap();
            values
                .into_iter()
                .find(|value| *value == now)
                .unwrap_or("another")
        };
        (
            known(SWAPPINESS, [FIRST.0, SET.0]),
            known(WRITEBACK, [FIRST.1, SET.1]),
        )
    }

    /// Restores all there is; what was restored, and what was wrong.
    fn restore(&self) -> (Vec<Restored>, Vec<String>) {
        let restorer = Restorer {
            host: &self.host,
            catalogue: self.catalogue,
            environment: &|_| None,
            options: RestoreOptions::default(),
            conninfo: None,
        };
        let (mut lines, mut wrong) = (Vec::new(), Vec::new());
        let listed = match self.journals.listed() {
            Ok(listed) => listed,
            Err(error) => return (lines, vec![error.to_string()]),
        };
        for Listed { path, .. } in listed.into_iter().rev() {
            match Journal::reopen(&self.journals, &path) {
                Ok(Some((journal, _))) => lines.extend(restorer.restore(journal).unwrap()),
                Ok(None) => {}
                Err(error) => wrong.push(error.to_string()),
            }
        }
        let damaged = lines.iter().filter(|line| line.knob == DAMAGED_JOURNAL);
        wrong.extend(damaged.filter_map(|line| line.detail.clone()));
        (lines, wrong)
    }
}

/// What is restored of a damaged journal without its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proven {
    Both,
    First,
    Second,
    Nothing,
}
use Proven::{Both, First, Nothing, Second};

type Damage = fn(&Path, &[&[u8]]);

/// The lines of a journal; its first one with the count behind it.
fn lines_of(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    let head = lines[0].len() + lines[1].len();
    lines.drain(..2);
    lines.insert(0, &bytes[..head]);
    lines
}

/// Writes lines that are given by their places; its lines are 0 open, 1 intent, 2 done, 3 intent, 4
/// done, 5 intent, 6 done.
fn only(path: &Path, lines: &[&[u8]], wanted: &[usize]) {
    let kept: Vec<&[u8]> = wanted.iter().map(|&at| lines[at]).collect();
    fs::write(path, kept.concat()).unwrap();
}

/// Writes all lines, one of them made into something else.
fn instead(path: &Path, lines: &[&[u8]], at: usize, change: impl Fn(&mut Vec<u8>)) {
    let mut all: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
    change(&mut all[at]);
    fs::write(path, all.concat()).unwrap();
}

fn replaced(path: &Path, make: impl FnOnce(&Path)) {
    fs::remove_file(path).unwrap();
    make(path);
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// How a journal is damaged, what is restored without its copy, and whether that alone shows that
/// something is wrong.
const DAMAGES: [(&str, Damage, Proven, bool); 34] = [
    ("emptied", |path, _| fs::write(path, "").unwrap(), Nothing, true),
    (
        "removed",
        |path, _| fs::remove_file(path).unwrap(),
        Nothing,
        false,
    ),
    ("first line alone", |p, l| only(p, l, &[0]), Nothing, true),
    ("first intent alone", |p, l| only(p, l, &[0, 1]), First, true),
    (
        "last line gone",
        |p, l| only(p, l, &[0, 1, 2, 3, 4, 5]),
        Both,
        true,
    ),
    (
        "last change gone",
        |p, l| only(p, l, &[0, 1, 2, 3, 4]),
        First,
        true,
    ),
    (
        "torn in the first line",
        |p, l| fs::write(p, &l[0][..20]).unwrap(),
        Nothing,
        true,
    ),
    (
        "torn in the first intent",
        |p, l| fs::write(p, [l[0], &l[1][..9]].concat()).unwrap(),
        Nothing,
        true,
    ),
    (
        "its last byte gone",
        |p, l| instead(p, l, 6, |line| line.truncate(line.len() - 1)),
        Both,
        true,
    ),
    (
        "first line removed",
        |p, l| only(p, l, &[1, 2, 3, 4, 5, 6]),
        Both,
        true,
    ),
    (
        "first intent removed",
        |p, l| only(p, l, &[0, 2, 3, 4, 5, 6]),
        Second,
        true,
    ),
    (
        "second intent removed",
        |p, l| only(p, l, &[0, 1, 2, 4, 5, 6]),
        Both,
        true,
    ),
    (
        "last intent removed",
        |p, l| only(p, l, &[0, 1, 2, 3, 4, 6]),
        First,
        true,
    ),
    (
        "a done removed",
        |p, l| only(p, l, &[0, 1, 3, 4, 5, 6]),
        Both,
        true,
    ),
    (
        "two lines swapped",
        |p, l| only(p, l, &[0, 3, 2, 1, 4, 5, 6]),
        Both,
        true,
    ),
    (
        "a line twice",
        |p, l| only(p, l, &[0, 1, 2, 3, 3, 4, 5, 6]),
        Both,
        true,
    ),
    (
        "its first line last",
        |p, l| only(p, l, &[1, 2, 3, 4, 5, 6, 0]),
        Both,
        true,
    ),
    (
        "a bit of the first line",
        |p, l| instead(p, l, 0, |line| line[30] ^= 1),
        Both,
        true,
    ),
    (
        "a bit of the value before",
        |p, l| {
            instead(p, l, 1, |line| {
                let at = line.windows(4).position(|part| part == b"\"60\"").unwrap();
                line[at + 1] ^= 1;
            });
        },
        Second,
        true,
    ),
    (
        "a bit of a path",
        |p, l| {
            instead(p, l, 5, |line| {
                let at = line.windows(5).position(|part| part == b"/proc").unwrap();
                line[at + 1] ^= 1;
            });
        },
        First,
        true,
    ),
    (
        "a bit of a checksum",
        |p, l| {
            instead(p, l, 5, |line| {
                let at = line.len() - 3;
                line[at] ^= 1;
            });
        },
        First,
        true,
    ),
    (
        "two lines joined",
        |p, l| instead(p, l, 5, |line| line.truncate(line.len() - 1)),
        First,
        true,
    ),
    (
        "zeros all over",
        |p, l| fs::write(p, vec![0; l.concat().len()]).unwrap(),
        Nothing,
        true,
    ),
    (
        "zeros in the middle",
        |p, l| {
            instead(p, l, 3, |line| {
                let n = line.len() - 1;
                line[..n].fill(0)
            })
        },
        Both,
        true,
    ),
    (
        "no text",
        |p, l| instead(p, l, 3, |line| line[5] = 0xff),
        Both,
        true,
    ),
    (
        "a line of somebody's",
        |p, l| instead(p, l, 3, |line| line.splice(0..0, *b"nonsense\n").for_each(drop)),
        Both,
        true,
    ),
    (
        "another program's file",
        |p, _| fs::write(p, "\x7fELF and so on\nmore\n").unwrap(),
        Nothing,
        true,
    ),
    (
        "without checksums",
        |p, l| {
            let bare = l.iter().flat_map(|line| [line::json_of(line), b"\n"].concat());
            fs::write(p, bare.collect::<Vec<u8>>()).unwrap();
        },
        Nothing,
        true,
    ),
    (
        "a directory",
        |p, _| replaced(p, |p| fs::create_dir(p).unwrap()),
        Nothing,
        true,
    ),
    (
        "a link to nowhere",
        |p, _| replaced(p, |p| symlink("/nowhere", p).unwrap()),
        Nothing,
        true,
    ),
    (
        "a FIFO",
        |p, _| {
            replaced(p, |p| {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(rustix::fs::CWD, p, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            })
        },
        Nothing,
        true,
    ),
    (
        "a link to a whole one",
        |p, l| {
            replaced(p, |p| {
                let real = p.with_extension("real");
                fs::write(&real, l.concat()).unwrap();
                symlink(real, p).unwrap();
            })
        },
        Nothing,
        true,
    ),
    ("writable by all", |p, _| chmod(p, 0o666), Nothing, true),
    (
        "its directory writable by all",
        |p, _| chmod(p.parent().unwrap(), 0o777),
        Nothing,
        true,
    ),
];

#[test]
fn damaged_journal_is_restored_from_its_copy_and_named() {
    for (name, damage, _, _) in DAMAGES {
        let machine = Machine::new();
        let path = machine.changed();
        let bytes = fs::read(&path).unwrap();
        let lines = lines_of(&bytes);
        assert_eq!(lines.len(), 7, "open, and three times intent and done");
        damage(&path, &lines);
        let (_, wrong) = machine.restore();
        assert!(!wrong.is_empty(), "{name}: nothing was said");
        // Without a trusted directory nothing at all is.
        if !name.starts_with("its directory") {
            assert_eq!(machine.state(), FIRST, "{name}: {wrong:?}");
        }
        let is_kept = |directory: &Path| {
            let mut entries = fs::read_dir(directory).unwrap().flatten();
            entries.any(|entry| entry.file_name() != "lock" && !entry.path().ends_with("host.lock"))
        };
        assert!(
            is_kept(&machine.journals.directory) || is_kept(&machine.journals.registry),
            "{name}: the damaged file is kept"
        );
    }
}

#[test]
fn damaged_journal_without_its_copy_restores_what_its_lines_prove() {
    for (name, damage, proven, is_seen) in DAMAGES {
        let machine = Machine::new();
        let path = machine.changed();
        let bytes = fs::read(&path).unwrap();
        let lines = lines_of(&bytes);
        fs::remove_dir_all(&machine.journals.registry).unwrap();
        damage(&path, &lines);
        let (restored, wrong) = machine.restore();
        let expected = match proven {
            Both => FIRST,
            First => (FIRST.0, SET.1),
            Second => (SET.0, FIRST.1),
            Nothing => SET,
        };
        // With its second intent lost, what is in force is not a value that its lines know.
        let found = machine.state();
        let is_left = restored
            .iter()
            .any(|line| line.knob == "vm.swappiness" && line.outcome == Outcome::Left);
        let expected = if is_left { (SET.0, expected.1) } else { expected };
        assert_eq!(found, expected, "{name}: {restored:?} {wrong:?}");
        assert_eq!(!wrong.is_empty(), is_seen, "{name}: {wrong:?}");
    }
}

#[test]
fn journal_cut_by_whole_lines_without_its_copy_is_named() {
    for cut in 1..7 {
        let machine = Machine::new();
        let path = machine.changed();
        fs::remove_dir_all(&machine.journals.registry).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, lines_of(&bytes)[..7 - cut].concat()).unwrap();
        let (_, wrong) = machine.restore();
        assert_eq!(wrong.len(), 1, "{cut}: {wrong:?}");
        for number in 8 - cut..8 {
            assert!(wrong[0].contains(&format!("entry {number} is lost")), "{wrong:?}");
        }
        let aside = machine.journals.damaged().unwrap();
        assert_eq!(aside.len(), 1, "{cut}: the file is kept");
    }
}

/// A kill between the two writes leaves a line that is not counted, at any byte of the count; one
/// before them leaves a part of a line.
#[test]
fn kill_between_a_line_and_its_count_is_no_damage() {
    for (lines, counted) in [(7, 6), (7, 7), (6, 6), (6, 5), (2, 1), (1, 1)] {
        for torn in [0, 9] {
            for byte in [0, 12] {
                let machine = Machine::new();
                let path = machine.changed();
                fs::remove_dir_all(&machine.journals.registry).unwrap();
                let bytes = fs::read(&path).unwrap();
                let all = lines_of(&bytes);
                let mut left = all[..lines].concat();
                left.extend_from_slice(&all.get(lines).unwrap_or(&all[6])[..torn]);
                let id = content::id_of(&path);
                let first = line::count_line(&id, 1);
                let count_at = all[0].len() - first.len();
                left[count_at..all[0].len()].copy_from_slice(first.as_bytes());
                let mut write = |number: usize, bytes_max: usize| {
                    let (at, slot) = line::count_update(&id, number);
                    let at = count_at + usize::try_from(at).unwrap();
                    let part = &slot.as_bytes()[..bytes_max.min(slot.len())];
                    left[at..at + part.len()].copy_from_slice(part);
                };
                (2..=counted).for_each(|number| write(number, usize::MAX));
                if counted < lines {
                    write(lines, byte);
                }
                fs::write(&path, left).unwrap();
                let (restored, wrong) = machine.restore();
                let what = format!("{lines} lines, {counted} counted, {torn} and {byte} bytes");
                assert!(wrong.is_empty(), "{what}: {wrong:?}");
                let expected = match lines {
                    1 => SET,
                    2 => (FIRST.0, SET.1),
                    _ => FIRST,
                };
                // What the lost lines of this test have set is somebody else's value to the
                // journal.
                let is_left = restored.iter().any(|line| line.outcome == Outcome::Left);
                assert!(machine.state() == expected || is_left, "{what}: {restored:?}");
            }
        }
    }
}

#[test]
fn journal_of_the_format_before_the_count_is_read() {
    let open = r#"{"open":{"format":4,"pid":2,"started_unix_ms":1,"boot_id":"b","purpose":"p","server":null,"server_was_running":false}}"#;
    let lines = [
        line::sealed("1-2", 1, open),
        line::sealed("1-2", 2, "\"confirmed\""),
    ];
    let read = |lines: &[String]| parse(lines.concat().as_bytes(), Path::new("1-2.journal")).unwrap();
    let whole = read(&lines);
    assert_eq!((whole.entries.len(), whole.damage.len()), (1, 0));
    let counted = [lines[0].replace("\"format\":4", "\"format\":5"), lines[1].clone()];
    let json = counted[0].split('\t').next().unwrap();
    let without = read(&[line::sealed("1-2", 1, json), counted[1].clone()]);
    assert!(
        without.damage[0].contains("count of its lines"),
        "{:?}",
        without.damage
    );
}

#[test]
fn torn_last_line_is_a_change_that_was_never_made() {
    let machine = Machine::new();
    let path = machine.changed();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"intent\":{\"kn");
    fs::write(&path, bytes).unwrap();
    let (lines, wrong) = machine.restore();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(machine.state(), FIRST);
    assert!(machine.journals.listed().unwrap().is_empty());
    let left = fs::read_dir(&machine.journals.registry).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(
        left.iter()
            .all(|name| name.to_string_lossy().ends_with(".lock") || name == "notices"),
        "{left:?}"
    );
    let notices = fs::read_dir(machine.journals.registry.join("notices")).unwrap();
    assert_eq!(notices.count(), 0);
}

#[test]
fn planted_journal_writes_no_place_beside_the_catalogues() {
    let machine = Machine::new();
    let victim = "/proc/sys/kernel/core_pattern";
    fs::write(machine.dir.path().join(&victim[1..]), "x").unwrap();
    drop(machine.begin("own").unwrap());
    let path = machine.journals.directory.join("1-2.journal");
    let lines = [
        r#"{"open":{"format":3,"pid":2,"started_unix_ms":1,"boot_id":"boot","purpose":"planted","server":null,"server_was_running":false}}"#.to_owned(),
        format!(r#"{{"intent":{{"knob":"vm.swappiness","cell":{{"files":{{"files":[{{"path":"{victim}","form":"plain"}}],"counterparts":false}}}},"before":{{"files":["|/tmp/evil"]}},"writing":"x"}}}}"#),
    ];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    chmod(&path, 0o600);
    let (_, wrong) = machine.restore();
    assert!(wrong.iter().any(|reason| reason.contains(victim)), "{wrong:?}");
    assert_eq!(machine.host.read_trimmed(victim).unwrap(), "x");
    assert!(!path.exists() && path.with_extension("journal.damaged").exists());
}

#[test]
fn journal_of_an_older_format_is_read_to_its_first_damaged_line() {
    let open = r#"{"open":{"format":2,"pid":2,"started_unix_ms":1,"boot_id":"b","purpose":"p","server":null,"server_was_running":false}}"#;
    let read = |rest: &str| parse(format!("{open}\n{rest}").as_bytes(), Path::new("1-2.journal")).unwrap();
    let whole = read("\"confirmed\"\n\"conf");
    assert_eq!((whole.entries.len(), whole.damage.len()), (1, 0));
    let broken = read("nonsense\n\"closed\"\n");
    assert_eq!((broken.entries.len(), broken.damage.len()), (0, 1));
    assert!(broken.damage[0].contains("line 2"), "{:?}", broken.damage);
    let newer = open.replace("\"format\":2", "\"format\":9");
    let error = parse(format!("{newer}\n").as_bytes(), Path::new("1-2.journal")).unwrap_err();
    assert!(error.to_string().contains("format 9"), "{error}");
}

fn purpose() -> Purpose {
    Purpose::now("boot".into(), "test".into(), None, true)
}

fn of_server(key: &str) -> Scope {
    Scope {
        host: false,
        server: Some(key.into()),
    }
}

#[test]
fn living_process_keeps_its_journal_by_the_copy_too() {
    let machine = Machine::new();
    let changer = machine.begin("test").unwrap();
    let path = machine.journals.listed().unwrap()[0].path.clone();
    let held = |path: &Path| {
        let error = Journal::reopen(&machine.journals, path).unwrap_err();
        assert!(matches!(error, JournalError::Held { .. }), "{error}");
        assert!(machine.journals.look(path).unwrap().unwrap().1, "it lives");
    };
    held(&path);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "it may hold secrets");
    fs::remove_file(&path).unwrap();
    let copy = machine.journals.listed().unwrap()[0].path.clone();
    assert!(Journal::reopen(&machine.journals, &copy).is_err());
    drop(changer);
    // It changed nothing.
    assert!(Journal::reopen(&machine.journals, &copy).unwrap().is_none());
    assert!(machine.journals.listed().unwrap().is_empty());
}

#[test]
fn processes_exclude_one_another_by_host_and_by_server() {
    let machine = Machine::new();
    let host = Scope {
        host: true,
        server: None,
    };
    let both = Scope {
        host: true,
        server: Some("a".into()),
    };
    let begin = |scope: &Scope| Journal::begin(&machine.journals, purpose(), scope, &mut Patience::none());
    let check = |held: &Scope, wanted: &Scope, may: bool| {
        let first = begin(held).unwrap();
        let second = begin(wanted);
        assert_eq!(second.is_ok(), may, "{held:?}, {wanted:?}");
        if let Err(error) = &second {
            let message = error.to_string();
            assert!(message.contains("(test) is changing settings of"), "{message}");
        }
        drop((first, second));
        drop(begin(wanted).unwrap());
    };
    check(&of_server("a"), &of_server("b"), true);
    check(&of_server("a"), &host, true);
    check(&host, &of_server("b"), true);
    check(&of_server("a"), &of_server("a"), false);
    check(&host, &host, false);
    check(&both, &of_server("a"), false);
    check(&host, &both, false);
    check(&both, &of_server("b"), true);
}

#[test]
fn other_home_sees_what_is_changed_and_takes_no_left_value_for_one_from_before() {
    let mut machine = Machine::new();
    machine.changed();
    machine.journals = Journals {
        directory: machine.dir.path().join("other"),
        home: "PGDYNO_HOME=other".to_owned(),
        ..machine.journals.clone()
    };
    let listed = machine.journals.listed().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].home.as_deref(), Some("PGDYNO_HOME=test"));
    let error = machine.begin("other").map(drop).unwrap_err().to_string();
    assert!(error.contains("(test) was killed"), "{error}");
    let (_, wrong) = machine.restore();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(machine.state(), FIRST);
    drop(machine.begin("other").unwrap());
}

/// A loop device's settings stay in the kernel by its name when its file goes.
#[test]
fn read_ahead_of_a_loop_device_is_restored_wherever_its_file_is_by_then() {
    let check = |then: [Option<&str>; 2], values: [&str; 2], expected: [&str; 2]| {
        let machine = Machine::new();
        let device = |number: usize| machine.dir.path().join(format!("sys/block/loop{number}"));
        let show = |number: usize, file: Option<&str>| {
            let place = device(number).join("loop");
            let _ = fs::remove_dir_all(&place);
            if let Some(file) = file {
                fs::create_dir_all(&place).unwrap();
                fs::write(place.join("backing_file"), file).unwrap();
            }
        };
        let read_ahead = |number: usize| device(number).join("queue/read_ahead_kb");
        for number in [0, 1] {
            fs::create_dir_all(device(number).join("queue")).unwrap();
            fs::write(read_ahead(number), "128").unwrap();
        }
        show(0, Some("/srv/image"));
        let mut changer = machine.begin("test").unwrap();
        let setting = agreed(machine.catalogue, "block.read_ahead_kb@loop0", "4096");
        changer.apply(&[setting], Restart::WhenNeeded).unwrap();
        drop(changer);
        for number in [0, 1] {
            show(number, then[number]);
            fs::write(read_ahead(number), values[number]).unwrap();
        }
        let (lines, _) = machine.restore();
        let found = [0, 1].map(|number| fs::read_to_string(read_ahead(number)).unwrap());
        assert_eq!(found, expected, "{then:?}: {lines:?}");
    };
    let (file, other) = (Some("/srv/image"), Some("/srv/other"));
    check([file, None], ["4096", "128"], ["128", "128"]);
    check([None, None], ["4096", "128"], ["128", "128"]);
    check([None, file], ["4096", "128"], ["128", "128"]);
    check([other, file], ["4096", "4096"], ["128", "128"]);
    check([other, None], ["4096", "128"], ["128", "128"]);
    check(
        [Some("/srv/image (deleted)"), None],
        ["4096", "128"],
        ["128", "128"],
    );
    // Somebody's own by now.
    check([other, file], ["64", "128"], ["64", "128"]);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes, Path::new("1-2.journal"));
    }
}
