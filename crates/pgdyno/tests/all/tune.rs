//! `pgdyno tune` for real: a search that is killed and goes on, a gain that is confirmed, and what
//! cannot be tuned.

use common::{Home, signal};
use std::fs;

/// Costs at which the planner reads the whole table unless a random page costs less than it does
/// usually.
pub(crate) const COSTS: [&str; 8] = [
    "--fix",
    "seq_page_cost=0.003",
    "--fix",
    "cpu_tuple_cost=0",
    "--fix",
    "cpu_operator_cost=0",
    "--fix",
    "cpu_index_tuple_cost=0",
];

pub(crate) const FIND: &str =
    "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n";

fn home() -> Home {
    let home = Home::new();
    home.sandbox("t", &["--set", "fsync=off"]);
    home
}

#[test]
fn setting_that_pays_is_found_confirmed_and_written_as_a_profile() {
    let home = home();
    let script = home.write("find.sql", FIND);
    let profile = home.file("found.toml");
    let (script, output) = (script.to_string_lossy(), profile.to_string_lossy());
    let mut arguments = vec![
        "tune",
        "sandbox:t",
        "--script",
        &script,
        "--scale",
        "1",
        "--clients",
        "2",
    ];
    arguments.extend([
        "--duration",
        "1s",
        "--warmup",
        "200ms",
        "--trials",
        "6",
        "--seed",
        "1",
    ]);
    arguments.extend([
        "--only",
        "random_page_cost",
        "--blocks",
        "5",
        "--output",
        &output,
        "--json",
    ]);
    arguments.extend(COSTS);
    let found = home.run(&arguments).fine().json();
    assert_eq!(
        (&found["format"], &found["outcome"]),
        (&"pgdyno-tune/1".into(), &"tuned".into())
    );
    let kept = found["kept"].as_array().expect("settings");
    assert_eq!(kept[0]["setting"]["knob"], "random_page_cost");
    assert!(
        ["1.1", "2"].contains(&kept[0]["setting"]["value"].as_str().expect("a value")),
        "{found:#}"
    );
    assert_eq!(found["proven"]["effect"]["verdict"], "better");
    assert!(
        found["proven"]["effect"]["ratio"].as_f64().expect("a ratio") > 1.5,
        "{found:#}"
    );
    assert_eq!(
        home.ask("t", "SHOW random_page_cost"),
        "4",
        "everything is restored"
    );

    let search = found["search"].to_string();
    let notes = home.run(&["note", &search]).fine().out;
    assert!(
        notes.contains("confirmed: ") && notes.contains("where the search expected +"),
        "{notes}"
    );
    let report = home.run(&["report", &search, "--format", "json"]).fine().json();
    let path = report["search"]["path"].as_array().expect("a path");
    assert_eq!(path.len(), report["trials"].as_array().expect("trials").len());
    let best = &path.last().expect("a trial")["best"];
    assert_eq!(*best, report["search"]["best"]);
    let answer = report["experiment"]["answer"].as_str().expect("an answer");
    assert!(answer.contains("new trials must confirm it"), "{answer}");

    let text = fs::read_to_string(&profile).expect("a profile");
    assert!(text.contains("name = \"tuned\""), "{text}");
    home.run(&["apply", "sandbox:t", &output]).fine();
    assert_ne!(home.ask("t", "SHOW random_page_cost"), "4");
    home.run(&["restore"]).fine();
    let tagged = home.run(&["list", "--tag", "tune", "--json"]).fine().json();
    let designs: Vec<&str> = tagged["experiments"]
        .as_array()
        .or(tagged.as_array())
        .expect("a list")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(
        designs.contains(&"tune") && designs.contains(&"tune-confirm"),
        "{designs:?}"
    );
}

/// Waits on average 200 ms; two fifths as long with one setting, and with either of two others two
/// fifths as long. Both together bring an eighth more: of the trials of a search, which differ by a
/// fiftieth, that is the best for sure, and it is half of the 25 % that matter.
const WAITS: &str = "SELECT pg_sleep((0.1 + 0.2 * random()) * CASE current_setting('geqo_threshold') WHEN '8' THEN 0.4 ELSE 1 END * \
     CASE (current_setting('from_collapse_limit') = '4')::int + (current_setting('join_collapse_limit') = '4')::int \
     WHEN 0 THEN 1 WHEN 1 THEN 0.41 ELSE 0.36 END);\n";

#[test]
fn of_settings_that_bring_the_same_one_stays() {
    let home = home();
    let script = home.write("waits.sql", WAITS).to_string_lossy().into_owned();
    let knobs = ["geqo_threshold", "from_collapse_limit", "join_collapse_limit"];
    let values = ["8", "4", "4"];
    let mut start = "name = \"mine\"\ntitle = \"Mine\"\nsummary = \"Mine.\"\n".to_owned();
    let mut spaces = Vec::new();
    for (knob, value) in knobs.iter().zip(values) {
        start += &format!(
            "[[setting]]\nknob = \"{knob}\"\nvalue = \"{value}\"\nreason = \"A test.\"\nsource = \"None.\"\n"
        );
        spaces.extend(["--space".to_owned(), format!("{knob}={value}")]);
    }
    let start = home.write("mine.toml", &start).to_string_lossy().into_owned();
    let output = home.file("found.toml").to_string_lossy().into_owned();
    // Of the catalogue's knobs one that is fixed, so none.
    let mut arguments = vec![
        "tune",
        "sandbox:t",
        "--script",
        &script,
        "--only",
        "jit",
        "--fix",
        "jit=off",
        "--start",
        &start,
    ];
    arguments.extend([
        "--scale",
        "1",
        "--clients",
        "24",
        "--duration",
        "1s",
        "--warmup",
        "200ms",
        "--trials",
        "6",
    ]);
    arguments.extend([
        "--seed",
        "1",
        "--blocks",
        "5",
        "--smallest-effect",
        "25%",
        "--output",
        &output,
        "--json",
    ]);
    arguments.extend(spaces.iter().map(String::as_str));
    let said = home.run(&arguments).fine();
    let found = said.json();
    let names = |list: &str| -> Vec<String> {
        let list = found[list].as_array().expect("settings").iter();
        list.map(|one| one["setting"]["knob"].as_str().expect("a knob").to_owned())
            .collect()
    };
    let (kept, dropped) = (names("kept"), names("dropped"));
    assert_eq!((kept.len(), dropped.len()), (2, 1), "{found:#}");
    assert_eq!(kept[0], knobs[0], "{found:#}");
    assert!(knobs[1..].contains(&kept[1].as_str()) && knobs[1..].contains(&dropped[0].as_str()));
    assert_eq!(found["proven"]["effect"]["verdict"], "better", "{found:#}");
    let profile = fs::read_to_string(&output).expect("a profile");
    assert!(
        profile.contains("Kept, as the gain was lost without all that did not pay"),
        "{profile}"
    );
}

const SEARCH: &str = "name = 'search'\nquestion = 'Which is best?'\ndesign = 'search'\nblocks = 2\nseed = 3\n[data]\nscale = 1\n\
     [load]\nworkload = 'select-only'\nclients = 1\nrate = '200'\nwarmup_s = 0\nmeasure_s = 1\n[search]\ntrials = 7\n\
     [[search.start]]\nname = 'mine'\nlevels = { work_mem = '8MB' }\n\
     [[search.limit]]\nsum = { work_mem = 4, shared_buffers = 1 }\nat_most = '200MB'\n\
     [[factor]]\nname = 'work_mem'\nof = 'work_mem'\nvalues = ['4MB', '8MB', '64MB']\n\
     [[factor]]\nname = 'shared_buffers'\nof = 'shared_buffers'\nvalues = ['64MB', '128MB', '7TB']\nweights = [1, 2, 1]\n\
     [[factor]]\nname = 'random_page_cost'\nof = 'random_page_cost'\nvalues = [4, 1.1]\nrelevance = 0.5\n";

#[test]
fn killed_search_goes_on_with_what_its_trials_ask_for() {
    let home = home();
    let file = home.write("search.toml", SEARCH);
    let file = file.to_string_lossy();
    let mut run = home.start(&["run", &file, "--target", "sandbox:t"]);
    run.until_it_prints("trial 3/7");
    signal(run.id(), "-KILL");
    run.end();
    let before = home.stored_trials(1);
    home.run(&["resume", "1"]).fine();
    let after = home.stored_trials(1);
    assert_eq!(after.len(), 7);
    assert_eq!(after[..before.len()], before[..], "what was stored stays");
    // A tune goes on only with what was searched for.
    home.run(&["tune", "sandbox:t", "--after", "1"])
        .fails(2, &["the load differs", "hint: give the options"]);
    let report = home.run(&["report", "1", "--format", "json"]).fine().json();
    let treatments = report["treatments"].as_array().expect("treatments");
    let value = |treatment: &serde_json::Value, knob: &str| {
        let settings = treatment["settings"].as_array().expect("settings").iter();
        let own = settings.filter(|setting| setting["knob"] == knob);
        own.filter_map(|setting| setting["value"].as_str().map(str::to_owned))
            .next()
    };
    let tested = treatments
        .iter()
        .filter(|treatment| treatment["status"] == "tested");
    let tested: Vec<_> = tested.collect();
    assert_eq!(tested[0]["name"], "reference");
    assert_eq!(tested[1]["name"], "mine");
    assert_eq!(value(tested[1], "work_mem").as_deref(), Some("8MB"));
    for treatment in &tested {
        let (sorts, buffers) = (value(treatment, "work_mem"), value(treatment, "shared_buffers"));
        assert_ne!(buffers.as_deref(), Some("7TB"), "it does not fit");
        assert!(
            sorts.as_deref() != Some("64MB"),
            "four of them are beyond the limit"
        );
    }
    assert_eq!(home.ask("t", "SHOW work_mem"), "4MB", "everything is restored");
}

/// Chooses the level of its first argument, and answers the second question as its second argument
/// says.
const OPTIMIZER: &str = r#"
import json, sys
level, second = sys.argv[1], sys.argv[2]
opening = json.loads(sys.stdin.readline())
tells = asks = 0
for line in sys.stdin:
    message = json.loads(line)
    if "tell" in message:
        tells += 1
    if "ask" in message:
        assert message["ask"]["trial"] == tells + 1
        asks += 1
        if asks == 2 and second == "dies":
            sys.exit("no more ideas")
        if asks == 2 and second == "garbage":
            print("maybe 1.1?", flush=True)
            continue
        if asks == 2 and second == "twice":
            print(json.dumps({"levels": {}}))
        sorts, buffers = ["4MB", "8MB"][tells % 2], ["64MB", "128MB"][tells // 2 % 2]
        levels = {"random_page_cost": level, "work_mem": sorts, "shared_buffers": buffers}
        print(json.dumps({"levels": levels, "why": "my own idea"}), flush=True)
"#;

#[test]
fn program_from_outside_chooses_and_a_bad_one_is_named_and_its_search_goes_on() {
    let home = home();
    let program = home.write("optimizer.py", OPTIMIZER);
    let program = program.to_string_lossy();
    let search = |second: &str| {
        SEARCH.replace(
            "[search]\n",
            &format!("[search]\noptimizer = \"python3 {program} 1.1 {second}\"\n"),
        )
    };
    let run = |second: &str, expected: &[&str]| {
        let file = home.write(&format!("{second}.toml"), &search(second));
        let mut words = vec!["the optimizer: python3"];
        words.extend(expected);
        home.run(&["run", &file.to_string_lossy(), "--target", "sandbox:t"])
            .fails(1, &words);
    };
    let missing = SEARCH.replace("[search]\n", "[search]\noptimizer = 'no-such-optimizer 1'\n");
    let missing = home.write("missing.toml", &missing);
    home.run(&["run", &missing.to_string_lossy(), "--target", "sandbox:t"])
        .fails(
            1,
            &[
                "the program no-such-optimizer is not there",
                "nothing was changed",
            ],
        );
    run("dies", &["ended with exit code 1", "no more ideas"]);
    run("twice", &["a line that nobody asked for"]);
    let file = home.write("garbage.toml", &search("garbage"));
    home.run(&["run", &file.to_string_lossy(), "--target", "sandbox:t"])
        .fails(1, &["the optimizer: expected a line", "maybe 1.1?"]);
    assert_eq!(
        home.ask("t", "SHOW random_page_cost"),
        "4",
        "everything is restored"
    );
    let before = home.stored_trials(1).len();
    assert!((3..7).contains(&before), "{before}");
    // A program that is mended goes on with what was tried.
    home.write("optimizer.py", &OPTIMIZER.replace("asks == 2", "asks < 0"));
    home.run(&["resume", "1"]).fine();
    assert_eq!(home.stored_trials(1).len(), 7);
    let report = home.run(&["report", "1", "--format", "json"]).fine().json();
    let treatments = report["treatments"].as_array().expect("treatments");
    assert!(
        treatments.iter().any(|own| own["reason"] == "my own idea"),
        "{report:#}"
    );
}

/// The file of a search is one that `run` takes.
fn can_be_run(home: &Home, text: &str) {
    let file = home.write("search.toml", text);
    let file = file.to_string_lossy();
    home.run(&["run", &file, "--target", "sandbox:t", "--dry-run"])
        .fine();
}

#[test]
fn what_cannot_be_tuned_is_refused_with_the_reason() {
    let home = home();
    let refused = |arguments: &[&str], texts: &[&str]| {
        home.run(&[&["tune", "sandbox:t"], arguments].concat())
            .fails(2, texts);
    };
    refused(&["--maximize", "p99_ms"], &["--minimize p99_ms"]);
    refused(&["--minimize", "speed"], &["speed is not a metric"]);
    refused(
        &["--only", "fsync"],
        &["a search does not vary fsync", "shared_buffers"],
    );
    refused(
        &["--only", "jit", "--fix", "jit=off"],
        &["there is no knob to vary"],
    );
    for (space, why) in [
        ("work_mem=much", "much"),
        ("work_mem=4MB", "none of its values is other than the present one"),
        ("fsync=off", "may lose committed data"),
        ("no_such_knob=1", "no_such_knob"),
        ("jit=off,on", "--fix or --without names it too"),
    ] {
        refused(&["--space", space, "--fix", "jit=off"], &["--space", why]);
    }
    refused(&["--subject-to", "p99_ms < 3"], &["p99_ms <= 20"]);
    refused(&["--trials", "2"], &["6..=200"]);
    refused(&["--optimizer", "python3 my.py"], &["expected exec:COMMAND"]);
    refused(
        &["--program", "oracle"],
        &["no program \"oracle\" is known as a load", "sysbench"],
    );
    refused(
        &["--program", "pgbench", "--workload", "tpcb"],
        &["cannot be used with"],
    );
    let dry = [
        "tune",
        "sandbox:t",
        "--program",
        "pgbench",
        "--only",
        "work_mem",
        "--dry-run",
    ];
    let search = home.run(&dry).fine();
    assert!(search.out.contains("program = \"pgbench\""), "{}", search.out);
    // A knob that no search varies by itself, and another one's values.
    let own = ["--space", "work_mem=1MB,3MB", "--space", "geqo_threshold=8,20"];
    let own = home.run(&[&dry[..], &own].concat()).fine().out;
    for part in [
        "values = [\"4MB\", \"1MB\", \"3MB\"]",
        "values = [\"12\", \"8\", \"20\"]",
    ] {
        assert!(own.contains(part), "{own}");
    }
    can_be_run(&home, &own);
    can_be_run(&home, &search.out);
    let risky = home.run(&["tune", "sandbox:t", "--fix", "fsync=off", "--only", "work_mem"]);
    assert!(
        risky.code != 0 && risky.err.contains("--accept-durability-risk"),
        "{}",
        risky.err
    );
    let dry = home
        .run(&[
            "tune",
            "sandbox:t",
            "--workload",
            "tpcb",
            "--max-slowdown",
            "20%",
            "--between",
            "22:30-05:00",
            "--dry-run",
            "--json",
        ])
        .fine()
        .json();
    let text = dry["file"].as_str().expect("a file");
    for part in ["slowdown_max = 0.2", "from = \"22:30\"", "to = \"05:00\""] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let knobs = dry["space"]["knobs"].as_array().expect("knobs");
    let risky = ["fsync", "full_page_writes", "synchronous_commit"];
    assert!(
        knobs
            .iter()
            .all(|knob| !risky.contains(&knob["knob"].as_str().expect("a name")))
    );
    assert!(
        knobs.iter().all(|knob| knob["knob"] != "checkpoint_timeout"),
        "{dry:#}"
    );
    let skipped = dry["space"]["skipped"].to_string();
    assert!(
        skipped.contains("a trial of 15 s ends before it makes a difference, which takes 300 s"),
        "{skipped}"
    );
    can_be_run(&home, text);
}
