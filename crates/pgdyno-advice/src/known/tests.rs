use super::*;
use pgdyno_fixture::Machine;
use pgdyno_host::{LocalHost, host_facts};
use serde_json::json;

fn guc(name: &str, vartype: &str, setting: &str, unit: Option<&str>) -> Guc {
    Guc {
        name: name.into(),
        shown: setting.into(),
        setting: setting.into(),
        unit: unit.map(str::to_owned),
        context: "sighup".into(),
        vartype: vartype.into(),
        source: "default".into(),
        boot_value: None,
        pending_restart: false,
    }
}

fn of(facts: &[(&str, Value)]) -> Known {
    let facts: Vec<Fact> = facts
        .iter()
        .map(|(name, value)| Fact::known(name, "test", value.clone()))
        .collect();
    Known::new(&facts, &[])
}

#[track_caller]
fn check(known: &Known, name: &str, expected: Result<Value, &str>) {
    match (known.get(name), expected) {
        (Ok(found), Ok(expected)) => assert_eq!(*found, expected, "{name}"),
        (Err(lacking), Err(part)) => assert!(lacking.to_string().contains(part), "{lacking}"),
        (found, expected) => panic!("{name}: {found:?} is not {expected:?}"),
    }
}

#[test]
fn settings_are_plain_numbers() {
    let settings = [
        guc("shared_buffers", "integer", "16384", Some("8kB")),
        guc("checkpoint_timeout", "integer", "300", Some("s")),
        guc("vacuum_cost_delay", "real", "2", Some("ms")),
        guc("autovacuum_work_mem", "integer", "-1", Some("kB")),
        guc("random_page_cost", "real", "1.1", None),
        guc("jit", "bool", "on", None),
        guc("wal_level", "enum", "replica", None),
        guc("server_version_num", "integer", "180006", None),
    ];
    let known = Known::new(&[], &settings);
    check(&known, "setting.shared_buffers", Ok(json!(134_217_728)));
    check(&known, "setting.checkpoint_timeout", Ok(json!(300)));
    check(&known, "setting.vacuum_cost_delay", Ok(json!(0.002)));
    check(&known, "setting.autovacuum_work_mem", Ok(json!(-1)));
    check(&known, "setting.random_page_cost", Ok(json!(1.1)));
    check(&known, "setting.jit", Ok(json!(true)));
    check(&known, "setting.wal_level", Ok(json!("replica")));
    check(&known, "server.major", Ok(json!(18)));
    check(
        &known,
        "setting.shared_bufers",
        Err("no setting of that name; did you mean \"shared_buffers\"?"),
    );
}

#[test]
fn setting_hidden_by_the_session_is_missing_with_its_reason() {
    let rows = json!([{ "name": "work_mem", "why": "PGOPTIONS sets it" }]);
    let known = of(&[("settings.unknown", rows)]);
    let reason = "setting.work_mem is missing: PGOPTIONS sets it";
    check(&known, "setting.work_mem", Err(reason));
}

#[test]
fn what_is_not_there_says_why() {
    let facts = [
        Fact::unknown("host.facts", "/proc", "reached over a network"),
        Fact::unknown("server.build", "version()", "refused"),
        Fact::known("connections.by_state", "x", json!({"active": 3, "odd": null})),
    ];
    let known = Known::new(&facts, &[guc("jit", "bool", "on", None)]);
    check(&known, "memory.total_bytes", Err("reached over a network"));
    check(&known, "available.memory_bytes", Err("reached over a network"));
    check(&known, "virtualization.guest", Err("reached over a network"));
    check(&known, "server.build.lz4", Err("refused"));
    check(&known, "connections.by_state.active", Ok(json!(3)));
    check(&known, "connections.by_state.odd", Err("could not be read"));
    check(&known, "connections", Err("the beginning of names"));
    check(
        &known,
        "conections.by_state.active",
        Err("did you mean \"connections.by_state.active\""),
    );
    let host = of(&[
        ("memory.total_bytes", json!(1024)),
        ("cpu.online_count", json!(2)),
    ]);
    check(&host, "setting.shared_buffers", Err("no server was asked"));
    check(&host, "server.major", Err("no server was asked"));
    check(&host, "storage.data_medium", Err("no server was asked"));
    check(&host, "sandbox.name", Err("not a sandbox"));
    check(&host, "available.memory_bytes", Ok(json!(1024)));
    check(&host, "available.cpus", Ok(json!(2)));
    check(&host, "memory.total_byte", Err("did you mean"));
    let given = host.given("available.memory_bytes", json!(5));
    check(&given, "available.memory_bytes", Ok(json!(5)));
    for (text, value) in [
        ("64GB", json!(68_719_476_736_u64)),
        ("5min", json!(300)),
        ("1.5", json!(1.5)),
        ("true", json!(true)),
        ("nvme", json!("nvme")),
    ] {
        check(&host.given_text("x.y", text), "x.y", Ok(value));
    }
}

#[test]
fn the_smallest_of_all_limits_is_available() {
    let all = [
        ("memory.total_bytes", json!(8_000)),
        ("cgroup.memory_limit_bytes", json!(3_000)),
        ("cpu.online_count", json!(8)),
        ("process.cpus_allowed", json!("0-3,6")),
        ("cgroup.cpus", json!("0-7")),
        ("cgroup.cpu_quota_cpus", json!(1.5)),
    ];
    let known = of(&all);
    check(&known, "available.memory_bytes", Ok(json!(3_000)));
    check(&known, "available.cpus", Ok(json!(1.5)));
    let mut none = all.clone();
    none[1].1 = json!("none");
    none[5].1 = json!("none");
    let known = of(&none);
    check(&known, "available.memory_bytes", Ok(json!(8_000)));
    check(&known, "available.cpus", Ok(json!(5)));
    // A server whose process is not found may wear any limit.
    let facts = [
        Fact::known("memory.total_bytes", "x", 8_000),
        Fact::known("cpu.online_count", "x", 8),
        Fact::unknown("process.pid", "x", "in a container"),
    ];
    let known = Known::new(&facts, &[]);
    check(&known, "available.memory_bytes", Err("in a container"));
    check(&known, "available.cpus", Err("in a container"));
}

#[test]
fn a_medium_is_that_of_the_slowest_disk() {
    let check = |file_system: &str, devices: Value, expected: &str| {
        let known = of(&[
            ("storage.data.file_system", json!(file_system)),
            ("storage.data.devices", devices.clone()),
        ]);
        assert_eq!(
            known.get("storage.data_medium"),
            Ok(&json!(expected)),
            "{file_system} {devices}"
        );
    };
    let disk = |kind: &str, rotational: bool| json!({"name": "x", "kind": kind, "below": [], "rotational": rotational});
    check("ext4", json!([disk("nvme", false)]), "nvme");
    check("ext4", json!([disk("sata", true)]), "hdd");
    check("ext4", json!([disk("sata", false), disk("nvme", false)]), "ssd");
    check("ext4", json!([disk("virtio", true)]), "unknown");
    check("ext4", json!([disk("virtio", false)]), "ssd");
    check("ext4", json!([disk("iscsi", false)]), "network");
    check("tmpfs", json!([]), "memory");
    check("nfs4", json!([]), "network");
    check("zfs", json!([]), "unknown");
    let lvm = json!([{"name": "dm-0", "kind": "lvm", "below": ["nvme0n1"]}, disk("nvme", false)]);
    check("xfs", lvm, "nvme");
    let volume =
        json!([{"kind": "nvme", "below": [], "model": "Amazon Elastic Block Store", "rotational": false}]);
    check("xfs", volume, "network");
}

#[test]
fn wal_is_apart_where_no_disk_is_shared() {
    let at = |same_disk: Value| {
        let fact = json!({"same_device": false, "same_disk": same_disk});
        of(&[("storage.wal_on_device_of_data", fact)])
    };
    check(&at(json!(false)), "storage.wal_apart", Ok(json!(true)));
    check(&at(json!(true)), "storage.wal_apart", Ok(json!(false)));
    check(&at(Value::Null), "storage.wal_apart", Err("could not be read"));
}

#[test]
fn counters_have_counted_since_the_later_of_start_and_reset() {
    let at = |since: Option<&str>| {
        let since = match since {
            Some(since) => Fact::known("statistics.since", "x", since),
            None => Fact::unknown("statistics.since", "x", "they were never reset"),
        };
        let facts = [
            Fact::known("server.started", "x", "2024-02-28T12:00:00+00:00"),
            Fact::known("server.uptime_s", "x", 500_000),
            since,
        ];
        Known::new(&facts, &[])
    };
    let is = |since: Option<&str>, age_s: Value| check(&at(since), "statistics.age_s", Ok(age_s));
    is(None, json!(500_000));
    is(Some("2023-12-31T23:59:59.5+00:00"), json!(500_000));
    is(Some("2024-02-28T12:00:10.5+00:00"), json!(499_989.5));
    // Over the day of a leap year: two days and an hour.
    is(Some("2024-03-01T13:00:00+00:00"), json!(500_000 - 176_400));
    is(Some("2024-12-31T00:00:00+00:00"), json!(0));
    for wrong in [
        "2024-03-01T13:00:00+02:00",
        "2024-13-01T13:00:00+00:00",
        "infinity",
    ] {
        check(
            &at(Some(wrong)),
            "statistics.age_s",
            Err("expected an instant in UTC"),
        );
    }
    check(&of(&[]), "statistics.age_s", Err("no server was asked"));
}

/// A crash resets all counters, and only the shared ones say when; commits outlive a restart in
/// order.
#[test]
fn counters_that_a_crash_has_reset_are_younger_than_the_server() {
    let at = |since: Option<&str>, wal_since: &str| {
        let mut facts = vec![
            Fact::known("server.started", "x", "2024-02-28T12:00:00+00:00"),
            Fact::known("server.uptime_s", "x", 500_000),
            Fact::known("wal.since", "x", wal_since),
            Fact::known("transactions.committed", "x", 600_000),
        ];
        facts.extend(since.map(|since| Fact::known("statistics.since", "x", since)));
        Known::new(&facts, &[])
    };
    let old = at(None, "2024-02-27T08:13:20+00:00");
    check(&old, "statistics.age_s", Ok(json!(500_000)));
    check(&old, "transactions.committed_per_s", Ok(json!(1)));
    let crashed = at(None, "2024-03-01T12:00:00+00:00");
    check(&crashed, "statistics.age_s", Ok(json!(500_000 - 172_800)));
    let reset = at(Some("2024-03-03T12:00:00+00:00"), "2023-01-01T00:00:00+00:00");
    // Other databases were not reset: from 2023-01-01 to 500,000 s after the start.
    let per_s = 600_000.0 / ((365.0 + 58.5) * 86_400.0 + 500_000.0);
    check(&reset, "transactions.committed_per_s", Ok(json!(per_s)));
}

#[test]
fn every_fact_of_a_host_begins_with_a_known_word() {
    for machine in Machine::names() {
        let facts = host_facts(&LocalHost::at(Machine::named(&machine).root()));
        for fact in &facts {
            let word = fact.name.split('.').next().unwrap();
            assert!(is_among(word, HOST), "{}", fact.name);
        }
        let known = Known::new(&facts, &[]);
        let memory = known.get("available.memory_bytes").is_ok();
        assert_eq!(memory, known.get("memory.total_bytes").is_ok(), "{machine}");
    }
}
