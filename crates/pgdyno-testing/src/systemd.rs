//! A host that systemd has booted: namespaces of this one for mounts, processes, control groups and
//! networks, with a systemd of their own. It has this machine's files but for those of Debian's
//! PostgreSQL clusters, of which it has none.

use super::{Home, Said, directory, memory, said, tool, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The unit of Debian's clusters.
const UNIT: &str = "/lib/systemd/system/postgresql@.service";
/// Units that systemd needs, without what a whole system has.
const TARGETS: [&str; 4] = ["default", "basic", "sysinit", "shutdown"];
/// Directories that are its own.
const OWN: [&str; 4] = [
    "/run",
    "/etc/postgresql",
    "/var/lib/postgresql",
    "/var/log/postgresql",
];

/// A host with a systemd, gone with its value.
pub struct Booted {
    /// Units below `units`, and whatever a test has.
    pub files: tempfile::TempDir,
    /// `unshare`, whose only child is the host's first process.
    child: Child,
    group: PathBuf,
}

impl Booted {
    /// Boots it. Needs root.
    pub fn start() -> Booted {
        let files = directory(memory(), "pgdyno-test-booted-");
        let units = files.path().join("units");
        fs::create_dir(&units).expect("a directory");
        fs::copy(UNIT, units.join("postgresql@.service")).expect("the unit of Debian's clusters");
        for name in TARGETS {
            let text = format!("[Unit]\nDescription={name}\nDefaultDependencies=no\n");
            fs::write(units.join(format!("{name}.target")), text).expect("written");
        }
        let name = files.path().file_name().expect("a name").to_owned();
        let group = Path::new(&groups_of_version_2()).join(name);
        fs::create_dir(&group).expect("a control group");
        let mounts: String = OWN
            .iter()
            .map(|place| format!("mkdir -p {place} && mount -t tmpfs own {place} && "))
            .collect();
        let script = format!(
            "ip link set lo up && {mounts} umount -R /sys/fs/cgroup && mount -t cgroup2 own /sys/fs/cgroup && \
             install -d -o postgres -g postgres /run/postgresql /var/lib/postgresql /var/log/postgresql && \
             exec env container=test SYSTEMD_UNIT_PATH={} /lib/systemd/systemd --system --log-target=console --show-status=no",
            units.display()
        );
        let enter = format!(
            "echo 0 > {}/cgroup.procs && exec unshare --mount --pid --cgroup --net --fork --mount-proc --kill-child sh -c \"$0\"",
            group.display()
        );
        let log = fs::File::create(files.path().join("log")).expect("a file");
        let child = Command::new("sh")
            .args(["-c", &enter, &script])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("sh runs");
        let booted = Booted { files, child, group };
        until("a booted host", || {
            let inside = booted.enter().ok_or_else(|| booted.log())?;
            let asked = Command::new(&inside[0])
                .args(&inside[1..])
                .args(["systemctl", "is-system-running"])
                .output()
                .expect("nsenter runs");
            match String::from_utf8_lossy(&asked.stdout).trim() {
                "running" => Ok(()),
                other => Err(format!("{other}\n{}", booted.log())),
            }
        });
        booted
    }

    fn log(&self) -> String {
        fs::read_to_string(self.files.path().join("log")).unwrap_or_default()
    }

    /// What runs a command there.
    fn enter(&self) -> Option<Vec<String>> {
        let outer = self.child.id();
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).ok()?;
        let first = children.split_whitespace().next()?;
        let words = [
            "nsenter", "--target", first, "--mount", "--pid", "--cgroup", "--net", "--",
        ];
        Some(words.map(str::to_owned).to_vec())
    }

    /// The program with a home, run there.
    pub fn command(&self, home: &Home, arguments: &[&str]) -> Command {
        let enter = self.enter().expect("it runs");
        let words: Vec<&str> = enter.iter().map(String::as_str).collect();
        let mut command = home.wrapped(&words);
        command.args(arguments);
        command
    }

    /// Runs the program there to its end.
    pub fn run(&self, home: &Home, arguments: &[&str]) -> Said {
        said(self.command(home, arguments).output().expect("nsenter runs"))
    }

    /// The same as another user.
    pub fn run_as(&self, home: &Home, user: &str, arguments: &[&str]) -> Said {
        let enter = self.enter().expect("it runs");
        let mut words: Vec<&str> = enter.iter().map(String::as_str).collect();
        words.extend(["setpriv", "--reuid", user, "--clear-groups", "--"]);
        said(
            home.wrapped(&words)
                .args(arguments)
                .output()
                .expect("nsenter runs"),
        )
    }

    /// Another program's command line, entered.
    fn words(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let mut all = self.enter().expect("it runs");
        all.push(program.to_owned());
        all.extend(arguments.iter().map(|&word| word.to_owned()));
        all
    }

    /// Runs another program there, which succeeds.
    #[track_caller]
    pub fn tool(&self, program: &str, arguments: &[&str]) {
        let all = self.words(program, arguments);
        let words: Vec<&str> = all[1..].iter().map(String::as_str).collect();
        tool(&all[0], &words);
    }

    /// Runs another program there, however it ends.
    pub fn said(&self, program: &str, arguments: &[&str]) -> Said {
        let all = self.words(program, arguments);
        said(
            Command::new(&all[0])
                .args(&all[1..])
                .output()
                .expect("nsenter runs"),
        )
    }

    /// Makes and starts a cluster of Debian's newest version, and returns its version.
    pub fn cluster(&self, name: &str) -> String {
        let version = super::system_program("initdb")
            .ancestors()
            .nth(2)
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .expect("a version");
        self.tool("pg_createcluster", &[&version, name, "--", "--no-sync"]);
        version
    }

    /// Writes a unit.
    pub fn unit(&self, name: &str, text: &str) {
        fs::write(self.files.path().join("units").join(name), text).expect("written");
        self.tool("systemctl", &["daemon-reload"]);
    }
}

/// Where the control groups of version 2 are.
fn groups_of_version_2() -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    let place = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (place, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| place.to_owned())
    });
    place.expect("control groups of version 2")
}

impl Drop for Booted {
    fn drop(&mut self) {
        // Its first process ends with it, and all others with that one.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let remove = |group: &Path| fs::remove_dir(group).is_ok() || !group.exists();
        until("the groups of a host that has ended", || {
            let mut groups = vec![self.group.clone()];
            let mut at = 0;
            while let Some(group) = groups.get(at).cloned() {
                let entries = fs::read_dir(&group).into_iter().flatten().flatten();
                groups.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
                at += 1;
            }
            match groups.iter().rev().all(|group| remove(group)) {
                true => Ok(()),
                false => Err("processes in them"),
            }
        });
    }
}
