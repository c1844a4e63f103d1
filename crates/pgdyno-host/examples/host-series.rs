//! Samples this machine and shows what a tick costs: `host-series [postmaster's pid] [ticks] [interval in ms] [perf]`.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own, which prints and waits"
)]

use pgdyno_host::{HostSeries, HostSeriesOptions, LocalHost, PerfCounters};
use rustix::process::{Rusage, RusageWho, getrusage};
use std::time::Duration;

fn cpu_us() -> i64 {
    let Rusage { ru_utime, ru_stime, .. } = getrusage(RusageWho::RUSAGE_SELF);
    [ru_utime, ru_stime].iter().map(|t| t.tv_sec * 1_000_000 + t.tv_usec).sum()
}

fn main() {
    println!("{}", cpu_us());
    let _ = (HostSeries::new(HostSeriesOptions::default()), LocalHost::new(), PerfCounters::open(1), Duration::ZERO);
}
