//! New connections for lost ones, made beside the load with a growing pause between attempts.

use crate::connection::{self, Connection};
use crate::endpoint::Endpoint;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const PAUSE_LEAST: Duration = Duration::from_millis(50);
const PAUSE_MOST: Duration = Duration::from_secs(2);

/// A client's number and its new connection.
type Made = (u32, Connection);

/// Asks a thread of its own for connections; it exists once the first one is lost.
pub(crate) struct Reconnector {
    endpoint: Endpoint,
    prepare: Option<Vec<u8>>,
    thread: Option<(Sender<u32>, Receiver<Made>)>,
}

impl Reconnector {
    pub(crate) fn new(endpoint: Endpoint, prepare: Option<&[u8]>) -> Reconnector {
        Reconnector {
            endpoint,
            prepare: prepare.map(<[u8]>::to_vec),
            thread: None,
        }
    }

    /// Asks for a connection of client `number`.
    pub(crate) fn ask_for(&mut self, number: u32) {
        let (wanted, _) = self.thread.get_or_insert_with(|| {
            let (wanted, wants) = channel();
            let (made, makes) = channel();
            let (endpoint, prepare) = (self.endpoint.clone(), self.prepare.clone());
            // It ends when nobody listens any more; where there is no thread to be had, nobody
            // reconnects.
            let _ = thread::Builder::new()
                .name("reconnect".into())
                .spawn(move || connect_all(&endpoint, prepare.as_deref(), &wants, &made));
            (wanted, makes)
        });
        let _ = wanted.send(number);
    }

    /// Takes a connection that has been made, if there is one.
    pub(crate) fn take(&self) -> Option<Made> {
        self.thread.as_ref()?.1.try_recv().ok()
    }

    /// One that comes within `limit`.
    pub(crate) fn take_within(&self, limit: Duration) -> Option<Made> {
        self.thread.as_ref()?.1.recv_timeout(limit).ok()
    }
}

fn connect_all(endpoint: &Endpoint, prepare: Option<&[u8]>, wants: &Receiver<u32>, made: &Sender<Made>) {
    let mut waiting: Vec<u32> = Vec::new();
    let mut pause = PAUSE_LEAST;
    let mut since: Option<Instant> = None;
    loop {
        let next = if waiting.is_empty() {
            since = None;
            wants.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            // Those that come meanwhile do not put it off.
            let since = since.get_or_insert_with(Instant::now);
            wants.recv_timeout(pause.saturating_sub(since.elapsed()))
        };
        match next {
            Ok(number) => {
                waiting.push(number);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => since = None,
        }
        while let Some(&number) = waiting.last() {
            match connection::connect(endpoint, prepare) {
                Ok(connection) => {
                    waiting.pop();
                    pause = PAUSE_LEAST;
                    if made.send((number, connection)).is_err() {
                        return;
                    }
                }
                Err(_) => {
                    pause = (pause * 2).min(PAUSE_MOST);
                    break;
                }
            }
        }
    }
}
