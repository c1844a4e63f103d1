//! A step of a procedure as a rule has it.

use crate::expression::{Expression, Template};
use crate::known::Known;
use serde_json::Value;

/// The step of a rule that means the end of what holds rows back, which goes before every VACUUM:
/// as long as it lasts, none removes a row.
const HOLDER: &str = "@holder";

/// A step as a rule has it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// One step; none where it renders empty.
    Text(Template),
    /// As many steps as the list has members.
    List(Expression),
    /// What ends the holder of rows, if there is one.
    Holder,
}

impl Step {
    /// From a rule's file: "= expression", "@holder", or a text with its expressions in braces.
    pub(super) fn parse(text: &str) -> Result<Step, String> {
        let step = match (text, text.strip_prefix('=')) {
            (HOLDER, _) => Ok(Step::Holder),
            (_, Some(list)) => Expression::parse(list).map(Step::List),
            (text, None) => Template::parse(text).map(Step::Text),
        };
        step.map_err(|error| error.to_string())
    }

    /// Texts of the steps, for a target.
    pub(super) fn steps(&self, known: &Known) -> Vec<String> {
        match self {
            // Without its facts it is a step all the same, but no statement that can be run.
            Step::Text(text) => vec![
                text.render(known)
                    .unwrap_or_else(|_| text.text().trim_end_matches(';').to_owned()),
            ],
            Step::List(list) => list.evaluate(known).as_ref().map(texts).unwrap_or_default(),
            Step::Holder => holder(known),
        }
    }
}

/// What ends the holder of rows: where, and by which statements.
fn holder(known: &Known) -> Vec<String> {
    let text = |field: &str| {
        Some(
            known
                .get(&format!("xid.holder.{field}"))
                .ok()?
                .as_str()?
                .to_owned(),
        )
    };
    let Some(name) = text("name") else {
        return Vec::new();
    };
    let kind = text("kind").unwrap_or_default();
    let first = format!("End the {kind} {name} first: no VACUUM removes a row while it holds rows back.");
    let ends = known.get("xid.holder.ends").map(texts).unwrap_or_default();
    // What follows is run here again, wherever that was.
    let then = "Then go on here.".to_owned();
    [first]
        .into_iter()
        .chain(text("ends_at"))
        .chain(ends)
        .chain([then])
        .collect()
}

fn texts(list: &Value) -> Vec<String> {
    let members = list.as_array().into_iter().flatten();
    members
        .filter_map(|member| member.as_str().map(str::to_owned))
        .collect()
}
