//! A server that pgdyno did not create: Debian's, in a directory of its own, reached over its
//! socket.

use super::{directory, memory, signal, system_program, tool, until, until_is};
use postgres::{Client, NoTls, SimpleQueryMessage};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command};

/// A server in a directory of its own, stopped and removed with it.
pub struct Foreign {
    directory: tempfile::TempDir,
    bin: PathBuf,
}

/// A server in namespaces of its own, killed with its value.
pub struct Contained {
    process: Child,
    /// Its number in it, which is another process's here.
    file: PathBuf,
}

/// A container of podman with a server, removed with its value.
pub struct Podman {
    /// Its name.
    pub name: String,
    file: PathBuf,
}

impl Podman {
    /// An image without files, whose stop signal is the one that PostgreSQL's own image has.
    const IMAGE: &str = "localhost/pgdyno-empty:1";

    /// One of this name, by what is to go before the image and behind it.
    fn start(name: String, file: PathBuf, options: &[String], program: &[String]) -> Podman {
        let empty = directory(memory(), "pgdyno-empty-");
        let archive = empty.path().join("empty.tar").to_string_lossy().into_owned();
        tool("tar", &["-cf", &archive, "--files-from=/dev/null"]);
        tool(
            "podman",
            &[
                "import",
                "--quiet",
                "--change=STOPSIGNAL=SIGINT",
                &archive,
                Podman::IMAGE,
            ],
        );
        let podman = Podman { name, file };
        // Of the usual limits some machines let nobody have more; crun refuses hosts with control
        // groups of both versions.
        let words = "--runtime=runc --cgroup-manager=cgroupfs run --detach --pull=never --network=host --tmpfs=/tmp \
                     --ulimit=nofile=1024:1024 --ulimit=nproc=4096:4096";
        let mut all: Vec<&str> = words.split_whitespace().collect();
        let named = format!("--name={}", podman.name);
        let systems =
            ["/usr", "/lib", "/lib64", "/bin", "/etc"].map(|path| format!("--volume={path}:{path}:ro"));
        all.push(&named);
        all.extend(systems.iter().chain(options).map(String::as_str));
        all.push(Podman::IMAGE);
        all.extend(program.iter().map(String::as_str));
        tool("podman", &all);
        podman
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let removed = Command::new("podman")
            .args(["rm", "--force", "--time=0", &self.name])
            .output();
        // What it was killed with has left this, and its number is another process's here.
        let _ = fs::remove_file(&self.file);
        assert!(
            removed.is_ok_and(|removed| removed.status.success()) || std::thread::panicking(),
            "{} is removed",
            self.name
        );
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.file);
    }
}

impl Foreign {
    /// A running server with the superuser postgres.
    pub fn start() -> Foreign {
        let directory = directory(memory(), "pgdyno-foreign-");
        let place = directory.path().to_string_lossy().into_owned();
        tool("chown", &["postgres", &place]);
        let initdb = system_program("initdb");
        let foreign = Foreign {
            bin: initdb.parent().expect("a directory").to_owned(),
            directory,
        };
        foreign.as_postgres("initdb", &["-U", "postgres", "--auth=trust", "--no-sync"]);
        foreign.start_again();
        foreign
    }

    /// Starts it, as its owner.
    pub fn start_again(&self) {
        let log = format!("{}/log", self.directory.path().display());
        self.as_postgres("pg_ctl", &["-o", &self.options(), "-l", &log, "-w", "start"]);
    }

    fn options(&self) -> String {
        let place = self.directory.path().display();
        format!("-c listen_addresses='' -c fsync=off -k {place}")
    }

    /// Starts it as a container's: its processes have numbers of their own, and its data another
    /// path. It is killed with what is returned, and is reached by its socket and at the address,
    /// which is one of this host's own.
    pub fn start_contained(&self, address: &str) -> Contained {
        let (place, postgres) = (self.directory.path().display(), self.bin.join("postgres"));
        let script = format!(
            "mount --bind {place}/data /mnt && exec setpriv --reuid=postgres --regid=postgres --clear-groups {} -D /mnt {} \
             -c listen_addresses={address} >{place}/log 2>&1",
            postgres.display(),
            self.options().replace("-c listen_addresses=''", ""),
        );
        let contained = Contained {
            process: Command::new("unshare")
                .args(["--pid", "--mount", "--fork", "--kill-child", "sh", "-c", &script])
                .spawn()
                .expect("unshare runs"),
            file: self.data("postmaster.pid"),
        };
        until("an answer of the server in its namespace", || {
            let client = Client::connect(&self.target("postgres"), NoTls);
            client.map(drop).map_err(|error| error.to_string())
        });
        contained
    }

    /// Starts it in a container of podman's, with a volume for its data, and at an address of this
    /// host's alone: no socket of it is seen here.
    pub fn start_in_podman(&self, address: &str, options: &[&str]) -> Podman {
        const DATA: &str = "/var/lib/postgresql/data";
        let owner = fs::metadata(self.data("")).expect("its data");
        let own = [
            format!("--user={}:{}", owner.uid(), owner.gid()),
            format!("--volume={}:{DATA}", self.data("").display()),
        ];
        let options: Vec<String> = own
            .into_iter()
            .chain(options.iter().map(|&word| word.to_owned()))
            .collect();
        let postgres = self.bin.join("postgres").display().to_string();
        let words =
            format!("-D {DATA} -c fsync=off -c listen_addresses={address} -c unix_socket_directories=");
        let program: Vec<String> = [postgres.as_str()]
            .into_iter()
            .chain(words.split(' '))
            .map(str::to_owned)
            .collect();
        let name = format!("pgdyno-{}", address.replace('.', "-"));
        Podman::start(name, self.data("postmaster.pid"), &options, &program)
    }

    /// Stops it in order, as its owner.
    pub fn stop(&self) {
        self.as_postgres("pg_ctl", &["-m", "fast", "-w", "stop"]);
    }

    /// Kills its first process, and waits for the end of the others.
    pub fn kill(&self) {
        let data = self.data("");
        let text = fs::read_to_string(data.join("postmaster.pid")).expect("it runs");
        signal(text.lines().next().expect("a number"), "-KILL");
        until_is("processes in the data directory", 0, || self.processes());
    }

    /// How many processes its server has on this host.
    fn processes(&self) -> usize {
        let place = self.data("").canonicalize().expect("its data");
        let all = fs::read_dir("/proc").expect("processes").flatten();
        all.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == place))
            .count()
    }

    fn as_postgres(&self, program: &str, arguments: &[&str]) {
        let data = self.directory.path().join("data");
        let status = Command::new("setpriv")
            .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
            .arg(self.bin.join(program))
            .arg("-D")
            .arg(data)
            .args(arguments)
            .stdout(std::process::Stdio::null())
            .current_dir("/")
            .status()
            .expect("setpriv runs");
        // A test that fails may leave it stopped already.
        let log = || fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        assert!(
            status.success() || std::thread::panicking(),
            "{program}; its log:\n{}",
            log()
        );
    }

    /// A command of its owner's that restarts it, with the options it has.
    pub fn restart_command(&self) -> String {
        as_owner(&self.own_command("restart"))
    }

    /// Commands of its owner's that stop and start it.
    pub fn stop_and_start_commands(&self) -> [String; 2] {
        self.own_commands().map(|command| as_owner(&command))
    }

    /// Programs that stop and start it, for its owner to run.
    pub fn own_commands(&self) -> [String; 2] {
        let start = format!("-o \"{}\" start", self.options());
        [self.own_command("-m fast stop"), self.own_command(&start)]
    }

    fn own_command(&self, words: &str) -> String {
        let (place, program) = (self.directory.path().display(), self.bin.join("pg_ctl"));
        format!("{} -D {place}/data -l {place}/log -w {words}", program.display())
    }

    /// The server itself with its options, for its owner to run.
    pub fn server_command(&self) -> String {
        let (place, program) = (self.directory.path().display(), self.bin.join("postgres"));
        format!("{} -D {place}/data {}", program.display(), self.options())
    }

    /// A file or directory of its data.
    pub fn data(&self, name: &str) -> PathBuf {
        self.directory.path().join("data").join(name)
    }

    /// What ALTER SYSTEM has written.
    pub fn auto_conf(&self) -> String {
        let path = self.directory.path().join("data/postgresql.auto.conf");
        fs::read_to_string(path).expect("a file")
    }

    /// Adds a line to postgresql.conf, and reloads.
    pub fn configure(&self, line: &str) {
        let path = self.directory.path().join("data/postgresql.conf");
        let text = fs::read_to_string(&path).expect("a file");
        fs::write(&path, format!("{text}\n{line}\n")).expect("written");
        self.ask("SELECT pg_reload_conf()");
    }

    /// A library of its build.
    pub fn library(&self, name: &str) -> PathBuf {
        PathBuf::from(self.ask("SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'"))
            .join(format!("{name}.so"))
    }

    /// A connection string.
    pub fn target(&self, user: &str) -> String {
        let place = self.directory.path().display();
        format!("host={place} user={user} dbname=postgres")
    }

    /// One value, asked by the superuser.
    pub fn ask(&self, sql: &str) -> String {
        Foreign::ask_at(&self.target("postgres"), sql)
    }

    /// The same by a connection string.
    pub fn ask_at(target: &str, sql: &str) -> String {
        let mut client = Client::connect(target, NoTls).expect("it answers");
        let messages = client.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        });
        rows.into_iter().next().unwrap_or_default()
    }

    /// Everything that somebody could have made in the database.
    pub fn objects(&self) -> String {
        self.ask(
            "SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM (
               SELECT oid::regclass::text AS name FROM pg_class WHERE relnamespace <> 'pg_toast'::regnamespace
               UNION ALL SELECT oid::regprocedure::text FROM pg_proc UNION ALL SELECT extname FROM pg_extension
               UNION ALL SELECT datname FROM pg_database) AS of",
        )
    }
}

/// A command that runs another as the owner of a server.
fn as_owner(command: &str) -> String {
    format!("setpriv --reuid=postgres --regid=postgres --clear-groups {command}")
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // What a killed server's file has may be another process by now.
        if self.processes() > 0 {
            self.as_postgres("pg_ctl", &["-m", "immediate", "-w", "stop"]);
        }
    }
}
