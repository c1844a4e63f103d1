//! Connections with their limits: so many at a time, none that dawdles over what it asks, and none
//! on which nothing moves.

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep};

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// At a time; the rest waits in the system's queue.
    pub(super) connections: usize,
    /// Until the head of a request is there, from the end of the one before; nobody needs a token
    /// for that long.
    pub(super) head: Duration,
    /// A connection on which nothing moves for so long is closed, whichever side is waited for.
    pub(super) silent: Duration,
}

impl Limits {
    /// A page needs a handful of connections. The longest answers are made in less than two
    /// minutes.
    pub(super) const USUAL: Limits = Limits {
        connections: 256,
        head: Duration::from_secs(20),
        silent: Duration::from_secs(120),
    };
}

/// Answers until the program ends, and then what is asked already.
pub(super) async fn serve(
    mut listener: TcpListener,
    router: Router,
    ending: watch::Receiver<bool>,
    limits: Limits,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut ended = ending.clone();
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (place, Listener::accept(&mut listener).await)
        };
        tokio::select! {
            (place, (stream, _)) = accepted => {
                let answered = converse(stream, router.clone(), ending.clone(), limits);
                connections.spawn(async move {
                    answered.await;
                    drop(place);
                });
            }
            _ = ended.changed() => break,
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn converse(stream: TcpStream, router: Router, mut ending: watch::Receiver<bool>, limits: Limits) {
    // Events are small, and wanted at once.
    let _ = stream.set_nodelay(true);
    let connection = Connection {
        stream,
        silent: limits.silent,
        silence: Box::pin(sleep(limits.silent)),
    };
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .serve_connection(TokioIo::new(connection), TowerToHyperService::new(router))
    );
    // What goes wrong on a connection is its other side's to know.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ending.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// A connection that ends when it is silent for too long.
struct Connection {
    stream: TcpStream,
    silent: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Connection {
    /// The outcome of moving bytes; trouble where none have moved for too long.
    fn timed<T>(&mut self, context: &mut Context<'_>, moved: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.silence.as_mut().reset(Instant::now() + self.silent);
            return moved;
        }
        self.silence
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.timed(context, read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, written)
    }

    /// Nothing is held back that could wait.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timed(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests;
