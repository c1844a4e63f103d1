//! Running PostgreSQL's programs: as the right user, inside the sandbox's limits.

use super::{Sandbox, SandboxError, State};
use crate::{log, programs};
use pgdyno_host::{Directory, HostAccess, LocalHost};
use pgdyno_server::pause;
use pgdyno_server::{Server, User};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use rustix::process::{Gid, Uid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Recovery after a crash and the checkpoint of a stop can take minutes on a limited disk.
pub(crate) const WAIT_S: u32 = 600;

/// A socket's path must fit sockaddr_un: 108 bytes with the terminating zero.
const SOCKET_PATH_MAX: usize = 107;

/// How long a socket that is closed here may be open in a forked process.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Where programs find others, the shell above all.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why there can be no socket of this path; `None` where there can.
pub(crate) fn socket_path_objection(path: &Path) -> Option<String> {
    (path.as_os_str().len() > SOCKET_PATH_MAX)
        .then(|| format!("a socket's path must be at most {SOCKET_PATH_MAX} bytes; use a shorter directory"))
}

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

/// A program of PostgreSQL or of the system, with nothing of this process's environment, run as
/// `user` (or as this process's) after having gone through `entrances`.
pub(crate) fn command(program: &Path, user: Option<&User>, entrances: &[Entrance]) -> io::Result<Command> {
    let groups: Vec<u32> = user.iter().map(|user| user.gid).collect();
    command_with_groups(program, user, &groups, entrances)
}

/// The same with these groups of the user's.
pub(crate) fn command_with_groups(
    program: &Path,
    user: Option<&User>,
    groups: &[u32],
    entrances: &[Entrance],
) -> io::Result<Command> {
    let mut command = Command::new(program);
    // Not this process's directory, which the server's user may not enter, nor its group: a Ctrl-C
    // at the terminal is for pgdyno, which then stops the server in order.
    command.current_dir("/").process_group(0).stdin(Stdio::null());
    // Nor its environment: the server's user, and so every superuser of the server, reads it in
    // /proc, and passwords and keys of root's may be in it.
    command.env_clear().env("PATH", PATH).env("LC_ALL", "C");
    let entrances: Vec<Entrance> = entrances
        .iter()
        .map(Entrance::try_clone)
        .collect::<io::Result<_>>()?;
    let ids = user.map(|user| (Uid::from_raw(user.uid), Gid::from_raw(user.gid)));
    let groups: Vec<Gid> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
    if entrances.is_empty() && ids.is_none() {
        return Ok(command);
    }
    let enter = move || {
        for entrance in &entrances {
            entrance.enter()?;
        }
        if let Some((uid, gid)) = ids {
            rustix::thread::set_thread_groups(&groups)?;
            rustix::thread::set_thread_res_gid(gid, gid, gid)?;
            rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; the closure makes
    // write(2), setns(2), setgroups(2), setresgid(2) and setresuid(2) as raw system calls and
    // allocates nothing. Command::uid cannot be used, for it would give up root before the groups
    // and the namespace are entered.
    unsafe { command.pre_exec(enter) };
    Ok(command)
}

/// Runs a program to its end; a failure carries its last lines.
pub(crate) fn run(program: &'static str, mut command: Command) -> Result<Output, SandboxError> {
    succeeded(program, command.output())
}

/// The same of a program that is only asked something, and may take no longer than an answer does.
pub(crate) fn ask(program: &'static str, command: Command) -> Result<Output, SandboxError> {
    succeeded(program, programs::answer(command))
}

fn succeeded(program: &'static str, output: io::Result<Output>) -> Result<Output, SandboxError> {
    let failed = |reason: String| SandboxError::Program { program, reason };
    let output = output.map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(output);
    }
    let texts =
        [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    Err(failed(format!(
        "{} ({})",
        last_lines(&texts.join("\n")),
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
    let before = Directory::above(&log)
        .and_then(|(above, name)| above.size(name))
        .unwrap_or(0);
    let log_text = log.to_string_lossy().into_owned();
    let options = options.join(" ");
    let mut arguments = vec!["--log", &log_text];
    if !options.is_empty() {
        arguments.extend(["--options", &options]);
    }
    arguments.push("start");
    let opened = || Directory::above(&log).and_then(|(above, name)| above.file(name));
    let why = || log::reason(&opened().ok()?, before);
    match pg_ctl(sandbox, entrances, &arguments) {
        Ok(_) => wait_until_ready(sandbox).map_err(|error| match error {
            SandboxError::Program { program, reason } => SandboxError::Program {
                program,
                reason: match why() {
                    Some(why) => format!("{reason}; its log ends with: {why}"),
                    None => reason,
                },
            },
            other => other,
        }),
        Err(error) => Err(match why() {
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
    // Without it the server is as good.
    let _ = Directory::above(log).and_then(|(above, name)| above.set_mode(name, 0o600));
}

pub(crate) fn stop(sandbox: &Sandbox, mode: &str) -> Result<(), SandboxError> {
    match pg_ctl(sandbox, &[], &["--mode", mode, "stop"]) {
        // It may have gone by itself in between.
        Err(_) if !sandbox.has_postmaster() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Waits until the server answers a connection over its socket, and sees whether its network leads
/// to it.
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
    let output = ask("postgres -C", command)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// An error where somebody listens at a port of 127.0.0.1, and goes on for a moment: a socket that
/// was closed here is still open in a process that was forked meanwhile, until that executes its
/// program.
pub(crate) fn check_port(port: u16) -> Result<(), SandboxError> {
    let deadline = Instant::now() + CLOSED_WITHIN;
    while !is_free(port) {
        if Instant::now() >= deadline {
            return Err(SandboxError::PortTaken(port));
        }
        pause(Duration::from_millis(20));
    }
    Ok(())
}

/// A port that nobody uses, and what keeps it so. Each time has its port, the same one again after
/// twenty minutes: that of a server which is down for a moment is not drawn by another one
/// meanwhile. Those that the kernel gives to connections come last: one of them may be taken by the
/// time that it is let go.
pub(crate) fn draw_port() -> io::Result<(u16, TcpListener)> {
    const LOWEST: u16 = 10_000;
    const TRIES: u16 = 100;
    const TICK_MS: u128 = 50;
    let first_given = LocalHost::new()
        .read("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768_u16);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let tick = since.unwrap_or_default().as_millis() / TICK_MS;
    let ports = first_given.saturating_sub(LOWEST);
    for step in 0..TRIES.min(ports) {
        let place = (tick + u128::from(step)) % u128::from(ports);
        let port = LOWEST + u16::try_from(place).unwrap_or_default();
        if let Ok(held) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok((port, held));
        }
    }
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = held.local_addr()?.port();
    Ok((port, held))
}

/// Whether nobody listens at a port of 127.0.0.1. This does not listen itself, so it is in nobody's
/// way.
pub(crate) fn is_free(port: u16) -> bool {
    let bound = || {
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
    };
    bound() != Err(Errno::ADDRINUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_is_taken_by_who_listens_and_not_by_who_only_looks() {
        let (port, held) = draw_port().unwrap();
        assert!(matches!(check_port(port), Err(SandboxError::PortTaken(taken)) if taken == port));
        drop(held);
        check_port(port).unwrap();
        assert!(is_free(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    /// Cargo gives a test dozens of variables.
    #[test]
    fn program_gets_nothing_of_this_process_environment() {
        let other = User {
            uid: 65_534,
            gid: 65_534,
            name: "nobody".to_owned(),
        };
        for user in [None, Some(&other)] {
            let output = command(Path::new("/usr/bin/env"), user, &[])
                .unwrap()
                .output()
                .unwrap();
            let variables = String::from_utf8(output.stdout).unwrap();
            let mut names: Vec<&str> = variables
                .lines()
                .filter_map(|line| line.split('=').next())
                .collect();
            names.sort_unstable();
            assert_eq!(names, ["LC_ALL", "PATH"], "{variables}");
        }
    }
}
