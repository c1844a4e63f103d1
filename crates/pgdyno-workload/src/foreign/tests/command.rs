//! Commands, placeholders and formats, as people write them.

use super::super::command::{fill, seed_value, warms_up_itself};
use super::*;
use proptest::prelude::*;

fn check_words(text: &str, wanted: Result<&[&str], &str>) {
    let result = command_words(text).map_err(|error| error.to_string());
    match (result, wanted) {
        (Ok(words), Ok(wanted)) => assert_eq!(words, wanted, "{text}"),
        (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{text}: {error}"),
        (result, _) => panic!("{text}: {result:?}"),
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
    check_words("a 'b", Err("a quote without its end"));
    check_words("a\\", Ok(&["a\\"]));
    check_words(" ", Err("empty"));
    check_words("a\0", Err("zero byte"));
    check_words(&"a".repeat(20_000), Err("20000 bytes"));
}

#[test]
fn seeds_are_such_as_every_program_takes() {
    for (seed, wanted) in [
        (0, "1"),
        (1, "1"),
        (7, "7"),
        (2_147_483_647, "2147483647"),
        (2_147_483_648, "1"),
    ] {
        assert_eq!(seed_value(seed), wanted);
    }
    assert!((1..=2_147_483_647).contains(&seed_value(u64::MAX).parse::<u64>().expect("a number")));
}

fn check_filled(word: &str, wanted: Result<&str, &str>) {
    let values = [
        ("clients", Some("4".to_owned())),
        ("user", None),
        ("host", Some("a b {clients}".to_owned())),
    ];
    let result = fill(&[word.to_owned()], &values).map_err(|error| error.to_string());
    match (result, wanted) {
        (Ok(words), Ok(wanted)) => assert_eq!(words, [wanted], "{word}"),
        (Err(error), Err(wanted)) => assert!(error.contains(wanted), "{word}: {error}"),
        (result, _) => panic!("{word}: {result:?}"),
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
        warms_up_itself(&["x".into(), "-w{warmup_minutes}".into()])
            && warms_up_itself(&["x".into(), "-w{warmup_s}".into()])
            && !warms_up_itself(&["{{warmup_s}}".into()])
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

proptest! {
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
