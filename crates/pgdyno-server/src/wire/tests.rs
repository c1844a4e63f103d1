//! Servers that do not end what they say, or say what has no place in the protocol.

use crate::series::ServerSeries;
use crate::server::Server;
use crate::{Conninfo, Session, SessionError};
use pgdyno_testing::hostile::{MODES, Mode, serve};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Far above every limit of the connections here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The limit in time: where a server says little it ends the wait, and where it floods the limit in
/// bytes comes first, however busy this machine is.
fn limit(mode: Mode) -> Duration {
    Duration::from_secs(match mode {
        Mode::Mute | Mode::Silent | Mode::Trickle => 8,
        _ => 30,
    })
}

fn conninfo(port: u16, limit: Duration) -> Conninfo {
    let limit_s = limit.as_secs();
    let text =
        format!("host=127.0.0.1 port={port} user=x dbname=x sslmode=disable connect_timeout={limit_s}");
    Conninfo::named(&text, &|_| None).unwrap()
}

/// Asks a server of every mode, all at once; each error that comes in time holds the expected text.
fn check(answers: u32, expected: fn(Mode) -> &'static str, ask: fn(&Conninfo, Duration) -> Option<String>) {
    let asked = MODES.map(|mode| {
        let (sender, receiver) = channel();
        let limit = limit(mode);
        let conninfo = conninfo(serve(mode, answers), limit);
        thread::spawn(move || sender.send(ask(&conninfo, limit)));
        (mode, receiver)
    });
    for (mode, receiver) in asked {
        let error = receiver.recv_timeout(PATIENCE);
        let error = error.unwrap_or_else(|_| panic!("{mode:?}: it hangs"));
        let error = error.unwrap_or_else(|| panic!("{mode:?}: no error"));
        assert!(error.contains(expected(mode)), "{mode:?}: {error}");
        assert!(error.len() < 2000, "{mode:?}: {} bytes", error.len());
    }
}

/// The reason with which a question to it ends.
fn reason_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Mute => "no session within 8 s",
        Mode::StartupNotices | Mode::StartupError => "it sent 1048576 bytes and no end of its answer",
        Mode::Silent => "the server said nothing for 8 s",
        Mode::CopyIn => "it sent CopyInResponse, and nothing is being copied",
        Mode::CopyData => "it sent CopyOutResponse, and nothing is being copied",
        Mode::Errors => " ErrorResponse) came from the server and no end of its answer",
        Mode::Notices | Mode::Trickle => " NoticeResponse) came from the server and no end of its answer",
        Mode::Rows | Mode::WideRows => " DataRow) came from the server and no end of its answer",
        Mode::LongRow | Mode::Announced => "it announced a DataRow message of",
        Mode::Garbage => "does not keep to PostgreSQL's protocol",
    }
}

#[test]
fn a_server_without_an_end_is_given_up_with_what_it_sent() {
    check(0, reason_of, |conninfo, _| {
        Some(Server::connect(conninfo).err()?.to_string())
    });
}

#[test]
fn one_that_floods_later_is_given_up_and_the_end_is_bounded_too() {
    let ask = |conninfo: &Conninfo, limit: Duration| {
        let mut server = match Server::enter(conninfo) {
            Ok(server) => server,
            Err(error) => return Some(error.to_string()),
        };
        let error = server
            .batch("asking for the version", &["SELECT 1"], limit)
            .err()?;
        let again = server.value("asking again", "SELECT 1").unwrap_err().to_string();
        assert!(again.contains("it was given up before"), "{again}");
        Some(error.to_string())
    };
    check(1, reason_of, ask);
}

#[test]
fn a_sampler_gives_it_up_too() {
    let expected = |mode| match mode {
        Mode::Silent => "no answer in time",
        mode => reason_of(mode),
    };
    check(0, expected, |conninfo, _| {
        Some(ServerSeries::connect(conninfo).err()?.to_string())
    });
}

#[test]
fn a_session_of_the_driver_has_the_same_limits() {
    let expected = |mode| match mode {
        Mode::Mute | Mode::StartupNotices | Mode::StartupError => reason_of(mode),
        Mode::Silent => "the server said nothing for 8 s",
        Mode::Notices | Mode::Trickle | Mode::Announced | Mode::LongRow => "no end of its answer",
        _ => "",
    };
    let ask = |conninfo: &Conninfo, limit: Duration| {
        let mut session = match Session::connect(conninfo) {
            Ok(session) => session,
            Err(error) => return Some(error.to_string()),
        };
        session.set_limit(Some(limit));
        let mut rows = 0;
        // Each row has its own limit in bytes; how many there may be is the caller's to say.
        let outcome = session.each("SELECT 1", std::iter::empty::<(i64, _)>(), |_| {
            rows += 1;
            match rows < 1000 {
                true => Ok(()),
                false => Err(SessionError::Limit("too many rows".into())),
            }
        });
        Some(outcome.err()?.to_string())
    };
    check(0, expected, ask);
}
