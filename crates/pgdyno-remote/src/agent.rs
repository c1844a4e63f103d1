//! The end that is on the changed host: it runs one command and sends what that prints.

use crate::boot::AGENT;
use crate::frame::{self, Frame, FrameError};
use crate::message::{FromAgent, Hello, PROTOCOL, Request, ToAgent};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
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

/// Serves one coordinator: runs its command by `run`, and ends. `stop` is called once when the coordinator asks for it or is gone; the
/// command then ends in order, and nobody hears of it in the second case.
///
/// # Errors
///
/// [`AgentError`], before the command begins.
pub fn serve(
    streams: Streams,
    hello: Hello,
    stop: impl FnOnce() + Send + 'static,
    run: impl FnOnce(&Request) -> u8,
) -> Result<u8, AgentError> {
    let Streams {
        input,
        output,
        printed,
    } = streams;
    let lost = Arc::new(Bell::new()?);
    let link = Link::new(output, Arc::clone(&lost))?;
    let version = hello.version.clone();
    link.begin(hello)?;
    let (send, requests) = channel();
    thread::Builder::new().name("agent-input".into()).spawn({
        let lost = Arc::clone(&lost);
        move || {
            let mut ears = Ears {
                input,
                send: Some(send),
                stop: Some(stop),
            };
            let why = ears.hear();
            lost.ring();
            if let Some(why) = why
                && let Some(send) = ears.send.take()
            {
                let _ = send.send(Err(why));
            }
            ears.stop();
        }
    })?;
    let request = request(&requests, &link, version)?;
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
    // A panic has been shown, through the pipes, and the coordinator hears of an end.
    let code = catch_unwind(AssertUnwindSafe(|| run(&request))).unwrap_or(OF_PANIC);
    done.ring();
    let _ = pump.join();
    drop(end);
    link.send(&FromAgent::Ended { code });
    Ok(code)
}

/// The request, if it is one of this version.
fn request(
    requests: &Receiver<Result<Request, String>>,
    link: &Link,
    version: String,
) -> Result<Request, AgentError> {
    let wrong = |why: String| {
        link.send(&FromAgent::Refused { why: why.clone() });
        Err(AgentError::Coordinator { version, why })
    };
    match requests.recv() {
        Ok(Ok(request)) if request.protocol == PROTOCOL => Ok(request),
        Ok(Ok(request)) => wrong(format!(
            "the coordinator speaks version {} of the protocol, this agent version {PROTOCOL}",
            request.protocol
        )),
        Ok(Err(why)) => wrong(why),
        Err(_) => wrong("the coordinator is gone".to_owned()),
    }
}

/// Hears what the coordinator sends.
struct Ears<S> {
    input: File,
    send: Option<Sender<Result<Request, String>>>,
    stop: Option<S>,
}

impl<S: FnOnce()> Ears<S> {
    /// Hears until the connection ends; why, where it did not end in order.
    fn hear(&mut self) -> Option<String> {
        loop {
            let mut input = Patient(&self.input);
            match frame::read::<ToAgent>(&mut input) {
                Ok(Some(Frame::Message(ToAgent::Request(request)))) => match self.send.take() {
                    Some(send) => drop(send.send(Ok(*request))),
                    None => return Some("a second request".to_owned()),
                },
                Ok(Some(Frame::Message(ToAgent::Alive))) => {}
                Ok(Some(Frame::Message(ToAgent::Stop))) => self.stop(),
                Ok(Some(Frame::Data(_) | Frame::Remark(_))) => {
                    return Some("output, which only agents send".to_owned());
                }
                Ok(None) => return Some("the connection ended".to_owned()),
                Err(error) => return Some(error.to_string()),
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
struct Patient<'a>(&'a File);

impl Read for Patient<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut waits = [PollFd::new(self.0, PollFlags::IN)];
        let limit = Timespec::try_from(SILENT_MAX).map_err(io::Error::other)?;
        match poll(&mut waits, Some(&limit)) {
            Ok(0) => Err(io::Error::new(
                ErrorKind::TimedOut,
                format!("nothing was heard for {} s", SILENT_MAX.as_secs()),
            )),
            Ok(_) => self.0.read(bytes),
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
struct Link(Arc<Mutex<Output>>);

struct Output {
    file: File,
    lost: Arc<Bell>,
    is_lost: bool,
}

impl Link {
    fn new(file: File, lost: Arc<Bell>) -> io::Result<Link> {
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        Ok(Link(Arc::new(Mutex::new(Output {
            file,
            lost,
            is_lost: false,
        }))))
    }

    fn begin(&self, hello: Hello) -> io::Result<()> {
        self.with(|output| Ok(output.write_all(format!("\n{AGENT}\n").as_bytes())?));
        self.send(&FromAgent::Hello(hello));
        Ok(())
    }

    fn send(&self, message: &FromAgent) {
        self.with(|output| frame::write_message(output, message));
    }

    /// What cannot be sent is dropped, and everything after it: the connection has ended.
    fn with(&self, act: impl FnOnce(&mut Output) -> Result<(), FrameError>) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !output.is_lost && act(&mut output).is_err() {
            output.is_lost = true;
        }
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
                        PollFd::new(&self.lost.0, PollFlags::IN),
                    ];
                    match poll(&mut waits, None) {
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
        let flags = fcntl_getfl(file).map(|flags| flags | OFlags::NONBLOCK);
        if flags.and_then(|flags| fcntl_setfl(file, flags)).is_err() {
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
                    link.with(|output| frame::write_printed(output, is_data, &bytes[..read]));
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
