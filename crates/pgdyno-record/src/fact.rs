//! A fact of a host or a server.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fact, as pgdyno-host and pgdyno-server find them, with its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Fact"))]
pub struct FactRecord {
    /// "host", "server", "load" or "sandbox".
    #[cfg_attr(
        feature = "typescript",
        ts(type = "\"host\" | \"server\" | \"load\" | \"sandbox\"")
    )]
    pub group: String,
    /// Name with the unit last.
    pub name: String,
    /// Value, if it is known: a text, number, truth value, or a list or an object of those.
    pub value: Option<Value>,
    /// Why not, if it is not.
    pub missing: Option<String>,
    /// File, query or program that the fact comes from: "/proc/meminfo".
    pub source: String,
}

impl FactRecord {
    /// For people: the value, or that it is unknown and why.
    pub fn shown(&self) -> String {
        match (&self.value, &self.missing) {
            (Some(value), _) => shown(value),
            (None, Some(why)) => format!("unknown: {why}"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

/// A fact's value for people: texts without quotes, lists with commas, objects as `name value`
/// pairs.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name} {}", shown(value)))
                .collect();
            fields.join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_without_json_marks() {
        let value = json!([{"disk": "vda", "rotational": false}, {"disk": "md0", "rotational": null}]);
        assert_eq!(
            shown(&value),
            "disk vda rotational no, disk md0 rotational unknown"
        );
    }
}
