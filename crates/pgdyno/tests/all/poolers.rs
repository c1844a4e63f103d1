//! Loads through poolers: pgbouncer in both of its modes and pgpool-II, in front of the oldest and
//! the newest version.

use common::machine::newest;
use common::{Home, Said};
use pgdyno_sandbox::{PoolMode, PoolerKind, PoolerPlan, Sandbox};
use pgdyno_server::postgres;
use serde_json::Value;

/// A pooler in front of the sandbox "x".
struct Pooler(pgdyno_sandbox::Pooler);

impl Pooler {
    fn start(home: &Home, kind: PoolerKind, mode: PoolMode, pool_size: u32, clients_max: u32) -> Pooler {
        let plan = PoolerPlan {
            kind,
            mode,
            pool_size,
            clients_max,
            directory: home.file("pooler"),
            extra: Vec::new(),
        };
        let sandbox = Sandbox::open(&home.file("state/sandboxes"), "x").expect("a sandbox");
        let pooler = pgdyno_sandbox::Pooler::start(&sandbox, &plan);
        Pooler(pooler.unwrap_or_else(|e| panic!("{e}; `scripts/need.sh test` installs it")))
    }

    fn bouncer(home: &Home, mode: PoolMode) -> Pooler {
        Pooler::start(home, PoolerKind::PgBouncer, mode, 5, 100)
    }

    fn pgpool(home: &Home) -> Pooler {
        Pooler::start(home, PoolerKind::Pgpool, PoolMode::Session, 24, 24)
    }

    fn target(&self) -> String {
        let password = self.0.conninfo().config().get_password().unwrap_or_default();
        format!(
            "{} password={}",
            self.0.conninfo().without_password(),
            String::from_utf8_lossy(password)
        )
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

    /// A load whose every commit the server confirms. Which of its sessions pgpool gives is its own
    /// choice, so that some may not have sent their counts: that is reported then.
    fn agrees(&self, home: &Home, clients: u32, protocol: &str) {
        for workload in ["simple", "tpcb"] {
            let case = format!("{workload} {protocol}");
            let result = self
                .bench(home, &clients.to_string(), workload, protocol)
                .fine()
                .json();
            assert_eq!(result["committed"], clients * 150, "{case}: {result}");
            assert_eq!(result["failed"], 0, "{case}: {result}");
            let unchecked = self.0.kind() == PoolerKind::Pgpool
                && result["unchecked"]
                    .as_str()
                    .is_some_and(|why| why.contains("pooler"));
            assert!(
                result["cross_check"]["agrees"] == true || unchecked,
                "{case}: {result}"
            );
        }
    }

    /// An experiment file.
    fn file(home: &Home, measure_s: u32, load: &str) -> String {
        let text = format!(
            "name = \"pooled\"\nquestion = \"Does it work?\"\ndesign = \"one-at-a-time\"\nblocks = 1\n[data]\nscale = 1\n\
             [load]\nclients = 3\nthreads = 1\nrate = \"40\"\nwarmup_s = 0.2\nmeasure_s = {measure_s}\n{load}\n\
             [[step]]\nname = \"memory\"\nsettings.work_mem = \"8MB\"\n"
        );
        home.write("pooled.toml", &text).to_string_lossy().into_owned()
    }

    fn run(&self, home: &Home, workload: &str, protocol: &str, more: &str) -> Said {
        self.run_with(
            home,
            &format!("workload = \"{workload}\"\nprotocol = \"{protocol}\"\n{more}"),
            &[],
        )
    }

    fn run_with(&self, home: &Home, load: &str, flags: &[&str]) -> Said {
        let file = Pooler::file(home, 1, load);
        let target = self.target();
        home.run(&[&["run", &file, "--target", &target, "--json"], flags].concat())
    }

    /// An experiment whose every trial is finished and counted; its trials.
    fn experiment(&self, home: &Home, workload: &str, protocol: &str, more: &str) -> Vec<Value> {
        let report = self.run(home, workload, protocol, more).fine().json();
        let trials = report["trials"].as_array().expect("trials").clone();
        assert_eq!(trials.len(), 2, "{report}");
        for trial in &trials {
            assert_eq!(trial["status"], "finished", "{trial}");
            let is_open = trial["disturbances"]
                .to_string()
                .contains("sessions of a pooler are still open");
            assert!(trial["cross_check"]["agrees"] == true || is_open, "{trial}");
        }
        trials
    }

    /// What sessions that others get next were left with, and locks that are left.
    fn left_behind(&self) -> Vec<String> {
        let config = self.0.conninfo().config();
        let mut clients: Vec<_> = (0..4)
            .map(|_| config.connect(postgres::NoTls).expect("it answers"))
            .collect();
        // What a pooler itself sets for each of its clients is not a trace.
        let sql = "SELECT name || '=' || setting FROM pg_settings WHERE source = 'session' AND name NOT IN \
                   ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings') \
                   UNION ALL SELECT name FROM pg_prepared_statements \
                   UNION ALL SELECT DISTINCT 'a lock' FROM pg_locks WHERE locktype = 'advisory'";
        for client in &mut clients {
            client.simple_query("BEGIN").expect("a session");
        }
        let mut left = Vec::new();
        for client in &mut clients {
            for message in client.simple_query(sql).expect("an answer") {
                if let postgres::SimpleQueryMessage::Row(row) = message {
                    left.extend(row.get(0).map(str::to_owned));
                }
            }
        }
        left
    }
}

fn through_pgbouncers_transactions(version: &str) {
    let home = Home::new();
    home.sandbox("x", &["-V", version]);
    let pooler = Pooler::bouncer(&home, PoolMode::Transaction);
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
    // Nothing that is asked or made for data stays with a session either.
    let target = pooler.target();
    home.run(&["data", "create", &target, "--scale", "1", "--replace"])
        .fine();
    home.run(&["data", "check", &target]).fine();
    let prepared = "workload = \"tpcb\"\nprotocol = \"prepared\"";
    let unknown = "script = \"SELECT no_such FROM pg_class;\"\nprotocol = \"extended\"";
    // The dry run finds what the run finds.
    for flags in [&["--dry-run"][..], &[]] {
        pooler.run_with(&home, prepared, flags).fails(
            1,
            &[
                "keeps no prepared statements",
                "hint: --set load.protocol=extended",
            ],
        );
        pooler
            .run_with(&home, unknown, flags)
            .fails(1, &["no_such", "42703"]);
    }
    pooler.experiment(&home, "tpcb", "extended", "");
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
}

fn through_pgbouncers_sessions(version: &str) {
    let home = Home::new();
    home.sandbox("x", &["-V", version]);
    let pooler = Pooler::bouncer(&home, PoolMode::Session);
    for protocol in ["simple", "extended", "prepared"] {
        // One session of five is for questions.
        pooler.agrees(&home, 4, protocol);
    }
    pooler.experiment(&home, "tpcb", "prepared", "");
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
}

fn through_pgpool(version: &str) {
    let home = Home::new();
    home.sandbox("x", &["-V", version]);
    let pooler = Pooler::pgpool(&home);
    for protocol in ["simple", "extended", "prepared"] {
        pooler.agrees(&home, 8, protocol);
    }
    let trials = pooler.experiment(&home, "tpcb", "prepared", "");
    // Of so few transactions a word is stored with the trial, and shown.
    let shown = home.run(&["show"]).fine();
    for trial in trials {
        assert!(
            trial["disturbances"]
                .to_string()
                .contains("transactions were measured"),
            "{trial}"
        );
    }
    assert!(shown.out.contains("transactions were measured"), "{}", shown.out);
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
}

#[test]
fn pgbouncer_in_transaction_mode_before_the_oldest_version() {
    through_pgbouncers_transactions("14");
}

#[test]
fn pgbouncer_in_transaction_mode_before_the_newest_version() {
    through_pgbouncers_transactions(&newest());
}

#[test]
fn pgbouncer_in_session_mode_before_the_oldest_version() {
    through_pgbouncers_sessions("14");
}

#[test]
fn pgbouncer_in_session_mode_before_the_newest_version() {
    through_pgbouncers_sessions(&newest());
}

/// No transaction may have two messages there: neither the load's, nor those that make sessions
/// send their counts.
#[test]
fn pgbouncer_in_statement_mode_before_the_newest_version() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let pooler = Pooler::bouncer(&home, PoolMode::Statement);
    pooler.experiment(&home, "simple", "extended", "");
    let load = "workload = \"simple\"\nprotocol = \"extended\"";
    let dry = pooler.run_with(&home, load, &["--dry-run"]).fine().json();
    assert!(
        dry["not_proven"].to_string().contains("statements of reference"),
        "{dry}"
    );
}

#[test]
fn pgpool_before_the_oldest_version() {
    through_pgpool("14");
}

#[test]
fn pgpool_before_the_newest_version() {
    through_pgpool(&newest());
}

/// What a store in the sandbox's own database says, reached through a pooler.
fn store_through(mode: PoolMode) -> (Home, Said) {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let said = home.run(&["list", "--store", &Pooler::bouncer(&home, mode).target()]);
    (home, said)
}

#[test]
fn store_behind_a_pooler_in_transaction_mode_is_refused() {
    let (_home, said) = store_through(PoolMode::Transaction);
    said.fails(1, &["a store needs one that stays", "session mode"]);
}

#[test]
fn store_behind_a_pooler_in_session_mode_is_looked_for() {
    let (_home, said) = store_through(PoolMode::Session);
    let errors = said.fine().err;
    assert!(errors.contains("no experiments in postgres://"), "{errors}");
}

#[test]
fn interrupted_run_through_a_pooler_is_resumed_through_it() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let pooler = Pooler::bouncer(&home, PoolMode::Transaction);
    let (target, file) = (
        pooler.target(),
        Pooler::file(
            &home,
            8,
            "workload = \"tpcb\"\nprotocol = \"extended\"\nthink_ms = 20",
        ),
    );
    let mut child = home.spawn(&["run", &file, "--target", &target]);
    // Nothing else writes there.
    let loaded = "SELECT count(*) > 0 FROM pgbench_history";
    common::until_is("the load", "t".to_owned(), || {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        home.ask("x", loaded)
    });
    common::signal(child.id(), "-INT");
    common::said(child.wait_with_output().expect("it ends")).fails(1, &["stopped"]);
    home.run(&["resume", "--target", &target]).fine();
    let report = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!(common::ended(&report, "finished"), 2, "{report}");
    assert_eq!(home.ask("x", "SHOW work_mem"), "4MB");
    assert_eq!(pooler.left_behind(), Vec::<String>::new());
}
