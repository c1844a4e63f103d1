//! Sessions with servers that misbehave, and with one that works for long.

use super::*;
use pgdyno_testing::hostile::{MODES, Mode, serve};
use postgres::Config;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// For what never comes.
const QUICK: Limits = Limits {
    question: Duration::from_millis(200),
    proof_every: Duration::from_millis(100),
    proof: Duration::from_millis(100),
    cancel: Duration::from_millis(100),
};
/// For what comes, however busy this machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn endpoint(port: u16, connect: Duration) -> Endpoint {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(port)
        .user("nobody")
        .connect_timeout(connect);
    config.into()
}

fn open_quick(port: u16) -> Result<Session, SessionError> {
    let mut session = Session::open(&endpoint(port, Duration::from_millis(500)), "test")?;
    session.limits = QUICK;
    Ok(session)
}

/// Waits for answers, and asks for a proof of work soon.
fn open_patient(port: u16) -> Session {
    let mut session = Session::open(&endpoint(port, PATIENCE), "test").unwrap();
    session.limits = Limits {
        question: PATIENCE,
        proof: PATIENCE,
        ..QUICK
    };
    session
}

#[test]
fn no_hostile_server_keeps_a_question_or_work() {
    thread::scope(|scope| {
        for mode in MODES {
            scope.spawn(move || {
                let port = serve(mode, 0);
                let is_lost = |outcome: Result<(), SessionError>| {
                    let error = outcome.expect_err(&format!("{mode:?}"));
                    assert!(matches!(error, SessionError::Lost(_)), "{mode:?}: {error}");
                    assert!(error.to_string().len() < 1000, "{mode:?}: {error}");
                };
                is_lost(open_quick(port).and_then(|mut session| session.rows("SELECT 1").map(drop)));
                is_lost(open_quick(port).and_then(|mut session| session.work("VACUUM")));
                is_lost(open_quick(port).and_then(|mut session| {
                    let mut copy = session.copy_in("COPY t FROM STDIN")?;
                    copy.send(&mut [0; 100])?;
                    copy.finish()
                }));
            });
        }
    });
}

#[test]
fn a_server_that_answers_others_with_what_nobody_asked_for_is_not_at_work() {
    let port = serve(Mode::Silent, 1);
    let mut session = open_patient(port);
    session.rows("SELECT 1").unwrap();
    let error = session.work("VACUUM").unwrap_err().to_string();
    assert!(error.contains("what nobody asked for"), "{error}");
}

#[test]
fn a_request_to_stop_ends_work_and_opening() {
    for mode in [Mode::Silent, Mode::Trickle, Mode::Mute] {
        let stop = Arc::new(AtomicBool::new(false));
        let endpoint = endpoint(serve(mode, 0), Duration::from_secs(600)).stopped_by(&stop);
        let worker = thread::spawn(move || {
            let mut session = Session::open(&endpoint, "test")?;
            session.limits = Limits {
                proof_every: Duration::from_secs(600),
                ..QUICK
            };
            session.work("VACUUM")
        });
        stop.store(true, Ordering::Relaxed);
        let error = worker.join().unwrap().unwrap_err();
        assert!(matches!(error, SessionError::Stopped), "{mode:?}: {error}");
    }
}

/// Reads a start-up packet and answers each query with a row of this value, once `ready` lets it.
fn answer(mut stream: TcpStream, value: &[u8], ready: impl Fn(&[u8])) -> io::Result<()> {
    let message = |tag: u8, body: &[u8]| {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[tag], &length[..], body].concat()
    };
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body)?;
    let end = message(b'Z', b"I");
    stream.write_all(&[message(b'R', &[0; 4]), end.clone()].concat())?;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
        stream.read_exact(&mut body)?;
        if head[0] != b'Q' {
            return Ok(());
        }
        ready(&body);
        let size = u32::try_from(value.len()).unwrap().to_be_bytes();
        let row = message(b'D', &[b"\0\x01", &size[..], value].concat());
        stream.write_all(&[row, message(b'C', b"SELECT 1\0"), end.clone()].concat())?;
    }
}

#[test]
fn work_lasts_as_long_as_another_session_hears_of_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&heard);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heard = Arc::clone(&heard);
            thread::spawn(move || {
                let _ = answer(stream, b"at work", |sql| {
                    if sql.starts_with(b"VACUUM") {
                        while heard.load(Ordering::Relaxed) < 3 {
                            thread::yield_now();
                        }
                    } else {
                        heard.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
    });
    let mut session = open_patient(port);
    session.work("VACUUM").unwrap();
    assert!(count.load(Ordering::Relaxed) >= 3);
}
