//! Moves the bytes of a single client that only ever waits for replies: send, receive, nothing else.

use crate::client::Lost;
use crate::connection::Socket;
use crate::drive::{Drive, Step};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::time::Duration;

const READ_BUFFER_BYTES: usize = 16 * 1024;
/// The clock is looked at so often where no reply comes.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs the drive to its end and gives the socket back.
pub(crate) fn run(drive: &mut Drive<'_>, socket: Socket) -> io::Result<Option<Socket>> {
    socket.set_timeout(Some(PATIENCE))?;
    let mut socket = Some(socket);
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    // Bytes of the request at hand that are still to be sent, from its end.
    let mut unsent = 0;
    while let Step::Wait(_) = drive.step() {
        let Some(connected) = &socket else {
            if let Some((client, made)) = drive.wait_for_connection(PATIENCE) {
                made.set_timeout(Some(PATIENCE))?;
                socket = Some(made);
                drive.revive(client);
            }
            continue;
        };
        if drive.next_to_send().is_some() {
            unsent = drive.request(0).len();
        }
        let moved = send_rest(drive, connected, &mut unsent).and_then(|()| match unsent {
            0 => receive(drive, connected, &mut buffer),
            _ => Ok(()),
        });
        if let Err(lost) = moved {
            (socket, unsent) = (None, 0);
            drive.lose(0, lost);
        }
    }
    Ok(socket)
}

fn send_rest(drive: &Drive<'_>, socket: &Socket, unsent: &mut usize) -> Result<(), Lost> {
    let request = drive.request(0);
    while *unsent > 0 {
        match send(socket, &request[request.len() - *unsent..], SendFlags::NOSIGNAL) {
            Ok(sent) => *unsent -= sent,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

fn receive(drive: &mut Drive<'_>, socket: &Socket, buffer: &mut [u8]) -> Result<(), Lost> {
    match recv(socket, &mut *buffer, RecvFlags::empty()) {
        Ok((_, 0)) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        Ok((_, read)) => drive.feed(0, &buffer[..read]),
        Err(Errno::INTR | Errno::AGAIN) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}
