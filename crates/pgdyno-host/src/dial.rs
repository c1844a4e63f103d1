//! The way to a server: names resolved and sockets connected, within a limit and until somebody
//! stops it. Nothing else in the workspace asks for addresses of names or connects sockets.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a wait goes on until the request to stop is checked again.
const SLICE: Duration = Duration::from_millis(50);
/// Lookups of names that are under way at a time, those included that were given up: the system
/// ends them when it likes.
const LOOKUPS_MAX: usize = 8;
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 64;

static LOOKUPS: Lookups = Lookups(AtomicUsize::new(0));

/// Conditions that end a wait.
#[derive(Debug, Clone, Copy)]
pub struct Until<'a> {
    /// Instant at which it ends in any case.
    pub deadline: Instant,
    /// Ends it as soon as it is set; `None` where nothing stops it.
    pub stop: Option<&'a AtomicBool>,
}

/// The error of a wait that was stopped.
#[derive(Debug)]
struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped")
    }
}

impl std::error::Error for Stopped {}

impl Until<'_> {
    /// A wait of that length, which nothing else ends.
    pub fn after(limit: Duration) -> Until<'static> {
        Until {
            deadline: Instant::now() + limit,
            stop: None,
        }
    }

    /// Whether an error is that of a wait that was stopped.
    pub fn is_stop(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
    }

    /// What is left until the next look.
    ///
    /// # Errors
    ///
    /// `TimedOut` when the time is over, and one that [`Until::is_stop`] knows.
    pub fn slice(&self) -> io::Result<Duration> {
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(io::Error::other(Stopped));
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(match self.stop {
            Some(_) => left.min(SLICE),
            None => left,
        })
    }

    /// Waits until a socket can do one of these.
    ///
    /// # Errors
    ///
    /// As [`Until::slice`], and what the system says.
    pub fn ready(&self, socket: impl AsFd, flags: PollFlags) -> io::Result<()> {
        loop {
            let slice = Timespec::try_from(self.slice()?).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&socket, flags)], Some(&slice)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// How many lookups of names are under way.
struct Lookups(AtomicUsize);

impl Lookups {
    /// Does it on a thread aside, which is left alone when the wait is over.
    fn aside<T: Send + 'static>(
        &'static self,
        look: impl FnOnce() -> io::Result<T> + Send + 'static,
        until: Until<'_>,
    ) -> io::Result<T> {
        if self.0.fetch_add(1, Ordering::Relaxed) >= LOOKUPS_MAX {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return Err(io::Error::other(format!(
                "{LOOKUPS_MAX} lookups of names before this one have not ended yet"
            )));
        }
        let (sender, receiver) = sync_channel(1);
        let spawned = thread::Builder::new().name("lookup".into()).spawn(move || {
            let found = look();
            self.0.fetch_sub(1, Ordering::Relaxed);
            // Nobody listens where the wait is over.
            let _ = sender.send(found);
        });
        if let Err(error) = spawned {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return Err(error);
        }
        loop {
            match receiver.recv_timeout(until.slice()?) {
                Ok(found) => return found,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the lookup ended early"));
                }
            }
        }
    }
}

/// The addresses of a name; an address is its own.
///
/// # Errors
///
/// What the system says, and those of [`Until::slice`].
pub fn addresses(name: &str, port: u16, until: Until<'_>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let wanted = (name.to_owned(), port);
    let look = move || Ok(wanted.to_socket_addrs()?.take(ADDRESSES_MAX).collect());
    let found = LOOKUPS.aside(look, until);
    found.map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => io::Error::new(
            io::ErrorKind::TimedOut,
            "the lookup of the host's name did not end in time",
        ),
        _ => error,
    })
}

/// A connection to the first of these addresses that takes one. It does not block.
///
/// # Errors
///
/// That of the last address, and those of [`Until::slice`].
pub fn tcp(addresses: &[SocketAddr], until: Until<'_>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        until.slice()?;
        match tcp_to(address, until) {
            Ok(socket) => return Ok(TcpStream::from(socket)),
            Err(error) if Until::is_stop(&error) => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn tcp_to(address: &SocketAddr, until: Until<'_>) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(&socket, address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => {
            until.ready(&socket, PollFlags::OUT)?;
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// A connection to a socket's file. It does not block, nor does this: a server that takes no more
/// connections has a full queue, and an ordinary call would wait for it without a limit. `as_user`:
/// the number of another user of this host, whom the server then sees at the other end; needs root.
///
/// # Errors
///
/// The error of the system call.
pub fn unix(path: &Path, as_user: Option<u32>) -> io::Result<UnixStream> {
    let Some(uid) = as_user else {
        return own_unix(path);
    };
    // As raw system calls these are of this thread alone; the saved user is the way back.
    set_thread_res_uid(Uid::ROOT, Uid::from_raw(uid), Uid::ROOT)?;
    let connected = own_unix(path);
    if set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).is_err() {
        // It would go on as somebody else, and write files as that user.
        std::process::abort();
    }
    connected
}

fn own_unix(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// How a connection to a host that is gone is noticed; where nothing is said, within half a minute.
#[derive(Debug, Clone, Copy)]
pub struct LossLimits {
    /// Longest time that sent bytes may stay unconfirmed.
    pub user_timeout: Option<Duration>,
    /// Whether a silent host is probed.
    pub keepalives: bool,
    /// Silence after which the first probe is sent.
    pub idle: Option<Duration>,
    /// Time between two probes.
    pub interval: Option<Duration>,
    /// Number of probes without an answer after which the host is gone.
    pub retries: Option<u32>,
}

const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVES_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVES_RETRIES: u32 = 3;

impl LossLimits {
    /// From here on a connection to a host that is gone breaks.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn set(&self, stream: &TcpStream) -> io::Result<()> {
        let timeout = self.user_timeout.unwrap_or(TCP_USER_TIMEOUT);
        sockopt::set_tcp_user_timeout(stream, u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX))?;
        if self.keepalives {
            sockopt::set_socket_keepalive(stream, true)?;
            sockopt::set_tcp_keepidle(stream, self.idle.unwrap_or(KEEPALIVES_IDLE))?;
            sockopt::set_tcp_keepintvl(stream, self.interval.unwrap_or(KEEPALIVES_INTERVAL))?;
            sockopt::set_tcp_keepcnt(stream, self.retries.unwrap_or(KEEPALIVES_RETRIES))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, getsockname, socket};
    use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
    use std::sync::mpsc::channel;

    #[test]
    fn a_lookup_that_does_not_end_is_given_up_and_counted() {
        static OWN: Lookups = Lookups(AtomicUsize::new(0));
        let (endings, ended) = (channel::<()>(), channel::<()>());
        let (_end, wait) = endings;
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let stop = AtomicBool::new(true);
        for number in 0..LOOKUPS_MAX {
            let (wait, ended) = (std::sync::Arc::clone(&wait), ended.0.clone());
            let never = move || {
                let _ = wait.lock().map(|wait| wait.recv());
                let _ = ended.send(());
                Ok(())
            };
            let until = Until {
                stop: (number % 2 == 0).then_some(&stop),
                ..Until::after(Duration::from_millis(5))
            };
            let error = OWN.aside(never, until).unwrap_err();
            assert_eq!(Until::is_stop(&error), number % 2 == 0, "{error}");
            assert!(Until::is_stop(&error) || error.kind() == io::ErrorKind::TimedOut);
        }
        let more = OWN.aside(|| Ok(()), Until::after(SLICE)).unwrap_err();
        assert!(more.to_string().contains("have not ended"), "{more}");
        // What was given up ends at last, and makes room.
        drop(_end);
        for _ in 0..LOOKUPS_MAX {
            ended.1.recv().unwrap();
        }
        while OWN.0.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        OWN.aside(|| Ok(()), Until::after(Duration::from_secs(60)))
            .unwrap();
    }

    #[test]
    fn a_name_has_the_addresses_that_can_be_connected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let until = Until::after(Duration::from_secs(60));
        let found = addresses("localhost", port, until).unwrap();
        assert!(found.contains(&listener.local_addr().unwrap()), "{found:?}");
        tcp(&addresses("127.0.0.1", port, until).unwrap(), until).unwrap();
        // Bound and not listened on: nobody else can have the port meanwhile.
        let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&bound, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let deaf = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
        let refused = tcp(&[deaf], until).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_full_queue_and_a_stop_end_a_connection() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut open = Vec::new();
        let full = loop {
            match unix(&path, None) {
                Ok(stream) => open.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock, "after {}", open.len());
        let stop = AtomicBool::new(true);
        let until = Until {
            stop: Some(&stop),
            ..Until::after(Duration::from_secs(60))
        };
        let stopped = tcp(&[SocketAddr::new([127, 0, 0, 1].into(), 1)], until).unwrap_err();
        assert!(Until::is_stop(&stopped));
    }
}
