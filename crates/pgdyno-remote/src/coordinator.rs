//! The end that has the user: it starts an agent over ssh, hands a command over, and takes what that prints.

use crate::agent::{ALIVE_EVERY, SILENT_MAX};
use crate::binary::{AgentBinary, BinaryError};
use crate::boot::{self, Found};
use crate::frame::{self, Frame, FrameError};
use crate::message::{FromAgent, Hello, PROTOCOL, Request, ToAgent};
use crate::ssh_host::SshHost;
use pgdyno_record::ErrorClass;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a request to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Frames that wait for whoever takes them; the agent waits when there are more.
const FRAMES_MAX: usize = 16;
/// Bytes that a command may print in all.
const PRINTED_MAX: u64 = 256 << 20;
/// Time in which ssh ends when the connection is closed.
const ENDING: Duration = Duration::from_secs(5);
/// What is kept of the last lines of ssh and of the host's shell, for an error's text.
const LINES_MAX: usize = 5;
const LINE_BYTES_MAX: u64 = 500;
/// ssh's own exit code.
const OF_SSH: i32 = 255;

/// Why a host over ssh did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// There is no ssh, or it cannot be started.
    #[error("{program} could not be started")]
    NoSsh {
        /// Its name.
        program: String,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// ssh has no connection to the host.
    #[error("{host} could not be reached: {said}")]
    Unreachable {
        /// The host as it was named.
        host: SshHost,
        /// Last lines of ssh.
        said: String,
    },
    /// The agent could not be started there.
    #[error("no agent could be started on {host}: {said}")]
    NoAgent {
        /// The host as it was named.
        host: SshHost,
        /// Last lines of the host's shell.
        said: String,
    },
    /// There is no program for a host of this kind.
    #[error("no agent could be started on {host}")]
    Binary {
        /// The host as it was named.
        host: SshHost,
        /// What is missing.
        #[source]
        source: BinaryError,
    },
    /// The connection ended before the command did.
    #[error("the connection to {host} was lost: {why}; the command there is ended as by Ctrl-C")]
    Lost {
        /// The host as it was named.
        host: SshHost,
        /// How that was found.
        why: String,
    },
    /// What the host sends is nothing that an agent sends.
    #[error("{host} does not answer as an agent of this version: {why}")]
    Misbehaves {
        /// The host as it was named.
        host: SshHost,
        /// What it does instead.
        why: String,
    },
    /// The user asked to stop, and the command there has no end in order, or had not begun.
    #[error("stopped on {host}")]
    Stopped {
        /// The host as it was named.
        host: SshHost,
    },
}

impl RemoteError {
    /// What failed there is no fault of the command line.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Failed
    }

    /// What mends it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RemoteError::Unreachable { .. } => {
                Some("`ssh HOST true` must work first: pgdyno takes the same way")
            }
            RemoteError::Binary { .. } => {
                Some("copy a pgdyno that was built for that machine there (`make dist` builds them)")
            }
            RemoteError::Lost { .. } => {
                Some("`pgdyno status` with the same --host shows what is still changed there")
            }
            _ => None,
        }
    }
}

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
}

impl SshWay<'_> {
    /// Starts ssh with a command for the host's shell. The keyboard's Ctrl-C is for this process, which then ends the command there in
    /// order; ssh would end at once.
    fn start(&self, command: &str) -> Result<Child, RemoteError> {
        let mut command_here = Command::new("sh");
        for name in self.hidden {
            command_here.env_remove(name);
        }
        let spawned = command_here
            .args(["-c", "trap '' INT; exec \"$@\"", "sh"])
            .args(self.program)
            .args(["-T", "--", self.host.destination(), command])
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

/// What a command prints on the host.
#[derive(Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Bytes of its standard output.
    Data(&'a [u8]),
    /// Bytes of its standard error.
    Remark(&'a [u8]),
}

/// A connection to an agent that waits for its command.
pub struct Connection {
    host: SshHost,
    ssh: Ssh,
    events: Receiver<Event>,
    hello: Hello,
    has_copied: bool,
}

/// From the thread that reads.
enum Event {
    Found(Found),
    Frame(Frame<FromAgent>),
    /// No more will come; why, where that is an error.
    End(Option<String>),
}

/// A running ssh. It is ended with its value.
struct Ssh {
    child: Child,
    input: Arc<Mutex<Option<ChildStdin>>>,
    said: Arc<Mutex<VecDeque<String>>>,
}

impl Ssh {
    fn send(&self, message: &ToAgent) {
        // A way that is gone is found by whoever reads.
        let _ = self.with_input(|input| frame::write_message(input, message).map_err(io::Error::other));
    }

    fn with_input(&self, act: impl FnOnce(&mut ChildStdin) -> io::Result<()>) -> io::Result<()> {
        with_input(&self.input, act)
    }

    /// Closes the connection and waits for the end of ssh, not for long.
    fn end(&mut self) -> Option<ExitStatus> {
        drop(self.input.lock().unwrap_or_else(PoisonError::into_inner).take());
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begun.elapsed() < ENDING => thread::park_timeout(Duration::from_millis(10)),
                _ => break,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// The last lines of ssh and of the host's shell.
    fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match said.is_empty() {
            true => "it says nothing".to_owned(),
            false => said.iter().map(String::as_str).collect::<Vec<&str>>().join("; "),
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_input(
    input: &Mutex<Option<ChildStdin>>,
    act: impl FnOnce(&mut ChildStdin) -> io::Result<()>,
) -> io::Result<()> {
    match &mut *input.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(input) => act(input),
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

impl Connection {
    /// Connects, and starts the agent; where there is none of this version, `binary_for` gives the program for a machine, as `uname -m`
    /// prints it, and it is copied.
    ///
    /// # Errors
    ///
    /// [`RemoteError`], and of nothing before `stop` is set where the user waits no more.
    pub fn open(
        way: SshWay<'_>,
        version: &str,
        binary_for: &dyn Fn(&str) -> Result<AgentBinary, BinaryError>,
        stop: &AtomicBool,
    ) -> Result<Connection, RemoteError> {
        let host = way.host;
        let mut child = way.start(&boot::command(version, way.sudo))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ssh = Ssh {
            child,
            input: Arc::new(Mutex::new(input)),
            said: Arc::default(),
        };
        let (send, events) = sync_channel(FRAMES_MAX);
        let misbehaves = |why: String| RemoteError::Misbehaves {
            host: host.clone(),
            why,
        };
        let no_thread = |error: io::Error| misbehaves(format!("no thread can be started here: {error}"));
        if let (Some(output), Some(errors)) = (output, errors) {
            let said = Arc::clone(&ssh.said);
            let (heard, all_heard) = channel();
            spawn("ssh-errors", move || keep_lines(errors, &said, heard)).map_err(no_thread)?;
            spawn("ssh-output", move || {
                let why = read_all(output, &send);
                // Whoever hears of the end asks what was said before it.
                let _ = all_heard.recv_timeout(ENDING);
                let _ = send.send(Event::End(why));
            })
            .map_err(no_thread)?;
        }
        let mut connection = Connection {
            host: host.clone(),
            ssh,
            events,
            hello: Hello {
                protocol: PROTOCOL,
                version: String::new(),
                is_root: false,
            },
            has_copied: false,
        };
        let Event::Found(found) = connection.first(stop, false)? else {
            return Err(misbehaves("an answer before the question".to_owned()));
        };
        let binary = binary_for(&found.machine).map_err(|source| RemoteError::Binary {
            host: host.clone(),
            source,
        })?;
        connection.has_copied = found.sha256.as_ref() != Some(&binary.sha256);
        let line = match connection.has_copied {
            false => "run\n".to_owned(),
            true => format!("take {} {}\n", binary.bytes.len(), binary.sha256),
        };
        // Where it cannot be sent, the host has said why.
        let _ = connection.ssh.with_input(|input| {
            input.write_all(line.as_bytes())?;
            if connection.has_copied {
                input.write_all(&binary.bytes)?;
            }
            input.flush()
        });
        match connection.first(stop, true)? {
            Event::Frame(Frame::Message(FromAgent::Hello(hello))) if hello.protocol == PROTOCOL => {
                connection.hello = hello;
                Ok(connection)
            }
            _ => Err(misbehaves("no greeting of this version".to_owned())),
        }
    }

    /// What the agent says of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Whether the program was copied to the host for this connection.
    pub fn has_copied(&self) -> bool {
        self.has_copied
    }

    /// The next event before the command begins; no limit in time, for a user may be typing a password.
    fn first(&mut self, stop: &AtomicBool, is_connected: bool) -> Result<Event, RemoteError> {
        loop {
            match self.events.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(RemoteError::Stopped {
                        host: self.host.clone(),
                    });
                }
                Ok(Event::End(Some(why))) => {
                    return Err(RemoteError::Misbehaves {
                        host: self.host.clone(),
                        why,
                    });
                }
                Ok(Event::End(None)) | Err(RecvTimeoutError::Disconnected) => {
                    let status = self.ssh.end();
                    let (host, said) = (self.host.clone(), self.ssh.said());
                    return Err(match status.and_then(|status| status.code()) {
                        Some(OF_SSH) if !is_connected => RemoteError::Unreachable { host, said },
                        _ => RemoteError::NoAgent { host, said },
                    });
                }
                Ok(event) => return Ok(event),
            }
        }
    }

    /// Runs the command and hands on what it prints; `stop` asks it to end in order. Returns its exit code.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Lost`], [`RemoteError::Misbehaves`].
    pub fn run(
        mut self,
        request: &Request,
        on_output: &mut dyn FnMut(Output<'_>),
        stop: &AtomicBool,
    ) -> Result<u8, RemoteError> {
        let host = self.host.clone();
        let lost = |why: String| RemoteError::Lost {
            host: host.clone(),
            why,
        };
        let misbehaves = |why: &str| RemoteError::Misbehaves {
            host: host.clone(),
            why: why.to_owned(),
        };
        self.ssh.send(&ToAgent::Request(Box::new(request.clone())));
        let input = Arc::clone(&self.ssh.input);
        let (end, ended) = channel::<()>();
        let alive = spawn("ssh-alive", move || {
            while ended.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                let alive = |input: &mut ChildStdin| {
                    frame::write_message(input, &ToAgent::Alive).map_err(io::Error::other)
                };
                if with_input(&input, alive).is_err() {
                    return;
                }
            }
        });
        alive.map_err(|error| lost(format!("no thread can be started here: {error}")))?;
        let (mut printed, mut heard) = (0, Instant::now());
        let mut has_asked = false;
        loop {
            if stop.load(Ordering::Relaxed) && !has_asked {
                has_asked = true;
                self.ssh.send(&ToAgent::Stop);
            }
            let event = match self.events.recv_timeout(LOOK_EVERY) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < SILENT_MAX => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(lost(format!("nothing was heard for {} s", SILENT_MAX.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => Event::End(None),
            };
            heard = Instant::now();
            match event {
                Event::Frame(Frame::Message(message)) => match message {
                    FromAgent::Alive => {}
                    FromAgent::Ended { code } => {
                        drop(end);
                        self.ssh.end();
                        return Ok(code);
                    }
                    FromAgent::Refused { why } => return Err(misbehaves(&why)),
                    FromAgent::Hello(_) => {
                        return Err(misbehaves("a message that was not asked for"));
                    }
                },
                Event::Frame(Frame::Data(bytes)) => {
                    printed += bytes.len() as u64;
                    on_output(Output::Data(&bytes));
                }
                Event::Frame(Frame::Remark(bytes)) => {
                    printed += bytes.len() as u64;
                    on_output(Output::Remark(&bytes));
                }
                Event::End(Some(why)) => return Err(misbehaves(&why)),
                // A command that has nothing to restore is simply ended.
                Event::End(None) if has_asked => return Err(RemoteError::Stopped { host }),
                Event::End(None) | Event::Found(_) => {
                    self.ssh.end();
                    return Err(lost(self.ssh.said()));
                }
            }
            if printed > PRINTED_MAX {
                return Err(misbehaves(&format!("more than {PRINTED_MAX} bytes of output")));
            }
        }
    }
}

/// Removes all agents of the user on a host. Returns the directory that was removed, as the host names it; `None` where there was none.
///
/// # Errors
///
/// [`RemoteError`].
pub fn remove_agents(way: SshWay<'_>) -> Result<Option<String>, RemoteError> {
    let mut child = way.start(&boot::removal())?;
    drop(child.stdin.take());
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let mut ssh = Ssh {
        child,
        input: Arc::default(),
        said: Arc::default(),
    };
    let mut printed = String::new();
    if let (Some(output), Some(errors)) = (output, errors) {
        let said = Arc::clone(&ssh.said);
        let (heard, all_heard) = channel();
        // Without the thread its last lines are missing in the error, no more.
        let _ = spawn("ssh-errors", move || keep_lines(errors, &said, heard));
        let _ = output.take(LINE_BYTES_MAX).read_to_string(&mut printed);
        let _ = all_heard.recv_timeout(ENDING);
    }
    let status = ssh.end();
    let (host, said) = (way.host.clone(), ssh.said());
    match status.and_then(|status| status.code()) {
        Some(0) => Ok(printed.lines().last().map(str::to_owned)),
        Some(OF_SSH) => Err(RemoteError::Unreachable { host, said }),
        _ => Err(RemoteError::NoAgent { host, said }),
    }
}

fn spawn(name: &str, act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(act)
        .map(|_| ())
}

/// Reads what the host sends to its end; why, where that is none of an agent's.
fn read_all(output: ChildStdout, send: &SyncSender<Event>) -> Option<String> {
    let mut from = BufReader::new(output);
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

/// Keeps the last lines, each of limited length.
fn keep_lines(errors: ChildStderr, said: &Mutex<VecDeque<String>>, _heard: Sender<()>) {
    let mut from = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match (&mut from).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if line.is_empty() {
            continue;
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == LINES_MAX {
            said.pop_front();
        }
        said.push_back(line);
    }
}
