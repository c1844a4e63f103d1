//! Moves the bytes of a drive with epoll over non-blocking sockets.

use crate::connection::{Socket, Sockets};
use crate::drive::{Drive, Pause, SECOND_NS, Step};
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;

const EVENTS_PER_WAIT: usize = 256;
/// A reply of a workload is mostly far below this; longer ones are read in pieces.
const READ_BUFFER_BYTES: usize = 16 * 1024;

struct Connection {
    socket: Socket,
    /// Bytes of the request at hand that the socket has not taken yet, from its end.
    unsent: usize,
}

/// Reported once for each arrival: a socket that is reported as long as something is in it is
/// checked once more by the next wait.
const EDGES: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);
/// Nothing comes after what is there.
const ENDS: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

/// The key of the timer among the clients' numbers.
const TIMER: u64 = u64::MAX;

pub(crate) struct Epoll {
    queue: OwnedFd,
    /// Ends a wait. A timeout would be set up and taken down by the kernel for each of them, and
    /// before 5.11 it is counted in milliseconds, which is too coarse for arrivals.
    timer: OwnedFd,
    /// When the timer goes off next, or went off last, by the load's clock.
    armed_ns: u64,
    connections: Vec<Option<Connection>>,
    buffer: Vec<u8>,
}

impl Epoll {
    pub(crate) fn new(sockets: Vec<Socket>) -> io::Result<Epoll> {
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let key = epoll::EventData::new_u64(TIMER);
        epoll::add(&queue, &timer, key, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        let mut this = Epoll {
            queue,
            timer,
            armed_ns: 0,
            connections: Vec::new(),
            buffer: vec![0; READ_BUFFER_BYTES],
        };
        this.connections.resize_with(sockets.len(), || None);
        for (client, socket) in sockets.into_iter().enumerate() {
            this.attach(client, socket)?;
        }
        Ok(this)
    }

    fn attach(&mut self, client: usize, socket: Socket) -> io::Result<()> {
        let key = epoll::EventData::new_u64(client as u64);
        epoll::add(&self.queue, &socket, key, EDGES)?;
        self.connections[client] = Some(Connection { socket, unsent: 0 });
        Ok(())
    }

    /// Runs the drive to its end and returns the sockets.
    pub(crate) fn run(mut self, drive: &mut Drive<'_>) -> Sockets {
        let empty = epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        };
        let mut events = [empty; EVENTS_PER_WAIT];
        let began_ns = drive.began_ns();
        while let Step::Wait(pause) = drive.step() {
            while let Some((client, socket)) = drive.new_connection() {
                match self.attach(client as usize, socket) {
                    Ok(()) => drive.revive(client),
                    Err(_) => drive.refused(client),
                }
            }
            self.send_all(drive);
            let timeout = self.timeout(pause, began_ns);
            let Ok(count) = epoll::wait(&self.queue, &mut events[..], timeout.as_ref()) else {
                continue;
            };
            for event in &events[..count] {
                // The kernel's structure is packed: its fields are copied out, not borrowed.
                let (flags, data) = (event.flags, event.data);
                let Ok(client) = u32::try_from(data.u64()) else {
                    continue;
                };
                if flags.contains(epoll::EventFlags::OUT) {
                    self.send(drive, client);
                }
                self.receive(drive, client, flags.intersects(ENDS));
                self.send_all(drive);
            }
        }
        let sockets = self.connections.into_iter().map(|c| Some(c?.socket));
        (0..)
            .zip(sockets)
            .filter_map(|(client, socket)| Some((client, socket?)))
            .collect()
    }

    /// How long to wait: until the timer goes off, which may be before the pause is over, for it is
    /// set again only where it would go off too late.
    fn timeout(&mut self, pause: Pause, began_ns: u64) -> Option<Timespec> {
        let time = |ns: u64| Timespec {
            tv_sec: (ns / SECOND_NS).cast_signed(),
            tv_nsec: (ns % SECOND_NS).cast_signed(),
        };
        if pause.ns() == 0 {
            return Some(time(0));
        }
        if pause.ends_by(self.armed_ns) {
            return None;
        }
        let once = Itimerspec {
            it_interval: time(0),
            it_value: time(began_ns + pause.until_ns),
        };
        match timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once) {
            Ok(_) => {
                self.armed_ns = pause.until_ns;
                None
            }
            Err(_) => Some(time(pause.ns())),
        }
    }

    fn send_all(&mut self, drive: &mut Drive<'_>) {
        while let Some(client) = drive.next_to_send() {
            if let Some(connection) = &mut self.connections[client as usize] {
                connection.unsent = drive.request(client).len();
            }
            self.send(drive, client);
        }
    }

    fn send(&mut self, drive: &mut Drive<'_>, client: u32) {
        let Some(connection) = &mut self.connections[client as usize] else {
            return;
        };
        let request = drive.request(client);
        let had_to_wait = connection.unsent < request.len();
        while connection.unsent > 0 {
            let rest = &request[request.len() - connection.unsent..];
            match send(
                &connection.socket,
                rest,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            ) {
                Ok(sent) => connection.unsent -= sent,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return self.lose(drive, client, error.into()),
            }
        }
        let has_to_wait = connection.unsent > 0;
        if has_to_wait || had_to_wait {
            let mut flags = EDGES;
            flags.set(epoll::EventFlags::OUT, has_to_wait);
            let key = epoll::EventData::new_u64(u64::from(client));
            let _ = epoll::modify(&self.queue, &connection.socket, key, flags);
        }
    }

    fn receive(&mut self, drive: &mut Drive<'_>, client: u32, has_ended: bool) {
        let Some(connection) = &self.connections[client as usize] else {
            return;
        };
        loop {
            let read = match recv(&connection.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return self.lose(drive, client, io::ErrorKind::UnexpectedEof.into()),
                Ok((_, read)) => read,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => return,
                Err(error) => return self.lose(drive, client, error.into()),
            };
            if let Err(lost) = drive.feed(client, &self.buffer[..read]) {
                self.connections[client as usize] = None;
                return drive.lose(client, lost);
            }
            // A short read has emptied the socket; epoll(7) reports what comes after it again. It
            // reports the end once.
            if read < self.buffer.len() && !has_ended {
                return;
            }
        }
    }

    fn lose(&mut self, drive: &mut Drive<'_>, client: u32, error: io::Error) {
        self.connections[client as usize] = None;
        drive.lose(client, error.into());
    }
}
