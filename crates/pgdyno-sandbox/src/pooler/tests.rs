//! Plans, files and directories of poolers, without starting one.

use super::config::{Ports, check, files};
use super::*;

fn plan(kind: PoolerKind) -> PoolerPlan {
    PoolerPlan {
        kind,
        mode: PoolMode::Session,
        pool_size: 7,
        clients_max: 7,
        directory: PathBuf::from("/tmp/p"),
        extra: Vec::new(),
    }
}

fn server() -> Conninfo {
    let mut config = Config::new();
    config.host_path("/run/s").port(5433).user("postgres").dbname("d");
    Conninfo::from_config(config)
}

#[test]
fn what_a_program_cannot_keep_is_refused() {
    let refused = |plan: PoolerPlan, message: &str| {
        let error = check(&plan).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    let (bouncer, pool) = (plan(PoolerKind::PgBouncer), plan(PoolerKind::Pgpool));
    let mode = PoolMode::Transaction;
    check(&PoolerPlan {
        mode,
        ..bouncer.clone()
    })
    .unwrap();
    refused(PoolerPlan { mode, ..pool.clone() }, "no transaction mode");
    refused(
        PoolerPlan {
            pool_size: 6,
            ..pool.clone()
        },
        "7 clients, 6 sessions",
    );
    refused(
        PoolerPlan {
            pool_size: 0,
            ..bouncer.clone()
        },
        "1 to 10000 sessions",
    );
    let with = |plan: &PoolerPlan, name: &str, value: &str| PoolerPlan {
        extra: vec![(name.to_owned(), value.to_owned())],
        ..plan.clone()
    };
    check(&with(&bouncer, "server_idle_timeout", "30")).unwrap();
    refused(with(&bouncer, "listen_addr", "*"), "set by pgdyno");
    refused(with(&pool, "listen_addresses", "*"), "set by pgdyno");
    refused(with(&bouncer, "a = b\nlisten_addr", "*"), "name of a parameter");
    refused(with(&bouncer, "a", "1\nlisten_addr = *"), "more than one line");
}

#[test]
fn it_listens_on_this_machine_alone_and_asks_for_a_password() {
    let ports = Ports {
        clients: 6001,
        control: 6002,
    };
    for kind in [PoolerKind::PgBouncer, PoolerKind::Pgpool] {
        let files = files(&plan(kind), &server(), Path::new("/tmp/p"), &ports, "secret").unwrap();
        let text: String = files.iter().map(|(_, text)| text.as_str()).collect();
        for part in ["127.0.0.1", "6001", "/run/s", "5433", "md5"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        for (name, text) in &files {
            assert!(config::FILES.contains(name));
            assert_eq!(
                text.contains("secret"),
                ["users", "passwords"].contains(name),
                "{name}"
            );
        }
    }
    let long = PathBuf::from(format!("/tmp/{}", "x".repeat(100)));
    let error = files(&plan(PoolerKind::Pgpool), &server(), &long, &ports, "s").unwrap_err();
    assert!(error.to_string().contains("shorter"), "{error}");
}

#[test]
fn somebodys_directory_is_not_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("precious"), "mine").unwrap();
    let error = own_directory(dir.path(), None).unwrap_err().to_string();
    assert!(error.contains("neither empty"), "{error}");
    assert!(!Pooler::end_left_behind(dir.path()).unwrap());
    fs::write(dir.path().join("pooler.json"), "{ torn").unwrap();
    let error = Pooler::end_left_behind(dir.path()).unwrap_err().to_string();
    assert!(error.contains("pooler.json"), "{error}");
}

#[test]
fn a_log_is_shown_without_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    assert_eq!(last_lines(&log, "secret"), "nothing");
    fs::write(&log, "1\n2\n3\n\n4\n5\n6\nwrong: secret\n").unwrap();
    assert_eq!(last_lines(&log, "secret"), "2; 3; 4; 5; 6; wrong: ***");
}
