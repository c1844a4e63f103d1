//! Sockets, cores, threads and caches, and which CPUs share a last-level cache.

use super::sheet::{Sheet, bytes_of_size, count_of_list, expected, object};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn note(sheet: &mut Sheet<'_>) {
    let cpus = sheet.numbered(CPUS, "cpu");
    note_counts(sheet, &cpus);
    note_smt(sheet);
    let caches = cpus.and_then(|cpus| read_caches(sheet, &cpus));
    let source = format!("{CPUS}/cpu*/cache");
    sheet.note("cpu.caches", &source, caches.clone().map(|caches| kinds(&caches)));
    sheet.note(
        "cpu.last_level_cache_domains",
        &source,
        caches.map(|caches| last_level(&caches)),
    );
}

/// Distinct packages, sets of sibling threads, and CPUs that have a topology: those online.
fn note_counts(sheet: &mut Sheet<'_>, cpus: &Result<Vec<u32>, String>) {
    let source = format!("{CPUS}/cpu*/topology");
    let (mut packages, mut cores, mut threads) = (BTreeSet::new(), BTreeSet::new(), 0_u64);
    for cpu in cpus.as_deref().unwrap_or_default() {
        let read = |name: &str| sheet.text_of(&format!("{CPUS}/cpu{cpu}/topology/{name}"));
        // core_cpus_list is the newer name of the same, since 5.4.
        if let Ok(siblings) = read("thread_siblings_list").or_else(|_| read("core_cpus_list"))
            && count_of_list(&siblings).is_some()
        {
            cores.insert(siblings);
            threads += 1;
        }
        // Firmware of some arm64 machines does not report it: -1.
        if let Ok(package) = read("physical_package_id")
            && package.parse::<u32>().is_ok()
        {
            packages.insert(package);
        }
    }
    let counted = |count: u64| -> Result<u64, String> {
        match (cpus, count) {
            (Err(why), _) => Err(why.clone()),
            (Ok(_), 0) => Err(format!("{source} does not report it on this machine")),
            (Ok(_), count) => Ok(count),
        }
    };
    let count = |set: &BTreeSet<String>| u64::try_from(set.len()).unwrap_or(u64::MAX);
    sheet.note("cpu.sockets", &source, counted(count(&packages)));
    sheet.note("cpu.cores", &source, counted(count(&cores)));
    sheet.note("cpu.threads", &source, counted(threads));
}

fn note_smt(sheet: &mut Sheet<'_>) {
    let path = format!("{CPUS}/smt/active");
    let active = sheet.number_of(&path).map(|n| n != 0);
    sheet.note("cpu.smt_active", &path, active);
    let path = format!("{CPUS}/smt/control");
    // A number since 6.6: how many threads of a core run, on some machines.
    let control = sheet.text_of(&path).and_then(|word| match word.as_str() {
        "on" | "off" | "forceoff" | "notsupported" | "notimplemented" => Ok(word),
        _ if word.parse::<u32>().is_ok() => Ok(word),
        _ => Err(expected(&path, "a state of SMT", &word)),
    });
    sheet.note("cpu.smt_control", &path, control);
}

/// What the kernel calls them (drivers/base/cacheinfo.c).
const KINDS: [&str; 3] = ["Data", "Instruction", "Unified"];

/// One cache: its level, kind, size and so on, and the CPUs that share it.
#[derive(Clone)]
struct Cache {
    level: u64,
    kind: String,
    bytes: Option<u64>,
    line_bytes: Option<u64>,
    ways: Option<u64>,
    cpus: String,
}

/// Every cache once. Where a file is cut, its neighbours may be too, and a number that is cut looks
/// like another number: then nothing is known.
fn read_caches(sheet: &Sheet<'_>, cpus: &[u32]) -> Result<Vec<Cache>, String> {
    let mut found: BTreeMap<(u64, String, String), Cache> = BTreeMap::new();
    for cpu in cpus {
        let directory = format!("{CPUS}/cpu{cpu}/cache");
        for index in sheet.numbered(&directory, "index").unwrap_or_default() {
            let path = |name: &str| format!("{directory}/index{index}/{name}");
            let number = |name: &str| sheet.number_of(&path(name)).ok();
            let line_bytes = number("coherency_line_size");
            if let Some(bytes) = line_bytes.filter(|bytes| !bytes.is_power_of_two()) {
                return Err(expected(
                    &path("coherency_line_size"),
                    "a power of two",
                    &bytes.to_string(),
                ));
            }
            let size = sheet.text_of(&path("size")).ok();
            if let Some(text) = size.as_ref().filter(|text| !text.ends_with('K')) {
                return Err(expected(&path("size"), "a number with K behind it", text));
            }
            let (Some(level), Ok(kind), Ok(shared)) = (
                number("level"),
                sheet.text_of(&path("type")),
                sheet.list_of(&path("shared_cpu_list")),
            ) else {
                continue;
            };
            if !KINDS.contains(&kind.as_str()) {
                return Err(expected(&path("type"), "Data, Instruction or Unified", &kind));
            }
            found
                .entry((level, kind.clone(), shared.clone()))
                .or_insert_with(|| Cache {
                    level,
                    kind: kind.to_lowercase(),
                    bytes: size.as_deref().and_then(bytes_of_size),
                    line_bytes,
                    ways: number("ways_of_associativity"),
                    cpus: shared,
                });
        }
    }
    if found.is_empty() {
        return Err("this machine does not report its caches (usual in virtual machines)".to_owned());
    }
    Ok(found.into_values().collect())
}

/// Caches that are alike, with how many there are.
fn kinds(caches: &[Cache]) -> Vec<Value> {
    type Alike<'c> = (u64, &'c str, Option<u64>, Option<u64>, Option<u64>);
    let mut kinds: BTreeMap<Alike<'_>, u64> = BTreeMap::new();
    for cache in caches {
        let alike = (
            cache.level,
            cache.kind.as_str(),
            cache.bytes,
            cache.line_bytes,
            cache.ways,
        );
        *kinds.entry(alike).or_default() += 1;
    }
    kinds
        .into_iter()
        .map(|((level, kind, bytes, line_bytes, ways), count)| {
            object([
                ("level", level.into()),
                ("kind", kind.into()),
                ("bytes", bytes.into()),
                ("line_bytes", line_bytes.into()),
                ("ways", ways.into()),
                ("count", count.into()),
            ])
        })
        .collect()
}

/// The caches of the highest level that hold data, each with its CPUs.
fn last_level(caches: &[Cache]) -> Vec<Value> {
    let holds_data = |cache: &&Cache| cache.kind != "instruction";
    let level = caches.iter().filter(holds_data).map(|cache| cache.level).max();
    caches
        .iter()
        .filter(holds_data)
        .filter(|cache| Some(cache.level) == level)
        .map(|cache| {
            object([
                ("cpus", cache.cpus.clone().into()),
                ("level", cache.level.into()),
                ("bytes", cache.bytes.into()),
            ])
        })
        .collect()
}
