//! A dialogue with another program: lines for it, and a line back where it is asked for one.

use super::child::{Errand, ForeignError, Pipes, Process, TICK};
use super::environment::GRACE;
use super::lines::{LastLines, LineCutter};
use super::output::ForeignStream;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, write};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest line of an answer that is read; the rest is dropped.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Variables that it does not inherit: passwords of servers, which are none of its business.
const SECRET: &str = "PGPASSWORD";

/// A program that is talked to, line by line. It is ended when this is dropped, with all that it
/// has started.
pub struct Dialogue {
    program: String,
    process: Process,
    /// Its standard input.
    to: OwnedFd,
    pipes: Pipes,
    cutters: [LineCutter; 2],
    /// What it has said and nobody has heard.
    said: VecDeque<String>,
    last_lines: LastLines,
    limit: Duration,
}

impl Dialogue {
    /// Starts a program; it has so long for each answer, and for reading a line.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn begin(words: Vec<String>, limit: Duration) -> Result<Dialogue, ForeignError> {
        let errand = Errand {
            words,
            variables: vec![(SECRET.into(), None)],
            directory: None,
            limit,
            grace: GRACE,
        };
        let program = errand.program();
        let system = |source: io::Error| ForeignError::System {
            program: errand.program(),
            source,
        };
        let spawned = errand.command().stdin(std::process::Stdio::piped()).spawn();
        let mut child = spawned.map_err(|source| ForeignError::Start {
            program: program.clone(),
            source,
        })?;
        let process = Process::of(&child);
        let to = child.stdin.take().map(OwnedFd::from);
        let to = to.ok_or_else(|| system(io::ErrorKind::BrokenPipe.into()))?;
        fcntl_setfl(&to, OFlags::NONBLOCK).map_err(|error| system(error.into()))?;
        let pipes = Pipes::new(
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        );
        Ok(Dialogue {
            pipes: pipes.map_err(|error| system(error.into()))?,
            program,
            process,
            to,
            cutters: [LineCutter::of(ANSWER_BYTES_MAX), LineCutter::default()],
            said: VecDeque::new(),
            last_lines: LastLines::default(),
            limit,
        })
    }

    /// Says a line to which no answer is expected. Returns whether it was said: `stop` ends that.
    ///
    /// # Errors
    ///
    /// It has ended, or does not read.
    pub fn tell(&mut self, line: &str, stop: &AtomicBool) -> Result<bool, ForeignError> {
        let bytes = format!("{line}\n").into_bytes();
        let (mut rest, begun) = (bytes.as_slice(), Instant::now());
        while !rest.is_empty() {
            match write(&self.to, rest) {
                Ok(length) => rest = &rest[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if stop.load(Ordering::Relaxed) {
                        return Ok(false);
                    }
                    self.has_time(begun)?;
                    // One that waits for what it says to be read would not read on.
                    self.listen();
                    let room = poll(&mut [PollFd::new(&self.to, PollFlags::OUT)], Some(&TICK));
                    match room {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(self.system(error)),
                    }
                }
                Err(Errno::PIPE) => return Err(self.ended()),
                Err(error) => return Err(self.system(error)),
            }
        }
        Ok(true)
    }

    /// Its answer to a line: the next line that it says. `None` where `stop` came first.
    ///
    /// # Errors
    ///
    /// It has ended, is silent for longer than it may, or has said something before it was asked.
    pub fn ask(&mut self, line: &str, stop: &AtomicBool) -> Result<Option<String>, ForeignError> {
        self.listen();
        if let Some(line) = self.said.pop_front() {
            return Err(ForeignError::Unasked {
                program: self.program.clone(),
                line: self.last_lines.shown(&line),
            });
        }
        if !self.tell(line, stop)? {
            return Ok(None);
        }
        let begun = Instant::now();
        loop {
            self.listen();
            if let Some(line) = self.said.pop_front() {
                return Ok(Some(line));
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.has_time(begun)?;
            if !self.pipes.has(ForeignStream::Out) {
                return Err(self.ended());
            }
            if let Err(error) = self.pipes.wait(None) {
                return Err(self.system(error));
            }
        }
    }

    /// Takes in what it has said.
    fn listen(&mut self) {
        let (cutters, said, last_lines) = (&mut self.cutters, &mut self.said, &mut self.last_lines);
        self.pipes.read(1, &mut |stream, bytes| {
            let is_error = stream == ForeignStream::Err;
            cutters[usize::from(is_error)].push(bytes, &mut |line| match is_error {
                true => last_lines.keep(line),
                // A second one that nobody asked for is enough to know of.
                false if said.len() < 2 => said.push_back(line.to_owned()),
                false => {}
            });
        });
    }

    fn has_time(&mut self, since: Instant) -> Result<(), ForeignError> {
        match since.elapsed() < self.limit {
            true => Ok(()),
            false => Err(ForeignError::Silent {
                program: self.program.clone(),
                limit: self.limit,
                last_lines: std::mem::take(&mut self.last_lines).into_vec(),
            }),
        }
    }

    fn system(&self, error: Errno) -> ForeignError {
        ForeignError::System {
            program: self.program.clone(),
            source: error.into(),
        }
    }

    /// It has closed its output or its input: how it has ended.
    fn ended(&mut self) -> ForeignError {
        let exit = self.process.end(self.limit.min(GRACE));
        self.listen();
        match exit {
            Ok(exit) => ForeignError::Failed {
                program: self.program.clone(),
                exit,
                last_lines: std::mem::take(&mut self.last_lines).into_vec(),
            },
            Err(source) => ForeignError::System {
                program: self.program.clone(),
                source,
            },
        }
    }
}
