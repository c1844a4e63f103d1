//! The noise floor: the same short load again and again.

use super::{Bench, Event, Measured, shown};
use crate::measure::measure;
use crate::probe::{Depth, Probe};
use pgdyno_engine::{Plan, Protocol, Warmup};
use pgdyno_stats::coefficient_of_variation;
use pgdyno_workload::{LoadPlan, Workload, own_cpus};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const NAME: &str = "noise";
const RUNS: u32 = 5;
const LENGTH_MS: u32 = 2000;
/// The engine's least.
const LENGTH_LEAST: Duration = Duration::from_secs(1);
const WARMUP: Duration = Duration::from_millis(300);
/// As many clients as CPUs keep a small machine busy; on a large one the load is not a test of the
/// whole machine.
const CLIENTS_MOST: u32 = 8;

impl Bench<'_> {
    fn plan(&self) -> LoadPlan {
        let clients = own_cpus().min(CLIENTS_MOST);
        LoadPlan {
            protocol: match self.asked.conninfo.is_some_and(|c| c.is_proxied()) {
                true => Protocol::Extended,
                false => Protocol::Prepared,
            },
            drive: Plan {
                warmup: Warmup::For(WARMUP),
                measure: self.asked.length_of(LENGTH_MS).max(LENGTH_LEAST),
                ..Plan::closed(clients, (clients / 2).max(1))
            },
            ..LoadPlan::closed(Workload::Simple, clients, 1)
        }
    }

    pub(super) fn noise(&mut self, on: &mut dyn FnMut(Event<'_>)) -> Measured {
        let Some(conninfo) = self.asked.conninfo else {
            return Measured::unknown(NAME, "no server was named");
        };
        let plan = self.plan();
        let probe = Probe {
            host: self.place.here.is_ok().then(|| Arc::clone(self.asked.host)),
            disk: None,
            postmaster: None,
            depth: Depth::Host,
            changes: 0,
            kills: false,
            beside: Vec::new(),
            replicating: Vec::new(),
        };
        let (mut tps, mut disturbances) = (Vec::new(), Vec::new());
        for run in 1..=RUNS {
            on(Event::Now(&format!("{NAME}, run {run} of {RUNS}")));
            let done = match measure(conninfo, &plan, &probe, (self.stop, None), &mut |_| {}) {
                Ok(done) => done,
                Err(error) => return Measured::unknown(NAME, error),
            };
            if let Some(reason) = done.broken {
                return Measured::unknown(NAME, format!("run {run} broke off: {reason}"));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Measured::unknown(NAME, "stopped");
            }
            tps.push(done.load.tps());
            disturbances.extend(
                done.warnings
                    .iter()
                    .chain(&done.disturbances)
                    .map(|d| format!("run {run}: {d}")),
            );
        }
        let Some(variation) = coefficient_of_variation(&tps) else {
            return Measured::unknown(NAME, "no transaction was finished in time");
        };
        let least = tps.iter().copied().fold(f64::INFINITY, f64::min);
        let most = tps.iter().copied().fold(0.0, f64::max);
        let spread = format!(
            "{} to {} TPS in {RUNS} runs of {} clients",
            shown(least),
            shown(most),
            plan.drive.clients
        );
        let detail = json!({
            "variation_ratio": variation,
            "tps": tps,
            "run_s": plan.drive.measure.as_secs_f64(),
            "clients": plan.drive.clients,
            "workload": plan.work.to_string(),
        });
        let mut measured = Measured::judged(NAME, variation * 100.0, spread, detail);
        measured.notes = disturbances;
        measured
    }
}
