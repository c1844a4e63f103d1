//! `pgdyno profile` for real: compared with a server and this host, and its exports read by the
//! programs they are for.

use common::machine::newest;
use common::{Home, said};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// TuneD's own reader of profiles, and its plugins' own lists of options; changes nothing.
const TUNED: &str = r#"
import json, sys, importlib
from tuned.profiles.locator import Locator
from tuned.profiles.loader import Loader
from tuned.profiles.factory import Factory
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.plugins.base import Plugin

profile = Loader(Locator([sys.argv[1]]), Factory(), Merger(), None, Variables()).load([sys.argv[2]])
units = {}
for name, unit in profile.units.items():
    module = importlib.import_module("tuned.plugins.plugin_" + unit.type)
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Plugin) and c is not Plugin]
    if unit.type not in ("sysctl", "sysfs"):
        plugin = found[0].__new__(found[0])
        known = plugin._get_config_options()
        unknown = [option for option in unit.options if option not in known]
        assert not unknown, (name, unknown)
    units[name] = dict(unit.options)
print(json.dumps({"summary": profile.options["summary"], "units": units}))
"#;

/// What an export of a profile says.
fn exported(home: &Home, profile: &str, target: &[&str], format: &str) -> String {
    let mut arguments = vec!["profile", "export", profile];
    arguments.extend(target);
    arguments.extend(["--as", format]);
    home.run(&arguments).fine().out
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e} (scripts/need.sh test installs it)"));
    said(output).fine().out
}

fn settings(diff: &Value) -> Vec<(String, String)> {
    let text = |setting: &Value, field: &str| setting[field].as_str().unwrap_or_default().to_owned();
    let all = diff["settings"].as_array().expect("settings").iter();
    all.map(|setting| (text(setting, "knob"), text(setting, "value")))
        .collect()
}

#[test]
fn profiles_are_listed_and_shown() {
    let home = Home::new();
    let list = home.run(&["profile", "list"]).fine().out;
    assert!(
        list.contains("oltp-latency") && list.lines().all(|line| line.len() <= 100),
        "{list}"
    );
    let list = home.run(&["profile", "list", "--json"]).fine().json();
    assert_eq!(list["format"], "pgdyno-profile/1");
    let names = list["profiles"].as_array().expect("profiles");
    assert!(names.iter().any(|profile| profile["name"] == "oltp"));
    let shown = home.run(&["profile", "show", "oltp"]).fine().out;
    assert!(
        shown.contains("shared_buffers = sizing.buffers_bytes (bytes)"),
        "{shown}"
    );
    assert!(shown.contains("[ibm-z] T1"), "{shown}");
    for part in [
        "not measured on any machine of the project's",
        "--given storage.data_medium=ssd",
    ] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    home.run(&["profile", "show", "oltb"])
        .fails(2, &["there is no profile \"oltb\"; did you mean \"oltp\"?"]);
    let own = home.write(
        "own.toml",
        "name = \"own\"\ntitle = \"Ours\"\nsummary = \"x\"\ninherits = [\"oltp\"]\n\n[[setting]]\nknob = \"work_mm\"\nvalue = 1\n\
         reason = \"r\"\nsource = \"s\"\n",
    );
    let own = own.to_string_lossy();
    home.run(&["profile", "show", &own]).fine();
    home.run(&["profile", "diff", &own, "--host-only"]).fails(
        2,
        &["own.toml, line 6: unknown knob \"work_mm\"; did you mean \"work_mem\"?"],
    );
}

#[test]
fn a_profile_is_held_against_a_host_alone() {
    let home = Home::new();
    let given = [
        "--given",
        "available.memory_bytes=64GB",
        "--given",
        "available.cpus=16",
    ];
    let mut arguments = vec!["profile", "diff", "analytics", "--host-only", "--json"];
    arguments.extend(given);
    let diff = home.run(&arguments).fine().json();
    let found = settings(&diff);
    assert!(
        found.contains(&("shared_buffers".into(), "16GB".into())),
        "{found:?}"
    );
    assert!(
        found.contains(&("max_parallel_workers".into(), "16".into())),
        "{found:?}"
    );
    let left = diff["skipped"].as_array().expect("left out");
    let of_version = left
        .iter()
        .find(|left| left["knob"] == "wal_compression")
        .expect("it");
    assert_eq!(
        of_version["because"],
        "fact server.major is missing because no server was asked"
    );
    home.run(&["profile", "diff", "oltp", "--host-only", "--given", "memory=5"])
        .fails(2, &["\"memory\" is not a fact", "memory."]);
    home.run(&["profile", "diff", "oltp"]).fails(2, &["TARGET"]);
}

#[test]
fn exports_are_what_other_programs_read() {
    let home = Home::new();
    // What this machine may have already is forced to something, so that there is something to
    // carry.
    let own = home.write(
        "own.toml",
        "name = \"own\"\ntitle = \"Ours # and more\"\nsummary = \"x\"\ninherits = [\"oltp\"]\n\n\
         [[setting]]\nknob = \"vm.swappiness\"\nvalue = 7\nreason = \"It's \\\"7\\\"\\n{{ x }}: y\"\nsource = \"s\"\n\n\
         [[setting]]\nknob = \"net.ipv4.tcp_rmem\"\nvalue = \"4096 131072 6291456\"\nreason = \"r\"\nsource = \"s\"\n\n\
         [[setting]]\nknob = \"transparent_hugepage.enabled\"\nvalue = \"never\"\nreason = \"r\"\nsource = \"s\"\n\n\
         [[setting]]\nknob = \"transparent_hugepage.use_zero_page\"\nvalue = 1\nreason = \"r\"\nsource = \"s\"\n\n\
         [[setting]]\nknob = \"temp_tablespaces\"\nvalue = \"pg_default, pg_default\"\nreason = \"r\"\nsource = \"s\"\n",
    );
    let own = own.to_string_lossy().into_owned();
    home.sandbox("exports", &["--memory", "1G"]);
    let target = "sandbox:exports";
    let diff = home
        .run(&["profile", "diff", &own, target, "--json"])
        .fine()
        .json();
    let found = settings(&diff);
    let value = |knob: &str| {
        found
            .iter()
            .find(|(name, _)| name == knob)
            .map(|(_, value)| value.clone())
    };
    assert_eq!(value("shared_buffers").as_deref(), Some("256MB"));
    assert_eq!(value("vm.swappiness").as_deref(), Some("7"));
    let shown = home.run(&["profile", "diff", &own, target]).fine().out;
    assert!(shown.contains("128MB") && shown.contains("skipped"), "{shown}");

    of_tuned(&home, &own, target);
    of_sysctl(&home, &own, target);
    of_ansible(&home, &own, target);
    of_the_server(&home, &own, &found);
}

fn of_tuned(home: &Home, own: &str, target: &str) {
    let directory = home.file("tuned");
    let to = format!("{}/", directory.display());
    home.run(&["profile", "export", own, target, "--as", "tuned", "-o", &to])
        .fine();
    let script = home.write("read.py", TUNED);
    let read = run(
        "/usr/bin/python3",
        &[
            &script.to_string_lossy(),
            &directory.to_string_lossy(),
            "pgdyno-own",
        ],
    );
    let read: Value = serde_json::from_str(&read).expect("JSON");
    assert_eq!(read["summary"], "Ours  and more");
    assert_eq!(read["units"]["sysctl"]["vm.swappiness"], "7");
    assert_eq!(
        read["units"]["sysctl"]["net.ipv4.tcp_rmem"],
        "4096 131072 6291456"
    );
    assert_eq!(read["units"]["vm"]["transparent_hugepages"], "never");
    assert_eq!(
        read["units"]["sysfs"]["/sys/kernel/mm/transparent_hugepage/use_zero_page"],
        "1"
    );
    // Written again over its own, and not over anybody else's.
    home.run(&["profile", "export", own, target, "--as", "tuned", "-o", &to])
        .fine();
    let foreign = home.write("foreign.conf", "[main]\n");
    home.run(&[
        "profile",
        "export",
        own,
        target,
        "--as",
        "tuned",
        "-o",
        &foreign.to_string_lossy(),
    ])
    .fails(4, &["is not an exported profile"]);
    assert_eq!(fs::read_to_string(foreign).expect("it"), "[main]\n");
}

fn of_sysctl(home: &Home, own: &str, target: &str) {
    let text = exported(home, own, &[target], "sysctl.d");
    let file = home.write("90.conf", &text);
    let sysctl = if Path::new("/usr/sbin/sysctl").exists() {
        "/usr/sbin/sysctl"
    } else {
        "sysctl"
    };
    let read = run(sysctl, &["--dry-run", "-p", &file.to_string_lossy()]);
    assert!(read.contains("vm.swappiness = 7\n"), "{read}");
    assert!(
        read.contains("net.ipv4.tcp_rmem = 4096 131072 6291456\n"),
        "{read}"
    );
    assert!(
        text.contains("#   shared_buffers = 256MB: a setting of the server"),
        "{text}"
    );
}

fn of_ansible(home: &Home, own: &str, target: &str) {
    let text = exported(home, own, &[target], "ansible");
    let file = home.write("own.yml", &text);
    let file = file.to_string_lossy();
    let read = run(
        "/usr/bin/python3",
        &[
            "-c",
            "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))",
            &file,
        ],
    );
    let read: Value = serde_json::from_str(&read).expect("JSON");
    let tasks = read[0]["tasks"].as_array().expect("tasks");
    let of = |module: &str, name: &str| {
        tasks
            .iter()
            .find(|task| task[module]["name"] == name)
            .map(|task| task[module]["value"].as_str().unwrap_or_default().to_owned())
    };
    let set = "community.postgresql.postgresql_set";
    assert_eq!(of(set, "shared_buffers").as_deref(), Some("256MB"));
    assert_eq!(
        of(set, "temp_tablespaces").as_deref(),
        Some("pg_default, pg_default")
    );
    assert_eq!(of("ansible.posix.sysctl", "vm.swappiness").as_deref(), Some("7"));
    let files = tasks
        .iter()
        .find(|task| !task["ansible.builtin.copy"].is_null())
        .expect("files");
    let content = files["ansible.builtin.copy"]["content"].as_str().expect("text");
    assert!(
        content.contains("w /sys/kernel/mm/transparent_hugepage/enabled - - - - never\n"),
        "{content}"
    );
    // Ansible reads the whole play; modules of collections that are not here are as empty files.
    for module in [
        "community/postgresql/plugins/modules/postgresql_set",
        "ansible/posix/plugins/modules/sysctl",
    ] {
        let path = home.file(&format!("collections/ansible_collections/{module}.py"));
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, "").expect("written");
    }
    let output = Command::new("ansible-playbook")
        .args(["--syntax-check", "-i", "localhost,", &file])
        .env("ANSIBLE_COLLECTIONS_PATH", home.file("collections"))
        .env("ANSIBLE_COLLECTIONS_PATHS", home.file("collections"))
        .env("ANSIBLE_HOME", home.file("ansible"))
        .env("ANSIBLE_LOCAL_TEMP", home.file("ansible/tmp"))
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("ansible-playbook (scripts/need.sh test installs it)");
    said(output).fine();
}

/// The server starts with the file and shows its values; the same by SQL.
fn of_the_server(home: &Home, own: &str, found: &[(String, String)]) {
    let target = "sandbox:exports";
    let socket = home.file("state/sandboxes/exports/socket");
    let is_in_force = |how: &str| {
        for (knob, value) in found {
            let of = |what: &str| {
                home.ask(
                    "exports",
                    &format!("SELECT {what} FROM pg_settings WHERE name = '{knob}'"),
                )
            };
            // What is not a parameter has no row there.
            if of("name").is_empty() {
                continue;
            }
            let (now, asked) = (
                "current_setting(name)",
                format!("'{}'", value.replace('\'', "''")),
            );
            let is_size = of("unit").ends_with('B');
            let sql = match is_size {
                true => format!("pg_size_bytes({now}) = pg_size_bytes({asked})"),
                false => format!("{now} = {asked}"),
            };
            assert_eq!(of(&sql), "t", "{how}: {knob} = {value}");
        }
    };
    let conf = exported(home, own, &[target], "postgresql.conf");
    let sql = exported(home, own, &[target], "alter-system");
    let file = home.write("own.conf", &conf);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("open to the server's user");
    let main = home.data("exports").join("postgresql.conf");
    let before = fs::read_to_string(&main).expect("it");
    fs::write(&main, format!("{before}\ninclude '{}'\n", file.display())).expect("written");
    home.run(&["sandbox", "restart", "exports"]).fine();
    is_in_force("include");

    fs::write(&main, &before).expect("written");
    home.run(&["sandbox", "restart", "exports"]).fine();
    assert_eq!(home.ask("exports", "SHOW shared_buffers"), "128MB");
    let sql = home.write("own.sql", &sql);
    let psql = common::pgbench().with_file_name("psql");
    let port = home.record("exports")["port"].to_string();
    run(
        &psql.to_string_lossy(),
        &[
            "-X",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            &socket.to_string_lossy(),
            "-p",
            &port,
            "-U",
            "postgres",
            "-f",
            &sql.to_string_lossy(),
            "postgres",
        ],
    );
    home.run(&["sandbox", "restart", "exports"]).fine();
    is_in_force("ALTER SYSTEM");
}

/// No shipped profile keeps a server from starting, whatever its version.
fn starts_with_every_profile(version: &str) {
    let home = Home::new();
    let list = home.run(&["profile", "list", "--json"]).fine().json();
    home.run(&["sandbox", "create", "x", "--version", version, "--memory", "1G"])
        .fine();
    let main = home.data("x").join("postgresql.conf");
    let before = fs::read_to_string(&main).expect("it");
    let profiles = list["profiles"].as_array().expect("profiles").iter();
    // Worked out for the server as it comes, before the first of them is tried.
    let confs: Vec<_> = profiles
        .map(|profile| {
            let profile = profile["name"].as_str().expect("a name");
            (
                profile,
                exported(&home, profile, &["sandbox:x"], "postgresql.conf"),
            )
        })
        .collect();
    for (profile, conf) in confs {
        fs::write(&main, format!("{before}\n{conf}")).expect("written");
        home.run(&["sandbox", "restart", "x"]).fine();
        let errors = "SELECT coalesce(string_agg(name || ': ' || error, ', '), '') FROM pg_file_settings \
                      WHERE error IS NOT NULL";
        assert_eq!(home.ask("x", errors), "", "{profile} on {version}");
    }
}

#[test]
fn a_server_of_the_oldest_version_starts_with_every_shipped_profile() {
    starts_with_every_profile("14");
}

#[test]
fn a_server_of_the_newest_version_starts_with_every_shipped_profile() {
    starts_with_every_profile(&newest());
}
