//! Facts of a host: what was found, where it was read, and why something is missing.

use crate::access::{HostAccess, HostError};
use crate::block;
use crate::fact::Fact;
use crate::sample::meminfo_bytes;

/// The boot id: another one means the kernel has forgotten every setting since.
pub fn boot_id(host: &dyn HostAccess) -> Result<String, HostError> {
    host.read_trimmed("/proc/sys/kernel/random/boot_id")
}

/// Facts of the machine as a whole.
pub fn host_facts(host: &dyn HostAccess) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new(
            "kernel",
            "/proc/sys/kernel/osrelease",
            host.read_trimmed("/proc/sys/kernel/osrelease"),
        ),
        Fact::new("distribution", "/etc/os-release", distribution(host)),
        Fact::new("cpu_model", "/proc/cpuinfo", cpu_model(host)),
        Fact::new(
            "cpus_online",
            "/sys/devices/system/cpu/online",
            host.read_trimmed("/sys/devices/system/cpu/online"),
        ),
        Fact::new(
            "numa_nodes_online",
            "/sys/devices/system/node/online",
            host.read_trimmed("/sys/devices/system/node/online"),
        ),
        Fact::new("boot_id", "/proc/sys/kernel/random/boot_id", boot_id(host)),
    ];
    for (name, line) in [
        ("memory_total_bytes", "MemTotal"),
        ("swap_total_bytes", "SwapTotal"),
        ("huge_page_size_bytes", "Hugepagesize"),
    ] {
        facts.push(Fact::new(
            name,
            &format!("/proc/meminfo, {line}"),
            meminfo(host, line),
        ));
    }
    for (name, path) in [
        ("hypervisor_vendor", "/sys/class/dmi/id/sys_vendor"),
        (
            "clock_source",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        (
            "cpu_governor",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        ),
        (
            "transparent_hugepage",
            "/sys/kernel/mm/transparent_hugepage/enabled",
        ),
        ("nr_hugepages", "/proc/sys/vm/nr_hugepages"),
        ("overcommit_memory", "/proc/sys/vm/overcommit_memory"),
        ("swappiness", "/proc/sys/vm/swappiness"),
    ] {
        facts.push(Fact::new(name, path, host.read_trimmed(path)));
    }
    facts.extend(page_cache_facts(host));
    facts
}

/// When the kernel starts to write dirty pages back.
fn page_cache_facts(host: &dyn HostAccess) -> Vec<Fact> {
    [
        "dirty_background_bytes",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_ratio",
    ]
    .into_iter()
    .map(|name| {
        let path = format!("/proc/sys/vm/{name}");
        Fact::new(name, &path, host.read_trimmed(&path))
    })
    .collect()
}

/// Facts of the storage below `path`; `role` is "data" or "wal".
pub fn storage_facts(host: &dyn HostAccess, role: &str, path: &str) -> Vec<Fact> {
    let mut facts = vec![Fact::new(
        &format!("{role}_file_system"),
        "/proc/self/mountinfo",
        host.device_of(path).and_then(|number| mount_of(host, number)),
    )];
    let disk = block::disk_of(host, path);
    if let Ok(disk) = &disk {
        for name in ["scheduler", "read_ahead_kb", "rotational", "nr_requests"] {
            let path = format!("/sys/block/{disk}/queue/{name}");
            facts.push(Fact::new(
                &format!("{role}_disk_{name}"),
                &path,
                host.read_trimmed(&path),
            ));
        }
    }
    facts.insert(
        0,
        Fact::new(
            &format!("{role}_disk"),
            &format!("/sys/dev/block, of {path}"),
            disk,
        ),
    );
    facts
}

fn distribution(host: &dyn HostAccess) -> Result<String, HostError> {
    let path = "/etc/os-release";
    let text = host.read(path)?;
    text.lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| HostError::Malformed {
            path: path.into(),
            line: 1,
            expected: "a line PRETTY_NAME=",
            found: text.lines().next().unwrap_or_default().into(),
        })
}

fn cpu_model(host: &dyn HostAccess) -> Result<String, HostError> {
    let path = "/proc/cpuinfo";
    let text = host.read(path)?;
    // "model name" on x86, "Processor"/"CPU part" on arm64, "vendor_id" and "machine" on s390x.
    ["model name", "Model", "Processor", "vendor_id", "CPU part"]
        .iter()
        .find_map(|key| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == *key).then(|| value.trim().to_owned())
            })
        })
        .ok_or_else(|| HostError::Malformed {
            path: path.into(),
            line: 1,
            expected: "a line that names the processor",
            found: text.lines().next().unwrap_or_default().into(),
        })
}

fn meminfo(host: &dyn HostAccess, line: &str) -> Result<String, String> {
    let text = host.read("/proc/meminfo").map_err(|e| e.to_string())?;
    meminfo_bytes(&text, line)
        .map(|bytes| format!("{bytes:.0}"))
        .ok_or_else(|| format!("/proc/meminfo has no usable line {line} on this kernel"))
}

/// "ext4, rw,relatime on /" for a device number (proc_pid_mountinfo(5)).
fn mount_of(host: &dyn HostAccess, (major, minor): (u32, u32)) -> Result<String, HostError> {
    let path = "/proc/self/mountinfo";
    let text = host.read(path)?;
    let number = format!("{major}:{minor}");
    text.lines()
        .find_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let fields: Vec<&str> = left.split(' ').collect();
            (fields.get(2) == Some(&number.as_str())).then(|| {
                let kind = right.split(' ').next().unwrap_or_default();
                let (place, options) = (fields.get(4).unwrap_or(&""), fields.get(5).unwrap_or(&""));
                format!("{kind}, {options}, on {place}")
            })
        })
        .ok_or(HostError::Missing {
            path: format!("{path}, device {number}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LocalHost;

    #[test]
    fn every_fact_has_a_value_or_a_reason() {
        let empty = tempfile::tempdir().unwrap();
        for root in [std::path::Path::new("/"), empty.path()] {
            let host = LocalHost::at(root);
            let facts = host_facts(&host);
            assert!(
                facts.iter().all(|f| f.value.is_some() != f.missing.is_some()),
                "{facts:?}"
            );
        }
    }

    #[test]
    fn this_machine_names_its_kernel_and_memory() {
        let facts = host_facts(&LocalHost::new());
        let value = |name| {
            facts
                .iter()
                .find(|f| f.name == name)
                .and_then(|f| f.value.clone())
        };
        assert!(value("kernel").is_some());
        let memory = value("memory_total_bytes").unwrap();
        assert!(memory.as_str().unwrap().parse::<f64>().unwrap() > 1e8);
    }
}
