//! pgbench's scripts run as they are: the same statements with the same values as pgbench itself
//! sends.

use common::{Home, pgbench, said, signal, until_is};
use std::fmt::Write as _;
use std::process::Command;

/// Runs a script once, by one client, with pgbench.
fn run_pgbench(home: &Home, sandbox: &str, script: &str, protocol: &str) {
    let socket = home.file(&format!("state/sandboxes/{sandbox}/socket"));
    let port = home.record(sandbox)["port"].to_string();
    let output = Command::new(pgbench())
        .args([
            "-n", "-M", protocol, "-t", "1", "-c", "1", "-U", "postgres", "-p", &port,
        ])
        .args(["-D", "who=pgbench", "-D", "default_seed=77", "-f", script, "-h"])
        .arg(socket)
        .arg("postgres")
        .output()
        .expect("pgbench runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn run_pgdyno(home: &Home, sandbox: &str, script: &str, protocol: &str) {
    let target = format!("sandbox:{sandbox}");
    let arguments = [
        "bench",
        &target,
        "-f",
        script,
        "-M",
        protocol,
        "-c",
        "1",
        "-t",
        "1",
        "-D",
        "who=pgdyno",
        "-D",
        "default_seed=77",
        "--json",
    ];
    let result = home.run(&arguments).fine().json();
    assert_eq!(
        (&result["committed"], &result["failed"]),
        (&1.into(), &0.into()),
        "{result}"
    );
    assert_eq!(result["cross_check"]["agrees"], true, "{result}");
}

const RESULTS: &str = "CREATE TABLE results (who text, place int, value text)";
const DIFFERENT: &str = "SELECT string_agg(format('%s: %s, %s', place, a.value, b.value), '; ') \
     FROM (SELECT * FROM results WHERE who = 'pgbench') a FULL JOIN (SELECT * FROM results WHERE who = 'pgdyno') b \
     USING (place) WHERE a.value IS DISTINCT FROM b.value";

/// Of PostgreSQL's documentation of pgbench, "Built-in Operators" and "Built-in Functions", and
/// what is beside them.
const EXPRESSIONS: &[&str] = &[
    "5 or 1 = 1 or null is null",
    "not (3 < 5 and true)",
    "false or null",
    "null and false",
    "1 is not null",
    "1 isnull",
    "null notnull",
    "5 = 4",
    "5 <> 4",
    "5 != 4",
    "5 < 4",
    "5 <= 4",
    "5 > 4",
    "5 >= 4",
    "1 | 2",
    "1 # 3",
    "1 & 3",
    "~ 1",
    "1 << 2",
    "8 >> 2",
    "5 + 4",
    "3 - 2.0",
    "5 * 4",
    "5 / 3",
    "-5 / 3",
    "5 % 3",
    "-5 % 3",
    "- 2.0",
    "abs(-17)",
    "abs(-2.5)",
    "double(5432)",
    "exp(1.0)",
    "greatest(5, 4, 3, 2)",
    "greatest(5, 4.5)",
    "hash(10, 5432)",
    "hash(10)",
    "hash_fnv1a(10, 5432)",
    "hash_murmur2(-3)",
    "int(5.4 + 3.8)",
    "int(2.5)",
    "int(-3.5)",
    "least(5, 4, 3, 2.1)",
    "ln(2.718281828459045)",
    "mod(54, 32)",
    "permute(0, 4)",
    "permute(-5, 1000)",
    "permute(9223372036854775807, 9223372036854775807, -3)",
    "pi()",
    "pow(2.0, 10)",
    "power(2.0, -1.5)",
    "sqrt(2.0)",
    "1e20 * 3",
    "1.0 / 3",
    "0.00001234567 * 1",
    "100000.0 * 10000000000",
    "1 + 2 * 3 - 4 / 2",
    "2 * (3 + 4) % 5",
    "1 | 2 + 4",
    "12 & 10 # 1 << 2",
    "~ 0 & 255",
    "-9223372036854775808",
    "case when 1 > 2 then 'x' end is null",
    "CASE WHEN :n > 3 THEN 1 WHEN :n > 1 THEN 2 ELSE 3 END",
    "case when null then 1 end",
    ":n + 1",
    ":n * :d",
    "1 < 2 = true is false",
    "case when 5 then 1 else 0 end",
];

#[test]
fn expressions_have_the_values_that_pgbench_gives_them() {
    let home = Home::new();
    home.sandbox("x", &[]);
    home.ask("x", RESULTS);
    let mut script = "\\set n 2\n\\set d 0.1\n".to_owned();
    let mut place = 0;
    let mut add = |script: &mut String, expression: &str| {
        place += 1;
        let _ = write!(
            script,
            "\\set v {expression}\nINSERT INTO results VALUES (':who', {place}, ':v');\n"
        );
    };
    // What pgbench itself refuses is not compared here.
    let refused = [
        "5 or 1 = 1 or null is null",
        "case when 1 > 2 then 'x' end is null",
        "1 < 2 = true is false",
    ];
    for expression in EXPRESSIONS
        .iter()
        .filter(|expression| !refused.contains(expression))
    {
        add(&mut script, expression);
    }
    for size in [2, 3, 10, 64, 1000, 99_999] {
        for value in 0..10 {
            add(
                &mut script,
                &format!("permute({value}, {size}, {})", size * 7 - value),
            );
        }
    }
    let path = home.write("a.sql", &script);
    let path = path.to_string_lossy();
    run_pgbench(&home, "x", &path, "simple");
    run_pgdyno(&home, "x", &path, "simple");
    assert_eq!(home.ask("x", DIFFERENT), "");
    assert_eq!(
        home.ask("x", "SELECT count(*)::text FROM results"),
        (2 * place).to_string()
    );
    for expression in refused {
        let path = home.write("b.sql", &format!("\\set v {expression}\nSELECT 1;\n"));
        let said = home.run(&[
            "bench",
            "sandbox:x",
            "-f",
            &path.to_string_lossy(),
            "-t",
            "1",
            "-c",
            "1",
        ]);
        assert!(
            matches!(said.code, 1 | 2) && said.err.contains("b.sql:1"),
            "{expression}: {}",
            said.err
        );
    }
}

const FLOW: &str = r"
\set n 5
BEGIN;
SELECT :n::int AS a, 'x' || :n::text AS b, NULL AS c \gset got_
INSERT INTO results VALUES (:who, 1, concat(:got_a::text, '/', :got_b::text, '/', :got_c::text));
\if :got_a > 5
INSERT INTO results VALUES (:who, 2, 'more');
\elif :got_a = 5
INSERT INTO results VALUES (:who, 2, 'five');
  \if :got_a = 5 and :n <> 5
INSERT INTO results VALUES (:who, 3, 'never');
  \else
INSERT INTO results VALUES (:who, 3, 'inner else');
  \endif
\else
INSERT INTO results VALUES (:who, 2, 'less');
\endif
SELECT generate_series(1, 3) AS last \aset
INSERT INTO results VALUES (:who, 4, :last);
INSERT INTO results VALUES (:who, 5, ((:n)::numeric / 2)::text); -- a comment; with a semicolon
INSERT INTO results VALUES (:who, 6, $x$a;b$x$), (:who, 7, 'it''s; here');
END;
";

const PIPELINE: &str = r"
\startpipeline
INSERT INTO results VALUES (:who, 10, 'first');
INSERT INTO results VALUES (:who, 11, 'second');
\endpipeline
INSERT INTO results VALUES (:who, 12, (SELECT count(*) FROM results WHERE who = :who)::text);
";

const COMBINED: &str = r"
-- A comment before it may name :anything.
SELECT 1 AS one \; SELECT 2 AS two \gset x_
INSERT INTO results VALUES (':who', 20, ':x_one'), (':who', 21, ':x_two');
SELECT 3 AS one \; SELECT 4 AS two \aset y_
INSERT INTO results VALUES (':who', 22, ':y_one'), (':who', 23, ':y_two');
";

#[test]
fn commands_do_what_they_do_in_pgbench() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let quoted = |text: &str| {
        text.replace(":who", "':who'")
            .replace(":got_b", "':got_b'")
            .replace(":got_c", "':got_c'")
            .replace(":last", "':last'")
    };
    for (protocol, text) in [
        ("simple", quoted(FLOW)),
        ("simple", COMBINED.to_owned()),
        ("extended", FLOW.to_owned()),
        ("prepared", FLOW.to_owned()),
        ("extended", PIPELINE.to_owned()),
        ("prepared", PIPELINE.to_owned()),
    ] {
        home.ask("x", &format!("DROP TABLE IF EXISTS results; {RESULTS}"));
        let path = home.write("a.sql", &text);
        let path = path.to_string_lossy();
        run_pgbench(&home, "x", &path, protocol);
        run_pgdyno(&home, "x", &path, protocol);
        assert_eq!(home.ask("x", DIFFERENT), "", "{protocol}");
        assert_ne!(home.ask("x", "SELECT count(*)::text FROM results"), "0");
    }
}

#[test]
fn several_scripts_are_mixed_and_their_books_kept_apart() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let read = home.write(
        "read.sql",
        "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    );
    let write = home.write(
        "write.sql",
        "\\set aid random_zipfian(1, 100000 * :scale, 1.1)\nBEGIN;\nUPDATE pgbench_accounts SET abalance = 1 WHERE aid = :aid;\n\\sleep 100 us\nEND;\n",
    );
    let read = format!("{}@3", read.display());
    let write = write.to_string_lossy();
    let arguments = [
        "bench",
        "sandbox:x",
        "-f",
        &read,
        "-f",
        &write,
        "-c",
        "4",
        "-t",
        "300",
        "--json",
    ];
    let result = home.run(&arguments).fine().json();
    assert_eq!(result["cross_check"]["agrees"], true, "{result}");
    let committed = |at: usize| result["kinds"][at]["committed"].as_f64().expect("a count");
    let ratio = committed(0) / committed(1);
    assert!((2.0..4.5).contains(&ratio), "{result}");
    assert_eq!(
        committed(0) + committed(1),
        result["committed"].as_f64().expect("a count")
    );
    let statements = result["statements"].as_array().expect("statements");
    assert_eq!(statements.len(), 4, "{result}");
    assert!(
        statements
            .iter()
            .all(|statement| statement["count"].as_u64() > Some(0)),
        "{result}"
    );
    // A table per transaction, and one of the statements where it is wanted.
    let output = home
        .run(&[
            "bench",
            "sandbox:x",
            "-f",
            &read,
            "-f",
            &write,
            "-c",
            "2",
            "-t",
            "50",
            "-r",
        ])
        .fine()
        .out;
    assert!(
        output.contains("write.sql") && output.contains("UPDATE pgbench_accounts"),
        "{output}"
    );
}

#[test]
fn a_wrong_script_is_one_clear_error() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let bench = |text: &str, more: &[&str]| {
        let path = home.write("bad.sql", text);
        let path = path.to_string_lossy().into_owned();
        home.run(&[&["bench", "sandbox:x", "-c", "4", "-t", "5", "-f", &path], more].concat())
    };
    bench("SELECT 1;\n\\set a random(1,\n", &[])
        .fails(2, &["bad.sql:2:17: unexpected the end", "expected a number", "^"]);
    bench("\\set a 1 / 0\nSELECT 1;\n", &[]).fails(1, &["bad.sql:1: division by zero"]);
    let failed = bench("\\set a 1\nSELECT :a;\nSELECT * FROM nowhere;\n", &[]);
    let message = "bad.sql:3: relation \"nowhere\" does not exist";
    assert!(failed.out.contains(message), "{}\n{}", failed.out, failed.err);
    bench("BEGIN;\n", &[]).fails(1, &["bad.sql: the script ends within a transaction"]);
    bench("SELECT 1 WHERE false \\gset\n", &[]).fails(1, &["bad.sql:1: \\gset expects one row, not 0"]);
    bench("\\shell true\nSELECT 1;\n", &[])
        .fails(2, &["bad.sql:1:1: \\shell runs a command", "--allow-shell"]);
    bench("\\shell true\nSELECT 1;\n", &["--allow-shell"]).fine();
    bench("\\startpipeline\nSELECT 1;\n\\endpipeline\n", &["-M", "simple"])
        .fails(2, &["bad.sql:1:1: pipelines need"]);
    home.run(&["bench", "sandbox:x", "-f", "/nowhere.sql"])
        .fails(1, &["/nowhere.sql cannot be read"]);
    home.run(&["bench", "sandbox:x", "-f", "a.sql@x"])
        .fails(2, &["must be a whole number, not \"x\""]);
    // A transaction that sends nothing is one all the same, and keeps nobody from the end.
    let path = home.write("idle.sql", "\\set x 1\n");
    let arguments = [
        "bench",
        "sandbox:x",
        "-f",
        &path.to_string_lossy(),
        "-c",
        "2",
        "-d",
        "1s",
        "--warmup",
        "0s",
        "--json",
    ];
    let idle = home.run(&arguments).fine().json();
    assert!(idle["committed"].as_u64() > Some(0), "{idle}");
    assert_eq!(idle["cross_check"]["client"], 0, "{idle}");
    // Results come as text, and a comment's colon is not a parameter.
    let said = bench(
        "-- about :aid\nSELECT relacl FROM pg_class LIMIT 1;\n",
        &["--json"],
    )
    .fine()
    .json();
    assert_eq!(said["failed"], 0, "{said}");
    bench("COPY pg_class TO STDOUT;\n", &[]).fails(1, &["bad.sql: the server began a COPY"]);
    // What the server refuses fails its transactions, and is prepared again by the next one.
    let said = bench("SELECT 1 / :n;\n", &["-D", "n=0", "--json"])
        .fails(
            1,
            &[
                "not one transaction was committed",
                "bad.sql:1",
                "division by zero",
            ],
        )
        .json();
    assert_eq!(
        (&said["failed"], &said["errors"][0]["sqlstate"]),
        (&20.into(), &"22012".into()),
        "{said}"
    );
    bench("SELEC 1;\n", &[]).fails(1, &["bad.sql:1", "syntax error at or near", "42601"]);
    // One in two fails, which is more than the usual share, and as much as is accepted here.
    let halves = "\\set n random(0, 1)\nSELECT 1 / :n;\n";
    let said = bench(halves, &[]).fails(3, &[]);
    assert!(
        said.out.contains("% failed, more than --max-failed 1.00%)"),
        "{}",
        said.out
    );
    bench(halves, &["--max-failed", "100%"]).fine();
    bench(halves, &["--max-failed", "2"]).fails(2, &["expected a share from 0% to 100%"]);
    bench("SELECT 1 \\gset\n", &[]).fails(1, &["bad.sql:1", "\"?column?\" of \\gset is not a name"]);
}

/// What the commands of a script print on standard error gets to no terminal as it is, and a
/// request to stop ends them.
#[test]
fn shell_command_of_a_script_prints_nothing_raw_and_ends_with_the_load() {
    let home = Home::new();
    home.sandbox("x", &[]);
    let wrong = home.write("wrong.sql", "\\shell printf '\\033[31mred' >&2; exit 3\n");
    let bench = |script: &str| {
        home.command(&[
            "bench",
            "sandbox:x",
            "-f",
            script,
            "--allow-shell",
            "-c",
            "1",
            "-t",
            "1",
        ])
    };
    let ended = said(bench(&wrong.to_string_lossy()).output().expect("runs"));
    let ended = ended.fails(1, &["wrong.sql:1: the command ended with exit code 3"]);
    assert!(!ended.err.contains('\u{1b}'), "{:?}", ended.err);
    let marker = home.file("began");
    let text = format!("\\shell touch {}; exec sleep 1000\n", marker.display());
    let long = home.write("long.sql", &text);
    let child = bench(&long.to_string_lossy())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("runs");
    until_is("the command runs", true, || marker.exists());
    signal(child.id(), "-INT");
    let ended = said(child.wait_with_output().expect("it ends"));
    assert!(!ended.err.contains("the command"), "{}", ended.err);
}
