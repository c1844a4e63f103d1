//! Moves the bytes of a single client that mostly waits for replies: send, receive, nothing else.
//! The connections of transactions that have their own are made here, too.

use crate::books::SqlState;
use crate::client::Lost;
use crate::connection::{self, ConnectError, Connection, Socket};
use crate::drive::{Drive, Step};
use crate::endpoint::Endpoint;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

const READ_BUFFER_BYTES: usize = 16 * 1024;
/// The clock is read so often where no reply comes.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs the drive to its end and returns the socket.
pub(crate) fn run(drive: &mut Drive<'_>, socket: Socket) -> io::Result<Option<Socket>> {
    let mut line = Line::new();
    line.attach(socket)?;
    while let Step::Wait(pause) = drive.step() {
        if line.socket.is_some() && drive.hears(0) {
            line.exchange(drive);
        } else if line.socket.is_some() {
            rest(pause.ns());
        } else if let Some((client, made)) = drive.wait_for_connection(PATIENCE) {
            line.attach(made)?;
            drive.revive(client);
        }
    }
    Ok(line.socket)
}

/// The same, with a connection of its own for each transaction.
pub(crate) fn run_connecting(
    drive: &mut Drive<'_>,
    endpoint: &Endpoint,
    prepare: Option<&[u8]>,
) -> io::Result<Option<Socket>> {
    let mut line = Line::new();
    while let Step::Wait(pause) = drive.step() {
        if drive.next_to_connect().is_some() {
            let begun = Instant::now();
            match connection::connect(endpoint, prepare) {
                Ok(Connection { socket, tls }) => {
                    line.attach(socket)?;
                    drive.connected(0, tls, begun.elapsed());
                }
                Err(error) => drive.lose(0, not_made(&error)),
            }
        } else if line.socket.is_some() && drive.hears(0) {
            line.exchange(drive);
        } else {
            rest(pause.ns());
        }
        if drive.wants_no_connection(0)
            && let Some(socket) = line.socket.take()
        {
            let message = drive.good_bye(0);
            let _ = send(&socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }
    Ok(line.socket)
}

/// Waits for an instant: nothing can come from the server.
#[expect(clippy::disallowed_methods, reason = "there is nothing else to wait for")]
fn rest(wait_ns: u64) {
    thread::sleep(Duration::from_nanos(wait_ns).min(PATIENCE));
}

fn not_made(error: &ConnectError) -> Lost {
    let code = match error {
        ConnectError::Refused { sqlstate, .. } => SqlState::from_bytes(sqlstate.as_bytes()),
        _ => SqlState::CONNECTION_FAILURE,
    };
    Lost {
        code,
        reason: error.to_string(),
    }
}

/// The client's connection, if it has one.
struct Line {
    socket: Option<Socket>,
    buffer: Vec<u8>,
    /// Bytes of the request at hand that are still to be sent, from its end.
    unsent: usize,
}

impl Line {
    fn new() -> Line {
        Line {
            socket: None,
            buffer: vec![0; READ_BUFFER_BYTES],
            unsent: 0,
        }
    }

    fn attach(&mut self, socket: Socket) -> io::Result<()> {
        socket.set_timeout(Some(PATIENCE))?;
        (self.socket, self.unsent) = (Some(socket), 0);
        Ok(())
    }

    /// Sends what is to be sent and takes in what comes.
    fn exchange(&mut self, drive: &mut Drive<'_>) {
        if drive.next_to_send().is_some() {
            self.unsent = drive.request(0).len();
        }
        let moved = self.send_rest(drive).and_then(|()| match self.unsent {
            0 => self.receive(drive, RecvFlags::empty()),
            // The server may wait for its replies to be read before it reads on.
            _ => self.receive(drive, RecvFlags::DONTWAIT),
        });
        if let Err(lost) = moved {
            self.socket = None;
            drive.lose(0, lost);
        }
    }

    fn send_rest(&mut self, drive: &Drive<'_>) -> Result<(), Lost> {
        let request = drive.request(0);
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        while self.unsent > 0 {
            match send(
                socket,
                &request[request.len() - self.unsent..],
                SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => self.unsent -= sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, drive: &mut Drive<'_>, flags: RecvFlags) -> Result<(), Lost> {
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        match recv(socket, &mut self.buffer[..], flags) {
            Ok((_, 0)) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok((_, read)) => drive.feed(0, &self.buffer[..read]),
            Err(Errno::INTR | Errno::AGAIN) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}
