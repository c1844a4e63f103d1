//! Servers made of files, and what is read of their processes.

use super::*;
use crate::series::fixture::{Tree, gaps, has, has_no};
use proptest::prelude::*;

const SERVER: u32 = 10;

/// A line of /proc/PID/stat; times in ticks.
struct Line {
    pid: u32,
    parent: u32,
    state: char,
    own: [u64; 3],
    reaped: [u64; 3],
    started: u64,
}

impl Line {
    fn new(pid: u32, ticks: u64) -> Line {
        Line {
            pid,
            parent: SERVER,
            state: 'S',
            own: [ticks, 10 * ticks, ticks / 10],
            reaped: [0; 3],
            started: 100,
        }
    }

    fn text(&self) -> String {
        let ([ticks, minor, major], [r_ticks, r_minor, r_major]) = (self.own, self.reaped);
        format!(
            "{} (post gres) {} {} 1 1 0 -1 4194560 {minor} {r_minor} {major} {r_major} {ticks} 0 {r_ticks} 0 20 0 1 0 {} \
             9000 5 18446744073709551615 1 1\n",
            self.pid, self.state, self.parent, self.started
        )
    }
}

/// A server: its line, its children with their titles, and the uptime in seconds.
fn put(tree: &Tree, server: &Line, children: &[(Line, &str)], uptime_s: u64) {
    let list: Vec<String> = children.iter().map(|(line, _)| line.pid.to_string()).collect();
    let path = format!("/proc/{SERVER}/task/{SERVER}/children");
    tree.put(&[
        (&path, &list.join(" ")),
        ("/proc/uptime", &format!("{uptime_s}.00 7.00\n")),
        (&format!("/proc/{SERVER}/stat"), &server.text()),
    ]);
    for (line, title) in children {
        tree.put(&[
            (&format!("/proc/{}/stat", line.pid), &line.text()),
            (&format!("/proc/{}/cmdline", line.pid), title),
        ]);
    }
}

fn server(reaped: [u64; 3]) -> Line {
    Line {
        parent: 1,
        reaped,
        ..Line::new(SERVER, 50)
    }
}

/// The first reading of a tick: CPU, faults, memory.
fn read(classes: &mut ProcessClasses, tree: &mut Tree, second: u64) -> Reading {
    let (at, mut readings) = (tree.at(second), Vec::new());
    classes.read(&tree.host, &mut tree.buffer, at, &mut readings);
    readings.swap_remove(0)
}

#[test]
fn many_processes_are_read_at_every_other_tick() {
    let check = |children: u32, expected: [bool; 5]| {
        let mut tree = Tree::new(&[]);
        let lines: Vec<(Line, &str)> = (0..children).map(|n| (Line::new(11 + n, 5), CLIENT)).collect();
        put(&tree, &server([0; 3]), &lines, 100);
        let mut classes = ProcessClasses::new(SERVER);
        let is_read = [0, 1, 2, 3, 4].map(|second| {
            let (at, mut readings) = (tree.at(second), Vec::new());
            classes.read(&tree.host, &mut tree.buffer, at, &mut readings);
            let of_all = readings.first().filter(|reading| reading.at == at);
            of_all.is_some_and(|reading| reading.value("process.count").is_some())
        });
        assert_eq!(is_read, expected, "{children}");
    };
    check(64, [true; 5]);
    // The second one has the first rates.
    check(65, [true, true, false, true, false]);
}

const CHECKPOINTER: &str = "postgres: checkpointer \0\0";
const CLIENT: &str = "postgres: alice shop [local] idle";

#[test]
fn classes_have_their_sums() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    put(
        &tree,
        &server([0; 3]),
        &[
            (Line::new(11, 100), CHECKPOINTER),
            (Line::new(12, 10), CLIENT),
            (Line::new(13, 20), CLIENT),
        ],
        500,
    );
    let first = read(&mut classes, &mut tree, 0);
    has(
        &first,
        &["process.count[client backend] 2", "process.count[postmaster] 1"],
    );
    has_no(&first, "process.cpu_ratio");
    put(
        &tree,
        &server([0; 3]),
        &[
            (Line::new(11, 150), CHECKPOINTER),
            (Line::new(12, 110), CLIENT),
            (Line::new(13, 220), CLIENT),
        ],
        502,
    );
    let second = read(&mut classes, &mut tree, 2);
    let page = rustix::param::page_size();
    has(
        &second,
        &[
            "process.cpu_ratio[checkpointer] 0.25",
            "process.cpu_ratio[client backend] 1.5",
            "process.minor_faults_per_s[client backend] 1500",
            "process.major_faults_per_s[client backend] 15",
            "process.cpu_ratio[postmaster] 0",
            "process.cpu_ratio[ended] 0",
            &format!("process.rss_bytes[client backend] {}", 10 * page),
        ],
    );
    assert!(second.gaps.is_empty());
}

#[test]
fn one_that_ends_and_one_that_starts_make_no_wrong_rate() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    put(&tree, &server([1000, 0, 0]), &[(Line::new(12, 900), CLIENT)], 500);
    read(&mut classes, &mut tree, 0);
    // 12 has ended: it had used 40 ticks more. 14 has started since, 15 had been there and was
    // missed by the list.
    tree.remove("/proc/12");
    let young = Line {
        started: 50_100,
        ..Line::new(14, 60)
    };
    let missed = Line {
        started: 400,
        ..Line::new(15, 7000)
    };
    put(
        &tree,
        &server([1940, 9400, 94]),
        &[(young, CLIENT), (missed, CLIENT)],
        502,
    );
    let second = read(&mut classes, &mut tree, 2);
    has(
        &second,
        &[
            "process.cpu_ratio[client backend] 0.3",
            "process.cpu_ratio[ended] 0.2",
            "process.minor_faults_per_s[ended] 200",
            "process.count[client backend] 2",
        ],
    );
    // The next to end is not yet waited for when its parent is read; then it is.
    tree.remove("/proc/15");
    put(&tree, &server([1940, 9400, 94]), &[], 504);
    has(&read(&mut classes, &mut tree, 4), &["process.cpu_ratio[ended] 0"]);
    put(&tree, &server([8960, 79_400, 794]), &[], 506);
    let last = read(&mut classes, &mut tree, 6);
    has(
        &last,
        &[
            "process.cpu_ratio[ended] 0.1",
            "process.minor_faults_per_s[ended] 0",
        ],
    );
    // 14 lives: it was read although the list missed it.
    has(
        &last,
        &[
            "process.count[client backend] 1",
            "process.cpu_ratio[client backend] 0",
        ],
    );
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    put(&tree, &server([0; 3]), &[(Line::new(12, 900), CLIENT)], 500);
    read(&mut classes, &mut tree, 0);
    let again = Line {
        started: 50_050,
        ..Line::new(12, 10)
    };
    put(&tree, &server([900, 9000, 90]), &[(again, CHECKPOINTER)], 501);
    let second = read(&mut classes, &mut tree, 1);
    has(
        &second,
        &[
            "process.cpu_ratio[checkpointer] 0.1",
            "process.count[client backend] 0",
            "process.cpu_ratio[ended] 0",
        ],
    );
    // And one that belongs to another parent now is none of ours.
    let stranger = Line {
        parent: 1,
        ..Line::new(12, 99_999)
    };
    put(&tree, &server([900, 9000, 90]), &[(stranger, CLIENT)], 502);
    let third = read(&mut classes, &mut tree, 2);
    has(
        &third,
        &[
            "process.count[checkpointer] 0",
            "process.cpu_ratio[client backend] 0",
        ],
    );
}

#[test]
fn a_title_that_is_not_yet_set_is_read_again() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    put(
        &tree,
        &server([0; 3]),
        &[(Line::new(12, 1), "/usr/bin/postgres\0-D")],
        500,
    );
    has(&read(&mut classes, &mut tree, 0), &["process.count[starting] 1"]);
    put(&tree, &server([0; 3]), &[(Line::new(12, 11), CLIENT)], 501);
    has(
        &read(&mut classes, &mut tree, 1),
        &[
            "process.cpu_ratio[client backend] 0.1",
            "process.count[starting] 0",
        ],
    );
}

#[test]
fn a_server_that_is_gone_or_restarted_is_a_gap_reported_once() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    put(&tree, &server([0; 3]), &[(Line::new(12, 1), CLIENT)], 500);
    read(&mut classes, &mut tree, 0);
    let other = Line {
        started: 7777,
        ..server([0; 3])
    };
    put(&tree, &other, &[(Line::new(12, 1), CLIENT)], 501);
    let restarted = read(&mut classes, &mut tree, 1);
    assert!(restarted.values.is_empty());
    assert_eq!(gaps(&restarted), ["process 10"]);
    tree.remove("/proc/10");
    assert_eq!(gaps(&read(&mut classes, &mut tree, 2)), ["process 10"]);
    assert_eq!(gaps(&read(&mut classes, &mut tree, 3)), [""; 0]);
}

#[test]
fn without_a_list_of_children_all_processes_are_read() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    let stranger = Line {
        parent: 1,
        ..Line::new(13, 5)
    };
    put(
        &tree,
        &server([0; 3]),
        &[(Line::new(12, 1), CLIENT), (stranger, CLIENT)],
        500,
    );
    tree.remove("/proc/10/task");
    has(
        &read(&mut classes, &mut tree, 0),
        &["process.count[client backend] 1"],
    );
}

#[test]
fn bytes_of_disks_count_ended_processes_once() {
    let mut tree = Tree::new(&[]);
    let mut classes = ProcessClasses::new(SERVER);
    classes.disk.at_every_tick();
    let io = |read: u64, written: u64| format!("rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n");
    let mut tick = |tree: &mut Tree, children: &[u32], second: u64, all: &[(u32, u64, u64)]| {
        let lines: Vec<_> = children.iter().map(|pid| (Line::new(*pid, 1), CLIENT)).collect();
        put(tree, &server([0; 3]), &lines, 500 + second);
        for (pid, read, written) in all {
            tree.put(&[(&format!("/proc/{pid}/io"), &io(*read, *written))]);
        }
        let (at, mut readings) = (tree.at(second), Vec::new());
        classes.read(&tree.host, &mut tree.buffer, at, &mut readings);
        readings.swap_remove(1)
    };
    let first = tick(
        &mut tree,
        &[12, 13],
        0,
        &[(SERVER, 1000, 0), (12, 500, 0), (13, 0, 70)],
    );
    assert!(first.values.is_empty() && first.gaps.is_empty());
    let second = tick(&mut tree, &[12, 13], 2, &[(12, 700, 0), (13, 0, 90)]);
    has(
        &second,
        &[
            "process.read_bytes_per_s[client backend] 100",
            "process.write_bytes_per_s[client backend] 10",
            "process.read_bytes_per_s[ended] 0",
        ],
    );
    // 12 has ended after 60 more.
    tree.remove("/proc/12");
    let third = tick(&mut tree, &[13], 4, &[(SERVER, 1760, 0)]);
    has(
        &third,
        &[
            "process.read_bytes_per_s[ended] 30",
            "process.read_bytes_per_s[client backend] 0",
        ],
    );
    tree.remove("/proc/10/io");
    assert_eq!(gaps(&tick(&mut tree, &[13], 6, &[])), ["/proc/10/io"]);
}

#[test]
fn shares_of_memory_are_sums_or_means_by_the_budget() {
    let mut tree = Tree::new(&[]);
    let lines: Vec<_> = (12..15).map(|pid| (Line::new(pid, 1), CLIENT)).collect();
    put(&tree, &server([0; 3]), &lines, 500);
    for (pid, kib) in [(12, 10), (13, 20), (14, 30)] {
        tree.put(&[(
            &format!("/proc/{pid}/smaps_rollup"),
            &format!("0-1 ---p\nRss: 99 kB\nPss: {kib} kB\nAnonymous: 9 kB\n"),
        )]);
    }
    let mut shares = |budget: Duration| {
        let mut classes = ProcessClasses::new(SERVER);
        classes.shares.with_budget(budget);
        let (at, mut readings) = (tree.at(0), Vec::new());
        classes.read(&tree.host, &mut tree.buffer, at, &mut readings);
        readings.pop().unwrap()
    };
    let all = shares(Duration::from_secs(60));
    has(
        &all,
        &[
            "process.pss_bytes[client backend] 61440",
            "process.pss_mean_bytes[client backend] 20480",
            "process.resident_mean_bytes[client backend] 101376",
            "process.shared_mean_bytes[client backend] 92160",
            "process.pss_read[client backend] 3",
        ],
    );
    let none = shares(Duration::ZERO);
    assert!(none.values.is_empty());
    assert_eq!(gaps(&none), ["process.pss_bytes client backend"]);
}

#[test]
fn an_uptime_is_ticks() {
    assert_eq!(uptime_ticks("123.45 99.00\n"), Some(12_345));
    for nonsense in [
        "",
        "1",
        "1.",
        "1.2",
        "x.00",
        "18446744073709551615.00",
        "1.\u{e9}\u{e9}",
    ] {
        assert_eq!(uptime_ticks(nonsense), None, "{nonsense}");
    }
}

proptest! {
    #[test]
    fn no_content_makes_it_panic(stat in "([0-9]{0,3} \\(p\\) S 10 [0-9 ]{0,120}|.{0,60})", list in "[0-9 a]{0,20}") {
        let files = [
            ("/proc/10/task/10/children", list.as_str()),
            ("/proc/10/stat", "10 (p) S 1 1 1 0 -1 0 1 1 1 1 1 1 1 1 20 0 1 0 1 1 1 1"),
            ("/proc/1/stat", &stat),
            ("/proc/2/stat", &stat),
            ("/proc/1/io", &stat),
            ("/proc/1/smaps_rollup", &stat),
        ];
        let mut tree = Tree::new(&files);
        let mut classes = ProcessClasses::new(SERVER);
        for second in 0..2 {
            read(&mut classes, &mut tree, second);
        }
    }
}
