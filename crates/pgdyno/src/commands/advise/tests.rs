use super::*;

#[test]
fn a_password_is_seen_in_a_connection_string() {
    for text in [
        "host=db password=x",
        "host=db PASSWORD = 'x y'",
        "postgresql://me:secret@db/app",
        "postgres://db/app?password=x",
        "postgres://db/app?sslpassword=x",
    ] {
        assert!(may_hold_password(text), "{text}");
    }
    for text in [
        "host=db user=me",
        "postgresql://me@db:5432/app",
        "sandbox:main",
        "",
    ] {
        assert!(!may_hold_password(text), "{text}");
    }
}

fn advised() -> Advised {
    let facts: Vec<Fact> = [
        ("setting.fsync", json!(false)),
        ("setting.jit", json!(true)),
        ("jit.ratio_of_statements_time", json!(0.3)),
        ("jit.functions", json!(5000)),
        ("swap.total_bytes", json!(0)),
        ("sysctl.vm.overcommit_memory", json!(0)),
        ("sysctl.vm.dirty_bytes", json!(0)),
        ("sysctl.vm.dirty_ratio", json!(20)),
        ("memory.total_bytes", json!(64_u64 << 30)),
        ("connections.used", json!(97)),
        ("connections.max", json!(100)),
    ]
    .into_iter()
    .map(|(name, value)| Fact::known(name, "test", value))
    .collect();
    let catalogue = pgdyno_knobs::Catalogue::shipped().expect("the catalogue");
    Advisor::shipped(&catalogue)
        .expect("the rules")
        .advise(&Question {
            facts: &facts,
            settings: &[],
            evidence: &[],
            allowed: &[],
            only: &[],
        })
}

fn page<'a>(advised: &'a Advised, all: bool, details: &'a [String]) -> Page<'a> {
    Page {
        name: "sandbox x".into(),
        what: String::new(),
        target: Some("sandbox:x"),
        is_host_alone: false,
        options: String::new(),
        advised,
        verbose: false,
        all,
        least: Severity::Hint,
        details,
    }
}

#[test]
fn each_piece_of_advice_is_one_line_as_wide_as_the_terminal() {
    let advised = advised();
    for width in [60, 80, 100, 120, 140] {
        let text = text::page(&page(&advised, true, &[]), width).shown(false);
        for advice in &advised.advice {
            let name = cells::what(advice);
            let lines = text
                .lines()
                .filter(|line| line.starts_with(advice.severity.name()) && line.contains(&name));
            assert_eq!(lines.count(), 1, "{name}:\n{text}");
        }
        let table = text.lines().filter(|line| !line.contains("pgdyno advise"));
        for line in table {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn small_gains_are_counted_and_shown_with_all() {
    let advised = advised();
    let text = text::page(&page(&advised, false, &[]), 100).shown(false);
    assert!(
        !text.contains("vm.dirty_bytes") && text.contains("small one (at most 2 %): --all"),
        "{text}"
    );
    let text = text::page(&page(&advised, true, &[]), 100).shown(false);
    assert!(
        text.contains("20 % by ratio  512 MB ") && !text.contains(": --all"),
        "{text}"
    );
}

#[test]
fn colours_only_repeat_what_the_words_say() {
    let advised = advised();
    let page = text::page(&page(&advised, true, &["all".into()]), 100);
    let plain = page.shown(false);
    let coloured = page.shown(true);
    assert!(
        !plain.contains('\u{1b}') && plain.contains("severe: fsync = on"),
        "{plain}"
    );
    let mut stripped = coloured.clone();
    for sequence in ["\u{1b}[0m", "\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[1;36m"] {
        assert!(coloured.contains(sequence), "{sequence:?}");
        stripped = stripped.replace(sequence, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn commands_for_another_host_name_it() {
    let advised = advised();
    let there = Page {
        options: " --host ssh:db1 --sudo".into(),
        ..page(&advised, true, &[])
    };
    let here = page(&advised, true, &[]);
    let of = |page: &Page<'_>| -> Vec<String> {
        let all = page.advised.advice.iter();
        all.flat_map(|advice| page.commands(advice)).collect()
    };
    assert!(of(&here).iter().any(|command| command.contains("--experiment")));
    let commands = of(&there);
    assert!(!commands.is_empty());
    for command in commands.iter().chain([&there.command()]) {
        assert!(command.ends_with(" --host ssh:db1 --sudo"), "{command}");
        assert!(!command.contains("--experiment"), "{command}");
    }
}

#[test]
fn what_ends_a_danger_is_not_offered_for_a_while() {
    let advised = advised();
    let page = page(&advised, true, &[]);
    for advice in &advised.advice {
        let commands = page.commands(advice);
        match advice.kind {
            RuleKind::Safety => assert_eq!(commands, [""; 0], "{}", advice.rule),
            RuleKind::Tuning => assert!(
                !commands.is_empty() || advice.setting.is_none(),
                "{}",
                advice.rule
            ),
        }
    }
    let fsync = advised
        .advice
        .iter()
        .find(|advice| advice.rule == "fsync-off")
        .expect("it");
    assert!(
        fsync
            .procedure
            .iter()
            .any(|step| step.contains("initdb --sync-only"))
    );
}
