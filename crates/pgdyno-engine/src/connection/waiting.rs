//! A socket whose calls wait up to an instant, or until the request to stop: for what is asked
//! before and during a load.

use super::Socket;
use crate::endpoint::Endpoint;
use pgdyno_host::dial::{self, LossLimits, Until};
use postgres::config::Host;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The driver's own, where none is given.
const DRIVERS_KEEPALIVES_IDLE: Duration = Duration::from_hours(2);

#[derive(Debug)]
pub(super) struct Waiting {
    socket: Socket,
    pub(super) deadline: Instant,
    pub(super) stop: Option<Arc<AtomicBool>>,
}

impl Waiting {
    /// Connects to the one host and address.
    pub(super) fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<Waiting> {
        let (config, stop) = (&endpoint.config, endpoint.stop.clone());
        let deadline = Instant::now() + limit;
        let until = Until {
            deadline,
            stop: stop.as_deref(),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let socket = match (config.get_hostaddrs().first(), config.get_hosts().first()) {
            // An address goes before the name, which is for TLS then.
            (Some(&address), _) => Socket::Tcp(dial::tcp(&[SocketAddr::new(address, port)], until)?),
            (None, Some(Host::Unix(directory))) => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                Socket::Unix(dial::unix(&path, endpoint.socket_user)?)
            }
            (None, Some(Host::Tcp(host))) => {
                Socket::Tcp(dial::tcp(&dial::addresses(host.as_str(), port, until)?, until)?)
            }
            (None, None) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the connection string names no host",
                ));
            }
        };
        if let Socket::Tcp(stream) = &socket {
            let limits = LossLimits {
                user_timeout: config.get_tcp_user_timeout().copied(),
                keepalives: config.get_keepalives(),
                idle: Some(config.get_keepalives_idle()).filter(|&idle| idle != DRIVERS_KEEPALIVES_IDLE),
                interval: config.get_keepalives_interval(),
                retries: config.get_keepalives_retries(),
            };
            limits.set(stream)?;
        }
        Ok(Waiting {
            socket,
            deadline,
            stop,
        })
    }

    /// The socket for a load, whose calls block.
    pub(super) fn blocking(self) -> io::Result<Socket> {
        match &self.socket {
            Socket::Unix(stream) => stream.set_nonblocking(false)?,
            Socket::Tcp(stream) => stream.set_nonblocking(false)?,
        }
        Ok(self.socket)
    }

    /// Whether there is something to read, or the end.
    pub(super) fn is_readable(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }

    fn within<T>(
        &mut self,
        flags: PollFlags,
        mut act: impl FnMut(&mut Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        let until = Until {
            deadline: self.deadline,
            stop: self.stop.as_deref(),
        };
        loop {
            // Otherwise what never ends by itself would never be checked.
            until.slice()?;
            match act(&mut self.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    until.ready(&self.socket, flags)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.within(PollFlags::IN, |socket| socket.read(buffer))
    }
}

impl Write for Waiting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.within(PollFlags::OUT, |socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
