//! A real standby: what is said of it and of its slot, and what the statements do.

use super::{advice, advised, client, cure, statements, until_advised};
use common::Home;
use postgres::{Client, NoTls};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A standby of the sandbox x, stopped with its test.
struct Standby {
    bin: PathBuf,
    directory: PathBuf,
}

impl Standby {
    /// Without a slot.
    fn of(home: &Home) -> Standby {
        let executable = fs::read_link(format!("/proc/{}/exe", home.postmaster("x").expect("it runs")));
        let standby = Standby {
            bin: executable
                .expect("a program")
                .parent()
                .expect("a directory")
                .to_owned(),
            directory: home.file("standby"),
        };
        // The binaries of sandboxes come without pg_basebackup.
        let (mut session, primary) = (client(home, "x"), home.data("x"));
        let (uid, gid) = owner_of(&fs::metadata(&primary).expect("a directory"));
        fs::create_dir(&standby.directory).expect("a directory");
        chown(&standby.directory, Some(uid), Some(gid)).expect("root");
        let data = PathBuf::from(standby.data());
        session
            .batch_execute("SELECT pg_backup_start('standby', true)")
            .expect("a backup begins");
        common::tool("cp", &["-a", &primary.to_string_lossy(), &standby.data()]);
        let sql = "SELECT labelfile FROM pg_backup_stop(false)";
        let label: String = session.query_one(sql, &[]).expect("a backup ends").get(0);
        let way = format!(
            "primary_conninfo = '{} application_name=stand'\n",
            home.config("x")
        );
        let auto = fs::read_to_string(data.join("postgresql.auto.conf")).unwrap_or_default();
        for (file, text) in [
            ("backup_label", label.as_str()),
            ("standby.signal", ""),
            ("postgresql.auto.conf", &(auto + &way)),
        ] {
            fs::write(data.join(file), text).expect("written");
            chown(data.join(file), Some(uid), Some(gid)).expect("root");
        }
        fs::remove_file(data.join("postmaster.pid")).expect("it was copied");
        standby.start();
        standby
    }

    fn data(&self) -> String {
        self.directory.join("data").to_string_lossy().into_owned()
    }

    /// As the user of the sandbox's server.
    fn run(&self, program: &str, arguments: &[&str]) {
        let (uid, gid) = owner_of(&fs::metadata(&self.directory).expect("a directory"));
        let status = Command::new("setpriv")
            .args([
                format!("--reuid={uid}"),
                format!("--regid={gid}"),
                "--clear-groups".into(),
            ])
            .arg(self.bin.join(program))
            .args(arguments)
            .stdout(std::process::Stdio::null())
            .current_dir("/")
            .status()
            .expect("setpriv runs");
        assert!(status.success(), "{program} {arguments:?}");
    }

    fn start(&self) {
        let place = self.directory.to_string_lossy();
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={place} -c port=5432 -c fsync=off -c wal_receiver_status_interval=1"
        );
        let log = format!("{place}/log");
        self.run(
            "pg_ctl",
            &["-D", &self.data(), "-o", &options, "-l", &log, "-w", "start"],
        );
    }

    fn stop(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "fast", "-w", "stop"]);
    }

    fn client(&self) -> Client {
        let config = format!("host={} user=postgres dbname=postgres", self.directory.display());
        Client::connect(&config, NoTls).expect("the standby answers")
    }

    fn execute(&self, sql: &str) {
        self.client().batch_execute(sql).expect(sql);
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        if Path::new(&self.data()).join("postmaster.pid").exists() {
            self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
        }
    }
}

fn owner_of(meta: &fs::Metadata) -> (u32, u32) {
    (meta.uid(), meta.gid())
}

/// Rows that are dead, and more transactions than a standby's report is usually behind.
fn kill_rows(session: &mut Client) {
    let burn = "DO $$ BEGIN FOR i IN 1..12000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";
    for sql in ["SET synchronous_commit = off", "UPDATE t SET n = n + 1", burn] {
        session.batch_execute(sql).expect(sql);
    }
}

#[test]
fn a_standby_is_not_advised_to_be_lost() {
    let home = Home::on_disk();
    let settings = [
        "autovacuum_naptime=3600",
        "max_slot_wal_keep_size=-1",
        "wal_init_zero=off",
        "autovacuum=off",
    ];
    let mut create = vec!["sandbox", "create", "x"];
    create.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    home.run(&create).fine();
    let standby = Standby::of(&home);
    let mut session = client(&home, "x");
    session
        .batch_execute("CREATE TABLE t AS SELECT generate_series(1, 110000) AS n")
        .expect("a table");
    let until = |what: &str, rule: &str, is_there| until_advised(&home, "x", what, rule, is_there);
    let severity = |rule: &str| {
        let said = advised(&home, "x");
        advice(&said, rule).map(|found| found["severity"].as_str().expect("a word").to_owned())
    };
    until("a standby without a slot", "standby-without-slot", true);
    assert_eq!(severity("standby-without-slot").as_deref(), Some("advice"));

    session
        .batch_execute("SELECT pg_create_physical_replication_slot('stand_slot', true)")
        .expect("a slot");
    standby.execute("ALTER SYSTEM SET primary_slot_name = 'stand_slot'");
    standby.execute("ALTER SYSTEM SET hot_standby_feedback = on");
    standby.execute("SELECT pg_reload_conf()");
    until("it reads its slot", "standby-without-slot", false);

    // A statement on the standby needs rows that die here.
    let mut reader = standby.client();
    reader
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")
        .expect("a snapshot");
    let fed = "SELECT bool_or(active AND xmin IS NOT NULL)::text FROM pg_replication_slots";
    common::until_is("its feedback is in the slot", "true".to_owned(), || {
        home.ask("x", fed)
    });
    kill_rows(&mut session);
    let said = until("the standby holds rows", "xid-held-back", true);
    let held = advice(&said, "xid-held-back").expect("advice");
    let place = "On the standby stand, or end its oldest statement there";
    let sql = [
        "ALTER SYSTEM SET hot_standby_feedback = off;",
        "SELECT pg_reload_conf();",
    ];
    assert_eq!(
        statements(held),
        sql.map(|sql| (sql.to_owned(), Some(place.to_owned()))),
        "{held:#}"
    );
    assert_eq!(held["severity"], "advice");
    let why = held["why"].as_str().expect("a text");
    assert!(why.contains("(since when is not known)"), "{why}");
    // Autovacuum is off too; its steps end the holder first, there, and clean here.
    let steps = statements(advice(&said, "autovacuum-off-written").expect("advice"));
    let at = |sql: &str| {
        steps
            .iter()
            .position(|step| step.0 == sql)
            .unwrap_or_else(|| panic!("{steps:?}"))
    };
    assert!(at(sql[0]) < at("VACUUM (ANALYZE);"), "{steps:?}");
    for sql in sql {
        standby.execute(sql);
    }
    until("nothing is held", "xid-held-back", false);
    let count = "SELECT count(*) FROM pg_replication_slots WHERE active";
    assert_eq!(home.ask("x", count), "1", "the standby keeps its slot");
    cure(&home, "x", &mut session, "dead-rows");

    // A standby that is gone, and whose slot holds rows and WAL.
    standby.execute("ALTER SYSTEM SET hot_standby_feedback = on");
    standby.execute("SELECT pg_reload_conf()");
    common::until_is("its feedback is in the slot", "true".to_owned(), || {
        home.ask("x", fed)
    });
    drop(reader);
    standby.stop();
    session
        .batch_execute("UPDATE t SET n = n + 1")
        .expect("dead rows");
    let said = until("the slot holds rows", "xid-held-back", true);
    let held = statements(advice(&said, "xid-held-back").expect("advice"));
    assert_eq!(
        held,
        [("SELECT pg_drop_replication_slot('stand_slot');".to_owned(), None)]
    );
    assert_eq!(advice(&said, "dead-rows"), None);
    for _ in 0..70 {
        session
            .batch_execute("SELECT pg_logical_emit_message(false, 'x', 'x'), pg_switch_wal()")
            .expect("a segment");
    }
    assert_eq!(severity("slots-hold-wal").as_deref(), Some("severe"));
    cure(&home, "x", &mut session, "slots-hold-wal");
    assert_eq!(severity("xid-held-back"), None);
    assert!(severity("dead-rows").is_some());
}
