//! The end that is on the changed host: it runs one command and sends what that prints.

use crate::frame::{self, Frame};
use crate::link::{Bell, Link, Next};
use crate::message::{ALIVE_EVERY, FromAgent, Hello, PROTOCOL, Request, SILENT_MAX, Takeover, Then, ToAgent};
use crate::question::{Answer, Numbered, Question};
use crate::waiting::{OF_COORDINATOR, Place, bring, is_token, next_call, refuse_end, set_nonblocking};
use pgdyno_record::ProgressRecord;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Exit code of a program that panics.
const OF_PANIC: u8 = 101;
/// Reads of what is left in the pipes of a command that has ended: a process of its own may print
/// on.
const LAST_READS_MAX: u32 = 256;
const OUTPUT_OF_COORDINATOR: &str = "output, which only agents send";
/// Bytes that are read at once of what the command prints.
const PRINTED_AT_ONCE: usize = 64 << 10;

/// Why an agent has served nobody.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A system call failed.
    #[error("the agent's connection could not be set up")]
    Io(#[from] io::Error),
    /// The other end is not a coordinator of this version.
    #[error("the agent's connection is not one of pgdyno {version}'s: {why}")]
    Coordinator {
        /// Version of this program.
        version: String,
        /// What came instead.
        why: String,
    },
}

/// The connection, and what a command prints meanwhile.
pub struct Streams {
    input: File,
    output: File,
    /// Reading ends of the command's standard output and standard error.
    printed: [File; 2],
}

impl Streams {
    /// Uses the standard streams of this process for the connection. Everything that the process
    /// prints afterwards goes through it.
    ///
    /// # Errors
    ///
    /// Of the system calls.
    pub fn of_process() -> io::Result<Streams> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        // A pipe that nobody writes to: a read of standard input is at its end.
        let (empty, _) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdin(&empty)?;
        let (data, data_in) = pipe_with(PipeFlags::CLOEXEC)?;
        let (remarks, remarks_in) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdout(&data_in)?;
        rustix::stdio::dup2_stderr(&remarks_in)?;
        Ok(Streams {
            input: input.into(),
            output: output.into(),
            printed: [data.into(), remarks.into()],
        })
    }
}

/// What an agent asks of its coordinator while a command runs.
#[derive(Clone)]
pub struct Coordinator {
    /// What the tokens of all runs of its store begin with; `None` of a command that does not
    /// outlive its connection.
    of_store: Option<String>,
    link: Link,
    answers: Arc<Mutex<Receiver<Numbered<Answer>>>>,
}

impl Coordinator {
    /// What the tokens of all runs of its store begin with; `None` of a command that does not
    /// outlive its connection.
    pub fn of_store(&self) -> Option<&str> {
        self.of_store.as_deref()
    }

    /// Shows the coordinator how far the experiment is. Where it does not get there it is dropped.
    pub fn mention(&self, id: i64, progress: &ProgressRecord) {
        self.link.mention(&FromAgent::Progress {
            id,
            progress: Box::new(progress.clone()),
        });
    }

    /// Asks, and waits for the answer: as long as the coordinator takes, and over a lost connection
    /// for as long as the agent waits for another one. The question is answered once, however often
    /// it is sent. `None` where no answer comes any more.
    pub fn ask(&self, question: Question) -> Option<Answer> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match self.link.ask(question) {
            Ok(number) => number,
            Err(why) => return Some(Answer::Failed(format!("it cannot be sent: {why}"))),
        };
        loop {
            match answers.recv() {
                Ok(answer) if answer.number == number => {
                    self.link.is_answered();
                    return Some(answer.content);
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Serves one coordinator: runs its command by `run`, and ends. `stop` is called once when the
/// coordinator asks for it or is gone; the command then ends in order, and nobody hears of it in
/// the second case. `waits_in` is the directory in which agents are found that wait for another
/// connection.
///
/// # Errors
///
/// [`AgentError`], before the command begins.
pub fn serve(
    streams: Streams,
    hello: Hello,
    waits_in: Option<&Path>,
    stop: impl FnOnce() + Send + 'static,
    run: impl FnOnce(&Request, Coordinator) -> u8,
) -> Result<u8, AgentError> {
    let Streams {
        input,
        output,
        printed,
    } = streams;
    let version = hello.version.clone();
    let gone = Arc::new(Bell::new()?);
    let link = Link::new(output, Arc::clone(&gone))?;
    link.begin(hello);
    let refuse = |why: String| {
        link.send(&FromAgent::Refused { why: why.clone() });
        Err(AgentError::Coordinator {
            version: version.clone(),
            why,
        })
    };
    let request = match first(&input, &gone) {
        Ok(ToAgent::Request(request)) if request.protocol == PROTOCOL => *request,
        Ok(ToAgent::Request(request)) => {
            return refuse(format!(
                "the coordinator speaks version {} of the protocol, this agent version {PROTOCOL}",
                request.protocol
            ));
        }
        Ok(ToAgent::Attach { token }) => {
            let brought = match waits_in.filter(|_| is_token(&token)) {
                Some(directory) => bring(directory, &token, &input, &link.file()?),
                None => Err(ErrorKind::NotFound.into()),
            };
            return match brought {
                Ok(()) => Ok(0),
                Err(error) if error.kind() == ErrorKind::NotConnected => refuse(
                    "it has been waited for long enough: the command here ends, and restores everything"
                        .to_owned(),
                ),
                Err(error) => refuse(format!(
                    "no agent waits here for this coordinator any more ({error}); what the command has changed may still be changed"
                )),
            };
        }
        Ok(_) => return refuse("no request".to_owned()),
        Err(why) => return refuse(why),
    };
    let place = match &request.takeover {
        None => None,
        Some(takeover) => match (waits_in, is_token(&takeover.token)) {
            (Some(directory), true) => match Place::make(directory, &takeover.token) {
                Ok(place) => Some(place),
                Err(error) => {
                    return refuse(format!(
                        "a command cannot outlive its connection: {} cannot be used: {error}",
                        directory.display()
                    ));
                }
            },
            _ => {
                return refuse(
                    "a command that is to outlive its connection, where nothing can be kept".into(),
                );
            }
        },
    };
    let (next, nexts) = channel();
    if let Some(place) = &place {
        let (listener, link) = (place.listener()?, link.clone());
        thread::Builder::new().name("agent-calls".into()).spawn(move || {
            while let Ok(call) = next_call(&listener) {
                link.called(call, &next);
            }
        })?;
    }
    let (send, answers) = channel();
    thread::Builder::new().name("agent-input".into()).spawn({
        let ears = Ears {
            input,
            gone,
            bringer: None,
            link: link.clone(),
            nexts,
            takeover: request.takeover.clone(),
            answers: send,
            stop: Some(stop),
        };
        move || ears.hear_all()
    })?;
    let done = Arc::new(Bell::new()?);
    let pump = thread::Builder::new().name("agent-output".into()).spawn({
        let (link, done) = (link.clone(), Arc::clone(&done));
        move || pump(&printed, &link, &done)
    })?;
    let (end, ended) = channel::<()>();
    thread::Builder::new().name("agent-alive".into()).spawn({
        let link = link.clone();
        move || {
            while ended.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                link.send(&FromAgent::Alive);
            }
        }
    })?;
    let token = request.takeover.as_ref().map(|takeover| &takeover.token);
    let coordinator = Coordinator {
        of_store: token.and_then(|token| Some(token.get(..OF_COORDINATOR)?.to_owned())),
        link: link.clone(),
        answers: Arc::new(Mutex::new(answers)),
    };
    // A panic has been shown, through the pipes, and the coordinator hears of an end.
    let code = catch_unwind(AssertUnwindSafe(|| run(&request, coordinator))).unwrap_or(OF_PANIC);
    done.ring();
    let _ = pump.join();
    drop(end);
    link.end(code);
    Ok(code)
}

/// The first message; why, where there is none.
fn first(input: &File, gone: &Arc<Bell>) -> Result<ToAgent, String> {
    match frame::read::<ToAgent>(&mut Patient { input, gone }) {
        Ok(Some(Frame::Message(message))) => Ok(message),
        Ok(Some(Frame::Data(_) | Frame::Remark(_))) => Err(OUTPUT_OF_COORDINATOR.to_owned()),
        Ok(None) => Err("the coordinator is gone".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Hears what the coordinator sends, over one connection after the other.
struct Ears<S> {
    input: File,
    /// Rings when this connection is used no more.
    gone: Arc<Bell>,
    /// Who has brought this connection.
    bringer: Option<UnixStream>,
    link: Link,
    nexts: Receiver<Next>,
    takeover: Option<Takeover>,
    answers: Sender<Numbered<Answer>>,
    stop: Option<S>,
}

impl<S: FnOnce()> Ears<S> {
    fn hear_all(mut self) {
        loop {
            self.hear();
            self.gone.ring();
            self.link.lose(self.takeover.is_some());
            self.bringer = None;
            let Some(takeover) = &self.takeover else { break };
            let grace = Duration::from_secs(takeover.grace_s.into());
            let attached = match self.nexts.recv_timeout(grace) {
                Ok(Next::Over(attached)) => attached,
                // Of before the last connection.
                Ok(Next::EndNow) if !self.link.is_to_end() => continue,
                Ok(Next::EndNow) => break,
                Err(_) if takeover.then == Then::Keep => {
                    // As kill -9, after which everything is restored by command.
                    let _ = kill_process(getpid(), Signal::KILL);
                    break;
                }
                Err(_) => break,
            };
            let Ok(gone) = Bell::new().map(Arc::new) else {
                break;
            };
            if self.link.renew(attached.output, Arc::clone(&gone)).is_err() {
                break;
            }
            (self.input, self.gone, self.bringer) = (attached.input, gone, Some(attached.bringer));
        }
        self.link.lose(false);
        while let Ok(next) = self.nexts.try_recv() {
            if let Next::Over(late) = next {
                refuse_end(late.bringer);
            }
        }
        self.stop();
    }

    /// Hears until the connection ends.
    fn hear(&mut self) {
        loop {
            let mut input = Patient {
                input: &self.input,
                gone: &self.gone,
            };
            match frame::read::<ToAgent>(&mut input) {
                Ok(Some(Frame::Message(ToAgent::Alive))) => {}
                Ok(Some(Frame::Message(ToAgent::Stop))) => self.stop(),
                Ok(Some(Frame::Message(ToAgent::Answer(answer)))) => {
                    let _ = self.answers.send(*answer);
                }
                // Who does not keep to the protocol is not waited for.
                Ok(Some(_)) => {
                    self.takeover = None;
                    return;
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop();
        }
    }
}

/// A stream of which something must come now and then.
struct Patient<'a> {
    input: &'a File,
    /// Ends what is waited for.
    gone: &'a Bell,
}

impl Read for Patient<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut waits = [
            PollFd::new(self.input, PollFlags::IN),
            PollFd::new(self.gone, PollFlags::IN),
        ];
        let limit = Timespec::try_from(SILENT_MAX).map_err(io::Error::other)?;
        match poll(&mut waits, Some(&limit)) {
            Ok(0) => Err(io::Error::new(
                ErrorKind::TimedOut,
                format!("nothing was heard for {} s", SILENT_MAX.as_secs()),
            )),
            Ok(_) if !waits[1].revents().is_empty() => Err(ErrorKind::ConnectionAborted.into()),
            Ok(_) => self.input.read(bytes),
            Err(Errno::INTR) => Err(ErrorKind::Interrupted.into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Sends what the command prints until it is `done` and all of it is sent. What it has left running
/// may hold its streams open: that is not waited for.
fn pump(printed: &[File; 2], link: &Link, done: &Bell) {
    for file in printed {
        if set_nonblocking(file).is_err() {
            return;
        }
    }
    let (mut is_done, mut last_reads) = (false, 0);
    let mut bytes = vec![0; PRINTED_AT_ONCE];
    loop {
        let mut is_empty = true;
        for (file, is_data) in printed.iter().zip([true, false]) {
            match rustix::io::read(file, &mut bytes) {
                Ok(0) => {}
                Ok(read) => {
                    is_empty = false;
                    link.print(is_data, &bytes[..read]);
                }
                Err(Errno::INTR) => is_empty = false,
                Err(_) => {}
            }
        }
        last_reads += u32::from(is_done);
        if !is_empty && last_reads < LAST_READS_MAX {
            continue;
        }
        if is_done {
            return;
        }
        let mut waits = [
            PollFd::new(&printed[0], PollFlags::IN),
            PollFd::new(&printed[1], PollFlags::IN),
            PollFd::new(done, PollFlags::IN),
        ];
        if !matches!(poll(&mut waits, None), Ok(_) | Err(Errno::INTR)) {
            return;
        }
        is_done = !waits[2].revents().is_empty();
    }
}
