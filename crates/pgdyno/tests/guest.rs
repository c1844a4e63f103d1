//! pgdyno on a machine of four nodes and eight CPUs: Debian's kernel booted by emulation, and one static file in it.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// scripts/guest/machine.sh says what it is made of.
const MACHINE: &str = "x86_64-6.1-numa4";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What one of scripts/guest prints.
#[track_caller]
fn script(name: &str, arguments: &[&Path]) -> String {
    let output = Command::new(repository().join("scripts/guest").join(name))
        .args(arguments)
        .env("CARGO", env!("CARGO"))
        .output()
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let printed = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name}, {}:\n{error}\n{printed}",
        output.status
    );
    printed
}

/// Boots the machine with a job and a static pgdyno, and hands back its console.
fn boot(job: &str) -> String {
    let work = tempfile::tempdir().expect("a directory");
    let archive = work.path().join("archive");
    let program = PathBuf::from(script("static.sh", &[]).trim());
    let job = repository().join("scripts/guest/jobs").join(job);
    script("initramfs.sh", &[Path::new(MACHINE), &archive, &job, &program]);
    script("boot.sh", &[Path::new(MACHINE), &archive])
}

/// What a command of the job printed; it ended well.
#[track_caller]
fn printed<'a>(console: &'a str, command: &str) -> &'a str {
    let text = console
        .split_once(&format!("== {command}\n"))
        .and_then(|(_, rest)| rest.split_once("== ended with "));
    let (text, rest) = text.unwrap_or_else(|| panic!("\"{command}\" did not end in:\n{console}"));
    assert!(rest.starts_with("0\n"), "{command}:\n{console}");
    text
}

/// The value of a fact that is known.
#[track_caller]
fn value<'a>(facts: &'a Value, name: &str) -> &'a Value {
    let facts = facts["facts"].as_array().expect("a list");
    let fact = facts.iter().find(|fact| fact["name"] == name);
    let fact = fact.unwrap_or_else(|| panic!("no fact {name} among {}", facts.len()));
    assert!(fact["missing"].is_null(), "{fact}");
    &fact["value"]
}

#[test]
fn four_nodes_are_found_by_one_static_file() {
    let console = boot("facts");
    let version = concat!("pgdyno ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&console, "pgdyno --version"), version);
    let text = printed(&console, "pgdyno facts --host-only --json");
    let facts: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}:\n{text}"));
    for (name, expected) in [
        ("cpu.threads", json!(8)),
        ("cpu.cores", json!(8)),
        ("cpu.sockets", json!(4)),
        ("numa.online", json!("0-3")),
        ("numa.online_count", json!(4)),
        ("thp.enabled", json!("madvise")),
    ] {
        assert_eq!(*value(&facts, name), expected, "{name}");
    }
    let of_nodes = |key: &str| -> Vec<Value> {
        let nodes = value(&facts, "numa.nodes").as_array().expect("a list");
        nodes.iter().map(|node| node[key].clone()).collect()
    };
    assert_eq!(of_nodes("cpus"), ["0-1", "2-3", "4-5", "6-7"]);
    let far = [
        json!([10, 16, 32, 32]),
        json!([16, 10, 32, 32]),
        json!([32, 32, 10, 16]),
        json!([32, 32, 16, 10]),
    ];
    assert_eq!(of_nodes("distances"), far);
    // Two more on each node than on the one before: the job asked for them, and the kernel had them.
    let pools = value(&facts, "huge_pages.pools").as_array().expect("a list");
    let reserved: Vec<(&Value, &Value)> = pools
        .iter()
        .filter(|pool| pool["page_bytes"] == 2 << 20)
        .map(|pool| (&pool["node"], &pool["total"]))
        .collect();
    let expected = [(0, 2), (1, 4), (2, 6), (3, 8)].map(|(node, pages)| (json!(node), json!(pages)));
    assert_eq!(reserved, expected.each_ref().map(|(node, pages)| (node, pages)));
}
