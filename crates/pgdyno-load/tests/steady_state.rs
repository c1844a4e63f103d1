//! In steady state nothing is allocated per transaction: allocations are counted while a load runs.

mod common;

use common::{ENGINES, FakeServer, REPLY, answer_all, plan};
use pgdyno_load::{Arrivals, LoadPlan, Rate, Spacing, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Counts what anybody allocates; the server of this test allocates nothing once a connection stands.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The delivery of a second costs a few allocations: its histogram, a place in a queue, a place in a list.
const PER_SECOND_MAX: u64 = 32;

#[test]
fn a_transaction_allocates_nothing() {
    let open = Arrivals::Open {
        rate: Rate::constant(5000.0),
        spacing: Spacing::Poisson,
    };
    for (engine, clients) in ENGINES {
        let closed = LoadPlan {
            measure: Duration::from_secs(3),
            ..plan(engine, clients)
        };
        check(&closed);
        if clients > 1 {
            check(&LoadPlan {
                arrivals: open.clone(),
                ..closed.clone()
            });
            let think = Arrivals::Closed {
                think: Duration::from_millis(1),
            };
            check(&LoadPlan {
                arrivals: think,
                ..closed
            });
        }
    }
}

fn check(plan: &LoadPlan) {
    let server = FakeServer::start(Box::new(|stream, _| answer_all(stream, REPLY)));
    let mut seconds: Vec<(u64, u64)> = Vec::with_capacity(16);
    let stop = AtomicBool::new(false);
    let result = run(&server.endpoint(), plan, &stop, &mut |second| {
        seconds.push((ALLOCATIONS.load(Ordering::Relaxed), second.books.committed));
    })
    .expect("a load");
    assert!(
        result.measured.add_up() && result.measured.failed == 0,
        "{:?}",
        result.lost
    );
    // From the end of the first second on.
    let allocated = seconds[2].0 - seconds[0].0;
    let transactions = seconds[1].1 + seconds[2].1;
    assert!(transactions > 1000, "{plan:?}: {transactions}");
    assert!(
        allocated <= 2 * PER_SECOND_MAX,
        "{plan:?}: {allocated} allocations in {transactions} transactions"
    );
}
