use super::*;
use pgdyno_host::Fact;
use proptest::prelude::*;
use serde_json::json;

fn known() -> Known {
    let facts = [
        Fact::known("memory.total_bytes", "x", 17_179_869_184_u64),
        Fact::known("cpu.online_count", "x", 8),
        Fact::known("thp.enabled", "x", "madvise"),
        Fact::known("virtualization.guest", "x", true),
        Fact::known("sysctl.vm.page-cluster", "x", 3),
        Fact::known(
            "databases",
            "x",
            json!([{"name": "a", "bytes": 5}, {"name": "b", "bytes": 7}]),
        ),
        Fact::known("databases.bytes", "x", 12),
        Fact::known(
            "tables.largest",
            "x",
            json!([{"rows": null, "toast": 5, "odd": null}, {"rows": 7, "toast": null, "odd": null}]),
        ),
        Fact::unknown(
            "cpu.governor",
            "x",
            "no frequency scaling is offered to this kernel",
        ),
        Fact::known("kernel.shmmax", "x", u64::MAX),
    ];
    Known::new(&facts, &[])
}

#[track_caller]
fn check(text: &str, expected: Result<Value, &str>) {
    let found = Expression::parse(text).and_then(|expression| expression.evaluate(&known()));
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
        (Err(error), Err(part)) => {
            let error = error.to_string();
            assert!(error.contains(part) && error.contains(text), "{error}");
        }
        (found, expected) => panic!("{text}: {found:?} is not {expected:?}"),
    }
}

#[test]
fn numbers_texts_and_truth_values() {
    check("memory.total_bytes / 4", Ok(json!(4_294_967_296_u64)));
    check("min(memory.total_bytes // 4, GB(1))", Ok(json!(1_073_741_824)));
    check("max(1, 2.5, 2)", Ok(json!(2.5)));
    check("clamp(available.cpus, 1, 4)", Ok(json!(4)));
    check("round(2.345, 2) + floor(1.9) + ceil(0.1)", Ok(json!(4.35)));
    check("round(7 / 2)", Ok(json!(4)));
    check("kB(1) + MB(1) + TB(1)", Ok(json!(1_099_512_677_376_u64)));
    check(
        "thp.enabled == 'madvise' and virtualization.guest",
        Ok(json!(true)),
    );
    check("'a' if cpu.online_count > 4 else 'b'", Ok(json!("a")));
    check("'x' ~ cpu.online_count", Ok(json!("x8")));
    check("thp.enabled in ['never', 'madvise']", Ok(json!(true)));
    check("sysctl['vm']['page-cluster']", Ok(json!(3)));
    check("fact('sysctl.vm.page-cluster') * 2", Ok(json!(6)));
    check("known('cpu.governor') or cpu.online_count == 8", Ok(json!(true)));
    check("databases.bytes", Ok(json!(12)));
    check("count(databases)", Ok(json!(2)));
    check("databases[1].bytes", Ok(json!(7)));
    check(
        "max(pick(databases, 'bytes')) + sum(pick(databases, 'bytes'))",
        Ok(json!(19)),
    );
    check("kernel.shmmax > TB(8)", Ok(json!(true)));
}

#[test]
fn members_that_are_not_known_are_passed_over() {
    check("sum(pick(tables.largest, 'toast'))", Ok(json!(5)));
    check("max(pick(tables.largest, 'rows'))", Ok(json!(7)));
    check("min(pick(tables.largest, 'rows'))", Ok(json!(7)));
    check("sum([])", Ok(json!(0)));
    for function in ["sum", "max", "min"] {
        check(
            &format!("{function}(pick(tables.largest, 'odd'))"),
            Err("no member of the list is known"),
        );
    }
}

#[test]
fn an_expression_returns_the_facts_it_names() {
    let text = "min(cpu.online_count, 4) > 2 and thp.enabled == 'x' and known('cpu.governor') and databases.bytes > 1";
    let facts = Expression::parse(text).unwrap().facts(&known());
    let expected = [
        ("cpu.online_count", "8"),
        ("databases.bytes", "12"),
        ("thp.enabled", "madvise"),
    ];
    assert_eq!(
        facts,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn what_has_no_value_is_named_with_the_reason() {
    check(
        "cpu.governor == 'x'",
        Err("cpu.governor is missing: no frequency scaling"),
    );
    check(
        "fact('cpu.governor')",
        Err("cpu.governor is missing: no frequency scaling"),
    );
    check(
        "cpu.online_cuont",
        Err("no fact \"cpu.online_cuont\"; did you mean \"cpu.online_count\"?"),
    );
    check(
        "memry.total_bytes",
        Err("no fact \"memry\"; did you mean \"memory\"?"),
    );
    check("mni(1, 2)", Err("did you mean \"min\"?"));
    check("setting.shared_buffers / 2", Err("no server was asked"));
    check("storage.data.file_system", Err("no server was asked"));
    check("process.limits.open_files.soft > 3", Err("no server was asked"));
    check(
        "memory",
        Err("\"memory\" is not a fact but the beginning of names, such as memory.total_bytes"),
    );
    // What is not evaluated does not have to be known.
    check("true or cpu.governor == 'x'", Ok(json!(true)));
}

#[test]
fn what_is_no_number_is_an_error() {
    check("1 / 0", Err("unable to calculate 1 / 0"));
    check("1 // 0", Err("unable to calculate 1 // 0"));
    check("1 % 0", Err("unable to calculate 1 % 0"));
    check("1.5 / (cpu.online_count - 8)", Err("unable to calculate 1.5 / 0"));
    check("1e308 * 10", Err("beyond all bounds"));
    check("max(1, 1e308 * 10)", Err("beyond all bounds"));
    check("thp.enabled * 1.5", Err("only numbers can be multiplied"));
    check("thp.enabled + 1", Err("unsupported types"));
    check("min('a', 1)", Err("expected a number, found a"));
    check("min()", Err("expected a number at least"));
    check("clamp(1, 3, 2)", Err("3 is above 2"));
    check("2 ** 3", Err("has no meaning"));
    check("'abc'[1:2]", Err("has no meaning"));
    check("none", Err("expected a number"));
    check("(1 +", Err("unexpected"));
    check("", Err("unexpected"));
    check("1 2", Err("unexpected"));
    let error = Expression::parse("cpu.online_count")
        .unwrap()
        .holds(&known())
        .unwrap_err();
    assert!(
        error.to_string().contains("expected true or false, found 8"),
        "{error}"
    );
    assert!(Expression::parse(&"1+".repeat(TEXT_MAX)).is_err());
}

#[test]
fn sentences_are_filled_in() {
    let check = |text: &str, expected: &str| {
        let template = Template::parse(text).unwrap();
        assert_eq!(template.render(&known()).unwrap(), expected, "{text}");
    };
    check(
        "{{ memory.total_bytes | size }} on {{ cpu.online_count }} CPUs",
        "16 GB on 8 CPUs",
    );
    check("{{ 1610612736 | size }}: a quarter", "1.5 GB: a quarter");
    check("{{ 500 | size }} {{ (1023.99 * 1024) | size }}", "500 B 1 MB");
    check(
        "{{ 0.25 | duration }} {{ 90 | duration }} {{ 86400 | duration }}",
        "250 ms 1.5 min 1 d",
    );
    check("{{ 0.00025 | duration }} {{ 0 | duration }}", "250 us 0 s");
    check(
        "{{ 1234567.891 | number }} {{ -1234 | number }} {{ 999 | number }}",
        "1,234,567.89 -1,234 999",
    );
    check("{{ 2 / 3 }} {{ virtualization.guest }}", "0.667 true");
    check("{{ pick(databases, 'name') | list }}", "a, b");
    check("{% for d in databases %}[{{ d.name }}]{% endfor %}", "[a][b]");
    check(
        "{% if cpu.online_count > 4 %}many{% else %}few{% endif %}",
        "many",
    );
    let error = Template::parse("a {{ cpu.governor }}")
        .unwrap()
        .render(&known())
        .unwrap_err();
    assert_eq!(
        error.missing(),
        Some(("cpu.governor", "no frequency scaling is offered to this kernel"))
    );
    assert!(Template::parse("{{ 1 + }}").is_err());
    let list = format!("[{}1]", "1,".repeat(200));
    let endless = format!("{{% for a in {list} %}}{{% for b in {list} %}}{{% endfor %}}{{% endfor %}}");
    let error = Template::parse(&endless).unwrap().render(&known()).unwrap_err();
    assert!(error.to_string().contains("does not come to an end"), "{error}");
}

#[test]
fn a_text_or_list_is_never_multiplied() {
    for text in [
        "'a' * 70000",
        "70000 * 'a'",
        "-5 * 'x'",
        "2 * (3 + 4) * thp.enabled",
        "memory.total_bytes * fact('thp.enabled')",
        "2 * ['a', 1 * 2][0]",
        "2 * 'b' ~ 'c'",
        "count([1] * 9000)",
        "count((1, 2) * 40000000)",
        "count(40000000 * (1,))",
        "2e0 * 1.5e-3 * databases",
    ] {
        check(text, Err("only numbers can be multiplied"));
        let template = Template::parse(&format!("'{{{{ {text} }}}}")).unwrap();
        assert!(template.render(&known()).is_err(), "{text}");
    }
    check("2 * - thp.enabled", Err("invalid operation"));
    check("2 * 1.5e-3*1000 * (1 + cpu.online_count)*2", Ok(json!(54)));
    check("2 * databases[0].bytes + 1", Ok(json!(11)));
    check("3 * fact('cpu.online_count') // 5", Ok(json!(4)));
    check("'2 * x' ~ 2 * -3 ~ '*'", Ok(json!("2 * x-6*")));
    check("6 / 3 * 2", Ok(json!(4)));
}

#[test]
fn statements_that_keep_or_hide_values_are_refused() {
    for text in [
        "{% set x = 'aa' %}{% set x = x ~ x %}",
        "{% with x = 1 %}{% endwith %}",
        "{%- filter size -%}1{% endfilter %}",
        "{% raw %}{{ ' {% endraw %}{{ 'a' * 99 }}",
        "{# {{ ' #}{{ 'a' * 99 }}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{{ {'a'} }}",
        "{% %}",
        "{%",
    ] {
        assert!(Template::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,80}") {
        if let Ok(expression) = Expression::parse(&text) {
            let _ = expression.evaluate(&known());
        }
        if let Ok(template) = Template::parse(&text) {
            let _ = template.render(&known());
        }
    }

    #[test]
    fn nor_do_words_of_the_language(words in proptest::collection::vec(prop_oneof![
        Just("memory.total_bytes"), Just("databases"), Just("cpu"), Just("min"), Just("("), Just(")"), Just(","), Just("+"),
        Just("-"), Just("*"), Just("//"), Just("/"), Just("%"), Just("~"), Just("["), Just("]"), Just("{"), Just("}"),
        Just("'a'"), Just("not"), Just("in"), Just("if"), Just("else"), Just("is"), Just("1"), Just("1e308"), Just("0"),
        Just("9223372036854775807"), Just("170141183460469231731687303715884105727"), Just("|size"), Just("|duration"),
        Just("|number"), Just("fact"), Just("pick"), Just("clamp"), Just("GB"), Just("."), Just("none"), Just("true"),
        Just("<"), Just("=="), Just("{{"), Just("}}"), Just("{%"), Just("%}"), Just("for"), Just("endfor"), Just("set"),
    ], 0..24)) {
        let text = words.join(" ");
        if let Ok(expression) = Expression::parse(&text)
            && let Ok(Value::Number(number)) = expression.evaluate(&known())
        {
            prop_assert!(number.as_f64().is_some_and(f64::is_finite));
        }
        if let Ok(template) = Template::parse(&text) {
            let _ = template.render(&known());
        }
    }

    #[test]
    fn sizes_and_durations_of_any_number(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
        for text in [functions::size(number), functions::duration(number), functions::grouped(number)] {
            prop_assert!(!text.is_empty());
        }
    }
}

#[test]
fn depth_is_bounded() {
    for text in ["not ", "-", "(", "[", "{'a', ", "1+", "a.", "1 if 1 else "] {
        let long = text.repeat(TEXT_MAX / text.len() - 1);
        for text in [long.clone(), format!("{long}1")] {
            if let Ok(expression) = Expression::parse(&text) {
                let _ = expression.evaluate(&known());
            }
            let _ = Template::parse(&format!("{{{{ {text} }}}}"));
        }
    }
}
