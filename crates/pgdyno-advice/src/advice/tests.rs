use super::*;
use serde_json::json;

#[track_caller]
fn advisor() -> Advisor {
    Advisor::shipped(&Catalogue::shipped().unwrap()).unwrap()
}

/// Texts such as "16GB" in a case are bytes.
fn in_bytes(value: &Value) -> Value {
    const UNITS: [(&str, f64); 4] = [
        ("kB", 1024.0),
        ("MB", 1_048_576.0),
        ("GB", 1_073_741_824.0),
        ("TB", 1_099_511_627_776.0),
    ];
    let number = value.as_str().and_then(|text| {
        UNITS.iter().find_map(|(unit, factor)| {
            let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
            Some(crate::known::number_of(number * factor))
        })
    });
    number.unwrap_or_else(|| value.clone())
}

/// What a rule's case knows. What is derived or sized can be given too, and then counts.
fn known_of(advisor: &Advisor, case: &BTreeMap<String, Value>) -> Known {
    let values: Vec<(&str, Value)> = case
        .iter()
        .filter(|(name, _)| *name != "then")
        .map(|(name, value)| (name.as_str(), in_bytes(value)))
        .collect();
    let mut facts: Vec<Fact> = values
        .iter()
        .map(|(name, value)| Fact::known(name, "case", value.clone()))
        .collect();
    facts.push(unmeasured());
    let given = |known: Known| {
        values
            .iter()
            .fold(known, |known, (name, value)| known.given(name, value.clone()))
    };
    let sizing = Sizing::of(&advisor.sources, &given(Known::new(&facts, &[])));
    let all: Vec<Fact> = facts.iter().chain(&sizing.facts).cloned().collect();
    given(Known::new(&all, &[]))
}

/// The enumerations of a case, as a server shows them: what is in force already is not advised.
fn enumerations(server: &[Guc], case: &BTreeMap<String, Value>) -> Vec<Guc> {
    let of_case = |guc: &Guc| {
        let word = case.get(&format!("setting.{}", guc.name))?.as_str()?.to_owned();
        Some(Guc {
            shown: word.clone(),
            setting: word,
            ..guc.clone()
        })
    };
    server
        .iter()
        .filter(|guc| guc.vartype == "enum")
        .filter_map(of_case)
        .collect()
}

#[test]
fn every_rule_fires_and_is_silent_as_its_cases_say() {
    let advisor = advisor();
    let server = golden::settings("18", &BTreeMap::new());
    for rule in advisor.rules() {
        assert!(!rule.fires.is_empty() && !rule.silent.is_empty(), "{}", rule.id);
        for case in &rule.fires {
            let known = known_of(&advisor, case);
            let said = advisor.judge(rule, &known, &Items::default(), &enumerations(&server, case));
            let said = said.unwrap_or_else(|why| panic!("{}: {why}\n{case:?}", rule.id));
            assert_eq!(said.len(), 1, "{} does not fire: {case:?}", rule.id);
            if let Some(then) = case.get("then") {
                assert_eq!(said[0].recommended, then.as_str().unwrap(), "{}", rule.id);
            }
        }
        for case in &rule.silent {
            let settings = enumerations(&server, case);
            let said = advisor.judge(rule, &known_of(&advisor, case), &Items::default(), &settings);
            let said = said.unwrap_or_else(|why| panic!("{}: {why}\n{case:?}", rule.id));
            assert!(said.is_empty(), "{} fires: {case:?}\n{said:?}", rule.id);
        }
    }
}

#[test]
fn without_facts_no_rule_fires() {
    let advisor = advisor();
    let question = Question {
        facts: &[],
        settings: &[],
        evidence: &[],
        allowed: &["durability".into(), "mitigations".into()],
        only: &[],
    };
    let advised = advisor.advise(&question);
    assert_eq!(advised.advice, []);
    assert_eq!(advised.not_judged.len(), advisor.rules().len());
    assert!(advised.not_judged.iter().all(|rule| !rule.because.is_empty()));
}

#[test]
fn rules_name_knobs_of_the_catalogue_and_other_rules() {
    let advisor = advisor();
    let mut seen = std::collections::BTreeSet::new();
    for rule in advisor.rules() {
        assert!(seen.insert(&rule.id), "{} is there twice", rule.id);
        assert!(!rule.source.is_empty() && !rule.risk.is_empty() && !rule.effect.of.is_empty());
        for beats in &rule.beats {
            assert!(
                advisor.rules().iter().any(|other| other.id == beats.rule),
                "{} beats {}, which is not a rule",
                rule.id,
                beats.rule
            );
        }
        if let (Some(low), Some(high)) = (rule.effect.low, rule.effect.high) {
            assert!(low <= high, "{}", rule.id);
        }
    }
    let unknown: Vec<&str> = advisor
        .rules()
        .iter()
        .filter_map(Rule::knob)
        .filter(|knob| advisor.catalogue.find(knob).is_none())
        .collect();
    assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
}

/// What would be applied is legal in the catalogue's eyes.
#[test]
fn recommended_settings_are_legal() {
    let advisor = advisor();
    for rule in advisor.rules() {
        for case in &rule.fires {
            let said = advisor.judge(rule, &known_of(&advisor, case), &Items::default(), &[]);
            for advice in said.unwrap() {
                let Some(setting) = advice.setting else { continue };
                // What is written by hand is a word that the catalogue has lines for.
                let knob = advisor.catalogue.get(&setting.knob).unwrap();
                if knob.kind.is_advised_only() {
                    assert!(
                        knob.choices.contains(&setting.value) && !advice.lines.is_empty(),
                        "{}",
                        rule.id
                    );
                    continue;
                }
                advisor
                    .catalogue
                    .check(&setting)
                    .unwrap_or_else(|error| panic!("{}: {error}", rule.id));
            }
        }
    }
}

/// What trades durability is never advised unless asked for.
#[test]
fn nothing_that_trades_durability_is_advised_unasked() {
    let advisor = advisor();
    for rule in advisor.rules().iter().filter(|rule| rule.only_if_asked.is_none()) {
        for case in &rule.fires {
            let said = advisor.judge(rule, &known_of(&advisor, case), &Items::default(), &[]);
            assert!(
                said.unwrap().iter().all(|advice| !advice.wants_consent),
                "{}",
                rule.id
            );
        }
    }
}

/// Each piece of advice that the cases of the rules give.
fn of_all_cases(advisor: &Advisor) -> Vec<(&Rule, Advice)> {
    let mut all = Vec::new();
    for rule in advisor.rules() {
        for case in &rule.fires {
            let said = advisor.judge(rule, &known_of(advisor, case), &Items::default(), &[]);
            all.extend(said.unwrap().into_iter().map(|advice| (rule, advice)));
        }
    }
    all
}

/// A rule that ends a danger to data is one for safety, whatever its file calls it: its knob risks
/// durability, or its effect is safety. Only what is asked for by name may trade the other way.
#[test]
fn rules_about_durability_and_safety_are_of_the_kind_safety() {
    let advisor = advisor();
    let must_be: Vec<&str> = advisor
        .rules()
        .iter()
        .filter(|rule| {
            let risks = |id: &str| {
                advisor
                    .catalogue
                    .find(id)
                    .is_some_and(|knob| knob.risk == Risk::Durability)
            };
            let is_traded = rule.only_if_asked.is_some();
            !is_traded && (rule.effect.of == "safety" || rule.knob().is_some_and(risks))
        })
        .filter(|rule| rule.kind != RuleKind::Safety)
        .map(|rule| rule.id.as_str())
        .collect();
    assert_eq!(must_be, [""; 0]);
    for id in [
        "fsync-off",
        "full-page-writes-off",
        "synchronous-commit-off",
        "ignores-damage",
        "failed-flush-retried",
        "checksums-off",
        "autovacuum-off-written",
        "autovacuum-off-read",
        "track-counts-off",
    ] {
        let rule = advisor.rules().iter().find(|rule| rule.id == id).unwrap();
        assert_eq!(rule.kind, RuleKind::Safety, "{id}");
        assert!(rule.procedure.len() >= 2, "{id} names no procedure");
    }
}

#[test]
fn safety_advice_is_never_tried_and_names_how_it_lasts() {
    let advisor = advisor();
    for (rule, advice) in of_all_cases(&advisor) {
        if rule.kind == RuleKind::Tuning {
            continue;
        }
        assert!(!advice.can_be_tried && !advice.is_small, "{}", rule.id);
        for step in &advice.procedure {
            assert!(
                !step.contains("{{") && !step.contains("--revert-after"),
                "{}: {step}",
                rule.id
            );
        }
        let is_parameter = advice.setting.as_ref().is_some_and(|setting| {
            let knob = advisor.catalogue.get(&setting.knob).unwrap();
            matches!(knob.kind, Kind::Guc | Kind::Sysctl)
        });
        assert!(
            !is_parameter || advice.procedure.len() >= 2,
            "{} does not say how it lasts",
            rule.id
        );
    }
}

/// Statements are separate from text, so that each can be run as it is: no test runs what is within
/// a sentence.
#[test]
fn statements_are_steps_of_their_own() {
    /// What begins a statement; in a text a command is named without what it is about.
    const SQL: [&str; 8] = [
        "SELECT ",
        "ALTER ",
        "DROP INDEX",
        "CREATE INDEX",
        "VACUUM (ANALYZE",
        "ROLLBACK ",
        "CHECKPOINT;",
        "SHOW ",
    ];
    let advisor = advisor();
    for (rule, advice) in of_all_cases(&advisor) {
        let is_sql = |text: &str| SQL.iter().find(|sql| text.contains(*sql)).copied();
        assert_eq!(
            is_sql(&advice.recommended),
            None,
            "{}: {}",
            rule.id,
            advice.recommended
        );
        for step in advice.procedure.iter().filter(|step| !step.ends_with(';')) {
            assert_eq!(is_sql(step), None, "{}: {step}", rule.id);
        }
        for Statement { sql, .. } in &advice.statements {
            assert!(
                !sql.contains("{{") && !sql.trim_end_matches(';').contains(';'),
                "{}: {sql}",
                rule.id
            );
            assert!(
                SQL.iter().any(|begin| sql.starts_with(begin)) || sql == "VACUUM;",
                "{}: {sql}",
                rule.id
            );
        }
    }
}

#[test]
fn a_name_with_a_line_break_makes_no_statement_of_its_own() {
    let advised = asked(&[("indexes.invalid", json!(["\"a\nDROP TABLE b;\n\""]))]).advised();
    assert_eq!(
        advised.advice[0].statements,
        [Statement {
            sql: "DROP INDEX CONCURRENTLY \"a\nDROP TABLE b;\n\";".into(),
            at: Some("If nobody is making it just now".into()),
        }]
    );
}

/// No rule says VACUUM while something holds rows back, unless it ends that first.
#[test]
fn what_holds_rows_back_is_ended_before_any_vacuum() {
    let advisor = advisor();
    let holder = json!([{
        "kind": "standby", "name": "b", "pid": 9, "xid_age": 90_000, "held_s": null, "here": true, "holds": "rows",
        "ends_at": "On the standby b:", "ends": ["ALTER SYSTEM SET hot_standby_feedback = off;"]
    }]);
    let (mut with_vacuum, mut ended_first) = (Vec::new(), Vec::new());
    for rule in advisor.rules() {
        for case in &rule.fires {
            let statements = |case: &BTreeMap<String, Value>| {
                let said = advisor.judge(rule, &known_of(&advisor, case), &Items::default(), &[]);
                let said = said.unwrap_or_default();
                said.into_iter()
                    .flat_map(|advice| advice.statements)
                    .collect::<Vec<_>>()
            };
            let is_vacuum = |statement: &Statement| statement.sql.starts_with("VACUUM");
            if !statements(case).iter().any(is_vacuum) {
                continue;
            }
            with_vacuum.push(rule.id.as_str());
            let mut held = case.clone();
            held.insert("xid.held_back_by".into(), holder.clone());
            let held = statements(&held);
            let Some(vacuum) = held.iter().position(is_vacuum) else {
                continue;
            };
            let end = held
                .iter()
                .position(|statement| statement.sql.contains("hot_standby_feedback"));
            assert!(end.is_some_and(|end| end < vacuum), "{}: {held:?}", rule.id);
            ended_first.push(rule.id.as_str());
            assert_eq!(
                held[end.unwrap()].at.as_deref(),
                Some("On the standby b"),
                "{}",
                rule.id
            );
            assert_ne!(
                held[vacuum].at.as_deref(),
                Some("On the standby b"),
                "{}",
                rule.id
            );
        }
    }
    assert_eq!(
        with_vacuum,
        [
            "autovacuum-off-written",
            "track-counts-off",
            "dead-rows",
            "xid-wraparound-near",
            "xid-old",
            "multixact-wraparound-near"
        ]
    );
    // Of dead rows nothing is said while they are held.
    with_vacuum.retain(|rule| *rule != "dead-rows");
    assert_eq!(ended_first, with_vacuum);
}

#[test]
fn a_time_that_is_not_known_is_no_short_one() {
    let advised = asked(&[
        (
            "xid.held_back_by",
            json!([{ "kind": "replication slot", "name": "s", "pid": null, "xid_age": 3, "held_s": null, "here": true,
                "holds": "rows", "ends_at": null, "ends": ["SELECT pg_drop_replication_slot('s');"] }]),
        ),
        ("tables.dead_rows", json!([{ "table": "a", "dead": 500_000, "live": 1, "dead_ratio": 0.99 }])),
    ])
    .advised();
    assert_eq!(rules(&advised), ["xid-held-back"]);
    assert!(
        advised.advice[0].why.contains("(since when is not known)"),
        "{}",
        advised.advice[0].why
    );
}

#[test]
fn a_rule_without_a_kind_is_for_safety_if_safety_is_expected_of_it() {
    let rule = |of: &str| {
        let text = format!(
            "[[rule]]\nid = \"x\"\nknob = \"work_mem\"\nwhen = 'true'\nrecommended = \"1MB\"\nwhy = 'x'\nsource = \"x\"\n\
             effect = {{ of = \"{of}\" }}\nrisk = \"x\"\nconfidence = \"high\"\nseverity = \"hint\"\nfires = [{{}}]\nsilent = []\n"
        );
        rule::parse(&text).unwrap().remove(0)
    };
    assert_eq!(rule("safety").kind, RuleKind::Safety);
    assert_eq!(rule("throughput").kind, RuleKind::Tuning);
    let known = Known::new(&[], &[]);
    let said = advisor().say(&rule("safety"), &known, &[]).unwrap().unwrap();
    assert_eq!(
        said.procedure,
        ["ALTER SYSTEM SET work_mem = '1MB';", "SELECT pg_reload_conf();"]
    );
}

#[test]
fn a_limit_of_no_bytes_shows_what_holds_instead() {
    let advised = asked(&[
        ("sysctl.vm.dirty_bytes", json!(0)),
        ("sysctl.vm.dirty_ratio", json!(20)),
        ("memory.total_bytes", json!(64_u64 << 30)),
    ])
    .advised();
    let advice = &advised.advice[0];
    assert_eq!(advice.rule, "write-back-limit-far");
    assert_eq!(advice.now.as_deref(), Some("0"));
    assert_eq!(advice.now_means.as_deref(), Some("20 % by ratio"));
    assert_eq!(advice.recommended_means.as_deref(), Some("512 MB"));
    assert!(advice.is_small);
    // A limit in bytes is what it says.
    let advised = asked(&[
        ("sysctl.vm.dirty_bytes", json!(8_u64 << 30)),
        ("sysctl.vm.dirty_ratio", json!(0)),
        ("memory.total_bytes", json!(64_u64 << 30)),
    ])
    .advised();
    assert_eq!(advised.advice[0].now_means.as_deref(), Some("8 GB"));
}

#[test]
fn a_gain_of_two_percent_is_small_and_a_measured_one_is_not() {
    let mut asked = asked(&[
        ("swap.total_bytes", json!(1 << 30)),
        ("sysctl.vm.swappiness", json!(60)),
        ("setting.jit", json!(true)),
        ("jit.ratio_of_statements_time", json!(0.2)),
        ("jit.functions", json!(5000)),
    ]);
    let is_small = |advised: &Advised, rule: &str| {
        let found = advised.advice.iter().find(|advice| advice.rule == rule);
        found.unwrap_or_else(|| panic!("{rule} is silent")).is_small
    };
    let advised = asked.advised();
    assert!(is_small(&advised, "swappiness") && !is_small(&advised, "jit-takes-time"));
    asked.evidence = vec![Evidence {
        setting: Setting {
            knob: "vm.swappiness".into(),
            value: "10".into(),
        },
        ..evidence("", Shown::Better)
    }];
    assert!(!is_small(&asked.advised(), "swappiness"));
}

struct Asked {
    facts: Vec<Fact>,
    evidence: Vec<Evidence>,
    allowed: Vec<String>,
}

fn asked(facts: &[(&str, Value)]) -> Asked {
    Asked {
        facts: facts
            .iter()
            .map(|(name, value)| Fact::known(name, "test", value.clone()))
            .collect(),
        evidence: Vec::new(),
        allowed: Vec::new(),
    }
}

impl Asked {
    fn advised(&self) -> Advised {
        advisor().advise(&Question {
            facts: &self.facts,
            settings: &[],
            evidence: &self.evidence,
            allowed: &self.allowed,
            only: &[],
        })
    }
}

fn rules(advised: &Advised) -> Vec<&str> {
    advised.advice.iter().map(|advice| advice.rule.as_str()).collect()
}

fn aside<'a>(advised: &'a Advised, rule: &str) -> &'a str {
    let found = advised.skipped.iter().find(|aside| aside.rule == rule);
    &found
        .unwrap_or_else(|| panic!("{rule} is not set aside: {advised:?}"))
        .because
}

#[test]
fn the_gravest_is_first_and_contradictions_are_explained() {
    let advised = asked(&[
        ("setting.fsync", json!(false)),
        ("setting.checkpoint_completion_target", json!(0.5)),
        ("setting.autovacuum", json!(false)),
        ("tables.dead_rows", json!([])),
        ("wal.bytes_per_s", json!(2_000_000)),
        ("wal.bytes", json!(90_000_000_000_u64)),
        ("sysctl.kernel.sched_autogroup_enabled", json!(1)),
        ("setting.full_page_writes", json!(false)),
        ("storage.data.file_system", json!("zfs")),
    ])
    .advised();
    assert!(advised.is_severe());
    let said = rules(&advised);
    assert_eq!(said[..2], ["fsync-off", "autovacuum-off-written"]);
    assert_eq!(said.last(), Some(&"autogroup"));
    assert!(aside(&advised, "autovacuum-off-read").contains("autovacuum-off-written has it"));
    assert!(aside(&advised, "full-page-writes-off").contains("ZFS"));
    assert!(!said.contains(&"full-page-writes-off") && said.contains(&"full-page-writes-off-zfs"));
}

fn evidence(value: &str, verdict: Shown) -> Evidence {
    Evidence {
        experiment: 12,
        setting: Setting {
            knob: "jit".into(),
            value: value.into(),
        },
        verdict,
        percent: 7.1,
        low: 5.0,
        high: 9.2,
        load: "tpcb, 32 clients".into(),
    }
}

#[test]
fn what_was_measured_here_counts_for_more_than_what_was_read() {
    let mut asked = asked(&[
        ("setting.jit", json!(true)),
        ("jit.ratio_of_statements_time", json!(0.2)),
        ("jit.functions", json!(5000)),
    ]);
    assert_eq!(asked.advised().advice[0].confidence, Confidence::High);
    asked.evidence = vec![evidence("false", Shown::Better)];
    let advised = asked.advised();
    assert_eq!(advised.advice[0].confidence, Confidence::Measured);
    let measured = advised.advice[0].measured.as_ref().unwrap().summary();
    assert_eq!(
        measured,
        "+7.1 % (+5.0 ... +9.2), experiment 12, tpcb, 32 clients"
    );
    for (verdict, part) in [
        (Shown::Worse, "as worse"),
        (Shown::Same, "no difference"),
        (Shown::NoGain, "no gain"),
    ] {
        asked.evidence = vec![evidence("off", verdict)];
        let advised = asked.advised();
        assert_eq!(rules(&advised), [""; 0]);
        assert!(aside(&advised, "jit-takes-time").contains(part));
    }
    // Another value of the knob is not evidence for this one; what is undecided is only mentioned.
    asked.evidence = vec![evidence("on", Shown::Worse)];
    assert_eq!(asked.advised().advice[0].measured, None);
    asked.evidence = vec![evidence("off", Shown::Undecided)];
    assert_eq!(asked.advised().advice[0].confidence, Confidence::High);
}

#[test]
fn speed_does_not_outweigh_danger() {
    let mut asked = asked(&[("setting.fsync", json!(false))]);
    asked.evidence = vec![Evidence {
        setting: Setting {
            knob: "fsync".into(),
            value: "on".into(),
        },
        ..evidence("", Shown::Worse)
    }];
    assert_eq!(rules(&asked.advised()), ["fsync-off"]);
}

#[test]
fn what_studies_warn_of_is_advised_only_if_asked_for() {
    let mut asked = asked(&[
        ("setting.synchronous_commit", json!("on")),
        ("setting.wal_writer_delay", json!(0.2)),
        ("check.commit.figure", json!(4.0)),
    ]);
    let advised = asked.advised();
    assert!(aside(&advised, "synchronous-commit-traded").contains("--allow durability"));
    asked.allowed = vec!["durability".into()];
    let advised = asked.advised();
    let traded = advised
        .advice
        .iter()
        .find(|advice| advice.rule == "synchronous-commit-traded");
    assert!(traded.unwrap().wants_consent);
}

#[test]
fn what_a_service_forbids_is_not_advised() {
    let advised = asked(&[
        ("service.kind", json!("Amazon RDS")),
        ("service.sign", json!("the role rdsadmin")),
        ("setting.wal_init_zero", json!(true)),
        ("storage.wal.file_system", json!("zfs")),
        ("sysctl.kernel.sched_autogroup_enabled", json!(1)),
        ("setting.checkpoint_completion_target", json!(0.5)),
    ])
    .advised();
    assert!(aside(&advised, "wal-zeroed-on-cow").contains("does not let its customers"));
    assert!(aside(&advised, "autogroup").contains("does not let its customers"));
    let kept = advised
        .advice
        .iter()
        .find(|advice| advice.rule == "checkpoint-in-a-hurry");
    assert_eq!(kept.unwrap().how.as_deref(), Some("its parameter group"));
}

#[test]
fn only_what_is_asked_for_speaks() {
    let facts = [
        Fact::known("setting.fsync", "test", false),
        Fact::known("setting.jit", "test", true),
    ];
    let advised = advisor().advise(&Question {
        facts: &facts,
        settings: &[],
        evidence: &[],
        allowed: &[],
        only: &["jit-takes-time".into()],
    });
    assert_eq!(advised.advice, []);
    assert_eq!(advised.not_judged.len(), 1);
}

mod golden;
mod sizes;

#[test]
fn sequence_of_no_column_is_changed_without_a_word_of_a_table() {
    let advisor = advisor();
    let mut seen = Vec::new();
    for rule in advisor
        .rules()
        .iter()
        .filter(|rule| rule.id.starts_with("sequence-"))
    {
        for case in &rule.fires {
            let has_table = case["sequences.near_end"].to_string().contains("\"table\"");
            let said = advisor.judge(rule, &known_of(&advisor, case), &Items::default(), &[]);
            let procedure = said.unwrap()[0].procedure.join("\n");
            assert_eq!(procedure.contains("rewrites"), has_table, "{procedure}");
            assert_eq!(procedure.contains("ALTER TABLE a "), has_table, "{procedure}");
            seen.push(has_table);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, [false, false, true, true, true]);
}
