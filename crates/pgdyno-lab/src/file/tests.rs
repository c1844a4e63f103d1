mod passwords;
mod sessions;
mod turns;

use super::*;
use proptest::prelude::*;

const GOOD: &str = r#"
name = "x"
question = "?"
design = "cumulative"
blocks = 2
[data]
scale = 1
[load]
workload = "tpcb"
clients = 4
warmup_s = 1
measure_s = 5
[base]
max_connections = 50
[[step]]
name = "a"
[step.settings]
vm.swappiness = 1
jit = false
"block.read_ahead_kb" = 16
"#;

/// The files that pgdyno ships: name and text.
pub(crate) fn shipped() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/experiments");
    let mut files: Vec<(String, String)> = std::fs::read_dir(directory)
        .expect("the shipped experiments")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a text"))
        })
        .collect();
    files.sort();
    files
}

/// A text with the memory of a target, where it asks for one that its own sandbox does not have.
pub(crate) fn on_a_host(text: &str, memory_bytes: u64) -> String {
    let asks = asks_for_target(text).is_some_and(|part| part.create.unwrap_or_default().memory.is_none());
    match asks {
        true => given(text, Some(memory_bytes), Some(2.0)),
        false => text.to_owned(),
    }
}

fn parse(text: &str) -> Result<ExperimentFile, FileError> {
    ExperimentFile::parse(text, Path::new("x.toml"), &Catalogue::shipped().unwrap())
}

/// A switchback of these keys of its first lines, of its load and of its one step.
fn switchback(file: &str, load: &str, step: &str) -> Result<ExperimentFile, FileError> {
    parse(&format!(
        "name = 'x'\nquestion = '?'\ndesign = 'switchback'\nblocks = 3\n{file}[data]\nscale = 1\n[load]\nworkload = 'tpcb'\nclients = 4\n\
         measure_s = 12\n{load}[[step]]\nname = 's'\n{step}"
    ))
}

/// A step may consist of any one key.
#[test]
fn every_key_of_a_step_is_something_that_it_sets() {
    let open = GOOD.replace("measure_s = 5", "measure_s = 5\nrate = '5'");
    for key in [
        "profile = 'oltp'",
        "settings.jit = 'off'",
        "load.workload = 'simple'",
        "load.script = 'SELECT 1'",
        "load.program = 'pgbench'",
        "load.command = 'true'",
        "load.prepare = 'true'",
        "load.cleanup = 'true'",
        "load.protocol = 'simple'",
        "load.transaction = 'none'",
        "load.clients = 2",
        "load.threads = 1",
        "load.cpus = [0]",
        "load.rate = '10'",
        "load.spacing = 'constant'",
        "load.batch_ms = 1",
        "load.think_ms = 1",
        "load.latency_limit_ms = 20",
        "load.max_tries = 3",
        "load.connect = true",
        "load.warmup_s = 2",
        "load.settle = true",
        "load.measure_s = 2",
        "load.checkpoint_cycles = 2",
        "load.crash = true",
        "data.dataset = 'oltp'",
        "data.scale = 2",
        "data.reset = 'vacuum'",
        "data.prewarm = 'read'",
        "data.fillfactor = 80",
        "data.partitions = 'hash:4'",
        "server.version = 18",
        "server.data_on = 'tmpfs:2G'",
        "server.wal_on = 'tmpfs:2G'",
        "server.pooler = 'pgbouncer'",
        "server.pool_mode = 'session'",
        "server.pool_size = 2",
        "server.neighbour = 'true'",
        "server.neighbour_memory = '1GB'",
        "server.network = 'mtu:9000'",
    ] {
        let file = parse(&format!("{open}\n[[step]]\nname = \"b\"\n{key}\n"));
        assert!(file.is_ok(), "{key}: {}", file.unwrap_err());
    }
}

#[test]
fn settings_are_flattened_to_knobs() {
    let file = parse(GOOD).unwrap();
    let found: Vec<String> = settings_of(&file.step[0].settings)
        .iter()
        .map(|s| format!("{}={}", s.knob, s.value))
        .collect();
    assert_eq!(found, ["block.read_ahead_kb=16", "jit=off", "vm.swappiness=1"]);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let check = |from: &str, to: &str, line: usize, expected: &str| {
        let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("x.toml, line {line}: ")),
            "{to}: {error}"
        );
        assert!(error.contains(expected), "{to}: {error}");
    };
    check("clients = 4", "clinets = 4", 10, "did you mean \"clients\"?");
    check("clients = 4", "clients = \"many\"", 10, "expected u32");
    check("workload = \"tpcb\"", "workload = \"tpcx\"", 9, "unknown variant");
    check(
        "vm.swappiness = 1",
        "vm.swappines = 1",
        18,
        "did you mean \"vm.swappiness\"?",
    );
    check("vm.swappiness = 1", "vm.swappiness = 900", 18, "0 to 200");
    check(
        "\"block.read_ahead_kb\" = 16",
        "\"block.read_ahead\" = 16",
        20,
        "block.read_ahead_kb",
    );
    check(
        "max_connections = 50",
        "max_conections = 50",
        14,
        "max_connections",
    );
    check("blocks = 2", "blocks = 0", 5, "1 to 1000");
    check("measure_s = 5", "measure_s = 0.1", 12, "1 to 86400");
    check(
        "measure_s = 5",
        "measure_s = 5\nthink_ms = -1",
        13,
        "0 to 86400000 ms",
    );
    check(
        "measure_s = 5",
        "measure_s = 5\nlatency_limit_ms = nan",
        13,
        "0 to",
    );
    check(
        "measure_s = 5",
        "measure_s = 5\nbatch_ms = 200",
        13,
        "0 to 100 ms",
    );
    check(
        "measure_s = 5",
        "measure_s = 5\nspacing = \"poisson\"",
        13,
        "add a rate",
    );
    check("name = \"a\"", "name = \"reference\"", 16, "taken");
    check("question = \"?\"", "", 1, "question");
    check("[data]", "[data", 6, "");
}

/// As docs/reference/experiment-file.md lists them.
#[test]
fn what_a_transaction_cost_is_a_figure_and_its_name_is_taken() {
    let costs = [
        "disk_read_bytes_per_tx",
        "disk_write_bytes_per_tx",
        "energy_j_per_tx",
    ];
    for name in costs {
        let study = format!(
            "[study]\nsource = \"s\"\ntitle = \"t\"\n[[study.table]]\ntitle = \"x\"\nvalues = [\"{name}\"]\n\
             [[study.claim]]\ntext = \"x\"\nof = {{ step = \"a\" }}\nfound = \"better\"\nmetric = \"{name}\"\n"
        );
        let text = GOOD.replace("blocks = 2", &format!("blocks = 2\nmetric = \"{name}\""));
        let file = parse(&format!("{text}\n{study}"));
        assert!(file.is_ok(), "{name}: {}", file.unwrap_err());
    }
    for name in costs.into_iter().chain(["tps", "job_s", "recovery_s"]) {
        let figure = format!("{GOOD}\n[[figure]]\nname = \"{name}\"\nsql = \"SELECT 1\"\n");
        let error = parse(&figure).unwrap_err().to_string();
        assert!(
            error.contains(&format!("the name \"{name}\" is taken")),
            "{error}"
        );
    }
}

#[test]
fn a_step_that_sets_nothing_is_refused() {
    let text = GOOD.split("vm.swappiness").next().unwrap();
    assert!(parse(text).unwrap_err().to_string().contains("sets nothing"));
}

const FACTORS: &str = r#"
name = "x"
question = "?"
design = "full-factorial"
blocks = 3
[data]
scale = 1
[load]
workload = "tpcb"
measure_s = 5
[[factor]]
name = "buffers"
of = "shared_buffers"
values = ["1GB", "2GB"]
[[factor]]
name = "clients"
condition = true
of = "load.clients"
values = [1, 8]
"#;

#[test]
fn contradictions_are_found_before_anything_is_touched() {
    let file = parse(FACTORS).unwrap();
    assert_eq!(file.factor.len(), 2);
    // The key of a condition in older files.
    let older = parse(&FACTORS.replace("condition = true", "along = true")).unwrap();
    assert_eq!([file.factor[1].condition, older.factor[1].condition], [true; 2]);
    let check = |from: &str, to: &str, expected: &str| {
        assert!(FACTORS.contains(from), "{from}");
        let error = parse(&FACTORS.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with("x.toml, line "), "{error}");
        assert!(error.contains(expected), "{to}: {error}");
    };
    check(
        "\"load.clients\"",
        "\"shared_buffers\"",
        "both set shared_buffers: one factor per knob",
    );
    check("\"load.clients\"", "\"load.clinets\"", "load.clinets");
    check("values = [1, 8]", "values = [8, 8]", "\"8\" is there twice");
    check("values = [1, 8]", "values = []", "without `values`");
    check("values = [1, 8]", "values = [0, 1]", "clients = 0: expected 1 to");
    check("values = [1, 8]", "values = [8]", "\"clients\" has 1 level(s)");
    check("of = \"load.clients\"\n", "", "which says of what");
    check("\"shared_buffers\"", "\"shared_bufers\"", "shared_buffers");
    check("\"full-factorial\"", "\"a-b\"", "one [[step]] part");
    check(
        "\"full-factorial\"",
        "\"screening\"",
        "two levels of each factor; \"clients\"",
    );
    check(
        "blocks = 3",
        "blocks = 2\nstop = \"when-decided\"",
        "needs blocks = 3 to 500",
    );
    check(
        "blocks = 3",
        "blocks = 3\nstop = \"when-gain-decided\"",
        "needs blocks = 5 to 500",
    );
    check(
        "\"full-factorial\"\nblocks = 3",
        "\"ladder\"\nblocks = 9\nstop = \"when-decided\"",
        "decides nothing",
    );
    check(
        "blocks = 3",
        "blocks = 3\nmetric = \"tpm\"",
        "\"tpm\" is not a metric",
    );
    check(
        "blocks = 3",
        "blocks = 3\nmetric = \"recovery_s\"",
        "\"recovery_s\" is not a metric",
    );
    check(
        "measure_s = 5",
        "measure_s = 5\nprogram = \"pgbench\"",
        "only one of them",
    );
    check(
        "workload = \"tpcb\"",
        "program = \"oracle\"",
        "known are pgbench, sysbench, sysbench-tpcc, go-tpc, benchbase, hammerdb, job",
    );
    check("workload = \"tpcb\"", "program = \"job\"", "is a job: command");
    check(
        "workload = \"tpcb\"\n",
        "",
        "neither workload nor script nor program",
    );
    check("scale = 1\n", "", "scale = ... says how much");
    check(
        "measure_s = 5",
        "rate = \"fast\"\nmeasure_s = 5",
        "arrivals per second",
    );
    for (server, expected) in [
        (
            "data_on = \"tmpfs\"",
            "data_on: expected a file system and its size",
        ),
        ("data_on = \"ntfs:1G\"", "there are tmpfs, ext4, xfs, btrfs"),
        ("wal_on = \"xfs:1M\"", "too small: expected at least xfs:320M"),
        ("network = \"mtu:9\"", "or \"loopback\""),
        ("pooler = \"odyssey\"", "`none`, `pgbouncer`, `pgpool`"),
        ("pool_mode = \"none\"", "`session`, `transaction`, `statement`"),
        ("pool_size = 0", "pool_size = 0: expected 1 to"),
        (
            "neighbour_memory = \"all\"",
            "neighbour_memory: \"all\": expected a size",
        ),
        ("version = 9", "version: 9: expected 14 to 19"),
        ("bin = \"bin\"", "expected an absolute path"),
        ("version = 18\nbin = \"/opt/bin\"", "take one of the two"),
    ] {
        check("[data]", &format!("[server]\n{server}\n[data]"), expected);
    }
    check(
        "of = \"load.clients\"\nvalues = [1, 8]",
        "of = \"server.data_on\"\nvalues = [\"disk\", \"ram:1G\"]",
        "data_on: expected a file system",
    );
    check("[data]", "[exclude]\n[data]", "expected a sequence");
    check(
        "[data]",
        "[[exclude]]\nbuffers = \"3GB\"\n[data]",
        "has no level \"3GB\"; it has 1GB, 2GB",
    );
    check(
        "[data]",
        "[[exclude]]\nclinets = \"1\"\n[data]",
        "no factor \"clinets\"",
    );
    check(
        "[data]",
        "[[exclude]]\nstep = \"more\"\n[data]",
        "remove the step",
    );
    check("[data]", "[[exclude]]\n[data]", "name levels");
    check(
        "[data]",
        "[guard]\nmemory_available_min = \"much\"\n[data]",
        "expected a size",
    );
    check(
        "[data]",
        "[guard]\np99_ms_max = -1.0\n[data]",
        "expected more than 0",
    );
    check(
        "[data]",
        "[guard]\nslowdown_max = 1.0\n[data]",
        "expected a share of the reference's throughput",
    );
    check("[data]", "[budget]\ntime = \"8 hours\"\n[data]", "time");
    check(
        "[data]",
        "[window]\nfrom = \"25:00\"\nto = \"06:00\"\n[data]",
        "expected a time of the day",
    );
    check(
        "[data]",
        "[window]\nfrom = \"06:00\"\nto = \"6:00\"\n[data]",
        "no length",
    );
    check(
        "[data]",
        "[[figure]]\nname = \"tps\"\nmetric = \"db.commits_per_s\"\n[data]",
        "taken",
    );
    check(
        "[data]",
        "[[figure]]\nname = \"a\"\n[data]",
        "a metric or from sql",
    );
    check("[data]", "[target]\ncreate = {}\n[data]", "name it with sandbox");
}

#[test]
fn a_guard_that_could_never_act_is_refused() {
    let refused = |text: &str, expected: &str| {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let foreign = FACTORS.replace("workload = \"tpcb\"", "program = \"pgbench\"");
    for guard in ["error_ratio_max", "slowdown_max"] {
        refused(&format!("{foreign}[guard]\n{guard} = 0.1\n"), "would never act");
    }
    let short = FACTORS.replace("measure_s = 5", "measure_s = 4");
    refused(
        &format!("{short}[guard]\nslowdown_max = 0.1\n"),
        "acts after 5 measured seconds",
    );
    let screening = FACTORS
        .replace("full-factorial", "screening")
        .replace("condition = true\n", "");
    refused(&format!("{screening}[guard]\nslowdown_max = 0.1\n"), "have none");
}

#[test]
fn claims_and_tables_name_what_there_is() {
    let study = "[study]\nsource = \"s\"\ntitle = \"t\"\n";
    let check = |part: &str, expected: &str| {
        let error = parse(&format!("{FACTORS}{study}{part}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        "[[study.table]]\ntitle = \"x\"\nrows = \"pages\"\nvalues = [\"tps\"]\n",
        "no factor \"pages\"",
    );
    check(
        "[[study.table]]\ntitle = \"x\"\nrows = \"clients\"\nvalues = [\"nopm\"]\n",
        "\"nopm\" is not a metric",
    );
    check(
        "[[study.claim]]\ntext = \"x\"\nof = { clients = \"9\" }\nfound = \"better\"\n",
        "it has 1, 8",
    );
}

/// A chart names factors and figures that are there, and a finding a chart that is.
#[test]
fn a_chart_that_cannot_be_drawn_is_refused() {
    let with = |chart: &str, claim: &str| {
        parse(&format!(
            "name='x'\nquestion='q'\ndesign='full-factorial'\nblocks=2\n[data]\nscale=1\n[load]\nworkload='tpcb'\nmeasure_s=1\n\
             [[factor]]\nname='clients'\nof='load.clients'\nvalues=[1,8]\n[[factor]]\nname='mem'\nof='work_mem'\nvalues=['4MB','8MB']\n\
             [study]\nsource='s'\ntitle='t'\n[[study.chart]]\ntitle='a'\n{chart}\n[[study.claim]]\ntext='c'\nof={{mem='8MB'}}\nfound='better'\n{claim}\n"
        ))
    };
    for lines in ["'mem'", "['mem']", "[]"] {
        let chart = format!("form='lines'\nx='clients'\nlines={lines}\nvalue='p99_ms'");
        with(&chart, "chart='a'").unwrap();
    }
    for (chart, claim, expected) in [
        ("form='lines'\nx='client'", "", "there is no factor \"client\""),
        (
            "form='lines'\nx='clients'\nlines='clients'",
            "",
            "x and lines name a factor twice",
        ),
        (
            "form='lines'\nx='clients'\nlines=['mem', 'mem']",
            "",
            "name a factor twice",
        ),
        (
            "form='lines'\nx='clients'\nlines=1",
            "",
            "expected the name of a factor, or a list of names",
        ),
        (
            "form='waterfall'",
            "",
            "a waterfall needs design = \"cumulative\"",
        ),
        ("form='timeline'", "", "a timeline needs an [[event]]"),
        ("form='timeline'\nx='mem'", "", "it has no x"),
        ("form='bars'\nlines='mem'", "", "a chart needs x"),
        ("form='bars'\nx='mem'\nvalue='tpz'", "", "tpz"),
        ("form='pie'\nx='mem'", "", "unknown variant `pie`"),
        (
            "form='bars'\nx='mem'",
            "chart='b'",
            "there is no [[study.chart]] with the title \"b\"",
        ),
        (
            "form='bars'\nx='mem'\n[[study.chart]]\ntitle='a'\nform='heat'\nx='mem'",
            "",
            "the title \"a\" is taken",
        ),
    ] {
        let error = with(chart, claim).unwrap_err();
        assert!(error.to_string().contains(expected), "{chart} {claim}: {error}");
    }
}

/// An event is at a time with room on both sides, and one thing that can be done while a load runs.
#[test]
fn an_event_that_cannot_happen_is_refused() {
    let with = |events: &str| {
        parse(&format!(
            "name='x'\nquestion='q'\ndesign='one-at-a-time'\nblocks=2\n[data]\nscale=1\n[load]\nworkload='tpcb'\nclients=1\nmeasure_s=40\n{events}"
        ))
    };
    let whole = with("[[event]]\nat='10s'\nsettings={ 'vm.swappiness'=1 }\n[[event]]\nat='22s'\nkill=true\n")
        .unwrap();
    let titles: Vec<String> = whole.event.iter().map(EventPart::titled).collect();
    assert_eq!(titles, ["vm.swappiness = 1", "the server is killed"]);
    for (events, expected) in [
        ("", "expected [[step]] or [[factor]] parts"),
        (
            "[[event]]\nat='4s'\nkill=true\n",
            "expected at least 10 s after the start",
        ),
        ("[[event]]\nat='37s'\nkill=true\n", "before its end at 40 s"),
        (
            "[[event]]\nat='10s'\nkill=true\n[[event]]\nat='18s'\nneighbour='x'\n",
            "at = \"18s\"",
        ),
        ("[[event]]\nat='soon'\nkill=true\n", "line 12: expected a time"),
        ("[[event]]\nat='12s'\n", "exactly one of settings"),
        (
            "[[event]]\nat='12s'\nkill=true\nneighbour='x'\n",
            "exactly one of settings",
        ),
        (
            "[[event]]\nat='12s'\nsettings={ shared_buffers='1GB' }\n",
            "shared_buffers cannot change while a load runs: it takes effect only after a restart",
        ),
        (
            "[[event]]\nat='12s'\nsettings={ jit='off' }\n",
            "plans of prepared statements keep the old value",
        ),
        (
            "[[event]]\nat='12s'\nsettings={ wurk_mem='8MB' }\n",
            "did you mean \"work_mem\"?",
        ),
        (
            "[[event]]\nat='12s'\nkill=true\n[[event]]\nat='22s'\nkill=true\n",
            "is taken",
        ),
        (
            "[[event]]\nat='12s'\nneighbour='x'\nneighbour_memory='lots'\n",
            "expected a size",
        ),
        (
            "[[event]]\nat='12s'\nkill=true\n[study]\nsource='s'\ntitle='t'\n[[study.claim]]\ntext='c'\nevent='b'\nfound='better'\n",
            "there is no [[event]] \"b\"",
        ),
        (
            "[[event]]\nat='12s'\nkill=true\n[study]\nsource='s'\ntitle='t'\n[[study.claim]]\ntext='c'\nfound='better'\n",
            "a claim is of =",
        ),
    ] {
        let error = with(events).unwrap_err();
        assert!(error.to_string().contains(expected), "{events}: {error}");
    }
    let switchback = switchback(
        "",
        "",
        "settings.commit_delay = 10\n[[event]]\nat='12s'\nkill=true\n",
    )
    .unwrap_err();
    assert!(
        switchback.to_string().contains("it changes settings itself"),
        "{switchback}"
    );
}

/// Every experiment that is shipped is whole, in each of its sizes, and can be planned.
#[test]
fn what_is_shipped_holds() {
    let catalogue = Catalogue::shipped().unwrap();
    let consent = crate::Consent {
        data: false,
        durability: vec![
            "fsync".into(),
            "full_page_writes".into(),
            "synchronous_commit".into(),
        ],
        restart: false,
    };
    for (name, text) in shipped() {
        let path = PathBuf::from(format!("{name}.toml"));
        let text = on_a_host(&text, 24 << 30);
        let file = ExperimentFile::parse(&text, &path, &catalogue).unwrap();
        assert_eq!(file.name, name);
        for size in file.size.keys().map(String::as_str).map(Some).chain([None]) {
            let text = on_a_host(&sized(&text, &path, size, &[]).unwrap(), 24 << 30);
            let file = ExperimentFile::parse(&text, &path, &catalogue)
                .unwrap_or_else(|error| panic!("{} {size:?}: {error}", path.display()));
            let plan = crate::Plan::new(file, &crate::ProfileSettings::new(), 1, &catalogue, &consent);
            let plan = plan.unwrap_or_else(|error| panic!("{name} {size:?}: {error}"));
            assert!(plan.trials() > 0);
        }
    }
}

/// The schema that editors get is the one of the types.
#[test]
fn the_schema_knows_every_part() {
    let schema = ExperimentFile::schema();
    let text = schema.to_string();
    for key in [
        "blocks",
        "factor",
        "guard",
        "window",
        "checkpoint_cycles",
        "data_on",
        "claim",
        "when-decided",
        "when-gain-decided",
    ] {
        assert!(text.contains(&format!("\"{key}\"")), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
    let scale = &schema["$defs"]["DataPart"]["properties"]["scale"];
    assert_eq!(scale["anyOf"][1]["pattern"], "^= ", "{scale}");
    assert!(
        scale["anyOf"][0]["type"].to_string().contains("integer") && scale["description"].is_string(),
        "{scale}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}", at in 0_usize..400) {
        let _ = parse(&text);
        let mut changed = GOOD.to_owned();
        let at = at.min(changed.len());
        changed.insert_str(at, &text.chars().take(5).collect::<String>());
        let _ = parse(&changed);
    }
}
