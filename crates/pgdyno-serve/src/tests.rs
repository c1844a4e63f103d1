//! The description of the interface against what there is.

use super::{OPENAPI, routes};
use serde_json::Value;
use std::collections::BTreeSet;

fn document() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

#[test]
fn each_route_is_described_and_each_described_one_is_there() {
    let document = document();
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            described.insert((path.clone(), method.to_uppercase()));
        }
    }
    let there: BTreeSet<_> = routes()
        .into_iter()
        .map(|(method, path, _)| (path.to_owned(), method.to_string()))
        .collect();
    assert_eq!(described, there);
}

/// Parameters of a path are those that its operations describe, and what is referred to is there.
#[test]
fn the_description_holds_together() {
    let document = document();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let in_path: BTreeSet<&str> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let described: BTreeSet<&str> = parameters
                .iter()
                .filter(|parameter| parameter["in"] == "path")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            assert_eq!(described, in_path, "{method} {path}");
            assert!(
                operation["summary"]
                    .as_str()
                    .is_some_and(|text| text.ends_with('.')),
                "{method} {path}"
            );
        }
    }
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("$ref", Value::String(text)) => found.push(text.clone()),
                        _ => references(value, found),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}
