//! The kernel: release, distribution, boot line, clock, and the scheduler's knobs wherever this
//! version keeps them.

use super::sheet::{Sheet, scalar, start_of};
use crate::access::HostError;
use crate::choices::chosen;
use crate::mount;

const OS_RELEASE: &str = "/etc/os-release";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
const DEBUG: &str = "/sys/kernel/debug";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    sheet.text("kernel.release", "/proc/sys/kernel/osrelease");
    sheet.text("kernel.build", "/proc/sys/kernel/version");
    let distribution = distribution(sheet);
    sheet.note("kernel.distribution", OS_RELEASE, distribution);
    let line = sheet.text_of("/proc/cmdline").map(|line| without_secrets(&line));
    sheet.note("kernel.boot_line", "/proc/cmdline", line);
    sheet.text("kernel.boot_id", "/proc/sys/kernel/random/boot_id");
    sheet.text("kernel.clock_source", &format!("{CLOCK}/current_clocksource"));
    let others = sheet
        .text_of(&format!("{CLOCK}/available_clocksource"))
        .map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    sheet.note(
        "kernel.clock_sources",
        &format!("{CLOCK}/available_clocksource"),
        others,
    );
    sheet.chosen("kernel.lockdown", "/sys/kernel/security/lockdown");
    sheet.value("kernel.tainted", "/proc/sys/kernel/tainted");
}

fn distribution(sheet: &Sheet<'_>) -> Result<String, String> {
    let text = sheet.text_of_long(OS_RELEASE)?;
    text.lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches(['"', '\'']).to_owned())
        .ok_or_else(|| {
            let first = text.lines().next().unwrap_or_default();
            format!(
                "{OS_RELEASE} has no line PRETTY_NAME=; it begins with \"{}\"",
                start_of(first)
            )
        })
}

/// Parts of the names of parameters that hold secrets (of remote disks, of keys, of the first
/// program).
const SECRET: [&str; 7] = ["pass", "secret", "credential", "token", "auth", "key", "user"];
/// Addresses of remote disks and files, in which name and password are before an "@".
const ADDRESSES: [&str; 2] = ["//", "iscsi:"];

/// The kernel's own parameters. What follows "--" is for the first program and none of the
/// kernel's.
fn without_secrets(line: &str) -> String {
    let is_secret = |name: &str, value: &str| {
        let name = name.to_lowercase();
        SECRET.iter().any(|part| name.contains(part))
            || (value.contains('@') && ADDRESSES.iter().any(|part| value.contains(part)))
    };
    let shown = parameters(line)
        .into_iter()
        .take_while(|word| *word != "--")
        .map(|word| match word.split_once('=') {
            Some((name, value)) if is_secret(name, value) => format!("{name}=(not shown)"),
            _ => word.to_owned(),
        });
    shown.collect::<Vec<_>>().join(" ")
}

/// Parameters are between blanks, but for those in double quotes (the kernel's parse_args()).
fn parameters(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let words = line.split(|c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// The scheduler's knobs: fact, and where kernels keep it, newest first. They left /proc/sys/kernel
/// for debugfs in 5.13; 6.6 renamed min_granularity_ns to base_slice_ns and dropped latency_ns and
/// wakeup_granularity_ns.
const SCHEDULER: [(&str, &[&str]); 8] = [
    (
        "sched.base_slice_ns",
        &[
            "/sys/kernel/debug/sched/base_slice_ns",
            "/sys/kernel/debug/sched/min_granularity_ns",
            "/proc/sys/kernel/sched_min_granularity_ns",
        ],
    ),
    (
        "sched.latency_ns",
        &[
            "/sys/kernel/debug/sched/latency_ns",
            "/proc/sys/kernel/sched_latency_ns",
        ],
    ),
    (
        "sched.wakeup_granularity_ns",
        &[
            "/sys/kernel/debug/sched/wakeup_granularity_ns",
            "/proc/sys/kernel/sched_wakeup_granularity_ns",
        ],
    ),
    (
        "sched.migration_cost_ns",
        &[
            "/sys/kernel/debug/sched/migration_cost_ns",
            "/proc/sys/kernel/sched_migration_cost_ns",
        ],
    ),
    (
        "sched.nr_migrate",
        &[
            "/sys/kernel/debug/sched/nr_migrate",
            "/proc/sys/kernel/sched_nr_migrate",
        ],
    ),
    (
        "sched.tunable_scaling",
        &[
            "/sys/kernel/debug/sched/tunable_scaling",
            "/proc/sys/kernel/sched_tunable_scaling",
        ],
    ),
    ("sched.preempt", &["/sys/kernel/debug/sched/preempt"]),
    (
        "sched.features",
        &[
            "/sys/kernel/debug/sched/features",
            "/sys/kernel/debug/sched_features",
        ],
    ),
];

/// Refused, not mounted and not offered by this kernel are reported as three different things.
pub(super) fn note_scheduler(sheet: &mut Sheet<'_>) {
    let mounted = mount::mounts(sheet.host).map(|mounts| {
        let mut points = mounts.iter().filter(|mount| mount.kind == "debugfs");
        points.any(|mount| mount.point == DEBUG)
    });
    for (name, paths) in SCHEDULER {
        let first = paths.first().copied().unwrap_or_default();
        let (source, outcome) = first_readable(sheet, paths).unwrap_or_else(|error| {
            let why = match (error, &mounted) {
                (HostError::Missing { .. }, Ok(false)) => {
                    format!("debugfs is not mounted at {DEBUG}; root may: mount -t debugfs none {DEBUG}")
                }
                (HostError::Missing { .. }, Ok(true)) => "this kernel has no such knob".to_owned(),
                (error @ HostError::Refused { .. }, _) => {
                    format!("{error}; root may, unless the kernel is locked down (kernel.lockdown)")
                }
                (error, _) => error.to_string(),
            };
            (first, Err(why))
        });
        let outcome = outcome.map(|text| match name {
            "sched.preempt" => chosen(&text).unwrap_or(&text).into(),
            _ => scalar(&text),
        });
        sheet.note(name, source, outcome);
    }
}

type Found = (&'static str, Result<String, String>);

fn first_readable(sheet: &Sheet<'_>, paths: &'static [&'static str]) -> Result<Found, HostError> {
    let mut refusal = None;
    let mut last = HostError::Missing {
        path: DEBUG.to_owned(),
    };
    for path in paths {
        match sheet.host.read_trimmed(path) {
            Ok(text) => return Ok((path, Ok(text))),
            Err(error) if error.is_refused() => refusal = Some(error),
            Err(error) => last = error,
        }
    }
    Err(refusal.unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_line_shows_no_secret() {
        for (line, shown) in [
            (
                "ro quiet rd.iscsi.password=tiger systemd.set_credential=a:b hugepages=10 -- --token x",
                "ro quiet rd.iscsi.password=(not shown) systemd.set_credential=(not shown) hugepages=10",
            ),
            (
                "a.password=\"two words\" dyndbg=\"file x +p\" crashkernel=256M@16M",
                "a.password=(not shown) dyndbg=\"file x +p\" crashkernel=256M@16M",
            ),
            (
                "netroot=iscsi:scott:tiger@10.0.0.1::::disk root=live:http://scott:tiger@host/x root=/dev/vda1",
                "netroot=(not shown) root=(not shown) root=/dev/vda1",
            ),
            ("\"b.token=with blanks\" ro", "\"b.token=(not shown) ro"),
        ] {
            assert_eq!(without_secrets(line), shown);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_boot_line_makes_it_panic(line in "\\PC{0,40}|[a-z=@\" -]{0,40}") {
            without_secrets(&line);
        }
    }
}
