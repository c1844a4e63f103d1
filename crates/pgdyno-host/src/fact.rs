//! A fact: one thing found out about host or server, with where it was read, or why it is not
//! known.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// One thing found out, or the reason why not. Unknown is not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Name with the unit last, for example `memory.total_bytes`.
    pub name: String,
    /// A text, number, truth value, or a list or an object of those.
    pub value: Option<Value>,
    /// Why it is missing; set exactly when `value` is not.
    pub missing: Option<String>,
    /// Where it was read: a file, a view, a function.
    pub source: String,
}

impl Fact {
    /// A fact from the outcome of a read.
    pub fn new<V: Into<Value>, E: fmt::Display>(name: &str, source: &str, outcome: Result<V, E>) -> Fact {
        let (value, missing) = match outcome {
            Ok(value) => (Some(value.into()), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Fact {
            name: name.to_owned(),
            value,
            missing,
            source: source.to_owned(),
        }
    }

    /// A fact that is known.
    pub fn known(name: &str, source: &str, value: impl Into<Value>) -> Fact {
        Fact::new::<Value, &str>(name, source, Ok(value.into()))
    }

    /// A fact that is not known, and why.
    pub fn unknown(name: &str, source: &str, why: impl fmt::Display) -> Fact {
        Fact::new::<Value, _>(name, source, Err(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fact_has_a_value_or_a_reason() {
        let known = Fact::known("a", "b", 3);
        assert_eq!((known.value, known.missing), (Some(json!(3)), None));
        let unknown = Fact::unknown("a", "b", "refused");
        assert_eq!(
            (unknown.value, unknown.missing),
            (None, Some("refused".to_owned()))
        );
    }
}
