//! `pgdyno watch` for real: under a pseudo terminal, with a server that comes and goes.

use crate::remote::Pair;
use common::Home;
use common::machine::newest;
use pgdyno_testing::ssh::FAR;
use pgdyno_testing::until;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a machine that does ten other things; nothing here is a measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the terminal shows: as much of a terminal as the view uses.
struct Screen {
    columns: usize,
    cells: Vec<Vec<char>>,
    row: usize,
    column: usize,
    alternate: bool,
    cursor: bool,
    pending: String,
}

impl Screen {
    fn new(columns: usize, rows: usize) -> Screen {
        Screen {
            columns,
            cells: vec![vec![' '; columns]; rows],
            row: 0,
            column: 0,
            alternate: false,
            cursor: true,
            pending: String::new(),
        }
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self.cells.iter().map(|line| line.iter().collect()).collect();
        lines.join("\n")
    }

    /// Takes in what was written; a sequence that is not whole waits for its rest.
    fn write(&mut self, text: &str) {
        self.pending.push_str(text);
        let text = std::mem::take(&mut self.pending);
        let mut rest = text.as_str();
        while let Some(c) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                let Some(end) = sequence.find(|c: char| c.is_ascii_alphabetic()) else {
                    break;
                };
                self.control(&sequence[..end], &sequence[end..=end]);
                rest = &sequence[end + 1..];
                continue;
            }
            if rest == "\x1b" {
                break;
            }
            rest = &rest[c.len_utf8()..];
            self.put(c);
        }
        self.pending = rest.to_owned();
    }

    fn control(&mut self, arguments: &str, last: &str) {
        match (arguments, last) {
            ("?1049", "h" | "l") => self.alternate = last == "h",
            ("?25", "h" | "l") => self.cursor = last == "h",
            (_, "H") => {
                let mut numbers = arguments
                    .split(';')
                    .map(|n| n.parse::<usize>().unwrap_or(1).max(1) - 1);
                self.row = numbers.next().unwrap_or(0);
                self.column = numbers.next().unwrap_or(0);
            }
            (_, "J") => {
                for line in &mut self.cells {
                    line.fill(' ');
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\n' => self.row += 1,
            c => {
                if let Some(cell) = self
                    .cells
                    .get_mut(self.row)
                    .and_then(|line| line.get_mut(self.column))
                {
                    *cell = c;
                }
                self.column += 1;
            }
        }
    }
}

/// Written to the terminal when the program has ended.
const LAST: &[u8] = b"<end>";

/// The program in a terminal of its own.
struct Watch {
    pid: Pid,
    keys: File,
    /// Kept open, so that the terminal's modes can be asked for afterwards.
    terminal: File,
    before: Termios,
    written: Receiver<Vec<u8>>,
    ended: Receiver<ExitStatus>,
    screen: Screen,
    all: Vec<u8>,
    over: bool,
}

impl Watch {
    fn start(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Watch {
        let (keys, terminal, mut child) = in_terminal(home, arguments, variables);
        let before = tcgetattr(&terminal).expect("its modes");
        let pid = Pid::from_child(&child);
        let (end, ended) = channel();
        thread::spawn(move || {
            let _ = end.send(child.wait().expect("an end"));
        });
        let (sender, written) = channel();
        let reader = keys.try_clone().expect("a copy");
        thread::spawn(move || read_all(reader, &sender));
        Watch {
            pid,
            keys,
            terminal,
            before,
            written,
            ended,
            screen: Screen::new(80, 24),
            all: Vec::new(),
            over: false,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("pressed");
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.screen = Screen::new(usize::from(columns), usize::from(rows));
        tcsetwinsize(&self.terminal, size(columns, rows)).expect("a size");
        // The signal goes to the terminal's foreground processes, and it controls none here.
        self.signal(Signal::WINCH);
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("a living process");
    }

    fn take(&mut self, patience: Duration) -> bool {
        let Ok(bytes) = self.written.recv_timeout(patience) else {
            return false;
        };
        self.screen.write(&String::from_utf8_lossy(&bytes));
        self.all.extend(bytes);
        true
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    fn wait_until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(&self.screen.text()) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} was not shown:\n{}", self.screen.text());
            self.take(left.min(Duration::from_millis(200)));
        }
    }

    #[track_caller]
    fn sees(&mut self, expected: &str) {
        self.wait_until(expected, |text| text.contains(expected));
    }

    #[track_caller]
    fn loses(&mut self, expected: &str) {
        self.wait_until(&format!("anything but {expected}"), |text| {
            !text.contains(expected)
        });
    }

    /// Waits for the end and returns the exit code.
    #[track_caller]
    fn ends(&mut self) -> Option<i32> {
        let status = self.ended.recv_timeout(PATIENCE).expect("an end in time");
        self.over = true;
        // All that it wrote comes before what is written now.
        self.terminal.write_all(LAST).expect("a terminal");
        while !self.all.ends_with(LAST) {
            assert!(self.take(PATIENCE), "not all that was written came");
        }
        status.code()
    }

    /// The terminal is as it was found.
    #[track_caller]
    fn gave_the_terminal_back(&self) {
        assert!(!self.screen.alternate, "the other screen is still shown");
        assert!(self.screen.cursor, "the cursor is hidden");
        let now = tcgetattr(&self.terminal).expect("its modes");
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.control_modes, self.before.control_modes);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.over {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

/// Starts the program in a terminal: the end with the keys, the program's end, and the program.
fn in_terminal(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> (File, File, Child) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let name = ptsname(&master, Vec::new()).expect("a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = File::from(rustix::fs::open(&name, flags, Mode::empty()).expect("a terminal"));
    tcsetwinsize(&terminal, size(80, 24)).expect("a size");
    let end = || terminal.try_clone().expect("a copy");
    let mut command = home.command(arguments);
    command
        .env_remove("NO_COLOR")
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .envs(variables.iter().copied())
        .stdin(end())
        .stdout(end())
        .stderr(end());
    let child = command.spawn().expect("pgdyno runs");
    (File::from(master), terminal, child)
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn read_all(mut reader: File, sender: &Sender<Vec<u8>>) {
    let mut bytes = [0; 16384];
    while let Ok(n @ 1..) = reader.read(&mut bytes) {
        if sender.send(bytes[..n].to_vec()).is_err() {
            return;
        }
    }
}

fn home() -> Home {
    home_of("18")
}

fn home_of(version: &str) -> Home {
    let home = Home::new();
    home.run(&[
        "sandbox",
        "create",
        "w",
        "--version",
        version,
        "--set",
        "shared_buffers=32MB",
    ])
    .fine();
    home
}

#[test]
fn keys_choose_what_is_shown_and_q_gives_the_terminal_back() {
    let home = home();
    let mut watch = Watch::start(&home, &["watch", "sandbox:w"], &[]);
    watch.sees("PostgreSQL 18");
    watch.sees("TPS");
    watch.sees("rollbacks/s 0");
    assert!(watch.screen.alternate && !watch.screen.cursor);
    for (key, expected) in [
        ("2", "busy sessions by event"),
        ("3", "pg_stat_statements"),
        ("4", "statement"),
        ("5", "template1"),
        ("6", "r/s"),
        ("7", "page tables"),
        ("8", "not known"),
        ("?", "what busy sessions wait for"),
        ("1", "throughput"),
        (" ", "PAUSED"),
        ("+", "every 2 s"),
        ("-", "every 1 s"),
    ] {
        watch.press(key);
        watch.sees(expected);
    }
    watch.press(" ");
    watch.loses("PAUSED");
    watch.press("4/nobody");
    watch.sees("/nobody_");
    watch.press("\r");
    watch.sees("filter \"nobody\"");
    watch.press("\x1b");
    watch.loses("nobody");
    watch.press("1");
    watch.resize(160, 50);
    watch.wait_until("a line at the bottom", |text| {
        text.lines().nth(49).is_some_and(|line| line.contains("q quit"))
    });
    assert_eq!(watch.screen.columns, 160);
    watch.press("q");
    assert_eq!(watch.ends(), Some(0));
    watch.gave_the_terminal_back();
}

/// Reading by edges loses a key that arrives in the same moment as the signal, until the next key.
#[test]
fn a_key_that_arrives_with_a_new_size_is_shown() {
    let home = home();
    let mut watch = Watch::start(&home, &["watch", "sandbox:w"], &[]);
    watch.sees("TPS");
    for (key, expected) in [("2", "busy sessions by event"), ("1", "throughput")].repeat(50) {
        watch.signal(Signal::WINCH);
        watch.press(key);
        watch.sees(expected);
    }
    watch.press("q");
    assert_eq!(watch.ends(), Some(0));
}

#[test]
fn signals_and_control_c_give_the_terminal_back() {
    let home = home();
    for signal in [Some(Signal::TERM), Some(Signal::HUP), Some(Signal::INT), None] {
        let mut watch = Watch::start(&home, &["watch", "sandbox:w"], &[]);
        watch.sees("TPS");
        match signal {
            Some(signal) => watch.signal(signal),
            None => watch.press("\x03"),
        }
        assert_eq!(watch.ends(), Some(0), "{signal:?}");
        watch.gave_the_terminal_back();
    }
}

/// The terminal is not a session's own here, so there is no signal either.
#[test]
fn a_terminal_that_goes_away_ends_it() {
    let home = home();
    let (mut keys, terminal, mut child) = in_terminal(&home, &["watch", "sandbox:w"], &[]);
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("TPS") {
        let mut bytes = [0; 4096];
        let n = keys.read(&mut bytes).expect("it draws");
        seen.extend(&bytes[..n]);
    }
    drop((keys, terminal));
    let (end, ended) = channel();
    let pid = Pid::from_child(&child);
    thread::spawn(move || end.send(child.wait().expect("an end")));
    let status = ended.recv_timeout(PATIENCE).inspect_err(|_| {
        let _ = kill_process(pid, Signal::KILL);
    });
    assert_eq!(status.expect("an end in time").code(), Some(0));
}

#[test]
fn a_server_that_is_killed_is_said_to_be_away_and_comes_back() {
    let home = home();
    let mut watch = Watch::start(&home, &["watch", "sandbox:w", "--interval", "200ms"], &[]);
    watch.sees("rollbacks/s 0");
    let postmaster = home.postmaster("w").expect("a server");
    let pid = i32::try_from(postmaster).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::KILL).expect("killed");
    watch.sees("STALE");
    watch.sees("rollbacks/s 0");
    home.run(&["sandbox", "start", "w"]).fine();
    watch.loses("STALE");
    watch.sees("rollbacks/s 0");
    watch.press("q");
    assert_eq!(watch.ends(), Some(0));
    watch.gave_the_terminal_back();
}

#[test]
fn a_server_that_is_not_there_is_an_error_before_the_terminal_is_taken() {
    let home = Home::new();
    let target = "host=127.0.0.1 port=1 user=postgres";
    let mut watch = Watch::start(&home, &["watch", target], &[]);
    assert_eq!(watch.ends(), Some(1));
    watch.gave_the_terminal_back();
    let all = String::from_utf8_lossy(&watch.all).into_owned();
    assert!(all.contains("no server answers"), "{all}");
    assert!(!all.contains("\x1b[?1049h"), "{all}");
}

#[test]
fn no_colour_is_sent_where_none_is_wanted() {
    let home = home();
    // Select Graphic Rendition with a colour: 30 to 37 and 90 to 97, or 38 with a number.
    let coloured = |watch: &Watch| {
        let all = String::from_utf8_lossy(&watch.all).into_owned();
        all.split("\x1b[").any(|part| {
            let arguments = part.split_once('m').map_or("", |(arguments, _)| arguments);
            arguments.starts_with("38;")
        })
    };
    for (arguments, variables, colours) in [
        (&["watch", "sandbox:w"][..], &[][..], true),
        (&["watch", "sandbox:w", "--no-color"][..], &[][..], false),
        (&["watch", "sandbox:w"][..], &[("NO_COLOR", "1")][..], false),
    ] {
        let mut watch = Watch::start(&home, arguments, variables);
        watch.sees("TPS");
        watch.press("q");
        assert_eq!(watch.ends(), Some(0));
        assert_eq!(coloured(&watch), colours, "{arguments:?} {variables:?}");
    }
}

#[test]
fn one_look_without_a_terminal_at_a_server_of_the_newest_version() {
    let version = newest();
    let home = home_of(&version);
    home.run(&["watch", "sandbox:w"])
        .fails(2, &["not a terminal", "--once"]);
    home.run(&["watch", "sandbox:w", "--json"]).fails(2, &["--once"]);
    home.run(&["watch", "sandbox:w", "--interval", "10ms"])
        .fails(2, &["100ms to 60s"]);
    let mut dumb = Watch::start(&home, &["watch", "sandbox:w"], &[("TERM", "dumb")]);
    assert_eq!(dumb.ends(), Some(2));
    let text = home
        .run(&["watch", "sandbox:w", "--once", "--interval", "500ms"])
        .fine()
        .out;
    let first = format!("pgdyno watch   sandbox:w   PostgreSQL {version}");
    for expected in [first.as_str(), "TPS", "WAL"] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains('\x1b'), "{text:?}");
    let json = home
        .run(&["watch", "sandbox:w", "--once", "--json", "--interval", "500ms"])
        .fine()
        .json();
    assert_eq!(json["format"], "pgdyno-watch/1");
    let values = json["values"].as_array().expect("values");
    assert!(
        values
            .iter()
            .any(|value| value["metric"] == "wal.position_bytes_per_s"),
        "{json:#}"
    );
}

#[test]
fn target_of_another_host_is_read_there_and_drawn_here() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "w", "--set", "fsync=off"]).fine();
    let program = pair.far.program();
    let start = |target: &str| {
        let variables = [("PGDYNO_SSH", &*program)];
        Watch::start(&pair.home, &["watch", target, "--host", FAR], &variables)
    };
    let mut watch = start("sandbox:w");
    watch.sees("sandbox:w on ssh:far");
    watch.sees("rollbacks/s 0");
    for (key, expected) in [
        ("5", "template1"),
        ("6", "r/s"),
        ("7", "page tables"),
        ("+", "every 2 s"),
        ("1", "throughput"),
    ] {
        watch.press(key);
        watch.sees(expected);
    }
    watch.press("q");
    assert_eq!(watch.ends(), Some(0));
    watch.gave_the_terminal_back();
    until("the end of all agents", || match &*pair.agents() {
        [] => Ok(()),
        others => Err(others.to_vec()),
    });

    let mut watch = start("sandbox:w");
    watch.sees("rollbacks/s 0");
    for pid in pair.agents() {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // Of several, one may have ended with another.
        let _ = kill_process(pid.expect("a process"), Signal::KILL);
    }
    assert_eq!(watch.ends(), Some(1));
    watch.gave_the_terminal_back();
    let said = String::from_utf8_lossy(&watch.all).into_owned();
    assert!(said.contains("the connection to ssh:far was lost"), "{said}");

    let mut watch = start("sandbox:none");
    assert_ne!(watch.ends(), Some(0));
    assert!(!watch.screen.alternate);
    let said = String::from_utf8_lossy(&watch.all).into_owned();
    assert!(said.contains("none"), "{said}");
}

/// Its questions are commits of the same database, which the server counts with the load's.
#[test]
fn a_load_that_is_watched_is_no_invalid_one() {
    let home = home();
    let mut watch = Watch::start(&home, &["watch", "sandbox:w", "--interval", "100ms"], &[]);
    watch.sees("rollbacks/s 0");
    let arguments = [
        "bench",
        "sandbox:w",
        "--workload",
        "simple",
        "--clients",
        "1",
        "--rate",
        "20",
        "--warmup",
        "0s",
        "--duration",
        "5s",
        "--json",
    ];
    let result = home.run(&arguments).fine().json();
    let why = result["unchecked"].as_str().expect("a reason");
    assert!(why.contains("pgdyno watch"), "{why}");
    watch.press("q");
    assert_eq!(watch.ends(), Some(0));
    let result = home.run(&arguments).fine().json();
    assert_eq!(result["cross_check"]["agrees"], true, "{result:#}");
}
