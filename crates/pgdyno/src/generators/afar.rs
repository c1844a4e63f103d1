//! A load from several hosts for a run on another host: asked for there, and driven by the coordinator.

use super::{LOCAL, LoadHosts, SOON, shared};
use crate::context::Context;
use pgdyno_engine::{Second, join_results};
use pgdyno_lab::{Generated, Generators, LoadFrom};
use pgdyno_remote::{Answer, Coordinator, Question, SharedLoad, SshHost};
use pgdyno_server::Conninfo;
use pgdyno_workload::LoadPlan;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};

/// The hosts that the coordinator's ssh leads to.
pub(super) struct LoadHostsAfar<'a> {
    pub(super) coordinator: &'a Coordinator,
}

impl LoadHostsAfar<'_> {
    fn ask(&self, question: Question) -> Result<Answer, String> {
        match self.coordinator.ask(question) {
            Some(Answer::Failed(why)) => Err(why),
            Some(answer) => Ok(answer),
            None => Err("the connection to the coordinator is lost".to_owned()),
        }
    }
}

impl Generators for LoadHostsAfar<'_> {
    /// They are the coordinator's.
    fn check(&self, _: &LoadFrom<'_>, _: &[&Conninfo], _: &AtomicBool) -> Option<Vec<String>> {
        None
    }

    fn drive(
        &self,
        from: &LoadFrom<'_>,
        ways: &[&Conninfo],
        plan: &LoadPlan,
        stop: &AtomicBool,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Generated, String> {
        self.ask(Question::Drive(Box::new(shared(from, ways, plan)?)))?;
        let mut seconds = Vec::new();
        loop {
            let stop = stop.load(Ordering::Relaxed);
            match self.ask(Question::NextSecond { stop })? {
                Answer::Second(second) => {
                    second.check()?;
                    on_second(&second);
                    seconds.push(second.figures());
                }
                Answer::Driven { result, warnings } => {
                    result.check(ways.len())?;
                    let load = join_results([*result], seconds).ok_or("no result")?;
                    return Ok(Generated { load, warnings });
                }
                // None has come yet.
                _ => {}
            }
        }
    }
}

/// A load that is driven for a run on another host; it ends with its value.
pub(crate) struct Driving {
    seconds: Receiver<Second>,
    driver: Option<JoinHandle<Result<Generated, String>>>,
    stop: Arc<AtomicBool>,
}

impl Drop for Driving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
    }
}

impl Driving {
    /// Begins it; `target` is the host of the run, which the run itself calls local.
    pub(crate) fn begin(
        context: &Context,
        mut load: SharedLoad,
        (target, sudo): (&SshHost, bool),
    ) -> io::Result<Driving> {
        for (name, _) in &mut load.hosts {
            if name == LOCAL {
                *name = target.to_string();
            }
        }
        let (send, seconds) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let driver = thread::Builder::new().name("load-hosts".into()).spawn({
            let (context, stop, target) = (context.clone(), Arc::clone(&stop), target.clone());
            move || {
                let hosts = LoadHosts {
                    context: &context,
                    sudo_on: sudo.then_some(&target),
                };
                hosts.drive_shared(&load, &stop, &mut |second| {
                    let _ = send.send(second.clone());
                })
            }
        })?;
        Ok(Driving {
            seconds,
            driver: Some(driver),
            stop,
        })
    }

    /// Its next second, where one comes soon, or its end.
    pub(crate) fn next(&mut self, stop: bool) -> Answer {
        if stop {
            self.stop.store(true, Ordering::Relaxed);
        }
        match self.seconds.recv_timeout(SOON) {
            Ok(second) => Answer::Second(Box::new(second)),
            Err(RecvTimeoutError::Timeout) => Answer::Done,
            Err(RecvTimeoutError::Disconnected) => match self.driver.take().map(JoinHandle::join) {
                Some(Ok(Ok(Generated { load, warnings }))) => Answer::Driven {
                    result: Box::new(load),
                    warnings,
                },
                Some(Ok(Err(why))) => Answer::Failed(why),
                Some(Err(_)) | None => Answer::Failed("the load's thread has ended".to_owned()),
            },
        }
    }
}
