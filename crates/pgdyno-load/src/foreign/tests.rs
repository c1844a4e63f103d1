//! Real output of programs, small commands that misbehave, and any input at all.

use super::format::foreign_formats;
use super::lines::LINE_BYTES_MAX;
use super::words::{fill, warms_up_itself};
use super::*;
use crate::Endpoint;
use postgres::Config;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn format(name: &str) -> ForeignFormat {
    let formats = foreign_formats().unwrap();
    formats.into_iter().find(|format| format.name == name).unwrap()
}

fn read(format: &ForeignFormat, text: &[u8], warmup_s: f64) -> ForeignFigures {
    let mut output = ForeignOutput::new(format, warmup_s, false, Some("sekret".into()));
    output.read(ForeignStream::Out, text, f64::MAX, &mut |_| {});
    output.finish(10.0, &mut |_| {})
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/loads");
    fs::read(folder.join(format!("{name}.txt"))).unwrap()
}

/// What a fixture must give.
struct Told {
    name: &'static str,
    warmup_s: f64,
    seconds: usize,
    tps: Option<f64>,
    transactions: Option<u64>,
    failed: Option<u64>,
    /// mean, p95, p99, max
    ms: [Option<f64>; 4],
    broken: &'static str,
}

fn check(told: &Told) {
    let program = told.name.split('-').next().unwrap();
    let figures = read(&format(program), &fixture(told.name), told.warmup_s);
    let name = told.name;
    let tps = figures
        .tps
        .filter(|_| !figures.seconds.is_empty() || figures.transactions.is_some());
    match (tps, told.tps) {
        (Some(tps), Some(wanted)) => assert!((tps / wanted - 1.0).abs() < 1e-3, "{name}: {tps}"),
        (tps, wanted) => assert_eq!(tps, wanted, "{name}"),
    }
    assert_eq!(figures.seconds.len(), told.seconds, "{name}");
    assert_eq!(figures.transactions, told.transactions, "{name}");
    assert_eq!(figures.failed, told.failed, "{name}");
    let latency = figures.latency;
    let ms = [latency.mean_ms, latency.p95_ms, latency.p99_ms, latency.max_ms];
    assert_eq!(ms, told.ms, "{name}");
    let broken = figures.broken.unwrap_or_default();
    assert!(
        broken.contains(told.broken) && broken.is_empty() == told.broken.is_empty(),
        "{name}: {broken}"
    );
    assert_eq!(figures.latency_includes_warmup, told.warmup_s > 0.0, "{name}");
}

const NOTHING: Told = Told {
    name: "",
    warmup_s: 0.0,
    seconds: 0,
    tps: None,
    transactions: None,
    failed: None,
    ms: [None; 4],
    broken: "",
};

#[test]
fn real_output_gives_its_figures() {
    let told = [
        Told {
            name: "pgbench",
            warmup_s: 2.0,
            seconds: 5,
            tps: Some(1135.5),
            transactions: Some(5143),
            failed: Some(0),
            ms: [Some(3.877), None, None, None],
            ..NOTHING
        },
        // Without a second behind the warm-up, what is told at the end counts, and says so.
        Told {
            name: "pgbench",
            warmup_s: 9.0,
            seconds: 5,
            tps: Some(1_030.124),
            transactions: Some(5143),
            failed: Some(0),
            ms: [Some(3.877), None, None, None],
            ..NOTHING
        },
        Told {
            name: "pgbench-connect",
            seconds: 3,
            tps: Some(115.0),
            transactions: Some(349),
            failed: Some(0),
            ms: [Some(26.517), None, None, None],
            ..NOTHING
        },
        Told {
            name: "pgbench-rate",
            seconds: 2,
            tps: Some(202.0),
            transactions: Some(623),
            failed: Some(0),
            ms: [Some(7.406), None, None, None],
            ..NOTHING
        },
        Told {
            name: "pgbench-failed",
            warmup_s: 1.0,
            seconds: 3,
            tps: Some(432.4),
            transactions: Some(1111),
            failed: Some(6622),
            ms: [Some(3.635), None, None, None],
            ..NOTHING
        },
        Told {
            name: "pgbench-stalled",
            seconds: 5,
            tps: Some(214.42),
            transactions: Some(1073),
            failed: Some(0),
            ms: [Some(9.304), None, None, None],
            ..NOTHING
        },
        Told {
            name: "pgbench-aborted",
            tps: Some(26_292.398),
            transactions: Some(5768),
            failed: Some(0),
            ms: [Some(0.067), None, None, None],
            broken: "client 0 script 0 aborted",
            ..NOTHING
        },
        Told {
            name: "pgbench-lost",
            seconds: 4,
            tps: Some(262.75),
            transactions: Some(1052),
            failed: Some(0),
            ms: [Some(5.815), None, None, None],
            broken: "terminating connection",
            ..NOTHING
        },
        Told {
            name: "pgbench-ended",
            seconds: 2,
            tps: Some(243.5),
            ..NOTHING
        },
        Told {
            name: "sysbench",
            warmup_s: 1.0,
            seconds: 5,
            tps: Some(867.77),
            transactions: Some(4234),
            failed: Some(9),
            ms: [Some(4.74), Some(13.22), None, Some(40.73)],
            ..NOTHING
        },
        Told {
            name: "sysbench-p99",
            seconds: 3,
            tps: Some(742.76),
            transactions: Some(2233),
            failed: Some(5),
            ms: [Some(5.39), None, Some(24.83), Some(57.37)],
            ..NOTHING
        },
        Told {
            name: "sysbench-stalled",
            warmup_s: 2.0,
            seconds: 5,
            tps: Some(101.093),
            transactions: Some(559),
            failed: Some(1),
            ms: [Some(17.91), Some(22.69), None, Some(2324.07)],
            ..NOTHING
        },
        Told {
            name: "sysbench-lost",
            seconds: 2,
            tps: Some(241.39),
            ..NOTHING
        },
        Told {
            name: "sysbench-ended",
            seconds: 2,
            tps: Some(153.935),
            ..NOTHING
        },
        Told {
            name: "sysbench-refused",
            broken: "password authentication failed",
            ..NOTHING
        },
    ];
    told.iter().for_each(check);
}

#[test]
fn a_second_has_its_own_figures_and_a_standstill_has_no_times() {
    let figures = read(&format("sysbench"), &fixture("sysbench-stalled"), 1.5);
    let third = figures.seconds[2];
    assert_eq!(
        (third.tps, third.latency.p95_ms, third.measured),
        (0.0, None, true)
    );
    let first = figures.seconds[0];
    assert_eq!((first.t_s, first.length_s, first.measured), (1.0, 1.0, false));
    assert_eq!(
        (first.latency.p95_ms, first.failed_per_s),
        (Some(20.0), Some(1.0))
    );
    // Its middle is what counts.
    assert!(figures.seconds[1].measured);
    let failed = read(&format("pgbench"), &fixture("pgbench-failed"), 0.0).seconds[1];
    assert_eq!(
        (failed.failed_per_s, failed.latency.mean_ms),
        (Some(2446.0), Some(2.921))
    );
}

#[test]
fn hammerdb_is_read_as_documented() {
    let text = b"Vuser 1:TEST RESULT : System achieved 12000 NOPM from 27000 PostgreSQL TPM\nVuser 3:FINISHED FAILED\n";
    let figures = read(&format("hammerdb"), text, 0.0);
    assert_eq!((figures.tps, figures.nopm), (Some(450.0), Some(12_000.0)));
    assert_eq!(figures.broken.as_deref(), Some("Vuser 3:FINISHED FAILED"));
    assert_eq!(format("hammerdb").commits.per_transaction, None);
}

#[test]
fn older_and_odd_lines_are_read_too() {
    let pgbench = format("pgbench");
    let old = b"progress: 1.0 s, 100.0 tps, lat 1.000 ms stddev 0.500\n\
        tps = 85.1 (including connections establishing)\ntps = 85.2 (excluding connections establishing)\n\
        number of transactions actually processed: 123/1000\n";
    let figures = read(&pgbench, old, 5.0);
    assert_eq!(
        (figures.tps, figures.transactions, figures.tps_includes_warmup),
        (Some(85.2), Some(123), true)
    );
    // A date is no time since the start, and a time that stands still ends no second.
    let mut output = ForeignOutput::new(&pgbench, 0.0, false, None);
    let dates = b"progress: 1790000000.123 s, 7.0 tps, lat 1.0 ms\nprogress: 2.0 s, 9.0 tps\n";
    output.read(ForeignStream::Err, dates, 2.0, &mut |_| {});
    let seconds = output.finish(3.0, &mut |_| {}).seconds;
    assert_eq!(
        seconds
            .iter()
            .map(|second| (second.t_s, second.tps))
            .collect::<Vec<_>>(),
        [(2.0, 7.0)]
    );
}

fn check_words(text: &str, wanted: Result<&[&str], &str>) {
    let told = command_words(text).map_err(|error| error.to_string());
    match (told, wanted) {
        (Ok(words), Ok(wanted)) => assert_eq!(words, wanted, "{text}"),
        (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{text}: {error}"),
        (told, _) => panic!("{text}: {told:?}"),
    }
}

#[test]
fn commands_are_split_as_a_shell_would() {
    check_words("a  b\n\tc", Ok(&["a", "b", "c"]));
    check_words(r#"sh -c 'echo "$A" \'"#, Ok(&["sh", "-c", r#"echo "$A" \"#]));
    check_words(
        r#"a "b \" \\ \n $c" '' d\ e"f"g"#,
        Ok(&["a", r#"b " \ \n $c"#, "", "d efg"]),
    );
    check_words("a 'b", Err("at character 3 without"));
    check_words("a\\", Err("backslash"));
    check_words(" ", Err("empty"));
    check_words("a\0", Err("zero byte"));
    check_words(&"a".repeat(20_000), Err("20000 bytes"));
}

fn check_filled(word: &str, wanted: Result<&str, &str>) {
    let values = [
        ("clients", Some("4".to_owned())),
        ("user", None),
        ("host", Some("a b {clients}".to_owned())),
    ];
    let told = fill(&[word.to_owned()], &values).map_err(|error| error.to_string());
    match (told, wanted) {
        (Ok(words), Ok(wanted)) => assert_eq!(words, [wanted], "{word}"),
        (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{word}: {error}"),
        (told, _) => panic!("{word}: {told:?}"),
    }
}

#[test]
fn placeholders_are_filled_once_and_other_braces_left() {
    check_filled("-c{clients}00000", Ok("-c400000"));
    check_filled("{host}", Ok("a b {clients}"));
    check_filled(
        "{{clients}} {} { {A} {1} {{{clients}",
        Ok("{clients} {} { {A} {1} {{4"),
    );
    check_filled("{", Ok("{"));
    check_filled(
        "{clinets}",
        Err(
            "{clinets} in the command is unknown: known are {clients} {user} {host}; for the braces themselves write {{clinets}}",
        ),
    );
    check_filled("{user}", Err("does not name it"));
    assert!(
        warms_up_itself(&["x".into(), "-w{warmup_s}".into()]) && !warms_up_itself(&["{{warmup_s}}".into()])
    );
}

fn check_format(body: &str, wanted: &str) {
    let text = format!("[[format]]\nname = 'x'\n{body}");
    let error = ForeignFormat::parse(&text, "mine.toml").unwrap_err().to_string();
    assert!(
        error.starts_with("mine.toml") && error.contains(wanted),
        "{body}: {error}"
    );
}

#[test]
fn a_format_that_cannot_be_is_refused_by_name() {
    check_format("secnd = []", "unknown field `secnd`");
    check_format("", "the format x takes no throughput");
    check_format(
        "second = ['(?<mean_ms>.)']",
        "pattern 1 of second of the format x lacks a group tps or tpm",
    );
    check_format(
        "final = ['a', '(?<tps>.)']",
        "pattern 1 of final of the format x: it has no named group",
    );
    check_format(
        "final = ['(?<tsp>.)']",
        "its group tsp is unknown: known are t_s, tps",
    );
    check_format("final = ['(?<p95_min>.)']", "its group p95_min is unknown");
    check_format(
        "final = ['(?<tps>.) (?<percentile_ms>.)']",
        "percentile and percent belong together",
    );
    check_format("final = ['(?<tps>']", "pattern 1 of final");
    check_format("final = ['(?<tps>.{1000}{1000})']", "size limit");
    check_format(&format!("final = ['{}']", "a".repeat(2000)), "2000 bytes");
    check_format(&format!("final = [{}]", "'(?<tps>.)',".repeat(40)), "40 patterns");
    check_format(
        "final = ['(?<tps>.)']\ncommand = '\"'",
        "command of the format x: the command has a quote",
    );
    check_format(
        "final = ['(?<tps>.)']\n[[format]]\nname = 'x'\nfinal = ['(?<tps>.)']",
        "two formats by the name x",
    );
    check_format(&format!("#{}", "a".repeat(FORMAT_BYTES_MAX)), "may have");
}

#[test]
fn the_catalogues_commands_can_be_filled() {
    for format in foreign_formats().unwrap() {
        let plan = plan_of(format, 4);
        for job in [plan.prepare(), plan.cleanup()].into_iter().flatten() {
            assert!(job.command.len() > 1);
        }
        assert!(!plan.format.about.is_empty() && !plan.format.source.is_empty());
    }
}

// Small commands that behave like programs, well and badly.

fn endpoint() -> Endpoint {
    let mut config = Config::new();
    config
        .host("/no where")
        .port(6000)
        .user("me")
        .dbname("mine")
        .password("sekret")
        .application_name("told");
    config.into()
}

fn plan_of(format: ForeignFormat, clients: u32) -> ForeignPlan {
    ForeignPlan::new(format, clients, 1, Duration::ZERO, Duration::from_secs(1))
}

fn shell(script: &str) -> ForeignPlan {
    let text = "[[format]]\nname = 'small'\nsecond = ['^(?<t_s>[\\d.]+) (?<tps>[\\d.]+)$']\nfinal = ['^all (?<transactions>\\d+)']\n\
        commits_per_transaction = 2\ncommits_per_session_max = 3\ncommits_per_run_max = 5";
    let format = ForeignFormat::parse(text, "small").unwrap().remove(0);
    ForeignPlan {
        command: vec!["sh".into(), "-c".into(), script.into()],
        ..plan_of(format, 4)
    }
}

fn run(plan: &ForeignPlan) -> Result<ForeignResult, String> {
    run_foreign(&endpoint(), plan, &AtomicBool::new(false), &mut |_| {}).map_err(|error| error.to_string())
}

#[test]
fn a_program_is_followed_to_its_end() {
    let mut told = Vec::new();
    let plan = shell(
        "echo 0.5 10; echo 1.0 20 >&2; sh -c 'i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done'; printf 'all 15'",
    );
    let result = run_foreign(&endpoint(), &plan, &AtomicBool::new(false), &mut |second| {
        told.push(*second)
    })
    .unwrap();
    // Its two streams may come in any order.
    assert!(!told.is_empty() && told == result.figures.seconds);
    assert_eq!(
        (result.exit, result.figures.transactions, result.broken.as_ref()),
        (Exit::Code(0), Some(15), None)
    );
    assert_eq!(
        (result.server_commits(), result.server_commits_beside_max()),
        (Some(30), 4 * 3 + 5)
    );
    assert!(result.client_cpu_us > 0 && result.wall_s > 0.0 && !result.stopped_early);
    assert!(result.client_cpu_us_per_tx().is_some_and(|us| us > 0.0));
}

fn check_run(script: &str, wanted: Result<Option<&str>, &[&str]>) {
    match (run(&shell(script)), wanted) {
        (Ok(result), Ok(broken)) => assert_eq!(result.broken.as_deref(), broken, "{script}"),
        (Err(error), Err(parts)) => {
            assert!(!error.contains("sekret"), "{error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{script}: {error}");
        }
        (told, _) => panic!("{script}: {told:?}"),
    }
}

#[test]
fn a_bad_end_is_told_with_the_last_words_and_without_the_password() {
    check_run("echo 1 5; exit 3", Ok(Some("sh ended with exit code 3")));
    check_run("echo 1 5; kill -9 $$", Ok(Some("sh ended with signal 9")));
    check_run(
        "echo no such table >&2; exit 3",
        Err(&["sh ended with exit code 3; it said: no such table"]),
    );
    check_run("exit 3", Err(&["exit code 3 and said nothing"]));
    check_run(
        "echo hm",
        Err(&["no throughput that the format small reads; it said: hm"]),
    );
    check_run(
        "echo $PGPASSWORD,$PGHOST,$PGPORT,$PGUSER,$PGDATABASE,$PGAPPNAME,$PGSSLMODE,$PGSERVICE-; exit 3",
        Err(&["***,/no where,6000,me,mine,told,disable,-"]),
    );
    check_run(
        "echo {clients} {threads} {seconds} {seed} {scale} {warmup_s} {host}; exit 3",
        Err(&["4 1 1 1 1 0 /no where"]),
    );
    // No terminal, and nothing to read.
    check_run("cat; (: </dev/tty) || exit 3", Err(&["exit code 3"]));
    check_run("{nobody}", Err(&["{nobody} in the command is unknown"]));
    let none = ForeignPlan {
        command: vec!["/no/such".into()],
        ..shell("")
    };
    assert!(run(&none).unwrap_err().contains("/no/such cannot be started"));
    for (clients, threads, wanted) in [(0, 1, "clients must be"), (4, 5, "threads must be")] {
        let plan = ForeignPlan {
            clients,
            threads,
            ..shell("")
        };
        assert!(run(&plan).unwrap_err().contains(wanted));
    }
    assert!(
        run(&plan_of(format("hammerdb"), 1))
            .unwrap_err()
            .contains("no command of its own")
    );
}

#[test]
fn very_much_output_is_read_and_little_kept() {
    let plan =
        shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; yes | head -n 100000; echo 1 5; echo all 9");
    let figures = run(&plan).unwrap().figures;
    assert_eq!((figures.tps, figures.transactions), (Some(5.0), Some(9)));
    assert_eq!(figures.last_lines.len(), 20);
    let long = vec![b'x'; LINE_BYTES_MAX * 3];
    let kept = read(&plan.format, &long, 0.0).last_lines;
    assert_eq!(kept.iter().map(String::len).collect::<Vec<_>>(), [400]);
}

/// Stops at the first second.
fn stopped(script: &str) -> ForeignResult {
    let stop = AtomicBool::new(false);
    let plan = ForeignPlan {
        grace: Duration::from_millis(20),
        ..shell(script)
    };
    let on_second = &mut |_: &ForeignSecond| stop.store(true, Ordering::Relaxed);
    run_foreign(&endpoint(), &plan, &stop, on_second).unwrap()
}

#[test]
fn a_program_is_asked_to_end_and_then_made_to() {
    let polite = stopped("trap 'echo all 7; exit 0' INT; echo 1 5; while :; do :; done");
    assert_eq!(
        (polite.exit, polite.figures.transactions),
        (Exit::Code(0), Some(7))
    );
    assert!(polite.stopped_early && polite.broken.is_none() && polite.in_flight_at_end_max == 4);
    let deaf = stopped("trap '' INT; echo 1 5; exec sleep 1000");
    assert_eq!((deaf.exit, deaf.figures.tps), (Exit::Signal(15), Some(5.0)));
    let deafer = stopped("trap '' INT TERM; echo 1 5; while :; do sleep 1000; done");
    assert_eq!(deafer.exit, Exit::Signal(9));
    let endless = ForeignPlan {
        limit: Duration::ZERO,
        ..shell("echo 1 5; exec sleep 1000")
    };
    assert!(run(&endless).unwrap_err().contains("did not end within 0 s"));
}

/// Its parent is whoever takes orphans, who may take a moment, or never ask.
fn is_over(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
}

#[test]
fn what_a_program_leaves_behind_is_ended() {
    let figures = run(&shell("echo 1 5; sleep 1000 & echo $!")).unwrap().figures;
    let pid = figures.last_lines.last().unwrap();
    let begun = Instant::now();
    while !is_over(pid) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{pid} lives on");
        std::thread::yield_now();
    }
}

fn job(script: &str) -> JobPlan {
    JobPlan::new(vec!["sh".into(), "-c".into(), script.into()])
}

#[test]
fn a_job_has_a_time_and_perhaps_a_figure() {
    let run = |plan: &JobPlan| run_job(&endpoint(), plan, &AtomicBool::new(false));
    let result = run(&job("echo $PGDATABASE {threads}; echo sekret")).unwrap();
    assert_eq!(result.last_lines, ["mine 1", "***"]);
    assert!(result.wall_s > 0.0 && result.exit == Exit::Code(0) && result.figure.is_none());
    let figure = FigureFormat::new("rate", r"^COPY at (?<value>\S+) MB/s", "MB/s", true).unwrap();
    let plan = JobPlan {
        figure: Some(figure),
        ..job("echo COPY at 1 MB/s; printf 'COPY at 2.5 MB/s'")
    };
    let told = run(&plan).unwrap().figure.unwrap();
    assert_eq!(
        (told.name.as_str(), told.value, told.larger_is_better),
        ("rate", 2.5, true)
    );
    let silent = JobPlan {
        command: job(":").command,
        ..plan
    };
    let error = run(&silent).unwrap_err().to_string();
    assert!(
        error.contains("no rate that the format of the figure rate reads and said nothing"),
        "{error}"
    );
    let error = run(&job("echo sekret; exit 1")).unwrap_err().to_string();
    assert_eq!(error, "sh ended with exit code 1; it said: ***");
    let lenient = JobPlan {
        exit_codes: vec![0, 1],
        ..job("exit 1")
    };
    assert_eq!(run(&lenient).unwrap().exit, Exit::Code(1));
    assert!(
        FigureFormat::new("x", "(?<v>.)", "", true)
            .unwrap_err()
            .contains("no group (?<value>")
    );
    let stopped = run_job(&endpoint(), &job("exec sleep 1000"), &AtomicBool::new(true)).unwrap();
    assert!(stopped.stopped_early);
}

proptest! {
    #[test]
    fn any_output_is_read_the_same_however_it_comes(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "(progress: [0-9.]{1,6} s, [0-9.e+-]{1,5} tps, lat [0-9.]{1,4} ms\n|tps = [0-9.]{1,30} \\(without|\\[ [0-9]{1,3}s \\] thds: 1 tps: [0-9.]{1,5} lat \\(ms,95%\\): 1 err/s: 2\n)".prop_map(String::into_bytes),
        ], 0..40),
        warmup_s in -1.0..9.0_f64,
        which in 0..3_usize,
    ) {
        let format = foreign_formats().unwrap().remove(which);
        let whole = read(&format, &pieces.concat(), warmup_s);
        let mut output = ForeignOutput::new(&format, warmup_s, false, Some("sekret".into()));
        for piece in &pieces {
            output.read(ForeignStream::Out, piece, f64::MAX, &mut |_| {});
        }
        prop_assert_eq!(output.finish(10.0, &mut |_| {}), whole);
    }

    #[test]
    fn quoted_words_come_back(words in prop::collection::vec("[^\0]{0,20}", 1..9)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        prop_assert_eq!(command_words(&quoted.join(" ")), Ok(words.clone()));
        let _ = fill(&words, &[("a", None)]);
    }

    #[test]
    fn any_text_is_formats_or_an_error(text in "(\\[\\[format\\]\\]\nname = 'x'\n)?(final|second|command) = \\[?['\"][^\n]{0,60}['\"]\\]?") {
        let _ = ForeignFormat::parse(&text, "x").map_err(|error| error.to_string());
    }
}
