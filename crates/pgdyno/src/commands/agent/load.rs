//! `pgdyno agent --load`: a part of a load, driven for a coordinator.

use crate::context::{Context, stop_flag};
use crate::exit;
use crate::failure::{Failure, Result, Usage};
use crate::generators::{HostUse, JOB, Job, SERVERS, connect};
use pgdyno_engine::{LoadResult, Second};
use pgdyno_record::GeneratorHost;
use pgdyno_remote::{Answer, Coordinator, FromGenerator, OtherClock, Question};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub(super) fn run(context: &Context) -> Result<u8> {
    let (Some(coordinator), Some(files)) = (context.coordinator(), context.carried()) else {
        return Err(Usage("--load is for agents that a coordinator has started".into()).into());
    };
    let content = |name: &str| {
        let file = files.iter().find(|file| file.path == name);
        file.and_then(|file| file.content.as_deref())
    };
    if let Some(servers) = content(SERVERS) {
        let servers: Vec<String> = serde_json::from_str(servers)?;
        return connect(&servers).map(|()| exit::FINE).map_err(Failure::new);
    }
    let job = content(JOB).unwrap_or_default();
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
    stop: &Arc<AtomicBool>,
) -> std::result::Result<(Box<LoadResult>, GeneratorHost), String> {
    let mut late = Duration::ZERO;
    let used = RefCell::new(HostUse::new(context));
    let mut begin = || {
        let question = Question::Generator(FromGenerator::Clock);
        let mut clock = OtherClock::ask(coordinator, &question)?;
        loop {
            // Others may take minutes, in which clocks drift apart.
            clock = clock.renewed(coordinator, &question)?;
            let ready = FromGenerator::Ready {
                clock_error_ns: u64::try_from(clock.error.as_nanos()).unwrap_or(u64::MAX),
            };
            match coordinator.ask(Question::Generator(ready)) {
                Some(Answer::Begin(Some(ns))) => {
                    let begins = clock.instant(ns);
                    // The answer may have come too late for that instant.
                    late = Instant::now().saturating_duration_since(begins);
                    used.borrow_mut().restart();
                    return Some(begins + late);
                }
                // Others are not ready yet.
                Some(Answer::Done) => {}
                _ => return None,
            }
        }
    };
    let mut on_second = |second: &Second| {
        used.borrow_mut().second(second);
        let second = FromGenerator::Second(Box::new(second.clone()));
        coordinator.ask(Question::Generator(second));
    };
    let result = job.drive(stop, &mut begin, &mut on_second)?;
    late += Duration::from_nanos(result.began_late_ns);
    let host = used.into_inner().end(late, job, &result);
    Ok((Box::new(result), host))
}
