//! `pgdyno facts`, for real: loop devices, limits, servers that are elsewhere, and machines that
//! are a tree of files.

use common::{Home, said};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// The facts of one run, by name.
struct Facts(Value);

impl Facts {
    fn of(home: &Home, arguments: &[&str]) -> Facts {
        let mut all = vec!["facts", "--json"];
        all.extend(arguments);
        let value = home.run(&all).fine().json();
        assert_eq!(value["format"], "pgdyno-facts/1");
        assert!(value["took_ms"].is_u64(), "{value}");
        Facts(value)
    }

    #[track_caller]
    fn fact(&self, name: &str) -> &Value {
        let facts = self.0["facts"].as_array().expect("facts");
        let found = facts.iter().find(|fact| fact["name"] == name);
        found.unwrap_or_else(|| panic!("no fact {name} in {}", self.0))
    }

    #[track_caller]
    fn value(&self, name: &str) -> &Value {
        let fact = self.fact(name);
        assert!(!fact["value"].is_null(), "{fact}");
        &fact["value"]
    }

    #[track_caller]
    fn why(&self, name: &str) -> &str {
        let fact = self.fact(name);
        fact["missing"].as_str().unwrap_or_else(|| panic!("{fact}"))
    }
}

#[track_caller]
fn done(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect(program);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A file system of its own on a loop device, gone with this.
struct Loop {
    device: String,
    point: PathBuf,
}

impl Loop {
    fn make(home: &Home, name: &str) -> Loop {
        let file = home.file(&format!("{name}.image"));
        let image = fs::File::create(&file).expect("a file");
        image.set_len(192 << 20).expect("a size");
        let path = file.to_string_lossy();
        let device = done("losetup", &["--find", "--show", &path]);
        let made = Loop {
            device,
            point: home.file(name),
        };
        done("mkfs.ext4", &["-q", &made.device]);
        fs::create_dir(&made.point).expect("a directory");
        done(
            "mount",
            &["-o", "noatime", &made.device, &made.point.to_string_lossy()],
        );
        fs::set_permissions(&made.point, fs::Permissions::from_mode(0o755))
            .expect("open to the server's user");
        made
    }

    fn name(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    fn below(&self, name: &str) -> String {
        self.point.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.point).status();
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

/// Needs root.
#[test]
fn data_and_wal_on_two_devices_or_one_are_distinguished() {
    let home = Home::on_disk();
    let (one, other) = (Loop::make(&home, "one"), Loop::make(&home, "other"));
    let make = |name: &str, data: &Loop, wal: &Loop| {
        let (data, wal) = (
            data.below(&format!("{name}-data")),
            wal.below(&format!("{name}-wal")),
        );
        home.run(&[
            "sandbox",
            "create",
            name,
            "--data",
            &data,
            "--wal",
            &wal,
            "--set",
            "max_wal_size=64MB",
        ])
        .fine();
        let facts = Facts::of(&home, &[&format!("sandbox:{name}")]);
        home.run(&["sandbox", "destroy", name]).fine();
        (facts, wal)
    };
    let (apart, wal) = make("apart", &one, &other);
    let both = apart.value("storage.wal_on_device_of_data");
    assert_eq!(both["same_device"], false, "{both}");
    // Both files are on one disk, as all files of this test.
    assert_eq!(both["same_disk"], true, "{both}");
    assert_eq!(both["data_devices"], json!([one.name()]), "{both}");
    assert_eq!(both["wal_devices"], json!([other.name()]), "{both}");
    // pg_wal is a link, and followed.
    assert_eq!(apart.value("storage.wal.path"), wal.as_str());
    assert_eq!(apart.value("storage.data.file_system"), "ext4");
    let options = apart
        .value("storage.data.mount_options")
        .as_array()
        .expect("options");
    assert!(options.contains(&json!("noatime")), "{options:?}");
    let devices = apart.value("storage.data.devices").as_array().expect("devices");
    assert_eq!(devices[0]["kind"], "loop", "{devices:?}");
    assert!(devices[0]["read_ahead_kb"].is_u64(), "{devices:?}");
    let backing = devices[0]["backing_file"].as_str().expect("a file");
    assert!(backing.ends_with("/one.image"), "{backing}");
    assert_eq!(devices[1]["name"], devices[0]["below"][0], "{devices:?}");
    let (together, _) = make("together", &one, &one);
    let both = together.value("storage.wal_on_device_of_data");
    assert_eq!(
        (&both["same_device"], &both["same_disk"]),
        (&json!(true), &json!(true)),
        "{both}"
    );
}

/// Needs root.
#[test]
fn limits_of_the_servers_control_groups_are_seen() {
    let home = Home::on_disk();
    let arguments = [
        "sandbox", "create", "small", "--memory", "1G", "--cpus", "1.5", "--iops", "5000",
    ];
    home.run(&arguments).fine();
    let facts = Facts::of(&home, &["sandbox:small"]);
    assert_eq!(facts.0["target"], "sandbox small");
    assert_eq!(facts.value("cgroup.memory_limit_bytes"), 1 << 30);
    assert_eq!(facts.value("cgroup.cpu_quota_cpus"), 1.5);
    let io = facts.value("cgroup.io_limits");
    assert_eq!(io[0]["write_requests_per_s"], 5000, "{io}");
    assert_eq!(facts.value("sandbox.limits.memory_bytes"), 1 << 30);
    let postmaster = home.postmaster("small").expect("running");
    assert_eq!(facts.value("process.pid"), postmaster);
    for name in [
        "process.limits.locked_memory_bytes",
        "process.oom_score_adjustment",
        "process.page_tables_bytes",
        "process.huge_pages.pool_shared_bytes",
        "process.cpus_allowed",
    ] {
        facts.value(name);
    }
    // The server's shared memory is the largest thing that its first process maps.
    let mapping = facts.value("process.largest_mapping");
    assert!(mapping["bytes"].as_u64() > Some(100 << 20), "{mapping}");
    let page = home.run(&["facts", "sandbox:small"]).fine().out;
    for text in [
        "sandbox small",
        "Host: CPU",
        "Host: storage of data",
        "memory_limit_bytes  ",
        "1.0 GB",
        "Server",
        "Not known",
    ] {
        assert!(page.contains(text), "\"{text}\" is not in\n{page}");
    }
    // A role that may not know the data directory, asked by root.
    home.ask("small", "CREATE ROLE low LOGIN");
    let socket = home.file("state/sandboxes/small/socket");
    let low = format!(
        "host={} port={} user=low dbname=postgres",
        socket.display(),
        home.record("small")["port"]
    );
    let facts = Facts::of(&home, &[&low]);
    assert_eq!(
        facts.value("storage.data.path"),
        home.data("small").to_string_lossy().as_ref()
    );
    assert_eq!(facts.value("process.pid"), postmaster);
    // Reached over TCP from its own machine it is the same server on the same host.
    let port = &home.record("small")["port"];
    home.ask("small", "ALTER ROLE postgres PASSWORD 'tiger'");
    let over_tcp = format!("host=127.0.0.1 port={port} user=postgres password=tiger dbname=postgres");
    let facts = Facts::of(&home, &[&over_tcp]);
    assert_eq!(facts.value("process.pid"), postmaster);
    assert!(!facts.0.to_string().contains("tiger"));
}

/// Here pgdyno is in a pid namespace of its own: the server's process numbers mean other processes
/// there. Needs root.
#[test]
fn a_process_of_another_namespace_is_not_mistaken() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let elsewhere = |target: &str| {
        let program = common::program().to_string_lossy().into_owned();
        let output = Command::new("unshare")
            .args([
                "--pid",
                "--fork",
                "--mount-proc",
                &program,
                "facts",
                "--json",
                target,
            ])
            .env("PGDYNO_HOME", home.path.path())
            .output()
            .expect("unshare runs");
        said(output)
    };
    // The sandbox is not seen to run from there.
    elsewhere("sandbox:x").fails(2, &["not running"]);
    let port = &home.record("x")["port"];
    let socket = home.file("state/sandboxes/x/socket");
    let target = format!("host={} port={port} user=postgres", socket.display());
    let facts = Facts(elsewhere(&target).fine().json());
    for name in ["process.pid", "storage.data.path", "storage.wal.path"] {
        assert!(facts.why(name).contains("namespace"), "{}", facts.why(name));
    }
    // A socket is the same kernel's at least; over TCP nothing shows that.
    facts.value("memory.total_bytes");
    home.ask("x", "ALTER ROLE postgres PASSWORD 'tiger'");
    let target = format!("host=127.0.0.1 port={port} user=postgres password=tiger dbname=postgres");
    let facts = Facts(elsewhere(&target).fine().json());
    assert!(facts.why("host.facts").contains("not found on this machine"));
    assert!(!facts.0.to_string().contains("memory.total_bytes"));
}

#[test]
fn a_host_without_a_server_is_fine() {
    let home = Home::new();
    let facts = Facts::of(&home, &["--host-only"]);
    assert_eq!(facts.0["target"], Value::Null);
    assert!(facts.value("memory.total_bytes").as_u64() > Some(100 << 20));
    assert!(facts.value("cpu.online_count").as_u64() >= Some(1));
    let nobody = home.file("nobody").to_string_lossy().into_owned();
    let mut command = home.command(&["facts", "--json"]);
    let alone = said(command.env("PGHOST", &nobody).output().expect("runs")).fine();
    assert!(
        alone.err.contains("the host alone is read: no server answers"),
        "{}",
        alone.err
    );
    assert_eq!(alone.json()["target"], Value::Null);
    // A server that was named must be there.
    home.run(&["facts", &format!("host={nobody}")])
        .fails(1, &["no server answers"]);
    home.run(&["facts", "--host-only", "sandbox:x"])
        .fails(2, &["cannot be used with"]);
    home.run(&["facts", "--root", "/nowhere"])
        .fails(2, &["/nowhere", "no such directory"]);
}

#[test]
fn another_root_is_read_like_a_machine() {
    let home = Home::new();
    let machine = pgdyno_fixture::Machine::named("x86_64-6.18-cgroup1");
    let root = machine.root().to_string_lossy().into_owned();
    let facts = Facts::of(&home, &["--root", &root]);
    assert_eq!(facts.value("kernel.release"), "6.18.44");
    assert_eq!(facts.value("cpu.model"), "AMD EPYC");
    assert_eq!(facts.value("numa.nodes")[0]["cpus"], "0-1");
    assert!(
        facts
            .why("sched.base_slice_ns")
            .contains("debugfs is not mounted")
    );
    let page = home.run(&["facts", "--root", &root]).fine().out;
    let long: Vec<&str> = page.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:?}");
    let nothing = home.file("nothing");
    fs::create_dir(&nothing).expect("a directory");
    let facts = Facts::of(&home, &["--root", &nothing.to_string_lossy()]);
    facts.why("kernel.release");
}
