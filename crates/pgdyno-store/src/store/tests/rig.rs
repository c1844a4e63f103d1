//! Where the tests' stores are: a file of SQLite each, or a schema each of a PostgreSQL server that
//! is made for the tests and gone with their process.

use crate::store::{Integrity, Link, Reader, Store, StoreError};
use pgdyno_sandbox::{Binaries, Plan, Sandbox, create};
use pgdyno_server::postgres::{Client, Config, NoTls};
use pgdyno_server::{Conninfo, ServerError, Session};
use pgdyno_testing::{Lane, directory, memory, system_program};
use rusqlite::Connection;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// A place for one store.
pub(super) enum Rig {
    File { _dir: tempfile::TempDir, path: PathBuf },
    Server { schema: String },
}

/// The same test in every kind of place.
pub(super) fn each(test: impl Fn(&Rig)) {
    test(&Rig::file());
    test(&Rig::server());
}

impl Rig {
    pub(super) fn file() -> Rig {
        let dir = tempfile::tempdir().unwrap();
        // What SQLite's URIs and shells have a meaning for.
        let path = dir.path().join("o?t#h %er.sqlite");
        Rig::File { _dir: dir, path }
    }

    pub(super) fn server() -> Rig {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Rig::Server {
            schema: format!("pgdyno \"{number}"),
        }
    }

    pub(super) fn try_open(&self) -> Result<Store, StoreError> {
        match self {
            Rig::File { path, .. } => Store::open(path),
            Rig::Server { schema } => Store::over(link(schema)),
        }
    }

    pub(super) fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    pub(super) fn try_reader(&self) -> Result<Reader, StoreError> {
        match self {
            Rig::File { path, .. } => Reader::of_file(path, Duration::ZERO),
            Rig::Server { schema } => Reader::over(link(schema)),
        }
    }

    pub(super) fn reader(&self) -> Reader {
        self.try_reader().unwrap()
    }

    pub(super) fn check(&self) -> Integrity {
        self.reader().check().unwrap()
    }

    /// Statements past the store's rules, and past the database's own.
    pub(super) fn sql(&self, text: &str) {
        match self {
            Rig::File { path, .. } => {
                let connection = Connection::open(path).unwrap();
                connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
                connection.execute_batch(text).unwrap();
                connection.close().unwrap();
            }
            Rig::Server { schema } => {
                let mut client = connect();
                let path = format!("SET search_path = \"{}\"", schema.replace('"', "\"\""));
                client.batch_execute(&path).unwrap();
                // Keys that refer to others are kept by triggers, which a replica's session skips.
                client
                    .batch_execute("SET session_replication_role = replica")
                    .unwrap();
                client.batch_execute(text).unwrap();
            }
        }
    }

    /// Bytes, by their hexadecimal digits.
    pub(super) fn blob(&self, digits: &str) -> String {
        match self {
            Rig::File { .. } => format!("x'{digits}'"),
            Rig::Server { .. } => format!("'\\x{digits}'::bytea"),
        }
    }

    /// What the file is, to the byte; nothing of a server's.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Rig::File { path, .. } => fs::read(path).unwrap(),
            Rig::Server { .. } => Vec::new(),
        }
    }
}

pub(super) fn link(schema: &str) -> Link {
    Link::new("postgres://test".to_owned(), schema.to_owned(), || {
        Ok(session(config())?)
    })
}

/// A store's session.
pub(super) fn session(config: Config) -> Result<Session, ServerError> {
    let name = config.get_application_name().unwrap_or("pgdyno").to_owned();
    Session::connect_as(&Conninfo::from_config(config), &name)
}

/// A session of the superuser.
pub(super) fn connect() -> Client {
    config().connect(NoTls).unwrap()
}

pub(super) fn config() -> Config {
    static SERVER: OnceLock<Config> = OnceLock::new();
    SERVER.get_or_init(server).clone()
}

/// Gone with the process: a static is never dropped.
static MADE: Mutex<Option<(Sandbox, tempfile::TempDir, Lane)>> = Mutex::new(None);

fn server() -> Config {
    let lane = Lane::enter();
    let root = directory(memory(), "pgdyno-test-");
    let initdb = system_program("initdb");
    let binaries = Binaries::in_directory(initdb.parent().unwrap()).unwrap();
    let plan = Plan::plain("store", binaries);
    let sandbox = create(root.path(), &plan).unwrap();
    let config = sandbox.conninfo().config().clone();
    // For connections that go over TCP.
    config
        .connect(NoTls)
        .unwrap()
        .batch_execute("CREATE ROLE far SUPERUSER LOGIN PASSWORD 'not-to-be-shown'")
        .unwrap();
    *MADE.lock().unwrap() = Some((sandbox, root, lane));
    // SAFETY: the function takes and gives nothing, and does not unwind.
    unsafe { libc::atexit(remove) };
    config
}

extern "C" fn remove() {
    let made = MADE.lock().ok().and_then(|mut made| made.take());
    if let Some((sandbox, _root, _lane)) = made {
        let _ = sandbox.destroy();
    }
}
