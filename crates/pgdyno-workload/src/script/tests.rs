use super::*;
use pgdyno_engine::actor::{Transactions, Turn};
use pgdyno_engine::random::Stream;
use proptest::prelude::*;

fn scripts(text: &str) -> Scripts {
    Scripts {
        scripts: vec![Script {
            name: "a.sql".into(),
            text: text.into(),
            weight: 1,
        }],
        variables: vec![("d".into(), "12".into())],
        allow_shell: false,
    }
}

fn error(text: &str, protocol: Protocol) -> String {
    scripts(text).check(protocol).unwrap_err().to_string()
}

/// The simple queries of one transaction, and the pauses between them.
fn said(text: &str) -> Result<Vec<String>, String> {
    let mut scripts = scripts(text);
    scripts.allow_shell = true;
    let program = scripts
        .compile(Protocol::Simple, 7, 1, &Arc::default())
        .map_err(|error| error.to_string())?;
    let mut actor = program.actor(Stream::new(1, 1, Purpose::Transactions), 3);
    actor.begin();
    let (mut said, mut out) = (Vec::new(), Vec::new());
    loop {
        match actor.run(&mut out).map_err(|halt| halt.0)? {
            Turn::Send(_) => said.push(String::from_utf8(out[5..out.len() - 1].to_vec()).unwrap()),
            Turn::Sleep(ns) => said.push(format!("sleep {ns}")),
            Turn::End => return Ok(said),
        }
    }
}

#[test]
fn variables_stand_where_they_are_named() {
    for (text, expected) in [
        (
            "\\set a 1 + :d\nselect :a, :a::int, ':a', :unset, a:b;",
            &["select 13, 13::int, '13', :unset, a:b"][..],
        ),
        ("select :scale, :client_id, :random_seed;", &["select 7, 3, 1"]),
        ("select 1; select 2", &["select 1", "select 2"]),
        (
            "\\set x null\n\\set y 0.5\n\\set z true\nselect :x, :y, :z;",
            &["select NULL, 0.5, true"],
        ),
        (
            "\\if :d > 12\nselect 1;\n\\elif :d = 12\nselect 2;\n\\if false\nselect 3;\n\\endif\n\\else\nselect 4;\n\\endif\nselect 5;",
            &["select 2", "select 5"],
        ),
        (
            "\\if :d = 1\nselect 1;\n\\elif false\nselect 2;\n\\else\nselect 3;\n\\endif",
            &["select 3"],
        ),
        (
            "\\sleep 10 ms\n\\sleep 5us\n\\set t 2\n\\sleep :t\nselect 1;",
            &["sleep 10000000", "sleep 5000", "sleep 2000000000", "select 1"],
        ),
        ("\\setshell n echo 1 :d | tr -d ' '\nselect :n;", &["select 112"]),
    ] {
        assert_eq!(said(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_script_that_cannot_go_on_says_where() {
    for (text, expected) in [
        ("select 1;\n\\set a 1 / (:d - 12)", "a.sql:2: division by zero"),
        (
            "\\set a :nothing + 1",
            "a.sql:1: the variable \"nothing\" is not set",
        ),
        ("\\sleep :x", "a.sql:1: the variable \"x\" is not set"),
        ("\\shell exit 3", "a.sql:1: the command ended with exit code 3"),
        (
            "\\setshell n echo x",
            "a.sql:1: the command did not print an integer",
        ),
    ] {
        assert_eq!(said(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn a_wrong_script_is_refused_with_file_line_and_column() {
    for (text, expected) in [
        (
            "begin;\n\\set aid random(1, \nend;",
            "a.sql:2:20: unexpected the end of the expression; expected a number, a variable, a function or \"(\"",
        ),
        (
            "\\foo 1",
            "a.sql:1:1: there is no meta command \\foo; there are set, ",
        ),
        (
            "\\set",
            "a.sql:1:1: expected a variable and an expression behind \\set",
        ),
        ("\\set 1a 2", "a.sql:1:6: 1a is not a name of a variable"),
        ("  \\gset x", "a.sql:1:3: \\gset must follow a statement"),
        ("\\if true\nselect 1;", "a.sql:1:1: this \\if has no \\endif"),
        ("\\endif", "a.sql:1:1: this \\endif has no \\if"),
        (
            "\\if 1\n\\else\n\\elif 2\n\\endif",
            "a.sql:3:1: this \\elif follows an \\else",
        ),
        ("\\else", "a.sql:1:1: this \\else has no \\if"),
        (
            "\\endif x",
            "a.sql:1:8: unexpected x; expected the end of the line behind \\endif",
        ),
        (
            "\\sleep 1 h",
            "a.sql:1:10: expected a number or a variable, and us, ms or s behind \\sleep",
        ),
        (
            "\\shell ls",
            "a.sql:1:1: \\shell runs a command on this machine; --allow-shell allows it",
        ),
        (
            "select 'ä",
            "a.sql:1:8: the quote that is opened here is not closed",
        ),
        ("-- nothing\n", "a.sql:1:1: the script holds no command"),
        (
            "\\startpipeline",
            "a.sql:1:1: pipelines need the extended query protocol",
        ),
    ] {
        let error = error(text, Protocol::Simple);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let shown = error("\\set a 1 +\t* 2", Protocol::Prepared);
    assert!(
        shown.ends_with("\n    \\set a 1 + * 2\n               ^"),
        "{shown}"
    );
}

#[test]
fn scripts_are_chosen_by_weight() {
    let mut scripts = scripts("select 1;");
    for (name, weight) in [("b.sql", 0), ("c.sql", 3)] {
        scripts.scripts.push(Script {
            name: name.into(),
            text: "select 2;".into(),
            weight,
        });
    }
    let program = scripts
        .compile(Protocol::Prepared, 1, 1, &Arc::default())
        .unwrap();
    let mut actor = program.actor(Stream::new(1, 1, Purpose::Transactions), 0);
    let mut chosen = [0; 3];
    for _ in 0..4000 {
        actor.begin();
        chosen[actor.kind() as usize] += 1;
    }
    assert_eq!(chosen[1], 0);
    assert!((900..1100).contains(&chosen[0]), "{chosen:?}");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[-a-z0-9 \\\\;:'\"$(){}*/\n+<>=.~|&#,EÄ]{0,120}", prepared: bool) {
        let protocol = if prepared { Protocol::Prepared } else { Protocol::Simple };
        let _ = scripts(&text).check(protocol);
    }

    #[test]
    fn no_expression_makes_it_panic(text in "(-?[0-9]{1,19}|:d|[-+*/%()<>=,~&|#]|random|abs|permute|hash|case when| then | end| is null| not | and ){1,12}") {
        let _ = said(&format!("\\set a {text}\n"));
    }
}
