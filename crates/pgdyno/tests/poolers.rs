//! Loads through poolers: pgbouncer in both of its modes and pgpool-II, in front of the oldest and the newest version.

mod common;

use common::{Home, Said};
use pgdyno_server::pause;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A pooler in front of the sandbox "x", run by the user that runs the server: pgbouncer refuses to be root.
struct Pooler {
    process: Child,
    port: u16,
    program: &'static str,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

impl Pooler {
    /// `files` are those of its own directory; the program is started with `arguments` there.
    fn start(
        home: &Home,
        port: u16,
        program: &'static str,
        files: &[(&str, String)],
        arguments: &[&str],
    ) -> Pooler {
        let owner = fs::metadata(home.data("x")).expect("a directory");
        let directory = directory(home);
        fs::create_dir_all(&directory).expect("made");
        for (name, text) in files {
            let path = directory.join(name);
            fs::write(&path, text).expect("written");
            chown(&path, Some(owner.uid()), Some(owner.gid())).expect("owned");
        }
        chown(&directory, Some(owner.uid()), Some(owner.gid())).expect("owned");
        let log = fs::File::create(home.file("pooler.log")).expect("a log");
        // Where it is, is in the path of few but root.
        let installed = format!("/usr/sbin/{program}");
        let mut command = Command::new(if fs::exists(&installed).unwrap_or(false) {
            &installed
        } else {
            program
        });
        command
            .args(arguments)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        if fs::metadata("/proc/self").expect("a process").uid() == 0 {
            command.uid(owner.uid()).gid(owner.gid());
        }
        let process = command
            .spawn()
            .unwrap_or_else(|e| panic!("{program}: {e}; `scripts/need.sh test` installs it"));
        let pooler = Pooler {
            process,
            port,
            program,
        };
        let limit = Instant::now() + Duration::from_secs(30);
        // pgpool listens before it has somebody to answer.
        while postgres::Client::connect(&pooler.target(), postgres::NoTls).is_err() {
            let log = || fs::read_to_string(home.file("pooler.log")).unwrap_or_default();
            assert!(Instant::now() < limit, "{program} does not answer:\n{}", log());
            pause(Duration::from_millis(50));
        }
        pooler
    }

    fn bouncer(home: &Home, mode: &str) -> Pooler {
        let port = free_port();
        let text = format!(
            "[databases]\npostgres = host={} port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\nmax_client_conn = 100\ndefault_pool_size = 5\n",
            home.file("state/sandboxes/x/socket").display(),
            home.record("x")["port"],
        );
        Pooler::start(home, port, "pgbouncer", &[("pooler.ini", text)], &["pooler.ini"])
    }

    fn pgpool(home: &Home) -> Pooler {
        let (port, control) = (free_port(), free_port());
        let here = directory(home);
        let here = here.display();
        let text = format!(
            "backend_clustering_mode = 'raw'\nlisten_addresses = '127.0.0.1'\nport = {port}\nsocket_dir = '{here}'\n\
             pcp_listen_addresses = '127.0.0.1'\npcp_port = {control}\npcp_socket_dir = '{here}'\n\
             wd_ipc_socket_dir = '{here}'\nbackend_hostname0 = '{}'\nbackend_port0 = {}\nbackend_weight0 = 1\n\
             num_init_children = 24\nmax_pool = 2\npool_passwd = ''\nenable_pool_hba = off\nlogdir = '{here}'\n\
             pid_file_name = '{here}/pid'\nsr_check_period = 0\nhealth_check_period = 0\n",
            home.file("state/sandboxes/x/socket").display(),
            home.record("x")["port"],
        );
        let files = [
            ("pooler.conf", text),
            ("pcp.conf", String::new()),
            ("hba.conf", String::new()),
        ];
        let arguments = ["-n", "-f", "pooler.conf", "-F", "pcp.conf", "-a", "hba.conf"];
        Pooler::start(home, port, "pgpool", &files, &arguments)
    }

    fn target(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    fn bench(&self, home: &Home, clients: &str, workload: &str, protocol: &str) -> Said {
        home.run(&[
            "bench",
            &self.target(),
            "--json",
            "-c",
            clients,
            "-j",
            "2",
            "-t",
            "150",
            "-w",
            workload,
            "--protocol",
            protocol,
        ])
    }

    /// A load whose every commit the server confirms. Which of its sessions pgpool gives is its own choice, so that
    /// some may not have told their counts: that is said then.
    fn agrees(&self, home: &Home, clients: u32, protocol: &str) {
        for workload in ["simple", "tpcb"] {
            let words = format!("{workload} {protocol}");
            let result = self
                .bench(home, &clients.to_string(), workload, protocol)
                .fine()
                .json();
            assert_eq!(result["committed"], clients * 150, "{words}: {result}");
            assert_eq!(result["failed"], 0, "{words}: {result}");
            let unchecked = self.program == "pgpool"
                && result["unchecked"]
                    .as_str()
                    .is_some_and(|why| why.contains("pooler"));
            assert!(
                result["cross_check"]["agrees"] == true || unchecked,
                "{words}: {result}"
            );
        }
    }

    /// What a session that others get next was left with.
    fn left_behind(&self) -> Vec<String> {
        let mut client = postgres::Client::connect(&self.target(), postgres::NoTls).expect("it answers");
        let sql = "SELECT current_setting('statement_timeout') WHERE current_setting('statement_timeout') <> '0' \
                   UNION ALL SELECT name FROM pg_prepared_statements";
        let messages = client.simple_query(sql).expect("an answer");
        messages
            .iter()
            .filter_map(|message| match message {
                postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
            .collect()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Both end at once, pgpool with its children.
        let signal = if self.program == "pgpool" { "-INT" } else { "-TERM" };
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args([signal, &pid]).status();
        let _ = self.process.wait();
    }
}

fn directory(home: &Home) -> PathBuf {
    home.file("pooler")
}

fn through_pgbouncers_transactions(version: &str) {
    let home = Home::new();
    home.sandbox("x", &["-V", version]);
    let pooler = Pooler::bouncer(&home, "transaction");
    // More clients than sessions.
    for protocol in ["simple", "extended"] {
        pooler.agrees(&home, 16, protocol);
    }
    // Twice: the first time leaves nothing behind that the second stumbles over.
    for clients in ["16", "1"] {
        let expected = [
            "keeps no prepared statements",
            "pgbouncer",
            "transaction mode",
            "hint: --protocol extended or simple",
            "max_prepared_statements",
        ];
        let said = pooler
            .bench(&home, clients, "tpcb", "prepared")
            .fails(1, &expected);
        assert_eq!(said.err.lines().count(), 2, "a line and a hint:\n{}", said.err);
        assert_eq!(said.out, "");
    }
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
    pooler.agrees(&home, 2, "extended");
}

fn through_pgbouncers_sessions(version: &str) {
    let home = Home::new();
    home.sandbox("x", &["-V", version]);
    let pooler = Pooler::bouncer(&home, "session");
    for protocol in ["simple", "extended", "prepared"] {
        // One session of five is for questions.
        pooler.agrees(&home, 4, protocol);
    }
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
}

fn through_pgpool(version: &str) {
    let home = Home::new();
    home.sandbox("x", &["-V", version]);
    let pooler = Pooler::pgpool(&home);
    for protocol in ["simple", "extended", "prepared"] {
        pooler.agrees(&home, 8, protocol);
    }
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
}

#[test]
fn pgbouncer_in_transaction_mode_before_the_oldest_version() {
    through_pgbouncers_transactions("14");
}

#[test]
fn pgbouncer_in_transaction_mode_before_the_newest_version() {
    through_pgbouncers_transactions("18");
}

#[test]
fn pgbouncer_in_session_mode_before_the_oldest_version() {
    through_pgbouncers_sessions("14");
}

#[test]
fn pgbouncer_in_session_mode_before_the_newest_version() {
    through_pgbouncers_sessions("18");
}

#[test]
fn pgpool_before_the_oldest_version() {
    through_pgpool("14");
}

#[test]
fn pgpool_before_the_newest_version() {
    through_pgpool("18");
}
