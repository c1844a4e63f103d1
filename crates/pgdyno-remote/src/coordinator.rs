//! The end that has the user: it starts an agent over ssh, hands a command over, and takes what
//! that prints.

use crate::binary::{AgentBinary, BinaryError};
use crate::boot;
use crate::error::RemoteError;
use crate::frame::{self, Frame};
use crate::message::{ALIVE_EVERY, FromAgent, PROTOCOL, Request, SILENT_MAX, Takeover, ToAgent};
use crate::question::{Answer, Numbered, Question};
use crate::ssh::{Event, Input, LOOK_EVERY, OF_SSH, Ssh, SshWay, spawn};
use crate::ssh_host::SshHost;
use pgdyno_record::ProgressRecord;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that a command may print in all.
const PRINTED_MAX: u64 = 256 << 20;
/// Longest time that a program takes to be sent.
pub const SENT_WITHIN: Duration = Duration::from_secs(600);
/// Time for the greeting of an agent that has its program.
const GREETS_WITHIN: Duration = Duration::from_secs(60);
/// Answers that a host may leave unread, in bytes.
const UNREAD_MAX: usize = 32 << 20;
/// Time after which what ssh says is shown: it may be waiting for the user.
const SHOWN_AFTER: Duration = Duration::from_millis(500);
/// Time between two attempts to have a connection again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Longest time of one of them.
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
/// How ssh goes about them: a link that has just come back is soon used.
const QUICKLY: [&str; 4] = ["-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5"];
/// Past a shared connection of the user's: it may be the one that is lost.
const ALONE: [&str; 2] = ["-o", "ControlPath=none"];

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

impl Connection {
    /// Connects, and starts the agent; where there is none of this version, `binary_for` gives the
    /// program for a machine, as `uname -m` prints it, and it is copied. What ssh says while the
    /// user waits goes to the listener.
    ///
    /// # Errors
    ///
    /// [`RemoteError`]; [`RemoteError::Stopped`] when `stop` is set before the agent has answered.
    fn open(
        way: SshWay<'_>,
        version: &str,
        binary_for: &dyn Fn(&str) -> Result<AgentBinary, BinaryError>,
        listener: &mut dyn Listener,
        mut until: (&AtomicBool, Option<Instant>),
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
        let Event::Found(found) = connection.first(listener, until, false)? else {
            return Err(misbehaves("an answer before the question"));
        };
        let binary = binary_for(&found.machine).map_err(|source| RemoteError::Binary {
            host: host.clone(),
            source,
        })?;
        // Nobody types any more.
        let mut limit = until.1.unwrap_or_else(|| Instant::now() + GREETS_WITHIN);
        match found.sha256.as_ref() == Some(&binary.sha256) {
            true => connection.ssh.send(*b"run\n"),
            false => {
                let line = format!("take {} {}\n", binary.bytes.len(), binary.sha256);
                connection.ssh.send(line.into_bytes());
                connection.ssh.send(binary.bytes);
                limit += SENT_WITHIN;
                listener.sends_program();
            }
        }
        until.1 = Some(limit);
        match connection.first(listener, until, true)? {
            Event::Frame(Frame::Message(FromAgent::Hello(hello))) if hello.protocol == PROTOCOL => {
                Ok(connection)
            }
            _ => Err(misbehaves("no greeting of this version")),
        }
    }

    /// The next event before the command begins; without a limit in time a user may be typing a
    /// password.
    fn first(
        &mut self,
        listener: &mut dyn Listener,
        (stop, limit): (&AtomicBool, Option<Instant>),
        is_connected: bool,
    ) -> Result<Event, RemoteError> {
        let host = self.host.clone();
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(RemoteError::Stopped { host });
            }
            if limit.is_some_and(|limit| Instant::now() > limit) {
                let said = format!("no answer in time; {}", self.ssh.last_said());
                return Err(match is_connected {
                    true => RemoteError::NoAgent { host, said },
                    false => RemoteError::Unreachable { host, said },
                });
            }
            self.unseen.retain(|(since, line)| {
                let is_seen = since.elapsed() >= SHOWN_AFTER;
                if is_seen {
                    listener.said(line);
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

    /// Sends the first message, and hands on what comes, to the end of the connection or of the
    /// command. Once `stop` is set it is asked to end in order, and `stop` is cleared; set again,
    /// it ends the connection. Returns its exit code.
    fn run(
        mut self,
        first: &ToAgent,
        dialogue: &mut Dialogue<'_>,
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
        self.ssh.send(encoded(first).map_err(|why| RemoteError::Request {
            host: host.clone(),
            why,
        })?);
        if dialogue.has_asked_to_stop {
            self.ssh.send(encoded(&ToAgent::Stop).unwrap_or_default());
        }
        let input = self.ssh.input.clone();
        let alive = KeepAlive::start(input)
            .map_err(|error| lost(format!("no thread can be started here: {error}")))?;
        loop {
            if stop.swap(false, Ordering::Relaxed) {
                if dialogue.has_asked_to_stop {
                    return Err(RemoteError::Stopped { host });
                }
                dialogue.has_asked_to_stop = true;
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
                    FromAgent::Progress { id, progress } => dialogue.listener.progress(id, &progress),
                    FromAgent::Question(_) if self.ssh.queued() > UNREAD_MAX => {
                        return Err(misbehaves("it asks and does not read the answers"));
                    }
                    FromAgent::Question(question) => {
                        let answer = dialogue.answer(*question).map_err(misbehaves)?;
                        // It may have taken long, and nothing was read meanwhile.
                        self.ssh.hear();
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
                Event::Frame(Frame::Data(bytes)) => dialogue.printed(Output::Data(&bytes)),
                Event::Frame(Frame::Remark(bytes)) => dialogue.printed(Output::Remark(&bytes)),
                Event::Said(line) => self.ssh.keep(line),
                Event::SaidAll => self.ssh.has_said_all = true,
                Event::End(Some(why)) => return Err(misbehaves(&why)),
                // A command that has nothing to restore is simply ended.
                Event::End(None) if dialogue.has_asked_to_stop && dialogue.ends_at_stop => {
                    return Err(RemoteError::Stopped { host });
                }
                Event::End(None) | Event::Found(_) => {
                    self.ssh.end();
                    return Err(lost(self.ssh.last_said()));
                }
            }
            if dialogue.bytes > PRINTED_MAX {
                return Err(misbehaves(&format!("more than {PRINTED_MAX} bytes of output")));
            }
        }
    }
}

/// What a command says and asks, over however many connections.
struct Dialogue<'a> {
    listener: &'a mut dyn Listener,
    /// The last answer, which may have been lost on its way.
    answered: Numbered<Answer>,
    /// Bytes of output so far.
    bytes: u64,
    has_asked_to_stop: bool,
    /// Whether the connection of a command that was asked to stop may simply end.
    ends_at_stop: bool,
}

impl Dialogue<'_> {
    fn printed(&mut self, output: Output<'_>) {
        let (Output::Data(bytes) | Output::Remark(bytes)) = &output;
        self.bytes += bytes.len() as u64;
        self.listener.printed(output);
    }

    /// Answers each question once; what is wrong with a number that is no next one.
    fn answer(&mut self, question: Numbered<Question>) -> Result<Numbered<Answer>, &'static str> {
        if question.number == self.answered.number + 1 {
            self.answered = Numbered {
                number: question.number,
                content: self.listener.answer(question.content),
            };
        }
        match question.number == self.answered.number {
            true => Ok(self.answered.clone()),
            false => Err("a question that is not the next one"),
        }
    }
}

/// Who hears what a command and its connection say.
pub trait Listener {
    /// A line of ssh, or about the connection.
    fn said(&mut self, _line: &str) {}

    /// The agent's program is being sent, which takes up to [`SENT_WITHIN`].
    fn sends_program(&mut self) {}

    /// What the command prints.
    fn printed(&mut self, output: Output<'_>);

    /// The answer to what the command asks; of one that asks for nothing, none.
    fn answer(&mut self, _question: Question) -> Answer {
        Answer::Failed("nothing is kept for this command".to_owned())
    }

    /// How far the command's experiment is.
    fn progress(&mut self, _id: i64, _progress: &ProgressRecord) {}
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
    /// Runs a command there, hands on what it prints, and answers what it asks. Where its request
    /// says so, a connection that is lost is made again, for as long as the agent waits for it.
    /// Returns the command's exit code.
    ///
    /// # Errors
    ///
    /// [`RemoteError`].
    pub fn run(
        &self,
        request: &Request,
        listener: &mut dyn Listener,
        stop: &AtomicBool,
    ) -> Result<u8, RemoteError> {
        let limit = self.way.greets_within.map(|limit| Instant::now() + limit);
        let connection = self.open(self.way, listener, (stop, limit))?;
        let mut dialogue = Dialogue {
            listener,
            answered: Numbered {
                number: 0,
                content: Answer::Done,
            },
            bytes: 0,
            has_asked_to_stop: false,
            ends_at_stop: request.takeover.is_none(),
        };
        let first = ToAgent::Request(Box::new(request.clone()));
        let mut ended = connection.run(&first, &mut dialogue, stop);
        while let (Err(RemoteError::Lost { why, .. }), Some(takeover)) = (&ended, &request.takeover) {
            let host = self.way.host;
            dialogue.listener.said(&format!(
                "the connection to {host} was lost ({why}); trying to have another one, for {} s",
                takeover.grace_s
            ));
            let again = self.open_again(takeover, &mut dialogue, stop)?;
            dialogue.listener.said(&format!("connected to {host} again"));
            let attach = ToAgent::Attach {
                token: takeover.token.clone(),
            };
            ended = again.run(&attach, &mut dialogue, stop);
            if let Err(RemoteError::Refused { host, why }) = ended {
                ended = Err(RemoteError::Gone { host, why });
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

    fn open(
        &self,
        way: SshWay<'_>,
        listener: &mut dyn Listener,
        until: (&AtomicBool, Option<Instant>),
    ) -> Result<Connection, RemoteError> {
        Connection::open(way, self.version, self.binary_for, listener, until)
    }

    /// Tries until the agent there waits no longer. Once `stop` is set the agent is asked to end as
    /// soon as there is a connection, and set again it ends the attempts.
    fn open_again(
        &self,
        takeover: &Takeover,
        dialogue: &mut Dialogue<'_>,
        stop: &AtomicBool,
    ) -> Result<Connection, RemoteError> {
        // It may have noticed the loss later than this process.
        let until = Instant::now() + Duration::from_secs(takeover.grace_s.into()) + SILENT_MAX;
        let shared = [self.way.program, &QUICKLY.map(str::to_owned)[..]].concat();
        let alone = [&shared[..], &ALONE.map(str::to_owned)[..]].concat();
        let mut programs = [&shared, &alone].into_iter().cycle();
        loop {
            let way = SshWay {
                program: programs.next().unwrap_or(&shared),
                ..self.way
            };
            let limit = until.min(Instant::now() + ATTEMPT_MAX);
            let error = match self.open(way, dialogue.listener, (stop, Some(limit))) {
                Err(
                    error @ (RemoteError::Unreachable { .. }
                    | RemoteError::NoAgent { .. }
                    | RemoteError::Stopped { .. }),
                ) => error,
                opened => return opened,
            };
            let tried = Instant::now();
            while tried.elapsed() < AGAIN_AFTER {
                if stop.swap(false, Ordering::Relaxed) {
                    if dialogue.has_asked_to_stop {
                        return Err(self.abandoned(takeover, "stopped".to_owned()));
                    }
                    dialogue.has_asked_to_stop = true;
                    dialogue.listener.said(
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

/// Shows the agent that this process is there, also while it prints to somebody who does not read.
/// It ends with its value.
struct KeepAlive {
    /// The thread ends when it is dropped.
    _end: Sender<()>,
}

impl KeepAlive {
    fn start(input: Option<Input>) -> io::Result<KeepAlive> {
        let (end, ended) = channel::<()>();
        let alive: Arc<[u8]> = encoded(&ToAgent::Alive).unwrap_or_default().into();
        spawn("ssh-alive", move || {
            while ended.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                if !input.as_ref().is_some_and(|input| input.send(Arc::clone(&alive))) {
                    return;
                }
            }
        })?;
        Ok(KeepAlive { _end: end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counting(i64);

    impl Listener for Counting {
        fn printed(&mut self, _: Output<'_>) {}

        fn answer(&mut self, _: Question) -> Answer {
            self.0 += 1;
            Answer::Numbered(self.0)
        }
    }

    #[test]
    fn question_is_answered_once_however_often_it_comes() {
        let mut counting = Counting::default();
        let mut dialogue = Dialogue {
            listener: &mut counting,
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
            dialogue
                .answer(question)
                .map(|answer| (answer.number, answer.content))
        };
        assert_eq!(ask(1), Ok((1, Answer::Numbered(1))));
        assert_eq!(ask(1), Ok((1, Answer::Numbered(1))));
        assert_eq!(ask(2), Ok((2, Answer::Numbered(2))));
        for other in [0, 1, 4, u64::MAX] {
            assert!(ask(other).is_err(), "{other}");
        }
        assert_eq!(counting.0, 2);
    }
}
