//! Expressions and sentences of any text give values or errors, and never a number that is none.
#![no_main]
use libfuzzer_sys::fuzz_target;
use pgdyno_host::Fact;
use pgdyno_knobs::{Expression, Known, Template};
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let facts = [
        Fact::known("memory.total_bytes", "x", 17_179_869_184_u64),
        Fact::known("thp.enabled", "x", "madvise"),
        Fact::known("databases", "x", json!([{"name": "a", "bytes": 5}])),
        Fact::unknown("cpu.governor", "x", "none"),
    ];
    let known = Known::new(&facts, &[]);
    match Expression::parse(text).and_then(|expression| expression.evaluate(&known)) {
        Ok(Value::Number(number)) => assert!(number.as_f64().is_some_and(f64::is_finite)),
        Ok(_) => {}
        Err(error) => drop(error.to_string()),
    }
    if let Ok(template) = Template::parse(text) {
        let _ = template.render(&known);
    }
});
