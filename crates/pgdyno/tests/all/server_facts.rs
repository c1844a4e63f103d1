//! Facts of real servers: every name with a value or a reason in every version, what is to be found
//! is found, and what a server or a role refuses is said.

use common::machine::newest;
use common::{Home, signal, system_program};
use pgdyno_server::series::ServerSeries;
use pgdyno_server::{Conninfo, Found, Server, ServerError, ServerFacts, server_facts, show};
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime};

/// Used for everything that must not be shown.
const SECRET: &str = "hunter2";
const PATIENCE: Duration = Duration::from_secs(60);

/// What each version does not report, on a server without a standby and without old sessions.
const NOT_REPORTED: &[(u32, &[&str])] = &[
    (
        14,
        &[
            "checkpoints.done",
            "connections.reserved",
            "huge_pages.needed",
            "huge_pages.status",
            "jit.functions",
            "jit.ms",
            "jit.ratio_of_statements_time",
            "server.io_method",
            "server.numa",
            "shared_memory.bytes",
        ],
    ),
    (
        15,
        &[
            "checkpoints.done",
            "connections.reserved",
            "huge_pages.status",
            "server.io_method",
            "server.numa",
        ],
    ),
    (
        16,
        &[
            "checkpoints.done",
            "huge_pages.status",
            "server.io_method",
            "server.numa",
        ],
    ),
    (
        17,
        &[
            "bgwriter.backend_buffers_written",
            "checkpoints.done",
            "server.io_method",
            "server.numa",
        ],
    ),
    (18, &["bgwriter.backend_buffers_written"]),
    (19, &["bgwriter.backend_buffers_written"]),
];

/// What came with 19.
const SINCE_19: &[&str] = &["locks.waited_for", "vacuum.next", "wal.full_page_image_bytes"];

/// What there is none of on such a server, in any version.
const NONE_OF: &[&str] = &[
    "connections.longest_idle_in_transaction_s",
    "connections.longest_transaction_s",
    "huge_pages.page_bytes",
    "replication.replay_behind_bytes",
    "replication.replay_behind_s",
    "replication.recovery",
    "wal.archive_failed_last",
    "wal.archived_last",
];

/// Objects whose facts are checked.
const SET_UP: &str = "CREATE EXTENSION pg_stat_statements;
    CREATE TABLE big (id int PRIMARY KEY, a int);
    INSERT INTO big SELECT g, g FROM generate_series(1, 100000) g;
    CREATE INDEX never_used ON big (a);
    CREATE TABLE moved (id int PRIMARY KEY, v int) WITH (fillfactor = 90);
    CREATE INDEX ON moved (v);
    INSERT INTO moved SELECT g, g FROM generate_series(1, 2000) g;
    UPDATE moved SET v = v + 1";

struct Target {
    home: Home,
}

impl Target {
    fn new(version: u32) -> Target {
        let home = Home::new();
        let version = version.to_string();
        home.run(&[
            "sandbox",
            "create",
            "x",
            "--version",
            &version,
            "--set",
            "shared_preload_libraries=pg_stat_statements",
            "--set",
            "shared_buffers=32MB",
        ])
        .fine();
        Target { home }
    }

    fn string(&self) -> String {
        let socket = self.home.file("state/sandboxes/x/socket");
        let port = self.home.record("x")["port"].as_u64().expect("a port");
        format!(
            "host={} port={port} user=postgres dbname=postgres",
            socket.display()
        )
    }

    fn client(&self) -> Client {
        Client::connect(&self.string(), NoTls).expect("the sandbox answers")
    }

    fn server(&self, string: &str) -> Server {
        Server::connect(&conninfo(string)).unwrap_or_else(|e| panic!("{e}"))
    }

    fn facts(&self) -> ServerFacts {
        server_facts(&mut self.server(&self.string())).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Facts, once what other sessions did is counted: servers report it a moment later.
    fn facts_once(&self, counted: impl Fn(&ServerFacts) -> bool) -> ServerFacts {
        common::until("it is counted", || {
            let facts = self.facts();
            if counted(&facts) {
                Ok(facts)
            } else {
                Err(facts.facts)
            }
        })
    }
}

fn newest_major() -> u32 {
    newest().parse().expect("a number")
}

fn conninfo(string: &str) -> Conninfo {
    let found = Found::find(string, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    found.conninfo
}

fn value<'a>(facts: &'a ServerFacts, name: &str) -> &'a Value {
    let fact = facts.facts.iter().find(|f| f.name == name);
    let fact = fact.unwrap_or_else(|| panic!("no {name}"));
    fact.value.as_ref().unwrap_or_else(|| panic!("{fact:?}"))
}

fn is_known(facts: &ServerFacts, name: &str) -> bool {
    let mut found = facts.facts.iter().filter(|f| f.name == name);
    found.any(|f| f.value.is_some())
}

fn missing<'a>(facts: &'a ServerFacts, name: &str) -> &'a str {
    let fact = facts.facts.iter().find(|f| f.name == name);
    let fact = fact.unwrap_or_else(|| panic!("no {name}"));
    fact.missing.as_deref().unwrap_or_else(|| panic!("{fact:?}"))
}

/// The row of a list whose `key` is this.
fn row<'a>(rows: &'a Value, key: &str, wanted: &str) -> Option<&'a Value> {
    rows.as_array()?.iter().find(|row| row[key] == wanted)
}

fn names(facts: &ServerFacts) -> BTreeSet<&str> {
    facts.facts.iter().map(|f| f.name.as_str()).collect()
}

fn check(major: u32) {
    let target = Target::new(major);
    let mut client = target.client();
    for statement in SET_UP.split(';') {
        client.batch_execute(statement).expect("set up");
    }
    client
        .batch_execute("SELECT pg_create_physical_replication_slot('standstill', true)")
        .expect("a slot");
    client
        .batch_execute("ALTER SYSTEM SET max_connections = 33")
        .expect("a setting");
    client
        .batch_execute(&format!(
            "ALTER ROLE postgres SET work_mem = '8MB'; ALTER ROLE postgres SET lock_timeout = '9s'; \
             ALTER ROLE postgres IN DATABASE postgres SET application_name = 'nightly'; \
             ALTER DATABASE postgres SET client_encoding = 'LATIN1'; ALTER DATABASE postgres SET \"app.jwt_secret\" = '{SECRET}'; \
             CREATE ROLE reader LOGIN PASSWORD '{SECRET}'; SELECT '{SECRET}', count(*) FROM big; SELECT pg_reload_conf()"
        ))
        .expect("secrets");
    drop(client);
    let facts = target.facts_once(|facts| {
        row(
            value(facts, "tables.updated_without_hot"),
            "table",
            "public.moved",
        )
        .is_some()
            && value(facts, "settings.pending_restart") == &json!(["max_connections"])
            // Of the database as a whole a server of 14 may report later than of its tables.
            && ["cache.hit_ratio", "cache.hit_ratio_of_database"].iter().all(|name| is_known(facts, name))
    });
    names_and_gaps(&facts, major);
    found_what_was_made(&facts);
    settings_are_those_of_a_session_that_sets_nothing(&target, &facts);
    our_own_statements_are_not_among_the_load(&target);
    a_role_without_rights(&target, &names(&facts));
}

/// Every name is there once, has a value or a reason, and is in the documentation.
fn names_and_gaps(facts: &ServerFacts, major: u32) {
    let text = serde_json::to_string(&facts.facts).expect("JSON") + &format!("{:?}", facts.settings);
    assert!(!text.contains(SECRET), "{text}");
    assert_eq!(names(facts).len(), facts.facts.len());
    for fact in &facts.facts {
        assert_ne!(fact.value.is_some(), fact.missing.is_some(), "{fact:?}");
    }
    let page = include_str!("../../../../docs/reference/facts-server.md");
    for name in names(facts) {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/reference/facts-server.md"
        );
    }
    let not_reported = NOT_REPORTED
        .iter()
        .find(|(of, _)| *of == major)
        .expect("a version")
        .1;
    let later = if major < 19 { SINCE_19 } else { &[] };
    let expected: BTreeSet<&str> = not_reported.iter().chain(later).chain(NONE_OF).copied().collect();
    let gaps: BTreeSet<&str> = facts
        .facts
        .iter()
        .filter(|f| f.missing.is_some() && f.name != "statistics.since")
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(gaps, expected);
}

fn found_what_was_made(facts: &ServerFacts) {
    let never_used = value(facts, "indexes.never_used");
    let index = row(never_used, "index", "public.never_used").expect("the unused index");
    assert!(index["bytes"].as_u64() > Some(1 << 20), "{index}");
    assert!(
        row(never_used, "index", "public.big_pkey").is_none(),
        "{never_used}"
    );
    let moved = row(
        value(facts, "tables.updated_without_hot"),
        "table",
        "public.moved",
    )
    .expect("a table");
    assert_eq!(
        (&moved["updates"], &moved["fillfactor"]),
        (&json!(2000), &json!(90))
    );
    let big = row(value(facts, "tables.largest"), "table", "public.big").expect("the largest");
    let parts = ["heap_bytes", "index_bytes"].map(|part| big[part].as_u64().expect("bytes"));
    assert!(parts.iter().sum::<u64>() <= big["bytes"].as_u64().expect("bytes"));
    let hidden = value(facts, "settings.hidden_by_role_or_database");
    let work_mem = row(hidden, "name", "work_mem").expect("a hidden setting");
    assert_eq!(
        (&work_mem["value"], &work_mem["role"]),
        (&json!("8MB"), &json!("postgres"))
    );
    assert!(row(hidden, "name", "app.jwt_secret").is_some(), "{hidden}");
    let changed = row(
        value(facts, "settings.changed"),
        "name",
        "shared_preload_libraries",
    );
    assert_eq!(changed.expect("a changed setting")["value"], "pg_stat_statements");
    assert!(row(value(facts, "settings.changed"), "name", "statement_timeout").is_none());
    let slot = row(value(facts, "replication.slots"), "name", "standstill").expect("the slot");
    assert_eq!(slot["active"], false);
    assert!(slot["retained_wal_bytes"].as_u64() > Some(0), "{slot}");
    let tops = value(facts, "statements.top").as_array().expect("a list");
    assert!(!tops.is_empty());
    assert_eq!(
        value(facts, "extensions.preloaded"),
        &json!(["pg_stat_statements"])
    );
    assert!(facts.settings.len() > 300);
    assert!(facts.data_directory.as_ref().is_some_and(|d| d.is_absolute()));
}

/// What a session sees that sends nothing but its user and database, as the driver of this test
/// cannot: name, value and source of each setting.
fn plain_session(target: &Target, sql: &str) -> Vec<Vec<String>> {
    let port = target.home.record("x")["port"].as_u64().expect("a port");
    let path = target
        .home
        .file(&format!("state/sandboxes/x/socket/.s.PGSQL.{port}"));
    let mut stream = UnixStream::connect(path).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let mut start = 196_608_u32.to_be_bytes().to_vec();
    start.extend(b"user\0postgres\0database\0postgres\0\0");
    let mut send = |kind: &[u8], body: &[u8]| {
        let length = u32::try_from(body.len() + 4).expect("short");
        let message = [kind, &length.to_be_bytes(), body].concat();
        stream.write_all(&message).expect("sent");
    };
    send(b"", &start);
    send(b"Q", format!("{sql}\0").as_bytes());
    send(b"X", b"");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let mut rest = answer.as_slice();
    let mut rows = Vec::new();
    while let [kind, a, b, c, d, after @ ..] = rest {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize - 4;
        let (body, later) = after.split_at(length);
        assert_ne!(*kind, b'E', "{}", String::from_utf8_lossy(body));
        if *kind == b'D' {
            rows.push(columns(body));
        }
        rest = later;
    }
    rows
}

/// The texts of a DataRow; NULL is empty.
fn columns(body: &[u8]) -> Vec<String> {
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    while let [a, b, c, d, after @ ..] = rest {
        let length = i32::from_be_bytes([*a, *b, *c, *d]);
        let (text, later) = after.split_at(usize::try_from(length).unwrap_or(0));
        columns.push(String::from_utf8_lossy(text).into_owned());
        rest = later;
    }
    columns
}

/// Name to value, source and shown value, of a session that sends nothing.
fn plain_settings(target: &Target) -> BTreeMap<String, Vec<String>> {
    let sql = "SELECT name, setting, source, current_setting(name) FROM pg_settings";
    let rows = plain_session(target, sql).into_iter();
    rows.map(|row| (row[0].clone(), row[1..].to_vec())).collect()
}

/// Each setting of the facts is that of a plain session.
fn are_those_of(facts: &ServerFacts, plain: &BTreeMap<String, Vec<String>>) {
    for guc in &facts.settings {
        let expected = &plain[&guc.name];
        let is_hidden = guc.shown.contains("not shown");
        let found = [guc.setting.clone(), guc.source.clone(), guc.shown.clone()];
        assert!(
            is_hidden || found.as_slice() == expected.as_slice(),
            "{guc:?}: {expected:?}"
        );
    }
}

fn settings_are_those_of_a_session_that_sets_nothing(target: &Target, facts: &ServerFacts) {
    let plain = plain_settings(target);
    assert_eq!(plain.len(), facts.settings.len());
    assert_eq!(plain["application_name"][0], "nightly");
    assert_eq!(plain["client_encoding"][0], "LATIN1");
    assert_eq!(value(facts, "settings.unknown"), &json!([]));
    are_those_of(facts, &plain);
    // Facts that are settings, and what follows from one.
    for (name, setting) in [("jit.enabled", "jit"), ("wal.level", "wal_level")] {
        let fact = match value(facts, name) {
            Value::Bool(true) => "on".to_owned(),
            Value::Bool(false) => "off".to_owned(),
            text => text.as_str().expect("a text").to_owned(),
        };
        assert_eq!(fact, plain[setting][0], "{name}");
    }
    let limit = show(&mut target.server(&target.string()), "statement_timeout").expect("an answer");
    assert_eq!(limit.expect("a setting").setting, plain["statement_timeout"][0]);
    let available = plain_session(target, "SELECT pg_jit_available()")[0][0] == "t";
    assert_eq!(value(facts, "jit.available"), &json!(available));
}

/// The start of pgdyno's session hides two settings, and its caller's options any: what the files
/// say counts, of several lines the last, and what cannot be known has a reason.
fn settings_below_those_of_the_session_are_of_the_server_or_unknown(major: u32) {
    let target = Target::new(major);
    let mut client = target.client();
    let data = target.home.data("x");
    let file = std::path::Path::new(&data).join("postgresql.conf");
    let text = std::fs::read_to_string(&file).expect("a file");
    let text = text + "\nApplication_Name = 'first'\napplication_name = 'second'\nclient_encoding = latin1\n";
    std::fs::write(&file, text).expect("written");
    let written_at = |time: SystemTime| {
        let file = std::fs::File::options().write(true).open(&file).expect("a file");
        file.set_modified(time).expect("a time");
    };
    written_at(SystemTime::now() + PATIENCE);
    // What is in a file but was not read is neither this nor that.
    let facts = target.facts();
    let unknown = value(&facts, "settings.unknown");
    let why = row(unknown, "name", "client_encoding").expect("a reason")["why"].to_string();
    assert!(why.contains("written after the server last read it"), "{why}");
    assert!(!facts.settings.iter().any(|guc| guc.name == "client_encoding"));
    let reload = |client: &mut Client, application: &str| {
        client.batch_execute("SELECT pg_reload_conf()").expect("a reload");
        common::until_is("application_name", application.to_owned(), || {
            plain_settings(&target)["application_name"][0].clone()
        });
    };
    written_at(SystemTime::now());
    reload(&mut client, "second");
    are_those_of_all(&target);
    let facts = target.facts();
    let changed = value(&facts, "settings.changed");
    let row_of = row(changed, "name", "application_name").expect("a changed setting");
    assert!(
        row_of["file"]
            .as_str()
            .is_some_and(|at| at.contains("postgresql.conf:")),
        "{row_of}"
    );
    client
        .batch_execute("ALTER SYSTEM SET application_name = 'third'")
        .expect("a setting");
    client
        .batch_execute("ALTER SYSTEM SET client_encoding = 'win1252'")
        .expect("a setting");
    reload(&mut client, "third");
    are_those_of_all(&target);
    // What the caller's options set is not the server's.
    let with_options = format!(
        "{} options='-c work_mem=3MB -c jit=off -c application_name=x'",
        target.string()
    );
    let facts = server_facts(&mut target.server(&with_options)).expect("facts");
    let plain = plain_settings(&target);
    are_those_of(&facts, &plain);
    assert!(
        !facts
            .settings
            .iter()
            .any(|guc| ["work_mem", "jit"].contains(&guc.name.as_str()))
    );
    assert!(missing(&facts, "jit.enabled").contains("PGOPTIONS"), "{facts:?}");
    let unknown = value(&facts, "settings.unknown");
    let names: Vec<&Value> = unknown
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["jit", "work_mem"]);
    let page = target
        .home
        .run(&["apply", &with_options, "work_mem=8MB", "--dry-run"]);
    page.fails(
        1,
        &["work_mem, which hides the server's value", "unset PGOPTIONS"],
    );
    // A role that may not read the files.
    client
        .batch_execute(&format!("CREATE ROLE reader LOGIN PASSWORD '{SECRET}'"))
        .expect("a role");
    let port = target.home.record("x")["port"].as_u64().expect("a port");
    let string = format!("host=127.0.0.1 port={port} user=reader dbname=postgres password={SECRET}");
    let facts = server_facts(&mut target.server(&string)).expect("facts");
    let unknown = value(&facts, "settings.unknown");
    for name in ["application_name", "client_encoding"] {
        let why = row(unknown, "name", name).unwrap_or_else(|| panic!("{unknown}"))["why"].to_string();
        assert!(
            why.contains("GRANT SELECT ON pg_catalog.pg_file_settings TO reader"),
            "{why}"
        );
        assert!(!facts.settings.iter().any(|guc| guc.name == name), "{name}");
    }
}

fn are_those_of_all(target: &Target) {
    let (facts, plain) = (target.facts(), plain_settings(target));
    assert_eq!(plain["application_name"][1], "configuration file");
    assert_eq!(plain.len(), facts.settings.len());
    are_those_of(&facts, &plain);
}

#[test]
fn settings_below_the_sessions_own_on_14_are_the_servers_or_unknown() {
    settings_below_those_of_the_session_are_of_the_server_or_unknown(14);
}

#[test]
fn settings_below_the_sessions_own_on_the_newest_version_are_the_servers_or_unknown() {
    settings_below_those_of_the_session_are_of_the_server_or_unknown(newest_major());
}

fn our_own_statements_are_not_among_the_load(target: &Target) {
    let mut series = ServerSeries::connect(&conninfo(&target.string())).expect("a series");
    series.statements().expect("a first look");
    target.facts();
    let mut client = target.client();
    client
        .batch_execute("SELECT count(*) AS of_the_load FROM big")
        .expect("a load");
    let mut server = target.server(&target.string());
    server
        .rows("asking", "SELECT max(id) AS of_pgdyno FROM big")
        .expect("rows");
    let counted = "SELECT query FROM pg_stat_statements";
    let mut all = client.query(counted, &[]).expect("statements").into_iter();
    assert!(all.any(|row| row.get::<_, String>(0).contains("of_pgdyno")));
    let grown = series.statements().expect("a second look");
    let texts: Vec<&str> = grown.iter().map(|row| row.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("of_the_load")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("pgdyno")), "{texts:?}");
    // The statements that stay are all that is counted.
    let facts = target.facts();
    let sql = "SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%/* pgdyno%'";
    let own: i64 = client.query_one(sql, &[]).expect("a count").get(0);
    let all: i64 = client
        .query_one("SELECT count(*) FROM pg_stat_statements", &[])
        .expect("a count")
        .get(0);
    let reported = value(&facts, "statements.count").as_i64().expect("a number");
    assert!(
        own > 20 && reported <= all - own,
        "{reported} of {all} with {own} of ours"
    );
}

/// Debian's PostgreSQL is built with LLVM, the one of other sandboxes is not.
#[test]
fn jit_is_available_where_the_server_has_it_whatever_is_set() {
    let home = Home::new();
    let bin = system_program("postgres");
    let bin = bin.parent().expect("a directory").to_str().expect("a path");
    home.run(&["sandbox", "create", "x", "--pg-bin", bin, "--set", "jit=off"])
        .fine();
    let target = Target { home };
    let available = || value(&target.facts(), "jit.available").clone();
    assert_eq!(available(), json!(true));
    let mut client = target.client();
    client
        .batch_execute("ALTER SYSTEM SET jit = on")
        .expect("a setting");
    client.batch_execute("SELECT pg_reload_conf()").expect("a reload");
    common::until_is("jit", "on".to_owned(), || {
        plain_session(&target, "SHOW jit")[0][0].clone()
    });
    assert_eq!(plain_session(&target, "SELECT pg_jit_available()")[0][0], "t");
    assert_eq!(available(), json!(true));
    assert_eq!(value(&target.facts(), "jit.enabled"), &json!(true));
}

fn a_role_without_rights(target: &Target, all: &BTreeSet<&str>) {
    let port = target.home.record("x")["port"].as_u64().expect("a port");
    let string = format!("host=127.0.0.1 port={port} user=reader dbname=postgres password={SECRET}");
    let facts = server_facts(&mut target.server(&string)).expect("facts");
    assert_eq!(&names(&facts), all);
    for name in [
        "wal.directory_bytes",
        "replication.standbys",
        "statements.top",
        "extensions.preloaded",
    ] {
        let why = missing(&facts, name);
        assert!(why.contains("GRANT pg_monitor TO reader"), "{name}: {why}");
    }
    let config = missing(&facts, "server.configure");
    assert!(config.contains("GRANT EXECUTE ON FUNCTION pg_catalog.pg_config() TO reader"));
    assert_eq!(
        value(&facts, "role.grants_missing").as_array().map(Vec::len),
        Some(2)
    );
    for name in [
        "connections.used",
        "tables.largest",
        "xid.until_stop",
        "wal.bytes",
        "databases.bytes",
    ] {
        assert!(value(&facts, name).is_number() || value(&facts, name).is_array());
    }
    assert_eq!(facts.data_directory, None);
    for grant in statements_of_hints(target, &string) {
        target
            .client()
            .batch_execute(&grant)
            .unwrap_or_else(|e| panic!("{grant}: {e}"));
    }
    let facts = server_facts(&mut target.server(&string)).expect("facts");
    assert_eq!(value(&facts, "role.grants_missing"), &json!([]));
    assert!(value(&facts, "wal.directory_bytes").as_u64() > Some(0));
    assert!(value(&facts, "server.configure").is_string());
    let shared_memory = facts
        .facts
        .iter()
        .any(|f| f.name == "shared_memory.largest" && f.value.is_some());
    assert!(shared_memory);
    // The extension of an old version, and none at all.
    for (state, hint) in [
        (
            "CREATE EXTENSION pg_stat_statements VERSION '1.4'",
            "ALTER EXTENSION pg_stat_statements UPDATE",
        ),
        ("SELECT", "CREATE EXTENSION pg_stat_statements"),
    ] {
        target
            .client()
            .batch_execute(&format!("DROP EXTENSION pg_stat_statements; {state}"))
            .expect("another state");
        let found = statements_of_hints(target, &string);
        assert_eq!(found.iter().collect::<Vec<_>>(), [hint], "{state}");
        target
            .client()
            .batch_execute(hint)
            .expect("a hint that can be run");
        assert!(is_known(
            &server_facts(&mut target.server(&string)).expect("facts"),
            "statements.top"
        ));
    }
}

/// The statements that people read in the hints of `facts`, `check` and `watch`, taken from the
/// pages with their broken lines.
fn statements_of_hints(target: &Target, string: &str) -> BTreeSet<String> {
    let run = |arguments: &[&str]| {
        let said = target.home.run(arguments);
        let text = format!("{} {}", said.out, said.err);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let pages = [
        run(&["facts", string]),
        run(&["check", string, "--only", "wal_sync", "--seconds", "0.1"]),
        run(&["watch", string, "--once", "--interval", "100ms", "--json"]).replace("\\\"", "\""),
    ];
    let mut found = BTreeSet::new();
    for page in &pages {
        for (at, _) in page.match_indices("GRANT ") {
            let (right, rest) = page[at..]
                .split_once(" TO ")
                .unwrap_or_else(|| panic!("no role in {}", &page[at..]));
            let role = match rest.strip_prefix('"') {
                Some(rest) => format!("\"{}\"", rest.split('"').next().unwrap_or_default()),
                None => rest
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect(),
            };
            found.insert(format!("{right} TO {role}"));
        }
        for begin in ["CREATE EXTENSION ", "ALTER EXTENSION "] {
            for (at, _) in page.match_indices(begin) {
                let words = if begin.starts_with("ALTER") { 4 } else { 3 };
                let statement: Vec<&str> = page[at..].split(' ').take(words).collect();
                found.insert(
                    statement
                        .join(" ")
                        .trim_end_matches([';', ',', '.', '"', ')'])
                        .to_owned(),
                );
            }
        }
    }
    found
}

#[test]
fn facts_of_14() {
    check(14);
}

#[test]
fn facts_of_15() {
    check(15);
}

#[test]
fn facts_of_16() {
    check(16);
}

#[test]
fn facts_of_17() {
    check(17);
}

#[test]
fn facts_of_the_newest_version() {
    check(newest_major());
}

#[test]
fn what_is_locked_is_not_waited_for_and_nothing_else_is_lost() {
    let target = Target::new(18);
    for statement in SET_UP.split(';') {
        target.client().batch_execute(statement).expect("set up");
    }
    target.client().batch_execute("VACUUM").expect("pages counted");
    let mut server = target.server(&target.string());
    let mut other = target.client();
    // A new connection could not even log in while this is held.
    let lock = "BEGIN; LOCK TABLE big, pg_db_role_setting IN ACCESS EXCLUSIVE MODE";
    other.batch_execute(lock).expect("a lock");
    let facts = server_facts(&mut server).expect("facts");
    let why = missing(&facts, "settings.hidden_by_role_or_database");
    assert!(why.contains("somebody holds a lock"), "{why}");
    let hidden = row(value(&facts, "settings.unknown"), "name", "application_name").expect("a reason");
    assert!(
        hidden["why"].to_string().contains("somebody holds a lock"),
        "{hidden}"
    );
    let big = row(value(&facts, "tables.largest"), "table", "public.big").expect("the largest");
    assert_eq!(big["bytes"], Value::Null);
    assert!(big["bytes_estimated"].as_u64() > Some(1 << 20), "{big}");
    assert!(value(&facts, "connections.used").as_u64() >= Some(1));
    assert!(
        value(&facts, "connections.longest_transaction_s")
            .as_f64()
            .is_some()
    );
    drop(other);
}

#[test]
fn a_server_that_stands_still_is_given_up() {
    let target = Target::new(18);
    let mut server = target.server(&target.string());
    let pid = server.value("asking for the pid", "SELECT pg_backend_pid()");
    let pid = pid.expect("an answer").expect("a pid");
    signal(&pid, "-STOP");
    let outcome = server_facts(&mut server);
    signal(&pid, "-CONT");
    let Err(error @ ServerError::Silent { .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(error.to_string().contains("said nothing for"), "{error}");
    // The late answer is nobody's.
    let after = server.value("asking again", "SELECT 2");
    assert!(matches!(after, Err(ServerError::Broken { .. })), "{after:?}");

    let postmaster = target.home.postmaster("x").expect("running");
    signal(postmaster, "-STOP");
    let outcome = Found::find(&format!("{} connect_timeout=1", target.string()), &|_| None);
    signal(postmaster, "-CONT");
    let Err(error) = outcome else {
        panic!("it was reached");
    };
    assert!(matches!(error, ServerError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("no session within 1 s"), "{error}");
}
