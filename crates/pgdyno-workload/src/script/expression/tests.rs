//! What expressions yield, from their text.

use super::*;
use pgdyno_engine::expression::Scene;
use pgdyno_engine::random::{Purpose, Stream};
use pgdyno_engine::value::Slot;

const NAMES: [&str; 5] = ["default_seed", "a", "b", "t", "unset"];

fn evaluate(text: &str) -> Result<Value, String> {
    let mut number = |name: &str| {
        let at = NAMES.iter().position(|known| *known == name);
        u16::try_from(at.unwrap_or(NAMES.len() - 1)).unwrap()
    };
    let expr = parse(text, &mut number).map_err(|wrong| format!("{}: {}", wrong.at, wrong.message))?;
    let mut slots = vec![Slot::EMPTY; NAMES.len()];
    slots[0].set(Value::Int(5432));
    slots[1].set(Value::Int(7));
    slots[2].set(Value::Double(2.5));
    slots[3] = Slot::of_text("12");
    let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let mut scene = Scene {
        slots: &slots,
        names: &names,
        stream: &mut Stream::new(1, 1, Purpose::Transactions),
        notes: &mut Vec::new(),
    };
    expr.evaluate(&mut scene).map_err(|trouble| trouble.0)
}

#[test]
fn expressions_have_the_values_that_pgbench_gives_them() {
    let (int, boolean, double) = (
        |n| Ok(Value::Int(n)),
        |b| Ok(Value::Bool(b)),
        |d| Ok(Value::Double(d)),
    );
    for (text, expected) in [
        ("2 + 3 * 4", int(14)),
        ("(2 + 3) * 4", int(20)),
        ("5 - 3 - 1", int(1)),
        ("-2 * 3", int(-6)),
        ("5 / 2", int(2)),
        ("5.0 / 2", double(2.5)),
        ("-7 % 3", int(-1)),
        ("mod(54, 32)", int(22)),
        ("1 | 2 + 4", int(7)),
        ("12 & 10 # 1", int(9)),
        ("~ 0", int(-1)),
        ("1 << 10 >> 2", int(256)),
        ("-9223372036854775808", int(i64::MIN)),
        (":a * :t", int(84)),
        (":a + :b", double(9.5)),
        ("1 < 2 and 2 >= 2", boolean(true)),
        ("not 1 = 2", boolean(true)),
        ("1 <> 2 or 1 / 0 = 1", boolean(true)),
        ("null and false", Ok(Value::Null)),
        ("false and null", boolean(false)),
        ("null or false", Ok(Value::Null)),
        ("null isnull", boolean(true)),
        ("1 + null is not null", boolean(false)),
        ("1 = 2 is false", boolean(true)),
        ("case when 1 > 2 then 1 when null then 2 else 3 end", int(3)),
        ("CASE WHEN TRUE THEN 1 END", int(1)),
        ("abs(-17)", int(17)),
        ("greatest(5, 4, 3, 2)", int(5)),
        ("least(5, 4, 3, 2.1)", double(2.1)),
        ("int(5.4 + 3.8)", int(9)),
        ("double(5432)", double(5432.0)),
        ("sqrt(2.0) = pow(2, 0.5)", boolean(true)),
        ("pi()", double(std::f64::consts::PI)),
        ("exp(1.0) = exp(1)", boolean(true)),
        ("hash(10, 5432)", int(-5_817_877_081_768_721_676)),
        ("hash(10)", int(-5_817_877_081_768_721_676)),
        ("hash_fnv1a(10, 5432)", int(-7_793_829_335_365_542_153)),
        ("random(5, 5)", int(5)),
        ("1e3", double(1000.0)),
        (".5", double(0.5)),
    ] {
        assert_eq!(evaluate(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_reported_with_its_place() {
    for (text, expected) in [
        (
            "1 +",
            "3: unexpected the end of the expression; expected a number",
        ),
        ("1 2", "2: unexpected 2; expected an operator"),
        ("(1", "2: unexpected the end of the expression; expected \")\""),
        ("foo(1)", "0: there is no function foo"),
        ("abs(1, 2)", "0: abs takes 1 arguments, not 2"),
        ("1 $ 2", "2: the character '$' has no place"),
        ("case 1 end", "5: unexpected 1; expected WHEN"),
        ("99999999999999999999", "0: the integer does not fit"),
        ("1 < 2 < 3", "6: unexpected <; expected an operator"),
        (":unset + 1", "the variable \"unset\" is not set"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "the result of + does not fit"),
        ("random(2, 1)", "the range of random is empty"),
        (
            "random_zipfian(1, 2, 1)",
            "the parameter of random_zipfian must be 1.001 to 1000",
        ),
        ("permute(1, 0)", "the size of permute"),
        ("true + 1", "a boolean cannot be taken as an integer"),
    ] {
        let error = evaluate(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let deep = "(".repeat(1000) + "1" + &")".repeat(1000);
    assert!(evaluate(&deep).unwrap_err().contains("nested deeper"));
    let long = "1".to_owned() + &"+1".repeat(400_000);
    assert!(evaluate(&long).unwrap_err().contains("more than 1000 operators"));
}
