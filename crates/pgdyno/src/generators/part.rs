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
use pgdyno_workload::{LoadPlan, run_segment};
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
            self.meeting.arrive(self.name);
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
        Ok(Done {
            host: used.into_inner().end(Duration::from_nanos(load.began_late_ns)),
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
                if self.clock_error_ns.is_none() {
                    self.clock_error_ns = Some(clock_error_ns);
                    meeting.arrive(self.part.name);
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

    /// The shares, of a host that began so late.
    pub(crate) fn end(mut self, late: Duration) -> GeneratorHost {
        let readings = self.series.tick(&self.context.host);
        // The first line of a metric of CPUs is that of all of them.
        let share = |metric: &str| readings.iter().find_map(|reading| reading.value(metric));
        let idle = share("cpu.idle_ratio").map(|idle| idle + share("cpu.iowait_ratio").unwrap_or(0.0));
        GeneratorHost {
            idle,
            steal: share("cpu.steal_ratio"),
            network: network_use(&self.context.host, &readings),
            began_late_ns: u64::try_from(late.as_nanos()).unwrap_or(u64::MAX),
        }
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
