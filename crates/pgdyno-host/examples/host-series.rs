//! Samples this machine and shows what a tick costs: `host-series [--perf] [--quiet] POSTMASTER
//! TICKS INTERVAL_MS`.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own, which prints, waits and takes arguments"
)]

use pgdyno_host::series::Reading;
use pgdyno_host::{HostSeries, HostSeriesOptions, LocalHost, PerfCounters};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

fn cpu_us() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000
}

fn show(reading: &Reading) {
    let interval = reading.interval().map_or(0.0, |interval| interval.as_secs_f64());
    println!("-- over {interval:.3} s");
    for (key, value) in &reading.values {
        println!("{:40} {:20} {value:.3}", key.metric, key.label);
    }
    for gap in &reading.gaps {
        println!("gap: {}: {}", gap.source, gap.reason);
    }
}

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse::<u32>().ok());
    let has = |flag: &str| std::env::args().any(|word| word == flag);
    let postmaster = numbers.next().filter(|pid| *pid > 0);
    let (ticks, interval_ms) = (numbers.next().unwrap_or(3), numbers.next().unwrap_or(1000));
    let host = LocalHost::new();
    let mut series = HostSeries::new(HostSeriesOptions {
        disks: None,
        postmaster,
        cgroup_of: postmaster,
    });
    let mut perf = postmaster.filter(|_| has("--perf")).map(PerfCounters::open);
    let mut costs = Vec::new();
    for tick in 0..ticks {
        let start = cpu_us();
        let mut readings = series.tick(&host);
        let between = cpu_us();
        readings.extend(perf.as_mut().map(PerfCounters::tick));
        costs.push((between - start, cpu_us() - between));
        if !has("--quiet") || readings.iter().any(|reading| !reading.gaps.is_empty()) {
            println!("tick {tick}");
            readings
                .iter()
                .filter(|reading| !has("--quiet") || !reading.gaps.is_empty())
                .for_each(show);
        }
        std::thread::sleep(Duration::from_millis(interval_ms.into()));
    }
    let (first, rest) = costs.split_first().expect("a tick or more");
    println!("CPU of the first tick: {} us, counters {} us", first.0, first.1);
    let mut host_us: Vec<i64> = rest.iter().map(|cost| cost.0).collect();
    let mut perf_us: Vec<i64> = rest.iter().map(|cost| cost.1).collect();
    for (name, costs) in [("host", &mut host_us), ("counters", &mut perf_us)] {
        costs.sort_unstable();
        if let (Some(median), Some(worst)) = (costs.get(costs.len() / 2), costs.last()) {
            let mean = costs.iter().sum::<i64>() / i64::try_from(costs.len()).unwrap_or(1);
            println!("CPU of a further tick, {name}: mean {mean} us, median {median} us, worst {worst} us");
        }
    }
}
