//! Settings that stay: `apply`, `verify`, `status`, `confirm` and `restore` on a real server and
//! this machine's own kernel. Needs root.

use common::machine::{Volume, quiet_machine, whole_machine};
use common::{Home, Said, auto_conf, disk_of, kernel, signal, tool, until, until_is};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

/// The line of a knob in what `status --json` prints.
#[track_caller]
fn state_of(status: &Said, knob: &str) -> String {
    let journals = status.json();
    let changes: Vec<Value> = journals
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|journal| journal["changes"].as_array().expect("changes").clone())
        .collect();
    let line = changes.iter().find(|change| change["knob"] == knob);
    line.unwrap_or_else(|| panic!("{knob} in {changes:?}"))["state"]
        .as_str()
        .expect("a word")
        .to_owned()
}

/// The process that waits to restore the changes of the first journal, if there is one.
fn timer_of(status: &Said) -> Option<String> {
    let journal = status.json()[0]["journal"].as_str().expect("a path").to_owned();
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    processes
        .filter(|process| {
            let line = fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
            line.contains("revert-later") && line.contains(&journal)
        })
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .next()
}

/// When the changes of the first journal are restored, unless they are confirmed.
#[track_caller]
fn deadline(status: &Said) -> SystemTime {
    let kept = &status.json()[0]["kept"];
    let until = kept["unless-confirmed"]["until_unix_ms"].as_u64();
    let until = until.unwrap_or_else(|| panic!("an instant in {kept}"));
    SystemTime::UNIX_EPOCH + Duration::from_millis(until)
}

#[test]
fn what_is_applied_stays_is_shown_and_is_restored() {
    let _machine = quiet_machine();
    let home = Home::on_disk();
    home.run(&["sandbox", "create", "x"]).fine();
    let disk = disk_of(&home.data("x"));
    let read_ahead = format!("/sys/block/{disk}/queue/read_ahead_kb");
    let files = [
        "/proc/sys/vm/dirty_bytes",
        "/proc/sys/vm/dirty_ratio",
        SWAPPINESS,
        "/proc/sys/vm/nr_hugepages",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        &read_ahead,
    ];
    let state = || files.map(kernel);
    let (before, conf) = (state(), auto_conf(&home));
    let settings = [
        "shared_buffers=64MB",
        "vm.nr_hugepages=auto",
        "huge_pages=on",
        "work_mem=9MB",
        "vm.dirty_bytes=536870912",
        "vm.swappiness=17",
        "transparent_hugepage.enabled=never",
        "block.read_ahead_kb=64",
    ];
    let mut words = vec!["apply", "sandbox:x", "--dry-run"];
    words.extend(settings);
    let dry = home.run(&words).fine();
    assert!(
        dry.out.contains("work_mem") && dry.out.contains("9MB"),
        "{}",
        dry.out
    );
    assert_eq!(state(), before, "a dry run changes nothing");

    words.remove(2);
    let process = home.postmaster("x");
    home.run(&words).fine();
    // Transparent huge pages count for later allocations alone, so it was started again.
    assert_ne!(home.postmaster("x"), process);
    assert_eq!(home.ask("x", "SHOW work_mem"), "9MB");
    assert_eq!(
        kernel("/proc/sys/vm/dirty_ratio"),
        "0",
        "the kernel zeroes the counterpart"
    );
    // The pages are really the server's: those of the pool that are in use or promised.
    let meminfo = fs::read_to_string("/proc/meminfo").expect("meminfo");
    let pages = |name: &str| -> u64 {
        let line = meminfo
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line");
        line.trim_start_matches(':').trim().parse().expect("a number")
    };
    let in_use = pages("HugePages_Total") - pages("HugePages_Free") + pages("HugePages_Rsvd");
    assert!(in_use >= 32, "64 MB of shared buffers: {meminfo}");

    // Another process sees it, and an experiment or a sandbox command leaves it alone.
    home.run(&["verify"]).fine();
    home.run(&["verify", "sandbox:x", "work_mem=9MB", "vm.swappiness=17"])
        .fine();
    let wrong = home.run(&["verify", "sandbox:x", "work_mem=8MB"]);
    assert_eq!(wrong.code, 3, "{}", wrong.out);
    home.run(&["sandbox", "stop", "x"]).fine();
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(home.ask("x", "SHOW work_mem"), "9MB");
    let status = home.run(&["status", "--json"]).fine();
    assert_eq!(state_of(&status, "vm.swappiness"), "in-force");
    assert!(
        status.json()[0]["by"].as_str().is_some_and(|by| !by.is_empty()),
        "{}",
        status.out
    );

    // What a colleague has set since is reported and left alone.
    fs::write(SWAPPINESS, "23").expect("written");
    assert_eq!(
        state_of(&home.run(&["status", "--json"]).fine(), "vm.swappiness"),
        "foreign"
    );
    assert_eq!(home.run(&["verify"]).code, 3);
    let restored = home.run(&["restore"]).fine();
    assert!(restored.out.contains("left alone"), "{}", restored.out);
    assert_eq!(kernel(SWAPPINESS), "23");
    fs::write(SWAPPINESS, &before[2]).expect("written");
    assert_eq!(state(), before);
    assert_eq!(auto_conf(&home), conf, "to the byte");
    assert!(home.run(&["restore"]).fine().err.contains("nothing to restore"));

    // With --force the colleague's value goes as well.
    home.run(&["apply", "sandbox:x", "vm.swappiness=17"]).fine();
    fs::write(SWAPPINESS, "23").expect("written");
    home.run(&["restore", "--force"]).fine();
    assert_eq!(state(), before);
}

#[test]
fn changes_are_undone_one_by_one_and_the_last_one_first() {
    let _machine = whole_machine();
    let home = Home::new();
    let before = kernel(SWAPPINESS);
    for value in ["17", "18"] {
        home.run(&["apply", "--host-only", &format!("vm.swappiness={value}")])
            .fine();
    }
    home.run(&["restore", "3"]).fails(2, &["no change 3"]);
    home.run(&["restore", "2"]).fine();
    assert_eq!(kernel(SWAPPINESS), "17");
    home.run(&["restore"]).fine();
    assert_eq!(kernel(SWAPPINESS), before);
}

#[test]
fn a_dead_mans_timer_puts_back_what_nobody_confirms() {
    let _machine = whole_machine();
    let home = Home::new();
    let before = kernel(SWAPPINESS);
    let timed = ["apply", "--host-only", "vm.swappiness=17", "--revert-after", "6s"];
    home.run(&timed).fine();
    assert_eq!(kernel(SWAPPINESS), "17");
    until_is("it is restored", before.clone(), || kernel(SWAPPINESS));
    until("its journal is closed", || {
        let said = home.run(&["status"]).fine().err;
        if said.contains("nothing is changed") {
            Ok(())
        } else {
            Err(said)
        }
    });

    home.run(&["apply", "--host-only", "vm.swappiness=17", "--revert-after", "5m"])
        .fine();
    let status = || home.run(&["status", "--json"]).fine();
    assert!(timer_of(&status()).is_some(), "somebody waits");
    home.run(&["confirm"]).fine();
    home.run(&["confirm"]).fails(2, &["nothing waits"]);
    until_is("who waits to restore it", None, || timer_of(&status()));
    assert_eq!(kernel(SWAPPINESS), "17", "confirmed is confirmed");
    home.run(&["restore"]).fine();
    assert_eq!(kernel(SWAPPINESS), before);

    // Its process is gone, as after a reboot: the next command that turns knobs does it.
    home.run(&["apply", "--host-only", "vm.swappiness=17", "--revert-after", "8s"])
        .fine();
    let waiting = status();
    signal(timer_of(&waiting).expect("somebody waits"), "-KILL");
    until_is("its time is over", true, || {
        SystemTime::now() > deadline(&waiting)
    });
    assert_eq!(kernel(SWAPPINESS), "17");
    let next = home.run(&["apply", "--host-only", "vm.page-cluster=2"]).fine();
    assert!(next.err.contains("its time is over"), "{}", next.err);
    assert_eq!(kernel(SWAPPINESS), before);
    home.run(&["restore"]).fine();
}

#[test]
fn until_exit_is_until_exit_and_a_held_file_too() {
    let _machine = whole_machine();
    let home = Home::new();
    let before = kernel(SWAPPINESS);
    let mut settings = vec!["apply", "--host-only", "vm.swappiness=17", "--until-exit"];
    if Path::new("/dev/cpu_dma_latency").exists() {
        settings.push("cpu.dma_latency_us=10");
    }
    let mut first = home.start(&settings);
    first.until_it_prints("in force until this ends");
    assert_eq!(kernel(SWAPPINESS), "17");
    let mut second = home.start(&["apply", "--host-only", "vm.swappiness=18"]);
    second.until_it_prints("waiting for process");
    assert_eq!(kernel(SWAPPINESS), "17");
    first.interrupt();
    first.end().fine();
    second.end().fine();
    assert_eq!(kernel(SWAPPINESS), "18");
    home.run(&["restore"]).fine();
    assert_eq!(kernel(SWAPPINESS), before);
}

#[test]
fn of_a_stopped_server_what_is_not_known_is_said_once() {
    let _machine = whole_machine();
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    home.ask("x", "CREATE TABLE t(id int)");
    home.run(&[
        "apply",
        "sandbox:x",
        "table.fillfactor@t=90",
        "table.autovacuum_vacuum_scale_factor@t=0.01",
        "work_mem=9MB",
        "server.cpu_affinity=0",
    ])
    .fine();
    home.run(&["sandbox", "stop", "x"]).fine();
    let status = home.run(&["status", "--json"]).fine();
    for (knob, expected) in [
        ("table.fillfactor@t", "unknown"),
        ("table.autovacuum_vacuum_scale_factor@t", "unknown"),
        ("work_mem", "in-force"),
        ("server.cpu_affinity", "as-before"),
    ] {
        assert_eq!(state_of(&status, knob), expected, "{}", status.out);
    }
    let said = home.run(&["status"]).fine().out;
    let reasons: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("no server answers"))
        .collect();
    assert!(
        matches!(reasons[..], [reason] if reason.starts_with("table.fillfactor@t, table.autovacuum")),
        "{said}"
    );
    home.run(&["restore"]).fine();
    assert!(home.run(&["status"]).fine().err.contains("nothing is changed"));
}

/// The CPUs that all processes of the server "x" may run on.
#[track_caller]
fn allowed_cpus(home: &Home) -> String {
    let postmaster = home.postmaster("x").expect("it runs");
    let mut processes = tool("pgrep", &["-P", &postmaster.to_string()]);
    processes += &format!("\n{postmaster}");
    let mut all: Vec<String> = processes
        .lines()
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let cpus = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some(cpus.trim().to_owned())
        })
        .collect();
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn tables_wal_processors_and_swap_are_changed_and_come_back() {
    let _machine = quiet_machine();
    let home = Home::on_disk();
    let swaps = common::swap();
    home.run(&["sandbox", "create", "x", "--cpus", "1.5", "--memory", "1G"])
        .fine();
    let volume = Volume::new(&home, "wal");
    let swap = Volume::new(&home, "swap");
    let swap = swap.place.join("file");
    home.ask(
        "x",
        "CREATE TABLE t(id int, v text) PARTITION BY RANGE (id); \
         CREATE TABLE \"T 1\" PARTITION OF t FOR VALUES FROM (0) TO (10); \
         CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20) WITH (fillfactor = 80); \
         INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(0, 19) i",
    );
    let fillfactors = || {
        home.ask(
            "x",
            "SELECT string_agg(relname || coalesce(reloptions::text, '-'), ' ' ORDER BY relname) \
                              FROM pg_class WHERE relname IN ('t', 'T 1', 't2')",
        )
    };
    let rows = || {
        home.ask(
            "x",
            "SELECT count(*) || ' ' || md5(string_agg(v, '' ORDER BY id)) FROM t",
        )
    };
    let group = || {
        let pid = home.postmaster("x").expect("it runs");
        let lines = fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("groups");
        lines
            .lines()
            .find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers
                    .split(',')
                    .any(|name| name == "cpu")
                    .then(|| path.to_owned())
            })
            .expect("a group of version 1")
    };
    let quota = |group: &str| kernel(&format!("/sys/fs/cgroup/cpu{group}/cpu.cfs_quota_us"));
    let (before, content, conf) = (fillfactors(), rows(), auto_conf(&home));
    assert_eq!(quota(&group()), "150000");

    let wal = volume.place.join("pg_wal");
    let said = home
        .run(&[
            "apply",
            "sandbox:x",
            "table.fillfactor@t=90",
            "table.toast_compression@t=pglz",
            "table.autovacuum_vacuum_scale_factor@t=0.01",
            "cgroup.cpu_quota=0.75",
            "server.cpu_affinity=0",
            "block.read_ahead_kb@wal=48",
            &format!("server.wal_directory={}", wal.display()),
            &format!("swap.file@{}=16777216", swap.display()),
        ])
        .fine();
    assert!(!said.out.contains("NOT"), "{}", said.out);
    for name in ["T 1", "t2"] {
        let sql = format!("SELECT reloptions FROM pg_class WHERE relname = '{name}'");
        let options = home.ask("x", &sql);
        assert!(
            options.contains("fillfactor=90") && options.contains("scale_factor=0.01"),
            "{name}: {options}"
        );
    }
    assert_eq!(quota(&group()), "75000");
    assert_eq!(fs::read_link(home.data("x").join("pg_wal")).expect("a link"), wal);
    assert_eq!(disk_of(&wal), volume.disk());
    assert!(
        fs::read_to_string("/proc/swaps")
            .expect("swaps")
            .contains(&*swap.to_string_lossy())
    );
    assert_eq!(allowed_cpus(&home), "0");
    assert_eq!(
        rows(),
        content,
        "its data is intact, with its WAL on another disk"
    );
    home.ask("x", "INSERT INTO t VALUES (1, 'new'); CHECKPOINT");
    let content = rows();

    let restored = home.run(&["restore"]).fine();
    assert!(!restored.out.contains("FAILED"), "{}", restored.out);
    assert_eq!(fillfactors(), before);
    assert_eq!(rows(), content, "what was written meanwhile is there");
    assert_eq!(quota(&group()), "150000");
    assert!(!home.data("x").join("pg_wal").is_symlink() && !wal.exists());
    assert!(!swap.exists() && common::swap() == swaps);
    assert_eq!(auto_conf(&home), conf);

    // By its control group, too, in which what is started later is as well.
    let free = allowed_cpus(&home);
    home.run(&["apply", "sandbox:x", "cgroup.cpus=1", "cgroup.memory_nodes=0"])
        .fine();
    assert_eq!(allowed_cpus(&home), "1");
    home.run(&["sandbox", "stop", "x"]).fine();
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(allowed_cpus(&home), "1");
    assert_eq!(rows(), content);
    home.run(&["restore"]).fine();
    assert_eq!(allowed_cpus(&home), free);
}

#[test]
fn persisted_settings_are_what_the_systems_own_tools_read_and_go_with_restore() {
    let _machine = whole_machine();
    let home = Home::new();
    let (sysctl, tmpfiles) = ("/etc/sysctl.d/90-pgdyno.conf", "/etc/tmpfiles.d/90-pgdyno.conf");
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    let before = (kernel(SWAPPINESS), kernel(thp));
    assert!(
        !Path::new(sysctl).exists() && !Path::new(tmpfiles).exists(),
        "somebody's"
    );
    home.run(&[
        "apply",
        "--host-only",
        "vm.swappiness=17",
        "transparent_hugepage.enabled=never",
        "--persist",
    ])
    .fine();
    // As after a reboot: the kernel has forgotten, and the system's own tool reads the file.
    fs::write(SWAPPINESS, &before.0).expect("written");
    tool("sysctl", &["-q", "-p", sysctl]);
    assert_eq!(kernel(SWAPPINESS), "17");
    let lines = fs::read_to_string(tmpfiles).expect("a file");
    assert!(lines.contains(&format!("w {thp} - - - - never\n")), "{lines}");
    home.run(&["restore"]).fine();
    assert!(!Path::new(sysctl).exists() && !Path::new(tmpfiles).exists());
    assert_eq!((kernel(SWAPPINESS), kernel(thp)), before);
}

/// What is only advised is checked; and a server that does not compute its huge pages is tried out
/// for a moment.
#[test]
fn what_is_only_advised_is_verified_and_a_server_of_14_gets_its_huge_pages() {
    let _machine = quiet_machine();
    let home = Home::new();
    let line = kernel("/proc/cmdline");
    assert!(!line.contains("hugepages="), "{line}");
    home.run(&[
        "verify",
        "--host-only",
        "boot.hugepages=default",
        "mount.nobarrier@/=off",
    ])
    .fine();
    let wrong = home.run(&["verify", "--host-only", "boot.hugepages=512"]);
    assert_eq!(wrong.code, 3, "{}", wrong.out);

    home.run(&["sandbox", "create", "x", "--version", "14"]).fine();
    let before = kernel("/proc/sys/vm/nr_hugepages");
    home.run(&[
        "apply",
        "sandbox:x",
        "shared_buffers=64MB",
        "vm.nr_hugepages=auto",
        "huge_pages=on",
    ])
    .fine();
    assert_eq!(home.ask("x", "SHOW huge_pages"), "on");
    assert!(
        kernel("/proc/sys/vm/nr_hugepages")
            .parse::<u64>()
            .expect("a number")
            >= 32
    );
    home.run(&["restore"]).fine();
    assert_eq!(kernel("/proc/sys/vm/nr_hugepages"), before);
    let other_size = ["apply", "sandbox:x", "huge_page_size=1GB", "vm.nr_hugepages=auto"];
    home.run(&other_size)
        .fails(1, &["pages of 1048576 kB", "hugepages.pool@1048576"]);
    assert_eq!(kernel("/proc/sys/vm/nr_hugepages"), before);
}

/// A server that pgdyno did not make: read, set and restored through its connection string; no word
/// of its password.
#[test]
fn a_foreign_server_is_changed_without_a_restart_and_its_password_is_shown_nowhere() {
    let _machine = whole_machine();
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let record = home.record("x");
    let password = fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    let password = password.trim();
    let conninfo = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres password={password}",
        record["port"]
    );
    let conf = auto_conf(&home);
    let said = home
        .run(&[
            "apply",
            &conninfo,
            "work_mem=9MB",
            "vm.swappiness=17",
            "--revert-after",
            "1h",
        ])
        .fine();
    let status = home.run(&["status"]).fine();
    home.run(&["apply", &conninfo, "shared_buffers=64MB"])
        .fails(4, &["restart"]);
    let mut all = [said.out, said.err, status.out, status.err].join("\n");
    for entry in fs::read_dir(home.file("state/journal"))
        .expect("journals")
        .flatten()
    {
        all += &fs::read_to_string(entry.path()).unwrap_or_default();
    }
    assert!(!all.contains(password), "{all}");
    // Its server asks for the password that the journal has not: nothing of it is called restored.
    let set = auto_conf(&home);
    let said = home.run(&["restore"]);
    let said = said.fails(1, &["work_mem could not be restored", "the journal is kept"]);
    assert!(
        said.out.contains("PGPASSWORD") && said.out.contains("127.0.0.1"),
        "{}",
        said.out
    );
    assert_eq!(
        (auto_conf(&home), home.ask("x", "SHOW work_mem")),
        (set, "9MB".to_owned())
    );
    let restored = home
        .command(&["restore"])
        .env("PGPASSWORD", password)
        .output()
        .expect("it runs");
    common::said(restored).fine();
    assert_eq!(auto_conf(&home), conf);
    assert_eq!(home.ask("x", "SHOW work_mem"), "4MB");
}

/// Another PGDYNO_HOME of the same user: what the first one has changed is seen and named; servers
/// do not wait for one another.
#[test]
fn change_of_another_home_is_named_and_only_the_same_server_or_the_host_waits() {
    let _machine = whole_machine();
    let (first, second) = (Home::new(), Home::new());
    first.run(&["sandbox", "create", "x"]).fine();
    second.run(&["sandbox", "create", "y"]).fine();
    let shared = first.file("state/registry");
    let run = |arguments: &[&str]| {
        let mut command = second.command(arguments);
        command.env("PGDYNO_REGISTRY", &shared);
        common::said(command.output().expect("it runs"))
    };
    // Holds its server and the host as long as it lives.
    let mut child = first.spawn(&[
        "apply",
        "sandbox:x",
        "work_mem=9MB",
        "vm.swappiness=17",
        "--until-exit",
    ]);
    until_is("it is applied", "17".to_owned(), || kernel(SWAPPINESS));
    let status = run(&["status"]).fine();
    let home = format!("PGDYNO_HOME={}", first.file("").display());
    assert!(status.out.contains(home.trim_end_matches('/')), "{}", status.out);
    let said = run(&["apply", "sandbox:y", "work_mem=8MB"]).fine();
    assert!(!said.err.contains("waiting"), "{}", said.err);
    assert_eq!(second.ask("y", "SHOW work_mem"), "8MB");
    // A killed one leaves its values, which are none from before.
    child.kill().expect("killed");
    child.wait().expect("dead");
    assert_eq!(kernel("/proc/sys/vm/swappiness"), "17");
    let said = run(&["apply", "--host-only", "vm.swappiness=18"]).fine();
    assert!(said.err.contains(home.trim_end_matches('/')), "{}", said.err);
    assert_eq!(first.ask("x", "SHOW work_mem"), "4MB");
    run(&["restore"]).fine();
    assert_eq!(kernel("/proc/sys/vm/swappiness"), "60");
    assert_eq!(second.ask("y", "SHOW work_mem"), "4MB");
}

/// While the host boots a sandbox is neither stopped nor started.
#[test]
fn sandbox_is_restored_at_boot_where_it_does_not_run_and_is_not_started() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let mut child = home.spawn(&["apply", "sandbox:x", "work_mem=9MB", "--until-exit"]);
    until_is("it is applied", "9MB".to_owned(), || {
        home.ask("x", "SHOW work_mem")
    });
    child.kill().expect("killed");
    child.wait().expect("dead");
    let postmaster = home.postmaster("x");
    let said = home.run(&["restore", "--at-boot"]);
    assert!(said.out.contains("nothing is stopped at boot"), "{}", said.out);
    said.fails(1, &["work_mem could not be restored"]);
    assert_eq!(home.postmaster("x"), postmaster);
    assert_eq!(home.ask("x", "SHOW work_mem"), "9MB");
    home.run(&["sandbox", "stop", "x"]).fine();
    home.run(&["restore", "--at-boot"]).fine();
    assert_eq!(home.postmaster("x"), None);
    home.run(&["sandbox", "start", "x"]).fine();
    assert_eq!(home.ask("x", "SHOW work_mem"), "4MB");
}

/// An emptied journal and a FIFO in its place: both are named with exit code 1, and the kernel is
/// as before.
#[test]
fn damaged_journal_is_named_kept_and_restored_from_its_copy() {
    let _machine = whole_machine();
    let home = Home::new();
    let journals = home.file("state/journal");
    let journal = || {
        let mut entries = fs::read_dir(&journals).expect("journals").flatten();
        entries
            .find(|entry| entry.path().extension().is_some_and(|ending| ending == "journal"))
            .expect("a journal")
            .path()
    };
    home.run(&["apply", "--host-only", "vm.swappiness=17"]).fine();
    let path = journal();
    fs::write(&path, "").expect("emptied");
    home.run(&["status"]).fails(1, &["is damaged", "it is empty"]);
    home.run(&["restore"]).fails(1, &["is damaged", "kept as"]);
    assert_eq!(kernel("/proc/sys/vm/swappiness"), "60");
    assert!(home.run(&["status"]).fine().err.contains(".damaged"));
    home.run(&["apply", "--host-only", "vm.swappiness=17"]).fine();
    let path = journal();
    fs::remove_file(&path).expect("removed");
    tool("mkfifo", &["-m", "600", &path.to_string_lossy()]);
    home.run(&["status"]).fails(1, &["it is a FIFO"]);
    home.run(&["restore"]).fails(1, &["is damaged"]);
    assert_eq!(kernel("/proc/sys/vm/swappiness"), "60");
    home.run(&["restore"]).fails(1, &["it is a FIFO"]);
    fs::remove_file(&path).expect("removed");
    home.run(&["restore"]).fine();
}
