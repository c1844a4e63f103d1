//! What servers send.

use super::input::{choice, halves};
use pgdyno_engine::{Endpoint, Event, Malformed, Scanner};
use pgdyno_server::postgres::Config;
use pgdyno_server::{Conninfo, Server, server_facts};
use pgdyno_workload::{Dataset, shape_of};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

fn scan(pieces: &[&[u8]]) -> (Vec<Event>, Vec<u8>, Option<Malformed>) {
    let mut scanner = Scanner::default();
    scanner.keep_rows(true);
    let mut events = Vec::new();
    for piece in pieces {
        if let Err(error) = scanner.feed(piece, |event| events.push(event)) {
            return (events, Vec::new(), Some(error));
        }
    }
    (events, scanner.rows().to_vec(), None)
}

/// Replies to a load: any bytes, cut at any place, are events or an error, the same as in one
/// piece; and rows are read of what is kept.
pub(super) fn replies(bytes: &[u8]) {
    let (cut, bytes) = choice(bytes);
    let cut = usize::from(cut) % (bytes.len() + 1);
    let whole = scan(&[bytes]);
    assert_eq!(whole, scan(&[&bytes[..cut], &bytes[cut..]]));
    pgdyno_engine::fuzzed::kept_reply(&whole.1);
    pgdyno_engine::fuzzed::kept_reply(bytes);
}

/// What a host over ssh sends to a coordinator, and what a coordinator sends to an agent.
pub(super) fn agent_frames(bytes: &[u8]) {
    pgdyno_remote::fuzzed::from_host(bytes);
    pgdyno_remote::fuzzed::from_either(bytes);
}

/// What a host over ssh sends to the live view, and what that sends to it.
pub(super) fn watched(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (source, mut relay) = pgdyno_watch::Source::elsewhere(Duration::from_secs(1), "ssh:x".to_owned());
    let _ = source.take_order(text);
    let _ = relay.take(text);
    let mut model = pgdyno_watch::Model::new(std::time::Instant::now());
    while source.begin(&mut model, Duration::ZERO) {}
}

/// What a server says: to the first packet, and to each of the next.
struct Said {
    first: Vec<u8>,
    rest: Vec<u8>,
}

/// Facts are asked in fewer round trips, and a server that answers everything must end some time.
const PACKETS_MAX: u32 = 200;

/// Who sends nothing for so long waits for more, which is not to come: what it waits for itself is
/// minutes.
const SILENCE: Duration = Duration::from_millis(20);

/// A server on a port of its own that speaks to as many connections as it is told what to say, and
/// to all others as to the last.
struct Speaker {
    port: u16,
    said: Mutex<Sender<Said>>,
}

impl Speaker {
    fn new() -> Speaker {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (said, told) = channel::<Said>();
        thread::spawn(move || {
            let mut last = Said {
                first: Vec::new(),
                rest: Vec::new(),
            };
            for stream in listener.incoming().flatten() {
                if let Some(newest) = told.try_iter().last() {
                    last = newest;
                }
                talk(stream, &last);
            }
        });
        Speaker {
            port,
            said: Mutex::new(said),
        }
    }

    /// Says what the bytes choose: anything from the start; behind a good start anything, an
    /// error's fields, or a text as the answer to all.
    fn says(&self, bytes: &[u8]) -> Config {
        let (which, bytes) = choice(bytes);
        let start = [
            message(b'R', &[0; 4]),
            message(b'S', b"server_version\x0018.0\0"),
            message(b'K', &[0; 8]),
            message(b'Z', b"I"),
        ]
        .concat();
        let (first, rest) = match which % 4 {
            0 => {
                let (first, rest) = halves(bytes);
                (first.to_vec(), rest.to_vec())
            }
            1 => (start, bytes.to_vec()),
            2 => (start, [message(b'E', bytes), message(b'Z', b"I")].concat()),
            _ => (start, answer(bytes)),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.send(Said { first, rest }).expect("it listens");
        let text = format!(
            "host=127.0.0.1 port={} user=x password=y dbname=x sslmode=disable connect_timeout=2",
            self.port
        );
        text.parse().expect("a connection string")
    }
}

/// `None` once there is nothing more to say: the connection ends then, which ends whoever waits for
/// more.
fn talk(mut stream: TcpStream, said: &Said) -> Option<()> {
    let mut buffer = [0; 65_536];
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    if stream.read(&mut buffer).ok()? == 0 {
        return None;
    }
    stream.write_all(&said.first).ok()?;
    for _ in 0..PACKETS_MAX {
        if said.rest.is_empty() || stream.read(&mut buffer).ok()? == 0 {
            return None;
        }
        stream.write_all(&said.rest).ok()?;
    }
    None
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

/// A row of one text, with all that makes it an answer.
fn answer(value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap_or(0);
    let column = b"\0\x01v\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    let row = [b"\0\x01", &length.to_be_bytes()[..], value].concat();
    [
        message(b'1', b""),
        message(b'2', b""),
        message(b'T', column),
        message(b'D', &row),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ]
    .concat()
}

/// Answers to questions about a server, JSON in rows among them, are facts or errors.
pub(super) fn server_answers(bytes: &[u8]) {
    static SPEAKER: LazyLock<Speaker> = LazyLock::new(Speaker::new);
    let conninfo = Conninfo::from_config(SPEAKER.says(bytes));
    match Server::connect(&conninfo).and_then(|mut server| server_facts(&mut server)) {
        Ok(found) => drop(found),
        Err(error) => drop(error.to_string()),
    }
}

/// The same to what a load asks about data, over a connection of the load's.
pub(super) fn load_answers(bytes: &[u8]) {
    static SPEAKER: LazyLock<Speaker> = LazyLock::new(Speaker::new);
    let endpoint = Endpoint::new(SPEAKER.says(bytes), None);
    if let Err(error) = shape_of(&endpoint, Dataset::Pgbench) {
        drop(error.to_string());
    }
}
