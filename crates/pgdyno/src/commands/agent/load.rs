//! `pgdyno agent --load`: a part of a load, driven for a coordinator.

use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Result, Usage};
use crate::generators::{JOB, Job};
use pgdyno_engine::{Second, SentResult, SentSecond};
use pgdyno_host::HostAccess;
use pgdyno_remote::{Answer, Coordinator, FromGenerator, GeneratorHost, Question};
use std::time::{Duration, Instant};

/// Questions about the coordinator's clock, of which the one with the shortest answer counts.
const CLOCK_QUESTIONS: u32 = 16;

/// The coordinator's clock as it is known here.
#[derive(Clone, Copy)]
struct Clock {
    /// An instant here, and what the coordinator's clock was then.
    at: Instant,
    ns: u64,
    error: Duration,
}

impl Clock {
    /// Asks for it: the answer was given between question and answer, half of that time is the largest error.
    fn ask(coordinator: &Coordinator) -> Option<Clock> {
        let mut best: Option<Clock> = None;
        for _ in 0..CLOCK_QUESTIONS {
            let asked = Instant::now();
            let Some(Answer::Clock(ns)) = coordinator.ask(Question::Generator(FromGenerator::Clock)) else {
                return None;
            };
            let error = asked.elapsed() / 2;
            if best.is_none_or(|best| error < best.error) {
                best = Some(Clock {
                    at: asked + error,
                    ns,
                    error,
                });
            }
        }
        best
    }

    /// When its clock is at so many nanoseconds.
    fn instant(self, ns: u64) -> Instant {
        match ns.checked_sub(self.ns) {
            Some(later) => self.at + Duration::from_nanos(later),
            None => self.at,
        }
    }
}

pub(super) fn run(context: &Context) -> Result<u8> {
    let (Some(coordinator), Some(files)) = (context.coordinator(), context.carried()) else {
        return Err(Usage("--load is for agents that a coordinator has started".into()).into());
    };
    let content = files.iter().find(|file| file.path == JOB);
    let job = content
        .and_then(|file| file.content.as_deref())
        .unwrap_or_default();
    let stop = stop_flag()?;
    let driven = match serde_json::from_str::<Job>(job) {
        Ok(job) => drive(context, coordinator, &job, &stop),
        Err(error) => Err(format!("a job that is none: {error}")),
    };
    let said = match driven {
        Ok((result, host)) => FromGenerator::Ended { result, host },
        Err(why) => FromGenerator::Failed(why),
    };
    coordinator.ask(Question::Generator(said));
    Ok(exit::FINE)
}

fn drive(
    context: &Context,
    coordinator: &Coordinator,
    job: &Job,
    stop: &std::sync::atomic::AtomicBool,
) -> std::result::Result<(Box<SentResult>, GeneratorHost), String> {
    let mut late = Duration::ZERO;
    let mut begin = || {
        let clock = Clock::ask(coordinator)?;
        let ready = FromGenerator::Ready {
            clock_error_ns: u64::try_from(clock.error.as_nanos()).unwrap_or(u64::MAX),
        };
        match coordinator.ask(Question::Generator(ready)) {
            Some(Answer::Begin(Some(ns))) => {
                let begins = clock.instant(ns);
                // The answer may have come too late for that instant.
                late = Instant::now().saturating_duration_since(begins);
                Some(begins + late)
            }
            _ => None,
        }
    };
    let mut before = None;
    let mut on_second = |second: &Second| {
        if second.measured && before.is_none() {
            before = Ticks::now(context);
        }
        let second = FromGenerator::Second(Box::new(SentSecond::of(second)));
        coordinator.ask(Question::Generator(second));
    };
    let result = job.drive(stop, &mut begin, &mut on_second)?;
    let used = before
        .zip(Ticks::now(context))
        .map(|(before, after)| after.since(before));
    let host = GeneratorHost {
        idle: used.map(|(idle, _)| idle),
        steal: used.map(|(_, steal)| steal),
        began_late_ns: u64::try_from(late.as_nanos()).unwrap_or(u64::MAX),
    };
    Ok((Box::new(SentResult::of(&result)), host))
}

/// Ticks of all CPUs since the host has started.
#[derive(Clone, Copy)]
struct Ticks {
    all: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    fn now(context: &Context) -> Option<Ticks> {
        /// user nice system idle iowait irq softirq steal; guests are in user and nice.
        const COLUMNS: usize = 8;
        let text = context.host.read("/proc/stat").ok()?;
        let columns = text
            .lines()
            .next()?
            .split_ascii_whitespace()
            .skip(1)
            .take(COLUMNS);
        let columns: Vec<u64> = columns.map_while(|column| column.parse().ok()).collect();
        Some(Ticks {
            all: columns.iter().sum(),
            idle: columns.get(3)? + columns.get(4)?,
            steal: columns.get(7).copied().unwrap_or(0),
        })
    }

    /// Shares of idle time and of steal.
    #[expect(clippy::cast_precision_loss, reason = "ticks of a load")]
    fn since(self, before: Ticks) -> (f64, f64) {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        (
            self.idle.saturating_sub(before.idle) as f64 / all,
            self.steal.saturating_sub(before.steal) as f64 / all,
        )
    }
}
