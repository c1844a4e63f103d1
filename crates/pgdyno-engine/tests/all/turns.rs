//! Servers that take turns: requests come to one of them at a time, and the books are kept apart.

use crate::{ENGINES, echo, endpoint, plan};
use pgdyno_engine::{Arrivals, Engine, Plan, run};
use pgdyno_testing::fake::{FakeServer, REPLY};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SLICE: Duration = Duration::from_millis(100);

/// A server that notes its number for each request.
fn noting(number: usize, asked: &Arc<Mutex<Vec<usize>>>) -> FakeServer {
    let asked = Arc::clone(asked);
    FakeServer::start(Box::new(move |stream: &mut TcpStream, _| {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            // What a client says last asks for nothing.
            if !buffer[..read].ends_with(b"S\0\0\0\x04") {
                return;
            }
            asked.lock().expect("a lock").push(number);
            if stream.write_all(REPLY).is_err() {
                return;
            }
        }
    }))
}

#[test]
fn requests_come_to_one_server_at_a_time_and_each_has_its_books() {
    for (engine, _) in ENGINES
        .into_iter()
        .filter(|(engine, _)| *engine != Engine::Blocking)
    {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let servers = [noting(0, &asked), noting(1, &asked), noting(2, &asked)];
        let endpoints = servers.each_ref().map(endpoint);
        let plan = Plan {
            turns: Some(SLICE),
            ..plan(engine, 2)
        };
        let stop = AtomicBool::new(false);
        let begun = Instant::now();
        let result = run(&endpoints, &plan, &echo(), &stop, &mut |_| {}).expect("a load");
        let whole_s = begun.elapsed().as_secs_f64();
        let asked = asked.lock().expect("a lock");
        let changes = asked.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // At the change of a turn, what both clients have under way may mingle with what they
        // begin. Without turns two of three requests are another server's than the one before.
        let turns = begun.elapsed().as_millis() / SLICE.as_millis() + 1;
        assert!(
            (changes as u128) < 5 * turns,
            "{engine:?}: {changes} of {} requests in {turns} turns",
            asked.len()
        );
        assert_eq!(result.turns.len(), 3);
        let mut all = 0;
        for (number, turns) in result.turns.iter().enumerate() {
            let requests = asked.iter().filter(|asked| **asked == number).count() as u64;
            assert!(turns.measured.committed > 0, "{engine:?}: {number}");
            assert_eq!(
                result.servers[number].server_commits, requests,
                "{engine:?}: {number}"
            );
            // What is under way at the end of a turn goes on beside the next one's.
            let busy_s = turns.busy_s;
            assert!(
                busy_s > 0.0 && busy_s <= 2.0 * whole_s,
                "{engine:?}: {busy_s} of {whole_s}"
            );
            all += turns.measured.committed;
        }
        assert_eq!(all, result.measured.committed);
    }
}

#[test]
fn turns_are_of_closed_loops_over_a_time() {
    let closed = Plan {
        turns: Some(SLICE),
        ..plan(Engine::Auto, 2)
    };
    assert_eq!(closed.check(), Ok(()));
    let thinking = Arrivals::Closed {
        think: Duration::from_millis(1),
    };
    for wrong in [
        Plan {
            turns: Some(Duration::from_micros(10)),
            ..closed.clone()
        },
        Plan {
            arrivals: thinking,
            ..closed.clone()
        },
        Plan {
            transactions: Some(5),
            ..closed.clone()
        },
        Plan {
            turns: Some(SLICE),
            ..plan(Engine::Blocking, 1)
        },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
}
