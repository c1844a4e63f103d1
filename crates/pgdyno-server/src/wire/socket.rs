//! A socket that waits no longer than up to an instant, for the driver that opens the session and
//! for what comes after.

use crate::conninfo::Conninfo;
use pgdyno_host::dial::{self, LossLimits, Until};
use postgres::Config;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::Host;

/// A socket's own limit is set again when it is off by more than this: that spares a system call
/// for each question.
const LIMIT_SLACK: Duration = Duration::from_millis(50);

/// The driver's own, where none is given.
const DRIVERS_KEEPALIVES_IDLE: Duration = Duration::from_hours(2);
/// An instant that no answer is waited for: a year ahead.
const NO_LIMIT: Duration = Duration::from_hours(365 * 24);

/// A socket that blocks up to an instant, once a session without TLS is open. Else it does not: TLS
/// reads on until there is nothing more.
pub(crate) struct Socket {
    inner: Inner,
    deadline: Instant,
    /// What may be received until the next [`Socket::begin`].
    bytes_max: usize,
    bytes_left: usize,
    /// The limit that the system was given.
    limit: Duration,
    /// What it waits for where it does not block; `None` where it does.
    waits_for: Option<PollFlags>,
}

enum Inner {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects to the one host and address.
    pub(crate) fn connect(conninfo: &Conninfo, deadline: Instant, bytes_max: usize) -> io::Result<Socket> {
        let until = Until { deadline, stop: None };
        let inner = match (conninfo.address(), conninfo.host()) {
            (None, Host::Unix(directory)) => {
                let path = directory.join(format!(".s.PGSQL.{}", conninfo.port()));
                Inner::Unix(dial::unix(&path, conninfo.socket_user())?)
            }
            (Some(address), _) => Inner::Tcp(dial::tcp(&[SocketAddr::new(address, conninfo.port())], until)?),
            (None, Host::Tcp(name)) => {
                let addresses = dial::addresses(name.as_str(), conninfo.port(), until)?;
                Inner::Tcp(dial::tcp(&addresses, until)?)
            }
        };
        if let Inner::Tcp(stream) = &inner {
            notice_loss(stream, conninfo.config())?;
        }
        Ok(Socket {
            inner,
            deadline,
            bytes_max,
            bytes_left: bytes_max,
            limit: Duration::ZERO,
            waits_for: Some(PollFlags::IN),
        })
    }

    /// From here on there are so much time and so many bytes.
    pub(crate) fn begin(&mut self, limit: Option<Duration>, bytes_max: usize) {
        self.deadline = Instant::now() + limit.unwrap_or(NO_LIMIT);
        (self.bytes_max, self.bytes_left) = (bytes_max, bytes_max);
    }

    /// As many bytes again.
    pub(crate) fn refill(&mut self) {
        self.bytes_left = self.bytes_max;
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline <= Instant::now()
    }

    /// What came since then.
    pub(crate) fn received_bytes(&self) -> usize {
        self.bytes_max - self.bytes_left
    }

    /// From here on it blocks.
    pub(crate) fn block(&mut self) -> io::Result<()> {
        self.waits_for = None;
        match &self.inner {
            Inner::Unix(stream) => stream.set_nonblocking(false),
            Inner::Tcp(stream) => stream.set_nonblocking(false),
        }
    }

    /// Waits for what it could not do.
    pub(crate) fn wait(&self) -> io::Result<()> {
        self.wait_for(self.waits_for.unwrap_or(PollFlags::IN))
    }

    /// Waits for what it could not do, or for bytes, for whoever reads between writes.
    pub(crate) fn wait_or_read(&self) -> io::Result<()> {
        self.wait_for(self.waits_for.unwrap_or(PollFlags::IN) | PollFlags::IN)
    }

    fn wait_for(&self, flags: PollFlags) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut fds = [match &self.inner {
            Inner::Unix(stream) => PollFd::new(stream, flags),
            Inner::Tcp(stream) => PollFd::new(stream, flags),
        }];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets how long a call may block.
    fn set_limit(&mut self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if left.abs_diff(self.limit) > LIMIT_SLACK {
            match &self.inner {
                Inner::Unix(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.set_write_timeout(Some(left))?;
                }
                Inner::Tcp(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.set_write_timeout(Some(left))?;
                }
            }
            self.limit = left;
        }
        Ok(())
    }

    /// Reads or writes, within the limit.
    fn within<T>(
        &mut self,
        flags: PollFlags,
        mut act: impl FnMut(&mut Inner) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            if let Err(error) = self.set_limit() {
                return Poll::Ready(Err(error));
            }
            match act(&mut self.inner) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.waits_for.is_none() {
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                    self.waits_for = Some(flags);
                    return Poll::Pending;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
    }
}

/// A connection to a host that is gone breaks, and does not wait for ever.
fn notice_loss(stream: &TcpStream, known: &Config) -> io::Result<()> {
    let limits = LossLimits {
        user_timeout: known.get_tcp_user_timeout().copied(),
        keepalives: known.get_keepalives(),
        idle: Some(known.get_keepalives_idle()).filter(|&idle| idle != DRIVERS_KEEPALIVES_IDLE),
        interval: known.get_keepalives_interval(),
        retries: known.get_keepalives_retries(),
    };
    limits.set(stream)
}

// The driver's traits over plain calls.
impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes_left == 0 {
            let reason = format!("it sent {} bytes and no end of its answer", self.bytes_max);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason)));
        }
        let most = buffer.remaining().min(self.bytes_left);
        let space = buffer.initialize_unfilled_to(most);
        let read = self.within(PollFlags::IN, |inner| match inner {
            Inner::Unix(stream) => stream.read(space),
            Inner::Tcp(stream) => stream.read(space),
        });
        read.map_ok(|n| {
            self.bytes_left -= n;
            buffer.advance(n);
        })
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.within(PollFlags::OUT, |inner| match inner {
            Inner::Unix(stream) => stream.write(bytes),
            Inner::Tcp(stream) => stream.write(bytes),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
