//! A home of its own for each test: sandboxes, journals and results below one directory in /tmp, gone afterwards.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod foreign;
pub(crate) mod guest;
pub(crate) mod machine;
pub(crate) mod mounts;
pub(crate) mod openmetrics;
pub(crate) mod web;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A ladder over CPUs and clients, as a file.
pub(crate) const CORES: &str = r#"
name = "cores"
question = "How many CPUs?"
design = "ladder"
blocks = 2
[data]
scale = 1
[load]
workload = "write"
threads = 1
warmup_s = 2
measure_s = 12
[[factor]]
name = "cores"
of = "cgroup.cpu_quota"
values = [1, 2, 4, 8]
[[factor]]
name = "clients"
of = "load.clients"
values = [4, 16]
"#;

/// What was fetched and unpacked once serves all tests. It is not below the target folder, which may be in a home that
/// the server's user cannot enter.
fn shared() -> PathBuf {
    // The user's number, from the owner of this process's directory.
    let uid = fs::metadata("/proc/self").map_or(0, |meta| meta.uid());
    PathBuf::from(format!("/tmp/pgdyno-test-cache-{uid}"))
}

pub(crate) struct Home {
    pub(crate) path: tempfile::TempDir,
}

/// What a command printed.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn fine(self) -> Said {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Said {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "\"{word}\" is not in:\n{}", self.err);
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}:\n{}\n{}", self.out, self.err))
    }
}

impl Home {
    pub(crate) fn new() -> Home {
        let path = tempfile::Builder::new()
            .prefix("pgdyno-test-")
            .tempdir_in("/tmp")
            .expect("a directory");
        fs::set_permissions(path.path(), fs::Permissions::from_mode(0o755))
            .expect("open to the server's user");
        for part in ["cache", "installed"] {
            fs::create_dir_all(shared().join(part)).expect("a shared directory");
        }
        fs::create_dir_all(path.path().join("state")).expect("a directory");
        symlink(shared().join("cache"), path.path().join("cache")).expect("a link");
        symlink(shared().join("installed"), path.path().join("state/postgresql")).expect("a link");
        Home { path }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).expect("written");
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgdyno"));
        command
            .args(arguments)
            .env("PGDYNO_HOME", self.path.path())
            // Tests run beside one another, and each changes its own sandboxes.
            .env("PGDYNO_REGISTRY", self.file("state/registry"))
            .stdin(Stdio::null());
        for name in [
            "PGDYNO_STORE",
            "PGHOST",
            "PGPORT",
            "PGUSER",
            "PGPASSWORD",
            "PGDATABASE",
            "PGSERVICE",
            "PGHOSTADDR",
            "PGSSLMODE",
            "PGTARGETSESSIONATTRS",
        ] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).output().expect("pgdyno runs"))
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("pgdyno runs")
    }

    /// A running sandbox with data of scale 1.
    pub(crate) fn sandbox(&self, name: &str, more: &[&str]) {
        let mut arguments = vec!["sandbox", "create", name];
        arguments.extend(more);
        self.run(&arguments).fine();
        self.run(&["data", "create", &format!("sandbox:{name}"), "--scale", "1"])
            .fine();
    }

    pub(crate) fn record(&self, name: &str) -> Value {
        let text =
            fs::read_to_string(self.file(&format!("state/sandboxes/{name}/sandbox.json"))).expect("a record");
        serde_json::from_str(&text).expect("JSON")
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        PathBuf::from(self.record(name)["data"].as_str().expect("a path"))
    }

    pub(crate) fn postmaster(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.data(name).join("postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// The way to the sandbox's server.
    pub(crate) fn config(&self, name: &str) -> String {
        let socket = self.file(&format!("state/sandboxes/{name}/socket"));
        let port = self.record(name)["port"].as_u64().expect("a port");
        format!("host={} port={port} user=postgres", socket.display())
    }

    /// One value from the sandbox's server.
    pub(crate) fn ask(&self, name: &str, sql: &str) -> String {
        let mut client =
            postgres::Client::connect(&self.config(name), postgres::NoTls).expect("the sandbox answers");
        for message in client.simple_query(sql).expect("an answer") {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                return row.get(0).unwrap_or_default().to_owned();
            }
        }
        String::new()
    }

    pub(crate) fn stored_trials(&self, id: i64) -> Vec<(u64, String)> {
        let report = self
            .run(&["report", &id.to_string(), "--format", "json"])
            .fine()
            .json();
        let trials = report["trials"].as_array().expect("trials").clone();
        trials
            .iter()
            .map(|t| {
                (
                    t["block"].as_u64().unwrap_or(0),
                    t["treatment"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let root = self.file("state/sandboxes");
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                let _ = self.run(&["sandbox", "destroy", &name]);
            }
        }
    }
}

/// Lets time pass that is a part of what is tested: a timer's, or the instant of a kill.
#[expect(clippy::disallowed_methods, reason = "there is nothing to wait for but time")]
pub(crate) fn pass(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// Waits until something holds, a minute at most.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        pass(std::time::Duration::from_millis(50));
    }
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Trials of a report that ended like this.
pub(crate) fn ended(report: &Value, status: &str) -> usize {
    let trials = report["trials"].as_array().expect("trials");
    trials.iter().filter(|trial| trial["status"] == status).count()
}

/// The present value of a kernel file.
pub(crate) fn kernel(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_else(|e| panic!("{path}: {e}"))
        .trim()
        .to_owned()
}

/// The settings that ALTER SYSTEM has written for the sandbox x.
pub(crate) fn auto_conf(home: &Home) -> String {
    fs::read_to_string(home.data("x").join("postgresql.auto.conf")).expect("a file")
}

/// What one of the system's own programs prints.
#[track_caller]
pub(crate) fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The disk that holds a path, as a name in /sys/block.
pub(crate) fn disk_of(path: &Path) -> String {
    use pgdyno_host::{LocalHost, block};
    block::disk_of(&LocalHost::new(), &path.to_string_lossy()).expect("a disk")
}

/// Debian's pgbench.
pub(crate) fn pgbench() -> PathBuf {
    system_program("pgbench")
}

/// A program of Debian's PostgreSQL.
pub(crate) fn system_program(name: &str) -> PathBuf {
    fs::read_dir("/usr/lib/postgresql")
        .expect("Debian's postgresql (make test installs it)")
        .flatten()
        .map(|entry| entry.path().join("bin").join(name))
        .find(|path| path.exists())
        .expect(name)
}
