//! How many tests have servers at a time. The harness may start all tests at once: most of their time they wait, for a
//! load's seconds or for this machine, but the work between must not pile up.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A test waits for its servers and loads for about two thirds of its time.
const LANES_PER_CPU: usize = 3;

static LANES: Mutex<Lanes> = Mutex::new(Lanes {
    in_use: 0,
    all_wanted: false,
});
static CHANGED: Condvar = Condvar::new();

struct Lanes {
    in_use: usize,
    /// By a test that waits for all or has them. There is one at most, for it has this machine.
    all_wanted: bool,
}

fn lanes() -> MutexGuard<'static, Lanes> {
    LANES.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static ENTERED: Cell<usize> = const { Cell::new(0) };
}

/// A test's place among those that run now. One that has several homes takes one lane, or it could wait for itself.
#[derive(Debug)]
pub struct Lane {
    takes: Takes,
}

#[derive(Debug, PartialEq)]
enum Takes {
    Nothing,
    One,
    All,
}

impl Lane {
    /// Waits for a free lane, unless this test has one.
    pub fn enter() -> Lane {
        let before = ENTERED.replace(ENTERED.get() + 1);
        if before > 0 {
            return Lane {
                takes: Takes::Nothing,
            };
        }
        let count = LANES_PER_CPU * thread::available_parallelism().map_or(1, usize::from);
        let mut lanes = CHANGED
            .wait_while(lanes(), |lanes| lanes.in_use >= count || lanes.all_wanted)
            .unwrap_or_else(PoisonError::into_inner);
        lanes.in_use += 1;
        Lane { takes: Takes::One }
    }

    /// A lane beside the others, for whoever has this machine: all others that want it wait for this test already.
    pub(crate) fn beside() -> Lane {
        ENTERED.set(ENTERED.get() + 1);
        Lane {
            takes: Takes::Nothing,
        }
    }

    /// All lanes, for whoever has this machine; those who wait for one wait on.
    pub(crate) fn all() -> Lane {
        lanes().all_wanted = true;
        drop(
            CHANGED
                .wait_while(lanes(), |lanes| lanes.in_use > 0)
                .unwrap_or_else(PoisonError::into_inner),
        );
        ENTERED.set(ENTERED.get() + 1);
        Lane { takes: Takes::All }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        ENTERED.set(ENTERED.get().saturating_sub(1));
        match self.takes {
            Takes::Nothing => return,
            Takes::One => lanes().in_use -= 1,
            Takes::All => lanes().all_wanted = false,
        }
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
            left.recv().expect("told");
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
                left.recv().expect("told");
            });
            entered.recv().expect("entered");
            others.push((other, leave));
        }
        assert_eq!(in_use(), count, "two of one test are one");
        let beside = Lane::beside();
        drop(Lane::enter());
        drop(beside);
        let last = thread::spawn(|| drop(Lane::enter()));
        leave.send(()).expect("told");
        first.join().expect("left");
        last.join().expect("entered where the first has left");
        for (other, leave) in others {
            leave.send(()).expect("told");
            other.join().expect("left");
        }
        assert_eq!(in_use(), 0);

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
