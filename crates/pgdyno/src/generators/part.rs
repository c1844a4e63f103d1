//! One host's part in a load that several drive together.

use super::meeting::Meeting;
use crate::context::{Context, variable};
use crate::failure::with_hint;
use crate::ssh_way::run_on;
use pgdyno_engine::{LoadResult, Plan, Second, Segment, SegmentSecond, Warmup};
use pgdyno_host::{HostSeries, HostSeriesOptions, network_use};
use pgdyno_lab::endpoint;
use pgdyno_record::GeneratorHost;
use pgdyno_remote::{
    Answer, CarriedFile, FromGenerator, Listener, Output, PROTOCOL, Question, Request, SshWay,
};
use pgdyno_server::Found;
use pgdyno_workload::{LoadPlan, own_cpus, run_segment};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Name of the file with a segment's job, which is carried to its host and is on no disk.
pub(crate) const JOB: &str = "job.json";

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
    /// The load and this host's segment of it, with threads by this host's CPUs where the plan has
    /// none: half of them, for the server may be here too.
    fn part(&self) -> (LoadPlan, Segment) {
        if !self.plan.threads_by_host {
            return (self.plan.clone(), self.segment);
        }
        let (drive, segment) = self.segment.spread(&self.plan.drive, own_cpus() / 2);
        let plan = LoadPlan {
            drive,
            ..self.plan.clone()
        };
        (plan, segment)
    }

    /// Threads of this host.
    fn threads(&self) -> u32 {
        let servers = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        self.part().1.threads.saturating_mul(servers)
    }

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
        let (plan, segment) = self.part();
        run_segment(&endpoints, (&plan, segment), stop, begin, on_second).map_err(|error| error.to_string())
    }
}

/// What a host has come to.
pub(super) struct Done {
    pub(super) load: LoadResult,
    pub(super) host: GeneratorHost,
}

/// One host's part in a meeting.
pub(super) struct Part<'a> {
    pub(super) context: &'a Context,
    pub(super) number: u32,
    pub(super) name: &'a str,
    pub(super) job: &'a Job,
    pub(super) meeting: &'a Meeting,
    /// Set when this host is to end, and again when that takes long.
    pub(super) stop: &'a Arc<AtomicBool>,
    pub(super) seconds: Sender<SegmentSecond>,
}

impl Part<'_> {
    fn named(&self, why: impl Display) -> String {
        format!("{}: {why}", self.name)
    }

    /// Drives it here; an error names the host.
    pub(super) fn here(&self) -> Result<Done, String> {
        let used = RefCell::new(HostUse::new(self.context));
        let mut begin = || {
            self.meeting.arrive(self.name, Duration::ZERO);
            let begins = loop {
                if let Some(begins) = self.meeting.begin(self.stop) {
                    break begins;
                }
            };
            used.borrow_mut().restart();
            begins.map(|begins_ns| self.meeting.clock + Duration::from_nanos(begins_ns))
        };
        let mut on_second = |second: &Second| {
            used.borrow_mut().second(second);
            let _ = self.seconds.send((self.number, Some(second.clone())));
        };
        let load = self
            .job
            .drive(self.stop, &mut begin, &mut on_second)
            .map_err(|why| self.named(why))?;
        let late = Duration::from_nanos(load.began_late_ns);
        Ok(Done {
            host: used.into_inner().end(late, self.job, &load),
            load,
        })
    }

    /// Drives it there; an error names the host.
    pub(super) fn there(&self, way: SshWay<'_>) -> Result<Done, String> {
        let content = serde_json::to_string(self.job).map_err(|error| self.named(error))?;
        let request = request(JOB, content);
        let mut heard = Heard::of(self);
        let ended = run_on(self.context, way, &request, &mut heard, self.stop);
        match (heard.failed, ended, heard.done) {
            (Some(why), _, _) => Err(self.named(why)),
            (None, _, Some(done)) => Ok(done),
            (None, Err(error), None) => Err(with_hint(error)),
            (None, Ok(code), None) => Err(self.named(format!(
                "it ends with exit code {code} and without a result: {}",
                heard.remarks.text()
            ))),
        }
    }
}

/// What a host has said so far.
struct Heard<'p> {
    part: &'p Part<'p>,
    clock_error_ns: Option<u64>,
    /// Number of its last second.
    seconds: u32,
    done: Option<Done>,
    failed: Option<String>,
    remarks: Remarks,
}

impl<'p> Heard<'p> {
    fn of(part: &'p Part<'p>) -> Heard<'p> {
        Heard {
            part,
            clock_error_ns: None,
            seconds: 0,
            done: None,
            failed: None,
            remarks: Remarks::default(),
        }
    }

    fn answer_to(&mut self, said: FromGenerator) -> Result<Answer, String> {
        let Part { meeting, job, .. } = self.part;
        Ok(match said {
            FromGenerator::Clock => Answer::Clock(meeting.now_ns()),
            FromGenerator::Ready { clock_error_ns } => {
                if self.clock_error_ns.replace(clock_error_ns).is_none() {
                    meeting.arrive(self.part.name, Duration::from_nanos(clock_error_ns));
                }
                meeting.begin(self.part.stop).map_or(Answer::Done, Answer::Begin)
            }
            FromGenerator::Second(second) => {
                second.check()?;
                if second.number <= self.seconds || u64::from(second.number) > longest_s(&job.plan.drive) {
                    return Err(format!("second {} after second {}", second.number, self.seconds));
                }
                self.seconds = second.number;
                let _ = self.part.seconds.send((self.part.number, Some(*second)));
                Answer::Done
            }
            FromGenerator::Ended { result, mut host } => {
                result.check(job.servers.len())?;
                let error_ns = self.clock_error_ns.unwrap_or_default();
                host.began_late_ns = host.began_late_ns.saturating_add(error_ns);
                self.done = Some(Done { load: *result, host });
                Answer::Done
            }
            FromGenerator::Failed(why) => return Err(why),
        })
    }
}

impl Listener for Heard<'_> {
    fn printed(&mut self, output: Output<'_>) {
        self.remarks.printed(output);
    }

    fn answer(&mut self, question: Question) -> Answer {
        let Question::Generator(said) = question else {
            return Answer::Failed("a host of a load keeps no results".to_owned());
        };
        self.answer_to(said).unwrap_or_else(|why| {
            // All end with it.
            self.part.meeting.fail(&self.part.named(&why));
            self.failed.get_or_insert(why);
            Answer::Done
        })
    }
}

/// What a host prints, kept up to a size.
#[derive(Default)]
pub(super) struct Remarks(Vec<u8>);

impl Remarks {
    const BYTES: usize = 4 << 10;

    /// In one line.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().replace('\n', "; ")
    }
}

impl Listener for Remarks {
    fn printed(&mut self, output: Output<'_>) {
        let (Output::Data(bytes) | Output::Remark(bytes)) = output;
        let room = Remarks::BYTES.saturating_sub(self.0.len()).min(bytes.len());
        self.0.extend_from_slice(&bytes[..room]);
    }
}

/// A command for a host of a load, with one file.
pub(super) fn request(file: &str, content: String) -> Request {
    Request {
        protocol: PROTOCOL,
        arguments: ["agent", "--load"].map(str::to_owned).to_vec(),
        variables: Vec::new(),
        files: vec![CarriedFile {
            path: file.to_owned(),
            full_name: file.to_owned(),
            content: Some(content),
        }],
        takeover: None,
    }
}

/// Seconds that a load may report beyond those of its plan.
const SECONDS_BESIDE: u64 = 10;

/// Seconds that a load reports at most.
fn longest_s(drive: &Plan) -> u64 {
    length(drive).as_secs().saturating_add(SECONDS_BESIDE)
}

/// Length of a load with its warm-up.
pub(crate) fn length(drive: &Plan) -> Duration {
    let (Warmup::For(warmup) | Warmup::Settled(warmup)) = drive.warmup;
    warmup.saturating_add(drive.measure)
}

/// What a host used of its CPUs and its network while it drove the measured time.
pub(crate) struct HostUse<'a> {
    context: &'a Context,
    /// From the end of the warm-up on, without one from the begin of the load on.
    series: HostSeries,
}

impl<'a> HostUse<'a> {
    pub(crate) fn new(context: &'a Context) -> HostUse<'a> {
        HostUse {
            context,
            series: begun(context),
        }
    }

    /// Counts from now on, and no waiting before.
    pub(crate) fn restart(&mut self) {
        self.series = begun(self.context);
    }

    pub(crate) fn second(&mut self, second: &Second) {
        if !second.measured {
            self.restart();
        }
    }

    /// The shares, of a host that began so late, and what the load that it drove shows of it.
    pub(crate) fn end(mut self, late: Duration, job: &Job, load: &LoadResult) -> GeneratorHost {
        let readings = self.series.tick(&self.context.host);
        // The first line of a metric of CPUs is that of all of them.
        let share = |metric: &str| readings.iter().find_map(|reading| reading.value(metric));
        let idle = share("cpu.idle_ratio").map(|idle| idle + share("cpu.iowait_ratio").unwrap_or(0.0));
        GeneratorHost {
            idle,
            steal: share("cpu.steal_ratio"),
            network: network_use(&self.context.host, &readings),
            began_late_ns: u64::try_from(late.as_nanos()).unwrap_or(u64::MAX),
            ..of_load(load, job.threads())
        }
    }
}

/// What a load shows of the threads that drove it.
fn of_load(load: &LoadResult, threads: u32) -> GeneratorHost {
    let all_us = load.measured_s * 1e6 * f64::from(threads);
    let parts = load.measured.parts.as_ref();
    let lag = parts.map(|parts| &parts.lag_ns).filter(|lag| !lag.is_empty());
    GeneratorHost {
        threads: Some(threads),
        threads_cpu: (all_us > 0.0).then(|| load.client_cpu_us / all_us),
        lag_p99_ns: lag.map(|lag| lag.value_at_percentile(99.0)),
        ..GeneratorHost::default()
    }
}

/// A series of the host that begins now.
fn begun(context: &Context) -> HostSeries {
    let mut series = HostSeries::new(HostSeriesOptions {
        disks: Some(Vec::new()),
        ..HostSeriesOptions::default()
    });
    series.tick(&context.host);
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgdyno_workload::Workload;

    #[test]
    fn host_chooses_its_threads_where_the_plan_has_none() {
        let segment = Segment {
            first: 1,
            threads: 1,
            step: 1,
        };
        let threads = |threads_by_host: bool| {
            let job = Job {
                plan: LoadPlan {
                    threads_by_host,
                    ..LoadPlan::closed(Workload::Simple, 10_000, 2)
                },
                segment,
                servers: vec![String::new()],
                is_pooled: false,
            };
            (job.threads(), job.part().0.drive.threads)
        };
        let own = (own_cpus() / 2).max(1);
        assert_eq!(threads(false), (1, 2));
        assert_eq!(threads(true), (own, 2 * own));
    }

    #[test]
    fn share_of_threads_is_of_all_of_them_in_the_measured_time() {
        let mut load = LoadResult::empty();
        assert_eq!(of_load(&load, 2).threads_cpu, None);
        (load.measured_s, load.client_cpu_us) = (10.0, 15e6);
        let host = of_load(&load, 2);
        assert_eq!((host.threads_cpu, host.lag_p99_ns), (Some(0.75), None));
        load.measured = pgdyno_engine::Books::new(true);
        let lag = load.measured.parts.as_mut().map(|parts| &mut parts.lag_ns);
        lag.expect("an open loop")
            .record(1_000_000)
            .expect("within bounds");
        let lag_ns = of_load(&load, 2).lag_p99_ns.expect("a lag");
        assert!((1_000_000..1_020_000).contains(&lag_ns), "{lag_ns}");
    }
}
