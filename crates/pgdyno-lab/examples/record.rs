//! Runs the recorder alone for some seconds and says what it cost:
//! `record CONNINFO SECONDS [none|tick|waits|server|whole]`.

use pgdyno_host::{HostSeries, HostSeriesOptions, LocalHost, parent};
use pgdyno_lab::{Recorder, RecorderOptions, Source};
use pgdyno_server::Found;
use pgdyno_server::series::ServerSeries;
use std::error::Error;
use std::io::Write;
use std::time::Duration;

fn cpu_ms() -> Result<f64, Box<dyn Error>> {
    // Fields 14 and 15, in hundredths of a second, are too coarse; the scheduler counts nanoseconds
    // for each thread.
    let mut sum = 0.0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e6;
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "record CONNINFO SECONDS [none|tick|waits|server|whole]";
    let conninfo = Found::find(&arguments.next().ok_or(usage)?, &|_| None)?.conninfo;
    let seconds: u64 = arguments.next().ok_or(usage)?.parse()?;
    let what = arguments.next().unwrap_or_else(|| "whole".into());
    let server = ServerSeries::connect(&conninfo)?;
    let pid = server.backend_pid();
    let mut sources: Vec<Box<dyn Source + Send>> = Vec::new();
    if what == "whole" {
        let host = LocalHost::new();
        let postmaster = parent(&host, pid.unsigned_abs())?;
        let mut series = HostSeries::new(HostSeriesOptions {
            disks: None,
            postmaster: Some(postmaster),
            cgroup_of: Some(postmaster),
        });
        sources.push(Box::new(move || series.tick(&host)));
    }
    let day = Duration::from_secs(86_400);
    #[expect(clippy::disallowed_methods, reason = "an example prints numbers")]
    let mut out = std::io::stdout();
    writeln!(out, "backend {pid}")?;
    let recorder = Recorder::start(RecorderOptions {
        sources,
        server: (what != "none").then_some(server),
        tick: if what == "waits" {
            day
        } else {
            Duration::from_secs(1)
        },
        waits_every: (what != "tick").then_some(Duration::from_millis(100)),
    })?;
    let backend = || -> Result<f64, Box<dyn Error>> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        Ok(text.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e6)
    };
    // The first reading prepares everything.
    pgdyno_server::pause(Duration::from_millis(1500));
    let (own, theirs) = (cpu_ms()?, backend()?);
    pgdyno_server::pause(Duration::from_secs(seconds));
    let (own, theirs) = (cpu_ms()? - own, backend()? - theirs);
    let series = recorder.stop();
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let per_s = 1.0 / seconds as f64;
    writeln!(
        out,
        "cpu_ms_per_s sampler {:.3} server {:.3} together {:.3}",
        own * per_s,
        theirs * per_s,
        (own + theirs) * per_s
    )?;
    writeln!(
        out,
        "metrics {} seconds_of_waits {} statements {} gaps {:?}",
        series.columns.len(),
        series.waits.len(),
        series.own_commits.sure,
        series.gaps
    )?;
    Ok(())
}
