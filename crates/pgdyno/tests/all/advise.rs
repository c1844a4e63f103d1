//! `pgdyno advise`, for real: a stock server, one in danger, what experiments have shown, and the
//! table of rules.

mod cures;
mod own_traces;
mod planted;
mod planted_alone;
mod standby;

use common::Home;
use common::machine::{newest, whole_machine};
use pgdyno_advice::Advisor;
use pgdyno_knobs::Catalogue;
use postgres::{Client, NoTls};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

/// The disk of the host that the tests run on may be nearly full.
const OF_DISK: &str = "wal-volume-full";

fn rules_of(value: &Value, list: &str) -> Vec<String> {
    let list = value[list].as_array().expect("a list");
    let name = |entry: &Value| entry["rule"].as_str().unwrap_or_default().to_owned();
    list.iter().map(name).collect()
}

#[test]
fn a_stock_server_is_in_no_danger_and_a_careless_one_is() {
    let home = Home::on_disk();
    home.run(&["sandbox", "create", "stock"]).fine();
    let advised = home.run(&["advise", "sandbox:stock", "--json"]).json();
    assert_eq!(advised["format"], "pgdyno-advice/1");
    assert_eq!(advised["target"], "sandbox stock");
    let severe = advised["advice"].as_array().expect("a list").iter();
    let mut severe = severe.filter(|advice| advice["severity"] == "severe" && advice["rule"] != OF_DISK);
    assert_eq!(severe.next(), None, "{advised}");
    // Rules ask for facts that there are, and evaluate: what is not judged has a fact's own reason.
    for rule in advised["not_judged"].as_array().expect("a list") {
        let because = rule["because"].as_str().expect("a reason");
        assert!(!because.contains("there is no fact"), "{rule}");
        assert!(!because.starts_with('`'), "{rule}");
    }
    let sizing = advised["sizing"].as_array().expect("a list");
    assert!(
        sizing.iter().any(|line| line["title"] == "Worst case of memory"),
        "{advised}"
    );

    home.run(&[
        "sandbox",
        "create",
        "careless",
        "--set",
        "fsync=off",
        "--set",
        "autovacuum=off",
    ])
    .fine();
    let said = home.run(&["advise", "sandbox:careless", "--json"]);
    assert_eq!(said.code, 3, "{}", said.err);
    let advised = said.json();
    assert_eq!(advised["severe"], true);
    let first = &advised["advice"][0];
    assert_eq!(first["rule"], "fsync-off");
    assert_eq!(
        (&first["now"], &first["recommended"], &first["cost"]),
        (&"off".into(), &"on".into(), &"reload".into())
    );
    // What removes the cure again after ten minutes is none.
    assert_eq!(
        (&first["kind"], &first["commands"], &first["can_be_tried"]),
        (&"safety".into(), &Value::Array(Vec::new()), &false.into())
    );
    let steps = first["procedure"].to_string();
    for expected in [
        "ALTER SYSTEM SET fsync = on;",
        "initdb --sync-only -D /",
        "pg_dumpall",
        "checksums",
        "What was lost",
    ] {
        assert!(steps.contains(expected), "{expected} is not in {steps}");
    }
    assert!(
        rules_of(&advised, "advice")
            .iter()
            .any(|rule| rule.starts_with("autovacuum-off"))
    );

    // As a page, and as Markdown.
    let page = home.run(&["advise", "sandbox:careless", "--verbose"]);
    assert_eq!(page.code, 3);
    for expected in [
        "        what ",
        "severe  fsync ",
        "--detail fsync (or all)",
        "SIZING",
        "NOT JUDGED",
        "nothing was measured; --check does",
    ] {
        assert!(page.out.contains(expected), "{expected} is not in:\n{}", page.out);
    }
    let text = |line: &&str| !line.contains("pgdyno ");
    assert!(
        page.out
            .lines()
            .filter(text)
            .all(|line| line.chars().count() <= 100),
        "{}",
        page.out
    );
    let page = home.run(&["advise", "sandbox:careless", "--format", "md"]);
    assert!(
        page.out.contains("| severe | `fsync = on` | `off` |"),
        "{}",
        page.out
    );

    details_are_shown_on_demand(&home);

    // One rule alone; and of what ends a danger no experiment is written.
    let file = home.file("try.toml");
    let file = file.to_str().expect("a path");
    let arguments = ["advise", "sandbox:careless", "--only", "fsync-off", "--json"];
    let said = home.run(&arguments);
    assert_eq!(rules_of(&said.json(), "advice"), ["fsync-off"]);
    home.run(&[&arguments[..4], &["--experiment", file]].concat())
        .fails(2, &["nothing that is advised here can be tried by an experiment"]);
    home.run(&["advise", "sandbox:careless", "--experiment", file]);
    let text = fs::read_to_string(file).expect("an experiment");
    let written: toml::Table = text.parse().expect("TOML");
    assert_eq!(written["target"]["sandbox"].as_str(), Some("careless"));
    for knob in ["fsync", "autovacuum"] {
        assert!(
            !text.contains(&format!("\"{knob}\" =")),
            "{knob} is tried:\n{text}"
        );
    }
    // What takes effect without a restart takes turns within one load.
    let turns = home.file("try-turns.toml");
    let written: toml::Table = fs::read_to_string(&turns).expect("a file").parse().expect("TOML");
    assert_eq!(written["design"].as_str(), Some("switchback"), "{written}");
    let dry = home
        .run(&["run", turns.to_str().expect("a path"), "--dry-run"])
        .fine();
    assert!(
        dry.out.contains("a load begins") && dry.out.contains("in turns"),
        "{}",
        dry.out
    );
}

/// A line each at first; all about one by its setting or rule; less by severity; colours on request
/// of the terminal alone.
fn details_are_shown_on_demand(home: &Home) {
    let page = |arguments: &[&str]| {
        home.run(&[&["advise", "sandbox:careless"], arguments].concat())
            .out
    };
    let table = page(&[]);
    assert!(
        !table.contains("ALTER SYSTEM") && !table.contains("SIZING"),
        "{table}"
    );
    assert!(
        !table.contains('\u{1b}') && !table.contains('\u{fdd0}'),
        "{table:?}"
    );
    for name in ["fsync", "fsync-off"] {
        let detail = page(&["--detail", name]);
        for expected in [
            "severe: fsync = on (now off)",
            "  steps     1. ALTER SYSTEM SET fsync = on;\n            2. SELECT pg_reload_conf();\n",
            "  source    PostgreSQL docs",
        ] {
            assert!(detail.contains(expected), "{expected} is not in:\n{detail}");
        }
        assert!(
            !detail.contains("--revert-after") && !detail.contains("autovacuum ="),
            "{detail}"
        );
    }
    let severe = page(&["--severity", "severe"]);
    assert!(severe.contains("severe  fsync"), "{severe}");
    assert!(
        !severe.contains("\nhint ") && !severe.contains("\nadvice "),
        "{severe}"
    );
    let all = page(&["--all"]);
    assert!(
        all.lines().count() >= table.lines().count() && !all.contains(": --all"),
        "{all}"
    );
    home.run(&["advise", "sandbox:careless", "--detail", "nonsense"])
        .fails(2, &["--detail nonsense: there is no such rule", "hint: "]);
}

/// Rows of the table: what is shown without being asked for.
fn rows(page: &str) -> Vec<&str> {
    let is_row = |line: &&str| {
        ["severe  ", "advice  ", "hint    "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    page.lines().filter(is_row).collect()
}

/// A server that is set by a profile, with what a careful owner sets beside it: little is left to
/// say, and nothing grave.
#[test]
fn a_sensibly_configured_server_of_the_newest_version_gets_three_lines_at_most() {
    // What other tests set of the kernel would be lines too.
    let _machine = whole_machine();
    let home = Home::on_disk();
    home.sandbox("healthy", &["--version", &newest()]);
    let profile = home
        .run(&[
            "profile",
            "export",
            "oltp",
            "sandbox:healthy",
            "--as",
            "postgresql.conf",
        ])
        .fine()
        .out;
    let own = "max_parallel_workers = 2\nshared_preload_libraries = 'pg_stat_statements'\ntrack_io_timing = on\n\
               log_checkpoints = on\nlog_lock_waits = on\nlog_autovacuum_min_duration = 1min\n\
               log_min_duration_statement = 5s\nlog_temp_files = 64MB\nlog_line_prefix = '%m [%p] %q%u@%d '\n\
               statement_timeout = 10min\nlock_timeout = 1min\nidle_in_transaction_session_timeout = 10min\n\
               logging_collector = on\ntcp_keepalives_idle = 60\nwal_level = replica\narchive_mode = on\n\
               archive_command = 'true'\n";
    let main = home.data("healthy").join("postgresql.conf");
    let before = fs::read_to_string(&main).expect("it");
    fs::write(&main, format!("{before}\n{profile}\n{own}")).expect("written");
    home.run(&["sandbox", "restart", "healthy"]).fine();
    let page = home.run(&["advise", "sandbox:healthy"]).out;
    let mut rows = rows(&page);
    rows.retain(|row| !row.contains(OF_DISK));
    assert!(rows.len() <= 3, "{page}");
    assert!(rows.iter().all(|row| !row.starts_with("severe")), "{page}");
    // What the host lacks may be among them, and nothing that the profile sets.
    for knob in [
        "shared_buffers",
        "effective_cache_size",
        "work_mem",
        "max_wal_size",
        "jit",
    ] {
        assert!(rows.iter().all(|row| !row.contains(knob)), "{page}");
    }
}

/// The sizes of advice, of profiles, and of a sandbox with a limit are the same, also when memory
/// is taken in between.
#[test]
fn sizes_are_the_same_for_advise_and_profile_and_a_minute_later() {
    let home = Home::new();
    home.sandbox("sized", &["--memory", "1500M"]);
    let of_profile = || {
        let diff = home
            .run(&["profile", "diff", "oltp", "sandbox:sized", "--json"])
            .fine()
            .json();
        let settings = diff["settings"].as_array().expect("settings").clone();
        move |knob: &str| {
            let found = settings.iter().find(|setting| setting["knob"] == knob);
            found.map(|setting| setting["value"].clone())
        }
    };
    let first = of_profile();
    assert_eq!(first("shared_buffers"), Some("384MB".into()));
    assert_eq!(first("effective_cache_size"), Some("1152MB".into()));
    let advise = || home.run(&["advise", "sandbox:sized", "--json"]).json();
    let advised = advise();
    let value = |advised: &Value, knob: &str| {
        let all = advised["advice"].as_array().expect("advice").iter();
        let mut found = all.filter(|advice| advice["setting"]["knob"] == knob);
        found.next().map(|advice| advice["recommended"].clone())
    };
    assert_eq!(
        value(&advised, "effective_cache_size"),
        first("effective_cache_size")
    );
    let taken = vec![1_u8; 256 << 20];
    home.ask(
        "sized",
        "CREATE TABLE t AS SELECT generate_series(1, 300000) AS n",
    );
    let (again, second) = (advise(), of_profile());
    for knob in [
        "shared_buffers",
        "effective_cache_size",
        "maintenance_work_mem",
        "work_mem",
        "max_wal_size",
    ] {
        assert_eq!(first(knob), second(knob), "{knob}");
        assert_eq!(value(&advised, knob), value(&again, knob), "{knob}");
    }
    assert_eq!(
        taken
            .iter()
            .rev()
            .take(2)
            .map(|byte| u32::from(*byte))
            .sum::<u32>(),
        2
    );
}

#[test]
fn what_an_experiment_has_shown_is_in_the_advice() {
    let home = Home::new();
    home.sandbox("shown", &["--set", "checkpoint_completion_target=0.5"]);
    let file = home.file("advice.toml");
    let file = file.to_str().expect("a path");
    home.run(&[
        "advise",
        "sandbox:shown",
        "--only",
        "checkpoint-in-a-hurry",
        "--experiment",
        file,
    ])
    .fine();
    // The shortest there can be: what comes out does not matter, only that it is found again. Any
    // difference is within half.
    let text = fs::read_to_string(file).expect("an experiment");
    let text = text
        .replace("blocks = 10", "blocks = 5\nsmallest_effect = 0.9")
        .replace("scale = 50", "scale = 1")
        .replace("tpcb", "select-only")
        .replace("warmup_s = 10", "warmup_s = 0.5")
        .replace("measure_s = 30", "rate = \"200\"\nmeasure_s = 1");
    fs::write(file, text).expect("written");
    home.run(&["run", file]).fine();
    let said = home
        .run(&[
            "advise",
            "sandbox:shown",
            "--json",
            "--only",
            "checkpoint-in-a-hurry",
        ])
        .fine();
    let advised = said.json();
    let texts = format!("{}{}", advised["skipped"], advised["advice"]);
    assert!(
        texts.contains("measured here as") || texts.contains("\"experiment\":1"),
        "{texts}"
    );
}

#[test]
fn a_host_alone_is_advised_by_its_files() {
    let home = Home::new();
    let machine = pgdyno_fixture::Machine::named("x86_64-6.1-numa4");
    let said = home
        .run(&[
            "advise",
            "--root",
            machine.root().to_str().expect("a path"),
            "--json",
        ])
        .fine();
    let advised = said.json();
    assert_eq!(advised["target"], Value::Null);
    let rules = rules_of(&advised, "advice");
    assert!(rules.contains(&"clock-source-slow".to_owned()), "{rules:?}");
    let not_judged = rules_of(&advised, "not_judged");
    assert!(not_judged.contains(&"fsync-off".to_owned()));
    home.run(&["advise", "--root", "/nowhere"])
        .fails(2, &["no such directory"]);
    home.run(&["advise", "--host-only", "--only", "nonsense"])
        .fails(2, &["there is no such rule"]);
    home.run(&["advise", "--host-only", "--allow", "anything"])
        .fails(2, &["durability", "mitigations"]);
}

#[test]
fn measurements_are_facts_and_no_password_is_shown() {
    let home = Home::new();
    home.run(&["sandbox", "create", "measured"]).fine();
    let port = home.record("measured")["port"].as_u64().expect("a port");
    let password = fs::read_to_string(home.file("state/sandboxes/measured/password")).expect("a password");
    let password = password.trim();
    let target = format!("host=127.0.0.1 port={port} user=postgres password={password} dbname=postgres");
    let file = home.file("advice.toml");
    let file = file.to_str().expect("a path");
    let said = home.run(&["advise", &target, "--check", "--verbose", "--experiment", file]);
    assert!(said.code == 0 || said.code == 3, "{}", said.err);
    assert!(!said.out.contains("nothing was measured"), "{}", said.out);
    let written = fs::read_to_string(file).unwrap_or_default();
    for text in [&said.out, &said.err, &written] {
        assert!(!text.contains(password), "a password is shown:\n{text}");
    }
}

/// A sandbox "old" of Debian's programs, among them pg_resetwal, which makes it old between
/// `prepare` and its next start: `pages` are the files of what comes next, which are there in a
/// cluster that has grown old by itself.
fn old_cluster(home: &Home, settings: &[&str], prepare: &str, ages: &[&str], pages: &[(&str, u32)]) {
    let reset = common::system_program("pg_resetwal");
    let directory = reset.parent().expect("a directory").to_str().expect("a path");
    let mut create = vec!["sandbox", "create", "old", "--pg-bin", directory];
    create.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    home.run(&create).fine();
    client(home, "old").batch_execute(prepare).expect("prepared");
    home.run(&["sandbox", "stop", "old"]).fine();
    let data = home.data("old");
    let owner = fs::metadata(&data).expect("a directory");
    let (uid, gid) = (owner.uid(), owner.gid());
    let status = Command::new("setpriv")
        .args([
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            "--clear-groups".into(),
        ])
        .arg(&reset)
        .args(ages)
        .arg("-D")
        .arg(&data)
        .stdout(Stdio::null())
        .current_dir("/")
        .status()
        .expect("setpriv runs");
    assert!(status.success());
    for (place, number) in pages {
        let file = data.join(place).join(format!("{number:04X}"));
        // 32 pages to a file.
        fs::write(&file, vec![0; 32 * 8192]).expect("written");
        chown(&file, Some(uid), Some(gid)).expect("root");
    }
    home.run(&["sandbox", "start", "old"]).fine();
}

fn client(home: &Home, name: &str) -> Client {
    let socket = home.file(&format!("state/sandboxes/{name}/socket"));
    let port = home.record(name)["port"].as_u64().expect("a port");
    let config = format!(
        "host={} port={port} user=postgres application_name=app",
        socket.display()
    );
    Client::connect(&config, NoTls).expect("the sandbox answers")
}

fn advised(home: &Home, name: &str) -> Value {
    home.run(&["advise", &format!("sandbox:{name}"), "--json"]).json()
}

fn advice<'a>(advised: &'a Value, rule: &str) -> Option<&'a Value> {
    advised["advice"]
        .as_array()?
        .iter()
        .find(|advice| advice["rule"] == rule)
}

/// Asks for advice until a rule is in it, or is not; the failure shows which were.
#[track_caller]
fn until_advised(home: &Home, name: &str, what: &str, rule: &str, is_there: bool) -> Value {
    common::until(what, || {
        let said = advised(home, name);
        match advice(&said, rule).is_some() == is_there {
            true => Ok(said),
            false => Err(rules_of(&said, "advice")),
        }
    })
}

/// The statements of a piece of advice, each with where or when it is meant to be run.
fn statements(advice: &Value) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let all = advice["statements"].as_array().expect("a list").iter();
    all.map(|statement| (text(&statement["sql"]).expect("SQL"), text(&statement["at"])))
        .collect()
}

/// Runs what a rule says here, in all its members, until it is silent.
#[track_caller]
fn cure(home: &Home, name: &str, client: &mut Client, rule: &str) {
    let mut said = advised(home, name);
    assert!(
        advice(&said, rule).is_some(),
        "{rule} does not speak: {:?}",
        rules_of(&said, "advice")
    );
    common::until(&format!("{rule} is silent"), || {
        for found in said["advice"].as_array().expect("a list") {
            let ours = if found["rule"] == rule {
                statements(found)
            } else {
                Vec::new()
            };
            for (sql, _) in ours {
                client
                    .batch_execute(&sql)
                    .unwrap_or_else(|e| panic!("{rule}: {sql}: {e:?}"));
            }
            // Whoever follows the steps by hand restarts where they say so.
            if found["rule"] == rule && found["procedure"].to_string().contains("Restart the server.") {
                home.run(&["sandbox", "restart", name]).fine();
                *client = self::client(home, name);
            }
        }
        said = advised(home, name);
        advice(&said, rule).map_or(Ok(()), |still| Err(still.clone()))
    });
}

/// docs/reference/advice.md between its marks.
#[test]
fn the_table_of_rules_is_current() {
    let advisor = Advisor::shipped(&Catalogue::shipped().expect("the catalogue")).expect("the rules");
    let mut table = String::from(
        "| rule | about | severity | expected | confidence | source |\n|---|---|---|---|---|---|\n",
    );
    for rule in advisor.rules() {
        let about = rule.knob().map_or_else(
            || "\u{2013}".to_owned(),
            |knob| {
                let (id, _) = pgdyno_knobs::split(knob);
                format!("`{id}`")
            },
        );
        let allow = rule
            .allowed_by()
            .map(|word| format!(", with --allow {word}"))
            .unwrap_or_default();
        let _ = writeln!(
            table,
            "| {} | {about} | {}{allow} | {} | {} | {} |",
            rule.id,
            rule.severity.name(),
            rule.effect.summary(),
            rule.confidence.name(),
            rule.source
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/advice.md");
    let text = fs::read_to_string(&path).expect("docs/reference/advice.md");
    let (head, rest) = text.split_once("<!-- rules -->\n").expect("a mark");
    let (found, tail) = rest.split_once("<!-- end of rules -->").expect("a mark");
    if found.trim() != table.trim() {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("advise.md");
        let text = format!("{head}<!-- rules -->\n{table}<!-- end of rules -->{tail}");
        fs::write(&place, text).expect("written");
        panic!(
            "docs/reference/advice.md is not current; it would be {}",
            place.display()
        );
    }
}
