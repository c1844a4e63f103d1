//! The catalogue against what is real: the parameters of six versions, the files of eight machines,
//! and the knobs that published studies name.

use pgdyno_fixture::Machine;
use pgdyno_host::choices;
use pgdyno_knobs::{CarryOver, Catalogue, Cost, Kind, Knob, Per, Risk, Setting};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const VERSIONS: std::ops::RangeInclusive<u32> = 14..=19;
const MACHINES: usize = 8;
const BOOLEANS: [&str; 8] = ["on", "off", "true", "false", "yes", "no", "1", "0"];

/// Files that no captured machine has, each with the reason.
const NOT_CAPTURED: [(&str, &[&str]); 5] = [
    (
        "virtual machines have no frequency driver",
        &[
            "cpu.boost",
            "cpu.energy_perf_bias",
            "cpu.energy_performance_preference",
            "cpu.governor",
            "cpu.min_perf_pct",
            "cpu.no_turbo",
            "cpu.scaling_max_freq_khz",
            "cpu.scaling_min_freq_khz",
        ],
    ),
    ("no machine schedules by bfq", &["cgroup.io_weight"]),
    ("a device, not a file", &["cpu.dma_latency_us"]),
    ("interrupts are not copied", &["irq.affinity"]),
    (
        "not copied: no fact is read of it",
        &[
            "ksm.pages_to_scan",
            "ksm.sleep_millisecs",
            "net.arp_filter",
            "net.ipv4.tcp_autocorking",
            "net.ipv4.tcp_fastopen",
            "net.ipv4.tcp_mtu_probing",
            "net.ipv4.udp_mem",
            "vm.compact_memory",
        ],
    ),
];

/// Words that show a state and cannot be written.
const STATES: [&str; 2] = ["notsupported", "notimplemented"];

/// What published studies turn, and what the traps that they fell into are about.
const NAMED: &str = "\
    shared_buffers effective_cache_size autovacuum block.read_ahead_kb vm.nr_hugepages \
    kernel.sched_migration_cost_ns vm.dirty_background_bytes vm.dirty_bytes vm.dirty_background_ratio \
    vm.dirty_ratio checkpoint_completion_target max_wal_size min_wal_size wal_buffers synchronous_commit swap.file \
    debug_io_direct wal_sync_method kernel.sched_autogroup_enabled server.wal_directory autovacuum_work_mem \
    vacuum_buffer_usage_limit default_toast_compression table.toast_compression jit table.fillfactor lock_timeout \
    idle_in_transaction_session_timeout checkpoint_timeout full_page_writes fsync wal_init_zero wal_recycle \
    wal_level wal_writer_delay wal_writer_flush_after max_wal_senders effective_io_concurrency \
    maintenance_io_concurrency max_parallel_workers max_parallel_workers_per_gather \
    max_parallel_maintenance_workers max_worker_processes autovacuum_max_workers autovacuum_worker_slots \
    autovacuum_vacuum_cost_limit autovacuum_vacuum_cost_delay autovacuum_naptime vacuum_cost_page_hit \
    vacuum_cost_page_miss vacuum_cost_page_dirty vacuum_freeze_table_age vacuum_freeze_min_age \
    autovacuum_freeze_max_age autovacuum_multixact_freeze_max_age autovacuum_vacuum_scale_factor \
    autovacuum_analyze_scale_factor table.autovacuum_vacuum_scale_factor enable_seqscan random_page_cost \
    seq_page_cost vm.overcommit_memory vm.overcommit_ratio vm.overcommit_kbytes luks.no_read_workqueue \
    luks.no_write_workqueue block.scheduler block.nr_requests block.wbt_lat_usec vm.swappiness mount.nobarrier \
    mount.noatime cpu.governor cpu.energy_perf_bias cpu.dma_latency_us cpu.smt server.cpu_affinity \
    net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.udp_mem net.core.busy_poll net.core.busy_read net.core.somaxconn \
    net.ipv4.tcp_fastopen kernel.numa_balancing kernel.numa_balancing_scan_size_mb kernel.io_uring_disabled \
    kernel.sched_min_granularity_ns kernel.sched_latency_ns kernel.sched_wakeup_granularity_ns vm.drop_caches \
    vm.compact_memory vm.zone_reclaim_mode vm.min_free_kbytes vm.hugetlb_shm_group net.arp_filter net.mtu \
    cgroup.cpus cgroup.memory_nodes cgroup.cpu_quota cgroup.memory_max khugepaged.pages_to_scan ksm.run \
    irq.affinity transparent_hugepage.enabled transparent_hugepage.shmem_enabled \
    transparent_hugepage.size_shmem_enabled hugepages.pool hugepages.node_pool boot.hugepages boot.hugepagesz \
    boot.default_hugepagesz boot.transparent_hugepage boot.intel_idle.max_cstate huge_pages huge_page_size \
    max_connections maintenance_work_mem work_mem hash_mem_multiplier bgwriter_lru_maxpages \
    bgwriter_lru_multiplier bgwriter_flush_after backend_flush_after wal_compression wal_log_hints commit_delay \
    commit_siblings io_method io_workers io_max_workers io_max_concurrency io_combine_limit io_max_combine_limit \
    default_statistics_target max_locks_per_transaction max_prepared_transactions max_files_per_process \
    shared_preload_libraries track_activity_query_size jit_provider track_io_timing track_wal_io_timing \
    autovacuum_vacuum_insert_scale_factor wal_keep_size";

fn catalogue() -> Catalogue {
    Catalogue::shipped().expect("the catalogue")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// pg_settings of a version: parameter, then column, then value.
fn settings(version: u32) -> BTreeMap<String, BTreeMap<String, String>> {
    let path = fixtures().join(format!("settings/{version}.tsv"));
    let text = fs::read_to_string(&path).expect("the settings");
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let names: Vec<String> = lines.next().expect("names of columns").collect();
    lines
        .map(|values| {
            let row: BTreeMap<String, String> = names.iter().cloned().zip(values).collect();
            (row["name"].clone(), row)
        })
        .collect()
}

fn parameters(catalogue: &Catalogue) -> impl Iterator<Item = &Knob> {
    catalogue.iter().filter(|knob| knob.kind == Kind::Guc)
}

#[test]
fn a_parameter_is_in_exactly_the_versions_that_its_knob_says() {
    let catalogue = catalogue();
    let all: BTreeMap<u32, _> = VERSIONS.map(|version| (version, settings(version))).collect();
    for knob in parameters(&catalogue) {
        for (version, settings) in &all {
            let said = knob.since.is_none_or(|since| since <= *version)
                && knob.until.is_none_or(|until| *version <= until);
            assert_eq!(settings.contains_key(&knob.id), said, "{} in {version}", knob.id);
        }
        let late = knob.since.is_none_or(|since| since > *VERSIONS.start());
        assert!(late, "{}: since is for what 14 does not have", knob.id);
    }
}

#[test]
fn what_a_parameter_costs_and_its_unit_are_those_of_its_newest_version() {
    let catalogue = catalogue();
    let all: BTreeMap<u32, _> = VERSIONS.map(|version| (version, settings(version))).collect();
    for knob in parameters(&catalogue) {
        let row = &all[&knob.until.unwrap_or(*VERSIONS.end())][&knob.id];
        let expected = match row["context"].as_str() {
            "postmaster" => Cost::Restart,
            "sighup" | "user" | "superuser" | "backend" | "superuser-backend" => Cost::Reload,
            other => panic!("{}: {other} cannot be set", knob.id),
        };
        assert_eq!(knob.cost, expected, "{}", knob.id);
        match row["unit"].as_str() {
            "\\N" => {}
            "B" => assert_eq!(knob.unit.as_deref(), Some("bytes"), "{}", knob.id),
            unit => assert_eq!(knob.unit.as_deref(), Some(unit), "{}", knob.id),
        }
    }
}

#[test]
fn safe_words_are_legal_words_of_what_is_a_risk() {
    let catalogue = catalogue();
    let newest = settings(*VERSIONS.end());
    for knob in catalogue.iter() {
        assert!(knob.safe.is_empty() || knob.risk != Risk::None, "{}", knob.id);
        for word in &knob.safe {
            let legal = match newest.get(&knob.id).filter(|_| knob.kind == Kind::Guc) {
                Some(row) => takes(row, word),
                None => catalogue
                    .check(&Setting {
                        knob: with_instance(knob),
                        value: word.clone(),
                    })
                    .is_ok(),
            };
            assert!(legal, "{}: {word}", knob.id);
        }
    }
}

/// Whether a parameter takes a word. Those that grew out of a switch take all words of a switch.
fn takes(row: &BTreeMap<String, String>, word: &str) -> bool {
    let words: Vec<&str> = row["enumvals"].trim_matches(['{', '}']).split(',').collect();
    match row["vartype"].as_str() {
        "bool" => BOOLEANS.contains(&word),
        "enum" => words.contains(&word) || words.contains(&"on") && BOOLEANS.contains(&word),
        _ => true,
    }
}

/// The id with something behind an @ where that is needed.
fn with_instance(knob: &Knob) -> String {
    let instance = match knob.per {
        None | Some(Per::Disk | Per::Path) => return knob.id.clone(),
        Some(Per::Interface) => "eth0",
        Some(Per::PageSize) => "2048",
        Some(Per::PageSizeOfNode) => "2048/0",
        Some(Per::Table) => "public.t",
        Some(Per::Interrupt) => "1",
    };
    format!("{}@{instance}", knob.id)
}

/// Whole machines: broken copies are not compared with the catalogue, nor is one without files.
fn machines() -> Vec<Machine> {
    let mut machines = Machine::captured();
    machines.retain(|machine| machine.root().join("proc/sys/vm").is_dir());
    assert_eq!(machines.len(), MACHINES);
    machines
}

/// Where a knob's files are: what its addresses say, or its id.
fn places(knob: &Knob) -> Vec<String> {
    match knob.kind {
        Kind::Sysctl | Kind::Action if knob.addresses.is_empty() => {
            vec![format!("/proc/sys/{}", knob.id.replace('.', "/"))]
        }
        _ => knob.addresses.clone(),
    }
}

/// The files below `root` that a place can mean, whatever is in its braces, and of whatever part of
/// them it speaks.
fn found(root: &Path, place: &str) -> Vec<PathBuf> {
    let place = place.split('#').next().unwrap_or(place);
    let mut paths = match place
        .strip_prefix("{cgroup:")
        .and_then(|rest| rest.split_once("}/"))
    {
        Some((_, file)) => directories_below(&root.join("sys/fs/cgroup"))
            .into_iter()
            .map(|directory| directory.join(file))
            .collect(),
        None => place
            .split('/')
            .filter(|part| !part.is_empty())
            .fold(vec![root.to_owned()], step),
    };
    paths.retain(|path| path.is_file());
    paths
}

/// One part of a path further; a star or braces match anything.
fn step(paths: Vec<PathBuf>, part: &str) -> Vec<PathBuf> {
    let Some(at) = part.find(['{', '*']) else {
        return paths.into_iter().map(|path| path.join(part)).collect();
    };
    let end = part.rfind(['}', '*']).map_or(part.len(), |end| end + 1);
    let (head, tail) = (&part[..at], &part[end..]);
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.len() > head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
    };
    let below = paths.iter().flat_map(|path| names_in(path));
    below.filter(fits).collect()
}

fn names_in(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

fn directories_below(directory: &Path) -> Vec<PathBuf> {
    let below = names_in(directory)
        .into_iter()
        .filter(|path| path.is_dir() && !path.is_symlink());
    let mut all = vec![directory.to_owned()];
    all.extend(below.flat_map(|path| directories_below(&path)));
    all
}

#[test]
fn each_file_of_a_knob_is_on_a_machine_or_excepted() {
    let catalogue = catalogue();
    let machines = machines();
    let nowhere = |place: &str| {
        machines
            .iter()
            .all(|machine| found(machine.root(), place).is_empty())
    };
    let missing: BTreeSet<&str> = catalogue
        .iter()
        .filter(|knob| places(knob).iter().any(|place| nowhere(place)))
        .map(|knob| knob.id.as_str())
        .collect();
    let excepted: BTreeSet<&str> = NOT_CAPTURED
        .iter()
        .flat_map(|(_, ids)| ids.iter().copied())
        .collect();
    assert_eq!(missing, excepted);
    for knob in catalogue.iter() {
        for place in knob.resets.iter().chain(&knob.alike) {
            assert!(!nowhere(place), "{}: {place}", knob.id);
        }
    }
}

/// "5.10.0-32-amd64" as (5, 10).
fn release(text: &str) -> (u32, u32) {
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().expect("a number"));
    (numbers.next().expect("major"), numbers.next().expect("minor"))
}

#[test]
fn no_kernel_has_a_file_before_or_after_the_versions_that_its_knob_says() {
    let catalogue = catalogue();
    let bounded = |knob: &&Knob| knob.since_kernel.is_some() || knob.until_kernel.is_some();
    for machine in machines() {
        let root = machine.root();
        let text = fs::read_to_string(root.join("proc/sys/kernel/osrelease")).expect("a release");
        let kernel = release(&text);
        for knob in catalogue.iter().filter(bounded) {
            let since = knob.since_kernel.as_deref().map(release);
            let until = knob.until_kernel.as_deref().map(release);
            let said = since.is_none_or(|since| since <= kernel) && until.is_none_or(|until| kernel <= until);
            let there = places(knob).iter().any(|place| !found(root, place).is_empty());
            assert!(said || !there, "{}: {}", machine.name(), knob.id);
        }
    }
}

/// What a machine has is what the catalogue takes: its forms, bounds and words are not narrower
/// than the kernels'.
#[test]
fn the_values_of_the_machines_are_legal() {
    let catalogue = catalogue();
    let machines = machines();
    let (mut checked, mut wrong) = (0, Vec::new());
    // What can only be written reads as nothing of use; a quota is two numbers in one file, or in
    // two; and of some files a part is the value.
    for knob in catalogue.iter().filter(|knob| {
        !matches!(knob.kind, Kind::Action | Kind::CpuQuota)
            && !places(knob).iter().any(|place| place.contains('#'))
    }) {
        let places = places(knob);
        let paths = machines
            .iter()
            .flat_map(|machine| places.iter().flat_map(|place| found(machine.root(), place)));
        for path in paths {
            for value in values(knob, &fs::read_to_string(&path).expect("text")) {
                // A 0 there says that the counterpart counts, an empty set that the group above
                // does.
                let unset = knob.counterpart.is_some() && value == "0" || value.is_empty();
                if unset || STATES.contains(&value.as_str()) {
                    continue;
                }
                let outcome = catalogue.check(&Setting {
                    knob: with_instance(knob),
                    value,
                });
                checked += 1;
                wrong.extend(outcome.err().map(|error| format!("{}: {error}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // 1218 as they were captured: many fewer would mean that files are no longer found, not that
    // all is well.
    assert!(checked > 1000, "only {checked} values");
}

/// The value of a file, or the words that it offers.
fn values(knob: &Knob, text: &str) -> Vec<String> {
    match knob.kind {
        Kind::Bracket => choices(text).map(str::to_owned).collect(),
        _ => vec![text.split_whitespace().collect::<Vec<_>>().join(" ")],
    }
}

#[test]
fn what_the_studies_turn_is_known() {
    let catalogue = catalogue();
    for id in NAMED.split_whitespace() {
        assert!(catalogue.find(id).is_some(), "{id}");
    }
    // A flush that is only believed, a page that is lost silently: no speed justifies these.
    for id in [
        "block.write_cache",
        "data_sync_retry",
        "zero_damaged_pages",
        "ignore_checksum_failure",
    ] {
        assert!(catalogue.find(id).is_none(), "{id}");
    }
}

#[test]
fn every_knob_has_a_short_text_and_a_source() {
    for knob in catalogue().iter() {
        assert!(knob.summary.ends_with('.'), "{}", knob.id);
        assert!(knob.summary.len() <= 420, "{}: {}", knob.id, knob.summary.len());
        assert!(!knob.source.trim().is_empty(), "{}", knob.id);
        let parameter = knob.kind == Kind::Guc;
        assert_eq!(
            parameter,
            !knob.id.contains('.'),
            "{}: what is not a parameter has a dot",
            knob.id
        );
    }
}

/// What carries over is not known: CPUs that come back are in no affinity that has lost them.
const CARRY_OVER_UNKNOWN: [&str; 1] = ["cpu.smt"];

/// Only where a load goes on over a change is there anything to carry over.
#[test]
fn what_carries_over_is_known_of_knobs_that_a_load_outlives() {
    let catalogue = catalogue();
    for knob in catalogue.iter() {
        let is_outlived = knob.cost <= Cost::Reload && !knob.kind.is_advised_only();
        let is_known = is_outlived && !CARRY_OVER_UNKNOWN.contains(&knob.id.as_str());
        assert_eq!(knob.carry_over.is_some(), is_known, "{}", knob.id);
    }
    for (id, expected) in [
        ("synchronous_commit", Some(CarryOver::None)),
        ("random_page_cost", Some(CarryOver::Plans)),
        ("cpu.governor", Some(CarryOver::Seconds)),
        ("vm.swappiness", Some(CarryOver::Caches)),
        ("table.fillfactor", Some(CarryOver::Caches)),
        ("shared_buffers", None),
        ("net.core.rmem_max", Some(CarryOver::Sessions)),
        ("cpu.smt", None),
    ] {
        assert_eq!(catalogue.get(id).unwrap().carry_over, expected, "{id}");
    }
}

#[test]
fn each_section_has_a_heading_and_every_knob_is_in_one() {
    let catalogue = catalogue();
    let ids: Vec<&String> = catalogue.sections().iter().flat_map(|s| &s.ids).collect();
    assert_eq!(ids.len(), catalogue.iter().count());
    assert!(ids.iter().all(|id| catalogue.find(id).is_some()));
    assert!(
        catalogue
            .sections()
            .iter()
            .all(|section| !section.title.is_empty())
    );
}

#[test]
fn numbers_without_a_unit_are_in_the_knobs_own() {
    let catalogue = Catalogue::shipped().expect("the catalogue");
    let number = |knob: &str, value: &str| catalogue.number_of(knob, value);
    assert_eq!(number("shared_buffers", "16384"), Some(f64::from(128 << 20)));
    assert_eq!(number("shared_buffers", "128MB"), Some(f64::from(128 << 20)));
    assert_eq!(number("checkpoint_timeout", "300"), Some(300.0));
    assert_eq!(number("random_page_cost", "1.1"), Some(1.1));
    assert_eq!(number("wal_buffers", "-1"), Some(-1.0));
    assert_eq!(number("wal_compression", "lz4"), None);
    let shown = |knob: &str, value: &str| catalogue.with_unit(knob, value);
    assert_eq!(shown("shared_buffers", "16384"), "131072kB");
    assert_eq!(shown("max_wal_size", "1024"), "1024MB");
    assert_eq!(shown("max_wal_size", "1GB"), "1GB");
    assert_eq!(shown("wal_buffers", "-1"), "-1");
    assert_eq!(shown("random_page_cost", "4"), "4");
    assert_eq!(shown("commit_delay", "100"), "100");
}
