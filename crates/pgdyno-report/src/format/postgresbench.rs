//! The JSON of ClickHouse's PostgresBench (github.com/ClickHouse/PostgresBench, results of 2026):
//! one system with its load and runs.

use crate::model::{Report, Trial};
use pgdyno_record::TrialStatus;
use serde_json::{Value, json};

/// Trials of one treatment as the runs of a system. What PostgresBench has and pgdyno does not
/// record (the name of a rented instance, the time of loading, the deviation of response times) is
/// not in it; where the server has limits, its machine is as small as they make it. Without a
/// treatment's name it is the first. `day` is the date of the experiment, `protocol` how statements
/// were sent where that is known: "prepared".
pub fn postgresbench(report: &Report, treatment: Option<&str>, day: &str, protocol: Option<&str>) -> String {
    let treatment = report
        .treatments
        .iter()
        .find(|known| treatment.is_none_or(|name| known.name == name));
    let name = treatment.map_or("", |treatment| &treatment.name);
    let load = treatment
        .and_then(|treatment| treatment.workload.as_ref())
        .unwrap_or(&report.experiment.workload);
    let runs = report
        .trials
        .iter()
        .filter(|trial| trial.treatment == name && trial.status == TrialStatus::Finished && !trial.excluded);
    let runs: Vec<Value> = (1..)
        .zip(runs)
        .map(|(number, trial)| run(number, trial))
        .collect();
    let fact = |name: &str| {
        let fact = report.facts.iter().find(|fact| fact.name == name)?;
        fact.value.clone()
    };
    let number = |names: [&str; 2]| names.into_iter().find_map(|name| fact(name)?.as_f64());
    let cpus = number(["cgroup.cpu_quota_cpus", "cpu.online_count"]);
    let memory_bytes = number(["cgroup.memory_limit_bytes", "memory.total_bytes"]);
    let memory_gb = memory_bytes.map(|bytes| (bytes / f64::from(1 << 30) * 10.0).round() / 10.0);
    let machine = cpus
        .zip(memory_gb)
        .map(|(cpus, memory_gb)| format!("{cpus}vCPU, {memory_gb}GB RAM"));
    let is_tuned =
        treatment.is_some_and(|treatment| treatment.settings.iter().any(|setting| setting.changed));
    let own_version = treatment.and_then(|treatment| {
        let mut environment = treatment.environment.iter();
        environment
            .find(|(key, _)| key == "server.version")
            .map(|(_, version)| version)
    });
    let whole = json!({
        "system": format!("PostgreSQL ({})", report.experiment.name),
        "date": day,
        "instance": {
            "type": fact("cpu.model"),
            "vcpus": cpus,
            "ram_gb": memory_gb,
            "primary_storage": fact("storage.data.file_system"),
        },
        "machine": machine,
        "cluster_size": 1,
        "tuned": if is_tuned { "yes" } else { "no" },
        "comment": format!("{}, treatment {name} of experiment {}", report.generator, report.experiment.id),
        "postgres_version": own_version.map(|version| json!(version)).or_else(|| fact("server.version")),
        "benchmark": {
            "tool": "pgdyno",
            "workload": load.name,
            "scale_factor": load.scale,
            "clients": load.clients,
            "threads": load.threads,
            "duration": load.measure_s,
            "query_mode": protocol,
        },
        "results": runs,
    });
    format!("{whole:#}\n")
}

fn run(number: u32, trial: &Trial) -> Value {
    let times = trial.percentiles.unwrap_or_default();
    json!({
        "run": number,
        "tps": trial.tps,
        "transactions": trial.transactions.committed,
        "failed_transactions": trial.transactions.failed,
        "latency_avg_ms": times.mean_ms,
        "latency_p95_ms": times.p95_ms,
        "latency_p99_ms": times.p99_ms,
    })
}
