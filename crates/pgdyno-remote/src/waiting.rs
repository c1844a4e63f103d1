//! Where an agent can be reached that has lost its connection: a socket in a directory that no
//! other user can enter.

use pgdyno_host::{Directory, dial, make_directory};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Digits of a token.
const TOKEN_DIGITS: usize = 16;
/// Those of them that all runs of a store have.
pub(crate) const OF_COORDINATOR: usize = 8;
/// The first byte of a call: what is wanted.
const ATTACH: u8 = b'a';
const END: u8 = b'e';
/// The answer of an agent that has a coordinator.
const BUSY: u8 = b'b';
/// Time that who calls has to say what it wants.
const CALL_MAX: Duration = Duration::from_secs(5);
/// Input and output of a connection.
const STREAMS: usize = 2;

/// Whether a token is one, and can be the name of a socket.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == TOKEN_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What an agent is called for.
pub(crate) enum Call {
    /// To go on over another connection.
    Attach(Attached),
    /// To end now; who asks waits for the end of the stream.
    End(UnixStream),
}

/// Another connection to the coordinator.
pub(crate) struct Attached {
    pub(crate) input: File,
    pub(crate) output: File,
    /// The process that has brought it ends with it.
    pub(crate) bringer: UnixStream,
}

/// The socket of one agent, removed with its value.
pub(crate) struct Place {
    directory: Directory,
    token: String,
    listener: UnixListener,
}

impl Place {
    /// Makes it.
    pub(crate) fn make(directory: &Path, token: &str) -> io::Result<Place> {
        let held = make_directory(directory, 0o700)?;
        if !held.is_private() {
            let why = format!("other users can enter {}", directory.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        Ok(Place {
            listener: UnixListener::bind(directory.join(token))?,
            directory: held,
            token: token.to_owned(),
        })
    }

    /// Another handle of the socket, to wait for calls.
    pub(crate) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It is in nobody's way: its name is never used again.
        let _ = self.directory.remove(&self.token);
    }
}

/// Waits for the next call that says what it wants.
pub(crate) fn next_call(listener: &UnixListener) -> io::Result<Call> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_read_timeout(Some(CALL_MAX))?;
                if let Ok(call) = call_of(stream) {
                    return Ok(call);
                }
            }
            // A load may have all files open that there may be; it ends.
            Err(_) => thread::park_timeout(CALL_MAX),
        }
    }
}

fn call_of(stream: UnixStream) -> io::Result<Call> {
    let (mut what, mut fds) = ([0; 1], Vec::<OwnedFd>::new());
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        &stream,
        &mut [IoSliceMut::new(&mut what)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    match (what, <[OwnedFd; STREAMS]>::try_from(fds)) {
        ([ATTACH], Ok([input, output])) => Ok(Call::Attach(Attached {
            input: input.into(),
            output: output.into(),
            bringer: stream,
        })),
        ([END], _) => Ok(Call::End(stream)),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// Refuses a call: to end, where the agent has a coordinator, or for another connection, where it
/// ends.
pub(crate) fn refuse_end(mut stream: UnixStream) {
    let _ = stream.write_all(&[BUSY]);
}

/// Hands a connection over to the agent of that token, and blocks until it is used no more. An
/// agent that ends takes none: `NotConnected`.
pub(crate) fn bring(directory: &Path, token: &str, input: &File, output: &File) -> io::Result<()> {
    let stream = dial::unix(&directory.join(token), None)?;
    let fds: [BorrowedFd<'_>; STREAMS] = [input.as_fd(), output.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(
        &stream,
        &[IoSlice::new(&[ATTACH])],
        &mut ancillary,
        SendFlags::empty(),
    )?;
    match is_at_end(&stream, None)? {
        true => Ok(()),
        false => Err(ErrorKind::NotConnected.into()),
    }
}

/// How agents that wait for another connection have taken a request to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedWaiting {
    /// Agents that have ended, and restored what they had changed.
    pub ended: usize,
    /// Agents that are still at it.
    pub lasting: usize,
}

/// Ends agents of this user that wait for another connection, in order, and waits for each for at
/// most `limit`: those whose tokens begin with `token`, which is empty for all. Those that have a
/// coordinator go on.
pub fn end_waiting(directory: &Path, token: &str, limit: Duration) -> EndedWaiting {
    let mut found = EndedWaiting::default();
    let Ok(held) = Directory::open(directory) else {
        return found;
    };
    let names = held.entries().unwrap_or_default().into_iter();
    let is_meant = |name: &str| is_token(name) && name.starts_with(token);
    for (name, _) in names.filter(|(name, _)| name.to_str().is_some_and(is_meant)) {
        let mut stream = match dial::unix(&directory.join(&name), None) {
            Ok(stream) => stream,
            Err(error) => {
                // Of one that was killed.
                if error.kind() == ErrorKind::ConnectionRefused {
                    let _ = held.remove(&name);
                }
                continue;
            }
        };
        if stream.write_all(&[END]).is_err() {
            continue;
        }
        match is_at_end(&stream, Some(limit)) {
            Ok(true) => found.ended += 1,
            // It has a coordinator.
            Ok(false) => {}
            Err(_) => found.lasting += 1,
        }
    }
    found
}

/// Whether a stream that does not block is at its end, which is waited for: the other possibility
/// is a byte.
fn is_at_end(stream: &UnixStream, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit
        .map(Timespec::try_from)
        .transpose()
        .map_err(io::Error::other)?;
    loop {
        let mut waits = [PollFd::new(stream, PollFlags::IN)];
        match poll(&mut waits, limit.as_ref()) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut byte = [0];
        match (&mut &*stream).read(&mut byte) {
            Ok(read) => return Ok(read == 0),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
            // The process was killed.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(true),
            Err(error) => return Err(error),
        }
    }
}

/// Makes writes to a stream fail where they would wait.
pub(crate) fn set_nonblocking(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn connection_is_handed_over_and_used() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("agents");
        let place = Place::make(&home, TOKEN).unwrap();
        let listener = place.listener().unwrap();
        let (mine, theirs) = UnixStream::pair().unwrap();
        let bringer = thread::spawn({
            let home = home.clone();
            move || {
                let file = File::from(OwnedFd::from(theirs));
                bring(&home, TOKEN, &file.try_clone().unwrap(), &file)
            }
        });
        let Call::Attach(mut attached) = next_call(&listener).unwrap() else {
            panic!("no connection");
        };
        (&mine).write_all(b"x").unwrap();
        let mut byte = [0];
        attached.input.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [b'x']);
        assert!(!bringer.is_finished());
        drop(attached);
        bringer.join().unwrap().unwrap();
        assert!(!is_token("../../etc/passwd") && is_token(TOKEN));
        drop(place);
        assert!(
            bring(
                &home,
                TOKEN,
                &File::open("/dev/null").unwrap(),
                &File::open("/dev/null").unwrap()
            )
            .is_err()
        );
    }

    #[test]
    fn who_waits_is_ended_and_who_has_a_coordinator_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("agents");
        let place = Place::make(&home, TOKEN).unwrap();
        let listener = place.listener().unwrap();
        let answers = thread::spawn(move || {
            for is_busy in [true, false] {
                let Call::End(stream) = next_call(&listener).unwrap() else {
                    panic!("no request to end");
                };
                match is_busy {
                    true => refuse_end(stream),
                    false => drop(stream),
                }
            }
        });
        let limit = Duration::from_secs(60);
        assert_eq!(end_waiting(&home, "", limit), EndedWaiting::default());
        // One of another store is not asked.
        assert_eq!(end_waiting(&home, "ffffffff", limit), EndedWaiting::default());
        let ended = EndedWaiting { ended: 1, lasting: 0 };
        assert_eq!(end_waiting(&home, &TOKEN[..OF_COORDINATOR], limit), ended);
        answers.join().unwrap();
        // One that was killed leaves its socket.
        let left = home.join("fedcba9876543210");
        drop(UnixListener::bind(&left).unwrap());
        drop(place);
        assert_eq!(end_waiting(&home, "", limit), EndedWaiting::default());
        assert!(!left.exists());
    }
}
