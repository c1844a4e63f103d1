//! Servers that flood whoever asks them. A binary of its own: the peak memory that the kernel counts for a process begins with
//! that of the process that started it, which among all the other tests is more than what is allowed here.

#[path = "../../pgdyno-server/src/wire/hostile.rs"]
mod hostile;

use hostile::{MODES, Mode, serve};
use pgdyno_testing::Home;
use std::io::Read;
use std::mem::MaybeUninit;
use std::process::{Command, Stdio};

/// Peak memory of a flood, as the kernel counts it.
const PEAK_KB: i64 = 256 << 10;

/// Runs a command that must end by itself: its exit code, what it printed on stderr, and its peak memory in kB.
#[expect(
    clippy::zombie_processes,
    reason = "wait4 waits for it, and gives its peak memory"
)]
fn ended(mut command: Command) -> (i32, String, i64) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pgdyno runs");
    let mut words = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut words).expect("text");
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    let pid = i32::try_from(child.id()).expect("a process id");
    // SAFETY: both places are ours and live long enough; the child is waited for nowhere else.
    let waited = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
    assert_eq!(waited, pid);
    // SAFETY: zeroes are a valid value, and the call has filled it.
    let peak_kb = unsafe { usage.assume_init() }.ru_maxrss;
    (libc::WEXITSTATUS(status), words, peak_kb)
}

#[test]
fn no_hostile_server_keeps_a_command_or_takes_its_memory() {
    let home = Home::new();
    let commands: [&[&str]; 5] = [
        &["facts"],
        &["check", "--seconds", "0.1"],
        &["advise"],
        &["bench"],
        &["watch", "--once"],
    ];
    std::thread::scope(|scope| {
        for (number, mode) in MODES.into_iter().enumerate() {
            let (home, words) = (&home, commands[number % commands.len()]);
            scope.spawn(move || {
                // The first questions are answered, so that the flood comes behind the session's opening.
                for answers in [0, 2] {
                    let port = serve(mode, answers);
                    let target = format!(
                        "host=127.0.0.1 port={port} user=x dbname=x sslmode=disable connect_timeout=1"
                    );
                    if answers > 0 && (words[0] == "check" || matches!(mode, Mode::Silent | Mode::Trickle)) {
                        continue;
                    }
                    let mut arguments = words.to_vec();
                    arguments.insert(1, &target);
                    let (code, words, peak_kb) = ended(home.command(&arguments));
                    let case = format!("{mode:?} {arguments:?}: {code}, {peak_kb} kB, {words}");
                    // Behind the first answers a check, say, reports what it could not measure.
                    assert!(answers > 0 || code > 0 && words.contains("127.0.0.1"), "{case}");
                    assert!(peak_kb < PEAK_KB, "{case}");
                    assert!(words.len() < 4000, "{case}");
                }
            });
        }
    });
}
