use super::*;
use crate::file::sized;
use crate::file::tests::{on_a_host, shipped};
use crate::plan::{Plan, ProfileSettings};
use pgdyno_workload::Dataset;
use std::collections::{BTreeMap, BTreeSet};

const TEXT: &str = r#"name = "sizes"
question = "Does it follow?"
design = "one-at-a-time"
blocks = 4
holds = ["data.bytes >= 4 * target.memory_bytes"]

[target]
sandbox = "x"
create = { memory = "64MB", cpus = 2 }

[data]
scale = "= ceil(4 * target.memory_bytes / data.bytes_per_scale)"

[load]
workload = "tpcb"
clients = "= target.cpus * 4"
measure_s = 5

[base]
shared_buffers = "= target.memory_bytes / 4"
max_connections = "= load.clients + 20"

[[step]]
name = "cache"
holds = ["setting.effective_cache_size > setting.shared_buffers"]
[step.settings]
effective_cache_size = "= target.memory_bytes * 3 / 4"
vm.dirty_bytes = "= data.bytes / 100"

[[step]]
name = "text"
settings = { random_page_cost = "= 1 + 0.5" }
server = { data_on = "= 'ext4:' ~ ceil(data.bytes * 3 / MB(1)) ~ 'M'" }

[size.large]
target.create.memory = "4GB"
"#;

fn catalogue() -> Catalogue {
    Catalogue::shipped().unwrap()
}

fn parse(text: &str) -> Result<ExperimentFile, String> {
    ExperimentFile::parse(text, Path::new("x.toml"), &catalogue()).map_err(|error| error.to_string())
}

fn value(file: &ExperimentFile, knob: &str) -> String {
    let parts = file.step.iter().map(|step| &step.settings);
    let mut all = [&file.base].into_iter().chain(parts).flat_map(settings_of);
    all.find(|setting| setting.knob == knob).unwrap().value
}

/// A size changes one number, and all that was said to follow from it follows.
#[test]
fn values_follow_from_the_target_and_the_data_at_every_size() {
    for (size, memory, scale, [quarter, rest]) in [
        (None, 64_u64 << 20, 18, ["16MB", "48MB"]),
        (Some("large"), 4 << 30, 1094, ["1GB", "3GB"]),
    ] {
        let text = sized(TEXT, Path::new("x.toml"), size, &[]).unwrap();
        let file = parse(&text).unwrap();
        assert_eq!(
            (file.data.scale, file.load.clients),
            (Some(scale), Some(8)),
            "{size:?}"
        );
        let bytes = DataPlan::new(Dataset::Pgbench, scale).bytes();
        for (knob, expected) in [
            ("shared_buffers", quarter.to_owned()),
            ("effective_cache_size", rest.to_owned()),
            ("max_connections", "28".to_owned()),
            ("random_page_cost", "1.5".to_owned()),
            ("vm.dirty_bytes", (bytes / 100).to_string()),
        ] {
            assert_eq!(value(&file, knob), expected, "{knob} {size:?}");
        }
        let place = format!("ext4:{}M", (bytes * 3).div_ceil(1 << 20));
        assert_eq!(file.step[1].server.data_on, Some(place));
        let plan = Plan::unasked(file, &ProfileSettings::new(), 1).unwrap();
        assert!(plan.treatments[0].data_bytes().unwrap() >= 4 * memory);
    }
}

/// An event is half way through a load of any length.
#[test]
fn events_follow_from_the_length_of_the_load() {
    let text = format!("{TEXT}[[event]]\nat = \"= load.measure_s / 2 ~ 's'\"\nsettings = {{ vm.dirty_bytes = \"= data.bytes / 50\" }}\n")
        .replace("measure_s = 5", "measure_s = 240");
    let file = parse(&text).unwrap();
    let event = &file.event[0];
    let bytes = DataPlan::new(Dataset::Pgbench, 18).bytes() / 50;
    assert_eq!(
        (event.at.as_str(), event.titled()),
        ("120.0s", format!("vm.dirty_bytes = {bytes}"))
    );
}

/// So are commands of neighbours, of the server and of an event.
#[test]
fn commands_of_neighbours_follow_from_the_length_of_the_load() {
    let command = "neighbour = \"= 'sleep ' ~ floor(load.measure_s / 12)\"\n";
    let text = format!("{TEXT}[server]\n{command}[[event]]\nat = \"20s\"\n{command}")
        .replace("measure_s = 5", "measure_s = 240");
    let file = parse(&text).unwrap();
    let expected = Some("sleep 20".to_owned());
    assert_eq!(
        (&file.server.neighbour, &file.event[0].neighbour),
        (&expected, &expected)
    );
}

#[test]
fn what_is_given_goes_before_what_is_made() {
    let file = parse(&format!("{TEXT}\n[given]\nmemory = \"1GB\"\ncpus = 16\n")).unwrap();
    assert_eq!(value(&file, "shared_buffers"), "256MB");
    assert_eq!(file.load.clients, Some(64));
    assert_eq!(file.data.scale, Some(274));
}

#[test]
fn a_file_says_what_of_its_target_it_asks_for() {
    let elsewhere = TEXT.replace(
        "sandbox = \"x\"\ncreate = { memory = \"64MB\", cpus = 2 }",
        "connection = 'host=db'",
    );
    assert_eq!(
        asks_for_target(&elsewhere).unwrap().connection.as_deref(),
        Some("host=db")
    );
    assert!(asks_for_target(&format!("{elsewhere}\n[given]\nmemory = '1GB'\n")).is_none());
    let plain = "[target]\nconnection = 'host=db'\n[base]\nmax_connections = '= load.clients'\n";
    assert!(asks_for_target(plain).is_none() && asks_for_target("not = = toml").is_none());
    let condition = "holds = ['target.cpus > 1']\n[target]\nsandbox = 'main'\n";
    assert_eq!(
        asks_for_target(condition).unwrap().sandbox.as_deref(),
        Some("main")
    );
}

/// Errors name the line of the text that a person wrote, and what to do.
#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (from, to, expected) in [
        (
            "target.memory_bytes / 4",
            "target.memry_bytes / 4",
            "line 20: `target.memry_bytes / 4`: there is no fact",
        ),
        (
            "target.memory_bytes / 4",
            "target.memory_bytes /",
            "line 20: `target.memory_bytes /`",
        ),
        (
            "memory = \"64MB\", ",
            "",
            "line 12: `ceil(4 * target.memory_bytes / data.bytes_per_scale)`: target.memory_bytes is missing: the file creates no sandbox",
        ),
        (
            "memory = \"64MB\"",
            "memory = \"much\"",
            "line 16: \"much\": expected a size",
        ),
        ("ceil(4 * ", "(4 * ", "line 12: scale = 17.08"),
        (
            "= target.cpus * 4",
            "= load.clients * 4",
            "line 16: `load.clients * 4`: load.clients is missing: the file has no `clients`",
        ),
        (
            "ceil(4 * ",
            "floor(3 * ",
            "line 5: `data.bytes >= 4 * target.memory_bytes` does not hold",
        ),
        (
            "target.memory_bytes * 3 / 4",
            "target.memory_bytes / 8",
            "line 25: `setting.effective_cache_size > setting.shared_buffers` does not hold",
        ),
        (
            "> setting.shared_buffers",
            "> setting.work_mem",
            "line 25: `setting.effective_cache_size > setting.work_mem`: setting.work_mem is missing: nothing in the file sets it",
        ),
        (
            "= data.bytes / 100",
            "= data.bytes / 1000000000",
            "line 28: vm.dirty_bytes = \"0\"",
        ),
        (
            "workload = \"tpcb\"",
            "workload = \"empty\"",
            "line 12: `ceil(4 * target.memory_bytes / data.bytes_per_scale)`: data.bytes_per_scale is missing: the load reads no data",
        ),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let error = parse(&TEXT.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

/// What is the user's own text stays so.
#[test]
fn texts_are_no_expressions() {
    let text = "name = '= n'\nquestion = '= q'\ndesign = 'a-b'\nblocks = 4\n[load]\nprogram = 'job'\ncommand = '= c'\n\
        [[step]]\nname = '= s'\nreason = '= r'\nsettings.work_mem = '= MB(8)'\n[study]\nsource = '= s'\ntitle = '= t'\n";
    let file = parse(text).unwrap();
    assert_eq!((file.name.as_str(), file.step[0].name.as_str()), ("= n", "= s"));
    assert_eq!(file.load.command.as_deref(), Some("= c"));
    assert_eq!(value(&file, "work_mem"), "8MB");
}

/// Experiments whose questions have no ratio of data, memory and settings.
const WITHOUT_CONDITIONS: [&str; 23] = [
    "aa",
    "demo",
    "edb-commit-delay",
    "edb-storage",
    "ibm-z-autovacuum",
    "ibm-z-snapshot",
    "ibm-z-wal-direct-io",
    "rhel-cgroup-io",
    "rhel-checkpoint-recovery",
    "rhel-filesystem",
    "rhel-ksm",
    "rhel-mtu",
    "rhel-neighbour",
    "rhel-temp-files",
    "rhel-wal-device",
    "senzing-autovacuum",
    "senzing-commit",
    "senzing-replication",
    "senzing-toast",
    "senzing-vacuum",
    "senzing-versions",
    "senzing-xid-pause",
    "upgrade-18-19",
];

/// Data, memory and settings of every experiment that is shipped, at each of its sizes: what its
/// file says must hold does, on a host as small as 8 GB and as large as 1 TB, and no expression of
/// it is left.
#[test]
fn what_is_shipped_holds_its_ratios_at_every_size() {
    let mut without_conditions = BTreeSet::new();
    for (name, text) in shipped() {
        let path = Path::new(&name);
        let sizes: Table = toml::from_str(&text).unwrap();
        let sizes = sizes
            .get("size")
            .and_then(Value::as_table)
            .cloned()
            .unwrap_or_default();
        for size in sizes.keys().map(String::as_str).map(Some).chain([None]) {
            let text = sized(&text, path, size, &[]).unwrap();
            for memory in [8_u64 << 30, 24 << 30, 1 << 40] {
                let text = on_a_host(&text, memory);
                let file = ExperimentFile::parse(&text, path, &catalogue());
                let file = file.unwrap_or_else(|error| panic!("{size:?} {memory}: {error}"));
                let has_conditions =
                    !file.holds.is_empty() || file.parts().iter().any(|part| !part.holds.is_empty());
                if !has_conditions {
                    without_conditions.insert(name.clone());
                }
                // As it is, the file has those of its sizes too.
                let left = worked_out(&text, path, &catalogue()).unwrap();
                assert!(size.is_none() || !left.contains("\"= "), "{name} {size:?}");
            }
        }
    }
    assert_eq!(
        without_conditions,
        BTreeSet::from(WITHOUT_CONDITIONS.map(str::to_owned))
    );
}

/// A second file would not run in the sandbox that the first one has made.
#[test]
fn shipped_files_that_share_a_sandbox_create_it_alike() {
    let mut sandboxes = BTreeMap::new();
    for (name, text) in shipped() {
        let file: Table = toml::from_str(&text).unwrap();
        let target = &file["target"];
        let (sandbox, create) = (target["sandbox"].to_string(), target.get("create").cloned());
        let (first, made) = sandboxes
            .entry(sandbox)
            .or_insert_with(|| (name.clone(), create.clone()));
        assert_eq!(*made, create, "{first} and {name}");
    }
}
