//! The end that is on the changed host: it runs one command and sends what that prints.

use crate::boot::AGENT;
use crate::frame::{self, Frame, FrameError};
use crate::message::{FromAgent, Hello, PROTOCOL, Request, Takeover, Then, ToAgent};
use crate::question::{Answer, Number, Numbered, Question};
use crate::waiting::{Attached, Call, Place, bring, is_token, next_call, refuse_end, set_nonblocking};
use pgdyno_record::ProgressRecord;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid, kill_process};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two signs of life.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Time without one after which the other end is gone: a link that drops everything closes nothing.
pub(crate) const SILENT_MAX: Duration = Duration::from_secs(30);
/// Exit code of a program that panics.
const OF_PANIC: u8 = 101;
/// Reads of what is left in the pipes of a command that has ended: a process of its own may print on.
const LAST_READS_MAX: u32 = 256;
/// Bytes of output that are kept for the next connection.
const UNSENT_MAX: usize = 1 << 20;
const OUTPUT_OF_COORDINATOR: &str = "output, which only agents send";
/// Bytes that are read at once of what the command prints.
const PRINTED_AT_ONCE: usize = 64 << 10;

/// Why an agent has served nobody.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A system call failed.
    #[error("the agent's connection could not be set up")]
    Io(#[from] io::Error),
    /// The other end is no coordinator of this version.
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
    /// Uses the standard streams of this process for the connection. Everything that the process prints afterwards goes through it.
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
    link: Link,
    answers: Arc<Mutex<Receiver<Numbered<Answer>>>>,
}

impl Coordinator {
    /// Shows the coordinator how far the experiment is. Where it does not get there it is dropped.
    pub fn mention(&self, id: i64, progress: &ProgressRecord) {
        self.link.mention(&FromAgent::Progress {
            id,
            progress: Box::new(progress.clone()),
        });
    }

    /// Asks, and waits for the answer: as long as the coordinator takes, and over a lost connection for as long as the agent waits for
    /// another one. The question is answered once, however often it is sent. `None` where no answer comes any more.
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

/// Serves one coordinator: runs its command by `run`, and ends. `stop` is called once when the coordinator asks for it or is gone; the
/// command then ends in order, and nobody hears of it in the second case. `waits_in` is the directory in which agents are found that wait
/// for another connection.
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
                Err(error) => refuse(format!(
                    "no agent waits here for this coordinator any more ({error})"
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
    let coordinator = Coordinator {
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

/// Another connection, or none.
enum Next {
    Over(Attached),
    /// Nobody is to be waited for.
    EndNow,
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
            PollFd::new(&self.gone.0, PollFlags::IN),
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

/// Rings once, for all who wait for it by `poll`.
struct Bell(OwnedFd);

impl Bell {
    fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    fn ring(&self) {
        // The counter is full where it has rung already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// The way to the coordinator. Nobody waits for one that is gone.
#[derive(Clone)]
struct Link(Arc<Shared>);

struct Shared {
    way: Mutex<Way>,
    changed: Condvar,
    /// Of the connection in use. Not within the lock, which is held by who waits for that connection to take something.
    gone: Mutex<Arc<Bell>>,
}

/// What there is of a connection, and what the coordinator has not got yet.
struct Way {
    to: To,
    /// Output of the command that nobody has got.
    unsent: Vec<(bool, Vec<u8>)>,
    unsent_bytes: usize,
    /// Questions that were asked.
    asked: Number,
    /// The one that has no answer yet.
    question: Option<Vec<u8>>,
    /// Who waits for the end of this process.
    waits_for_end: Vec<UnixStream>,
}

enum To {
    Connection(Output),
    /// There is none, and there may be another.
    Waiting,
    Nobody,
}

struct Output {
    file: File,
    gone: Arc<Bell>,
}

impl Output {
    fn new(file: File, gone: Arc<Bell>) -> io::Result<Output> {
        set_nonblocking(&file)?;
        Ok(Output { file, gone })
    }
}

impl Link {
    fn new(file: File, gone: Arc<Bell>) -> io::Result<Link> {
        let way = Way {
            to: To::Connection(Output::new(file, Arc::clone(&gone))?),
            unsent: Vec::new(),
            unsent_bytes: 0,
            asked: 0,
            question: None,
            waits_for_end: Vec::new(),
        };
        Ok(Link(Arc::new(Shared {
            way: Mutex::new(way),
            changed: Condvar::new(),
            gone: Mutex::new(gone),
        })))
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.0.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, hello: Hello) {
        let mut way = self.way();
        way.write(&mut |output| Ok(output.write_all(format!("\n{AGENT}\n").as_bytes())?));
        way.send(&FromAgent::Hello(hello));
    }

    /// Another handle of the connection.
    fn file(&self) -> io::Result<File> {
        match &self.way().to {
            To::Connection(output) => output.file.try_clone(),
            To::Waiting | To::Nobody => Err(ErrorKind::NotConnected.into()),
        }
    }

    fn send(&self, message: &FromAgent) {
        self.way().send(message);
    }

    fn print(&self, is_data: bool, bytes: &[u8]) {
        self.way().print(is_data, bytes);
    }

    fn ask(&self, question: Question) -> Result<Number, FrameError> {
        let mut way = self.way();
        let number = way.asked + 1;
        let question = FromAgent::Question(Box::new(Numbered {
            number,
            content: question,
        }));
        let mut bytes = Vec::new();
        frame::write_message(&mut bytes, &question)?;
        way.asked = number;
        way.write(&mut |output| Ok(output.write_all(&bytes)?));
        way.question = Some(bytes);
        Ok(number)
    }

    /// Whether somebody waits for the end of this process.
    fn is_to_end(&self) -> bool {
        !self.way().waits_for_end.is_empty()
    }

    /// Says something that may be lost, without waiting for an answer.
    fn mention(&self, message: &FromAgent) {
        // Who holds the way waits for a connection that takes nothing.
        if let Ok(mut way) = self.0.way.try_lock() {
            way.send(message);
        }
    }

    fn is_answered(&self) {
        self.way().question = None;
    }

    /// The connection is gone. It is awaited again where `may_come` says so.
    fn lose(&self, may_come: bool) {
        self.way().to = if may_come { To::Waiting } else { To::Nobody };
        self.0.changed.notify_all();
    }

    /// Goes on over another connection, with what was not sent over the last one.
    fn renew(&self, file: File, gone: Arc<Bell>) -> io::Result<()> {
        let output = Output::new(file, Arc::clone(&gone))?;
        *self.0.gone.lock().unwrap_or_else(PoisonError::into_inner) = gone;
        let mut way = self.way();
        way.to = To::Connection(output);
        // They have come too late.
        way.waits_for_end.drain(..).for_each(refuse_end);
        way.unsent_bytes = 0;
        for (is_data, bytes) in std::mem::take(&mut way.unsent) {
            way.print(is_data, &bytes);
        }
        if let Some(question) = way.question.take() {
            way.write(&mut |output| Ok(output.write_all(&question)?));
            way.question = Some(question);
        }
        drop(way);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Somebody calls the agent by its socket.
    fn called(&self, call: Call, next: &Sender<Next>) {
        match call {
            Call::Attach(attached) => {
                let _ = next.send(Next::Over(attached));
                // The old one may be lost, and only the coordinator may know it.
                self.0.gone.lock().unwrap_or_else(PoisonError::into_inner).ring();
            }
            // Who holds the way has a connection.
            Call::End(stream) => match self.0.way.try_lock() {
                Ok(mut way) if !matches!(way.to, To::Connection(_)) => {
                    way.waits_for_end.push(stream);
                    let _ = next.send(Next::EndNow);
                }
                _ => refuse_end(stream),
            },
        }
    }

    /// Says that the command has ended, when there is a connection to say it over.
    fn end(&self, code: u8) {
        let mut way = self.way();
        loop {
            match way.to {
                To::Connection(_) => way.send(&FromAgent::Ended { code }),
                To::Waiting => {}
                To::Nobody => return,
            }
            if matches!(way.to, To::Connection(_)) {
                return;
            }
            way = self.0.changed.wait(way).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Way {
    /// Whether it was written. What is behind a failure would be written to nobody.
    fn write(&mut self, act: &mut dyn FnMut(&mut Output) -> Result<(), FrameError>) -> bool {
        let To::Connection(output) = &mut self.to else {
            return false;
        };
        let is_written = act(output).is_ok();
        if !is_written {
            // The thread that hears decides what comes then.
            output.gone.ring();
            self.to = To::Waiting;
        }
        is_written
    }

    fn send(&mut self, message: &FromAgent) {
        self.write(&mut |output| frame::write_message(output, message));
    }

    fn print(&mut self, is_data: bool, bytes: &[u8]) {
        if self.write(&mut |output| frame::write_printed(output, is_data, bytes))
            || matches!(self.to, To::Nobody)
            || self.unsent_bytes + bytes.len() > UNSENT_MAX
        {
            return;
        }
        self.unsent_bytes += bytes.len();
        self.unsent.push((is_data, bytes.to_vec()));
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(&self.file, bytes) {
                Ok(written) => return Ok(written),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let mut waits = [
                        PollFd::new(&self.file, PollFlags::OUT),
                        PollFd::new(&self.gone.0, PollFlags::IN),
                    ];
                    let limit = Timespec::try_from(SILENT_MAX).map_err(io::Error::other)?;
                    match poll(&mut waits, Some(&limit)) {
                        Ok(0) => return Err(ErrorKind::TimedOut.into()),
                        Ok(_) if !waits[1].revents().is_empty() => return Err(ErrorKind::BrokenPipe.into()),
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends what the command prints until it is `done` and all of it is sent. What it has left running may hold its streams open: that is not
/// waited for.
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
            PollFd::from_borrowed_fd(done.0.as_fd(), PollFlags::IN),
        ];
        if !matches!(poll(&mut waits, None), Ok(_) | Err(Errno::INTR)) {
            return;
        }
        is_done = !waits[2].revents().is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> (File, File) {
        let (output, input) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        (output.into(), input.into())
    }

    fn bell() -> Arc<Bell> {
        Arc::new(Bell::new().unwrap())
    }

    fn next(from: &mut File) -> Frame<FromAgent> {
        frame::read(from).unwrap().unwrap()
    }

    fn is_question(frame: &Frame<FromAgent>, number: Number) -> bool {
        matches!(frame, Frame::Message(FromAgent::Question(question)) if question.number == number)
    }

    #[test]
    fn next_connection_gets_what_the_last_one_did_not() {
        let (mut first, input) = pipe();
        let link = Link::new(input, bell()).unwrap();
        link.print(true, b"a");
        assert_eq!(link.ask(Question::Keep).unwrap(), 1);
        assert_eq!(next(&mut first), Frame::Data(b"a".to_vec()));
        assert!(is_question(&next(&mut first), 1));
        // Nobody reads it any more.
        drop(first);
        link.print(false, b"b");
        link.lose(true);
        link.send(&FromAgent::Alive);
        let (mut second, input) = pipe();
        link.renew(input, bell()).unwrap();
        assert_eq!(next(&mut second), Frame::Remark(b"b".to_vec()));
        assert!(is_question(&next(&mut second), 1));
        link.is_answered();
        // An answered question is not asked again.
        link.lose(true);
        let (mut third, input) = pipe();
        link.renew(input, bell()).unwrap();
        assert_eq!(link.ask(Question::Keep).unwrap(), 2);
        assert!(is_question(&next(&mut third), 2));
        link.end(3);
        assert_eq!(next(&mut third), Frame::Message(FromAgent::Ended { code: 3 }));
    }

    #[test]
    fn end_is_said_over_the_next_connection_or_to_nobody() {
        let (first, input) = pipe();
        let link = Link::new(input, bell()).unwrap();
        drop(first);
        link.lose(true);
        let says = thread::spawn({
            let link = link.clone();
            move || link.end(0)
        });
        let (mut second, input) = pipe();
        link.renew(input, bell()).unwrap();
        says.join().unwrap();
        assert_eq!(next(&mut second), Frame::Message(FromAgent::Ended { code: 0 }));
        link.lose(false);
        link.end(0);
        assert!(frame::read::<FromAgent>(&mut second).unwrap().is_none());
    }

    #[test]
    fn who_asks_for_an_end_gets_it_while_there_is_no_connection() {
        let (_first, input) = pipe();
        let link = Link::new(input, bell()).unwrap();
        let (next, nexts) = channel();
        let call = || UnixStream::pair().unwrap();
        let (mut asks, told) = call();
        link.called(Call::End(told), &next);
        let mut byte = [0];
        assert_eq!(asks.read(&mut byte).unwrap(), 1, "it is busy");
        link.lose(true);
        let (mut asks, told) = call();
        link.called(Call::End(told), &next);
        assert!(link.is_to_end() && matches!(nexts.try_recv(), Ok(Next::EndNow)));
        // A connection that comes first is used.
        let (_second, input) = pipe();
        link.renew(input, bell()).unwrap();
        assert_eq!(asks.read(&mut byte).unwrap(), 1);
        assert!(!link.is_to_end());
    }
}
