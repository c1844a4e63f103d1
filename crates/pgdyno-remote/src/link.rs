//! An agent's way to its coordinator, over one connection after the other: what is not sent over
//! one is kept for the next.

use crate::boot::AGENT;
use crate::frame::{self, FrameError};
use crate::message::{FromAgent, Hello, SILENT_MAX};
use crate::question::{Number, Numbered, Question};
use crate::waiting::{Attached, Call, refuse_end, set_nonblocking};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{SendError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of output that are kept for the next connection.
const UNSENT_MAX: usize = 1 << 20;

/// Another connection, or none.
pub(crate) enum Next {
    Over(Attached),
    /// Nobody is to be waited for.
    EndNow,
}

/// Rings once, for all who wait for it by `poll`.
pub(crate) struct Bell(OwnedFd);

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn ring(&self) {
        // The counter is full where it has rung already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// The way to the coordinator. Nobody waits for one that is gone.
#[derive(Clone)]
pub(crate) struct Link(Arc<Shared>);

struct Shared {
    way: Mutex<Way>,
    changed: Condvar,
    /// Of the connection in use. Not within the lock, which is held by who waits for that
    /// connection to take something.
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
    pub(crate) fn new(file: File, gone: Arc<Bell>) -> io::Result<Link> {
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

    pub(crate) fn begin(&self, hello: Hello) {
        let mut way = self.way();
        way.write(&mut |output| Ok(output.write_all(format!("\n{AGENT}\n").as_bytes())?));
        way.send(&FromAgent::Hello(hello));
    }

    /// Another handle of the connection.
    pub(crate) fn file(&self) -> io::Result<File> {
        match &self.way().to {
            To::Connection(output) => output.file.try_clone(),
            To::Waiting | To::Nobody => Err(ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn send(&self, message: &FromAgent) {
        self.way().send(message);
    }

    pub(crate) fn print(&self, is_data: bool, bytes: &[u8]) {
        self.way().print(is_data, bytes);
    }

    pub(crate) fn ask(&self, question: Question) -> Result<Number, FrameError> {
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
    pub(crate) fn is_to_end(&self) -> bool {
        !self.way().waits_for_end.is_empty()
    }

    /// Says something that may be lost, without waiting for an answer.
    pub(crate) fn mention(&self, message: &FromAgent) {
        // Who holds the way waits for a connection that takes nothing.
        if let Ok(mut way) = self.0.way.try_lock() {
            way.send(message);
        }
    }

    pub(crate) fn is_answered(&self) {
        self.way().question = None;
    }

    /// The connection is gone. It is awaited again where `may_come` says so.
    pub(crate) fn lose(&self, may_come: bool) {
        self.way().to = if may_come { To::Waiting } else { To::Nobody };
        self.0.changed.notify_all();
    }

    /// Goes on over another connection, with what was not sent over the last one.
    pub(crate) fn renew(&self, file: File, gone: Arc<Bell>) -> io::Result<()> {
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
    pub(crate) fn called(&self, call: Call, next: &Sender<Next>) {
        match call {
            Call::Attach(attached) => {
                // Nobody hears any more: the command ends.
                if let Err(SendError(Next::Over(late))) = next.send(Next::Over(attached)) {
                    refuse_end(late.bringer);
                    return;
                }
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
    pub(crate) fn end(&self, code: u8) {
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
                        PollFd::new(&*self.gone, PollFlags::IN),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::io::Read;
    use std::sync::mpsc::channel;
    use std::thread;

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
        let (mut asks, asked) = call();
        link.called(Call::End(asked), &next);
        let mut byte = [0];
        assert_eq!(asks.read(&mut byte).unwrap(), 1, "it is busy");
        link.lose(true);
        let (mut asks, asked) = call();
        link.called(Call::End(asked), &next);
        assert!(link.is_to_end() && matches!(nexts.try_recv(), Ok(Next::EndNow)));
        // A connection that comes first is used.
        let (_second, input) = pipe();
        link.renew(input, bell()).unwrap();
        assert_eq!(asks.read(&mut byte).unwrap(), 1);
        assert!(!link.is_to_end());
    }
}
