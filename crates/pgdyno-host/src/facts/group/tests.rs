use super::*;
use crate::access::LocalHost;
use serde_json::json;
use std::fs;
use std::path::Path;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The fact's value and the file it comes from.
fn fact(root: &Path, name: &str) -> (Value, String) {
    let host = LocalHost::at(root);
    let mut sheet = Sheet::new(&host);
    note(&mut sheet, 7);
    let fact = sheet.facts.into_iter().find(|fact| fact.name == name).unwrap();
    let why = fact.missing.map(Value::from);
    (fact.value.or(why).unwrap(), fact.source)
}

const UNIFIED: &str = "31 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

fn unified() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "proc/self/mountinfo", UNIFIED);
    write(root, "proc/7/cgroup", "0::/a.slice/b.service\n");
    let group = "sys/fs/cgroup";
    write(
        root,
        &format!("{group}/cgroup.controllers"),
        "cpuset cpu io memory hugetlb pids\n",
    );
    let upper = format!("{group}/a.slice");
    write(root, &format!("{upper}/memory.max"), "1073741824\n");
    write(root, &format!("{upper}/cpu.max"), "400000 100000\n");
    write(
        root,
        &format!("{upper}/io.max"),
        "254:0 rbps=max wbps=1000 riops=max wiops=50\n",
    );
    let own = format!("{upper}/b.service");
    write(root, &format!("{own}/memory.max"), "max\n");
    write(root, &format!("{own}/memory.high"), "max\n");
    write(root, &format!("{own}/cpu.max"), "150000 100000\n");
    write(
        root,
        &format!("{own}/io.max"),
        "254:0 rbps=7 wbps=2000 riops=max wiops=max\n",
    );
    write(root, &format!("{own}/cpuset.cpus.effective"), "0-3\n");
    write(root, &format!("{own}/hugetlb.2MB.max"), "4194304\n");
    write(root, &format!("{own}/hugetlb.1GB.max"), "max\n");
    write(root, &format!("{own}/pids.max"), "nonsense\n");
    dir
}

#[test]
fn the_strictest_level_of_version_2_holds() {
    let dir = unified();
    let root = dir.path();
    let check = |name: &str, expected: Value, place: &str| {
        let (value, source) = fact(root, name);
        assert_eq!(value, expected, "{name}");
        assert!(source.contains(place), "{name}: {source}");
    };
    check("cgroup.version", json!(2), "");
    check("cgroup.sees_all_levels", json!(true), "");
    check(
        "cgroup.memory_limit_bytes",
        json!(1_073_741_824),
        "a.slice/memory.max",
    );
    check("cgroup.memory_high_bytes", json!("none"), "b.service");
    check("cgroup.cpu_quota_cpus", json!(1.5), "b.service");
    check("cgroup.cpus", json!("0-3"), "cpuset.cpus.effective");
    check(
        "cgroup.huge_page_limits",
        json!([{"page_bytes": 2 << 20, "limit_bytes": 4 << 20}]),
        "",
    );
    let io = json!([{"device": "254:0", "read_bytes_per_s": 7, "write_bytes_per_s": 1000, "write_requests_per_s": 50}]);
    check("cgroup.io_limits", io, "");
    let (why, _) = fact(root, "cgroup.processes_max");
    assert!(why.as_str().unwrap().contains("found \"nonsense\""), "{why}");
}

#[test]
fn a_container_that_sees_a_part_says_so() {
    let dir = unified();
    write(dir.path(), "sys/fs/cgroup/cgroup.type", "domain\n");
    assert_eq!(fact(dir.path(), "cgroup.sees_all_levels").0, json!(false));
    write(dir.path(), "proc/7/cgroup", "0::/../other\n");
    let (why, _) = fact(dir.path(), "cgroup.memory_limit_bytes");
    assert!(why.as_str().unwrap().contains("outside"), "{why}");
}

#[test]
fn version_1_is_read_controller_by_controller() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let mounts = "32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                  35 31 0:32 /docker/x /cg/memory rw - cgroup cgroup rw,memory\n\
                  38 31 0:35 / /cg/blkio rw - cgroup cgroup rw,blkio\n\
                  41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
    write(root, "proc/self/mountinfo", mounts);
    write(
        root,
        "proc/7/cgroup",
        "7:blkio:/\n4:memory:/docker/x/y\n2:cpu,cpuacct:/\n0::/\n",
    );
    write(root, "cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write(root, "cg/memory/y/memory.limit_in_bytes", "268435456\n");
    write(root, "cg/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write(root, "cg/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    write(
        root,
        "cg/blkio/blkio.throttle.read_iops_device",
        "254:0 500\n8:0 7\n",
    );
    let value = |name: &str| fact(root, name).0;
    assert_eq!(value("cgroup.version"), json!(1));
    assert_eq!(value("cgroup.sees_all_levels"), json!(false));
    assert_eq!(value("cgroup.memory_limit_bytes"), json!(268_435_456));
    assert_eq!(value("cgroup.cpu_quota_cpus"), json!("none"));
    assert!(
        value("cgroup.cpus")
            .as_str()
            .unwrap()
            .contains("no cgroup controller")
    );
    let io =
        json!([{"device": "254:0", "read_requests_per_s": 500}, {"device": "8:0", "read_requests_per_s": 7}]);
    assert_eq!(value("cgroup.io_limits"), io);
}
