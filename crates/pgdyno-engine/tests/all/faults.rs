//! Servers that misbehave: each is a counted error, never a panic, never a hang; and the load goes
//! on with a new connection.

use crate::{ENGINES, echo, endpoint, plan};
use pgdyno_engine::{Engine, LoadResult, Plan, run};
use pgdyno_testing::fake::{Answer, FakeServer, REPLY, answer_all};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// Transactions of each client: the one that is spoiled, and those that show that the load goes on.
const TRANSACTIONS: u64 = 5;

/// Transactions of each client end the load, however long they take on a busy machine.
fn counted(engine: Engine, clients: u32) -> Plan {
    Plan {
        measure: Duration::from_secs(600),
        transactions: Some(TRANSACTIONS),
        ..plan(engine, clients)
    }
}

fn load(plan: &Plan, answer: Box<Answer>) -> LoadResult {
    let server = FakeServer::start(answer);
    run(
        &[endpoint(&server)],
        plan,
        &echo(),
        &AtomicBool::new(false),
        &mut |_| (),
    )
    .expect("a load")
}

/// Answers the first request of the first connections with `bytes` and closes; later ones as it
/// should be.
fn spoil(stream: &mut TcpStream, number: u32, clients: u32, bytes: &[u8]) {
    if number >= clients {
        return answer_all(stream, REPLY);
    }
    let mut buffer = [0; 4096];
    if let Ok(1..) = stream.read(&mut buffer) {
        let _ = stream.write_all(bytes);
    }
}

#[test]
fn whatever_a_server_sends_is_counted_and_the_load_goes_on() {
    // (what it sends, the code in the books)
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "08P01"),
        (b"D\x7f\xff\xff\xff".to_vec(), "08P01"),
        (b"Z\0\0\0\x05T".to_vec(), "08P01"),
        (b"E\0\0\0\x0cC57P01\0\0".to_vec(), "57P01"),
        (b"E\0\0\0\x05\0".to_vec(), "?????"),
    ];
    // Closed at any byte of a reply.
    cases.extend((0..REPLY.len()).map(|cut| (REPLY[..cut].to_vec(), "08006")));
    thread::scope(|scope| {
        for (engine, clients) in ENGINES {
            for (bytes, code) in cases.clone() {
                scope.spawn(move || {
                    let sent = bytes.clone();
                    let answer = move |stream: &mut TcpStream, number| spoil(stream, number, clients, &sent);
                    let result = load(&counted(engine, clients), Box::new(answer));
                    let books = &result.measured;
                    let name = format!(
                        "{engine:?} {:?}: {} of {} failed by {:?}",
                        String::from_utf8_lossy(&bytes),
                        books.failed,
                        books.all,
                        books.errors()
                    );
                    assert!(books.add_up() && result.whole.add_up(), "{name}");
                    assert_eq!(books.failed, u64::from(clients), "{name}");
                    assert_eq!(books.errors()[0].sqlstate, code, "{name}");
                    let rest = u64::from(clients) * (TRANSACTIONS - 1);
                    assert_eq!(books.committed, rest, "it did not go on: {name}");
                    assert_eq!(result.sessions, 2 * clients, "{name}");
                    assert_eq!(result.lost.map(|lost| lost.1), Some(clients), "{name}");
                });
            }
        }
    });
}

#[test]
fn a_server_that_falls_silent_is_waited_for_and_left_at_the_end() {
    thread::scope(|scope| {
        for (engine, clients) in ENGINES {
            scope.spawn(move || {
                let silent = |stream: &mut TcpStream, _| {
                    let mut buffer = [0; 4096];
                    while let Ok(1..) = stream.read(&mut buffer) {}
                };
                // Time for every client to begin, on a machine that has other things to do too.
                let timed = Plan {
                    measure: Duration::from_secs(5),
                    ..plan(engine, clients)
                };
                let result = load(&timed, Box::new(silent));
                let clients = u64::from(clients);
                assert_eq!((result.measured.all, result.whole.all), (clients, clients));
                assert_eq!(
                    (result.measured.skipped, result.in_flight_at_end),
                    (clients, clients)
                );
            });
        }
    });
}

#[test]
fn the_first_error_of_each_sqlstate_is_kept_with_its_message_and_place() {
    let refuse = |stream: &mut TcpStream, _| {
        let mut buffer = [0; 4096];
        let mut number = 0;
        while let Ok(1..) = stream.read(&mut buffer) {
            number += 1;
            let code = if number % 2 == 1 { "42P01" } else { "23505" };
            let fields =
                format!("SERROR\0VERROR\0C{code}\0Mwords {number}\0Dmore\0qALTER ROLE x PASSWORD 'p'\0\0");
            let length = u32::try_from(fields.len() + 4).expect("short");
            let error = [
                b"E",
                &length.to_be_bytes()[..],
                fields.as_bytes(),
                b"Z\0\0\0\x05I",
            ]
            .concat();
            if stream.write_all(&error).is_err() {
                return;
            }
        }
    };
    for (engine, clients) in ENGINES {
        let result = load(&counted(engine, clients), Box::new(refuse));
        assert_eq!(result.measured.committed, 0, "{engine:?}");
        assert_eq!(result.first_errors.len(), 2, "{:?}", result.first_errors);
        let first = result.first_error("42P01").expect("kept");
        assert_eq!(first.message, "words 1; more", "{engine:?}");
        assert_eq!(
            result.first_error("23505").expect("kept").message,
            "words 2; more"
        );
        assert!(!first.place.is_empty());
        let why = result.why_nothing().expect("a reason");
        assert!(why.starts_with("words 1; more (SQLSTATE 42P01, "), "{why}");
    }
}

#[test]
fn several_servers_get_the_whole_load_each_and_are_counted_apart() {
    for (engine, clients) in ENGINES {
        let good = FakeServer::start(Box::new(|stream: &mut TcpStream, _| answer_all(stream, REPLY)));
        let bad = FakeServer::start(Box::new(move |stream: &mut TcpStream, number| {
            spoil(stream, number, clients, b"E\0\0\0\x0cC57P01\0\0");
        }));
        let result = run(
            &[endpoint(&good), endpoint(&bad)],
            &counted(engine, clients),
            &echo(),
            &AtomicBool::new(false),
            &mut |_| (),
        )
        .expect("a load");
        let (each, failed) = (u64::from(clients) * TRANSACTIONS, u64::from(clients));
        let committed = [0, 1].map(|server| result.share(server).committed);
        assert_eq!(committed, [each, each - failed], "{engine:?}");
        assert_eq!(result.measured.committed, 2 * each - failed, "{engine:?}");
        let sessions = [0, 1].map(|server| result.share(server).sessions);
        assert_eq!(sessions[0], clients, "{engine:?}");
        assert_eq!(result.sessions, sessions[0] + sessions[1], "{engine:?}");
        let commits = [0, 1].map(|server| result.share(server).server_commits);
        assert_eq!(result.whole.server_commits, commits[0] + commits[1], "{engine:?}");
    }
}
