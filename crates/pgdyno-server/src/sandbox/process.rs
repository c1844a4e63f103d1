//! Running PostgreSQL's programs: as the right user, inside the sandbox's limits.

use super::{Sandbox, SandboxError, State};
use crate::counters::pause;
use crate::{Server, User};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Uid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Recovery after a crash and the checkpoint of a stop can take minutes on a limited disk.
const WAIT_S: u32 = 600;

/// What a program enters before it starts.
#[derive(Debug)]
pub(crate) enum Entrance {
    /// A control group, by the file that takes its processes.
    Group(File),
    /// A network namespace. Only that: `ip netns exec` would give it mounts of its own, too.
    Network(File),
}

impl Entrance {
    fn try_clone(&self) -> io::Result<Entrance> {
        Ok(match self {
            Entrance::Group(file) => Entrance::Group(file.try_clone()?),
            Entrance::Network(file) => Entrance::Network(file.try_clone()?),
        })
    }

    /// Between fork and exec: a raw system call.
    fn enter(&self) -> io::Result<()> {
        match self {
            Entrance::Group(file) => rustix::io::write(file, b"0").map(|_| ())?,
            Entrance::Network(file) => {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            }
        }
        Ok(())
    }
}

/// A program of PostgreSQL, run as `user` (or as this process's) after having gone through `entrances`.
pub(crate) fn command(program: &Path, user: Option<&User>, entrances: &[Entrance]) -> io::Result<Command> {
    let mut command = Command::new(program);
    // Not this process's directory, which the server's user may not enter, nor its group: a Ctrl-C at the terminal is
    // for pgdyno, which then stops the server in order.
    command.current_dir("/").process_group(0).stdin(Stdio::null());
    for name in [
        "PGDATA",
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGPASSWORD",
        "PGDATABASE",
        "PGOPTIONS",
    ] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C");
    let entrances: Vec<Entrance> = entrances
        .iter()
        .map(Entrance::try_clone)
        .collect::<io::Result<_>>()?;
    let ids = user.map(|user| (Uid::from_raw(user.uid), Gid::from_raw(user.gid)));
    if entrances.is_empty() && ids.is_none() {
        return Ok(command);
    }
    let enter = move || {
        for entrance in &entrances {
            entrance.enter()?;
        }
        if let Some((uid, gid)) = ids {
            rustix::thread::set_thread_groups(&[gid])?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; the closure makes write(2),
    // setns(2), setgroups(2), setresgid(2) and setresuid(2) as raw system calls and allocates nothing. Command::uid cannot
    // be used, for it would give up root before the groups and the namespace are entered.
    unsafe { command.pre_exec(enter) };
    Ok(command)
}

/// Runs a program to its end; a failure carries its last words.
pub(crate) fn run(program: &'static str, mut command: Command) -> Result<Output, SandboxError> {
    let failed = |reason: String| SandboxError::Program { program, reason };
    let output = command.output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(output);
    }
    let words =
        [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    Err(failed(format!(
        "{} ({})",
        last_lines(&words.join("\n")),
        output.status
    )))
}

fn last_lines(text: &str) -> String {
    const LINES: usize = 4;
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

fn pg_ctl(sandbox: &Sandbox, entrances: &[Entrance], arguments: &[&str]) -> Result<Output, SandboxError> {
    let record = sandbox.record();
    let mut command = command(&record.bin.join("pg_ctl"), record.user.as_ref(), entrances)
        .map_err(SandboxError::io(&record.bin, "run"))?;
    command
        .arg("--pgdata")
        .arg(&record.data)
        .args(["--wait", "--timeout", &WAIT_S.to_string()])
        .args(arguments);
    run("pg_ctl", command)
}

/// Starts it; `options` are for the server, beside its files.
pub(crate) fn start(sandbox: &Sandbox, entrances: &[Entrance], options: &[&str]) -> Result<(), SandboxError> {
    let log = sandbox.log_file();
    close_to_others(&log);
    let before = fs::metadata(&log).map_or(0, |meta| meta.len());
    let log_text = log.to_string_lossy().into_owned();
    let options = options.join(" ");
    let mut arguments = vec!["--log", &log_text];
    if !options.is_empty() {
        arguments.extend(["--options", &options]);
    }
    arguments.push("start");
    match pg_ctl(sandbox, entrances, &arguments) {
        Ok(_) => wait_until_ready(sandbox),
        Err(error) => Err(match last_fatal(&log, before) {
            Some(reason) => SandboxError::Program {
                program: "postgres",
                reason,
            },
            None => error,
        }),
    }
}

/// A log holds statements; earlier versions made it readable to everybody.
fn close_to_others(log: &Path) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(log, flags, Mode::empty()) {
        // Without it the server is as good.
        let _ = rustix::fs::fchmod(file, Mode::RUSR | Mode::WUSR);
    }
}

pub(crate) fn stop(sandbox: &Sandbox, mode: &str) -> Result<(), SandboxError> {
    match pg_ctl(sandbox, &[], &["--mode", mode, "stop"]) {
        // It may have gone by itself in between.
        Err(_) if !sandbox.has_postmaster() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// What the server said when it refused to start: the last FATAL or PANIC with its detail and hint.
fn last_fatal(log: &Path, from: u64) -> Option<String> {
    const MOST: u64 = 64 * 1024;
    let mut file = File::open(log).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .rposition(|line| line.contains("FATAL:") || line.contains("PANIC:"))?;
    let words = lines[at..]
        .iter()
        .enumerate()
        .filter(|(i, line)| *i == 0 || line.contains("DETAIL:") || line.contains("HINT:"))
        .map(|(_, line)| {
            ["FATAL:", "PANIC:", "DETAIL:", "HINT:"]
                .iter()
                .fold(*line, |line, mark| {
                    line.split_once(mark).map_or(line, |(_, rest)| rest.trim())
                })
        });
    Some(words.collect::<Vec<_>>().join("; "))
}

/// Waits until the server answers a connection over its socket, and sees whether its network leads to it.
pub(crate) fn wait_until_ready(sandbox: &Sandbox) -> Result<(), SandboxError> {
    let deadline = Instant::now() + Duration::from_secs(u64::from(WAIT_S));
    loop {
        let error = match Server::connect(&sandbox.by_socket()) {
            Ok(_) => return sandbox.check_network(),
            Err(error) => error,
        };
        let running = matches!(sandbox.state(), State::Running(_));
        if !running || Instant::now() >= deadline {
            return Err(SandboxError::Program {
                program: "postgres",
                reason: error.to_string(),
            });
        }
        pause(Duration::from_millis(50));
    }
}

/// `postgres -C NAME` with the sandbox's files; the server must be stopped.
pub(crate) fn computed_parameter(sandbox: &Sandbox, name: &str) -> Result<String, SandboxError> {
    let record = sandbox.record();
    let mut command = command(&record.bin.join("postgres"), record.user.as_ref(), &[])
        .map_err(SandboxError::io(&record.bin, "run"))?;
    command.arg("-D").arg(&record.data).args(["-C", name]);
    let output = run("postgres -C", command)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub(crate) fn check_port(port: u16) -> Result<(), SandboxError> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => Err(SandboxError::PortTaken(port)),
        _ => Ok(()),
    }
}

pub(crate) fn free_port() -> io::Result<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()
        .map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_failed_start_is_the_last_fatal_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let old = "x FATAL:  an old one\n";
        let new = "t [1] LOG:  starting\nt [1] FATAL:  could not map memory\nt [1] DETAIL:  12 bytes\n\
                   t [1] HINT:  more huge pages\nt [1] LOG:  shut down\n";
        fs::write(&log, format!("{old}{new}")).unwrap();
        let found = last_fatal(&log, old.len() as u64).unwrap();
        assert_eq!(found, "could not map memory; 12 bytes; more huge pages");
        assert_eq!(last_fatal(&log, (old.len() + new.len()) as u64), None);
    }
}
