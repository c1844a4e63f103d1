//! A load from several hosts for a run on another host: asked for there, and driven by the
//! coordinator.

use super::{LOCAL, LoadHosts, SOON, shared, ways_of_hosts};
use crate::context::Context;
use pgdyno_engine::{Second, join_results};
use pgdyno_lab::{Generated, Generators, LoadFrom};
use pgdyno_remote::{Answer, Coordinator, LoadHostWays, Question, SharedLoad, SshHost};
use pgdyno_server::Conninfo;
use pgdyno_workload::LoadPlan;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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

    fn objections(
        &self,
        from: &LoadFrom<'_>,
        ways: &[&Conninfo],
        stop: &AtomicBool,
    ) -> Result<Vec<String>, String> {
        self.ask(Question::AskLoadHosts(ways_of_hosts(from, ways)?))?;
        loop {
            let stop = stop.load(Ordering::Relaxed);
            if let Answer::Objections(objections) = self.ask(Question::NextOfHosts { stop })? {
                return Ok(objections);
            }
        }
    }
}

impl Generators for LoadHostsAfar<'_> {
    fn check(&self, from: &LoadFrom<'_>, ways: &[&Conninfo], stop: &AtomicBool) -> Vec<String> {
        self.objections(from, ways, stop).unwrap_or_else(|why| vec![why])
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
            match self.ask(Question::NextOfHosts { stop })? {
                Answer::Second(second) => {
                    second.check()?;
                    on_second(&second);
                    seconds.push(second.figures());
                }
                Answer::Driven {
                    result,
                    hosts,
                    warnings,
                } => {
                    result.check(ways.len())?;
                    let load = join_results([*result], seconds).ok_or("no result")?;
                    return Ok(Generated {
                        load,
                        hosts,
                        warnings,
                    });
                }
                // None has come yet.
                _ => {}
            }
        }
    }
}

/// What hosts do for a run on another host; it ends with its value.
pub(crate) struct AskedOfHosts {
    seconds: Receiver<Second>,
    thread: Option<JoinHandle<Answer>>,
    stop: Arc<AtomicBool>,
}

impl Drop for AskedOfHosts {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl AskedOfHosts {
    /// Has them asked whether they reach the servers; `target` is the host of the run, with whether
    /// it has root's rights there.
    pub(crate) fn whether_they_reach(
        context: &Context,
        mut hosts: LoadHostWays,
        target: (&SshHost, bool),
    ) -> io::Result<AskedOfHosts> {
        name_target(&mut hosts, target.0);
        AskedOfHosts::begin(context, target, move |load_hosts, stop, _| {
            Answer::Objections(load_hosts.objections(&hosts, stop))
        })
    }

    /// Has them drive a load; `target` is the host of the run, with whether it has root's rights
    /// there.
    pub(crate) fn driving(
        context: &Context,
        mut load: SharedLoad,
        target: (&SshHost, bool),
    ) -> io::Result<AskedOfHosts> {
        name_target(&mut load.hosts, target.0);
        AskedOfHosts::begin(context, target, move |load_hosts, stop, seconds| {
            let driven = load_hosts.drive_shared(&load, stop, &mut |second| {
                let _ = seconds.send(second.clone());
            });
            match driven {
                Ok(Generated {
                    load,
                    hosts,
                    warnings,
                }) => Answer::Driven {
                    result: Box::new(load),
                    hosts,
                    warnings,
                },
                Err(why) => Answer::Failed(why),
            }
        })
    }

    fn begin(
        context: &Context,
        (target, sudo): (&SshHost, bool),
        ask: impl FnOnce(&LoadHosts<'_>, &AtomicBool, Sender<Second>) -> Answer + Send + 'static,
    ) -> io::Result<AskedOfHosts> {
        let (send, seconds) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("load-hosts".into()).spawn({
            let (context, stop, target) = (context.clone(), Arc::clone(&stop), target.clone());
            move || {
                let load_hosts = LoadHosts {
                    context: &context,
                    sudo_on: sudo.then_some(&target),
                };
                ask(&load_hosts, &stop, send)
            }
        })?;
        Ok(AskedOfHosts {
            seconds,
            thread: Some(thread),
            stop,
        })
    }

    /// The next second of a load, where one comes soon, or the end.
    pub(crate) fn next(&mut self, stop: bool) -> Answer {
        if stop {
            self.stop.store(true, Ordering::Relaxed);
        }
        match self.seconds.recv_timeout(SOON) {
            Ok(second) => Answer::Second(Box::new(second)),
            Err(RecvTimeoutError::Timeout) => Answer::Done,
            Err(RecvTimeoutError::Disconnected) => match self.thread.take().map(JoinHandle::join) {
                Some(Ok(answer)) => answer,
                Some(Err(_)) | None => Answer::Failed("the load hosts' thread has ended".to_owned()),
            },
        }
    }
}

/// What the run itself calls local is its own host.
fn name_target(hosts: &mut LoadHostWays, target: &SshHost) {
    for (name, _) in &mut hosts.0 {
        if name == LOCAL {
            *name = target.to_string();
        }
    }
}
