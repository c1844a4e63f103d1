//! The books of a load on a server that stalls: in an open loop it is seen in the response times of
//! all that were due meanwhile, and what never found a client is counted; in a closed loop, in
//! those of the transactions that the end cuts off.

use crate::endpoint;
use crate::{echo, plan};
use pgdyno_engine::{Arrivals, Engine, Heat, Plan, Rate, Spacing, Warmup, run};
use pgdyno_testing::fake::{FakeServer, REPLY};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// These tests count what comes late: none may keep another from the processors.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the answers of all connections through, or holds them back.
#[derive(Default)]
struct Sluice(Mutex<State>, Condvar);

#[derive(Default)]
struct State {
    is_closed: bool,
    /// When the last request came.
    asked: Option<Instant>,
}

impl Sluice {
    fn set(&self, is_closed: bool) {
        self.0.lock().expect("a lock").is_closed = is_closed;
        self.1.notify_all();
    }

    fn pass(&self) {
        let mut state = self.0.lock().expect("a lock");
        state.asked = Some(Instant::now());
        drop(self.1.wait_while(state, |state| state.is_closed).expect("a lock"));
    }

    /// How long all requests so far have waited, at least.
    fn held(&self) -> Duration {
        let asked = self.0.lock().expect("a lock").asked;
        asked.map_or(Duration::ZERO, |asked| asked.elapsed())
    }
}

fn behind(sluice: &Arc<Sluice>) -> FakeServer {
    let sluice = Arc::clone(sluice);
    FakeServer::start(Box::new(move |stream: &mut TcpStream, _| {
        let mut buffer = [0; 4096];
        while let Ok(1..) = stream.read(&mut buffer) {
            sluice.pass();
            if stream.write_all(REPLY).is_err() {
                return;
            }
        }
    }))
}

fn open(engine: Engine, rate: f64, seconds: u64) -> Plan {
    Plan {
        arrivals: Arrivals::Open {
            rate: Rate::constant(rate),
            spacing: Spacing::Constant,
            batch: Duration::ZERO,
        },
        measure: Duration::from_secs(seconds),
        latency_limit: Some(Duration::from_millis(500)),
        ..plan(engine, 8)
    }
}

const RATE: f64 = 1000.0;
const SECONDS: u64 = 10;

/// Stalls for a while in the middle: whoever was due then has waited for the rest of it.
#[test]
fn a_pause_of_the_server_is_in_the_response_times_of_all_that_were_due() {
    let _alone = alone();
    thread::scope(|scope| {
        for engine in [Engine::IoUring, Engine::Epoll] {
            scope.spawn(move || {
                let sluice = Arc::new(Sluice::default());
                let server = behind(&sluice);
                let plan = open(engine, RATE, SECONDS);
                let (mut closed, mut pause_s) = (None, 0.0);
                let result = run(
                    &[endpoint(&server)],
                    &plan,
                    &echo(),
                    &AtomicBool::new(false),
                    &mut |second| match second.number {
                        4 => {
                            sluice.set(true);
                            closed = Some(Instant::now());
                        }
                        // Seconds may be reported late, and then one right after the other.
                        5.. if pause_s == 0.0 => {
                            let length_s = closed.expect("closed before").elapsed().as_secs_f64();
                            if length_s > 0.9 {
                                pause_s = length_s;
                                sluice.set(false);
                            }
                        }
                        _ => {}
                    },
                )
                .expect("a load");
                let books = &result.measured;
                assert!(books.add_up() && books.failed == 0);
                let all = RATE * SECONDS as f64;
                assert!((all - books.all as f64).abs() <= 10.0, "{}", books.all);
                // Of evenly spaced arrivals, those due in the pause waited for the rest of it: from
                // all of it down to none.
                for percentile in [99.0, 99.9] {
                    let slower = (100.0 - percentile) / 100.0 * all / RATE;
                    let expected_ms = (pause_s - slower) * 1e3;
                    let found_ms = books.percentile_ms(percentile).expect("transactions");
                    // A machine that is busy adds to the pause; nothing takes from it.
                    assert!(
                        (expected_ms * 0.95..expected_ms + 2000.0).contains(&found_ms),
                        "{engine:?} p{percentile}: {found_ms}, exact {expected_ms}"
                    );
                }
                // Half of them took longer than the limit of half a second; a machine that stalls
                // adds to them.
                let late = (pause_s - 0.5) * RATE;
                assert!(books.late as f64 > 0.9 * late - 10.0, "{} of {late}", books.late);
                let parts = books.parts.as_ref().expect("an open loop");
                assert!(parts.lag_ns.max() > 500_000_000, "most waited for a client");
                assert_eq!(parts.service_ns.len(), books.committed);
            });
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "the server's time for a statement")]
fn takes(time: Duration) {
    thread::sleep(time);
}

/// Evenly spaced arrivals wait for half of the time between two batches, in the median, though
/// replies wake the thread all the while; the schedule is kept all the same.
#[test]
fn arrivals_in_batches_are_all_there_and_their_wait_is_reported() {
    let _alone = alone();
    const BATCH: Duration = Duration::from_millis(20);
    for engine in [Engine::IoUring, Engine::Epoll] {
        let server = FakeServer::start(Box::new(|stream: &mut TcpStream, number| {
            let mut buffer = [0; 4096];
            while let Ok(1..) = stream.read(&mut buffer) {
                takes(BATCH / 20 * (number % 20));
                if stream.write_all(REPLY).is_err() {
                    return;
                }
            }
        }));
        let plan = Plan {
            arrivals: Arrivals::Open {
                rate: Rate::constant(RATE),
                spacing: Spacing::Constant,
                batch: BATCH,
            },
            clients: 64,
            ..open(engine, RATE, 3)
        };
        let result = run(
            &[endpoint(&server)],
            &plan,
            &echo(),
            &AtomicBool::new(false),
            &mut |_| {},
        )
        .expect("a load");
        let books = &result.measured;
        assert!(books.add_up() && books.failed == 0);
        assert!((3.0 * RATE - books.all as f64).abs() <= 10.0, "{}", books.all);
        let lag_ns = &books.parts.as_ref().expect("an open loop").lag_ns;
        let median = Duration::from_nanos(lag_ns.value_at_quantile(0.5));
        assert!(median > BATCH / 4, "{engine:?}: {median:?}");
    }
}

#[test]
fn what_never_found_a_client_is_skipped_and_in_the_percentiles() {
    let _alone = alone();
    let sluice = Arc::new(Sluice::default());
    sluice.set(true);
    let server = behind(&sluice);
    let plan = open(Engine::Auto, 100.0, 1);
    // The measured time is over when its only second is reported.
    let result = run(
        &[endpoint(&server)],
        &plan,
        &echo(),
        &AtomicBool::new(false),
        &mut |_| sluice.set(false),
    )
    .expect("a load");
    let books = &result.measured;
    // Eight found a client, and their replies came after the end: they are in the books, and not in
    // the rate.
    assert_eq!(
        (books.committed, books.after_end, books.skipped),
        (8, 8, 92),
        "{books:?}"
    );
    assert!(books.add_up() && result.whole.add_up());
    assert!(result.tps() == 0.0 && result.whole.committed == 8);
    // Half of them waited for half of the second at least, and most of those not to the end.
    let median_ms = books.percentile_ms(50.0).expect("arrivals");
    assert!(
        books.is_lower_bound(50.0) && (400.0..600.0).contains(&median_ms),
        "{median_ms}"
    );
}

/// A closed loop in which nobody has an answer before the end: ended soon after it, or not at all.
#[test]
fn what_the_end_of_a_closed_loop_cuts_off_is_in_the_books() {
    let _alone = alone();
    let check = |engine: Engine, clients: u32, is_answered: bool| {
        let sluice = Arc::new(Sluice::default());
        sluice.set(true);
        let server = behind(&sluice);
        let stop = AtomicBool::new(false);
        let mut held = Duration::ZERO;
        let result = run(
            &[endpoint(&server)],
            &plan(engine, clients),
            &echo(),
            &stop,
            &mut |_| {
                held = sluice.held();
                sluice.set(!is_answered);
                // Somebody who asks for the end does not wait for the answers.
                stop.store(!is_answered, Ordering::Relaxed);
            },
        )
        .expect("a load");
        sluice.set(false);
        let books = &result.measured;
        let (ended, not_ended) = if is_answered { (clients, 0) } else { (0, clients) };
        let expected = (ended.into(), ended.into(), not_ended.into());
        assert_eq!(
            (books.committed, books.after_end, books.skipped),
            expected,
            "{engine:?}"
        );
        assert!(books.add_up() && result.whole.add_up() && result.tps() == 0.0);
        // However late the clients began. A histogram rounds down, by less than a hundredth.
        let shortest = Duration::from_nanos(books.response_or_wait_ns().min());
        assert!(
            shortest > held.mul_f64(0.99),
            "{engine:?}: {shortest:?}, held {held:?}"
        );
        assert_eq!(books.is_lower_bound(100.0), !is_answered);
    };
    for is_answered in [true, false] {
        check(Engine::IoUring, 4, is_answered);
        check(Engine::Epoll, 4, is_answered);
    }
    check(Engine::Blocking, 1, true);
}

#[test]
fn response_times_over_time_hold_each_measured_transaction_once() {
    let _alone = alone();
    let check = |warmup_ms: u64, measure_ms: u64, lengths_s: &[f64], holds: bool| {
        let sluice = Arc::new(Sluice::default());
        sluice.set(holds);
        let server = behind(&sluice);
        let plan = Plan {
            warmup: Warmup::For(Duration::from_millis(warmup_ms)),
            measure: Duration::from_millis(measure_ms),
            ..open(Engine::Auto, 200.0, 1)
        };
        let mut heat = Heat::default();
        let stop = AtomicBool::new(false);
        // What is held back is let through when the last second is reported.
        let result = run(&[endpoint(&server)], &plan, &echo(), &stop, &mut |second| {
            heat.add(second);
            if second.number as usize == lengths_s.len() {
                sluice.set(false);
            }
        })
        .expect("a load");
        let found: Vec<f64> = result.seconds.iter().map(|second| second.length_s).collect();
        assert_eq!(found, lengths_s, "{warmup_ms} ms, {measure_ms} ms");
        heat.end(&result.in_no_second);
        let counted: u64 = heat.classes().1.iter().flatten().sum();
        assert_eq!(
            (counted, result.in_no_second.after_end),
            (result.measured.committed, result.measured.after_end),
            "{warmup_ms} ms, {measure_ms} ms"
        );
        assert!(counted > 0 && (heat.begins_s() - result.warmup_s).abs() < 1e-6);
        // Of a server that answers at once, one may be under way at the end too.
        assert!(result.measured.after_end > 0 || !holds);
    };
    thread::scope(|scope| {
        scope.spawn(|| check(0, 1000, &[1.0], true));
        scope.spawn(|| check(300, 1000, &[0.3, 1.0], false));
        scope.spawn(|| check(300, 1000, &[0.3, 1.0], true));
        scope.spawn(|| check(1050, 1600, &[1.05, 1.0, 0.6], false));
        scope.spawn(|| check(20, 1050, &[0.02, 1.0], false));
    });
}
