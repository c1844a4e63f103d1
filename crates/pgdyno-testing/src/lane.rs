//! How many tests have servers at a time. The harness may start all tests at once: most of their
//! time they wait, for a load's seconds or for this machine, but the work between must not pile up.

use super::shared;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A test waits for its servers and loads for about two thirds of its time.
const LANES_PER_CPU: usize = 3;
/// Modules of the longest tests. They come first, or all would wait for them in the end.
const LONGEST: [&str; 6] = [
    "guest::",
    "page::",
    "poolers::",
    "bench::",
    "bench_workers::",
    "advise::",
];

static LANES: Mutex<Lanes> = Mutex::new(Lanes {
    in_use: 0,
    queue: BTreeSet::new(),
    numbers: 0,
    beside: 0,
    is_quiet: false,
    lock: None,
});
static CHANGED: Condvar = Condvar::new();

struct Lanes {
    in_use: usize,
    /// Who waits for a lane: what is waited for longest first, and then by number.
    queue: BTreeSet<(usize, usize)>,
    numbers: usize,
    /// Tests that have or want this machine and need no lane.
    beside: usize,
    /// Whether a test has all lanes.
    is_quiet: bool,
    /// Locked while this process has lanes: shared, or by itself where a test has all. It ends with
    /// the process, however that ends.
    lock: Option<File>,
}

fn lanes() -> MutexGuard<'static, Lanes> {
    LANES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock that shows other processes that this one has lanes, once no other has it in a way that
/// keeps this one out.
fn lock_against_others(lock: fn(&File) -> std::io::Result<()>) -> File {
    let file = fs::create_dir_all(shared()).and_then(|()| File::create(shared().join("lanes.lock")));
    let file = file.expect("a file");
    lock(&file).expect("locked");
    file
}

thread_local! {
    static ENTERED: Cell<usize> = const { Cell::new(0) };
}

/// A test's place among those that run now. One that has several homes takes one lane, or it could
/// wait for itself.
#[derive(Debug)]
pub struct Lane {
    takes: Takes,
}

#[derive(Debug, PartialEq)]
enum Takes {
    Nothing,
    One,
    Machine,
    All,
}

impl Lane {
    /// Waits for a free lane, unless this test has one.
    pub fn enter() -> Lane {
        if ENTERED.get() > 0 {
            return Lane::taking(Takes::Nothing);
        }
        let count = LANES_PER_CPU * thread::available_parallelism().map_or(1, usize::from);
        let mut waiting = lanes();
        let place = (rank(), waiting.numbers);
        waiting.numbers += 1;
        waiting.queue.insert(place);
        let mut lanes = wait_while(waiting, |lanes| {
            lanes.is_quiet || lanes.in_use >= count || lanes.queue.first() != Some(&place)
        });
        lanes.queue.remove(&place);
        lanes.in_use += 1;
        lanes
            .lock
            .get_or_insert_with(|| lock_against_others(File::lock_shared));
        drop(lanes);
        CHANGED.notify_all();
        Lane::taking(Takes::One)
    }

    /// A lane beside the others, for whoever waits for this machine or has it.
    pub(crate) fn beside() -> Lane {
        lanes().beside += 1;
        Lane::taking(Takes::Machine)
    }

    /// All lanes, those of other processes too, when nobody else wants one any more: who has all
    /// keeps everybody waiting.
    pub(crate) fn all() -> Lane {
        let mut lanes = wait_while(lanes(), |lanes| {
            lanes.is_quiet || lanes.in_use > 0 || lanes.beside > 0 || !lanes.queue.is_empty()
        });
        lanes.is_quiet = true;
        lanes.lock = Some(lock_against_others(File::lock));
        drop(lanes);
        Lane::taking(Takes::All)
    }

    fn taking(takes: Takes) -> Lane {
        ENTERED.set(ENTERED.get() + 1);
        Lane { takes }
    }
}

fn wait_while<'a>(lanes: MutexGuard<'a, Lanes>, is_kept: impl Fn(&Lanes) -> bool) -> MutexGuard<'a, Lanes> {
    CHANGED
        .wait_while(lanes, |lanes| is_kept(lanes))
        .unwrap_or_else(PoisonError::into_inner)
}

/// Of this thread's test, by its name, which the harness gives to the thread.
fn rank() -> usize {
    let thread = thread::current();
    let name = thread.name().unwrap_or_default();
    let rank = LONGEST.iter().position(|module| name.starts_with(module));
    rank.unwrap_or(LONGEST.len())
}

impl Drop for Lane {
    fn drop(&mut self) {
        ENTERED.set(ENTERED.get().saturating_sub(1));
        if self.takes == Takes::Nothing {
            return;
        }
        let mut lanes = lanes();
        match self.takes {
            Takes::Nothing => {}
            Takes::One => lanes.in_use -= 1,
            Takes::Machine => lanes.beside -= 1,
            Takes::All => lanes.is_quiet = false,
        }
        if lanes.in_use == 0 && !lanes.is_quiet {
            lanes.lock = None;
        }
        drop(lanes);
        CHANGED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// One test for all that there is of lanes, which belong to the whole process.
    #[test]
    fn a_lane_is_entered_when_another_is_left_and_never_waited_for_twice() {
        let in_use = || lanes().in_use;
        let count = LANES_PER_CPU * thread::available_parallelism().map_or(1, usize::from);
        let (leave, left) = channel::<()>();
        let (enter, entered) = channel();
        let first = thread::spawn(move || {
            let (one, another) = (Lane::enter(), Lane::enter());
            enter.send(()).expect("heard");
            left.recv().expect("sent");
            drop((another, one));
        });
        entered.recv().expect("entered");
        let mut others = Vec::new();
        for _ in 1..count {
            let (enter, entered) = channel();
            let (leave, left) = channel::<()>();
            let other = thread::spawn(move || {
                let _lane = Lane::enter();
                enter.send(()).expect("heard");
                left.recv().expect("sent");
            });
            entered.recv().expect("entered");
            others.push((other, leave));
        }
        assert_eq!(in_use(), count, "two of one test are one");
        let beside = Lane::beside();
        drop(Lane::enter());
        let (enter, quiet) = channel();
        let waits = thread::spawn(move || {
            let all = Lane::all();
            enter.send(lanes().in_use).expect("heard");
            drop(all);
        });
        let last = thread::spawn(|| drop(Lane::enter()));
        leave.send(()).expect("sent");
        first.join().expect("left");
        last.join().expect("entered where the first has left");
        for (other, leave) in others {
            leave.send(()).expect("sent");
            other.join().expect("left");
        }
        assert_eq!(in_use(), 0);
        assert!(
            quiet.try_recv().is_err(),
            "entered while somebody has this machine"
        );
        drop(beside);
        assert_eq!(quiet.recv(), Ok(0), "entered when nobody is left");
        waits.join().expect("left");

        let all = Lane::all();
        let (enter, entered) = channel();
        let next = thread::spawn(move || {
            let _lane = Lane::enter();
            enter.send(()).expect("heard");
        });
        // The test that has all has one.
        drop(Lane::enter());
        assert_eq!(in_use(), 0);
        assert!(entered.try_recv().is_err(), "entered beside who has all");
        drop(all);
        entered.recv().expect("entered afterwards");
        next.join().expect("left");
    }
}
