//! What the catalogue says of a knob, in words.

use pgdyno_knobs::{CarryOver, Cost, Kind, Knob, Per, Risk};

/// Meaning of the risk "stability".
pub(super) const STABILITY: &str = "a bad value can bring the server or the host down";
/// Meaning of the risk "durability".
pub(super) const DURABILITY: &str = "committed data can be lost in a crash";

/// How it is read and written.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Guc => "a parameter of the server",
        Kind::TableOption => "a storage parameter of a table and its partitions, by ALTER TABLE",
        Kind::ColumnCompression => "the compression of a table's columns, by ALTER TABLE",
        Kind::Sysctl => "a kernel parameter",
        Kind::Sysfs => "a file of the kernel",
        Kind::Bracket => "a file of the kernel that lists all choices",
        Kind::HugepagePool => "a pool of huge pages",
        Kind::CpuQuota => "a quota of a control group",
        Kind::Affinity => "an affinity of processes",
        Kind::WalDirectory => "where pg_wal leads",
        Kind::SwapFile => "a file that is swapped to",
        Kind::HeldFile => "a file that counts while it is held open",
        Kind::Action => "an action of the kernel: known, never done",
        Kind::BootParameter => "a word of the boot line: advised and looked for, never set",
        Kind::MountOption => "an option of a mount: advised and looked for, never set",
        Kind::VolumeFlag => "a flag of a device-mapper volume: advised and looked for, never set",
    }
}

/// What is behind the @, with an example; `None` where there is one of it.
pub(super) fn instances(knob: &Knob) -> Option<String> {
    let (what, example) = match knob.per? {
        Per::Disk if knob.kind == Kind::VolumeFlag => {
            ("a device-mapper volume; the data's if nothing is said", "dm-0")
        }
        Per::Disk => (
            "a block device, or data, wal, data-members, wal-members; data if nothing is said",
            "sda",
        ),
        Per::Interface => ("a network interface", "eth0"),
        Per::PageSize => ("a size of huge pages in kB", "2048"),
        Per::PageSizeOfNode => ("a size of huge pages in kB and a memory node", "2048/1"),
        Per::Table => ("a table", "public.orders"),
        Per::Interrupt => ("the number of an interrupt", "27"),
        Per::Path => (
            "an absolute path; where the data is if nothing is said",
            "/var/lib/postgresql",
        ),
    };
    Some(format!("{what}: {}@{example}", knob.id))
}

/// Versions of the server; `None` where all have it, or where it is none of the server's.
pub(super) fn versions(knob: &Knob) -> Option<String> {
    Some(match (knob.since, knob.until) {
        (None, None) => return None,
        (Some(since), None) => format!("PostgreSQL {since} and later"),
        (None, Some(until)) => format!("PostgreSQL until {until}"),
        (Some(since), Some(until)) if since == until => format!("PostgreSQL {since}"),
        (Some(since), Some(until)) => format!("PostgreSQL {since} to {until}"),
    })
}

/// Versions of the kernel, where that matters.
pub(super) fn kernels(knob: &Knob) -> Option<String> {
    Some(match (&knob.since_kernel, &knob.until_kernel) {
        (None, None) => return None,
        (Some(since), None) => format!("Linux {since} and later"),
        (None, Some(until)) => format!("Linux until {until}"),
        (Some(since), Some(until)) => format!("Linux {since} to {until}"),
    })
}

/// Both, with commas.
pub(super) fn where_there(knob: &Knob) -> Option<String> {
    let both: Vec<String> = [versions(knob), kernels(knob)].into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// Condition on which a new value counts, in words.
pub(super) fn cost(cost: Cost) -> &'static str {
    match cost {
        Cost::Live => "nothing: a new value counts at once",
        Cost::Reload => "reload of the server's files",
        Cost::Restart => "restart of the server",
        Cost::Remount => "remount",
        Cost::Reboot => "reboot",
    }
}

/// What is left of an old value, in words.
fn carry_over(carry_over: CarryOver) -> &'static str {
    match carry_over {
        CarryOver::None => "nothing: the next transaction goes by the new value",
        CarryOver::Plans => "plans of prepared statements, which keep the old value",
        CarryOver::Seconds => "a few seconds",
        CarryOver::Caches => "caches, tables or files, for minutes or longer",
        CarryOver::Sessions => "sessions that were connected before, which keep the old value",
    }
}

/// What it can cost the user, and which values cannot.
pub(super) fn risk(knob: &Knob) -> String {
    let what = match knob.risk {
        Risk::None => return "none but time".into(),
        Risk::Stability => format!("stability: {STABILITY}"),
        Risk::Durability => format!("durability: {DURABILITY}"),
    };
    match knob.safe.as_slice() {
        [] => what,
        safe => format!("{what}; safe: {}", safe.join(", ")),
    }
}

/// Places of its files; a kernel parameter's is its name.
pub(super) fn files(knob: &Knob) -> Vec<String> {
    match knob.kind {
        Kind::Sysctl | Kind::Action if knob.addresses.is_empty() => {
            vec![format!("/proc/sys/{}", knob.id.replace('.', "/"))]
        }
        _ => knob.addresses.clone(),
    }
}

/// What not every knob has: a word, and what belongs to it.
pub(super) fn particulars(knob: &Knob) -> Vec<(&'static str, String)> {
    let all = |texts: &[String]| (!texts.is_empty()).then(|| texts.join(", "));
    let particulars = [
        ("of", instances(knob)),
        ("there", where_there(knob)),
        (
            "carries over",
            knob.carry_over.map(|over| carry_over(over).to_owned()),
        ),
        ("renamed", knob.renamed.clone()),
        ("file", all(&files(knob))),
        ("zeroes", knob.counterpart.clone()),
        ("resets", all(&knob.resets)),
        ("as do", all(&knob.alike)),
        ("has to stay below", knob.below.clone()),
        (
            "memory",
            knob.memory_percent_max
                .map(|percent| format!("at most {percent} % of the host's")),
        ),
        ("not with", all(&knob.excludes)),
        ("looks for", knob.word.clone()),
        ("reported where it was not given", knob.unset.clone()),
    ];
    let known = particulars.into_iter();
    known.filter_map(|(name, text)| Some((name, text?))).collect()
}
