//! Trees of both versions, as kernels show them.

use super::*;
use crate::series::fixture::{Tree, gaps, has, has_no};
use proptest::prelude::*;

const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                  32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                  33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
                  35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                  38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
                  41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\nnonsense\n";
const V1_GROUPS: &str = "7:blkio:/box\n4:memory:/box/pg\n2:cpuacct:/box/pg\n1:cpu:/box/pg\n0::/\nnonsense\n";
const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn a_limit_of_a_group_above_binds_in_version_1() {
    let root = "/sys/fs/cgroup";
    let file = |path: &str| format!("{root}/{path}");
    let mut tree = Tree::new(&[
        ("/proc/self/mountinfo", V1),
        ("/proc/7/cgroup", V1_GROUPS),
        (&file("cpu/box/pg/cpu.cfs_quota_us"), "-1\n"),
        (&file("cpu/box/pg/cpu.cfs_period_us"), "100000\n"),
        (&file("cpu/box/cpu.cfs_quota_us"), "150000\n"),
        (&file("cpu/box/cpu.cfs_period_us"), "100000\n"),
        (
            &file("cpu/box/cpu.stat"),
            "nr_periods 10\nnr_throttled 2\nthrottled_time 1000000000\n",
        ),
        (&file("cpuacct/box/pg/cpuacct.usage"), "5000000000\n"),
        (
            &file("memory/box/pg/memory.limit_in_bytes"),
            "9223372036854771712\n",
        ),
        (&file("memory/box/pg/memory.usage_in_bytes"), "300\n"),
        (&file("memory/box/memory.limit_in_bytes"), "1000\n"),
        (&file("memory/box/memory.usage_in_bytes"), "800\n"),
        (&file("memory/box/memory.failcnt"), "4\n"),
        (
            &file("blkio/box/blkio.throttle.io_service_bytes_recursive"),
            "254:0 Read 100\n254:0 Write 50\n254:0 Total 150\nTotal 150\n",
        ),
    ]);
    let mut group = Group::new(7);
    let (start, later) = (tree.at(0), tree.at(2));
    let first = group.read(&tree.host, &mut tree.buffer, start);
    assert_eq!(gaps(&first), [""; 0]);
    has(
        &first,
        &[
            "cgroup.cpu_limit 1.5",
            "cgroup.memory_bytes 300",
            "cgroup.memory_limit_bytes 1000",
            "cgroup.memory_limit_used_ratio 0.8",
        ],
    );
    tree.put(&[
        (
            &file("cpu/box/cpu.stat"),
            "nr_periods 30\nnr_throttled 7\nthrottled_time 2000000000\n",
        ),
        (&file("cpuacct/box/pg/cpuacct.usage"), "8000000000\n"),
        (&file("memory/box/memory.failcnt"), "14\n"),
        (
            &file("blkio/box/blkio.throttle.io_service_bytes_recursive"),
            "254:0 Read 300\n254:0 Write 50\n254:16 Read 200\nTotal 550\n",
        ),
    ]);
    let second = group.read(&tree.host, &mut tree.buffer, later);
    has(
        &second,
        &[
            "cgroup.cpu_ratio 1.5",
            "cgroup.cpu_throttled_ratio 0.5",
            "cgroup.cpu_throttled_periods_ratio 0.25",
            "cgroup.memory_limit_hits_per_s 5",
            "cgroup.read_bytes_per_s 200",
            "cgroup.write_bytes_per_s 0",
        ],
    );
}

#[test]
fn version_2_has_one_tree() {
    let group_file = |name: &str| format!("/sys/fs/cgroup/system.slice/pg.service/{name}");
    let mut tree = Tree::new(&[
        ("/proc/self/mountinfo", V2),
        ("/proc/7/cgroup", "0::/system.slice/pg.service\n"),
        ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n"),
        ("/sys/fs/cgroup/system.slice/memory.max", "max\n"),
        (&group_file("cpu.max"), "50000 100000\n"),
        (
            &group_file("cpu.stat"),
            "usage_usec 1000000\nuser_usec 1\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
        ),
        (&group_file("memory.current"), "512\n"),
        (&group_file("memory.max"), "1024\n"),
        (&group_file("memory.events"), "low 0\nhigh 0\nmax 3\noom 0\n"),
        (
            &group_file("io.stat"),
            "254:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n",
        ),
    ]);
    let mut group = Group::new(7);
    let (start, later, moved) = (tree.at(0), tree.at(1), tree.at(20));
    group.read(&tree.host, &mut tree.buffer, start);
    tree.put(&[
        (
            &group_file("cpu.stat"),
            "usage_usec 1500000\nuser_usec 1\nnr_periods 10\nnr_throttled 10\nthrottled_usec 500000\n",
        ),
        (&group_file("memory.events"), "low 0\nhigh 0\nmax 1\noom 0\n"),
    ]);
    let second = group.read(&tree.host, &mut tree.buffer, later);
    has(
        &second,
        &[
            "cgroup.cpu_ratio 0.5",
            "cgroup.cpu_limit 0.5",
            "cgroup.cpu_throttled_ratio 0.5",
            "cgroup.cpu_throttled_periods_ratio 1",
            "cgroup.memory_limit_used_ratio 0.5",
            "cgroup.read_bytes_per_s 0",
        ],
    );
    assert_eq!(gaps(&second), ["cgroup.memory_limit_hits_per_s"]);
    // The process went to the root group, which is the machine: another group's counters are
    // compared with nothing.
    tree.put(&[("/proc/7/cgroup", "0::/\n")]);
    let third = group.read(&tree.host, &mut tree.buffer, moved);
    assert_eq!(third.since, None);
    for metric in [
        "cgroup.memory_bytes",
        "cgroup.cpu_ratio",
        "cgroup.read_bytes_per_s",
    ] {
        has_no(&third, metric);
        assert!(gaps(&third).contains(&metric), "{metric}");
    }
}

#[test]
fn a_mount_that_shows_a_part_is_followed_from_there() {
    let check = |root: &str, path: &str, levels: &[&str]| {
        let mounts = format!("30 23 0:26 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let place = place(&format!("0::{path}\n"), &mounts, "cpu").unwrap();
        assert_eq!(place.levels, levels, "{root} {path}");
    };
    let top = "/sys/fs/cgroup";
    check("/", "/", &[top]);
    check("/", "/a/b", &["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", top]);
    check("/docker/1", "/docker/1", &[top]);
    check("/docker/1", "/docker/1/pg", &["/sys/fs/cgroup/pg", top]);
    let part = "30 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    for outside in ["/elsewhere", "/docker/12", "/docker/1/../2", "/"] {
        assert_eq!(place(&format!("0::{outside}\n"), part, "cpu"), None, "{outside}");
    }
    assert_eq!(place("", V2, "cpu"), None);
    assert_eq!(place("0::/\n", "", "cpu"), None);
}

#[test]
fn a_process_that_is_gone_is_a_gap() {
    let mut tree = Tree::new(&[("/proc/self/mountinfo", V2)]);
    let at = tree.at(0);
    let reading = Group::new(7).read(&tree.host, &mut tree.buffer, at);
    assert_eq!(gaps(&reading), ["/proc/7/cgroup"]);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(groups in "([0-9]:(cpu)?:/?.{0,20}\n|.{0,20}\n){0,3}", mounts in "(1 2 0:3 /.{0,4} /.{0,9} rw - cgroup2 a b\n|.{0,40}\n){0,3}") {
        let _ = place(&groups, &mounts, "cpu");
        for v2 in [false, true] {
            let _ = (usage_us(v2, &groups), throttled_us(v2, &groups), hits(v2, &groups), io_bytes(v2, &mounts));
        }
    }
}
