//! Connections that take their time: the listener alone, with limits that are short. How long it
//! takes is not asserted.

use super::{Limits, serve};
use axum::Router;
use axum::routing::get;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const SOON: Duration = Duration::from_millis(50);
const NEVER: Duration = Duration::from_secs(3600);
/// More than the system keeps for a reader that does not read.
const LONG_BYTES: usize = 64 << 20;
const HEAD: &str = "Host: a\r\nConnection: close\r\n\r\n";

/// With one place alone: the first connection sends `first` and reads nothing, and the second one
/// gets its answer all the same.
fn check(limits: Limits, first: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let router = Router::new()
            .route("/long", get(|| async { "x".repeat(LONG_BYTES) }))
            .route("/short", get(|| async { "here" }));
        let (end, ending) = watch::channel(false);
        let served = tokio::spawn(serve(listener, router, ending, limits));
        let mut slow = TcpStream::connect(address).await.expect("it listens");
        slow.write_all(first.as_bytes()).await.expect("sent");
        let mut other = TcpStream::connect(address).await.expect("it listens");
        let asked = format!("GET /short HTTP/1.1\r\n{HEAD}");
        other.write_all(asked.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.ends_with("here"), "{first:?}: {answer}");
        end.send(true).expect("it serves");
        served.await.expect("it ends");
    });
}

#[test]
fn who_takes_too_long_loses_its_place() {
    let usual = Limits {
        connections: 1,
        head: NEVER,
        silent: NEVER,
    };
    let head = Limits { head: SOON, ..usual };
    let silent = Limits {
        silent: SOON,
        ..usual
    };
    check(head, "");
    check(head, "GET /short HTT");
    check(silent, "");
    check(silent, &format!("GET /long HTTP/1.1\r\n{HEAD}"));
    // Another request in the middle of which it stops.
    check(head, "GET /short HTTP/1.1\r\nHost: a\r\n\r\nGET /sh");
    assert!(Limits::USUAL.head < Limits::USUAL.silent && Limits::USUAL.connections > 1);
}
