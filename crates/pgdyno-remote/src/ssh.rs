//! The user's own ssh as a process: what is sent to a host, and what comes from it.

use crate::boot::{self, Found};
use crate::error::RemoteError;
use crate::frame::{self, Frame, FrameError};
use crate::message::FromAgent;
use crate::ssh_host::SshHost;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a request to stop is looked for.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Frames that are read ahead; the agent waits when there are more.
const FRAMES_MAX: usize = 2;
/// Time in which ssh ends when the connection is closed.
const ENDING: Duration = Duration::from_secs(5);
/// What is kept of the last lines of ssh and of the host's shell, for an error's text.
const LINES_MAX: usize = 5;
const LINE_BYTES_MAX: u64 = 500;
/// The longest that a removal may take; a user may be typing a password.
const REMOVED_WITHIN: Duration = Duration::from_secs(300);
/// What is read of each stream of a removal.
const PRINTED_BY_REMOVAL_MAX: u64 = 16 << 10;
/// Time that ssh has after a signal: it sets the terminal right, and ends what it has started on
/// the way.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// The keyboard's Ctrl-C is for this process, which then ends the command there in order; ssh would
/// end at once.
const START_SSH: &str = "command -v \"$1\" >/dev/null || { echo \"there is no program $1\" >&2; exit 255; }; trap '' INT; exec \"$@\"";
/// ssh's own exit code.
pub(crate) const OF_SSH: i32 = 255;

/// The user's way to a host.
#[derive(Debug, Clone, Copy)]
pub struct SshWay<'a> {
    /// The program and its first arguments: `ssh`.
    pub program: &'a [String],
    /// Where to.
    pub host: &'a SshHost,
    /// Whether the agent has root's rights, by `sudo` without a password.
    pub sudo: bool,
    /// Variables of this process that ssh does not get: secrets that go with a request.
    pub hidden: &'a [&'a str],
    /// How long the agent has for its greeting, the time that its program takes to be sent not
    /// counted; `None` where a person may be typing a password.
    pub greets_within: Option<Duration>,
}

impl SshWay<'_> {
    /// Starts ssh with a command for the host's shell.
    fn start(&self, command: &str) -> Result<Child, RemoteError> {
        let mut shell = Command::new("sh");
        for name in self.hidden {
            shell.env_remove(name);
        }
        let spawned = shell
            .args(["-c", START_SSH, "sh"])
            .args(self.program)
            // A shared connection is used and never made: it would end with this one, and what
            // others have in it too.
            .args([
                "-T",
                "-o",
                "ControlMaster=no",
                "--",
                self.host.destination(),
                command,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        spawned.map_err(|source| RemoteError::NoSsh {
            program: self.program.first().cloned().unwrap_or_default(),
            source,
        })
    }
}

/// From the thread that reads.
pub(crate) enum Event {
    Found(Found),
    Frame(Frame<FromAgent>),
    /// A line of ssh or of the host's shell.
    Said(String),
    /// No more lines will come.
    SaidAll,
    /// No more frames will come; why, where that is an error.
    End(Option<String>),
}

/// To the thread that writes, which closes the connection when this is dropped: no end of it waits
/// for the other.
#[derive(Clone)]
pub(crate) struct Input {
    to: Sender<Arc<[u8]>>,
    /// Bytes that are not written yet.
    queued: Arc<AtomicUsize>,
}

impl Input {
    /// Whether there is still somebody who writes.
    pub(crate) fn send(&self, bytes: Arc<[u8]>) -> bool {
        self.queued.fetch_add(bytes.len(), Ordering::Relaxed);
        self.to.send(bytes).is_ok()
    }
}

/// A running ssh. It is ended with its value.
pub(crate) struct Ssh {
    child: Child,
    pub(crate) input: Option<Input>,
    pub(crate) events: Receiver<Event>,
    /// When the host has last sent something.
    heard: Arc<Mutex<Instant>>,
    /// The last lines of ssh and of the host's shell.
    said: VecDeque<String>,
    pub(crate) has_said_all: bool,
}

impl Ssh {
    pub(crate) fn start(way: SshWay<'_>, command: &str) -> Result<Ssh, RemoteError> {
        let mut child = way.start(command)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (to, to_send) = channel::<Arc<[u8]>>();
        let queued = Arc::new(AtomicUsize::new(0));
        let (send, events) = sync_channel(FRAMES_MAX);
        let ssh = Ssh {
            child,
            input: Some(Input {
                to,
                queued: Arc::clone(&queued),
            }),
            events,
            heard: Arc::new(Mutex::new(Instant::now())),
            said: VecDeque::new(),
            has_said_all: false,
        };
        let no_thread = |source: io::Error| RemoteError::NoSsh {
            program: way.program.first().cloned().unwrap_or_default(),
            source,
        };
        if let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) {
            let lines = send.clone();
            spawn("ssh-errors", move || send_lines(stderr, &lines)).map_err(no_thread)?;
            let heard = Arc::clone(&ssh.heard);
            spawn("ssh-output", move || {
                let why = read_all(stdout, &heard, &send);
                let _ = send.send(Event::End(why));
            })
            .map_err(no_thread)?;
            spawn("ssh-input", move || {
                // That the connection is gone is found by the thread that reads.
                while let Ok(bytes) = to_send.recv()
                    && stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_ok()
                {
                    queued.fetch_sub(bytes.len(), Ordering::Relaxed);
                }
            })
            .map_err(no_thread)?;
        }
        Ok(ssh)
    }

    /// As if something had come now.
    pub(crate) fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long nothing has come.
    pub(crate) fn silence(&self) -> Duration {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    pub(crate) fn send(&self, bytes: impl Into<Arc<[u8]>>) {
        if let Some(input) = &self.input {
            input.send(bytes.into());
        }
    }

    /// Bytes that were sent and that ssh has not taken yet.
    pub(crate) fn queued(&self) -> usize {
        let input = self.input.as_ref();
        input.map_or(0, |input| input.queued.load(Ordering::Relaxed))
    }

    /// Keeps a line that was said.
    pub(crate) fn keep(&mut self, line: String) {
        if self.said.len() == LINES_MAX {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    /// Closes the connection and waits for the end of ssh, not for long.
    pub(crate) fn end(&mut self) -> Option<ExitStatus> {
        self.input = None;
        self.wait(ENDING).or_else(|| {
            self.kill();
            self.child.wait().ok()
        })
    }

    fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < limit => thread::park_timeout(Duration::from_millis(10)),
                ended => return ended.ok().flatten(),
            }
        }
    }

    fn kill(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        if self.wait(AFTER_SIGNAL).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// The last lines of ssh and of the host's shell, with those that come yet.
    pub(crate) fn last_said(&mut self) -> String {
        let begun = Instant::now();
        while !self.has_said_all && begun.elapsed() < AFTER_SIGNAL {
            match self.events.recv_timeout(LOOK_EVERY) {
                Ok(Event::Said(line)) => self.keep(line),
                Ok(Event::SaidAll) => self.has_said_all = true,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match self.said.is_empty() {
            true => "it says nothing".to_owned(),
            false => Vec::from(self.said.clone()).join("; "),
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        self.input = None;
        self.kill();
    }
}

/// Removes all agents of the user on a host. Returns the directory that was removed, as the host
/// names it; `None` where there was none.
///
/// # Errors
///
/// [`RemoteError`]; [`RemoteError::Stopped`] when `stop` is set before the host has answered.
pub fn remove_agents(way: SshWay<'_>, stop: &AtomicBool) -> Result<Option<String>, RemoteError> {
    let host = way.host.clone();
    let mut child = way.start(&boot::removal())?;
    // The host prints two short lines, which its pipes hold; one that prints more, or nothing, is
    // waited for no longer.
    let begun = Instant::now();
    drop(child.stdin.take());
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if stop.load(Ordering::Relaxed) || begun.elapsed() > REMOVED_WITHIN => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(match stop.load(Ordering::Relaxed) {
                    true => RemoteError::Stopped { host },
                    false => RemoteError::NotRemoved {
                        host,
                        said: format!("it has not ended within {} s", REMOVED_WITHIN.as_secs()),
                    },
                });
            }
            Ok(None) => thread::park_timeout(Duration::from_millis(10)),
            Err(_) => break None,
        }
    };
    let text = |stream: &mut dyn Read| {
        let mut bytes = Vec::new();
        let _ = stream.take(PRINTED_BY_REMOVAL_MAX).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let printed = child
        .stdout
        .take()
        .map(|mut out| text(&mut out))
        .unwrap_or_default();
    let said = child
        .stderr
        .take()
        .map(|mut err| text(&mut err))
        .unwrap_or_default();
    let said = said.trim().to_owned();
    match (boot::removed(&printed), status.and_then(|status| status.code())) {
        (Some(place), Some(0)) => Ok(place),
        (_, Some(OF_SSH)) => Err(RemoteError::Unreachable { host, said }),
        _ => Err(RemoteError::NotRemoved { host, said }),
    }
}

pub(crate) fn spawn(name: &str, act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(act)
        .map(|_| ())
}

/// What the host sends, with when that was last something: a long message is no silence.
struct Heard<'a> {
    output: ChildStdout,
    heard: &'a Mutex<Instant>,
}

impl Read for Heard<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.output.read(bytes)?;
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(read)
    }
}

/// Reads what the host sends to its end; why, where that is none of an agent's.
fn read_all(output: ChildStdout, heard: &Mutex<Instant>, send: &SyncSender<Event>) -> Option<String> {
    let mut from = BufReader::new(Heard { output, heard });
    match boot::found(&mut from) {
        Ok(Some(found)) => send.send(Event::Found(found)).ok()?,
        Ok(None) => return None,
        Err(error) => return Some(error.to_string()),
    }
    match boot::agent_follows(&mut from) {
        Ok(true) => {}
        Ok(false) => return None,
        Err(error) => return Some(error.to_string()),
    }
    loop {
        match frame::read(&mut from) {
            Ok(Some(frame)) => send.send(Event::Frame(frame)).ok()?,
            // A connection that is lost may be lost within a frame.
            Ok(None) | Err(FrameError::Cut | FrameError::Io(_)) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
}

/// Sends the lines, each of limited length.
fn send_lines(errors: ChildStderr, send: &SyncSender<Event>) {
    let mut from = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        let read = (&mut from).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            let _ = send.send(Event::SaidAll);
            return;
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if !line.is_empty() && send.send(Event::Said(line)).is_err() {
            return;
        }
    }
}
