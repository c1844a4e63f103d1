//! Several hosts in one connection string: which server is taken, and that questions and load go to
//! it alone.

use common::machine::newest;
use common::{DeafPort, Home, Said, said, signal, until_is};
use std::fs;

/// A primary "p", a standby "s", and a primary "r" whose sessions are read-only.
struct Servers {
    home: Home,
    /// Where nobody listens.
    nobody: DeafPort,
}

impl Servers {
    fn start(version: &str) -> Servers {
        let home = Home::new();
        for name in ["p", "s", "r"] {
            home.run(&["sandbox", "create", name, "-V", version]).fine();
            home.run(&["sandbox", "stop", name]).fine();
            let rules = "local all all trust\nhost all all 127.0.0.1/32 trust\n";
            fs::write(home.data(name).join("pg_hba.conf"), rules).expect("written");
        }
        // Without a primary it stays what it is.
        fs::write(home.data("s").join("standby.signal"), "").expect("written");
        for name in ["p", "s", "r"] {
            home.run(&["sandbox", "start", name]).fine();
        }
        assert_eq!(home.ask("s", "SELECT pg_is_in_recovery()"), "t");
        home.ask("r", "ALTER SYSTEM SET default_transaction_read_only = on");
        home.run(&["sandbox", "restart", "r"]).fine();
        Servers {
            home,
            nobody: DeafPort::new(),
        }
    }

    fn port(&self, name: &str) -> String {
        match name {
            "x" => self.nobody.number.to_string(),
            name => self.home.record(name)["port"].to_string(),
        }
    }

    fn ports(&self, names: &[&str]) -> String {
        let ports: Vec<String> = names.iter().map(|name| self.port(name)).collect();
        ports.join(",")
    }

    fn bench(&self, target: &str, variables: &[(&str, &str)]) -> Said {
        let mut command = self.home.command(&[
            "bench", target, "-w", "simple", "-c", "3", "-j", "2", "-t", "100", "--json",
        ]);
        command
            .env("HOME", self.home.path.path())
            .env("PGUSER", "postgres")
            .env("PGDATABASE", "postgres");
        said(
            command
                .envs(variables.iter().copied())
                .output()
                .expect("pgdyno runs"),
        )
    }

    /// A load over these servers in this order goes to `expected`, and to it alone.
    fn taken(&self, names: &[&str], parameters: &str, expected: &str) -> Said {
        let hosts = vec!["127.0.0.1"; names.len()].join(",");
        let said = self
            .bench(
                &format!("host={hosts} port={} {parameters}", self.ports(names)),
                &[],
            )
            .fine();
        let result = said.json();
        let place = format!("127.0.0.1:{}", self.port(expected));
        assert_eq!(
            result["server"],
            place.as_str(),
            "{names:?} {parameters}: {}",
            said.err
        );
        assert_eq!(result["committed"], 300, "{names:?} {parameters}: {result}");
        assert_eq!(
            result["cross_check"]["agrees"], true,
            "{names:?} {parameters}: {result}"
        );
        said
    }
}

fn the_server_that_is_meant(version: &str) {
    let servers = Servers::start(version);
    let wants = |names: &[&str], wanted: &str, expected: &str| {
        servers.taken(names, &format!("target_session_attrs={wanted}"), expected)
    };
    servers.taken(&["x", "p", "s"], "", "p");
    servers.taken(&["s", "p"], "", "s");
    let said = wants(&["x", "s", "r", "p"], "read-write", "p");
    for message in [
        format!("of 4 hosts, 127.0.0.1:{} is taken", servers.port("p")),
        format!("not 127.0.0.1:{}: Connection refused", servers.port("x")),
        format!("not 127.0.0.1:{}: it is a standby", servers.port("s")),
        format!("not 127.0.0.1:{}: its sessions are read-only", servers.port("r")),
    ] {
        assert!(
            said.err.contains(&message),
            "\"{message}\" is not in:\n{}",
            said.err
        );
    }
    wants(&["s", "r", "p"], "primary", "r");
    wants(&["p", "r", "s"], "read-only", "r");
    wants(&["p", "s"], "standby", "s");
    wants(&["p", "s"], "prefer-standby", "s");
    wants(&["p", "r"], "prefer-standby", "p");
    servers.taken(&["x", "s"], "load_balance_hosts=random", "s");
    // A URI, and the environment.
    let uri = format!(
        "postgresql://127.0.0.1:{},127.0.0.1:{}/",
        servers.port("s"),
        servers.port("p")
    );
    let result = servers
        .bench(&uri, &[("PGTARGETSESSIONATTRS", "primary")])
        .fine()
        .json();
    assert_eq!(
        result["server"],
        format!("127.0.0.1:{}", servers.port("p")).as_str()
    );
    // Names, with addresses that go before them.
    let target = format!(
        "host=one.example,two.example hostaddr=127.0.0.1,127.0.0.1 port={} target_session_attrs=standby",
        servers.ports(&["p", "s"])
    );
    let result = servers.bench(&target, &[]).fine().json();
    let place = format!("two.example:{} (127.0.0.1)", servers.port("s"));
    assert_eq!(result["server"], place.as_str());

    let target = format!(
        "host=127.0.0.1,127.0.0.1,127.0.0.1 port={} target_session_attrs=standby",
        servers.ports(&["p", "x", "r"])
    );
    let said = servers
        .bench(&target, &[])
        .fails(1, &["no server for target_session_attrs=standby"]);
    for message in [
        format!("127.0.0.1:{}: it is not a standby; ", servers.port("p")),
        format!("127.0.0.1:{}: Connection refused", servers.port("x")),
        format!("127.0.0.1:{}: it is not a standby\n", servers.port("r")),
    ] {
        assert!(
            said.err.contains(&message),
            "\"{message}\" is not in:\n{}",
            said.err
        );
    }
    assert_eq!(said.err.lines().count(), 2, "a line and a hint:\n{}", said.err);
}

#[test]
fn the_server_that_is_meant_of_the_oldest_version() {
    the_server_that_is_meant("14");
}

#[test]
fn the_server_that_is_meant_of_the_newest_version() {
    the_server_that_is_meant(&newest());
}

#[test]
fn a_refused_password_ends_the_search() {
    let servers = Servers::start("18");
    let home = &servers.home;
    let rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(home.data("p").join("pg_hba.conf"), rules).expect("written");
    home.ask("p", "ALTER ROLE postgres PASSWORD 'open sesame'");
    home.run(&["sandbox", "restart", "p"]).fine();
    let run = |password: &str| {
        let target = format!(
            "host=127.0.0.1,127.0.0.1,127.0.0.1 port={}",
            servers.ports(&["x", "p", "s"])
        );
        servers.bench(&target, &[("PGPASSWORD", password)])
    };
    let said = run("wrong sesame");
    let said = said.fails(1, &["password authentication failed", &servers.port("p")]);
    assert!(!said.err.contains("sesame"), "{}", said.err);
    run("open sesame").fine();
    home.run(&["sandbox", "stop", "p"]).fine();
    let result = run("open sesame").fine().json();
    assert_eq!(
        result["server"],
        format!("127.0.0.1:{}", servers.port("s")).as_str()
    );
}

/// A server that went away is waited for; another one that is named beside it is not taken.
#[test]
fn a_lost_connection_is_made_again_to_the_same_server() {
    let servers = Servers::start("18");
    let home = &servers.home;
    let target = format!(
        "host=127.0.0.1,127.0.0.1 port={} user=postgres dbname=postgres",
        servers.ports(&["p", "s"])
    );
    let waits = home.write("waits.sql", "SELECT pg_sleep(0.002);\n");
    let waits = waits.to_string_lossy();
    let load = home.spawn(&[
        "bench", &target, "-f", &waits, "-c", "4", "-d", "1h", "--warmup", "0s",
    ]);
    let of_load = |name: &str| {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno load'";
        home.ask(name, sql)
    };
    home.until_driven("p");
    home.run(&["sandbox", "restart", "p"]).fine();
    until_is("sessions of the load", "4".to_owned(), || of_load("p"));
    assert_eq!(of_load("s"), "0");
    signal(load.id(), "-INT");
    said(load.wait_with_output().expect("it ends")).fails(1, &["the load broke off", "the server restarted"]);
}

/// Facts, data and experiments go the same way.
#[test]
fn other_commands_take_the_same_server() {
    let servers = Servers::start("18");
    let target = format!(
        "host=127.0.0.1,127.0.0.1 port={} user=postgres dbname=postgres target_session_attrs=read-write",
        servers.ports(&["s", "p"])
    );
    let home = &servers.home;
    home.run(&["data", "create", &target, "--scale", "1"]).fine();
    assert_eq!(home.ask("p", "SELECT count(*) FROM pgbench_branches"), "1");
    let said = home.run(&["facts", &target]).fine();
    assert!(said.err.contains("of 2 hosts"), "{}", said.err);
    let before = fs::read(home.data("p").join("postgresql.auto.conf")).expect("a file");
    let steps = "[[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n";
    let text = format!(
        "name = \"hosts\"\nquestion = \"Where?\"\ndesign = \"one-at-a-time\"\nblocks = 1\nseed = 5\n[target]\n\
         connection = \"{target}\"\nrestart = \"when-needed\"\n[data]\nscale = 1\n[load]\nworkload = \"tpcb\"\n\
         clients = 2\nrate = \"200\"\nwarmup_s = 0.2\nmeasure_s = 1.0\n{steps}"
    );
    let path = home.write("experiment.toml", &text);
    let said = home.run(&["run", &path.to_string_lossy()]).fine();
    assert!(said.err.contains("of 2 hosts"), "{}", said.err);
    assert_eq!(home.stored_trials(1).len(), 2, "{}", said.err);
    let after = fs::read(home.data("p").join("postgresql.auto.conf")).expect("a file");
    assert_eq!(before, after);
    home.run(&["data", "drop", &target]).fine();
    assert_eq!(home.ask("p", "SELECT to_regclass('pgbench_branches')"), "");
}
