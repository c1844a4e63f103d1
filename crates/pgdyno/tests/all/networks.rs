//! Sandboxes behind a link to a network namespace of their own, for real. Needs root.

use common::machine::kills;
use common::mounts::nothing_is_left;
use common::{Home, Said, kernel, pass, said, until_is};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What `ip` prints, in JSON; an error is nothing.
fn ip(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new("ip")
        .arg("-json")
        .args(arguments)
        .output()
        .expect("iproute2 (make test installs it)");
    serde_json::from_slice(&output.stdout).unwrap_or(serde_json::Value::Null)
}

/// The name of a sandbox's namespace and link, once it is recorded.
fn network_of(home: &Home, name: &str) -> String {
    let network = home.record(name)["network"]["name"].clone();
    network.as_str().expect("a name").to_owned()
}

#[track_caller]
fn no_network_is_left(network: &str) {
    assert_eq!(ip(&["link", "show", network]), serde_json::Value::Null);
    assert!(!Path::new("/var/run/netns").join(network).exists());
}

/// A second of load over the link.
fn load(home: &Home, more: &[&str]) -> Said {
    let arguments = ["bench", "sandbox:x", "-w", "simple", "-d", "1s", "--warmup", "0s"];
    home.run(&[&arguments, more].concat()).fine()
}

fn lives_behind_a_link(mtu: u64) {
    let home = Home::on_disk();
    let plan = format!("mtu:{mtu}");
    home.run(&["sandbox", "create", "x", "--network", &plan]).fine();
    let (record, network) = (home.record("x"), network_of(&home, "x"));
    assert_eq!((&record["format"], network.len()), (&3.into(), 15));
    // Both ends have it, and the server is at one of them.
    let outside = ip(&["address", "show", "dev", &network]);
    let inside = ip(&["-n", &network, "address", "show", "dev", "eth0"]);
    for (end, side) in [(&outside, "host_address"), (&inside, "server_address")] {
        assert_eq!(end[0]["mtu"], mtu, "{end}");
        assert_eq!(end[0]["addr_info"][0]["local"], record["network"][side], "{end}");
    }
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).expect("a namespace");
    let postmaster = home.postmaster("x").expect("running").to_string();
    assert_ne!(of(&postmaster), of("self"));
    // No route leads out of it.
    let routes = ip(&["-n", &network, "route", "show"]);
    assert_eq!(routes.as_array().map(Vec::len), Some(1), "{routes}");
    let address = record["network"]["server_address"].as_str().expect("an address");
    assert_eq!(home.ask("x", "SHOW listen_addresses"), address);
    let list = home.run(&["sandbox", "list"]).fine();
    assert!(list.out.contains(&plan.replace(':', " ")), "{}", list.out);

    // The load goes over it.
    let packets = || kernel(&format!("/sys/class/net/{network}/statistics/tx_packets"));
    let before: u64 = packets().trim().parse().expect("a number");
    let result = load(&home, &["-c", "2", "--json"]).json();
    assert_eq!(result["cross_check"]["agrees"], true, "{result}");
    assert!(
        result["server"]
            .as_str()
            .is_some_and(|place| place.starts_with(address)),
        "{result}"
    );
    let committed = result["committed"].as_u64().expect("a number");
    assert!(
        committed > 0 && result["server_cpu_us_per_tx"].is_number(),
        "{result}"
    );
    let after: u64 = packets().trim().parse().expect("a number");
    assert!(after - before >= committed, "{before} {after}");
    // Its processes and files are found all the same.
    let facts = home.run(&["facts", "sandbox:x", "--json"]).fine().json();
    let facts = facts["facts"].as_array().expect("facts").clone();
    let disks = facts.iter().find(|fact| fact["name"] == "storage.data.disks");
    assert!(disks.expect("a fact")["value"].is_array());

    home.run(&["sandbox", "destroy", "x"]).fine();
    no_network_is_left(&network);
    nothing_is_left(&home);
}

#[test]
fn behind_a_link_of_1500() {
    lives_behind_a_link(1500);
}

#[test]
fn behind_a_link_of_9000() {
    lives_behind_a_link(9000);
}

/// A restart of the machine takes namespace and link away; so does this. What is in order stays as
/// it is.
#[test]
fn a_network_comes_back_with_the_server() {
    let home = Home::new();
    let arguments = [
        "--network",
        "mtu:4000",
        "--memory",
        "256M",
        "--filesystem",
        "tmpfs:256M",
    ];
    home.run(&[&["sandbox", "create", "x"], &arguments[..]].concat())
        .fine();
    let network = network_of(&home, "x");
    let number = || ip(&["link", "show", &network])[0]["ifindex"].clone();
    let first = number();
    home.run(&["sandbox", "restart", "x"]).fine();
    assert_eq!(number(), first);
    home.run(&["sandbox", "stop", "x"]).fine();
    for command in [
        ["link", "delete", network.as_str()],
        ["netns", "delete", network.as_str()],
    ] {
        assert!(
            Command::new("ip")
                .args(command)
                .status()
                .expect("ip runs")
                .success()
        );
        home.run(&["sandbox", "start", "x"]).fine();
        assert_eq!(ip(&["-n", &network, "link", "show", "eth0"])[0]["mtu"], 4000);
        assert_eq!(home.ask("x", "SELECT inet_client_addr() IS NOT NULL"), "f");
        load(&home, &[]);
        home.run(&["sandbox", "stop", "x"]).fine();
    }
    // Its record is lost: the link knows whose it is.
    fs::write(home.file("state/sandboxes/x/sandbox.json"), "{ torn").expect("written");
    home.run(&["sandbox", "destroy", "x"]).fine();
    no_network_is_left(&network);
    nothing_is_left(&home);
}

#[test]
fn networks_that_cannot_be_are_refused_with_what_to_do() {
    let home = Home::new();
    for wrong in ["9000", "mtu:100", "mtu:70000"] {
        home.run(&["sandbox", "create", "x", "--network", wrong])
            .fails(2, &["e.g. mtu:9000"]);
    }
    let without = |home: &Home, options: &[&str]| {
        let output = Command::new("setpriv")
            .args(options)
            .arg(common::program())
            .args(["sandbox", "create", "x", "--network", "mtu:9000"])
            .env("PGDYNO_HOME", home.path.path())
            .output();
        said(output.expect("setpriv runs"))
    };
    let capabilities = ["--bounding-set", "-sys_admin,-net_admin", "--inh-caps", "-all"];
    without(&home, &capabilities).fails(1, &["not permitted", "hint:", "CAP_NET_ADMIN"]);
    home.run(&["sandbox", "destroy", "x"]).fine();
    let home = Home::new();
    fs::set_permissions(home.file("state"), fs::Permissions::from_mode(0o777)).expect("open to all");
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    without(&home, &nobody).fails(1, &["only root", "hint:", "--network"]);
    assert!(!home.file("state/sandboxes/x").exists());
}

/// As for file systems: whatever there is of it by then, `destroy` removes it.
#[test]
fn a_creation_killed_with_a_network_leaves_nothing_that_destroy_does_not_find() {
    for step in (0..16_u64).step_by(16 / kills(4).min(16) as usize) {
        let home = Home::new();
        let mut child = home.spawn(&["sandbox", "create", "x", "--network", "mtu:9000"]);
        let record = home.file("state/sandboxes/x/sandbox.json");
        until_is("there is a record", true, || record.exists());
        // Making the network takes some 30 ms; then come initdb and the start.
        pass(Duration::from_millis(step * step * 4));
        child.kill().expect("killed");
        child.wait().expect("gone");
        let network = network_of(&home, "x");
        home.run(&["sandbox", "destroy", "x"]).fine();
        no_network_is_left(&network);
        nothing_is_left(&home);
    }
}
