//! The end that has the user: it starts an agent over ssh, hands a command over, and takes what that prints.

use crate::agent::{ALIVE_EVERY, SILENT_MAX};
use crate::binary::{AgentBinary, BinaryError};
use crate::boot::{self, Found};
use crate::frame::{self, Frame, FrameError};
use crate::message::{FromAgent, PROTOCOL, Request, Takeover, Then, ToAgent};
use crate::question::{Answer, Numbered, Question};
use crate::ssh_host::SshHost;
use pgdyno_record::{ErrorClass, ProgressRecord};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a request to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Frames that are read ahead; the agent waits when there are more.
const FRAMES_MAX: usize = 2;
/// Bytes that a command may print in all.
const PRINTED_MAX: u64 = 256 << 20;
/// Time in which ssh ends when the connection is closed.
const ENDING: Duration = Duration::from_secs(5);
/// What is kept of the last lines of ssh and of the host's shell, for an error's text.
const LINES_MAX: usize = 5;
const LINE_BYTES_MAX: u64 = 500;
/// What is read of each stream of a removal.
const PRINTED_BY_REMOVAL_MAX: u64 = 16 << 10;
/// Time that ssh has after a signal: it sets the terminal right, and ends what it has started on the way.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);
/// Time after which what ssh says is shown: it may be waiting for the user.
const SHOWN_AFTER: Duration = Duration::from_millis(500);
/// The keyboard's Ctrl-C is for this process, which then ends the command there in order; ssh would end at once.
const START_SSH: &str = "command -v \"$1\" >/dev/null || { echo \"there is no program $1\" >&2; exit 255; }; trap '' INT; exec \"$@\"";
/// Time between two attempts to have a connection again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Longest time of one of them.
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
/// How ssh goes about them: a link that has just come back is soon used.
const QUICKLY: [&str; 4] = ["-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5"];
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
    /// The agent does not do what it was sent for.
    #[error("the agent on {host} does not run the command: {why}")]
    Refused {
        /// The host as it was named.
        host: SshHost,
        /// Its own words.
        why: String,
    },
    /// The connection was lost, and there was no other in time.
    #[error("the connection to {host} was lost and could not be had again: {why}; {}", match then {
        Then::Restore => "the agent there ends the command and restores everything",
        Then::Keep => "the agent there ends, and what it has changed stays as it is",
    })]
    Abandoned {
        /// The host as it was named.
        host: SshHost,
        /// Error of the last attempt.
        why: String,
        /// What the agent was asked to do.
        then: Then,
    },
    /// What the host sends is nothing that an agent sends.
    #[error("{host} does not answer as an agent of this version: {why}")]
    Misbehaves {
        /// The host as it was named.
        host: SshHost,
        /// What it does instead.
        why: String,
    },
    /// The command line and its files are more than a frame holds.
    #[error("the command cannot be sent to {host}: {why}")]
    Request {
        /// The host as it was named.
        host: SshHost,
        /// What is wrong with it.
        why: String,
    },
    /// The agents that were to be removed are still there.
    #[error("the agents on {host} could not be removed: {said}")]
    NotRemoved {
        /// The host as it was named.
        host: SshHost,
        /// Last lines of the host's shell.
        said: String,
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
            RemoteError::Lost { .. } | RemoteError::Abandoned { .. } => {
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
    /// Starts ssh with a command for the host's shell.
    fn start(&self, command: &str) -> Result<Child, RemoteError> {
        let mut shell = Command::new("sh");
        for name in self.hidden {
            shell.env_remove(name);
        }
        let spawned = shell
            .args(["-c", START_SSH, "sh"])
            .args(self.program)
            // A shared connection is used and never made: it would end with this one, and what others have in it too.
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

/// What a command prints on the host.
#[derive(Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Bytes of its standard output.
    Data(&'a [u8]),
    /// Bytes of its standard error.
    Remark(&'a [u8]),
}

/// A connection to an agent that waits for its command.
struct Connection {
    host: SshHost,
    ssh: Ssh,
    /// What ssh has said and when, until it is shown.
    unseen: Vec<(Instant, String)>,
}

/// From the thread that reads.
enum Event {
    Found(Found),
    Frame(Frame<FromAgent>),
    /// A line of ssh or of the host's shell.
    Said(String),
    /// No more lines will come.
    SaidAll,
    /// No more frames will come; why, where that is an error.
    End(Option<String>),
}

/// A running ssh. It is ended with its value.
struct Ssh {
    child: Child,
    /// To the thread that writes, which closes the connection when this is dropped: no end of it waits for the other.
    input: Option<Sender<Vec<u8>>>,
    events: Receiver<Event>,
    /// When the host has last sent something.
    heard: Arc<Mutex<Instant>>,
    /// The last lines of ssh and of the host's shell.
    said: VecDeque<String>,
    has_said_all: bool,
}

impl Ssh {
    fn start(way: SshWay<'_>, command: &str) -> Result<Ssh, RemoteError> {
        let mut child = way.start(command)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (input, to_send) = channel::<Vec<u8>>();
        let (send, events) = sync_channel(FRAMES_MAX);
        let ssh = Ssh {
            child,
            input: Some(input),
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
                {}
            })
            .map_err(no_thread)?;
        }
        Ok(ssh)
    }

    /// For how long nothing has come.
    fn silence(&self) -> Duration {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }

    fn send(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            let _ = input.send(bytes);
        }
    }

    /// Keeps a line that was said.
    fn keep(&mut self, line: String) {
        if self.said.len() == LINES_MAX {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    /// Closes the connection and waits for the end of ssh, not for long.
    fn end(&mut self) -> Option<ExitStatus> {
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
    fn last_said(&mut self) -> String {
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

impl Connection {
    /// Connects, and starts the agent; where there is none of this version, `binary_for` gives the program for a machine, as `uname -m`
    /// prints it, and it is copied. What ssh says while the user waits goes to `on_said`, a line at a time.
    ///
    /// # Errors
    ///
    /// [`RemoteError`]; [`RemoteError::Stopped`] when `stop` is set before the agent has answered.
    fn open(
        way: SshWay<'_>,
        version: &str,
        binary_for: &dyn Fn(&str) -> Result<AgentBinary, BinaryError>,
        on_said: &mut dyn FnMut(&str),
        until: (&AtomicBool, Option<Instant>),
    ) -> Result<Connection, RemoteError> {
        let host = way.host.clone();
        let ssh = Ssh::start(way, &boot::command(version, way.sudo))?;
        let mut connection = Connection {
            host: host.clone(),
            ssh,
            unseen: Vec::new(),
        };
        let misbehaves = |why: &str| RemoteError::Misbehaves {
            host: host.clone(),
            why: why.to_owned(),
        };
        let Event::Found(found) = connection.first(on_said, until, false)? else {
            return Err(misbehaves("an answer before the question"));
        };
        let binary = binary_for(&found.machine).map_err(|source| RemoteError::Binary {
            host: host.clone(),
            source,
        })?;
        match found.sha256.as_ref() == Some(&binary.sha256) {
            true => connection.ssh.send(b"run\n".to_vec()),
            false => {
                let line = format!("take {} {}\n", binary.bytes.len(), binary.sha256);
                connection.ssh.send(line.into_bytes());
                connection.ssh.send(binary.bytes);
            }
        }
        match connection.first(on_said, until, true)? {
            Event::Frame(Frame::Message(FromAgent::Hello(hello))) if hello.protocol == PROTOCOL => {
                Ok(connection)
            }
            _ => Err(misbehaves("no greeting of this version")),
        }
    }

    /// The next event before the command begins; without a limit in time a user may be typing a password.
    fn first(
        &mut self,
        on_said: &mut dyn FnMut(&str),
        (stop, limit): (&AtomicBool, Option<Instant>),
        is_connected: bool,
    ) -> Result<Event, RemoteError> {
        let host = self.host.clone();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(RemoteError::Stopped { host });
            }
            if limit.is_some_and(|limit| Instant::now() > limit) {
                let said = "it takes too long".to_owned();
                return Err(RemoteError::Unreachable { host, said });
            }
            self.unseen.retain(|(since, line)| {
                let is_seen = since.elapsed() >= SHOWN_AFTER;
                if is_seen {
                    on_said(line);
                }
                !is_seen
            });
            match self.ssh.events.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Said(line)) => {
                    self.unseen.push((Instant::now(), line.clone()));
                    self.ssh.keep(line);
                }
                Ok(Event::SaidAll) => self.ssh.has_said_all = true,
                Ok(Event::End(Some(why))) => return Err(RemoteError::Misbehaves { host, why }),
                Ok(Event::End(None)) | Err(RecvTimeoutError::Disconnected) => {
                    let status = self.ssh.end();
                    let said = self.ssh.last_said();
                    return Err(match status.and_then(|status| status.code()) {
                        Some(OF_SSH) if !is_connected => RemoteError::Unreachable { host, said },
                        _ => RemoteError::NoAgent { host, said },
                    });
                }
                Ok(event) => return Ok(event),
            }
        }
    }

    /// Sends the first message, and hands on what comes, to the end of the connection or of the command. Once `stop` is set it is asked to end
    /// in order, and `stop` is cleared; set again, it ends the connection. Returns its exit code.
    fn run(mut self, first: &ToAgent, from: &mut From<'_>, stop: &AtomicBool) -> Result<u8, RemoteError> {
        let host = self.host.clone();
        let lost = |why: String| RemoteError::Lost {
            host: host.clone(),
            why,
        };
        let misbehaves = |why: &str| RemoteError::Misbehaves {
            host: host.clone(),
            why: why.to_owned(),
        };
        self.ssh.send(encoded(first).map_err(|why| RemoteError::Request {
            host: host.clone(),
            why,
        })?);
        if from.has_asked_to_stop {
            self.ssh.send(encoded(&ToAgent::Stop).unwrap_or_default());
        }
        let input = self.ssh.input.clone();
        let alive = KeepAlive::start(input)
            .map_err(|error| lost(format!("no thread can be started here: {error}")))?;
        loop {
            if stop.swap(false, Ordering::Relaxed) {
                if from.has_asked_to_stop {
                    return Err(RemoteError::Stopped { host });
                }
                from.has_asked_to_stop = true;
                self.ssh.send(encoded(&ToAgent::Stop).unwrap_or_default());
            }
            let event = match self.ssh.events.recv_timeout(LOOK_EVERY) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) if self.ssh.silence() < SILENT_MAX => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(lost(format!("nothing was heard for {} s", SILENT_MAX.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => Event::End(None),
            };
            match event {
                Event::Frame(Frame::Message(message)) => match message {
                    FromAgent::Alive => {}
                    FromAgent::Progress { id, progress } => (from.on_progress)(id, &progress),
                    FromAgent::Question(question) => {
                        let answer = from.answer(*question).map_err(misbehaves)?;
                        let bytes = encoded(&ToAgent::Answer(Box::new(answer)));
                        self.ssh.send(bytes.map_err(|why| misbehaves(&why))?);
                    }
                    FromAgent::Ended { code } => {
                        drop(alive);
                        self.ssh.end();
                        return Ok(code);
                    }
                    FromAgent::Refused { why } => return Err(RemoteError::Refused { host, why }),
                    FromAgent::Hello(_) => {
                        return Err(misbehaves("a message that was not asked for"));
                    }
                },
                Event::Frame(Frame::Data(bytes)) => from.printed(Output::Data(&bytes)),
                Event::Frame(Frame::Remark(bytes)) => from.printed(Output::Remark(&bytes)),
                Event::Said(line) => self.ssh.keep(line),
                Event::SaidAll => self.ssh.has_said_all = true,
                Event::End(Some(why)) => return Err(misbehaves(&why)),
                // A command that has nothing to restore is simply ended.
                Event::End(None) if from.has_asked_to_stop && from.ends_at_stop => {
                    return Err(RemoteError::Stopped { host });
                }
                Event::End(None) | Event::Found(_) => {
                    self.ssh.end();
                    return Err(lost(self.ssh.last_said()));
                }
            }
            if from.bytes > PRINTED_MAX {
                return Err(misbehaves(&format!("more than {PRINTED_MAX} bytes of output")));
            }
        }
    }
}

/// What a command says and asks, over however many connections.
struct From<'a> {
    on_output: &'a mut dyn FnMut(Output<'_>),
    on_question: &'a mut dyn FnMut(Question) -> Answer,
    on_progress: &'a mut dyn FnMut(i64, &ProgressRecord),
    /// The last answer, which may have been lost on its way.
    answered: Numbered<Answer>,
    /// Bytes of output so far.
    bytes: u64,
    has_asked_to_stop: bool,
    /// Whether the connection of a command that was asked to stop may simply end.
    ends_at_stop: bool,
}

impl From<'_> {
    fn printed(&mut self, output: Output<'_>) {
        let (Output::Data(bytes) | Output::Remark(bytes)) = &output;
        self.bytes += bytes.len() as u64;
        (self.on_output)(output);
    }

    /// Answers each question once; what is wrong with a number that is no next one.
    fn answer(&mut self, question: Numbered<Question>) -> Result<Numbered<Answer>, &'static str> {
        if question.number == self.answered.number + 1 {
            self.answered = Numbered {
                number: question.number,
                content: (self.on_question)(question.content),
            };
        }
        match question.number == self.answered.number {
            true => Ok(self.answered.clone()),
            false => Err("a question that is not the next one"),
        }
    }
}

/// What is done with what a command and its connection say.
pub struct On<'a> {
    /// A line of ssh, or about the connection.
    pub said: &'a mut dyn FnMut(&str),
    /// What the command prints.
    pub output: &'a mut dyn FnMut(Output<'_>),
    /// Answers what the command asks.
    pub question: &'a mut dyn FnMut(Question) -> Answer,
    /// How far the command's experiment is.
    pub progress: &'a mut dyn FnMut(i64, &ProgressRecord),
}

/// Where a command runs, and how it gets there.
pub struct Host<'a> {
    /// The way there.
    pub way: SshWay<'a>,
    /// Version of this program, which the agent has too.
    pub version: &'a str,
    /// Gives the program for a machine, as `uname -m` prints it.
    pub binary_for: &'a dyn Fn(&str) -> Result<AgentBinary, BinaryError>,
}

impl Host<'_> {
    /// Runs a command there, hands on what it prints, and answers what it asks. Where its request says so, a connection that is lost is made
    /// again, for as long as the agent waits for it. Returns the command's exit code.
    ///
    /// # Errors
    ///
    /// [`RemoteError`].
    pub fn run(&self, request: &Request, on: On<'_>, stop: &AtomicBool) -> Result<u8, RemoteError> {
        let On {
            said: on_said,
            output: on_output,
            question: on_question,
            progress: on_progress,
        } = on;
        let mut from = From {
            on_output,
            on_question,
            on_progress,
            answered: Numbered {
                number: 0,
                content: Answer::Done,
            },
            bytes: 0,
            has_asked_to_stop: false,
            ends_at_stop: request.takeover.is_none(),
        };
        let connection = Connection::open(self.way, self.version, self.binary_for, on_said, (stop, None))?;
        let mut ended = connection.run(&ToAgent::Request(Box::new(request.clone())), &mut from, stop);
        while let (Err(RemoteError::Lost { why, .. }), Some(takeover)) = (&ended, &request.takeover) {
            let host = self.way.host;
            on_said(&format!(
                "the connection to {host} was lost ({why}); trying to have another one, for {} s",
                takeover.grace_s
            ));
            let again = self.open_again(takeover, on_said, &mut from.has_asked_to_stop, stop)?;
            on_said(&format!("connected to {host} again"));
            let attach = ToAgent::Attach {
                token: takeover.token.clone(),
            };
            ended = again.run(&attach, &mut from, stop);
            if let Err(RemoteError::Refused { why, .. }) = ended {
                ended = Err(self.abandoned(takeover, why));
            }
        }
        ended
    }

    fn abandoned(&self, takeover: &Takeover, why: String) -> RemoteError {
        RemoteError::Abandoned {
            host: self.way.host.clone(),
            why,
            then: takeover.then,
        }
    }

    /// Tries until the agent there waits no longer. Once `stop` is set the agent is asked to end as soon as there is a connection, and set
    /// again it ends the attempts.
    fn open_again(
        &self,
        takeover: &Takeover,
        on_said: &mut dyn FnMut(&str),
        has_asked_to_stop: &mut bool,
        stop: &AtomicBool,
    ) -> Result<Connection, RemoteError> {
        // It may have noticed the loss later than this process.
        let until = Instant::now() + Duration::from_secs(takeover.grace_s.into()) + SILENT_MAX;
        let never = AtomicBool::new(false);
        let mut program = self.way.program.to_vec();
        program.extend(QUICKLY.map(str::to_owned));
        let way = SshWay {
            program: &program,
            ..self.way
        };
        loop {
            let limit = Some(until.min(Instant::now() + ATTEMPT_MAX));
            let opened = Connection::open(way, self.version, self.binary_for, on_said, (&never, limit));
            let error = match opened {
                Err(error @ (RemoteError::Unreachable { .. } | RemoteError::NoAgent { .. })) => error,
                opened => return opened,
            };
            let tried = Instant::now();
            while tried.elapsed() < AGAIN_AFTER {
                if stop.swap(false, Ordering::Relaxed) {
                    if *has_asked_to_stop {
                        return Err(self.abandoned(takeover, "stopped".to_owned()));
                    }
                    *has_asked_to_stop = true;
                    on_said(
                        "the run there is ended as soon as there is a connection; Ctrl-C again leaves it alone",
                    );
                }
                thread::park_timeout(LOOK_EVERY);
            }
            if Instant::now() > until {
                return Err(self.abandoned(takeover, error.to_string()));
            }
        }
    }
}

/// The bytes of a message's frame; why, where it has none.
fn encoded(message: &ToAgent) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    frame::write_message(&mut bytes, message).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Shows the agent that this process is there, also while it prints to somebody who does not read. It ends with its value.
struct KeepAlive {
    /// The thread ends when it is dropped.
    _end: Sender<()>,
}

impl KeepAlive {
    fn start(input: Option<Sender<Vec<u8>>>) -> io::Result<KeepAlive> {
        let (end, ended) = channel::<()>();
        let alive = encoded(&ToAgent::Alive).unwrap_or_default();
        spawn("ssh-alive", move || {
            while ended.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                if input
                    .as_ref()
                    .is_none_or(|input| input.send(alive.clone()).is_err())
                {
                    return;
                }
            }
        })?;
        Ok(KeepAlive { _end: end })
    }
}

/// Removes all agents of the user on a host. Returns the directory that was removed, as the host names it; `None` where there was none.
///
/// # Errors
///
/// [`RemoteError`]; [`RemoteError::Stopped`] when `stop` is set before the host has answered.
pub fn remove_agents(way: SshWay<'_>, stop: &AtomicBool) -> Result<Option<String>, RemoteError> {
    let host = way.host.clone();
    let mut child = way.start(&boot::removal())?;
    // The host prints two short lines, which its pipes hold.
    drop(child.stdin.take());
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if stop.load(Ordering::Relaxed) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(RemoteError::Stopped { host });
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

fn spawn(name: &str, act: impl FnOnce() + Send + 'static) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_is_answered_once_however_often_it_comes() {
        let asked = std::cell::Cell::new(0);
        let mut from = From {
            on_output: &mut |_| {},
            on_question: &mut |_| {
                asked.set(asked.get() + 1);
                Answer::Numbered(asked.get())
            },
            on_progress: &mut |_, _| {},
            answered: Numbered {
                number: 0,
                content: Answer::Done,
            },
            bytes: 0,
            has_asked_to_stop: false,
            ends_at_stop: false,
        };
        let mut ask = |number| {
            let question = Numbered {
                number,
                content: Question::Keep,
            };
            from.answer(question)
                .map(|answer| (answer.number, answer.content))
        };
        assert_eq!(ask(1), Ok((1, Answer::Numbered(1))));
        assert_eq!(ask(1), Ok((1, Answer::Numbered(1))));
        assert_eq!(ask(2), Ok((2, Answer::Numbered(2))));
        for other in [0, 1, 4, u64::MAX] {
            assert!(ask(other).is_err(), "{other}");
        }
        assert_eq!(asked.get(), 2);
    }
}
