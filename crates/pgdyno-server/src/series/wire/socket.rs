//! A socket that waits no longer than up to an instant, for the driver that opens the session and for what comes after.

use crate::conninfo::Conninfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::Host;

/// A socket's own limit is set anew when it is off by more than this: that spares a system call for each question.
const LIMIT_SLACK: Duration = Duration::from_millis(50);

/// A socket that blocks up to an instant, once a session without TLS is open. Else it does not: TLS reads on until there
/// is nothing more.
pub(super) struct Socket {
    inner: Inner,
    pub(super) deadline: Instant,
    /// What the system was told.
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
    pub(super) fn connect(conninfo: &Conninfo, deadline: Instant) -> io::Result<Socket> {
        let inner = match (conninfo.address(), conninfo.host()) {
            (None, Host::Unix(directory)) => {
                Inner::Unix(unix(&directory.join(format!(".s.PGSQL.{}", conninfo.port())))?)
            }
            (Some(address), _) => Inner::Tcp(tcp(
                &mut [SocketAddr::new(address, conninfo.port())].into_iter(),
                deadline,
            )?),
            (None, Host::Tcp(name)) => Inner::Tcp(tcp(
                &mut (name.as_str(), conninfo.port()).to_socket_addrs()?,
                deadline,
            )?),
        };
        if let Inner::Tcp(stream) = &inner {
            let known = conninfo.config();
            stream.set_nodelay(true)?;
            if known.get_keepalives() {
                sockopt::set_socket_keepalive(stream, true)?;
                sockopt::set_tcp_keepidle(stream, known.get_keepalives_idle())?;
            }
        }
        Ok(Socket {
            inner,
            deadline,
            limit: Duration::ZERO,
            waits_for: Some(PollFlags::IN),
        })
    }

    /// From here on it blocks.
    pub(super) fn block(&mut self) -> io::Result<()> {
        self.waits_for = None;
        match &self.inner {
            Inner::Unix(stream) => stream.set_nonblocking(false),
            Inner::Tcp(stream) => stream.set_nonblocking(false),
        }
    }

    /// Waits for what it could not do.
    pub(super) fn wait(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let flags = self.waits_for.unwrap_or(PollFlags::IN);
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

    /// Tells the system how long a call may block.
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

/// A server that takes no more connections has a full queue, and an ordinary call would wait for it without a limit.
fn unix(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn tcp(addresses: &mut dyn Iterator<Item = SocketAddr>, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

// The driver's traits over plain calls.
impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let space = buffer.initialize_unfilled();
        let read = self.within(PollFlags::IN, |inner| match inner {
            Inner::Unix(stream) => stream.read(space),
            Inner::Tcp(stream) => stream.read(space),
        });
        read.map_ok(|n| buffer.advance(n))
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
