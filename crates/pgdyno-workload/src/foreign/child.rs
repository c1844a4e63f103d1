//! A process of another program: started in a session of its own, listened to, ended with all that
//! it has started.

use super::command::CommandError;
use super::output::ForeignStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, read};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    set_parent_process_death_signal, setsid, waitid,
};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often it is checked whether the program is to end.
pub(super) const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// What is read at a time: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// What is still read of a program that has ended, in chunks: a process that got away may write
/// without an end.
const DRAIN_CHUNKS: u32 = 64;
/// How a program is asked to end, one after the other.
const SIGNALS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::KILL];

/// Why there is no result of another program.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// The numbers of the plan cannot be.
    #[error("{0}")]
    Plan(String),
    /// The command cannot be split into words.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The program is missing, or may not be run.
    #[error("{program} cannot be started: {source}; is it installed, and in the PATH?")]
    Start {
        /// First word of the command.
        program: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The program failed, and printed no figure.
    #[error("{program} ended with {exit}{}", said(last_lines))]
    Failed {
        /// First word of the command.
        program: String,
        /// Exit code or signal.
        exit: Exit,
        /// Last lines of its output, without the password.
        last_lines: Vec<String>,
    },
    /// It said that it had failed.
    #[error("{program} has failed, and was ended{}", said(last_lines))]
    Broken {
        /// First word of the command.
        program: String,
        /// Last lines of its output, without the password.
        last_lines: Vec<String>,
    },
    /// It ended well, and no line was understood.
    #[error(
        "{program} ended, and its output has no {what} that the format {format} reads{}; does the command print it?",
        said(last_lines)
    )]
    NothingRead {
        /// First word of the command.
        program: String,
        /// Figure that is missing: "throughput", or the name of one.
        what: String,
        /// Name of the format or of the figure.
        format: String,
        /// Last lines of its output, without the password.
        last_lines: Vec<String>,
    },
    /// It went on after its time, and was ended.
    #[error("{program} did not end within {} s, and was ended{}", limit.as_secs_f64(), said(last_lines))]
    TooLong {
        /// First word of the command.
        program: String,
        /// Time that it may take.
        limit: Duration,
        /// Last lines of its output, without the password.
        last_lines: Vec<String>,
    },
    /// It did not answer.
    #[error("{program} did not answer within {} s{}", limit.as_secs_f64(), said(last_lines))]
    Silent {
        /// First word of the command.
        program: String,
        /// Time that an answer may take.
        limit: Duration,
        /// Last lines of its standard error.
        last_lines: Vec<String>,
    },
    /// It said something before it was asked.
    #[error("{program} has said a line that nobody asked for: {line}")]
    Unasked {
        /// First word of the command.
        program: String,
        /// The line, as far as it may be shown.
        line: String,
    },
    /// The system refused to report its state.
    #[error("cannot read the state of {program}: {source}")]
    System {
        /// First word of the command.
        program: String,
        /// Error of the system call.
        source: io::Error,
    },
}

/// The last of them go into a message.
const LINES_IN_MESSAGE: usize = 5;

fn said(lines: &[String]) -> String {
    match lines {
        [] => String::from(" and said nothing"),
        lines => {
            let last = &lines[lines.len().saturating_sub(LINES_IN_MESSAGE)..];
            format!("; it said: {}", last.join(" | "))
        }
    }
}

/// Exit code or signal of a process that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Ended by itself, with this exit code.
    Code(i32),
    /// Ended by the signal of that number.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What is to be run.
pub(super) struct Errand {
    pub(super) words: Vec<String>,
    /// Set, or taken out of what is inherited.
    pub(super) variables: Vec<(OsString, Option<OsString>)>,
    pub(super) directory: Option<PathBuf>,
    /// After this time it is ended.
    pub(super) limit: Duration,
    /// What it has for its end after each signal.
    pub(super) grace: Duration,
}

/// A process that was.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) wall_s: f64,
    /// CPU time of it and of all its descendants that were waited for.
    pub(super) cpu_us: u64,
    /// Whether it was asked to end because of `stop`,
    pub(super) stopped: bool,
    /// or because of the limit.
    pub(super) too_long: bool,
    /// Whether it was, because of what it said.
    pub(super) refused: bool,
}

impl Errand {
    pub(super) fn program(&self) -> String {
        self.words.first().cloned().unwrap_or_default()
    }

    pub(super) fn command(&self) -> Command {
        let (program, arguments) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove::<&OsStr>(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        // In a session of its own it has no terminal to ask for a password at, a Ctrl-C is pgdyno's
        // alone, and all that it starts can be ended. It does not outlive the thread that waits for
        // it. SAFETY: between fork and exec there are three system calls; nothing is allocated, no
        // lock is taken. A shell that starts pgdyno in the background has it ignore SIGINT, which
        // the program would inherit and could not be asked to end by.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                setsid()?;
                set_parent_process_death_signal(Some(Signal::TERM))?;
                Ok(())
            });
        }
        command
    }
}

/// Runs it to its end, or to that which `stop` or its limit brings; `on_bytes` gets what it says,
/// and the seconds since its start, and returns whether it may go on.
pub(super) fn follow(
    errand: &Errand,
    stop: &AtomicBool,
    on_bytes: &mut dyn FnMut(ForeignStream, &[u8], f64) -> bool,
) -> Result<Ended, ForeignError> {
    let system = |source: io::Error| ForeignError::System {
        program: errand.program(),
        source,
    };
    let begun = Instant::now();
    let mut child = errand.command().spawn().map_err(|source| ForeignError::Start {
        program: errand.program(),
        source,
    })?;
    let process = Process::of(&child);
    // A kernel before 5.3 has none: then the end is seen at the next tick.
    let end = pidfd_open(process.pid, PidfdFlags::empty()).ok();
    let mut pipes = Pipes::new(
        child.stdout.take().map(OwnedFd::from),
        child.stderr.take().map(OwnedFd::from),
    )
    .map_err(|error| system(error.into()))?;
    let mut urge = Urge {
        stop,
        limit: errand.limit,
        grace: errand.grace,
        begun,
        sent: None,
        too_long: false,
        refused: false,
    };
    loop {
        urge.look(&process);
        pipes.wait(end.as_ref()).map_err(|error| system(error.into()))?;
        pipes.read(1, &mut |stream, bytes| {
            urge.refused |= !on_bytes(stream, bytes, begun.elapsed().as_secs_f64());
        });
        if process.has_ended().map_err(|error| system(error.into()))? {
            break;
        }
    }
    let wall_s = begun.elapsed().as_secs_f64();
    // What it has left behind is ended too, while its number is still taken.
    process.signal_group(Signal::KILL);
    pipes.read(DRAIN_CHUNKS, &mut |stream, bytes| {
        urge.refused |= !on_bytes(stream, bytes, wall_s);
    });
    let (exit, cpu_us) = process.reap().map_err(system)?;
    Ok(Ended {
        exit,
        wall_s,
        cpu_us,
        stopped: urge.sent.is_some() && !urge.too_long && !urge.refused,
        too_long: urge.too_long,
        refused: urge.refused,
    })
}

/// A process that is ours to wait for; it is ended where nobody has.
pub(super) struct Process {
    pid: Pid,
    is_reaped: bool,
}

impl Process {
    pub(super) fn of(child: &Child) -> Process {
        Process {
            pid: Pid::from_child(child),
            is_reaped: false,
        }
    }

    /// Waits so long for its end, and ends it then.
    pub(super) fn end(&mut self, patience: Duration) -> io::Result<Exit> {
        let begun = Instant::now();
        while !self.has_ended()? && begun.elapsed() < patience {
            poll(&mut [], Some(&TICK))?;
        }
        self.signal_group(Signal::KILL);
        let (exit, _) = self.wait()?;
        self.is_reaped = true;
        Ok(exit)
    }

    /// Its session is a group of its number.
    fn signal_group(&self, signal: Signal) {
        // No process left to signal is what was wanted.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Whether it has ended; its number stays taken.
    fn has_ended(&self) -> Result<bool, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.pid), options) {
            Err(Errno::INTR) => Ok(false),
            state => Ok(state?.is_some()),
        }
    }

    /// Waits for the end of the process, and gives its CPU time.
    fn reap(mut self) -> io::Result<(Exit, u64)> {
        let reaped = self.wait();
        self.is_reaped = true;
        reaped
    }

    fn wait(&self) -> io::Result<(Exit, u64)> {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        loop {
            // SAFETY: both pointers are to values of ours that live through the call; a rusage of
            // zeros is one.
            let result = unsafe {
                libc::wait4(
                    self.pid.as_raw_nonzero().get(),
                    &raw mut status,
                    0,
                    usage.as_mut_ptr(),
                )
            };
            match result {
                -1 => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
                _ => break,
            }
        }
        // SAFETY: it was zeroed, and the call has written it.
        let usage = unsafe { usage.assume_init() };
        let status = ExitStatus::from_raw(status);
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        };
        Ok((exit, us(usage.ru_utime) + us(usage.ru_stime)))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal_group(Signal::KILL);
            let _ = self.wait();
        }
    }
}

fn us(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

/// Asks a process to end when it must, and then more firmly.
struct Urge<'a> {
    stop: &'a AtomicBool,
    limit: Duration,
    grace: Duration,
    begun: Instant,
    /// Which signal was sent last, and when.
    sent: Option<(usize, Instant)>,
    too_long: bool,
    refused: bool,
}

impl Urge<'_> {
    fn look(&mut self, process: &Process) {
        let next = match self.sent {
            None if self.refused || self.stop.load(Ordering::Relaxed) => 0,
            None if self.begun.elapsed() >= self.limit => {
                self.too_long = true;
                0
            }
            Some((step, at)) if at.elapsed() >= self.grace => step + 1,
            _ => return,
        };
        if let Some(&signal) = SIGNALS.get(next) {
            process.signal_group(signal);
            self.sent = Some((next, Instant::now()));
        }
    }
}

/// The streams of a process that are still open.
pub(super) struct Pipes {
    open: Vec<(ForeignStream, OwnedFd)>,
    buffer: Vec<u8>,
}

impl Pipes {
    pub(super) fn new(out: Option<OwnedFd>, err: Option<OwnedFd>) -> Result<Pipes, Errno> {
        let out = out.map(|pipe| (ForeignStream::Out, pipe));
        let err = err.map(|pipe| (ForeignStream::Err, pipe));
        let open: Vec<_> = out.into_iter().chain(err).collect();
        for (_, pipe) in &open {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok(Pipes {
            open,
            buffer: vec![0; READ_BYTES],
        })
    }

    pub(super) fn has(&self, stream: ForeignStream) -> bool {
        self.open.iter().any(|(own, _)| *own == stream)
    }

    /// Until something is said or `end` is there, a tick at most.
    pub(super) fn wait(&self, end: Option<&OwnedFd>) -> Result<(), Errno> {
        let pipes = self.open.iter().map(|(_, pipe)| pipe);
        let mut files: Vec<PollFd<'_>> = pipes
            .chain(end)
            .map(|file| PollFd::new(file, PollFlags::IN))
            .collect();
        match poll(&mut files, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads what is there, at most so many chunks of each; one that has ended is closed.
    pub(super) fn read(&mut self, chunks: u32, on_bytes: &mut dyn FnMut(ForeignStream, &[u8])) {
        let buffer = &mut self.buffer;
        self.open.retain(|(stream, pipe)| {
            for _ in 0..chunks {
                match read(pipe, buffer.as_mut_slice()) {
                    Ok(0) => return false,
                    Ok(length) => on_bytes(*stream, &buffer[..length]),
                    Err(Errno::AGAIN | Errno::INTR) => return true,
                    Err(_) => return false,
                }
            }
            true
        });
    }
}
