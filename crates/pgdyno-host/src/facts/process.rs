//! One process, a server's first: its limits, memory as it is really mapped, CPUs, and the groups
//! it is in.

use super::group;
use super::sheet::{Sheet, bytes_of_line, field, object, start_of};
use crate::access::HostAccess;
use crate::fact::Fact;
use crate::process::{TICKS_PER_S, after_name, children};
use serde_json::Value;
use std::collections::BTreeSet;

/// (fact, line of /proc/PID/limits)
const LIMITS: [(&str, &str); 7] = [
    ("locked_memory_bytes", "Max locked memory"),
    ("open_files", "Max open files"),
    ("core_file_bytes", "Max core file size"),
    ("stack_bytes", "Max stack size"),
    ("processes", "Max processes"),
    ("address_space_bytes", "Max address space"),
    ("file_bytes", "Max file size"),
];

/// (fact, line of /proc/PID/smaps, summed over all mappings)
const MAPPED: [(&str, &str); 7] = [
    ("process.resident_bytes", "Rss"),
    ("process.proportional_bytes", "Pss"),
    ("process.swapped_bytes", "Swap"),
    ("process.huge_pages.anonymous_bytes", "AnonHugePages"),
    ("process.huge_pages.transparent_shared_bytes", "ShmemPmdMapped"),
    ("process.huge_pages.pool_shared_bytes", "Shared_Hugetlb"),
    ("process.huge_pages.pool_private_bytes", "Private_Hugetlb"),
];

/// When a process was started, in seconds since 1970, by the machine's present clock.
pub fn started_unix_s(host: &dyn HostAccess, pid: u32) -> Result<u64, String> {
    let stat = host
        .read(&format!("/proc/{pid}/stat"))
        .map_err(|e| e.to_string())?;
    let ticks = stat_field(&stat, 22).ok_or_else(|| format!("/proc/{pid}/stat: no field 22"))?;
    let boot = host.read("/proc/stat").map_err(|e| e.to_string())?;
    let boot: Option<u64> = boot
        .lines()
        .find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    let boot = boot.ok_or_else(|| "/proc/stat has no line btime".to_owned())?;
    Ok(boot.saturating_add(ticks / TICKS_PER_S))
}

/// The process that started a process, or that took it over.
pub fn parent(host: &dyn HostAccess, pid: u32) -> Result<u32, String> {
    let path = format!("/proc/{pid}/stat");
    let stat = host.read(&path).map_err(|e| e.to_string())?;
    let parent = stat_field(&stat, 4).and_then(|number| u32::try_from(number).ok());
    parent.ok_or_else(|| format!("{path}: no field 4"))
}

/// Field `number` of /proc/PID/stat as proc_pid_stat(5) counts them, from the third on.
fn stat_field(stat: &str, number: usize) -> Option<u64> {
    after_name(stat)?
        .split_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

/// Facts of a process that is there: a server's first process. Names begin with "process." and
/// "cgroup.".
pub fn process_facts(host: &dyn HostAccess, pid: u32) -> Vec<Fact> {
    let mut sheet = Sheet::new(host);
    sheet.note("process.pid", &format!("/proc/{pid}"), Ok(pid));
    note_status(&mut sheet, pid);
    note_limits(&mut sheet, pid);
    sheet.value("process.oom_score", &format!("/proc/{pid}/oom_score"));
    sheet.value(
        "process.oom_score_adjustment",
        &format!("/proc/{pid}/oom_score_adj"),
    );
    let errors = format!("/proc/{pid}/fd/2");
    let to = host.read_link(&errors).map_err(|error| error.to_string());
    sheet.note("process.stderr", &errors, to);
    note_scheduling(&mut sheet, pid);
    note_mapped(&mut sheet, pid);
    note_children(&mut sheet, pid);
    note_others(&mut sheet, pid);
    note_policy(&mut sheet, pid);
    group::note(&mut sheet, pid);
    sheet.facts
}

fn note_status(sheet: &mut Sheet<'_>, pid: u32) {
    let path = format!("/proc/{pid}/status");
    let status = sheet.text_of_long(&path);
    let line = |name: &str| -> Result<String, String> {
        let text = status.as_ref().map_err(Clone::clone)?;
        let value = field(text, name).ok_or_else(|| format!("{path} has no line {name} on this kernel"))?;
        Ok(value.to_owned())
    };
    let bytes = |name: &str| -> Result<u64, String> {
        let text = status.as_ref().map_err(Clone::clone)?;
        bytes_of_line(text, name).ok_or_else(|| format!("{path} has no line {name} on this kernel"))
    };
    // In each namespace from here down to its own.
    let inside = line("NSpid").map(|text| {
        let pids: Vec<u64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        pids.len() > 1
    });
    let thp = line("THP_enabled").map(|word| word == "1");
    let facts = [
        ("process.in_inner_pid_namespace", "NSpid", inside.map(Value::from)),
        (
            "process.cpus_allowed",
            "Cpus_allowed_list",
            line("Cpus_allowed_list").map(Value::from),
        ),
        (
            "process.memory_nodes_allowed",
            "Mems_allowed_list",
            line("Mems_allowed_list").map(Value::from),
        ),
        ("process.thp_allowed", "THP_enabled", thp.map(Value::from)),
        (
            "process.page_tables_bytes",
            "VmPTE",
            bytes("VmPTE").map(Value::from),
        ),
        ("process.locked_bytes", "VmLck", bytes("VmLck").map(Value::from)),
    ];
    for (name, line, value) in facts {
        sheet.note(name, &format!("{path}, {line}"), value);
    }
}

fn note_limits(sheet: &mut Sheet<'_>, pid: u32) {
    let path = format!("/proc/{pid}/limits");
    let text = sheet.text_of_long(&path);
    for (name, line) in LIMITS {
        let limit = text.clone().and_then(|text| {
            limit(&text, line).ok_or_else(|| format!("{path} has no usable line \"{line}\""))
        });
        sheet.note(&format!("process.limits.{name}"), &path, limit);
    }
}

/// Soft and hard limit; "unlimited" is one, too.
fn limit(text: &str, line: &str) -> Option<Value> {
    let rest = text.lines().find_map(|other| other.strip_prefix(line))?;
    let mut words = rest.split_whitespace().map(|word| match word {
        "unlimited" => Some(Value::from(word)),
        number => number.parse::<u64>().ok().map(Value::from),
    });
    let (soft, hard) = (words.next()??, words.next()??);
    Some(object([("soft", soft), ("hard", hard)]))
}

/// Names of the policies by their numbers in the kernel's interface.
const POLICIES: [(u64, &str); 7] = [
    (0, "other"),
    (1, "fifo"),
    (2, "round-robin"),
    (3, "batch"),
    (5, "idle"),
    (6, "deadline"),
    (7, "extensible"),
];

fn note_scheduling(sheet: &mut Sheet<'_>, pid: u32) {
    let path = format!("/proc/{pid}/stat");
    let stat = sheet.text_of_long(&path);
    let policy = stat.clone().and_then(|stat| {
        let number = stat_field(&stat, 41).ok_or_else(|| format!("{path}: no field 41"))?;
        let known = POLICIES.iter().find(|(other, _)| *other == number);
        known
            .map(|(_, name)| *name)
            .ok_or_else(|| format!("{path}: policy {number} is not known"))
    });
    sheet.note("process.scheduling_policy", &path, policy);
    let nice = stat.and_then(|stat| {
        let word = after_name(&stat).and_then(|rest| rest.split_whitespace().nth(16));
        let word = word.ok_or_else(|| format!("{path}: no field 19"))?;
        word.parse::<i64>()
            .map_err(|_| format!("{path}: expected a number, found \"{}\"", start_of(word)))
    });
    sheet.note("process.nice", &path, nice);
}

/// What is mapped, and by pages of which size: the mappings themselves show whether huge pages are
/// in use.
fn note_mapped(sheet: &mut Sheet<'_>, pid: u32) {
    let path = format!("/proc/{pid}/smaps");
    let text = sheet.text_of_long(&path).and_then(|text| {
        // A process that may be seen and not looked into has an empty one.
        if text.is_empty() {
            Err(format!("{path} is empty; root may read it"))
        } else {
            Ok(text)
        }
    });
    for (name, line) in MAPPED {
        let sum = text.clone().and_then(|text| {
            sum_of_lines(&text, line).ok_or_else(|| format!("{path} has no lines {line} on this kernel"))
        });
        sheet.note(name, &format!("{path}, {line}"), sum);
    }
    let largest =
        text.and_then(|text| largest_mapping(&text).ok_or_else(|| format!("{path} shows no mapping")));
    sheet.note("process.largest_mapping", &path, largest);
}

fn sum_of_lines(text: &str, name: &str) -> Option<u64> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let mut sum = None;
    for rest in lines {
        let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
        sum = Some(sum.unwrap_or(0_u64).checked_add(kilobytes.checked_mul(1024)?)?);
    }
    sum
}

/// Size, page size and name of the largest mapping: of a database server, its shared memory.
fn largest_mapping(text: &str) -> Option<Value> {
    let mut largest: Option<(u64, Option<u64>, &str)> = None;
    let mut name = "";
    let mut bytes = 0;
    for line in text.lines() {
        let key = line.split(':').next().unwrap_or_default();
        if key.contains('-') && line.split_whitespace().nth(4).is_some() {
            // "address perms offset device inode name"
            name = line.split_whitespace().nth(5).unwrap_or_default();
        } else if key == "Size" {
            bytes = bytes_of_line(line, "Size")?;
            if largest.is_none_or(|(other, ..)| bytes > other) {
                largest = Some((bytes, None, name));
            }
        } else if key == "KernelPageSize"
            && let Some((most, page, _)) = &mut largest
            && *most == bytes
            && page.is_none()
        {
            *page = bytes_of_line(line, "KernelPageSize");
        }
    }
    let (bytes, page_bytes, name) = largest?;
    Some(object([
        ("bytes", bytes.into()),
        ("page_bytes", page_bytes.into()),
        ("file", Some(name).filter(|name| !name.is_empty()).into()),
    ]))
}

/// Page tables of the process and of those it has started: each has its own for the same shared
/// memory.
fn note_children(sheet: &mut Sheet<'_>, pid: u32) {
    let source = format!("/proc/{pid}/task/{pid}/children");
    let seen = sheet.text_of_long(&source);
    let all = children(sheet.host, pid);
    let count = seen.clone().map(|_| all.len());
    let each = std::iter::once(pid).chain(all);
    let sum = each
        .filter_map(|pid| {
            // One that has ended meanwhile has no page tables.
            let status = sheet.host.read(&format!("/proc/{pid}/status")).ok()?;
            bytes_of_line(&status, "VmPTE")
        })
        .fold(0_u64, u64::saturating_add);
    sheet.note("process.children_count", &source, count);
    sheet.note(
        "process.all_page_tables_bytes",
        "/proc/*/status, VmPTE",
        seen.map(|_| sum),
    );
}

/// The number of other processes of the same name that no process of that name has started: other
/// servers on this host, which need a part of what it has.
fn note_others(sheet: &mut Sheet<'_>, pid: u32) {
    /// More processes than these are not read.
    const PROCESSES_MAX: usize = 100_000;
    let host = sheet.host;
    let name = |pid: u32| {
        host.read(&format!("/proc/{pid}/comm"))
            .map(|text| text.trim().to_owned())
    };
    let count = || -> Result<usize, String> {
        let ours = name(pid).map_err(|error| error.to_string())?;
        let all = host.list("/proc").map_err(|error| error.to_string())?;
        let others = all
            .iter()
            .filter_map(|entry| entry.parse::<u32>().ok())
            .take(PROCESSES_MAX);
        let is_first = |other: &u32| {
            let same = |pid: u32| name(pid).is_ok_and(|name| name == ours);
            *other != pid && same(*other) && parent(host, *other).is_ok_and(|parent| !same(parent))
        };
        Ok(others.filter(is_first).count())
    };
    sheet.note("process.other_servers", "/proc/*/comm", count());
}

/// Policies of memory nodes that its mappings have. Reading them walks all its pages, so it is
/// skipped where there is one node.
fn note_policy(sheet: &mut Sheet<'_>, pid: u32) {
    const ONLINE: &str = "/sys/devices/system/node/online";
    let path = format!("/proc/{pid}/numa_maps");
    if sheet.text_of(ONLINE).is_ok_and(|nodes| nodes == "0") {
        return sheet.note::<Vec<String>>(
            "process.numa_policies",
            ONLINE,
            Err("there is one memory node: no policy matters".to_owned()),
        );
    }
    let policies = sheet.text_of_long(&path).map(|text| {
        let policies: BTreeSet<String> = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned))
            .collect();
        policies.into_iter().collect::<Vec<_>>()
    });
    sheet.note("process.numa_policies", &path, policies);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LocalHost;
    use proptest::prelude::*;
    use serde_json::json;

    const SMAPS: &str = "\
00400000-00a00000 r-xp 00000000 fe:00 42   /usr/bin/server-name
Size:               6144 kB
KernelPageSize:        4 kB
Rss:                1000 kB
Shared_Hugetlb:        0 kB
7f0000000000-7f0040000000 rw-s 00000000 00:0f 9   /anon_hugepage (deleted)
Size:            1048576 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
Shared_Hugetlb:    20480 kB
";

    #[test]
    fn huge_pages_are_seen_in_the_mappings() {
        assert_eq!(sum_of_lines(SMAPS, "Shared_Hugetlb"), Some(20 << 20));
        assert_eq!(sum_of_lines(SMAPS, "Rss"), Some(1000 << 10));
        assert_eq!(sum_of_lines(SMAPS, "ShmemPmdMapped"), None);
        let largest = json!({"bytes": 1_u64 << 30, "page_bytes": 2 << 20, "file": "/anon_hugepage"});
        assert_eq!(largest_mapping(SMAPS), Some(largest));
        assert_eq!(largest_mapping(""), None);
    }

    #[test]
    fn servers_beside_it_are_counted_without_their_children() {
        let root = tempfile::tempdir().expect("a directory");
        // Two servers with a child each, and what is none.
        for (pid, name, parent) in [
            (10, "postgres", 1),
            (11, "postgres", 10),
            (20, "postgres", 1),
            (21, "postgres", 20),
            (30, "sshd", 1),
        ] {
            let place = root.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&place).expect("a directory");
            std::fs::write(place.join("comm"), format!("{name}\n")).expect("a name");
            std::fs::write(place.join("stat"), format!("{pid} ({name}) S {parent} 1 1")).expect("a line");
        }
        let host = LocalHost::at(root.path());
        let others = |pid| {
            let mut sheet = Sheet::new(&host);
            note_others(&mut sheet, pid);
            sheet.facts.remove(0).value
        };
        assert_eq!(others(10), Some(json!(1)));
        std::fs::remove_dir_all(root.path().join("proc/20")).expect("ended");
        std::fs::remove_dir_all(root.path().join("proc/21")).expect("ended");
        assert_eq!(others(10), Some(json!(0)));
        assert_eq!(others(99), None);
    }

    #[test]
    fn limits_have_two_sides() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  65536  unlimited  bytes\nMax open files 1024 x\n";
        assert_eq!(
            limit(text, "Max locked memory"),
            Some(json!({"soft": 65536, "hard": "unlimited"}))
        );
        assert_eq!(limit(text, "Max open files"), None);
        assert_eq!(limit(text, "Max stack size"), None);
    }

    #[test]
    fn this_process_is_known() {
        let facts = process_facts(&LocalHost::new(), std::process::id());
        let value = |name: &str| {
            facts
                .iter()
                .find(|fact| fact.name == name)
                .and_then(|fact| fact.value.clone())
        };
        for name in [
            "process.page_tables_bytes",
            "process.limits.open_files",
            "process.oom_score_adjustment",
            "process.resident_bytes",
            "process.largest_mapping",
            "process.scheduling_policy",
            "process.stderr",
        ] {
            assert!(value(name).is_some(), "{name}: {facts:?}");
        }
        assert!(started_unix_s(&LocalHost::new(), std::process::id()).unwrap() > 1_500_000_000);
    }

    #[test]
    fn a_process_that_is_gone_gives_reasons() {
        let facts = process_facts(&LocalHost::new(), u32::MAX);
        let known: Vec<&Fact> = facts.iter().filter(|fact| fact.value.is_some()).collect();
        assert_eq!(known.len(), 1, "{known:?}");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,200}", lines in "([0-9a-f]{1,4}-? ?|Size: ?|kB\n|\n){0,40}") {
            for text in [text, lines] {
                let _ = (sum_of_lines(&text, "Size"), largest_mapping(&text), limit(&text, "Max"), stat_field(&text, 22));
            }
        }
    }
}
