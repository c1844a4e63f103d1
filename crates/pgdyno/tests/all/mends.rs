//! Every statement and flag that is printed as what mends something: provoked on a real server, run
//! as it was printed, and then the trouble is gone. Statements of `facts`, `check` and `watch` are
//! run in server_facts.rs, those of advice in advise.rs.

use crate::experiment::Nobody;
use common::foreign::Foreign;
use common::{Home, Said};
use postgres::{Client, NoTls};
use std::cell::RefCell;
use std::fs;
use std::path::Path;

/// Where texts of statements are printed, and the test that runs them. What is new is added here
/// with a test.
const PRINTED: &[(&str, &str, &str)] = &[
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "GRANT pg_read_all_settings TO",
        "hidden_parameter",
    ),
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "GRANT ALTER SYSTEM ON PARAMETER",
        "experiment.rs",
    ),
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "ALTER ROLE {} SUPERUSER",
        "rights_on_14",
    ),
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "GRANT {owner} TO",
        "right_of_an_owner",
    ),
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf()",
        "experiment.rs",
    ),
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "GRANT SELECT ON TABLE pg_catalog.pg_file_settings",
        "experiment.rs",
    ),
    (
        "pgdyno-knobs/src/reader/objection.rs",
        "GRANT EXECUTE ON FUNCTION pg_catalog.pg_show_all_file_settings()",
        "experiment.rs",
    ),
    (
        "pgdyno-knobs/src/reader/session.rs",
        "GRANT SET ON PARAMETER",
        "session_scope.rs",
    ),
    (
        "pgdyno-lab/src/preflight/data.rs",
        "ALTER ROLE {role} CREATEDB",
        "own_servers.rs",
    ),
    (
        "pgdyno-lab/src/preflight/rights.rs",
        "GRANT pg_checkpoint TO",
        "experiment.rs",
    ),
    (
        "pgdyno-lab/src/preflight/rights.rs",
        "ALTER ROLE {} SUPERUSER",
        "rights_on_14",
    ),
    (
        "pgdyno-lab/src/preflight/rights.rs",
        "ALTER {keyword} {name} CONNECTION LIMIT",
        "limits_of_sessions",
    ),
    (
        "pgdyno-lab/src/preflight/rights.rs",
        "GRANT CONNECT ON DATABASE",
        "preflight.rs",
    ),
    (
        "pgdyno-lab/src/preflight/rights.rs",
        "GRANT SELECT ON TABLE %I",
        "tables_for_caches",
    ),
    (
        "pgdyno-lab/src/preflight/data.rs",
        "ALTER ROLE {role} IN DATABASE",
        "no_schema, read_only",
    ),
    (
        "pgdyno-lab/src/preflight/data.rs",
        "CREATE SCHEMA IF NOT EXISTS AUTHORIZATION",
        "no_schema",
    ),
    (
        "pgdyno-lab/src/preflight/data.rs",
        "GRANT CREATE ON SCHEMA",
        "experiment.rs",
    ),
    (
        "pgdyno-lab/src/preflight/data.rs",
        "GRANT %s ON TABLE %I",
        "experiment.rs",
    ),
    (
        "pgdyno-lab/src/collect.rs",
        "GRANT pg_read_all_settings TO",
        "server_facts.rs",
    ),
    (
        "pgdyno-lab/src/check/place.rs",
        "GRANT pg_read_all_settings TO",
        "server_facts.rs",
    ),
    (
        "pgdyno-workload/src/proof.rs",
        "GRANT %s ON TABLE %I",
        "experiment.rs",
    ),
    (
        "pgdyno-server/src/series/ledger.rs",
        "GRANT {grant} TO",
        "server_facts.rs",
    ),
    (
        "pgdyno-server/src/facts/ask.rs",
        "GRANT {what} TO",
        "server_facts.rs",
    ),
    (
        "pgdyno-server/src/facts/ask.rs",
        "ALTER EXTENSION pg_stat_statements UPDATE",
        "server_facts.rs",
    ),
    (
        "pgdyno-store/src/store/postgres/rights.rs",
        "GRANT {right} TO",
        "preflight.rs",
    ),
    (
        "pgdyno-sandbox/src/sandbox/temp.rs",
        "GRANT CREATE ON TABLESPACE",
        "file_systems.rs",
    ),
];
/// How such texts begin, within a string.
const BEGINNINGS: [&str; 5] = [
    "GRANT ",
    "ALTER ROLE {",
    "ALTER {keyword}",
    "CREATE SCHEMA IF",
    "ALTER EXTENSION ",
];

#[test]
fn statement_that_is_printed_is_run_by_a_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates");
    let mut left = PRINTED.to_vec();
    let mut sources = Vec::new();
    sources_below(crates, &mut sources);
    for path in sources {
        let name = path
            .strip_prefix(crates)
            .expect("below")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).expect("a file");
        // Tests of a module are at its end.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in BEGINNINGS.iter().flat_map(|begin| line.match_indices(begin)) {
                // In a string, and no statement that pgdyno sends itself.
                if line[..at].matches('"').count() % 2 == 0 && !line[..at].trim().is_empty() {
                    continue;
                }
                let known = PRINTED
                    .iter()
                    .find(|(file, begin, _)| name == *file && line[at..].starts_with(begin));
                let known = known
                    .unwrap_or_else(|| panic!("{name} prints what no test is known to run: {}", &line[at..]));
                left.retain(|of| of != known);
            }
        }
    }
    assert!(left.is_empty(), "printed no more: {left:?}");
}

fn sources_below(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" && name != "target" {
            sources_below(&path, found);
        } else if path.components().any(|part| part.as_os_str() == "src")
            && name.ends_with(".rs")
            && name != "tests.rs"
        {
            found.push(path);
        }
    }
}

/// What a finding with this text prints below it.
#[track_caller]
fn mends(said: &Said, text: &str) -> Vec<String> {
    let mut lines = said.err.lines().skip_while(|line| !line.contains(text));
    assert!(lines.next().is_some(), "{text} is not in:\n{}", said.err);
    let mends = lines.map_while(|line| line.trim().strip_prefix("hint: ").map(str::to_owned));
    mends.collect()
}

/// What a command says, what mends it is run by the superuser, and what the command says then.
#[track_caller]
fn mended(run: &dyn Fn() -> Said, text: &str, expected: &[&str], ask: &dyn Fn(&str)) {
    let found = mends(&run(), text);
    assert_eq!(found, expected);
    found.iter().for_each(|sql| ask(sql));
    let then = run();
    assert!(
        !then.err.contains(text) && !then.out.contains(text),
        "{}{}",
        then.out,
        then.err
    );
}

/// A load on data of scale 1; `rest` is before its step.
fn file(home: &Home, clients: u32, rest: &str) -> String {
    let text = format!(
        "name = \"test\"\nquestion = \"Is it mended?\"\ndesign = \"one-at-a-time\"\nblocks = 1\nseed = 5\n\
         [data]\nscale = 1\n{rest}[load]\nworkload = \"select-only\"\nclients = {clients}\nrate = \"200\"\nmeasure_s = 1\n\
         [[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n"
    );
    home.write("experiment.toml", &text)
        .to_string_lossy()
        .into_owned()
}

fn with_plain() -> (Home, Foreign) {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.ask("CREATE ROLE plain LOGIN");
    (home, foreign)
}

#[test]
fn role_without_a_schema_is_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    let (path, target) = (file(&home, 1, ""), foreign.target("plain"));
    let run = || home.run(&["run", &path, "--target", &target, "--dry-run", "--allow-data"]);
    let expected = [
        "CREATE SCHEMA IF NOT EXISTS AUTHORIZATION plain",
        "ALTER ROLE plain IN DATABASE postgres SET search_path = plain, public",
    ];
    for of in [
        "ROLE plain",
        "DATABASE postgres",
        "ROLE plain IN DATABASE postgres",
    ] {
        foreign.ask(&format!("ALTER {of} SET search_path = nowhere"));
        mended(&run, "has no schema in its search_path", &expected, &|sql| {
            drop(foreign.ask(sql))
        });
        foreign.ask("ALTER ROLE plain IN DATABASE postgres RESET search_path");
    }
}

/// From another database: of this one the superuser's transactions may be read-only too.
#[test]
fn role_that_only_reads_is_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    let (path, target) = (file(&home, 1, ""), foreign.target("plain"));
    let elsewhere = foreign
        .target("postgres")
        .replace("dbname=postgres", "dbname=template1");
    let mut client = Client::connect(&elsewhere, NoTls).expect("it answers");
    let ask = RefCell::new(|sql: &str| client.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e}")));
    let ask = |sql: &str| (ask.borrow_mut())(sql);
    let run = || home.run(&["run", &path, "--target", &target, "--dry-run", "--allow-data"]);
    let expected = ["ALTER ROLE plain IN DATABASE postgres SET default_transaction_read_only = off"];
    for of in [
        "ROLE plain",
        "DATABASE postgres",
        "ROLE plain IN DATABASE postgres",
    ] {
        ask(&format!("ALTER {of} SET default_transaction_read_only = on"));
        mended(&run, "are read-only", &expected, &ask);
        ask("ALTER ROLE plain IN DATABASE postgres RESET default_transaction_read_only");
    }
}

#[test]
fn limits_of_sessions_are_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    home.run(&["data", "create", &foreign.target("postgres"), "--scale", "1"])
        .fine();
    let (path, target) = (file(&home, 4, ""), foreign.target("plain"));
    let run = || home.run(&["run", &path, "--target", &target, "--dry-run"]);
    let ask = |sql: &str| drop(foreign.ask(sql));
    foreign.ask("ALTER DATABASE postgres CONNECTION LIMIT 5");
    let expected = ["ALTER DATABASE postgres CONNECTION LIMIT -1"];
    mended(&run, "the database postgres may have 5 sessions", &expected, &ask);
    foreign.ask("ALTER ROLE plain CONNECTION LIMIT 5");
    let expected = ["ALTER ROLE plain CONNECTION LIMIT -1"];
    mended(&run, "the role plain may have 5 sessions", &expected, &ask);

    // A limit of the server is mended by a flag.
    let path = file(&home, 500, "");
    let run = ["run", &path, "--target", &target, "--dry-run"];
    let text = "500 clients do not fit";
    let found = mends(&home.run(&run), text);
    let [flag] = &found[..] else { panic!("{found:?}") };
    let flags: Vec<&str> = flag.split(' ').collect();
    let then = home.run(&[&run[..], &flags].concat());
    assert!(!then.err.contains("clients do not fit"), "{}", then.err);
}

#[test]
fn right_of_an_owner_is_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    for role in ["\"An owner\"", "other"] {
        foreign.ask(&format!("CREATE ROLE {role}"));
    }
    foreign.ask("CREATE TABLE mine (a int)");
    foreign.ask("ALTER TABLE mine OWNER TO \"An owner\"");
    let target = foreign.target("plain");
    let run = || home.run(&["apply", &target, "table.fillfactor@mine=80", "--dry-run"]);
    let expected = ["GRANT \"An owner\" TO plain"];
    mended(&run, "change how public.mine is stored", &expected, &|sql| {
        drop(foreign.ask(sql))
    });
}

#[test]
fn hidden_parameter_is_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    let target = foreign.target("plain");
    let run = || {
        home.run(&[
            "apply",
            &target,
            "shared_preload_libraries=auto_explain",
            "--dry-run",
        ])
    };
    let expected = ["GRANT pg_read_all_settings TO plain"];
    let text = "has no parameter shared_preload_libraries";
    mended(&run, text, &expected, &|sql| drop(foreign.ask(sql)));
}

#[test]
fn tables_for_caches_are_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    home.run(&["data", "create", &foreign.target("postgres"), "--scale", "1"])
        .fine();
    foreign.ask("CREATE TABLE \"Other\" (a int)");
    let (path, target) = (file(&home, 1, "prewarm = \"read\"\n"), foreign.target("plain"));
    let run = || home.run(&["run", &path, "--target", &target, "--dry-run"]);
    let expected: Vec<String> = [
        "\"Other\"",
        "pgbench_accounts",
        "pgbench_branches",
        "pgbench_history",
        "pgbench_tellers",
    ]
    .map(|table| format!("GRANT SELECT ON TABLE public.{table} TO plain"))
    .to_vec();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    mended(&run, "may not read all tables into caches", &expected, &|sql| {
        drop(foreign.ask(sql))
    });
}

/// Before 15 only superusers may do some things.
#[test]
fn rights_on_14_are_mended_by_what_is_printed() {
    let home = Home::new();
    home.sandbox("x", &["-V", "14"]);
    let ask = |sql: &str| drop(home.ask("x", sql));
    for role in ["first", "second"] {
        ask(&format!("CREATE ROLE {role} LOGIN PASSWORD 'not-to-be-shown'"));
        ask(&format!("GRANT pg_read_all_data, pg_write_all_data TO {role}"));
    }
    let port = home.record("x")["port"].as_u64().expect("a port");
    let target = |role: &str| {
        format!("host=127.0.0.1 port={port} user={role} dbname=postgres password=not-to-be-shown")
    };
    let path = file(&home, 1, "");
    let run = || {
        home.run(&[
            "run",
            &path,
            "--target",
            &target("first"),
            "--dry-run",
            "--allow-data",
        ])
    };
    let text = "may not run CHECKPOINT";
    mended(&run, text, &["ALTER ROLE first SUPERUSER"], &ask);
    let run = || home.run(&["apply", &target("second"), "work_mem=9MB", "--dry-run"]);
    mended(
        &run,
        "may not set work_mem by ALTER SYSTEM",
        &["ALTER ROLE second SUPERUSER"],
        &ask,
    );
}

/// As a user that reaches no file of the server, over SQL alone.
#[test]
fn rights_over_sql_alone_are_mended_by_what_is_printed() {
    let (home, foreign) = with_plain();
    let nobody = Nobody::new(&home);
    let target = foreign.target("plain");
    let run = || nobody.run(&["apply", &target, "work_mem=9MB", "--dry-run"], &[]);
    let ask = |sql: &str| drop(foreign.ask(sql));
    let set = ["GRANT ALTER SYSTEM ON PARAMETER work_mem TO plain"];
    mended(&run, "may not set work_mem by ALTER SYSTEM", &set, &ask);
    let reload = ["GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO plain"];
    mended(&run, "may not reload the configuration", &reload, &ask);
    let files = [
        "GRANT SELECT ON TABLE pg_catalog.pg_file_settings TO plain",
        "GRANT EXECUTE ON FUNCTION pg_catalog.pg_show_all_file_settings() TO plain",
    ];
    mended(
        &run,
        "may not read what the configuration files hold",
        &files,
        &ask,
    );
    run().fine();
    let mut client = Client::connect(&target, NoTls).expect("it answers");
    client
        .batch_execute("SELECT count(*) FROM pg_file_settings")
        .expect("a right");
}
