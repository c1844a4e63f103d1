//! What the server counted of each statement in the measured time of a load.

use pgdyno_engine::Second;
use pgdyno_record::{GapRecord, StatementRecord};
use pgdyno_server::{Server, ServerError, StatementLook};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// So many are stored with a trial, the most expensive first.
const STATEMENTS_MAX: usize = 20;
/// Seconds of a load are whole ones; a warm-up need not be.
const HALF_S: f64 = 0.5;
/// A look at the end of the warm-up that comes later than this is none: it takes the server a few
/// milliseconds, but a pooler may let it wait behind the load.
const LATE: Duration = Duration::from_secs(2);

/// Statements from the end of a load's warm-up to its own.
pub(crate) struct MeasuredStatements {
    look: Result<Option<StatementLook>, String>,
    warmup: WarmupWatch,
    has_begun: bool,
}

impl MeasuredStatements {
    /// Looks for the first time, before the load. `warmup_s` is `None` where the load reports when
    /// it is over; a load that reports no seconds goes by the clock.
    pub(crate) fn begin(server: &mut Server, warmup_s: Option<f64>, has_seconds: bool) -> MeasuredStatements {
        MeasuredStatements {
            look: StatementLook::new(server).map_err(|error| error.to_string()),
            warmup: WarmupWatch {
                warmup_s,
                has_seconds,
                elapsed_s: 0.0,
                is_over: warmup_s.is_some_and(|warmup_s| warmup_s < HALF_S),
                over: None,
            },
            has_begun: false,
        }
    }

    /// Does `drive`, which reports the load's seconds, and looks again once when the warm-up is
    /// over. That is done by a thread of its own: the thread that follows the load must not wait
    /// for the server.
    pub(crate) fn during<T>(&mut self, server: &mut Server, drive: impl FnOnce(&mut WarmupWatch) -> T) -> T {
        self.has_begun = self.warmup.is_over;
        let look = match &mut self.look {
            Ok(Some(look)) if !self.has_begun => look,
            _ => return drive(&mut self.warmup),
        };
        let renew = || {
            let begun = Instant::now();
            look.renew(server)
                .map_err(|error: ServerError| error.to_string())?;
            in_time(begun.elapsed())
        };
        let (done, renewed) = beside(self.warmup.clone(), renew, drive);
        self.has_begun = renewed.is_some();
        if let Some(Err(reason)) = renewed {
            self.look = Err(reason);
        }
        done
    }

    /// Looks for the last time, after the load. That there is no pg_stat_statements is no gap.
    pub(crate) fn end(self, server: &mut Server) -> (Vec<StatementRecord>, Option<GapRecord>) {
        let grown = self.look.and_then(|look| match look {
            Some(look) if self.has_begun => look
                .grown(server, STATEMENTS_MAX)
                .map_err(|error| error.to_string()),
            Some(_) => Err("the load has not reported the end of its warm-up".to_owned()),
            None => Ok(Vec::new()),
        });
        match grown {
            Ok(grown) => (grown, None),
            Err(reason) => {
                let gap = GapRecord {
                    at_ms: 0,
                    source: "pg_stat_statements, each statement".to_owned(),
                    reason,
                };
                (Vec::new(), Some(gap))
            }
        }
    }
}

/// Follows a load's seconds to the end of its warm-up.
#[derive(Clone)]
pub(crate) struct WarmupWatch {
    /// How long the warm-up is; `None` where the load reports when it is over.
    warmup_s: Option<f64>,
    has_seconds: bool,
    elapsed_s: f64,
    is_over: bool,
    over: Option<Sender<()>>,
}

impl WarmupWatch {
    /// The next second of the load.
    pub(crate) fn second(&mut self, second: &Second) {
        if self.is_due(second)
            && let Some(over) = self.over.take()
        {
            let _ = over.send(());
        }
    }

    /// Where nobody knows it before, a warm-up is over when the first measured second is.
    fn is_due(&mut self, second: &Second) -> bool {
        self.elapsed_s += second.length_s;
        let is_over = self
            .warmup_s
            .is_some_and(|warmup_s| self.elapsed_s + HALF_S > warmup_s);
        let is_due = !self.is_over && (second.measured || is_over);
        self.is_over |= is_due;
        is_due
    }

    /// How long the warm-up takes where no second shows its end.
    fn by_clock(&self) -> Option<Duration> {
        let warmup_s = self.warmup_s.filter(|_| !self.has_seconds)?;
        Duration::try_from_secs_f64(warmup_s).ok()
    }
}

/// Drives, and renews on another thread when the warm-up is over; `None` where the load has ended
/// before.
fn beside<T>(
    mut warmup: WarmupWatch,
    renew: impl FnOnce() -> Result<(), String> + Send,
    drive: impl FnOnce(&mut WarmupWatch) -> T,
) -> (T, Option<Result<(), String>>) {
    let (over, ended) = channel();
    let by_clock = warmup.by_clock();
    warmup.over = Some(over);
    thread::scope(|scope| {
        // Dropped before the thread is waited for, also where the load panics: the thread waits for
        // it.
        let mut warmup = warmup;
        let renewing = thread::Builder::new()
            .name("statements".to_owned())
            .spawn_scoped(scope, move || is_over(&ended, by_clock).then(renew));
        let done = drive(&mut warmup);
        drop(warmup);
        let renewed = match renewing {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => Some(Err(format!("the system refused a thread: {error}"))),
        };
        (done, renewed)
    })
}

/// Waits for the end of the warm-up; whether it came before that of the load.
fn is_over(ended: &Receiver<()>, by_clock: Option<Duration>) -> bool {
    match by_clock {
        Some(left) => ended.recv_timeout(left) != Err(RecvTimeoutError::Disconnected),
        None => ended.recv().is_ok(),
    }
}

/// What is counted from a look that came late is not of the measured time.
fn in_time(took: Duration) -> Result<(), String> {
    match took > LATE {
        true => Err(format!(
            "the look at the end of the warm-up took {:.1} s: what was counted before it is not known",
            took.as_secs_f64()
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_engine::Books;

    fn watch(warmup_s: Option<f64>, has_seconds: bool) -> WarmupWatch {
        WarmupWatch {
            warmup_s,
            has_seconds,
            elapsed_s: 0.0,
            is_over: warmup_s.is_some_and(|warmup_s| warmup_s < HALF_S),
            over: None,
        }
    }

    fn second(number: u32, length_s: f64, measured: bool) -> Second {
        Second {
            number,
            length_s,
            measured,
            books: Books::new(false),
            clients: 1,
        }
    }

    #[test]
    fn it_begins_once_and_when_the_warm_up_is_over() {
        let check = |warmup_s: Option<f64>, first_s: f64, measured_from: u32, expected: &[u32]| {
            let mut watch = watch(warmup_s, true);
            let looks: Vec<u32> = (1..=9)
                .filter(|number| {
                    let length_s = if *number == 1 { first_s } else { 1.0 };
                    watch.is_due(&second(*number, length_s, *number >= measured_from))
                })
                .collect();
            assert_eq!(looks, expected, "{warmup_s:?}");
        };
        check(Some(0.0), 1.0, 1, &[]);
        check(Some(3.0), 1.0, 4, &[3]);
        check(Some(2.4), 1.0, 4, &[2]);
        check(Some(2.4), 0.4, 4, &[3]);
        check(None, 1.0, 6, &[6]);
        check(None, 1.0, 99, &[]);
    }

    /// Whoever follows the load does not wait: here the look ends only after the load's last second
    /// was reported.
    #[test]
    fn the_load_goes_on_while_the_server_is_asked() {
        let (last, ended) = channel();
        let renew = move || {
            ended
                .recv_timeout(Duration::from_secs(60))
                .map_err(|error| error.to_string())
        };
        let (sent, renewed) = beside(watch(Some(1.0), true), renew, |watch| {
            for number in 1..=3 {
                watch.second(&second(number, 1.0, number > 1));
            }
            last.send(()).is_ok()
        });
        assert_eq!((sent, renewed), (true, Some(Ok(()))));
    }

    #[test]
    fn a_load_without_seconds_goes_by_the_clock() {
        let check = |warmup_s: Option<f64>, has_seconds: bool, looks: bool| {
            let (begun, has_begun) = channel();
            let renew = move || begun.send(()).map_err(|error| error.to_string());
            let (_, renewed) = beside(watch(warmup_s, has_seconds), renew, |_| {
                // It ends when the look is there, or with nothing to wait for.
                looks.then(|| has_begun.recv())
            });
            assert_eq!(renewed.is_some(), looks, "{warmup_s:?}");
        };
        check(Some(0.5), false, true);
        check(Some(0.5), true, false);
        check(Some(1e6), false, false);
        check(None, false, false);
    }

    #[test]
    fn a_look_that_comes_late_is_a_gap() {
        assert_eq!(in_time(Duration::from_millis(900)), Ok(()));
        assert!(in_time(Duration::from_millis(4200)).is_err_and(|reason| reason.contains("4.2 s")));
    }
}
