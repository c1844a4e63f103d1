//! Hosts over ssh, against a real sshd in a network namespace, and against hosts that misbehave.

use pgdyno_remote::PROTOCOL;
use pgdyno_testing::foreign::Foreign;
use pgdyno_testing::ssh::{FAR, FarHost, USER};
use pgdyno_testing::{Home, Said, Started, said, signal, until, until_is};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub(crate) struct Pair {
    pub(crate) home: Home,
    pub(crate) far: FarHost,
}

impl Pair {
    pub(crate) fn new() -> Pair {
        let home = Home::new();
        Pair {
            home,
            far: FarHost::start(),
        }
    }

    /// The same with a disk of so many megabytes for what pgdyno keeps there.
    pub(crate) fn with_disk(megabytes: u32) -> Pair {
        let home = Home::new();
        Pair {
            home,
            far: FarHost::with_disk(megabytes),
        }
    }

    /// Runs the program here, for the host over ssh.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        let mut all = arguments.to_vec();
        all.extend(["--host", FAR]);
        said(self.far.command(&self.home, &all).output().expect("pgdyno runs"))
    }

    /// The same, to wait for what it prints.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        self.start_with(arguments, &[])
    }

    pub(crate) fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Started {
        let mut all = arguments.to_vec();
        all.extend(["--host", FAR]);
        let mut command = self.far.command(&self.home, &all);
        command.envs(variables.iter().copied());
        Started::of(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("pgdyno runs"),
        )
    }

    /// Runs the program here, for this host, with the way to the other one.
    pub(crate) fn start_here(&self, arguments: &[&str]) -> Started {
        let mut command = self.far.command(&self.home, arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Started::of(command.spawn().expect("pgdyno runs"))
    }

    /// The program on the host itself, without a coordinator.
    pub(crate) fn there(&self, arguments: &str) -> Said {
        let command = format!("{} {arguments}", self.agent().display());
        said(self.far.ssh(&command).output().expect("ssh runs"))
    }

    pub(crate) fn agent(&self) -> PathBuf {
        let version = fs::read_dir(self.far.agents()).expect("agents").next();
        version
            .expect("a version")
            .expect("an entry")
            .path()
            .join("pgdyno")
    }

    /// Agents that run there.
    pub(crate) fn agents(&self) -> Vec<u32> {
        let mut all = self.far.processes();
        all.retain(|pid| {
            let program = fs::read_link(format!("/proc/{pid}/exe"));
            program.is_ok_and(|program| program.ends_with("pgdyno"))
        });
        all
    }

    pub(crate) fn setting(&self, name: &str) -> String {
        let text = fs::read_to_string(
            self.far
                .file("home/state/sandboxes/main/data/postgresql.auto.conf"),
        );
        let text = text.expect("a file");
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap_or_default().to_owned()
    }

    /// Kills sshd's processes of connections.
    pub(crate) fn lose_connections(&self) {
        for pid in self.far.processes() {
            if fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("sshd")) {
                signal(pid, "-KILL");
            }
        }
    }

    /// Nothing is changed there, and no process of a connection runs on.
    pub(crate) fn all_is_restored(&self) {
        until_is("settings of the server", String::new(), || {
            self.setting("work_mem")
        });
        until("the end of all agents", || match &*self.agents() {
            [] => Ok(()),
            others => Err(others.to_vec()),
        });
        let status = self.run(&["status", "--json"]).fine().json();
        assert_eq!(status, Value::Array(Vec::new()));
    }
}

pub(crate) const SECRET: &str = "correct-horse";

fn names_of(facts: &Value) -> Vec<String> {
    let facts = facts["facts"].as_array().expect("facts").iter();
    facts
        .map(|fact| fact["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn facts_over_ssh_are_the_hosts_and_its_agent_is_copied_once() {
    let pair = Pair::new();
    let remove = || {
        said(
            pair.far
                .command(&pair.home, &["agent", "--remove", FAR])
                .output()
                .expect("pgdyno runs"),
        )
    };
    let removed = remove().fine();
    assert!(removed.out.contains(".cache/pgdyno/agents"), "{}", removed.out);
    assert!(!pair.far.agents().exists());
    assert!(remove().fine().out.contains("there is no agent"));

    let there = pair.run(&["facts", "--host-only", "--json"]).fine();
    assert!(there.err.is_empty(), "{}", there.err);
    let here = pair.home.run(&["facts", "--host-only", "--json"]).fine();
    assert_eq!(names_of(&there.json()), names_of(&here.json()));

    let agent = pair.agent();
    let copied = fs::metadata(&agent).expect("an agent");
    assert_eq!(copied.permissions().mode() & 0o777, 0o700);
    pair.run(&["facts", "--host-only"]).fine();
    assert_eq!(fs::metadata(&agent).expect("an agent").ino(), copied.ino());
    // What is there is not what was copied.
    fs::write(&agent, "#!/bin/sh\nexit 0\n").expect("written");
    pair.run(&["facts", "--host-only"]).fine();
    assert_eq!(fs::metadata(&agent).expect("an agent").len(), copied.len());
}

#[test]
fn settings_over_ssh_are_journaled_there_and_restored_there_by_hand() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "main"]).fine();
    let applied = pair.run(&["apply", "sandbox:main", "work_mem=7MB"]).fine();
    assert!(applied.out.contains("work_mem"), "{}", applied.out);
    let restores = format!("`pgdyno restore --host {FAR}`");
    assert!(applied.err.contains(&restores), "{}", applied.err);
    let advice = pair.run(&["advise", "sandbox:main", "--json"]).json();
    let advice = advice["advice"].as_array().expect("advice").iter();
    let commands: Vec<&str> = advice
        .flat_map(|advice| advice["commands"].as_array().expect("commands"))
        .filter_map(Value::as_str)
        .collect();
    assert!(!commands.is_empty());
    for command in commands {
        assert!(command.ends_with(&format!(" --host {FAR}")), "{command}");
    }
    assert!(pair.setting("work_mem").contains("7"));
    assert!(
        fs::read_dir(pair.far.file("home/state/journal"))
            .expect("journals")
            .next()
            .is_some()
    );
    assert!(!pair.home.file("state/journal").exists(), "a journal here");
    pair.run(&["verify"]).fine();
    assert!(pair.run(&["status"]).fine().out.contains("work_mem"));
    pair.there("restore").fine();
    pair.all_is_restored();

    // A profile of this host's, by its file.
    let profile = pair.home.write(
        "mine.toml",
        "name = \"mine\"\ntitle = \"Mine\"\nsummary = \"Mine.\"\n[[setting]]\nknob = \"work_mem\"\nvalue = \"9MB\"\nreason = \"A test.\"\nsource = \"None.\"\n",
    );
    let profile = profile.to_string_lossy();
    let difference = pair.run(&["profile", "diff", &profile, "sandbox:main"]).fine();
    assert!(difference.out.contains("9MB"), "{}", difference.out);
    pair.run(&["apply", "sandbox:main", &profile]).fine();
    assert!(pair.setting("work_mem").contains("9"));
    pair.run(&["restore"]).fine();
    pair.run(&["sandbox", "destroy", "main"]).fine();
}

#[test]
fn own_server_there_is_restarted_with_consent_and_restored_by_hand() {
    let (pair, foreign) = (Pair::new(), Foreign::start());
    let (target, before) = (foreign.target("postgres"), foreign.auto_conf());
    let apply = |setting: &str| pair.run(&["apply", &target, setting, "--allow-restart"]);
    pair.run(&["apply", &target, "max_connections=50"])
        .fails(4, &["--allow-restart"]);
    let applied = apply("max_connections=50").fine();
    assert!(applied.err.contains("(pg_ctl)"), "{}", applied.err);
    assert_eq!(foreign.ask("SHOW max_connections"), "50");
    assert!(!pair.home.file("state/journal").exists(), "a journal here");
    pair.there("restore").fine();
    assert_eq!(foreign.ask("SHOW max_connections"), "100");
    assert_eq!(foreign.auto_conf(), before);
    // One with which it does not start.
    apply("shared_buffers=7TB").fails(
        1,
        &["does not start with these settings", "everything was restored"],
    );
    assert_eq!(foreign.ask("SELECT 1"), "1");
    assert_eq!(foreign.auto_conf(), before);
}

#[test]
fn hosts_of_an_inventory_answer_side_by_side_and_a_lost_one_holds_up_nobody() {
    let pair = Pair::new();
    let text = "[db]\none ansible_host=far\ntwo ansible_host=far ansible_user=root\n[gone]\nlost ansible_host=nowhere.invalid\n";
    let file = pair.home.write("hosts.ini", text).to_string_lossy().into_owned();
    let run = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--inventory", &file]);
        let mut command = pair.far.command(&pair.home, &all);
        // Of this host, too, it is where the agent is.
        command.env("HOME", pair.far.file("user"));
        said(command.output().expect("pgdyno runs"))
    };
    let facts = run(&["facts", "--host-only", "--target-group", "db"]).fine();
    assert!(facts.out.contains("2 of 2 hosts answered"), "{}", facts.out);
    let all = run(&["facts", "--host-only", "--json"]);
    assert_eq!(all.code, 1, "{}", all.err);
    let hosts = all.json()["hosts"].as_array().expect("hosts").clone();
    let names: Vec<&str> = hosts.iter().filter_map(|host| host["host"].as_str()).collect();
    assert_eq!(names, ["one", "two", "lost"]);
    assert_eq!(names_of(&hosts[0]["result"]), names_of(&hosts[1]["result"]));
    let error = hosts[2]["error"].as_str().expect("an error");
    assert!(error.contains("could not be reached"), "{error}");

    // One that never answers, and is not waited for; and this host, without ssh.
    let text = format!(
        "{text}[quiet]\nsilent ansible_host=far ansible_ssh_common_args='-o ProxyCommand=cat'\n\
         [here]\nself ansible_connection=local\n"
    );
    pair.home.write("hosts.ini", &text);
    run(&[
        "facts",
        "--host-only",
        "--target-group",
        "quiet",
        "--host-timeout",
        "1s",
    ])
    .fails(1, &["silent: it has not ended within 1s"]);
    let here = run(&["facts", "--host-only", "--target-group", "here"]).fine();
    assert!(here.out.contains("1 of 1 hosts answered"), "{}", here.out);

    // A setting that one of them would not have is shown with its hosts; here both are one.
    pair.run(&["sandbox", "create", "main"]).fine();
    pair.run(&["apply", "sandbox:main", "work_mem=7MB"]).fine();
    let status = run(&["status", "--target-group", "db", "--json"]).fine().json();
    assert_eq!(
        status["hosts"][0]["result"][0]["changes"][0]["knob"], "work_mem",
        "{status:#}"
    );
    pair.run(&["restore"]).fine();
    run(&["facts", "--host-only", "--target-group", "none"])
        .fails(2, &["hosts.ini", "there is no such group"]);
    run(&["check", "sandbox:none", "--target-group", "db"]).fails(1, &["one: ", "none"]);
}

#[test]
fn exit_codes_and_errors_of_the_other_host_are_passed_on() {
    let pair = Pair::new();
    pair.run(&["apply", "sandbox:none", "work_mem=7MB"])
        .fails(1, &["none"]);
    pair.run(&["apply", "--host-only", "no_such_knob=7MB"])
        .fails(2, &["no_such_knob"]);
    pair.run(&["facts", "--root", "/"])
        .fails(2, &["--root", "--host"]);
    let unknown = pair
        .home
        .command(&["facts", "--host", "ssh:nowhere"])
        .env("PGDYNO_SSH", pair.far.program())
        .output();
    said(unknown.expect("pgdyno runs")).fails(1, &["ssh:nowhere could not be reached", "hint:"]);
    let no_ssh = pair
        .home
        .command(&["facts", "--host", FAR])
        .env("PGDYNO_SSH", "/no/such/ssh")
        .output();
    said(no_ssh.expect("pgdyno runs")).fails(1, &["/no/such/ssh"]);
    pair.home
        .run(&["facts", "--host", "far"])
        .fails(2, &["expected ssh:HOST"]);
    pair.home.run(&["facts", "--sudo"]).fails(2, &["--host"]);
    // Two files that inherit from a third one, by different paths.
    let profile = |name: &str, inherits: &str| {
        let text = format!(
            "name = \"{name}\"\ntitle = \"A\"\nsummary = \"A.\"\ninherits = [{inherits}]\n[[setting]]\nknob = \"work_mem\"\n\
             value = \"9MB\"\nreason = \"A test.\"\nsource = \"None.\"\n"
        );
        let file = if name == "b" {
            "below/b.toml"
        } else {
            &*format!("{name}.toml")
        };
        pair.home.write(file, &text).to_string_lossy().into_owned()
    };
    fs::create_dir(pair.home.file("below")).expect("a directory");
    profile("c", "");
    profile("b", "\"../c.toml\"");
    let top = profile("a", "\"c.toml\", \"below/b.toml\"");
    let here = pair
        .home
        .run(&["profile", "diff", &top, "--host-only", "--json"])
        .fine();
    let there = pair
        .run(&["profile", "diff", &top, "--host-only", "--json"])
        .fine();
    assert_eq!(here.json()["settings"], there.json()["settings"]);
    // A home in which nothing can be kept.
    let home = pair.far.file("user");
    let _ = fs::remove_dir_all(home.join(".cache"));
    fs::write(home.join(".cache"), "").expect("written");
    pair.run(&["facts"])
        .fails(1, &["no agent could be started on ssh:far", "mkdir"]);
}

#[test]
fn user_of_the_other_host_has_roots_rights_by_sudo_alone() {
    let pair = Pair {
        home: Home::new(),
        far: FarHost::with_user(),
    };
    let run = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--host", USER]);
        said(pair.far.command(&pair.home, &all).output().expect("pgdyno runs"))
    };
    // Of the host's own network.
    let backlog = || {
        let read = pair.far.ssh("cat /proc/sys/net/core/somaxconn").output();
        said(read.expect("ssh runs")).fine().out
    };
    let before = backlog();
    let apply = ["apply", "--host-only", "net.core.somaxconn=4321"];
    run(&apply).fails(1, &["net.core.somaxconn", "--sudo"]);
    let by_sudo = [&apply[..], &["--sudo"]].concat();
    run(&by_sudo).fails(1, &["no agent could be started", "sudo: "]);
    pair.far.allow_sudo(true);
    run(&by_sudo).fails(1, &["no agent could be started", "sudo: a password is required"]);
    assert_eq!(backlog(), before);
    pair.far.allow_sudo(false);
    run(&by_sudo).fine();
    assert_eq!(backlog(), "4321\n");
    // The user's own journal has nothing of it.
    assert!(run(&["restore"]).fine().err.contains("nothing to restore"));
    assert_eq!(backlog(), "4321\n");
    run(&["restore", "--sudo"]).fine();
    assert_eq!(backlog(), before);
}

/// A way to a "host" that is a script.
fn misbehaving(home: &Home, script: &str) -> Said {
    let path = home.write("ssh", &format!("#!/bin/bash\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = home.command(&["facts", "--host", FAR]);
    said(command.env("PGDYNO_SSH", path).output().expect("pgdyno runs"))
}

#[test]
fn host_that_misbehaves_is_named_and_nothing_of_it_is_obeyed() {
    let home = Home::new();
    let boot = "echo \"pgdyno-boot $(uname -m) none\"; read -r what bytes hash; head -c \"$bytes\" >/dev/null; echo pgdyno-agent";
    let hello = |version: u32| {
        let json = format!("{{\"hello\":{{\"protocol\":{version},\"version\":\"1\"}}}}");
        format!(
            "{boot}; printf '\\x00\\x00\\x00\\x{:02x}\\x01%s' '{json}'",
            json.len()
        )
    };
    let refused = |script: &str, texts: &[&str]| {
        let said = misbehaving(&home, script);
        assert!(
            !said.err.contains('\u{1b}') && !said.out.contains('\u{1b}'),
            "{}",
            said.err
        );
        said.fails(1, texts);
    };
    refused("yes", &["does not answer as an agent", "more than 65536 bytes"]);
    refused(
        "printf '\\x1b]0;owned\\x07no such file' >&2; exit 127",
        &["no agent could be started", "no such file"],
    );
    refused(
        "echo 'pgdyno-boot ../../etc none'",
        &["does not answer as an agent"],
    );
    refused(
        &format!("{boot}; printf '\\xff\\xff\\xff\\xff\\x01'"),
        &["a frame of 4294967295 bytes"],
    );
    refused(
        &format!("{boot}; printf '\\x00\\x00\\x00\\x01\\x01x'"),
        &["a message that is not one of this version"],
    );
    refused(&hello(99), &["no greeting of this version"]);
    refused(
        &format!("{}; sleep 1", hello(PROTOCOL)),
        &["the connection to ssh:far was lost"],
    );
    let printed = format!(
        "{}; printf '\\x00\\x00\\x00\\x08\\x02\\x1b[31mred\\x00\\x00\\x00\\x14\\x01{{\"ended\":{{\"code\":3}}}}'; cat >/dev/null",
        hello(PROTOCOL)
    );
    let said = misbehaving(&home, &printed);
    assert_eq!((said.code, &*said.out), (3, "\\u001b[31mred"), "{}", said.err);
}

#[test]
fn ctrl_c_ends_a_copy_that_the_host_does_not_take() {
    let home = Home::new();
    let path = home.write("ssh", "#!/bin/sh\nprintf 'a title'\necho \"\npgdyno-boot $(uname -m) none\"\necho waits >&2\nexec sleep 1000\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = home.command(&["facts", "--host", FAR]);
    command
        .env("PGDYNO_SSH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut started = Started::of(command.spawn().expect("pgdyno runs"));
    // What ssh says is seen while it waits.
    started.until_it_prints("waits");
    started.interrupt();
    started.end().fails(1, &["stopped on ssh:far"]);
}

#[test]
fn password_of_here_is_a_servers_there() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "main"]).fine();
    let file = |name: &str| {
        fs::read_to_string(pair.far.file(&format!("home/state/sandboxes/main/{name}"))).expect("a file")
    };
    let record: Value = serde_json::from_str(&file("sandbox.json")).expect("JSON");
    let target = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        record["port"]
    );
    let arguments = ["facts", &target, "--json"];
    pair.start_with(&arguments, &[]).end().fails(1, &["password"]);
    let password = file("password");
    let password = password.trim();
    let found = pair.start_with(&["status"], &[]).end().fine();
    assert!(!found.out.contains(password));
    let mut all = arguments.to_vec();
    all.extend(["--host", FAR]);
    let mut command = pair.far.command(&pair.home, &all);
    let found = said(command.env("PGPASSWORD", password).output().expect("pgdyno runs")).fine();
    assert!(found.json()["target"].is_string(), "{}", found.out);
}

#[test]
fn password_is_on_no_command_line_and_in_no_output_of_either_host() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "main"]).fine();
    let socket = pair.far.file("home/state/sandboxes/main/socket");
    let record =
        fs::read_to_string(pair.far.file("home/state/sandboxes/main/sandbox.json")).expect("a record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let target = format!(
        "host={} port={} user=postgres dbname=postgres password={SECRET}",
        socket.display(),
        record["port"]
    );
    let arguments = ["apply", &target, "work_mem=7MB", "--until-exit"];
    let applied = pair.start_with(&arguments, &[("PGPASSWORD", SECRET)]);
    until("the setting", || match pair.setting("work_mem") {
        none if none.is_empty() => Err(none),
        _ => Ok(()),
    });
    is_in_no_process(applied.id());
    applied.interrupt();
    let said = applied.end();
    assert!(
        !said.err.contains(SECRET) && !said.out.contains(SECRET),
        "{}",
        said.err
    );
    pair.all_is_restored();
    let mut found = Vec::new();
    find(&pair.far.file("home"), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

/// No process but one shows the secret in its command line or its environment.
pub(crate) fn is_in_no_process(but: u32) {
    for process in fs::read_dir("/proc").expect("processes").flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // The coordinator's own shows what it was started with.
        if pid == but {
            continue;
        }
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let is_shown = String::from_utf8_lossy(&text).contains(SECRET);
            let process = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            assert!(!is_shown, "{file} of {process}");
        }
    }
}

/// Files below a directory that have the secret in them; links are not followed.
pub(crate) fn find(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() && entry.file_name() != "base" {
            find(&entry.path(), found);
        } else if kind.is_file()
            && String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()).contains(SECRET)
        {
            found.push(entry.path());
        }
    }
}

#[test]
fn settings_are_restored_however_the_connection_ends() {
    let pair = Pair::new();
    pair.run(&["sandbox", "create", "main"]).fine();
    let begin = |more: &[&str]| {
        let all = ["apply", "sandbox:main", "work_mem=7MB", "--until-exit"];
        let mut applied = pair.start(&[&all[..], more].concat());
        applied.until_it_prints("Ctrl-C");
        assert!(pair.setting("work_mem").contains('7'));
        applied
    };
    // Ctrl-C here, also over a second connection: sshd's process of the first is killed.
    for is_lost in [false, true] {
        let mut applied = begin(&[]);
        if is_lost {
            pair.lose_connections();
            applied.until_it_prints("connected to ssh:far again");
            assert!(pair.setting("work_mem").contains('7'));
        }
        applied.interrupt();
        applied.end().fine();
        pair.all_is_restored();
    }
    // The coordinator is killed.
    let applied = begin(&["--grace", "1s"]);
    signal(applied.id(), "-KILL");
    applied.end();
    pair.all_is_restored();
    // The network is gone for too long, and nobody says so.
    let mut applied = begin(&["--grace", "1s"]);
    pair.far.cut(true);
    applied.until_it_prints("nothing was heard for 30 s");
    until_is("settings of the server", String::new(), || {
        pair.setting("work_mem")
    });
    pair.far.cut(false);
    applied.end().fails(1, &["the connection to ssh:far was lost"]);
    // The agent is killed: what it has changed is restored by a command there.
    let applied = begin(&[]);
    for pid in pair.agents() {
        signal(pid, "-KILL");
    }
    applied.end().fails(1, &["the connection to ssh:far was lost"]);
    assert!(pair.setting("work_mem").contains('7'));
    pair.run(&["restore"]).fine();
    pair.all_is_restored();
}
