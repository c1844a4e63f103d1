//! The jobs of a creation: statements and rows, shared out to connections in order, each when what
//! it needs is done.

use super::rows::Filling;
use super::session::{self, Sorting, step_error};
use super::{DataError, DataProgress};
use crate::session::Session;
use pgdyno_engine::Endpoint;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often progress is reported and a stop is checked for.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// What is shown while rows are sent.
pub(super) const ROWS: &str = "rows";
/// What is shown while keys and indexes are made.
pub(super) const KEYS: &str = "keys and indexes";

/// One piece of work of one connection.
pub(super) struct Job {
    /// For errors: "making the key of pgbench_accounts".
    pub(super) what: String,
    /// For people: one of a few short texts.
    pub(super) step: &'static str,
    /// Places in the list of those that must be done before.
    pub(super) after: Vec<usize>,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// Statements, each in a transaction of its own.
    Sql(Vec<String>),
    /// Rows that are sent to a table.
    Rows(Filling),
}

/// What the threads of a creation share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stop: Arc<AtomicBool>,
    rows: AtomicU64,
}

struct State {
    jobs: Vec<Option<Job>>,
    done: Vec<bool>,
    rows_open: usize,
    step: &'static str,
    failed: Option<DataError>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job that can be done, with its place; waits for one. `None` when there is nothing
    /// left.
    fn next(&self) -> Option<(usize, Job)> {
        let mut state = self.lock();
        loop {
            if self.stop.load(Ordering::Relaxed) || state.jobs.iter().all(Option::is_none) {
                return None;
            }
            let ready = state.jobs.iter().position(|job| {
                job.as_ref()
                    .is_some_and(|job| job.after.iter().all(|&before| state.done[before]))
            });
            if let Some(place) = ready {
                let job = state.jobs[place].take()?;
                if state.rows_open == 0 {
                    state.step = job.step;
                }
                return Some((place, job));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finished(&self, place: usize, was_rows: bool, result: Result<(), DataError>) {
        let mut state = self.lock();
        match result {
            Ok(()) => {
                state.done[place] = true;
                if was_rows {
                    state.rows_open -= 1;
                }
            }
            Err(error) => self.fail(&mut state, error),
        }
        self.changed.notify_all();
    }

    /// The first error counts; those that follow from the stop do not.
    fn fail(&self, state: &mut State, error: DataError) {
        if !self.stop.swap(true, Ordering::Relaxed) {
            state.failed = Some(error);
        }
        self.changed.notify_all();
    }

    fn work(&self, endpoint: &Endpoint, sorting: Sorting) {
        let settings = session::for_loading(sorting);
        // Whatever it waits for ends when another one has failed, too.
        let endpoint = endpoint.clone().stopped_by(&self.stop);
        let mut client = match session::open(&endpoint) {
            Ok(client) => client,
            Err(error) => return self.fail(&mut self.lock(), error),
        };
        while let Some((place, job)) = self.next() {
            let was_rows = matches!(job.work, Work::Rows(_));
            let result = self.do_job(&mut client, &settings, job);
            self.finished(place, was_rows, result);
        }
    }

    fn do_job(&self, client: &mut Session, settings: &str, job: Job) -> Result<(), DataError> {
        match job.work {
            Work::Rows(filling) => filling.run(client, settings, &self.stop, &self.rows)?,
            Work::Sql(statements) => {
                for sql in statements {
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(DataError::Stopped);
                    }
                    do_statement(client, &job.what, settings, &sql)?;
                }
            }
        }
        Ok(())
    }
}

/// One statement by itself: in a transaction with these settings, or outside of any where it must
/// be.
pub(super) fn do_statement(
    client: &mut Session,
    step: &str,
    settings: &str,
    sql: &str,
) -> Result<(), DataError> {
    match sql.starts_with("VACUUM") {
        true => client.work(sql).map_err(|source| step_error(step, source)),
        false => session::run(client, step, settings, sql),
    }
}

/// Does all jobs over so many connections. A stop or an error cancels what is under way (each
/// connection its own); what was committed stays, and is the caller's to drop.
pub(super) fn run(
    endpoint: &Endpoint,
    jobs: Vec<Job>,
    threads: u32,
    sorting: Sorting,
    rows_total: u64,
    on_progress: &mut dyn FnMut(DataProgress) -> bool,
) -> Result<(), DataError> {
    let rows_open = jobs
        .iter()
        .filter(|job| matches!(job.work, Work::Rows(_)))
        .count();
    let shared = Shared {
        state: Mutex::new(State {
            done: vec![false; jobs.len()],
            jobs: jobs.into_iter().map(Some).collect(),
            rows_open,
            step: ROWS,
            failed: None,
        }),
        changed: Condvar::new(),
        stop: Arc::new(AtomicBool::new(false)),
        rows: AtomicU64::new(0),
    };
    let mut stopped = false;
    thread::scope(|scope| {
        let (sender, receiver) = channel::<()>();
        for number in 0..threads {
            let (sender, worker) = (sender.clone(), &shared);
            let spawned = thread::Builder::new()
                .name(format!("data-{number}"))
                .spawn_scoped(scope, move || {
                    worker.work(endpoint, sorting);
                    drop(sender);
                });
            if let Err(source) = spawned {
                shared.fail(&mut shared.lock(), DataError::Thread(source));
            }
        }
        drop(sender);
        // Ends when the last worker has dropped its sender.
        while receiver.recv_timeout(PROGRESS_EVERY) == Err(RecvTimeoutError::Timeout) {
            let progress = DataProgress {
                step: shared.lock().step,
                rows: shared.rows.load(Ordering::Relaxed),
                rows_total,
            };
            if !stopped && !on_progress(progress) {
                stopped = true;
                shared.fail(&mut shared.lock(), DataError::Stopped);
            }
        }
    });
    let state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    match state.failed {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
