//! Loads that several hosts drive together: each has a segment of the load's threads, and all begin at one instant.

use crate::context::{Context, variable};
use crate::failure::Failure;
use crate::ssh_way::{CARRIED, binary, ssh_program};
use pgdyno_engine::{
    LoadResult, Plan, Second, Segment, SegmentSecond, SentResult, SentSecond, Warmup, join_results,
    join_seconds,
};
use pgdyno_host::HostAccess;
use pgdyno_lab::{Generated, Generators, LoadFrom, endpoint};
use pgdyno_remote::{
    Answer, CarriedFile, Coordinator, FromGenerator, GeneratorHost, Host, On, Output, PROTOCOL, Question,
    Request, SharedLoad, SshHost, SshWay,
};
use pgdyno_server::{Conninfo, Found, for_other_host};
use pgdyno_workload::{LoadPlan, run_segment};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The host that this process runs on.
const LOCAL: &str = "local";
/// Name of the file with a segment's job, which is carried to its host and is on no disk.
pub(crate) const JOB: &str = "job.json";
/// Time between the answer to the last host that is ready and the beginning: on its way the answer may be late.
const LEAD: Duration = Duration::from_millis(200);
/// How long a host has to end in order.
const END_MAX: Duration = Duration::from_secs(30);
/// How often a request to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the next second is waited for before the run is answered that there is none yet.
const SOON: Duration = Duration::from_secs(1);
/// A host with less than this share of idle CPU could not drive more: what it measured is its own limit.
const IDLE_MIN: f64 = 0.05;
/// A host that lost more than this share of its CPU to others.
const STEAL_MAX: f64 = 0.02;
/// A host that began so much later than the others has missed some of what they did.
const LATE_MAX: Duration = Duration::from_millis(50);

/// What a host is to drive.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) plan: LoadPlan,
    pub(crate) segment: Segment,
    /// Connection strings, with passwords.
    pub(crate) servers: Vec<String>,
    pub(crate) is_pooled: bool,
}

impl Job {
    /// Drives it from this process.
    pub(crate) fn drive(
        &self,
        stop: &Arc<AtomicBool>,
        begin: &mut dyn FnMut() -> Option<Instant>,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<LoadResult, String> {
        let mut endpoints = Vec::new();
        for text in &self.servers {
            let found = Found::find(text, &variable).map_err(|error| error.to_string())?;
            endpoints.push(endpoint(&found.conninfo.proxied(self.is_pooled)).stopped_by(stop));
        }
        let part = (&self.plan, self.segment);
        run_segment(&endpoints, part, stop, begin, on_second).map_err(|error| error.to_string())
    }
}

/// Where a segment is driven.
enum Place {
    Here,
    Ssh(SshHost),
}

/// The hosts that this user's ssh leads to.
pub(crate) struct LoadHosts<'a> {
    context: &'a Context,
    /// The host on which it has root's rights.
    sudo_on: Option<&'a SshHost>,
}

impl<'a> LoadHosts<'a> {
    pub(crate) fn new(context: &'a Context) -> LoadHosts<'a> {
        LoadHosts {
            context,
            sudo_on: None,
        }
    }
}

/// The hosts of one load: all begin, or none does.
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
    /// The origin of the common clock.
    clock: Instant,
    hosts: usize,
}

#[derive(Default)]
struct State {
    ready: usize,
    /// When all begin, once that is known.
    begins_ns: Option<u64>,
    /// The first host that cannot, or has been lost, and why.
    failed: Option<String>,
}

impl Meeting {
    fn new(hosts: usize) -> Meeting {
        Meeting {
            state: Mutex::default(),
            changed: Condvar::new(),
            clock: Instant::now(),
            hosts,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn fail(&self, why: String) {
        self.state().failed.get_or_insert(why);
        self.changed.notify_all();
    }

    fn has_failed(&self) -> bool {
        self.state().failed.is_some()
    }

    /// One more is ready.
    fn arrive(&self) {
        let mut state = self.state();
        state.ready += 1;
        if state.ready == self.hosts {
            let lead = u64::try_from(LEAD.as_nanos()).unwrap_or_default();
            state.begins_ns = Some(self.now_ns() + lead);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until all are ready, not for long: when they begin, which they do not if one of them fails or somebody asks to stop; the outer
    /// `None` where that is not known yet.
    fn begin(&self, stop: &AtomicBool) -> Option<Option<u64>> {
        let state = self.state();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, SOON, |state| {
                state.begins_ns.is_none() && state.failed.is_none() && !stop.load(Ordering::Relaxed)
            })
            .unwrap_or_else(PoisonError::into_inner);
        match (&state.failed, state.begins_ns) {
            (Some(_), _) => Some(None),
            _ if stop.load(Ordering::Relaxed) => Some(None),
            (None, Some(begins_ns)) => Some(Some(begins_ns)),
            (None, None) => None,
        }
    }
}

/// What a host has come to.
struct Done {
    load: LoadResult,
    host: GeneratorHost,
}

/// One host's part in a meeting.
struct Part<'a> {
    context: &'a Context,
    number: u32,
    name: &'a str,
    job: &'a Job,
    meeting: &'a Meeting,
    /// Set when this host is to end, and again when that takes long.
    stop: &'a Arc<AtomicBool>,
    seconds: Sender<SegmentSecond>,
}

impl Part<'_> {
    /// Drives it here.
    fn here(&self) -> Result<Done, String> {
        let mut begin = || {
            self.meeting.arrive();
            loop {
                if let Some(begins) = self.meeting.begin(self.stop) {
                    return begins.map(|begins_ns| self.meeting.clock + Duration::from_nanos(begins_ns));
                }
            }
        };
        let mut before = None;
        let mut on_second = |second: &Second| {
            if second.measured && before.is_none() {
                before = Ticks::now(self.context);
            }
            let _ = self.seconds.send((self.number, Some(second.clone())));
        };
        let load = self.job.drive(self.stop, &mut begin, &mut on_second)?;
        let used = before
            .zip(Ticks::now(self.context))
            .map(|(before, after)| after.since(before));
        Ok(Done {
            load,
            host: GeneratorHost {
                idle: used.map(|(idle, _)| idle),
                steal: used.map(|(_, steal)| steal),
                began_late_ns: 0,
            },
        })
    }

    /// Drives it there.
    fn there(&self, host: &Host<'_>) -> Result<Done, String> {
        let content = serde_json::to_string(self.job).map_err(|error| error.to_string())?;
        let request = Request {
            protocol: PROTOCOL,
            arguments: ["agent", "--load"].map(str::to_owned).to_vec(),
            variables: Vec::new(),
            files: vec![CarriedFile {
                path: JOB.to_owned(),
                full_name: JOB.to_owned(),
                content: Some(content),
            }],
            takeover: None,
        };
        let (mut remarks, mut failed) = (Vec::new(), None);
        let mut heard = HeardOf::default();
        let mut on_output = |output: Output<'_>| {
            let (Output::Data(bytes) | Output::Remark(bytes)) = output;
            if remarks.len() < REMARKS_MAX {
                remarks.extend_from_slice(bytes);
            }
        };
        let mut on_question = |question: Question| {
            let Question::Generator(said) = question else {
                return Answer::Failed("a host of a load keeps no results".to_owned());
            };
            match self.answer(said, &mut heard) {
                Ok(answer) => answer,
                Err(why) => {
                    // All end with it.
                    self.meeting.fail(format!("{}: {why}", self.name));
                    failed.get_or_insert(why);
                    Answer::Done
                }
            }
        };
        let on = On {
            said: &mut |_| {},
            output: &mut on_output,
            question: &mut on_question,
            progress: &mut |_, _| {},
        };
        let ended = host.run(&request, on, self.stop);
        match (failed, ended, heard.done) {
            (Some(why), _, _) => Err(why),
            (None, _, Some(done)) => Ok(done),
            (None, Err(error), None) => {
                let error = Failure::from(error);
                let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                Err(format!("{error}{hint}"))
            }
            (None, Ok(code), None) => Err(format!(
                "it ends with exit code {code} and without a result: {}",
                String::from_utf8_lossy(&remarks).trim()
            )),
        }
    }

    fn answer(&self, said: FromGenerator, heard: &mut HeardOf) -> Result<Answer, String> {
        Ok(match said {
            FromGenerator::Clock => Answer::Clock(self.meeting.now_ns()),
            FromGenerator::Ready { clock_error_ns } => {
                if heard.clock_error_ns.is_none() {
                    heard.clock_error_ns = Some(clock_error_ns);
                    self.meeting.arrive();
                }
                self.meeting.begin(self.stop).map_or(Answer::Done, Answer::Begin)
            }
            FromGenerator::Second(second) => {
                let second = second.received()?;
                let drive = &self.job.plan.drive;
                let longest = drive.measure.as_secs() + SECONDS_BESIDE;
                if second.number != heard.seconds + 1 || u64::from(second.number) > longest + warmup_s(drive)
                {
                    return Err(format!("second {} after second {}", second.number, heard.seconds));
                }
                heard.seconds = second.number;
                let _ = self.seconds.send((self.number, Some(second)));
                Answer::Done
            }
            FromGenerator::Ended { result, mut host } => {
                let load = result.received(self.job.servers.len())?;
                let error_ns = heard.clock_error_ns.unwrap_or_default();
                host.began_late_ns = host.began_late_ns.saturating_add(error_ns);
                heard.done = Some(Done { load, host });
                Answer::Done
            }
            FromGenerator::Failed(why) => return Err(why),
        })
    }
}

/// What a host has said so far.
#[derive(Default)]
struct HeardOf {
    clock_error_ns: Option<u64>,
    /// Number of its last second.
    seconds: u32,
    done: Option<Done>,
}

/// Seconds that a load may report beyond those of its plan.
const SECONDS_BESIDE: u64 = 10;

fn warmup_s(drive: &Plan) -> u64 {
    match drive.warmup {
        Warmup::For(time) | Warmup::Settled(time) => time.as_secs(),
    }
}

/// Ticks of all CPUs since the host has started.
#[derive(Clone, Copy)]
pub(crate) struct Ticks {
    all: u64,
    idle: u64,
    steal: u64,
}

impl Ticks {
    pub(crate) fn now(context: &Context) -> Option<Ticks> {
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
    pub(crate) fn since(self, before: Ticks) -> (f64, f64) {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        (
            self.idle.saturating_sub(before.idle) as f64 / all,
            self.steal.saturating_sub(before.steal) as f64 / all,
        )
    }
}

/// What is kept of what a host prints.
const REMARKS_MAX: usize = 4 << 10;

/// The load of a plan for the hosts that a user names.
fn shared(from: &LoadFrom<'_>, ways: &[&Conninfo], plan: &LoadPlan) -> Result<SharedLoad, String> {
    let is_here =
        |way: &&&Conninfo| way.is_by_socket() || way.address().is_some_and(|address| address.is_loopback());
    let is_afar = from.hosts.iter().any(|name| name != LOCAL);
    if let Some(way) = ways
        .iter()
        .find(is_here)
        .filter(|_| is_afar && from.connection.is_none())
    {
        return Err(format!(
            "{} is a server's address on its own host alone, and would be another server's on a load host: --load-connection \
             host=..., or connection in the file's [load], says how load hosts reach it",
            way.place()
        ));
    }
    let hosts = from.hosts.iter().map(|name| {
        let connection = from.connection.filter(|_| name != LOCAL);
        let servers = ways.iter().map(|way| for_other_host(way, connection));
        let servers = servers.collect::<Result<Vec<String>, _>>();
        Ok((name.clone(), servers.map_err(|error| error.to_string())?))
    });
    let mut plan = plan.clone();
    // The CPUs of one host are not those of another.
    plan.drive.cpus.clear();
    Ok(SharedLoad {
        hosts: hosts.collect::<Result<_, String>>()?,
        is_pooled: ways.iter().any(|way| way.is_proxied()),
        plan,
    })
}

impl Generators for LoadHosts<'_> {
    fn drive(
        &self,
        from: &LoadFrom<'_>,
        ways: &[&Conninfo],
        plan: &LoadPlan,
        stop: &AtomicBool,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Generated, String> {
        self.drive_shared(&shared(from, ways, plan)?, stop, on_second)
    }
}

/// The hosts that the coordinator's ssh leads to.
pub(crate) struct LoadHostsAfar<'a> {
    pub(crate) coordinator: &'a Coordinator,
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
                    let second = second.received()?;
                    on_second(&second);
                    seconds.push(second.figures());
                }
                Answer::Driven { result, warnings } => {
                    let load = join_results([result.received(ways.len())?], seconds).ok_or("no result")?;
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
    seconds: Receiver<SentSecond>,
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
                    let _ = send.send(SentSecond::of(second));
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
                    result: Box::new(SentResult::of(&load)),
                    warnings,
                },
                Some(Ok(Err(why))) => Answer::Failed(why),
                Some(Err(_)) | None => Answer::Failed("the load's thread has ended".to_owned()),
            },
        }
    }
}

impl LoadHosts<'_> {
    fn drive_shared(
        &self,
        shared: &SharedLoad,
        stop: &AtomicBool,
        on_second: &mut dyn FnMut(&Second),
    ) -> Result<Generated, String> {
        let program = ssh_program().map_err(|error| error.to_string())?;
        let mut jobs = Vec::new();
        let among = u32::try_from(shared.hosts.len()).unwrap_or(u32::MAX);
        let segments = Segment::divide(&shared.plan.drive, among);
        for ((name, servers), segment) in shared.hosts.iter().zip(segments) {
            let place = match &**name {
                LOCAL => Place::Here,
                name => Place::Ssh(name.parse()?),
            };
            let job = Job {
                plan: shared.plan.clone(),
                segment,
                servers: servers.clone(),
                is_pooled: shared.is_pooled,
            };
            jobs.push((name, place, job));
        }
        let binary_for = |machine: &str| binary(self.context, machine);
        let meeting = Meeting::new(jobs.len());
        let stops: Vec<Arc<AtomicBool>> = jobs.iter().map(|_| Arc::default()).collect();
        let (sender, receiver) = channel();
        let is_over = AtomicBool::new(false);
        let (ended, seconds) = thread::scope(|scope| {
            let mut handles = Vec::new();
            for (number, ((name, place, job), stop)) in (0..).zip(jobs.iter().zip(&stops)) {
                let part = Part {
                    context: self.context,
                    number,
                    name,
                    job,
                    meeting: &meeting,
                    stop,
                    seconds: sender.clone(),
                };
                let (program, binary_for) = (&program, &binary_for);
                handles.push(scope.spawn(move || {
                    let ended = match place {
                        Place::Here => part.here(),
                        Place::Ssh(host) => part.there(&Host {
                            way: SshWay {
                                program,
                                host,
                                sudo: self.sudo_on.is_some_and(|own| own == host),
                                hidden: &CARRIED,
                            },
                            version: env!("CARGO_PKG_VERSION"),
                            binary_for,
                        }),
                    };
                    if let Err(why) = &ended {
                        part.meeting.fail(format!("{}: {why}", part.name));
                    }
                    let _ = part.seconds.send((part.number, None));
                    ended
                }));
            }
            drop(sender);
            // One that fails ends all, and so does a request to stop; who is asked a second time ends its connection.
            scope.spawn(|| {
                let mut asked: Option<Instant> = None;
                while !is_over.load(Ordering::Relaxed) {
                    let is_to_end = stop.load(Ordering::Relaxed) || meeting.has_failed();
                    if is_to_end && asked.is_none_or(|asked| asked.elapsed() > END_MAX) {
                        asked = Some(Instant::now());
                        stops.iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
                    }
                    thread::park_timeout(LOOK_EVERY);
                }
            });
            let seconds = join_seconds(
                &receiver,
                u32::try_from(jobs.len()).unwrap_or(u32::MAX),
                on_second,
            );
            let ended: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
            is_over.store(true, Ordering::Relaxed);
            (ended, seconds)
        });
        if let Some(why) = meeting.state().failed.take() {
            return Err(why);
        }
        let (mut loads, mut warnings) = (Vec::new(), Vec::new());
        for (ended, (name, ..)) in ended.into_iter().zip(&jobs) {
            match ended {
                Ok(Ok(done)) => {
                    warnings.extend(saturation(name, &done.host));
                    loads.push(done.load);
                }
                Ok(Err(why)) => return Err(format!("{name}: {why}")),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let load = join_results(loads, seconds).ok_or("no host has a part of it")?;
        Ok(Generated { load, warnings })
    }
}

/// How it shows that a host could not drive its part.
fn saturation(name: &str, host: &GeneratorHost) -> Vec<String> {
    let percent = |share: f64| share * 100.0;
    let late = Duration::from_nanos(host.began_late_ns);
    [
        host.idle.filter(|idle| *idle < IDLE_MIN).map(|idle| {
            format!(
                "load host {name}: its CPUs were idle for {:.1} % of the time; it may be what limits the load",
                percent(idle)
            )
        }),
        host.steal.filter(|steal| *steal > STEAL_MAX).map(|steal| {
            format!(
                "load host {name}: its hypervisor gave {:.1} % of its CPU to others",
                percent(steal)
            )
        }),
        (late > LATE_MAX).then(|| format!("load host {name}: it began {} ms late", late.as_millis())),
    ]
    .into_iter()
    .flatten()
    .collect()
}
