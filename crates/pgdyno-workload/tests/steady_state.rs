//! In steady state nothing is allocated per transaction: allocations are counted while a load runs.

use pgdyno_engine::{Arrivals, Engine, Plan, Protocol, Rate, Spacing};
use pgdyno_testing::fake::{FakeServer, REPLY, answer_all};
use pgdyno_workload::{LoadPlan, Script, Scripts, Work, Workload, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ENGINES: [(Engine, u32); 3] = [(Engine::IoUring, 4), (Engine::Epoll, 4), (Engine::Blocking, 1)];

/// Counts what anybody allocates; the server of this test allocates nothing once a connection is
/// open.
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

/// The delivery of a second costs a few allocations: its histogram, a place in a queue, a place in
/// a list.
const PER_SECOND_MAX: u64 = 32;

/// Parameter echoes in the extended protocol, which prepares nothing beforehand.
fn plan(engine: Engine, clients: u32) -> LoadPlan {
    LoadPlan {
        protocol: Protocol::Extended,
        drive: Plan {
            engine,
            measure: Duration::from_secs(3),
            ..Plan::closed(clients, 1)
        },
        ..LoadPlan::closed(Workload::Simple, clients, 1)
    }
}

#[test]
fn a_transaction_allocates_nothing() {
    let open = Arrivals::Open {
        rate: Rate::constant(5000.0),
        spacing: Spacing::Poisson,
        batch: Duration::ZERO,
    };
    for (engine, clients) in ENGINES {
        let mut plan = plan(engine, clients);
        check(&plan);
        if clients > 1 {
            plan.drive.arrivals = open.clone();
            check(&plan);
            plan.drive.arrivals = Arrivals::Closed {
                think: Duration::from_millis(1),
            };
            check(&plan);
        }
    }
}

/// RowDescription of a column n, then a row of a text.
const NAMED_REPLY: &[u8] =
    b"2\0\0\0\x04T\0\0\0\x1a\0\x01n\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0\
    D\0\0\0\x0b\0\x01\0\0\0\x017C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

#[test]
fn a_script_allocates_nothing_either() {
    let text = "\\set a random(1, 100) + hash(5) % 7 + permute(3, 100) + random_zipfian(1, 10, 1.2)\n\\set b :a / 3.0\n\
        \\if :a > 50\nselect :a, :b as n \\gset p_\n\\else\nselect :b as n \\aset p_\n\\endif\nselect :p_n;\n";
    check_with(
        &LoadPlan {
            work: Work::Scripts(Scripts {
                scripts: vec![Script {
                    name: "a.sql".into(),
                    text: text.into(),
                    weight: 1,
                }],
                ..Scripts::default()
            }),
            ..plan(ENGINES[1].0, 4)
        },
        NAMED_REPLY,
    );
}

fn check(plan: &LoadPlan) {
    check_with(plan, REPLY);
}

/// Allocations are counted for the whole process: one load at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn check_with(plan: &LoadPlan, reply: &'static [u8]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = FakeServer::start(Box::new(move |stream, _| answer_all(stream, reply)));
    let mut seconds: Vec<(u64, u64)> = Vec::with_capacity(16);
    let stop = AtomicBool::new(false);
    let result = run(&[server.config().into()], plan, &stop, &mut |second| {
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
    // One allocation for each of them would be far above what is allowed.
    assert!(transactions > 8 * PER_SECOND_MAX, "{plan:?}: {transactions}");
    assert!(
        allocated <= 2 * PER_SECOND_MAX,
        "{plan:?}: {allocated} allocations in {transactions} transactions"
    );
}
