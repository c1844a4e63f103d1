//! Small commands that behave like programs, well and badly.

use super::super::lines::LINE_BYTES_MAX;
use super::*;
use pgdyno_engine::Endpoint;
use pgdyno_testing::until_is;
use postgres::Config;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn endpoint() -> Endpoint {
    let mut config = Config::new();
    config
        .host("/no where")
        .port(6000)
        .user("me")
        .dbname("mine")
        .password("sekret")
        .application_name("named");
    config.into()
}

fn plan_of(format: ForeignFormat, clients: u32) -> ForeignPlan {
    ForeignPlan::new(format, clients, 1, Duration::ZERO, Duration::from_secs(1))
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
    let mut seconds = Vec::new();
    let plan = shell(
        "echo 0.5 10; echo 1.0 20 >&2; sh -c 'i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done'; printf 'all 15'",
    );
    let result = run_foreign(&endpoint(), &plan, &AtomicBool::new(false), &mut |second| {
        seconds.push(*second)
    })
    .unwrap();
    // Its two streams may come in any order.
    assert!(!seconds.is_empty() && seconds == result.figures.seconds);
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
        (result, _) => panic!("{script}: {result:?}"),
    }
}

#[test]
fn a_bad_end_is_reported_with_the_last_lines_and_without_the_password() {
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
        Err(&["***,/no where,6000,me,mine,named,disable,-"]),
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
    let mut without = format("pgbench");
    without.command.clear();
    assert!(
        run(&plan_of(without, 1))
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
/// A program that is asked to end after its first line, and has so long before it is made to.
fn stopped(script: &str, grace: Duration) -> ForeignResult {
    let stop = AtomicBool::new(false);
    let plan = ForeignPlan {
        grace,
        ..shell(script)
    };
    let on_second = &mut |_: &ForeignSecond| stop.store(true, Ordering::Relaxed);
    run_foreign(&endpoint(), &plan, &stop, on_second).unwrap()
}

#[test]
fn a_program_is_asked_to_end_and_then_made_to() {
    let (patience, none) = (Duration::from_secs(60), Duration::from_millis(20));
    // As in the background of a shell, which has its children ignore it.
    // SAFETY: signal(2) of a signal that nothing here handles.
    let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
    let polite = stopped(
        "trap 'echo all 7; exit 0' INT; echo 1 5; while :; do sleep 0.02; done",
        patience,
    );
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGINT, before) };
    assert_eq!(
        (polite.exit, polite.figures.transactions),
        (Exit::Code(0), Some(7))
    );
    assert!(polite.stopped_early && polite.broken.is_none() && polite.in_flight_at_end_max == 4);
    let deaf = stopped("trap '' INT; echo 1 5; exec sleep 1000", none);
    assert_eq!((deaf.exit, deaf.figures.tps), (Exit::Signal(15), Some(5.0)));
    let deafer = stopped("trap '' INT TERM; echo 1 5; while :; do sleep 1000; done", none);
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
    until_is("whether what it left is over", true, || is_over(pid));
}

fn job(script: &str) -> JobPlan {
    JobPlan::new(vec!["sh".into(), "-c".into(), script.into()])
}

/// HammerDB's other virtual users wait for ever for one that has failed.
#[test]
fn a_job_that_says_that_it_is_broken_is_ended() {
    let plan = JobPlan {
        broken: format("hammerdb").broken.clone(),
        ..job("echo 'Vuser 3:FINISHED FAILED'; exec sleep 1000")
    };
    let error = run_job(&endpoint(), &plan, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("Vuser 3:FINISHED FAILED"), "{error}");
    let ended = JobPlan {
        command: job("echo 'Vuser 3:FINISHED FAILED'").command,
        ..plan
    };
    run_job(&endpoint(), &ended, &AtomicBool::new(false)).unwrap_err();
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
    let figure = run(&plan).unwrap().figure.unwrap();
    assert_eq!(
        (figure.name.as_str(), figure.value, figure.larger_is_better),
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
