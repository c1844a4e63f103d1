//! Servers that pgdyno did not create, stopped and started with consent by what runs them: pg_ctl,
//! Debian's clusters, units of systemd.

use common::foreign::{Foreign, Podman};
use common::machine::quiet_machine;
use common::systemd::Booted;
use common::{Home, ended, kernel};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// A fact's value, or why it is unknown.
fn fact(facts: &Value, name: &str) -> String {
    let all = facts["facts"].as_array().expect("facts");
    let found = all.iter().find(|fact| fact["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {facts}"));
    match found["value"].as_str() {
        Some(value) => value.to_owned(),
        None => found["missing"].as_str().expect("a reason").to_owned(),
    }
}

/// The first process of the server with this data directory.
fn postmaster(data: &Path) -> String {
    let text = fs::read_to_string(data.join("postmaster.pid")).expect("it runs");
    text.lines().next().unwrap_or_default().to_owned()
}

/// An address of this host's that no other process listens at.
fn own_address(second: u8) -> String {
    let [.., third, fourth] = std::process::id().to_be_bytes();
    format!("127.{second}.{third}.{fourth}")
}

#[test]
fn server_of_a_container_is_found_with_its_processes() {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.stop();
    let address = own_address(99);
    let _container = foreign.start_contained(&address);
    let by_address = format!("host={address} user=postgres dbname=postgres");
    for target in [foreign.target("postgres"), by_address] {
        let facts = home.run(&["facts", &target, "--json"]).fine().json();
        let all = facts["facts"].as_array().expect("facts");
        let value = |name: &str| &all.iter().find(|fact| fact["name"] == name).expect("a fact")["value"];
        assert_eq!(value("process.in_inner_pid_namespace"), true, "{facts:#}");
        let pid = value("process.pid");
        let data = fs::read_dir(format!("/proc/{pid}/root/mnt")).expect("its data");
        assert!(data.flatten().any(|entry| entry.file_name() == "PG_VERSION"));
        // What is at /mnt here is not its data.
        assert_eq!(
            Path::new(&fact(&facts, "storage.data.path")),
            foreign.data("").as_path()
        );
        home.run(&["apply", &target, "max_connections=50", "--allow-restart"])
            .fails(4, &["what restarts this server is unknown"]);
        home.run(&["apply", &target, "work_mem=9MB"]).fine();
        home.run(&["restore"]).fine();
    }
}

/// What is said of a setting with which a server does not start.
fn refused_start(home: &Home, target: &str) -> String {
    home.run(&["apply", target, "shared_buffers=7TB", "--allow-restart"])
        .fails(
            1,
            &[
                "does not start with these settings",
                "could not map anonymous shared memory",
                "everything was restored",
            ],
        )
        .err
}

/// The server in a container, answering.
fn in_podman(home: &Home, foreign: &Foreign, address: &str, options: &[&str]) -> Podman {
    let container = foreign.start_in_podman(address, options);
    let target = format!("host={address} user=postgres dbname=postgres");
    common::until("an answer of the server", || {
        let asked = home.run(&["facts", &target]);
        if asked.code == 0 { Ok(()) } else { Err(asked.err) }
    });
    container
}

#[test]
fn server_of_a_container_is_stopped_and_started_by_its_engine() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let before = foreign.auto_conf();
    foreign.stop();
    let address = own_address(98);
    let target = format!("host={address} user=postgres dbname=postgres");
    let starts = |options: &[&str]| in_podman(&home, &foreign, &address, options);
    let ask = |sql: &str| Foreign::ask_at(&target, sql);
    let changed = ["apply", &target, "max_connections=50", "--allow-restart"];

    // One that is gone once it stops, and one in which PostgreSQL would wait for its clients.
    for (option, why) in [
        ("--rm", "removed once it stops (--rm)"),
        ("--stop-signal=TERM", "not SIGINT"),
    ] {
        let _container = starts(&[option]);
        home.run(&changed)
            .fails(4, &["what restarts this server is unknown", why]);
        assert_eq!(ask("SHOW max_connections"), "100");
    }

    let container = starts(&[]);
    let facts = home.run(&["facts", &target, "--json"]).fine().json();
    assert_eq!(fact(&facts, "manager.kind"), "container");
    let restart = format!("podman restart {}", container.name);
    assert_eq!(fact(&facts, "manager.restart"), restart);
    assert_eq!(
        Path::new(&fact(&facts, "storage.data.path")),
        foreign.data("").as_path()
    );

    home.run(&changed[..3]).fails(4, &["--allow-restart"]);
    let applied = home.run(&changed).fine();
    assert!(
        applied.err.contains(&format!("`{restart}` (container)")),
        "{}",
        applied.err
    );
    assert_eq!(ask("SHOW max_connections"), "50");
    home.run(&["restore"]).fine();
    assert_eq!(ask("SHOW max_connections"), "100");
    assert_eq!(foreign.auto_conf(), before);

    // Its messages are its engine's to keep.
    let errors = refused_start(&home, &target);
    assert!(
        errors.contains(&format!("podman logs {} ends with:", container.name)),
        "{errors}"
    );
    assert_eq!(ask("SHOW max_connections"), "100");

    // It would not find a directory of this host's.
    let there = foreign.data("").parent().expect("a directory").join("wal");
    let setting = format!("server.wal_directory={}", there.display());
    home.run(&["apply", &target, &setting, "--allow-restart"])
        .fails(2, &["one in a container does not"]);
}

#[test]
fn server_of_pg_ctl_is_restarted_as_it_was_started() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, data) = (foreign.target("postgres"), foreign.data(""));
    let facts = home.run(&["facts", &target, "--json"]).fine().json();
    assert_eq!(fact(&facts, "manager.kind"), "pg_ctl");
    let shown = fact(&facts, "manager.restart");
    assert!(
        shown.contains("pg_ctl -D") && shown.ends_with("restart"),
        "{shown}"
    );
    let (before, first) = (foreign.auto_conf(), postmaster(&data));

    home.run(&["apply", &target, "max_connections=50"])
        .fails(4, &["--allow-restart"]);
    let applied = home
        .run(&["apply", &target, "max_connections=50", "--allow-restart"])
        .fine();
    assert!(
        applied.err.contains(&format!("`{shown}` (pg_ctl)")),
        "{}",
        applied.err
    );
    assert_eq!(foreign.ask("SHOW max_connections"), "50");
    assert_ne!(postmaster(&data), first);
    // Options of its start, and the file of its messages, are those it had.
    assert_eq!(foreign.ask("SHOW fsync"), "off");
    let log = fs::read_link(format!("/proc/{}/fd/2", postmaster(&data))).expect("a file");
    assert_eq!(log, data.parent().expect("a directory").join("log"));

    home.run(&["restore"]).fine();
    assert_eq!(foreign.ask("SHOW max_connections"), "100");
    assert_eq!(foreign.auto_conf(), before);
}

#[test]
fn setting_that_keeps_an_own_server_from_starting_is_taken_back() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.auto_conf());
    let errors = refused_start(&home, &target);
    assert!(errors.contains("/log ends with:"), "{errors}");
    assert_eq!(foreign.ask("SELECT 1"), "1");
    assert_eq!(foreign.auto_conf(), before);
}

#[test]
fn wal_of_an_own_server_is_moved_while_it_is_stopped() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    let (wal, there) = (
        foreign.data("pg_wal"),
        foreign.data("").parent().expect("a directory").join("wal"),
    );
    let setting = format!("server.wal_directory={}", there.display());
    home.run(&["apply", &target, &setting])
        .fails(4, &["--allow-restart"]);
    let restart = foreign.restart_command();
    home.run(&[
        "apply",
        &target,
        &setting,
        "--allow-restart",
        "--restart-command",
        &restart,
    ])
    .fails(1, &["cannot leave it stopped"]);
    let [stop, start] = foreign.stop_and_start_commands();
    let commands = ["--stop-command", &stop, "--start-command", &start];
    let words = ["apply", &target, &setting];
    home.run(&[&words[..], &commands].concat())
        .fails(4, &["--stop-command stops a server", "--allow-restart agrees"]);
    home.run(&[&words[..], &["--allow-restart"], &commands[..2]].concat())
        .fails(2, &["--start-command"]);
    home.run(&[&words[..], &["--allow-restart"], &commands].concat())
        .fine();
    assert_eq!(fs::read_link(&wal).expect("a link"), there);
    home.run(&["restore"]).fine();
    assert!(fs::symlink_metadata(&wal).expect("it is there").is_dir());
    home.run(&["apply", &target, &setting, "--allow-restart"]).fine();
    assert_eq!(fs::read_link(&wal).expect("a link"), there);
    foreign.ask("SELECT pg_switch_wal()");
    home.run(&["restore"]).fine();
    assert!(fs::symlink_metadata(&wal).expect("it is there").is_dir());
    assert!(!there.exists(), "nothing is left");
    assert_eq!(foreign.ask("SELECT 1"), "1");

    // One that its owner has moved could not be moved back as it was.
    let moved = there.with_extension("owners");
    foreign.stop();
    fs::rename(&wal, &moved).expect("moved");
    std::os::unix::fs::symlink(&moved, &wal).expect("a link");
    foreign.start_again();
    home.run(&["apply", &target, &setting, "--allow-restart"])
        .fails(2, &["this one is in", "already"]);
    assert_eq!(fs::read_link(&wal).expect("a link"), moved);
}

/// While a host boots, what runs a server starts it, and waits for what was restored.
#[test]
fn settings_are_restored_at_boot_and_the_server_is_left_to_what_runs_it() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.auto_conf());
    let mut child = home
        .command(&[
            "apply",
            &target,
            "max_connections=50",
            "--allow-restart",
            "--until-exit",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pgdyno runs");
    common::until("the setting", || {
        let verified = home.run(&["verify", &target, "max_connections=50"]);
        if verified.code == 0 {
            Ok(())
        } else {
            Err(verified.err)
        }
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    let killed = postmaster(&foreign.data(""));
    foreign.kill();
    // At boot its number is free; here a zombie may hold it for a moment.
    common::until("the end of the server", || {
        fs::read_to_string(format!("/proc/{killed}/stat")).map_or(Ok(()), Err)
    });
    home.run(&["restore", "--at-boot"]).fine();
    assert_eq!(foreign.auto_conf(), before);
    home.run(&["facts", &target]).fails(1, &["is it running"]);
    foreign.start_again();
    assert_eq!(foreign.ask("SHOW max_connections"), "100");
    home.run(&["restore"]).fails(0, &["nothing to restore"]);
}

/// A process that is killed while it has the server stopped leaves it down: `restore` starts it.
#[test]
fn server_that_a_killed_process_had_stopped_is_started_by_restore() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.auto_conf());
    let (wal, running) = (foreign.data("pg_wal"), foreign.data("postmaster.pid"));
    let there = foreign.data("").parent().expect("a directory").join("wal");
    let setting = format!("server.wal_directory={}", there.display());
    // Without a parameter, nothing is changed before the server is stopped.
    let mut downs = [0, 0];
    for (turn, settings) in [&[&setting, "max_connections=50"][..], &[&setting]]
        .iter()
        .cycle()
        .take(40)
        .enumerate()
    {
        let arguments = [&["apply", &target], *settings, &["--allow-restart"]].concat();
        let mut child = home
            .command(&arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgdyno runs");
        while running.exists() && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        downs[turn % 2] += u32::from(!running.exists());
        home.run(&["restore"]).fine();
        assert_eq!(foreign.ask("SHOW max_connections"), "100");
        assert_eq!(foreign.auto_conf(), before);
        assert!(fs::symlink_metadata(&wal).expect("it is there").is_dir());
        assert!(!there.exists(), "nothing is left");
        if downs.iter().all(|&downs| downs > 0) {
            return;
        }
    }
    panic!("the server was never seen down");
}

/// What its owner stops stays stopped; what died while it was changed does not.
#[test]
fn server_that_its_owner_stopped_is_restored_and_not_started() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.auto_conf());
    let running = foreign.data("postmaster.pid");
    let changed = ["apply", &target, "max_connections=50", "--allow-restart"];
    home.run(&changed).fine();
    foreign.stop();
    let restored = home.run(&["restore"]);
    let said = restored.out.clone() + &restored.err;
    assert!(said.contains("pgdyno has not stopped it"), "{said}");
    assert_eq!(foreign.auto_conf(), before);
    assert!(!running.exists(), "it was started");
    foreign.start_again();
    assert_eq!(foreign.ask("SHOW max_connections"), "100");

    // The options that it was started with are the same after each start.
    let options = || fs::read_to_string(foreign.data("postmaster.opts")).expect("a file");
    let begun_with = options();
    home.run(&changed).fine();
    assert_eq!(options(), begun_with);

    // Its WAL is moved back though it is down, and it stays down.
    let there = foreign.data("").parent().expect("a directory").join("wal");
    let setting = format!("server.wal_directory={}", there.display());
    home.run(&["apply", &target, &setting, "--allow-restart"]).fine();
    foreign.stop();
    home.run(&["restore"]);
    let wal = fs::symlink_metadata(foreign.data("pg_wal")).expect("it is there");
    assert!(wal.is_dir() && !there.exists());
    assert!(!running.exists(), "it was started");
    foreign.start_again();

    home.run(&changed).fine();
    foreign.kill();
    home.run(&["restore"]).fine();
    assert_eq!(foreign.ask("SHOW max_connections"), "100");
    assert_eq!(foreign.auto_conf(), before);
}

#[test]
fn pool_of_huge_pages_is_sized_for_an_own_server() {
    let _machine = quiet_machine();
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    let pool = "/proc/sys/vm/nr_hugepages";
    let before = kernel(pool);
    let settings = ["shared_buffers=64MB", "huge_pages=on", "vm.nr_hugepages=auto"];
    home.run(&[&["apply", &target], &settings[..], &["--allow-restart"]].concat())
        .fine();
    assert_eq!(foreign.ask("SHOW huge_pages"), "on");
    let pages: u64 = kernel(pool).parse().expect("a number");
    let needed: u64 = foreign
        .ask("SHOW shared_memory_size_in_huge_pages")
        .parse()
        .expect("a number");
    assert!((needed..needed * 2).contains(&pages), "{pages} of {needed}");
    home.run(&["restore"]).fine();
    assert_eq!(kernel(pool), before);
    assert_eq!(foreign.ask("SHOW huge_pages"), "try");
}

#[test]
fn pool_of_huge_pages_is_sized_for_a_server_of_a_container() {
    let _machine = quiet_machine();
    let (home, foreign) = (Home::new(), Foreign::start());
    let before = foreign.auto_conf();
    foreign.stop();
    let address = own_address(97);
    let target = format!("host={address} user=postgres dbname=postgres");
    let _container = in_podman(&home, &foreign, &address, &[]);
    let pool = "/proc/sys/vm/nr_hugepages";
    let pages_before = kernel(pool);
    let settings = ["shared_buffers=64MB", "huge_pages=on", "vm.nr_hugepages=auto"];
    home.run(&[&["apply", &target], &settings[..], &["--allow-restart"]].concat())
        .fine();
    assert_eq!(Foreign::ask_at(&target, "SHOW huge_pages"), "on");
    home.run(&["restore"]).fine();
    assert_eq!(kernel(pool), pages_before);
    assert_eq!(foreign.auto_conf(), before);
}

/// What counts for a server that starts with it, and is not a setting of its own.
#[test]
fn transparent_huge_pages_are_changed_under_an_own_server_that_restarts() {
    let _machine = quiet_machine();
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, data) = (foreign.target("postgres"), foreign.data(""));
    let knob = "/sys/kernel/mm/transparent_hugepage/enabled";
    let (before, first) = (kernel(knob), postmaster(&data));
    let setting = "transparent_hugepage.enabled=never";
    home.run(&["apply", &target, setting])
        .fails(4, &["--allow-restart"]);
    home.run(&["apply", &target, setting, "--allow-restart"]).fine();
    assert!(kernel(knob).contains("[never]"), "{}", kernel(knob));
    assert_ne!(postmaster(&data), first);
    home.run(&["restore"]).fine();
    assert_eq!(kernel(knob), before);
}

/// A whole experiment with Debian's own unit, by consent that is in the file.
#[test]
fn unit_of_systemd_is_restarted_between_trials() {
    let (home, booted) = (Home::new(), Booted::start());
    let version = booted.cluster("main");
    let unit = format!("postgresql@{version}-main.service");
    booted.tool("systemctl", &["start", &unit]);
    let target = "host=/run/postgresql user=postgres dbname=postgres";
    // Debian's servers take only a user with the role's name over their socket (peer), as whom root
    // connects.
    let nobody = booted.run_as(&home, "nobody", &["facts", target]);
    nobody.fails(
        1,
        &["eer authentication failed", "sudo -u postgres", "or as root"],
    );
    let facts = booted.run(&home, &["facts", target, "--json"]).fine().json();
    assert_eq!(fact(&facts, "manager.kind"), "systemd unit");
    assert_eq!(
        fact(&facts, "manager.restart"),
        format!("systemctl restart {unit}")
    );

    let file = home.write(
        "experiment.toml",
        "name = \"memory\"\nquestion = \"Does it work?\"\ndesign = \"one-at-a-time\"\nblocks = 1\n\
         [target]\nallow_restart = true\n[data]\nscale = 1\n\
         [load]\nworkload = \"select-only\"\nclients = 1\nrate = \"200\"\nmeasure_s = 1\n\
         [[step]]\nname = \"memory\"\nsettings.shared_buffers = \"64MB\"\n\
         [[step]]\nname = \"vast\"\nsettings.shared_buffers = \"7TB\"\n",
    );
    let file = file.to_string_lossy().into_owned();
    let run = booted.run(&home, &["run", &file, "--target", target, "--allow-data"]);
    assert!(
        run.err.contains(&format!("`systemctl restart {unit}`")),
        "{}",
        run.err
    );
    let report = booted.run(&home, &["report", "--format", "json"]).fine().json();
    assert_eq!(ended(&report, "finished"), 2, "{}\n{report}", run.err);
    assert!(
        report.to_string().contains("does not start with these settings"),
        "{report}"
    );
    let state = booted.run(&home, &["status", "--json"]).fine();
    assert!(!state.out.contains("shared_buffers"), "{}", state.out);
    booted.tool("systemctl", &["is-active", &unit]);
}

/// Units as packages of Red Hat and SUSE have them: of the first the server is what systemd starts,
/// of the other `pg_ctl`, which ends.
#[test]
fn units_of_other_distributions_are_restarted() {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.stop();
    let (target, before) = (foreign.target("postgres"), foreign.auto_conf());
    let [stop, start] = foreign.own_commands();
    let (server, data) = (foreign.server_command(), foreign.data("").display().to_string());
    let booted = Booted::start();
    for (unit, kind) in [
        (
            "postgresql-17.service",
            format!(
                "Type=notify\nEnvironment=PGDATA={data}\nEnvironment=PG_OOM_ADJUST_FILE=/proc/self/oom_score_adj\n\
                 OOMScoreAdjust=-1000\nKillMode=mixed\nKillSignal=SIGINT\nExecStart={server}\n"
            ),
        ),
        (
            "postgresql.service",
            format!("Type=forking\nSendSIGKILL=no\nExecStart={start}\nExecStop={stop}\n"),
        ),
    ] {
        booted.unit(unit, &format!("[Service]\nUser=postgres\n{kind}"));
        booted.tool("systemctl", &["start", unit]);
        let facts = booted.run(&home, &["facts", &target, "--json"]).fine().json();
        assert_eq!(fact(&facts, "manager.kind"), "systemd unit");
        assert_eq!(
            fact(&facts, "manager.restart"),
            format!("systemctl restart {unit}")
        );
        booted
            .run(
                &home,
                &["apply", &target, "max_connections=50", "--allow-restart"],
            )
            .fine();
        assert_eq!(foreign.ask("SHOW max_connections"), "50");
        booted.run(&home, &["restore"]).fine();
        assert_eq!(foreign.ask("SHOW max_connections"), "100");
        assert_eq!(foreign.auto_conf(), before);
        booted.tool("systemctl", &["stop", unit]);
    }
}

#[test]
fn cluster_that_systemd_does_not_run_is_restarted_by_pg_ctlcluster() {
    let (home, booted) = (Home::new(), Booted::start());
    let version = booted.cluster("main");
    booted.tool(
        "pg_ctlcluster",
        &["--skip-systemctl-redirect", &version, "main", "start"],
    );
    let target = "host=/run/postgresql user=postgres dbname=postgres";
    let facts = booted.run(&home, &["facts", target, "--json"]).fine().json();
    assert_eq!(fact(&facts, "manager.kind"), "Debian cluster");
    booted
        .run(&home, &["apply", target, "max_connections=50", "--allow-restart"])
        .fine();
    booted
        .run(&home, &["verify", target, "max_connections=50"])
        .fine();
    booted.run(&home, &["restore"]).fine();
    booted
        .run(&home, &["verify", target, "max_connections=100"])
        .fine();
}

/// Another program's server is not pgdyno's to stop: that program would start it again.
#[test]
fn server_that_another_program_runs_is_not_restarted() {
    let (home, booted) = (Home::new(), Booted::start());
    let version = booted.cluster("main");
    booted.unit(
        "keeper.service",
        &format!(
            "[Service]\nExecStart=/bin/sh -c 'pg_ctlcluster --skip-systemctl-redirect {version} main start; exec sleep 1000'\n"
        ),
    );
    booted.tool("systemctl", &["start", "keeper.service"]);
    let target = "host=/run/postgresql user=postgres dbname=postgres";
    common::until("the server", || {
        let asked = booted.run(&home, &["facts", target]);
        if asked.code == 0 { Ok(()) } else { Err(asked.err) }
    });
    let facts = booted.run(&home, &["facts", target, "--json"]).fine().json();
    let why = fact(&facts, "manager.kind");
    assert!(why.contains("keeper.service, whose main process is"), "{why}");
    booted
        .run(&home, &["apply", target, "max_connections=50", "--allow-restart"])
        .fails(
            4,
            &[
                "what restarts this server is unknown",
                "keeper.service",
                "restart_command",
            ],
        );
    // As its user agrees to in so many words.
    let restart = format!("pg_ctlcluster --skip-systemctl-redirect {version} main restart");
    booted
        .run(
            &home,
            &[
                "apply",
                target,
                "max_connections=50",
                "--allow-restart",
                "--restart-command",
                &restart,
            ],
        )
        .fine();
    booted.run(&home, &["restore"]).fine();
}

/// An experiment whose trials begin with a new copy of their data each.
fn with_template(home: &Home, measure_s: u32) -> String {
    let path = home.write(
        "template.toml",
        &format!(
            "name = \"copies\"\nquestion = \"Does it work?\"\ndesign = \"one-at-a-time\"\nblocks = 1\n\
             [data]\nscale = 1\nreset = \"template\"\n\
             [load]\nworkload = \"tpcb\"\nclients = 1\nrate = \"100\"\nmeasure_s = {measure_s}\n\
             [[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n\
             [[step]]\nname = \"index\"\ndata.sql = \"CREATE INDEX ON pgbench_accounts (abalance)\"\n"
        ),
    );
    path.to_string_lossy().into_owned()
}

#[test]
fn databases_of_an_experiment_are_made_with_consent_and_dropped_at_its_end() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.objects());
    let path = with_template(&home, 1);
    let run = ["run", &path, "--target", &target];
    let listed = [
        "--allow-data",
        "database pgdyno_pgbench_1 with table pgbench_accounts",
    ];
    home.run(&run).fails(4, &listed);
    foreign.ask("CREATE ROLE plain LOGIN IN ROLE pg_monitor, pg_checkpoint");
    let plain = foreign.target("plain");
    let agreed = [
        &["run", &path, "--target", &plain],
        &["--allow-data", "--dry-run"][..],
    ]
    .concat();
    home.run(&agreed).fails(1, &["ALTER ROLE plain CREATEDB"]);
    foreign.ask("ALTER ROLE plain CREATEDB");
    // What else the role lacks is shown with the rest.
    let dry = home.run(&agreed).fine().out;
    assert!(
        dry.contains("GRANT ALTER SYSTEM") && !dry.contains("CREATEDB"),
        "{dry}"
    );
    // One of that name is somebody's.
    foreign.ask("CREATE DATABASE pgdyno_pgbench_1_template");
    let agreed = [&run[..], &["--allow-data"]].concat();
    home.run(&agreed)
        .fails(1, &["the database pgdyno_pgbench_1_template is there already"]);
    foreign.ask("DROP DATABASE pgdyno_pgbench_1_template");
    home.run(&agreed).fine();
    let report = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!(ended(&report, "finished"), 3, "{report}");
    assert_eq!(foreign.objects(), before);
}

#[test]
fn databases_of_a_killed_experiment_are_dropped_by_restore() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.objects());
    let path = with_template(&home, 30);
    let mut child = home.spawn(&["run", &path, "--target", &target, "--allow-data"]);
    common::until_is("a load on the copy", "t".to_owned(), || {
        foreign.ask("SELECT count(*) > 0 FROM pg_stat_database WHERE datname = 'pgdyno_pgbench_1' AND xact_commit > 50")
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_ne!(foreign.objects(), before);
    home.run(&["restore"]).fine();
    assert_eq!(foreign.objects(), before);
}
