//! Experiments on a real server and real kernel knobs: run, interrupted, resumed, refused,
//! restored. Needs root.

use common::foreign::Foreign;
use common::machine::whole_machine;
use common::{Home, Said, ended, kernel, said, signal, tool, until, until_is};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command};

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

/// An experiment file on the sandbox x; `rest` is its steps.
pub(crate) fn file(home: &Home, blocks: u32, measure_s: f64, rest: &str) -> String {
    let text = format!(
        "name = \"test\"\nquestion = \"Does it <b>work</b>?\"\ndesign = \"one-at-a-time\"\nblocks = {blocks}\nseed = 5\n\
         [target]\nsandbox = \"x\"\n[data]\nscale = 1\n\
         [load]\nworkload = \"tpcb\"\nclients = 2\nthreads = 1\nrate = \"200\"\nwarmup_s = 0.2\nmeasure_s = {measure_s}\n{rest}"
    );
    home.write("experiment.toml", &text)
        .to_string_lossy()
        .into_owned()
}

const TWO_STEPS: &str = "[[step]]\nname = \"memory\"\nsettings.shared_buffers = \"64MB\"\n\
    [[step]]\nname = \"swap\"\nsettings.vm.swappiness = 17\n";

/// Waits until the load of a trial is on the server.
pub(crate) fn until_loaded(home: &Home, child: &mut Child) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno load'";
    until("two sessions of the load", || {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        let sessions = home.postmaster("x").and_then(|_| count(home, sql));
        if sessions >= Some(2) {
            Ok(())
        } else {
            Err(sessions)
        }
    });
}

/// The server may be restarting right now.
fn count(home: &Home, sql: &str) -> Option<u64> {
    let socket = home.file("state/sandboxes/x/socket");
    let config = format!(
        "host={} port={} user=postgres",
        socket.display(),
        home.record("x")["port"]
    );
    let mut client = postgres::Client::connect(&config, postgres::NoTls).ok()?;
    let row = client.query_one(sql, &[]).ok()?;
    u64::try_from(row.try_get::<_, i64>(0).ok()?).ok()
}

#[test]
fn an_experiment_runs_decides_reports_and_puts_everything_back() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    home.ask("x", "ALTER SYSTEM SET work_mem = '5MB'");
    let auto_conf = home.data("x").join("postgresql.auto.conf");
    let (swappiness, conf) = (kernel(SWAPPINESS), fs::read(&auto_conf).expect("a file"));
    let html = home.file("report.html");
    let path = file(&home, 2, 1.0, TWO_STEPS);
    let run = home
        .run(&["run", &path, "--report", &html.to_string_lossy()])
        .fine();
    for word in ["memory", "swap", "noise floor", "tpcb with 2 clients"] {
        assert!(run.out.contains(word), "{word} is not in:\n{}", run.out);
    }
    assert!(
        run.err.contains("vm.swappiness") && run.err.contains("restored"),
        "{}",
        run.err
    );
    assert_eq!(kernel(SWAPPINESS), swappiness);
    assert_eq!(fs::read(&auto_conf).expect("a file"), conf, "to the byte");
    assert_eq!(home.ask("x", "SHOW shared_buffers"), "128MB");

    let json = home.run(&["report", "1", "--format", "json"]).fine().json();
    let trials = json["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 6);
    for trial in trials {
        assert_eq!(trial["status"], "finished", "{trial}");
        assert_eq!(trial["cross_check"]["agrees"], true, "{trial}");
    }
    let memory = &json["treatments"][1];
    assert_eq!(memory["settings"][0]["effective"], "64MB");
    assert!(
        memory["step"]["ratio_low"].as_f64() < memory["step"]["ratio_high"].as_f64(),
        "{memory}"
    );
    // Whichever trial was the last one: what the experiment had set is shown, not that it was
    // restored.
    let restored = json["restored"].as_array().expect("lines");
    let shown: Vec<_> = restored
        .iter()
        .map(|line| (line["knob"].as_str(), line["set_to"].as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (Some("shared_buffers"), Some("64MB")),
            (Some("vm.swappiness"), Some("17"))
        ]
    );

    let md = home.run(&["report", "--format", "md"]).fine().out;
    assert!(
        md.contains("| memory |") && md.contains("Does it &lt;b>work&lt;/b>?"),
        "{md}"
    );
    let page = fs::read_to_string(&html).expect("a report");
    assert!(page.starts_with("<!doctype html>") && page.len() > 100_000);
    assert!(!page.contains("<b>work</b>"), "a name must not become markup");
    home.run(&["resume", "1"]).fails(1, &["nothing to resume"]);
    let list = home.run(&["list", "--json"]).fine().json();
    assert_eq!(
        (&list[0]["status"], &list[0]["trials_finished"]),
        (&"finished".into(), &6.into())
    );
    home.run(&["restore"]).fine();
}

#[test]
fn ctrl_c_keeps_what_is_finished_and_puts_back_and_resume_goes_on() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let auto_conf = home.data("x").join("postgresql.auto.conf");
    let (swappiness, conf) = (kernel(SWAPPINESS), fs::read(&auto_conf).expect("a file"));
    let path = file(&home, 2, 2.0, TWO_STEPS);
    for name in ["-INT", "-TERM"] {
        let mut child = if name == "-INT" {
            home.spawn(&["run", &path])
        } else {
            home.spawn(&["resume"])
        };
        until_loaded(&home, &mut child);
        signal(child.id(), name);
        let ended = said(child.wait_with_output().expect("ends")).fails(1, &["stopped", "pgdyno resume 1"]);
        assert!(ended.err.contains("restoring everything"), "{}", ended.err);
        assert_eq!(kernel(SWAPPINESS), swappiness);
        assert_eq!(fs::read(&auto_conf).expect("a file"), conf);
    }
    home.run(&["restore"]).fine();
    home.run(&["resume"]).fine();
    let mut trials = home.stored_trials(1);
    trials.sort();
    trials.dedup();
    assert_eq!(trials.len(), 6, "{trials:?}");
}

/// The server dies in the first trial. `data` is what the file says of its data.
fn dies_once(data: &str) {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let path = file(&home, 1, 3.0, TWO_STEPS);
    let text = fs::read_to_string(&path).expect("the file");
    fs::write(&path, text.replace("[data]\n", &format!("[data]\n{data}\n"))).expect("written");
    let mut child = home.spawn(&["run", &path]);
    until_loaded(&home, &mut child);
    signal(home.postmaster("x").expect("running"), "-KILL");
    said(child.wait_with_output().expect("ends")).fine();
    let json = home.run(&["report", "1", "--format", "json"]).fine().json();
    let trials = json["trials"].as_array().expect("trials");
    let failed: Vec<_> = trials.iter().filter(|t| t["status"] == "failed").collect();
    assert_eq!((trials.len(), failed.len()), (3, 1), "{json}");
    let reason = failed[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("connection") || reason.contains("server"),
        "{reason}"
    );
}

#[test]
fn a_server_that_dies_costs_its_trial_and_not_the_experiment() {
    dies_once("");
}

/// Data is brought by asking the server, before any setting is applied.
#[test]
fn a_server_that_dies_is_started_again_before_its_data_is_brought() {
    dies_once("reset = \"recreate\"");
}

#[test]
fn each_trial_has_a_server_of_its_own_start_where_the_file_wants_it() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let started = "[[figure]]\nname = \"started_s\"\n\
        sql = \"SELECT extract(epoch FROM pg_postmaster_start_time())::float8\"\n";
    let path = file(&home, 2, 1.0, &format!("{TWO_STEPS}{started}"));
    let text = fs::read_to_string(&path).expect("the file");
    let text = text.replace(
        "settings.shared_buffers = \"64MB\"",
        "settings.work_mem = \"8MB\"",
    );
    for (number, restart, starts) in [("1", "always", 6), ("2", "when-needed", 1)] {
        let of = format!("[target]\nrestart = \"{restart}\"\n");
        fs::write(&path, text.replace("[target]\n", &of)).expect("written");
        home.run(&["run", &path]).fine();
        let json = home.run(&["report", number, "--format", "json"]).fine().json();
        let trials = json["trials"].as_array().expect("trials");
        let mut found: Vec<String> = trials
            .iter()
            .map(|t| t["figures"]["started_s"].to_string())
            .collect();
        assert!(found.iter().all(|started| started != "null"), "{json}");
        found.sort_unstable();
        found.dedup();
        assert_eq!((trials.len(), found.len()), (6, starts), "{restart}: {found:?}");
    }
}

#[test]
fn what_cannot_start_or_is_no_choice_here_is_reported_and_the_rest_goes_on() {
    let _machine = whole_machine();
    let home = Home::on_disk();
    home.sandbox("x", &[]);
    let steps = format!(
        "{TWO_STEPS}[[step]]\nname = \"far too much\"\nsettings.shared_buffers = \"7TB\"\n\
         [[step]]\nname = \"no such scheduler\"\nsettings.block.scheduler = \"cfq\"\n"
    );
    let path = file(&home, 1, 1.0, &steps);
    let run = home.run(&["run", &path]).fine();
    assert!(run.err.contains("not tested: no such scheduler"), "{}", run.err);
    let json = home.run(&["report", "1", "--format", "json"]).fine().json();
    let by_name = |name: &str| {
        let found = json["trials"]
            .as_array()
            .expect("trials")
            .iter()
            .find(|t| t["treatment"] == name);
        found.cloned().unwrap_or_default()
    };
    let reason = by_name("far too much")["reason"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert!(
        reason.contains("does not start with these settings") || reason.contains("outside the valid range"),
        "{reason}"
    );
    assert_eq!(by_name("memory")["status"], "finished");
    let why = json["treatments"][4]["why_not"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert!(why.contains("block.scheduler") && why.contains("one of"), "{why}");
}

#[test]
fn durability_is_traded_with_consent_only_and_marked() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let path = file(
        &home,
        1,
        1.0,
        "[[step]]\nname = \"risky\"\nsettings.synchronous_commit = \"off\"\n",
    );
    home.run(&["run", &path])
        .fails(4, &["synchronous_commit", "--accept-durability-risk"]);
    home.run(&["run", &path, "--accept-durability-risk", "fsync"])
        .fails(4, &["synchronous_commit"]);
    home.run(&["run", &path, "--accept-durability-risk", "synchronous_commit"])
        .fine();
    let md = home.run(&["report", "--format", "md"]).fine().out;
    assert!(md.contains("risky (trades durability)"), "{md}");
}

#[test]
fn mistakes_in_a_file_are_reported_by_line() {
    let home = Home::new();
    home.run(&["run", "/nowhere.toml"])
        .fails(2, &["/nowhere.toml could not be read"]);
    let path = file(
        &home,
        1,
        1.0,
        "[[step]]\nname = \"a\"\nsettings.vm.swapiness = 1\n",
    );
    home.run(&["run", &path]).fails(
        2,
        &["experiment.toml, line 19", "did you mean \"vm.swappiness\"?"],
    );
    let path = file(&home, 1, 1.0, TWO_STEPS);
    home.run(&["run", &path]).fails(1, &["no sandbox \"x\""]);
    home.run(&["report"]).fails(2, &["no experiment in"]);
    home.run(&["report", "7"]).fails(1, &["no experiment 7"]);
}

const ONE_STEP: &str = "[[step]]\nname = \"swap\"\nsettings.vm.swappiness = 17\n";

/// An experiment of its one step, caught where the knob is turned.
fn caught_in_the_step(home: &Home, blocks: u32, measure_s: f64) -> Child {
    let path = file(home, blocks, measure_s, ONE_STEP);
    let mut child = home.spawn(&["run", &path]);
    until_is("the knob is turned", "17".to_owned(), || {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        kernel(SWAPPINESS)
    });
    child
}

fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("dead");
}

/// Killed in the middle, and then somebody else turns the same knob: it is theirs now.
#[test]
fn a_foreign_change_is_left_alone_unless_forced() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let swappiness = kernel(SWAPPINESS);
    let child = caught_in_the_step(&home, 20, 3.0);
    home.run(&["restore"]).fails(1, &["still running"]);
    kill(child);
    fs::write(SWAPPINESS, "33").expect("written");
    let left = home.run(&["restore", "--json"]).fine();
    assert_eq!(left.json()[0]["outcome"], "left", "{}", left.out);
    assert_eq!(kernel(SWAPPINESS), "33");
    fs::write(SWAPPINESS, &swappiness).expect("written");
}

#[test]
fn forced_it_is_restored_all_the_same() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let swappiness = kernel(SWAPPINESS);
    kill(caught_in_the_step(&home, 20, 3.0));
    fs::write(SWAPPINESS, "33").expect("written");
    home.run(&["restore", "--force"]).fine();
    assert_eq!(kernel(SWAPPINESS), swappiness);
}

/// From then on the trials are nobody's treatment: they fail by name, and the value stays as its
/// author wants it.
#[test]
fn a_foreign_change_during_a_run_fails_its_trials_and_stays() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let swappiness = kernel(SWAPPINESS);
    let mut child = caught_in_the_step(&home, 2, 2.0);
    // Not between the write and its verification.
    until_loaded(&home, &mut child);
    fs::write(SWAPPINESS, "33").expect("written");
    let run = said(child.wait_with_output().expect("ends"));
    assert_eq!(kernel(SWAPPINESS), "33");
    fs::write(SWAPPINESS, &swappiness).expect("written");
    let json = home.run(&["report", "1", "--format", "json"]).fine().json();
    // At least the last block's two trials came after it.
    assert!(ended(&json, "failed") >= 2, "{json}\n{}", run.err);
    let reason = json["trials"][3]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("someone else has changed /proc/sys/vm/swappiness") && reason.contains("33"),
        "{reason}"
    );
    assert!(run.err.contains("someone else set it to 33"), "{}", run.err);
}

/// A server that was stopped is stopped again; and a killed experiment's knobs go back before its
/// sandbox goes.
#[test]
fn a_stopped_sandbox_is_stopped_again_and_destroying_one_restores_first() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    home.run(&["sandbox", "stop", "x"]).fine();
    let path = file(&home, 1, 1.0, ONE_STEP);
    home.run(&["run", &path]).fine();
    assert_eq!(home.postmaster("x"), None);
    let swappiness = kernel(SWAPPINESS);
    kill(caught_in_the_step(&home, 20, 3.0));
    assert_ne!(kernel(SWAPPINESS), swappiness);
    let destroyed = home.run(&["sandbox", "destroy", "x"]).fine();
    assert!(destroyed.err.contains("vm.swappiness"), "{}", destroyed.err);
    assert_eq!(kernel(SWAPPINESS), swappiness);
    assert!(home.run(&["restore"]).fine().err.contains("nothing to restore"));
}

/// A user without rights: a directory of its own, and the program where it can be run.
pub(crate) struct Nobody {
    pub(crate) program: PathBuf,
    own: PathBuf,
}

impl Nobody {
    pub(crate) fn new(home: &Home) -> Nobody {
        let nobody = Nobody {
            program: home.file("pgdyno"),
            own: home.file("nobody"),
        };
        // By another process: a child that is forked meanwhile would hold the file open for
        // writing, and nobody could run it.
        tool(
            "cp",
            &[
                &common::program().to_string_lossy(),
                &nobody.program.to_string_lossy(),
            ],
        );
        // Unpacked by root before, so that nobody needs no network.
        let shared = fs::canonicalize(home.file("state/postgresql")).expect("shared binaries");
        for directory in ["cache", "state", "data"] {
            fs::create_dir_all(nobody.own.join(directory)).expect("made");
        }
        symlink(shared, nobody.own.join("state/postgresql")).expect("a link");
        let owned = Command::new("chown")
            .args(["-R", "nobody"])
            .arg(&nobody.own)
            .status();
        assert!(owned.expect("chown runs").success());
        nobody
    }

    pub(crate) fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Said {
        let output = Command::new("setpriv")
            .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"])
            .arg(&self.program)
            .args(arguments)
            .env("PGDYNO_HOME", &self.own)
            .envs(variables.iter().copied())
            .current_dir("/")
            .output()
            .expect("setpriv runs");
        said(output)
    }
}

/// Somebody else's server, whose files cannot be reached: parameters are set and reset one by one
/// over SQL, nothing is restarted, and the password is used and never shown.
#[test]
fn a_server_that_is_not_ours_is_neither_restarted_nor_left_changed() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.ask("x", "ALTER SYSTEM SET work_mem = '5MB'");
    let nobody = Nobody::new(&home);
    let password = fs::read_to_string(home.file("state/sandboxes/x/password")).expect("a password");
    let password = password.trim();
    let steps = "[[step]]\nname = \"jit\"\nsettings.jit = false\n[[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n\
        [[step]]\nname = \"memory\"\nsettings.shared_buffers = \"64MB\"\n";
    let path = file(&home, 1, 1.0, steps);
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(
        &path,
        text.replace("sandbox = \"x\"", "restart = \"when-needed\""),
    )
    .expect("written");
    let (started, conf) = (
        "SELECT pg_postmaster_start_time()",
        home.data("x").join("postgresql.auto.conf"),
    );
    let before = (home.ask("x", started), fs::read(&conf).expect("a file"));
    let target = format!(
        "host=127.0.0.1 port={} user=postgres dbname=postgres",
        home.record("x")["port"]
    );
    let report_file = nobody.own.join("report.html").to_string_lossy().into_owned();
    let arguments = ["run", &path, "--target", &target, "--report", &report_file];
    let run = nobody.run(&arguments, &[("PGPASSWORD", password)]).fine();
    assert!(
        run.err.contains("not tested: memory") && run.err.contains("does not restart"),
        "{}",
        run.err
    );
    let report = nobody.run(&["report", "--format", "json"], &[]).fine();
    let json = report.json();
    assert_eq!(ended(&json, "finished"), 3, "{json}");
    assert_eq!(home.ask("x", started), before.0, "it was restarted");
    assert_eq!(fs::read(&conf).expect("a file"), before.1);
    assert_eq!(home.ask("x", "SHOW work_mem"), "5MB");
    // Neither what is printed nor what is kept holds the password.
    let mut kept = vec![run.out, run.err, report.out];
    let mut directories = vec![nobody.own.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("readable").flatten() {
            if entry.path().is_dir() {
                directories.push(entry.path());
            } else {
                kept.push(String::from_utf8_lossy(&fs::read(entry.path()).expect("readable")).into_owned());
            }
        }
    }
    assert!(kept.len() > 5, "store, journal and report are among them");
    assert!(kept.iter().all(|text| !text.contains(password)));
}

/// As nobody: the kernel's knobs are skipped by name, the server's are tried, nothing fails.
#[test]
fn without_root_the_kernels_knobs_are_skipped_by_name() {
    let home = Home::new();
    home.run(&["sandbox", "create", "x"]).fine();
    let path = file(&home, 1, 1.0, TWO_STEPS);
    let nobody = Nobody::new(&home);
    let as_nobody = |arguments: &[&str]| nobody.run(arguments, &[]);
    as_nobody(&["sandbox", "create", "y", "--memory", "1G"]).fails(1, &["limits", "hint:"]);
    as_nobody(&["sandbox", "destroy", "y"]).fine();
    as_nobody(&["sandbox", "create", "x"]).fine();
    let run = as_nobody(&["run", &path]).fine();
    assert!(
        run.err
            .contains("not tested: swap (vm.swappiness: /proc/sys/vm/swappiness may not be written"),
        "{}",
        run.err
    );
    assert!(run.out.contains("memory"), "{}", run.out);
    as_nobody(&["sandbox", "destroy", "x"]).fine();
}

/// A file system of a few kilobytes, gone with the value.
struct Small(PathBuf);

impl Small {
    fn mount(place: PathBuf, size: &str) -> Small {
        fs::create_dir_all(&place).expect("made");
        let options = format!("size={size},mode=755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&place)
            .status();
        assert!(mounted.expect("mount runs").success());
        Small(place)
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).expect("made");
        while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_changes_nothing_or_is_reported_and_everything_restored() {
    let _machine = whole_machine();
    let home = Home::new();
    home.sandbox("x", &[]);
    let (swappiness, auto_conf) = (kernel(SWAPPINESS), home.data("x").join("postgresql.auto.conf"));
    let conf = fs::read(&auto_conf).expect("a file");
    let path = file(&home, 8, 1.0, TWO_STEPS);
    {
        let journals = Small::mount(home.file("state/journal"), "64k");
        journals.fill();
        home.run(&["run", &path])
            .fails(1, &["journal", "could not be", "No space left"]);
        assert_eq!(
            (kernel(SWAPPINESS), fs::read(&auto_conf).expect("a file")),
            (swappiness.clone(), conf.clone())
        );
    }
    let results = Small::mount(home.file("results"), "120k");
    let store = results.0.join("results.sqlite").to_string_lossy().into_owned();
    home.run(&["run", &path, "--store", &store])
        .fails(1, &["store", "could not be written", "full"]);
    assert_eq!(
        (kernel(SWAPPINESS), fs::read(&auto_conf).expect("a file")),
        (swappiness, conf)
    );
}

/// An experiment file without a target.
fn for_any_server(home: &Home, measure_s: f64, rest: &str) -> String {
    let path = file(home, 1, measure_s, rest);
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(&path, text.replace("sandbox = \"x\"", "")).expect("written");
    path
}

const SORT: &str = "[[step]]\nname = \"sort\"\nsettings.work_mem = \"8MB\"\n";

#[test]
fn data_on_a_server_of_others_wants_consent_and_is_dropped_however_the_run_ends() {
    let (home, foreign) = (Home::new(), Foreign::start());
    let target = foreign.target("postgres");
    let before = foreign.objects();
    let path = for_any_server(&home, 1.0, SORT);
    let listed = [
        "--allow-data",
        "table pgbench_accounts (15 MB)",
        "table pgbench_history",
    ];
    home.run(&["run", &path, "--target", &target]).fails(4, &listed);
    home.run(&["run", &path, "--target", &target, "--dry-run"])
        .fails(4, &listed);
    let agreed = ["run", &path, "--target", &target, "--allow-data"];
    let dry = home.run(&[&agreed[..], &["--dry-run"]].concat()).fine().out;
    assert!(
        dry.contains("table pgbench_accounts") && dry.contains("15 MB"),
        "{dry}"
    );
    // Nobody restarts this server, though the file does not say so.
    assert!(!dry.contains("restart"), "{dry}");
    assert_eq!(foreign.objects(), before, "nothing was made");
    assert!(home.run(&["status"]).fine().err.contains("nothing is changed"));

    let run = home.run(&agreed).fine();
    let line = run.err.lines().find(|line| line.contains("data.pgbench"));
    assert!(line.is_some_and(|line| line.contains("restored")), "{}", run.err);
    assert_eq!(foreign.objects(), before);

    let path = for_any_server(&home, 60.0, SORT);
    // Sessions that check the data have the load's name too, and no such tables yet.
    let loaded = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'pgdyno load' \
                  AND query ~ '^(UPDATE|INSERT)' AND to_regclass('pgbench_history') IS NOT NULL";
    let until_loaded = |child: &mut Child| {
        until_is("the load", "t".to_owned(), || {
            assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
            foreign.ask(loaded)
        });
    };
    let mut child = home.spawn(&["run", &path, "--target", &target, "--allow-data"]);
    until_loaded(&mut child);
    kill(child);
    assert_ne!(foreign.objects(), before);
    let restored = home.run(&["restore"]).fine();
    assert!(restored.out.contains("data.pgbench"), "{}", restored.out);
    assert_eq!(foreign.objects(), before);

    home.run(&["resume", "--target", &target]).fails(4, &listed);
    let mut child = home.spawn(&["resume", "--target", &target, "--allow-data"]);
    until_loaded(&mut child);
    signal(child.id(), "-INT");
    said(child.wait_with_output().expect("ends")).fails(1, &["stopped"]);
    assert_eq!(foreign.objects(), before);

    // What is there under such a name is somebody's, and stays.
    foreign.ask("CREATE TABLE pgbench_history (note text); INSERT INTO pgbench_history VALUES ('mine')");
    home.run(&agreed)
        .fails(1, &["pgbench_history", "not changed", "another database"]);
    home.run(&["data", "create", &target, "--scale", "1"])
        .fails(4, &["pgbench_history", "--replace"]);
    assert_eq!(foreign.ask("SELECT note FROM pgbench_history"), "mine");
}

/// As a user and a role without any right: everything that is wrong is reported at once, what each
/// line says mends it, and then the run works.
#[test]
fn a_dry_run_finds_all_that_is_missing_and_its_grants_mend_it() {
    let (home, foreign) = (Home::new(), Foreign::start());
    foreign.ask("CREATE ROLE plain LOGIN");
    let nobody = Nobody::new(&home);
    let target = foreign.target("plain");
    let several = ["work_mem=9MB", "autovacuum_naptime=9 bananas", "fsync=off"];
    nobody
        .run(&[&["apply", &target, "--dry-run"], &several[..]].concat(), &[])
        .fails(
            4,
            &[
                "GRANT ALTER SYSTEM ON PARAMETER work_mem TO plain",
                "GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf() TO plain",
                "autovacuum_naptime = \"9 bananas\": expected a number from 1 to 2147483",
                "--accept-durability-risk fsync",
            ],
        );
    let steps = format!(
        "{SORT}[[step]]\nname = \"risky\"\nsettings.synchronous_commit = \"off\"\n\
         [[step]]\nname = \"wrong\"\nsettings.checkpoint_timeout = \"2d\"\n\
         [[step]]\nname = \"memory\"\nsettings.shared_buffers = \"64MB\"\n"
    );
    let path = for_any_server(&home, 1.0, &steps);
    let before = foreign.objects();
    let run = ["run", &path, "--target", &target];
    let dry = nobody.run(&[&run[..], &["--dry-run", "--json"]].concat(), &[]);
    assert_eq!(dry.code, 4, "{}", dry.err);
    let messages = [
        "--allow-data",
        "--accept-durability-risk synchronous_commit",
        "checkpoint_timeout = \"2d\": expected",
        "not tested: memory",
        "--allow-restart",
        "GRANT CREATE ON SCHEMA public TO plain",
        "GRANT pg_checkpoint TO plain",
    ];
    for message in messages {
        assert!(dry.err.contains(message), "{message} is not in:\n{}", dry.err);
    }
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().expect("a list").iter();
        list.map(|text| text.as_str().expect("a text").to_owned())
            .collect()
    };
    let findings = dry.json()["findings"].as_array().expect("findings").clone();
    for grant in findings.iter().flat_map(|finding| texts(&finding["mends"])) {
        if grant.starts_with("GRANT ") {
            foreign.ask(&grant);
        }
    }
    let flags = ["--allow-data", "--accept-durability-risk", "synchronous_commit"];
    let agreed = [&run[..], &flags].concat();
    let dry = nobody
        .run(&[&agreed[..], &["--dry-run", "--json"]].concat(), &[])
        .fine();
    let left: Vec<Vec<String>> = dry.json()["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| texts(&finding["treatments"]))
        .collect();
    let (wrong, memory) = (vec!["wrong".to_owned()], vec!["memory".to_owned()]);
    assert!(left.iter().all(|of| *of == wrong || *of == memory), "{}", dry.out);
    nobody.run(&agreed, &[]).fine();
    let report = nobody.run(&["report", "--format", "json"], &[]).fine().json();
    assert_eq!(ended(&report, "finished"), 3, "{report}");
    assert_eq!(foreign.objects(), before);

    // Data of others, that the role may not read, and a script that the server does not know.
    home.run(&["data", "create", &foreign.target("postgres"), "--scale", "1"])
        .fine();
    let dry = nobody.run(&[&agreed[..], &["--dry-run", "--json"]].concat(), &[]);
    assert_eq!(dry.code, 1, "{}", dry.err);
    for finding in dry.json()["findings"].as_array().expect("findings") {
        for grant in texts(&finding["mends"]) {
            if grant.starts_with("GRANT ") {
                foreign.ask(&grant);
            }
        }
    }
    nobody.run(&[&agreed[..], &["--dry-run"]].concat(), &[]).fine();
    let text = fs::read_to_string(&path).expect("a file");
    let script = "script = \"SELECT 1;\\nSELECT no_such FROM pgbench_accounts;\"";
    fs::write(&path, text.replace("workload = \"tpcb\"", script)).expect("written");
    nobody
        .run(&[&agreed[..], &["--dry-run"]].concat(), &[])
        .fails(1, &["line 2", "no_such", "42703"]);
}
