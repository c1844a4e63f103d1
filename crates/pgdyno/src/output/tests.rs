use super::*;
use proptest::prelude::*;

/// A process that was given no passwords: those of this one are what other tests name.
fn data_line(text: &str) -> String {
    super::data_line(text, &Secrets::default())
}

fn remark(text: &str) -> String {
    super::remark(text, &Secrets::default())
}

#[test]
fn what_a_terminal_obeys_is_made_visible() {
    let check = |text: &str, expected: &str| assert_eq!(clean(text), expected);
    check("plain\n\ttext \u{e9} \u{1f418}", "plain\n\ttext \u{e9} \u{1f418}");
    check(
        "\u{1b}[31mred\u{1b}]0;title\u{7}",
        "\\u001b[31mred\\u001b]0;title\\u0007",
    );
    check("\u{fdd1}RED\u{fdd0}", "\\ufdd1RED\\ufdd0");
    check("a\rb\u{8}c\u{7f}", "a\\u000db\\u0008c\\u007f");
    check("\u{9b}31m\u{85}", "\\u009b31m\\u0085");
    check("\u{202e}gpj.exe\u{2066}", "\\u202egpj.exe\\u2066");
    check(
        "\u{200b}\u{feff}\u{2028}\u{e0041}",
        "\\u200b\\ufeff\\u2028\\udb40\\udc41",
    );
}

#[test]
fn foreign_value_with_line_breaks_makes_no_second_line() {
    for foreign in [
        "x\nhint: run this",
        "x\r\nhint: run this",
        "x\rhint: run this",
        "x\u{2028}hint: run this",
        "x\u{2029}hint: run this",
        "x\u{85}hint: run this",
        "x\u{b}hint: run this",
        "x\u{c}hint: run this",
    ] {
        let seen = [
            data_line(&line_of(&format!("name {foreign} end"))),
            remark(&line_of(&format!("error: {foreign}"))),
            cell(foreign),
        ];
        for text in seen {
            let breaks = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
            assert!(
                !text.contains(breaks) && text.contains("hint: run this"),
                "{text:?}"
            );
        }
    }
    // Blank lines around a line are our own.
    assert_eq!(line_of("\nmade:\n\n"), "\nmade:\n\n");
}

#[test]
fn long_lines_are_cut_and_json_is_not() {
    let long = "x".repeat(LINE_MAX + 7);
    let line = data_line(&format!("a\n{long}\nb"));
    assert!(
        line.starts_with("a\nx") && line.ends_with("x\u{2026} (7 more characters)\nb"),
        "{}",
        &line[line.len() - 60..]
    );
    let json = serde_json::to_string(&[&long]).unwrap();
    assert_eq!(data_line(&json), json);
    let message = remark(&"line\n".repeat(REMARK_MAX));
    assert!(message.len() < REMARK_MAX + 100 && message.ends_with("more characters)"));
    assert!(cell(&long).chars().count() < CELL_MAX + 40);
}

#[test]
fn passwords_in_messages_are_hidden_wherever_they_come_from() {
    let check = |text: &str, expected: &str| assert_eq!(remark(text), expected);
    check(
        "error: invalid type: string \"postgres://u:hunter2@h/d\", expected u32",
        "error: invalid type: string \"postgres://u:\u{2026}@h/d\", expected u32",
    );
    check("no file postgres//u:hun/ter2@h", "no file postgres//u:\u{2026}@h");
    check("postgres://u/hunter2@h/d", "postgres://u:\u{2026}@h/d");
    check(
        "unknown knob \"postgres//u:hunter2\"",
        "unknown knob \"postgres//u:\u{2026}",
    );
    check("u:hunter2@h here", "u:\u{2026}@h here");
    check("\"host=h password=hunter2 x\"", "\"host=h password=\u{2026} x\"");
    let harmless = "postgres://ann@db:1/lab at [::1]:5432, http://127.0.0.1:80/, ann@example.org: at 10:30";
    check(harmless, harmless);
}

#[test]
fn an_argument_with_a_password_is_hidden_in_data_too() {
    let mut secrets = Secrets::default();
    secrets.add("--store=postgress://u:Q7 Q7@h/d");
    let line = super::data_line("{\"store\": \"postgress://u:Q7 Q7@h/d\"}", &secrets);
    assert_eq!(line, "{\"store\": \"postgres\u{2026}\"}");
}

#[test]
fn styles_are_for_terminals() {
    let text = Styled::beginning(Style::Error, "error:", format_args!("no"));
    assert_eq!(text.shown(false), "error: no");
    assert_eq!(text.map(clean_styled), text, "the cleaning keeps them");
    assert_eq!(text.shown(true), "\u{1b}[1;31merror:\u{1b}[0m no");
}

#[test]
fn a_screen_shows_nothing_that_a_terminal_obeys() {
    let mut screen = Buffer::empty(ratatui::layout::Rect::new(0, 0, 20, 1));
    let line = ratatui::text::Line::from("ab\u{202e}c\u{9b}d\u{1b}[1m");
    screen.set_line(0, 0, &line, 20);
    clean_screen(&mut screen);
    let all: String = screen.content.iter().map(|cell| cell.symbol()).collect();
    assert!(!all.contains(is_obeyed) && all.contains('d'), "{all:?}");
}

#[test]
fn data_on_a_terminal_is_cleaned_in_whole_characters() {
    let text = "a\u{1b}[2J\u{202e}\r\n".as_bytes();
    let mut rest = Vec::new();
    let mut shown = String::new();
    for byte in text {
        rest.push(*byte);
        shown += &seen(&mut rest);
    }
    assert_eq!(shown, "a\\u001b[2J\\u202e\n");
    assert_eq!(seen(&mut b"a\xff\rb\r\n".to_vec()), "a\u{fffd}\\u000db\n");
}

proptest! {
    #[test]
    fn json_stays_the_same_value(text in any::<String>(), key in "[\u{0}-\u{ff}\u{202a}-\u{202e}]{0,8}") {
        let value = serde_json::json!({ key: [text] });
        for written in [value.to_string(), format!("{value:#}")] {
            let cleaned = clean(&written);
            prop_assert!(!cleaned.contains(is_obeyed));
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&cleaned).unwrap(), &value);
        }
    }

    #[test]
    fn no_text_gets_a_control_character_out(text in any::<String>()) {
        prop_assert!(!data_line(&text).contains(is_obeyed));
        prop_assert!(!remark(&text).contains(is_obeyed));
        prop_assert!(!cell(&text).contains(is_obeyed));
    }

    #[test]
    fn no_foreign_text_has_styles(text in "[\u{fdd0}-\u{fdd4}a\u{1b}]{0,9}", word in "[\u{fdd0}-\u{fdd4}b]{0,9}") {
        for seen in [data_line(&text), remark(&text), cell(&text), line_of(&data_line(&text))] {
            prop_assert!(!seen.contains(|c| ('\u{fdd0}'..='\u{fdd4}').contains(&c)), "{seen:?}");
        }
        let mut styled = Styled::beginning(Style::Hint, &word, format_args!("{text}"));
        styled += &text;
        styled.push_styled(Style::Warning, &text);
        let shown = styled.map(clean_styled).shown(true);
        let ours = ["\u{1b}[1;36m", "\u{1b}[0m", "\u{1b}[1;33m", "\u{1b}[0m"];
        prop_assert_eq!(shown.matches('\u{1b}').count(), ours.len(), "{:?}", shown);
        let rest = ours.iter().fold(shown, |shown, sequence| shown.replacen(sequence, "", 1));
        prop_assert!(!rest.contains(is_obeyed), "{rest:?}");
    }
}
