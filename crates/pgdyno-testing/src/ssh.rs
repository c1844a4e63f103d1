//! A host over ssh: a real sshd in a network namespace, reached from another one. It shares this
//! machine's kernel and files, and has a home directory and a PGDYNO_HOME of its own.

use super::{Home, directory, fetched, memory, program, shared, tool, until};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// How the host is called in the configuration of ssh.
pub const FAR: &str = "ssh:far";
/// Networks for tests of networks (RFC 2544), one of four addresses for each host.
const NETWORK: &str = "198.18";
/// The host's address.
pub const FAR_ADDRESS: &str = "198.18.0.2";
/// Where agents are kept, below the user's home.
const AGENTS: &str = ".cache/pgdyno/agents";
/// A user without rights on a host [`FarHost::with_user`].
pub const USER: &str = "ssh:operator@far";
/// The number of that user.
const UID: u32 = 4321;
/// Either end of the cable.
const LINK: &str = "cable";
/// An address on the cable that neither end has.
const NOBODY: &str = "02:00:00:00:00:01";

/// Two network namespaces: where ssh is started, and the host's.
struct Namespaces([String; 2]);

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
            let _ = fs::remove_dir_all(etc(name));
        }
    }
}

/// What a process that `ip netns exec` starts finds in /etc instead of this machine's own files.
fn etc(namespace: &str) -> PathBuf {
    Path::new("/etc/netns").join(namespace)
}

/// A file system in memory, gone with its value.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A host over ssh that has the agent, gone with its value.
pub struct FarHost {
    // Unmounted before the files below it go.
    _disk: Option<Disk>,
    /// Its home directory, with `home` for PGDYNO_HOME below, and what is needed to go there.
    pub files: tempfile::TempDir,
    sshd: Child,
    namespaces: Namespaces,
}

/// In place of sha256sum on a host: the program of the tests, which a connection asks for each
/// time, has its hash already; it takes 0.3 s.
fn sha256sum_script() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let path = program().to_string_lossy().into_owned();
        let place = tool("stat", &["-Lc", "%d:%i", &path]);
        let sum = tool("sha256sum", &[&path]);
        let sum = sum.split(' ').next().unwrap_or_default();
        format!(
            "#!/bin/sh\n[ \"$(stat -Lc %d:%i /dev/stdin)\" != {place} ] || exec echo '{sum}  -'\nexec /usr/bin/sha256sum \"$@\"\n"
        )
    })
}

impl FarHost {
    /// Starts it. Needs root.
    pub fn start() -> FarHost {
        FarHost::made(None, false)
    }

    /// The same with a disk of so many megabytes for what pgdyno keeps there.
    pub fn with_disk(megabytes: u32) -> FarHost {
        FarHost::made(Some(megabytes), false)
    }

    /// The same with one more user, [`USER`], who has the home directory and no agent in it.
    pub fn with_user() -> FarHost {
        FarHost::made(None, true)
    }

    fn made(disk_megabytes: Option<u32>, has_user: bool) -> FarHost {
        fetched();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", std::process::id());
        let namespaces = Namespaces([format!("pgdyno-near-{id}"), format!("pgdyno-far-{id}")]);
        let files = directory(memory(), "pgdyno-test-far-");
        let at = |name: &str| files.path().join(name).to_string_lossy().into_owned();
        fs::create_dir(at("user")).expect("a directory");
        fs::create_dir_all(at("home/state")).expect("a directory");
        // Before sshd is started: it sees what is mounted then.
        let disk = disk_megabytes.map(|megabytes| {
            let size = format!("size={megabytes}m,mode=755");
            tool("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &at("home/state")]);
            Disk(files.path().join("home/state"))
        });
        // A copy over ssh takes longer than most tests.
        let agents = files
            .path()
            .join("user")
            .join(AGENTS)
            .join(env!("CARGO_PKG_VERSION"));
        fs::create_dir_all(&agents).expect("a directory");
        symlink(program(), agents.join("pgdyno")).expect("a link");
        // As every home of a test.
        for (part, link) in [("cache", "home/cache"), ("installed", "home/state/postgresql")] {
            fs::create_dir_all(shared().join(part)).expect("a shared directory");
            symlink(shared().join(part), at(link)).expect("a link");
        }
        for name in &namespaces.0 {
            tool("ip", &["netns", "add", name]);
        }
        let [near, far] = &namespaces.0;
        if has_user {
            fs::create_dir_all(etc(far)).expect("a directory");
            let passwd = format!("operator:x:{UID}:{UID}::{}:/bin/sh\n", at("user"));
            for (name, line) in [("passwd", &*passwd), ("shadow", "operator:*:20000::::::\n")] {
                let all = fs::read_to_string(Path::new("/etc").join(name)).expect("a file") + line;
                fs::write(etc(far).join(name), all).expect("written");
            }
            let rules = etc(far).join("sudoers");
            fs::write(&rules, "").expect("written");
            fs::set_permissions(rules, fs::Permissions::from_mode(0o440)).expect("set");
            // Root's home for pgdyno is another: sudo drops the variables of the user.
            fs::write(at("sudo_environment"), format!("PGDYNO_HOME={}\n", at("root"))).expect("written");
            fs::remove_dir_all(&agents).expect("removed");
            tool("chown", &["-R", &UID.to_string(), &at("user"), &at("home")]);
        }
        tool(
            "ip",
            &[
                "-n", near, "link", "add", LINK, "type", "veth", "peer", "name", LINK, "netns", far,
            ],
        );
        // Every pair of namespaces is a world of its own, so all can have the same addresses.
        for (name, address) in [(near, "0.1"), (far, "0.2")] {
            tool("ip", &["-n", name, "link", "set", "lo", "up"]);
            tool(
                "ip",
                &[
                    "-n",
                    name,
                    "address",
                    "add",
                    &format!("{NETWORK}.{address}/30"),
                    "dev",
                    LINK,
                ],
            );
            tool("ip", &["-n", name, "link", "set", LINK, "up"]);
        }
        for key in ["host_key", "user_key"] {
            tool("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        }
        // Where sshd parts with its privileges; its package's service makes it.
        fs::create_dir_all("/run/sshd").expect("a directory");
        fs::create_dir(at("bin")).expect("a directory");
        fs::write(at("bin/sha256sum"), sha256sum_script()).expect("written");
        fs::set_permissions(at("bin/sha256sum"), fs::Permissions::from_mode(0o755)).expect("set");
        let config = format!(
            "ListenAddress {FAR_ADDRESS}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin prohibit-password\nSetEnv HOME={} PGDYNO_HOME={} PGDYNO_REGISTRY={} \
             PATH={}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
            at("host_key"),
            at("user_key.pub"),
            at("user"),
            at("home"),
            at("home/registry"),
            at("bin"),
        );
        fs::write(at("sshd_config"), config).expect("written");
        let host_key = fs::read_to_string(at("host_key.pub")).expect("a key");
        fs::write(at("known_hosts"), format!("{FAR_ADDRESS} {host_key}")).expect("written");
        // The usual exchange of keys is one against quantum computers, and takes 60 ms at either
        // end.
        let config = format!(
            "Host far\nHostName {FAR_ADDRESS}\nUser root\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\nConnectTimeout 20\n\
             KexAlgorithms curve25519-sha256\n",
            at("user_key"),
            at("known_hosts"),
        );
        fs::write(at("ssh_config"), config).expect("written");
        let sshd = Command::new("ip")
            .args(["netns", "exec", far])
            // It starts itself again for each connection, and has to be named by its whole path for
            // that.
            .arg("/usr/sbin/sshd")
            .args(["-D", "-f", &at("sshd_config"), "-E", &at("sshd.log")])
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("sshd runs");
        let host = FarHost {
            _disk: disk,
            files,
            sshd,
            namespaces,
        };
        until("an answer of sshd", || {
            let out = host.ssh("true").output().expect("ssh runs");
            match out.status.success() {
                true => Ok(()),
                false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
            }
        });
        host
    }

    /// A path below its files: `user` is the home directory there, `home` PGDYNO_HOME.
    pub fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Lets [`USER`] run everything by sudo, with a password, which no one has, or without.
    pub fn allow_sudo(&self, has_password: bool) {
        let word = if has_password { "PASSWD" } else { "NOPASSWD" };
        let rules = format!(
            "Defaults env_file={}\noperator ALL=(ALL) {word}: ALL\n",
            self.file("sudo_environment").display()
        );
        fs::write(etc(&self.namespaces.0[1]).join("sudoers"), rules).expect("written");
    }

    /// What PGDYNO_SSH is to be.
    pub fn program(&self) -> String {
        let config = self.file("ssh_config");
        format!(
            "ip netns exec {} ssh -F {}",
            self.namespaces.0[0],
            config.display()
        )
    }

    /// A command there, by ssh itself.
    pub fn ssh(&self, command: &str) -> Command {
        let program = self.program();
        let mut words = program.split(' ');
        let mut ssh = Command::new(words.next().expect("a program"));
        ssh.args(words).args(["far", command]).stdin(Stdio::null());
        ssh
    }

    /// The program of a home here, with the way to this host.
    pub fn command(&self, home: &Home, arguments: &[&str]) -> Command {
        let mut command = home.command(arguments);
        command.env("PGDYNO_SSH", self.program());
        command
    }

    /// The agents that are kept there.
    pub fn agents(&self) -> PathBuf {
        self.file("user").join(AGENTS)
    }

    /// Drops every packet on the way, without a word to either end, or lets them pass again: each
    /// sends to an address of the cable that the other does not have.
    pub fn cut(&self, is_cut: bool) {
        for (namespace, other) in self.namespaces.0.iter().zip(["0.2", "0.1"]) {
            let other = format!("{NETWORK}.{other}");
            let word = if is_cut { "replace" } else { "delete" };
            let place = ["lladdr", NOBODY, "nud", "permanent", "dev", LINK];
            tool(
                "ip",
                &[
                    &["-n", namespace.as_str(), "neighbour", word, other.as_str()][..],
                    &place,
                ]
                .concat(),
            );
        }
    }

    /// Takes the host's end of the cable down, which either end can see, or up again.
    pub fn take_down(&self, is_down: bool) {
        let state = if is_down { "down" } else { "up" };
        tool("ip", &["-n", &self.namespaces.0[1], "link", "set", LINK, state]);
    }

    /// Makes the home directory and PGDYNO_HOME read-only for what is opened there from now on, as
    /// far as nothing holds them open for writing just then, or writable again.
    pub fn make_read_only(&self, is_read_only: bool) {
        let [user, home, state] = ["user", "home", "home/state"].map(|name| self.file(name));
        let [user, home, state] = [user.display(), home.display(), state.display()];
        let command = match is_read_only {
            true => format!(
                "mount --bind {user} {user} && mount --rbind {home} {home} || exit 1; \
                 for place in {user} {home} {state}; do mount -o remount,bind,ro $place || true; done"
            ),
            false => format!("umount --lazy {user} && umount --lazy {home}"),
        };
        let output = self.ssh(&command).output().expect("ssh runs");
        assert!(output.status.success(), "{command}: {output:?}");
    }

    /// Processes of sshd's that serve connections, and what they have started.
    pub fn processes(&self) -> Vec<u32> {
        let pids = tool("ip", &["netns", "pids", &self.namespaces.0[1]]);
        let own = self.sshd.id();
        let pids = pids.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.filter(|pid| *pid != own).collect()
    }
}

impl Drop for FarHost {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        for pid in self.processes() {
            super::signal(pid, "-KILL");
        }
    }
}
