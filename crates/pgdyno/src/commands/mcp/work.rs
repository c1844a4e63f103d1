//! What an agent has planned, what runs of it, and what is left of the budget.

use super::TICK;
use super::child::signal;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::sync::Mutex;

/// Time in which an experiment that is stopped restores everything.
const STOPPING: Duration = Duration::from_mins(5);

/// An experiment that was planned.
pub(super) struct Planned {
    pub(super) file: PathBuf,
    pub(super) seconds: f64,
}

/// An experiment under way.
pub(super) struct Running {
    pub(super) plan: usize,
    pub(super) begun: Instant,
    pub(super) process: Child,
}

/// Plans, what runs, and what is left of the budget.
#[derive(Default)]
pub(super) struct Work {
    pub(super) plans_made: usize,
    pub(super) plans: BTreeMap<usize, Planned>,
    pub(super) running: Option<Running>,
    /// The plan that ended last, with its exit code.
    pub(super) ended: Option<(usize, Option<i32>)>,
    pub(super) used_s: f64,
    pub(super) budget_s: f64,
}

impl Work {
    pub(super) fn left_s(&self) -> f64 {
        let under_way = self
            .running
            .as_ref()
            .map_or(0.0, |running| running.begun.elapsed().as_secs_f64());
        (self.budget_s - self.used_s - under_way).max(0.0)
    }

    /// Takes note of an experiment that has ended; one that has used up the budget is asked to end.
    pub(super) fn look(&mut self) {
        let left_s = self.left_s();
        let Some(running) = &mut self.running else {
            return;
        };
        match running.process.try_wait() {
            Ok(Some(status)) => {
                self.used_s += running.begun.elapsed().as_secs_f64();
                self.ended = Some((running.plan, status.code()));
                self.running = None;
            }
            _ if left_s <= 0.0 => signal(&running.process, Signal::INT),
            _ => {}
        }
    }

    /// Asks what runs to end in order: it restores everything first.
    pub(super) fn stop(&self) -> bool {
        self.running
            .as_ref()
            .map(|running| signal(&running.process, Signal::INT))
            .is_some()
    }
}

/// Ends what runs, and waits for it.
pub(super) async fn end(work: &Mutex<Work>) {
    work.lock().await.stop();
    let begun = Instant::now();
    while begun.elapsed() < STOPPING {
        let mut work = work.lock().await;
        work.look();
        if work.running.is_none() {
            return;
        }
        drop(work);
        tokio::time::sleep(TICK).await;
    }
}

/// Ends an experiment that has used up the budget.
pub(super) async fn keep_watch(work: Arc<Mutex<Work>>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut work = work.lock().await;
        work.look();
        if work.running.is_none() {
            return;
        }
    }
}
