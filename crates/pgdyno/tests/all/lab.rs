//! Experiments beyond settings: factors, other servers and places, data that is reset, poolers,
//! external programs as loads, guards, budgets, crashes, and ending when all is decided. On real
//! servers and a real kernel. Needs root.

use common::machine::whole_machine;
use common::{Home, Said, ended, kernel, said, until};
use pgdyno_store::Store;
use postgres::{Client, NoTls};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// An experiment file on the sandbox x: what is before the parts, and the parts.
fn file(home: &Home, head: &str, parts: &str) -> String {
    let text = format!(
        "name = \"test\"\nquestion = \"Does it work?\"\nseed = 5\n{head}\n[target]\nsandbox = \"x\"\ncreate = {{}}\n\
         restart = \"when-needed\"\n{parts}"
    );
    home.write("experiment.toml", &text)
        .to_string_lossy()
        .into_owned()
}

const TPCB: &str = "[data]\nscale = 1\n[load]\nworkload = \"tpcb\"\nclients = 2\nrate = \"200\"\nwarmup_s = 0.2\nmeasure_s = 1.0\n";

fn run(home: &Home, path: &str) -> (Said, Value) {
    let run = home.run(&["run", path]).fine();
    let json = home.run(&["report", "--format", "json"]).fine().json();
    for trial in json["trials"].as_array().expect("trials") {
        assert_eq!(trial["status"], "finished", "{trial}\n{}", run.err);
    }
    (run, json)
}

fn sandboxes(home: &Home) -> Vec<String> {
    let list = home.run(&["sandbox", "list", "--json"]).fine().json();
    let names = list.as_array().expect("a list").iter();
    names
        .map(|one| one["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn figure(home: &Home, treatment: &str, name: &str) -> Vec<f64> {
    let json = home.run(&["report", "--format", "json"]).fine().json();
    let trials = json["trials"].as_array().expect("trials").clone();
    let of = trials.iter().filter(|trial| trial["treatment"] == treatment);
    of.filter_map(|trial| trial["figures"][name].as_f64()).collect()
}

/// Another size's figures are no figures of what the file asks for.
#[test]
fn sandbox_that_was_made_otherwise_than_the_file_asks_for_is_refused() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let steps = "[[step]]\nname = \"s\"\nsettings.work_mem = \"8MB\"\n";
    let path = file(&home, "design = \"a-b\"\nblocks = 1", &format!("{TPCB}{steps}"));
    let text = fs::read_to_string(&path).expect("the file");
    fs::write(&path, text.replace("create = {}", "create = { version = 14 }")).expect("written");
    home.run(&["run", &path])
        .fails(2, &["made with other", "sandbox destroy x"]);
    home.run(&["run", &path, "--target", "sandbox:x"]).fine();
}

#[test]
fn factors_go_over_versions_and_places_and_leave_nothing_behind() {
    let home = Home::new();
    let head = "design = \"full-factorial\"\nblocks = 2";
    let factors = "[[factor]]\nname = \"version\"\nof = \"server.version\"\nvalues = [16, 18]\n\
        [[factor]]\nname = \"data\"\nof = \"server.data_on\"\nvalues = [\"disk\", \"tmpfs:1G\"]\n";
    let path = file(&home, head, &format!("{TPCB}{factors}"));
    let plan = home.run(&["run", &path, "--dry-run"]).fine().out;
    assert!(
        plan.contains("8 trials, about") && plan.contains("another server"),
        "{plan}"
    );
    assert!(sandboxes(&home).is_empty(), "a dry run makes nothing");
    let (_, json) = run(&home, &path);
    assert_eq!(ended(&json, "finished"), 8);
    assert_eq!(
        sandboxes(&home),
        ["x"],
        "what was made for the experiment is gone"
    );
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(!mounts.contains(&*home.path.path().to_string_lossy()), "{mounts}");
    let names: Vec<&str> = json["treatments"]
        .as_array()
        .expect("treatments")
        .iter()
        .filter_map(|t| t["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "version=16, data=disk",
            "version=16, data=tmpfs:1G",
            "version=18, data=disk",
            "version=18, data=tmpfs:1G"
        ]
    );
}

/// One of the system, which is of another version, and one that is not there.
#[test]
fn builds_are_compared_by_their_directories_and_one_that_is_missing_is_not_tested() {
    let home = Home::new();
    let system = common::system_program("initdb");
    let system = system.parent().expect("a directory").display();
    let rest = format!(
        "[[factor]]\nname = \"build\"\n[[factor.level]]\nname = \"own\"\n[[factor.level]]\nname = \"system\"\n\
         server.bin = \"{system}\"\n[[factor.level]]\nname = \"missing\"\nserver.bin = \"/nowhere/bin\"\n\
         [[figure]]\nname = \"major\"\nsql = \"SELECT current_setting('server_version_num')::int / 10000\"\n"
    );
    let path = file(
        &home,
        "design = \"one-at-a-time\"\nblocks = 2",
        &format!("{TPCB}{rest}"),
    );
    let (_, json) = run(&home, &path);
    assert_eq!(ended(&json, "finished"), 4);
    let why = &json["treatments"][2]["why_not"];
    assert!(
        why.as_str().is_some_and(|why| why.contains("/nowhere/bin")),
        "{why}"
    );
    let majors = |treatment| figure(&home, treatment, "major");
    assert_eq!(majors("build=own"), [18.0, 18.0]);
    assert!(majors("build=system").iter().all(|major| *major < 18.0));
    assert_eq!(
        sandboxes(&home),
        ["x"],
        "what was made for the experiment is gone"
    );
}

/// A new server has a new identifier, and the target's stays.
#[test]
fn servers_of_an_experiments_own_are_made_again_for_each_block_where_it_says_so() {
    let home = Home::new();
    let rest = "[[factor]]\nname = \"data\"\nof = \"server.data_on\"\nvalues = [\"disk\", \"tmpfs:256M\"]\n\
        [[figure]]\nname = \"identifier\"\nsql = \"SELECT system_identifier % 1000000007 FROM pg_control_system()\"\n";
    let head = "design = \"one-at-a-time\"\nblocks = 2";
    let path = file(&home, head, &format!("instances = \"per-block\"\n{TPCB}{rest}"));
    let (_, json) = run(&home, &path);
    assert_eq!(ended(&json, "finished"), 4);
    let [target, own] = ["data=disk", "data=tmpfs:256M"].map(|name| figure(&home, name, "identifier"));
    assert_eq!((target[0], own.len()), (target[1], 2), "{target:?} {own:?}");
    assert!(own[0] != own[1] && own[0] != target[0], "{target:?} {own:?}");
    assert_eq!(sandboxes(&home), ["x"]);
}

#[test]
fn a_sandbox_of_the_users_is_not_taken_for_one_of_the_experiments() {
    let home = Home::new();
    let factors =
        "[[factor]]\nname = \"data\"\nof = \"server.data_on\"\nvalues = [\"disk\", \"tmpfs:512M\"]\n";
    let path = file(
        &home,
        "design = \"one-at-a-time\"\nblocks = 1",
        &format!("{TPCB}{factors}"),
    );
    let begun = home.spawn(&["run", &path]);
    let name = until("a sandbox of the experiment's own", || {
        let all = sandboxes(&home);
        all.iter().find(|name| *name != "x").cloned().ok_or(all)
    });
    said(begun.wait_with_output().expect("ends")).fine();
    assert_eq!(sandboxes(&home), ["x"]);

    home.run(&["sandbox", "create", &name]).fine();
    home.run(&["run", &path]);
    let json = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!((ended(&json, "finished"), ended(&json, "failed")), (1, 1));
    let reasons = json["trials"].to_string();
    assert!(reasons.contains("that no experiment has made"), "{reasons}");
    assert!(sandboxes(&home).contains(&name), "it is still there");
}

#[test]
fn data_comes_back_before_each_trial() {
    let home = Home::new();
    let rows = "[[figure]]\nname = \"rows\"\nsql = \"SELECT count(*) FROM pgbench_history\"\n\
        [[figure]]\nname = \"tps_total\"\nsql = \"SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE relname = 'pgbench_history'\"\n";
    let factors = "[[factor]]\nname = \"reset\"\nof = \"data.reset\"\nvalues = [\"none\", \"recreate\", \"template\", \"copy\", \"vacuum\"]\n";
    let counted = "[base]\nshared_preload_libraries = \"pg_stat_statements\"\n";
    let head = "design = \"one-at-a-time\"\nblocks = 2";
    let path = file(&home, head, &format!("{TPCB}{counted}{rows}{factors}"));
    run(&home, &path);
    for (id, trial) in Store::open(&home.file("data/results.sqlite"))
        .expect("a store")
        .experiment(1)
        .expect("stored")
        .trials
    {
        let texts = trial.statements.iter().filter_map(|one| one.text.as_deref());
        let of_load =
            texts.filter(|text| text.starts_with("UPDATE pgbench_branches SET bbalance = bbalance + $1"));
        assert_eq!(
            of_load.count(),
            1,
            "trial {id}, {}: {:?}",
            trial.treatment,
            trial.statements
        );
    }
    for reset in ["recreate", "template", "copy"] {
        let rows = figure(&home, &format!("reset={reset}"), "rows");
        let own = figure(&home, &format!("reset={reset}"), "tps_total");
        assert_eq!(rows.len(), 2, "{reset}");
        for (rows, own) in rows.iter().zip(&own) {
            // What a trial itself has inserted is all there is; the statistics of a copy are those
            // of before.
            assert!(
                reset == "copy" || rows == own,
                "{reset}: {rows} rows, {own} inserted"
            );
            assert!(*rows > 0.0 && *rows < 20_000.0, "{reset}: {rows}");
        }
    }
    let kept = figure(&home, "reset=none", "rows");
    let vacuumed = figure(&home, "reset=vacuum", "rows");
    let most = kept.iter().chain(&vacuumed).copied().fold(0.0, f64::max);
    assert!(
        kept.iter().chain(&vacuumed).any(|rows| *rows < most),
        "what is not brought back grows"
    );
    let scratch = fs::read_dir(home.file("state/scratch")).map_or(0, |entries| entries.count());
    assert_eq!(scratch, 0, "copies are gone at the end");
}

#[test]
fn data_that_an_earlier_run_has_used_is_made_again_before_the_first_trial() {
    let home = Home::new();
    let rows = "[[figure]]\nname = \"rows\"\nsql = \"SELECT count(*) FROM pgbench_history\"\n\
        [[figure]]\nname = \"inserted\"\nsql = \"SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE relname = 'pgbench_history'\"\n";
    let tpcb = TPCB.replace("scale = 1", "scale = 1\nreset = \"recreate\"");
    let path = file(&home, "design = \"a-a\"\nblocks = 1", &format!("{tpcb}{rows}"));
    for _ in 0..2 {
        let (_, json) = run(&home, &path);
        for trial in json["trials"].as_array().expect("trials") {
            let figures = &trial["figures"];
            assert!(figures["rows"].as_f64() > Some(0.0), "{figures}");
            assert_eq!(figures["rows"], figures["inserted"]);
        }
    }
}

#[test]
fn other_programs_and_jobs_are_loads_with_the_same_checks() {
    let home = Home::new();
    let factors = "[[factor]]\nname = \"load\"\n\
        [[factor.level]]\nname = \"own\"\nload = { workload = \"tpcb\" }\n\
        [[factor.level]]\nname = \"pgbench\"\nload = { program = \"pgbench\" }\n\
        [[factor.level]]\nname = \"job\"\nload = { program = \"job\", command = \"sh -c 'psql -qAtc \\\"SELECT pg_sleep(0.5)\\\"'\" }\n";
    let load = "[data]\nscale = 1\n[load]\nclients = 2\nwarmup_s = 0.2\nmeasure_s = 1\n";
    let head = "design = \"one-at-a-time\"\nblocks = 1";
    let path = file(&home, head, &format!("{load}{factors}"));
    let (_, json) = run(&home, &path);
    for trial in json["trials"].as_array().expect("trials") {
        match trial["treatment"].as_str() {
            // It reports its mean and no percentile, and none is made of it.
            Some("load=pgbench") => {
                let times = &trial["percentiles"];
                assert!(times["mean_ms"].as_f64() > Some(0.0), "{trial}");
                assert!(times["p50_ms"].is_null() && times["p99_ms"].is_null(), "{trial}");
                assert_eq!(trial["reported_by"], "pgbench", "{trial}");
                assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
            }
            Some("load=job") => {
                let seconds = trial["figures"]["job_s"].as_f64().expect("a time");
                assert!(seconds >= 0.5, "{trial}");
                assert!(trial["tps"].is_null(), "{trial}");
            }
            _ => {
                assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
                assert!(trial["tps"].as_f64() > Some(1.0), "{trial}");
            }
        }
    }
    let reported =
        format!("{load}program = \"pgbench\"\n[[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n");
    let path = file(&home, &format!("{head}\nmetric = \"p99_ms\""), &reported);
    home.run(&["run", &path, "--dry-run"])
        .fails(2, &["\"p99_ms\" is not a metric of this experiment", "mean_ms"]);
    let jobs = |worse: &str| {
        let levels = format!(
            "{load}[[factor]]\nname = \"load\"\n[[factor.level]]\nname = \"bad\"\nload = {{ program = \"job\", command = \"false\" }}\n\
             [[factor.level]]\nname = \"worse\"\nload = {{ program = \"job\", command = \"{worse}\" }}\n"
        );
        file(&home, &format!("{head}\nmetric = \"job_s\""), &levels)
    };
    let path = jobs("no-such-program");
    home.run(&["run", &path, "--dry-run"])
        .fails(1, &["load=worse: the program no-such-program is not there"]);
    let path = jobs("sh -c 'exit 3'");
    home.run(&["run", &path]).fails(1, &["no trial finished"]);
    let json = home.run(&["report", "--format", "json"]).fine().json();
    let reason = json["trials"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("exit code 1"), "{reason}");
}

#[test]
fn poolers_stand_between_for_their_treatments_alone() {
    let home = Home::new();
    let factors = "[[factor]]\nname = \"pooler\"\nof = \"server.pooler\"\nvalues = [\"none\", \"pgbouncer\", \"pgpool\"]\n";
    let load = "[data]\nscale = 1\n[load]\nworkload = \"read\"\nprotocol = \"extended\"\nclients = 4\nrate = \"200\"\nwarmup_s = 0.2\nmeasure_s = 1.0\n";
    let path = file(
        &home,
        "design = \"one-at-a-time\"\nblocks = 1",
        &format!("{load}{factors}"),
    );
    let (_, json) = run(&home, &path);
    assert_eq!(ended(&json, "finished"), 3);
    let scratch = fs::read_dir(home.file("state/scratch")).map_or(0, |entries| entries.count());
    assert_eq!(scratch, 0);
}

#[test]
fn a_crash_at_the_end_gives_the_time_of_recovery() {
    let home = Home::new();
    let head = "design = \"a-b\"\nblocks = 1\nmetric = \"recovery_s\"";
    let load = "[data]\nscale = 1\nprewarm = \"cold\"\n[load]\nworkload = \"tpcb\"\nclients = 2\nmeasure_s = 1.0\ncrash = true\n";
    let path = file(
        &home,
        head,
        &format!("{load}[[step]]\nname = \"more\"\nsettings.max_wal_size = \"2GB\"\n"),
    );
    run(&home, &path);
    for treatment in ["reference", "more"] {
        let seconds = figure(&home, treatment, "recovery_s");
        assert!(seconds.len() == 1 && seconds[0] > 0.0, "{treatment}: {seconds:?}");
    }
    assert_eq!(home.ask("x", "SHOW max_wal_size"), "1GB");
}

#[test]
fn a_guard_ends_a_treatment_and_the_rest_goes_on() {
    let home = Home::new();
    let head = "design = \"a-b\"\nblocks = 2";
    let load = "[data]\nscale = 1\n[load]\nscript = \"SELECT 1;\"\nclients = 2\nrate = \"200\"\nmeasure_s = 8.0\n[guard]\nerror_ratio_max = 0.5\n";
    let step = "[[step]]\nname = \"wrong\"\n[step.load]\nscript = \"SELECT 1/0;\"\n";
    let path = file(&home, head, &format!("{load}{step}"));
    let run = home.run(&["run", &path]).fine();
    assert!(
        run.err
            .contains("is not tried again: guard: more than 50.0 % failed"),
        "{}",
        run.err
    );
    let json = home.run(&["report", "--format", "json"]).fine().json();
    let trials: Vec<(&str, &str)> = json["trials"]
        .as_array()
        .expect("trials")
        .iter()
        .map(|t| {
            (
                t["treatment"].as_str().unwrap_or_default(),
                t["status"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(
        trials.iter().filter(|one| **one == ("wrong", "failed")).count(),
        1,
        "{trials:?}"
    );
    assert_eq!(
        trials
            .iter()
            .filter(|one| **one == ("reference", "finished"))
            .count(),
        2,
        "{trials:?}"
    );
}

#[test]
fn it_ends_when_all_is_decided_or_the_budget_is_spent() {
    let home = Home::new();
    let load = "[data]\nscale = 1\n[load]\nscript = \"SELECT pg_sleep(0.002);\"\nclients = 1\nwarmup_s = 0.2\nmeasure_s = 1.0\n";
    // A pause that nobody could miss.
    let step = "[[step]]\nname = \"slow\"\n[step.load]\nthink_ms = 20\n";
    let path = file(
        &home,
        "design = \"a-b\"\nblocks = 18\nstop = \"when-decided\"",
        &format!("{load}{step}"),
    );
    let (said, json) = run(&home, &path);
    assert!(said.err.contains("every comparison is decided"), "{}", said.err);
    let trials = json["trials"].as_array().expect("trials").len();
    assert!((14..36).contains(&trials), "{trials} trials");
    assert_eq!(json["treatments"][1]["step"]["verdict"], "worse");
    home.run(&["resume"])
        .fails(2, &["every experiment in the store is finished"]);

    let path = file(
        &home,
        "design = \"a-b\"\nblocks = 9\n[budget]\ntrials = 3",
        &format!("{load}{step}"),
    );
    let (said, json) = run(&home, &path);
    assert!(said.err.contains("the budget of trials is spent"), "{}", said.err);
    assert_eq!(json["trials"].as_array().expect("trials").len(), 3);
}

#[test]
fn what_cannot_be_here_is_reported_before_anything_is_done() {
    let home = Home::new();
    let load = "[load]\nworkload = \"tpcb\"\nclients = 2\nrate = \"200\"\nmeasure_s = 1.0\n";
    let ladder =
        "[data]\nscale = 1\n[[factor]]\nname = \"clients\"\nof = \"load.clients\"\nvalues = [2, 500]\n";
    let head = "design = \"ladder\"\nblocks = 1";
    let path = file(&home, head, &format!("{load}{ladder}"));
    let (said, _) = run(&home, &path);
    assert!(
        said.err.contains("not tested: clients 500") && said.err.contains("max_connections"),
        "{}",
        said.err
    );

    let places = "[data]\nscale = 20\n[[factor]]\nname = \"data\"\nof = \"server.data_on\"\nvalues = [\"disk\", \"tmpfs:256M\"]\n";
    let path = file(&home, head, &format!("{load}{places}"));
    let (said, json) = run(&home, &path);
    assert!(said.err.contains("more than tmpfs:256M holds"), "{}", said.err);
    assert_eq!(ended(&json, "finished"), 1);

    let path = file(
        &home,
        "design = \"a-a\"\nblocks = 1",
        &format!("{load}[data]\nscale = 21000\n"),
    );
    home.run(&["run", &path])
        .fails(1, &["needs about", "MB are free", "smaller scale"]);
    let path = file(
        &home,
        "design = \"a-a\"\nblocks = 1\n[window]\nfrom = \"24:00\"\nto = \"1:00\"",
        &format!("[data]\nscale = 1\n{load}"),
    );
    home.run(&["run", &path])
        .fails(2, &["line 7", "a time of the day"]);
    home.run(&["run", "edb-core"])
        .fails(2, &["did you mean the shipped \"edb-cores\"?"]);
    home.run(&["run", "edb-cores", "--size", "week"])
        .fails(2, &["no size \"week\": it has hour, night"]);
    home.run(&["run", "edb-storage", "--dry-run"])
        .fails(4, &["fsync", "--accept-durability-risk"]);
}

/// In the place of go-tpc: makes a table, and counts its rows.
const GO_TPC: &str = r#"#!/bin/sh
for last; do :; done
echo "$last $PGDATABASE" >> CALLS
case "$last" in
  prepare) exec psql -qc 'CREATE TABLE warehouse AS SELECT 1 AS w_id' ;;
  run) psql -qc 'INSERT INTO warehouse SELECT count(*) + 1 FROM warehouse' || exit 1
    sleep 0.2
    echo "[Summary] NEW_ORDER - Takes(s): 1.0, Count: 5, TPM: 300.0, Sum(ms): 9.0, Avg(ms): 1.5, 50th(ms): 1.4, 90th(ms): 2.0, 95th(ms): 2.5, 99th(ms): 3.5, 99.9th(ms): 4.0, Max(ms): 4.5"
    echo "tpmC: 300.0, tpmTotal: 600.0, efficiency: 1.0%" ;;
esac
"#;

/// Once per scale and in a database of its own, again where it is not whole, and for each trial
/// where the file says so.
#[test]
fn a_program_makes_its_data_where_it_is_missing() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let calls = home.file("calls");
    fs::create_dir(home.file("bin")).expect("made");
    let program = home.write("bin/go-tpc", &GO_TPC.replace("CALLS", &calls.to_string_lossy()));
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("executable");
    let run = |reset: &str| {
        fs::write(&calls, "").expect("written");
        let parts = format!(
            "[data]\nscale = 1\nreset = \"{reset}\"\n[load]\nprogram = \"go-tpc\"\nclients = 1\nmeasure_s = 1.0\n\
             [[figure]]\nname = \"rows\"\nsql = \"SELECT count(*) FROM warehouse\"\n"
        );
        let path = file(&home, "design = \"a-a\"\nblocks = 1", &parts);
        let path_variable = format!("{}:{}", program.parent().expect("bin").display(), env!("PATH"));
        let output = home
            .command(&["run", &path])
            .env("PATH", path_variable)
            .output()
            .expect("pgdyno runs");
        said(output).fine();
        let json = home.run(&["report", "--format", "json"]).fine().json();
        let rows: Vec<f64> = json["trials"]
            .as_array()
            .expect("trials")
            .iter()
            .filter_map(|trial| trial["figures"]["rows"].as_f64())
            .collect();
        let calls = fs::read_to_string(&calls).expect("calls");
        (
            calls.matches("prepare pgdyno_of_go_tpc_1\n").count(),
            calls.matches("run pgdyno_of_go_tpc_1\n").count(),
            rows,
        )
    };
    assert_eq!(run("none"), (1, 2, vec![2.0, 3.0]));
    assert_eq!(run("none"), (0, 2, vec![4.0, 5.0]));
    assert_eq!(run("recreate"), (2, 2, vec![2.0; 2]));
    assert_eq!(run("template"), (1, 2, vec![2.0; 2]));
    assert_eq!(run("template"), (0, 2, vec![2.0; 2]));
    let database = format!("{} dbname=pgdyno_of_go_tpc_1", home.config("x"));
    let mut client = Client::connect(&database, NoTls).expect("the program's database");
    client
        .batch_execute("COMMENT ON SCHEMA public IS 'half'")
        .expect("marked");
    drop(client);
    assert_eq!(run("none"), (1, 2, vec![2.0, 3.0]));
    assert_eq!(run("vacuum"), (0, 2, vec![4.0, 5.0]));
    let path = file(
        &home,
        "design = \"a-a\"\nblocks = 1",
        "[data]\nreset = \"copy\"\n[load]\nprogram = \"go-tpc\"\nclients = 1\nmeasure_s = 1.0\n",
    );
    home.run(&["run", &path, "--dry-run"])
        .fails(1, &["data.reset = \"copy\"", "uses its own data"]);
}

#[test]
fn a_gate_fails_on_a_dropped_index_and_passes_on_none() {
    let home = Home::new();
    let load = "[data]\nscale = 1\n[load]\nclients = 2\nwarmup_s = 0.3\nmeasure_s = 1.0\n\
        script = \"\"\"\n\\\\set a random(-100000, 100000)\nSELECT bid FROM pgbench_accounts WHERE abalance = :a;\n\"\"\"\n";
    let path = file(&home, "design = \"a-a\"\nblocks = 3", load);
    home.sandbox("x", &[]);
    home.ask("x", "UPDATE pgbench_accounts SET abalance = aid");
    home.ask("x", "CREATE INDEX by_balance ON pgbench_accounts (abalance)");
    home.ask("x", "VACUUM ANALYZE pgbench_accounts");
    run(&home, &path);
    run(&home, &path);
    // The median, which other tests beside this one hardly move. Three short trials a side decide a
    // large difference alone.
    let gate = ["--fail-if", "p50_ms worse than 50%"];
    let passes = "--allow-undecided";
    home.run(&["compare", "1", "2", gate[0], gate[1], passes]).fine();
    home.ask("x", "DROP INDEX by_balance");
    run(&home, &path);
    let said = home.run(&["compare", "2", "3", gate[0], gate[1]]).fails(3, &[]);
    assert!(said.out.contains("worse"), "{}\n{}", said.out, said.err);
    home.run(&["compare", "3", "2", gate[0], gate[1], passes]).fine();
}

/// The scheduler sets the depth of the queue again, and refuses with one what it takes with
/// another.
#[test]
fn schedulers_can_follow_one_another_in_any_order() {
    let _machine = whole_machine();
    let home = Home::on_disk();
    let factors =
        "[[factor]]\nname = \"scheduler\"\nof = \"block.scheduler\"\nvalues = [\"mq-deadline\", \"none\"]\n";
    let path = file(
        &home,
        "design = \"one-at-a-time\"\nblocks = 4",
        &format!("{TPCB}{factors}"),
    );
    let (_, json) = run(&home, &path);
    assert_eq!(ended(&json, "finished"), 8);
}

/// They set the same file again, but not one another: what a treatment does not name is as before.
#[test]
fn files_of_huge_pages_can_follow_one_another_in_any_order() {
    let _machine = whole_machine();
    let home = Home::new();
    let steps = "[[step]]\nname = \"shared\"\nsettings.transparent_hugepage.shmem_enabled = \"advise\"\n\
        [[step]]\nname = \"own\"\nsettings.transparent_hugepage.enabled = \"always\"\n\
        [[step]]\nname = \"reserve\"\nsettings.vm.min_free_kbytes = 70000\n";
    let path = file(
        &home,
        "design = \"one-at-a-time\"\nblocks = 3",
        &format!("{TPCB}{steps}"),
    );
    let place = "/proc/sys/vm/min_free_kbytes";
    // A kernel whose memory grows computes its reserve again, as somebody else would change it. A
    // fault of ours would be in each of three runs.
    let mut runs = (0..3).map(|_| {
        fs::write(place, "30000").expect("written");
        home.run(&["run", &path]).fine()
    });
    let said = runs.find(|said| !said.err.contains("someone else has changed"));
    let said = said.expect("a run beside which nobody else changed it");
    let json = home.run(&["report", "--format", "json"]).fine().json();
    assert_eq!(ended(&json, "finished"), 12);
    assert_eq!(kernel(place), "30000", "{}\n{}", said.out, said.err);
}

#[test]
fn outside_of_its_hours_it_waits_with_everything_restored() {
    let home = Home::new();
    let now = jiff::ZonedDateTime::now();
    let clock = |hours: i64| {
        let then = now.saturating_add(jiff::Span::new().hours(hours));
        then.strftime("%H:%M").to_string()
    };
    let window = format!("[window]\nfrom = \"{}\"\nto = \"{}\"\n", clock(2), clock(3));
    let path = file(&home, "design = \"a-a\"\nblocks = 1", &format!("{TPCB}{window}"));
    let mut run = home.start(&["run", &path]);
    run.until_it_prints("outside of its hours");
    run.interrupt();
    run.end().fails(1, &["stopped", "pgdyno resume 1"]);
    assert_eq!(home.stored_trials(1).len(), 0);
}

/// Two runs of the host's settings exclude one another by name; beside them, one of a server's
/// settings alone runs. In a network namespace, whose settings are its own.
#[test]
fn runs_at_the_same_time_change_the_host_one_at_a_time() {
    let home = Home::new();
    let experiment = |name: &str, sandbox: &str, setting: &str| {
        let load =
            "[load]\nworkload = \"empty\"\nclients = 1\nrate = \"200\"\nwarmup_s = 0.1\nmeasure_s = 1.0\n";
        let text = format!(
            "name = \"{name}\"\nquestion = \"?\"\ndesign = \"a-b\"\nblocks = 2\n[target]\nsandbox = \"{sandbox}\"\n\
             {load}[[step]]\nname = \"x\"\n[step.settings]\n{setting}\n"
        );
        home.write(&format!("{name}.toml"), &text);
    };
    for name in ["x", "y"] {
        home.run(&["sandbox", "create", name]).fine();
    }
    experiment("first", "x", "\"net.core.somaxconn\" = 1234");
    experiment("host", "y", "\"net.ipv4.tcp_max_syn_backlog\" = 1000");
    experiment("server", "y", "work_mem = \"8MB\"");
    let script = "cd \"$1\"; ip link set lo up; cat /proc/sys/net/core/somaxconn >before; \"$0\" run first.toml >first.out 2>&1 & first=$!; \
                  until \"$0\" status | grep -q 'run first' || ! kill -0 $first; do :; done; \
                  \"$0\" run host.toml; echo host $?; \"$0\" run server.toml >server.out 2>&1; echo server $?; \
                  wait $first; echo first $?; cat /proc/sys/net/core/somaxconn | diff before - && \"$0\" status 2>&1";
    let output = home
        .wrapped(&["timeout", "120", "unshare", "--net", "sh", "-c", script])
        .arg(home.path.path())
        .output()
        .expect("unshare runs");
    let done = said(output);
    let read = |name: &str| fs::read_to_string(home.file(name)).expect("an output");
    for code in ["host 1", "server 0", "first 0"] {
        assert!(
            done.out.lines().any(|line| line == code),
            "{code}: {}\n{}\n{}\n{}",
            done.out,
            done.err,
            read("first.out"),
            read("server.out")
        );
    }
    assert!(
        done.err.contains("(run first) is changing settings of this host") && done.err.contains("hint: "),
        "{}",
        done.err
    );
    assert!(done.out.ends_with("nothing is changed\n"), "{}", done.out);
}
