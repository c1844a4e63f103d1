//! What a run and its dry run find before the first trial, on servers that pgdyno did not create.

use common::foreign::Foreign;
use common::mounts::unmount;
use common::{Home, Said, ended, said, signal, until_is};
use postgres::{Client, NoTls};
use std::path::Path;
use std::process::{Child, Command};

const SORT: &str = "[[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n";
const TPCB: &str = "workload = \"select-only\"\nclients = 1\nrate = \"200\"\nmeasure_s = 1\n";

/// An experiment file without a target; `load` is its [load], `rest` what comes after it.
fn file(home: &Home, load: &str, rest: &str) -> String {
    let text = format!(
        "name = \"test\"\nquestion = \"Does it work?\"\ndesign = \"one-at-a-time\"\nblocks = 1\nseed = 5\n\
         [data]\nscale = 1\n[load]\n{load}{rest}"
    );
    home.write("experiment.toml", &text)
        .to_string_lossy()
        .into_owned()
}

fn dry_run(home: &Home, path: &str, target: &str, more: &[&str]) -> Said {
    home.run(&[&["run", path, "--target", target, "--dry-run"], more].concat())
}

fn until(foreign: &Foreign, child: &mut Child, what: &str, sql: &str) {
    until_is(what, "t".to_owned(), || {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        foreign.ask(sql)
    });
}

/// The server's owner can drop what is named, statement by statement, whatever depends on what.
#[test]
fn objects_that_commands_leave_are_dropped_by_what_is_printed_in_its_order() {
    const LEFT: &str = "CREATE SEQUENCE c_number; CREATE TABLE a_first (id int PRIMARY KEY DEFAULT nextval('c_number')); \
        CREATE TABLE b_second (id int PRIMARY KEY, a int REFERENCES a_first); \
        ALTER TABLE a_first ADD COLUMN b int REFERENCES b_second; \
        CREATE MATERIALIZED VIEW b_kept AS SELECT id FROM a_first; CREATE VIEW a_low AS SELECT id FROM b_kept; \
        CREATE VIEW z_top AS SELECT id FROM a_low; CREATE INDEX i_a ON a_first (b); \
        CREATE FUNCTION f_rows() RETURNS SETOF b_second LANGUAGE sql AS 'SELECT * FROM b_second'; \
        CREATE FUNCTION f_word() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
        ALTER TABLE b_second ALTER a SET DEFAULT f_word()";
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    home.run(&["data", "create", &target, "--scale", "1"]).fine();
    let before = foreign.objects();
    let statements = home.write("left.sql", &format!("{LEFT};\n"));
    let job = format!(
        "program = \"job\"\ncommand = \"psql -qAtc 'SELECT 1'\"\nprepare = \"psql -qf {}\"\n",
        statements.display()
    );
    let path = file(&home, &job, SORT);
    let run = home.run(&["run", &path, "--target", &target, "--allow-data"]);
    let (_, drops) = run
        .err
        .rsplit_once("drop it: ")
        .unwrap_or_else(|| panic!("{}", run.err));
    let drops = drops.lines().next().expect("a line");
    for statement in drops.split_inclusive(';') {
        foreign.ask(statement);
    }
    assert_eq!(foreign.objects(), before, "{drops}");
}

/// What keeps the commands' objects from being listed keeps the experiment from beginning, and
/// leaves nothing to restore.
#[test]
fn run_whose_objects_cannot_be_listed_leaves_no_journal() {
    let (home, foreign) = (Home::new(), Foreign::start());
    home.run(&["data", "create", &foreign.target("postgres"), "--scale", "1"])
        .fine();
    foreign.ask("CREATE ROLE limited LOGIN IN ROLE pg_monitor, pg_checkpoint");
    foreign.ask("GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited");
    foreign.ask("GRANT ALTER SYSTEM ON PARAMETER work_mem TO limited");
    foreign.ask("GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO limited");
    foreign.ask("REVOKE SELECT ON pg_catalog.pg_roles FROM PUBLIC");
    let job = "program = \"job\"\ncommand = \"psql -qAtc 'SELECT 1'\"\nprepare = \"psql -qAtc 'SELECT 2'\"\n";
    let path = file(&home, job, SORT);
    let target = foreign.target("limited");
    home.run(&["run", &path, "--target", &target, "--allow-data"])
        .fails(1, &["listing the database's objects"]);
    let status = home.run(&["status"]).fine();
    assert!(
        status.err.contains("nothing is changed"),
        "{}{}",
        status.out,
        status.err
    );
}

#[test]
fn commands_on_a_foreign_server_want_consent_and_what_they_leave_is_named() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    home.run(&["data", "create", &target, "--scale", "1"]).fine();
    let job = "program = \"job\"\ncommand = \"psql -qAtc 'SELECT 1'\"\n\
        prepare = \"psql -qc 'CREATE TABLE IF NOT EXISTS job_out AS SELECT 1 AS a'\"\n";
    let path = file(&home, job, SORT);
    let listed = ["--allow-data", "CREATE TABLE IF NOT EXISTS job_out"];
    let before = foreign.objects();
    home.run(&["run", &path, "--target", &target]).fails(4, &listed);
    dry_run(&home, &path, &target, &[]).fails(4, &listed);
    let dry = dry_run(&home, &path, &target, &["--allow-data"]).fine().out;
    assert!(dry.contains("CREATE TABLE IF NOT EXISTS job_out"), "{dry}");
    assert_eq!(foreign.objects(), before, "nothing has run");

    let agreed = ["run", &path, "--target", &target, "--allow-data"];
    let left = ["TABLE public.job_out", "DROP TABLE public.job_out;"];
    let run = home.run(&agreed).fails(1, &left);
    assert!(run.err.contains("data.commands"), "{}", run.err);
    foreign.ask("DROP TABLE public.job_out");

    // What cleans up is not reached by a killed process, but after a command that failed half-way.
    let clean = "cleanup = \"psql -qc 'DROP TABLE IF EXISTS job_out'\"\n";
    let broken = job.replace("AS SELECT 1 AS a", "AS SELECT 1 AS a; SELECT no_such");
    let broken = broken.replace("psql -qc", "psql -q -v ON_ERROR_STOP=1 -c 'SELECT 1' -c");
    let path = file(
        &home,
        &format!(
            "{}{clean}",
            broken.replace("; SELECT no_such'", "' -c 'SELECT no_such'")
        ),
        SORT,
    );
    let run = home
        .run(&["run", &path, "--target", &target, "--allow-data"])
        .fails(1, &["no trial finished"]);
    assert!(!run.err.contains("job_out;"), "{}", run.err);
    assert_eq!(foreign.objects(), before);
    let slow = job.replace("SELECT 1'", "SELECT pg_sleep(600)'");
    let path = file(&home, &format!("{slow}{clean}"), SORT);
    let mut child = home.spawn(&["run", &path, "--target", &target, "--allow-data"]);
    let sleeps = "SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(6%' AND pid <> pg_backend_pid()";
    until(&foreign, &mut child, "the job", sleeps);
    child.kill().expect("killed");
    child.wait().expect("dead");
    home.run(&["restore"]).fails(1, &left);
    foreign.ask("DROP TABLE public.job_out");
    assert!(home.run(&["restore"]).fine().err.contains("nothing to restore"));
    assert_eq!(foreign.objects(), before);
}

#[test]
fn script_that_makes_objects_on_a_foreign_server_wants_consent_and_what_it_leaves_is_named() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    home.run(&["data", "create", &target, "--scale", "1"]).fine();
    let script = |text: &str| {
        let load = format!(
            "script = \"\"\"\n{text}\n\"\"\"\nprotocol = \"simple\"\nclients = 1\nrate = \"200\"\nmeasure_s = 1\n"
        );
        file(&home, &load, SORT)
    };
    let before = foreign.objects();
    let path = script("BEGIN;\nCREATE TABLE IF NOT EXISTS left_over (a int);\nEND;");
    let listed = ["--allow-data", "script, line 2: CREATE TABLE"];
    home.run(&["run", &path, "--target", &target]).fails(4, &listed);
    dry_run(&home, &path, &target, &[]).fails(4, &listed);
    let dry = dry_run(&home, &path, &target, &["--allow-data"]).fine().out;
    assert!(dry.contains("script, line 2: CREATE TABLE"), "{dry}");
    assert_eq!(foreign.objects(), before, "nothing has run");
    let left = ["TABLE public.left_over", "DROP TABLE public.left_over;"];
    home.run(&["run", &path, "--target", &target, "--allow-data"])
        .fails(1, &left);
    foreign.ask("DROP TABLE left_over");

    // So does a figure; what is temporary is free.
    let figure = "[[figure]]\nname = \"odd\"\nsql = \"SELECT 1 INTO left_over\"\n";
    let path = file(&home, TPCB, &format!("{figure}{SORT}"));
    dry_run(&home, &path, &target, &[]).fails(4, &["--allow-data", "[[figure]] odd: SELECT"]);
    let path = script("BEGIN;\nCREATE TEMP TABLE own (a int);\nDROP TABLE own;\nEND;");
    let dry = dry_run(&home, &path, &target, &[]).fine().out;
    assert!(!dry.contains("run on the server"), "{dry}");
    // Autovacuum of the catalogue may commit so much beside it that no trial finishes.
    let run = home.run(&["run", &path, "--target", &target]);
    assert!(
        run.err.contains("trial 2/2") && !run.err.contains("--allow-data"),
        "{}",
        run.err
    );
    assert_eq!(foreign.objects(), before);
}

#[test]
fn figure_that_the_server_refuses_is_found_before_the_run() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    home.run(&["data", "create", &target, "--scale", "1"]).fine();
    let path = file(
        &home,
        TPCB,
        &format!("[[figure]]\nname = \"odd\"\nsql = \"SELECT no_such FROM pg_class\"\n{SORT}"),
    );
    for more in [&["--dry-run"][..], &[]] {
        home.run(&[&["run", &path, "--target", &target], more].concat())
            .fails(2, &["[[figure]] odd", "no_such", "42703"]);
    }
    // What a stored experiment needs may be gone when it is resumed.
    foreign.ask("CREATE TABLE mine (a int)");
    let figure = "[[figure]]\nname = \"rows\"\nsql = \"SELECT count(*) FROM mine\"\n";
    let long = TPCB.replace("measure_s = 1", "measure_s = 600");
    let path = file(&home, &long, &format!("{figure}{SORT}"));
    let mut child = home.spawn(&["run", &path, "--target", &target]);
    let loaded = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'pgdyno load' AND query LIKE 'SELECT abalance%'";
    until(&foreign, &mut child, "the load", loaded);
    signal(child.id(), "-INT");
    said(child.wait_with_output().expect("ends")).fails(1, &["stopped"]);
    foreign.ask("DROP TABLE mine");
    home.run(&["resume", "--target", &target])
        .fails(2, &["[[figure]] rows", "mine", "42P01"]);

    // What is known only when it is asked is a reason in the record.
    let path = file(
        &home,
        TPCB,
        &format!("[[figure]]\nname = \"word\"\nsql = \"SELECT 'none'\"\n{SORT}"),
    );
    home.run(&["run", &path, "--target", &target]).fine();
    let report = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!(ended(&report, "finished"), 2, "{report}");
    let disturbances = report["trials"][0]["disturbances"].to_string();
    assert!(
        disturbances.contains("no figure word") && disturbances.contains("none"),
        "{disturbances}"
    );
}

#[test]
fn rights_sessions_programs_and_places_that_are_missing_are_all_found() {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.ask("CREATE ROLE plain LOGIN CONNECTION LIMIT 7");
    foreign.ask("REVOKE CONNECT ON DATABASE template1 FROM PUBLIC");
    home.run(&["data", "create", &foreign.target("postgres"), "--scale", "1"])
        .fine();
    let target = foreign.target("plain");
    let connect = || Client::connect(&target, NoTls).expect("it answers");
    let others = [connect(), connect(), connect(), connect()];
    let load = format!("{TPCB}checkpoint_cycles = 1\n[target]\nrestart_command = \"no-such-restart now\"\n");
    let path = file(&home, &load, SORT);
    let store = home.write("plain-file", "").to_string_lossy().into_owned() + "/results.sqlite";
    let report = home
        .file("no-such-directory/report.html")
        .to_string_lossy()
        .into_owned();
    let more = ["--allow-restart", "--store", &store, "--report", &report];
    let found = dry_run(&home, &path, &target, &more).fails(
        1,
        &[
            "others have 4 now",
            "ALTER ROLE plain CONNECTION LIMIT -1",
            "GRANT CONNECT ON DATABASE template1 TO plain",
            "the program no-such-restart is not there",
            "plain-file is not a directory",
            "there is no directory",
        ],
    );
    assert!(found.err.contains("--report FILE"), "{}", found.err);
    assert_eq!(
        found.err.matches("plain-file is not a directory").count(),
        1,
        "{}",
        found.err
    );
    drop(others);
    foreign.ask("ALTER ROLE plain CONNECTION LIMIT -1");
    foreign.ask("GRANT CONNECT ON DATABASE template1 TO plain");
    let found = dry_run(&home, &path, &target, &[]);
    for word in ["others have", "template1", "no-such-restart", "plain-file"] {
        assert!(!found.err.contains(word), "{word}: {}", found.err);
    }
    // A run does not find out after its last trial.
    home.run(&["run", &path, "--target", &target, "--report", &report])
        .fails(1, &["no-such-directory", "cannot be written"]);
    assert!(home.run(&["list"]).out.lines().count() <= 1, "nothing was begun");
}

#[test]
fn what_cannot_be_proven_is_named_and_a_stopped_sandbox_is_checked_by_the_catalogue() {
    let home = Home::new();
    home.sandbox("x", &["-V", "18"]);
    let target = "sandbox:x";
    let versions = "[[factor]]\nname = \"version\"\n[[factor.level]]\nname = \"now\"\n\
        [[factor.level]]\nname = \"old\"\nserver.version = 14\n[base]\nio_method = \"sync\"\n";
    let path = file(&home, TPCB, versions).clone();
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(&path, text.replace("one-at-a-time", "full-factorial")).expect("written");
    let dry = dry_run(&home, &path, target, &["--json"]).json();
    let (found, unproven) = (dry["findings"].to_string(), dry["not_proven"].to_string());
    assert!(
        found.contains("PostgreSQL 14 has no parameter io_method"),
        "{found}"
    );
    assert!(unproven.contains("on PostgreSQL 14"), "{unproven}");
    let huge = "[[step]]\nname = \"paged\"\nsettings.huge_pages = \"on\"\n";
    let dry = dry_run(&home, &file(&home, TPCB, huge), target, &[]).fine().out;
    assert!(
        dry.contains("not proven: whether the server starts with huge_pages of paged"),
        "{dry}"
    );

    let steps = "[[step]]\nname = \"noisy\"\nserver.neighbour = \"no-such-neighbour\"\n\
        [[step]]\nname = \"gone\"\nsettings.old_snapshot_threshold = \"1min\"\n";
    let path = file(&home, TPCB, steps);
    let messages = [
        "the program no-such-neighbour is not there",
        "has no parameter old_snapshot_threshold",
    ];
    dry_run(&home, &path, target, &[]).fails(1, &messages);
    home.run(&["sandbox", "stop", "x"]).fine();
    dry_run(&home, &path, target, &[]).fails(1, &messages);
    let large = file(&home, TPCB, SORT);
    let large = [
        "run",
        &large,
        "--target",
        target,
        "--dry-run",
        "--set",
        "data.scale=1000000",
    ];
    home.run(&large)
        .fails(1, &["this experiment needs about", "--set data.scale="]);
    assert_eq!(home.postmaster("x"), None, "it was not started");
}

/// The file of a step with these settings.
fn step(name: &str, settings: &str) -> String {
    format!("[[step]]\nname = \"{name}\"\nsettings = {{ {settings} }}\n")
}

#[test]
fn settings_that_keep_the_server_from_starting_are_found_by_starting_another() {
    let (home, foreign) = (Home::new(), Foreign::start());
    home.run(&["data", "create", &foreign.target("postgres"), "--scale", "1"])
        .fine();
    let steps = [
        step("memory", "shared_buffers = \"64MB\""),
        step("vast", "shared_buffers = \"7TB\""),
        step("minimal", "wal_level = \"minimal\""),
        step("alone", "wal_level = \"minimal\", max_wal_senders = \"0\""),
        step(
            "preloaded",
            "shared_preload_libraries = \"auto_explain\", max_connections = \"40\"",
        ),
    ];
    let restart = "[target]\nrestart_command = \"true\"\n";
    let load = format!("{TPCB}{restart}");
    let path = file(&home, &load, &steps.concat());
    let dry = |target: &str| {
        dry_run(&home, &path, target, &["--allow-restart", "--json"])
            .fine()
            .json()
    };
    let found = dry(&foreign.target("postgres"));
    let findings = found["findings"].as_array().expect("a list");
    let of = |name: &str| {
        let has =
            |finding: &&serde_json::Value| finding["treatments"].to_string().contains(&format!("\"{name}\""));
        findings
            .iter()
            .find(has)
            .map(|finding| finding["what"].to_string())
    };
    let vast = of("vast").expect("it does not start");
    assert!(vast.contains("could not map anonymous shared memory"), "{vast}");
    let minimal = of("minimal").expect("it does not start");
    assert!(
        minimal.contains("does not start with wal_level = minimal") && minimal.contains("WAL"),
        "{minimal}"
    );
    for fine in ["memory", "alone", "preloaded"] {
        assert_eq!(of(fine), None, "{fine}");
    }
    assert_eq!(found["not_proven"], serde_json::json!([]));
    let scratch = home.file("state/scratch");
    let left = std::fs::read_dir(&scratch).map_or(0, Iterator::count);
    assert_eq!(left, 0, "something is left in {}", scratch.display());
}

#[test]
fn copies_of_files_have_room_where_they_are_kept() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let scratch = home.file("state/scratch");
    std::fs::create_dir_all(&scratch).expect("made");
    let scratch = scratch.to_string_lossy().into_owned();
    let tool = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).status().expect("it runs");
        assert!(status.success(), "{program}");
    };
    tool("mount", &["-t", "tmpfs", "-o", "size=1M", "tmpfs", &scratch]);
    let copies = format!("[[step]]\nname = \"copied\"\ndata.reset = \"copy\"\n{SORT}");
    let found = dry_run(&home, &file(&home, TPCB, &copies), "sandbox:x", &[]);
    unmount(Path::new(&scratch));
    found.fails(1, &["a copy of the files", &scratch]);
}

/// The statements that are printed as what mends something.
fn grants(said: &Said) -> Vec<String> {
    let mends = said
        .err
        .lines()
        .filter_map(|line| line.trim().strip_prefix("hint: "));
    let grants: Vec<String> = mends
        .filter(|mend| mend.starts_with("GRANT "))
        .map(str::to_owned)
        .collect();
    assert!(!grants.is_empty(), "{}", said.err);
    grants
}

#[test]
fn store_in_postgresql_that_the_role_may_not_write_is_found_with_the_grants() {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.ask("CREATE DATABASE lab TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'");
    for role in ["\"first One\"", "second", "third"] {
        foreign.ask(&format!("CREATE ROLE {role} LOGIN"));
    }
    let target = foreign.target("postgres");
    home.run(&["data", "create", &target, "--scale", "1"]).fine();
    let path = file(&home, TPCB, SORT);
    let in_lab = |user: &str| foreign.target(user).replace("dbname=postgres", "dbname=lab");
    let owner = |sql: &str| {
        let mut client = Client::connect(&in_lab("postgres"), NoTls).expect("it answers");
        client.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    };
    owner("CREATE SCHEMA empty");
    // Nothing is there; a store that the first role has made; an empty schema of somebody's.
    for (user, schema, message, count) in [
        (
            "'first One'",
            "pgdyno",
            "may not make the schema pgdyno in the database lab",
            1,
        ),
        (
            "second",
            "pgdyno",
            "may not SELECT, INSERT, UPDATE in the table pgdyno.experiment",
            6,
        ),
        ("third", "empty", "may not make tables in the schema empty", 2),
    ] {
        let store = format!("{} schema={schema}", in_lab(user));
        let run = ["run", &path, "--target", &target, "--store", &store];
        let dry = [&run[..], &["--dry-run"]].concat();
        let found = home.run(&dry).fails(1, &["cannot be written", message]);
        assert_eq!(grants(&found).len(), count, "{}", found.err);
        assert_eq!(grants(&home.run(&run).fails(1, &[message])), grants(&found));
        grants(&found).iter().for_each(|grant| owner(grant));
        let dry = home.run(&dry).fine().out;
        assert!(!dry.contains("not proven: the store"), "{dry}");
        home.run(&run).fine();
    }
}

/// Where the kernel preempts in one way alone, or keeps its choice to itself, each treatment that
/// would change it has the reason.
#[test]
fn preemption_is_not_tested_where_the_kernel_does_not_let_it_be_changed() {
    const PLACE: &str = "/sys/kernel/debug/sched/preempt";
    let home = Home::new();
    home.sandbox("x", &[]);
    let dry = dry_run(&home, "kernel-preemption", "sandbox:x", &["--json"]);
    let json = dry.json();
    let findings = json["findings"].as_array().expect("a list");
    let sign = format!("kernel.sched_preempt: {PLACE}");
    let found = findings.iter().find(|finding| {
        let what = finding["what"].as_str().unwrap_or_default();
        what.starts_with(&sign)
    });
    let untested = found.map_or(0, |found| found["treatments"].as_array().map_or(0, Vec::len));
    match Path::new(PLACE).exists() {
        true => assert!(untested < 8, "{json:#}"),
        false => {
            assert_eq!(untested, 8, "{json:#}");
            dry.fails(1, &["not tested: preemption=none", "no step can be tested here"]);
        }
    }
}
