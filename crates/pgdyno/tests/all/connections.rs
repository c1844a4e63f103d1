//! Ways to a server: TLS in all of libpq's modes, certificates, SCRAM with channel binding, md5,
//! services, password files; for the oldest and the newest version.

use common::certificates::Certificates;
use common::machine::newest;
use common::{Home, Said, said};
use pgdyno_server::Found;
use pgdyno_server::series::ServerSeries;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const RULES: &str = "local all all trust
hostssl all certified 127.0.0.1/32 cert
hostssl all sealed 127.0.0.1/32 scram-sha-256
hostnossl all plain 127.0.0.1/32 scram-sha-256
host all old 127.0.0.1/32 md5
";

/// A server with TLS and users that must come by different ways; all passwords are the same.
fn server(home: &Home, version: &str, certificates: &Certificates) {
    home.run(&["sandbox", "create", "x", "-V", version]).fine();
    let data = home.data("x");
    let owner = fs::metadata(&data).expect("a directory");
    for (from, to) in [
        ("server.crt", "server.crt"),
        ("server.key", "server.key"),
        ("authority.crt", "root.crt"),
    ] {
        let to = data.join(to);
        fs::copy(certificates.path(from), &to).expect("copied");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("changed");
        use std::os::unix::fs::MetadataExt;
        chown(&to, Some(owner.uid()), Some(owner.gid())).expect("owned");
    }
    fs::write(data.join("pg_hba.conf"), RULES).expect("written");
    home.ask("x", "CREATE ROLE certified LOGIN");
    for (user, encryption) in [
        ("sealed", "scram-sha-256"),
        ("plain", "scram-sha-256"),
        ("old", "md5"),
    ] {
        let sql = format!(
            "SET password_encryption = '{encryption}'; CREATE ROLE {user} LOGIN PASSWORD 'open sesame'"
        );
        home.ask("x", &sql);
    }
    home.ask("x", "ALTER SYSTEM SET ssl_ca_file = 'root.crt'");
    home.ask("x", "ALTER SYSTEM SET ssl = on");
    home.run(&["sandbox", "restart", "x"]).fine();
}

/// A short load with `parameters` added to the address; the password is in the environment.
fn bench(home: &Home, parameters: &str, more: &[&str]) -> Said {
    let target = format!(
        "host=localhost port={} dbname=postgres {parameters}",
        home.record("x")["port"]
    );
    let mut arguments = vec!["bench", &target, "-w", "simple", "-c", "3", "-j", "3", "-t", "50"];
    arguments.extend(more);
    let mut command = home.command(&arguments);
    command
        .env("PGPASSWORD", "open sesame")
        .env("HOME", home.path.path());
    said(command.output().expect("pgdyno runs"))
}

/// Series with `parameters` added to the address: a tick, and a sample of what sessions wait for.
fn watch(home: &Home, parameters: &str) {
    let target = format!(
        "host=localhost port={} dbname=postgres {parameters}",
        home.record("x")["port"]
    );
    let password = |name: &str| (name == "PGPASSWORD").then(|| "open sesame".to_owned());
    let conninfo = Found::find(&target, &password).expect(parameters).conninfo;
    let mut series = ServerSeries::connect(&conninfo).expect(parameters);
    for _ in 0..2 {
        let reading = series.tick();
        assert!(
            reading.value("db.connections").is_some(),
            "{parameters}: {reading:?}"
        );
    }
    let commits = series.own_commits();
    series.sample_waits();
    assert!(series.own_commits().sure > commits.sure, "{parameters}");
}

fn every_way(version: &str) {
    let home = Home::new();
    let certificates = Certificates::make(home.file("certificates"));
    server(&home, version, &certificates);
    let root = format!("sslrootcert={}", certificates.path("authority.crt"));
    let strangers = format!("sslrootcert={}", certificates.path("strangers.crt"));
    let own = format!(
        "sslcert={} sslkey={}",
        certificates.path("client.crt"),
        certificates.path("client.key")
    );
    let fine = |parameters: &str| {
        for engine in ["io-uring", "epoll", "blocking"] {
            let result = bench(&home, parameters, &["--json", "--engine", engine])
                .fine()
                .json();
            assert_eq!(result["committed"], 150, "{parameters} {engine}: {result}");
            assert_eq!(
                result["cross_check"]["agrees"], true,
                "{parameters} {engine}: {result}"
            );
        }
    };
    let fails = |parameters: &str, expected: &[&str]| {
        let said = bench(&home, parameters, &[]).fails(1, expected);
        assert!(
            said.err.lines().count() <= 2,
            "a line and a hint, not one per client:\n{}",
            said.err
        );
        assert!(!said.err.contains("sesame"), "{}", said.err);
    };
    fine("user=plain sslmode=disable");
    fine("user=sealed");
    fine("user=sealed sslmode=require channel_binding=require");
    fine(&format!("user=sealed sslmode=verify-full {root}"));
    fine(&format!("user=certified sslmode=verify-full {root} {own}"));
    fine("user=old sslmode=disable");
    fine("user=old sslmode=require");
    let direct =
        format!("user=sealed sslmode=verify-full {root} sslnegotiation=direct channel_binding=require");
    match version {
        // Since 17 a server knows a handshake that it was not asked for.
        "17" | "18" | "19" => fine(&direct),
        _ => fails(&direct, &["no TLS with the server"]),
    }
    // The series have a way of their own to read and write what goes through it.
    for parameters in [
        "user=plain sslmode=disable".to_owned(),
        "user=sealed sslmode=require channel_binding=require".to_owned(),
        format!("user=sealed sslmode=verify-full {root}"),
        format!("user=sealed sslmode=verify-full {root} hostaddr=127.0.0.1"),
        format!("user=certified sslmode=verify-full {root} {own}"),
        "user=old sslmode=require".to_owned(),
    ] {
        watch(&home, &parameters);
    }
    // The address is where it goes, the name is what the certificate is compared with.
    fine(&format!(
        "user=sealed sslmode=verify-full {root} hostaddr=127.0.0.1"
    ));
    fails(
        &format!("user=sealed sslmode=verify-full {root} hostaddr=127.0.0.1 host=db.example"),
        &["not valid for name"],
    );
    let refused = bench(&home, "user=plain", &[]).fine();
    assert!(
        refused
            .err
            .contains("reached without TLS, for with it: no pg_hba.conf entry"),
        "{}",
        refused.err
    );
    fine("user=plain sslmode=allow");
    fine("user=sealed sslmode=allow");
    fails("user=plain channel_binding=require", &["no pg_hba.conf entry"]);
    fails(
        "user=plain password=wrong",
        &[
            "with TLS: no pg_hba.conf entry",
            "without: password authentication failed",
        ],
    );
    // Signed by itself: the certificate is its own root.
    fine(&format!(
        "user=sealed sslmode=verify-full sslrootcert={}",
        certificates.path("server.crt")
    ));

    fails("user=sealed sslmode=disable", &["no pg_hba.conf entry"]);
    fails(
        &format!("user=sealed sslmode=verify-full {strangers}"),
        &["UnknownIssuer"],
    );
    fails(
        &format!("user=sealed sslmode=verify-full {root} host=127.0.0.1"),
        &["not valid for name"],
    );
    let by_number = format!("user=sealed sslmode=verify-ca {root} host=127.0.0.1");
    bench(&home, &by_number, &[]).fine();
    fails(
        "user=plain sslmode=disable channel_binding=require",
        &["channel binding"],
    );
    fails("user=certified sslmode=require", &["certificate"]);
    fails("user=sealed sslmode=verify-ca", &["no sslrootcert"]);
    fails(
        "user=sealed sslmode=require sslrootcert=/nowhere.crt",
        &["/nowhere.crt holds no certificate"],
    );
    fails(
        "user=sealed sslmode=sometimes",
        &["there are disable, allow, prefer"],
    );
    fails("user=sealed password=wrong", &["password authentication failed"]);
    fs::set_permissions(certificates.path("client.key"), fs::Permissions::from_mode(0o644)).expect("changed");
    fails(&format!("user=certified {own}"), &["can be read by others"]);
}

/// A certificate that signed itself, for so many days from now; the server shows it from now on.
fn signs_itself(home: &Home, certificates: &Certificates, days: u32) -> String {
    let (key, request, certificate) = (
        certificates.path("server.key"),
        certificates.path("server.csr"),
        certificates.path(&format!("itself{days}.crt")),
    );
    let extensions = home.write("itself", "subjectAltName=DNS:localhost");
    certificates.openssl(&[
        "x509",
        "-req",
        "-in",
        &request,
        "-signkey",
        &key,
        "-days",
        &days.to_string(),
        "-extfile",
        &extensions.to_string_lossy(),
        "-out",
        &certificate,
    ]);
    // One for no days expires in this second.
    let is_over = || {
        let check = ["x509", "-checkend", "0", "-noout", "-in", &certificate];
        let output = Command::new("openssl").args(check).output();
        !output.expect("openssl runs").status.success()
    };
    while days == 0 && !is_over() {}
    let data = home.data("x").join("server.crt");
    // Over what is there, which keeps its owner and mode.
    let bytes = fs::read(&certificate).expect("read");
    fs::write(data, bytes).expect("written");
    home.run(&["sandbox", "restart", "x"]).fine();
    certificate
}

/// What the server's TLS may be, and the result in each mode.
fn a_certificate_of_its_own(version: &str) {
    let home = Home::new();
    let certificates = Certificates::make(home.file("certificates"));
    server(&home, version, &certificates);
    for days in [2, 0] {
        let root = signs_itself(&home, &certificates, days);
        for mode in ["verify-ca", "verify-full"] {
            let parameters = format!("user=sealed sslmode={mode} sslrootcert={root}");
            let said = bench(&home, &parameters, &[]);
            match days {
                1.. => said.fine(),
                _ => said.fails(1, &["no TLS with the server", "expired"]),
            };
        }
        bench(&home, "user=sealed sslmode=require", &[]).fine();
    }
    // TLS so old that nobody shakes hands with it: "prefer" then takes plain text, and nothing else
    // does.
    home.ask("x", "ALTER SYSTEM SET ssl_min_protocol_version = 'TLSv1'");
    home.ask("x", "ALTER SYSTEM SET ssl_max_protocol_version = 'TLSv1.1'");
    home.run(&["sandbox", "restart", "x"]).fine();
    let said = bench(&home, "user=old", &[]).fine();
    assert!(said.err.contains("reached without TLS"), "{}", said.err);
    bench(&home, "user=old sslmode=require", &[]).fails(1, &["no TLS with the server"]);
    bench(&home, "user=sealed", &[]).fails(1, &["with TLS: ", "without: no pg_hba.conf entry"]);
}

#[test]
fn certificates_of_ones_own_on_the_oldest_version() {
    a_certificate_of_its_own("14");
}

#[test]
fn certificates_of_ones_own_on_the_newest_version() {
    a_certificate_of_its_own(&newest());
}

/// A refusal of many clients is reported in one line.
#[test]
fn a_no_to_many_clients_is_one_line() {
    let home = Home::new();
    let certificates = Certificates::make(home.file("certificates"));
    server(&home, "18", &certificates);
    home.ask("x", "ALTER SYSTEM SET max_connections = 20");
    home.run(&["sandbox", "restart", "x"]).fine();
    let port = home.record("x")["port"].to_string();
    let check = |parameters: &str, expected: &[&str]| {
        let target = format!("host=localhost port={port} dbname=postgres {parameters}");
        let mut command = home.command(&["bench", &target, "-w", "simple", "-c", "64", "-j", "4", "-t", "9"]);
        command
            .env("PGPASSWORD", "open sesame")
            .env("HOME", home.path.path());
        let said = said(command.output().expect("pgdyno runs")).fails(1, expected);
        let lines: Vec<&str> = said
            .err
            .lines()
            .filter(|line| !line.starts_with("hint: "))
            .collect();
        assert_eq!(lines.len(), 1, "{}", said.err);
        assert!(
            !said.err.contains("sesame") && said.out.is_empty(),
            "{}",
            said.err
        );
    };
    check("user=sealed password=wrong", &["password authentication failed"]);
    check("user=plain sslmode=require", &["no pg_hba.conf entry"]);
    check("user=sealed", &["of 64 could not connect", "53300", "hint: "]);
    home.ask("x", "ALTER SYSTEM SET ssl = off");
    home.run(&["sandbox", "restart", "x"]).fine();
    check("user=old sslmode=require", &["no TLS with the server"]);
}

#[test]
fn every_way_to_the_oldest_version() {
    every_way("14");
}

#[test]
fn every_way_to_the_newest_version() {
    every_way(&newest());
}

#[test]
fn services_and_password_files_are_libpqs() {
    let home = Home::new();
    let certificates = Certificates::make(home.file("certificates"));
    server(&home, "18", &certificates);
    let port = home.record("x")["port"].to_string();
    let secret = |path: &Path, text: &str| {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("changed");
    };
    let services = home.file("services");
    let text = format!(
        "[shop]\nhost=localhost\nport={port}\nuser=sealed\ndbname=postgres\nsslmode=verify-full\nsslrootcert={}\n",
        certificates.path("authority.crt")
    );
    secret(&services, &text);
    let passwords = home.file("passwords");
    secret(&passwords, &format!("localhost:{port}:*:sealed:open sesame\n"));
    let run = |target: &str, variables: &[(&str, &str)]| {
        let mut command = home.command(&["bench", target, "-w", "simple", "-c", "2", "-t", "50"]);
        command
            .env("HOME", home.path.path())
            .env("PGSERVICEFILE", &services);
        said(
            command
                .envs(variables.iter().copied())
                .output()
                .expect("pgdyno runs"),
        )
    };
    let passfile = format!("service=shop passfile={}", passwords.display());
    run(&passfile, &[]).fine();
    let file = passwords.to_string_lossy();
    run("", &[("PGSERVICE", "shop"), ("PGPASSFILE", &file)]).fine();
    // What is in a URI goes before its service.
    run(
        &format!("postgresql://sealed@/postgres?service=shop&passfile={file}"),
        &[("PGDATABASE", "nowhere")],
    )
    .fine();
    run(
        "postgresql:///nowhere?service=shop",
        &[("PGPASSWORD", "open sesame")],
    )
    .fails(1, &["no such database", "nowhere"]);
    run("service=nowhere", &[]).fails(1, &["there is no service \"nowhere\"", "services"]);
    // What is in the string itself counts.
    run("service=shop user=plain", &[("PGPASSWORD", "open sesame")]).fails(1, &["no pg_hba.conf entry"]);
}

/// Ways to mistype a target or a store, a password in each.
const MISTYPED: [&str; 30] = [
    "postgres//u:Q7hunter2@h",
    "postgress://u:Q7hunter2@h/d",
    "postgre://u:Q7hunter2@h/d",
    "postgresql:/u:Q7hunter2@h/d",
    "postgres:u:Q7hunter2@h",
    "POSTGRES://u:Q7hunter2@h/d",
    "postgres://u:Q7hunter2",
    "postgres://u:Q7hunter2/d?sslmode=require",
    "postgres://u:Q7hun@Q7hunter2@h/d",
    "postgres://u/Q7hunter2@h/d",
    "postgres:///u:Q7hunter2@h/d",
    "postgres://u:%ZZQ7hunter2@h/d",
    "//u:Q7hunter2@h/d",
    "u:Q7hunter2@h:5432/d",
    ":Q7hunter2@h",
    "jdbc:postgresql://h/d?user=u&password=Q7hunter2",
    "sandbox:u:Q7hunter2@h",
    "sandbox:Q7hunter2 x",
    "sandbox: Q7hunter2",
    "host=u:Q7hunter2@h",
    "host=postgres://u:Q7hunter2@h/d",
    "dbname=postgres://u:Q7hunter2@h/d host=/nowhere",
    "user=u:Q7hunter2 host=/nowhere",
    "host=/nowhere password=it's Q7hunter2",
    "host=/nowhere password='Q7hunter2",
    "host=/nowhere connect_timeout=5password=Q7hunter2",
    "host=/nowhere sslmode=require:Q7hunter2",
    "host=/nowhere pasword=Q7hunter2",
    "host:/nowhere password:Q7hunter2",
    "password=Q7hunter2 \u{1b}[31m\"x\" \\ y",
];

/// Every command with the places where a target, a store or another text is given; `{}` is what was
/// mistyped.
const COMMANDS: [&str; 79] = [
    "completions|{}",
    "facts|{}",
    "facts|--host|{}",
    "check|{}",
    "advise|{}",
    "advise|--host-only|--only|x|--store|{}",
    "watch|{}|--once",
    "bench|{}",
    "bench|sandbox:x|{}",
    "bench|sandbox:x|--clients|{}",
    "data|create|{}",
    "data|check|{}",
    "data|drop|{}",
    "run|{}",
    "run|FILE|--target|{}",
    "run|FILE|--set|target.connection={}",
    "run|FILE|--set|blocks={}",
    "run|FILE|--size|{}|--dry-run",
    "run|FILE|--load-host|{}",
    "run|FILE|--load-host|local|--load-connection|{}",
    "resume|1|--store|{}",
    "resume|{}",
    "list|--store|{}",
    "list|--tag|{}",
    "list|--since|{}",
    "list|--search|{}",
    "experiments|{}",
    "show|{}",
    "show|1|--store|{}",
    "compare|{}|1",
    "compare|1|2|--fail-if|{}",
    "compare|1|2|--store-b|{}",
    "capacity|--tps|5|{}",
    "report|1|--store|{}",
    "report|--trials|{}",
    "export|1|-f|csv|--store|{}",
    "tag|1|add|{}",
    "note|1|{}",
    "prune|--keep|1|--store|{}",
    "import|{}",
    "check-store|{}",
    "profile|show|{}",
    "profile|diff|{}|{}",
    "apply|{}|work_mem=4MB",
    "apply|--host-only|{}",
    "verify|{}|work_mem=4MB",
    "status|{}",
    "knobs|{}",
    "sandbox|create|{}",
    "gate|{}|{}",
    "gate|FILE|FILE|--script|{}",
    "gate|FILE.sql|FILE.sql|--target|{}",
    "tune|{}",
    "tune|sandbox:x|--script|{}",
    "tune|sandbox:x|--subject-to|{}",
    "tune|sandbox:x|--fix|work_mem={}",
    "tune|sandbox:x|--start|{}",
    "tune|sandbox:x|--rate|{}",
    "tune|sandbox:x|--given|{}=1",
    "tune|sandbox:x|--load-host|local|--load-connection|{}",
    "init|{}|-",
    "init|sandbox:x|{}",
    "agent|--remove|{}",
    "mcp|{}",
    "mcp|sandbox:x|--store|{}",
    "serve|--store|{}",
    "serve|--listen|{}",
    "serve|{}",
    "export|{}|-f|csv",
    "export|1|-f|{}",
    "export|1|-f|csv|{}",
    "advise|{}|--json",
    "advise|sandbox:x|--only|{}",
    "advise|sandbox:x|--detail|{}",
    "apply|sandbox:x|{}",
    "apply|sandbox:x|work_mem={}",
    "apply|{}|work_mem=4MB|--revert-after|10m",
    "restore|{}",
    "confirm|{}",
];

/// Commands that take neither a target nor a store, nor any other text.
const WITHOUT_TEXT: [&str; 2] = ["demo", "help"];

/// Files below a directory, links not followed: their names and what is in them.
fn files(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).expect("readable").flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        let content = if kind.is_file() {
            fs::read(&path).expect("readable")
        } else {
            Vec::new()
        };
        found.push((path.display().to_string(), content));
        if kind.is_dir() {
            files(&path, found);
        }
    }
}

#[test]
fn a_password_that_was_mistyped_is_neither_shown_nor_stored() {
    let home = Home::new();
    let file = "name = \"x\"\nquestion = \"?\"\ndesign = \"ab\"\nblocks = 2\n[load]\nworkload = \"select\"\n[[step]]\nname = \"a\"\n\
                title = \"a\"\n[step.set]\nwork_mem = \"8MB\"\n[target]\n";
    let experiment = home.write("plain.toml", &format!("{file}sandbox = \"x\"\n"));
    let run = |arguments: &[&str], store: Option<&str>| {
        let mut command = home.command(arguments);
        command.current_dir(home.path.path());
        if let Some(store) = store {
            command.env("PGDYNO_STORE", store);
        }
        let said = said(command.output().expect("pgdyno runs"));
        // Not of a panic.
        assert_ne!(said.code, 101, "{arguments:?}: {}\n{}", said.out, said.err);
        for text in [&said.out, &said.err] {
            assert!(
                !text.contains("Q7hun") && !text.contains('\u{1b}'),
                "{arguments:?}:\n{text}"
            );
        }
        said.code
    };
    for mistyped in MISTYPED {
        assert_ne!(run(&["check", mistyped], None), 0, "{mistyped}");
        assert_ne!(run(&["list", "--store", mistyped], None), 0, "{mistyped}");
        assert_ne!(run(&["list"], Some(mistyped)), 0, "{mistyped}");
        // Where the program expects nothing of the kind, its parser quotes it.
        run(&["status", mistyped], None);
        for key in ["connection", "sandbox", "create.version", "nonsense"] {
            let quoted = serde_json::to_string(mistyped).expect("a string");
            let broken = home.write("broken.toml", &format!("{file}{key} = {quoted}\n"));
            run(&["run", &broken.to_string_lossy()], None);
            fs::remove_file(broken).expect("removed");
        }
    }
    let help = home.run(&["--help"]).fine().out;
    let listed = help
        .split("Commands:")
        .nth(1)
        .and_then(|rest| rest.split("Options:").next())
        .expect("a list");
    let names = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '));
    for name in names.filter_map(|line| line.split_whitespace().next()) {
        let begins = |command: &&str| command.split('|').next() == Some(name);
        assert!(
            COMMANDS.iter().any(begins) || WITHOUT_TEXT.contains(&name),
            "{name} is not tested"
        );
    }
    for command in COMMANDS {
        for mistyped in [MISTYPED[0], MISTYPED[17]] {
            let words: Vec<String> = command
                .split('|')
                .map(|word| {
                    word.replace("{}", mistyped)
                        .replace("FILE", &experiment.to_string_lossy())
                })
                .collect();
            run(&words.iter().map(String::as_str).collect::<Vec<_>>(), None);
        }
    }
    let mut left = Vec::new();
    files(home.path.path(), &mut left);
    for (name, content) in left {
        let content = String::from_utf8_lossy(&content).into_owned();
        assert!(!name.contains("Q7hun") && !content.contains("Q7hun"), "{name}");
    }
}
