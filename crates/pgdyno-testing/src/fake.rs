//! A server that only looks like one: it starts a session, answers requests from fixed bytes, and
//! can misbehave.

use postgres::Config;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// AuthenticationOk and ReadyForQuery.
pub const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
/// BindComplete, a row of one column, CommandComplete, ReadyForQuery.
pub const REPLY: &[u8] = b"2\0\0\0\x04D\0\0\0\x0e\0\x01\0\0\0\x04\0\0\0\x07C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

/// Answers requests of one connection, whose number is passed to it, until it returns.
pub type Answer = dyn Fn(&mut TcpStream, u32) + Send + Sync;

/// One on a port of its own, for as long as this is there.
pub struct FakeServer {
    port: u16,
    end: Arc<AtomicBool>,
}

impl FakeServer {
    /// Starts one; after the start-up of each connection `answer` has it.
    pub fn start(answer: Box<Answer>) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let end = Arc::new(AtomicBool::new(false));
        let answer: Arc<Answer> = Arc::from(answer);
        let ended = Arc::clone(&end);
        thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let (answer, mut stream) = (Arc::clone(&answer), stream.expect("a connection"));
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    if welcome(&mut stream).is_ok() {
                        answer(&mut stream, number);
                    }
                });
            }
        });
        FakeServer { port, end }
    }

    /// How it is reached.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user("nobody")
            .connect_timeout(Duration::from_secs(60));
        config
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// The start-up packet, answered; and the request that prepares nothing but ends in a Sync, where
/// one comes.
fn welcome(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut rest)?;
    stream.write_all(WELCOME)
}

/// Answers each request with `reply`, without allocating.
pub fn answer_all(stream: &mut TcpStream, reply: &[u8]) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        // A request of the extended protocol ends with a Sync; these are short enough to come
        // whole.
        if buffer[..read].ends_with(b"S\0\0\0\x04") && stream.write_all(reply).is_err() {
            return;
        }
    }
}
